//! The flow of data in a session: after untrusted and private data, tools that send data out ask first.
//!
//! Text of strangers may instruct a model to send private data away. Each of the three is fine alone; all three in one
//! session need a person.

use std::collections::HashMap;

use haft_config::config::rules::{FlowLabel, RuleEffect};
use haft_config::config::{Config, Place};
use parking_lot::Mutex;
use serde_json::{Map, json};

use super::ToolCall;
use crate::policy::PolicyDecision;
use crate::registry::ActiveTool;

/// Most sessions whose data is remembered. Beyond them every session counts as one that read both kinds.
const SESSIONS_MAX: usize = 100_000;
/// The name under which decisions are logged.
const RULE: &str = "labels";
const REASON: &str =
    "the session has read untrusted and private data, and this tool sends data out";
/// The name in the log of sessions beyond the limit.
const FORGOTTEN: &str = "(too many sessions to remember)";

/// The labels of the tools in a toolbox. Empty if the configuration has none.
#[derive(Debug, Default)]
pub(crate) struct ToolLabels(HashMap<String, (Vec<FlowLabel>, Place)>);

impl ToolLabels {
    /// The labels that the entries of tools and servers give. A tool's own replace those of its server.
    pub(crate) fn new<'t>(config: &Config, tools: impl Iterator<Item = &'t ActiveTool>) -> Self {
        let is_used = config.servers.iter().any(|server| server.labels.is_some())
            || config.tools.iter().any(|tool| tool.labels.is_some());
        if !is_used {
            return Self::default();
        }
        let labelled = tools.filter_map(|tool| {
            let server = tool.registered.source.server();
            let own = config.tools.iter().find(|entry| {
                entry.name == tool.registered.definition.name
                    && entry.mcp.as_deref().is_none_or(|mcp| Some(mcp) == server)
            });
            let own = own.and_then(|entry| Some((entry.labels.as_ref()?, &entry.place)));
            let of_server = || {
                let server = config.servers.iter().find(|it| Some(it.name.as_str()) == server)?;
                Some((server.labels.as_ref()?, &server.place))
            };
            let (labels, place) = own.or_else(of_server)?;
            Some((tool.name().to_owned(), (labels.clone(), place.clone())))
        });
        Self(labelled.collect())
    }

    fn of(&self, tool: &ActiveTool) -> Option<&(Vec<FlowLabel>, Place)> {
        if self.0.is_empty() { None } else { self.0.get(tool.name()) }
    }
}

/// The tools whose results a session has read.
#[derive(Debug, Clone, Default)]
struct SessionFlow {
    untrusted: Option<String>,
    private: Option<String>,
}

/// The flow of data in each session.
#[derive(Debug, Default)]
pub(crate) struct Flows(Mutex<HashMap<String, SessionFlow>>);

impl Flows {
    /// Returns a decision if the call would send out what its session has read.
    pub(super) fn decide(
        &self,
        labels: &ToolLabels,
        tool: &ActiveTool,
        call: &ToolCall,
    ) -> Option<PolicyDecision> {
        let (labels, place) = labels.of(tool)?;
        if !labels.contains(&FlowLabel::Outbound) {
            return None;
        }
        let flows = self.0.lock();
        let flow = match flows.get(&session(call)) {
            Some(flow) => flow.clone(),
            None if flows.len() >= SESSIONS_MAX => {
                let forgotten = || Some(FORGOTTEN.to_owned());
                SessionFlow { untrusted: forgotten(), private: forgotten() }
            }
            None => return None,
        };
        drop(flows);
        let SessionFlow { untrusted: Some(untrusted), private: Some(private) } = flow else {
            return None;
        };
        let mut values = Map::new();
        values.insert("untrusted".to_owned(), json!(untrusted));
        values.insert("private".to_owned(), json!(private));
        Some(PolicyDecision {
            rule: RULE.to_owned(),
            file: place.file.to_string(),
            line: place.line,
            effect: RuleEffect::Ask,
            reason: Some(REASON.to_owned()),
            problem: None,
            values,
        })
    }

    /// Remembers that the session has read a result of the tool.
    pub(super) fn read(&self, labels: &ToolLabels, tool: &ActiveTool, call: &ToolCall) {
        let Some((labels, _)) = labels.of(tool) else { return };
        let untrusted = labels.contains(&FlowLabel::Untrusted);
        let private = labels.contains(&FlowLabel::Private);
        if !untrusted && !private {
            return;
        }
        let mut flows = self.0.lock();
        let session = session(call);
        // A session that finds no room counts as one that read both.
        if flows.len() >= SESSIONS_MAX && !flows.contains_key(&session) {
            return;
        }
        let flow = flows.entry(session).or_default();
        let name = || tool.name().to_owned();
        if untrusted {
            flow.untrusted.get_or_insert_with(name);
        }
        if private {
            flow.private.get_or_insert_with(name);
        }
    }
}

/// The session of a call, which belongs to its caller. Calls without one share one for each caller.
fn session(call: &ToolCall) -> String {
    let owner = call.owner.as_deref().or(call.caller.as_deref()).unwrap_or_default();
    format!("{owner}\n{}", call.session.as_deref().unwrap_or_default())
}
