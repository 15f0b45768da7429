//! One key as the file has it.

use std::time::Duration;

use haft::config::NamePattern;
use haft::config::call_limits::CallLimits;
use haft::config::log_quota::LogQuota;
use haft::{AccessLists, CallerAccess};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::KeyError;
use super::key::{Key, KeyDigest, Scope};

/// Longest name of a key.
pub(super) const NAME_CHARS_MAX: usize = 64;
/// Most patterns of one list of a key.
const PATTERNS_MAX: usize = 100;

/// One key, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry {
    /// Its name.
    pub name: String,
    /// Its permissions.
    pub scope: Scope,
    /// The profile it is bound to: it may use the gateway's endpoint of that one, and nothing else.
    pub profile: Option<String>,
    /// Its hash.
    pub digest: KeyDigest,
    /// When it was made.
    pub created: Timestamp,
    /// Distinguishes it from every other key, also from an earlier or later one of its name. A rotation keeps it.
    pub id: String,
    /// From then on it is refused.
    pub expires: Option<Timestamp>,
    /// The limits of its calls.
    pub limits: CallLimits,
    /// The tools and servers that it sees.
    pub lists: AccessLists,
    /// The bytes of its entries in the execution log.
    pub log_quota: Option<LogQuota>,
    /// The secret before the last rotation, while both work.
    pub previous: Option<PreviousSecret>,
}

/// A secret that a rotation replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviousSecret {
    /// Its hash.
    pub digest: KeyDigest,
    /// From then on it is refused.
    pub until: Timestamp,
}

/// A key to create.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Its name.
    pub name: String,
    /// Its permissions.
    pub scope: Scope,
    /// The profile that a call key is bound to.
    pub profile: Option<String>,
    /// The time after which it is refused.
    pub expires: Option<Duration>,
    /// The limits of its calls.
    pub limits: CallLimits,
    /// The tools and servers that it sees.
    pub lists: AccessLists,
    /// The bytes of its entries in the execution log.
    pub log_quota: Option<LogQuota>,
}

impl NewKey {
    /// A key without limits.
    pub fn new(name: &str, scope: Scope) -> Self {
        Self {
            name: name.to_owned(),
            scope,
            profile: None,
            expires: None,
            limits: CallLimits::default(),
            lists: AccessLists::default(),
            log_quota: None,
        }
    }

    /// Makes the key with a new secret, if the parts fit together.
    pub(super) fn into_key(self) -> Result<(Key, KeyEntry), KeyError> {
        let Self { name, scope, profile, expires, limits, lists, log_quota } = self;
        if !is_name(&name) {
            return Err(KeyError::Name { name });
        }
        let is_limited = !limits.is_empty() || log_quota.is_some();
        check_parts(scope, profile.as_deref(), is_limited, &lists)
            .map_err(|problem| KeyError::Parts { problem })?;
        let key = Key::random(scope).map_err(KeyError::Random)?;
        let digest = key.digest();
        let entry = KeyEntry {
            name,
            scope,
            profile,
            digest,
            // Whole seconds are precise enough for the creation time of a key.
            created: after(Duration::ZERO),
            id: digest.short(),
            expires: expires.map(after),
            limits,
            lists,
            log_quota,
            previous: None,
        };
        Ok((key, entry))
    }
}

impl KeyEntry {
    /// The key for programs, without its secret. Limits that it does not have are left out.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = json!({
            "name": self.name, "scope": self.scope, "profile": self.profile,
            "created": self.created.to_string(),
        });
        let CallLimits { rate, burst, quota } = self.limits;
        let more = [
            ("expires", self.expires.map(|time| json!(time.to_string()))),
            ("rate", rate.map(|rate| json!(rate.to_string()))),
            ("burst", burst.map(|burst| json!(burst))),
            ("quota", quota.map(|quota| json!(quota.to_string()))),
            ("log_quota", self.log_quota.map(|quota| json!(quota.to_string()))),
            ("tools", texts(self.lists.tools.as_ref()).map(|it| json!(it))),
            ("servers", texts(self.lists.servers.as_ref()).map(|it| json!(it))),
            ("previous_until", self.previous.map(|it| json!(it.until.to_string()))),
        ];
        for (key, value) in more.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            shown[key] = value;
        }
        shown
    }

    /// The key with a new secret. The current one works for `overlap` more.
    pub(super) fn rotated(
        &self,
        overlap: Duration,
        expires: Option<Duration>,
    ) -> Result<(Key, Self), KeyError> {
        let key = Key::random(self.scope).map_err(KeyError::Random)?;
        let previous = PreviousSecret { digest: self.digest, until: after(overlap) };
        let rotated = Self {
            previous: (!overlap.is_zero()).then_some(previous),
            digest: key.digest(),
            expires: expires.map(after).or(self.expires),
            ..self.clone()
        };
        Ok((key, rotated))
    }

    /// The part of the key that the library enforces.
    pub(super) fn access(&self) -> CallerAccess {
        let Self { limits, log_quota, ref lists, .. } = *self;
        CallerAccess { limits, lists: lists.clone(), log_quota }
    }

    /// Returns true if the other entry permits the same with its secrets. Limits and expiry may differ.
    pub(super) fn permits_same(&self, other: &Self) -> bool {
        (&self.id, &self.name, self.scope, &self.profile, &self.lists)
            == (&other.id, &other.name, other.scope, &other.profile, &other.lists)
    }
}

