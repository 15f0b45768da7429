//! JSON as values of CEL. Strings are borrowed, and only arguments that the expression names are converted.

use std::collections::HashMap;

use cel::Context;
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::Val;
use serde_json::Value;

use super::names::{ARGS, CALLER, Names, TOOL};
use super::{Annotations, CallerInput, Inputs, ToolInput};

type Map<'v> = HashMap<CelMapKey<'v>, Box<dyn Val + 'v>>;

/// Adds the variables that the expression reads.
pub(super) fn bind<'v>(context: &mut Context<'_, 'v>, inputs: &Inputs<'v>, names: &Names) {
    if names.reads(ARGS) {
        context.add_variable_as_val(ARGS, arguments(inputs.args, names));
    }
    if names.reads(TOOL) {
        context.add_variable_as_val(TOOL, tool(&inputs.tool));
    }
    if names.reads(CALLER) {
        context.add_variable_as_val(CALLER, caller(&inputs.caller));
    }
}

fn arguments<'v>(args: &'v Value, names: &Names) -> Box<dyn Val + 'v> {
    let Value::Object(all) = args else { return value(args) };
    let used = all.iter().filter(|(name, _)| names.arguments.includes(name));
    let used: Map<'v> = used.map(|(name, it)| (name.as_str().into(), value(it))).collect();
    Box::new(CelMap::from(used))
}

fn value(json: &Value) -> Box<dyn Val + '_> {
    match json {
        Value::Null => Box::new(CelNull),
        Value::Bool(it) => Box::new(CelBool::from(*it)),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(it), _, _) => Box::new(CelInt::from(it)),
            (None, Some(it), _) => Box::new(CelUInt::from(it)),
            (None, None, Some(it)) => Box::new(CelDouble::from(it)),
            (None, None, None) => Box::new(CelNull),
        },
        Value::String(it) => text(it),
        Value::Array(items) => {
            let items: Vec<Box<dyn Val + '_>> = items.iter().map(value).collect();
            Box::new(CelList::from(items))
        }
        Value::Object(entries) => {
            let entries: Map<'_> =
                entries.iter().map(|(name, it)| (name.as_str().into(), value(it))).collect();
            Box::new(CelMap::from(entries))
        }
    }
}

fn tool<'v>(tool: &ToolInput<'v>) -> Box<dyn Val + 'v> {
    let ToolInput { name, server, annotations } = *tool;
    let Annotations { read_only, destructive, idempotent, open_world } = annotations;
    let hints = [
        ("readOnlyHint", read_only),
        ("destructiveHint", destructive),
        ("idempotentHint", idempotent),
        ("openWorldHint", open_world),
    ];
    let hints: Map<'v> = hints
        .into_iter()
        .map(|(name, hint)| (name.into(), Box::new(CelBool::from(hint)) as Box<dyn Val + 'v>))
        .collect();
    let mut entries = texts([("name", name), ("server", server)]);
    entries.insert("annotations".into(), Box::new(CelMap::from(hints)));
    Box::new(CelMap::from(entries))
}

fn caller<'v>(caller: &CallerInput<'v>) -> Box<dyn Val + 'v> {
    let CallerInput { name, key, scope, profile, session } = *caller;
    let entries = [
        ("name", name),
        ("key", key),
        ("scope", scope),
        ("profile", profile),
        ("session", session),
    ];
    Box::new(CelMap::from(texts(entries)))
}

fn texts<'v, const N: usize>(entries: [(&'static str, &'v str); N]) -> Map<'v> {
    entries.into_iter().map(|(name, it)| (name.into(), text(it))).collect()
}

fn text(it: &str) -> Box<dyn Val + '_> {
    Box::new(CelString::from(it))
}
