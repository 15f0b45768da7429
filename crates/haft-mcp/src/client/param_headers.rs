//! Arguments that travel as HTTP headers too (`x-mcp-header`, 2026-07-28), so that proxies can route a call without
//! reading its body.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

const KEYWORD: &str = "x-mcp-header";

/// An argument that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    /// Where the argument is: the names of properties, from the outermost in.
    path: Vec<String>,
    /// The part of the header's name behind `Mcp-Param-`.
    header: String,
}

impl ParamHeader {
    /// The part of the header's name behind `Mcp-Param-`.
    pub(crate) fn header(&self) -> &str {
        &self.header
    }
}

/// Returns the properties of an input schema that are repeated in headers, or the error in its annotations.
pub(crate) fn of_schema(schema: &Value) -> Result<Vec<ParamHeader>, String> {
    let mut found = Found::default();
    found.schema(schema, Location::Property, &mut Vec::new())?;
    Ok(found.param_headers)
}

/// Header names behind `Mcp-Param-` and their values for these arguments. What is absent, null or
/// not plain has no header.
pub(crate) fn values(param_headers: &[ParamHeader], arguments: &RawValue) -> Vec<(String, String)> {
    let value = |header: &ParamHeader| {
        let mut value = arguments;
        for name in &header.path {
            let fields: HashMap<Cow<'_, str>, &RawValue> =
                serde_json::from_str(value.get()).ok()?;
            value = fields.get(name.as_str())?;
        }
        Some((header.header.clone(), plain(value.get())?))
    };
    param_headers.iter().filter_map(value).collect()
}

/// Where in a schema we are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    /// At the root, or at a property that is reached through properties alone.
    Property,
    /// Below anything else: a list's items, a choice, a definition. Whether and how often it holds
    /// for a call is not known before the call.
    Elsewhere,
}

#[derive(Default)]
struct Found {
    param_headers: Vec<ParamHeader>,
    taken: HashSet<String>,
}

impl Found {
    fn schema(
        &mut self,
        schema: &Value,
        location: Location,
        path: &mut Vec<String>,
    ) -> Result<(), String> {
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Array(schemas) => {
                for schema in schemas {
                    self.schema(schema, Location::Elsewhere, path)?;
                }
                return Ok(());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(()),
        };
        for (keyword, value) in fields {
            match keyword.as_str() {
                KEYWORD => self.add_header(value, fields, location, path)?,
                "properties" => self.named(value, location, path)?,
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                    self.named(value, Location::Elsewhere, path)?;
                }
                // These hold examples of arguments, not schemas.
                "default" | "const" | "enum" | "examples" => {}
                _ => self.schema(value, Location::Elsewhere, path)?,
            }
        }
        Ok(())
    }

    /// Schemas by name.
    fn named(
        &mut self,
        schemas: &Value,
        location: Location,
        path: &mut Vec<String>,
    ) -> Result<(), String> {
        for (name, schema) in schemas.as_object().into_iter().flatten() {
            path.push(name.clone());
            self.schema(schema, location, path)?;
            path.pop();
        }
        Ok(())
    }

    fn add_header(
        &mut self,
        header: &Value,
        schema: &Map<String, Value>,
        location: Location,
        path: &[String],
    ) -> Result<(), String> {
        let refuse = |why: &str| Err(format!("`{KEYWORD}` of `{}` {why}", path.join(".")));
        if path.is_empty() {
            return Err(format!("`{KEYWORD}` stands at the root of the schema"));
        }
        if location == Location::Elsewhere {
            return refuse("is not reached through properties alone");
        }
        let Value::String(header) = header else { return refuse("is not a string") };
        if header.is_empty() || !header.bytes().all(is_token_byte) {
            return refuse("is not a valid header name");
        }
        if !self.taken.insert(header.to_ascii_lowercase()) {
            return refuse("names a header that another property has");
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("string" | "integer" | "boolean") => {}
            _ => return refuse("is on a property that is not a string, integer or boolean"),
        }
        self.param_headers.push(ParamHeader { path: path.to_vec(), header: header.clone() });
        Ok(())
    }
}

/// Returns true if RFC 9110 allows the byte in a token.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// JSON text as a header value: a string without quotes, an integer without a fraction.
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

    fn param_headers(schema: &Value, arguments: &str) -> Vec<(String, String)> {
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
            param_headers(
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
        assert_eq!(
            param_headers(&schema, r#"{"region":null,"count":4.2e1}"#),
            [pair("Count", "42")]
        );
        assert_eq!(param_headers(&schema, r#"{"region":["a"],"inner":7,"x-mcp-header":"z"}"#), []);
        assert_eq!(param_headers(&schema, "[]"), []);
    }

    #[test]
    fn an_invalid_schema_is_refused_with_the_reason() {
        let refusal = |property: Value| {
            let twice = json!({"type": "string", "x-mcp-header": "Taken"});
            of_schema(&json!({"properties": {"a": twice, "b": property}})).unwrap_err()
        };
        let on = |header: Value| json!({"type": "string", "x-mcp-header": header});
        let header_name = "`x-mcp-header` of `b` is not a valid header name";
        assert_eq!(refusal(on(json!(""))), header_name);
        assert_eq!(refusal(on(json!("a b"))), header_name);
        assert_eq!(refusal(on(json!("ä"))), header_name);
        assert_eq!(refusal(on(json!("a:b"))), header_name);
        assert_eq!(refusal(on(json!(7))), "`x-mcp-header` of `b` is not a string");
        assert_eq!(
            refusal(on(json!("tAKEN"))),
            "`x-mcp-header` of `b` names a header that another property has"
        );
        let kind =
            "`x-mcp-header` of `b` is on a property that is not a string, integer or boolean";
        assert_eq!(refusal(json!({"type": "number", "x-mcp-header": "N"})), kind);
        assert_eq!(refusal(json!({"type": ["string", "null"], "x-mcp-header": "N"})), kind);
        assert_eq!(refusal(json!({"x-mcp-header": "N"})), kind);
        let location = "`x-mcp-header` of `b` is not reached through properties alone";
        assert_eq!(refusal(json!({"items": on(json!("N"))})), location);
        assert_eq!(refusal(json!({"oneOf": [on(json!("N"))]})), location);
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
