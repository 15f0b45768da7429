//! Limits of keys over the API: rates, quotas, expiry, rotation, lists of tools and servers, the scope `metrics`.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;
use testkit::model::{ModelServer, Step};

use crate::agent::{over, path};
use crate::events::Events;
use crate::faults::until;
use crate::served::{Answer, Served, answer, create_key, haft, toolbox};

const CALL: &str = "/api/v1/tools/echo/call";

/// Creates a call key with more arguments.
fn limited_key(workspace: &Workspace, name: &str, args: &[&str]) -> String {
    let create = ["--json", "keys", "create", "--scope", "call", "--name", name];
    let finished = haft(workspace, &[&create, args].concat()).run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let created: Value = serde_json::from_str(&finished.stdout).unwrap();
    created["key"].as_str().unwrap().to_owned()
}

async fn post_as(served: &Served, key: &str, path: &str, body: &Value) -> Answer {
    let request = served.request_as(key, Method::POST, path).body(body.to_string());
    answer(request.header("content-type", "application/json")).await
}

async fn get_as(served: &Served, key: &str, path: &str) -> Answer {
    answer(served.request_as(key, Method::GET, path)).await
}

async fn call_as(served: &Served, key: &str) -> Answer {
    post_as(served, key, CALL, &json!({"arguments": {}})).await
}

/// A call beyond the rate of its key is 429 with the time to wait, alone and in a batch, and is logged as refused.
#[tokio::test]
async fn a_key_beyond_its_rate_is_told_when_to_come_again() {
    let workspace = toolbox();
    let admin = create_key(&workspace, "me", Scope::Admin);
    let slow = limited_key(&workspace, "slow", &["--rate", "2/h", "--burst", "1"]);
    let served = started(workspace, admin);
    assert_eq!(call_as(&served, &slow).await.status, 200);
    let refused = call_as(&served, &slow).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1790..=1800).contains(&seconds), "{seconds}");
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "RateLimited");
    assert_eq!(error["details"]["of"], "key");
    assert_eq!(error["details"]["name"], "slow");
    assert_eq!(
        error["message"],
        "`echo` was not called: the key `slow` has reached its rate of 2/h"
    );
    let batch = json!({"calls": [{"tool": "echo"}, {"tool": "echo"}]});
    let batch = post_as(&served, &slow, "/api/v1/calls", &batch).await.json();
    assert_eq!(batch["results"][1]["error"]["code"], "RateLimited");
    assert_eq!(call_as(&served, served.admin.as_deref().unwrap()).await.status, 200);
    let logged = served.log();
    let refused = logged.iter().filter(|it| it["error"]["code"] == "RateLimited");
    assert_eq!(refused.count(), 3);
    let page = served.get("/metrics").await.text;
    assert!(page.contains("haft_key_rate_limited_total{key=\"slow\"} 3\n"), "{page}");
    assert!(page.contains("haft_key_calls_total{key=\"slow\",outcome=\"success\"} 1\n"), "{page}");
}

/// Calls of a run count against the key that began it.
#[tokio::test]
async fn a_run_has_the_rate_of_its_key() {
    let model = ModelServer::openai([
        Step::call("echo", json!({"n": 1})),
        Step::call("echo", json!({"n": 2})),
        Step::text("Done."),
    ]);
    let workspace = crate::agent::workspace(&model, "builtin: {enabled: false}\n");
    let admin = create_key(&workspace, "me", Scope::Admin);
    let slow = limited_key(&workspace, "slow", &["--rate", "1/h"]);
    let served = started(workspace, admin);
    let run = post_as(&served, &slow, "/api/v1/runs", &json!({"input": "Hi"})).await;
    assert_eq!(run.status, 202, "{}", run.text);
    let run = run.json();
    over(&served, &run).await;
    assert_eq!(get_as(&served, &slow, &path(&run)).await.status, 200);
    assert!(model.requests()[2].last_result().contains("RateLimited"));
}

