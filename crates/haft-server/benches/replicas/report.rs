//! The counts and the problems of a workload. Its tasks share one.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Report(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    counts: BTreeMap<String, u64>,
    problems: Vec<String>,
    left: BTreeSet<String>,
}

impl Report {
    pub(crate) fn count(&self, word: impl Into<String>) {
        *self.0.lock().counts.entry(word.into()).or_default() += 1;
    }

    /// Notes what does not hold, and shows it at once, beside the fault that is being caused.
    pub(crate) fn problem(&self, problem: String) {
        println!("problem: {problem}");
        self.0.lock().problems.push(problem);
    }

    /// Notes a question that its client gave up: it stays open until it is answered, or for as long as a suspended request
    /// is kept.
    pub(crate) fn leave(&self, question: String) {
        self.0.lock().left.insert(question);
    }

    pub(crate) fn left(&self) -> BTreeSet<String> {
        self.0.lock().left.clone()
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.0.lock().counts.clone()
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.0.lock().problems.clone()
    }
}
