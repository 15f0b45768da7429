//! Client ID Metadata Documents: used where the authorization server supports them, and nowhere else.

use std::sync::atomic::Ordering;

use tokio_util::task::TaskTracker;
use url::Url;

use super::{Agreeing, Setup};
use crate::oauth::{Authorizer, ClientIdentity, Interactive, StoredTokens};

const DOCUMENT: &str = "https://example.com/haft.json";

fn interactive(setup: &Setup) -> Interactive {
    let identity = ClientIdentity {
        name: "haft".into(),
        registered: None,
        metadata_url: Some(Url::parse(DOCUMENT).unwrap()),
    };
    let login = setup.login().with_identity(identity);
    let tokens = StoredTokens::new(login, setup.store(), TaskTracker::new()).unwrap();
    Interactive::new(tokens, Agreeing)
}

#[tokio::test]
async fn a_document_is_the_client_id_where_it_is_supported() {
    let setup = Setup::new().await;
    setup.server.state.takes_documents.store(true, Ordering::Relaxed);
    let interactive = interactive(&setup);
    interactive.sign_in().await.unwrap();
    assert_eq!(interactive.token().await.unwrap().as_deref(), Some("canary-access-1"));
    let seen = setup.server.seen();
    assert_eq!((seen.registrations, seen.clients), (0, vec![DOCUMENT.to_owned()]));
    setup.expire();
    let refreshed = setup.tokens();
    assert_eq!(refreshed.token().await.unwrap().as_deref(), Some("canary-access-2"));
}

#[tokio::test]
async fn without_support_the_client_is_registered() {
    let setup = Setup::new().await;
    interactive(&setup).sign_in().await.unwrap();
    let seen = setup.server.seen();
    assert_eq!((seen.registrations, seen.clients), (1, vec!["registered".to_owned()]));
}

#[tokio::test]
async fn without_support_and_registration_the_error_names_the_settings() {
    let setup = Setup::new().await;
    let nowhere = format!("{}nowhere", setup.server.issuer());
    *setup.server.state.registration_endpoint.lock().unwrap() = Some(nowhere);
    let error = interactive(&setup).sign_in().await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("does not support client metadata documents, and registering failed"),
        "{text}"
    );
    assert_eq!(
        error.remedy().as_deref(),
        Some(
            "register a client with the server's operator and set its id as `oauth.client_id`, or set \
             `oauth.client_metadata_url` if the authorization server supports it"
        )
    );
}
