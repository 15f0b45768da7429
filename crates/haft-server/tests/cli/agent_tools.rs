//! The tools of the agent at the command line: built-in ones, and those of servers.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use testkit::fixture::events;
use testkit::model::Format;
use testkit::search::SearchServer;
use testkit::{ModelServer, Program, Step, Workspace, peers};

use crate::agent_support::{FORMATS, answer, asking, only};
use crate::mcp_support::{assert_all_gone, facts_file, server, server_with};
use crate::real_support::{finish, server_mark};
use crate::run;

const WEATHER: &str = r#"{"query": "weather", "results": [{"url": "https://weather.example/seoul",
    "title": "Seoul today", "content": "Sunny, 23 degrees.", "engine": "e"}]}"#;

/// A file that names the tool has decided that it runs without approval.
const CODE: &str = "builtin: {code_execution: {}}";

/// Proves S2-US1-1, S2-US1-2, S2-US1-T: what the model cannot know is searched for once, and the answer has it; what
/// it knows is answered without a search.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_web_is_searched_where_the_model_needs_it() {
    for format in FORMATS {
        let search = SearchServer::start().await;
        search.says(200, WEATHER);
        // Under its own name, Anthropic would search by itself.
        let name = if format == Format::Anthropic { "web_search_tool" } else { "web_search" };
        let model = ModelServer::start(
            format,
            [
                Step::call(name, json!({"query": "weather in Seoul today"})),
                Step::by(|asked| Step::text(format!("I found: {}", asked.last_result()))),
                Step::text("Paris."),
            ],
        );
        let searxng =
            format!("builtin: {{web_search: {{searxng: {{url: 'http://{}'}}}}}}", search.address);
        let workspace = only(&model, &searxng);
        let weather = asking(&workspace, &["today's weather in Seoul", "-q"]).with_builtins().run();
        assert!(answer(&weather).contains("23 degrees"), "{}", weather.stdout);
        let searched = search.asked();
        assert_eq!(searched.len(), 1);
        assert!(searched[0].query.contains("Seoul"), "{}", searched[0].query);
        let capital = asking(&workspace, &["What is the capital of France?"]).with_builtins().run();
        assert_eq!((answer(&capital), capital.stderr.as_str()), ("Paris.", ""));
        assert!(search.asked().is_empty());
        assert!(model.last_request().tool_names().contains(&name.to_owned()));
    }
}

/// Proves S2-US2-1, S2-US2-3, S2-US2-T: Python and shell code that the model writes is run, and its output is in the
/// answer.
#[test]
fn code_of_the_model_is_run() {
    for format in FORMATS {
        let model = ModelServer::start(format, []);
        let workspace = only(&model, CODE);
        let csv = workspace.write("sales.csv", "city,sold\nSeoul,3\nParis,4\n");
        let summary = format!(
            "import csv\nrows = list(csv.DictReader(open({:?})))\nprint(len(rows), 'rows,', sum(int(r['sold']) for r in rows), 'sold')",
            csv.display().to_string()
        );
        let sequence = "a, b = 0, 1\nfor _ in range(90):\n    a, b = b, a + b\nprint(a)";
        let lines = format!("wc -l < '{}'", csv.display());
        for (language, code, expected) in [
            ("python", summary.as_str(), "2 rows, 7 sold"),
            ("python", sequence, "2880067194370816120"),
            ("shell", &lines, "3"),
        ] {
            model.then([
                Step::call("code_execution", json!({"language": language, "code": code})),
                Step::by(|asked| Step::text(format!("It printed {}", asked.last_result()))),
            ]);
            let finished = asking(&workspace, &["Summarize it", "-q"]).with_builtins().run();
            assert!(answer(&finished).contains(expected), "{}", finished.stdout);
        }
        assert_eq!(model.left(), 0);
    }
}

/// Proves S2-US2-2: failing code reports its exit code and its stderr to the model and the person.
#[test]
fn code_that_raises_reports_the_reason() {
    for format in FORMATS {
        let model = ModelServer::start(
            format,
            [
                Step::call(
                    "code_execution",
                    json!({"language": "python", "code": "raise ValueError('the cause')"}),
                ),
                Step::by(|asked| Step::text(format!("It failed: {}", asked.last_result()))),
            ],
        );
        let workspace = only(&model, CODE);
        let finished = asking(&workspace, &["go"]).with_builtins().run();
        for text in [answer(&finished), &finished.stderr] {
            assert!(text.contains("exit code 1"), "{text}");
        }
        assert!(finished.stdout.contains("ValueError: the cause"), "{}", finished.stdout);
        let mark = finished.stderr.lines().find(|line| line.starts_with("! ")).expect("a mark");
        assert!(mark.contains("(execution "), "{mark}");
    }
}

