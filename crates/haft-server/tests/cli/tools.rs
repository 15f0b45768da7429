//! `haft tools`, `haft explain`, `haft servers`.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::{run, toolbox, transcript};

/// Proves S0-53, S2-KE-01: a table for people, every field for programs.
#[test]
fn tools_are_listed() {
    let workspace = toolbox();
    let finished = run(&workspace, &["tools", "list"]);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let finished = run(&workspace, &["tools", "list", "--json"]);
    let tools: Value = serde_json::from_str(&finished.stdout).unwrap();
    insta::assert_snapshot!(workspace.stable(&serde_json::to_string_pretty(&tools[0]).unwrap()));
    assert_eq!(tools.as_array().unwrap().len(), 4);
    assert!(!workspace.path().join("logs").exists(), "looking writes nothing");
}

/// A configuration without tools explains where tools come from.
#[test]
fn an_empty_toolbox_is_reported() {
    let workspace = Workspace::with(&[("haft.yaml", "")]);
    let finished = run(&workspace, &["tools", "list"]);
    insta::assert_snapshot!(transcript(&workspace, &finished));
}

/// Proves S2-KE-01.
#[test]
fn one_tool_is_shown_whole() {
    let workspace = toolbox();
    insta::assert_snapshot!(transcript(&workspace, &run(&workspace, &["tools", "show", "greet"])));
    let finished = run(&workspace, &["tools", "show", "wait", "--json"]);
    let tool: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(tool["program"]["script_path"], json!("wait.py"));
    let missing = run(&workspace, &["tools", "show", "gret"]);
    insta::assert_snapshot!("an_unknown_tool", transcript(&workspace, &missing));
}

/// Proves S0-87, X-6: which limit holds and who set it.
#[test]
fn a_tools_settings_are_explained() {
    let workspace = toolbox();
    workspace
        .write("haft.yaml", "registry: {dir: tools}\ntools:\n  - {name: wait, approval: ask}\n");
    insta::assert_snapshot!(transcript(&workspace, &run(&workspace, &["explain", "wait"])));
    let finished = run(&workspace, &["explain", "wait", "--json"]);
    let explained: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(explained["config_origin"], json!("merged"));
    assert_eq!(run(&workspace, &["explain", "nothing"]).code, 1);
}

/// Proves S0-1.
#[test]
fn servers_are_listed_with_their_modes() {
    let text = "myai:
  toolbox:
    mcps:
      - {name: customers, transport: http, url: 'http://localhost:1/mcp', mode: dynamic, default_tool_config: {}}
      - {name: internal, transport: sse, url: 'http://u:secret@localhost:2/?k=secret', mode: strict}
";
    let workspace = Workspace::with(&[("toolbox.yaml", text)]);
    let finished = run(&workspace, &["servers", "list", "-c", "toolbox.yaml"]);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let finished = run(&workspace, &["servers", "list", "--json", "-c", "toolbox.yaml"]);
    let servers: Value = serde_json::from_str(&finished.stdout).unwrap();
    let modes: Vec<_> =
        servers.as_array().unwrap().iter().map(|it| (&it["name"], &it["mode"])).collect();
    let expected =
        [(&json!("customers"), &json!("dynamic")), (&json!("internal"), &json!("strict"))];
    assert_eq!(modes, expected);
    assert!(!finished.stdout.contains("secret"));
}

/// Metadata of a tool for clients is shown to people and to programs, with its origin.
#[test]
fn metadata_of_tools_is_shown() {
    let workspace = toolbox();
    workspace.write(
        "haft.yaml",
        "registry: {dir: tools}
tools:
  - name: greet
    title: Greet somebody
    annotations: {readOnlyHint: true, idempotentHint: true}
    icons: [{src: 'https://example.com/greet.png', sizes: [48x48]}]
",
    );
    insta::assert_snapshot!(transcript(&workspace, &run(&workspace, &["tools", "show", "greet"])));
    let listed = run(&workspace, &["tools", "list", "--json"]);
    let tools: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(tools[0]["title"], "Greet somebody");
    assert_eq!(tools[0]["annotations"], json!({"readOnlyHint": true, "idempotentHint": true}));
    assert_eq!(
        tools[0]["icons"],
        json!([{"src": "https://example.com/greet.png", "sizes": ["48x48"]}])
    );
    assert_eq!(tools[1].get("annotations"), None, "nothing is invented");
    let shown = run(&workspace, &["config", "show"]).stdout;
    for line in ["tools.greet.title", "tools.greet.annotations", "tools.greet.icons"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}
