//! One MCP server: what it needs must be there, what contradicts itself is refused.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use super::gateway::read_patterns;
use super::merge::ServerSource;
use super::{call_limits, explicit, pick, pick_or, sandbox, span, tool};
use crate::config::choices::{
    ConnectFailure, ListChanged, Mode, Protocol, Sampling, Start, ToolPrefix,
};
use crate::config::gateway::RESERVED;
use crate::config::model::{
    Endpoint, Origin, Reconnect, ServerConfig, ServerToolFilter, Setting, ToolSettings,
};
use crate::config::pattern::NamePattern;
use crate::config::place::{At, Place, Problems};
use crate::config::quantity::{CountOrZero, Factor};
use crate::config::raw::{RawReconnect, RawServer};
use crate::config::raw_sandbox::SandboxEntry;
use crate::config::sandbox::SandboxConfig;
use crate::config::secret::Opaque;
use haft_text::lookalike::odd_characters;

mod endpoint;
mod oauth;

pub(super) fn compile(
    source: ServerSource,
    sandbox: &Setting<SandboxConfig>,
    problems: &mut Problems,
) -> Option<ServerConfig> {
    let name = source.name.value.clone();
    let place = source.name.place.clone();
    // Whatever is wrong with the name: all problems of an entry are reported at once.
    if name.is_empty() || name.chars().any(char::is_control) {
        problems.error(&place, "a server needs a name", "name it, such as `customers`");
    } else if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        problems.error(
            &place,
            format!("a server may not be named `{name}`: that stands for the tools that run here"),
            format!("rename it in `{}`, such as `{name}-server`", place.file),
        );
    } else if let Some(odd) = odd_characters(&name) {
        problems.warn(
            &place,
            format!("the name of server `{name}` may mislead: it has {odd}"),
            "use plain letters, digits, `-` and `_`",
        );
    }
    let endpoint = endpoint::compile(&source, problems);
    let written = written(&source.raw);
    let ServerSource { mut raw, dialect, folder, .. } = source;
    let is_stdio = matches!(endpoint, None | Some(Endpoint::Stdio(_)));
    let sandbox = server_sandbox(raw.sandbox.take(), is_stdio, sandbox, &folder, problems);
    let on_connect_failure = connect_failure(&raw, dialect, problems);
    let filter = filter(&raw, &name, problems);
    let default_tool_config = default_tools(raw.default_tool_config, problems);
    let mode = pick(raw.mode, Mode::Dynamic);
    let start =
        pick_or(raw.start, || Setting { value: dialect.start(), origin: Origin::Format(dialect) });
    if (mode.value, start.value) == (Mode::Strict, Start::Lazy) {
        problems.warn(
            &place,
            format!("server `{name}` is strict but starts lazily: its tools are only checked at first use"),
            "set `start: eager` to have them checked at start",
        );
    }
    if let Some(config) = raw.config.as_ref().filter(|config| !config.value.is_object()) {
        problems.error(&config.place, "`config` is not a map", "write `key: value` lines");
    }
    let request_timeout = pick_or(raw.request_timeout.map(span), || Setting {
        value: Duration::from_secs(dialect.request_timeout_secs()),
        origin: Origin::Format(dialect),
    });
    Some(ServerConfig {
        name,
        place,
        dialect,
        written,
        description: raw.description.map(|at| at.value),
        endpoint: endpoint?,
        mode,
        default_tool_config,
        on_connect_failure,
        start,
        reconnect: reconnect(raw.reconnect.map(|at| at.value), problems),
        connect_timeout: pick(raw.connect_timeout.map(span), Duration::from_secs(30)),
        request_timeout,
        sse_read_timeout: pick(raw.sse_read_timeout.map(span), Duration::from_mins(5)),
        terminate_on_close: pick(raw.terminate_on_close, true),
        load_tools: pick(raw.load_tools, true),
        load_prompts: pick(raw.load_prompts, true),
        prompts: pick(raw.prompts, Vec::new()),
        list_changed: pick(raw.list_changed, ListChanged::Refresh),
        sampling: pick(raw.sampling, Sampling::Deny),
        filter,
        tool_prefix: pick(raw.tool_prefix, ToolPrefix::None),
        protocol: pick(raw.protocol, Protocol::Auto),
        sandbox,
        limits: call_limits::compile(raw.rate, raw.burst, raw.quota, problems),
        config: raw.config.map(|at| Opaque::new(at.value)),
        labels: raw.labels.map(|labels| labels.value),
        disabled: pick(raw.disabled, false),
    })
}

/// The sandbox of a server. One of a remote server would protect nothing, so it is refused.
fn server_sandbox(
    raw: Option<At<SandboxEntry>>,
    is_stdio: bool,
    defaults: &Setting<SandboxConfig>,
    folder: &Path,
    problems: &mut Problems,
) -> Setting<SandboxConfig> {
    if is_stdio {
        return sandbox::compile_or(raw, defaults, folder, problems);
    }
    if let Some(At { place, .. }) = raw {
        problems.error(
            &place,
            "a remote server has no process here, so it cannot have a `sandbox`",
            "delete `sandbox`",
        );
    }
    Setting::default(SandboxConfig::none())
}

