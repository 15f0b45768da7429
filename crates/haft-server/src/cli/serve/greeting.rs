//! The greeting of a service: its addresses, and its problems.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use haft::config::Config;
use haft::config::choices::StoreKind;
use haft::record::RecordSource;
use haft::{ServerInfo, ServerState, ToolInfo};
use serde_json::{Value, json};

use crate::api::Service;
use crate::cli::{Global, count, print_json, toolbox};
use crate::terminal::{self, Paint};

pub(super) fn print(global: &Global, service: &Service, address: SocketAddr) -> anyhow::Result<()> {
    let config = service.live.runtime().config();
    let url = url(service, address);
    if global.json {
        return print_json(&json!({
            "listening": url,
            "address": address,
            "console": url,
            "api": format!("{url}/api/v1"),
            "mcp": format!("{url}/mcp"),
            "pid": std::process::id(),
        }));
    }
    let paint = Paint::stdout(global.color);
    for (what, text) in lines(service, &config, &url, address) {
        terminal::line(&format!("{} {text}", paint.dim(&format!("{what:<10}"))));
    }
    Ok(())
}

/// The address of the service for clients on this machine.
pub(super) fn url(service: &Service, address: SocketAddr) -> String {
    let is_tls = service.live.runtime().config().api.tls.is_some();
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{}", reachable(address))
}

/// The address as a client on this machine can use it.
pub(in crate::cli) fn reachable(address: SocketAddr) -> SocketAddr {
    let local: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    if address.ip().is_unspecified() { SocketAddr::new(local, address.port()) } else { address }
}

fn lines(
    service: &Service,
    config: &Config,
    url: &str,
    address: SocketAddr,
) -> Vec<(&'static str, String)> {
    let runtime = service.live.runtime();
    let version = env!("CARGO_PKG_VERSION");
    let servers = runtime.servers();
    let mut has = vec![count(runtime.tools().len(), "tool"), count(servers.len(), "server")];
    let coming = servers.iter().filter(|server| server.state == ServerState::Connecting);
    let coming: Vec<&str> = coming.map(|server| server.name.as_str()).collect();
    if !coming.is_empty() {
        has.push(format!("connecting: {}", coming.join(", ")));
    }
    let failed = servers.iter().filter(|it| toolbox::failed(it) && !is_coming(it));
    let failed: Vec<&str> = failed.map(|server| server.name.as_str()).collect();
    if !failed.is_empty() {
        has.push(format!("failed: {}", failed.join(", ")));
    }
    let files: Vec<&str> = config.files.iter().map(|file| &*file.name).collect();
    let mut lines = vec![
        ("haft", format!("{version}, {}", has.join(", "))),
        ("console", format!("{url} (open it in a browser, or run `haft console`)")),
        ("api", format!("{url}/api/v1 (described at {url}/api/docs)")),
        ("mcp", format!("{url}/mcp (for MCP clients; `haft install` writes their files)")),
        ("files", files.join(", ")),
        ("log", config.log.dir.value.display().to_string()),
    ];
    if address.ip().is_unspecified() {
        let all =
            format!("{address} (every address of this machine; the lines above name one of them)");
        lines.push(("listening", all));
    }
    if let (Some(shared), Some(database)) = (&config.shared, &service.shared) {
        let (url, number) = (shared.url.value.shown(), database.replica_number());
        lines.push(("shared", format!("{url}, replica {}", number.unwrap_or_default())));
    }
    lines.push(match &config.registry_dir {
        Some(dir) if config.registry_store.value == StoreKind::Shared => {
            ("registry", format!("in the database; scripts in {}", dir.value.display()))
        }
        Some(dir) => ("registry", dir.value.display().to_string()),
        None => {
            ("registry", "none: set `registry: {dir: ./tools}` to change tools over the API".into())
        }
    });
    lines.push(if service.keys.is_empty() {
        let needs = if service.keys.is_shared() { "every request needs" } else { "changes need" };
        let how = format!("none: {needs} one, `haft keys create --scope admin --name me`");
        ("keys", how)
    } else {
        ("keys", service.keys.store().location())
    });
    if let Some(tool) = runtime.tools().iter().find(|tool| is_example(tool)) {
        let arguments = example(&tool.input_schema);
        let call = format!("{url}/api/v1/tools/{}/call", tool.name);
        let header = "-H 'content-type: application/json'";
        let key = if service.keys.is_empty() { "" } else { " -H \"X-API-Key: $KEY\"" };
        let body = format!(r#"{{"arguments":{arguments}}}"#);
        lines.push(("try", format!("curl {call} {header}{key} -d '{body}'")));
    }
    lines
}

/// Returns true if a call with made-up arguments succeeds in all likelihood. A server has a use for few of them.
fn is_example(tool: &ToolInfo) -> bool {
    match tool.kind {
        RecordSource::Builtin | RecordSource::Unknown => false,
        RecordSource::Mcp => tool.input_schema["required"].as_array().is_none_or(Vec::is_empty),
        RecordSource::Local | RecordSource::Function => true,
    }
}

/// Returns true if a server may still answer without a change.
fn is_coming(server: &ServerInfo) -> bool {
    matches!(server.state, ServerState::Configured | ServerState::Connecting)
}

/// Arguments for the required properties of a schema.
fn example(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let filled = required.map(|name| {
        let property = &schema["properties"][name];
        let given = [&property["examples"][0], &property["default"], &property["enum"][0]];
        let given = given.into_iter().find(|value| !value.is_null()).cloned();
        let made = match property["type"].as_str() {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ if name == "name" => json!("you"),
            _ => json!("text"),
        };
        (name.to_owned(), given.unwrap_or(made))
    });
    Value::Object(filled.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_arguments_have_values_of_their_type() {
        let schema = json!({
            "properties": {
                "name": {"type": "string"}, "path": {"type": "string"}, "count": {"type": "integer"},
                "unit": {"enum": ["c", "f"]}, "other": {"type": "string"},
            },
            "required": ["name", "path", "count", "unit"],
        });
        let expected = json!({"name": "you", "path": "text", "count": 1, "unit": "c"});
        assert_eq!(example(&schema), expected);
    }
}
