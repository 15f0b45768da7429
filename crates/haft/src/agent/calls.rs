//! The calls a model makes: run on the one call path, answered in the order they were made.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::Agent;
use super::event::AgentEvent;
use super::repeat::Repeats;
use super::turn::Listener;
use crate::call::ToolCall;
use crate::content::Content;
use crate::envelope::Envelope;
use crate::error::Code;
use crate::model::{ModelCall, ModelResult};
use crate::progress::Progress;

/// How many tools are named to a model that invented one.
const NAMED_MAX: usize = 40;

/// What the calls of one step are run with.
pub(super) struct Calls<'a> {
    pub(super) agent: &'a Agent,
    pub(super) session: &'a str,
    /// What the person asked for.
    pub(super) request: &'a str,
    pub(super) tell: &'a Listener<'a>,
    pub(super) cancel: &'a CancellationToken,
}

/// News of calls under way: the place of the call, and how far it is.
type Reports = Arc<Mutex<Vec<(usize, Progress)>>>;

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
        let reports = Reports::default();
        let batch = made.iter().map(|&at| self.tool_call(at, &calls[at], &reports)).collect();
        let told = |place: usize, envelope: &Envelope| {
            self.pass_on(calls, &reports);
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

    /// Hands reports of progress on while the calls run.
    async fn with_reports<T>(
        &self,
        running: impl Future<Output = T>,
        calls: &[ModelCall],
        reports: &Reports,
    ) -> T {
        let mut running = std::pin::pin!(running);
        let mut beat = tokio::time::interval(std::time::Duration::from_millis(200));
        loop {
            tokio::select! {
                biased;
                done = &mut running => return done,
                _ = beat.tick() => self.pass_on(calls, reports),
            }
        }
    }

    fn pass_on(&self, calls: &[ModelCall], reports: &Reports) {
        let news = std::mem::take(&mut *reports.lock().unwrap_or_else(PoisonError::into_inner));
        for (at, progress) in news {
            (self.tell)(AgentEvent::ToolProgress {
                call_id: calls[at].id.clone(),
                tool: calls[at].name.clone(),
                progress: progress.progress,
                total: progress.total,
                message: progress.message,
            });
        }
    }

    fn tool_call(&self, at: usize, call: &ModelCall, reports: &Reports) -> ToolCall {
        let own = self.agent.resource_tool(&call.name);
        let reports = Arc::clone(reports);
        let mut tool_call = ToolCall::from_text(&call.name, &call.arguments)
            .caller(&self.agent.settings.caller)
            .session(self.session)
            .request(self.request)
            .cancelled_by(self.cancel.clone())
            .on_progress(move |progress| {
                reports.lock().unwrap_or_else(PoisonError::into_inner).push((at, progress));
            });
        if let Some(tool) = own {
            tool_call = tool_call.running(tool);
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

    /// What the model is shown of an answer: never nothing, for models take that for a lost answer.
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

    /// The tools there are, for a model that invented one.
    fn names(&self) -> String {
        let tools = self.agent.runtime.tools();
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
