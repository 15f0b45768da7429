//! Sandboxes of a program that embeds Haft without a launcher.

use haft::{Code, Runtime, ToolCall};
use serde_json::json;

use crate::support::Bench;

/// Without a launcher there is neither Landlock nor a limit, so nothing runs.
#[tokio::test]
async fn without_a_launcher_nothing_runs_that_needs_one() {
    let bench = Bench::new();
    let ran = bench.path().join("ran");
    let sandboxes = ["landlock", "{kind: landlock, read: [/]}", "{kind: none, cpu: 5s}"];
    for sandbox in sandboxes {
        let config = format!(
            "local_tools:\n\
             - {{name: make, description: Makes a file., input_schema: {{type: object}}, sandbox: {sandbox},\n    \
             config: {{command: [touch, '{}']}}}}\n",
            ran.display()
        );
        let runtime = Runtime::start(bench.config(&config)).await.unwrap();
        let envelope = runtime.call(ToolCall::new("make", &json!({}))).await;
        let error = envelope.error.unwrap();
        assert_eq!(error.code, Code::ServiceUnavailable, "{sandbox}: {error:?}");
        assert_eq!(
            error.message,
            "`make` was not run, because its sandbox could not be made: this program has no launcher for \
             sandboxes"
        );
        assert!(!ran.exists(), "{sandbox}");
    }
}
