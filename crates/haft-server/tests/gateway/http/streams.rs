//! Streams of the legacy era: what comes before an answer, and after a connection broke.

use serde_json::{Value, json};
use testkit::eventually;
use testkit::fixture::messages;

use super::{Gateway, request};
use crate::support::{server, workspace};

fn progress(steps: u64) -> Value {
    let arguments = json!({"steps": steps, "every_ms": 1});
    json!({"name": "progress", "arguments": arguments, "_meta": {"progressToken": "mine"}})
}

/// An answer alone is JSON; progress makes it a stream, with the client's own token.
#[tokio::test]
async fn progress_comes_before_the_answer() {
    let servers = json!({"files": server(&json!({"tools": ["echo", "progress"]}))});
    let gateway = Gateway::open(workspace(&servers));
    let session = gateway.session(&json!({})).await;
    session.ask("tools/list", &json!({})).await;
    let plain = session.course(1, "tools/call", &json!({"name": "echo", "arguments": {}})).await;
    assert!(!plain.is_stream());

    let mut course = session.course(2, "tools/call", &progress(3)).await;
    assert!(course.is_stream());
    for step in 1..=3 {
        let message = course.message().await.unwrap();
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "mine");
        assert_eq!(message["params"]["progress"].as_f64(), Some(f64::from(step)));
    }
    let answer = course.message().await.unwrap();
    assert_eq!((&answer["id"], answer["result"].is_object()), (&json!(2), true));
    assert!(course.message().await.is_none());
}

/// A client that accepts JSON alone gets its answer, and nothing else.
#[tokio::test]
async fn a_client_that_reads_no_streams_gets_its_answer() {
    let gateway =
        Gateway::open(workspace(&json!({"files": server(&json!({"tools": ["progress"]}))})));
    let session = gateway.session(&json!({})).await;
    session.ask("tools/list", &json!({})).await;
    let headers = [("mcp-session-id", &*session.id), ("accept", "application/json")];
    let course = gateway.course(&headers, &request(1, "tools/call", &progress(3))).await;
    assert!(!course.is_stream());
}

