//! `api`, `policy` and `telemetry`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use super::rules::Known;
use super::{explicit, pick, span};
use crate::config::choices::{AllowedScripts, Definitions};
use crate::config::model::{Origin, Setting};
use crate::config::node::Text;
use crate::config::pattern::WordPattern;
use crate::config::place::{At, Place, Problems};
use crate::config::quantity::SpanOrZero;
use crate::config::raw_service::{RawApi, RawPolicy, RawTelemetry, RawTls};
use crate::config::secret::{Secret, ServerUrl};
use crate::config::service::{ApiConfig, CommandPattern, PolicyConfig, TelemetryConfig, TlsFiles};

/// The default port of `haft serve`.
const PORT: u16 = 7300;
/// Time in which a load balancer notices that a replica ends.
const DRAIN_DELAY: Duration = Duration::from_secs(5);

pub(super) fn api(
    raw: Option<RawApi>,
    base: &Path,
    state_dir: &Path,
    has_shared: bool,
    problems: &mut Problems,
) -> ApiConfig {
    let RawApi {
        listen,
        keys_file,
        tls,
        allowed_hosts,
        allowed_origins,
        drain_delay,
        shutdown_grace,
        ..
    } = raw.unwrap_or_else(|| RawApi::empty(Place::whole("")));
    let hosts = allowed_hosts.filter(|hosts| are(hosts, is_host, HOST, problems));
    let origins = allowed_origins.filter(|origins| are(origins, is_origin, ORIGIN, problems));
    ApiConfig {
        listen: pick(
            listen.map(|at| at.map(|listen| listen.0)),
            SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
        ),
        keys_file: match keys_file {
            Some(at) => explicit(at, |file| base.join(file.text)),
            None => Setting::default(state_dir.join("keys.json")),
        },
        tls: tls.and_then(|tls| tls_files(tls, base, problems)),
        allowed_hosts: pick(hosts, Vec::new()),
        allowed_origins: pick(origins, Vec::new()),
        // Without other replicas, no balancer has a better place for requests.
        drain_delay: pick(
            drain_delay.map(|at| at.map(|SpanOrZero(delay)| delay)),
            if has_shared { DRAIN_DELAY } else { Duration::ZERO },
        ),
        shutdown_grace: pick(shutdown_grace.map(span), Duration::from_secs(10)),
    }
}

fn tls_files(at: At<RawTls>, base: &Path, problems: &mut Problems) -> Option<Setting<TlsFiles>> {
    let place = at.place;
    let RawTls { cert, key, broken, .. } = at.value;
    let file = |file: Option<At<Text>>| file.map(|at| base.join(at.value.text));
    let (Some(cert), Some(key)) = (file(cert), file(key)) else {
        if broken.is_empty() {
            let remedy = "write `tls: {cert: cert.pem, key: key.pem}`";
            problems.error(&place, "`tls` needs both `cert` and `key`", remedy);
        }
        return None;
    };
    Some(Setting { value: TlsFiles { cert, key }, origin: Origin::Explicit(place) })
}

/// The expected form of an entry, and an example.
type Expectation = (&'static str, &'static str);
const HOST: Expectation =
    ("a host's name without scheme, port or path", "write such as haft.example.com");
const COLLECTOR: Expectation = ("a collector", "write such as http://localhost:4318");
const ORIGIN: Expectation =
    ("an origin", "write such as https://console.example.com, without a path");

fn are(
    list: &At<Vec<String>>,
    is_good: fn(&str) -> bool,
    (wanted, remedy): Expectation,
    problems: &mut Problems,
) -> bool {
    let bad: Vec<&String> = list.value.iter().filter(|entry| !is_good(entry)).collect();
    for entry in &bad {
        problems.error(&list.place, format!("`{entry}` is not {wanted}"), remedy);
    }
    bad.is_empty()
}

fn is_host(text: &str) -> bool {
    let is_of_a_name = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '.' || it == '_';
    !text.is_empty() && text.chars().all(is_of_a_name)
}

fn is_origin(text: &str) -> bool {
    let parsed = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    parsed.is_some_and(|url| url.origin().ascii_serialization() == text.to_ascii_lowercase())
}

