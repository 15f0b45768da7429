//! Approval by a person for one call, or for all later calls of its kind.

use std::sync::Arc;

use serde_json::{Value, json};

use super::standing::{ApprovalStore, StandingApproval};
use super::{CloseReason, HumanAnswer, HumanInbox, HumanInputError, HumanQuestion, ItemKind};
use crate::context::CallContext;
use crate::error::{CallError, ToolFailure};
use crate::json::Arguments;
use crate::policy::PolicyDecision;
use crate::registry::RegisteredTool;
use haft_text::printable;

const ALLOW: &str = "allow";
const ALWAYS: &str = "always";
const DENY: &str = "deny";

impl HumanInbox {
    /// Waits until a person approves a call of a tool with `approval: ask`, or one that a rule asks about (`cause`). `hint` names the way to
    /// approve it if the inbox is unattended.
    pub(crate) async fn approve(
        &self,
        tool: &RegisteredTool,
        arguments: &Arguments,
        context: &CallContext,
        cause: Option<Box<PolicyDecision>>,
        hint: &'static str,
    ) -> Result<(), CallError> {
        let agreed = StandingApproval {
            owner: context.owner.clone().or_else(|| context.caller.clone()),
            session: context.session.clone(),
            server: tool.source.server().map(ToOwned::to_owned),
            tool: tool.name.clone(),
            rule: cause.as_ref().map(|cause| format!("{} {}", cause.rule, cause.place())),
            definition: haft_config::lock::hash(&json!(*tool.definition)),
        };
        if self.0.standing.holds(&agreed) {
            return Ok(());
        }
        let mut ask =
            HumanQuestion::new(ItemKind::Approval, format!("May `{}` run?", printable(&tool.name)))
                .options([ALLOW, ALWAYS, DENY])
                .tool(&tool.name)
                .arguments(arguments.raw())
                .rule(asking_rule(tool, cause.as_deref()))
                .context(context);
        ask.agreed = Some(agreed.clone());
        if let Some(server) = &agreed.server {
            ask = ask.server(server);
        }
        let name = || tool.name.clone();
        match self.ask(ask).await {
            Ok(answer) if answer == ALLOW || answer == ALWAYS => Ok(()),
            Ok(_) => Err(CallError::Refused { tool: name(), reason: None }),
            Err(HumanInputError::Refused { reason }) => {
                Err(CallError::Refused { tool: name(), reason })
            }
            Err(HumanInputError::Expired { after }) => {
                Err(CallError::Unanswered { tool: name(), after })
            }
            Err(
                HumanInputError::Unattended
                | HumanInputError::Formless
                | HumanInputError::Client { .. }
                | HumanInputError::Schema { .. },
            ) => Err(CallError::ApprovalNeeded { tool: name(), how: hint }),
            Err(full @ HumanInputError::Full { .. }) => {
                let (message, remedy) = (full.to_string(), Some(Box::new(full.remedy())));
                let failure = ToolFailure::Unavailable { message, remedy, details: Value::Null };
                Err(CallError::Failed { tool: name(), failure: Box::new(failure) })
            }
        }
    }
}

/// The setting or the rule that asks, for the person who answers.
fn asking_rule(tool: &RegisteredTool, cause: Option<&PolicyDecision>) -> String {
    let Some(cause) = cause else {
        return format!("approval: ask, set by {}", tool.effective.approval.origin);
    };
    let reason = cause.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("rule `{}`, {}{reason}", cause.rule, cause.place())
}

/// Returns true if an answer grants a standing approval.
pub(super) fn is_standing(answer: &HumanAnswer) -> bool {
    matches!(answer, HumanAnswer::Given(answer) if answer == ALWAYS)
}

impl HumanInbox {
    /// Shares standing approvals with other replicas: `store` keeps them, and `approvals` are those that it has now.
    pub fn share_approvals(&self, store: Arc<dyn ApprovalStore>, approvals: Vec<StandingApproval>) {
        self.0.standing.share(store);
        self.replace_approvals(approvals);
    }

    /// Replaces the standing approvals with those of the store, the oldest first. Waiting calls that they cover continue.
    pub fn replace_approvals(&self, approvals: Vec<StandingApproval>) {
        self.0.standing.replace(approvals);
        self.release(|waiting| self.0.standing.holds(waiting));
    }

    /// Makes a standing approval hold, for waiting calls too. Returns false if it cannot have an owner.
    pub(super) fn grant_standing(&self, agreed: &StandingApproval) -> bool {
        if !agreed.has_owner() {
            return false;
        }
        self.0.standing.grant(agreed);
        self.release(|waiting| waiting == agreed);
        true
    }

    /// Allows the waiting calls that a standing approval covers.
    fn release(&self, is_covered: impl Fn(&StandingApproval) -> bool) {
        let covered: Vec<String> = {
            let open = self.lock();
            let waiting = open.values().filter(|it| it.agreed.as_ref().is_some_and(&is_covered));
            waiting.map(|it| it.item.id.clone()).collect()
        };
        for id in covered {
            if let Some(open) = self.close(&id, CloseReason::Answered) {
                open.resolve(HumanAnswer::Given(ALLOW.into()));
            }
        }
    }
}
