//! The registry: compare-and-set, history, commits whose connection breaks.

use haft::live::{Documents, RegistryStore as _, StoreError};
use testkit::postgres::database;
use testkit::{ProxyMode, TcpProxy};

use crate::open;

fn documents(text: &str) -> Documents {
    Documents { tools: text.to_owned(), servers: "{}".to_owned() }
}

#[tokio::test]
async fn a_commit_needs_the_revision_that_was_read() {
    let Some(test) = database() else { return };
    let registry = open(&test.url).await.registry("me");
    let start = registry.load().await.unwrap();
    assert_eq!(start.revision.as_str(), "0-00000000");
    assert_eq!(start.documents.tools, "{\"tools\": []}\n");
    let first = registry.commit(&start.revision, &documents("one")).await.unwrap();
    assert!(first.as_str().starts_with("1-"), "{first}");
    let late = registry.commit(&start.revision, &documents("late")).await;
    assert_eq!(late, Err(StoreError::Conflict));
    let foreign = haft::live::Revision::of(&documents("one"));
    assert_eq!(registry.commit(&foreign, &documents("x")).await, Err(StoreError::Conflict));
    let stored = registry.load().await.unwrap();
    assert_eq!((stored.documents, stored.revision), (documents("one"), first));
    let history =
        test.sql("select revision, by, tools from haft.registry_history where revision > 0");
    assert_eq!(history, "1|me|one");
    assert_eq!(test.sql("select seq from haft.topic where name = 'registry'"), "1");
}

#[tokio::test]
async fn of_several_commits_at_one_revision_one_succeeds() {
    let Some(test) = database() else { return };
    let registry = open(&test.url).await.registry("me");
    let other = open(&test.url).await.registry("other");
    let at = registry.load().await.unwrap().revision;
    let (one, two) = (documents("one"), documents("two"));
    let (one, two) = tokio::join!(registry.commit(&at, &one), other.commit(&at, &two));
    assert_eq!([&one, &two].into_iter().filter(|it| it.is_ok()).count(), 1, "{one:?} {two:?}");
    assert!([one, two].contains(&Err(StoreError::Conflict)));
}

#[tokio::test]
async fn a_change_is_noticed_by_another_process() {
    let Some(test) = database() else { return };
    let (one, two) = (open(&test.url).await, open(&test.url).await);
    two.join(crate::replica("http://127.0.0.1:2")).await.unwrap();
    let (writer, reader) = (one.registry("one"), two.registry("two"));
    // The first call reports the state at the start.
    reader.changed().await;
    let at = writer.load().await.unwrap().revision;
    let new = writer.commit(&at, &documents("new")).await.unwrap();
    tokio::time::timeout(testkit::DEADLINE, reader.changed()).await.unwrap();
    assert_eq!(reader.load().await.unwrap().revision, new);
    two.close().await;
}

#[tokio::test]
async fn a_commit_whose_response_is_lost_is_found_in_the_history() {
    let Some(test) = database() else { return };
    let proxy = TcpProxy::start(test.port());
    let registry = open(&test.url_at(proxy.port())).await.registry("me");
    let at = registry.load().await.unwrap().revision;
    proxy.set(ProxyMode::LoseNextResponse);
    let committed = registry.commit(&at, &documents("new")).await.unwrap();
    let stored = registry.load().await.unwrap();
    assert_eq!((stored.documents, stored.revision), (documents("new"), committed));
    assert_eq!(test.sql("select count(*) from haft.registry_history where revision > 0"), "1");
}

#[tokio::test]
async fn a_commit_that_did_not_arrive_is_reported_as_not_written_and_never_arrives() {
    let Some(test) = database() else { return };
    let proxy = TcpProxy::start(test.port());
    let registry = open(&test.url_at(proxy.port())).await.registry("me");
    let before = registry.load().await.unwrap();
    proxy.set(ProxyMode::LoseNextRequest);
    let lost = registry.commit(&before.revision, &documents("new")).await;
    assert!(matches!(&lost, Err(StoreError::Unavailable { .. })), "{lost:?}");
    let after = registry.load().await.unwrap();
    assert_eq!(after.documents, before.documents);
    // The statement on its way would not match any more.
    assert_ne!(after.revision, before.revision);
    let late = registry.commit(&before.revision, &documents("new")).await;
    assert_eq!(late, Err(StoreError::Conflict));
}

#[tokio::test]
async fn a_commit_that_cannot_be_settled_is_reported_as_unknown() {
    let Some(test) = database() else { return };
    let proxy = TcpProxy::start(test.port());
    let registry = open(&test.url_at(proxy.port())).await.registry("me");
    let at = registry.load().await.unwrap().revision;
    proxy.set(ProxyMode::Silent);
    let unknown = registry.commit(&at, &documents("new")).await;
    assert!(matches!(&unknown, Err(StoreError::Unknown { .. })), "{unknown:?}");
    proxy.set(ProxyMode::Pass);
}

#[tokio::test]
async fn without_the_database_nothing_is_written_and_the_error_names_the_cause() {
    let Some(test) = database() else { return };
    let proxy = TcpProxy::start(test.port());
    let registry = open(&test.url_at(proxy.port())).await.registry("me");
    let at = registry.load().await.unwrap().revision;
    proxy.set(ProxyMode::Refuse);
    proxy.cut();
    let refused = eventually(async || registry.load().await.err()).await;
    assert!(matches!(&refused, StoreError::Unavailable { .. }), "{refused:?}");
    let refused = registry.commit(&at, &documents("new")).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
    proxy.set(ProxyMode::Pass);
    let back = eventually(async || registry.load().await.ok()).await;
    assert_eq!(back.revision, at);
}

/// Waits until `probe` finds something.
pub(crate) async fn eventually<T>(probe: impl AsyncFn() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(began.elapsed() < testkit::DEADLINE, "never happened");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// A failover without a synchronous standby can lose a revision and give its number to another writer. The counters show
/// the same numbers then.
#[tokio::test]
async fn a_lost_revision_is_noticed_although_the_counters_did_not_go_back() {
    let Some(test) = database() else { return };
    let one = open(&test.url).await;
    let registry = one.registry("one");
    let at = registry.load().await.unwrap().revision;
    registry.commit(&at, &documents("lost")).await.unwrap();
    registry.load().await.unwrap();
    assert!(!one.health().lost_commits);
    let token = "f".repeat(32);
    test.sql(&format!("update haft.registry set token = '{token}', tools = 'other'"));
    test.sql(&format!(
        "update haft.registry_history set token = '{token}', tools = 'other' where revision = 1"
    ));
    assert_eq!(registry.load().await.unwrap().documents, documents("other"));
    assert!(one.health().lost_commits);
}

/// Another server may have counted the same numbers for other changes.
#[tokio::test]
async fn the_registry_is_read_again_from_another_server() {
    let Some(test) = database() else { return };
    let one = open(&test.url).await;
    one.join(crate::replica("http://127.0.0.1:1")).await.unwrap();
    let registry = one.registry("one");
    registry.changed().await;
    let restart = tokio::task::spawn_blocking(move || {
        test.stop();
        test.start();
    });
    restart.await.unwrap();
    tokio::time::timeout(testkit::DEADLINE, registry.changed()).await.expect("a change");
}
