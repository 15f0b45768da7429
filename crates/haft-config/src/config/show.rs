//! The resolved configuration as rows: path, value as it may be shown, origin.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::call_limits::LimitSettings;
use super::choices::LogShip;
use super::gateway::Profile;
use super::limits::LimitsConfig;
use super::metadata::ToolMetadata;
use super::model::{
    Config, Endpoint, LocalProgram, LocalTool, LogConfig, Origin, RemoteEndpoint, SchemaSource,
    ServerConfig, ServerToolFilter, Setting, StdioEndpoint, ToolEntry, ToolSettings,
};
use super::oauth::OauthConfig;
use super::pattern::NamePattern;
use super::sandbox::SandboxConfig;
use super::secret::{Masked, Opaque, Secret, ServerUrl};
use super::select::{EmbeddingsConfig, SelectConfig};
use super::shared::SharedConfig;
use super::tool_overrides::ToolOverrides;
use haft_text::human;

/// One effective value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its path, such as `servers.customers.mode`.
    pub path: String,
    /// The value; secrets are `***`.
    pub value: Value,
    /// `explicit` or `default`.
    pub origin: &'static str,
    /// The file and line, the variable, or the default that set it.
    pub from: String,
}

/// Every effective value of the configuration, in a fixed order.
pub fn rows(config: &Config) -> Vec<Row> {
    let mut rows = Rows(Vec::new());
    let defaults = &config.defaults;
    rows.span("defaults.tool_timeout", &defaults.tool_timeout);
    rows.plain("defaults.max_concurrent", &defaults.max_concurrent);
    rows.plain("defaults.on_limit", &defaults.on_limit);
    rows.plain("defaults.queue_max", &defaults.queue_max);
    rows.span("defaults.queue_timeout", &defaults.queue_timeout);
    rows.plain("defaults.on_name_collision", &defaults.on_name_collision);
    rows.plain("defaults.unresolved_env", &defaults.unresolved_env);
    rows.plain("defaults.on_runtime_violation", &defaults.on_runtime_violation);
    rows.add("defaults.python", json!(defaults.python.value.shown()), &defaults.python.origin);
    rows.plain("defaults.output_bytes_max", &defaults.output_bytes_max);
    rows.sandbox("defaults.sandbox", &defaults.sandbox);
    for server in &config.servers {
        rows.server(server);
    }
    for tool in &config.tools {
        rows.tool(tool);
    }
    for tool in &config.local {
        rows.local(tool);
    }
    if let Some(dir) = &config.registry_dir {
        rows.add("registry.dir", json!(dir.value), &dir.origin);
        rows.plain("registry.store", &config.registry_store);
    }
    rows.shared(config.shared.as_deref());
    rows.add("log.dir", json!(config.log.dir.value), &config.log.dir.origin);
    rows.plain("log.retain_days", &config.log.retain_days);
    let LogConfig { max_bytes, keep_free, .. } = &config.log;
    rows.add("log.max_bytes", json!(max_bytes.value.unwrap_or(0)), &max_bytes.origin);
    rows.add("log.keep_free", keep_free.value.shown(), &keep_free.origin);
    rows.plain("log.ship", &config.log.ship);
    if config.log.ship.value == LogShip::Shared {
        rows.plain("log.spool_max", &config.log.spool_max);
    }
    rows.plain("log.on_failure", &config.log.on_failure);
    rows.plain("log.sync", &config.log.sync);
    rows.plain("log.requests", &config.log.requests);
    rows.limits(&config.limits);
    rows.select(&config.select);
    rows.service(config);
    rows.gateway(config);
    rows.builtin(&config.builtin);
    rows.inbox(&config.inbox);
    rows.agent(&config.agent);
    rows.add("state_dir", json!(config.state_dir.value), &config.state_dir.origin);
    rows.0
}

/// The values of the service that offers the toolbox: `api`, `telemetry` and `shared`.
pub fn service_rows(config: &Config) -> Vec<Row> {
    let mut rows = Rows(Vec::new());
    rows.service(config);
    rows.shared(config.shared.as_deref());
    let prefixes = ["api.", "telemetry.", "shared."];
    rows.0.retain(|row| prefixes.iter().any(|prefix| row.path.starts_with(prefix)));
    rows.0
}

pub(super) struct Rows(Vec<Row>);

