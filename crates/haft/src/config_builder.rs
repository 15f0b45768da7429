//! Configuration from Rust.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use haft_config::config::{Config, ConfigError};

/// Builds a configuration in Rust. It has the keys of `haft.yaml` and passes the same checks.
///
/// ```
/// use haft::{ConfigBuilder, ServerBuilder};
///
/// let config = ConfigBuilder::new()
///     .folder("/var/lib/my-agent")
///     .set("defaults.max_concurrent", 20)
///     .server("time", ServerBuilder::command("uvx").args(["mcp-server-time"]).set("start", "lazy"))
///     .tool("get_current_time", [("timeout", "5s")])
///     .build()?;
/// assert_eq!(config.servers[0].name, "time");
/// assert_eq!(config.defaults.max_concurrent.value, 20);
///
/// let problem = ConfigBuilder::new().set("defaults.max_concurent", 20).build().unwrap_err();
/// assert!(problem.to_string().contains("max_concurrent"), "{problem}");
/// # Ok::<(), haft::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ConfigBuilder {
    document: Value,
}

impl ConfigBuilder {
    /// An empty configuration: no servers, no tools, the log in `./logs`.
    pub fn new() -> Self {
        Self { document: json!({}) }
    }

    /// Puts the log into `logs` and the state into `state` of a folder.
    #[must_use]
    pub fn folder(self, folder: impl AsRef<Path>) -> Self {
        let inside = |name: &str| folder.as_ref().join(name).display().to_string();
        let (log, state) = (inside("logs"), inside("state"));
        self.set("log.dir", log).set("state_dir", state)
    }

    /// Sets the value of a key, by its path: `defaults.max_concurrent`, `agent.model`. Strings are literal: `${VAR}`
    /// is not replaced.
    #[must_use]
    pub fn set(mut self, path: &str, value: impl Serialize) -> Self {
        set(&mut self.document, path, value);
        self
    }

    /// Adds an MCP server.
    #[must_use]
    pub fn server(mut self, name: &str, server: ServerBuilder) -> Self {
        entry(&mut self.document, "servers").insert(name.to_owned(), server.entry);
        self
    }

    /// Adds settings of one tool, as an entry of `tools` has them.
    ///
    /// ```
    /// use haft::ConfigBuilder;
    ///
    /// let config = ConfigBuilder::new().tool("send_mail", [("approval", "ask")]).build()?;
    /// assert_eq!(config.tools[0].name, "send_mail");
    /// # Ok::<(), haft::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn tool<K: Into<String>, V: Serialize>(
        mut self,
        name: &str,
        settings: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let mut tool = json!({ "name": literal(json!(name)) });
        for (key, value) in settings {
            set(&mut tool, &key.into(), value);
        }
        if self.document["tools"].is_null() {
            self.document["tools"] = json!([]);
        }
        if let Some(tools) = self.document["tools"].as_array_mut() {
            tools.push(tool);
        }
        self
    }

    /// Checks everything, as a file is checked. Nothing is connected, started or written.
    pub fn build(self) -> Result<Config, ConfigError> {
        // JSON is YAML, so that the one reader of native files sees it.
        Config::from_yaml_named(&self.document.to_string(), "ConfigBuilder")
    }
}

/// An MCP server for [`ConfigBuilder::server`].
///
/// ```
/// use haft::{ConfigBuilder, ServerBuilder};
///
/// let remote = ServerBuilder::url("https://example.com/mcp").header("Authorization", "Bearer t0ken");
/// let config = ConfigBuilder::new().server("remote", remote.set("mode", "dynamic")).build()?;
/// assert_eq!(config.servers[0].endpoint.transport(), "http");
/// # Ok::<(), haft::config::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ServerBuilder {
    entry: Value,
}

impl ServerBuilder {
    /// A server that runs as a child process.
    pub fn command(command: impl Into<String>) -> Self {
        Self { entry: json!({ "command": literal(json!(command.into())) }) }
    }

    /// A remote server.
    pub fn url(url: impl Into<String>) -> Self {
        Self { entry: json!({ "url": literal(json!(url.into())) }) }
    }

    /// Sets the arguments of the command.
    #[must_use]
    pub fn args<A: Into<String>>(self, args: impl IntoIterator<Item = A>) -> Self {
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        self.set("args", args)
    }

    /// Sets a variable in the environment of the process.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        entry(&mut self.entry, "env").insert(name.to_owned(), literal(json!(value.into())));
        self
    }

    /// Sends a header with every request.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        entry(&mut self.entry, "headers").insert(name.to_owned(), literal(json!(value.into())));
        self
    }

    /// Sets another key of the entry: `mode`, `start`, `reconnect.attempts`.
    #[must_use]
    pub fn set(mut self, path: &str, value: impl Serialize) -> Self {
        set(&mut self.entry, path, value);
        self
    }
}

/// The object at a key, created if there is none.
fn entry<'a>(parent: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !parent.is_object() {
        *parent = json!({});
    }
    let child = &mut parent[key];
    if !child.is_object() {
        *child = json!({});
    }
    let Value::Object(map) = child else { unreachable!("made above") };
    map
}

fn set(parent: &mut Value, path: &str, value: impl Serialize) {
    if let Some((key, rest)) = path.split_once('.') {
        entry(parent, key);
        set(&mut parent[key], rest, value);
        return;
    }
    // A value that does not serialize becomes a string that the checks refuse.
    let value = serde_json::to_value(value).unwrap_or_else(|error| json!(error.to_string()));
    parent[path] = literal(value);
}

/// The same value with `${` escaped in every string.
fn literal(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("${", "$${")),
        Value::Array(items) => Value::Array(items.into_iter().map(literal).collect()),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, literal(value))).collect())
        }
        other => other,
    }
}
