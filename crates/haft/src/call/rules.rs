//! The operator's rules on the path of a call: after its arguments were validated, before it is approved.

use haft_config::config::rules::{CallFacts, RuleEffect};

use super::flow::Flows;
use super::record::CallRecord;
use super::{ToolCall, Toolbox};
use crate::error::CallError;
use crate::json::Arguments;
use crate::policy::{CallApproval, PolicyDecision, RuleArguments, decide};
use crate::registry::ActiveTool;

/// The beginning of the name of a caller that presented a key.
const KEY_PREFIX: &str = "key:";

/// Applies the rules to a call. Returns the decision if a person must be asked first.
pub(super) fn apply(
    toolbox: &Toolbox,
    flows: &Flows,
    tool: &ActiveTool,
    call: &ToolCall,
    (own, complete): (&Arguments, &Arguments),
    record: &mut CallRecord<'_>,
) -> Result<Option<Box<PolicyDecision>>, CallError> {
    let by_rule = decide_by_rules(toolbox, tool, call, own, complete);
    let is_lenient = |decision: &PolicyDecision| decision.effect == RuleEffect::Allow;
    let by_flow = match &by_rule {
        // A rule that allows does not override what the labels ask, nor `approval: ask`.
        None => flows.decide(&toolbox.labels, tool, call),
        Some(decision) if is_lenient(decision) => flows.decide(&toolbox.labels, tool, call),
        Some(_) => None,
    };
    match by_flow.or(by_rule) {
        Some(decision) => enforce(tool, call, decision, record),
        None => Ok(None),
    }
}

fn decide_by_rules(
    toolbox: &Toolbox,
    tool: &ActiveTool,
    call: &ToolCall,
    own: &Arguments,
    complete: &Arguments,
) -> Option<PolicyDecision> {
    let rules = &toolbox.config.policy.rules.value;
    if rules.is_empty() {
        return None;
    }
    let arguments = RuleArguments {
        complete: complete.value(),
        own: own.value(),
        bytes: complete.raw().get().len(),
    };
    decide(rules, &facts(tool, call), arguments)
}

fn facts<'a>(tool: &'a ActiveTool, call: &'a ToolCall) -> CallFacts<'a> {
    let caller = call.caller.as_deref();
    CallFacts {
        caller,
        key: caller.and_then(|caller| caller.strip_prefix(KEY_PREFIX)),
        scope: call.scope,
        profile: call.profile.as_deref(),
        session: call.session.as_deref(),
        server: tool.registered.source.server(),
        tool: tool.name(),
        annotations: tool.hints,
    }
}

/// Records a decision and enforces it.
fn enforce(
    tool: &ActiveTool,
    call: &ToolCall,
    decision: PolicyDecision,
    record: &mut CallRecord<'_>,
) -> Result<Option<Box<PolicyDecision>>, CallError> {
    let name = || tool.name().to_owned();
    let rule = || decision.rule.clone();
    let outcome = match (decision.effect, call.approval) {
        (RuleEffect::Allow, _) | (RuleEffect::Ask, CallApproval::Given) => Ok(None),
        (RuleEffect::Ask, CallApproval::AskPeople) => Ok(Some(Box::new(decision.clone()))),
        (RuleEffect::Ask, CallApproval::Missing) => Err(CallError::RuleAsks {
            tool: name(),
            rule: rule(),
            reason: decision.reason.clone(),
            how: call.approval_hint,
        }),
        (RuleEffect::Deny, _) => Err(CallError::DeniedByRule {
            tool: name(),
            rule: rule(),
            reason: decision.reason.clone(),
            problem: decision.problem.clone(),
        }),
    };
    record.decided(decision);
    outcome
}
