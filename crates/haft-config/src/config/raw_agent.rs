//! The native keys of the built-in tools, the inbox and the agent.

use super::choices::SearchBackend;
use super::node::Text;
use super::quantity::{Count, CountOrZero, Span};
use super::raw_sandbox::SandboxEntry;
use super::read::{Named, Switch, record};

record! {
    /// `builtin`.
    pub struct RawBuiltin("`builtin`", Reject) {
        /// `true` enables the built-in tools; each can be disabled separately too.
        enabled("enabled"): bool,
        /// Runs Python and shell code. `true` and `false` stand for `{enabled: ...}`.
        code_execution("code_execution"): Switch<RawCodeExecution>,
        /// Searches the web. `true` and `false` stand for `{enabled: ...}`.
        web_search("web_search"): Switch<RawWebSearch>,
        /// Asks a person. `true` and `false` stand for `{enabled: ...}`.
        request_human_input("request_human_input"): Switch<RawHumanInput>,
    }
}

record! {
    /// `builtin.code_execution`.
    pub struct RawCodeExecution("`code_execution`", Reject) {
        /// `true` (the default) enables the tool.
        enabled("enabled"): bool,
        /// The isolation of the code from the rest of the machine: `none`, `bubblewrap`, `landlock`, or a record;
        /// `defaults.sandbox` by default. Without a working sandbox the code does not run.
        sandbox("sandbox"): SandboxEntry,
        /// `true` lets sandboxed code use the network; not by default.
        network("network"): bool,
    }
}

record! {
    /// `builtin.web_search`.
    pub struct RawWebSearch("`web_search`", Reject) {
        /// `true` (the default) enables the tool.
        enabled("enabled"): bool,
        /// The search service: `auto` (the default) uses the first of `SearXNG`, Brave and Tavily
        /// that is configured, otherwise `DuckDuckGo`.
        backend("backend"): SearchBackend,
        /// A `SearXNG` instance.
        searxng("searxng"): RawSearchService,
        /// The Brave Search API; its key is `BRAVE_API_KEY` of the environment by default.
        brave("brave"): RawSearchService,
        /// The Tavily API; its key is `TAVILY_API_KEY` of the environment by default.
        tavily("tavily"): RawSearchService,
        /// The HTML page of `DuckDuckGo`, which needs no key.
        duckduckgo("duckduckgo"): RawSearchService,
        /// Time limit of one request to a search service; 10 s by default.
        request_timeout("request_timeout"): Span,
        /// Time for which results are cached; 10 minutes by default.
        cache("cache"): Span,
    }
}

record! {
    /// A search service of `builtin.web_search`.
    pub struct RawSearchService("a search service", Reject) {
        /// Its address.
        url("url"): Text,
        /// Its key; write `${VAR}`.
        api_key("api_key"): Text,
    }
}

record! {
    /// `builtin.request_human_input`.
    pub struct RawHumanInput("`request_human_input`", Reject) {
        /// `true` (the default) enables the tool.
        enabled("enabled"): bool,
    }
}

record! {
    /// `inbox`.
    pub struct RawInbox("`inbox`", Reject) {
        /// Time limit of a question to a person; 1 hour by default.
        timeout("timeout"): Span,
        /// An address that is notified of every new question by POST; none by default.
        webhook("webhook"): Text,
        /// Headers sent with it.
        webhook_headers("webhook_headers"): Named<Text>,
    }
}

record! {
    /// `agent`.
    pub struct RawAgent("`agent`", Reject) {
        /// The model: `openai::gpt-5`, `anthropic::claude-sonnet-4-5`, `gemini::gemini-2.5-pro`,
        /// `ollama::qwen3`. Provider `openai` also means any service that speaks its format at `base_url`.
        model("model"): Text,
        /// The address of the model's service, if not the provider's own.
        base_url("base_url"): Text,
        /// The variable that holds the service's key; by default the provider's own, such as `OPENAI_API_KEY`.
        api_key_env("api_key_env"): String,
        /// A file that holds the key, read each time it is needed.
        api_key_file("api_key_file"): Text,
        /// The system prompt.
        system("system"): String,
        /// A file that holds it, in place of `system`.
        system_file("system_file"): Text,
        /// Maximum number of model requests in one turn; 20 by default.
        max_steps("max_steps"): Count,
        /// With more tools than this, only the ones that fit the request best are offered; 40 by default.
        tools_max("tools_max"): Count,
        /// Maximum number of repetitions of the same call with the same arguments in one turn; 3 by
        /// default.
        repeats_max("repeats_max"): Count,
        /// Maximum number of tokens in a request to the model; beyond, the oldest tool results are
        /// shortened. 100000 by default.
        context_tokens("context_tokens"): Count,
        /// Maximum number of tokens in one answer of the model; the provider's default if omitted.
        max_output_tokens("max_output_tokens"): Count,
        /// Maximum time without data from the model's service; 2 minutes by default.
        request_timeout("request_timeout"): Span,
        /// The time limit for one answer of the model, retries and the pauses between them included; 10 minutes by
        /// default.
        turn_timeout("turn_timeout"): Span,
        /// The size limit in bytes for one answer of the model's service, as it arrives; 64 MiB by default.
        answer_bytes_max("answer_bytes_max"): Count,
        /// Maximum number of retries of a request after a transient failure; 3 by default.
        retries("retries"): CountOrZero,
        /// `true` (the default) sends images from tools to the model.
        images("images"): bool,
        /// `true` sends audio from tools to the model; by default only to Gemini.
        audio("audio"): bool,
        /// `true` sends tool schemas in the provider's strict mode; not by default.
        strict_schemas("strict_schemas"): bool,
        /// Number of days a conversation is kept after its last message; 90 by default, 0 keeps it
        /// forever.
        retain_days("retain_days"): CountOrZero,
    }
}