impl Rows {
    pub(super) fn add(&mut self, path: impl Into<String>, value: Value, origin: &Origin) {
        let (word, from) = (origin.word(), origin.to_string());
        self.0.push(Row { path: path.into(), value, origin: word, from });
    }

    pub(super) fn plain<T: Serialize>(&mut self, path: impl Into<String>, setting: &Setting<T>) {
        self.add(path, json!(setting.value), &setting.origin);
    }

    pub(super) fn span(&mut self, path: impl Into<String>, setting: &Setting<Duration>) {
        self.add(path, json!(human(setting.value)), &setting.origin);
    }

    fn sandbox(&mut self, path: impl Into<String>, sandbox: &Setting<SandboxConfig>) {
        self.add(path, sandbox.value.shown(), &sandbox.origin);
    }

    fn server(&mut self, server: &ServerConfig) {
        let at = |key: &str| format!("servers.{}.{key}", server.name);
        self.transport(server);
        match &server.endpoint {
            Endpoint::Stdio(stdio) => self.stdio(server, stdio),
            Endpoint::Http(remote) | Endpoint::Sse(remote) | Endpoint::Websocket(remote) => {
                self.written(server, "url", json!(remote.url.to_string()));
                for (name, secret) in &remote.headers {
                    self.written(server, &format!("headers.{name}"), json!(secret.to_string()));
                }
                if let Some(oauth) = &remote.oauth {
                    self.written(server, "oauth", json!(oauth.info()));
                }
            }
        }
        self.plain(at("mode"), &server.mode);
        self.settings(&at("default_tool_config"), &server.default_tool_config);
        self.plain(at("on_connect_failure"), &server.on_connect_failure);
        self.plain(at("start"), &server.start);
        self.plain(at("reconnect.attempts"), &server.reconnect.attempts);
        self.span(at("reconnect.base"), &server.reconnect.base);
        self.plain(at("reconnect.factor"), &server.reconnect.factor);
        self.span(at("reconnect.max"), &server.reconnect.max);
        self.span(at("connect_timeout"), &server.connect_timeout);
        self.span(at("request_timeout"), &server.request_timeout);
        self.span(at("sse_read_timeout"), &server.sse_read_timeout);
        self.plain(at("terminate_on_close"), &server.terminate_on_close);
        self.plain(at("load_tools"), &server.load_tools);
        self.plain(at("load_prompts"), &server.load_prompts);
        self.plain(at("prompts"), &server.prompts);
        self.plain(at("list_changed"), &server.list_changed);
        self.plain(at("sampling"), &server.sampling);
        match &server.filter.value {
            ServerToolFilter::All => {}
            ServerToolFilter::Allow(patterns) => {
                self.add(at("tool_allowlist"), texts(patterns), &server.filter.origin);
            }
            ServerToolFilter::Deny(patterns) => {
                self.add(at("tool_denylist"), texts(patterns), &server.filter.origin);
            }
        }
        self.plain(at("tool_prefix"), &server.tool_prefix);
        self.plain(at("protocol"), &server.protocol);
        if server.sandbox.origin != Origin::Default {
            self.sandbox(at("sandbox"), &server.sandbox);
        }
        if let Some(config) = &server.config {
            self.written(server, "config", config.shown());
        }
        self.call_limits(&format!("servers.{}", server.name), &server.limits);
        self.labels(&at("labels"), server.labels.as_deref(), &server.place);
        self.plain(at("disabled"), &server.disabled);
    }

    fn select(&mut self, SelectConfig { embeddings }: &SelectConfig) {
        let Some(EmbeddingsConfig { url, model, api_key, timeout }) = embeddings else { return };
        self.add("select.embeddings.url", json!(url.value.to_string()), &url.origin);
        self.plain("select.embeddings.model", model);
        if let Some(key) = api_key {
            self.add("select.embeddings.api_key", json!(key.value.to_string()), &key.origin);
        }
        self.span("select.embeddings.timeout", timeout);
    }

