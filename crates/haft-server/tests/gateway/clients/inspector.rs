//! The MCP inspector on the command line: one request for each start.

use serde_json::{Value, json};
use testkit::Workspace;
use testkit::peers::inspector;

use super::toolbox::{Served, Toolbox};

/// Proves S1-1 in the legacy era, and under load.
#[test]
fn the_inspector_in_the_legacy_era() {
    let toolbox = Toolbox::new();
    let served = Served::start(&toolbox.workspace);
    let inspector = Inspector::at(&served.url, "legacy");
    inspector.assert_sees_everything();
    let args = ["--load", "--load-requests", "40", "--load-concurrency", "8"];
    let load = inspector.ask("tools/call", &[&["--tool-name", "new_echo"], &args[..]].concat());
    assert_eq!((&load["requests"], &load["errors"]), (&json!(40), &json!(0)), "{load}");
    served.end();
}

/// Proves S1-1 in the modern era.
#[test]
fn the_inspector_in_the_modern_era() {
    let toolbox = Toolbox::new();
    let served = Served::start(&toolbox.workspace);
    Inspector::at(&served.url, "modern").assert_sees_everything();
    served.end();
}

/// Proves S1-1, S1-5 over stdio.
#[test]
fn the_inspector_over_stdio() {
    let toolbox = Toolbox::new();
    let home = Workspace::new();
    let inspector = Inspector { target: toolbox.mcp().words(), options: Vec::new(), home };
    let args = ["--tool-name", "old_echo", "--tool-arg", "n=1"];
    assert_eq!(inspector.ask("tools/call", &args)["structuredContent"], json!({"n": 1}));
    toolbox.assert_nothing_is_left();
}

struct Inspector {
    /// A URL, or the command of a server.
    target: Vec<String>,
    options: Vec<String>,
    /// Where it keeps what it remembers.
    home: Workspace,
}

impl Inspector {
    fn at(url: &str, era: &str) -> Self {
        let options = ["--transport", "http", "--protocol-era", era].map(ToOwned::to_owned);
        Self { target: vec![url.to_owned()], options: options.to_vec(), home: Workspace::new() }
    }

    fn assert_sees_everything(&self) {
        let names = |list: &Value, key: &str| -> Vec<Value> {
            list.as_array().unwrap().iter().map(|item| item[key].clone()).collect()
        };
        let tools = names(&self.ask("tools/list", &[])["tools"], "name");
        for tool in super::toolbox::tools() {
            assert!(tools.contains(&json!(tool)), "no {tool}: {tools:?}");
        }
        assert!(tools.contains(&json!("get-sum")), "{tools:?}");
        let greeted = self.ask("tools/call", &["--tool-name", "greet", "--tool-arg", "name=you"]);
        assert_eq!(greeted["structuredContent"], json!({"greeting": "Hello, you!"}));

        let prompts = names(&self.ask("prompts/list", &[])["prompts"], "name");
        assert!(prompts.contains(&json!("new_prompt")), "{prompts:?}");
        let args = ["--prompt-name", "old_prompt", "--prompt-args", "name=you"];
        let prompt = self.ask("prompts/get", &args);
        let text = &prompt["messages"][0]["content"]["text"];
        assert_eq!(text, r#"prompt "old_prompt" with {"name":"you"}"#);

        let resources = names(&self.ask("resources/list", &[])["resources"], "uri");
        assert!(resources.contains(&json!("new://note")), "{resources:?}");
        let read = self.ask("resources/read", &["--uri", "new://note"]);
        assert_eq!(read["contents"][0]["text"], "the note of new");
        let templates = self.ask("resources/templates/list", &[]);
        let templates = names(&templates["resourceTemplates"], "uriTemplate");
        assert!(templates.contains(&json!("test://template/{id}/data")), "{templates:?}");
    }

    fn ask(&self, method: &str, args: &[&str]) -> Value {
        let mut command = inspector().env("HOME", self.home.path().to_str().unwrap());
        let options = self.options.iter().map(String::as_str);
        let options = options.chain(["--method", method]).chain(args.iter().copied());
        for word in self.target.iter().map(String::as_str).chain(options) {
            command = command.arg(word);
        }
        let finished = command.run("");
        assert_eq!(finished.code, 0, "{method}: {finished:?}");
        let read = serde_json::from_str(&finished.stdout);
        read.unwrap_or_else(|error| panic!("{method}: {error}: {finished:?}"))
    }
}
