//! Tools, prompts, resources and templates: what the lists show, page by page.

use serde_json::{Map, Value, json};

use crate::scenario::{Entries, Pages, Scenario, Tool, Tools};
use crate::tools::catalogue;

/// A tool: what `tools/list` shows and what a call does.
#[derive(Debug, Clone)]
pub struct ToolEntry {
    /// The entry in the list, verbatim.
    pub shown: Map<String, Value>,
    /// The built-in tool that runs.
    pub behaves: String,
    /// A fixed result instead.
    pub result: Option<Value>,
}

impl ToolEntry {
    /// A tool with this name that behaves like `echo`.
    pub fn named(name: &str) -> Self {
        let shown = json!({
            "name": name,
            "description": format!("The tool {name}."),
            "inputSchema": { "type": "object" },
        });
        Self { shown: object(shown), behaves: "echo".to_owned(), result: None }
    }
}

/// The tools of a scenario: the built-in ones by default.
pub fn tools(scenario: &Scenario) -> Vec<ToolEntry> {
    match &scenario.tools {
        None => catalogue::all(),
        Some(Tools::Count(count)) => {
            (1..=*count).map(|n| ToolEntry::named(&format!("tool_{n:04}"))).collect()
        }
        Some(Tools::List(list)) => list.iter().map(tool).collect(),
    }
}

fn tool(tool: &Tool) -> ToolEntry {
    match tool {
        Tool::BuiltIn(name) => {
            catalogue::one(name).unwrap_or_else(|| panic!("no built-in tool is called `{name}`"))
        }
        Tool::Own(shown) => {
            let mut shown = shown.clone();
            let behaves = shown.shift_remove("behaves");
            let behaves = behaves.as_ref().and_then(Value::as_str).unwrap_or("echo").to_owned();
            let result = shown.shift_remove("result");
            ToolEntry { shown, behaves, result }
        }
    }
}

/// The prompts of a scenario.
pub fn prompts(scenario: &Scenario) -> Vec<Map<String, Value>> {
    match &scenario.prompts {
        None => vec![
            object(json!({
                "name": "greeting",
                "description": "Greets a person.",
                "arguments": [{ "name": "name", "description": "Who.", "required": true }],
            })),
            object(json!({ "name": "plain", "description": "Has no arguments." })),
        ],
        Some(Entries::Count(count)) => {
            (1..=*count).map(|n| object(json!({ "name": format!("prompt_{n:04}") }))).collect()
        }
        Some(Entries::List(list)) => list.clone(),
    }
}

/// The resources of a scenario, each with its content.
pub fn resources(scenario: &Scenario) -> Vec<Map<String, Value>> {
    scenario.resources.clone().unwrap_or_else(|| {
        vec![
            object(json!({ "uri": "test://static-text", "name": "static-text",
                "mimeType": "text/plain", "text": "This is a text resource." })),
            object(json!({ "uri": "test://static-binary", "name": "static-binary",
                "mimeType": "application/octet-stream", "blob": "AAEC/w==" })),
        ]
    })
}

/// The resource templates of a scenario.
pub fn templates(scenario: &Scenario) -> Vec<Map<String, Value>> {
    scenario.templates.clone().unwrap_or_else(|| {
        vec![object(json!({ "uriTemplate": "test://template/{id}/data", "name": "template",
            "mimeType": "text/plain" }))]
    })
}

/// One page of a list under `key`, or nothing where the cursor is unknown.
pub fn page(
    scenario: &Scenario,
    key: &str,
    all: Vec<Map<String, Value>>,
    cursor: Option<&str>,
) -> Option<Value> {
    let size = scenario.page_size.unwrap_or(usize::MAX).max(1);
    let from = match (scenario.pages, cursor) {
        (Pages::Normal | Pages::EmptyCursor, Some("")) => {
            (scenario.pages == Pages::EmptyCursor).then_some(size)?
        }
        (Pages::Normal | Pages::EmptyCursor, Some(cursor)) => cursor.parse().ok()?,
        (Pages::EndlessSame | Pages::EndlessEmpty | Pages::EndlessNew, _) | (_, None) => 0,
    };
    let next = from.saturating_add(size);
    let next = match scenario.pages {
        Pages::Normal => (next < all.len()).then(|| next.to_string()),
        Pages::EmptyCursor if from == 0 => (next < all.len()).then(String::new),
        Pages::EmptyCursor => (next < all.len()).then(|| next.to_string()),
        Pages::EndlessSame => Some("again".to_owned()),
        Pages::EndlessEmpty => Some(String::new()),
        Pages::EndlessNew => Some(page_number(cursor).saturating_add(1).to_string()),
    };
    let mut entries: Vec<_> = all.into_iter().skip(from).take(size).collect();
    if scenario.pages == Pages::EndlessNew && cursor.is_some() {
        for name in entries.iter_mut().filter_map(|entry| entry.get_mut("name")) {
            let known = name.as_str().unwrap_or_default();
            *name = json!(format!("{known}_{}", page_number(cursor)));
        }
    }
    let mut page = json!({ key: entries });
    if let Some(next) = next {
        page["nextCursor"] = json!(next);
    }
    Some(page)
}

fn page_number(cursor: Option<&str>) -> u64 {
    cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0)
}

/// The object in a value that is one.
pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}
