//! Requests of clients of both eras, and the expected answers.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Failure;

pub(crate) const LEGACY: &str = "2025-06-18";
pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
/// Size of a large answer.
pub(crate) const BLOB_BYTES: usize = 1024 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// With a handshake, and over HTTP with a session.
    Legacy,
    /// Every request by itself.
    Modern,
}

/// The tools as the contender names them.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) echo: String,
    pub(crate) blob: String,
}

impl Names {
    /// Gateways may put something before a server's names.
    pub(crate) fn find(list: &str) -> Result<Self, Failure> {
        let list: Value = serde_json::from_str(list)?;
        let tools = list["tools"].as_array().ok_or("no list of tools")?;
        let find = |end: &str| {
            let mut names = tools.iter().filter_map(|tool| tool["name"].as_str());
            let name = names.find(|name| name.ends_with(end)).map(str::to_owned);
            name.ok_or_else(|| format!("there is no tool `{end}`"))
        };
        Ok(Self { echo: find("echo")?, blob: find("blob")? })
    }
}

pub(crate) fn initialize(id: u64) -> String {
    let client = json!({ "name": "bench", "version": "0" });
    let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params }).to_string()
}

pub(crate) fn list(id: u64, era: Era) -> String {
    let meta = meta(era);
    let meta = meta.strip_prefix(',').unwrap_or(meta);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{meta}}}}}"#)
}

/// A unique string for each answer.
pub(crate) fn text(id: u64) -> String {
    format!("payload-{id:010}-abcdefghijklmnopqrstuvwxyz0123456789-abcdefgh")
}

pub(crate) fn echo(id: u64, tool: &str, era: Era) -> String {
    call(id, tool, &format!(r#"{{"text":"{}"}}"#, text(id)), era)
}

pub(crate) fn blob(id: u64, tool: &str, era: Era) -> String {
    call(id, tool, &format!(r#"{{"bytes":{BLOB_BYTES}}}"#), era)
}

fn call(id: u64, tool: &str, arguments: &str, era: Era) -> String {
    let meta = meta(era);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}{meta}}}}}"#
    )
}

fn meta(era: Era) -> &'static str {
    match era {
        Era::Legacy => "",
        Era::Modern => {
            r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#
        }
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// The id and the result of an answer.
pub(crate) fn result(message: &[u8]) -> Result<(u64, &str), Failure> {
    let text = || String::from_utf8_lossy(message.get(..300).unwrap_or(message)).into_owned();
    let Ok(Answer { id: Some(id), result: Some(result) }) = serde_json::from_slice(message) else {
        return Err(format!("not an answer: {}", text()).into());
    };
    Ok((id, result.get()))
}

/// The answer of `echo` must be the text of its request.
pub(crate) fn check_echo(id: u64, result: &str) -> Result<(), Failure> {
    if result.contains(&text(id)) && !result.contains(r#""isError":true"#) {
        return Ok(());
    }
    Err(format!("a wrong answer: {}", result.get(..300).unwrap_or(result)).into())
}

pub(crate) fn check_blob(result: &str) -> Result<(), Failure> {
    if result.len() > BLOB_BYTES {
        return Ok(());
    }
    Err(format!("{} bytes for a large answer: {:.300}", result.len(), result).into())
}