fn started(workspace: Workspace, admin: String) -> Served {
    let program = haft(&workspace, &crate::served::SERVE);
    Served::run(workspace, Some(admin), program)
}

/// A changed key file holds without a restart: another rate, and a session that stays open.
#[tokio::test]
async fn limits_change_while_the_server_runs() {
    let workspace = toolbox();
    let admin = create_key(&workspace, "me", Scope::Admin);
    let key = limited_key(&workspace, "agent", &["--rate", "1/h"]);
    let served = started(workspace, admin);
    assert_eq!(call_as(&served, &key).await.status, 200);
    assert_eq!(call_as(&served, &key).await.status, 429);
    let mut events = Events::of(served.request_as(&key, Method::GET, "/api/v1/inbox/events")).await;
    assert_eq!(events.next().await.0, "open");
    let file = served.workspace.read(".haft/keys.json").unwrap();
    served.workspace.write(".haft/keys.json", file.replace("1/h", "1000/s"));
    until("the new rate", async || (call_as(&served, &key).await.status == 200).then_some(()))
        .await;
    let question = served.get("/api/v1/keys").await.json();
    assert_eq!(question["keys"][1]["rate"], "1000/s");
}

/// A quota holds after a restart.
#[tokio::test]
async fn a_quota_survives_a_restart() {
    let workspace = toolbox();
    let admin = create_key(&workspace, "me", Scope::Admin);
    let key = limited_key(&workspace, "agent", &["--quota", "2/day"]);
    let served = started(workspace, admin);
    assert_eq!(call_as(&served, &key).await.status, 200);
    let served = served.restarted();
    assert_eq!(call_as(&served, &key).await.status, 200);
    let refused = call_as(&served, &key).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.json()["error"]["details"]["max"], "2/day");
}

/// An entry beyond the log quota of its key is kept without arguments and answer, also after a restart. The call runs.
#[tokio::test]
async fn entries_beyond_the_log_quota_of_a_key_have_no_content() {
    let workspace = toolbox();
    let admin = create_key(&workspace, "me", Scope::Admin);
    let noisy = limited_key(&workspace, "noisy", &["--log-quota", "4kB/day"]);
    let served = started(workspace, admin);
    let large = json!({"arguments": {"text": "x".repeat(1000)}});
    for _ in 0..2 {
        let answer = post_as(&served, &noisy, CALL, &large).await;
        assert_eq!(answer.json()["data"]["text"].as_str().unwrap().len(), 1000);
    }
    let served = served.restarted();
    assert_eq!(post_as(&served, &noisy, CALL, &large).await.status, 200);
    let admin = served.admin.clone().unwrap();
    assert_eq!(post_as(&served, &admin, CALL, &large).await.status, 200);
    let logged = served.log();
    assert_eq!(logged.len(), 4, "one entry for each call");
    let note = "[1011 bytes are not in the log: the key's log quota of 4kB/day is used up]";
    for (entry, is_whole) in logged.iter().zip([true, false, false, true]) {
        assert_eq!(entry["tool"], "echo");
        assert_eq!(entry["status"], "success");
        assert_eq!(entry["input"]["text"].is_string(), is_whole, "{entry}");
        assert_eq!(entry["input"] == note, !is_whole, "{entry}");
        assert_eq!(entry["output"]["text"].is_string(), is_whole, "{entry}");
    }
    let page = served.get("/api/v1/log?caller=key:noisy").await.json();
    assert_eq!(page["calls"][1]["input"], note, "{page}");
    let listed = served.get("/api/v1/keys").await.json();
    assert_eq!(listed["keys"][1]["log_quota"], "4kB/day");
}

/// A log quota that cannot be read creates no key.
#[tokio::test]
async fn a_log_quota_is_a_size_per_day() {
    let served = started_with_admin();
    let new = |quota: &str| json!({"name": "ci", "log_quota": quota}).to_string();
    let refused = served.post("/api/v1/keys", &new("100MB")).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert_eq!(detail, "`100MB` is not a log quota; write a size per day, such as 100MB/day");
    let created = served.post("/api/v1/keys", &new("100MB/day")).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert_eq!(created.json()["log_quota"], "100MB/day");
    let metrics = json!({"name": "scrape", "scope": "metrics", "log_quota": "1MB/day"});
    assert_eq!(served.post("/api/v1/keys", &metrics.to_string()).await.status, 422);
    let listed = haft(&served.workspace, &["keys", "list"]).run().stdout;
    assert!(listed.contains("log 100MB/day"), "{listed}");
}

