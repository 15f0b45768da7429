//! The parameters of a request, read once for everything that needs a part of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use haft_bounds::effort;
use haft_bounds::parse_error::describe;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ToolRequest;
use super::input::Input;
use super::meta::Meta;
use crate::error::{INVALID_PARAMS, RpcError};

/// The method of most requests, and of the longest.
pub(super) const CALL: &str = "tools/call";

/// The fields that the protocol knows, borrowed from the message.
#[derive(Default)]
pub(super) struct Params<'a> {
    pub(super) meta: Meta<'a>,
    name: Option<&'a RawValue>,
    uri: Option<&'a RawValue>,
    task_id: Option<&'a RawValue>,
    pub(super) arguments: Option<&'a RawValue>,
    input_responses: Option<&'a RawValue>,
    request_state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fields<'a> {
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<Meta<'a>>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    task_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

impl<'a> From<Fields<'a>> for Params<'a> {
    fn from(fields: Fields<'a>) -> Self {
        let Fields { meta, name, uri, task_id, arguments, input_responses, request_state } = fields;
        let meta = meta.unwrap_or_default();
        Self { meta, name, uri, task_id, arguments, input_responses, request_state }
    }
}

impl<'a> Params<'a> {
    pub(super) fn read(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let Some(params) = params else { return Ok(Self::default()) };
        // A list would be taken for the values in the order in which we happen to name them.
        if !params.get().starts_with('{') {
            let text = "Invalid params: not an object";
            return Err(RpcError::new(INVALID_PARAMS, text));
        }
        effort::parsing(params.get().as_bytes());
        let fields: Fields<'_> = serde_json::from_str(params.get()).map_err(|error| {
            let text = format!("Invalid params: they cannot be read: {}", describe(&error));
            RpcError::new(INVALID_PARAMS, text)
        })?;
        Ok(fields.into())
    }

    /// The call of a tool; nothing for another method.
    pub(super) fn tool(&self, method: &str) -> Result<Option<ToolRequest>, RpcError> {
        if method != CALL {
            return Ok(None);
        }
        let name = text("name", self.name)?.into_owned();
        let arguments = self.arguments.map(|arguments| {
            // Once into a box and once into the shared allocation.
            effort::copying(arguments.get());
            effort::copying(arguments.get());
            Arc::from(arguments.to_owned())
        });
        Ok(Some(ToolRequest { name, arguments }))
    }

    /// The name, URI or id that a method is about. An unreadable one is refused: nothing could be compared.
    pub(super) fn subject(&self, method: &str) -> Result<Option<Cow<'a, str>>, RpcError> {
        match method {
            CALL | "prompts/get" => text("name", self.name).map(Some),
            "resources/read" => text("uri", self.uri).map(Some),
            "tasks/get" | "tasks/update" | "tasks/cancel" => text("taskId", self.task_id).map(Some),
            _ => Ok(None),
        }
    }

    /// The state of an earlier round, if it can be read.
    pub(super) fn request_state(&self) -> Option<String> {
        value(self.request_state?).ok()
    }

    /// The request's input from an earlier round.
    pub(super) fn input(&self) -> Result<Input, RpcError> {
        let input_responses: Option<HashMap<String, Box<RawValue>>> =
            self.input_responses.map(value).transpose()?;
        Ok(Input { input_responses, request_state: self.request_state.map(value).transpose()? })
    }
}

fn text<'a>(field: &str, found: Option<&'a RawValue>) -> Result<Cow<'a, str>, RpcError> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let Some(found) = found else {
        let text = format!("Invalid params: missing field `{field}`");
        return Err(RpcError::new(INVALID_PARAMS, text));
    };
    value::<Text<'a>>(found).map(|Text(text)| text)
}

fn value<'a, T: Deserialize<'a>>(found: &'a RawValue) -> Result<T, RpcError> {
    serde_json::from_str(found.get()).map_err(|error| {
        RpcError::new(INVALID_PARAMS, format!("Invalid params: {}", describe(&error)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn each_method_finds_its_part() {
        let params = raw(r#"{"name":"a\u0062","arguments":{"x":1},"uri":"u","taskId":"t"}"#);
        let params = Params::read(Some(&params)).unwrap();
        let tool = params.tool("tools/call").unwrap().unwrap();
        assert_eq!((tool.name.as_str(), tool.arguments.unwrap().get()), ("ab", r#"{"x":1}"#));
        assert!(params.tool("tools/list").unwrap().is_none());
        let subject = |method: &str| params.subject(method).unwrap().map(Cow::into_owned);
        assert_eq!(subject("prompts/get").as_deref(), Some("ab"));
        assert_eq!(subject("resources/read").as_deref(), Some("u"));
        assert_eq!(subject("tasks/get").as_deref(), Some("t"));
        assert_eq!(subject("tools/list"), None);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for (json, problem) in [
            ("[]", "not an object"),
            (r#"{"name":1}"#, "expected a string"),
            ("{}", "missing field `name`"),
            (r#"{"name":"a","name":"b"}"#, "duplicate field"),
        ] {
            let params = raw(json);
            let read = Params::read(Some(&params)).and_then(|it| it.tool("tools/call"));
            let error = read.err().unwrap();
            assert_eq!(error.code, INVALID_PARAMS);
            assert!(error.message.contains(problem), "{json}: {}", error.message);
        }
    }
}
