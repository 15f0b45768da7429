//! The table of replicas: numbers, heartbeats, problems, and counters of changes.

use haft_postgres::{OwnReplica, Topic};
use testkit::postgres::database;
use testkit::{ProxyMode, TcpProxy};

use crate::registry::eventually;
use crate::{open, replica};

#[tokio::test]
async fn replicas_have_numbers_of_their_own_and_see_each_other() {
    let Some(test) = database() else { return };
    let (one, two) = (open(&test.url).await, open(&test.url).await);
    assert_eq!(one.replica_number(), None);
    assert_eq!(one.join(replica("http://127.0.0.1:1")).await.unwrap(), 1);
    assert_eq!(two.join(replica("http://127.0.0.1:2")).await.unwrap(), 2);
    let table = one.replicas();
    let other = eventually(async || table.borrow().get(2).cloned()).await;
    assert_eq!((other.address.as_str(), other.config.as_str()), ("http://127.0.0.1:2", "c0ffee"));
    let problem = Some("a file is broken".to_owned());
    let revision = Some("7-abcdefab".to_owned());
    two.report(OwnReplica { revision, config: "decaf".into(), problem: problem.clone() });
    let changed = eventually(async || {
        table.borrow().get(2).filter(|other| other.problem == problem).cloned()
    });
    assert_eq!(changed.await.config, "decaf");
    two.close().await;
    eventually(async || table.borrow().get(2).is_none().then_some(())).await;
    assert_eq!(test.sql("select number from haft.replica"), "1");
}

#[tokio::test]
async fn a_number_is_not_given_to_two_live_replicas() {
    let Some(test) = database() else { return };
    let one = open(&test.url).await;
    assert_eq!(one.join(replica("http://127.0.0.1:1")).await.unwrap(), 1);
    test.sql("alter sequence haft.replica_number restart with 1");
    let two = open(&test.url).await;
    assert_eq!(two.join(replica("http://127.0.0.1:2")).await.unwrap(), 2);
    // A dead one's number is free again.
    one.close().await;
    test.sql(
        "insert into haft.replica (number, id, address, version, config, seen)
        values (3, gen_random_uuid(), 'x', 'x', 'x', now() - interval '11 seconds')",
    );
    let three = open(&test.url).await;
    assert_eq!(three.join(replica("http://127.0.0.1:3")).await.unwrap(), 3);
}

#[tokio::test]
async fn a_replica_whose_row_is_gone_takes_its_number_back() {
    let Some(test) = database() else { return };
    let one = open(&test.url).await;
    one.join(replica("http://127.0.0.1:1")).await.unwrap();
    test.sql("delete from haft.replica");
    eventually(async || (test.sql("select number from haft.replica") == "1").then_some(())).await;
}

#[tokio::test]
async fn two_replicas_with_one_address_report_it() {
    let Some(test) = database() else { return };
    let (one, two) = (open(&test.url).await, open(&test.url).await);
    one.join(replica("http://127.0.0.1:1")).await.unwrap();
    two.join(replica("http://127.0.0.1:1")).await.unwrap();
    let table = two.replicas();
    let problem = async || table.borrow().get(1)?.problem.clone();
    let problem = eventually(problem).await;
    assert_eq!(
        problem,
        "replica 2 has the same address http://127.0.0.1:1: set `shared.advertise`"
    );
}

#[tokio::test]
async fn counters_follow_changes_without_notifications_too() {
    let Some(test) = database() else { return };
    let one = open(&test.url).await;
    one.join(replica("http://127.0.0.1:1")).await.unwrap();
    let topics = one.topics();
    let before = topics.borrow().seq(Topic::Keys);
    test.sql("update haft.topic set seq = seq + 1 where name = 'keys'");
    let seen = async || (topics.borrow().seq(Topic::Keys) == before + 1).then_some(());
    eventually(seen).await;
}

#[tokio::test]
async fn a_refresh_sees_every_change_before_it() {
    let Some(test) = database() else { return };
    let one = open(&test.url).await;
    for number in 1..=5 {
        test.sql("update haft.topic set seq = seq + 1 where name = 'registry'");
        let (first, second) = tokio::join!(one.refresh(), one.refresh());
        first.and(second).unwrap();
        assert_eq!(one.topics().borrow().seq(Topic::Registry), number);
    }
}

#[tokio::test]
async fn an_outage_shows_in_the_health_and_ends() {
    let Some(test) = database() else { return };
    let proxy = TcpProxy::start(test.port());
    let one = open(&test.url_at(proxy.port())).await;
    one.join(replica("http://127.0.0.1:1")).await.unwrap();
    assert_eq!(one.health().problem, None);
    proxy.set(ProxyMode::Refuse);
    proxy.cut();
    let (problem, remedy) = eventually(async || one.health().problem).await;
    assert!(problem.contains("the database"), "{problem}");
    assert!(!remedy.is_empty());
    proxy.set(ProxyMode::Pass);
    eventually(async || one.health().problem.is_none().then_some(())).await;
}

#[tokio::test]
async fn counters_that_went_back_are_reported_as_lost_commits() {
    let Some(test) = database() else { return };
    let one = open(&test.url).await;
    test.sql("update haft.topic set seq = 5 where name = 'registry'");
    one.refresh().await.unwrap();
    assert!(!one.health().lost_commits);
    test.sql("update haft.topic set seq = 3 where name = 'registry'");
    one.refresh().await.unwrap();
    assert!(one.health().lost_commits);
}
