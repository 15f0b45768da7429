//! Decides on calls by the operator's rules: the first that matches decides, and one that cannot be evaluated denies.

mod decision;

pub use decision::PolicyDecision;

use haft_bounds::heavy;
use haft_config::config::rules::{CallFacts, KeyScope, Rule, RuleEffect, RuleMatch};
use haft_config::expression::{CallerInput, Inputs, ToolInput};
use serde_json::Value;

use decision::values;

/// The arguments of a call: as the tool gets them, and as the caller sent them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleArguments<'a> {
    /// Fixed arguments included. Rules decide on these.
    pub(crate) complete: &'a Value,
    /// The caller's own. Only these are recorded: fixed ones may be secrets.
    pub(crate) own: &'a Value,
    /// The size of their text.
    pub(crate) bytes: usize,
}

/// Returns the decision of the first rule that matches. `None`: no rule matches, so the call may run.
pub(crate) fn decide(
    rules: &[Rule],
    call: &CallFacts<'_>,
    arguments: RuleArguments<'_>,
) -> Option<PolicyDecision> {
    for rule in rules.iter().filter(|rule| rule.matches.fits(call)) {
        match holds(&rule.matches, call, arguments) {
            Ok(false) => {}
            Ok(true) => {
                let values = values(&rule.matches, call, arguments.own);
                return Some(PolicyDecision::of(rule, rule.effect, None, values));
            }
            Err(problem) => {
                let values = values(&rule.matches, call, arguments.own);
                return Some(PolicyDecision::of(rule, RuleEffect::Deny, Some(problem), values));
            }
        }
    }
    None
}

fn holds(
    matches: &RuleMatch,
    call: &CallFacts<'_>,
    arguments: RuleArguments<'_>,
) -> Result<bool, String> {
    let Some(when) = &matches.when else { return Ok(true) };
    let inputs = inputs(call, arguments.complete);
    let steps = when.expression.steps(inputs.args);
    // A step takes about as long as the work on a byte elsewhere.
    let work = usize::try_from(steps).unwrap_or(usize::MAX).max(arguments.bytes);
    heavy::in_place(work, || when.expression.evaluate(&inputs))
}

fn inputs<'a>(call: &CallFacts<'a>, args: &'a Value) -> Inputs<'a> {
    Inputs {
        args,
        tool: ToolInput {
            name: call.tool,
            server: call.server.unwrap_or(haft_config::config::gateway::LOCAL),
            annotations: call.annotations,
        },
        caller: CallerInput {
            name: call.caller.unwrap_or_default(),
            key: call.key.unwrap_or_default(),
            scope: call.scope.map(KeyScope::word).unwrap_or_default(),
            profile: call.profile.unwrap_or_default(),
            session: call.session.unwrap_or_default(),
        },
    }
}