/// The patterns of a list, such as `read_*`. None for an empty list.
pub(crate) fn patterns(what: &str, texts: &[String]) -> Result<Option<Vec<NamePattern>>, String> {
    if texts.len() > PATTERNS_MAX {
        return Err(format!("`{what}` has more than {PATTERNS_MAX} patterns"));
    }
    let pattern = |text: &String| {
        NamePattern::parse(text).ok_or_else(|| format!("`{text}` of `{what}` is not a pattern"))
    };
    let patterns: Result<Vec<NamePattern>, String> = texts.iter().map(pattern).collect();
    patterns.map(|patterns| (!patterns.is_empty()).then_some(patterns))
}

/// A list of patterns as strings.
pub(crate) fn texts(patterns: Option<&Vec<NamePattern>>) -> Option<Vec<String>> {
    patterns.map(|patterns| patterns.iter().map(ToString::to_string).collect())
}

/// A time from now on, in whole seconds.
pub(super) fn after(duration: Duration) -> Timestamp {
    let seconds = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    let time = Timestamp::now().checked_add(seconds).unwrap_or(Timestamp::MAX);
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

pub(super) fn is_name(name: &str) -> bool {
    name.len() <= NAME_CHARS_MAX
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'-'))
}

fn check_parts(
    scope: Scope,
    profile: Option<&str>,
    is_limited: bool,
    lists: &AccessLists,
) -> Result<(), String> {
    match scope {
        Scope::Admin if profile.is_some() => {
            Err("an admin key cannot be bound to a profile".into())
        }
        Scope::Admin if !lists.is_whole() => {
            Err("an admin key may do everything and has no list of tools or servers".into())
        }
        Scope::Metrics if profile.is_some() || !lists.is_whole() || is_limited => {
            Err("a metrics key calls nothing and has no profile, list, rate or quota".into())
        }
        Scope::Approve if profile.is_some() => {
            Err("an approve key cannot be bound to a profile".into())
        }
        Scope::Admin | Scope::Approve | Scope::Call | Scope::Metrics => Ok(()),
    }
}

/// A key in the file. Unknown fields are refused: they may restrict a key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawKey {
    pub(super) name: String,
    scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    sha256: String,
    created: String,
    /// Missing: the first digits of `sha256`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quota: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_quota: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    servers: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<RawPrevious>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPrevious {
    sha256: String,
    until: String,
}

impl RawKey {
    pub(super) fn of(key: &KeyEntry) -> Self {
        let CallLimits { rate, burst, quota } = key.limits;
        Self {
            name: key.name.clone(),
            scope: key.scope,
            profile: key.profile.clone(),
            sha256: key.digest.hex(),
            created: key.created.to_string(),
            id: (key.id != key.digest.short()).then(|| key.id.clone()),
            expires: key.expires.map(|time| time.to_string()),
            rate: rate.map(|rate| rate.to_string()),
            burst: burst.map(Into::into),
            quota: quota.map(|quota| quota.to_string()),
            log_quota: key.log_quota.map(|quota| quota.to_string()),
            tools: texts(key.lists.tools.as_ref()),
            servers: texts(key.lists.servers.as_ref()),
            previous: key.previous.map(|previous| RawPrevious {
                sha256: previous.digest.hex(),
                until: previous.until.to_string(),
            }),
        }
    }

    pub(super) fn read(self) -> Result<KeyEntry, String> {
        let name = self.name;
        if !is_name(&name) {
            return Err(format!("`{name}` is not a valid key name"));
        }
        let digest = read_digest("sha256", &name, &self.sha256)?;
        let time = |what: &str, text: &str| {
            let parsed: Result<Timestamp, _> = text.parse();
            parsed.map_err(|_| format!("`{what}` of `{name}` is not a time"))
        };
        let created = time("created", &self.created)?;
        let expires = self.expires.map(|text| time("expires", &text)).transpose()?;
        let id = self.id.unwrap_or_else(|| digest.short());
        if !is_name(&id) {
            return Err(format!("`id` of `{name}` is not valid"));
        }
        let of_key = |problem: String| format!("`{name}`: {problem}");
        let limits = CallLimits::parse(self.rate.as_deref(), self.burst, self.quota.as_deref());
        let limits = limits.map_err(of_key)?;
        let log_quota = self.log_quota.as_deref().map(LogQuota::parse).transpose();
        let log_quota = log_quota.map_err(of_key)?;
        // An empty list in the file permits nothing; left out, it permits everything.
        let list = |what: &str, texts: Option<Vec<String>>| match texts {
            Some(texts) => patterns(what, &texts).map(|it| Some(it.unwrap_or_default())),
            None => Ok(None),
        };
        let tools = list("tools", self.tools).map_err(of_key)?;
        let lists = AccessLists { tools, servers: list("servers", self.servers).map_err(of_key)? };
        let is_limited = !limits.is_empty() || log_quota.is_some();
        check_parts(self.scope, self.profile.as_deref(), is_limited, &lists).map_err(of_key)?;
        let previous = match self.previous {
            None => None,
            Some(RawPrevious { sha256, until }) => Some(PreviousSecret {
                digest: read_digest("previous.sha256", &name, &sha256)?,
                until: time("previous.until", &until)?,
            }),
        };
        let (scope, profile) = (self.scope, self.profile);
        Ok(KeyEntry {
            name,
            scope,
            profile,
            digest,
            created,
            id,
            expires,
            limits,
            lists,
            log_quota,
            previous,
        })
    }
}

fn read_digest(what: &str, name: &str, hex: &str) -> Result<KeyDigest, String> {
    let digest = KeyDigest::from_hex(hex);
    digest.ok_or_else(|| format!("`{what}` of `{name}` is not 64 hexadecimal digits"))
}
