//! The `_meta` of a request.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::level::Level;
use crate::error::RpcError;

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

/// Options of a request in its `_meta`.
#[derive(Default)]
pub(super) struct RequestMeta {
    /// Token for progress notifications.
    pub(super) progress_token: Option<Box<RawValue>>,
    /// To get log messages from this level on.
    pub(super) level: Option<Level>,
}

impl Meta<'_> {
    /// The options of the request.
    pub(super) fn request_meta(&self) -> Result<RequestMeta, RpcError> {
        let level = self.log_level.as_deref().map(Level::read).transpose()?;
        Ok(RequestMeta { progress_token: self.progress_token(), level })
    }

    /// The token for progress notifications. Only strings and numbers are valid.
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
    use super::super::params::Params;
    use super::*;
    use crate::error::INVALID_PARAMS;

    #[test]
    fn a_token_is_a_text_or_a_number() {
        let token = |json: &str| {
            let params: Box<RawValue> = serde_json::from_str(json).unwrap();
            Params::read(Some(&params)).unwrap().meta.progress_token().map(|it| it.get().to_owned())
        };
        assert_eq!(token(r#"{"_meta":{"progressToken":"a"}}"#).as_deref(), Some("\"a\""));
        assert_eq!(token(r#"{"_meta":{"progressToken":7},"x":1}"#).as_deref(), Some("7"));
        assert_eq!(token(r#"{"_meta":{"progressToken":null}}"#), None);
        assert_eq!(token(r#"{"_meta":{"progressToken":{}}}"#), None);
        assert_eq!(token(r"{}"), None);
        let list: Box<RawValue> = serde_json::from_str("[]").unwrap();
        assert_eq!(Params::read(Some(&list)).err().unwrap().code, INVALID_PARAMS);
    }

    #[test]
    fn only_meta_has_the_version() {
        let version = |json: &str| {
            let params: Box<RawValue> = serde_json::from_str(json).unwrap();
            Params::read(Some(&params)).unwrap().meta.protocol_version.map(Cow::into_owned)
        };
        let key = "io.modelcontextprotocol/protocolVersion";
        assert_eq!(version(&format!(r#"{{"_meta":{{"{key}":"x"}}}}"#)).as_deref(), Some("x"));
        assert_eq!(version(&format!(r#"{{"arguments":{{"_meta":{{"{key}":"x"}}}}}}"#)), None);
    }
}
