//! The JSON Schema of the native format, as an editor uses it.

use std::path::{Path, PathBuf};

use haft::config::Config;
use haft_config::schema::Schema;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value, json};

fn schema() -> Schema {
    Schema::compile(&Config::json_schema()).unwrap()
}

/// A YAML text as an editor's language server sees it: plain values, without Haft's own reader.
fn yaml(text: &str) -> Value {
    let mut events = Parser::new_from_str(text).map(|event| event.unwrap().0);
    let content = |event: &Event<'_>| {
        matches!(event, Event::Scalar(..) | Event::MappingStart(..) | Event::SequenceStart(..))
    };
    let first = events.by_ref().find(content);
    first.map_or(json!({}), |first| node(first, &mut events))
}

fn node<'a>(event: Event<'a>, events: &mut impl Iterator<Item = Event<'a>>) -> Value {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, _, _) => {
            serde_json::from_str(&text).unwrap_or_else(|_| json!(text))
        }
        Event::Scalar(text, ..) => json!(text),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                match events.next().unwrap() {
                    Event::SequenceEnd => return Value::Array(items),
                    item => items.push(node(item, events)),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut map = Map::new();
            loop {
                match events.next().unwrap() {
                    Event::MappingEnd => return Value::Object(map),
                    key => {
                        let key = match node(key, events) {
                            Value::String(key) => key,
                            other => other.to_string(),
                        };
                        let value = events.next().unwrap();
                        map.insert(key, node(value, events));
                    }
                }
            }
        }
        other => panic!("{other:?}"),
    }
}

fn native_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(native_files(&path));
        } else if path.file_stem().is_some_and(|stem| stem == "haft") {
            found.push(path);
        }
    }
    found
}

/// Proves S3-SC-004 for editors: what Haft accepts, the schema accepts.
#[test]
fn the_schema_accepts_every_valid_native_file() {
    let schema = schema();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/good/native");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/quickstart");
    let files = [native_files(&corpus), native_files(&example)].concat();
    assert!(files.len() >= 7, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(schema.check(&yaml(&text)), Ok(()), "{}", file.display());
    }
}

/// Proves S3-SC-004 for editors: what Haft accepts in another spelling, the schema accepts too.
#[test]
fn the_schema_knows_the_other_spellings() {
    let text = "servers: {s: {transport: streamable-http, url: 'http://h/'}, t: {command: x, envFile: .env, env: {A: null, B: 1, C: true}}}";
    assert!(Config::from_yaml(&text.replace("envFile: .env, ", "")).is_ok());
    assert_eq!(schema().check(&yaml(text)), Ok(()));
}

/// Proves S3-SC-004 for editors: a typo is marked while it is typed.
#[test]
fn the_schema_rejects_typos() {
    let schema = schema();
    let texts = [
        "serverz: {}",
        "servers: {s: {comand: x}}",
        "servers: {s: {command: x, mode: lenient}}",
        "servers: {s: {command: x, transport: ftp}}",
        "servers: {s: {command: x, reconnect: {atempts: 1}}}",
        "servers: {s: {command: x, reconnect: {attempts: -1}}}",
        "servers: {s: {command: x, args: a}}",
        "servers: {s: {command: 5}}",
        "servers: [s]",
        "defaults: {max_concurrent: 0}",
        "defaults: {max_concurrent: many}",
        "defaults: {tool_timeout: [30]}",
        "tools: {name: t}",
        "tools: [{nam: t}]",
        "tools: [{name: t, approval: sometimes}]",
        "log: {retain_days: 1.5}",
        "registry: tools",
    ];
    for text in texts {
        assert!(Config::from_yaml(text).is_err(), "Haft accepts {text}");
        assert!(schema.check(&yaml(text)).is_err(), "the schema accepts {text}");
    }
}

/// Every key has a description, so that an editor can show it.
#[test]
fn every_key_of_the_schema_is_described() {
    fn walk(schema: &Value, path: &str, bare: &mut Vec<String>) {
        for (key, value) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{key}");
            if value["description"].as_str().is_none_or(str::is_empty) {
                bare.push(path.clone());
            }
            walk(value, &path, bare);
            walk(&value["additionalProperties"], &path, bare);
            walk(&value["items"], &path, bare);
        }
    }
    let mut bare = Vec::new();
    walk(&Config::json_schema(), "", &mut bare);
    assert_eq!(bare, Vec::<String>::new());
}
