//! Python tools for their builders: schema from the signature, environment, printed text, packages, and
//! scripts that a registration brings along.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::served::{Served, haft};

const WEATHER: &str = r#"
import os
from typing import Literal

def run(city: str, days: int = 3, units: Literal["c", "f"] = "c"):
    """Returns the weather of a city.

    Args:
        city: The city to look up.
        days: How many days.
    """
    print(f"looking up {city} with {os.environ['WEATHER_TOKEN']}")
    return {"city": city, "days": days, "units": units, "home": os.environ.get("HOME")}
"#;

const TOKEN: &str = "tok-9f86d081884c7d65";

fn workspace(policy: &str, entry: &Value, files: &[(&str, &str)]) -> Workspace {
    let config = format!("registry: {{dir: tools}}\npolicy: {policy}\n");
    let tools = json!({"tools": if entry.is_null() { json!([]) } else { json!([entry]) }});
    let workspace = Workspace::with(&[
        ("haft.yaml", &config),
        ("tools/tools.json", &tools.to_string()),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
    ]);
    for (path, text) in files {
        workspace.write(path, text);
    }
    workspace
}

fn weather() -> Value {
    json!({
        "name": "weather", "type": "local", "input_schema": "signature",
        "config": {"script_path": "weather.py", "env": {"WEATHER_TOKEN": TOKEN, "HOME": null}},
    })
}

fn run(workspace: &Workspace, args: &[&str]) -> testkit::Finished {
    haft(workspace, args).run()
}

/// The schema and the description come from the function, and arguments are its parameters.
#[test]
fn the_signature_is_the_schema() {
    let workspace = workspace("{}", &weather(), &[("tools/weather.py", WEATHER)]);
    let shown = run(&workspace, &["tools", "show", "weather", "--json"]);
    let tool: Value = serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{shown:?}"));
    assert_eq!(tool["description"], "Returns the weather of a city.");
    assert_eq!(
        tool["input_schema"],
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city to look up."},
                "days": {"type": "integer", "description": "How many days.", "default": 3},
                "units": {"type": "string", "enum": ["c", "f"], "default": "c"},
            },
            "additionalProperties": false,
            "required": ["city"],
        })
    );
    let called = run(&workspace, &["call", "weather", "city=Seoul", "units=f"]);
    let answer: Value =
        serde_json::from_str(&called.stdout).unwrap_or_else(|_| panic!("{called:?}"));
    assert_eq!(answer, json!({"city": "Seoul", "days": 3, "units": "f", "home": null}));
    let refused = run(&workspace, &["call", "weather", "days=2"]);
    assert_eq!(refused.code, 1, "{}", refused.stdout);
}

/// A signature without a schema leaves the tool out, with the reason; the script is never run to find out.
#[test]
fn an_unusable_signature_leaves_the_tool_out() {
    let script = "open('was-run', 'w').close()\ndef run(when: Datetime):\n    return when\n";
    let workspace = workspace("{}", &weather(), &[("tools/weather.py", script)]);
    let listed = run(&workspace, &["tools", "list"]);
    assert!(!listed.stdout.contains("weather"), "{}", listed.stdout);
    assert!(
        listed.stderr.contains("Tool 'weather' (local tool) is not registered")
            && listed.stderr.contains("the type `Datetime` of parameter `when`"),
        "{}",
        listed.stderr
    );
    assert!(!workspace.path().join("was-run").exists());
}

/// The output that a tool prints is in `haft call -v` and in its log entry, bounded and without secrets; the answer is
/// not affected.
#[test]
fn printed_text_goes_to_the_log() {
    let workspace = workspace("{}", &weather(), &[("tools/weather.py", WEATHER)]);
    let called = run(&workspace, &["call", "-v", "weather", "city=Seoul"]);
    assert!(called.stderr.contains("looking up Seoul with ***"), "{}", called.stderr);
    assert!(!called.stdout.contains("looking up"), "{}", called.stdout);
    let plain = run(&workspace, &["call", "weather", "city=Seoul"]);
    assert!(!plain.stderr.contains("looking up"), "{}", plain.stderr);
    let log = run(&workspace, &["log", "--json"]);
    assert!(log.stdout.contains("looking up Seoul with ***"), "{}", log.stdout);
    assert!(!log.stdout.contains(TOKEN), "{}", log.stdout);

    let flood = "def run(args):\n    for n in range(100000):\n        print(f'line {n}')\n    raise ValueError('after')\n";
    let entry = json!({"name": "flood", "type": "local", "input_schema": {"type": "object"},
                       "config": {"script_path": "flood.py"}});
    let workspace = self::workspace("{}", &entry, &[("tools/flood.py", flood)]);
    let called = run(&workspace, &["call", "flood", "--json"]);
    let id = serde_json::from_str::<Value>(&called.stdout).unwrap()["execution_id"].clone();
    let entry = run(&workspace, &["log", "show", id.as_str().unwrap(), "--json"]);
    let entry: Value = serde_json::from_str(&entry.stdout).unwrap();
    let printed = entry["stdout"].as_str().unwrap();
    assert!(printed.starts_with("...line ") && printed.ends_with("line 99999\n"), "{printed:.40}");
    assert!(printed.len() <= 65536 + 3, "{}", printed.len());
}