/// The places of the parts of the endpoint.
fn written(raw: &RawServer) -> HashMap<String, Place> {
    let whole = [
        ("transport", raw.transport.as_ref().map(|at| &at.place)),
        ("command", raw.command.as_ref().map(|at| &at.place)),
        ("args", raw.args.as_ref().map(|at| &at.place)),
        ("cwd", raw.cwd.as_ref().map(|at| &at.place)),
        ("env_file", raw.env_file.as_ref().map(|at| &at.place)),
        ("url", raw.url.as_ref().map(|at| &at.place)),
        ("config", raw.config.as_ref().map(|at| &at.place)),
    ];
    let whole = whole.into_iter().filter_map(|(key, place)| Some((key.to_owned(), place?.clone())));
    let oauth = raw.oauth.iter().map(|at| ("oauth".to_owned(), at.place.clone()));
    let env = raw.env.iter().flat_map(|env| &env.value.0).map(|(name, _)| ("env", name));
    let headers =
        raw.headers.iter().flat_map(|headers| &headers.value.0).map(|(name, _)| ("headers", name));
    let named = env
        .chain(headers)
        .map(|(section, name)| (format!("{section}.{}", name.value), name.place.clone()));
    whole.chain(oauth).chain(named).collect()
}

fn connect_failure(
    raw: &RawServer,
    dialect: crate::config::Dialect,
    problems: &mut Problems,
) -> Setting<ConnectFailure> {
    let required = raw.required.as_ref().filter(|required| required.value);
    match (required, raw.on_connect_failure.clone()) {
        (Some(required), Some(At { value: ConnectFailure::Skip, .. })) => {
            problems.error(
                &required.place,
                "`required: true` contradicts `on_connect_failure: skip`",
                "delete one of the two",
            );
            Setting::default(ConnectFailure::Exit)
        }
        (Some(required), _) => Setting {
            value: ConnectFailure::Exit,
            origin: Origin::Explicit(required.place.clone()),
        },
        (None, Some(choice)) => explicit(choice, |value| value),
        (None, None) => {
            Setting { value: dialect.connect_failure(), origin: Origin::Format(dialect) }
        }
    }
}

fn filter(raw: &RawServer, server: &str, problems: &mut Problems) -> Setting<ServerToolFilter> {
    let listed = |names: &Option<At<Vec<String>>>| names.clone().filter(|at| !at.value.is_empty());
    match (listed(&raw.tool_allowlist), listed(&raw.tool_denylist)) {
        (Some(_), Some(deny)) => {
            problems.error(
                &deny.place,
                "`tool_allowlist` and `tool_denylist` are both given",
                "keep one: the first names what is allowed, the second what is not",
            );
            Setting::default(ServerToolFilter::All)
        }
        (Some(allow), None) => patterns_of(server, allow, problems, ServerToolFilter::Allow),
        (None, Some(deny)) => patterns_of(server, deny, problems, ServerToolFilter::Deny),
        (None, None) => Setting::default(ServerToolFilter::All),
    }
}

/// Reads a list of patterns. Warns about one that seems to name another server: it matches nothing here.
fn patterns_of(
    server: &str,
    raw: At<Vec<String>>,
    problems: &mut Problems,
    list: impl FnOnce(Vec<NamePattern>) -> ServerToolFilter,
) -> Setting<ServerToolFilter> {
    let place = raw.place.clone();
    let patterns = read_patterns(raw, NamePattern::of_tools, problems);
    for pattern in &patterns.value {
        let text = pattern.to_string();
        let other = text.split_once('/').map(|(before, _)| before);
        if other.is_some_and(|other| NamePattern::parse(other).is_some_and(|it| !it.fits(server))) {
            problems.warn(
                &place,
                format!("`{text}` is not about the server `{server}`"),
                format!("write the tool's name alone, or `{server}/...`"),
            );
        }
    }
    Setting { value: list(patterns.value), origin: patterns.origin }
}

fn default_tools(
    raw: Option<At<crate::config::raw::RawToolDefault>>,
    problems: &mut Problems,
) -> ToolSettings {
    let Some(At { value: raw, .. }) = raw else {
        return ToolSettings::default();
    };
    if let Some(name) = raw.name {
        problems.warn(
            &name.place,
            "a default has no name; it is ignored",
            "delete `name`, or move the entry to `tools`",
        );
    }
    let limits = call_limits::compile(raw.rate, raw.burst, raw.quota, problems);
    let (parallel, approval) = (raw.parallel_capable, raw.approval);
    ToolSettings {
        limits,
        ..tool::settings(raw.max_instances, raw.timeout, parallel, approval, raw.on_limit)
    }
}

fn reconnect(raw: Option<RawReconnect>, problems: &mut Problems) -> Reconnect {
    let raw = raw.unwrap_or_else(|| RawReconnect::empty(Place::whole("")));
    let place = raw.place.clone();
    let reconnect = Reconnect {
        attempts: pick(raw.attempts.map(|at| at.map(|CountOrZero(n)| n)), 3),
        base: pick(raw.base.map(span), Duration::from_millis(500)),
        factor: pick(raw.factor.map(|at| at.map(|Factor(factor)| factor)), 2.0),
        max: pick(raw.max.map(span), Duration::from_secs(30)),
    };
    if reconnect.base.value > reconnect.max.value {
        problems.error(
            &place,
            "the first pause (`base`) is longer than the longest (`max`)",
            "raise `max` or lower `base`",
        );
    }
    reconnect
}
