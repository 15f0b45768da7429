//! `policy.rules` over the API: decisions, reasons, the log, `haft why` and `haft policy test`.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;

use crate::served::{Answer, Served, answer, haft, toolbox};

/// The toolbox with rules.
fn ruled(rules: &Value) -> Workspace {
    let workspace = toolbox();
    let policy = json!({"allowed_commands": ["cat"], "rules": rules});
    workspace.write("haft.yaml", format!("registry: {{dir: tools}}\npolicy: {policy}\n"));
    workspace
}

async fn call(served: &Served, tool: &str, arguments: Value) -> Answer {
    let body = json!({"arguments": arguments}).to_string();
    served.post(&format!("/api/v1/tools/{tool}/call"), &body).await
}

async fn call_as(served: &Served, key: &str, tool: &str, arguments: Value) -> Answer {
    let path = format!("/api/v1/tools/{tool}/call");
    let request = served.request_as(key, Method::POST, &path);
    let body = json!({"arguments": arguments}).to_string();
    answer(request.header("content-type", "application/json").body(body)).await
}

/// The first rule that matches decides. The caller is shown its reason, the log has its place and its values, and the
/// tool did not run.
#[tokio::test]
async fn the_first_rule_that_matches_decides() {
    let served = Served::open(ruled(&json!([
        {"name": "ada is fine", "match": {"tool": "greet", "when": "args.name == 'Ada'"}, "effect": "allow"},
        {"name": "no strangers", "match": {"tool": "gr*"}, "effect": "deny", "reason": "only Ada is greeted"},
        {"match": {"tool": "echo", "when": "has(args.to) && args.to.matches('@evil[.]com$')"}, "effect": "deny"},
        {"name": "careful", "match": {"tool": "echo", "when": "has(args.n) && args.n > 10"}, "effect": "ask", "reason": "large"},
    ])));
    assert_eq!(call(&served, "greet", json!({"name": "Ada"})).await.status, 200);
    let denied = call(&served, "greet", json!({"name": "Eve"})).await;
    assert_eq!(denied.status, 403, "{}", denied.text);
    let error = &denied.json()["error"];
    assert_eq!(error["code"], "Denied");
    assert_eq!(
        error["message"],
        "the call of `greet` is denied by the rule `no strangers`: only Ada is greeted"
    );
    assert_eq!(error["details"], json!({"rule": "no strangers"}));
    let unnamed = call(&served, "echo", json!({"to": "eve@evil.com"})).await;
    assert_eq!(unnamed.status, 403);
    assert_eq!(
        unnamed.json()["error"]["message"],
        "the call of `echo` is denied by the rule `rules[2]`"
    );
    let asks = call(&served, "echo", json!({"n": 11})).await;
    assert_eq!(asks.status, 403, "{}", asks.text);
    let message = asks.json()["error"]["message"].as_str().unwrap().to_owned();
    let expected =
        "the rule `careful` lets `echo` run only when a person agrees to the call: large";
    assert_eq!(message, expected);
    for (fine, arguments) in [("echo", json!({"n": 3})), ("echo", json!({"to": "ada@example.com"}))]
    {
        assert_eq!(call(&served, fine, arguments).await.status, 200);
    }
    // Arguments are validated first.
    assert_eq!(call(&served, "greet", json!({"name": 1})).await.status, 422);

    let log = served.log();
    let id = denied.json()["execution_id"].clone();
    let entry = log.iter().find(|entry| entry["execution_id"] == id).unwrap();
    let policy = &entry["policy"];
    assert_eq!((&policy["rule"], &policy["effect"]), (&json!("no strangers"), &json!("deny")));
    assert_eq!(policy["values"], json!({"tool.name": "greet"}));
    assert!(policy["file"].as_str().unwrap().ends_with("haft.yaml"), "{policy}");
    assert_eq!(policy["line"], 2);
    let allowed = log.iter().find(|entry| entry["input"] == json!({"name": "Ada"})).unwrap();
    let expected = json!({"tool.name": "greet", "args.name": "Ada"});
    assert_eq!(allowed["policy"]["values"], expected);
}

