//! Limits on calls of tools: a rate, its burst, and a daily quota.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::{Value, json};

use super::model::Setting;
use super::node::{Node, NodeValue};
use super::quantity::shown;
use super::read::{FromNode, Reader};

/// Most calls of a rate in its period, and most calls of a burst.
pub const RATE_CALLS_MAX: u32 = 1_000_000;
/// Most calls of a quota.
pub const QUOTA_CALLS_MAX: u64 = 1_000_000_000_000;

const RATE_REMEDY: &str = "write calls per second, minute or hour, such as 5/s, 60/min or 1000/h";
const QUOTA_REMEDY: &str = "write calls per day, such as 10000/day";

/// The period of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RatePeriod {
    /// `/s`
    Second,
    /// `/min`
    Minute,
    /// `/h`
    Hour,
}

impl RatePeriod {
    /// Its length.
    pub fn duration(self) -> Duration {
        match self {
            Self::Second => Duration::from_secs(1),
            Self::Minute => Duration::from_mins(1),
            Self::Hour => Duration::from_hours(1),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
        }
    }
}

/// Calls per period: `5/s`, `60/min`, `1000/h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    calls: NonZeroU32,
    period: RatePeriod,
}

impl Rate {
    /// Parses `60/min`.
    ///
    /// ```
    /// # use haft_config::config::call_limits::Rate;
    /// assert_eq!(Rate::parse("60 / minute").unwrap().to_string(), "60/min");
    /// assert!(Rate::parse("60").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let (calls, period) = parts(text).ok_or_else(|| unreadable(text, "rate", RATE_REMEDY))?;
        let period = match period {
            "s" | "sec" | "second" => RatePeriod::Second,
            "min" | "minute" => RatePeriod::Minute,
            "h" | "hour" => RatePeriod::Hour,
            _ => return Err(unreadable(text, "rate", RATE_REMEDY)),
        };
        let calls = calls.parse().ok().and_then(NonZeroU32::new);
        match calls.filter(|calls| calls.get() <= RATE_CALLS_MAX) {
            Some(calls) => Ok(Self { calls, period }),
            None => Err(format!("a rate has 1 to {RATE_CALLS_MAX} calls; {RATE_REMEDY}")),
        }
    }

    /// The time between two calls at this rate.
    pub fn interval(self) -> Duration {
        self.period.duration() / self.calls.get()
    }

    /// The calls of one second, at least one: the burst of a rate without `burst`.
    pub fn default_burst(self) -> NonZeroU32 {
        let seconds = u32::try_from(self.period.duration().as_secs()).unwrap_or(u32::MAX);
        NonZeroU32::new(self.calls.get() / seconds).unwrap_or(NonZeroU32::MIN)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.calls, self.period.word())
    }
}

/// Calls per UTC day: `10000/day`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    calls: u64,
}

impl Quota {
    /// Parses `10000/day`.
    ///
    /// ```
    /// # use haft_config::config::call_limits::Quota;
    /// assert_eq!(Quota::parse("10000/day").unwrap().calls(), 10_000);
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let (calls, period) = parts(text).ok_or_else(|| unreadable(text, "quota", QUOTA_REMEDY))?;
        if !matches!(period, "d" | "day") {
            return Err(unreadable(text, "quota", QUOTA_REMEDY));
        }
        let calls = calls.parse().ok().filter(|calls| (1..=QUOTA_CALLS_MAX).contains(calls));
        let calls = calls
            .ok_or_else(|| format!("a quota has 1 to {QUOTA_CALLS_MAX} calls; {QUOTA_REMEDY}"))?;
        Ok(Self { calls })
    }

    /// The calls of one day.
    pub fn calls(self) -> u64 {
        self.calls
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/day", self.calls)
    }
}

fn parts(text: &str) -> Option<(&str, &str)> {
    let (calls, period) = text.split_once('/')?;
    let calls = calls.trim();
    // `+5` parses as a number, and is a slip.
    let is_number = !calls.is_empty() && calls.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (calls, period.trim()))
}

fn unreadable(text: &str, what: &str, remedy: &str) -> String {
    format!("`{text}` is not a {what}; {remedy}")
}

/// The limits on calls of one subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CallLimits {
    /// The rate.
    pub rate: Option<Rate>,
    /// Calls that may come at once; by default the calls of one second at this rate.
    pub burst: Option<NonZeroU32>,
    /// The calls of one UTC day.
    pub quota: Option<Quota>,
}

