//! Decides whether a call may run, and when. Every call needs an [`Admitted`] to reach a backend.

mod gate;
mod rules;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use gate::Gate;
use gate::Slot;
pub use rules::PolicyDecision;
pub(crate) use rules::{RuleArguments, decide};

use crate::config::choices::{Approval, OnLimit};
use crate::config::model::Defaults;
use crate::context::CallContext;
use crate::error::CallError;
use crate::json::Arguments;
use haft_text::human;

/// A call that passed policy and holds its slots. Only `Policy::admit` can make one, so no path
/// reaches a backend without passing there.
#[derive(Debug)]
pub struct Admitted<'a> {
    arguments: &'a Arguments,
    context: &'a CallContext,
    waited: Duration,
    _tool_slot: Slot,
    /// None for a call that waits for people.
    _toolbox_slot: Option<Slot>,
}

impl Admitted<'_> {
    /// The arguments, already validated against the tool's input schema.
    pub fn arguments(&self) -> &Arguments {
        self.arguments
    }

    /// The caller and the execution id of the call.
    pub fn context(&self) -> &CallContext {
        self.context
    }

    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }
}

/// The approval that a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CallApproval {
    /// No approval.
    #[default]
    Missing,
    /// No approval yet; the inbox asks for it.
    AskPeople,
    /// A person approved the call.
    Given,
}

/// The limits of one tool, for [`Policy::admit`].
#[derive(Clone, Copy)]
pub(crate) struct ToolLimits<'a> {
    pub(crate) tool: &'a str,
    pub(crate) on_limit: OnLimit,
    pub(crate) gate: &'a Gate,
    /// A call that waits for people takes no slot of the toolbox.
    pub(crate) waits_for_people: bool,
}

/// The approval that a call of a tool still needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    /// None.
    Given,
    /// A person must be asked first.
    AskPeople,
}

/// The limits of the whole toolbox.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) toolbox: Arc<Gate>,
    queue_max: u32,
    queue_timeout: Duration,
}

impl Policy {
    /// The limits of a configuration, on a gate that may already be in use.
    pub(crate) fn new(defaults: &Defaults, toolbox: Arc<Gate>) -> Self {
        Self {
            toolbox,
            queue_max: defaults.queue_max.value,
            queue_timeout: defaults.queue_timeout.value,
        }
    }

    /// Decides from the approval that the tool requires and the one that the call has. `hint` names the way to
    /// approve, for the remedy.
    pub(crate) fn authorize(
        tool: &str,
        required: Approval,
        given: CallApproval,
        hint: &'static str,
    ) -> Result<Permission, CallError> {
        match (required, given) {
            (Approval::Auto, _) | (Approval::Ask, CallApproval::Given) => Ok(Permission::Given),
            (Approval::Ask, CallApproval::AskPeople) => Ok(Permission::AskPeople),
            (Approval::Ask, CallApproval::Missing) => {
                Err(CallError::ApprovalNeeded { tool: tool.to_owned(), how: hint })
            }
        }
    }

    /// Waits for a slot of the tool, then for one of the toolbox: a call that waits for its tool
    /// takes nothing from other tools. The time spent here does not count against the timeout.
    pub(crate) async fn admit<'a>(
        &self,
        limits: ToolLimits<'_>,
        arguments: &'a Arguments,
        context: &'a CallContext,
    ) -> Result<Admitted<'a>, CallError> {
        let ToolLimits { tool, on_limit, gate, waits_for_people } = limits;
        let toolbox = (!waits_for_people).then_some(&*self.toolbox);
        let ((tool_slot, toolbox_slot), waited) = match (enter_now(tool, gate, toolbox), on_limit) {
            // It has not waited, however long this thread was held up.
            (Ok(slots), _) => (slots, Duration::ZERO),
            (Err(full), OnLimit::Reject) => return Err(full),
            (Err(_), OnLimit::Wait) => {
                let asked = Instant::now();
                // Boxed: a call that need not wait does not carry it.
                (Box::pin(self.wait(tool, gate, toolbox)).await?, asked.elapsed())
            }
        };
        Ok(Admitted {
            arguments,
            context,
            waited,
            _tool_slot: tool_slot,
            _toolbox_slot: toolbox_slot,
        })
    }

    async fn wait(
        &self,
        tool: &str,
        gate: &Gate,
        toolbox: Option<&Gate>,
    ) -> Result<(Slot, Option<Slot>), CallError> {
        let entering = self.enter(tool, gate, toolbox);
        match tokio::time::timeout(self.queue_timeout, entering).await {
            Ok(slots) => slots,
            Err(_) => Err(self.waited_too_long(tool)),
        }
    }

    async fn enter(
        &self,
        tool: &str,
        gate: &Gate,
        toolbox: Option<&Gate>,
    ) -> Result<(Slot, Option<Slot>), CallError> {
        let tool_slot = match gate.try_enter() {
            Some(slot) => slot,
            None if gate.waiting() >= self.queue_max => return Err(self.queue_full(tool)),
            None => gate.enter().await.ok_or_else(|| full(tool, gate))?,
        };
        let Some(toolbox) = toolbox else { return Ok((tool_slot, None)) };
        let toolbox_slot = match toolbox.try_enter() {
            Some(slot) => slot,
            None => toolbox.enter().await.ok_or_else(|| full(tool, gate))?,
        };
        Ok((tool_slot, Some(toolbox_slot)))
    }

    fn queue_full(&self, tool: &str) -> CallError {
        CallError::Busy {
            tool: tool.to_owned(),
            reason: format!("{} calls are waiting for it already, the limit", self.queue_max),
            setting: "queue_max",
        }
    }

    fn waited_too_long(&self, tool: &str) -> CallError {
        CallError::Busy {
            tool: tool.to_owned(),
            reason: format!("no slot became free within {}", human(self.queue_timeout)),
            setting: "queue_timeout",
        }
    }
}

fn enter_now(
    tool: &str,
    gate: &Gate,
    toolbox: Option<&Gate>,
) -> Result<(Slot, Option<Slot>), CallError> {
    let tool_slot = gate.try_enter().ok_or_else(|| full(tool, gate))?;
    let Some(toolbox) = toolbox else { return Ok((tool_slot, None)) };
    let toolbox_slot = toolbox.try_enter().ok_or_else(|| CallError::Busy {
        tool: tool.to_owned(),
        reason: format!("{} calls are running in the toolbox, the limit", toolbox.limit()),
        setting: "max_concurrent",
    })?;
    Ok((tool_slot, Some(toolbox_slot)))
}

fn full(tool: &str, gate: &Gate) -> CallError {
    CallError::Busy {
        tool: tool.to_owned(),
        reason: format!("{} of its calls are running, the limit", gate.limit()),
        setting: "max_instances",
    }
}
