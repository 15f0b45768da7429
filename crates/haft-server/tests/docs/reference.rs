//! The configuration reference, generated from the JSON Schema that `haft config schema` prints.
//!
//! `HAFT_UPDATE_DOCS=1 cargo nextest run -p haft-server --test docs reference` writes it.

use std::fmt::Write as _;

use serde_json::Value;
use testkit::{Program, Workspace};

use crate::{document, root};

const PATH: &str = "docs/configuration-reference.md";

const HEAD: &str = "\
# Configuration reference

Every key of `haft.yaml`. [Configuration](configuration.md) explains how the parts work together.

This page is generated from the JSON Schema that `haft config schema` prints. Do not edit it: change the declarations
of the configuration, then run `HAFT_UPDATE_DOCS=1 cargo nextest run -p haft-server --test docs reference`.

- **duration**: seconds (`30`), a unit (`500ms`, `30s`, `2m`) or ISO-8601 (`PT30S`).
- **size**: bytes (`1048576`) or a unit (`500MiB`, `10GiB`, `10GB`).
- `NAME` stands for a name that you choose, `[]` for the entries of a list.
";

/// The page equals what the schema generates.
#[test]
fn the_configuration_reference_is_generated_from_the_schema() {
    let schema = Program::new(env!("CARGO_BIN_EXE_haft"), &Workspace::new())
        .args(&["config", "schema"])
        .run();
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    let page = page(&schema);
    if std::env::var_os("HAFT_UPDATE_DOCS").is_some() {
        std::fs::write(root().join(PATH), &page).unwrap();
    }
    let is_current = document(PATH) == page;
    assert!(is_current, "{PATH} is out of date: run this test with HAFT_UPDATE_DOCS=1");
}

fn page(schema: &Value) -> String {
    let mut page = HEAD.to_owned();
    for (key, section) in schema["properties"].as_object().unwrap() {
        write!(page, "\n## `{key}`\n\n{}\n", text(section)).unwrap();
        let mut rows = String::new();
        below(key, section, &mut rows);
        if !rows.is_empty() {
            write!(page, "\n| Key | Value | Meaning |\n|---|---|---|\n{rows}").unwrap();
        }
    }
    page
}

/// The rows of everything inside a value.
fn below(path: &str, value: &Value, rows: &mut String) {
    if let Some(properties) = value["properties"].as_object() {
        for (key, value) in properties {
            let path = format!("{path}.{key}");
            writeln!(rows, "| `{path}` | {} | {} |", kind(value), text(value).replace('\n', " "))
                .unwrap();
            below(&path, value, rows);
        }
    }
    if value["additionalProperties"].is_object() {
        below(&format!("{path}.NAME"), &value["additionalProperties"], rows);
    }
    if value["items"].is_object() {
        below(&format!("{path}[]"), &value["items"], rows);
    }
}

/// The kind of value, in words.
fn kind(value: &Value) -> String {
    let first_example = value["examples"][0].as_str().unwrap_or_default();
    if let Some(words) = value["enum"].as_array() {
        let words: Vec<String> =
            words.iter().map(|word| format!("`{}`", word.as_str().unwrap())).collect();
        return words.join(", ");
    }
    if let Some(choices) = value["anyOf"].as_array() {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if value["items"].is_object() {
        return format!("list of {}", plural(&kind(&value["items"])));
    }
    if value["additionalProperties"].is_object() {
        return format!("map of {}", plural(&kind(&value["additionalProperties"])));
    }
    if first_example == "30s" {
        return "duration".to_owned();
    }
    if first_example.ends_with("iB") {
        return "size".to_owned();
    }
    match &value["type"] {
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        _ => "any value".to_owned(),
    }
}

fn plural(kind: &str) -> String {
    if kind.contains([' ', '`']) { kind.to_owned() } else { format!("{kind}s") }
}

fn text(value: &Value) -> String {
    value["description"].as_str().unwrap_or_default().replace('|', "\\|")
}
