//! Why there is no token.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use rmcp::transport::auth::AuthError as FlowError;

use crate::http_client::HttpError;

/// Foreign strings are cut here, so that an error fits a terminal.
const OUTSIDE_CHARS_MAX: usize = 300;

/// Why there is no token. No variant ever holds a token, a code or a verifier.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// An address that a server announced may not be asked.
    #[error("`{url}` may not be used for signing in: {problem}")]
    Address {
        /// The address without user info, query and fragment, or a host name.
        url: String,
        /// The problem.
        problem: String,
    },
    /// A server involved in signing in could not be reached.
    #[error("`{url}` could not be reached for signing in")]
    Unreachable {
        /// The address without user info, query and fragment.
        url: String,
        /// The connection error.
        source: Arc<HttpError>,
    },
    /// A server involved in signing in gave an answer that cannot be used.
    #[error("the answer of `{url}` cannot be used for signing in: {problem}")]
    Answer {
        /// The address without user info, query and fragment.
        url: String,
        /// The problem with the answer.
        problem: String,
    },
    /// The server's or its authorization server's metadata is missing or wrong.
    #[error("`{server}` does not describe how to sign in: {problem}")]
    Discovery {
        /// The MCP server.
        server: String,
        /// The missing or wrong part.
        problem: String,
    },
    /// The authorization server is not the one that was expected.
    #[error("the authorization server is `{received}`, expected `{expected}`")]
    Issuer {
        /// The expected issuer.
        expected: String,
        /// The issuer of the answer.
        received: String,
    },
    /// The authorization server has to name itself, and did not.
    #[error("the authorization server did not confirm that it is `{expected}`")]
    NoIssuer {
        /// The expected issuer.
        expected: String,
    },
    /// There is no client id to sign in with.
    #[error("no client id for `{server}`: {problem}")]
    Registration {
        /// The MCP server.
        server: String,
        /// Why registering failed.
        problem: String,
    },
    /// The person or the authorization server denied access.
    #[error("signing in was not completed: {problem}")]
    Denied {
        /// The authorization server's message.
        problem: String,
    },
    /// The browser did not return in time.
    #[error("no sign-in within {after:?}")]
    Timeout {
        /// The waited time.
        after: Duration,
    },
    /// The token endpoint gave no token.
    #[error("the authorization server gave no token: {problem}")]
    Token {
        /// Its message.
        problem: String,
    },
    /// The stored sign-in is no longer valid.
    #[error("the sign-in for `{server}` has ended: {problem}")]
    Ended {
        /// The MCP server.
        server: String,
        /// The reason of the end.
        problem: String,
    },
    /// Stored tokens could not be read or written.
    #[error("could not {action} `{}`", path.display())]
    Store {
        /// The attempted operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: Arc<io::Error>,
    },
    /// A file in the token folder is not one of ours.
    #[error("`{}` does not hold a sign-in", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// This side could not be set up.
    #[error("could not prepare signing in: {problem}")]
    Setup {
        /// The problem.
        problem: String,
    },
}

impl AuthError {
    /// A remedy for the reader. If signing in again helps, the caller knows the command.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Address { .. } => Some(
                "if you trust this host, allow it for the server; otherwise ask the operator of \
                 the server"
                    .into(),
            ),
            Self::Unreachable { .. } => Some("check the network and try again".into()),
            Self::Answer { .. }
            | Self::Discovery { .. }
            | Self::Issuer { .. }
            | Self::NoIssuer { .. } => Some("ask the operator of the server".into()),
            Self::Registration { .. } => Some(
                "register a client with the server's operator and set its id as `oauth.client_id`, \
                 or set `oauth.client_metadata_url` if the authorization server supports it"
                    .into(),
            ),
            Self::Denied { .. }
            | Self::Timeout { .. }
            | Self::Token { .. }
            | Self::Ended { .. }
            | Self::Unreadable { .. } => Some("sign in again".into()),
            Self::Store { .. } => Some("check the folder's owner, permissions and space".into()),
            Self::Setup { .. } => None,
        }
    }

    /// Puts an error of the flow into our words, without anything that could hold a secret.
    pub(crate) fn from_flow(server: &str, error: FlowError) -> Self {
        let server = server.to_owned();
        match error {
            FlowError::AuthorizationServerMismatch { expected_issuer, received_issuer } => {
                Self::Issuer { expected: clip(&expected_issuer), received: clip(&received_issuer) }
            }
            FlowError::AuthorizationServerMissingIssuer { expected_issuer } => {
                Self::NoIssuer { expected: clip(&expected_issuer) }
            }
            FlowError::RegistrationFailed(problem) => {
                Self::Registration { server, problem: clip(&problem) }
            }
            FlowError::TokenRefreshRejected(_) => {
                Self::Ended { server, problem: "the refresh token was refused".into() }
            }
            FlowError::AuthorizationRequired => {
                Self::Ended { server, problem: "there is no refresh token".into() }
            }
            FlowError::TokenExchangeFailed(problem) | FlowError::TokenRefreshFailed(problem) => {
                Self::Token { problem: token_problem(&problem) }
            }
            FlowError::AuthorizationFailed(problem) => Self::Denied { problem: clip(&problem) },
            FlowError::PkceUnsupported => Self::Discovery {
                server,
                problem: "its authorization server does not support PKCE with S256".into(),
            },
            other => Self::Discovery { server, problem: clip(&other.to_string()) },
        }
    }
}

/// Only the standard error answer is repeated: any other text may quote the answer, and with it a
/// token.
fn token_problem(problem: &str) -> String {
    match problem.strip_prefix("Server returned error response: ") {
        Some(answer) => clip(answer),
        None => "its answer is not a token response".into(),
    }
}

/// Text from outside, on one line and of bounded length.
pub(crate) fn clip(text: &str) -> String {
    let mut clipped: String = text
        .chars()
        .take(OUTSIDE_CHARS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(OUTSIDE_CHARS_MAX).is_some() {
        clipped.push('…');
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_token_answer_is_not_quoted() {
        let quoting = "invalid type: string \"canary\", expected u64 at line 1 column 9";
        let error = AuthError::from_flow(
            "https://a.example",
            FlowError::TokenExchangeFailed(quoting.into()),
        );
        assert_eq!(
            error.to_string(),
            "the authorization server gave no token: its answer is not a token response"
        );
    }

    #[test]
    fn text_from_outside_is_one_short_line() {
        assert_eq!(clip("a\n\u{1b}[31mb"), "a  [31mb");
        assert_eq!(clip(&"x".repeat(2 * OUTSIDE_CHARS_MAX)).chars().count(), OUTSIDE_CHARS_MAX + 1);
    }
}
