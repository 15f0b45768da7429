//! Log lines within a request carry its id, in both formats.

use haft_server::keys::Scope;
use serde_json::Value;

use crate::client;
use crate::served::{create_key, haft, toolbox};

#[tokio::test]
async fn log_lines_carry_the_id_of_their_request() {
    for (format, expected) in [("plain", "request_id=\"r-1\""), ("json", "\"request_id\":\"r-1\"")]
    {
        let workspace = toolbox();
        create_key(&workspace, "me", Scope::Admin);
        let args = ["--json", "--log-format", format, "serve", "--listen", "127.0.0.1:0"];
        let running = haft(&workspace, &args).start();
        let mut text = String::new();
        let greeting: Value = loop {
            text += &running.line();
            if let Ok(greeting) = serde_json::from_str(&text) {
                break greeting;
            }
        };
        let url = format!("{}/api/v1/tools", greeting["listening"].as_str().unwrap());
        let wrong = client().build().unwrap().get(url).header("x-api-key", "wrong");
        let answer = wrong.header("x-request-id", "r-1").send().await.unwrap();
        assert_eq!(answer.status(), 401);
        assert_eq!(answer.headers()["x-request-id"], "r-1");
        let stderr = testkit::eventually("a line of the refusal", || {
            let stderr = running.stderr_so_far();
            stderr.contains("refused a request").then_some(stderr)
        });
        let line = stderr.lines().find(|line| line.contains("refused a request")).unwrap();
        assert!(line.contains(expected), "{line}");
        running.terminate();
        assert_eq!(running.finish().code, 0);
    }
}