/// Proves S1-13, S3-SC-006: the tools of every server are there for `run` and `chat`, and where one server dies, the
/// turn is finished with those of the others.
#[test]
fn a_server_that_dies_does_not_end_the_run() {
    for (format, command) in FORMATS.into_iter().zip(["run", "chat"]) {
        let model = ModelServer::start(
            format,
            [
                Step::calls([("crash", json!({})), ("text", json!({}))]),
                Step::call("stats", json!({})),
                Step::by(|asked| Step::text(format!("{} answers", asked.results().len()))),
            ],
        );
        let only_one = |tool: &str| server(&json!({"tools": [tool]}));
        let config = json!({
            "servers": {"one": only_one("crash"), "two": only_one("text"), "three": only_one("stats")},
            "agent": {"model": model.model(), "base_url": model.url(), "retries": 0},
        });
        let workspace = Workspace::with(&[("haft.json", &config.to_string())]);
        let finished = crate::haft(&workspace, &[command]).stdin("go\n").run();
        assert_eq!(answer(&finished), "3 answers", "{}", finished.stderr);
        let offered = model.requests()[0].tool_names();
        for tool in ["crash", "text", "stats"] {
            assert!(offered.iter().any(|it| it == tool), "{tool} in {offered:?}");
        }
        let told = model.last_request().results();
        assert!(told[0].text.starts_with("MCP error: "), "{told:?}");
        assert_eq!(told[1].text, "plain text");
    }
}

/// Proves S3-US1-1, X-2: lazy servers without a known list are queried, so that the model gets their tools from the
/// first request on; the lists are remembered, and an unreachable server is named.
#[test]
fn the_model_gets_the_tools_of_servers_that_start_late() {
    for (format, command) in FORMATS.into_iter().zip(["run", "chat"]) {
        let model = ModelServer::start(format, [Step::text("one"), Step::text("two")]);
        let workspace = Workspace::new();
        let facts = facts_file(&workspace);
        let late = json!({"start": "lazy"});
        let config = json!({
            "servers": {
                "late": server_with(&json!({"tools": ["stats"], "facts": facts}), late),
                "gone": {"command": "no-such-program", "start": "lazy"},
            },
            "agent": {"model": model.model(), "base_url": model.url(), "retries": 0},
        });
        workspace.write("haft.json", config.to_string());
        let ask = || crate::haft(&workspace, &[command]).stdin("go\n").run();
        let first = ask();
        assert_eq!(answer(&first), "one", "{}", first.stderr);
        assert!(model.requests()[0].tool_names().contains(&"stats".to_owned()));
        assert!(first.stderr.contains("no-such-program"), "{}", first.stderr);
        assert_eq!(answer(&ask()), "two");
        assert!(model.last_request().tool_names().contains(&"stats".to_owned()));
        assert_eq!(events(&facts, "start").len(), 1, "the second time it is known");
        assert_all_gone(&facts);
    }
}

/// An `npx` that runs the installed package.
fn npx(workspace: &Workspace) -> String {
    let installed = peers::filesystem(workspace.path());
    let script = format!(
        "#!/bin/sh\nshift 2\nexec '{}' '{}' \"$@\"\n",
        installed.program, installed.args[0]
    );
    let path = workspace.write("bin/npx", script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}/bin:{}", workspace.path().display(), std::env::var("PATH").unwrap())
}

/// An agent's file as its documentation has it.
fn agent_yaml(workspace: &Workspace, model: &ModelServer, instructions: &str) {
    let (mark, value) = server_mark(workspace);
    let text = format!(
        r#"name: helper
description: Answers questions about files
model: {{provider: openai, name: scripted, endpoint: "{}"}}
instructions: {instructions}
tools:
  - name: filesystem
    description: Files of the project
    type: mcp
    server: "@modelcontextprotocol/server-filesystem"
    args: ["."]
    env: {{{mark}: "{value}"}}
"#,
        model.url()
    );
    workspace.write("agent.yaml", text);
}

/// Proves S3-US1-1, S1-13: the agent of an `agent.yaml` has its model and its instructions, and its call reaches the
/// real server for files.
#[test]
fn an_agents_file_is_run() {
    let model = ModelServer::openai([
        Step::call("read_text_file", json!({"path": "notes.txt"})),
        Step::by(|asked| Step::text(format!("It says {}", asked.last_result()))),
    ]);
    let workspace =
        Workspace::with(&[("notes.txt", "remember the milk\n"), ("told.md", "Be kind.\n")]);
    let path = npx(&workspace);
    agent_yaml(&workspace, &model, "{inline: Look before you answer.}");
    let ask = || {
        let haft = Program::new(env!("CARGO_BIN_EXE_haft"), &workspace).env("PATH", &path);
        finish(haft.args(&["run", "-c", "agent.yaml", "-q", "What do my notes say?"]), &workspace)
    };
    let finished = ask();
    assert_eq!(answer(&finished), "It says remember the milk", "{}", finished.stderr);
    assert_eq!(finished.stderr, "", "quiet is quiet");
    let request = model.requests().remove(0);
    assert_eq!(request.body["model"], "scripted");
    assert!(request.system().unwrap().contains("Look before you answer."));
    assert!(request.tool_names().contains(&"read_text_file".to_owned()));

    agent_yaml(&workspace, &model, "{file: told.md}");
    model.then([Step::text("yes")]);
    assert_eq!(answer(&ask()), "yes");
    assert!(model.last_request().system().unwrap().contains("Be kind."));

    agent_yaml(&workspace, &model, "Say little.");
    model.then([Step::text("yes")]);
    assert_eq!(answer(&ask()), "yes");
    assert_eq!(model.last_request().system().as_deref(), Some("Say little."));

    agent_yaml(&workspace, &model, "{file: absent.md}");
    let finished = run(&workspace, &["run", "-c", "agent.yaml", "hi"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (2, ""), "{}", finished.stderr);
    assert!(finished.stderr.contains("absent.md"), "{}", finished.stderr);
    assert!(finished.stderr.contains("help: "), "{}", finished.stderr);
}
