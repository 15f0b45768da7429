//! Durations as the configuration spells them.

use std::time::Duration;

/// A duration the way the configuration spells it: `30s`, `500ms`, `1.5s`.
pub fn human(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis.is_multiple_of(1000) {
        format!("{}s", millis / 1000)
    } else if millis < 1000 {
        format!("{millis}ms")
    } else {
        format!("{}s", duration.as_secs_f64())
    }
}
