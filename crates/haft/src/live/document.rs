//! The two documents as entries that can be added, replaced and removed. The text of an entry stays
//! unmodified: key order, large numbers, unknown fields.

use std::fmt;
use std::ops::Range;

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
            Self::Tools => Ok(Some(Head::of(entry)?.name)),
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
    text: String,
    /// The limit that the text was checked against.
    nodes_max: usize,
    /// True if the text has the layout of `tools.json`. Then a change writes the bytes of one entry.
    is_laid_out: bool,
    /// Servers may lie one level deeper, in a section `tools`.
    is_nested: bool,
    list: Vec<Entry>,
}

/// The entries of the last `tools.json`, which is parsed again only if its text is another.
#[derive(Default)]
pub(super) struct ParsedTools(Option<Entries>);

impl ParsedTools {
    /// The entries of `tools.json`.
    pub(super) fn of(&mut self, text: &str, nodes_max: usize) -> Result<&mut Entries, String> {
        let document = RegistryDocument::Tools;
        let known = self.0.take().filter(|known| known.is_of(document, text, nodes_max));
        let entries = match known {
            Some(known) => known,
            None => Entries::parse(document, text, nodes_max)?,
        };
        Ok(self.0.insert(entries))
    }
}

struct Entry {
    name: String,
    /// True for the settings of a server's tool, which may share its name with a local tool.
    is_setting: bool,
    /// The bytes of its value in the text.
    range: Range<usize>,
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
        Self::read(document, text.to_owned(), nodes_max).map_err(|error| error.to_string())
    }

    /// Returns true if parsing this document again would give the same entries.
    pub(super) fn is_of(&self, document: RegistryDocument, text: &str, nodes_max: usize) -> bool {
        (self.document, self.nodes_max) == (document, nodes_max) && self.text == text
    }

    fn read(
        document: RegistryDocument,
        text: String,
        nodes_max: usize,
    ) -> Result<Self, serde_json::Error> {
        let (list, is_nested) = match document {
            RegistryDocument::Tools => {
                let ToolsRoot { tools } = serde_json::from_str(&text)?;
                let entries: Result<_, _> =
                    tools.into_iter().map(|raw| Entry::of_tool(raw, &text)).collect();
                (entries?, false)
            }
            RegistryDocument::Servers => {
                let (servers, is_nested) = match serde_json::from_str(&text)? {
                    ServersRoot { mcp_servers: Some(InOrder(servers)), .. } => (servers, false),
                    ServersRoot { tools: Some(Nested { mcp_servers }), .. } => {
                        (mcp_servers.0, true)
                    }
                    ServersRoot { .. } => (Vec::new(), false),
                };
                let entry =
                    |(name, raw)| Entry { name, is_setting: false, range: range(raw, &text) };
                (servers.into_iter().map(entry).collect(), is_nested)
            }
        };
        let mut entries = Self { document, text, nodes_max, is_laid_out: false, is_nested, list };
        entries.is_laid_out = entries.has_layout();
        Ok(entries)
    }

    /// Returns true for the layout of `tools.json`, with at least one entry.
    fn has_layout(&self) -> bool {
        let mut rest = self.text.as_str();
        let mut at = 0;
        for entry in &self.list {
            let before = if at == 0 { TOOLS_START } else { TOOLS_BETWEEN };
            if at + before.len() != entry.range.start || !rest.starts_with(before) {
                return false;
            }
            (at, rest) = (entry.range.end, &self.text[entry.range.end..]);
        }
        self.document == RegistryDocument::Tools && !self.list.is_empty() && rest == TOOLS_END
    }

    /// The text of the document.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text of an entry.
    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        let entry = &self.list[self.find(name)?];
        // The text is valid JSON, and the range that of a value.
        serde_json::from_str(&self.text[entry.range.clone()]).ok()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|entry| entry.name.as_str())
    }

    /// Replaces the entry of this name, or appends one.
    pub(super) fn put(&mut self, name: &str, raw: &RawValue) -> Result<(), serde_json::Error> {
        let (name, is_setting) = match self.document {
            RegistryDocument::Tools => {
                let head = Head::of(raw)?;
                (head.name.clone(), head.is_setting())
            }
            RegistryDocument::Servers => (name.to_owned(), false),
        };
        let is_it = |entry: &Entry| entry.name == name && entry.is_setting == is_setting;
        let at = self.list.iter().position(is_it);
        if !self.is_laid_out {
            let mut members = self.members();
            match at {
                Some(at) => members[at].1 = raw.get(),
                None => members.push((&name, raw.get())),
            }
            let text = self.render(&members);
            return self.replace(text);
        }
        let text = json_text::pretty(raw.get()).replace('\n', TOOLS_INDENT);
        let bytes = text.len();
        if let Some(at) = at {
            let range = self.list[at].range.clone();
            self.splice(range.clone(), &text);
            self.list[at].range = range.start..range.start + bytes;
        } else {
            let end = self.text.len() - TOOLS_END.len();
            self.splice(end..end, &format!("{TOOLS_BETWEEN}{text}"));
            let start = end + TOOLS_BETWEEN.len();
            self.list.push(Entry { name, is_setting, range: start..start + bytes });
        }
        Ok(())
    }

    /// Removes an entry. Returns true if it existed.
    pub(super) fn remove(&mut self, name: &str) -> Result<bool, serde_json::Error> {
        let Some(at) = self.find(name) else { return Ok(false) };
        if !self.is_laid_out || self.list.len() == 1 {
            let mut members = self.members();
            members.remove(at);
            let text = self.render(&members);
            return self.replace(text).map(|()| true);
        }
        let range = match self.list.get(at + 1) {
            Some(next) => self.list[at].range.start..next.range.start,
            None => self.list[at - 1].range.end..self.list[at].range.end,
        };
        self.list.remove(at);
        self.splice(range, "");
        Ok(true)
    }

    /// Replaces bytes of the text, and moves the entries behind them.
    fn splice(&mut self, range: Range<usize>, text: &str) {
        self.text.replace_range(range.clone(), text);
        let moved = |at: usize| at - range.len() + text.len();
        for Entry { range: entry, .. } in &mut self.list {
            if entry.start >= range.end {
                *entry = moved(entry.start)..moved(entry.end);
            }
        }
    }

    /// The name and the text of each entry.
    fn members(&self) -> Vec<(&str, &str)> {
        let texts = self.list.iter().map(|entry| &self.text[entry.range.clone()]);
        self.names().zip(texts).collect()
    }

    /// The whole document with these entries.
    fn render(&self, members: &[(&str, &str)]) -> String {
        let entry = |(name, text): &(&str, &str)| match self.document {
            RegistryDocument::Tools => (*text).to_owned(),
            RegistryDocument::Servers => as_member(name, text),
        };
        let entries = members.iter().map(entry).collect::<Vec<_>>().join(",");
        let text = match (self.document, self.is_nested) {
            (RegistryDocument::Tools, _) => format!("{{\"tools\":[{entries}]}}"),
            (RegistryDocument::Servers, false) => format!("{{\"mcp_servers\":{{{entries}}}}}"),
            (RegistryDocument::Servers, true) => {
                format!("{{\"tools\":{{\"mcp_servers\":{{{entries}}}}}}}")
            }
        };
        json_text::pretty(&text) + "\n"
    }

    fn replace(&mut self, text: String) -> Result<(), serde_json::Error> {
        *self = Self::read(self.document, text, self.nodes_max)?;
        Ok(())
    }

    /// Finds a local tool first, then the settings of a server's tool of the same name.
    fn find(&self, name: &str) -> Option<usize> {
        let named = || self.list.iter().enumerate().filter(|(_, entry)| entry.name == name);
        let local = named().find(|(_, entry)| !entry.is_setting);
        local.or_else(|| named().next()).map(|(at, _)| at)
    }
}

