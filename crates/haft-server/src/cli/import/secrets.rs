//! Values that look like secrets and stand in a file as they are.

use haft::record::Redactor;
use serde_json::{Map, Value, json};

/// Such a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Literal {
    /// Where it stands.
    pub(super) path: String,
    /// The replacement.
    pub(super) instead: String,
}

/// Literals that the log would redact.
pub(super) fn find(servers: &Map<String, Value>) -> Vec<Literal> {
    let redactor = Redactor::new([]);
    let hides = |key: &str, value: &str| {
        let pair = json!({key: value}).to_string();
        !value.contains("${") && redactor.json(&pair) != pair
    };
    let mut found = Vec::new();
    for (name, server) in servers {
        for section in ["env", "headers"] {
            for (key, value) in server[section].as_object().into_iter().flatten() {
                let Some(value) = value.as_str().filter(|value| hides(key, value)) else {
                    continue;
                };
                let path = format!("servers.{name}.{section}.{key}");
                let instead = match (section, value.split_once(' ')) {
                    ("env", _) => format!("${{{key}}}"),
                    (_, Some((scheme, _))) => format!("{scheme} ${{{}}}", variable(name)),
                    (_, None) => format!("${{{}}}", variable(name)),
                };
                found.push(Literal { path, instead });
            }
        }
        let words: Vec<&str> =
            server["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1).map_or("", |at| words[at]);
            let option = before.starts_with('-').then(|| before.trim_start_matches('-'));
            let is_secret = match word.split_once('=') {
                Some((option, value)) => hides(option.trim_start_matches('-'), value),
                None => hides(option.unwrap_or("word"), word),
            };
            if is_secret {
                let instead = match word.split_once('=') {
                    Some((option, _)) => format!("{option}=${{{}}}", variable(name)),
                    None => format!("${{{}}}", variable(name)),
                };
                found.push(Literal { path: format!("servers.{name}.args[{at}]"), instead });
            }
        }
        if server["url"].as_str().is_some_and(|url| hides("word", url)) {
            found.push(Literal {
                path: format!("servers.{name}.url"),
                instead: format!("${{{}}}", variable(name)),
            });
        }
    }
    found
}

/// `GITHUB_TOKEN` for the server `github`.
fn variable(server: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{}_TOKEN", server.chars().map(plain).collect::<String>())
}
