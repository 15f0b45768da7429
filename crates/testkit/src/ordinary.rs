//! Tools of ordinary size, for what is measured.

use serde_json::{Value, json};

/// An entry of `tools.json` with a schema of ordinary size.
pub fn ordinary_tool(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "type": "local",
        "input_schema": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "units": {"enum": ["metric", "imperial"]},
            },
            "required": ["city"],
            "additionalProperties": false,
        },
        "output_schema": {"type": "object", "properties": {"temp": {"type": "number"}}},
        "timeout": 15,
        "config": {"script_path": "weather.py"},
    })
}
