//! A message as far as it can be read without the state of its connection, so that no lock is held meanwhile.

use haft_bounds::parse_error::describe;
use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{Incoming, Malformed, looks_like_message, parse, salvage_id};
use crate::error::{Fault, RequestError, RpcError};
use crate::limits::Limits;

/// One message of a server, read.
#[derive(Debug)]
pub struct Parsed<'a> {
    /// The length of its text.
    pub(crate) bytes: u64,
    pub(crate) content: Content<'a>,
}

#[derive(Debug)]
pub(crate) enum Content<'a> {
    /// It exceeds the limit on bytes and is not read at all.
    TooLong,
    Request {
        id: &'a RawValue,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Result {
        id: &'a RawValue,
        result: &'a RawValue,
    },
    Error {
        id: Option<&'a RawValue>,
        error: RequestError,
        /// True if it may be a log line that happens to have a field `error`.
        is_print: bool,
    },
    Malformed {
        why: String,
        /// The request that it seems to answer.
        id: Option<u64>,
        /// True if it was not meant as a message.
        is_print: bool,
        fault: Fault,
    },
}

impl<'a> Parsed<'a> {
    /// Reads one message within `limits`.
    pub fn read(bytes: &'a [u8], limits: &Limits) -> Self {
        let content = if bytes.len() > limits.message_bytes_max {
            Content::TooLong
        } else {
            Content::read(bytes, limits)
        };
        Self { bytes: bytes.len() as u64, content }
    }
}

impl<'a> Content<'a> {
    fn read(bytes: &'a [u8], limits: &Limits) -> Self {
        match parse(bytes, limits.budget()) {
            Ok(Incoming::Request { id, method, params }) => Self::Request { id, method, params },
            Ok(Incoming::Notification { method, params }) => Self::Notification { method, params },
            Ok(Incoming::Result { id, result }) => Self::Result { id, result },
            Ok(Incoming::Error { id, error }) => {
                let error = match serde_json::from_str::<RpcError>(error.get()) {
                    Ok(error) => RequestError::Rpc(error),
                    Err(why) => RequestError::protocol(format!(
                        "the server's error is malformed: {}",
                        describe(&why)
                    )),
                };
                Self::Error { id, error, is_print: id.is_none() && !looks_like_message(bytes) }
            }
            Err(Malformed(why)) => {
                let is_text = std::str::from_utf8(bytes).is_ok();
                Self::Malformed {
                    why,
                    id: salvage_id(bytes),
                    is_print: !looks_like_message(bytes),
                    fault: if is_text { Fault::Other } else { Fault::Encoding },
                }
            }
        }
    }
}
