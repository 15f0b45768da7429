//! Checks that a history of reads and conditional writes of one register is linearizable.
//!
//! The search is that of Wing and Gong: an operation takes effect at one point between its start and its end, and the
//! points must explain every result. Each write has a value of its own, so a value is reached in one way only: the search
//! visits every write at most once and needs no memory of visited states.

use std::time::Duration;

/// The value of a register: the number of the write that set it.
pub type Value = u64;

/// One operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Time of the request.
    pub began: Duration,
    /// Time of the answer.
    pub ended: Duration,
    /// The operation and its result.
    pub kind: Kind,
}

/// An operation and its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A read returned this value.
    Read(Value),
    /// `new` replaced `expected`.
    Written {
        /// The value that the client had read.
        expected: Value,
        /// The value that it wrote.
        new: Value,
    },
    /// The register was not at `expected`, so nothing was written.
    Refused {
        /// The value that the client had read.
        expected: Value,
    },
    /// The client does not know whether `new` replaced `expected`, now or later.
    Unknown {
        /// The value that the client had read.
        expected: Value,
        /// The value that it wrote.
        new: Value,
    },
}

/// An operation that no order explains.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no order explains {operation:?}: {explained} of {all} operations are explained")]
pub struct NotLinearizable {
    /// The first operation that the longest explanation leaves out.
    pub operation: Operation,
    /// Length of the longest explanation.
    pub explained: usize,
    /// Number of operations.
    pub all: usize,
}

/// Returns an error unless some order of the operations explains all results.
pub fn check(initial: Value, operations: &[Operation]) -> Result<(), NotLinearizable> {
    let mut operations = operations.to_vec();
    operations.sort_by_key(|operation| (operation.began, operation.ended));
    let mut search = Search { longest: Vec::new(), operations };
    let mut open = vec![State { value: initial, done: Vec::new(), first_open: 0 }];
    while let Some(mut state) = open.pop() {
        search.explain_unchanged(&mut state);
        if search.is_explained(&state) {
            return Ok(());
        }
        search.note(&state);
        open.extend(search.successors(&state));
    }
    Err(search.failure())
}

/// A point of the search.
#[derive(Debug, Clone)]
struct State {
    value: Value,
    /// For each operation: true if it has taken effect. Operations beyond the end have not.
    done: Vec<bool>,
    /// Everything before it is done.
    first_open: usize,
}

struct Search {
    operations: Vec<Operation>,
    longest: Vec<bool>,
}

impl Kind {
    fn is_certain(&self) -> bool {
        match self {
            Self::Read(_) | Self::Written { .. } | Self::Refused { .. } => true,
            Self::Unknown { .. } => false,
        }
    }
}

impl State {
    fn is_done(&self, index: usize) -> bool {
        self.done.get(index).copied().unwrap_or(false)
    }

    fn finish(&mut self, index: usize) {
        if self.done.len() <= index {
            self.done.resize(index + 1, false);
        }
        self.done[index] = true;
        while self.is_done(self.first_open) {
            self.first_open += 1;
        }
    }
}

impl Search {
    /// The operations that may be next: they began before every open operation ended. An operation whose result is
    /// unknown has no end.
    fn candidates(&self, state: &State) -> Vec<usize> {
        let mut earliest_end = Duration::MAX;
        let mut found = Vec::new();
        for (index, operation) in self.operations.iter().enumerate().skip(state.first_open) {
            if operation.began > earliest_end {
                break;
            }
            if state.is_done(index) {
                continue;
            }
            found.push(index);
            if operation.kind.is_certain() {
                earliest_end = earliest_end.min(operation.ended);
            }
        }
        found.retain(|index| self.operations[*index].began <= earliest_end);
        found
    }

    /// Lets all operations take effect that leave the value as it is: doing so at once excludes no order.
    fn explain_unchanged(&self, state: &mut State) {
        loop {
            let fitting: Vec<usize> = self
                .candidates(state)
                .into_iter()
                .filter(|index| match self.operations[*index].kind {
                    Kind::Read(value) => value == state.value,
                    Kind::Refused { expected } => expected != state.value,
                    Kind::Written { .. } | Kind::Unknown { .. } => false,
                })
                .collect();
            if fitting.is_empty() {
                return;
            }
            for index in fitting {
                state.finish(index);
            }
        }
    }

