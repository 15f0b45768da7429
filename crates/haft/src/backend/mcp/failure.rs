//! Converts a failed request to a failure of the call, with messages for people and models.

use std::time::{Duration, Instant};

use haft_config::Remedy;
use haft_mcp::{Failure, Fault, RequestError, Sent, TransportError};
use serde_json::{Value, json};

use super::anomalies::{encoding_remedy, id_remedy};
use super::connection::Connection;
use super::health::Reason;
use crate::backend::process::last_line;
use crate::config::oauth::{OauthConfig, OauthGrant, OauthInfo};
use crate::error::{Diagnosis, MCP_ERROR, RpcFailure, ToolFailure};
use haft_text::{human, printable};

/// A call of `tool` that failed.
pub(super) fn of_call(connection: &Connection, tool: &str, error: &RequestError) -> ToolFailure {
    let server = connection.name();
    match error {
        RequestError::Rpc(rpc) => {
            let data = rpc.data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok());
            let shown = match &data {
                None | Some(Value::Null) => String::new(),
                Some(data) => format!(": {data}"),
            };
            ToolFailure::Rejected {
                message: format!(
                    "{MCP_ERROR}server `{server}` refused `{tool}`: {} (code {}){shown}",
                    printable(&rpc.message),
                    rpc.code
                ),
                remedy: Some(Remedy::ReadInputSchema { tool: tool.to_owned() }.into()),
                server: server.to_owned(),
                error: Box::new(RpcFailure { code: rpc.code, message: rpc.message.clone(), data }),
            }
        }
        RequestError::Protocol { message, fault } => protocol(connection, message, *fault),
        RequestError::Timeout { after, .. } => silent(connection, *after),
        RequestError::Transport(error) => of_transport(connection, tool, error),
    }
}

/// No answer within `request_timeout`.
fn silent(connection: &Connection, after: Duration) -> ToolFailure {
    let server = connection.name();
    let message = format!("{MCP_ERROR}server `{server}` was silent for {}", human(after));
    let began = Instant::now().checked_sub(after);
    let (message, remedy) = match began.and_then(|began| connection.diagnosis_since(began)) {
        Some(Diagnosis { problem, remedy }) => (format!("{message}; {problem}"), remedy),
        None => (message, "raise `request_timeout` for the server".into()),
    };
    ToolFailure::NoResponse { message, remedy: Some(remedy), server: server.to_owned(), after }
}

fn of_transport(connection: &Connection, tool: &str, error: &TransportError) -> ToolFailure {
    let server = connection.name();
    let why = printable(&error.message);
    match (error.kind, error.sent) {
        (Failure::Protocol, _) => protocol(connection, &error.message, Fault::Other),
        (Failure::OverBudget, _) => no_memory(connection, tool, &error.message),
        (Failure::AuthRequired, _) => ToolFailure::Unavailable {
            message: format!(
                "{MCP_ERROR}auth_required: server `{server}` wants credentials: {why}"
            ),
            remedy: Some(login_remedy(connection).into()),
            details: details(connection),
        },
        (Failure::Status(429 | 503), Sent::No) => ToolFailure::Unavailable {
            message: format!("{MCP_ERROR}server `{server}` takes no calls at the moment: {why}"),
            remedy: Some("try again later, or call it less often".into()),
            details: details(connection),
        },
        (_, Sent::No) => ToolFailure::Unavailable {
            message: format!("{MCP_ERROR}server `{server}` is no longer available: {why}"),
            remedy: Some(Remedy::InspectServer { server: server.to_owned() }.into()),
            details: details(connection),
        },
        (kind, Sent::Maybe) => ToolFailure::OutcomeUnknown {
            message: format!(
                "{MCP_ERROR}server `{server}` {} while `{tool}` ran, and it is unknown whether it \
                 took effect: {why}",
                match kind {
                    Failure::Status(_) => "failed",
                    Failure::StreamTimeout => "fell silent",
                    _ => "was lost",
                }
            ),
            remedy: (kind == Failure::StreamTimeout).then(|| {
                format!(
                    "check whether the tool took effect; raise `sse_read_timeout` of `{server}` if its answers \
                     take longer"
                )
                .into()
            }),
            details: match kind {
                Failure::Closed => with_last_line(connection),
                _ => details(connection),
            },
        },
    }
}

/// No memory is available for an answer.
pub(super) fn no_memory(connection: &Connection, tool: &str, why: &str) -> ToolFailure {
    let server = connection.name();
    ToolFailure::Unavailable {
        message: format!(
            "{MCP_ERROR}the answer of server `{server}` to `{tool}` was dropped, though the tool has run: {}",
            printable(why)
        ),
        remedy: Some(format!("ask for less at once, or raise `{}`", crate::memory::SETTING).into()),
        details: details(connection),
    }
}

/// An answer that breaks the rules.
fn protocol(connection: &Connection, why: &str, fault: Fault) -> ToolFailure {
    let server = connection.name();
    let remedy = fault_remedy(connection, fault).unwrap_or_else(|| {
        format!("the fault is the server's: update `{server}`, or report it to those who make it")
            .into()
    });
    ToolFailure::Protocol {
        message: format!("{MCP_ERROR}server `{server}`: {}", printable(why)),
        remedy: Some(remedy.into()),
        details: details(connection),
    }
}

/// A call that found no connection. The last words of the process are not the caller's.
pub(super) fn unavailable(connection: &Connection, reason: &Reason) -> ToolFailure {
    let server = connection.name();
    ToolFailure::Unavailable {
        message: format!(
            "{MCP_ERROR}server `{server}` is no longer available: {}",
            printable(&reason.cause)
        ),
        remedy: Some(Box::new(
            reason
                .remedy
                .clone()
                .unwrap_or_else(|| Remedy::InspectServer { server: server.to_owned() }),
        )),
        details: details(connection),
    }
}

/// The specific remedy for a fault, if any.
pub(super) fn fault_remedy(connection: &Connection, fault: Fault) -> Option<Remedy> {
    match fault {
        Fault::Encoding => {
            Some(encoding_remedy(connection.name(), &connection.config.endpoint).into())
        }
        Fault::ResponseId => Some(id_remedy(connection.name()).into()),
        Fault::Other => None,
    }
}

/// The remedy for a server that rejects the credentials.
pub(super) fn login_remedy(connection: &Connection) -> Remedy {
    let server = connection.name();
    match connection.config().endpoint.oauth().map(OauthConfig::info) {
        Some(OauthInfo { grant: OauthGrant::ClientCredentials, client_secret_env, .. }) => format!(
            "check `client_id`, `scopes` and `issuer` in `oauth` of `{server}`, and the secret in {}",
            client_secret_env.unwrap_or_default()
        )
        .into(),
        Some(OauthInfo { grant: OauthGrant::AuthorizationCode, .. }) | None => {
            Remedy::SignIn { server: server.to_owned() }
        }
    }
}

/// The process ended during this call. Its last line may explain the failure to the caller; the
/// rest of its standard error concerns other callers too, and only the operator sees it.
fn with_last_line(connection: &Connection) -> Value {
    let mut details = details(connection);
    if let Some(line) = connection.stderr_tail().and_then(|tail| last_line(&tail)) {
        details["stderr"] = json!(line);
    }
    details
}

fn details(connection: &Connection) -> Value {
    json!({"server": connection.name()})
}
