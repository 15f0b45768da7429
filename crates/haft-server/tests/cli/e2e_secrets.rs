//! Secrets in every place a configuration has for them appear nowhere else.

use serde_json::json;
use testkit::Workspace;

use super::e2e_support::{native, serve, stdio};
use crate::haft;

const VARIABLES: [(&str, &str); 4] = [
    ("KEY", "canary-env-3f9a1c"),
    ("TOKEN", "canary-header-77be02"),
    ("PASSWORD", "canary-password-c0ffee"),
    ("QUERY", "canary-query-5d5d5d"),
];
const IN_FILE: &str = "canary-file-91aa77";

/// Every command's output, under every format, with healthy and broken servers.
fn outputs(workspace: &Workspace, commands: &[&[&str]]) -> String {
    let mut all = String::new();
    for command in commands {
        let mut program = haft(workspace, &[command, &["--log-level", "debug"][..]].concat());
        for (name, value) in VARIABLES {
            program = program.env(name, value);
        }
        let finished = program.run();
        all.push_str(&format!("$ {}: {}\n", command[0], finished.code));
        all.push_str(&finished.stdout);
        all.push_str(&finished.stderr);
    }
    all
}

fn assert_clean(workspace: &Workspace, printed: &str) {
    let mut places = vec![("what is printed".to_owned(), printed.to_owned())];
    for folder in ["logs", ".haft"] {
        let mut folders = vec![workspace.path().join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let text = std::fs::read(&path).unwrap();
                    let text = String::from_utf8_lossy(&text).into_owned();
                    places.push((path.display().to_string(), text));
                }
            }
        }
    }
    assert!(places.len() > 1, "there is a log");
    for canary in VARIABLES.iter().map(|(_, value)| *value).chain([IN_FILE]) {
        for (place, text) in &places {
            assert!(!text.contains(canary), "`{canary}` in {place}:\n{text}");
        }
    }
}

/// Proves S3-SC-005: env, header, env_file, the URL's password and query; healthy servers that
/// repeat what they got, and servers that fail with it on their lips.
#[test]
fn no_secret_leaves_its_server() {
    let workspace = Workspace::new();
    workspace.write("secret.env", format!("FROM_FILE={IN_FILE}\n"));
    let http = serve(&workspace, "http", json!({"tools": ["echo"]}));
    let url = http.url.replace("http://", "http://user:${PASSWORD}@") + "?key=${QUERY}";
    let mut healthy = stdio(&workspace, "healthy", json!({"tools": ["stats", "crash"]}));
    healthy["env"] = json!({"API_KEY": "${KEY}"});
    healthy["env_file"] = json!("secret.env");
    let words = format!("cannot log in with {} or {IN_FILE}\n", VARIABLES[0].1);
    let dying = json!({"start": {"stderr": words, "exit": 1}});
    let mut dying = stdio(&workspace, "dying", dying);
    dying["env"] = healthy["env"].clone();
    dying["env_file"] = healthy["env_file"].clone();
    dying["reconnect"] = json!({"attempts": 0});
    // The scenario itself holds the words, and a command line is shown; so it comes from a file.
    workspace.write("dying.json", dying["args"][2].as_str().unwrap());
    dying["args"] = json!(["stdio", "--script", workspace.path().join("dying.json")]);
    let headers = json!({"Authorization": "Bearer ${TOKEN}"});
    let gone = json!({"url": "http://user:${PASSWORD}@127.0.0.1:1/mcp?key=${QUERY}", "headers": headers, "reconnect": {"attempts": 0}});
    native(
        &workspace,
        &json!({"healthy": healthy, "dying": dying, "gone": gone, "http": {"url": url, "headers": headers}}),
    );
    let printed = outputs(
        &workspace,
        &[
            &["check"],
            &["config", "show"],
            &["config", "show", "--json"],
            &["servers", "list"],
            &["servers", "list", "--json"],
            &["tools", "list", "--json", "--log-format", "json"],
            &["tools", "show", "echo"],
            &["explain", "echo"],
            &["call", "echo", "secret=canary-env-3f9a1c"],
            &["call", "crash"],
            &["log", "--json"],
        ],
    );
    let requests = testkit::fixture::events(&workspace.path().join("http.facts"), "http");
    assert_eq!(requests[0]["headers"]["authorization"], json!("Bearer canary-header-77be02"));
    // What a tool answers is its caller's, who gave it the secret; everything else is masked.
    let printed = printed.replace(r#""secret": "canary-env-3f9a1c""#, "");
    assert!(printed.contains("cannot log in with ***"), "{printed}");
    assert_clean(&workspace, &printed);
}