    fn service(&mut self, Config { api, policy, telemetry, .. }: &Config) {
        self.plain("api.listen", &api.listen);
        self.add("api.keys_file", json!(api.keys_file.value), &api.keys_file.origin);
        if let Some(Setting { value: files, origin }) = &api.tls {
            self.add("api.tls", json!({"cert": files.cert, "key": files.key}), origin);
        }
        self.plain("api.allowed_hosts", &api.allowed_hosts);
        self.plain("api.allowed_origins", &api.allowed_origins);
        self.span("api.drain_delay", &api.drain_delay);
        self.span("api.shutdown_grace", &api.shutdown_grace);
        let allowed = &policy.allowed_commands;
        let patterns: Vec<String> = allowed.value.iter().map(ToString::to_string).collect();
        self.add("policy.allowed_commands", json!(patterns), &allowed.origin);
        self.plain("policy.allowed_variables", &policy.allowed_variables);
        let allowed = &policy.allowed_env;
        let patterns: Vec<String> = allowed.value.iter().map(ToString::to_string).collect();
        self.add("policy.allowed_env", json!(patterns), &allowed.origin);
        self.plain("policy.allowed_scripts", &policy.allowed_scripts);
        if let Some(approvals) = &policy.approvals {
            self.plain("policy.approvals", approvals);
        }
        self.rules(&policy.rules);
        self.plain("policy.definitions", &policy.definitions);
        if let Some(Setting { value: address, origin }) = &telemetry.otlp_endpoint {
            self.add("telemetry.otlp_endpoint", json!(address.to_string()), origin);
            for (name, secret) in &telemetry.otlp_headers {
                let path = format!("telemetry.otlp_headers.{name}");
                self.add(path, json!(secret.to_string()), origin);
            }
        }
        self.plain("telemetry.service_name", &telemetry.service_name);
    }

    fn shared(&mut self, shared: Option<&SharedConfig>) {
        let Some(SharedConfig { url, ca, advertise, migrate, stale_max }) = shared else { return };
        self.add("shared.url", json!(url.value.shown()), &url.origin);
        if let Some(ca) = ca {
            self.add("shared.ca", json!(ca.value), &ca.origin);
        }
        if let Some(advertise) = advertise {
            self.add("shared.advertise", json!(advertise.value.to_string()), &advertise.origin);
        }
        self.plain("shared.migrate", migrate);
        self.span("shared.stale_max", stale_max);
    }

    fn limits(&mut self, limits: &LimitsConfig) {
        let LimitsConfig { message_nodes_max, in_flight_bytes_max } = limits;
        self.plain("limits.message_nodes_max", message_nodes_max);
        self.plain("limits.in_flight_bytes_max", in_flight_bytes_max);
    }

    fn gateway(&mut self, Config { gateway, profiles, .. }: &Config) {
        self.plain("gateway.surface", &gateway.surface);
        let output = &gateway.output_bytes_max;
        self.add("gateway.output_bytes_max", json!(output.value.unwrap_or(0)), &output.origin);
        self.plain("gateway.sessions_max", &gateway.sessions_max);
        self.span("gateway.session_idle", &gateway.session_idle);
        self.span("gateway.first_list_timeout", &gateway.first_list_timeout);
        self.plain("gateway.status_tool", &gateway.status_tool);
        for Profile { name, place: _, servers, tools, exclude_tools, surface } in profiles {
            let lists = [("servers", servers.as_ref()), ("tools", tools.as_ref())];
            let lists = lists.into_iter().chain([("exclude_tools", Some(exclude_tools))]);
            for (key, Setting { value, origin }) in lists.filter_map(|(key, it)| Some((key, it?))) {
                let patterns: Vec<String> = value.iter().map(ToString::to_string).collect();
                self.add(format!("profiles.{name}.{key}"), json!(patterns), origin);
            }
            self.plain(format!("profiles.{name}.surface"), surface);
        }
    }

    /// An implicit transport follows from the command or the address.
    fn transport(&mut self, server: &ServerConfig) {
        let path = format!("servers.{}.transport", server.name);
        let origin = match (server.written.get("transport"), &server.endpoint) {
            (Some(place), _) => Origin::Explicit(place.clone()),
            (None, Endpoint::Stdio(_)) => Origin::Implied("there is a command"),
            (None, _) => Origin::Implied("there is a url"),
        };
        self.add(path, json!(server.endpoint.transport()), &origin);
    }

    fn stdio(&mut self, server: &ServerConfig, stdio: &StdioEndpoint) {
        let at = |key: &str| format!("servers.{}.{key}", server.name);
        self.written(server, "command", json!(stdio.command.shown()));
        let args: Vec<_> = stdio.args.iter().map(Masked::shown).collect();
        self.written(server, "args", json!(args));
        if let Some(cwd) = &stdio.cwd {
            self.written(server, "cwd", json!(cwd));
        }
        for (name, secret) in &stdio.env {
            let shown = secret.as_ref().map(ToString::to_string);
            self.written(server, &format!("env.{name}"), json!(shown));
        }
        self.plain(at("inherit_env"), &stdio.inherit_env);
        self.plain(at("encoding"), &stdio.encoding);
    }

