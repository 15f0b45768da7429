//! The service under an operator: readiness, the registry's folder, the address, the service manager.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::fixture::Fixture;
use testkit::{DEADLINE, Workspace};

use crate::served::{SERVE, Served, answer, haft};

/// A program that waits while the file `hold` is there, then runs a server with one tool.
fn held() -> Workspace {
    let scenario = json!({"tools": [{"name": "one", "description": "Looks up the weather.", "behaves": "text"}]});
    let args: Vec<String> =
        Fixture::stdio_args(&scenario).iter().map(|arg| format!("'{arg}'")).collect();
    let script = format!(
        "while [ -e hold ]; do sleep 0.05; done\nexec '{}' {}\n",
        Fixture::path().display(),
        args.join(" ")
    );
    let config = "servers: {late: {command: sh, args: [late.sh], connect_timeout: 10m}}\n";
    Workspace::with(&[("haft.yaml", config), ("late.sh", &script), ("hold", "")])
}

/// Waits until the service is ready.
async fn ready(served: &Served) {
    let waiting = async {
        while served.get("/readyz").await.json()["status"] != "ready" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("the service is ready");
}

/// After SIGTERM, `/readyz` answers 503 for `api.drain_delay` while requests are still served. A second signal ends
/// the delay.
#[tokio::test]
async fn a_draining_service_takes_requests_and_is_not_ready() {
    let config = "api: {drain_delay: 10m}\nbuiltin: {enabled: true}\n";
    let mut served = Served::open(Workspace::with(&[("haft.yaml", config)]));
    ready(&served).await;
    served.terminate();
    let draining = async {
        while served.get("/readyz").await.status == 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, draining).await.expect("the service drains");
    let readiness = served.get("/readyz").await;
    assert_eq!((readiness.status, readiness.json()["status"].as_str()), (503, Some("draining")));
    assert_eq!(served.get("/api/v1/tools").await.status, 200);
    served.terminate();
    assert_eq!(served.ended().code, 0);
}

/// The service is starting until each server was tried once. A search names the servers it could not include.
#[tokio::test]
async fn readiness_waits_until_each_server_was_tried() {
    let served = Served::open(held());
    let starting = served.get("/readyz").await;
    assert_eq!((starting.status, starting.json()["status"].as_str()), (503, Some("starting")));
    let reasons = json!([{"what": "server:late", "why": "it is being connected"}]);
    assert_eq!(starting.json()["reasons"], reasons);
    let search = "/api/v1/tools/search?q=look%20up%20the%20weather";
    assert_eq!(served.get(search).await.json()["missing_servers"], json!(["late"]));
    fs::remove_file(served.workspace.path().join("hold")).unwrap();
    ready(&served).await;
    let found = served.get(search).await.json();
    assert_eq!((&found["tools"][0]["tool"], found.get("missing_servers")), (&json!("one"), None));
}

/// A service offers what an earlier run saw of a server that is still being connected, and reports it.
#[tokio::test]
async fn a_service_offers_known_tools() {
    let workspace = held();
    fs::remove_file(workspace.path().join("hold")).unwrap();
    assert_eq!(haft(&workspace, &["call", "one"]).run().code, 0);
    workspace.write("hold", "");
    let served = Served::open(workspace);
    let found = served.get("/api/v1/tools/search?q=look%20up%20the%20weather").await.json();
    assert_eq!((&found["tools"][0]["tool"], found.get("missing_servers")), (&json!("one"), None));
    let tool = served.get("/api/v1/tools/one").await.json();
    assert_eq!(tool["cached"], true, "{tool}");
    let late = served.get("/api/v1/servers/late").await.json();
    assert_eq!((&late["state"], &late["cached"]), (&json!("connecting"), &json!(true)));
    fs::remove_file(served.workspace.path().join("hold")).unwrap();
    ready(&served).await;
    assert_eq!(served.get("/api/v1/tools/one").await.json().get("cached"), None);
}

/// A broken entry disables only itself: the API shows its state, the reason and the remedy.
#[tokio::test]
async fn a_broken_entry_is_a_misconfigured_server() {
    let config = "servers: {bad: {command: x, env: {TOKEN: '${NOT_SET_ANYWHERE}'}}}\n";
    let served = Served::open(Workspace::with(&[("haft.yaml", config)]));
    let list = served.get("/api/v1/servers").await.json();
    let bad = &list["servers"][0];
    assert_eq!((&bad["name"], &bad["state"]), (&json!("bad"), &json!("misconfigured")));
    let text = |key: &str| bad[key].as_str().unwrap_or_default().to_owned();
    assert!(text("reason").contains("'NOT_SET_ANYWHERE' not found"), "{bad}");
    assert!(text("remedy").contains("${NOT_SET_ANYWHERE:-value}"), "{bad}");
    assert_eq!(served.get("/readyz").await.json()["status"], "degraded");
    let metrics = served.get("/metrics").await.text;
    assert!(metrics.contains("haft_server_state{server=\"bad\",state=\"misconfigured\"} 1"));
    // An edit that breaks another entry is refused as before, and the state before stays.
    let broken =
        "servers: {bad: {command: x, env: {TOKEN: '${NOT_SET_ANYWHERE}'}}, worse: {comand: x}}\n";
    served.workspace.write("haft.yaml", broken);
    let status = eventually_status(&served, "configuration").await;
    assert!(status.contains("haft.yaml:1:"), "{status}");
    let list = served.get("/api/v1/servers").await.json();
    assert_eq!(list["servers"].as_array().unwrap().len(), 1, "{list}");
    drop(served);
    for (config, code) in [
        ("servers: {bad: {required: true, command: x, env: {TOKEN: '${NOT_SET_ANYWHERE}'}}}\n", 2),
        ("log: {dir: '${NOT_SET_ANYWHERE}'}\n", 2),
        (
            "myai: {toolbox: {mcps: [{name: a, mode: strict, url: 'http://${NOT_SET_ANYWHERE}'}]}}\n",
            2,
        ),
    ] {
        let finished = haft(&Workspace::with(&[("haft.yaml", config)]), &SERVE).run();
        assert_eq!(finished.code, code, "{config}: {}", finished.stderr);
    }
}

/// The reason that `/readyz` gives for a part, once there is one.
async fn eventually_status(served: &Served, part: &str) -> String {
    let waiting = async {
        loop {
            let ready = served.get("/readyz").await.json();
            let reasons = ready["reasons"].as_array().cloned().unwrap_or_default();
            if let Some(reason) = reasons.iter().find(|reason| reason["what"] == part) {
                return reason["why"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("the part has a reason")
}

/// A registry's folder that is missing is created, and can be used at once.
#[tokio::test]
async fn a_missing_registry_is_created() {
    let served = Served::open(Workspace::with(&[("haft.yaml", "registry: {dir: new/tools}\n")]));
    assert_eq!(served.workspace.read("new/tools/tools.json").unwrap(), "{\"tools\": []}\n");
    let file = fs::metadata(served.workspace.path().join("new/tools/mcp.json")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600, "it may hold secrets later");
    // Also the first lines have their time.
    let log = served.stderr();
    assert!(log.contains("created the registry's folder"), "{log}");
    assert!(log.lines().all(|line| line.starts_with("20")), "{log}");
    let entry =
        json!({"mcp_servers": {"far": {"url": "http://127.0.0.1:9/mcp", "disabled": true}}});
    served.workspace.write("new/tools/mcp.json", entry.to_string());
    let listed = async {
        while served.get("/api/v1/servers").await.json()["servers"][0]["name"] != "far" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, listed).await.expect("the registry is followed");
    drop(served);
    // So is an empty one. A folder with other files may be a wrong path.
    let workspace = Workspace::with(&[("haft.yaml", "registry: {dir: tools}\n")]);
    std::fs::create_dir(workspace.path().join("tools")).unwrap();
    let served = Served::open(workspace);
    assert_eq!(served.workspace.read("tools/tools.json").unwrap(), "{\"tools\": []}\n");
    drop(served);
    let files = [("haft.yaml", "registry: {dir: tools}\n"), ("tools/a.txt", "")];
    assert_eq!(haft(&Workspace::with(&files), &SERVE).run().code, 2);
    // Other commands create nothing, and an invalid configuration neither.
    let workspace =
        Workspace::with(&[("haft.yaml", "registry: {dir: tools}\napi: {listen: nowhere}\n")]);
    assert_eq!(haft(&workspace, &SERVE).run().code, 2);
    assert_eq!(haft(&workspace, &["check"]).run().code, 2);
    assert!(!workspace.path().join("tools").exists());
}

/// The refusal of an unknown name names the setting.
#[tokio::test]
async fn an_unknown_host_names_the_setting() {
    let served = Served::open(Workspace::with(&[("haft.yaml", "{}\n")]));
    let request =
        served.request(reqwest::Method::GET, "/healthz").header("host", "haft.example.com");
    let refused = answer(request).await;
    assert_eq!(refused.status, 403);
    let remedy = refused.json()["remedy"].as_str().unwrap().to_owned();
    assert!(remedy.contains("`api.allowed_hosts`"), "{remedy}");
}

/// The banner shows the address that is bound, beside one that can be opened here.
#[test]
fn the_banner_shows_the_real_address() {
    let workspace = Workspace::with(&[("haft.yaml", "{}\n")]);
    crate::served::create_key(&workspace, "me", haft_server::keys::Scope::Admin);
    let running = haft(&workspace, &["serve", "--listen", "0.0.0.0:0"]).start();
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.starts_with("keys")) {
        lines.push(running.line());
    }
    let line = |what: &str| lines.iter().find(|line| line.starts_with(what)).unwrap().clone();
    assert!(line("api").contains("http://127.0.0.1:"), "{lines:?}");
    assert!(line("listening").contains(" 0.0.0.0:"), "{lines:?}");
}

/// The example of the banner is a call that can succeed: made-up arguments are for one's own tools.
#[test]
fn the_banner_has_an_example_that_works() {
    let needs =
        json!({"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]});
    let tools = json!([{"name": "needs", "inputSchema": needs}, {"name": "plain"}]);
    let args = Fixture::stdio_args(&json!({"tools": tools}));
    let server = json!({"command": Fixture::path(), "args": args, "required": true});
    let config = json!({"servers": {"far": server}}).to_string();
    let workspace = Workspace::with(&[("haft.json", &config)]);
    let running = haft(&workspace, &["serve", "--listen", "127.0.0.1:0"]).start();
    let mut line = running.line();
    while !line.starts_with("try") {
        line = running.line();
    }
    assert!(line.contains("/tools/plain/call"), "{line}");
}

/// The service manager learns that the service takes requests, and that it ends.
#[tokio::test]
async fn the_service_manager_is_notified() {
    let workspace = Workspace::with(&[("haft.yaml", "{}\n")]);
    let path = workspace.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let program = haft(&workspace, &SERVE).env("NOTIFY_SOCKET", path.to_str().unwrap());
    let served = Served::run(workspace, None, program);
    let received = || {
        let mut bytes = [0; 64];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    };
    assert_eq!(received(), "READY=1");
    assert_eq!(served.get("/healthz").await.status, 200);
    assert_eq!(served.end().code, 0);
    assert_eq!(received(), "STOPPING=1");
}

/// Calls are counted by tool, server and outcome, and a server keeps its series whatever its state.
#[tokio::test]
async fn metrics_name_tool_and_server() {
    let workspace = held();
    let served = Served::open(workspace);
    let series = || async {
        let text = served.get("/metrics").await.text;
        text.lines()
            .filter(|line| line.starts_with("haft_server"))
            .map(ToOwned::to_owned)
            .collect::<Vec<_>>()
    };
    let names = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    let before = series().await;
    assert!(before.contains(&"haft_server_up{server=\"late\"} 0".to_owned()), "{before:?}");
    fs::remove_file(served.workspace.path().join("hold")).unwrap();
    ready(&served).await;
    let after = series().await;
    assert!(after.contains(&"haft_server_up{server=\"late\"} 1".to_owned()), "{after:?}");
    assert_eq!(names(&before), names(&after));
    let called: Value = served.post("/api/v1/tools/one/call", "{}").await.json();
    assert_eq!(called["status"], "success", "{called}");
    let wanted = "haft_tool_calls_total{tool_name=\"one\",server=\"late\",outcome=\"success\"} 1";
    let text = served.get("/metrics").await.text;
    assert!(text.lines().any(|line| line == wanted), "{text}");
}

/// The unit of systemd waits for the notification, restarts after an unreachable server, and finds `uvx`.
#[test]
fn the_unit_restarts_is_notified_and_finds_programs() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/haft.service");
    let unit = fs::read_to_string(unit).unwrap();
    let value = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(&format!("{key}=")));
        line.unwrap_or_default().to_owned()
    };
    assert_eq!((value("Type").as_str(), value("Restart").as_str()), ("notify", "on-failure"));
    assert_eq!(value("RestartPreventExitStatus"), "2 4");
    assert_eq!(value("StartLimitIntervalSec"), "0");
    assert!(value("Environment").contains("/var/lib/haft/.local/bin"), "{unit}");
}
