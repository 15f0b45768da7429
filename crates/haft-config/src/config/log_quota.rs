//! The bytes that one key may add to the execution log on a day.

use std::fmt;

use super::bytes::parse_bytes;

/// The smallest quota: a few short entries.
pub const LOG_QUOTA_BYTES_MIN: u64 = 1_000;
/// The largest quota, above the space of any log.
pub const LOG_QUOTA_BYTES_MAX: u64 = 1_000_000_000_000_000;

const REMEDY: &str = "write a size per day, such as 100MB/day";
const UNITS: [(&str, u64); 8] = [
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("kB", 1_000),
    ("KiB", 1 << 10),
];

/// Bytes per UTC day: `100MB/day`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogQuota {
    bytes: u64,
}

impl LogQuota {
    /// Parses `100MB/day`.
    ///
    /// ```
    /// # use haft_config::config::log_quota::LogQuota;
    /// assert_eq!(LogQuota::parse("100 MB / day").unwrap().to_string(), "100MB/day");
    /// assert!(LogQuota::parse("100MB").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let unreadable = || format!("`{text}` is not a log quota; {REMEDY}");
        let (size, period) = text.split_once('/').ok_or_else(unreadable)?;
        if !matches!(period.trim(), "d" | "day") {
            return Err(unreadable());
        }
        let bytes = parse_bytes(size.trim()).ok_or_else(unreadable)?;
        if !(LOG_QUOTA_BYTES_MIN..=LOG_QUOTA_BYTES_MAX).contains(&bytes) {
            return Err(format!("a log quota has 1kB to 1000TB a day; {REMEDY}"));
        }
        Ok(Self { bytes })
    }

    /// The bytes of one day.
    pub fn bytes(self) -> u64 {
        self.bytes
    }
}

impl fmt::Display for LogQuota {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.into_iter().find(|(_, unit)| self.bytes.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(out, "{}{name}/day", self.bytes / unit),
            None => write!(out, "{}B/day", self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_quota_is_a_size_per_day() {
        for (text, bytes, shown) in [
            ("100MB/day", 100_000_000, "100MB/day"),
            ("1 GiB / d", 1 << 30, "1GiB/day"),
            ("2000KiB/day", 2_048_000, "2048kB/day"),
            ("1001/day", 1001, "1001B/day"),
        ] {
            let quota = LogQuota::parse(text).unwrap();
            assert_eq!((quota.bytes(), quota.to_string().as_str()), (bytes, shown), "{text}");
            assert_eq!(LogQuota::parse(shown), Ok(quota));
        }
        for text in ["100MB", "100MB/h", "0/day", "999B/day", "-1MB/day", "many/day", "9999TB/day"]
        {
            assert!(LogQuota::parse(text).is_err(), "{text}");
        }
    }
}
