//! `haft select` and `haft eval`.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::{haft, run};

const TOOLS: &str = r#"{"tools": [
  {"name": "get_weather", "type": "local", "description": "Current weather and forecast for a place.",
   "input_schema": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
   "config": {"script_path": "a.py"}},
  {"name": "hr", "type": "local", "input_schema": {"type": "object"}, "description": "System for employees.", "examples": ["How many holidays do I have left?"],
   "config": {"script_path": "a.py"}}
]}"#;

fn toolbox() -> Workspace {
    Workspace::with(&[
        ("haft.yaml", "registry: {dir: tools}\n"),
        ("tools/tools.json", TOOLS),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
        ("tools/a.py", "def run(args):\n    return 1\n"),
    ])
}

/// Proves S2-FR-004: ranked by meaning, with the reasons, for people and for programs.
#[test]
fn tools_are_ranked_for_a_request() {
    let workspace = toolbox();
    let finished = run(&workspace, &["select", "do I need an umbrella in Oslo?"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert!(lines[0].starts_with("TOOL"), "{lines:?}");
    assert!(lines[1].starts_with("get_weather"), "{lines:?}");
    let finished =
        run(&workspace, &["select", "-k", "1", "--json", "days of holiday that are left"]);
    let ranked: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(ranked.as_array().unwrap().len(), 1);
    assert_eq!(ranked[0]["tool"], json!("hr"), "the example decides");
    assert_eq!(ranked[0]["why"]["words"], json!(["holiday", "left"]));
}

/// Proves S2-SC-001 for the requests that README, docs and `--help` show, with the tools that Haft brings itself.
#[test]
fn the_requests_that_the_docs_show_are_decided_as_they_say() {
    let workspace = Workspace::with(&[("haft.yaml", "")]);
    let first = |request: &str| {
        let args = ["select", "--json", "-k", "1", request];
        let finished = haft(&workspace, &args).with_builtins().run();
        let ranked: Value = serde_json::from_str(&finished.stdout).unwrap();
        ranked[0]["tool"].as_str().unwrap().to_owned()
    };
    let decided = |request: &str| {
        let finished = haft(&workspace, &["select", "--decide", request]).with_builtins().run();
        finished.stdout.lines().next().unwrap_or_default().to_owned()
    };
    let umbrella = "do I need an umbrella in Oslo?";
    assert_eq!(first(umbrella), "web_search");
    assert_eq!(decided(umbrella), "decision use `web_search`");
    let deviation = "what is the standard deviation of 3, 7, 7 and 19?";
    assert_eq!(decided(deviation), "decision use `code_execution`");
    assert_eq!(decided("ask me before you book"), "decision use `request_human_input`");
    assert_eq!(decided("send an email"), "decision no tool is needed");
    assert_eq!(decided("hello"), "decision no tool is needed");
}

/// An empty request is refused.
#[test]
fn a_request_is_not_empty() {
    let workspace = toolbox();
    for args in [["select", "", "--json"], ["select", " ", "--json"], ["select", "x", "-k=0"]] {
        assert_eq!(run(&workspace, &args).code, 2, "{args:?}");
    }
}

/// Proves S2-SC-005 for the decision without a model.
#[test]
fn a_decision_can_be_asked_for() {
    let workspace = toolbox();
    let decide = |request: &str| {
        let finished = run(&workspace, &["select", "--decide", "--json", request]);
        serde_json::from_str::<Value>(&finished.stdout).unwrap()
    };
    assert_eq!(decide("Hello, how are you?")["decision"], json!("no_tool"));
    assert_eq!(decide("What is the weather in Lima?")["decision"], json!("use_tool"));
    let ask = decide("What is the weather?");
    assert_eq!(ask["decision"], json!("ask_human"));
    assert_eq!(ask["missing"], json!([{"name": "location"}]));
    let finished = run(&workspace, &["select", "--decide", "What is the weather?"]);
    assert!(finished.stdout.starts_with("decision ask first: `get_weather` needs location\n"));
}

/// Proves S2-Q-12, S2-SC-001: the command prints the number for any set of the format.
#[test]
fn sets_are_scored() {
    let gold = concat!(env!("CARGO_MANIFEST_DIR"), "/../haft/tests/data/gold");
    let workspace = Workspace::new();
    let finished = run(&workspace, &["eval", gold, "--json"]);
    let scores: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(scores["sets"][0]["set"], json!("gold"));
    assert!(scores["sets"][0]["requests"].as_u64().unwrap() >= 80);
    assert!(scores["sets"][0]["decisions"].as_f64().unwrap() >= 0.9);
    assert!(scores["sets"][0]["none"]["f1"].as_f64().unwrap() >= 0.8);
    let tune = concat!(env!("CARGO_MANIFEST_DIR"), "/../haft/tests/data/decide/tune");
    let finished = run(&workspace, &["eval", tune, "--json"]);
    let scores: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(scores["sets"][0]["set"], json!("builtins"), "{}", finished.stderr);
    assert!(scores["means"]["none_f1"].as_f64().unwrap() > 0.5);
    let finished = run(&workspace, &["eval", gold]);
    assert!(finished.stdout.starts_with("SET "), "{}", finished.stdout);
    assert!(finished.stdout.contains("right decisions"));
}

/// An invalid set is an error with a reason.
#[test]
fn a_set_that_cannot_be_read_is_named() {
    let workspace = Workspace::with(&[("empty/x.txt", ""), ("bad.jsonl", "{}\n")]);
    let finished = run(&workspace, &["eval", "empty"]);
    assert_eq!(finished.code, 1);
    assert!(finished.stderr.contains("there is no set of requests"), "{}", finished.stderr);
    let finished = run(&workspace, &["eval", "bad.jsonl"]);
    assert!(finished.stderr.contains("line 1 of `bad.jsonl`"), "{}", finished.stderr);
}

/// Proves S2-FR-004: `tools search` is the same command.
#[test]
fn tools_search_ranks_too() {
    let workspace = toolbox();
    let request = "do I need an umbrella in Oslo?";
    let search = run(&workspace, &["tools", "search", request]);
    assert_eq!(search.stdout, run(&workspace, &["select", request]).stdout);
    assert!(search.stdout.contains("get_weather"), "{}", search.stderr);
}

/// Requests that lead to a wrong tool become examples that can be pasted into the configuration, and then lead to the
/// right one.
#[test]
fn examples_are_learned_from_the_log() {
    let workspace = toolbox();
    let learn = || run(&workspace, &["learn"]);
    insta::assert_snapshot!("learn_without_requests", learn().stdout);
    workspace.write("haft.yaml", "registry: {dir: tools}\nlog: {requests: true}\n");
    insta::assert_snapshot!("learn_from_nothing", learn().stdout);
    let call = |request: &str| {
        let called = run(&workspace, &["call", "hr", "--request", request]);
        assert_eq!(called.code, 0, "{}", called.stderr);
    };
    call("how many holidays do I have");
    insta::assert_snapshot!("learn_what_is_known", learn().stdout);
    for _ in 0..2 {
        call("the forecast of my salary: up or down?");
    }
    // A user's request stays a string: not a key, not a variable.
    call("weather: \"${HOME}\"\nname: # ${NOT_THERE}");
    let learned = learn();
    assert_eq!(learned.code, 0, "{}", learned.stderr);
    insta::assert_snapshot!("learn_an_example", learned.stdout);
    let json: Value = serde_json::from_str(&run(&workspace, &["learn", "--json"]).stdout).unwrap();
    assert_eq!(json[0]["examples"][0]["times"], json!(2));

    let yaml = workspace.read("haft.yaml").unwrap() + &learned.stdout;
    workspace.write("haft.yaml", yaml);
    insta::assert_snapshot!("learn_what_was_learned", learn().stdout);
}
