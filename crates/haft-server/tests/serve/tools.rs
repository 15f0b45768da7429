//! Tools over the API: listing, showing, registering, replacing, removing.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::fixture::Fixture;

use crate::served::{Served, toolbox};

/// An entry for `tools.json` that runs `hello_world.py`.
const HELLO: &str = r#"{"name": "hello_world", "description": "Greets a person by name.", "type": "local",
  "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
  "config": {"script_path": "hello_world.py"}}"#;

const HELLO_PY: &str = "def run(args):\n    return {'greeting': f\"Hello, {args['name']}!\"}\n";

async fn call(served: &Served, tool: &str, body: &str) -> (u16, Value) {
    let answer = served.post(&format!("/api/v1/tools/{tool}/call"), body).await;
    (answer.status, answer.json())
}

fn names(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Proves S2-Q-02, S2-Q-10, S2-US3-1, S2-US3-2, S2-US3-3, S2-FR-010, S2-US3-T: a tool is registered, is in
/// the file and in the list, works at once, is replaced, survives a restart, is removed and is then unknown.
#[tokio::test]
async fn a_tool_lives_from_its_registration_to_its_removal() {
    let workspace = toolbox();
    workspace.write("tools/hello_world.py", HELLO_PY);
    let served = Served::with_admin(workspace);

    let created = served.post("/api/v1/tools", HELLO).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert_eq!(created.header("location"), "/api/v1/tools/hello_world");
    let shown = served.get("/api/v1/tools/hello_world").await;
    assert_eq!(shown.header("etag"), created.header("etag"));
    assert_eq!(shown.json()["registered"], true);
    let file: Value =
        serde_json::from_str(&served.workspace.read("tools/tools.json").unwrap()).unwrap();
    let entry: Value = serde_json::from_str(HELLO).unwrap();
    assert!(file["tools"].as_array().unwrap().contains(&entry), "{file}");
    assert!(names(&served.get("/tools").await.json()).contains(&"hello_world"));
    let (status, envelope) =
        call(&served, "hello_world", r#"{"arguments": {"name": "you"}}"#).await;
    assert_eq!((status, &envelope["data"]), (200, &json!({"greeting": "Hello, you!"})));

    let served = served.restarted();
    assert_eq!(served.get("/api/v1/tools/hello_world").await.status, 200);
    let body = HELLO.replace("Greets a person", "Says hello to a person");
    let replaced = served.put("/api/v1/tools/hello_world", &body).await;
    assert_eq!((replaced.status, replaced.json()["outcome"].as_str()), (200, Some("replaced")));
    let described = served.get("/api/v1/tools/hello_world").await.json()["description"].clone();
    assert_eq!(described, "Says hello to a person by name.");

    assert_eq!(served.delete("/api/v1/tools/hello_world").await.status, 204);
    let (status, envelope) =
        call(&served, "hello_world", r#"{"arguments": {"name": "you"}}"#).await;
    assert_eq!((status, envelope["error"]["code"].as_str()), (404, Some("UnknownTool")));
    assert!(!served.workspace.read("tools/tools.json").unwrap().contains("hello_world"));
    let served = served.restarted();
    assert!(!names(&served.get("/tools").await.json()).contains(&"hello_world"));
}

/// Proves S2-FR-010: the short paths do the same, a server among them.
#[tokio::test]
async fn the_short_paths_work() {
    let workspace = toolbox();
    workspace.write("tools/hello_world.py", HELLO_PY);
    let fixture = Fixture::path().display().to_string();
    workspace.write(
        "haft.yaml",
        format!(
            "registry: {{dir: tools}}\npolicy: {{allowed_commands: [\"cat\", \"{fixture} ...\"]}}\n"
        ),
    );
    let served = Served::with_admin(workspace);
    assert_eq!(served.post("/tools/local", HELLO).await.status, 201);
    assert_eq!(served.put("/tools/hello_world", HELLO).await.status, 200);
    let (status, _) = call(&served, "hello_world", r#"{"arguments": {"name": "you"}}"#).await;
    assert_eq!(status, 200);
    assert_eq!(served.delete("/tools/hello_world").await.status, 204);
    assert_eq!(served.delete("/tools/hello_world").await.status, 404);

    let entry = json!({"name": "far", "command": fixture, "args": Fixture::stdio_args(&json!({"tools": ["text", "progress"]})), "mode": "dynamic"});
    let created = served.post("/tools/mcp", &entry.to_string()).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert_eq!(created.json()["state"], "ready", "{}", created.text);
    assert_eq!(created.header("location"), "/api/v1/servers/far");
    let tools = served.get("/tools?source=mcp&server=far").await.json();
    let first = names(&tools)[0].to_owned();
    let refused = served.delete(&format!("/tools/{first}")).await;
    assert_eq!((refused.status, refused.json()["code"].as_str()), (409, Some("OfServer")));
    assert!(served.workspace.read("tools/mcp.json").unwrap().contains("\"far\""));
    assert_eq!(served.delete("/tools/far").await.status, 204);
    assert_eq!(served.get("/tools?source=mcp").await.json()["total"], 0);
    assert!(!served.workspace.read("tools/mcp.json").unwrap().contains("\"far\""));
}

/// Proves S2-SC-002: from an empty folder to a tool that answers, with nothing but a key, a script and the API.
#[tokio::test]
async fn from_nothing_to_a_usable_tool() {
    let workspace = testkit::Workspace::new();
    workspace
        .write(".haft/tools/double.py", "def run(args):\n    return {'twice': 2 * args['n']}\n");
    let served = Served::with_admin(workspace);
    let entry = r#"{"name": "double", "description": "Doubles a number.", "type": "local",
        "input_schema": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
        "config": {"script_path": "double.py"}}"#;
    let created = served.post("/tools/local", entry).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let (status, envelope) = call(&served, "double", r#"{"arguments": {"n": 21}}"#).await;
    assert_eq!((status, &envelope["data"]), (200, &json!({"twice": 42})));
    assert_eq!(names(&served.get("/tools").await.json()), ["hello_world", "double"]);
}

/// Proves S2-FR-012: what would not be valid is refused with every problem, and the file stays as it was.
#[tokio::test]
async fn invalid_entries_change_nothing() {
    let served = Served::with_admin(toolbox());
    let before = served.workspace.read("tools/tools.json").unwrap();
    let mut seen = Vec::new();
    for (method, path, body) in [
        (
            Method::POST,
            "/api/v1/tools",
            r#"{"name": "x", "type": "local", "input_schema": {"type": "object"}, "timeout": "soon", "colour": 1, "config": {"script_path": "x.py"}}"#,
        ),
        (Method::POST, "/api/v1/tools", r#"{"description": "no name"}"#),
        (Method::POST, "/api/v1/tools", r#"{"name": "x", "name": "y"}"#),
        (Method::POST, "/api/v1/tools", r"[]"),
        (
            Method::POST,
            "/api/v1/tools",
            r#"{"name": "greet", "description": "Again.", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "greet.py"}}"#,
        ),
        (
            Method::POST,
            "/api/v1/tools",
            r#"{"name": "rm", "description": "Runs.", "type": "local", "input_schema": {"type": "object"}, "config": {"command": ["rm", "-rf", "x"]}}"#,
        ),
        (
            Method::PUT,
            "/api/v1/tools/greet",
            r#"{"name": "other", "description": "Other.", "type": "local", "input_schema": {"type": "object"}, "config": {"command": ["rm"]}}"#,
        ),
        (Method::DELETE, "/api/v1/tools/gret", ""),
        (Method::GET, "/api/v1/tools/gret", ""),
        (Method::GET, "/api/v1/tools?limit=0", ""),
        (Method::GET, "/api/v1/tools?colour=red", ""),
    ] {
        let answer = served.send(method.clone(), path, &[("x-request-id", "r1")], body).await;
        assert_eq!(answer.header("content-type"), "application/problem+json", "{}", answer.text);
        seen.push(format!("{method} {path} {body}\n{:#}", answer.json()));
    }
    assert_eq!(served.workspace.read("tools/tools.json").unwrap(), before);
    insta::assert_snapshot!(served.workspace.stable(&seen.join("\n\n")));
}

/// Of two concurrent changes, the second gets a conflict.
#[tokio::test]
async fn an_unseen_version_is_not_overwritten() {
    let served = Served::with_admin(toolbox());
    let path = "/api/v1/tools/echo";
    let entry = |text: &str| {
        format!(
            r#"{{"description": "{text}", "type": "local", "input_schema": {{"type": "object"}}, "config": {{"command": ["cat"]}}}}"#
        )
    };
    let put = async |condition: (&str, &str), text: &str| {
        let answer = served.send(Method::PUT, path, &[condition], &entry(text)).await;
        (answer.status, answer.header("etag").to_owned())
    };
    let first = served.get(path).await.header("etag").to_owned();
    let (status, second) = put(("if-match", &first), "Mine.").await;
    assert_eq!(status, 200);
    assert_eq!(put(("if-match", &first), "Lost.").await.0, 412);
    assert_eq!(put(("if-match", &format!("W/{second}")), "Weak.").await.0, 412);
    assert_eq!(put(("if-match", second.trim_matches('"')), "Bare.").await.0, 400);
    assert_eq!(put(("if-none-match", "*"), "New.").await.0, 412);
    assert_eq!(put(("if-match", "*"), "Any.").await.0, 200);
    assert_eq!(put(("if-match", &format!("\"x\", {second}")), "Old.").await.0, 412);
    let new =
        served.send(Method::PUT, "/api/v1/tools/none", &[("if-match", "*")], &entry("x")).await;
    assert_eq!(new.status, 412);
    let new =
        served.send(Method::PUT, "/api/v1/tools/new", &[("if-none-match", "*")], &entry("x")).await;
    assert_eq!(new.status, 201);

    let revision = served.get("/api/v1/tools").await.header("etag").to_owned();
    let body = entry("x").replacen('{', r#"{"name": "more","#, 1);
    let add = async |revision: &str, body: &str| {
        served.send(Method::POST, "/api/v1/tools", &[("if-match", revision)], body).await.status
    };
    assert_eq!(add("\"0\"", &body).await, 412);
    assert_eq!(add(&revision, &body).await, 201);
    assert_eq!(add(&revision, &body.replace("more", "less")).await, 412);

    let gone = served.send(Method::DELETE, path, &[("if-match", &first)], "").await;
    assert_eq!(gone.status, 412);
    let now = served.get(path).await.header("etag").to_owned();
    let gone = served.send(Method::DELETE, path, &[("if-match", &now)], "").await;
    assert_eq!(gone.status, 204);
}

/// Pages, filters and words.
#[tokio::test]
async fn tools_are_found() {
    let served = Served::open(toolbox());
    let list = async |query: &str| served.get(&format!("/api/v1/tools{query}")).await.json();
    let all = list("").await;
    assert_eq!((names(&all), &all["total"]), (vec!["greet", "echo", "fail", "wait"], &json!(4)));
    let page = list("?limit=3").await;
    assert_eq!((names(&page).len(), &page["total"]), (3, &json!(4)));
    let next = list(&format!("?limit=3&cursor={}", page["next"].as_str().unwrap())).await;
    assert_eq!((names(&next), next.get("next")), (vec!["wait"], None));
    assert_eq!(names(&list("?q=waits").await), ["wait"]);
    assert_eq!(names(&list("?q=name+echo").await), ["echo", "greet"]);
    assert_eq!(names(&list("?source=mcp").await), Vec::<&str>::new());
    assert_eq!(names(&list("?server=nowhere").await), Vec::<&str>::new());
    let shown = served.get("/api/v1/tools/greet").await;
    insta::assert_snapshot!(served.workspace.stable(&format!("{:#}", shown.json())));
}

/// Proves S2-Q-11 on the real endpoints: changes need an admin key, in `X-API-Key` or as bearer.
#[tokio::test]
async fn changes_need_an_admin_key() {
    use haft_server::keys::Scope;
    let keys = [("boss", Scope::Admin), ("agent", Scope::Call)];
    let (served, keys) = Served::with_keys(toolbox(), &keys);
    for (method, path) in [
        (Method::POST, "/api/v1/tools"),
        (Method::PUT, "/api/v1/tools/echo"),
        (Method::DELETE, "/api/v1/tools/echo"),
        (Method::POST, "/tools/local"),
        (Method::POST, "/tools/mcp"),
        (Method::PUT, "/tools/echo"),
        (Method::DELETE, "/tools/echo"),
    ] {
        let status = async |key: &str| {
            crate::served::answer(served.request_as(key, method.clone(), path)).await.status
        };
        assert_eq!(
            (status("default-key").await, status(&keys[1]).await),
            (401, 403),
            "{method} {path}"
        );
    }
    assert_eq!(served.get("/api/v1/tools/echo").await.status, 200);
    let reading = served.request_as(&keys[1], Method::GET, "/tools");
    assert_eq!(crate::served::answer(reading).await.status, 200);
}

/// A registration declares metadata, the views show it, the document describes it, and what is invalid
/// changes nothing.
#[tokio::test]
async fn a_registration_declares_metadata() {
    let workspace = toolbox();
    workspace.write("tools/hello_world.py", HELLO_PY);
    let served = Served::with_admin(workspace);
    let mut entry: Value = serde_json::from_str(HELLO).unwrap();
    entry["title"] = json!("Hello");
    entry["annotations"] = json!({"readOnlyHint": true, "title": "Hi"});
    entry["icons"] = json!([{"src": "https://example.com/hello.png", "theme": "dark"}]);
    let created = served.post("/api/v1/tools", &entry.to_string()).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let shown = served.get("/api/v1/tools/hello_world").await.json();
    for key in ["title", "annotations", "icons"] {
        assert_eq!(shown[key], entry[key], "{key}");
    }
    let listed = served.get("/api/v1/tools").await.json();
    let mut listed = listed["tools"].as_array().unwrap().iter();
    let listed = listed.find(|tool| tool["name"] == "hello_world").unwrap();
    assert_eq!(listed["annotations"], entry["annotations"]);

    entry["annotations"] = json!({"readOnly": true});
    let refused = served.put("/api/v1/tools/hello_world", &entry.to_string()).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert!(refused.text.contains("did you mean `readOnlyHint`?"), "{}", refused.text);
    entry["annotations"] = json!({});
    entry["icons"] = json!([{"src": "javascript:alert(1)"}]);
    let refused = served.put("/api/v1/tools/hello_world", &entry.to_string()).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    let unchanged = served.get("/api/v1/tools/hello_world").await.json();
    assert_eq!(unchanged["icons"], shown["icons"]);

    let document = served.get("/api/openapi.json").await.json();
    let schemas = &document["components"]["schemas"];
    for (schema, key) in
        [("ToolInfo", "annotations"), ("ToolInfo", "icons"), ("ToolEntry", "title")]
    {
        assert!(schemas[schema]["properties"][key].is_object(), "{schema}.{key}");
    }
    let hints = schemas["ToolEntryAnnotations"]["properties"].as_object().unwrap();
    assert!(hints.contains_key("readOnlyHint") && hints.contains_key("openWorldHint"), "{hints:?}");
}
