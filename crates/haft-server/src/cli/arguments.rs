//! A tool's arguments from the command line: JSON, `key=value`, `key:=JSON`, `@file`, `-`.

use std::collections::BTreeMap;
use std::io::Read;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::argument_types::{self, Types};
use super::{EXIT_CONFIG, Failure};

/// The arguments as they were given.
#[derive(Debug)]
pub(super) enum GivenArguments {
    /// JSON text, handed on as it is.
    Text(String),
    /// `key=value` words, which the tool's schema explains.
    Pairs(Vec<Pair>),
}

/// One `key=value` word.
#[derive(Debug)]
pub(super) struct Pair {
    key: String,
    value: PairValue,
}

#[derive(Debug)]
enum PairValue {
    /// `key=value`
    Word(String),
    /// `key=@file`: always a string.
    File(String),
    /// `key:=JSON`
    Json(Box<RawValue>),
}

/// Reads the arguments. Files and standard input are read now, so that nothing starts if they are missing.
pub(super) fn read(words: &[String]) -> anyhow::Result<GivenArguments> {
    match words {
        [] => Ok(GivenArguments::Text("{}".to_owned())),
        [word] if word == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .read_to_string(&mut text)
                .map_err(|error| refused(format!("standard input cannot be read: {error}")))?;
            Ok(GivenArguments::Text(text))
        }
        [word] if word.starts_with('@') => std::fs::read_to_string(&word[1..])
            .map(GivenArguments::Text)
            .map_err(|error| refused(format!("`{}` cannot be read: {error}", &word[1..])).into()),
        [word] if word.trim_start().starts_with('{') => Ok(GivenArguments::Text(word.clone())),
        words => {
            words.iter().map(|word| pair(word)).collect::<Result<_, _>>().map(GivenArguments::Pairs)
        }
    }
}

fn pair(word: &str) -> anyhow::Result<Pair> {
    let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
        return Err(refused(format!("`{word}` is not `key=value`")).into());
    };
    if let Some(key) = key.strip_suffix(':').filter(|key| !key.is_empty()) {
        let json = serde_json::from_str::<Box<RawValue>>(value).map_err(|error| {
            let problem = format!("`{word}` is not `key:=JSON`: {error}");
            let remedy =
                format!("quote strings, such as {key}:='\"text\"', {key}:='[1, 2]' or {key}:=true");
            Failure::new(EXIT_CONFIG, problem, remedy)
        })?;
        return Ok(Pair { key: key.to_owned(), value: PairValue::Json(json) });
    }
    let value = match value.strip_prefix('@') {
        Some(path) => PairValue::File(
            std::fs::read_to_string(path)
                .map_err(|error| refused(format!("`{path}` cannot be read: {error}")))?,
        ),
        None => PairValue::Word(value.to_owned()),
    };
    Ok(Pair { key: key.to_owned(), value })
}

impl GivenArguments {
    /// The arguments as JSON text. `schema` decides what a word means; without one, numbers, `true`, `false`, `null`,
    /// lists and objects are JSON and anything else is a string.
    pub(super) fn into_text(self, schema: Option<&Value>) -> anyhow::Result<String> {
        let pairs = match self {
            Self::Text(text) => return Ok(text),
            Self::Pairs(pairs) => pairs,
        };
        let mut members: Vec<(String, Vec<Box<RawValue>>)> = Vec::new();
        for Pair { key, value } in pairs {
            let types = Types::of_property(schema, &key);
            let values = match value {
                PairValue::Json(json) => vec![json],
                PairValue::File(text) => vec![to_raw_value(&text)?],
                PairValue::Word(word) => types.values(&word)?,
            };
            match members.iter_mut().find(|(known, _)| *known == key) {
                None => members.push((key, values)),
                Some((_, known)) if types.is_list() => known.extend(values),
                Some(_) => return Err(refused(format!("`{key}` is given twice")).into()),
            }
        }
        let mut texts = Vec::new();
        for (key, values) in members {
            let types = Types::of_property(schema, &key);
            texts.push(format!("{}:{}", to_raw_value(&key)?, types.join(&values)));
        }
        // Put together from the words as they were written: a number keeps its digits, however many.
        Ok(format!("{{{}}}", texts.join(",")))
    }
}

/// A command line that calls a tool with valid arguments.
pub(super) fn example(tool: &str, schema: &Value) -> String {
    let words = argument_types::example_words(schema);
    format!(
        "haft call {}",
        [tool.to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
    )
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
