//! A server that floods Haft before it answers, and its neighbour.

use std::time::{Duration, Instant};

use haft::ServerState;
use serde_json::json;
use testkit::Flood;

use super::mcp_support::{Stage, answer};
use super::support::until;

/// The promise is 100 ms; a machine that runs other tests beside is slower.
const NEIGHBOUR_MAX: Duration = Duration::from_secs(1);

/// One worker for everything: a flood of interim responses that is read without a limit leaves it no time.
#[tokio::test]
async fn a_flood_of_interim_responses_leaves_a_neighbour_alone() {
    let flood = Flood::of_interim_responses();
    let stage = Stage::new();
    let sick = json!({
        "transport": "http",
        "url": format!("http://{}/mcp", flood.address()),
        "reconnect": {"base": "20ms", "max": "20ms"},
    });
    let runtime = stage.start([("sick", sick), stage.plain("fine")], json!({})).await;
    until(|| runtime.servers().iter().any(|it| it.state == ServerState::Unavailable)).await;
    for n in 0..50 {
        let began = Instant::now();
        assert_eq!(answer(&runtime, "echo", json!({ "n": n })).await, json!({ "n": n }));
        assert!(began.elapsed() < NEIGHBOUR_MAX, "call {n} took {:?}", began.elapsed());
    }
    let servers = runtime.servers();
    let sick = servers.iter().find(|it| it.name == "sick").unwrap();
    let reason = format!("{sick:?}");
    assert!(reason.contains("more than 256 KiB of headers and interim responses"), "{reason}");
    runtime.shutdown(Duration::from_secs(1)).await;
}
