//! A tool's arguments from the command line: JSON, `key=value`, `@file`, `-`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use serde_json::value::{RawValue, to_raw_value};

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

/// The object's text is put together from the words as they were written: a number keeps its
/// digits, however many.
fn pairs(words: &[String]) -> anyhow::Result<String> {
    let mut members: Vec<String> = Vec::new();
    let mut keys = BTreeSet::new();
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(refused(format!("`{word}` is not `key=value`")).into());
        };
        let value = match value.strip_prefix('@') {
            Some(path) => to_raw_value(
                &std::fs::read_to_string(path)
                    .map_err(|error| refused(format!("`{path}` cannot be read: {error}")))?,
            )?,
            None => match serde_json::from_str::<Box<RawValue>>(value) {
                Ok(json) => json,
                Err(_) => to_raw_value(value)?,
            },
        };
        if !keys.insert(key) {
            return Err(refused(format!("`{key}` is given twice")).into());
        }
        members.push(format!("{}:{}", to_raw_value(key)?, value));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

/// Arguments that are always strings, as prompts take them.
pub(super) fn texts(words: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    let refuse = |problem: String| {
        Failure::new(EXIT_CONFIG, problem, "give each argument as KEY=VALUE or KEY=@FILE, once")
    };
    let mut texts = BTreeMap::new();
    for word in words {
        let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(refuse(format!("`{word}` is not `key=value`")).into());
        };
        let value = match value.strip_prefix('@') {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| refuse(format!("`{path}` cannot be read: {error}")))?,
            None => value.to_owned(),
        };
        if texts.insert(key.to_owned(), value).is_some() {
            return Err(refuse(format!("`{key}` is given twice")).into());
        }
    }
    Ok(texts)
}

fn refused(problem: String) -> Failure {
    Failure::new(
        EXIT_CONFIG,
        problem,
        "give the arguments as one JSON object, as key=value words, as @FILE, or as - for standard input",
    )
}
