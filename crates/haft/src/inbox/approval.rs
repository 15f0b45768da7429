//! Agreement of a person to one call, or to all calls of its kind from then on.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::{Answer, Ask, Closing, Inbox, Kind, NoAnswer, Open};
use crate::context::CallContext;
use crate::error::{CallError, ToolFailure};
use crate::json::Arguments;
use crate::registry::RegisteredTool;
use crate::text::printable;

/// How many agreements for good are remembered; the first one is forgotten first.
const STANDING_MAX: usize = 1000;

const ALLOW: &str = "allow";
const ALWAYS: &str = "always";
const DENY: &str = "deny";

/// Agreements that hold for as long as the process lives.
#[derive(Default)]
pub(super) struct Standing(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    agreed: HashSet<Agreed>,
    oldest_first: VecDeque<Agreed>,
}

/// Who may call what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Agreed {
    owner: Option<String>,
    session: Option<String>,
    server: Option<String>,
    tool: String,
}

impl Inbox {
    /// Waits until a person agrees to a call of a tool with `approval: ask`. `hint` names the way to approve it
    /// where the inbox is not attended.
    pub(crate) async fn approve(
        &self,
        tool: &RegisteredTool,
        arguments: &Arguments,
        context: &CallContext,
        hint: &'static str,
    ) -> Result<(), CallError> {
        let agreed = Agreed {
            owner: context.owner.clone().or_else(|| context.caller.clone()),
            session: context.session.clone(),
            server: tool.source.server().map(ToOwned::to_owned),
            tool: tool.name.clone(),
        };
        if self.0.standing.holds(&agreed) {
            return Ok(());
        }
        let mut ask = Ask::new(Kind::Approval, format!("May `{}` run?", printable(&tool.name)))
            .options([ALLOW, ALWAYS, DENY])
            .tool(&tool.name)
            .arguments(arguments.raw())
            .context(context);
        ask.agreed = Some(agreed.clone());
        if let Some(server) = &agreed.server {
            ask = ask.server(server);
        }
        let name = || tool.name.clone();
        match self.ask(ask).await {
            Ok(answer) if answer == ALLOW || answer == ALWAYS => Ok(()),
            Ok(_) => Err(CallError::Refused { tool: name(), reason: None }),
            Err(NoAnswer::Refused { reason }) => Err(CallError::Refused { tool: name(), reason }),
            Err(NoAnswer::Expired { after }) => Err(CallError::Unanswered { tool: name(), after }),
            Err(
                NoAnswer::Unattended
                | NoAnswer::Formless
                | NoAnswer::Client { .. }
                | NoAnswer::Schema { .. },
            ) => Err(CallError::ApprovalNeeded { tool: name(), how: hint }),
            Err(full @ NoAnswer::Full { .. }) => {
                let (message, remedy) = (full.to_string(), full.remedy());
                let failure = ToolFailure::Unavailable { message, remedy, details: Value::Null };
                Err(CallError::Failed { tool: name(), failure: Box::new(failure) })
            }
        }
    }
}

/// Whether an answer holds for more than its question.
pub(super) fn is_for_good(answer: &Answer) -> bool {
    matches!(answer, Answer::Given(answer) if answer == ALWAYS)
}

impl Inbox {
    /// Remembers an agreement, which holds for what waits already too.
    pub(super) fn agree_for_good(&self, agreed: &Agreed) {
        if !agreed.is_somebodys() {
            return;
        }
        self.0.standing.keep(agreed.clone());
        let is_same = |open: &Open| open.agreed.as_ref() == Some(agreed);
        let same: Vec<String> = {
            let open = self.lock();
            open.values().filter(|it| is_same(it)).map(|it| it.item.id.clone()).collect()
        };
        for id in same {
            if let Some(open) = self.close(&id, Closing::Answered) {
                open.resolve(Answer::Given(ALLOW.into()));
            }
        }
    }
}

impl Agreed {
    /// Whether it is somebody in particular who may.
    fn is_somebodys(&self) -> bool {
        self.owner.is_some() || self.session.is_some()
    }
}

impl Standing {
    fn holds(&self, agreed: &Agreed) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).agreed.contains(agreed)
    }

    fn keep(&self, agreed: Agreed) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.agreed.insert(agreed.clone()) {
            return;
        }
        kept.oldest_first.push_back(agreed);
        if kept.oldest_first.len() > STANDING_MAX
            && let Some(oldest) = kept.oldest_first.pop_front()
        {
            kept.agreed.remove(&oldest);
        }
    }
}