    /// A part of the endpoint, with its own line if known: variables of an `env_file` are in that
    /// file, and the folder of a server may follow from its file's.
    fn written(&mut self, server: &ServerConfig, key: &str, value: Value) {
        let place = server.written.get(key);
        let place =
            place.or_else(|| server.written.get("env_file").filter(|_| key.starts_with("env.")));
        let origin = match (place, key) {
            (Some(place), _) => Origin::Explicit(place.clone()),
            (None, "args") => Origin::Default,
            (None, "cwd") => Origin::Format(server.dialect),
            (None, _) => Origin::Explicit(server.place.clone()),
        };
        self.add(format!("servers.{}.{key}", server.name), value, &origin);
    }

    fn tool(&mut self, tool: &ToolEntry) {
        let path = format!("tools.{}", tool.name);
        if let Some(mcp) = &tool.mcp {
            self.add(format!("{path}.mcp"), json!(mcp), &Origin::Explicit(tool.place.clone()));
        }
        if let Some(mode) = &tool.mode {
            self.plain(format!("{path}.mode"), mode);
        }
        self.settings(&path, &tool.settings);
        self.metadata(&path, &tool.metadata);
        self.overrides(&path, &tool.overrides);
        self.labels(&format!("{path}.labels"), tool.labels.as_deref(), &tool.place);
        let sets_nothing = tool.settings == ToolSettings::default()
            && tool.metadata.is_empty()
            && tool.overrides.is_empty()
            && tool.labels.is_none();
        if sets_nothing && tool.mode.is_none() {
            self.add(path, json!({}), &Origin::Explicit(tool.place.clone()));
        }
    }

    fn settings(&mut self, path: &str, settings: &ToolSettings) {
        if let Some(max_instances) = &settings.max_instances {
            self.plain(format!("{path}.max_instances"), max_instances);
        }
        if let Some(timeout) = &settings.timeout {
            self.span(format!("{path}.timeout"), timeout);
        }
        if let Some(parallel) = &settings.parallel_capable {
            self.plain(format!("{path}.parallel_capable"), parallel);
        }
        if let Some(approval) = &settings.approval {
            self.plain(format!("{path}.approval"), approval);
        }
        if let Some(on_limit) = &settings.on_limit {
            self.plain(format!("{path}.on_limit"), on_limit);
        }
        self.call_limits(path, &settings.limits);
        if let Some(examples) = &settings.examples {
            self.plain(format!("{path}.examples"), examples);
        }
    }

    fn call_limits(&mut self, path: &str, limits: &LimitSettings) {
        let LimitSettings { rate, burst, quota } = limits;
        if let Some(rate) = rate {
            self.add(format!("{path}.rate"), json!(rate.value.to_string()), &rate.origin);
        }
        if let Some(burst) = burst {
            self.plain(format!("{path}.burst"), burst);
        }
        if let Some(quota) = quota {
            self.add(format!("{path}.quota"), json!(quota.value.to_string()), &quota.origin);
        }
    }

    fn local(&mut self, tool: &LocalTool) {
        let path = format!("local.{}", tool.definition.name);
        let origin = Origin::Explicit(tool.place.clone());
        self.add(format!("{path}.program"), program(&tool.program), &origin);
        self.plain(format!("{path}.background"), &tool.background);
        if tool.sandbox.origin != Origin::Default {
            self.sandbox(format!("{path}.sandbox"), &tool.sandbox);
        }
        for (name, secret) in &tool.env {
            let shown = secret.as_ref().map(ToString::to_string);
            self.add(format!("{path}.env.{name}"), json!(shown), &origin);
        }
        if tool.schema == SchemaSource::Signature {
            self.add(format!("{path}.input_schema"), json!("signature"), &origin);
        }
        self.settings(&path, &tool.settings);
        self.metadata(&path, &tool.metadata);
    }

    fn overrides(&mut self, path: &str, overrides: &ToolOverrides) {
        let ToolOverrides { rename, description, hide_arguments, fixed_arguments } = overrides;
        for (key, text) in [("rename", rename), ("description", description)] {
            if let Some(text) = text {
                self.plain(format!("{path}.{key}"), text);
            }
        }
        if let Some(names) = hide_arguments {
            self.plain(format!("{path}.hide_arguments"), names);
        }
        for (name, Setting { value, origin }) in fixed_arguments {
            self.add(format!("{path}.fixed_arguments.{name}"), value.shown().clone(), origin);
        }
    }

