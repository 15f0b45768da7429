//! Moments as people write them: on the command line and in queries.

use jiff::Timestamp;

/// A moment: `2h` ago, a date (its first instant in UTC), or a full time.
pub(crate) fn parse(text: &str) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    if let Ok(date) = text.parse::<jiff::civil::Date>() {
        let start = date.to_zoned(jiff::tz::TimeZone::UTC);
        return start.map(|zoned| zoned.timestamp()).map_err(|error| error.to_string());
    }
    let ago = haft::config::quantity::parse_duration(text).map_err(|_| {
        "expected a duration such as 2h, a date such as 2026-01-31, or a time".to_owned()
    })?;
    Timestamp::now().checked_sub(ago).map_err(|error| error.to_string())
}

/// A moment for people, in the time of this machine.
pub(crate) fn shown(moment: Timestamp) -> String {
    moment.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}
