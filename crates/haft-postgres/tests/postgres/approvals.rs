//! Standing approvals: stored once, limited, counted.

use haft_postgres::{ApprovalRow, Topic};
use testkit::postgres::database;

use crate::open;

fn approval(tool: &str, rule: Option<&str>) -> ApprovalRow {
    ApprovalRow {
        tool: tool.to_owned(),
        owner: Some("key:ada".to_owned()),
        session: None,
        server: None,
        rule: rule.map(ToOwned::to_owned),
        definition: "h1".to_owned(),
    }
}

/// Every change raises the counter in the same statement; an approval that is there already changes nothing.
#[tokio::test]
async fn an_approval_is_stored_once_and_counted() {
    let Some(test) = database() else { return };
    let (one, two) = (open(&test.url).await, open(&test.url).await);
    let (plain, ruled) = (approval("greet", None), approval("greet", Some("costly")));
    one.insert_approval("a", &plain, 10).await.unwrap();
    two.insert_approval("a", &plain, 10).await.unwrap();
    two.insert_approval("b", &ruled, 10).await.unwrap();
    let rows = one.approvals(10).await.unwrap();
    assert_eq!((rows.seq, rows.approvals), (2, vec![plain, ruled.clone()]));
    one.refresh().await.unwrap();
    assert_eq!(one.topics().borrow().seq(Topic::Approvals), 2);
    assert!(one.delete_approval("a").await.unwrap());
    assert!(!one.delete_approval("a").await.unwrap());
    let rows = two.approvals(10).await.unwrap();
    assert_eq!((rows.seq, rows.approvals), (3, vec![ruled]));
}

/// The oldest approvals beyond the maximum are deleted.
#[tokio::test]
async fn the_oldest_approvals_are_deleted() {
    let Some(test) = database() else { return };
    let database = open(&test.url).await;
    assert_eq!(database.approvals(3).await.unwrap().approvals, []);
    for n in 0..5 {
        database.insert_approval(&n.to_string(), &approval(&n.to_string(), None), 3).await.unwrap();
    }
    assert_eq!(test.sql("select string_agg(tool, ' ' order by id) from haft.approval"), "2 3 4");
}
