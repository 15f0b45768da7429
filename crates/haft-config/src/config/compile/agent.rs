//! `builtin`, `inbox` and `agent`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::service::http_address;
use super::{count, explicit, pick, sandbox, span};
use crate::config::agent::{
    AgentConfig, BuiltinConfig, CodeExecutionConfig, InboxConfig, SearchService, WebSearchConfig,
};
use crate::config::choices::{Sandbox, SearchBackend};
use crate::config::model::{Origin, Setting};
use crate::config::node::Text;
use crate::config::place::{At, Place, Problems};
use crate::config::quantity::CountOrZero;
use crate::config::raw_agent::{
    RawAgent, RawBuiltin, RawCodeExecution, RawHumanInput, RawInbox, RawSearchService, RawWebSearch,
};
use crate::config::read::Switch;
use crate::config::sandbox::{SandboxConfig, SandboxNetwork};
use crate::config::secret::{Secret, ServerUrl};
use crate::config::text_file::read_plain_file;

/// Maximum size of the system prompt.
const SYSTEM_BYTES_MAX: u64 = 1 << 20;
const BRAVE: &str = "https://api.search.brave.com/";
const TAVILY: &str = "https://api.tavily.com/";
const DUCKDUCKGO: &str = "https://html.duckduckgo.com/";
const SEARCH: (&str, &str) = ("a search service", "write such as http://localhost:8888");
const WEBHOOK: (&str, &str) = ("a webhook", "write such as https://example.com/questions");
const MODEL: (&str, &str) = ("a model's service", "write such as http://localhost:8080/v1");

