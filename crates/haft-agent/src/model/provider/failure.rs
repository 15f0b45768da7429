//! Converts errors of genai to [`Failures`].

use genai::Error;
use genai::webc::{Error as WebError, StreamTimeout};

use haft_mcp::HttpError;

use super::relay::{Excess, RelayFailure};
use crate::model::ModelError;
use crate::model::failure::Failures;
use haft_text::innermost;

/// The failure behind an error of genai. Its own text may hold the whole request, so it is shown
/// nowhere.
pub(super) fn told(failures: &Failures, error: Error) -> ModelError {
    match error {
        Error::HttpError { status, body, headers, .. } => {
            failures.status(status.as_u16(), &headers, &body)
        }
        Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => {
            web(failures, webc_error)
        }
        Error::WebStream { error, .. } => match error.downcast::<Error>() {
            Ok(error) => told(failures, *error),
            Err(error) => match error.downcast::<reqwest::Error>() {
                Ok(error) => http(failures, *error),
                Err(error) if error.is::<StreamTimeout>() => failures.silent(),
                Err(error) => failures.unreadable(&innermost(error.as_ref())),
            },
        },
        Error::ChatResponse { body, .. } => failures.event(&body),
        // Half a line is what a lost connection leaves.
        Error::StreamParse { serde_error, .. } if serde_error.is_eof() => failures.broken_off(),
        Error::StreamParse { serde_error, .. } => failures.unreadable(&serde_error.to_string()),
        Error::ChatResponseGeneration { cause, .. } => failures.unreadable(&cause),
        Error::JsonValueExt(error) => failures.unreadable(&error.to_string()),
        Error::SerdeJson(error) => failures.unreadable(&error.to_string()),
        Error::NoChatResponse { .. } => failures.unreadable("there is no answer in it"),
        Error::InvalidJsonResponseElement { info } => failures.unreadable(info),
        other => failures.unsendable(&other.to_string()),
    }
}

/// The failure that ended a relayed exchange. Genai sees only a closed connection then.
pub(super) fn relayed(failures: &Failures, failure: RelayFailure) -> ModelError {
    match failure {
        RelayFailure::Http(error) => {
            let cause = error.root_cause();
            match error {
                HttpError::Connect(_) => failures.unreachable(&cause),
                HttpError::ConnectTimeout(_) => failures.silent(),
                HttpError::Address(_) | HttpError::Tls => failures.unsendable(&cause),
                HttpError::HeadTooLarge(_) => failures.unreadable(&cause),
                HttpError::Lost(_) => failures.lost(&cause),
            }
        }
        RelayFailure::Excess(Excess::Answer { bytes_max }) => failures.too_large(bytes_max),
        RelayFailure::Excess(excess) => failures.unreadable(&excess.to_string()),
    }
}

fn web(failures: &Failures, error: WebError) -> ModelError {
    match error {
        WebError::ResponseFailedStatus { status, body, headers } => {
            failures.status(status.as_u16(), &headers, &body)
        }
        WebError::ResponseFailedNotJson { content_type, body } => {
            failures.not_an_answer(&content_type, &body)
        }
        WebError::ResponseFailedInvalidJson { body, .. } => failures.not_an_answer("", &body),
        WebError::JsonValueExt(error) => failures.unreadable(&error.to_string()),
        WebError::Reqwest(error) => http(failures, error),
    }
}

/// The address stays out of the text: it may hold a secret.
fn http(failures: &Failures, error: reqwest::Error) -> ModelError {
    let error = error.without_url();
    let cause = innermost(&error);
    if error.is_builder() {
        failures.unsendable(&cause)
    } else if error.is_timeout() {
        failures.silent()
    } else if error.is_connect() {
        failures.unreachable(&cause)
    } else {
        failures.lost(&cause)
    }
}
