//! Rules: who may call what with which arguments, as the operator wrote them.

use std::fmt;

use super::gateway::LOCAL;
use super::model::Config;
use super::pattern::NamePattern;
use super::place::{Place, Problem, Severity};
pub use super::raw_rules::{FlowLabel, KeyScope, RuleEffect};
use crate::expression::{Annotations, Expression, SchemaProblem};
use crate::tool_metadata::ToolAnnotations;
use serde_json::Value;

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name, or its position such as `rules[2]`.
    pub name: String,
    /// The calls it is for.
    pub matches: RuleMatch,
    /// Its decision.
    pub effect: RuleEffect,
    /// The reason that the caller is shown.
    pub reason: Option<String>,
    /// Its place.
    pub place: Place,
}

/// The calls that a rule is for. Everything that is given must match.
#[derive(Debug, Clone, Default)]
pub struct RuleMatch {
    /// Names of keys.
    pub key: Option<Vec<NamePattern>>,
    /// Scopes of keys.
    pub scope: Option<Vec<KeyScope>>,
    /// Profiles.
    pub profile: Option<Vec<NamePattern>>,
    /// Sessions.
    pub session: Option<Vec<NamePattern>>,
    /// Servers; `local` for tools that run here.
    pub server: Option<Vec<NamePattern>>,
    /// Tools.
    pub tool: Option<Vec<NamePattern>>,
    /// Hints of the tool.
    pub annotations: AnnotationMatch,
    /// The condition.
    pub when: Option<Condition>,
}

/// Hints that a tool must have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnnotationMatch {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
    /// `idempotentHint`.
    pub idempotent: Option<bool>,
    /// `openWorldHint`.
    pub open_world: Option<bool>,
}

/// The condition of a rule.
#[derive(Debug, Clone)]
pub struct Condition {
    /// The compiled expression.
    pub expression: Expression,
    /// Its text as it may be shown.
    pub shown: String,
    /// Its place.
    pub place: Place,
}

/// A call, as far as rules match it without its arguments.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallFacts<'a> {
    /// The name of the caller in the log.
    pub caller: Option<&'a str>,
    /// The name of its key.
    pub key: Option<&'a str>,
    /// The scope of its key.
    pub scope: Option<KeyScope>,
    /// The profile it uses.
    pub profile: Option<&'a str>,
    /// The session of the call.
    pub session: Option<&'a str>,
    /// The server of the tool; `None` for a local one.
    pub server: Option<&'a str>,
    /// The tool's name.
    pub tool: &'a str,
    /// The tool's hints.
    pub annotations: Annotations,
}

impl CallFacts<'_> {
    /// The server, or `local`.
    pub fn server_name(&self) -> &str {
        self.server.unwrap_or(LOCAL)
    }
}

impl RuleMatch {
    /// Returns true if everything but the condition matches.
    pub fn fits(&self, call: &CallFacts<'_>) -> bool {
        let Self { key, scope, profile, session, .. } = self;
        self.fits_tool(call.server_name(), call.tool, call.annotations)
            && names(key.as_deref(), call.key)
            && scope.as_ref().is_none_or(|scopes| call.scope.is_some_and(|it| scopes.contains(&it)))
            && names(profile.as_deref(), call.profile)
            && names(session.as_deref(), call.session)
    }

    /// Returns true if the rule is for a tool, by any caller.
    pub fn fits_tool(&self, server: &str, tool: &str, annotations: Annotations) -> bool {
        let Self { server: servers, tool: tools, .. } = self;
        names(servers.as_deref(), Some(server))
            && tools.as_ref().is_none_or(|tools| tools.iter().any(|it| it.fits_tool(server, tool)))
            && self.annotations.fits(annotations)
    }
}

impl AnnotationMatch {
    fn fits(self, hints: Annotations) -> bool {
        let is = |wanted: Option<bool>, hint: bool| wanted.is_none_or(|wanted| wanted == hint);
        let Self { read_only, destructive, idempotent, open_world } = self;
        is(read_only, hints.read_only)
            && is(destructive, hints.destructive)
            && is(idempotent, hints.idempotent)
            && is(open_world, hints.open_world)
    }

    /// Returns true if no hint is required.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

fn names(patterns: Option<&[NamePattern]>, name: Option<&str>) -> bool {
    patterns.is_none_or(|patterns| {
        name.is_some_and(|name| patterns.iter().any(|pattern| pattern.fits(name)))
    })
}

/// The hints of a tool, with the defaults of MCP.
pub fn hints(annotations: Option<&ToolAnnotations>) -> Annotations {
    let default = Annotations::default();
    let hint = |key: &str, default: bool| {
        annotations.and_then(|it| it.get(key)).and_then(Value::as_bool).unwrap_or(default)
    };
    Annotations {
        read_only: hint("readOnlyHint", default.read_only),
        destructive: hint("destructiveHint", default.destructive),
        idempotent: hint("idempotentHint", default.idempotent),
        open_world: hint("openWorldHint", default.open_world),
    }
}

/// A tool whose schema is known, to check rules against.
#[derive(Debug, Clone, Copy)]
pub struct CheckedTool<'a> {
    /// Its server; `None` for a local one.
    pub server: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
    /// Its hints.
    pub annotations: Annotations,
    /// Its input schema.
    pub schema: &'a Value,
}

impl Config {
    /// Compares the conditions of the rules with the schemas of tools. Each problem has the place of its condition.
    pub fn check_rules(&self, tools: &[CheckedTool<'_>]) -> Vec<Problem> {
        self.policy.rules.value.iter().flat_map(|rule| check_rule(rule, tools)).collect()
    }
}

fn check_rule(rule: &Rule, tools: &[CheckedTool<'_>]) -> Vec<Problem> {
    let Some(condition) = &rule.matches.when else { return Vec::new() };
    let meant: Vec<&CheckedTool<'_>> = tools
        .iter()
        .filter(|it| rule.matches.fits_tool(it.server.unwrap_or(LOCAL), it.name, it.annotations))
        .collect();
    let found: Vec<_> = meant
        .iter()
        .flat_map(|tool| condition.expression.check(tool.schema).into_iter().map(|it| (*tool, it)))
        .collect();
    let mut problems: Vec<Problem> = Vec::new();
    for (tool, mismatch) in &found {
        let severity = match &mismatch.kind {
            // An argument that is tested for belongs to some of the tools. None of them having it is a slip.
            SchemaProblem::UnknownArgument { is_tested: true, .. } => {
                let missing = found.iter().filter(|(_, it)| it.kind == mismatch.kind).count();
                if missing < meant.len() {
                    continue;
                }
                Severity::Error
            }
            SchemaProblem::UnknownArgument { is_tested: false, .. } | SchemaProblem::WrongType => {
                Severity::Error
            }
            SchemaProblem::OptionalArgument => Severity::Warning,
        };
        let problem = Problem {
            severity,
            place: condition.place.clone(),
            problem: format!("for the tool `{}`: {}", tool.name, mismatch.problem),
            remedy: mismatch.remedy.clone().into(),
        };
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    problems
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.name, self.place)
    }
}
