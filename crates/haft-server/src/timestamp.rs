//! Timestamps as people write them: on the command line and in queries.

use jiff::Timestamp;

/// Parses `2h` (ago), a date (its first instant in UTC), or a full timestamp.
pub(crate) fn parse(text: &str) -> Result<Timestamp, String> {
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp);
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

/// Formats a timestamp for people, in the local time zone.
pub(crate) fn shown(timestamp: Timestamp) -> String {
    timestamp.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}
