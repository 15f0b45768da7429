//! The built-in tools, the inbox and the agent.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use super::choices::SearchBackend;
use super::model::{Config, Origin, Setting};
use super::place::Place;
use super::sandbox::SandboxConfig;
use super::secret::{Secret, ServerUrl};

/// The tools that Haft brings itself.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltinConfig {
    /// Runs Python and shell code.
    pub code_execution: CodeExecutionConfig,
    /// Searches the web.
    pub web_search: WebSearchConfig,
    /// Asks a person.
    pub request_human_input: Setting<bool>,
    /// Those that a file mentions. MCP clients, which have such tools of their own, see only these.
    pub configured: Vec<&'static str>,
}

/// `code_execution`.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeExecutionConfig {
    /// True if the tool is available.
    pub enabled: Setting<bool>,
    /// The isolation of the code from the rest of the machine.
    pub sandbox: Setting<SandboxConfig>,
    /// True if sandboxed code may use the network.
    pub network: Setting<bool>,
}

/// `web_search`.
#[derive(Debug, Clone, PartialEq)]
pub struct WebSearchConfig {
    /// True if the tool is available.
    pub enabled: Setting<bool>,
    /// The search service.
    pub backend: Setting<SearchBackend>,
    /// A `SearXNG` instance; there is none unless it is configured.
    pub searxng: Option<SearchService>,
    /// The Brave Search API. Nothing only where its address is wrong, which is an error.
    pub brave: Option<SearchService>,
    /// The Tavily API, likewise.
    pub tavily: Option<SearchService>,
    /// The HTML page of `DuckDuckGo`, likewise.
    pub duckduckgo: Option<SearchService>,
    /// Time limit of one request.
    pub request_timeout: Setting<Duration>,
    /// Time for which results are cached.
    pub cache: Setting<Duration>,
}

/// The address of a search service, and its key.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchService {
    /// Its address.
    pub url: Setting<ServerUrl>,
    /// Its key.
    pub api_key: Option<Setting<Secret>>,
}

/// Questions to people.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxConfig {
    /// Time limit of a question.
    pub timeout: Setting<Duration>,
    /// An address that is notified of every new question.
    pub webhook: Option<Setting<ServerUrl>>,
    /// Headers sent with it.
    pub webhook_headers: Vec<(String, Secret)>,
}

/// The agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    /// The model, such as `openai::gpt-5`. There is none unless it is configured.
    pub model: Option<Setting<String>>,
    /// The address of the model's service.
    pub base_url: Option<Setting<ServerUrl>>,
    /// The variable that holds the key.
    pub api_key_env: Option<Setting<String>>,
    /// The file that holds the key.
    pub api_key_file: Option<Setting<PathBuf>>,
    /// The value of the variable when the configuration was loaded.
    pub api_key: Option<Secret>,
    /// The system prompt.
    pub system: Option<Setting<String>>,
    /// Maximum number of model requests in one turn.
    pub max_steps: Setting<u32>,
    /// With more tools than this, only the ones that fit best are offered.
    pub tools_max: Setting<u32>,
    /// Maximum number of repetitions of the same call in one turn.
    pub repeats_max: Setting<u32>,
    /// Maximum number of tokens in a request to the model.
    pub context_tokens: Setting<u32>,
    /// Maximum number of tokens in one answer of the model.
    pub max_output_tokens: Option<Setting<u32>>,
    /// Maximum time without data from the model's service.
    pub request_timeout: Setting<Duration>,
    /// The time limit for one answer, retries and the pauses between them included.
    pub turn_timeout: Setting<Duration>,
    /// The size limit in bytes for one answer, as it arrives.
    pub answer_bytes_max: Setting<u32>,
    /// Maximum number of retries of a request after a transient failure.
    pub retries: Setting<u32>,
    /// True if images from tools are sent to the model.
    pub images: Setting<bool>,
    /// True if audio from tools is sent to the model; `None` if the provider decides.
    pub audio: Option<Setting<bool>>,
    /// True if tool schemas are sent in the provider's strict mode.
    pub strict_schemas: Setting<bool>,
    /// Maximum number of values and keys in one event of an answer: `limits.message_nodes_max`.
    pub answer_nodes_max: usize,
    /// Number of days a conversation is kept after its last message; 0 keeps it forever.
    pub retain_days: Setting<u32>,
}

impl AgentConfig {
    /// The variable that holds the key: the configured one, otherwise the provider's own.
    pub fn key_variable(&self) -> Option<&str> {
        if let Some(name) = &self.api_key_env {
            return Some(&name.value);
        }
        let provider = self.model.as_ref()?.value.split_once("::")?.0;
        match provider {
            "openai" => Some("OPENAI_API_KEY"),
            "anthropic" => Some("ANTHROPIC_API_KEY"),
            "gemini" => Some("GEMINI_API_KEY"),
            _ => None,
        }
    }
}

impl Config {
    /// Takes another model than the files name, with the key that `environment` has for it. The address and the key of
    /// another provider are not for it.
    pub fn choose_model(&mut self, model: &str, environment: &HashMap<String, String>) {
        let provider = |model: &str| model.split("::").next().map(ToOwned::to_owned);
        let before = self.agent.model.as_ref().map(|model| provider(&model.value));
        if before.is_some_and(|before| before != provider(model)) {
            self.agent.base_url = None;
            self.agent.api_key_env = None;
            self.agent.api_key_file = None;
        }
        self.agent.model = Some(Setting::default(model.to_owned()));
        self.take_keys(environment);
    }

    /// Keys that stand in the environment rather than in a file.
    pub(super) fn take_keys(&mut self, environment: &HashMap<String, String>) {
        let held = |variable: &str| {
            environment.get(variable).map(|key| key.trim()).filter(|key| !key.is_empty())
        };
        let key = self.agent.key_variable().and_then(held).map(Secret::new);
        self.agent.api_key = key;
        let search = &mut self.builtin.web_search;
        let services =
            [(&mut search.brave, "BRAVE_API_KEY"), (&mut search.tavily, "TAVILY_API_KEY")];
        for (service, variable) in services {
            let Some(service) = service.as_mut().filter(|service| service.api_key.is_none()) else {
                continue;
            };
            let origin = || Origin::Explicit(Place::whole(format!("${variable}")));
            service.api_key =
                held(variable).map(|key| Setting { value: Secret::new(key), origin: origin() });
        }
    }
}
