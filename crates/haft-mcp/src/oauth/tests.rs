//! The whole flow against an authorization server in this process.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use tokio_util::task::TaskTracker;
use tracing_subscriber::fmt::MakeWriter;
use url::Url;

use super::{
    AuthError, Authorizer, BoxFuture, Browser, ClientIdentity, Interactive, Login,
    RegisteredClient, Secret, StoredTokens, TokenStore,
};
use crate::tls;

mod client_credentials;
mod documents;
mod loopback;
mod server;
mod store;

use server::TestServer;

/// Follows the authorization server's redirect, as a person who always agrees.
struct Agreeing;

impl Browser for Agreeing {
    fn redirect(&self) -> Url {
        Url::parse("http://127.0.0.1:1/callback").unwrap()
    }

    fn authorize<'a>(
        &'a self,
        url: &'a Url,
        _redirect: &'a Url,
    ) -> BoxFuture<'a, Result<String, AuthError>> {
        Box::pin(async move {
            let client = tls::http_client_builder().build().unwrap();
            let response = client.get(url.clone()).send().await.unwrap();
            Ok(response.headers()["location"].to_str().unwrap().to_owned())
        })
    }
}

/// A server, a folder, and what signs in at the one and stores in the other.
struct Setup {
    server: TestServer,
    folder: tempfile::TempDir,
}

impl Setup {
    async fn new() -> Self {
        Self { server: TestServer::start().await, folder: tempfile::tempdir().unwrap() }
    }

    fn login(&self) -> Login {
        Login::new(self.server.url(), "haft")
    }

    fn store(&self) -> TokenStore {
        TokenStore::new(self.folder.path().join("tokens"))
    }

    fn tokens(&self) -> StoredTokens {
        StoredTokens::new(self.login(), self.store(), TaskTracker::new()).unwrap()
    }

    fn interactive(&self) -> Interactive {
        Interactive::new(self.tokens(), Agreeing)
    }

    async fn signed_in(&self) -> Interactive {
        let interactive = self.interactive();
        interactive.sign_in().await.unwrap();
        interactive
    }

    /// Makes the stored token look as if it had ended.
    fn expire(&self) {
        let mut grant = self.store().load(&self.server.url()).unwrap().unwrap();
        (grant.refresh_at, grant.expires_at) = (Some(1), Some(1));
        self.store().save(&self.server.url(), &grant).unwrap();
    }
}

#[tokio::test]
async fn a_refusal_leads_to_a_token_that_outlives_the_process() {
    let setup = Setup::new().await;
    let interactive = setup.interactive();
    assert_eq!(interactive.token().await.unwrap(), None);

    let challenge = setup.server.challenge("read");
    assert!(interactive.refused(401, Some(&challenge)).await.unwrap());
    let token = interactive.token().await.unwrap();
    assert_eq!(token.as_deref(), Some("canary-access-1"));
    assert_eq!(setup.server.seen().scopes, ["read"]);

    assert_eq!(setup.tokens().token().await.unwrap(), token);
    assert!(setup.store().logout(&setup.server.url()).unwrap());
    assert_eq!(setup.tokens().token().await.unwrap(), None);
}

#[tokio::test]
async fn a_step_up_asks_for_all_scopes_once_and_with_the_same_client() {
    let setup = Setup::new().await;
    let interactive = setup.interactive();
    assert!(interactive.refused(401, Some(&setup.server.challenge("read"))).await.unwrap());
    let missing = format!("{}, error=\"insufficient_scope\"", setup.server.challenge("write"));
    assert!(interactive.refused(403, Some(&missing)).await.unwrap());
    assert!(!interactive.refused(403, Some(&missing)).await.unwrap(), "nothing new to ask for");
    assert!(!interactive.refused(403, None).await.unwrap(), "not about scopes");
    let seen = setup.server.seen();
    assert_eq!(seen.scopes, ["read", "read write"]);
    assert_eq!(seen.registrations, 1);
}

#[tokio::test]
async fn fifty_callers_share_one_refresh() {
    let setup = Setup::new().await;
    setup.signed_in().await;
    setup.expire();
    let tokens = Arc::new(setup.tokens());
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let tokens = Arc::clone(&tokens);
        callers.spawn(async move { tokens.token().await.unwrap() });
    }
    let given = callers.join_all().await;
    assert_eq!(given, vec![Some("canary-access-2".to_owned()); 50]);
    // Refusals of the old token that arrive late start no second one.
    assert!(tokens.refused(401, None).await.unwrap());
    assert_eq!(setup.server.seen().refreshes, 1);
    assert_eq!(setup.tokens().token().await.unwrap().as_deref(), Some("canary-access-2"));
}