/// A wheel with one module, made by hand: a test needs no package index.
fn wheel(workspace: &Workspace) -> String {
    let script = r#"
import sys, zipfile
info = "umbrella-1.0.dist-info/"
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("umbrella.py", "def needed():\n    return True\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: umbrella\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "umbrella.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n")
"#;
    let path = workspace.path().join("umbrella-1.0-py3-none-any.whl");
    let made = std::process::Command::new("python3").args(["-c", script]).arg(&path).status();
    assert!(made.unwrap().success());
    path.to_str().unwrap().to_owned()
}

const UMBRELLA: &str =
    "import umbrella\ndef run(args):\n    return {'umbrella': umbrella.needed()}\n";

/// Packages are installed once into an environment of their own, which a second start reuses. A package that
/// cannot be installed leaves the tool out and changes nothing else.
#[test]
fn requirements_are_installed_once() {
    let workspace = workspace("{}", &Value::Null, &[("tools/umbrella_tool.py", UMBRELLA)]);
    let wheel = wheel(&workspace);
    let entry = |package: &str| {
        json!({"tools": [{
            "name": "umbrella", "description": "Answers.", "type": "local", "input_schema": {"type": "object"},
            "config": {"script_path": "umbrella_tool.py", "requirements": [package]},
        }]})
        .to_string()
    };
    workspace.write("tools/tools.json", entry(&wheel));
    let called = run(&workspace, &["--log-level", "info", "call", "umbrella"]);
    assert_eq!(called.code, 0, "{}", called.stderr);
    assert_eq!(serde_json::from_str::<Value>(&called.stdout).unwrap(), json!({"umbrella": true}));
    assert!(called.stderr.contains("installing") && called.stderr.contains("installed"));
    let again = run(&workspace, &["--log-level", "info", "call", "umbrella"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(!again.stderr.contains("installing"), "{}", again.stderr);

    workspace.write("tools/tools.json", entry(&format!("{wheel}.missing")));
    let failed = run(&workspace, &["call", "umbrella"]);
    assert_eq!(failed.code, 1, "{}", failed.stdout);
    assert!(failed.stderr.contains("cannot be installed"), "{}", failed.stderr);
    workspace.write("tools/tools.json", entry("--index-url=http://evil"));
    let refused = run(&workspace, &["call", "umbrella"]);
    assert!(refused.stderr.contains("is not a package"), "{}", refused.stderr);
}

fn uploaded(source: &str) -> String {
    json!({
        "name": "up", "type": "local", "input_schema": "signature", "config": {"source": source},
    })
    .to_string()
}

fn uploads(served: &Served) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(served.workspace.path().join("tools/uploads")) else {
        return Vec::new();
    };
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

/// A registration brings its script along where the operator allows it. Replacing it removes the old one, and
/// a refused change leaves the tool as it is.
#[tokio::test]
async fn a_registration_brings_its_script_along() {
    let served = Served::with_admin(workspace("{allowed_scripts: upload}", &Value::Null, &[]));
    let source = "def run(word: str):\n    \"\"\"Shouts.\"\"\"\n    return word.upper()\n";
    let created = served.post("/api/v1/tools", &uploaded(source)).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert_eq!(created.json()["tool"]["description"], "Shouts.");
    let call = async |word: &str| {
        let body = json!({"arguments": {"word": word}}).to_string();
        served.post("/api/v1/tools/up/call", &body).await.json()["data"].clone()
    };
    assert_eq!(call("hey").await, "HEY");
    let first = uploads(&served);
    assert_eq!(first.len(), 1);
    let kept = std::fs::read_to_string(served.workspace.path().join("tools/tools.json")).unwrap();
    assert!(!kept.contains("source") && kept.contains("uploads/up-"), "{kept}");

    let replaced = "def run(word: str):\n    return word.lower()\n";
    let answer = served.put("/api/v1/tools/up", &uploaded(replaced)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(call("HEY").await, "hey");
    assert_eq!(uploads(&served).len(), 1);
    assert_ne!(uploads(&served), first);

    let broken = "def run(word: Unknown):\n    return word\n";
    let refused = served.put("/api/v1/tools/up", &uploaded(broken)).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert!(refused.text.contains("the type `Unknown`"), "{}", refused.text);
    assert_eq!((call("HEY").await, uploads(&served).len()), (json!("hey"), 1));
    assert_eq!(served.delete("/api/v1/tools/up").await.status, 204);
    assert_eq!(uploads(&served), [""; 0]);
}

/// An uploaded script needs no schema: its function has one. A script of the folder does, and the error names the way.
#[tokio::test]
async fn an_uploaded_script_without_a_schema_has_that_of_its_signature() {
    let files = [("tools/a.py", UMBRELLA)];
    let served = Served::with_admin(workspace("{allowed_scripts: upload}", &Value::Null, &files));
    let entry =
        |config: Value| json!({"name": "up", "type": "local", "config": config}).to_string();
    let source = "def run(word: str):\n    \"\"\"Shouts.\"\"\"\n    return word.upper()\n";
    let created = served.post("/api/v1/tools", &entry(json!({ "source": source }))).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert_eq!(created.json()["tool"]["input_schema"]["required"], json!(["word"]));
    assert_eq!(served.delete("/api/v1/tools/up").await.status, 204);
    let refused = served.post("/api/v1/tools", &entry(json!({"script_path": "a.py"}))).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    let remedy = refused.json()["remedy"].as_str().unwrap().to_owned();
    assert!(remedy.starts_with("add \"input_schema\": \"signature\""), "{remedy}");
}

/// Without the operator's consent nothing is uploaded or installed, and no variable is set. A missing script is
/// refused at registration.
#[tokio::test]
async fn what_the_operator_does_not_allow_is_not_registered() {
    let served = Served::with_admin(workspace("{}", &Value::Null, &[("tools/a.py", UMBRELLA)]));
    let schema = json!({"type": "object"});
    let entry = |config: Value| {
        json!({"name": "up", "description": "d", "type": "local", "input_schema": schema, "config": config})
            .to_string()
    };
    for (config, status, text) in [
        (json!({"source": "def run(args): pass"}), 403, "may not bring a script along"),
        (
            json!({"script_path": "a.py", "requirements": ["x"]}),
            403,
            "may not bring `requirements`",
        ),
        (json!({"script_path": "a.py", "env": {"PYTHONPATH": "/tmp"}}), 403, "`PYTHONPATH`"),
        (json!({"script_path": "missing.py"}), 422, "does not exist"),
    ] {
        let refused = served.post("/api/v1/tools", &entry(config.clone())).await;
        assert_eq!(refused.status, status, "{config}: {}", refused.text);
        assert!(refused.text.contains(text), "{config}: {}", refused.text);
    }
    assert_eq!(served.get("/api/v1/tools/up").await.status, 404);
    assert_eq!(uploads(&served), [""; 0]);
}

/// An upload chooses neither its path nor another interpreter.
#[tokio::test]
async fn an_upload_does_not_choose_its_place() {
    let served = Served::with_admin(workspace("{allowed_scripts: upload}", &Value::Null, &[]));
    for config in [
        json!({"source": "def run(args): pass", "script_path": "../x.py"}),
        json!({"source": "def run(args): pass", "script_path": "tools.json"}),
        json!({"source": "x", "command": ["sh"]}),
        json!({"source": "x", "runtime": "command"}),
        json!({"source": ["x"]}),
        json!({"source": "x".repeat(1024 * 1024 + 1)}),
    ] {
        let entry = json!({"name": "up", "description": "d", "type": "local",
                           "input_schema": {"type": "object"}, "config": config});
        let refused = served.post("/api/v1/tools", &entry.to_string()).await;
        assert_eq!(refused.status, 422, "{}", refused.text);
    }
    assert_eq!(uploads(&served), [""; 0]);
}
