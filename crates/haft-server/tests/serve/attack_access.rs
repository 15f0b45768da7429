//! Attacks on the way in: foreign pages, no key, guessed keys, commands.

use std::fs;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;

use crate::faults::children;
use crate::served::{Served, answer, haft, toolbox};

/// Proves X-13: a name that was rebound to this machine and a foreign page are refused, on any path.
#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let served = Served::with_admin(toolbox());
    let port = served.url.rsplit_once(':').unwrap().1;
    let own = format!("http://localhost:{port}");
    let evil_port = format!("http://localhost:{}", port.parse::<u16>().unwrap() ^ 1);
    for path in [
        "/api/v1/servers",
        "/api/v1/status",
        "/healthz",
        "/readyz",
        "/api/openapi.json",
        "/nothing",
    ] {
        for (header, value) in [
            ("host", "evil.example"),
            ("host", "127.0.0.1.evil.example"),
            ("host", "evil.example:80"),
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", "file://"),
            ("origin", "http://[::1]:1"),
            ("origin", &evil_port),
        ] {
            let request = served.request(Method::GET, path).header(header, value);
            let refused = answer(request).await;
            assert_eq!(refused.status, 403, "{path} with {header}: {value}: {}", refused.text);
        }
    }
    let own = served
        .request(Method::GET, "/api/v1/status")
        .header("host", format!("localhost:{port}"))
        .header("origin", own);
    assert_eq!(answer(own).await.status, 200);
}

/// Registering a command means running it: only commands that the operator's file allows, and nothing runs before.
#[tokio::test]
async fn no_command_is_registered_that_the_operator_does_not_allow() {
    let workspace = toolbox();
    workspace.write(
        "haft.yaml",
        "registry: {dir: tools}\npolicy: {allowed_commands: [\"true\", \"python3 -m safe ...\"]}\n",
    );
    let before = workspace.read("tools/mcp.json");
    let served = Served::with_admin(workspace);
    let running = children(served.pid);
    let spawned = served.workspace.path().join("spawned");
    for entry in [
        json!({"command": "touch", "args": [spawned]}),
        json!({"command": "/bin/sh", "args": ["-c", format!("touch {}", spawned.display())]}),
        json!({"command": "sh", "args": ["-c", format!("touch {}", spawned.display())], "disabled": true}),
        json!({"command": "python3", "args": ["-c", "pass"]}),
        json!({"command": "true", "args": ["and", "more"]}),
        json!({"command": "true", "env": {"LD_PRELOAD": "/tmp/evil.so"}}),
        json!({"command": "python3", "args": ["-m", "safe"], "env": {"PYTHONPATH": "/tmp"}}),
        json!({"command": "true", "env": {"PATH": "/tmp"}}),
    ] {
        let refused = served.put("/api/v1/servers/evil", &entry.to_string()).await;
        let code = refused.json()["code"].clone();
        assert_eq!((refused.status, code), (403, json!("NotAllowed")), "{entry}: {}", refused.text);
        assert!(refused.json()["remedy"].as_str().is_some_and(|it| !it.is_empty()));
    }
    assert!(!spawned.exists());
    assert_eq!(children(served.pid), running);
    assert_eq!(served.workspace.read("tools/mcp.json"), before);
    assert_eq!(served.get("/api/v1/servers").await.json()["servers"], json!([]));
}

/// Proves X-13: without a key nothing can be changed and no secret read, and only this machine can connect.
#[tokio::test]
async fn without_a_key_nothing_can_be_changed() {
    let workspace = toolbox();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let finished = haft(&workspace, &["serve", "--listen", address]).run();
        assert_eq!(finished.code, 2, "{}", finished.stderr);
        assert!(finished.stderr.contains("without a key"), "{}", finished.stderr);
        assert!(finished.stderr.contains("haft keys create"), "{}", finished.stderr);
    }
    let served = Served::open(workspace);
    for (method, path) in changes() {
        let refused =
            served.send(method.clone(), path, &[], r#"{"name": "x", "url": "http://x/"}"#).await;
        assert_eq!(refused.status, 401, "{method} {path}: {}", refused.text);
        assert!(refused.json()["remedy"].as_str().unwrap().contains("haft keys create"));
    }
    for path in ["/api/v1/log", "/api/v1/log/x", "/api/v1/log/tail", "/api/v1/config"] {
        assert_eq!(served.get(path).await.status, 401, "{path}");
    }
}

