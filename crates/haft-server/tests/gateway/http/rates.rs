//! Rates and lists of keys on `/mcp`, in both eras.

use serde_json::{Value, json};

use super::Gateway;
use crate::support::{server, workspace};

fn limited_server() -> Value {
    let mut far = server(&json!({"tools": ["text"]}));
    far["rate"] = json!("2/h");
    far["burst"] = json!(2);
    json!({"far": far})
}

/// A call beyond a rate is an error with the data that the API answers.
#[tokio::test]
async fn a_call_beyond_a_rate_is_an_error_with_data_in_both_eras() {
    let gateway = Gateway::open(workspace(&limited_server()));
    let session = gateway.session(&json!({})).await;
    let params = json!({"name": "text", "arguments": {}});
    assert!(session.ask("tools/call", &params).await["result"].is_object());
    let modern = async |id| gateway.modern(id, "tools/call", params.clone()).await.answer().await;
    assert!(modern(1).await["result"].is_object());
    for error in [session.ask("tools/call", &params).await, modern(2).await] {
        let error = &error["error"];
        assert_eq!(error["code"], -32029, "{error}");
        assert_eq!(
            error["message"],
            "`text` was not called: the server `far` has reached its rate of 2/h"
        );
        let data = &error["data"];
        assert_eq!(
            (&data["code"], &data["details"]["of"]),
            (&json!("RateLimited"), &json!("server"))
        );
        assert!(data["details"]["retry_after_ms"].as_u64().unwrap() > 1_700_000, "{data}");
    }
    // Other tools are not limited.
    let greet = json!({"name": "greet", "arguments": {"name": "Ada"}});
    assert!(session.ask("tools/call", &greet).await["result"].is_object());
}
