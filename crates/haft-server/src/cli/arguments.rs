//! A tool's arguments from the command line: JSON, `key=value`, `@file`, `-`.

use std::io::Read;

use serde_json::{Map, Value};

use super::{EXIT_CONFIG, Failure};

/// The arguments as JSON text. Text that is JSON already is handed on as it is.
pub(super) fn read(words: &[String]) -> anyhow::Result<String> {
    match words {
        [] => Ok("{}".to_owned()),
        [word] if word == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .read_to_string(&mut text)
                .map_err(|error| refused(format!("standard input cannot be read: {error}")))?;
            Ok(text)
        }
        [word] if word.starts_with('@') => std::fs::read_to_string(&word[1..])
            .map_err(|error| refused(format!("`{}` cannot be read: {error}", &word[1..])).into()),
        [word] if word.trim_start().starts_with('{') => Ok(word.clone()),
        words => pairs(words),
    }
}

fn pairs(words: &[String]) -> anyhow::Result<String> {
    let mut map = Map::new();
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(refused(format!("`{word}` is not `key=value`")).into());
        };
        let value = match value.strip_prefix('@') {
            Some(path) => Value::String(
                std::fs::read_to_string(path)
                    .map_err(|error| refused(format!("`{path}` cannot be read: {error}")))?,
            ),
            None => serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned())),
        };
        if map.insert(key.to_owned(), value).is_some() {
            return Err(refused(format!("`{key}` is given twice")).into());
        }
    }
    Ok(Value::Object(map).to_string())
}

fn refused(problem: String) -> Failure {
    Failure::new(
        EXIT_CONFIG,
        problem,
        "give the arguments as one JSON object, as key=value words, as @FILE, or as - for standard input",
    )
}
