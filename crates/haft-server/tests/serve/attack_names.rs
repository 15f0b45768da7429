//! Names that nothing can have: refused before they are compared with any.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::served::{Served, haft, toolbox};

fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// Every place of the REST API that takes a name, in the path and in the body.
#[tokio::test]
async fn long_names_are_refused_over_the_api() {
    let served = Served::with_admin(toolbox());
    let name = long(257);
    let get = ["/api/v1/tools/NAME", "/api/v1/servers/NAME", "/api/v1/log/NAME", "/NAME"];
    for path in get.map(|path| path.replace("NAME", &name)) {
        let answer = served.get(&path).await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text);
        assert!(answer.text.contains("at most 256"), "{path}: {}", answer.text);
    }
    for path in
        ["/api/v1/tools/NAME/call", "/api/v1/prompts/NAME/x", "/api/v1/prompts/x/NAME", "/mcp/NAME"]
    {
        let answer = served.post(&path.replace("NAME", &name), "{}").await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text);
    }
    for bytes in [257, 3_500_000] {
        let batch = json!({"calls": [{"tool": "greet"}, {"tool": long(bytes)}]}).to_string();
        let answer = served.post("/api/v1/calls", &batch).await;
        assert_eq!(answer.status, 400, "{:.300}", answer.text);
        assert!(
            answer.text.contains("at most 256") && answer.text.len() < 4_000,
            "{:.300}",
            answer.text
        );
    }
    // Escapes count as what they stand for.
    let escaped = "%C3%A4".repeat(128);
    assert_eq!(served.get(&format!("/api/v1/tools/{escaped}")).await.status, 404);
    assert_eq!(served.get(&format!("/api/v1/tools/{escaped}x")).await.status, 400);
    assert_eq!(served.log().len(), 0, "none of it was a call");
}

/// Every method of MCP that takes a name or a URI.
#[tokio::test]
async fn long_names_are_refused_over_mcp() {
    let served = Served::open(toolbox());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let ask = async |method: &str, mut params: Value, mirrored: Option<&str>| {
        params["_meta"] = meta.clone();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("accept", "application/json, text/event-stream"),
        ];
        headers.extend(mirrored.map(|name| ("mcp-name", name)));
        let answer =
            served.send(reqwest::Method::POST, "/mcp", &headers, &message.to_string()).await;
        assert!(answer.text.len() < 4_000, "{:.300}", answer.text);
        answer.text
    };
    let name = long(257);
    for method in ["tools/call", "prompts/get"] {
        let answer = ask(method, json!({"name": name, "arguments": {}}), Some(&name)).await;
        assert!(answer.contains("-32602") && answer.contains("257 bytes"), "{method}: {answer}");
    }
    let reference = json!({"type": "ref/prompt", "name": long(3_500_000)});
    let complete = json!({"ref": reference, "argument": {"name": "a", "value": ""}});
    let answer = ask("completion/complete", complete, None).await;
    assert!(answer.contains("-32602") && answer.contains("3500000 bytes"), "{answer}");
    let uri = format!("a://{}", long(9_000));
    let answer = ask("resources/read", json!({"uri": uri}), Some(&uri)).await;
    assert!(answer.contains("9004 bytes"), "{answer}");
    assert_eq!(served.log().len(), 0, "none of it was a call");
}

#[test]
fn long_names_are_refused_at_the_terminal() {
    let workspace: Workspace = toolbox();
    let name = long(257);
    for args in [
        &["call", &name][..],
        &["tools", "show", &name],
        &["explain", &name],
        &["prompts", "get", &name],
        &["servers", "show", &name],
    ] {
        let finished = haft(&workspace, args).run();
        assert_eq!(finished.code, 2, "{args:?}: {}", finished.stderr);
        assert!(finished.stderr.contains("at most 256"), "{args:?}: {}", finished.stderr);
    }
}
