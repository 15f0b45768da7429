//! Haft as an entry of a client's file: how it is started or reached, in the client's words.

use std::path::Path;

use haft_config::edit::Document;
use haft_text::json_text;
use serde_json::{Map, Value, json};

use super::clients::Client;
use crate::cli::{EXIT_CONFIG, Failure};

/// Default port of `haft serve`.
const OWN_PORT: u16 = 7300;

/// Time limit of goose for one call.
const GOOSE_TIMEOUT_SECS: u32 = 300;

const DESCRIPTION: &str = "Every tool of the toolbox that Haft holds.";

/// The way in which the client reaches Haft.
#[derive(Debug)]
pub(super) enum Launch {
    /// It starts it.
    Command { program: String, args: Vec<String> },
    /// It is served at an address; the key stands in a variable.
    Remote { url: String, key_env: Option<String> },
}

/// The entry in the client's words.
pub(super) fn entry(client: Client, name: &str, launch: &Launch) -> anyhow::Result<Value> {
    match launch {
        Launch::Command { program, args } => Ok(started(client, name, program, args)),
        Launch::Remote { url, key_env } => remote(client, name, url, key_env.as_deref()),
    }
}

fn started(client: Client, name: &str, program: &str, args: &[String]) -> Value {
    match client {
        Client::Claude | Client::Vscode | Client::Cursor => {
            json!({"type": "stdio", "command": program, "args": args})
        }
        Client::ClaudeDesktop
        | Client::Codex
        | Client::Gemini
        | Client::Cline
        | Client::Windsurf
        | Client::Zed => {
            json!({"command": program, "args": args})
        }
        Client::Goose => json!({
            "enabled": true, "type": "stdio", "name": name, "description": DESCRIPTION,
            "cmd": program, "args": args, "envs": {}, "env_keys": [],
            "timeout": GOOSE_TIMEOUT_SECS,
        }),
    }
}

fn remote(client: Client, name: &str, url: &str, key: Option<&str>) -> anyhow::Result<Value> {
    let mut entry = match client {
        Client::Claude | Client::Vscode => json!({"type": "http", "url": url}),
        Client::Cursor | Client::Codex | Client::Zed => json!({"url": url}),
        Client::Gemini => json!({"httpUrl": url}),
        Client::Cline => json!({"type": "streamableHttp", "url": url}),
        Client::Windsurf => json!({"serverUrl": url}),
        Client::Goose => json!({
            "enabled": true, "type": "streamable_http", "name": name,
            "description": DESCRIPTION, "uri": url, "headers": {}, "envs": {}, "env_keys": [],
            "timeout": GOOSE_TIMEOUT_SECS,
        }),
        Client::ClaudeDesktop => {
            return Err(Failure::new(
                EXIT_CONFIG,
                "Claude Desktop's file takes no addresses, only programs to start",
                "leave `--url` out, or add the address in its settings, under connectors",
            )
            .into());
        }
    };
    let Some(key) = key else { return Ok(entry) };
    let reference = match client {
        Client::Claude | Client::Gemini => format!("${{{key}}}"),
        Client::Vscode | Client::Cursor | Client::Windsurf => format!("${{env:{key}}}"),
        Client::Codex => {
            entry["bearer_token_env_var"] = json!(key);
            return Ok(entry);
        }
        Client::Goose | Client::Zed | Client::Cline | Client::ClaudeDesktop => {
            let message = format!("{} has no variables in its headers", client.title());
            let remedy =
                "leave `--key-env` out, and write the header `Authorization: Bearer KEY` by hand";
            return Err(Failure::new(EXIT_CONFIG, message, remedy).into());
        }
    };
    entry["headers"] = json!({"Authorization": format!("Bearer {reference}")});
    Ok(entry)
}

/// The entry as a file that holds nothing else.
pub(super) fn as_file(client: Client, name: &str, entry: &Value) -> String {
    let empty = Document::read("", client.syntax());
    let file = empty.and_then(|file| file.put(client.section(), name, entry));
    // Entries of others may hold values that ours never do: JSON shows them too.
    file.unwrap_or_else(|_| json_text::pretty(&json!({name: entry}).to_string()))
}

/// Returns true if an entry of any client's file leads to Haft.
pub(in crate::cli) fn is_haft(entry: &Value) -> bool {
    let text = |keys: &[&str]| keys.iter().find_map(|key| entry.get(*key)?.as_str());
    if let Some(program) = text(&["command", "cmd"]) {
        let file_name = Path::new(program).file_stem().and_then(|name| name.to_str());
        let args = entry.get("args").and_then(Value::as_array);
        let serves = args.is_some_and(|args| args.iter().any(|arg| arg == "mcp"));
        return file_name == Some("haft") && serves;
    }
    let Some(url) = text(&["url", "uri", "serverUrl", "httpUrl"]) else { return false };
    reqwest::Url::parse(url).is_ok_and(|url| {
        let host = url.host_str().unwrap_or_default();
        let is_local = ["127.0.0.1", "localhost", "[::1]"].contains(&host);
        is_local && url.port() == Some(OWN_PORT) && url.path().trim_end_matches('/') == "/mcp"
    })
}

/// Returns true if an entry has all fields of `wanted`. People and clients add keys of their own.
pub(super) fn says(entry: &Value, wanted: &Value) -> bool {
    let empty = Map::new();
    let wanted = wanted.as_object().unwrap_or(&empty);
    wanted.iter().all(|(key, value)| entry.get(key) == Some(value))
}
