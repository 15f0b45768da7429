//! Sizes as a file may spell them.

use serde_json::{Value, json};

use super::node::{Node, NodeValue};
use super::quantity::shown;
use super::read::{FromNode, Reader};

/// Default of `log.max_bytes`, and its minimum.
pub const LOG_BYTES_DEFAULT: u64 = 10 << 30;
/// See [`LOG_BYTES_DEFAULT`].
pub const LOG_BYTES_MIN: u64 = 1 << 20;

/// A number of bytes, zero included: `1048576`, `500 MiB`, `10GB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteCount(pub u64);

impl FromNode for ByteCount {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let bytes = written(node).and_then(parse_bytes);
        if bytes.is_none() {
            let problem = format!("{} is not a size", shown(node));
            reader.error(node, problem, "write bytes (1048576) or a unit (500MiB, 10GiB, 10GB)");
        }
        bytes.map(Self)
    }
    fn schema() -> Value {
        json!({ "type": ["string", "integer"], "examples": ["10GiB", "500MiB", 1_048_576] })
    }
}

/// Disk space to keep free: `auto`, a size, or a percentage of the disk such as `5%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeSpace {
    /// An amount that suits the disk.
    Auto,
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the disk.
    Percent(u8),
}

impl FreeSpace {
    /// The value as a file may spell it.
    pub fn shown(self) -> Value {
        match self {
            Self::Auto => json!("auto"),
            Self::Bytes(bytes) => json!(bytes),
            Self::Percent(percent) => json!(format!("{percent}%")),
        }
    }
}

impl FromNode for FreeSpace {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let found = written(node).and_then(parse_free_space);
        if found.is_none() {
            let problem = format!("{} is not an amount of free disk space", shown(node));
            let remedy = "write a size (500MiB), a part of the disk from 0% to 99%, or `auto`";
            reader.error(node, problem, remedy);
        }
        found
    }
    fn schema() -> Value {
        json!({ "type": ["string", "integer"], "examples": ["auto", "500MiB", "5%"] })
    }
}

fn written(node: &Node) -> Option<&str> {
    match &node.value {
        NodeValue::Number(text) => Some(text),
        NodeValue::Text(text) => Some(text.text.trim()),
        NodeValue::Bool(_) | NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => None,
    }
}

fn parse_free_space(text: &str) -> Option<FreeSpace> {
    if text == "auto" {
        return Some(FreeSpace::Auto);
    }
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent = percent.trim_end().parse().ok().filter(|percent| *percent < 100);
            percent.map(FreeSpace::Percent)
        }
        None => parse_bytes(text).map(FreeSpace::Bytes),
    }
}

/// Reads a size: a whole number and a unit, of 1000 (`kB`, `MB`) or 1024 (`KiB`, `MiB`).
pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_both_kinds() {
        for (text, bytes) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("1MiB", 1 << 20),
            ("10 GB", 10_000_000_000),
            ("1kb", 1000),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "MiB", "-1", "1.5GiB", "1e9", "1 parsec", "99999999999GiB"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn free_space_is_a_size_or_a_part_of_the_disk() {
        assert_eq!(parse_free_space("auto"), Some(FreeSpace::Auto));
        assert_eq!(parse_free_space("5%"), Some(FreeSpace::Percent(5)));
        assert_eq!(parse_free_space("1MiB"), Some(FreeSpace::Bytes(1 << 20)));
        for text in ["100%", "-1%", "%", "much", "300%"] {
            assert_eq!(parse_free_space(text), None, "{text}");
        }
    }
}
