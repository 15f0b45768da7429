//! Servers that refuse: statuses, credentials, redirects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_mcp::client::Protocol;
use haft_mcp::oauth::{AuthError, Authorizer, BoxFuture};
use haft_mcp::{Failure, HttpConnector, HttpOptions, RequestError, Sent, TransportError};
use serde_json::{Value, json};

use crate::support::{Server, call, connect, failed, http, options, unconnected};

/// A server that answers calls like this.
fn answering(status: u16, headers: &Value, body: &str) -> Server {
    let answer = json!({"answer": {"status": status, "headers": headers, "body": body}});
    Server::http(json!({"faults": [{"rpc": "tools/call", "do": answer}]}))
}

async fn refusal(server: &Server) -> TransportError {
    let client = connect(&http(server.url()), Protocol::Legacy).await;
    let error = failed(&client, "text").await;
    // Nothing is tried again here: that is the runtime's to decide.
    assert_eq!(server.messages("tools/call").len(), 1);
    error
}

#[tokio::test]
async fn statuses_say_whether_the_server_can_have_acted_and_when_to_come_back() {
    let wait = Some(Duration::from_secs(7));
    for (status, headers, sent, retry_after) in [
        (429, json!({"Retry-After": "7"}), Sent::No, wait),
        (503, json!({"Retry-After": "7"}), Sent::No, wait),
        (503, json!({}), Sent::No, None),
        (502, json!({}), Sent::Maybe, None),
        (500, json!({}), Sent::Maybe, None),
        (415, json!({}), Sent::No, None),
    ] {
        let error = refusal(&answering(status, &headers, "no")).await;
        let expected = (Failure::Status(status), sent, retry_after);
        assert_eq!((error.kind, error.sent, error.retry_after), expected);
    }
}

#[tokio::test]
async fn a_refusal_quotes_the_server_without_harm_and_without_our_secrets() {
    let body = "<b>\u{1b}[31mwho sent canary-value?</b>\r\n".repeat(50);
    let error = refusal(&answering(500, &json!({}), &body)).await;
    let quoted = "`the server` answered 500 Internal Server Error: <b>[31mwho sent ***?</b> ";
    assert!(error.message.starts_with(quoted), "{error}");
    assert!(error.message.len() < 400, "{error}");
}

#[tokio::test]
async fn an_error_in_the_body_of_a_refusal_is_the_answer() {
    for (status, code) in [(400, -32020), (400, -32021), (400, -32022), (404, -32601)] {
        for id in [json!(null), json!("server-error")] {
            let error = json!({"code": code, "message": "because"});
            let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            let answer = json!({"answer": {"status": status, "body": body}});
            let server = Server::http(
                json!({"era": "modern", "faults": [{"rpc": "tools/call", "do": answer}]}),
            );
            let client = connect(&http(server.url()), Protocol::Modern).await;
            match call(&client, "text", json!({})).await {
                Err(RequestError::Rpc(error)) => {
                    assert_eq!((error.code, error.message.as_str()), (code, "because"));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn credentials_are_asked_for_once_and_the_challenge_is_shown() {
    let challenge = json!({"WWW-Authenticate": "Bearer realm=\"x\", error=\"invalid_token\""});
    for (status, words) in
        [(401, "wants credentials (401)"), (403, "refuses these credentials (403)")]
    {
        let answer = json!({"answer": {"status": status, "headers": challenge}});
        let server = Server::http(json!({"faults": [{"do": answer}]}));
        let error = unconnected(&http(server.url())).await;
        assert_eq!((error.kind, error.sent), (Failure::AuthRequired, Sent::No));
        let challenge = "Bearer realm=\"x\", error=\"invalid_token\"";
        assert_eq!(error.message, format!("`the server` {words}: {challenge}"));
        assert_eq!(server.requests("POST").len(), 1);
    }
}

/// Gives a new token whenever one is refused.
#[derive(Default)]
struct Tokens(AtomicUsize);

impl Authorizer for Tokens {
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, AuthError>> {
        let number = self.0.load(Ordering::SeqCst);
        Box::pin(async move { Ok(Some(format!("token-{number}"))) })
    }

    fn refused<'a>(
        &'a self,
        status: u16,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, AuthError>> {
        assert_eq!((status, www_authenticate), (401, Some("Bearer")));
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(true) })
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced_a_bounded_number_of_times() {
    let headers = json!({"WWW-Authenticate": "Bearer"});
    let answer = json!({"answer": {"status": 401, "headers": headers, "body": "not token-2"}});
    for (times, is_enough) in [(json!(1), true), (json!(null), false)] {
        let server = Server::http(json!({"faults": [{"times": times, "do": answer}]}));
        let authorizer: Option<Arc<dyn Authorizer>> = Some(Arc::new(Tokens::default()));
        let options = HttpOptions { authorizer, ..options(server.url()) };
        let connector = HttpConnector::new(options).unwrap();
        if is_enough {
            connect(&connector, Protocol::Legacy).await.close().await;
        } else {
            let error = unconnected(&connector).await;
            assert_eq!(error.kind, Failure::AuthRequired);
            assert_eq!(error.message, "`the server` wants credentials (401): Bearer: not ***");
            assert_eq!(server.requests("POST").len(), 3);
        }
        let tokens = server.requests("POST").into_iter();
        let tokens: Vec<Value> =
            tokens.take(2).map(|mut post| post["headers"]["authorization"].take()).collect();
        assert_eq!(tokens, ["Bearer token-0", "Bearer token-1"]);
    }
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_with_the_whole_request() {
    let faults = json!([{"rpc": "tools/call", "times": 1, "do": {"redirect": "/mcp"}}]);
    let server = Server::http(json!({"faults": faults}));
    let client = connect(&http(server.url()), Protocol::Legacy).await;
    call(&client, "text", json!({})).await.unwrap();
    assert_eq!(server.messages("tools/call").len(), 2);
    client.close().await;
}

#[tokio::test]
async fn redirects_do_not_go_round_for_ever() {
    let server = Server::http(json!({"faults": [{"do": {"redirect": "self"}}]}));
    let error = unconnected(&http(server.url())).await;
    assert_eq!((error.kind, error.sent), (Failure::Redirect, Sent::No));
    assert_eq!(error.message, "`the server` redirects, more than 5 times in a row");
    assert_eq!(server.requests("POST").len(), 6);
}

#[tokio::test]
async fn nothing_of_ours_goes_to_another_origin() {
    let other = Server::http(json!({}));
    let server = Server::http(json!({"faults": [{"do": {"redirect": other.url()}}]}));
    let error = unconnected(&http(server.url())).await;
    let (from, to) = (server.url().trim_end_matches("/mcp"), other.url().trim_end_matches("/mcp"));
    assert_eq!((error.kind, error.sent), (Failure::Redirect, Sent::No));
    assert_eq!(
        error.message,
        format!(
            "`the server` redirects, which is not followed from `{from}` to another origin, `{to}`"
        )
    );
    assert_eq!(testkit::fixture::events(&other.facts, "connection"), Vec::<Value>::new());
}