/// A rule that cannot be evaluated denies, with the cause.
#[tokio::test]
async fn a_rule_that_fails_denies() {
    let served = Served::open(ruled(&json!([
        {"name": "broken", "match": {"tool": "echo", "when": "args.size > 10"}, "effect": "allow"},
    ])));
    let denied = call(&served, "echo", json!({})).await;
    assert_eq!(denied.status, 403, "{}", denied.text);
    let message = denied.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the rule `broken`, which could not be evaluated"), "{message}");
    assert!(message.contains("size"), "{message}");
    assert_eq!(call(&served, "echo", json!({"size": 11})).await.status, 200);
}

/// Keys and scopes; secrets of the log stay masked; `approved: true` of an approver answers a rule that asks.
#[tokio::test]
async fn rules_know_the_key() {
    let workspace = ruled(&json!([
        {"match": {"scope": "admin"}, "effect": "allow"},
        {"name": "bots", "match": {"key": "bot*", "when": "caller.scope == 'call' && args.token != ''"},
         "effect": "deny", "reason": "bots do not echo"},
        {"name": "people", "match": {"scope": ["approve", "call"], "tool": "echo"}, "effect": "ask"},
    ]));
    let keys = [("boss", Scope::Admin), ("bot7", Scope::Call), ("ada", Scope::Approve)];
    let (served, keys) = Served::with_keys(workspace, &keys);
    let token = format!("ghp_{}", "a1B2".repeat(9));
    assert_eq!(call(&served, "echo", json!({"token": token})).await.status, 200);
    let denied = call_as(&served, &keys[1], "echo", json!({"token": token})).await;
    assert_eq!(denied.status, 403, "{}", denied.text);
    let asks = call_as(&served, &keys[2], "echo", json!({"token": token})).await;
    assert_eq!(asks.status, 403, "{}", asks.text);
    let request = served.request_as(&keys[2], Method::POST, "/api/v1/tools/echo/call");
    let body = json!({"arguments": {"token": token}, "approved": true}).to_string();
    let given = answer(request.header("content-type", "application/json").body(body)).await;
    assert_eq!(given.status, 200, "{}", given.text);

    let id = denied.json()["execution_id"].as_str().unwrap().to_owned();
    let why = served.get(&format!("/api/v1/log/{id}/why")).await.json();
    assert_eq!((&why["effect"], &why["decision"]["rule"]), (&json!("deny"), &json!("bots")));
    let values = &why["decision"]["values"];
    assert_eq!((&values["caller.key"], &values["caller.scope"]), (&json!("bot7"), &json!("call")));
    assert_ne!(values["args.token"], json!(token), "{values}");
    let refused =
        answer(served.request_as(&keys[1], Method::GET, &format!("/api/v1/log/{id}/why"))).await;
    assert_eq!(refused.status, 403);

    let shown = haft(&served.workspace, &["why", &id]).run();
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("denied by the rule `bots` at "), "{}", shown.stdout);
    assert!(shown.stdout.contains("haft.yaml:2"), "{}", shown.stdout);
    assert!(shown.stdout.contains("  caller.key = \"bot7\""), "{}", shown.stdout);
    assert!(!shown.stdout.contains(&token), "{}", shown.stdout);
}

/// `haft policy test` tries new rules on logged calls and lists what would change.
#[tokio::test]
async fn rules_are_tried_on_logged_calls() {
    let served = Served::open(ruled(&json!([
        {"name": "old", "match": {"tool": "echo", "when": "has(args.n) && args.n > 10"}, "effect": "deny"},
    ])));
    for arguments in [json!({"n": 1}), json!({"n": 6}), json!({"n": 11})] {
        call(&served, "echo", arguments).await;
    }
    call(&served, "greet", json!({"name": "Ada"})).await;
    call(&served, "greet", json!({})).await;
    let rules = json!([
        {"name": "new", "match": {"tool": "echo", "when": "has(args.n) && args.n > 5 && args.n < 10"}, "effect": "ask"},
        {"name": "profiled", "match": {"tool": "greet", "profile": "x"}, "effect": "deny"},
    ]);
    let policy = json!({"rules": rules});
    served.workspace.write("new.yaml", format!("registry: {{dir: tools}}\npolicy: {policy}\n"));
    let args = ["-c", "new.yaml", "--json", "policy", "test", "--since", "1h", "--dir", "logs"];
    let tried = haft(&served.workspace, &args).run();
    assert_eq!(tried.code, 0, "{}", tried.stderr);
    let report: Value = serde_json::from_str(&tried.stdout).unwrap();
    assert_eq!(report["calls"], 4, "{report}");
    let mut changes: Vec<(String, String)> = report["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["before"].to_string(), it["after"].to_string()))
        .collect();
    changes.sort();
    let expected = [("\"allow\"", "\"ask\""), ("\"allow\"", "null"), ("\"deny\"", "\"allow\"")];
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(before, after)| ((*before).to_owned(), (*after).to_owned()))
        .collect();
    assert_eq!(changes, expected, "{report}");
    let shown =
        haft(&served.workspace, &["-c", "new.yaml", "policy", "test", "--dir", "logs"]).run();
    assert!(shown.stdout.contains("allow -> ask, rule `new` at new.yaml:2"), "{}", shown.stdout);
    assert!(
        shown.stdout.contains("unknown, rule `profiled` depends on profile"),
        "{}",
        shown.stdout
    );
}

