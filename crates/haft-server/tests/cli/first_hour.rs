//! The first hour: a first configuration, servers and tools added by commands, and what is wrong with them.

use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;

use crate::agent_support::Terminal;
use crate::mcp_support::{broken, server, workspace};
use crate::{haft, run};

fn listed(workspace: &Workspace) -> Vec<String> {
    let finished = run(workspace, &["tools", "list", "--json"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let tools: Value = serde_json::from_str(&finished.stdout).unwrap();
    tools.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

fn files(workspace: &Workspace) -> Vec<String> {
    let files = std::fs::read_dir(workspace.path()).unwrap();
    let mut names: Vec<String> =
        files.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// `haft init` writes a configuration that loads, with comments and a tool that runs; a second one changes nothing.
#[test]
fn init_writes_a_configuration_and_a_tool_that_runs() {
    let workspace = Workspace::new();
    let written = run(&workspace, &["init", "--yes", "--model", "openai::gpt-5"]);
    assert_eq!(written.code, 0, "{written:?}");
    assert_eq!(files(&workspace), ["haft.yaml", "tools"]);
    let yaml = workspace.read("haft.yaml").unwrap();
    assert!(yaml.contains("# MCP servers:") && yaml.contains("model: \"openai::gpt-5\""), "{yaml}");
    assert_eq!(listed(&workspace), ["hello"]);
    let called = run(&workspace, &["call", "hello", "name=Ada"]);
    assert!(called.code == 0 && called.stdout.contains("Hello, Ada!"), "{called:?}");
    let again = run(&workspace, &["init", "--yes"]);
    assert!(again.code == 2 && again.stderr.contains("`./haft.yaml` exists"), "{again:?}");
    assert_eq!(workspace.read("haft.yaml").unwrap(), yaml);
    let wrong = run(&workspace, &["init", "elsewhere", "--yes", "--model", "gpt"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("PROVIDER::NAME"), "{wrong:?}");
    assert!(!workspace.path().join("elsewhere").exists());
    let bare = run(&workspace, &["--json", "init", "bare", "--no-tool"]);
    let bare: Value = serde_json::from_str(&bare.stdout).unwrap();
    assert_eq!(bare["written"], json!(["bare/haft.yaml"]));
    assert_eq!(run(&workspace, &["-c", "bare/haft.yaml", "check"]).code, 0);
}

/// At a terminal `haft init` asks; the file it wrote needs no further question.
#[test]
fn init_asks_at_a_terminal() {
    let workspace = Workspace::new();
    let mut terminal = Terminal::open(&workspace, "\"$haft\" init");
    terminal.see("tools/hello.py? [Y/n] ");
    terminal.enter("n");
    terminal.see("(empty for none): ");
    terminal.enter("ollama::qwen3");
    let left = terminal.left();
    assert_eq!(left.code, 0, "{}", left.screen);
    assert!(workspace.read("haft.yaml").unwrap().contains("model: \"ollama::qwen3\""));
    assert_eq!(files(&workspace), ["haft.yaml"]);
}

/// `haft servers add` and `remove` change one entry and leave comments and order alone.
#[test]
fn servers_are_added_and_removed_by_a_command() {
    let before = "# Mine.\ndefaults: {tool_timeout: 10s}   # short\n\nservers:\n  # The first.\n  one: {command: cat}\n\n# The end.\n";
    let workspace = Workspace::with(&[("haft.yaml", before)]);
    let fixture = Fixture::path().display().to_string();
    let args = Fixture::stdio_args(&json!({"tools": ["echo"]}));
    let mut words = vec!["servers", "add", "two", "--env", "A=b", "--lazy", "--", &fixture];
    words.extend(args.iter().map(String::as_str));
    let added = run(&workspace, &words);
    assert_eq!(added.code, 0, "{added:?}");
    let url = [
        "servers",
        "add",
        "three",
        "--url",
        "https://example.com/mcp",
        "--header",
        "Authorization: Bearer ${NO_TOKEN}",
    ];
    let added = run(&workspace, &url);
    assert_eq!(added.code, 0, "{added:?}");
    assert!(added.stderr.contains("`NO_TOKEN` is not set"), "{}", added.stderr);
    assert_eq!(files(&workspace), ["haft.yaml"], "what only adds needs no copy");
    let text = workspace.read("haft.yaml").unwrap();
    for kept in ["# Mine.", "# short", "# The first.", "# The end.", "${NO_TOKEN}"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    let again = run(&workspace, &["servers", "add", "one", "--", "cat"]);
    assert!(again.code == 2 && again.stderr.contains("--replace"), "{again:?}");
    let neither = run(&workspace, &["servers", "add", "four"]);
    assert_eq!(neither.code, 2, "{neither:?}");
    assert_eq!(workspace.read("haft.yaml").unwrap(), text);
    for name in ["three", "one"] {
        let removed = haft(&workspace, &["servers", "remove", name]).env("NO_TOKEN", "x").run();
        assert_eq!(removed.code, 0, "{removed:?}");
    }
    assert_eq!(workspace.read("haft.yaml.bak").as_deref(), Some(&*text));
    words.insert(3, "--replace");
    let again = run(&workspace, &words);
    assert!(again.stdout.starts_with("replaced `two` in "), "{again:?}");
    let gone = run(&workspace, &["servers", "remove", "one"]);
    assert!(gone.code == 2 && gone.stderr.contains("no server is named `one`"), "{gone:?}");
    assert_eq!(listed(&workspace), ["echo"]);
    // Variables of comments and of other entries do not concern the new one.
    let workspace = Workspace::new();
    assert_eq!(run(&workspace, &["init", "--yes"]).code, 0);
    let added = run(&workspace, &["servers", "add", "one", "--", "cat"]);
    assert_eq!((added.code, added.stderr.as_str()), (0, ""), "{added:?}");
    // Without a configuration the command makes one.
    let workspace = Workspace::new();
    assert_eq!(run(&workspace, &["servers", "add", "one", "--", "cat"]).code, 0);
    assert_eq!(workspace.read("haft.yaml").unwrap(), "servers:\n  one:\n    command: cat\n");
}

/// Only variables that the entry needs are reported: not one with a default, nor one that is written literally.
#[test]
fn an_added_server_names_the_variables_that_it_needs() {
    let workspace = Workspace::new();
    let words = [
        "servers",
        "add",
        "one",
        "--env",
        "A=${NO_A:-a}",
        "--env",
        "B=${NO_B:-${NO_C:-c}}",
        "--env",
        "C=$${NO_D}",
        "--env",
        "D=${env:NO_E}",
        "--env",
        "E=${NO_F}",
        "--env",
        "F=${NO_F:-f}",
        "--",
        "cat",
    ];
    let added = run(&workspace, &words);
    assert_eq!(added.code, 0, "{added:?}");
    let unset = |name: &str| added.stderr.contains(&format!("`{name}` is not set"));
    for name in ["NO_A", "NO_B", "NO_C", "NO_D"] {
        assert!(!unset(name), "{name}: {}", added.stderr);
    }
    assert!(unset("NO_E") && unset("NO_F"), "{}", added.stderr);
}

/// The programs of a trusted file stay trusted when the user adds a server, and only then.
#[test]
fn an_added_server_of_a_trusted_file_needs_no_question() {
    let workspace = Workspace::new();
    let at = |line: &str| {
        let terminal = Terminal::open(
            &workspace,
            &format!("unset HAFT_TRUST; export XDG_STATE_HOME=$PWD/state; {line}"),
        );
        terminal.left()
    };
    assert_eq!(at("\"$haft\" servers add one -- cat").code, 0);
    let left = at("\"$haft\" --standalone config show </dev/null");
    assert_eq!(left.code, 0, "{}", left.screen);
    let left = at("\"$haft\" tools list </dev/null 2>&1 | cat");
    assert!(!left.screen.contains("is not trusted"), "{}", left.screen);
    workspace.write("haft.yaml", "servers:\n  two: {command: sh}\n");
    let left = at("\"$haft\" servers add three -- cat");
    assert_eq!(left.code, 0, "{}", left.screen);
    let left = at("\"$haft\" tools list </dev/null 2>&1 | cat");
    assert!(left.screen.contains("is not trusted"), "{}", left.screen);
}

/// `haft tools new` writes a script and an entry whose schema comes from the type hints.
#[test]
fn a_new_tool_has_a_schema_of_its_type_hints() {
    let workspace = Workspace::with(&[("haft.yaml", "# Mine.\nlog: {dir: logs}\n")]);
    let made = run(
        &workspace,
        &["tools", "new", "forecast", "--python", "city:str", "days:int=3", "tags:list[str]"],
    );
    assert_eq!(made.code, 0, "{made:?}");
    assert!(workspace.read("haft.yaml").unwrap().starts_with("# Mine.\n"));
    let shown: Value =
        serde_json::from_str(&run(&workspace, &["tools", "show", "forecast", "--json"]).stdout)
            .unwrap();
    let expected = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"}, "days": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city", "tags"],
    });
    assert_eq!(shown["input_schema"], expected);
    let called = run(&workspace, &["call", "forecast", "city=123", "tags=a,b"]);
    let answer: Value =
        serde_json::from_str(&called.stdout).unwrap_or_else(|_| panic!("{called:?}"));
    assert_eq!(answer, json!({"city": "123", "days": 3, "tags": ["a", "b"]}));
    let script = "from typing import Literal, TypedDict\n\nclass In(TypedDict):\n    kind: Literal['a', 'b']\n\ndef run(args: In):\n    '''Sorts things.'''\n    return args\n";
    workspace.write("scripts/sort.py", script);
    let made = run(
        &workspace,
        &["tools", "new", "sort", "--python", "--script", "scripts/sort.py", "--json"],
    );
    let made: Value = serde_json::from_str(&made.stdout).unwrap_or_else(|_| panic!("{made:?}"));
    assert_eq!(made["is_new"], false);
    let shown: Value =
        serde_json::from_str(&run(&workspace, &["tools", "show", "sort", "--json"]).stdout)
            .unwrap();
    assert_eq!(
        (&shown["description"], &shown["input_schema"]["properties"]["kind"]["enum"]),
        (&json!("Sorts things."), &json!(["a", "b"]))
    );
    // What cannot be read leaves nothing behind.
    let text = workspace.read("haft.yaml").unwrap();
    workspace.write("scripts/broken.py", "def run(args:\n");
    let failed =
        run(&workspace, &["tools", "new", "broken", "--python", "--script", "scripts/broken.py"]);
    assert!(failed.code == 1 && failed.stderr.contains("SyntaxError"), "{failed:?}");
    let taken = run(&workspace, &["tools", "new", "sort", "--python"]);
    assert!(taken.code == 2 && taken.stderr.contains("has a tool `sort`"), "{taken:?}");
    let wrong = run(&workspace, &["tools", "new", "no good", "--python"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("letters, digits"), "{wrong:?}");
    assert_eq!(workspace.read("haft.yaml").unwrap(), text);
    assert!(workspace.read("tools/sort.py").is_none());
}

/// Local tools stand in haft.yaml; one of a server does not.
#[test]
fn local_tools_stand_in_the_configuration() {
    let yaml = "local_tools:\n  - {name: own, description: Own., input_schema: {type: object}, function: 'own.py:go'}\n";
    let workspace = Workspace::with(&[
        ("haft.yaml", yaml),
        ("own.py", "def go(args):\n    return {'got': args}\n"),
    ]);
    let called = run(&workspace, &["call", "own", "a=1"]);
    assert!(called.code == 0 && called.stdout.contains("\"got\""), "{called:?}");
    workspace.write("haft.yaml", yaml.replace("name: own", "type: mcp, name: own"));
    let refused = run(&workspace, &["check"]);
    assert!(refused.code == 2 && refused.stderr.contains("move it to `tools`"), "{refused:?}");
}

/// `haft doctor` finds a missing program, a server that does not answer, and files that others can change.
#[test]
fn doctor_says_what_is_wrong_and_what_to_do() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = workspace(&json!({
        "good": server(&json!({"tools": ["echo"]})),
        "bad": broken(),
        "gone": {"command": "no-such-program", "reconnect": {"attempts": 0}},
    }));
    let path = workspace.path().join("haft.json");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    let found = run(&workspace, &["doctor", "--json"]);
    assert_eq!(found.code, 3, "{found:?}");
    let findings: Value = serde_json::from_str(&found.stdout).unwrap();
    let verdict = |check: &str| {
        let it = findings.as_array().unwrap().iter().find(|it| it["check"] == check);
        it.map(|it| it["verdict"].as_str().unwrap().to_owned()).unwrap_or_default()
    };
    let expected = [
        ("configuration", "ok"),
        ("permissions", "warning"),
        ("no-such-program", "failed"),
        ("server `good`", "ok"),
        ("server `bad`", "failed"),
        ("server `gone`", "failed"),
        ("state folder", "ok"),
        ("python3", "ok"),
    ];
    for (check, expected) in expected {
        assert_eq!(verdict(check), expected, "{check}: {findings:#}");
    }
    assert_eq!(files(&workspace), ["haft.json"], "looking writes nothing");
    let shown = run(&workspace, &["doctor", "--offline"]).stdout;
    assert!(shown.contains("chmod go-w") && !shown.contains("server `good`"), "{shown}");
    // Neither does a file that is not trusted hide what else is wrong.
    let found = haft(&workspace, &["doctor"]).env("HAFT_TRUST", "").run();
    assert_eq!(found.code, 2, "{found:?}");
    for expected in ["no-such-program: it is not on the path", "failed  trust: "] {
        assert!(found.stdout.contains(expected), "{expected}: {}", found.stdout);
    }
    // A broken entry does not hide what else is wrong.
    let unset =
        json!({"a": {"command": "x", "env": {"T": "${NOT_SET_ANYWHERE}"}}, "bad": broken()});
    workspace.write("haft.json", json!({"servers": unset}).to_string());
    let found = run(&workspace, &["doctor"]);
    assert_eq!(found.code, 2, "{found:?}");
    for expected in ["NOT_SET_ANYWHERE", "state folder", "server `bad`: "] {
        assert!(found.stdout.contains(expected), "{expected}: {}", found.stdout);
    }
    workspace.write("haft.json", "{\"servers\": {\"a\": {}}, \"x\": 1}");
    let found = run(&workspace, &["doctor"]);
    assert!(found.code == 2 && found.stdout.contains("help:"), "{found:?}");
}

/// `haft tools cost` estimates the tokens of each definition, the most expensive first.
#[test]
fn the_cost_of_definitions_is_estimated() {
    let long = "Says everything there is to say. ".repeat(20);
    let tools = json!({"tools": [
        {"name": "short", "inputSchema": {"type": "object"}},
        {"name": "long", "description": long, "inputSchema": {"type": "object"}},
    ]});
    let workspace = workspace(&json!({"s": server(&tools)}));
    let cost: Value =
        serde_json::from_str(&run(&workspace, &["tools", "cost", "--json"]).stdout).unwrap();
    let names: Vec<&Value> =
        cost["tools"].as_array().unwrap().iter().map(|it| &it["tool"]).collect();
    assert_eq!(names, ["long", "short"]);
    assert!(cost["tools"][0]["tokens"].as_u64() > Some(150), "{cost}");
    let total = cost["total"].as_u64().unwrap();
    let shown = run(&workspace, &["tools", "cost"]).stdout;
    assert!(shown.contains(&format!("about {total} tokens")), "{shown}");
}

/// Arguments follow the schema, lists take several words, `:=` forces JSON, and errors show an example.
#[test]
fn arguments_follow_the_schema() {
    let yaml = "local_tools:
  - name: label
    description: Labels a city.
    input_schema:
      type: object
      properties:
        city: {type: string, examples: [Seoul]}
        days: {type: integer}
        tags: {type: array, items: {type: string}}
        any: {}
      required: [city]
      additionalProperties: false
    config: {command: [cat]}
";
    let workspace = Workspace::with(&[("haft.yaml", yaml)]);
    let called = |args: &[&str]| {
        let finished = run(&workspace, &[&["call", "label"], args].concat());
        assert_eq!(finished.code, 0, "{args:?}: {finished:?}");
        serde_json::from_str::<Value>(&finished.stdout).unwrap()
    };
    assert_eq!(called(&["city=123"]), json!({"city": "123"}));
    assert_eq!(called(&["city=true", "days=3"]), json!({"city": "true", "days": 3}));
    assert_eq!(called(&["city=a", "tags=a,b"]), json!({"city": "a", "tags": ["a", "b"]}));
    assert_eq!(called(&["city=a", "tags=a", "tags=1"]), json!({"city": "a", "tags": ["a", "1"]}));
    assert_eq!(called(&["city=a", r#"tags:=["a,b"]"#]), json!({"city": "a", "tags": ["a,b"]}));
    assert_eq!(called(&["city=a", "any=123"]), json!({"city": "a", "any": 123}));
    let refused = |args: &[&str]| run(&workspace, &[&["call", "label"], args].concat());
    let missing = refused(&["days=3"]);
    assert!(
        missing.code == 1 && missing.stderr.contains("for example `haft call label city=Seoul`"),
        "{missing:?}"
    );
    let wrong = refused(&["city=a", "days=three"]);
    assert!(wrong.code == 1 && wrong.stderr.contains("for example `haft call label"), "{wrong:?}");
    let not_json = refused(&["city:=Seoul"]);
    assert!(not_json.code == 2 && not_json.stderr.contains(r#"city:='"text"'"#), "{not_json:?}");
    let twice = refused(&["city=a", "city=b"]);
    assert!(twice.code == 2 && twice.stderr.contains("`city` is given twice"), "{twice:?}");
}

/// Without a configuration nothing is written into the current folder: state and log lie in the user's own.
#[test]
fn looking_and_calling_without_a_configuration_write_into_the_state_home() {
    let workspace = Workspace::new();
    let home = Workspace::new();
    let state = home.path().join("state").display().to_string();
    let at =
        |args: &[&str]| haft(&workspace, args).with_builtins().env("XDG_STATE_HOME", &state).run();
    for args in [
        &["tools", "list"][..],
        &["status"],
        &["log"],
        &["doctor", "--offline"],
        &["servers", "list"],
    ] {
        at(args);
    }
    assert_eq!(files(&workspace), Vec::<String>::new());
    let called = at(&["call", "code_execution", "language=python", "code=print(6*7)", "--yes"]);
    assert!(called.stdout.contains("42"), "{called:?}");
    assert_eq!(files(&workspace), Vec::<String>::new());
    assert!(home.path().join("state/haft/logs").is_dir());
    let log = at(&["log", "--json"]);
    assert!(log.stdout.contains("code_execution"), "{log:?}");
}
