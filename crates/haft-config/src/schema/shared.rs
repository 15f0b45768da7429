//! Shares compiled schemas in use, so that a rebuilt toolbox compiles new schemas only.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use serde_json::Value;

use super::Schema;

/// Number of entries from which unused schemas are removed.
const CLEAR_FROM: usize = 1024;

/// Compiled schemas by text, while they are in use.
static IN_USE: LazyLock<Mutex<InUse>> = LazyLock::new(Mutex::default);

struct InUse {
    /// Keyed by text: a collision-resistant hash takes longer than comparing strings of this size.
    schemas: HashMap<String, Weak<Schema>>,
    clear_at: usize,
}

impl Default for InUse {
    fn default() -> Self {
        Self { schemas: HashMap::new(), clear_at: CLEAR_FROM }
    }
}

impl Schema {
    /// Like [`compile`](Self::compile), but shares the result among users of the same schema.
    pub fn shared(schema: &Value) -> Result<Arc<Self>, String> {
        Self::shared_as(schema.to_string(), schema, super::PATTERN_BYTES_MAX)
    }

    /// Like [`shared`](Self::shared), for a schema whose text is `key`, with a limit for the
    /// automaton of each pattern. A schema in use is reused regardless of its limit, because it is
    /// in memory already.
    pub(super) fn shared_as(
        key: String,
        schema: &Value,
        pattern_bytes_max: usize,
    ) -> Result<Arc<Self>, String> {
        let in_use = || IN_USE.lock();
        if let Some(known) = in_use().schemas.get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        // Outside the lock, because a large schema takes time to compile.
        let compiled = Arc::new(Self::compile_within(schema, pattern_bytes_max)?);
        let mut in_use = in_use();
        in_use.schemas.insert(key, Arc::downgrade(&compiled));
        if in_use.schemas.len() >= in_use.clear_at {
            in_use.schemas.retain(|_, schema| schema.strong_count() > 0);
            in_use.clear_at = CLEAR_FROM.max(2 * in_use.schemas.len());
        }
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_schemas_are_compiled_once_and_forgotten_with_their_users() {
        let schema = json!({"type": "object", "title": "only this test has it"});
        let (one, other) = (Schema::shared(&schema).unwrap(), Schema::shared(&schema).unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        let different = Schema::shared(&json!({"type": "array", "title": "another"})).unwrap();
        assert!(!Arc::ptr_eq(&one, &different));
        let gone = Arc::downgrade(&one);
        drop((one, other));
        assert_eq!(gone.strong_count(), 0);
    }
}