pub(super) fn policy(
    raw: Option<RawPolicy>,
    known: &Known<'_>,
    problems: &mut Problems,
) -> PolicyConfig {
    let RawPolicy {
        allowed_commands,
        allowed_variables,
        allowed_env,
        allowed_scripts,
        approvals,
        rules,
        definitions,
        ..
    } = raw.unwrap_or_else(|| RawPolicy::empty(Place::whole("")));
    PolicyConfig {
        allowed_commands: pick(
            allowed_commands.map(|at| command_patterns(at, problems)),
            Vec::new(),
        ),
        allowed_variables: pick(allowed_variables, Vec::new()),
        allowed_env: pick(allowed_env.map(|at| env_patterns(at, problems)), Vec::new()),
        allowed_scripts: pick(allowed_scripts, AllowedScripts::Existing),
        approvals: approvals.map(|at| explicit(at, |value| value)),
        rules: super::rules::rules(rules, known, problems),
        definitions: pick(definitions, Definitions::Block),
    }
}

fn command_patterns(
    At { value: texts, place }: At<Vec<String>>,
    problems: &mut Problems,
) -> At<Vec<CommandPattern>> {
    let mut patterns = Vec::new();
    for text in texts {
        let Some(pattern) = CommandPattern::parse(&text) else {
            problems.error(
                &place,
                format!("`{text}` allows any program"),
                "name the program, such as `uvx mcp-server-time==2026.10.19`",
            );
            continue;
        };
        if pattern.has_anything() {
            problems.warn(
                &place,
                format!("`**` in `{text}` allows anything, also another package, version or address"),
                "write the word out, or use `*`, which stands for letters, digits, `.`, `_` and `-`",
            );
        }
        patterns.push(pattern);
    }
    At { value: patterns, place }
}

fn env_patterns(
    At { value: texts, place }: At<Vec<String>>,
    problems: &mut Problems,
) -> At<Vec<WordPattern>> {
    let is_of_a_pattern = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '*';
    let mut patterns = Vec::new();
    for text in texts {
        let pattern = WordPattern::new(&text);
        if !text.chars().all(is_of_a_pattern) || pattern.has_anything() {
            let remedy = "write such as `GITHUB_TOKEN`, or `ACME_*` for all that begin like that";
            problems.error(&place, format!("`{text}` is not the name of a variable"), remedy);
        } else if text.chars().all(|c| c == '*') {
            let problem =
                format!("`{text}` allows any variable, also those that decide what a program runs");
            problems.error(&place, problem, "name the variables, such as `GITHUB_TOKEN`");
        } else {
            patterns.push(pattern);
        }
    }
    At { value: patterns, place }
}

pub(super) fn telemetry(raw: Option<RawTelemetry>, problems: &mut Problems) -> TelemetryConfig {
    let RawTelemetry { otlp_endpoint, otlp_headers, service_name, .. } =
        raw.unwrap_or_else(|| RawTelemetry::empty(Place::whole("")));
    let headers = otlp_headers.map(|headers| headers.value.0).unwrap_or_default();
    TelemetryConfig {
        otlp_endpoint: otlp_endpoint.and_then(|at| http_address(at, COLLECTOR, problems)),
        otlp_headers: headers
            .into_iter()
            .map(|(name, value)| (name.value, Secret::new(value.text)))
            .collect(),
        service_name: pick(service_name, "haft".to_owned()),
    }
}

/// An address of something that speaks HTTP. `wanted` is what, and an example.
pub(super) fn http_address(
    at: At<Text>,
    (wanted, remedy): Expectation,
    problems: &mut Problems,
) -> Option<Setting<ServerUrl>> {
    let parsed = url::Url::parse(&at.value.text).ok();
    let Some(url) = parsed.filter(|url| matches!(url.scheme(), "http" | "https")) else {
        let problem = format!("`{}` is not an address of {wanted}", at.value.shown());
        problems.error(&at.place, problem, remedy);
        return None;
    };
    let value = ServerUrl::written(url, &at.value);
    Some(Setting { value, origin: Origin::Explicit(at.place) })
}
