//! The explanation of a decision on a call, for people and programs.

use haft::PolicyDecision;
use haft::config::rules::RuleEffect;
use haft::record::LoggedCall;
use haft_text::printable;
use serde::Serialize;
use serde_json::Value;

/// The decision on a call.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Explanation {
    /// The id of the call.
    execution_id: String,
    /// The tool that was called.
    tool: String,
    /// The caller.
    caller: Option<String>,
    /// `allow`, `ask` or `deny`; null if no rule matched, so that the call was allowed.
    #[schema(value_type = Option<String>)]
    effect: Option<RuleEffect>,
    /// The rule that decided: `rule`, `file`, `line`, `effect`, `reason`, `problem` and `values`.
    #[schema(value_type = Option<Object>)]
    decision: Option<PolicyDecision>,
    /// The error that the call ended with.
    error: Option<String>,
}

impl Explanation {
    pub(crate) fn of(call: &LoggedCall) -> Self {
        Self {
            execution_id: call.execution_id.clone(),
            tool: call.tool.clone(),
            caller: call.caller.clone(),
            effect: call.policy.as_ref().map(|policy| policy.effect),
            decision: call.policy.clone(),
            error: call.error.as_ref().map(|error| error.message.clone()),
        }
    }

    /// The explanation for the terminal.
    pub(crate) fn lines(&self) -> Vec<String> {
        let caller = self.caller.as_deref().unwrap_or("a caller without a name");
        let mut lines = vec![format!("{} called by {}", printable(&self.tool), printable(caller))];
        match &self.decision {
            None => lines.push("no rule matched the call, so none decided on it".to_owned()),
            Some(decision) => lines.extend(decided(decision)),
        }
        if let Some(error) = &self.error {
            lines.push(format!("ended with: {}", printable(error)));
        }
        lines
    }
}

fn decided(decision: &PolicyDecision) -> Vec<String> {
    let PolicyDecision { rule, effect, reason, problem, values, .. } = decision;
    let verb = match effect {
        RuleEffect::Allow => "allowed",
        RuleEffect::Deny => "denied",
        RuleEffect::Ask => "asked a person about",
    };
    let mut lines = vec![format!(
        "{verb} by the rule `{}` at {}",
        printable(rule),
        printable(&decision.place())
    )];
    lines.extend(reason.iter().map(|reason| format!("  reason: {}", printable(reason))));
    lines.extend(problem.iter().map(|it| format!("  could not be evaluated: {}", printable(it))));
    let value = |value: &Value| printable(&value.to_string()).into_owned();
    lines.extend(values.iter().map(|(name, it)| format!("  {name} = {}", value(it))));
    lines
}