fn started_with_admin() -> Served {
    started_with(toolbox())
}

fn started_with(workspace: Workspace) -> Served {
    let admin = create_key(&workspace, "me", Scope::Admin);
    started(workspace, admin)
}

/// A reload keeps the counters of unchanged rates and quotas, of tools and keys.
#[tokio::test]
async fn a_reload_keeps_counters() {
    let workspace = toolbox();
    let config = |more: &str| {
        let rate = "{name: echo, rate: 2/h, burst: 2}";
        let quota = "{name: greet, quota: 1/day}";
        format!(
            "registry: {{dir: tools}}\npolicy: {{allowed_commands: [cat]}}\ntools: [{rate}, {quota}]\n{more}"
        )
    };
    workspace.write("haft.yaml", config(""));
    let admin = create_key(&workspace, "me", Scope::Admin);
    let key = limited_key(&workspace, "slow", &["--rate", "1/h"]);
    let served = started(workspace, admin);
    let greet = async || {
        let path = "/api/v1/tools/greet/call";
        served.post(path, r#"{"arguments": {"name": "Ada"}}"#).await.status
    };
    assert_eq!(greet().await, 200);
    assert_eq!(call_as(&served, &key).await.status, 200);
    served.workspace.write("haft.yaml", config("defaults: {max_concurrent: 7}\n"));
    let reloaded = served.post("/api/v1/reload", "").await;
    assert_eq!(reloaded.status, 200, "{}", reloaded.text);
    assert_eq!(greet().await, 429);
    let refused = call_as(&served, &key).await;
    assert_eq!(refused.json()["error"]["details"]["of"], "key", "{}", refused.text);
    // The burst of the tool has one call left, and no more.
    assert_eq!(served.post(CALL, "{}").await.status, 200);
    let refused = served.post(CALL, "{}").await;
    assert_eq!(refused.json()["error"]["details"]["of"], "tool", "{}", refused.text);
}

/// An expired key is refused with the reason, and what it holds open ends.
#[tokio::test]
async fn a_key_expires() {
    let workspace = toolbox();
    let admin = create_key(&workspace, "me", Scope::Admin);
    let served = started(workspace, admin);
    let short = limited_key(&served.workspace, "short", &["--expires", "3s"]);
    let mut events =
        Events::of(served.request_as(&short, Method::GET, "/api/v1/inbox/events")).await;
    assert_eq!(events.next().await.0, "open");
    events.rest().await;
    let refused = call_as(&served, &short).await;
    assert_eq!(refused.status, 401, "{}", refused.text);
    let problem = refused.json();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("`key:short` expired at 20"), "{detail}");
    let listed = haft(&served.workspace, &["keys", "list"]).run().stdout;
    assert!(listed.contains("expired"), "{listed}");
}

