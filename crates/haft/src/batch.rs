//! Several calls at once: in parallel only where every tool concerned allows it.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::call::ToolCall;
use crate::envelope::Envelope;
use crate::runtime::Inner;

impl Inner {
    /// Runs the calls in order. Neighbours whose tools are `parallel_capable` run at the same time;
    /// a call whose tool is not runs alone. Answers come in the order of the calls; `told` hears each
    /// as soon as it is there, with the place of its call.
    pub(crate) async fn call_batch(
        self: &Arc<Self>,
        calls: Vec<ToolCall>,
        told: impl Fn(usize, &Envelope),
    ) -> Vec<Envelope> {
        let mut answers = Vec::with_capacity(calls.len());
        let mut group: Vec<ToolCall> = Vec::new();
        for call in calls {
            if self.is_parallel(&call) {
                group.push(call);
                continue;
            }
            answers
                .extend(self.call_together(std::mem::take(&mut group), answers.len(), &told).await);
            let answer = self.call(call).await;
            told(answers.len(), &answer);
            answers.push(answer);
        }
        answers.extend(self.call_together(group, answers.len(), &told).await);
        answers
    }

    fn is_parallel(&self, call: &ToolCall) -> bool {
        let snapshot = self.snapshot.load();
        // An unknown tool runs nothing, so it holds up nobody.
        let tool = snapshot.resolve(&call.tool);
        tool.is_none_or(|tool| tool.registered.effective.parallel_capable.value)
    }

    /// Runs calls at the same time; the first of them is the one at place `first`.
    async fn call_together(
        self: &Arc<Self>,
        calls: Vec<ToolCall>,
        first: usize,
        told: impl Fn(usize, &Envelope),
    ) -> Vec<Envelope> {
        let mut running = JoinSet::new();
        for (at, call) in calls.into_iter().enumerate() {
            let inner = Arc::clone(self);
            running.spawn(async move { (at, inner.call(call).await) });
        }
        let mut answers = Vec::with_capacity(running.len());
        while let Some(ended) = running.join_next().await {
            match ended {
                Ok((at, answer)) => {
                    told(first + at, &answer);
                    answers.push((at, answer));
                }
                // A tool that panics fails its own call only, so this is a panic of ours.
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        }
        answers.sort_by_key(|(at, _)| *at);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }
}
