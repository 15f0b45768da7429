//! The two documents as entries that can be added, replaced and removed. What an entry says stays as
//! it was written: order of keys, large numbers, unknown fields.

use std::fmt;

use haft_bounds::json::Budget;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::store::hash;
use crate::config::{SERVERS_FILE, TOOLS_FILE};
use crate::json_text;

/// Which of the two documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// `tools.json`.
    Tools,
    /// `mcp.json`.
    Servers,
}

impl Document {
    /// The name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Tools => TOOLS_FILE,
            Self::Servers => SERVERS_FILE,
        }
    }
}

impl Document {
    /// The name inside an entry; servers have theirs outside. An entry that cannot be read is an error:
    /// it must not pass for one without a name.
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

/// A document, taken apart.
pub(super) struct Entries {
    document: Document,
    /// Servers may lie one level deeper, in a section `tools`.
    is_nested: bool,
    list: Vec<Entry>,
}

struct Entry {
    name: String,
    /// Whether it is the settings of a server's tool, which may have the name of a local one.
    is_setting: bool,
    raw: Box<RawValue>,
}

impl Entries {
    /// Takes a document apart that has at most `nodes_max` values and keys. To take apart and lay out again what has
    /// more would take several times its size.
    pub(super) fn parse(document: Document, text: &str, nodes_max: usize) -> Result<Self, String> {
        let budget = Budget::nodes(nodes_max);
        budget.check(text.as_bytes()).map_err(|excess| format!("it has {excess}"))?;
        Self::read(document, text).map_err(|error| error.to_string())
    }

    fn read(document: Document, text: &str) -> Result<Self, serde_json::Error> {
        let (list, is_nested) = match document {
            Document::Tools => {
                let ToolsRoot { tools } = serde_json::from_str(text)?;
                let entries: Result<_, _> = tools.into_iter().map(Entry::of_tool).collect();
                (entries?, false)
            }
            Document::Servers => match serde_json::from_str(text)? {
                ServersRoot { mcp_servers: Some(InOrder(servers)), .. } => (servers, false),
                ServersRoot { tools: Some(Nested { mcp_servers }), .. } => (mcp_servers.0, true),
                ServersRoot { .. } => (Vec::new(), false),
            },
        };
        Ok(Self { document, is_nested, list })
    }

    /// The document with these entries.
    pub(super) fn render(&self) -> String {
        let entry = |entry: &Entry| match self.document {
            Document::Tools => entry.raw.get().to_owned(),
            Document::Servers => entry.as_member(),
        };
        let entries = self.list.iter().map(entry).collect::<Vec<_>>().join(",");
        let text = match (self.document, self.is_nested) {
            (Document::Tools, _) => format!("{{\"tools\":[{entries}]}}"),
            (Document::Servers, false) => format!("{{\"mcp_servers\":{{{entries}}}}}"),
            (Document::Servers, true) => format!("{{\"tools\":{{\"mcp_servers\":{{{entries}}}}}}}"),
        };
        json_text::pretty(&text) + "\n"
    }

    /// What an entry says.
    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        self.find(name).map(|at| &*self.list[at].raw)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|entry| entry.name.as_str())
    }

    /// Puts an entry in the place of the one of its name, or at the end.
    pub(super) fn put(&mut self, name: &str, raw: Box<RawValue>) -> Result<(), serde_json::Error> {
        let new = match self.document {
            Document::Tools => Entry::of_tool(raw)?,
            Document::Servers => Entry { name: name.to_owned(), is_setting: false, raw },
        };
        let is_it = |entry: &Entry| entry.name == new.name && entry.is_setting == new.is_setting;
        match self.list.iter().position(is_it) {
            Some(at) => self.list[at] = new,
            None => self.list.push(new),
        }
        Ok(())
    }

    /// Takes an entry out. True if it was there.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let at = self.find(name);
        at.map(|at| self.list.remove(at)).is_some()
    }

    /// A local tool before the settings of a server's tool of the same name.
    fn find(&self, name: &str) -> Option<usize> {
        let named = || self.list.iter().enumerate().filter(|(_, entry)| entry.name == name);
        let local = named().find(|(_, entry)| !entry.is_setting);
        local.or_else(|| named().next()).map(|(at, _)| at)
    }
}

impl Entry {
    fn of_tool(raw: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let Head { name, kind } = serde_json::from_str(raw.get())?;
        Ok(Self { name, is_setting: kind.as_deref() == Some("mcp"), raw })
    }
}

impl Entry {
    /// `"name":value`.
    fn as_member(&self) -> String {
        format!("{}:{}", serde_json::Value::from(self.name.as_str()), self.raw)
    }
}

/// Names what an entry says, for whoever wants to change exactly that.
pub fn entry_tag(entry: &RawValue) -> String {
    hash(&[&json_text::compact(entry.get())])
}

/// A server's entry, left out or not; everything else in it stays as it was written.
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

// What is not known here would be lost when the document is written.
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

/// The members of an object in their order.
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
                    entries.push(Entry { name, is_setting: false, raw });
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
        let mut entries = Entries::read(Document::Tools, text).unwrap();
        entries.put("b", raw(r#"{"name":"b","z":1.10}"#)).unwrap();
        let rendered = entries.render();
        assert!(rendered.contains("\"big\": 12345678901234567890123"), "{rendered}");
        assert!(rendered.contains("\"z\": 1.10"), "{rendered}");
        let again = Entries::read(Document::Tools, &rendered).unwrap().render();
        assert_eq!(rendered, again);
    }

    #[test]
    fn a_setting_and_a_local_tool_may_share_a_name() {
        let text = r#"{"tools": [{"type":"mcp","name":"a"},{"type":"local","name":"a","x":1}]}"#;
        let mut entries = Entries::read(Document::Tools, text).unwrap();
        entries.put("a", raw(r#"{"type":"local","name":"a","x":2}"#)).unwrap();
        assert_eq!(entries.names().count(), 2);
        assert!(entries.get("a").unwrap().get().contains("\"x\":2"));
        assert!(entries.remove("a") && entries.remove("a") && !entries.remove("a"));
    }

    #[test]
    fn servers_keep_their_order_and_their_section() {
        let text = r#"{"tools": {"mcp_servers": {"b": {"command": "x"}, "a": {"url": "y"}}}}"#;
        let mut entries = Entries::read(Document::Servers, text).unwrap();
        entries.put("b", raw(r#"{"command":"z"}"#)).unwrap();
        assert_eq!(entries.names().collect::<Vec<_>>(), ["b", "a"]);
        let value: serde_json::Value = serde_json::from_str(&entries.render()).unwrap();
        assert_eq!(value["tools"]["mcp_servers"]["b"]["command"], "z");
    }
}
