//! The table of replicas, `haft shared`, and configurations and databases that cannot be used.

use serde_json::Value;
use testkit::Workspace;
use testkit::postgres::{PASSWORD, TestDatabase, database};

use crate::faults::until;
use crate::served::{SERVE, haft};
use crate::shared_support::{config, replica, replica_in, tool, until_greets, workspace};

fn shared(workspace: &Workspace, args: &[&str]) -> testkit::Finished {
    let args: Vec<&str> = ["shared"].iter().chain(args).copied().collect();
    haft(workspace, &args).run()
}

fn status(workspace: &Workspace) -> Value {
    let finished = haft(workspace, &["--json", "shared", "status"]).run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// Replaces the parts that differ between runs.
fn stable(database: &TestDatabase, text: &str) -> String {
    let text = text.replace(&database.port().to_string(), "PORT");
    text.replace(&database.name, "DATABASE").replace(PASSWORD, "PASSWORD")
}

/// Replicas appear with number, address, revision and configuration, and leave when they end.
#[tokio::test]
async fn replicas_join_and_leave_the_table() {
    let Some(test) = database() else { return };
    let (one, two) = (replica(&test.url, "one"), replica(&test.url, "two"));
    until("both use the registry", async || {
        let status = status(&one.workspace);
        let replicas = status["replicas"].as_array()?.clone();
        let uses = |it: &Value| it["revision"] == "0-00000000" && it["alive"] == true;
        (replicas.len() == 2 && replicas.iter().all(uses)).then_some(())
    })
    .await;
    let listed = status(&two.workspace);
    assert_eq!(listed["replicas"][0]["address"], one.url);
    assert_eq!(listed["replicas"][1]["address"], two.url);
    assert_eq!(listed["replicas"][0]["config"], listed["replicas"][1]["config"]);
    assert!(!listed["url"].as_str().unwrap().contains(PASSWORD), "{listed}");
    let workspace = workspace(&test.url);
    assert_eq!(one.end().code, 0);
    assert_eq!(status(&workspace)["replicas"].as_array().unwrap().len(), 1);
}

/// A replica with other files is named in the log and in the status.
#[tokio::test]
async fn another_configuration_is_reported() {
    let Some(test) = database() else { return };
    let one = replica(&test.url, "one");
    let other = workspace(&test.url);
    other.write("haft.yaml", config(&test.url, "defaults: {max_concurrent: 7}\n"));
    let _two = replica_in(other, "two");
    until("it is logged", async || {
        one.stderr().contains("replica 2 has another configuration").then_some(())
    })
    .await;
    let shown = shared(&one.workspace, &["status"]).stdout;
    assert!(shown.contains("(differs)"), "{shown}");
}

/// Two replicas with one address are a problem that both see.
#[tokio::test]
async fn one_address_for_two_replicas_is_reported() {
    let Some(test) = database() else { return };
    let url = format!("{{url: \"{}\", advertise: \"http://127.0.0.1:9\"}}", test.url);
    let yaml = format!("shared: {url}\nregistry: {{store: shared, dir: tools}}\n");
    let (first, second) = (workspace(&test.url), workspace(&test.url));
    first.write("haft.yaml", &yaml);
    second.write("haft.yaml", &yaml);
    let (one, _two) = (replica_in(first, "one"), replica_in(second, "two"));
    until("it is logged", async || one.stderr().contains("has the same address").then_some(()))
        .await;
}

/// Files go into the database and back, unmodified.
#[tokio::test]
async fn a_registry_is_imported_and_exported() {
    let Some(test) = database() else { return };
    let workspace = workspace(&test.url);
    let tools = format!("{{\"tools\": [\n  {}\n]}}\n", tool("greet", "greet.py"));
    workspace.write("tools/tools.json", &tools);
    workspace.write("tools/mcp.json", "{\"mcp_servers\": {}}\n");
    let missing = shared(&workspace, &["import"]);
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    assert!(missing.stderr.contains("haft shared migrate"), "{}", missing.stderr);
    let migrated = shared(&workspace, &["migrate"]);
    assert_eq!(migrated.stdout, "migrated the tables from version 0 to 2\n");
    let again = shared(&workspace, &["migrate"]);
    assert_eq!(again.stdout, "the tables are at version 2 already\n");
    let imported = shared(&workspace, &["import"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    let exported = shared(&workspace, &["export", "--dir", "saved"]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    assert_eq!(workspace.read("saved/tools.json").unwrap(), tools);
    let twice = shared(&workspace, &["export", "--dir", "saved"]);
    assert_eq!(twice.code, 2, "{}", twice.stderr);

    // What was changed since is not replaced by accident.
    workspace.write("tools/tools.json", "{\"tools\": []}\n");
    let refused = shared(&workspace, &["import"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--replace"), "{}", refused.stderr);
    assert_eq!(shared(&workspace, &["import", "--replace"]).code, 0);
    // A registry that no replica could use is not written.
    workspace.write("tools/tools.json", "{\"tools\": [{\"name\": \"x\"}]}\n");
    assert_eq!(shared(&workspace, &["import", "--replace"]).code, 2);
    assert_eq!(test.sql("select tools from haft.registry"), "{\"tools\": []}");
    let saved = workspace.path().join("saved").display().to_string();
    assert_eq!(shared(&workspace, &["import", "--replace", "--dir", &saved]).code, 0);
    // Commands use the registry without a running service too.
    let called = haft(&workspace, &["call", "greet"]).run();
    assert_eq!((called.code, called.stdout.contains("Hello!")), (0, true), "{}", called.stderr);
    until_greets(&replica_in(workspace, "one"), "greet", "Hello!").await;
}

/// A configuration that cannot hold for several replicas is refused, each problem with its remedy.
#[test]
fn settings_that_cannot_hold_are_refused() {
    let check = |text: &str| {
        let workspace = Workspace::with(&[("haft.yaml", text)]);
        let finished = haft(&workspace, &["check"]).run();
        workspace.stable(&finished.stderr)
    };
    let texts = [
        "shared: {}",
        "shared: {url: \"http://me:s3cret@host/db\"}",
        "shared: {url: \"postgres://haft@db/haft\"}\nregistry: {dir: tools}",
        "registry: {store: shared, dir: tools}",
        "shared: {url: \"postgres://haft@db/haft\"}\nregistry: {store: shared}",
        "shared: {url: \"postgres://haft@db/haft\", advertise: \"10.0.0.7\"}",
        "shared: {url: \"postgres://haft@db/haft\"}\npolicy: {allowed_scripts: upload}",
        "shared: {url: \"postgres://haft@db/haft\"}\nservers: {a: {url: \"https://a.example.com\", oauth: {}}}",
        "shared: {url: \"postgres://haft@db/haft\"}\ntools: [{name: once, parallel_capable: false}]",
    ];
    let report: Vec<String> = texts.iter().map(|text| format!("{text}\n{}", check(text))).collect();
    insta::assert_snapshot!(report.join("\n"));
}

/// A database that cannot be used ends the start with cause and remedy.
#[test]
fn a_database_that_cannot_be_used_ends_the_start() {
    let Some(test) = database() else { return };
    let mut report = Vec::new();
    let mut start = |what: &str, text: String| {
        let workspace = workspace(&test.url);
        workspace.write("haft.yaml", text);
        let finished = haft(&workspace, &SERVE).run();
        assert!(!finished.stderr.contains(PASSWORD), "{}", finished.stderr);
        let stderr = workspace.stable(&stable(&test, &finished.stderr));
        report.push(format!("# {what}: exit code {}\n{stderr}", finished.code));
    };
    start("wrong password", config(&test.url.replace(PASSWORD, "wrong"), ""));
    start("unknown database", config(&test.url_of("none"), ""));
    start("unreadable url", config("postgres://haft@127.0.0.1:port/haft", ""));
    start("unoffered mode", config(&format!("{}?sslmode=prefer", test.url), ""));
    let manual = format!(
        "shared: {{url: \"{}\", migrate: manual}}\nregistry: {{store: shared, dir: tools}}\n",
        test.url
    );
    start("no tables", manual);
    test.sql(&format!("alter database {} owner to postgres", test.name));
    start("no privileges", config(&test.url, ""));
    test.sql(&format!("alter database {0} owner to {0}", test.name));
    let everywhere = config(&test.url, "api: {listen: \"0.0.0.0:0\"}\n");
    let workspace = workspace(&test.url);
    workspace.write("haft.yaml", everywhere);
    let finished = haft(&workspace, &["serve"]).run();
    let port = regex::Regex::new(r"0\.0\.0\.0:\d+").unwrap();
    let stderr = port.replace(&finished.stderr, "0.0.0.0:ANY");
    let stderr = stable(&test, &stderr);
    report.push(format!(
        "# every address: exit code {}\n{}",
        finished.code,
        workspace.stable(&stderr)
    ));
    insta::assert_snapshot!(report.join("\n"));
}
