//! Rules tried on logged calls, so that a rule is seen at work before it counts.

use haft_config::config::Config;
use haft_config::config::rules::{CallFacts, KeyScope, Rule, RuleMatch};
use haft_config::expression::Annotations;
use serde_json::Value;

use super::LoggedCall;
use crate::policy::{PolicyDecision, RuleArguments, decide};

/// Facts about a call that its entry does not have.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplayFacts<'a> {
    /// The scope of the caller's key, or none for a caller without a key. `Unknown` if the key is gone.
    pub scope: Fact<KeyScope>,
    /// The profile that the call was made through.
    pub profile: Fact<&'a str>,
    /// The hints of the tool.
    pub annotations: Option<Annotations>,
}

/// A fact about a logged call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fact<T> {
    /// It cannot be found out.
    #[default]
    Unknown,
    /// The call has none.
    Absent,
    /// It is known.
    Known(T),
}

impl<T> Fact<T> {
    fn value(self) -> Option<T> {
        match self {
            Self::Unknown | Self::Absent => None,
            Self::Known(value) => Some(value),
        }
    }
}

/// The result of trying rules on a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Replay {
    /// The decision; `None` if no rule matches.
    Decided(Option<Box<PolicyDecision>>),
    /// A rule depends on what is not known about the call.
    Unknown {
        /// The rule.
        rule: String,
        /// The missing facts.
        missing: String,
    },
}

/// Tries the rules of a configuration on a logged call. Its arguments are those of the log: masked, and without fixed
/// ones.
pub fn replay(config: &Config, call: &LoggedCall, known: ReplayFacts<'_>) -> Replay {
    let caller = call.caller.as_deref();
    let facts = CallFacts {
        caller,
        key: caller.and_then(|caller| caller.strip_prefix("key:")),
        scope: known.scope.value(),
        profile: known.profile.value(),
        session: call.session.as_deref(),
        server: call.server.as_deref(),
        tool: &call.tool,
        annotations: known.annotations.unwrap_or_default(),
    };
    let input: Option<Value> = serde_json::from_str(call.input.get()).ok();
    let input = input.filter(Value::is_object);
    for rule in &config.policy.rules.value {
        let needed = missing(&rule.matches, known, input.is_some());
        let stripped = Rule { matches: without(&rule.matches, &needed), ..rule.clone() };
        let empty = Value::Null;
        let args = input.as_ref().unwrap_or(&empty);
        let arguments = RuleArguments { complete: args, own: args, bytes: call.input.get().len() };
        let Some(decision) = decide(std::slice::from_ref(&stripped), &facts, arguments) else {
            continue;
        };
        if needed.is_empty() {
            return Replay::Decided(Some(Box::new(decision)));
        }
        return Replay::Unknown { rule: rule.name.clone(), missing: needed.join(", ") };
    }
    Replay::Decided(None)
}

const SCOPE: &str = "scope";
const PROFILE: &str = "profile";
const ANNOTATIONS: &str = "annotations";
const ARGUMENTS: &str = "arguments";

fn missing(matches: &RuleMatch, known: ReplayFacts<'_>, has_input: bool) -> Vec<&'static str> {
    let reads = |path: &str| {
        matches.when.as_ref().is_some_and(|when| {
            when.expression.paths().iter().any(|it| it.to_string().starts_with(path))
        })
    };
    let scope = matches.scope.is_some() || reads("caller.scope");
    let profile = matches.profile.is_some() || reads("caller.profile");
    let annotations = !matches.annotations.is_empty() || reads("tool.annotations");
    let needed = [
        (SCOPE, scope && known.scope == Fact::Unknown),
        (PROFILE, profile && known.profile == Fact::Unknown),
        (ANNOTATIONS, annotations && known.annotations.is_none()),
        (ARGUMENTS, !has_input && reads("args")),
    ];
    needed.into_iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| name).collect()
}

/// The rule without the parts that depend on missing facts: it matches every call that the rule may match.
fn without(matches: &RuleMatch, missing: &[&str]) -> RuleMatch {
    let mut matches = matches.clone();
    if missing.is_empty() {
        return matches;
    }
    matches.when = None;
    for fact in missing {
        match *fact {
            SCOPE => matches.scope = None,
            PROFILE => matches.profile = None,
            ANNOTATIONS => {
                matches.annotations = haft_config::config::rules::AnnotationMatch::default();
            }
            _ => {}
        }
    }
    matches
}
