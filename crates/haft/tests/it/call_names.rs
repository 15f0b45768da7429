//! Names that no tool can have.

use std::time::{Duration, Instant};

use haft::{Code, NAME_BYTES_MAX, ToolCall};
use serde_json::json;

use super::mcp_support::Stage;

/// A name of megabytes is refused without comparing it with any, and neither the answer nor the log repeats it.
#[tokio::test]
async fn a_long_name_is_refused_at_once() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let begun = Instant::now();
    for length in [NAME_BYTES_MAX + 1, 4_000_000] {
        let answer = runtime.call(ToolCall::new("\u{e4}".repeat(length / 2 + 1), &json!({}))).await;
        let error = answer.error.unwrap();
        assert_eq!(error.code, Code::ValidationError, "{}", error.message);
        assert!(error.message.contains("at most 256"), "{}", error.message);
        assert!(error.message.len() < 1_000 && answer.tool.len() < 1_000);
    }
    // Comparing the second one with the server's tools took seconds.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let longest = runtime.call(ToolCall::new("x".repeat(NAME_BYTES_MAX), &json!({}))).await;
    assert_eq!(longest.error.unwrap().code, Code::UnknownTool);
    runtime.shutdown(Duration::from_secs(5)).await;
    let logged = stage.logged();
    assert_eq!(logged.len(), 3, "one entry for each call");
    assert!(logged.iter().all(|entry| entry.tool.len() < 1_000));
}

/// A mistyped name still gets its suggestion; one that is not a typing error does not cost a comparison.
#[test]
fn only_short_words_are_compared() {
    assert_eq!(haft_text::nearest("get_wether", ["get_weather", "echo"]), Some("get_weather"));
    let long = "a".repeat(4_000_000);
    let begun = Instant::now();
    assert_eq!(haft_text::nearest(&long, [long.as_str(), "echo"]), None);
    assert_eq!(haft_text::nearest("echo", [long.as_str()]), None);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
