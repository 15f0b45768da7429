//! Servers whose schemas take long to compile.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::mcp_support::{Stage, answer, names};

/// Upper bound for a call of a neighbour on a busy machine. Compiled in place, the schemas below keep
/// the only thread of this test busy for much longer.
const STALL_MAX: Duration = Duration::from_secs(2);

/// A tool with ten patterns, each of about a megabyte once it is compiled.
fn heavy(tool: usize) -> Value {
    let property =
        |n: usize| (format!("p{n}"), json!({"pattern": format!("^{tool}_{n}\\p{{L}}{{30}}$")}));
    let properties: serde_json::Map<String, Value> = (0..10).map(property).collect();
    json!({
        "name": format!("heavy_{tool}"),
        "inputSchema": {"type": "object", "properties": properties},
    })
}

#[tokio::test]
async fn heavy_schemas_stall_no_neighbour_and_are_refused() {
    let stage = Stage::new();
    let light = json!({"name": "light", "inputSchema": {"type": "object",
        "properties": {"x": {"pattern": "^[a-z]{1,20}$"}}}});
    let tools: Vec<Value> = (0..20).map(heavy).chain([light]).collect();
    let hostile = stage.stdio("hostile", json!({ "tools": tools }), json!({"start": "lazy"}));
    let honest = stage.stdio("honest", json!({"tools": ["echo"]}), json!({}));
    let runtime = stage.start([hostile, honest], json!({})).await;
    let mut longest = Duration::ZERO;
    let mut last = Instant::now();
    let mut note = || {
        longest = longest.max(last.elapsed());
        last = Instant::now();
    };
    {
        let mut discovering = std::pin::pin!(runtime.discover());
        loop {
            tokio::select! {
                () = &mut discovering => break,
                _ = answer(&runtime, "echo", json!({"n": 1})) => note(),
            }
        }
        note();
    }
    assert!(longest < STALL_MAX, "the neighbour waited for {longest:?}");
    assert_eq!(names(&runtime), ["light", "echo"]);
}
