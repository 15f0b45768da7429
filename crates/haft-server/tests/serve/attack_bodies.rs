//! Bodies that are made to hurt.

use reqwest::Method;
use serde_json::json;

use crate::faults::memory;
use crate::served::{Served, toolbox};

/// The most that reading such bodies one after the other may cost.
const MEMORY_MAX: u64 = 256 << 20;

/// Each body, and what it is called.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let keys = |count: usize| {
        let members: Vec<String> = (0..count).map(|n| format!("\"{n:x}\":0")).collect();
        format!("{{\"name\":\"x\",{}}}", members.join(",")).into_bytes()
    };
    let nested = |depth: usize, open: &str, close: &str| {
        let inner = format!("{}{}", open.repeat(depth), close.repeat(depth));
        format!("{{\"name\":\"x\",\"config\":{inner}}}").into_bytes()
    };
    vec![
        ("10 MB of nesting", nested(5_000_000, "[", "]")),
        ("3 MB of nesting", nested(1_500_000, "[", "]")),
        ("nesting that never ends", "[".repeat(3_000_000).into_bytes()),
        ("objects that never end", "{\"a\":".repeat(600_000).into_bytes()),
        ("65 levels", nested(65, "[", "]")),
        ("10^6 keys", keys(1_000_000)),
        ("as many keys as fit", keys(420_000)),
        ("a key twice", br#"{"name":"x","url":"http://a/","url":"http://b/"}"#.to_vec()),
        (
            "a key twice, once escaped",
            br#"{"name":"x","url":"http://a/","u\u0072l":"http://b/"}"#.to_vec(),
        ),
        ("the name twice", br#"{"name":"x","name":"y","url":"http://a/"}"#.to_vec()),
        (
            "a key twice, deep down",
            br#"{"name":"x","headers":{"A":"1","A":"2"},"url":"http://a/"}"#.to_vec(),
        ),
        ("another case", br#"{"name":"x","URL":"http://a/"}"#.to_vec()),
        ("a number without end", [&b"{\"name\":"[..], &[b'1'; 3_000_000], b"}"].concat()),
        (
            "a text of 3 MB as the name",
            [&b"{\"url\":\"http://a/\",\"name\":\""[..], &[b'n'; 3_000_000], b"\"}"].concat(),
        ),
        ("no UTF-8", b"{\"name\":\"\xff\"}".to_vec()),
        ("half a surrogate", br#"{"name":"\ud800","url":"http://a/"}"#.to_vec()),
        ("NUL in the name", br#"{"name":"a\u0000b","url":"http://a/"}"#.to_vec()),
        ("a path in the name", br#"{"name":"../../etc","command":"x"}"#.to_vec()),
        ("nothing", Vec::new()),
        ("two documents", b"{} {}".to_vec()),
        ("not JSON", b"name: x".to_vec()),
    ]
}

/// Every one of them ends in a 4xx with a problem document, nothing is registered, and memory stays bounded.
#[tokio::test]
async fn bombs_are_refused_with_flat_memory() {
    let served = Served::with_admin(toolbox());
    let before = served.workspace.read("tools/mcp.json");
    let (calm, _) = memory(served.pid);
    for (name, body) in bodies() {
        for (method, path) in [
            (Method::POST, "/api/v1/servers"),
            (Method::PUT, "/api/v1/servers/x"),
            (Method::POST, "/api/v1/prompts/x/y"),
            (Method::POST, "/api/v1/tools/greet/call"),
            (Method::POST, "/api/v1/calls"),
        ] {
            let request = served.request(method.clone(), path);
            let request = request.header("content-type", "application/json").body(body.clone());
            let refused = crate::served::answer(request).await;
            let status = refused.status;
            assert!(
                (400..500).contains(&status),
                "{name}: {method} {path}: {status} {}",
                refused.text
            );
            assert!(refused.text.len() < 64 * 1024, "{name}: {} bytes", refused.text.len());
        }
    }
    let (_, most) = memory(served.pid);
    println!("{} MiB before, at most {} MiB", calm >> 20, most >> 20);
    assert!(most < calm + MEMORY_MAX, "{calm} {most}");
    assert_eq!(served.workspace.read("tools/mcp.json"), before);
    assert_eq!(served.get("/readyz").await.json()["status"], json!("ready"));
    assert_eq!(served.get("/api/v1/servers").await.json()["servers"], json!([]));
}
