//! Limits on the combined cost of one server's schemas.

use std::sync::Arc;

use serde_json::Value;

use super::{ALL_PATTERNS_BYTES_MAX, PATTERN_BYTES_MAX, Schema, patterns};

/// Maximum combined size of a server's schemas.
pub const SERVER_SCHEMAS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum combined number of patterns.
pub const SERVER_PATTERNS_MAX: usize = 2000;

/// Compiles the schemas of one server, or of the local tools, within limits.
#[derive(Debug)]
pub struct SchemaBudget {
    bytes_left: usize,
    patterns_left: usize,
    /// The share of each pattern in [`ALL_PATTERNS_BYTES_MAX`].
    pattern_bytes_max: usize,
}

impl SchemaBudget {
    /// Returns the budget for tools that the operator configured: each schema has only its own
    /// limits.
    pub fn of_operator() -> Self {
        Self {
            bytes_left: usize::MAX,
            patterns_left: usize::MAX,
            pattern_bytes_max: PATTERN_BYTES_MAX,
        }
    }

    /// Returns the budget of a server with these schemas. The more patterns they have, the smaller
    /// each may be, because their automata stay in memory.
    pub fn of_server<'s>(schemas: impl Iterator<Item = &'s Value>) -> Self {
        let all = schemas.map(patterns).sum::<usize>().clamp(1, SERVER_PATTERNS_MAX);
        Self {
            bytes_left: SERVER_SCHEMAS_BYTES_MAX,
            patterns_left: SERVER_PATTERNS_MAX,
            pattern_bytes_max: PATTERN_BYTES_MAX.min(ALL_PATTERNS_BYTES_MAX / all),
        }
    }

    /// Compiles one schema and deducts its cost. A schema that does not fit is rejected; later
    /// schemas may still fit.
    pub fn compile(&mut self, schema: &Value) -> Result<Arc<Schema>, String> {
        let text = schema.to_string();
        let patterns = patterns(schema);
        if text.len() > self.bytes_left {
            return Err(format!(
                "the schemas of its server have more than {SERVER_SCHEMAS_BYTES_MAX} bytes together"
            ));
        }
        if patterns > self.patterns_left {
            return Err(format!(
                "the schemas of its server have more than {SERVER_PATTERNS_MAX} patterns together"
            ));
        }
        self.bytes_left -= text.len();
        self.patterns_left -= patterns;
        Schema::shared_as(text, schema, self.pattern_bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A pattern whose automaton takes about a megabyte.
    fn heavy(n: usize) -> Value {
        json!({"type": "object", "properties": {"x": {"pattern": format!("^{n}\\p{{L}}{{30}}$")}}})
    }

    #[test]
    fn patterns_share_the_memory_of_their_server() {
        let few: Vec<Value> = (0..8).map(heavy).collect();
        let mut budget = SchemaBudget::of_server(few.iter());
        assert!(few.iter().all(|schema| budget.compile(schema).is_ok()));
        let many: Vec<Value> = (100..1100).map(heavy).collect();
        let mut budget = SchemaBudget::of_server(many.iter());
        assert!(many.iter().all(|schema| budget.compile(schema).is_err()));
        let plain = json!({"type": "object", "properties": {"x": {"pattern": "^[a-z]{1,20}$"}}});
        assert!(budget.compile(&plain).is_ok());
    }

    #[test]
    fn a_server_has_so_many_patterns_and_bytes() {
        let schema =
            |n: usize| json!({"title": n.to_string(), "properties": {"x": {"pattern": "^a$"}}});
        let mut budget = SchemaBudget::of_server(std::iter::empty());
        for n in 0..SERVER_PATTERNS_MAX {
            budget.compile(&schema(n)).unwrap();
        }
        let error = budget.compile(&schema(SERVER_PATTERNS_MAX)).unwrap_err();
        assert_eq!(error, "the schemas of its server have more than 2000 patterns together");
        assert!(budget.compile(&json!({"type": "object"})).is_ok());
        let long = json!({"description": "x".repeat(1000 * 1000)});
        let fit = (0..100).take_while(|_| budget.compile(&long).is_ok()).count();
        assert_eq!(fit, 8);
    }
}