fn changes() -> Vec<(Method, &'static str)> {
    vec![
        (Method::POST, "/api/v1/servers"),
        (Method::PUT, "/api/v1/servers/x"),
        (Method::DELETE, "/api/v1/servers/x"),
        (Method::POST, "/api/v1/servers/x/enable"),
        (Method::POST, "/api/v1/servers/x/disable"),
        (Method::POST, "/api/v1/servers/x/reconnect"),
        (Method::POST, "/api/v1/reload"),
    ]
}

/// There is no built-in key, no short one, and none on a command line.
#[tokio::test]
async fn keys_are_not_guessed() {
    let keys = [("boss", haft_server::keys::Scope::Admin), ("bot", haft_server::keys::Scope::Call)];
    let (served, keys) = Served::with_keys(toolbox(), &keys);
    let admin = &keys[0];
    let (short, long) = (&admin[..admin.len() - 1], format!("{admin}x"));
    let upper = admin.to_uppercase();
    for guess in ["", "admin", "changeme", "haft", "default", short, &long, &upper, "boss"] {
        let refused = answer(served.request_as(guess, Method::POST, "/api/v1/reload")).await;
        assert_eq!(refused.status, 401, "{guess:?}: {}", refused.text);
        assert!(!refused.text.contains(&**admin) && !refused.header("www-authenticate").is_empty());
    }
    for (method, path) in changes() {
        let refused = answer(served.request_as(&keys[1], method, path)).await;
        assert_eq!(refused.status, 403, "a call key at {path}: {}", refused.text);
    }
    // Many guesses are slowed down, and the right key works all the same.
    let mut statuses = Vec::new();
    for guess in 0..200 {
        let guess = format!("guess-{guess}");
        statuses
            .push(answer(served.request_as(&guess, Method::GET, "/api/v1/status")).await.status);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(served.get("/api/v1/status").await.status, 200);
    for file in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{}/{file}", served.pid)).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(keys.iter().all(|key| !text.contains(&**key)), "{file}: {text}");
    }
    assert_no_key_on_disk(&served.workspace, &keys);
}

fn assert_no_key_on_disk(workspace: &Workspace, keys: &[String]) {
    let mut folders = vec![workspace.path().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // The socket of the service holds nothing.
            if !path.is_file() {
                continue;
            }
            files += 1;
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(keys.iter().all(|key| !text.contains(&**key)), "{}", path.display());
        }
    }
    assert!(files > 3);
}

/// A key that came in goes nowhere: a server gets what is configured for it, and nothing of the caller's.
#[tokio::test]
async fn inbound_credentials_are_not_passed_on() {
    let workspace = toolbox();
    let facts = workspace.path().join("facts");
    let scenario = json!({"facts": facts, "tools": ["echo"]});
    let upstream = testkit::fixture::Fixture::serve(testkit::fixture::Transport::Http, &scenario);
    let config = json!({"registry": {"dir": "tools"}, "servers": {"up": {
        "url": upstream.url, "mode": "dynamic", "headers": {"X-Ours": "configured"}}}});
    workspace.write("haft.yaml", config.to_string());
    let served = Served::with_admin(workspace);
    let key = served.admin.clone().unwrap();
    for (method, path, body) in [
        (Method::GET, "/api/v1/resources/content?server=up&uri=test://static-text", ""),
        (Method::POST, "/api/v1/prompts/up/plain", "{}"),
        (Method::POST, "/api/v1/tools/echo/call", r#"{"arguments": {"a": 1}}"#),
        (Method::POST, "/api/v1/servers/up/reconnect", ""),
    ] {
        let headers = [
            ("authorization", &*format!("Bearer {key}")),
            ("cookie", "session=inbound-cookie"),
            ("x-forwarded-for", "inbound-address"),
            ("mcp-session-id", "inbound-session"),
            ("x-custom", "inbound-custom"),
        ];
        let answered = served.send(method, path, &headers, body).await;
        assert_eq!(answered.status, 200, "{path}: {}", answered.text);
    }
    let seen = testkit::fixture::events(&facts, "http");
    assert!(seen.iter().any(|it| it["headers"]["x-ours"] == "configured"), "{seen:?}");
    let text = Value::from(seen).to_string();
    assert!(!text.contains(&key) && !text.contains("inbound-"), "{text}");
}
