//! Secrets in every place a configuration has for them appear in nothing the API answers.

use std::fmt::Write as _;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::{Fixture, Running, Transport};

use crate::served::{SERVE, Served, create_key, haft};

const VARIABLES: [(&str, &str); 4] = [
    ("KEY", "canary-env-3f9a1c"),
    ("TOKEN", "canary-header-77be02"),
    ("PASSWORD", "canary-password-c0ffee"),
    ("QUERY", "canary-query-5d5d5d"),
];
const IN_FILE: &str = "canary-file-91aa77";
/// Secrets registered over the API.
const REGISTERED: [&str; 4] = [
    "canary-new-env-1a1a",
    "canary-new-header-2b2b",
    "canary-new-password-3c3c",
    "canary-new-query-4d4d",
];
/// Secrets in files and bodies that cannot be used.
const BROKEN: [&str; 4] =
    ["canary-broken-a0a0", "canary-broken-b1b1", "canary-broken-c2c2", "canary-broken-d3d3"];

fn configure(workspace: &Workspace, http: &Running) {
    workspace.write("secret.env", format!("FROM_FILE={IN_FILE}\n"));
    let fixture = |name: &str, scenario: Value| {
        // A command line is visible, so the scenario comes from a file.
        let path = workspace.write(&format!("{name}.json"), scenario.to_string());
        json!({"command": Fixture::path(), "args": ["stdio", "--script", path],
            "env": {"API_KEY": "${KEY}"}, "env_file": "secret.env", "reconnect": {"attempts": 0}})
    };
    let words = format!("cannot log in with {} or {IN_FILE}\n", VARIABLES[0].1);
    let headers = json!({"Authorization": "Bearer ${TOKEN}"});
    let url = http.url.replace("http://", "http://user:${PASSWORD}@") + "?key=${QUERY}";
    let config = json!({
        "registry": {"dir": "tools"},
        "policy": {
            "allowed_commands": [format!("{} ...", Fixture::path().display())],
            "allowed_env": ["TOKEN"],
        },
        "servers": {
            "healthy": fixture("healthy", json!({"tools": ["stats", "crash"]})),
            "dying": fixture("dying", json!({"start": {"stderr": words, "exit": 1}})),
            "gone": {"url": "http://user:${PASSWORD}@127.0.0.1:1/mcp?key=${QUERY}", "headers": headers,
                "reconnect": {"attempts": 0}},
            "http": {"url": url, "headers": headers},
        },
    });
    workspace.write("haft.yaml", config.to_string());
    workspace.write("tools/tools.json", r#"{"tools": []}"#);
    workspace.write("tools/mcp.json", r#"{"mcp_servers": {}}"#);
}

/// Every path that can be read, with everything there is in the place of its variable parts.
pub(crate) async fn readable(served: &Served) -> Vec<String> {
    let document = served.get("/api/openapi.json").await.json();
    let servers = served.get("/api/v1/servers").await.json();
    let servers: Vec<&str> = servers["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    let mut paths =
        vec!["/api/openapi.json".to_owned(), "/metrics".to_owned(), "/api/docs".to_owned()];
    for (path, methods) in document["paths"].as_object().unwrap() {
        // Streams do not end.
        let is_stream = path.ends_with("/tail") || path.ends_with("/events");
        if !methods.as_object().unwrap().contains_key("get") || is_stream {
            continue;
        }
        match path.split_once('{') {
            None => paths.push(path.clone()),
            Some((start, _)) => {
                let names = servers.iter().copied().chain(["stats", "echo", "nothing"]);
                paths.extend(names.map(|name| format!("{start}{name}")));
            }
        }
    }
    for server in servers {
        paths.push(format!("/api/v1/resources?server={server}"));
        paths.push(format!("/api/v1/resources/content?server={server}&uri=a://b"));
        paths.push(format!("/api/v1/prompts?server={server}"));
    }
    paths
}

/// Proves S3-SC-005 for the API: answers, errors, the log, the description, metrics, log lines.
#[tokio::test]
async fn no_secret_is_in_any_answer() {
    let http = Fixture::serve(Transport::Http, &json!({"tools": ["echo"]}));
    let workspace = Workspace::new();
    // Before there is a configuration, which needs variables.
    let key = create_key(&workspace, "me", haft_server::keys::Scope::Admin);
    configure(&workspace, &http);
    let program =
        VARIABLES.iter().fold(haft(&workspace, &SERVE), |it, (name, value)| it.env(name, value));
    let served = Served::run(workspace, Some(key.clone()), program.args(&["--log-level", "debug"]));
    let mut all = String::new();
    let mut seen = |what: String, answer: &crate::served::Answer| {
        let _ = writeln!(all, "{what}: {} {:?} {}", answer.status, answer.headers, answer.text);
        answer.status
    };

    let [env, header, password, query] = REGISTERED;
    let good = json!({"url": format!("http://u:{password}@127.0.0.1:1/?key={query}"),
        "headers": {"Authorization": format!("Bearer {header}")}, "reconnect": {"attempts": 0}});
    let added = served.put("/api/v1/servers/added", &good.to_string()).await;
    assert_eq!(seen("PUT".to_owned(), &added), 201, "{}", added.text);
    let script = served.workspace.path().join("healthy.json");
    let process = json!({"name": "process", "command": Fixture::path(), "args": ["stdio", "--script", script],
        "env": {"TOKEN": env}});
    let added = served.post("/api/v1/servers", &process.to_string()).await;
    assert_eq!(seen("POST".to_owned(), &added), 201, "{}", added.text);

    let [a, b, c, d] = BROKEN;
    for body in [
        json!({"url": format!("http://u:{a}@[::"), "headers": {"A": b}}),
        json!({"url": "http://127.0.0.1:1/", "headers": {"Authorization": [b]}}),
        json!({"url": "http://127.0.0.1:1/", "headers": c}),
        json!({"command": "x", "env": {"SECRET": [c]}}),
        json!({"command": "x", "env": {"SECRET": {"a": d}}}),
        json!({"command": "x", "env": c}),
        json!({"command": "x", "env": {"SECRET": a}, "headers": {"A": b}}),
        json!({"url": format!("ftp://u:{a}@host/?key={b}")}),
        json!({"url": format!("http://u:{a}@host/?key={b}"), "transport": "stdio"}),
        json!({"command": "x", "args": [format!("--token={a}"), format!("https://u:{b}@host/")]}),
        json!({"url": "http://127.0.0.1:1/", "oauth": {"client_secret": d}}),
        json!({"url": "http://127.0.0.1:1/", "config": {"password": d}, "mode": "odd"}),
    ] {
        let refused = served.put("/api/v1/servers/broken", &body.to_string()).await;
        seen(format!("PUT {}", body.as_object().unwrap().len()), &refused);
        assert!((400..500).contains(&refused.status) || refused.status == 201, "{}", refused.text);
        if refused.status == 201 {
            assert_eq!(served.delete("/api/v1/servers/broken").await.status, 204, "{body}");
        }
    }
    for server in ["healthy", "dying", "gone", "http", "added"] {
        let answer = served.post(&format!("/api/v1/servers/{server}/reconnect"), "").await;
        seen(format!("reconnect {server}"), &answer);
        let answer = served
            .post(&format!("/api/v1/prompts/{server}/greeting"), r#"{"arguments": {"name": "x"}}"#)
            .await;
        seen(format!("prompt of {server}"), &answer);
    }
    for tool in ["crash", "stats", "echo"] {
        let answer = served.post(&format!("/api/v1/tools/{tool}/call"), "{}").await;
        // `stats` answers with its environment: what a tool answers is its caller's. The log is another matter.
        if tool != "stats" {
            seen(format!("call {tool}"), &answer);
        }
    }
    let wrong = served.send(
        Method::GET,
        "/api/v1/status",
        &[("authorization", "Bearer canary-broken-a0a0")],
        "",
    );
    seen("two keys".to_owned(), &wrong.await);

    // And while the files are broken.
    let good = served.workspace.read("haft.yaml").unwrap();
    for broken in [
        good.replace("Bearer ${TOKEN}", &format!("Bearer {a}\u{1}")),
        good.replace("\"${KEY}\"", &format!("[\"{b}\"]")),
        good.replace("http://user:${PASSWORD}@127.0.0.1:1", &format!("http://user:{c}@[::")),
        format!("{}: {d} : }}", good.trim_end_matches('}')),
    ] {
        assert_ne!(broken, good);
        served.workspace.write("haft.yaml", &broken);
        let answer = served.post("/api/v1/reload", "").await;
        seen("reload".to_owned(), &answer);
        seen("config".to_owned(), &served.get("/api/v1/config").await);
        seen("readyz".to_owned(), &served.get("/readyz").await);
    }
    served.workspace.write("haft.yaml", &good);
    assert_eq!(served.post("/api/v1/reload", "").await.status, 200);
    for path in readable(&served).await {
        let answer = served.get(&path).await;
        seen(path, &answer);
    }
    all += &served.stderr();
    for entry in served.log() {
        all += &entry.to_string();
    }
    assert!(all.contains("cannot log in with ***"), "{all}");
    let canaries = VARIABLES.iter().map(|(_, value)| *value);
    let canaries = canaries.chain([IN_FILE, &key]).chain(REGISTERED).chain(BROKEN);
    let found: Vec<String> = canaries
        .flat_map(|canary| {
            all.lines().filter(move |line| line.contains(canary)).map(move |line| (canary, line))
        })
        .map(|(canary, line)| format!("`{canary}` in {line}"))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}
