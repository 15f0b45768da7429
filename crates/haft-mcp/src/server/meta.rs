//! What a request says about itself in `_meta`.

use haft_bounds::parse_error::describe;
use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::level::Level;
use crate::error::{INVALID_PARAMS, RpcError};

/// The fields of `_meta` that the protocol knows.
#[derive(Default, Deserialize)]
pub(super) struct Meta<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(super) protocol_version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(super) capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub(super) client_info: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<Cow<'a, str>>,
}

/// What a request wants beside its answer.
#[derive(Default)]
pub(super) struct Wishes {
    /// To hear of its progress under this token.
    pub(super) progress_token: Option<Box<RawValue>>,
    /// To get log messages from this level on.
    pub(super) level: Option<Level>,
}

impl<'a> Meta<'a> {
    pub(super) fn read(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<Meta<'a>>,
        }
        let Some(params) = params else { return Ok(Self::default()) };
        // Most requests of the legacy era have none; looking for the word is cheaper than reading all.
        let has_meta = memchr::memmem::find(params.get().as_bytes(), b"_meta").is_some();
        // A list would be taken for the values in the order in which we happen to name them.
        if !params.get().starts_with('{') {
            let text = "Invalid params: they are no object";
            return Err(RpcError::new(INVALID_PARAMS, text));
        }
        if !has_meta {
            return Ok(Self::default());
        }
        let params: Params<'_> = serde_json::from_str(params.get()).map_err(|error| {
            RpcError::new(
                INVALID_PARAMS,
                format!("Invalid params: they cannot be read: {}", describe(&error)),
            )
        })?;
        Ok(params.meta.unwrap_or_default())
    }

    /// What the request wants beside its answer.
    pub(super) fn wishes(&self) -> Result<Wishes, RpcError> {
        let level = self.log_level.as_deref().map(Level::read).transpose()?;
        Ok(Wishes { progress_token: self.progress_token(), level })
    }

    /// The token under which the request wants to hear of its progress. Only texts and numbers are such.
    pub(super) fn progress_token(&self) -> Option<Box<RawValue>> {
        let token = self.progress_token?;
        token
            .get()
            .starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
            .then(|| token.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_text_or_a_number() {
        let token = |json: &str| {
            let params: Box<RawValue> = serde_json::from_str(json).unwrap();
            Meta::read(Some(&params)).unwrap().progress_token().map(|it| it.get().to_owned())
        };
        assert_eq!(token(r#"{"_meta":{"progressToken":"a"}}"#).as_deref(), Some("\"a\""));
        assert_eq!(token(r#"{"_meta":{"progressToken":7},"x":1}"#).as_deref(), Some("7"));
        assert_eq!(token(r#"{"_meta":{"progressToken":null}}"#), None);
        assert_eq!(token(r#"{"_meta":{"progressToken":{}}}"#), None);
        assert_eq!(token(r"{}"), None);
        let list: Box<RawValue> = serde_json::from_str("[]").unwrap();
        assert_eq!(Meta::read(Some(&list)).err().unwrap().code, INVALID_PARAMS);
    }

    #[test]
    fn only_meta_tells_the_version() {
        let version = |json: &str| {
            let params: Box<RawValue> = serde_json::from_str(json).unwrap();
            Meta::read(Some(&params)).unwrap().protocol_version.map(Cow::into_owned)
        };
        let key = "io.modelcontextprotocol/protocolVersion";
        assert_eq!(version(&format!(r#"{{"_meta":{{"{key}":"x"}}}}"#)).as_deref(), Some("x"));
        assert_eq!(version(&format!(r#"{{"arguments":{{"_meta":{{"{key}":"x"}}}}}}"#)), None);
    }
}
