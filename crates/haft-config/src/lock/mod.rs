//! The lock file: the definitions of servers that the operator approved, in a file made for review.
//!
//! Everything here but [`store`] is pure: text in, text or differences out.

mod canonical;
mod change;
mod diff;
mod instruction_like;
mod package;
mod parse;
mod render;
mod schema_diff;
pub mod store;
mod values;
mod word_diff;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::remedy::Remedy;

pub use canonical::hash;
pub use change::{Change, ChangeKind};
pub use diff::{Drift, DriftState, compare};
pub use package::Package;
pub use parse::parse;
pub use render::render;
pub use word_diff::{WordEdit, WordOp};

/// The name of the lock file, beside the configuration.
pub const LOCK_FILE: &str = "haft.lock";
/// The version of the format that this program reads and writes.
pub const LOCK_VERSION: i64 = 1;

/// The approved definitions, by server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lock {
    /// The locked servers.
    pub servers: BTreeMap<String, LockedServer>,
}

/// The approved definitions of one server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LockedServer {
    /// Facts about the server itself. They are reported if they change, and block nothing.
    pub facts: ServerFacts,
    /// Its instructions for models, under `text`.
    pub instructions: Option<Definition>,
    /// Its tools, by name.
    pub tools: BTreeMap<String, Definition>,
    /// Its prompts, by name.
    pub prompts: BTreeMap<String, Definition>,
    /// Its resource templates, by URI template.
    pub templates: BTreeMap<String, Definition>,
}

/// Facts about a server: what it reports about itself, and how it is started or reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// The name that it reports.
    pub name: Option<String>,
    /// The version that it reports.
    pub version: Option<String>,
    /// The version of the protocol.
    pub protocol: Option<String>,
    /// The command line of a local server, without secrets.
    pub command: Option<String>,
    /// The address of a remote server, without secrets.
    pub url: Option<String>,
    /// The pinned package that the command line runs, such as `mcp-server-time==2026.10.19`.
    pub package: Option<String>,
}

impl ServerFacts {
    /// The facts in the order of the file.
    pub(crate) fn entries(&self) -> [(&'static str, Option<&String>); 6] {
        let Self { name, version, protocol, command, url, package } = self;
        [
            ("name", name.as_ref()),
            ("version", version.as_ref()),
            ("protocol", protocol.as_ref()),
            ("command", command.as_ref()),
            ("url", url.as_ref()),
            ("package", package.as_ref()),
        ]
    }

    pub(crate) fn set(&mut self, key: &str, value: String) -> bool {
        let field = match key {
            "name" => &mut self.name,
            "version" => &mut self.version,
            "protocol" => &mut self.protocol,
            "command" => &mut self.command,
            "url" => &mut self.url,
            "package" => &mut self.package,
            _ => return false,
        };
        *field = Some(value);
        true
    }
}

/// The kinds of locked items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockedKind {
    /// The facts about a server.
    Server,
    /// The instructions of a server.
    Instructions,
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource template.
    ResourceTemplate,
}

impl LockedKind {
    /// The field of a definition that names it.
    fn name_field(self) -> Option<&'static str> {
        match self {
            Self::Tool | Self::Prompt => Some("name"),
            Self::ResourceTemplate => Some("uriTemplate"),
            Self::Server | Self::Instructions => None,
        }
    }

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Instructions => "instructions",
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::ResourceTemplate => "resource template",
        }
    }
}

impl fmt::Display for LockedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// One definition as its server sends it, without its name, and its hash.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    fields: Map<String, Value>,
    hash: String,
}

impl Definition {
    /// A definition of a kind. `name` is the tool's or prompt's name, or the URI template.
    pub fn new(kind: LockedKind, name: &str, mut fields: Map<String, Value>) -> Self {
        let mut named = fields.clone();
        if let Some(field) = kind.name_field() {
            fields.shift_remove(field);
            named.insert(field.to_owned(), Value::from(name));
        }
        let hash = hash(&Value::Object(named));
        fields.sort_keys();
        Self { fields, hash }
    }

    /// The instructions of a server.
    pub fn instructions(text: &str) -> Self {
        let fields = Map::from_iter([("text".to_owned(), Value::from(text))]);
        Self::new(LockedKind::Instructions, "", fields)
    }

    /// The hash of its canonical form: `sha256:` and 64 hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Its fields, without the name.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// The text of instructions.
    pub fn text(&self) -> Option<&str> {
        self.fields.get("text").and_then(Value::as_str)
    }
}

impl LockedServer {
    /// Every item with a definition.
    pub fn items(&self) -> impl Iterator<Item = (LockedKind, &str, &Definition)> {
        fn named(
            kind: LockedKind,
            items: &BTreeMap<String, Definition>,
        ) -> impl Iterator<Item = (LockedKind, &str, &Definition)> {
            items.iter().map(move |(name, item)| (kind, name.as_str(), item))
        }
        let instructions = self.instructions.iter().map(|it| (LockedKind::Instructions, "", it));
        instructions
            .chain(named(LockedKind::Tool, &self.tools))
            .chain(named(LockedKind::Prompt, &self.prompts))
            .chain(named(LockedKind::ResourceTemplate, &self.templates))
    }

    /// One item.
    pub fn item(&self, kind: LockedKind, name: &str) -> Option<&Definition> {
        match kind {
            LockedKind::Server => None,
            LockedKind::Instructions => self.instructions.as_ref(),
            LockedKind::Tool => self.tools.get(name),
            LockedKind::Prompt => self.prompts.get(name),
            LockedKind::ResourceTemplate => self.templates.get(name),
        }
    }

    /// Takes one item over from `current`, the state of the server: adds, replaces or removes it.
    pub fn approve(&mut self, kind: LockedKind, name: &str, current: &Self) {
        let put = |items: &mut BTreeMap<String, Definition>, new: Option<&Definition>| match new {
            Some(new) => drop(items.insert(name.to_owned(), new.clone())),
            None => drop(items.remove(name)),
        };
        match kind {
            LockedKind::Server => self.facts = current.facts.clone(),
            LockedKind::Instructions => self.instructions.clone_from(&current.instructions),
            LockedKind::Tool => put(&mut self.tools, current.tools.get(name)),
            LockedKind::Prompt => put(&mut self.prompts, current.prompts.get(name)),
            LockedKind::ResourceTemplate => put(&mut self.templates, current.templates.get(name)),
        }
    }
}

/// A lock file that cannot be used, and the place of the problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct LockProblem {
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
    /// The path inside the document, such as `servers.time.tools.now`.
    pub path: String,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: Remedy,
}