impl CallLimits {
    /// Limits from the strings of a key, such as `60/min`, `10` and `10000/day`. A burst without a rate is refused.
    pub fn parse(
        rate: Option<&str>,
        burst: Option<u32>,
        quota: Option<&str>,
    ) -> Result<Self, String> {
        let rate = rate.map(Rate::parse).transpose()?;
        let quota = quota.map(Quota::parse).transpose()?;
        let burst = burst.map(read_burst).transpose()?;
        if burst.is_some() && rate.is_none() {
            return Err(BURST_WITHOUT_RATE.to_owned());
        }
        Ok(Self { rate, burst, quota })
    }

    /// Returns true if nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.rate.is_none() && self.quota.is_none()
    }
}

pub(super) const BURST_WITHOUT_RATE: &str = "`burst` has no `rate` that it belongs to";

fn read_burst(burst: u32) -> Result<NonZeroU32, String> {
    let burst = NonZeroU32::new(burst).filter(|burst| burst.get() <= RATE_CALLS_MAX);
    burst.ok_or_else(|| format!("a burst has 1 to {RATE_CALLS_MAX} calls"))
}

/// The limits of a tool or a server, each with its origin.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LimitSettings {
    /// The rate.
    pub rate: Option<Setting<Rate>>,
    /// Calls that may come at once.
    pub burst: Option<Setting<NonZeroU32>>,
    /// The calls of one UTC day.
    pub quota: Option<Setting<Quota>>,
}

impl LimitSettings {
    /// The limits without their origins.
    pub fn limits(&self) -> CallLimits {
        CallLimits {
            rate: self.rate.as_ref().map(|it| it.value),
            burst: self.burst.as_ref().map(|it| it.value),
            quota: self.quota.as_ref().map(|it| it.value),
        }
    }
}

/// A burst in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst(pub NonZeroU32);

impl FromNode for Burst {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let number = match &node.value {
            NodeValue::Number(text) => text.parse().ok(),
            _ => None,
        };
        let burst = number.and_then(|number| read_burst(number).ok());
        if burst.is_none() {
            let problem = format!("{} is not a burst from 1 to {RATE_CALLS_MAX}", shown(node));
            reader.error(node, problem, "write a number of calls such as 10, without quotes");
        }
        burst.map(Self)
    }
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": RATE_CALLS_MAX })
    }
}

impl FromNode for Rate {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        read_text(node, reader, "rate", RATE_REMEDY, Self::parse)
    }
    fn schema() -> Value {
        json!({ "type": "string", "examples": ["60/min", "5/s", "1000/h"] })
    }
}

impl FromNode for Quota {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        read_text(node, reader, "quota", QUOTA_REMEDY, Self::parse)
    }
    fn schema() -> Value {
        json!({ "type": "string", "examples": ["10000/day"] })
    }
}

fn read_text<T>(
    node: &Node,
    reader: &mut Reader<'_>,
    what: &str,
    remedy: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    let parsed = match &node.value {
        NodeValue::Text(text) => parse(&text.text).ok(),
        _ => None,
    };
    if parsed.is_none() {
        reader.error(node, format!("{} is not a usable {what}", shown(node)), remedy);
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_calls_and_a_period() {
        for (text, shown, interval, burst) in [
            ("60/min", "60/min", 1_000, 1),
            ("5/s", "5/s", 200, 5),
            ("1200 / minute", "1200/min", 50, 20),
            ("10/hour", "10/h", 360_000, 1),
        ] {
            let rate = Rate::parse(text).unwrap();
            assert_eq!(rate.to_string(), shown);
            assert_eq!(rate.interval(), Duration::from_millis(interval), "{text}");
            assert_eq!(rate.default_burst().get(), burst, "{text}");
        }
        for text in ["60", "0/min", "-1/s", "+1/s", "60/day", "x/s", "1.5/s", "9999999/s", "/s", ""]
        {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_quota_is_per_day() {
        assert_eq!(Quota::parse("10000/d").unwrap().to_string(), "10000/day");
        for text in ["10000", "0/day", "5/h", "many/day"] {
            assert!(Quota::parse(text).is_err(), "{text}");
        }
        assert!(CallLimits::parse(None, Some(3), None).is_err(), "a burst needs a rate");
        assert!(CallLimits::parse(Some("1/s"), Some(0), None).is_err());
    }
}
