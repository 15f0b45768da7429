//! Words of fixed sets, read back from JSON.

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

/// A word of a fixed set. The alias keeps `serde` from borrowing it from its input.
pub type Word = &'static str;

/// Settings of a tool.
const SETTINGS: [&str; 13] = [
    "max_instances",
    "timeout",
    "parallel_capable",
    "approval",
    "on_limit",
    "rename",
    "description",
    "hide_arguments",
    "fixed_arguments",
    "sandbox",
    "rate",
    "burst",
    "quota",
];
const ORIGINS: [&str; 2] = ["explicit", "default"];
const TRANSPORTS: [&str; 4] = ["stdio", "http", "sse", "websocket"];

/// Reads the name of a tool's setting.
pub fn setting_word<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    one_of(&SETTINGS, from)
}

/// Reads the origin of a value.
pub fn origin_word<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    one_of(&ORIGINS, from)
}

/// Reads the name of a transport.
pub fn transport_word<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    one_of(&TRANSPORTS, from)
}

fn one_of<'de, D: Deserializer<'de>>(
    words: &[&'static str],
    from: D,
) -> Result<&'static str, D::Error> {
    let word = std::borrow::Cow::<str>::deserialize(from)?;
    let known = words.iter().copied().find(|known| *known == word);
    known.ok_or_else(|| D::Error::custom(format_args!("unknown word `{word}`")))
}
