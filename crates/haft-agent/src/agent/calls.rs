//! The calls a model makes: run on the one call path, answered in the order they were made.

use std::future::poll_fn;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::event::AgentEvent;
use super::repeat::Repeats;
use super::turn::Listener;
use crate::model::{ModelCall, ModelResult};
use haft::Code;
use haft::Content;
use haft::Envelope;
use haft::Progress;
use haft::ToolCall;

/// Maximum number of tools that an error about an unknown tool lists.
const NAMED_MAX: usize = 40;

/// The context of the calls of one step.
pub(super) struct Calls<'a> {
    pub(super) agent: &'a Agent,
    pub(super) session: &'a str,
    /// The user's request.
    pub(super) request: &'a str,
    pub(super) tell: &'a Listener<'a>,
    pub(super) cancel: &'a CancellationToken,
}

/// Maximum number of queued progress reports. Later ones are dropped, because the next report
/// supersedes them.
const REPORTS_MAX: usize = 256;

/// A progress report of a running call, with the call's place.
type Report = (usize, Progress);

/// The progress reports of running calls.
struct Reports {
    sender: mpsc::Sender<Report>,
    receiver: Mutex<mpsc::Receiver<Report>>,
}

impl Reports {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel(REPORTS_MAX);
        Self { sender, receiver: Mutex::new(receiver) }
    }

    async fn next(&self) -> Option<Report> {
        poll_fn(|cx| self.receiver().poll_recv(cx)).await
    }

    fn receiver(&self) -> MutexGuard<'_, mpsc::Receiver<Report>> {
        self.receiver.lock()
    }
}

impl Calls<'_> {
    /// Runs the calls, at the same time only where their tools allow it, and answers each: also one that
    /// is not made because it was made too often.
    pub(super) async fn all(&self, calls: &[ModelCall], repeats: &mut Repeats) -> Vec<ModelResult> {
        let mut results: Vec<Option<ModelResult>> = vec![None; calls.len()];
        let mut made: Vec<usize> = Vec::new();
        for (at, call) in calls.iter().enumerate() {
            (self.tell)(AgentEvent::ToolStarted {
                call_id: call.id.clone(),
                tool: call.name.clone(),
                arguments: call.arguments.clone(),
            });
            match repeats.refuse(call) {
                Some(reason) => results[at] = Some(self.refused(call, reason)),
                None => made.push(at),
            }
        }
        let reports = Reports::new();
        let batch = made.iter().map(|&at| self.tool_call(at, &calls[at], &reports)).collect();
        let told = |place: usize, envelope: &Envelope| {
            // Reports of a call precede its end.
            loop {
                let Ok(report) = reports.receiver().try_recv() else { break };
                self.emit_progress(calls, report);
            }
            let call = &calls[made[place]];
            (self.tell)(completed(call, envelope, &self.shown(envelope)));
        };
        let running = self.agent.runtime.call_batch_telling(batch, told);
        let answers = self.with_reports(running, calls, &reports).await;
        for (&at, envelope) in made.iter().zip(&answers) {
            let call = &calls[at];
            results[at] = Some(ModelResult {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: self.shown(envelope),
                is_error: envelope.error.is_some(),
            });
        }
        results.into_iter().flatten().collect()
    }

    /// Emits progress reports while the calls run.
    async fn with_reports<T>(
        &self,
        running: impl Future<Output = T>,
        calls: &[ModelCall],
        reports: &Reports,
    ) -> T {
        let mut running = std::pin::pin!(running);
        loop {
            tokio::select! {
                biased;
                done = &mut running => return done,
                Some(report) = reports.next() => self.emit_progress(calls, report),
            }
        }
    }

    fn emit_progress(&self, calls: &[ModelCall], (at, progress): Report) {
        (self.tell)(AgentEvent::ToolProgress {
            call_id: calls[at].id.clone(),
            tool: calls[at].name.clone(),
            progress: progress.progress,
            total: progress.total,
            message: progress.message,
        });
    }

    fn tool_call(&self, at: usize, call: &ModelCall, reports: &Reports) -> ToolCall {
        let agent = self.agent;
        let own = agent.resource_tool(&call.name).or_else(|| agent.output_tool(&call.name));
        let reports = reports.sender.clone();
        let mut tool_call = ToolCall::from_text(&call.name, &call.arguments)
            .by_model()
            .caller(&self.agent.settings.caller)
            .session(self.session)
            .user_request(self.request)
            .cancelled_by(self.cancel.clone())
            .on_progress(move |progress| drop(reports.try_send((at, progress))));
        if let Some(owner) = &self.agent.settings.owner {
            tool_call = tool_call.owner(owner);
        }
        if let Some(scope) = self.agent.settings.scope {
            tool_call = tool_call.scope(scope);
        }
        if let Some(tool) = own {
            tool_call = tool_call.inline_tool(tool);
        }
        if self.agent.settings.approves_all {
            tool_call.approved()
        } else {
            tool_call.asking_people()
        }
    }

    fn refused(&self, call: &ModelCall, reason: String) -> ModelResult {
        (self.tell)(AgentEvent::ToolCompleted {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            execution_id: None,
            is_error: true,
            text: reason.clone(),
            duration_ms: 0,
        });
        ModelResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: vec![Content::text(reason)],
            is_error: true,
        }
    }

    /// The content of an answer for the model. Never empty, because models treat that as a lost
    /// answer.
    fn shown(&self, envelope: &Envelope) -> Vec<Content> {
        if let Some(error) = &envelope.error {
            let mut text = envelope.model_text();
            if error.code == Code::UnknownTool {
                text.push_str(&self.names());
            }
            return vec![Content::text(text)];
        }
        if envelope.content.is_empty() {
            return vec![Content::text(envelope.model_text())];
        }
        envelope.content.clone()
    }

    /// The available tools, for a model that called an unknown one.
    fn names(&self) -> String {
        let tools = self.agent.visible_tools();
        let names: Vec<&str> =
            tools.iter().take(NAMED_MAX).map(|tool| tool.name.as_str()).collect();
        let more = tools.len().saturating_sub(names.len());
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        if names.is_empty() {
            return "; there are no tools".to_owned();
        }
        format!("; the tools are {}{rest}", names.join(", "))
    }
}

fn completed(call: &ModelCall, envelope: &Envelope, shown: &[Content]) -> AgentEvent {
    let texts: Vec<_> = shown.iter().map(Content::as_text).collect();
    AgentEvent::ToolCompleted {
        call_id: call.id.clone(),
        tool: call.name.clone(),
        execution_id: Some(envelope.execution_id.clone()),
        is_error: envelope.error.is_some(),
        text: texts.join("\n"),
        duration_ms: envelope.duration_ms,
    }
}