impl Entry {
    fn of_tool(raw: &RawValue, text: &str) -> Result<Self, serde_json::Error> {
        let head = Head::of(raw)?;
        let is_setting = head.is_setting();
        Ok(Self { name: head.name, is_setting, range: range(raw, text) })
    }
}

/// The bytes of a value in the text that it borrows from.
fn range(raw: &RawValue, text: &str) -> Range<usize> {
    let start = raw.get().as_ptr().addr() - text.as_ptr().addr();
    start..start + raw.get().len()
}

/// `"name":value`.
fn as_member(name: &str, value: &str) -> String {
    format!("{}:{value}", serde_json::Value::from(name))
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
    let others = members.iter().filter(|(name, _)| name != "disabled");
    let mut members: Vec<String> =
        others.map(|(name, value)| as_member(name, value.get())).collect();
    if is_disabled {
        members.push("\"disabled\":true".to_owned());
    }
    RawValue::from_string(format!("{{{}}}", members.join(",")))
}

// Unknown fields would be lost when the document is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsRoot<'t> {
    #[serde(borrow)]
    tools: Vec<&'t RawValue>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl Head {
    fn of(entry: &RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(entry.get())
    }

    fn is_setting(&self) -> bool {
        self.kind.as_deref() == Some("mcp")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServersRoot<'t> {
    #[serde(borrow)]
    mcp_servers: Option<InOrder<'t>>,
    #[serde(borrow)]
    tools: Option<Nested<'t>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nested<'t> {
    #[serde(borrow)]
    mcp_servers: InOrder<'t>,
}

/// The members of an object in order.
struct InOrder<'t>(Vec<(String, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for InOrder<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = InOrder<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("servers by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
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

    fn read(document: RegistryDocument, text: &str) -> Entries {
        Entries::read(document, text.to_owned(), 1000).unwrap()
    }

    #[test]
    fn what_is_not_touched_stays_as_it_was_written() {
        let text =
            "{\"tools\": [{\"type\":\"local\", \"name\":\"a\", \"big\": 12345678901234567890123}]}";
        let mut entries = read(RegistryDocument::Tools, text);
        entries.put("b", &raw(r#"{"name":"b","z":1.10}"#)).unwrap();
        let rendered = entries.text().to_owned();
        assert!(rendered.contains("\"big\": 12345678901234567890123"), "{rendered}");
        assert!(rendered.contains("\"z\": 1.10"), "{rendered}");
        entries.put("b", &raw(r#"{"name":"b","z":1.10}"#)).unwrap();
        assert_eq!(rendered, entries.text());
    }

    /// A document that Haft wrote is changed in one place, to what laying out all of it gives.
    #[test]
    fn a_change_in_one_place_gives_the_same_as_laying_out_everything() {
        let text = r#"{"tools":[{"name":"a","x":{"y":[1,{}]}},{"name":"b","z":[]},{"name":"c"}]}"#;
        let mut entries = read(RegistryDocument::Tools, text);
        entries.put("c", &raw(r#"{"name":"c"}"#)).unwrap();
        let rendered = entries.text().to_owned();
        let change = |text: &str| {
            let mut entries = read(RegistryDocument::Tools, text);
            let is_laid_out = entries.is_laid_out;
            entries.put("b", &raw(r#"{"name":"b","z":[1,{"q":"\\n"}]}"#)).unwrap();
            entries.put("d", &raw(r#"{"name":"d"}"#)).unwrap();
            entries.remove("a").unwrap();
            // The entries that were moved are those of the text.
            let again = read(RegistryDocument::Tools, entries.text());
            let members = |entries: &Entries| format!("{:?}", entries.members());
            assert_eq!(members(&entries), members(&again));
            (is_laid_out, entries.text().to_owned())
        };
        let (whole, in_place) = (change(text), change(&rendered));
        assert_eq!((whole.0, in_place.0), (false, true));
        assert_eq!(whole.1, in_place.1);
        let mut entries = read(RegistryDocument::Tools, &in_place.1);
        assert!(["b", "c", "d"].into_iter().all(|name| entries.remove(name).unwrap()));
        assert_eq!(entries.text(), "{\n  \"tools\": []\n}\n");
    }

    #[test]
    fn a_setting_and_a_local_tool_may_share_a_name() {
        let text = r#"{"tools": [{"type":"mcp","name":"a"},{"type":"local","name":"a","x":1}]}"#;
        let mut entries = read(RegistryDocument::Tools, text);
        entries.put("a", &raw(r#"{"type":"local","name":"a","x":2}"#)).unwrap();
        assert_eq!(entries.names().count(), 2);
        assert!(entries.get("a").unwrap().get().contains("\"x\": 2"));
        let removed = [(); 3].map(|()| entries.remove("a").unwrap());
        assert_eq!(removed, [true, true, false]);
    }

    #[test]
    fn servers_keep_their_order_and_their_section() {
        let text = r#"{"tools": {"mcp_servers": {"b": {"command": "x"}, "a": {"url": "y"}}}}"#;
        let mut entries = read(RegistryDocument::Servers, text);
        entries.put("b", &raw(r#"{"command":"z"}"#)).unwrap();
        assert_eq!(entries.names().collect::<Vec<_>>(), ["b", "a"]);
        let value: serde_json::Value = serde_json::from_str(entries.text()).unwrap();
        assert_eq!(value["tools"]["mcp_servers"]["b"]["command"], "z");
    }
}
