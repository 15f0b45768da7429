//! What a server offers, compared with what the lock file approves of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_config::lock::{Definition, LockedKind, LockedServer, Package, ServerFacts};
use haft_config::redact::Redactor;
use haft_mcp::{PromptDescription, ResourceTemplate, ToolDescription};
use haft_text::printable;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::connection::Connection;
use super::lists::{Lists, Resources};
use crate::config::Masked;
use crate::config::model::Endpoint;
use crate::error::ToolFailure;

/// The keys of `_meta` that Haft acts on. Others may differ with each request.
const META_KEYS: [&str; 2] = ["ui", "ui/resourceUri"];

/// The lists of a server as far as the lock file approves them.
pub(crate) struct ApprovedLists {
    /// The lists as the server sent them.
    sent: Arc<Lists>,
    /// What is offered: approved definitions only.
    pub(crate) lists: Arc<Lists>,
    /// The hashes of approved and current definition of the tools that changed, by name.
    changed: HashMap<String, (String, String)>,
    /// Tools that were not approved.
    pub(crate) unapproved: Vec<ToolDescription>,
    /// The hashes of approved and current definition of prompts that changed or were not approved.
    blocked_prompts: HashMap<String, (Option<String>, String)>,
    /// True if the current instructions are withheld.
    withholds_instructions: bool,
}

/// The approval of one tool, which a call checks again.
pub(crate) struct ToolApproval {
    sent: Arc<Lists>,
    hash: String,
}

impl ApprovedLists {
    /// Compares the lists of a server with what is approved of it.
    pub(crate) fn new(approved: &LockedServer, sent: Arc<Lists>) -> Self {
        let mut lists = Lists { tools: Vec::new(), prompts: Vec::new(), ..Lists::clone(&sent) };
        let (mut changed, mut unapproved) = (HashMap::new(), Vec::new());
        for tool in &sent.tools {
            let current = definition(LockedKind::Tool, &tool.name, tool);
            match approved.tools.get(&tool.name) {
                Some(known) if known.hash() == current.hash() => {}
                Some(known) => {
                    let hashes = (known.hash().to_owned(), current.hash().to_owned());
                    changed.insert(tool.name.clone(), hashes);
                }
                None => unapproved.push(tool.clone()),
            }
        }
        // A server may list a name twice: it is changed if one of the two is.
        let mut shown = HashSet::new();
        for tool in sent.tools.iter().filter(|tool| shown.insert(tool.name.as_str())) {
            match approved.tools.get(&tool.name) {
                Some(known) if changed.contains_key(&tool.name) => {
                    lists.tools.extend(description::<ToolDescription>("name", &tool.name, known));
                }
                Some(_) => lists.tools.push(tool.clone()),
                None => {}
            }
        }
        let mut blocked_prompts = HashMap::new();
        for prompt in &sent.prompts {
            let current = definition(LockedKind::Prompt, &prompt.name, prompt);
            match approved.prompts.get(&prompt.name) {
                Some(known) if known.hash() == current.hash() => lists.prompts.push(prompt.clone()),
                Some(known) => {
                    let hashes = (Some(known.hash().to_owned()), current.hash().to_owned());
                    blocked_prompts.insert(prompt.name.clone(), hashes);
                    lists.prompts.extend(description::<PromptDescription>(
                        "name",
                        &prompt.name,
                        known,
                    ));
                }
                None => {
                    let hashes = (None, current.hash().to_owned());
                    blocked_prompts.insert(prompt.name.clone(), hashes);
                }
            }
        }
        let withholds_instructions = instructions(&sent).as_ref().map(Definition::hash)
            != approved.instructions.as_ref().map(Definition::hash);
        if withholds_instructions {
            let text = approved.instructions.as_ref().and_then(Definition::text);
            lists.instructions = text.map(ToOwned::to_owned);
        }
        let lists = Arc::new(lists);
        Self { sent, lists, changed, unapproved, blocked_prompts, withholds_instructions }
    }

    /// Returns true if this is the comparison of exactly these lists.
    pub(crate) fn is_of(&self, sent: &Arc<Lists>) -> bool {
        Arc::ptr_eq(&self.sent, sent)
    }

    /// The hashes of the approved and of the current definition, if a tool changed.
    pub(crate) fn changed_tool(&self, name: &str) -> Option<&(String, String)> {
        self.changed.get(name)
    }

    /// The hash of a tool that was not approved.
    pub(crate) fn unapproved_hash(tool: &ToolDescription) -> String {
        definition(LockedKind::Tool, &tool.name, tool).hash().to_owned()
    }

    /// The hashes of the approved and of the current definition, if a prompt may not be used.
    pub(crate) fn blocked_prompt(&self, name: &str) -> Option<&(Option<String>, String)> {
        self.blocked_prompts.get(name)
    }

