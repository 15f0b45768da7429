//! Many tools.

use std::time::Instant;

use serde_json::{Value, json};
use testkit::LogCapture;

use super::mcp_support::{Stage, answer, names};

/// Proves S3-SC-008, S0-26: one, fifty and five hundred tools, on one page or many: all of them.
#[tokio::test]
async fn every_tool_is_registered_however_many_there_are() {
    for (count, page_size) in [(1, 1), (50, 50), (50, 7), (500, 500), (500, 33)] {
        let stage = Stage::new();
        let scenario = json!({"tools": count, "page_size": page_size});
        let runtime = stage.start([stage.stdio("one", scenario, json!({}))], json!({})).await;
        let expected: Vec<String> = (1..=count).map(|n| format!("tool_{n:04}")).collect();
        assert_eq!(names(&runtime), expected, "{count} by {page_size}");
        let last = expected.last().unwrap();
        assert_eq!(answer(&runtime, last, json!({"n": 1})).await, json!({"n": 1}));
    }
}

/// Proves S3-SC-008: an empty cursor is a cursor; an endless list is cut off with a reason, and its
/// tools work.
#[tokio::test]
async fn strange_cursors_end_somewhere() {
    for (pages, at_least) in [("empty_cursor", 5), ("endless_same", 2), ("endless_empty", 2)] {
        let stage = Stage::new();
        let scenario = json!({"tools": 5, "page_size": 2, "pages": pages});
        let runtime = stage.start([stage.stdio("one", scenario, json!({}))], json!({})).await;
        let found = names(&runtime).len();
        assert!(found >= at_least, "{pages}: {found}");
        let info = runtime.servers().remove(0);
        assert_eq!(info.reason.is_some(), pages != "empty_cursor", "{pages}: {:?}", info.reason);
        assert_eq!(answer(&runtime, "tool_0001", json!({})).await, json!({}));
    }
}

/// Proves S0-65: a hundred tools, five with an entry: five merged, ninety-five by default, with a
/// line for each of those.
#[tokio::test]
async fn of_a_hundred_tools_five_are_configured() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let settings =
        json!({"mode": "dynamic", "default_tool_config": {"max_instances": 10, "timeout": "30s"}});
    let server = stage.stdio("one", json!({"tools": 100}), settings);
    let entries: Vec<Value> =
        (1..=5).map(|n| json!({"name": format!("tool_{n:04}"), "max_instances": 20})).collect();
    let runtime = stage.start([server], json!({ "tools": entries })).await;
    let tools = json!(runtime.tools());
    let origins = |word: &str| {
        tools.as_array().unwrap().iter().filter(|tool| tool["config_origin"] == word).count()
    };
    assert_eq!((origins("merged"), origins("default")), (5, 95));
    assert_eq!(heard.count("not explicitly configured, using default configuration"), 95);
    assert_eq!(runtime.tool("tool_0003").unwrap().setting("max_instances"), Some(&json!(20)));
    assert_eq!(runtime.tool("tool_0006").unwrap().setting("max_instances"), Some(&json!(10)));
}

/// Proves S0-88: what three servers of a hundred tools cost to register, measured against the same
/// start where the tools are fetched and then left out.
#[tokio::test]
async fn registration_is_a_small_part_of_the_start() {
    let stage = Stage::new();
    let start = async |settings: Value| {
        let servers = ["a", "b", "c"].map(|name| {
            let settings =
                super::mcp_support::with(settings.clone(), json!({"tool_prefix": "server"}));
            stage.stdio(name, json!({"tools": 100}), settings)
        });
        let began = Instant::now();
        let runtime = stage.start(servers, json!({})).await;
        let took = began.elapsed();
        (names(&runtime).len(), took)
    };
    // The shortest of three: whatever else the machine does only ever adds.
    let shortest = async |settings: Value| {
        let mut runs = Vec::new();
        for _ in 0..3 {
            runs.push(start(settings.clone()).await);
        }
        runs.into_iter().min_by_key(|(_, took)| *took).unwrap()
    };
    let (none, without) = shortest(json!({"tool_allowlist": ["nothing"]})).await;
    let (all, with_registration) = shortest(json!({})).await;
    assert_eq!((none, all), (0, 300));
    let added = with_registration.saturating_sub(without);
    assert!(added.as_secs_f64() < 1.0, "{added:?} more than {without:?}");
}
