//! Name collisions: `on_name_collision` decides, and a WARNING names both tools and a remedy.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Level, Record, RegisteredTool, ToolSource};
use crate::config::choices::{Approval, NameCollision};
use crate::config::model::Setting;
use haft_text::lookalike::{look, odd_characters};
use haft_text::name::{distinct, prefixed};
use haft_text::printable;

/// The tools registered so far.
#[derive(Default)]
pub(super) struct Names {
    pub(super) tools: Vec<Arc<RegisteredTool>>,
    pub(super) violations: Vec<String>,
    /// Every name that a tool is offered under or has at its source, and some names that are no
    /// longer in use. A tool with none of these names does not collide.
    seen: HashSet<String>,
}

impl Names {
    /// Adds a tool; if its name is taken, applies the collision rule.
    pub(super) fn add(
        &mut self,
        new: Arc<RegisteredTool>,
        rule: NameCollision,
        log: &mut Vec<Record>,
    ) {
        let Some(at) = self.rival(&new) else {
            self.push(new);
            return;
        };
        let known = &self.tools[at];
        let both = format!(
            "Tool '{}' is offered by {} and by {}",
            known.name,
            origin(known, &new),
            origin(&new, known)
        );
        // The stricter approval of the two applies, whichever tool is used: it may be the reason
        // for the entry.
        let approval = stricter(&known.effective.approval, &new.effective.approval).clone();
        let way_out = way_out(known, &new);
        match rule {
            NameCollision::LastWins => {
                log.push(warning(format!(
                    "{both}: the latter is used (on_name_collision: last_wins); {way_out}"
                )));
                self.tools.remove(at);
                let mut new = new;
                Arc::make_mut(&mut new).effective.approval = approval;
                self.push(new);
            }
            NameCollision::FirstWins => {
                log.push(warning(format!(
                    "{both}: the former is used (on_name_collision: first_wins); {way_out}"
                )));
                Arc::make_mut(&mut self.tools[at]).effective.approval = approval;
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
            // The same tool is listed twice: a call could not distinguish the two, whatever their
            // names.
            NameCollision::Prefix if is_same(known, &new) => {
                log.push(warning(format!(
                    "{both}: the latter is used (on_name_collision: prefix); {way_out}"
                )));
                let name = self.tools[at].name.clone();
                let mut new = new;
                let tool = Arc::make_mut(&mut new);
                (tool.name, tool.effective.approval) = (name, approval);
                self.tools[at] = new;
            }
            NameCollision::Prefix => self.tell_apart(at, new, &both, log),
        }
    }

    fn push(&mut self, new: Arc<RegisteredTool>) {
        if new.name != new.definition.name {
            self.seen.insert(new.definition.name.clone());
        }
        self.seen.insert(new.name.clone());
        self.tools.push(new);
    }

    /// Returns the tool that a new one collides with: the same tool listed before, or one of the
    /// same name.
    fn rival(&self, new: &RegisteredTool) -> Option<usize> {
        if !self.seen.contains(&new.name) && !self.seen.contains(&new.definition.name) {
            return None;
        }
        let itself = self.tools.iter().position(|known| is_same(known, new));
        itself.or_else(|| self.tools.iter().position(|known| known.name == new.name))
    }

    /// Offers the later tool as `server__tool`. The first keeps its name, so a server that connects
    /// later cannot take it over.
    fn tell_apart(
        &mut self,
        at: usize,
        mut new: Arc<RegisteredTool>,
        both: &str,
        log: &mut Vec<Record>,
    ) {
        let is_of_one_source = self.tools[at].source == new.source;
        let wanted = with_prefix(&new).filter(|_| !is_of_one_source);
        Arc::make_mut(&mut new).name =
            self.free(wanted.unwrap_or_else(|| distinct(&new.definition.name)));
        log.push(warning(format!(
            "{both}: the latter is offered as '{}' (on_name_collision: prefix); {}",
            new.name,
            way_out(&self.tools[at], &new)
        )));
        self.push(new);
    }

    /// Returns `wanted`, or a free name derived from it.
    fn free(&self, wanted: String) -> String {
        let mut name = wanted;
        // Each round tries a new name, and the number of taken names is finite.
        while self.tools.iter().any(|tool| tool.name == name) {
            name = distinct(&name);
        }
        name
    }

    /// Flags misleading names: invisible or lookalike characters, and names that look like an
    /// earlier tool's.
    pub(super) fn flag_misleading(&mut self, log: &mut Vec<Record>) {
        let mut first_by_look: HashMap<String, usize> = HashMap::new();
        for at in 0..self.tools.len() {
            let tool = &self.tools[at];
            let own = &tool.definition.name;
            let first = *first_by_look.entry(look(own)).or_insert(at);
            let twin = Some(&self.tools[first]).filter(|first| first.definition.name != *own);
            let odd = odd_characters(own).map(|odd| format!("it has {odd}"));
            let alike =
                twin.map(|twin| format!("it looks like '{}'{}", twin.name, twin.source.phrase()));
            let reasons: Vec<String> = odd.into_iter().chain(alike).collect();
            if reasons.is_empty() {
                continue;
            }
            let reason = reasons.join("; ");
            log.push(warning(format!(
                "Tool '{}'{} has a name that may mislead: {reason}; {}",
                printable(own),
                tool.source.phrase(),
                match &tool.source {
                    ToolSource::Local => "rename it".to_owned(),
                    ToolSource::Mcp { mcp_name, .. } => format!(
                        "if you do not trust it, leave it out with `tool_denylist` of '{mcp_name}'"
                    ),
                }
            )));
            Arc::make_mut(&mut self.tools[at]).name_warning = Some(reason);
        }
    }
}

fn is_same(one: &RegisteredTool, other: &RegisteredTool) -> bool {
    one.source == other.source && one.definition.name == other.definition.name
}

fn stricter<'a>(one: &'a Setting<Approval>, other: &'a Setting<Approval>) -> &'a Setting<Approval> {
    match (one.value, other.value) {
        (Approval::Auto, Approval::Ask) => other,
        (Approval::Ask, _) | (Approval::Auto, Approval::Auto) => one,
    }
}

/// Returns `server__tool` for a tool of a server.
fn with_prefix(tool: &RegisteredTool) -> Option<String> {
    match &tool.source {
        ToolSource::Local => None,
        ToolSource::Mcp { mcp_name, .. } => Some(prefixed(mcp_name, &tool.definition.name)),
    }
}

/// The remedy for two tools with one name.
fn way_out(known: &RegisteredTool, new: &RegisteredTool) -> String {
    match (&known.source, &new.source) {
        (_, ToolSource::Mcp { mcp_name, .. }) if known.source != new.source => format!(
            "to choose the names, set `tool_prefix: server` for '{mcp_name}', or leave one out with \
             `tool_denylist`"
        ),
        (_, ToolSource::Mcp { .. }) => "leave one out with `tool_denylist`".to_owned(),
        (_, ToolSource::Local) => "rename one of the two".to_owned(),
    }
}

fn warning(text: String) -> Record {
    Record { level: Level::Warning, text }
}

/// Describes where a tool comes from, with its own name if that differs from the other tool's.
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
        ToolSource::Local => "a local tool".to_owned(),
        ToolSource::Mcp { mcp_name, .. } => format!("MCP server '{mcp_name}'"),
    }
}
