//! Two tools, one name: the switch decides, and a WARNING names both.

use super::{Level, Record, RegisteredTool, Source};
use crate::config::choices::NameCollision;
use crate::name::{distinct, prefixed};
use crate::text::printable;

/// The tools registered so far.
#[derive(Default)]
pub(super) struct Names {
    pub(super) tools: Vec<RegisteredTool>,
    pub(super) violations: Vec<String>,
}

impl Names {
    /// Adds a tool; if its name is taken, does what the switch says.
    pub(super) fn add(&mut self, new: RegisteredTool, rule: NameCollision, log: &mut Vec<Record>) {
        let Some(at) = self.tools.iter().position(|known| known.name == new.name) else {
            self.tools.push(new);
            return;
        };
        let known = &self.tools[at];
        let both = format!(
            "Tool '{}' is offered by {} and by {}",
            new.name,
            origin(known, &new),
            origin(&new, known)
        );
        let warn = |text: String| Record {
            level: Level::Warning,
            text,
        };
        match rule {
            NameCollision::LastWins => {
                log.push(warn(format!(
                    "{both}: the latter is used (on_name_collision: last_wins)"
                )));
                self.tools.remove(at);
                self.tools.push(new);
            }
            NameCollision::FirstWins => {
                log.push(warn(format!(
                    "{both}: the former is used (on_name_collision: first_wins)"
                )));
            }
            NameCollision::Error => {
                let text = format!(
                    "{both}.\n\nTo resolve:\n1. Set `tool_prefix: server` for one of them, OR\n\
                     2. Leave one out with `tool_denylist`, OR\n\
                     3. Set `on_name_collision` to `last_wins`, `first_wins` or `prefix`"
                );
                log.push(Record {
                    level: Level::Error,
                    text: text.clone(),
                });
                self.violations.push(text);
            }
            NameCollision::Prefix => self.prefix(at, new, &both, log),
        }
    }

    fn prefix(&mut self, at: usize, mut new: RegisteredTool, both: &str, log: &mut Vec<Record>) {
        let old_name = new.name.clone();
        let is_same_server = self.tools[at].source == new.source;
        if is_same_server {
            new.name = distinct(&new.definition.name);
        } else {
            for tool in [&mut self.tools[at], &mut new] {
                if let Source::Mcp { mcp_name, .. } = &tool.source {
                    tool.name = prefixed(mcp_name, &tool.definition.name);
                }
            }
        }
        let text = format!(
            "{both}: they are offered as '{}' and '{}' (on_name_collision: prefix)",
            self.tools[at].name, new.name
        );
        log.push(Record {
            level: Level::Warning,
            text,
        });
        // Where even that name is taken there is nothing left to tell them apart by.
        if let Some(taken) = self.tools.iter().position(|tool| tool.name == new.name) {
            self.tools.remove(taken);
        }
        self.tools.push(new);
        debug_assert!(
            self.tools
                .iter()
                .filter(|tool| tool.name == old_name)
                .count()
                <= 1
        );
    }
}

/// Where a tool comes from; its own name too, where the other one's differs.
fn origin(tool: &RegisteredTool, other: &RegisteredTool) -> String {
    let place = match &tool.source {
        Source::Local => "a local tool".to_owned(),
        Source::Mcp { mcp_name, .. } => format!("MCP server '{mcp_name}'"),
    };
    if tool.definition.name == other.definition.name {
        place
    } else {
        format!("{place} as '{}'", printable(&tool.definition.name))
    }
}