#[tokio::test]
async fn fifty_callers_share_one_failure_and_keep_the_sign_in() {
    let setup = Setup::new().await;
    setup.signed_in().await;
    setup.expire();
    setup.server.state.fail_refresh.store(true, Ordering::Relaxed);
    let tokens = Arc::new(setup.tokens());
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let tokens = Arc::clone(&tokens);
        callers.spawn(async move { tokens.token().await.unwrap_err().to_string() });
    }
    let expected = "the authorization server gave no token: its answer is not a token response";
    assert_eq!(callers.join_all().await, vec![expected; 50]);
    assert_eq!(setup.server.seen().refreshes, 1);
    assert!(tokens.grant().is_some());
}

#[tokio::test]
async fn two_processes_share_one_refresh_through_the_folder() {
    let setup = Setup::new().await;
    setup.signed_in().await;
    setup.expire();
    let (one, two) = (setup.tokens(), setup.tokens());
    let (one, two) = tokio::join!(one.token(), two.token());
    assert_eq!(one.unwrap(), two.unwrap());
    assert_eq!(setup.server.seen().refreshes, 1);
}

#[tokio::test]
async fn a_cancelled_call_does_not_lose_the_refresh_it_began() {
    let setup = Setup::new().await;
    setup.signed_in().await;
    setup.expire();
    let tasks = TaskTracker::new();
    let tokens = StoredTokens::new(setup.login(), setup.store(), tasks.clone()).unwrap();
    tokio::select! {
        biased;
        _ = tokens.token() => panic!("a refresh takes longer than one poll"),
        () = std::future::ready(()) => {}
    }
    tasks.close();
    tasks.wait().await;
    let stored = setup.store().load(&setup.server.url()).unwrap().unwrap();
    assert_eq!(stored.access_token.expose(), "canary-access-2");
}

#[tokio::test]
async fn a_refused_refresh_ends_the_sign_in_until_someone_signs_in_again() {
    let setup = Setup::new().await;
    setup.signed_in().await;
    setup.expire();
    setup.server.state.refuse_refresh.store(true, Ordering::Relaxed);
    let tokens = setup.tokens();
    assert_eq!(tokens.token().await.unwrap(), None);
    assert!(!tokens.refused(401, None).await.unwrap());
    assert!(!tokens.refused(401, None).await.unwrap());
    assert_eq!(setup.server.seen().refreshes, 1, "a dead token is not tried again");

    setup.signed_in().await;
    assert!(tokens.refused(401, None).await.unwrap());
    assert_eq!(tokens.token().await.unwrap().as_deref(), Some("canary-access-2"));
}

#[tokio::test]
async fn a_refresh_token_is_not_shown_to_another_authorization_server() {
    let setup = Setup::new().await;
    setup.signed_in().await;
    let mut grant = setup.store().load(&setup.server.url()).unwrap().unwrap();
    grant.issuer = Some("https://earlier.example".into());
    setup.store().save(&setup.server.url(), &grant).unwrap();
    let tokens = setup.tokens();
    assert!(!tokens.refused(401, None).await.unwrap());
    assert_eq!(setup.server.seen().refreshes, 0);
}

#[tokio::test]
async fn metadata_that_is_missing_briefly_does_not_end_the_sign_in() {
    let setup = Setup::new().await;
    setup.signed_in().await;
    setup.expire();
    let tokens = setup.tokens();
    setup.server.state.silent.store(true, Ordering::Relaxed);
    assert!(matches!(tokens.token().await, Err(AuthError::Discovery { .. })));
    assert!(tokens.grant().is_some());
    assert_eq!(setup.server.seen().refreshes, 0);
    setup.server.state.silent.store(false, Ordering::Relaxed);
    assert_eq!(setup.tokens().token().await.unwrap().as_deref(), Some("canary-access-2"));
}

#[tokio::test]
async fn a_registered_client_is_shown_only_to_its_own_authorization_server() {
    let setup = Setup::new().await;
    let sign_in = async |issuer: &str| {
        let registered = Some(RegisteredClient {
            id: "by-hand".into(),
            secret: Some(Secret::new("canary-client-secret")),
            issuer: Some(issuer.into()),
        });
        let identity = ClientIdentity { name: "haft".into(), registered, metadata_url: None };
        let login = setup.login().with_identity(identity);
        let tokens = StoredTokens::new(login, setup.store(), TaskTracker::new()).unwrap();
        Interactive::new(tokens, Agreeing).sign_in().await
    };
    let error = sign_in("https://other.example").await.unwrap_err();
    assert!(matches!(error, AuthError::Issuer { .. }), "{error}");
    sign_in(setup.server.issuer().trim_end_matches('/')).await.unwrap();
    assert_eq!(setup.server.seen().registrations, 0);
}

