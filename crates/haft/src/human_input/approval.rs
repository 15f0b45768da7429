//! Approval by a person for one call, or for all later calls of its kind.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    CloseReason, HumanAnswer, HumanInbox, HumanInputError, HumanQuestion, ItemKind, OpenItem,
};
use crate::context::CallContext;
use crate::error::{CallError, ToolFailure};
use crate::json::Arguments;
use crate::policy::PolicyDecision;
use crate::registry::RegisteredTool;
use haft_text::printable;

/// Maximum number of standing approvals; the oldest is evicted first.
const STANDING_MAX: usize = 1000;

const ALLOW: &str = "allow";
const ALWAYS: &str = "always";
const DENY: &str = "deny";

/// Standing approvals, for the lifetime of the process.
#[derive(Default)]
pub(super) struct StandingApprovals(Mutex<Grants>);

#[derive(Default)]
struct Grants {
    agreed: HashSet<GrantKey>,
    oldest_first: VecDeque<GrantKey>,
}

/// The caller and the tool that a standing approval covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GrantKey {
    owner: Option<String>,
    session: Option<String>,
    server: Option<String>,
    tool: String,
    /// The rule that asked. An approval of the tool does not cover what a rule asks about.
    rule: Option<String>,
    /// The hash of the tool's definition: an approval ends when the definition changes.
    definition: String,
}

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
        let agreed = GrantKey {
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
    /// Stores a standing approval and applies it to waiting calls too.
    pub(super) fn grant_standing(&self, agreed: &GrantKey) {
        if !agreed.has_owner() {
            return;
        }
        self.0.standing.keep(agreed.clone());
        let is_same = |open: &OpenItem| open.agreed.as_ref() == Some(agreed);
        let same: Vec<String> = {
            let open = self.lock();
            open.values().filter(|it| is_same(it)).map(|it| it.item.id.clone()).collect()
        };
        for id in same {
            if let Some(open) = self.close(&id, CloseReason::Answered) {
                open.resolve(HumanAnswer::Given(ALLOW.into()));
            }
        }
    }
}

impl GrantKey {
    /// Returns true if the grant belongs to a known caller or session.
    fn has_owner(&self) -> bool {
        self.owner.is_some() || self.session.is_some()
    }
}

impl StandingApprovals {
    fn holds(&self, agreed: &GrantKey) -> bool {
        self.0.lock().agreed.contains(agreed)
    }

    fn keep(&self, agreed: GrantKey) {
        let mut grants = self.0.lock();
        if !grants.agreed.insert(agreed.clone()) {
            return;
        }
        grants.oldest_first.push_back(agreed);
        if grants.oldest_first.len() > STANDING_MAX
            && let Some(oldest) = grants.oldest_first.pop_front()
        {
            grants.agreed.remove(&oldest);
        }
    }
}
