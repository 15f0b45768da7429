//! The functions that expressions may call: those of CEL, with regular expressions that are compiled once.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::common::types::{self, CelBool, CelString};
use cel::common::value::CowVal;
use cel::{Env, ExecutionError};
use parking_lot::RwLock;
use regex::{Regex, RegexBuilder};

/// Global functions, by the names in expressions. The names of operators cannot be written there.
pub(super) const FUNCTIONS: [&str; 10] =
    ["size", "string", "int", "uint", "double", "bytes", "bool", "type", "dyn", "matches"];
/// Functions that are called on a value.
pub(super) const METHODS: [&str; 9] =
    ["size", "contains", "startsWith", "endsWith", "matches", "orValue", "or", "hasValue", "value"];
/// Macros, which the parser expands.
pub(super) const MACROS: [&str; 6] = ["has", "all", "exists", "exists_one", "filter", "map"];
/// Names of types, for `type(args.x) == string`.
pub(super) const TYPES: [&str; 10] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];

/// Largest program of a regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 1024 * 1024;
/// Most compiled regular expressions that are kept. Each is a literal of a rule.
const REGEXES_MAX: usize = 4096;

static REGEXES: LazyLock<RwLock<HashMap<String, Regex>>> = LazyLock::new(RwLock::default);

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    let pair = || vec![types::STRING_TYPE, types::STRING_TYPE];
    let added = env.add_overload("matches", "matches", pair(), matches_overload).and_then(|()| {
        env.add_member_overload(
            "matches",
            "string_matches",
            types::STRING_TYPE,
            vec![types::STRING_TYPE],
            matches_overload,
        )
    });
    // Only a second declaration fails, and a rule that calls an undeclared function denies.
    if let Err(error) = added {
        tracing::error!("`matches` cannot be declared: {error}");
    }
    Arc::new(env)
});

pub(super) fn environment() -> &'static Arc<Env> {
    &ENVIRONMENT
}

/// Compiles a regular expression of a rule.
pub(super) fn regex(pattern: &str) -> Result<Regex, String> {
    if let Some(known) = REGEXES.read().get(pattern) {
        return Ok(known.clone());
    }
    let built = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build();
    let regex = built.map_err(|error| error.to_string())?;
    let mut known = REGEXES.write();
    if known.len() >= REGEXES_MAX {
        known.clear();
    }
    known.insert(pattern.to_owned(), regex.clone());
    Ok(regex)
}

#[expect(clippy::needless_pass_by_value, reason = "the type of a function of CEL")]
fn matches_overload<'b, 'v>(
    arguments: Vec<CowVal<'b, 'v>>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = |at: usize| {
        let value = arguments.get(at).and_then(|value| value.downcast_ref::<CelString<'_>>());
        value.ok_or_else(|| ExecutionError::function_error("matches", "needs two strings"))
    };
    let (text, pattern) = (text(0)?, text(1)?);
    let regex =
        regex(pattern.inner()).map_err(|error| ExecutionError::function_error("matches", error))?;
    Ok(CowVal::owned(CelBool::from(regex.is_match(text.inner()))))
}
