//! Delays between attempts at a sink that takes no lines.

use std::time::Duration;

use uuid::Uuid;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// The delay before the next attempt. Doubles with each one.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// Returns a delay between half and the whole of the present one, so that replicas do not retry together.
    pub(super) fn next(&mut self) -> Duration {
        let delay = self.0;
        self.0 = (2 * delay).min(LONGEST);
        let [.., random] = Uuid::now_v7().into_bytes();
        delay / 2 + (delay / 2).mul_f64(f64::from(random) / 255.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, FIRST, LONGEST};

    #[test]
    fn delays_grow_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let first = backoff.next();
        assert!(first >= FIRST / 2 && first <= FIRST, "{first:?}");
        let last = (0..20).map(|_| backoff.next()).last().unwrap();
        assert!(last >= LONGEST / 2 && last <= LONGEST, "{last:?}");
    }
}