/// `is_default` is true if the tools are available without any mention in a file.
pub(super) fn builtin(
    raw: Option<At<RawBuiltin>>,
    is_default: &Setting<bool>,
    sandbox: &Setting<SandboxConfig>,
    base: &Path,
    problems: &mut Problems,
) -> BuiltinConfig {
    let (all, code, raw) = match raw {
        Some(At { value: raw, place }) => {
            let all = pick_or(raw.enabled.clone(), true, place);
            // A section about search does not enable code execution.
            let code = pick(raw.enabled.clone(), true);
            (all, code, raw)
        }
        None => (is_default.clone(), is_default.clone(), RawBuiltin::empty(Place::whole(""))),
    };
    let RawBuiltin { enabled, code_execution, web_search, request_human_input, .. } = raw;
    let (code_execution, web_search, request_human_input) =
        (code_execution.map(switch), web_search.map(switch), request_human_input.map(switch));
    let are_all = enabled.is_some_and(|enabled| enabled.value);
    let configured = [
        ("code_execution", code_execution.is_some()),
        ("web_search", web_search.is_some()),
        ("request_human_input", request_human_input.is_some()),
    ];
    let is_configured =
        |(name, has_section): (&'static str, bool)| (has_section || are_all).then_some(name);
    BuiltinConfig {
        configured: configured.into_iter().filter_map(is_configured).collect(),
        code_execution: code_tool(code_execution, code, (sandbox, base), problems),
        web_search: search(web_search, &all, problems),
        request_human_input: match request_human_input {
            Some(At { value: RawHumanInput { enabled, .. }, place }) => {
                pick_or(enabled, true, place)
            }
            None => all,
        },
    }
}

fn switch<T>(at: At<Switch<T>>) -> At<T> {
    at.map(|Switch(section)| section)
}

/// The written value, or the value that writing the section at `place` implies.
fn pick_or<T>(raw: Option<At<T>>, default: T, place: Place) -> Setting<T> {
    match raw {
        Some(at) => explicit(at, |value| value),
        None => Setting { value: default, origin: Origin::Explicit(place) },
    }
}

fn code_tool(
    raw: Option<At<RawCodeExecution>>,
    unsaid: Setting<bool>,
    (defaults, base): (&Setting<SandboxConfig>, &Path),
    problems: &mut Problems,
) -> CodeExecutionConfig {
    let (enabled, raw) = match raw {
        Some(At { value: raw, place }) => (pick_or(raw.enabled.clone(), true, place), raw),
        None => (unsaid, RawCodeExecution::empty(Place::whole(""))),
    };
    let RawCodeExecution { sandbox: raw, network, .. } = raw;
    let reads_all = raw.as_ref().is_some_and(|at| at.value.0.read.is_none());
    let own_network = raw.as_ref().is_some_and(|at| at.value.0.network.is_some());
    let mut sandbox = sandbox::compile_or(raw, defaults, base, problems);
    if sandbox.value.kind == Sandbox::None {
        if let Some(At { place, .. }) = &network {
            problems.warn(
                place,
                "`network` has no effect without a sandbox: code may use the network as Haft itself does",
                "add `sandbox: bubblewrap`, or remove `network`",
            );
        }
        return CodeExecutionConfig { enabled, sandbox, network: pick(network, false) };
    }
    if reads_all {
        sandbox.value.read = vec![PathBuf::from("/")];
    }
    let network = match network {
        Some(At { place, .. }) if own_network => {
            problems.error(
                &place,
                "`network` is given twice: here and in `sandbox`",
                "keep the one in `sandbox`",
            );
            Setting::default(false)
        }
        Some(network) => {
            let is_allowed = network.value;
            sandbox.value.network =
                if is_allowed { SandboxNetwork::All } else { SandboxNetwork::None };
            explicit(network, |value| value)
        }
        None => Setting {
            value: sandbox.value.network != SandboxNetwork::None,
            origin: if own_network { sandbox.origin.clone() } else { Origin::Default },
        },
    };
    CodeExecutionConfig { enabled, sandbox, network }
}

fn search(
    raw: Option<At<RawWebSearch>>,
    all: &Setting<bool>,
    problems: &mut Problems,
) -> WebSearchConfig {
    let (enabled, raw) = match raw {
        Some(At { value: raw, place }) => (pick_or(raw.enabled.clone(), true, place), raw),
        None => (all.clone(), RawWebSearch::empty(Place::whole(""))),
    };
    let RawWebSearch {
        backend, searxng, brave, tavily, duckduckgo, request_timeout, cache, ..
    } = raw;
    let backend = pick(backend, SearchBackend::Auto);
    let searxng = searxng.and_then(|at| {
        let place = at.place.clone();
        let found = service(at.value, None, problems);
        if found.is_none() {
            problems.error(
                &place,
                "`searxng` needs the `url` of an instance",
                "write such as `searxng: {url: 'http://localhost:8888'}`",
            );
        }
        found
    });
    if backend.value == SearchBackend::Searxng
        && searxng.is_none()
        && let Origin::Explicit(place) = &backend.origin
    {
        problems.error(
            place,
            "`backend: searxng` needs the address of an instance",
            "add `searxng: {url: 'http://localhost:8888'}`",
        );
    }
    let empty = || RawSearchService::empty(Place::whole(""));
    let mut known = |raw: Option<At<RawSearchService>>, url: &str| {
        let raw = raw.map_or_else(empty, |at| at.value);
        service(raw, url::Url::parse(url).ok(), problems)
    };
    let (brave, tavily, duckduckgo) =
        (known(brave, BRAVE), known(tavily, TAVILY), known(duckduckgo, DUCKDUCKGO));
    WebSearchConfig {
        enabled,
        backend,
        searxng,
        brave,
        tavily,
        duckduckgo,
        request_timeout: pick(request_timeout.map(span), Duration::from_secs(10)),
        cache: pick(cache.map(span), Duration::from_mins(10)),
    }
}

fn service(
    raw: RawSearchService,
    default: Option<url::Url>,
    problems: &mut Problems,
) -> Option<SearchService> {
    let RawSearchService { url, api_key, .. } = raw;
    let url = match (url, default) {
        (Some(at), _) => http_address(at, SEARCH, problems)?,
        (None, Some(url)) => Setting::default(ServerUrl::new(url)),
        (None, None) => return None,
    };
    let api_key = api_key.map(|key| explicit(key, |key: Text| Secret::new(key.text)));
    Some(SearchService { url, api_key })
}

pub(super) fn inbox(raw: Option<RawInbox>, problems: &mut Problems) -> InboxConfig {
    let RawInbox { timeout, webhook, webhook_headers, .. } =
        raw.unwrap_or_else(|| RawInbox::empty(Place::whole("")));
    let headers = webhook_headers.map(|headers| headers.value.0).unwrap_or_default();
    InboxConfig {
        timeout: pick(timeout.map(span), Duration::from_hours(1)),
        webhook: webhook.and_then(|at| http_address(at, WEBHOOK, problems)),
        webhook_headers: headers
            .into_iter()
            .map(|(name, value)| (name.value, Secret::new(value.text)))
            .collect(),
    }
}

pub(super) fn agent(
    raw: Option<RawAgent>,
    answer_nodes_max: usize,
    base: &Path,
    problems: &mut Problems,
) -> AgentConfig {
    let raw = raw.unwrap_or_else(|| RawAgent::empty(Place::whole("")));
    warn_of_idle(&raw, problems);
    AgentConfig {
        model: raw.model.and_then(|at| model(at, problems)),
        base_url: raw.base_url.and_then(|at| http_address(at, MODEL, problems)),
        api_key_env: raw.api_key_env.map(|at| explicit(at, |name| name)),
        api_key_file: raw.api_key_file.map(|at| explicit(at, |file: Text| base.join(file.text))),
        api_key: None,
        system: system(raw.system, raw.system_file, base, problems),
        max_steps: pick(raw.max_steps.map(count), 20),
        tools_max: pick(raw.tools_max.map(count), 40),
        repeats_max: pick(raw.repeats_max.map(count), 3),
        context_tokens: pick(raw.context_tokens.map(count), 100_000),
        max_output_tokens: raw.max_output_tokens.map(|at| explicit(at, |count| count.0)),
        request_timeout: pick(raw.request_timeout.map(span), Duration::from_mins(2)),
        turn_timeout: pick(raw.turn_timeout.map(span), Duration::from_mins(10)),
        answer_bytes_max: pick(raw.answer_bytes_max.map(count), 64 << 20),
        retries: pick(raw.retries.map(|at| at.map(|CountOrZero(count)| count)), 3),
        images: pick(raw.images, true),
        audio: raw.audio.map(|at| explicit(at, |value| value)),
        strict_schemas: pick(raw.strict_schemas, false),
        answer_nodes_max,
        retain_days: pick(raw.retain_days.map(|at| at.map(|CountOrZero(days)| days)), 90),
    }
}

/// Settings that the model's provider has no use for.
fn warn_of_idle(raw: &RawAgent, problems: &mut Problems) {
    let provider = raw.model.as_ref().and_then(|model| model.value.text.split_once("::"));
    let Some((provider, _)) = provider else { return };
    let is_deaf = matches!(provider, "anthropic" | "ollama");
    for (setting, name, is_idle, why) in [
        (&raw.strict_schemas, "strict_schemas", provider != "openai", "it has no strict mode here"),
        (&raw.audio, "audio", is_deaf, "it takes no audio"),
    ] {
        if let Some(at) = setting.as_ref().filter(|at| at.value && is_idle) {
            let problem = format!("`{name}` does nothing with a model of `{provider}`: {why}");
            problems.warn(&at.place, problem, format!("remove `{name}`"));
        }
    }
}

/// The system prompt: inline, or the current content of a file.
fn system(
    text: Option<At<String>>,
    file: Option<At<Text>>,
    base: &Path,
    problems: &mut Problems,
) -> Option<Setting<String>> {
    let Some(file) = file else { return text.map(|at| explicit(at, |text| text)) };
    if text.is_some() {
        let problem = "`system` and `system_file` are both given";
        problems.error(&file.place, problem, "keep one of them");
        return None;
    }
    let path = base.join(&file.value.text);
    match read_plain_file(&path, SYSTEM_BYTES_MAX) {
        Ok(text) => Some(explicit(file, |_| text)),
        Err(error) => {
            let problem = format!("`{}` cannot be read: {error}", file.value.shown());
            problems.error(&file.place, problem, "name a text file of at most 1 MiB");
            None
        }
    }
}

fn model(at: At<Text>, problems: &mut Problems) -> Option<Setting<String>> {
    if at.value.text.trim().is_empty() {
        problems.error(&at.place, "`model` names no model", "write such as `openai::gpt-5`");
        return None;
    }
    Some(explicit(at, |text| text.text))
}