    fn successors(&self, state: &State) -> Vec<State> {
        let candidates = self.candidates(state).into_iter();
        candidates
            .filter_map(|index| match self.operations[index].kind {
                Kind::Written { expected, new } | Kind::Unknown { expected, new }
                    if expected == state.value =>
                {
                    let mut next = State { value: new, ..state.clone() };
                    next.finish(index);
                    Some(next)
                }
                Kind::Written { .. }
                | Kind::Unknown { .. }
                | Kind::Read(_)
                | Kind::Refused { .. } => None,
            })
            .collect()
    }

    fn open_certain<'a>(&'a self, done: &'a [bool]) -> impl Iterator<Item = &'a Operation> {
        let is_done = |index: usize| done.get(index).copied().unwrap_or(false);
        let open = self.operations.iter().enumerate().filter(move |(index, _)| !is_done(*index));
        open.map(|(_, operation)| operation).filter(|operation| operation.kind.is_certain())
    }

    fn is_explained(&self, state: &State) -> bool {
        self.open_certain(&state.done).next().is_none()
    }

    fn note(&mut self, state: &State) {
        let count = |done: &[bool]| done.iter().filter(|it| **it).count();
        if count(&state.done) >= count(&self.longest) {
            self.longest.clone_from(&state.done);
        }
    }

    fn failure(&self) -> NotLinearizable {
        let explained = self.longest.iter().filter(|it| **it).count();
        let first = self.open_certain(&self.longest).next();
        let operation = first.copied().expect("an operation is left");
        NotLinearizable { operation, explained, all: self.operations.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(began: u64, ended: u64, kind: Kind) -> Operation {
        Operation { began: Duration::from_millis(began), ended: Duration::from_millis(ended), kind }
    }

    fn written(expected: Value, new: Value) -> Kind {
        Kind::Written { expected, new }
    }

    #[test]
    fn reads_and_writes_in_turn_are_linearizable() {
        let history = [
            at(0, 1, Kind::Read(0)),
            at(2, 5, written(0, 1)),
            at(3, 4, Kind::Read(0)),
            at(3, 6, Kind::Read(1)),
            at(7, 8, Kind::Refused { expected: 0 }),
            at(9, 10, written(1, 2)),
            at(11, 12, Kind::Read(2)),
        ];
        assert_eq!(check(0, &history), Ok(()));
    }

    #[test]
    fn a_read_of_an_older_value_is_found() {
        let history = [at(0, 1, written(0, 1)), at(2, 3, Kind::Read(0))];
        let failure = check(0, &history).unwrap_err();
        assert_eq!((failure.operation, failure.explained), (history[1], 1));
    }

    #[test]
    fn two_writes_over_one_value_are_found() {
        let history = [at(0, 5, written(0, 1)), at(0, 5, written(0, 2))];
        assert!(check(0, &history).is_err());
    }

    #[test]
    fn a_lost_write_is_found() {
        let history = [at(0, 1, written(0, 1)), at(2, 3, written(1, 2)), at(4, 5, Kind::Read(1))];
        assert!(check(0, &history).is_err());
    }

    #[test]
    fn a_refusal_without_a_reason_is_found() {
        let history = [at(0, 1, Kind::Refused { expected: 0 }), at(2, 3, Kind::Read(0))];
        assert!(check(0, &history).is_err());
    }

    #[test]
    fn a_write_with_an_unknown_result_may_count_late_or_never() {
        let unknown = at(0, 1, Kind::Unknown { expected: 0, new: 1 });
        assert_eq!(check(0, &[unknown, at(2, 3, Kind::Read(0)), at(9, 10, Kind::Read(1))]), Ok(()));
        assert_eq!(check(0, &[unknown, at(2, 3, Kind::Read(0)), at(9, 10, written(0, 2))]), Ok(()));
        let both = [unknown, at(2, 3, Kind::Read(1)), at(4, 5, Kind::Read(0))];
        assert!(check(0, &both).is_err());
    }

    #[test]
    fn a_long_history_is_checked_in_time() {
        let mut history = Vec::new();
        for number in 0..5_000 {
            let began = number * 10;
            history.push(at(began, began + 5, written(number, number + 1)));
            history.push(at(began + 6, began + 12, Kind::Read(number + 1)));
            if number % 50 == 0 {
                let kind = Kind::Unknown { expected: number, new: 1_000_000 + number };
                history.push(at(began, began + 9, kind));
            }
        }
        assert_eq!(check(0, &history), Ok(()));
        history.push(at(40_007, 40_008, Kind::Read(17)));
        assert!(check(0, &history).is_err());
    }
}