/// An answer that is kept for a client which may have missed it counts as memory in flight.
#[tokio::test]
async fn a_kept_answer_counts_as_memory_in_flight() {
    let scenario = json!({"tools": ["big"], "delay_ms": {"tools/call": 1500}});
    let gateway = Gateway::open(workspace(&json!({"files": server(&scenario)})));
    let session = gateway.session(&json!({})).await;
    session.ask("tools/list", &json!({})).await;
    let call = json!({"name": "big", "arguments": {"bytes": 1_000_000}});
    let mut course = session.course(2, "tools/call", &call).await;
    assert!(course.is_stream(), "it takes so long that a stream begins");
    course.answer().await;
    let in_flight = async || {
        let page = gateway.served.get("/metrics").await.text;
        let line = page.lines().find_map(|line| line.strip_prefix("haft_in_flight_bytes "));
        line.unwrap().parse::<usize>().unwrap()
    };
    assert!(in_flight().await >= 1_000_000);
    drop(course);
    session.delete().await;
    let gone = async {
        while in_flight().await > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(testkit::DEADLINE, gone).await.expect("it is given back");
}

/// A stream that broke is taken up where it was: nothing comes twice, nothing is missing.
#[tokio::test]
async fn a_lost_stream_is_taken_up_again() {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("facts");
    let servers = json!({"files": server(&json!({"tools": ["progress"], "facts": facts}))});
    workspace.write("haft.json", json!({"servers": servers}).to_string());
    let gateway = Gateway::open(workspace);
    let session = gateway.session(&json!({})).await;
    session.ask("tools/list", &json!({})).await;
    let mut course = session.course(2, "tools/call", &progress(200)).await;
    // A place to come back to stands first, before there is any message.
    let hello = course.event().await.unwrap();
    assert_eq!((&*hello.data, hello.id.is_empty()), ("", false));
    let mut last = hello.id;
    for _ in 0..5 {
        last = course.event().await.unwrap().id;
    }
    drop(course);

    let mut rest = session.listen(Some(&last)).await;
    let mut expected = 6.0;
    let answer = loop {
        let message = rest.message().await.expect("an answer before the end");
        if message["id"] == 2 {
            break message;
        }
        assert_eq!(message["params"]["progress"].as_f64(), Some(expected), "{message}");
        expected += 1.0;
    };
    assert!((expected - 201.0).abs() < 0.1, "{expected}");
    assert!(answer["result"].is_object());
    assert!(messages(&facts, "notifications/cancelled").is_empty());
    // An event of an unknown stream cannot be resumed from.
    assert_eq!(session.listen(Some("999-1")).await.status, 400);
    assert_eq!(session.listen(Some("nonsense")).await.status, 400);
}

/// A client that disconnects cancels its calls at their server, and the log has it.
#[tokio::test]
async fn a_client_that_goes_away_cancels_its_call() {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("facts");
    let servers = json!({"files": server(&json!({"tools": ["hang"], "facts": facts}))});
    workspace.write("haft.json", json!({"servers": servers}).to_string());
    let gateway = Gateway::open(workspace);
    let session = gateway.session(&json!({})).await;
    session.ask("tools/list", &json!({})).await;
    let hang = json!({"name": "hang", "arguments": {}});

    // Cancelled by word, in the stream that a slow answer becomes.
    let mut course = session.course(1, "tools/call", &hang).await;
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1},
    });
    assert_eq!(session.post(&cancelled).await.status, 202);
    assert!(course.message().await.is_none());
    // Gone without a word.
    let course = session.course(2, "tools/call", &hang).await;
    assert!(course.is_stream());
    drop(course);
    // The session ends during the call.
    let other = gateway.session(&json!({})).await;
    let mut course = other.course(1, "tools/call", &hang).await;
    assert_eq!(other.delete().await, 204);
    assert!(course.message().await.is_none());

    eventually("three calls are cancelled", || {
        (messages(&facts, "notifications/cancelled").len() == 3).then_some(())
    });
    eventually("the log has them", || {
        let log = gateway.served.log();
        let is_cancelled = |entry: &&Value| entry["error"]["code"] == "Cancelled";
        (log.iter().filter(is_cancelled).count() == 3).then_some(())
    });
}

/// Notifications reach open streams, and those that open shortly afterwards.
#[tokio::test]
async fn changes_are_announced_on_the_notification_stream() {
    let scenario = json!({
        "tools": ["add_tool", "add_prompt", "update_resource"],
        "prompts": [{"name": "first"}],
        "resources": [{"uri": "test://a", "name": "a", "text": "x"}],
    });
    let gateway = Gateway::open(workspace(&json!({"files": server(&scenario)})));
    let session = gateway.session(&json!({})).await;
    for list in ["tools/list", "prompts/list", "resources/list"] {
        assert!(session.ask(list, &json!({})).await["result"].is_object(), "{list}");
    }
    let watched = session.ask("resources/subscribe", &json!({"uri": "test://a"})).await;
    assert_eq!(watched["result"], json!({}));
    let mut notifications = session.listen(None).await;
    let call = |tool: &str, arguments: Value| json!({"name": tool, "arguments": arguments});
    let mut receives = async |tool: &str, arguments: Value, method: &str| {
        let answer = session.ask("tools/call", &call(tool, arguments)).await;
        assert!(answer["result"].is_object(), "{answer}");
        loop {
            let message = notifications.message().await.unwrap();
            if message["method"] == method {
                return message;
            }
        }
    };
    receives("add_tool", json!({"name": "new"}), "notifications/tools/list_changed").await;
    receives("add_prompt", json!({"name": "new"}), "notifications/prompts/list_changed").await;
    let updated = "notifications/resources/updated";
    let update = receives("update_resource", json!({"uri": "test://a"}), updated).await;
    assert_eq!(update["params"]["uri"], "test://a");

    let enough = session.ask("resources/unsubscribe", &json!({"uri": "test://a"})).await;
    assert_eq!(enough["result"], json!({}));
}
