//! Several calls at once: in parallel only where every tool concerned allows it.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Calls, ToolCall, ToolboxSource};
use crate::envelope::Envelope;

impl Calls {
    /// Runs the calls in order. Adjacent calls of `parallel_capable` tools run at the same time;
    /// other calls run alone. Answers come in the order of the calls; `told` receives each as soon
    /// as it is available, with the index of its call.
    pub(crate) async fn run_batch(
        self: &Arc<Self>,
        source: &Arc<dyn ToolboxSource>,
        calls: Vec<ToolCall>,
        told: impl Fn(usize, &Envelope),
    ) -> Vec<Envelope> {
        let mut answers = Vec::with_capacity(calls.len());
        let mut group: Vec<ToolCall> = Vec::new();
        for call in calls {
            if is_parallel(&**source, &call) {
                group.push(call);
                continue;
            }
            let together = std::mem::take(&mut group);
            answers.extend(self.run_together(source, together, answers.len(), &told).await);
            let answer = self.run(&**source, call).await;
            told(answers.len(), &answer);
            answers.push(answer);
        }
        answers.extend(self.run_together(source, group, answers.len(), &told).await);
        answers
    }

    /// Runs calls at the same time; the first of them is the one at place `first`.
    async fn run_together(
        self: &Arc<Self>,
        source: &Arc<dyn ToolboxSource>,
        calls: Vec<ToolCall>,
        first: usize,
        told: impl Fn(usize, &Envelope),
    ) -> Vec<Envelope> {
        let mut running = JoinSet::new();
        for (at, call) in calls.into_iter().enumerate() {
            let (calls, source) = (Arc::clone(self), Arc::clone(source));
            running.spawn(async move { (at, calls.run(&*source, call).await) });
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

fn is_parallel(source: &dyn ToolboxSource, call: &ToolCall) -> bool {
    // An unknown tool runs nothing, so it delays no other call.
    let toolbox = source.current();
    let tool = toolbox.resolve(&call.tool);
    tool.is_none_or(|tool| tool.registered.effective.parallel_capable.value)
}