/// After untrusted and private results, tools that send data out ask, in that session only.
#[tokio::test]
async fn a_session_with_untrusted_and_private_data_asks_before_it_sends() {
    let workspace = toolbox();
    let labels = json!([
        {"name": "greet", "labels": ["untrusted"]},
        {"name": "fail", "labels": ["private"]},
        {"name": "echo", "labels": ["outbound"]},
    ]);
    workspace.write("haft.yaml", format!("registry: {{dir: tools}}\ntools: {labels}\n"));
    let served = Served::open(workspace);
    let call = async |tool: &str, session: &str| {
        let body = json!({"arguments": {"name": "x"}, "session": session}).to_string();
        let body = if tool == "greet" { body } else { body.replace("\"name\":\"x\"", "") };
        served.post(&format!("/api/v1/tools/{tool}/call"), &body).await
    };
    for tool in ["greet", "echo", "fail"] {
        assert_eq!(call(tool, "a").await.status, 200, "{tool}");
    }
    assert_eq!(call("greet", "b").await.status, 200);
    let asks = call("echo", "a").await;
    assert_eq!(asks.status, 403, "{}", asks.text);
    assert_eq!(asks.json()["error"]["details"], json!({"rule": "labels"}));
    assert_eq!(call("echo", "b").await.status, 200);
    let id = asks.json()["execution_id"].clone();
    let log = served.log();
    let entry = log.iter().find(|entry| entry["execution_id"] == id).unwrap();
    let values = json!({"untrusted": "greet", "private": "fail"});
    assert_eq!(entry["policy"]["values"], values);
}

/// Mistakes stop the start with file and line; types are checked against the schemas of local tools.
#[test]
fn mistakes_in_rules_are_reported_with_their_place() {
    let rules = r#"registry: {dir: tools}
policy:
  rules:
    - name: typo
      match: {tool: greet, when: "args.nme == 'x'"}
      effect: deny
    - match: {tool: greet, when: "args.name > 3"}
      effect: ask
    - match: {tool: greet, when: "args.name == 'x'", server: local}
      effect: allow
"#;
    let workspace = toolbox();
    workspace.write("haft.yaml", rules);
    let checked = haft(&workspace, &["check"]).run();
    assert_eq!(checked.code, 2, "{}{}", checked.stdout, checked.stderr);
    let mut seen = vec![workspace.stable(&checked.stderr)];
    for broken in [
        "policy: {rules: [{match: {tool: x, when: 'args.path ='}, effect: deny}]}\n",
        "policy: {rules: [{match: {tol: x}, effect: deny}]}\n",
        "policy: {rules: [{match: {tool: x}}]}\n",
        "policy: {rules: [{effect: forbid}]}\n",
        "policy: {rules: [{match: {scope: root}, effect: deny}]}\n",
        "policy: {rules: [{match: {tool: []}, effect: deny}]}\n",
        "policy: {rules: [{name: a, effect: deny}, {name: a, effect: deny}]}\n",
        "tools: [{name: echo, labels: [secret]}]\n",
    ] {
        workspace.write("haft.yaml", broken);
        let checked = haft(&workspace, &["check"]).run();
        assert_eq!(checked.code, 2, "{broken}: {}", checked.stdout);
        seen.push(format!("{broken}{}", workspace.stable(&checked.stderr)));
    }
    insta::assert_snapshot!(seen.join("\n"));
}
