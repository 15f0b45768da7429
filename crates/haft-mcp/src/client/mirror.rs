//! Arguments that travel as HTTP headers too (`x-mcp-header`, 2026-07-28).

use serde_json::Value;
use serde_json::value::RawValue;

/// One argument and the header it is mirrored in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirror {
    /// The property of the arguments.
    property: String,
    /// The part of the header's name behind `Mcp-Param-`.
    header: String,
}

/// Which properties of an input schema are mirrored, or why the schema says it wrongly.
pub(super) fn of_schema(_schema: &Value) -> Result<Vec<Mirror>, String> {
    Ok(Vec::new())
}

/// Header names behind `Mcp-Param-` and their values for these arguments.
pub(super) fn values(mirrors: &[Mirror], arguments: &RawValue) -> Vec<(String, String)> {
    let arguments: Value = serde_json::from_str(arguments.get()).unwrap_or_default();
    let value = |mirror: &Mirror| match arguments.get(&mirror.property)? {
        Value::String(text) => Some((mirror.header.clone(), text.clone())),
        value @ (Value::Bool(_) | Value::Number(_)) => {
            Some((mirror.header.clone(), value.to_string()))
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    mirrors.iter().filter_map(value).collect()
}