#[tokio::test]
async fn what_a_server_announces_is_not_believed() {
    for (announced, expected) in [
        ("http://169.254.169.254/", "it is not https"),
        ("https://169.254.169.254/", "its address is not public"),
        ("https://10.0.0.1/", "its address is not public"),
        ("http://auth.example/", "it is not https"),
    ] {
        let setup = Setup::new().await;
        *setup.server.state.token_endpoint.lock().unwrap() = Some(format!("{announced}token"));
        let error = setup.interactive().sign_in().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`{announced}token` may not be used for signing in: {expected}")
        );
        assert_eq!(setup.server.seen().scopes, Vec::<String>::new(), "no person was asked");
    }
}

/// Addresses that are only used on the way are checked at each request.
#[tokio::test]
async fn a_client_is_not_registered_just_anywhere() {
    for (announced, expected) in [
        ("http://auth.example/register", "it is not https"),
        ("https://10.0.0.1/register", "its address is not public"),
        ("https://[::ffff:169.254.169.254]/register", "its address is not public"),
    ] {
        let setup = Setup::new().await;
        *setup.server.state.registration_endpoint.lock().unwrap() = Some(announced.into());
        let error = setup.interactive().sign_in().await.unwrap_err();
        let AuthError::Address { problem, .. } = error else { panic!("{error}") };
        assert_eq!(problem, expected, "{announced}");
    }
}

#[tokio::test]
async fn signing_in_repairs_a_damaged_file() {
    let setup = Setup::new().await;
    setup.signed_in().await;
    let folder = setup.folder.path().join("tokens");
    for file in std::fs::read_dir(folder).unwrap() {
        std::fs::write(file.unwrap().path(), "{").unwrap();
    }
    assert_eq!(setup.tokens().token().await.unwrap(), None);
    assert!(setup.interactive().refused(401, None).await.unwrap());
    assert_eq!(setup.tokens().token().await.unwrap().as_deref(), Some("canary-access-2"));
}

#[tokio::test]
async fn a_server_that_publishes_nothing_is_named() {
    let setup = Setup::new().await;
    let url = setup.server.url().join("/elsewhere/mcp").unwrap();
    let tokens =
        StoredTokens::new(Login::new(url.clone(), "haft"), setup.store(), TaskTracker::new());
    setup.server.state.silent.store(true, Ordering::Relaxed);
    let error = Interactive::new(tokens.unwrap(), Agreeing).sign_in().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`{url}` does not describe how to sign in: it publishes nothing about it")
    );
}

#[tokio::test]
async fn a_redirect_of_the_token_endpoint_is_not_followed() {
    let setup = Setup::new().await;
    let elsewhere = TestServer::start().await;
    let endpoint = setup.server.url().join("/elsewhere").unwrap();
    *setup.server.state.token_endpoint.lock().unwrap() = Some(endpoint.into());
    *setup.server.state.elsewhere.lock().unwrap() = elsewhere.url().join("/token").unwrap().into();
    let error = setup.interactive().sign_in().await.unwrap_err();
    assert!(matches!(error, AuthError::Token { .. }), "{error}");
    assert_eq!(elsewhere.seen().exchanges, 0);
}

#[tokio::test]
async fn a_server_that_answers_get_with_an_endless_stream_holds_nothing_up() {
    let setup = Setup::new().await;
    setup.server.state.endless.store(true, Ordering::Relaxed);
    tokio::time::timeout(Duration::from_secs(10), setup.signed_in()).await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_announce_pkce_is_refused_by_default() {
    let setup = Setup::new().await;
    setup.server.state.silent_about_pkce.store(true, Ordering::Relaxed);
    let error = setup.interactive().sign_in().await.unwrap_err();
    assert!(matches!(error, AuthError::Discovery { .. }), "{error}");
    let login = setup.login().assuming_pkce();
    let tokens = StoredTokens::new(login, setup.store(), TaskTracker::new()).unwrap();
    Interactive::new(tokens, Agreeing).sign_in().await.unwrap();
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// The test server puts `canary` into every code, token and secret.
#[tokio::test]
async fn no_secret_reaches_a_log_line_an_error_or_a_debug_output() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let setup = Setup::new().await;
    let interactive = setup.signed_in().await;
    setup.expire();
    let tokens = setup.tokens();
    tokens.token().await.unwrap();
    setup.expire();
    setup.server.state.refuse_refresh.store(true, Ordering::Relaxed);
    let again = setup.tokens();
    again.token().await.unwrap();
    setup.server.state.refuse_exchange.store(true, Ordering::Relaxed);
    let error = setup.interactive().sign_in().await.unwrap_err();

    let mut text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("refreshed the tokens"), "{text}");
    let grant = setup.store().load(&setup.server.url()).unwrap().unwrap();
    let secret = Secret::new("canary");
    write!(text, "{interactive:?}{tokens:?}{grant:#?}{error:?}{error}{secret}").unwrap();
    assert!(text.contains("***"));
    assert!(!text.contains("canary"), "{text}");
    for verifier in setup.server.seen().verifiers {
        assert!(!text.contains(&verifier), "{text}");
    }
}
