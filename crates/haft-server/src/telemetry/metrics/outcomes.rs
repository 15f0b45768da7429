//! Outcomes of calls.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use haft::Code;

/// Every way to end. A code's place is [`place`].
const NAMES: [&str; 15] = [
    "success",
    "UnknownTool",
    "Denied",
    "ValidationError",
    "OutputValidationError",
    "Busy",
    "Timeout",
    "Cancelled",
    "ToolExecutionError",
    "ServiceUnavailable",
    "ProtocolError",
    "OutcomeUnknown",
    "DefinitionChanged",
    "Stopping",
    "RateLimited",
];

#[derive(Debug, Default)]
pub(super) struct Outcomes([AtomicU64; NAMES.len()]);

impl Outcomes {
    pub(super) fn count(&self, code: Option<Code>) {
        self.0[place(code)].fetch_add(1, Relaxed);
    }

    /// The calls that ended with a code.
    pub(super) fn of(&self, code: Code) -> u64 {
        self.0[place(Some(code))].load(Relaxed)
    }

    /// Every outcome with how often it was.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.into_iter().zip(self.0.iter().map(|count| count.load(Relaxed)))
    }
}

/// Spelled out, so that a new code is a compile error.
fn place(code: Option<Code>) -> usize {
    match code {
        None => 0,
        Some(Code::UnknownTool) => 1,
        Some(Code::Denied) => 2,
        Some(Code::ValidationError) => 3,
        Some(Code::OutputValidationError) => 4,
        Some(Code::Busy) => 5,
        Some(Code::Timeout) => 6,
        Some(Code::Cancelled) => 7,
        Some(Code::ToolExecutionError) => 8,
        Some(Code::ServiceUnavailable) => 9,
        Some(Code::ProtocolError) => 10,
        Some(Code::OutcomeUnknown) => 11,
        Some(Code::DefinitionChanged) => 12,
        Some(Code::Stopping) => 13,
        Some(Code::RateLimited) => 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_counts_under_its_own_name() {
        for name in NAMES.into_iter().skip(1) {
            let code: Code = serde_json::from_value(name.into()).unwrap();
            let outcomes = Outcomes::default();
            outcomes.count(Some(code));
            let counted: Vec<_> = outcomes.each().filter(|(_, count)| *count > 0).collect();
            assert_eq!(counted, [(name, 1)]);
        }
    }
}
