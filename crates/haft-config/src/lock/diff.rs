//! The difference between what was approved and what a server offers now.

use std::collections::BTreeSet;

use haft_text::lookalike::odd_characters;
use haft_text::printable;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::change::{Change, ChangeKind};
use super::instruction_like::{hidden, phrase, strings};
use super::schema_diff::schema_diff;
use super::{Definition, LockedKind, LockedServer};

/// An item that differs from the lock file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// The server.
    pub server: String,
    /// The kind of the item.
    pub kind: LockedKind,
    /// Its name, or its URI template; empty for the server itself and its instructions.
    pub name: String,
    /// The difference as a whole.
    pub state: DriftState,
    /// The approved name of a renamed item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// The hash of the approved definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<String>,
    /// The hash of the current definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The single changes.
    pub changes: Vec<Change>,
}

impl Drift {
    /// The item as a person names it: `server`, `server/tool` or such as `server (instructions)`.
    pub fn title(&self) -> String {
        let (server, name) = (printable(&self.server), printable(&self.name));
        match self.kind {
            LockedKind::Server => server.into_owned(),
            LockedKind::Instructions => format!("{server} (instructions)"),
            LockedKind::Tool => format!("{server}/{name}"),
            LockedKind::Prompt | LockedKind::ResourceTemplate => {
                format!("{server}/{name} ({})", self.kind)
            }
        }
    }

    /// The difference as a whole, in a few words.
    pub fn summary(&self) -> String {
        match (self.state, &self.renamed_from) {
            (DriftState::Renamed, Some(from)) => format!("renamed from {}", printable(from)),
            (state, _) => state.word().to_owned(),
        }
    }

    /// Returns true if the item must be approved before it is used.
    pub fn is_blocking(&self) -> bool {
        match (self.kind, self.state) {
            (LockedKind::Server, _) | (_, DriftState::Removed) => false,
            (_, DriftState::Changed | DriftState::New | DriftState::Renamed) => true,
        }
    }
}

/// The difference of an item from the lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriftState {
    /// Its definition differs.
    Changed,
    /// It was not approved.
    New,
    /// It was approved, and the server no longer has it.
    Removed,
    /// It has the definition of an approved item that is gone, under another name.
    Renamed,
}

impl DriftState {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::New => "new",
            Self::Removed => "removed",
            Self::Renamed => "renamed",
        }
    }
}

/// Compares the approved state of a server with the current one.
pub fn compare(name: &str, approved: &LockedServer, current: &LockedServer) -> Vec<Drift> {
    let mut drifts = Vec::new();
    let facts = facts(approved, current);
    if !facts.is_empty() {
        drifts.push(Drift {
            server: name.to_owned(),
            kind: LockedKind::Server,
            name: String::new(),
            state: DriftState::Changed,
            renamed_from: None,
            approved: None,
            current: None,
            changes: facts,
        });
    }
    let mut renamed = BTreeSet::new();
    for (kind, item, new) in current.items() {
        let old = approved.item(kind, item);
        if old.is_some_and(|old| old.hash() == new.hash()) {
            continue;
        }
        let former = match old {
            Some(_) => None,
            None => former(kind, new, approved, current),
        };
        renamed.extend(former.map(|(from, _)| (kind, from)));
        let before = old.or(former.map(|(_, definition)| definition));
        drifts.push(Drift {
            server: name.to_owned(),
            kind,
            name: item.to_owned(),
            state: match (old, former) {
                (Some(_), _) => DriftState::Changed,
                (None, Some(_)) => DriftState::Renamed,
                (None, None) => DriftState::New,
            },
            renamed_from: former.map(|(from, _)| from.to_owned()),
            approved: before.map(|before| before.hash().to_owned()),
            current: Some(new.hash().to_owned()),
            changes: changes(kind, item, before, new),
        });
    }
    for (kind, item, old) in approved.items() {
        if current.item(kind, item).is_none() && !renamed.contains(&(kind, item)) {
            drifts.push(Drift {
                server: name.to_owned(),
                kind,
                name: item.to_owned(),
                state: DriftState::Removed,
                renamed_from: None,
                approved: Some(old.hash().to_owned()),
                current: None,
                changes: Vec::new(),
            });
        }
    }
    drifts.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    drifts
}

/// An approved item that is gone and has the same schemas as a new one.
fn former<'a>(
    kind: LockedKind,
    new: &Definition,
    approved: &'a LockedServer,
    current: &LockedServer,
) -> Option<(&'a str, &'a Definition)> {
    let schemas = |it: &Definition| {
        ["inputSchema", "outputSchema", "arguments", "mimeType"]
            .map(|key| it.fields().get(key).cloned())
    };
    let says_something = |it: &Definition| schemas(it).iter().any(Option::is_some);
    let is_gone = |(of, name, _): &(LockedKind, &str, &Definition)| {
        *of == kind && current.item(kind, name).is_none()
    };
    let mut gone = approved.items().filter(is_gone);
    let found = gone.find(|(_, _, old)| says_something(old) && schemas(old) == schemas(new));
    found.map(|(_, name, old)| (name, old))
}

