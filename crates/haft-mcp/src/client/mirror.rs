//! Arguments that travel as HTTP headers too (`x-mcp-header`, 2026-07-28), so that what stands
//! between can route a call without reading its body.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

const KEYWORD: &str = "x-mcp-header";

/// One argument and the header it is mirrored in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror {
    /// Where the argument is: the names of properties, from the outermost in.
    path: Vec<String>,
    /// The part of the header's name behind `Mcp-Param-`.
    header: String,
}

impl Mirror {
    /// The part of the header's name behind `Mcp-Param-`.
    pub(crate) fn header(&self) -> &str {
        &self.header
    }
}

/// Which properties of an input schema are mirrored, or why the schema says it wrongly.
pub(crate) fn of_schema(schema: &Value) -> Result<Vec<Mirror>, String> {
    let mut found = Found::default();
    found.schema(schema, Place::Property, &mut Vec::new())?;
    Ok(found.mirrors)
}

/// Header names behind `Mcp-Param-` and their values for these arguments. What is absent, null or
/// not plain has no header.
pub(crate) fn values(mirrors: &[Mirror], arguments: &RawValue) -> Vec<(String, String)> {
    let value = |mirror: &Mirror| {
        let mut value = arguments;
        for name in &mirror.path {
            let fields: HashMap<Cow<'_, str>, &RawValue> =
                serde_json::from_str(value.get()).ok()?;
            value = fields.get(name.as_str())?;
        }
        Some((mirror.header.clone(), plain(value.get())?))
    };
    mirrors.iter().filter_map(value).collect()
}

/// Where in a schema we are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the root, or at a property that is reached through properties alone.
    Property,
    /// Below anything else: a list's items, a choice, a definition. Whether and how often it holds
    /// for a call is not known before the call.
    Elsewhere,
}

#[derive(Default)]
struct Found {
    mirrors: Vec<Mirror>,
    taken: HashSet<String>,
}

impl Found {
    fn schema(
        &mut self,
        schema: &Value,
        place: Place,
        path: &mut Vec<String>,
    ) -> Result<(), String> {
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Array(schemas) => {
                for schema in schemas {
                    self.schema(schema, Place::Elsewhere, path)?;
                }
                return Ok(());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(()),
        };
        for (keyword, value) in fields {
            match keyword.as_str() {
                KEYWORD => self.mirror(value, fields, place, path)?,
                "properties" => self.named(value, place, path)?,
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                    self.named(value, Place::Elsewhere, path)?;
                }
                // These hold examples of arguments, not schemas.
                "default" | "const" | "enum" | "examples" => {}
                _ => self.schema(value, Place::Elsewhere, path)?,
            }
        }
        Ok(())
    }

    /// Schemas by name.
    fn named(
        &mut self,
        schemas: &Value,
        place: Place,
        path: &mut Vec<String>,
    ) -> Result<(), String> {
        for (name, schema) in schemas.as_object().into_iter().flatten() {
            path.push(name.clone());
            self.schema(schema, place, path)?;
            path.pop();
        }
        Ok(())
    }

    fn mirror(
        &mut self,
        header: &Value,
        schema: &Map<String, Value>,
        place: Place,
        path: &[String],
    ) -> Result<(), String> {
        let refuse = |why: &str| Err(format!("`{KEYWORD}` of `{}` {why}", path.join(".")));
        if path.is_empty() {
            return Err(format!("`{KEYWORD}` stands at the root of the schema"));
        }
        if place == Place::Elsewhere {
            return refuse("is not reached through properties alone");
        }
        let Value::String(header) = header else { return refuse("is no string") };
        if header.is_empty() || !header.bytes().all(is_token_byte) {
            return refuse("is no name for a header");
        }
        if !self.taken.insert(header.to_ascii_lowercase()) {
            return refuse("names a header that another property has");
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("string" | "integer" | "boolean") => {}
            _ => return refuse("is on a property that is no string, integer or boolean"),
        }
        self.mirrors.push(Mirror { path: path.to_vec(), header: header.clone() });
        Ok(())
    }
}

