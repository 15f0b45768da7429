//! Numbers and durations as a file may spell them.

use std::time::Duration;

use serde_json::{Value, json};

use super::node::{Node, NodeValue, Text};
use super::read::{FromNode, Reader};

/// Longest duration that is accepted; anything beyond is a mistake of unit.
pub const DURATION_MAX: Duration = Duration::from_hours(8784);

/// A duration above zero: `P0DT0H0M30S`, `30` (seconds), `500ms`, `30s`, `2m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl FromNode for Span {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let parsed = match &node.value {
            NodeValue::Number(number) => seconds(number),
            NodeValue::Text(text) => parse_duration(&text.text),
            _ => Err("it is neither a number nor a string".into()),
        };
        match parsed {
            Ok(duration) => Some(Self(duration)),
            Err(problem) => {
                let found = shown(node);
                reader.error(
                    node,
                    format!("{found} is not a usable duration: {problem}"),
                    "write seconds (30), a unit (500ms, 30s, 2m) or ISO-8601 (PT30S), above zero",
                );
                None
            }
        }
    }
    fn schema() -> Value {
        json!({
            "type": ["string", "number"],
            "examples": ["30s", "500ms", "2m", 30, "P0DT0H0M30S"],
        })
    }
}

/// A duration, zero included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanOrZero(pub Duration);

impl FromNode for SpanOrZero {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let is_zero = match &node.value {
            NodeValue::Number(number) => number.parse() == Ok(0.0),
            NodeValue::Text(text) => ["0", "0s", "0ms", "PT0S"].contains(&text.text.trim()),
            _ => false,
        };
        if is_zero {
            return Some(Self(Duration::ZERO));
        }
        Span::read(node, reader).map(|Span(duration)| Self(duration))
    }
    fn schema() -> Value {
        Span::schema()
    }
}

/// A duration in milliseconds, as Claude's and the Inspector's files count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Milliseconds(pub Duration);

impl FromNode for Milliseconds {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let millis = whole(node).filter(|millis| *millis > 0).and_then(|n| u64::try_from(n).ok());
        let duration = millis.map(Duration::from_millis).filter(|span| *span <= DURATION_MAX);
        if duration.is_none() {
            let problem = format!("{} is not a usable number of milliseconds", shown(node));
            reader.error(node, problem, "write a whole number above zero, such as 60000");
        }
        duration.map(Self)
    }
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 1 })
    }
}

/// A whole number above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u32);

impl FromNode for Count {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let number = whole(node).and_then(|number| u32::try_from(number).ok()).filter(|n| *n > 0);
        if number.is_none() {
            let is_large = whole(node).is_some_and(|number| number > 0);
            let what = if is_large { "too large" } else { "not a whole number above zero" };
            let problem = format!("{} is {what}", shown(node));
            reader.error(node, problem, "write a number such as 5, without quotes");
        }
        number.map(Self)
    }
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 1 })
    }
}

/// A whole number, zero included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountOrZero(pub u32);

impl FromNode for CountOrZero {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let number = whole(node).and_then(|number| u32::try_from(number).ok());
        if number.is_none() {
            let problem = format!("{} is not a whole number of zero or more", shown(node));
            reader.error(node, problem, "write a number such as 3, without quotes");
        }
        number.map(Self)
    }
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0 })
    }
}

/// A factor of at least 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor(pub f64);

impl FromNode for Factor {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let factor = match &node.value {
            NodeValue::Number(text) => text.parse::<f64>().ok(),
            _ => None,
        };
        let factor = factor.filter(|factor| (1.0..=1000.0).contains(factor));
        if factor.is_none() {
            let problem = format!("{} is not a factor from 1 to 1000", shown(node));
            reader.error(node, problem, "write a number such as 2");
        }
        factor.map(Self)
    }
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 1, "maximum": 1000 })
    }
}

/// The value of an environment variable: any scalar as it was written; `null` unsets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvValue(pub Option<Text>);

impl FromNode for EnvValue {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.value {
            NodeValue::Null => Some(Self(None)),
            NodeValue::Text(text) => Some(Self(Some(text.clone()))),
            NodeValue::Number(text) => Some(Self(Some(plain(text.clone())))),
            NodeValue::Bool(yes) => Some(Self(Some(plain(yes.to_string())))),
            NodeValue::List(_) | NodeValue::Map(_) => {
                reader.expected(node, "the value of a variable", "a string in quotes");
                None
            }
        }
    }
    fn schema() -> Value {
        json!({ "type": ["string", "number", "boolean", "null"] })
    }
}

/// Parses a duration in any of the three spellings.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.parse::<f64>().is_ok() {
        return seconds(text);
    }
    let span: jiff::Span = text.parse().map_err(|_| "it cannot be read".to_owned())?;
    if span.get_years() != 0 || span.get_months() != 0 {
        return Err("years and months have no fixed length".into());
    }
    let signed = span
        .to_duration(jiff::SpanRelativeTo::days_are_24_hours())
        .map_err(|_| "it cannot be read".to_owned())?;
    positive(Duration::try_from(signed).map_err(|_| "it is below zero".to_owned())?)
}

fn seconds(number: &str) -> Result<Duration, String> {
    let seconds: f64 = number.parse().map_err(|_| "it cannot be read".to_owned())?;
    if seconds < 0.0 {
        return Err("it is below zero".into());
    }
    positive(Duration::try_from_secs_f64(seconds).map_err(|_| "it is too long".to_owned())?)
}

fn positive(duration: Duration) -> Result<Duration, String> {
    if duration.is_zero() {
        return Err("it is zero".into());
    }
    if duration > DURATION_MAX {
        return Err("it is longer than a year".into());
    }
    Ok(duration)
}

fn whole(node: &Node) -> Option<i64> {
    match &node.value {
        NodeValue::Number(text) => text.parse().ok(),
        _ => None,
    }
}

fn plain(text: String) -> Text {
    Text { text, shown: None }
}

pub(super) fn shown(node: &Node) -> String {
    match &node.value {
        NodeValue::Number(text) => format!("`{text}`"),
        NodeValue::Text(text) => format!("`{}`", text.shown()),
        NodeValue::Bool(yes) => format!("`{yes}`"),
        NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => node.kind().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves X-5, S0-9.
    #[test]
    fn three_spellings_of_a_duration_mean_the_same() {
        for text in ["P0DT0H0M30S", "PT30S", "30", "30.0", "30s", "30000ms", "0.5m"] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(30)), "{text}");
        }
        assert_eq!(parse_duration("P0DT0H1M0S"), Ok(Duration::from_mins(1)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(parse_duration("P1DT1S"), Ok(Duration::from_secs(86_401)));
    }

    /// Proves S0-78.
    #[test]
    fn zero_negative_and_boundless_durations_are_refused() {
        for text in ["PT0S", "0", "-5", "-5s", "P1Y", "P2M", "soon", "", "1e300", "9999999999s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