fn facts(approved: &LockedServer, current: &LockedServer) -> Vec<Change> {
    let pairs = approved.facts.entries().into_iter().zip(current.facts.entries());
    let changed = pairs.filter(|((_, before), (_, after))| before != after);
    changed
        .map(|((key, before), (_, after))| {
            let value = |fact: Option<&String>| fact.map(|fact| json!(fact));
            let (before, after) = (value(before), value(after));
            Change::between(ChangeKind::FactChanged, key, before.as_ref(), after.as_ref())
        })
        .collect()
}

fn changes(
    kind: LockedKind,
    name: &str,
    before: Option<&Definition>,
    after: &Definition,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let nothing = Map::new();
    let (old, new) = (before.map_or(&nothing, Definition::fields), after.fields());
    if before.is_some() {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys.into_iter().filter(|key| old.get(*key) != new.get(*key)) {
            field(key, old.get(key), new.get(key), &mut changes);
        }
    } else {
        introduce(new, &mut changes);
    }
    suspicious(kind, name, old, new, &mut changes);
    changes
}

/// The text and the parameters of a new item.
fn introduce(new: &Map<String, Value>, changes: &mut Vec<Change>) {
    for key in ["description", "text"] {
        if let Some(text) = new.get(key) {
            changes.push(Change::text(label(key), None, Some(text)));
        }
    }
    let arguments = new.get("arguments").and_then(Value::as_array).map(|it| as_schema(it));
    let Some(schema) = new.get("inputSchema").or(arguments.as_ref()) else { return };
    let mut parameters = Vec::new();
    schema_diff("", &json!({}), schema, 0, &mut parameters);
    changes.extend(parameters.into_iter().filter(|it| {
        matches!(it.kind, ChangeKind::ParameterAdded | ChangeKind::RequiredParameterAdded)
    }));
}

/// The name of a field for people.
fn label(field: &str) -> &str {
    if field == "text" { "instructions" } else { field }
}

fn field(key: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    let null = Value::Null;
    match (key, before, after) {
        ("description" | "title" | "text", ..) => {
            changes.push(Change::text(label(key), before, after));
        }
        ("inputSchema", ..) => {
            schema_diff("", before.unwrap_or(&null), after.unwrap_or(&null), 0, changes);
        }
        ("outputSchema", Some(before), Some(after)) => {
            schema_diff("(output)", before, after, 0, changes);
        }
        ("annotations", Some(Value::Object(before)), Some(Value::Object(after))) => {
            let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for key in keys.into_iter().filter(|key| before.get(*key) != after.get(*key)) {
                let (before, after) = (before.get(key), after.get(key));
                changes.push(Change::between(ChangeKind::AnnotationChanged, key, before, after));
            }
        }
        ("arguments", Some(Value::Array(before)), Some(Value::Array(after))) => {
            schema_diff("", &as_schema(before), &as_schema(after), 0, changes);
        }
        (key, before, after) => {
            changes.push(Change::between(ChangeKind::FieldChanged, key, before, after));
        }
    }
}

/// The arguments of a prompt as the schema that they describe.
fn as_schema(arguments: &[Value]) -> Value {
    let name = |it: &Value| it.get("name").and_then(Value::as_str).map(ToOwned::to_owned);
    let is_required = |it: &&Value| it.get("required") == Some(&Value::Bool(true));
    let required: Vec<String> = arguments.iter().filter(is_required).filter_map(name).collect();
    let schema = |it: &Value| {
        let mut fields = it.as_object().cloned().unwrap_or_default();
        fields.retain(|key, _| key != "name" && key != "required");
        Value::Object(fields)
    };
    let properties: Map<String, Value> =
        arguments.iter().filter_map(|it| Some((name(it)?, schema(it)))).collect();
    json!({ "properties": properties, "required": required })
}

/// Reports strings that are not in the approved definition and hide something or address the model.
fn suspicious(
    kind: LockedKind,
    name: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    changes: &mut Vec<Change>,
) {
    let collect = |fields: &Map<String, Value>| {
        let mut found = Vec::new();
        for (key, value) in fields {
            let mut inside = Vec::new();
            strings(value, label(key), &mut inside);
            found.extend(inside.into_iter().map(|(path, text)| (path, text.to_owned())));
        }
        found
    };
    let known: BTreeSet<String> = collect(old).into_iter().map(|(_, text)| text).collect();
    let known_hidden: BTreeSet<String> = known.iter().flat_map(|text| hidden(text)).collect();
    let known_phrases: BTreeSet<&str> = known.iter().filter_map(|text| phrase(text)).collect();
    for (path, text) in collect(new).into_iter().filter(|(_, text)| !known.contains(text)) {
        let characters: Vec<String> = hidden(&text).difference(&known_hidden).cloned().collect();
        if !characters.is_empty() {
            let after = json!(characters);
            let kind = ChangeKind::HiddenCharacters;
            changes.push(Change::between(kind, &path, None, Some(&after)));
        }
        if let Some(phrase) = phrase(&text).filter(|phrase| !known_phrases.contains(phrase)) {
            let kind = ChangeKind::InstructionLikeText;
            changes.push(Change::between(kind, &path, None, Some(&json!(phrase))));
        }
    }
    if old.is_empty()
        && kind != LockedKind::Instructions
        && let Some(odd) = odd_characters(name)
    {
        let after = json!([odd]);
        changes.push(Change::between(ChangeKind::HiddenCharacters, "name", None, Some(&after)));
    }
}
