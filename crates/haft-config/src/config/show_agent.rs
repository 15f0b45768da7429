//! The built-in tools, the inbox and the agent as rows.

use serde_json::json;

use super::agent::{AgentConfig, BuiltinConfig, InboxConfig, SearchService, WebSearchConfig};
use super::model::Config;
use super::show::{Rows, header_secrets};

impl Rows {
    pub(super) fn builtin(&mut self, builtin: &BuiltinConfig) {
        let BuiltinConfig { code_execution: code, web_search, request_human_input, configured: _ } =
            builtin;
        self.plain("builtin.code_execution.enabled", &code.enabled);
        if code.enabled.value {
            let sandbox = &code.sandbox;
            self.add("builtin.code_execution.sandbox", sandbox.value.shown(), &sandbox.origin);
            self.plain("builtin.code_execution.network", &code.network);
        }
        self.search(web_search);
        self.plain("builtin.request_human_input.enabled", request_human_input);
    }

    fn search(&mut self, search: &WebSearchConfig) {
        let at = |key: &str| format!("builtin.web_search.{key}");
        self.plain(at("enabled"), &search.enabled);
        if !search.enabled.value {
            return;
        }
        self.plain(at("backend"), &search.backend);
        for (name, service) in services(search) {
            let url = &service.url;
            self.add(at(&format!("{name}.url")), json!(url.value.to_string()), &url.origin);
            if let Some(key) = &service.api_key {
                let path = at(&format!("{name}.api_key"));
                self.add(path, json!(key.value.to_string()), &key.origin);
            }
        }
        self.span(at("request_timeout"), &search.request_timeout);
        self.span(at("cache"), &search.cache);
    }

    pub(super) fn inbox(
        &mut self,
        InboxConfig { timeout, webhook, webhook_headers }: &InboxConfig,
    ) {
        self.span("inbox.timeout", timeout);
        let Some(webhook) = webhook else { return };
        self.add("inbox.webhook", json!(webhook.value.to_string()), &webhook.origin);
        for (name, value) in webhook_headers {
            let path = format!("inbox.webhook_headers.{name}");
            self.add(path, json!(value.to_string()), &webhook.origin);
        }
    }

    pub(super) fn agent(&mut self, agent: &AgentConfig) {
        let at = |key: &str| format!("agent.{key}");
        if let Some(model) = &agent.model {
            self.plain(at("model"), model);
        }
        if let Some(url) = &agent.base_url {
            self.add(at("base_url"), json!(url.value.to_string()), &url.origin);
        }
        if let Some(name) = &agent.api_key_env {
            self.plain(at("api_key_env"), name);
        }
        if let Some(file) = &agent.api_key_file {
            self.add(at("api_key_file"), json!(file.value), &file.origin);
        }
        if let Some(system) = &agent.system {
            self.plain(at("system"), system);
        }
        self.plain(at("max_steps"), &agent.max_steps);
        self.plain(at("tools_max"), &agent.tools_max);
        self.plain(at("repeats_max"), &agent.repeats_max);
        self.plain(at("context_tokens"), &agent.context_tokens);
        if let Some(tokens) = &agent.max_output_tokens {
            self.plain(at("max_output_tokens"), tokens);
        }
        self.span(at("request_timeout"), &agent.request_timeout);
        self.span(at("turn_timeout"), &agent.turn_timeout);
        self.plain(at("answer_bytes_max"), &agent.answer_bytes_max);
        self.plain(at("retries"), &agent.retries);
        self.plain(at("images"), &agent.images);
        if let Some(audio) = &agent.audio {
            self.plain(at("audio"), audio);
        }
        self.plain(at("strict_schemas"), &agent.strict_schemas);
        self.plain(at("retain_days"), &agent.retain_days);
    }
}

fn services(search: &WebSearchConfig) -> impl Iterator<Item = (&'static str, &SearchService)> {
    let WebSearchConfig { searxng, brave, tavily, duckduckgo, .. } = search;
    let named =
        [("searxng", searxng), ("brave", brave), ("tavily", tavily), ("duckduckgo", duckduckgo)];
    named.into_iter().filter_map(|(name, service)| Some((name, service.as_ref()?)))
}

/// Values that must not be shown.
pub(super) fn secrets(config: &Config) -> Vec<String> {
    let mut secrets = Vec::new();
    for (_, service) in services(&config.builtin.web_search) {
        secrets.extend(service.url.value.secrets());
        secrets.extend(service.api_key.iter().map(|key| key.value.expose().to_owned()));
    }
    let InboxConfig { webhook, webhook_headers, .. } = &config.inbox;
    secrets.extend(webhook.iter().flat_map(|at| at.value.secrets()));
    secrets.extend(webhook_headers.iter().flat_map(|(_, value)| header_secrets(value)));
    let AgentConfig { base_url, api_key, .. } = &*config.agent;
    secrets.extend(base_url.iter().flat_map(|at| at.value.secrets()));
    secrets.extend(api_key.iter().map(|key| key.expose().to_owned()));
    secrets
}
