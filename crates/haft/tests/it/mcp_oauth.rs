//! A server with tokens of Haft's own OAuth client.

use haft::config::LoadOptions;
use haft::{Config, Runtime, Status, ToolCall};
use serde_json::json;
use testkit::Workspace;
use testkit::guarded::{CLIENT_ID, CLIENT_SECRET, Guarded};

async fn start(server: &Guarded) -> (Workspace, Runtime) {
    let text = format!(
        "servers: {{guarded: {{url: '{}', on_connect_failure: exit, oauth: {{grant: client_credentials, \
         client_id: {CLIENT_ID}, client_secret_env: SECRET}}}}}}\n",
        server.url
    );
    let workspace = Workspace::with(&[("haft.yaml", &text)]);
    let config = Config::load(&LoadOptions {
        files: vec!["haft.yaml".into()],
        environment: [("SECRET".to_owned(), CLIENT_SECRET.to_owned())].into(),
        cwd: workspace.path().to_path_buf(),
        ..LoadOptions::default()
    });
    let runtime = Runtime::start(config.unwrap()).await.unwrap();
    (workspace, runtime)
}

/// A token that the server no longer accepts is renewed once, and the call goes through; the next calls and
/// a new connection use the new one.
#[tokio::test]
async fn a_revoked_token_is_renewed_within_the_call() {
    let server = Guarded::start(3600);
    let (_workspace, runtime) = start(&server).await;
    assert_eq!(server.granted(), 1);
    server.revoke();
    let answer = runtime.call(ToolCall::new("secret_word", &json!({}))).await;
    assert_eq!(answer.status, Status::Success, "{:?}", answer.error);
    assert_eq!(server.granted(), 2);
    runtime.call(ToolCall::new("secret_word", &json!({}))).await;
    runtime.reconnect("guarded").await.unwrap();
    assert_eq!(server.granted(), 2, "all attempts to connect share one token");
    runtime.shutdown(std::time::Duration::from_secs(5)).await;
}

/// A token that lasts no time is renewed before each request, and a call never sees the end of one.
#[tokio::test]
async fn an_expiring_token_is_renewed_before_its_end() {
    let server = Guarded::start(0);
    let (_workspace, runtime) = start(&server).await;
    let answer = runtime.call(ToolCall::new("secret_word", &json!({}))).await;
    assert_eq!(answer.status, Status::Success, "{:?}", answer.error);
    assert!(server.granted() > 2, "{}", server.granted());
    runtime.shutdown(std::time::Duration::from_secs(5)).await;
}
