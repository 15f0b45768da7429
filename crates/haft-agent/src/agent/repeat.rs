//! The guard against a model that makes the same call again and again.

use std::collections::HashMap;

use haft_bounds::json::{Budget, NODES_MAX};

use crate::model::ModelCall;

/// Maximum number of warnings about repetition before the turn ends.
const WARNINGS_MAX: u32 = 3;

/// The calls of one turn, counted.
pub(super) struct Repeats {
    max: u32,
    made: HashMap<(String, String), u32>,
    warnings: u32,
}

impl Repeats {
    pub(super) fn new(max: u32) -> Self {
        Self { max, made: HashMap::new(), warnings: 0 }
    }

    /// Counts a call. Returns a message for the model if the call was repeated too often.
    pub(super) fn refuse(&mut self, call: &ModelCall) -> Option<String> {
        let key = (call.name.clone(), spelling(&call.arguments));
        let made = self.made.entry(key).or_default();
        *made += 1;
        if *made <= self.max {
            return None;
        }
        self.warnings += 1;
        Some(format!(
            "this call was made {} times already with the same arguments and is not made again; use the answer you \
             have, change the arguments, or go another way",
            *made - 1
        ))
    }

    /// Returns true if the warnings had no effect.
    pub(super) fn is_stuck(&self) -> bool {
        self.warnings >= WARNINGS_MAX
    }
}

/// One spelling for arguments that differ only in spaces or the order of keys.
fn spelling(arguments: &str) -> String {
    let fits = Budget::nodes(NODES_MAX).check(arguments.as_bytes()).is_ok();
    let read = fits.then(|| serde_json::from_str::<serde_json::Value>(arguments).ok());
    read.flatten().map_or_else(|| arguments.trim().to_owned(), |value| sorted(&value).to_string())
}

fn sorted(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            Value::Object(
                entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}