/// Whether RFC 9110 allows the byte in a token.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// JSON text as a header says it: a string without quotes, an integer without a fraction.
fn plain(json: &str) -> Option<String> {
    /// Up to here every integer is a float of its own.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let json = json.trim();
    match json.bytes().next()? {
        b'"' => serde_json::from_str(json).ok(),
        b't' | b'f' => Some(json.to_owned()),
        b'-' | b'0'..=b'9' if !json.contains(['.', 'e', 'E']) => Some(json.to_owned()),
        b'-' | b'0'..=b'9' => {
            let number: f64 = json.parse().ok()?;
            let is_integer = number.fract() == 0.0 && number.abs() <= EXACT_MAX;
            Some(if is_integer { format!("{number:.0}") } else { json.to_owned() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mirrored(schema: &Value, arguments: &str) -> Vec<(String, String)> {
        let arguments: Box<RawValue> = serde_json::from_str(arguments).unwrap();
        values(&of_schema(schema).unwrap(), &arguments)
    }

    fn pair(header: &str, value: &str) -> (String, String) {
        (header.to_owned(), value.to_owned())
    }

    #[test]
    fn plain_arguments_are_mirrored_wherever_properties_lead() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "inner": {"type": "object", "properties": {
                "x-mcp-header": {"type": "string", "x-mcp-header": "Deep"}
            }, "default": {"x-mcp-header": 1}},
        }});
        assert_eq!(
            mirrored(
                &schema,
                r#"{"region":"\u00fc x","count":12345678901234567890123,"dry":false,
                    "inner":{"x-mcp-header":""}}"#
            ),
            [
                pair("Region", "ü x"),
                pair("Count", "12345678901234567890123"),
                pair("Dry", "false"),
                pair("Deep", ""),
            ]
        );
        assert_eq!(mirrored(&schema, r#"{"region":null,"count":4.2e1}"#), [pair("Count", "42")]);
        assert_eq!(mirrored(&schema, r#"{"region":["a"],"inner":7,"x-mcp-header":"z"}"#), []);
        assert_eq!(mirrored(&schema, "[]"), []);
    }

    #[test]
    fn a_schema_that_says_it_wrongly_is_refused_with_the_reason() {
        let refusal = |property: Value| {
            let twice = json!({"type": "string", "x-mcp-header": "Taken"});
            of_schema(&json!({"properties": {"a": twice, "b": property}})).unwrap_err()
        };
        let on = |header: Value| json!({"type": "string", "x-mcp-header": header});
        let header_name = "`x-mcp-header` of `b` is no name for a header";
        assert_eq!(refusal(on(json!(""))), header_name);
        assert_eq!(refusal(on(json!("a b"))), header_name);
        assert_eq!(refusal(on(json!("ä"))), header_name);
        assert_eq!(refusal(on(json!("a:b"))), header_name);
        assert_eq!(refusal(on(json!(7))), "`x-mcp-header` of `b` is no string");
        assert_eq!(
            refusal(on(json!("tAKEN"))),
            "`x-mcp-header` of `b` names a header that another property has"
        );
        let kind = "`x-mcp-header` of `b` is on a property that is no string, integer or boolean";
        assert_eq!(refusal(json!({"type": "number", "x-mcp-header": "N"})), kind);
        assert_eq!(refusal(json!({"type": ["string", "null"], "x-mcp-header": "N"})), kind);
        assert_eq!(refusal(json!({"x-mcp-header": "N"})), kind);
        let place = "`x-mcp-header` of `b` is not reached through properties alone";
        assert_eq!(refusal(json!({"items": on(json!("N"))})), place);
        assert_eq!(refusal(json!({"oneOf": [on(json!("N"))]})), place);
        assert_eq!(
            of_schema(&json!({"x-mcp-header": "N"})).unwrap_err(),
            "`x-mcp-header` stands at the root of the schema"
        );
        assert_eq!(
            of_schema(&json!({"$defs": {"d": on(json!("N"))}})).unwrap_err(),
            "`x-mcp-header` of `d` is not reached through properties alone"
        );
    }
}
