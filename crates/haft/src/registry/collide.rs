//! Two tools, one name: the switch decides, and a WARNING names both.

use std::collections::HashSet;

use super::{Level, Record, RegisteredTool, Source};
use crate::config::choices::NameCollision;
use crate::name::{distinct, prefixed};
use crate::text::printable;

/// The tools registered so far.
#[derive(Default)]
pub(super) struct Names {
    pub(super) tools: Vec<RegisteredTool>,
    pub(super) violations: Vec<String>,
    /// Names that tools gave up for one with a prefix. Nobody else gets them: a model that knew
    /// the name would reach another server.
    given_up: Vec<String>,
    /// Every name that some tool is offered under or has of its own, and some that none has any
    /// more: whoever has none of them collides with nobody.
    seen: HashSet<String>,
}

impl Names {
    /// Adds a tool; if its name is taken, does what the switch says.
    pub(super) fn add(&mut self, new: RegisteredTool, rule: NameCollision, log: &mut Vec<Record>) {
        let Some(at) = self.rival(&new) else {
            if self.given_up.contains(&new.name) {
                self.add_prefixed(new, log);
            } else {
                self.push(new);
            }
            return;
        };
        let known = &self.tools[at];
        let both = format!(
            "Tool '{}' is offered by {} and by {}",
            known.name,
            origin(known, &new),
            origin(&new, known)
        );
        match rule {
            NameCollision::LastWins => {
                let text = format!("{both}: the latter is used (on_name_collision: last_wins)");
                log.push(warning(text));
                self.tools.remove(at);
                self.push(new);
            }
            NameCollision::FirstWins => {
                let text = format!("{both}: the former is used (on_name_collision: first_wins)");
                log.push(warning(text));
            }
            NameCollision::Error => {
                let text = format!(
                    "{both}.\n\nTo resolve:\n1. Set `tool_prefix: server` for one of them, OR\n\
                     2. Leave one out with `tool_denylist`, OR\n\
                     3. Set `on_name_collision` to `last_wins`, `first_wins` or `prefix`"
                );
                log.push(Record { level: Level::Error, text: text.clone() });
                self.violations.push(text);
            }
            // Listed twice: a call could not tell one from the other, whatever they are named.
            NameCollision::Prefix if is_same(known, &new) => {
                let text = format!("{both}: the latter is used (on_name_collision: prefix)");
                log.push(warning(text));
                let name = self.tools[at].name.clone();
                self.tools[at] = RegisteredTool { name, ..new };
            }
            NameCollision::Prefix => self.tell_apart(at, new, &both, log),
        }
    }

    fn push(&mut self, new: RegisteredTool) {
        self.seen.extend([new.name.clone(), new.definition.name.clone()]);
        self.tools.push(new);
    }

    /// The tool that a new one collides with: itself, listed before, or one of the same name.
    fn rival(&self, new: &RegisteredTool) -> Option<usize> {
        if !self.seen.contains(&new.name) && !self.seen.contains(&new.definition.name) {
            return None;
        }
        let itself = self.tools.iter().position(|known| is_same(known, new));
        itself.or_else(|| self.tools.iter().position(|known| known.name == new.name))
    }

    /// Gives both tools names of their own. A local tool has no server to be named after and keeps
    /// its name, as does the first of two tools of one server.
    fn tell_apart(
        &mut self,
        at: usize,
        mut new: RegisteredTool,
        both: &str,
        log: &mut Vec<Record>,
    ) {
        let known = &self.tools[at];
        if known.source == new.source {
            new.name = self.free(distinct(&new.definition.name), None);
        } else {
            if let Some(wanted) = with_prefix(known) {
                let name = self.free(wanted, Some(at));
                self.given_up.push(new.name.clone());
                self.seen.insert(name.clone());
                self.tools[at].name = name;
            }
            if let Some(wanted) = with_prefix(&new) {
                new.name = self.free(wanted, None);
            }
        }
        log.push(warning(format!(
            "{both}: they are offered as '{}' and '{}' (on_name_collision: prefix)",
            self.tools[at].name, new.name
        )));
        self.push(new);
    }

    /// Adds a tool whose name others gave up.
    fn add_prefixed(&mut self, mut new: RegisteredTool, log: &mut Vec<Record>) {
        let old_name = new.name.clone();
        let wanted = with_prefix(&new).unwrap_or_else(|| distinct(&new.definition.name));
        new.name = self.free(wanted, None);
        log.push(warning(format!(
            "Tool '{old_name}' is offered by {} as well: it is offered as '{}' \
             (on_name_collision: prefix)",
            place(&new),
            new.name
        )));
        self.push(new);
    }

    /// `wanted`, or a name made from it that no tool has, but for the one at `own`.
    fn free(&self, wanted: String, own: Option<usize>) -> String {
        let is_taken = |name: &str| {
            let mut tools = self.tools.iter().enumerate();
            tools.any(|(at, tool)| Some(at) != own && tool.name == name)
        };
        let mut name = wanted;
        // Each round gives a name that was not tried before, and only so many are taken.
        while is_taken(&name) {
            name = distinct(&name);
        }
        name
    }
}

fn is_same(one: &RegisteredTool, other: &RegisteredTool) -> bool {
    one.source == other.source && one.definition.name == other.definition.name
}

/// `server__tool`, for a tool that has a server.
fn with_prefix(tool: &RegisteredTool) -> Option<String> {
    match &tool.source {
        Source::Local => None,
        Source::Mcp { mcp_name, .. } => Some(prefixed(mcp_name, &tool.definition.name)),
    }
}

fn warning(text: String) -> Record {
    Record { level: Level::Warning, text }
}

/// Where a tool comes from; its own name too, where the other one's differs.
fn origin(tool: &RegisteredTool, other: &RegisteredTool) -> String {
    let place = place(tool);
    if tool.definition.name == other.definition.name {
        place
    } else {
        format!("{place} as '{}'", printable(&tool.definition.name))
    }
}

fn place(tool: &RegisteredTool) -> String {
    match &tool.source {
        Source::Local => "a local tool".to_owned(),
        Source::Mcp { mcp_name, .. } => format!("MCP server '{mcp_name}'"),
    }
}