    /// Every difference, as the subject and the predicate of a sentence, in a fixed order.
    pub(crate) fn differences(&self) -> Vec<(String, &'static str)> {
        const CHANGED: &str = "differs from the definition in haft.lock";
        const NEW: &str = "is not in haft.lock";
        let tool = |name: &str| format!("Tool '{}'", printable(name));
        let changed = self.changed.keys().map(|name| (tool(name), CHANGED));
        let new = self.unapproved.iter().map(|it| (tool(&it.name), NEW));
        let prompts = self.blocked_prompts.iter().map(|(name, (approved, _))| {
            let verb = if approved.is_some() { CHANGED } else { NEW };
            (format!("Prompt '{}'", printable(name)), verb)
        });
        let instructions = self
            .withholds_instructions
            .then(|| ("The text of the instructions".to_owned(), CHANGED));
        let mut all: Vec<_> = changed.chain(new).chain(prompts).chain(instructions).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The approval of a tool, for its calls.
    pub(crate) fn approval(&self, name: &str) -> Option<ToolApproval> {
        let tool = self.sent.tools.iter().find(|tool| tool.name == name)?;
        let hash = definition(LockedKind::Tool, name, tool).hash().to_owned();
        Some(ToolApproval { sent: Arc::clone(&self.sent), hash })
    }
}

impl ToolApproval {
    /// Refuses a call if the server, connected just now or again, has another definition than the approved one.
    pub(super) fn check(&self, connection: &Connection, tool: &str) -> Result<(), ToolFailure> {
        let Some(now) = connection.lists().filter(|now| !Arc::ptr_eq(now, &self.sent)) else {
            return Ok(());
        };
        let is_other = |it: &&ToolDescription| {
            it.name == tool && definition(LockedKind::Tool, tool, it).hash() != self.hash
        };
        match now.tools.iter().find(is_other) {
            None => Ok(()),
            Some(other) => Err(ToolFailure::DefinitionChanged {
                server: connection.name().to_owned(),
                tool: tool.to_owned(),
                approved: Some(self.hash.clone()),
                current: ApprovedLists::unapproved_hash(other),
            }),
        }
    }
}

/// The resource templates that are approved: changed ones as they were, new ones not at all.
pub(crate) fn approved_resources(approved: &LockedServer, listed: &Resources) -> Resources {
    let check = |template: &ResourceTemplate| {
        let uri = &template.uri_template;
        let known = approved.templates.get(uri)?;
        let current = definition(LockedKind::ResourceTemplate, uri, template);
        if known.hash() == current.hash() {
            Some(template.clone())
        } else {
            description("uriTemplate", uri, known)
        }
    };
    let templates = listed.templates.iter().filter_map(check).collect();
    Resources { resources: listed.resources.clone(), templates }
}

impl Connection {
    /// The state of the server for the lock file; `None` if it was never listed. What is not known now is taken from
    /// `approved`.
    pub(crate) fn locked(&self, approved: Option<&LockedServer>) -> Option<LockedServer> {
        let lists = self.lists()?;
        let tools = lists.tools.iter().map(|it| named(LockedKind::Tool, &it.name, it)).collect();
        let prompts =
            lists.prompts.iter().map(|it| named(LockedKind::Prompt, &it.name, it)).collect();
        let templates = match self.known_resources() {
            Some(resources) => {
                let templates = resources.templates.iter();
                let kind = LockedKind::ResourceTemplate;
                templates.map(|it| named(kind, &it.uri_template, it)).collect()
            }
            None => approved.map(|it| it.templates.clone()).unwrap_or_default(),
        };
        let facts = match self.identity() {
            Some(identity) => {
                let mut facts = endpoint_facts(&self.config().endpoint, self.redactor());
                facts.name = identity.name;
                facts.version = identity.version;
                facts.protocol = Some(identity.protocol_version);
                facts
            }
            None => approved.map(|it| it.facts.clone()).unwrap_or_default(),
        };
        let instructions = instructions(&lists);
        Some(LockedServer { facts, instructions, tools, prompts, templates })
    }
}

/// How a server is started or reached, without secrets.
fn endpoint_facts(endpoint: &Endpoint, redactor: &Redactor) -> ServerFacts {
    let shown = Some(redactor.text(&endpoint.to_string()).into_owned());
    match endpoint {
        Endpoint::Stdio(stdio) => {
            let args: Vec<&str> = stdio.args.iter().map(Masked::expose).collect();
            let package = Package::of(stdio.command.expose(), &args);
            let package = package.and_then(|package| package.pinned());
            let package = package.map(|text| redactor.text(&text).into_owned());
            ServerFacts { command: shown, package, ..ServerFacts::default() }
        }
        Endpoint::Http(_) | Endpoint::Sse(_) | Endpoint::Websocket(_) => {
            ServerFacts { url: shown, ..ServerFacts::default() }
        }
    }
}

fn named<T: Serialize>(kind: LockedKind, name: &str, item: &T) -> (String, Definition) {
    (name.to_owned(), definition(kind, name, item))
}

/// Empty instructions count as none.
fn instructions(lists: &Lists) -> Option<Definition> {
    let text = lists.instructions.as_deref().filter(|text| !text.is_empty())?;
    Some(Definition::instructions(text))
}

/// The definition of an item: every field but `_meta`, of which only the user interface counts.
fn definition<T: Serialize>(kind: LockedKind, name: &str, item: &T) -> Definition {
    // Descriptions consist of strings and JSON, so they can always be written.
    let mut fields = match json!(item) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let name_key = match kind {
        LockedKind::ResourceTemplate => "uriTemplate",
        LockedKind::Server | LockedKind::Instructions | LockedKind::Tool | LockedKind::Prompt => {
            "name"
        }
    };
    fields.shift_remove(name_key);
    if let Some(Value::Object(meta)) = fields.shift_remove("_meta") {
        let kept: Map<String, Value> =
            meta.into_iter().filter(|(key, _)| META_KEYS.contains(&key.as_str())).collect();
        if !kept.is_empty() {
            fields.insert("_meta".to_owned(), Value::Object(kept));
        }
    }
    fields.retain(|_, value| !value.is_null());
    Definition::new(kind, name, fields)
}

/// The description of an item as it was approved.
fn description<T: DeserializeOwned>(
    name_key: &str,
    name: &str,
    approved: &Definition,
) -> Option<T> {
    let mut fields = approved.fields().clone();
    fields.insert(name_key.to_owned(), Value::from(name));
    serde_json::from_value(Value::Object(fields)).ok()
}
