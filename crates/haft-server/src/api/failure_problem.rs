//! Why a server did not give what it was asked for, as an answer.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use haft::{CallError, ToolFailure};
use utoipa::IntoResponses;
use utoipa::openapi::{RefOr, Response, ResponseBuilder};

use super::remedy::endpoint;
use crate::serve::Problem;

/// 502 if the server refused or broke the protocol, 504 if it did not answer in time, 503 if it is unreachable.
pub(super) fn problem(failure: ToolFailure) -> Problem {
    let (status, code, title) = match &failure {
        ToolFailure::Execution { .. } | ToolFailure::Rejected { .. } => {
            (StatusCode::BAD_GATEWAY, "ServerRefused", "The server refused the request")
        }
        ToolFailure::Protocol { .. } => {
            (StatusCode::BAD_GATEWAY, "ProtocolError", "The server broke the protocol")
        }
        ToolFailure::OutcomeUnknown { .. } => {
            (StatusCode::BAD_GATEWAY, "OutcomeUnknown", "The server was lost meanwhile")
        }
        ToolFailure::NoResponse { .. } => {
            (StatusCode::GATEWAY_TIMEOUT, "Timeout", "The server did not answer in time")
        }
        ToolFailure::Refused { .. } => {
            (StatusCode::BAD_GATEWAY, "Refused", "A person refused the request")
        }
        ToolFailure::Expired { .. } => {
            (StatusCode::GATEWAY_TIMEOUT, "Timeout", "No answer in time")
        }
        ToolFailure::DefinitionChanged { .. } => {
            (StatusCode::FORBIDDEN, "DefinitionChanged", "The definition is not the approved one")
        }
        ToolFailure::Unavailable { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "The server is out of reach")
        }
    };
    let said_no = is_refusal(&failure);
    let error = CallError::Failed { tool: String::new(), failure: Box::new(failure) };
    let problem = Problem::new(status, code, title, error.to_string());
    match error.remedy().filter(|_| !said_no) {
        Some(remedy) => problem.remedy(endpoint(&remedy)),
        None => problem.remedy("look at what the server offers, and at what it wants"),
    }
}

fn is_refusal(failure: &ToolFailure) -> bool {
    matches!(failure, ToolFailure::Execution { .. } | ToolFailure::Rejected { .. })
}

/// The same, for the API document.
pub(super) struct ServerFailed;

impl IntoResponses for ServerFailed {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let answers = [
            ("502", "The server refused, broke the protocol or was lost meanwhile."),
            ("503", "The server is out of reach."),
            ("504", "The server did not answer in time."),
        ];
        let response = |text: &str| ResponseBuilder::new().description(text).build().into();
        answers.into_iter().map(|(status, text)| (status.to_owned(), response(text))).collect()
    }
}
