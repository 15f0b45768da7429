//! Durations as the configuration spells them.

use std::time::Duration;

/// A duration the way the configuration spells it, in whole milliseconds: `30s`, `500ms`, `1.5s`.
pub fn human(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis.is_multiple_of(1000) {
        format!("{}s", millis / 1000)
    } else if millis < 1000 {
        format!("{millis}ms")
    } else {
        let seconds = format!("{}.{:03}", millis / 1000, millis % 1000);
        format!("{}s", seconds.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_spelled_in_whole_milliseconds() {
        let spelled = |nanos| human(Duration::from_nanos(nanos));
        assert_eq!(spelled(30_000_000_000), "30s");
        assert_eq!(spelled(1_500_000_000), "1.5s");
        assert_eq!(spelled(6_725_565_043), "6.725s");
        assert_eq!(spelled(250_900_000), "250ms");
    }
}
