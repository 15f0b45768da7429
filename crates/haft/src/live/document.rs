//! The two documents as entries that can be added, replaced and removed. The text of an entry stays
//! unmodified: key order, large numbers, unknown fields.

use std::fmt;

use haft_bounds::json::Budget;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::store::hash;
use crate::config::{SERVERS_FILE, TOOLS_FILE};
use haft_text::json_text;

/// One of the two documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryDocument {
    /// `tools.json`.
    Tools,
    /// `mcp.json`.
    Servers,
}

impl RegistryDocument {
    /// The name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Tools => TOOLS_FILE,
            Self::Servers => SERVERS_FILE,
        }
    }
}

impl RegistryDocument {
    /// The name inside an entry; servers have theirs outside. An unreadable entry is an error: it
    /// must not count as one without a name.
    pub(super) fn name_in(self, entry: &RawValue) -> Result<Option<String>, serde_json::Error> {
        match self {
            Self::Tools => {
                let Head { name, .. } = serde_json::from_str(entry.get())?;
                Ok(Some(name))
            }
            Self::Servers => Ok(None),
        }
    }
}

/// The layout of `tools.json`: what comes before the first entry, between two, and after the last.
const TOOLS_START: &str = "{\n  \"tools\": [\n    ";
const TOOLS_BETWEEN: &str = ",\n    ";
const TOOLS_END: &str = "\n  ]\n}\n";
/// The start of each line of an entry.
const TOOLS_INDENT: &str = "\n    ";

/// A parsed document.
pub(super) struct Entries {
    document: RegistryDocument,
    /// True if the text has the layout of `tools.json`. Then only new entries are laid out.
    is_laid_out: bool,
    /// Servers may lie one level deeper, in a section `tools`.
    is_nested: bool,
    list: Vec<Entry>,
}

struct Entry {
    name: String,
    /// True for the settings of a server's tool, which may share its name with a local tool.
    is_setting: bool,
    raw: Box<RawValue>,
    /// True if the entry is not in the text yet.
    is_new: bool,
}

impl Entries {
    /// Splits a document of at most `nodes_max` values and keys into entries. A larger one would
    /// take several times its size in memory.
    pub(super) fn parse(
        document: RegistryDocument,
        text: &str,
        nodes_max: usize,
    ) -> Result<Self, String> {
        let budget = Budget::nodes(nodes_max);
        budget.check(text.as_bytes()).map_err(|excess| format!("it has {excess}"))?;
        Self::read(document, text).map_err(|error| error.to_string())
    }

    fn read(document: RegistryDocument, text: &str) -> Result<Self, serde_json::Error> {
        let (list, is_nested) = match document {
            RegistryDocument::Tools => {
                let ToolsRoot { tools } = serde_json::from_str(text)?;
                let entries: Result<_, _> = tools.into_iter().map(Entry::of_tool).collect();
                (entries?, false)
            }
            RegistryDocument::Servers => match serde_json::from_str(text)? {
                ServersRoot { mcp_servers: Some(InOrder(servers)), .. } => (servers, false),
                ServersRoot { tools: Some(Nested { mcp_servers }), .. } => (mcp_servers.0, true),
                ServersRoot { .. } => (Vec::new(), false),
            },
        };
        let mut entries = Self { document, is_laid_out: false, is_nested, list };
        entries.is_laid_out = document == RegistryDocument::Tools && entries.splice() == text;
        Ok(entries)
    }

    /// Renders `tools.json`. An entry that is in the text already stays as it is there.
    fn splice(&self) -> String {
        let bytes: usize = self.list.iter().map(|entry| entry.raw.get().len() + 8).sum();
        let mut text = String::with_capacity(bytes + 64);
        for (at, entry) in self.list.iter().enumerate() {
            text.push_str(if at == 0 { TOOLS_START } else { TOOLS_BETWEEN });
            if entry.is_new {
                text.push_str(&json_text::pretty(entry.raw.get()).replace('\n', TOOLS_INDENT));
            } else {
                text.push_str(entry.raw.get());
            }
        }
        text.push_str(TOOLS_END);
        text
    }

    /// Renders the document with these entries.
    pub(super) fn render(&self) -> String {
        if self.is_laid_out && !self.list.is_empty() {
            return self.splice();
        }
        let entry = |entry: &Entry| match self.document {
            RegistryDocument::Tools => entry.raw.get().to_owned(),
            RegistryDocument::Servers => entry.as_member(),
        };
        let entries = self.list.iter().map(entry).collect::<Vec<_>>().join(",");
        let text = match (self.document, self.is_nested) {
            (RegistryDocument::Tools, _) => format!("{{\"tools\":[{entries}]}}"),
            (RegistryDocument::Servers, false) => format!("{{\"mcp_servers\":{{{entries}}}}}"),
            (RegistryDocument::Servers, true) => {
                format!("{{\"tools\":{{\"mcp_servers\":{{{entries}}}}}}}")
            }
        };
        json_text::pretty(&text) + "\n"
    }