    fn metadata(&mut self, path: &str, ToolMetadata { title, annotations, icons }: &ToolMetadata) {
        if let Some(title) = title {
            self.plain(format!("{path}.title"), title);
        }
        if let Some(annotations) = annotations {
            self.plain(format!("{path}.annotations"), annotations);
        }
        if let Some(icons) = icons {
            self.plain(format!("{path}.icons"), icons);
        }
    }
}

fn texts(patterns: &[NamePattern]) -> Value {
    patterns.iter().map(ToString::to_string).collect()
}

/// The program of a local tool, with secrets masked.
pub fn program(program: &LocalProgram) -> Value {
    let shown =
        |words: &[Masked]| words.iter().map(|word| word.shown().to_owned()).collect::<Vec<_>>();
    match program {
        LocalProgram::Python { script_path, entrypoint, requirements } => {
            let mut shown =
                json!({"runtime": "python", "script_path": script_path, "entrypoint": entrypoint});
            if !requirements.is_empty() {
                shown["requirements"] = json!(requirements);
            }
            shown
        }
        LocalProgram::Command { command, script_path, args } => json!({
            "runtime": "command", "command": shown(command), "script_path": script_path,
            "args": shown(args),
        }),
    }
}

/// Every secret the configuration holds.
pub(super) fn secrets(config: &Config) -> Vec<String> {
    let left_out = config.left_out.secrets.iter().map(|secret| secret.expose().to_owned());
    let mut secrets: Vec<String> = left_out.collect();
    for server in &config.servers {
        match &server.endpoint {
            Endpoint::Stdio(stdio) => {
                secrets.extend(
                    stdio
                        .env
                        .iter()
                        .filter_map(|(_, value)| Some(value.as_ref()?.expose().to_owned())),
                );
                let words = stdio.args.iter().chain([&stdio.command]);
                secrets.extend(words.flat_map(Masked::hidden));
            }
            Endpoint::Http(remote) | Endpoint::Sse(remote) | Endpoint::Websocket(remote) => {
                secrets.extend(remote_secrets(remote));
            }
        }
    }
    secrets
        .extend(config.servers.iter().filter_map(|it| it.config.as_ref()).flat_map(Opaque::texts));
    secrets.extend(service_secrets(config));
    secrets.extend(config.tools.iter().flat_map(|tool| tool.overrides.secrets().cloned()));
    for tool in &config.local {
        let env = tool.env.iter().filter_map(|(_, value)| value.as_ref());
        secrets.extend(env.map(|value| value.expose().to_owned()));
        if let LocalProgram::Command { command, args, .. } = &tool.program {
            secrets.extend(command.iter().chain(args).flat_map(Masked::hidden));
        }
    }
    secrets
}

/// The secrets of everything but servers and local tools.
pub(super) fn service_secrets(config: &Config) -> Vec<String> {
    let mut secrets: Vec<String> =
        config.select.embeddings.iter().flat_map(EmbeddingsConfig::secrets).collect();
    secrets.extend(super::show_agent::secrets(config));
    let telemetry = &config.telemetry;
    secrets.extend(telemetry.otlp_endpoint.iter().flat_map(|at| at.value.secrets()));
    secrets.extend(config.shared.iter().flat_map(|shared| shared.url.value.hidden()));
    secrets.extend(telemetry.otlp_headers.iter().flat_map(|(_, value)| header_secrets(value)));
    secrets
}

/// The value of a header, and the token of `Bearer abc`: alone it is as secret as the whole line.
pub(super) fn header_secrets(value: &Secret) -> [String; 2] {
    let value = value.expose();
    [value, value.rsplit(' ').next().unwrap_or_default()].map(ToOwned::to_owned)
}

fn remote_secrets(RemoteEndpoint { url, headers, oauth }: &RemoteEndpoint) -> Vec<String> {
    let mut secrets = ServerUrl::secrets(url);
    secrets.extend(headers.iter().flat_map(|(_, value)| header_secrets(value)));
    secrets.extend(client_secret(oauth.as_ref()));
    secrets
}

pub(super) fn client_secret(oauth: Option<&OauthConfig>) -> Option<String> {
    oauth?.client_secret.as_ref().map(|secret| secret.value.expose().to_owned())
}