/// Both secrets work during the overlap; afterwards the old one is refused, and the key keeps its sessions.
#[tokio::test]
async fn a_rotated_key_works_with_both_secrets_for_a_while() {
    let workspace = toolbox();
    let admin = create_key(&workspace, "me", Scope::Admin);
    let old = limited_key(&workspace, "agent", &["--rate", "1000/s"]);
    let served = started(workspace, admin);
    let rotate = "/api/v1/keys/agent/rotate";
    let rotated = served.post(rotate, r#"{"overlap": "3s"}"#).await;
    assert_eq!(rotated.status, 200, "{}", rotated.text);
    let new = rotated.json()["key"].as_str().unwrap().to_owned();
    assert_ne!(old, new);
    assert_eq!(rotated.json()["rate"], "1000/s", "its limits stay");
    assert_eq!(call_as(&served, &new).await.status, 200);
    let of_old = served.request_as(&old, Method::GET, "/api/v1/inbox/events");
    let of_new = served.request_as(&new, Method::GET, "/api/v1/inbox/events");
    let mut streams = [Events::of(of_old).await, Events::of(of_new).await];
    for stream in &mut streams {
        assert_eq!(stream.next().await.0, "open");
    }
    let [mut of_old, of_new] = streams;
    of_old.rest().await;
    assert_eq!(call_as(&served, &old).await.status, 401);
    assert_eq!(call_as(&served, &new).await.status, 200);
    drop(of_new);
    // Without an overlap the old secret ends at once.
    let last = haft(&served.workspace, &["keys", "rotate", "agent"]).run();
    assert_eq!(last.code, 0, "{}", last.stderr);
    let last = last.stdout.trim().to_owned();
    assert_eq!(call_as(&served, &last).await.status, 200);
    assert_eq!(call_as(&served, &new).await.status, 401);
    assert_eq!(served.post("/api/v1/keys/nobody/rotate", "{}").await.status, 404);
    assert_eq!(served.post(rotate, r#"{"overlap": "soon"}"#).await.status, 422);
}

/// The toolbox with a server that has tools, prompts and resources.
fn toolbox_with_server() -> Workspace {
    let workspace = toolbox();
    let scenario = json!({"tools": ["text"], "prompts": [{"name": "hello"}]});
    let server =
        json!({"far": {"command": Fixture::path(), "args": Fixture::stdio_args(&scenario)}});
    let text = workspace.read("haft.yaml").unwrap();
    workspace.write("haft.yaml", format!("{text}servers: {server}\n"));
    workspace
}

fn names(answer: &Answer, list: &str) -> Vec<String> {
    let json = answer.json();
    let items = json[list].as_array().unwrap_or_else(|| panic!("{json}"));
    let name = |item: &Value| item["name"].as_str().or(item["tool"].as_str()).unwrap().to_owned();
    items.iter().map(name).collect()
}

/// A key with lists sees and calls only what they name, on every path; other paths are closed to it.
#[tokio::test]
async fn a_key_with_lists_sees_and_calls_only_those() {
    let workspace = toolbox_with_server();
    let admin = create_key(&workspace, "me", Scope::Admin);
    let reader = limited_key(&workspace, "reader", &["--tools", "echo,gre*", "--servers", "local"]);
    let far = limited_key(&workspace, "far", &["--servers", "far"]);
    let served = started(workspace, admin);
    assert_eq!(names(&get_as(&served, &reader, "/api/v1/tools").await, "tools"), ["greet", "echo"]);
    assert_eq!(names(&get_as(&served, &far, "/api/v1/tools").await, "tools"), ["text"]);
    let search = "/api/v1/tools/search?q=fail%20and%20wait&limit=50";
    let found = names(&get_as(&served, &reader, search).await, "tools");
    assert!(!found.iter().any(|tool| tool == "fail" || tool == "wait"), "{found:?}");
    assert_eq!(get_as(&served, &reader, "/api/v1/tools/echo").await.status, 200);
    assert_eq!(get_as(&served, &reader, "/api/v1/tools/fail").await.status, 404);
    assert_eq!(call_as(&served, &reader).await.status, 200);
    assert_eq!(call_as(&served, &far).await.status, 404);
    let batch = json!({"calls": [{"tool": "fail"}, {"tool": "echo"}]});
    let batch = post_as(&served, &reader, "/api/v1/calls", &batch).await.json();
    assert_eq!(batch["results"][0]["error"]["code"], "UnknownTool");
    assert_eq!(batch["results"][1]["status"], "success");
    assert!(names(&get_as(&served, &reader, "/api/v1/prompts").await, "prompts").is_empty());
    assert_eq!(get_as(&served, &reader, "/api/v1/resources?server=far").await.status, 404);
    let prompt = post_as(&served, &reader, "/api/v1/prompts/far/hello", &json!({})).await;
    assert_eq!(prompt.status, 404, "{}", prompt.text);
    for path in ["/api/v1/servers", "/api/v1/conversations", "/tools", "/metrics", "/api/v1/status"]
    {
        let refused = get_as(&served, &reader, path).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text);
    }
    // A key without lists sees everything.
    let free = create_key(&served.workspace, "free", Scope::Call);
    assert_eq!(get_as(&served, &free, "/api/v1/tools").await.json()["total"], 5);
}

/// `default_tool_config` gives each tool of a server its own rate and quota; an entry of `tools` replaces them.
#[tokio::test]
async fn each_tool_of_a_server_has_the_default_rate() {
    let workspace = toolbox();
    let scenario = json!({"tools": ["text", "empty", "stats"]});
    let far = json!({
        "command": Fixture::path(), "args": Fixture::stdio_args(&scenario),
        "default_tool_config": {"rate": "1/h", "quota": "100/day"},
    });
    let tools = json!([{"name": "stats", "rate": "1000/s"}]);
    let config = json!({"servers": {"far": far}, "tools": tools}).to_string();
    workspace.write("haft.yaml", config);
    let served = started_with(workspace);
    let call = async |tool: &str| {
        let answer = served.post(&format!("/api/v1/tools/{tool}/call"), "{}").await;
        (answer.status, answer.json()["error"]["details"].clone())
    };
    assert_eq!(call("text").await.0, 200);
    let (status, details) = call("text").await;
    assert_eq!((status, &details["of"], &details["name"]), (429, &json!("tool"), &json!("text")));
    assert_eq!(call("empty").await.0, 200, "the rate of another tool is its own");
    for _ in 0..2 {
        assert_eq!(call("stats").await.0, 200);
    }
    let shown = haft(&served.workspace, &["explain", "text"]).run().stdout;
    assert!(shown.contains("1/h") && shown.contains("100/day"), "{shown}");
}

/// A metrics key reads the metrics and nothing else.
#[tokio::test]
async fn a_metrics_key_reads_metrics_only() {
    let workspace = toolbox();
    let keys = [("me", Scope::Admin), ("prometheus", Scope::Metrics)];
    let (served, keys) = Served::with_keys(workspace, &keys);
    let key = &keys[1];
    assert_eq!(get_as(&served, key, "/metrics").await.status, 200);
    let ready = get_as(&served, key, "/readyz").await;
    assert!(ready.json()["reasons"].is_array(), "{}", ready.text);
    for path in ["/api/v1/tools", "/api/v1/log", "/api/v1/keys", "/api/v1/session", "/mcp", "/"] {
        let refused = get_as(&served, key, path).await;
        assert_eq!(refused.status, if path == "/" { 200 } else { 403 }, "{path}: {}", refused.text);
    }
    assert_eq!(call_as(&served, key).await.status, 403);
}

/// Invalid limits create no key.
#[tokio::test]
async fn invalid_limits_are_refused() {
    let served = Served::with_admin(toolbox());
    for (body, problem) in [
        (json!({"name": "a", "rate": "fast"}), "`fast` is not a rate"),
        (json!({"name": "a", "burst": 3}), "`burst` has no `rate`"),
        (json!({"name": "a", "quota": "5/h"}), "`5/h` is not a quota"),
        (json!({"name": "a", "expires": "soon"}), "`expires` is not a usable duration"),
        (json!({"name": "a", "tools": ["[x]"]}), "`[x]` of `tools` is not a pattern"),
        (json!({"name": "a", "scope": "admin", "tools": ["x"]}), "an admin key"),
        (json!({"name": "a", "scope": "metrics", "rate": "1/s"}), "a metrics key"),
    ] {
        let refused = served.post("/api/v1/keys", &body.to_string()).await;
        assert_eq!(refused.status, 422, "{body}: {}", refused.text);
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(problem), "{detail}");
    }
    assert_eq!(served.get("/api/v1/keys").await.json()["keys"].as_array().unwrap().len(), 1);
}
