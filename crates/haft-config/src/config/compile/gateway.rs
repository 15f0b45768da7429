//! `gateway` and `profiles`.

use std::time::Duration;

use super::{count, explicit, pick, span};
use crate::config::bytes::ByteCount;
use crate::config::choices::Surface;
use crate::config::gateway::{GatewayConfig, LOCAL, Profile};
use crate::config::model::Setting;
use crate::config::pattern::NamePattern;
use crate::config::place::{At, Place, Problems};
use crate::config::raw_gateway::{RawGateway, RawProfile};
use crate::config::read::Named;
use haft_text::nearest;

/// Default maximum number of sessions of an endpoint.
const SESSIONS_MAX: u32 = 1000;
/// The least text of a result: less would hold little more than the note on how to read on.
const OUTPUT_BYTES_MIN: u64 = 1024;
/// Default idle time of a session.
const SESSION_IDLE: Duration = Duration::from_mins(30);
/// Default time that the first list of tools waits for servers that no run has listed.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn gateway(raw: Option<RawGateway>, problems: &mut Problems) -> GatewayConfig {
    let RawGateway {
        surface,
        output_bytes_max,
        sessions_max,
        session_idle,
        first_list_timeout,
        status_tool,
        ..
    } = raw.unwrap_or_else(|| RawGateway::empty(Place::whole("")));
    GatewayConfig {
        surface: pick(surface, Surface::All),
        output_bytes_max: output_bytes(output_bytes_max, problems),
        sessions_max: pick(sessions_max.map(count), SESSIONS_MAX),
        session_idle: pick(session_idle.map(span), SESSION_IDLE),
        first_list_timeout: pick(first_list_timeout.map(span), FIRST_LIST_TIMEOUT),
        status_tool: pick(status_tool, true),
    }
}

fn output_bytes(raw: Option<At<ByteCount>>, problems: &mut Problems) -> Setting<Option<u64>> {
    let Some(at) = raw else { return Setting::default(None) };
    let ByteCount(bytes) = at.value;
    if (1..OUTPUT_BYTES_MIN).contains(&bytes) {
        problems.error(
            &at.place,
            format!("`gateway.output_bytes_max` is {bytes}, less than {OUTPUT_BYTES_MIN}"),
            "write 1KiB or more, or 0 to send results whole",
        );
    }
    explicit(at, |ByteCount(bytes)| (bytes > 0).then_some(bytes))
}

pub(super) fn profiles(
    raw: Option<At<Named<RawProfile>>>,
    configured: &[&str],
    problems: &mut Problems,
) -> Vec<Profile> {
    let raw = raw.map(|at| at.value.0).unwrap_or_default();
    raw.into_iter().filter_map(|(name, raw)| profile(name, raw, configured, problems)).collect()
}

fn profile(
    name: At<String>,
    raw: RawProfile,
    configured: &[&str],
    problems: &mut Problems,
) -> Option<Profile> {
    let At { value: name, place } = name;
    let is_of_a_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if name.is_empty() || !name.chars().all(is_of_a_name) {
        let remedy = "use the characters A-Z a-z 0-9 _ -, as in `/mcp/read-only`";
        problems.error(&place, format!("`{name}` is not a valid profile name"), remedy);
        return None;
    }
    let RawProfile { servers, tools, exclude_tools, surface, .. } = raw;
    if let Some(servers) = &servers {
        warn_of_strangers(servers, configured, problems);
    }
    let mut selection = |raw: Option<At<Vec<String>>>, key: &str| {
        let raw = raw?;
        if raw.value.is_empty() {
            let problem = format!("`{key}` is empty, so the profile `{name}` shows nothing");
            problems.error(&raw.place, problem, format!("leave `{key}` out to show all"));
        }
        Some(patterns(raw, problems))
    };
    let (servers, tools) = (selection(servers, "servers"), selection(tools, "tools"));
    let exclude_tools = match exclude_tools {
        Some(raw) => patterns(raw, problems),
        None => Setting::default(Vec::new()),
    };
    let surface = pick(surface, Surface::All);
    Some(Profile { name, place, servers, tools, exclude_tools, surface })
}

fn patterns(raw: At<Vec<String>>, problems: &mut Problems) -> Setting<Vec<NamePattern>> {
    read_patterns(raw, NamePattern::parse, problems)
}

/// Reads a list of patterns with `parse`.
pub(super) fn read_patterns(
    raw: At<Vec<String>>,
    parse: impl Fn(&str) -> Option<NamePattern>,
    problems: &mut Problems,
) -> Setting<Vec<NamePattern>> {
    let place = raw.place.clone();
    explicit(raw, |texts| {
        let mut patterns = Vec::with_capacity(texts.len());
        for text in texts {
            match parse(&text) {
                Some(pattern) => patterns.push(pattern),
                None => problems.error(
                    &place,
                    format!("`{text}` is neither a name nor a pattern"),
                    "write a name, with `*` for any characters, such as `read_*`",
                ),
            }
        }
        patterns
    })
}

/// A pattern that matches no server may be meant for one that comes later; mostly it is a slip.
fn warn_of_strangers(servers: &At<Vec<String>>, configured: &[&str], problems: &mut Problems) {
    let names = || configured.iter().copied().chain([LOCAL]);
    for text in &servers.value {
        let is_known =
            NamePattern::parse(text).is_none_or(|pattern| names().any(|name| pattern.fits(name)));
        if !is_known {
            let remedy = match nearest(text, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name a server of `servers`, or `local` for the tools that run here".into(),
            };
            problems.warn(&servers.place, format!("no server is named `{text}`"), remedy);
        }
    }
}
