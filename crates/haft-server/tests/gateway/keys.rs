//! Keys that are bound to a profile.

use serde_json::{Value, json};
use testkit::{Finished, Program, Workspace, eventually};

use crate::endpoint::{Served, configure};
use crate::profiles::toolbox;

fn haft(workspace: &Workspace, args: &[&str]) -> Finished {
    Program::new(env!("CARGO_BIN_EXE_haft"), workspace).args(args).run()
}

fn create(workspace: &Workspace, args: &[&str]) -> String {
    let finished = haft(workspace, &[&["--json", "keys", "create"], args].concat());
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let created: Value = serde_json::from_str(&finished.stdout).unwrap();
    created["key"].as_str().unwrap().to_owned()
}

#[test]
fn a_key_of_a_profile_opens_that_profile_and_nothing_else() {
    let workspace = toolbox(&json!({"reader": {"tools": ["read_*"]}, "writer": {}}));
    let bound = create(&workspace, &["--profile", "reader", "--name", "bot"]);
    let free = create(&workspace, &["--scope", "call", "--name", "agent"]);
    let served = Served::start(&workspace);
    let (bound, free) = (Some(bound.as_str()), Some(free.as_str()));
    let read = ["read_file", "read_mail"];
    let session = served.open("/mcp", bound);
    assert_eq!(session.tools(), read);
    assert_eq!(served.open("/mcp/reader", bound).tools(), read);
    let hidden = session.request("tools/call", &json!({"name": "send_mail"}));
    assert_eq!(hidden.body["error"]["message"], "Unknown tool: send_mail");
    assert_eq!(served.open("/mcp", free).tools().len(), 5);
    assert_eq!(served.open("/mcp/writer", free).tools().len(), 5);

    let refused = |path: &str| {
        let answer = served.initialize(path, bound);
        assert_eq!(answer.status, 403, "{path}: {}", answer.body);
        let text = |key: &str| answer.body[key].as_str().unwrap().to_owned();
        format!("{}; {}", text("detail"), text("remedy"))
    };
    assert_eq!(
        refused("/mcp/writer"),
        "`key:bot` is bound to the profile `reader`; use `/mcp` or `/mcp/reader`"
    );
    // Whether there is such a profile is nothing it learns.
    assert_eq!(refused("/mcp/nothing"), refused("/mcp/writer"));
    let paths = [
        "/api/v1/tools",
        "/api/v1/tools/read_file/call",
        "/api/v1/calls",
        "/api/v1/log",
        "/api/v1/config",
        "/api/v1/tools/search",
        "/tools",
        "/metrics",
        "/nothing",
        "/mcpx",
        "/mcp//../api/v1/tools",
    ];
    let key = bound.unwrap();
    for path in paths {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let answer = served.request(method, path, &[("X-API-Key", key)], "");
            let is_gateway = path.starts_with("/mcp/");
            assert_eq!(
                answer.status,
                if is_gateway { 404 } else { 403 },
                "{method} {path}: {}",
                answer.body
            );
        }
    }
    // A key never permits less than no key.
    assert_eq!(served.request("GET", "/healthz", &[("X-API-Key", key)], "").status, 200);

    configure(&workspace, &json!({"profiles": {"writer": {}}}));
    eventually("the profile is gone", || {
        (served.initialize("/mcp", bound).status == 403).then_some(())
    });
    assert_eq!(
        refused("/mcp"),
        "`key:bot` is bound to the profile `reader`, which is gone; let the operator configure \
         `profiles.reader`, or use another key"
    );
    assert!(!session.is_open());
}

#[test]
fn keys_are_listed_with_their_profiles_and_slips_are_refused() {
    let workspace = toolbox(&json!({"reader": {"tools": ["read_*"]}}));
    create(&workspace, &["--profile", "reader", "--name", "bot"]);
    create(&workspace, &["--profile", "reader", "--scope", "call", "--name", "second"]);
    let listed = haft(&workspace, &["keys", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let profiles: Vec<&Value> =
        listed.as_array().unwrap().iter().map(|key| &key["profile"]).collect();
    assert_eq!(profiles, ["reader", "reader"]);
    let mut text = String::new();
    for args in [&["--profile", "raeder"][..], &["--profile", "reader", "--scope", "admin"], &[]] {
        let finished = haft(&workspace, &[&["keys", "create", "--name", "x"], args].concat());
        assert_eq!(finished.code, 2);
        text += &finished.stderr;
    }
    insta::assert_snapshot!(text);
    // One that was made by hand is not taken for one that may do everything.
    let file = workspace.read(".haft/keys.json").unwrap();
    workspace
        .write(".haft/keys.json", file.replacen("\"scope\": \"call\"", "\"scope\": \"admin\"", 1));
    let finished = haft(&workspace, &["keys", "list"]);
    assert!(
        finished.stderr.contains("`bot`: an admin key cannot be bound to a profile"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_key_with_lists_sees_and_calls_only_those() {
    let workspace = toolbox(&json!({"writer": {"tools": ["send_*", "read_mail"]}}));
    let listed = create(&workspace, &["--scope", "call", "--name", "reader", "--tools", "read_*"]);
    let free = create(&workspace, &["--scope", "call", "--name", "agent"]);
    let served = Served::start(&workspace);
    let (listed, free) = (Some(listed.as_str()), Some(free.as_str()));
    let session = served.open("/mcp", listed);
    assert_eq!(session.tools(), ["read_file", "read_mail"]);
    let hidden = session.request("tools/call", &json!({"name": "send_mail"}));
    assert_eq!(hidden.body["error"]["message"], "Unknown tool: send_mail");
    assert_eq!(served.open("/mcp", free).tools().len(), 5);
    // A profile and the lists both hold.
    assert_eq!(served.open("/mcp/writer", listed).tools(), ["read_mail"]);
    // Other lists end the session, and hold for the next one.
    let file = workspace.read(".haft/keys.json").unwrap();
    workspace.write(".haft/keys.json", file.replace("read_*", "send_*"));
    eventually("the session ends", || (!session.is_known()).then_some(()));
    assert!(served.open("/mcp", listed).tools().iter().all(|tool| tool.starts_with("send_")));
}
