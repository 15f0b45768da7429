//! A call of a tool, read together with its message: its arguments may be long, and are read once here.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use haft_bounds::effort;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::params::{CALL, Fields, Params};

/// A call of a tool, borrowed from its message.
pub(super) struct CallMessage<'a> {
    pub(super) id: &'a RawValue,
    pub(super) params: Params<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Object<Fields<'a>>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl<'a> CallMessage<'a> {
    /// Reads a message that is within its budget. `None` if it is not a valid call: the general reader
    /// knows the other messages, and reports what is wrong.
    pub(super) fn read(message: &'a [u8]) -> Option<Self> {
        // Other messages are not worth a second read.
        memchr::memmem::find(message, CALL.as_bytes())?;
        let text = std::str::from_utf8(message).ok()?;
        effort::parsing(message);
        let Object(Message { id, method, params, result, error }) =
            serde_json::from_str(text).ok()?;
        let is_call = method == CALL && id.get() != "null" && result.is_none() && error.is_none();
        is_call.then(|| Self { id, params: params.0.into() })
    }
}

/// A struct that is read from an object alone: serde also takes a list for the fields in their order.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(message: &str) -> Option<(String, String, String)> {
        let call = CallMessage::read(message.as_bytes())?;
        let tool = call.params.tool(CALL).ok()??;
        let arguments = tool.arguments.map(|it| it.get().to_owned()).unwrap_or_default();
        Some((call.id.get().to_owned(), tool.name, arguments))
    }

    #[test]
    fn calls_keep_their_text() {
        let message = r#"{"params":{"arguments":{"b": 1e400, "a":[]},"name":"\u0061dd","x":1},"id":"7","method":"tools/call","jsonrpc":"2.0"}"#;
        let read = call(message).unwrap();
        assert_eq!(read, ("\"7\"".into(), "add".into(), r#"{"b": 1e400, "a":[]}"#.into()));
    }

    /// Everything else is left to the general reader, which has the words for it.
    #[test]
    fn other_messages_are_left_alone() {
        for message in [
            r#"{"id":1,"method":"tools/list","params":{"name":"tools/call"}}"#,
            r#"{"id":null,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"id":1,"method":"tools/call"}"#,
            r#"{"id":1,"method":"tools/call","params":["a"]}"#,
            r#"[1,"tools/call",{"name":"a"}]"#,
            r#"{"id":1,"id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"a"},"result":{}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"a"}} {}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"a"}"#,
        ] {
            assert!(CallMessage::read(message.as_bytes()).is_none(), "{message}");
        }
    }
}
