//! What a native file says about the built-in tools, the inbox and the agent.

use super::choices::{Sandbox, SearchBackend};
use super::node::Text;
use super::quantity::{Count, CountOrZero, Span};
use super::read::{Named, record};

record! {
    /// `builtin`.
    pub struct RawBuiltin("`builtin`", Reject) {
        /// Whether there are built-in tools at all; each can be switched off by itself too.
        enabled("enabled"): bool,
        /// Runs Python and shell code.
        code_execution("code_execution"): RawCodeExecution,
        /// Searches the web.
        web_search("web_search"): RawWebSearch,
        /// Asks a person.
        request_human_input("request_human_input"): RawHumanInput,
    }
}

record! {
    /// `builtin.code_execution`.
    pub struct RawCodeExecution("`code_execution`", Reject) {
        /// Whether there is such a tool; `true` by default.
        enabled("enabled"): bool,
        /// What keeps the code from the rest of the machine: `none` (the default) or `bubblewrap`, without
        /// which it then does not run.
        sandbox("sandbox"): Sandbox,
        /// Whether code in the sandbox may use the network; not by default.
        network("network"): bool,
    }
}

record! {
    /// `builtin.web_search`.
    pub struct RawWebSearch("`web_search`", Reject) {
        /// Whether there is such a tool; `true` by default.
        enabled("enabled"): bool,
        /// Who searches: `auto` (the default) takes the first of `SearXNG`, Brave and Tavily that is
        /// configured, else `DuckDuckGo`.
        backend("backend"): SearchBackend,
        /// A `SearXNG` instance.
        searxng("searxng"): RawSearchService,
        /// The Brave Search API; its key is `BRAVE_API_KEY` of the environment by default.
        brave("brave"): RawSearchService,
        /// The Tavily API; its key is `TAVILY_API_KEY` of the environment by default.
        tavily("tavily"): RawSearchService,
        /// The HTML page of `DuckDuckGo`, which needs no key.
        duckduckgo("duckduckgo"): RawSearchService,
        /// How long one request to a search service may take; 10 s by default.
        request_timeout("request_timeout"): Span,
        /// How long results are kept for the same question; 10 minutes by default.
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
        /// Whether there is such a tool; `true` by default.
        enabled("enabled"): bool,
    }
}

record! {
    /// `inbox`.
    pub struct RawInbox("`inbox`", Reject) {
        /// How long a question to a person waits for its answer; 1 hour by default.
        timeout("timeout"): Span,
        /// An address that is told of every new question by POST; none by default.
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
        /// The address of the model's service, where it is not the provider's own.
        base_url("base_url"): Text,
        /// The variable that holds the service's key; by default the provider's own, such as `OPENAI_API_KEY`.
        api_key_env("api_key_env"): String,
        /// A file that holds the key, read each time it is needed.
        api_key_file("api_key_file"): Text,
        /// What the model is told before everything else.
        system("system"): String,
        /// A file that holds it, in place of `system`.
        system_file("system_file"): Text,
        /// How many times the model may be asked in one turn; 20 by default.
        max_steps("max_steps"): Count,
        /// With more tools than this, only the ones that fit the request best are offered; 40 by default.
        tools_max("tools_max"): Count,
        /// How often the model may repeat the same call with the same arguments in one turn; 3 by default.
        repeats_max("repeats_max"): Count,
        /// How many tokens a request to the model may have; beyond, the oldest tool results are shortened.
        /// 100000 by default.
        context_tokens("context_tokens"): Count,
        /// How many tokens the model may write in one answer; the provider's default where nothing is said.
        max_output_tokens("max_output_tokens"): Count,
        /// How long the model's service may be silent; 2 minutes by default.
        request_timeout("request_timeout"): Span,
        /// The time limit for one answer of the model, retries and the pauses between them included; 10 minutes by
        /// default.
        turn_timeout("turn_timeout"): Span,
        /// The size limit in bytes for one answer of the model's service, as it arrives; 64 MiB by default.
        answer_bytes_max("answer_bytes_max"): Count,
        /// How often a request that failed for a passing reason is made again; 3 by default.
        retries("retries"): CountOrZero,
        /// Whether pictures from tools are shown to the model; `true` by default.
        images("images"): bool,
        /// Whether sounds from tools are played to the model; by default only to Gemini.
        audio("audio"): bool,
        /// Whether tool schemas are sent in the provider's strict mode; not by default.
        strict_schemas("strict_schemas"): bool,
        /// For how many days a conversation is kept after its last message; 90 by default, 0 for ever.
        retain_days("retain_days"): CountOrZero,
    }
}
