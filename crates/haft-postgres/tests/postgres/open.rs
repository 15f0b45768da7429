//! Opening a database: tables, versions, refusals.

use haft_postgres::{Database, DatabaseError, Settings};
use testkit::postgres::{PASSWORD, database};

use crate::registry::eventually;
use crate::{open, settings};

#[tokio::test]
async fn tables_are_created_once_also_by_several_processes_at_a_time() {
    let Some(test) = database() else { return };
    let settings = settings(&test.url);
    let (one, two, three) = tokio::join!(
        Database::open(settings.clone()),
        Database::open(settings.clone()),
        Database::open(settings.clone()),
    );
    for opened in [one, two, three] {
        assert_eq!(opened.unwrap().status().await.unwrap().schema_version, 2);
    }
    let migrations = Database::migrate(&settings).await.unwrap();
    assert_eq!((migrations.before, migrations.now), (2, 2));
}

/// Tables of version 1 are changed in place, and stay usable for a Haft that knows version 1 alone.
#[tokio::test]
async fn tables_of_the_version_before_are_changed_and_work_for_it() {
    let Some(test) = database() else { return };
    let first = include_str!("../../migrations/0001_shared_state.sql");
    test.sql(&format!("set role {}; create schema haft; {first}", test.name));
    let migrations = Database::migrate(&settings(&test.url)).await.unwrap();
    assert_eq!((migrations.before, migrations.now), (1, 2));
    let status = open(&test.url).await.status().await.unwrap();
    assert_eq!((status.schema_version, status.works_from), (2, 1));
    assert_eq!(test.sql("select haft.tidy(30)"), "t");
}

#[tokio::test]
async fn without_permission_to_migrate_missing_tables_are_an_error() {
    let Some(test) = database() else { return };
    let manual = Settings { migrates: false, ..settings(&test.url) };
    let error = Database::open(manual.clone()).await.err().unwrap();
    assert_eq!(error, DatabaseError::NoSchema);
    Database::migrate(&manual).await.unwrap();
    Database::open(manual).await.unwrap();
}

#[tokio::test]
async fn tables_of_another_version_are_refused_if_they_cannot_work() {
    let Some(test) = database() else { return };
    open(&test.url).await;
    // A newer version that this one works with.
    test.sql("update haft.meta set version = 7, works_from = 1");
    open(&test.url).await;
    test.sql("update haft.meta set version = 7, works_from = 6");
    let error = Database::open(settings(&test.url)).await.err().unwrap();
    assert_eq!(error, DatabaseError::SchemaTooNew { found: 7, works_from: 6 });
    test.sql("update haft.meta set version = 0, works_from = 0");
    let manual = Settings { migrates: false, ..settings(&test.url) };
    let error = Database::open(manual).await.err().unwrap();
    assert_eq!(error, DatabaseError::SchemaTooOld { found: 0 });
}

#[tokio::test]
async fn refusals_of_the_database_have_a_cause_and_a_remedy() {
    let Some(test) = database() else { return };
    let refused = async |url: &str| {
        let error = Database::open(settings(url)).await.err().unwrap();
        assert!(!error.is_transient(), "{error}");
        assert!(!error.to_string().contains(PASSWORD), "{error}");
        (error.to_string(), error.remedy())
    };
    let (problem, remedy) = refused(&test.url.replace(PASSWORD, "wrong")).await;
    assert!(problem.contains("password authentication failed"), "{problem}");
    assert!(remedy.contains("user and password"), "{remedy}");

    let (problem, remedy) = refused(&test.url_of("none")).await;
    assert!(problem.contains("\"none\" does not exist"), "{problem}");
    assert!(remedy.contains("create the database"), "{remedy}");

    test.sql(&format!("revoke create on database {0} from {0}", test.name));
    test.sql(&format!("alter database {} owner to postgres", test.name));
    let (problem, remedy) = refused(&test.url).await;
    assert!(problem.contains("permission denied"), "{problem}");
    assert!(remedy.contains("haft shared migrate"), "{remedy}");
}

#[tokio::test]
async fn a_read_only_database_is_named_as_such() {
    let Some(test) = database() else { return };
    open(&test.url).await;
    test.sql(&format!("alter database {} set default_transaction_read_only = on", test.name));
    let database = open(&test.url).await;
    let error = database.join(crate::replica("http://127.0.0.1:1")).await.unwrap_err();
    assert_eq!(error, DatabaseError::ReadOnly);
    assert!(error.remedy().contains("primary"), "{}", error.remedy());
}

#[tokio::test]
async fn an_unreachable_database_is_transient() {
    let Some(test) = database() else { return };
    let url = test.url_at(testkit::TcpProxy::start(1).port());
    let error = Database::open(settings(&url)).await.err().unwrap();
    assert!(error.is_transient(), "{error}");
    assert!(matches!(error, DatabaseError::Unreachable { age: None, .. }), "{error:?}");
}

#[tokio::test]
async fn signing_keys_are_there_from_the_start() {
    let Some(test) = database() else { return };
    let keys = open(&test.url).await.signing_keys().await.unwrap();
    assert_eq!(keys.iter().map(Vec::len).collect::<Vec<_>>(), [32]);
}

/// A frozen primary accepts connections and never answers. It must not keep a replica from the other host.
#[tokio::test]
async fn a_silent_host_does_not_hide_the_other_one() {
    let Some(test) = database() else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap().port();
    let port = test.port();
    let hosts = format!("127.0.0.1:{silent},127.0.0.1:{port}");
    let url = test.url.replace(&format!("127.0.0.1:{port}"), &hosts);
    eventually(async || Database::open(settings(&url)).await.ok()).await;
}
