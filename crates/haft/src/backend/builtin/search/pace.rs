//! Rate limit: one request at a time, with a pause in between.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Pause between two requests.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum time that a request waits.
const WAIT_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Pace {
    next: Mutex<Option<Instant>>,
}

/// Too many requests wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Pace {
    /// Waits for a turn. A cancelled wait leaves its turn unused.
    pub(super) async fn turn(&self) -> Result<(), TooMany> {
        let turn = self.take()?;
        sleep_until(turn).await;
        Ok(())
    }

    fn take(&self) -> Result<Instant, TooMany> {
        let now = Instant::now();
        let mut next = self.next.lock();
        let turn = next.map_or(now, |next| next.max(now));
        if turn - now > WAIT_MAX {
            return Err(TooMany);
        }
        *next = Some(turn + PAUSE);
        Ok(turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn there_is_a_second_between_two_requests_and_a_limit_to_waiting() {
        let pace = Pace::default();
        let start = Instant::now();
        for second in 0..3 {
            pace.turn().await.unwrap();
            assert_eq!(start.elapsed().as_secs(), second);
        }
        // Five wait; the sixth is rejected.
        for _ in 0..5 {
            pace.take().unwrap();
        }
        assert_eq!(pace.turn().await, Err(TooMany));
        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(pace.turn().await.is_ok());
    }
}