    /// The text of an entry.
    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        self.find(name).map(|at| &*self.list[at].raw)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|entry| entry.name.as_str())
    }

    /// Replaces the entry of this name, or appends one.
    pub(super) fn put(&mut self, name: &str, raw: Box<RawValue>) -> Result<(), serde_json::Error> {
        let new = match self.document {
            RegistryDocument::Tools => Entry { is_new: true, ..Entry::of_tool(raw)? },
            RegistryDocument::Servers => {
                Entry { name: name.to_owned(), is_setting: false, raw, is_new: true }
            }
        };
        let is_it = |entry: &Entry| entry.name == new.name && entry.is_setting == new.is_setting;
        match self.list.iter().position(is_it) {
            Some(at) => self.list[at] = new,
            None => self.list.push(new),
        }
        Ok(())
    }

    /// Removes an entry. Returns true if it existed.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let at = self.find(name);
        at.map(|at| self.list.remove(at)).is_some()
    }

    /// Finds a local tool first, then the settings of a server's tool of the same name.
    fn find(&self, name: &str) -> Option<usize> {
        let named = || self.list.iter().enumerate().filter(|(_, entry)| entry.name == name);
        let local = named().find(|(_, entry)| !entry.is_setting);
        local.or_else(|| named().next()).map(|(at, _)| at)
    }
}

impl Entry {
    fn of_tool(raw: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let Head { name, kind } = serde_json::from_str(raw.get())?;
        Ok(Self { name, is_setting: kind.as_deref() == Some("mcp"), raw, is_new: false })
    }
}

impl Entry {
    /// `"name":value`.
    fn as_member(&self) -> String {
        format!("{}:{}", serde_json::Value::from(self.name.as_str()), self.raw)
    }
}

/// The tag of an entry's content, for conditional edits.
pub fn entry_tag(entry: &RawValue) -> String {
    hash(&[&json_text::compact(entry.get())])
}

/// Sets `disabled` in a server's entry; the rest stays unmodified.
pub(super) fn with_disabled(
    entry: &RawValue,
    is_disabled: bool,
) -> Result<Box<RawValue>, serde_json::Error> {
    let InOrder(members) = serde_json::from_str(entry.get())?;
    let others = members.iter().filter(|member| member.name != "disabled");
    let mut members: Vec<String> = others.map(Entry::as_member).collect();
    if is_disabled {
        members.push("\"disabled\":true".to_owned());
    }
    RawValue::from_string(format!("{{{}}}", members.join(",")))
}

// Unknown fields would be lost when the document is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsRoot {
    tools: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServersRoot {
    mcp_servers: Option<InOrder>,
    tools: Option<Nested>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nested {
    mcp_servers: InOrder,
}

/// The members of an object in order.
struct InOrder(Vec<Entry>);

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = InOrder;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("servers by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder, A::Error> {
                let mut entries = Vec::new();
                while let Some((name, raw)) = map.next_entry()? {
                    entries.push(Entry { name, is_setting: false, raw, is_new: false });
                }
                Ok(InOrder(entries))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn what_is_not_touched_stays_as_it_was_written() {
        let text =
            "{\"tools\": [{\"type\":\"local\", \"name\":\"a\", \"big\": 12345678901234567890123}]}";
        let mut entries = Entries::read(RegistryDocument::Tools, text).unwrap();
        entries.put("b", raw(r#"{"name":"b","z":1.10}"#)).unwrap();
        let rendered = entries.render();
        assert!(rendered.contains("\"big\": 12345678901234567890123"), "{rendered}");
        assert!(rendered.contains("\"z\": 1.10"), "{rendered}");
        let again = Entries::read(RegistryDocument::Tools, &rendered).unwrap().render();
        assert_eq!(rendered, again);
    }

    /// A document that Haft wrote is changed in one place, to what laying out all of it gives.
    #[test]
    fn a_change_in_one_place_gives_the_same_as_laying_out_everything() {
        let text = r#"{"tools":[{"name":"a","x":{"y":[1,{}]}},{"name":"b","z":[]},{"name":"c"}]}"#;
        let rendered = Entries::read(RegistryDocument::Tools, text).unwrap().render();
        let change = |text: &str| {
            let mut entries = Entries::read(RegistryDocument::Tools, text).unwrap();
            let is_laid_out = entries.is_laid_out;
            entries.put("b", raw(r#"{"name":"b","z":[1,{"q":"\\n"}]}"#)).unwrap();
            entries.put("d", raw(r#"{"name":"d"}"#)).unwrap();
            entries.remove("a");
            (is_laid_out, entries.render())
        };
        let (whole, in_place) = (change(text), change(&rendered));
        assert_eq!((whole.0, in_place.0), (false, true));
        assert_eq!(whole.1, in_place.1);
        let mut entries = Entries::read(RegistryDocument::Tools, &in_place.1).unwrap();
        assert!(["b", "c", "d"].into_iter().all(|name| entries.remove(name)));
        assert_eq!(entries.render(), "{\n  \"tools\": []\n}\n");
    }

    #[test]
    fn a_setting_and_a_local_tool_may_share_a_name() {
        let text = r#"{"tools": [{"type":"mcp","name":"a"},{"type":"local","name":"a","x":1}]}"#;
        let mut entries = Entries::read(RegistryDocument::Tools, text).unwrap();
        entries.put("a", raw(r#"{"type":"local","name":"a","x":2}"#)).unwrap();
        assert_eq!(entries.names().count(), 2);
        assert!(entries.get("a").unwrap().get().contains("\"x\":2"));
        assert!(entries.remove("a") && entries.remove("a") && !entries.remove("a"));
    }

    #[test]
    fn servers_keep_their_order_and_their_section() {
        let text = r#"{"tools": {"mcp_servers": {"b": {"command": "x"}, "a": {"url": "y"}}}}"#;
        let mut entries = Entries::read(RegistryDocument::Servers, text).unwrap();
        entries.put("b", raw(r#"{"command":"z"}"#)).unwrap();
        assert_eq!(entries.names().collect::<Vec<_>>(), ["b", "a"]);
        let value: serde_json::Value = serde_json::from_str(&entries.render()).unwrap();
        assert_eq!(value["tools"]["mcp_servers"]["b"]["command"], "z");
    }
}
