//! The policy for registrations: it decides on the loader's result, never on its own parse.

use std::fs;

use haft::Config;
use haft::live::{Action, Live, RegistryDocument, RegistryEditError};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::live_support::{Place, echo, edit, end, made, raw, refused};

/// A toolbox with a registry, started with these variables in its environment.
async fn start(place: &Place, variables: &[(&str, &str)]) -> Live {
    let mut options = place.options();
    for (name, value) in variables {
        options.environment.insert((*name).to_owned(), (*value).to_owned());
    }
    let config = Config::load(&options).unwrap_or_else(|error| panic!("{error}"));
    let runtime = haft::Runtime::start(config).await.unwrap();
    Live::follow(runtime, options)
}

fn put(document: RegistryDocument, name: &str, text: &str) -> haft::live::Edit {
    edit(document, name, Action::Put(RawValue::from_string(text.to_owned()).unwrap()))
}

async fn assert_not_allowed(live: &Live, document: RegistryDocument, name: &str, entry: &str) {
    let error = refused(live, put(document, name, entry)).await;
    assert!(matches!(error, RegistryEditError::NotAllowed { .. }), "{entry}: {error:?}");
    assert!(!error.remedy().to_string().is_empty(), "{entry}");
}

/// A number that one parser reads and another refuses does not switch the policy off.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_beyond_all_others_hides_nothing() {
    let place = Place::new("policy: {allowed_commands: [cat]}");
    fs::write(place.path("tools/x.env"), "A=1").unwrap();
    let live = start(&place, &[("SECRET", "value")]).await;
    let url = "\"url\": \"http://localhost:9/mcp\", \"start\": \"lazy\"";
    for entry in [
        format!(r#"{{{url}, "headers": {{"X": "${{SECRET}}"}}, "config": {{"n": 1e999}}}}"#),
        format!(r#"{{{url}, "config": {{"n": -1e999, "t": "${{SECRET}}"}}}}"#),
        r#"{"command": "cat", "start": "lazy", "cwd": "/tmp", "config": {"n": 1e999}}"#.to_owned(),
        r#"{"command": "cat", "start": "lazy", "env_file": "x.env", "config": {"n": 1e999}}"#
            .to_owned(),
        r#"{"command": "cat", "start": "lazy", "envFile": "x.env", "config": {"n": 1e999}}"#
            .to_owned(),
    ] {
        assert_not_allowed(&live, RegistryDocument::Servers, "s", &entry).await;
    }
    let tool = r#"{"name": "t", "type": "local", "description": "d", "input_schema": {"x-n": 1e999},
                   "config": {"script_path": "echo.py", "args": ["${SECRET}"]}}"#;
    assert_not_allowed(&live, RegistryDocument::Tools, "t", tool).await;
    assert_eq!(live.runtime().config().servers.len(), 0);
    end(live).await;
}

/// A default that is not in use now is in use after the next start, so its variables count too. A literal
/// reference is text.
#[tokio::test(flavor = "multi_thread")]
async fn variables_of_defaults_count_and_literal_references_do_not() {
    let place = Place::new("policy: {allowed_variables: [FINE]}");
    let live = start(&place, &[("SECRET", "value"), ("FINE", "fine")]).await;
    let entry = |header: &str| {
        let entry =
            json!({"url": "http://localhost:9/mcp", "start": "lazy", "headers": {"A": header}});
        entry.to_string()
    };
    for header in ["${FINE:-${SECRET}}", "${FINE:-a${env:SECRET:-b}}", "${FINE:-${UNSET}}"] {
        assert_not_allowed(&live, RegistryDocument::Servers, "s", &entry(header)).await;
    }
    let settings = json!({"name": "t", "type": "mcp", "config": {"server": "${FINE:-${SECRET}}"}});
    let server = json!({"url": "http://localhost:9/mcp", "start": "lazy"});
    made(&live, put(RegistryDocument::Servers, "fine", &server.to_string())).await;
    assert_not_allowed(&live, RegistryDocument::Tools, "t", &settings.to_string()).await;
    made(&live, put(RegistryDocument::Servers, "s", &entry("${FINE:-x} $${SECRET}"))).await;
    end(live).await;
}

/// An entry that is refused for another reason does not disclose the value of a variable either.
#[tokio::test(flavor = "multi_thread")]
async fn no_refusal_tells_the_value_of_a_variable() {
    let place = Place::new("");
    let live = start(&place, &[("SECRET", "s3cr3t-value")]).await;
    let url = "http://localhost:9/mcp";
    for (document, entry) in [
        (
            RegistryDocument::Tools,
            json!({"name": "e", "type": "mcp", "config": {"server": "${SECRET}"}}),
        ),
        (
            RegistryDocument::Tools,
            json!({"name": "e", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "../${SECRET}"}}),
        ),
        (
            RegistryDocument::Tools,
            json!({"name": "e", "type": "local", "input_schema": {"type": "object"}, "config": {"runtime": "${SECRET}"}}),
        ),
        (RegistryDocument::Servers, json!({"url": "${SECRET}"})),
        (RegistryDocument::Servers, json!({"url": url, "mode": "${SECRET}"})),
        (RegistryDocument::Servers, json!({"url": url, "request_timeout": "x${SECRET}"})),
        (RegistryDocument::Servers, json!({"command": "x", "env_file": "/${SECRET}"})),
        (RegistryDocument::Servers, json!({"command": "x", "encoding": "${SECRET}"})),
        (RegistryDocument::Servers, json!({"url": url, "unknown": "${SECRET}"})),
    ] {
        let error = refused(&live, put(document, "e", &entry.to_string())).await;
        let text = format!("{error} {} {error:?}", error.remedy());
        assert!(!text.contains("s3cr3t-value"), "{entry}: {text}");
    }
    end(live).await;
}

/// A variable that overrides parts of a server puts its value into the entry, wherever that leads now.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_a_variable_overrides_needs_that_variable() {
    let variable = "HAFT__SERVERS__S__HEADERS__Authorization";
    let entry = r#"{"url": "http://localhost:9/mcp", "start": "lazy"}"#;
    let put = || put(RegistryDocument::Servers, "s", entry);

    let place = Place::new("");
    fs::write(place.servers_file(), format!(r#"{{"mcp_servers": {{"s": {entry}}}}}"#)).unwrap();
    let live = start(&place, &[(variable, "Bearer secret")]).await;
    let error = refused(&live, put()).await;
    assert!(matches!(error, RegistryEditError::NotAllowed { .. }), "{error:?}");
    assert!(error.to_string().contains(variable), "{error}");
    end(live).await;

    fs::write(
        place.path("haft.yaml"),
        format!("registry: {{dir: tools}}\npolicy: {{allowed_variables: [{variable}]}}"),
    )
    .unwrap();
    let live = start(&place, &[(variable, "Bearer secret")]).await;
    made(&live, put()).await;
    end(live).await;
}

/// Without a line in `policy.allowed_env` an entry sets no variable; with one, exactly those.
#[tokio::test(flavor = "multi_thread")]
async fn environment_variables_need_the_operators_permission() {
    let entry = |name: &str| {
        let entry = json!({"command": "cat", "start": "lazy", "env": {name: "x"}});
        entry.to_string()
    };
    let place = Place::new("policy: {allowed_commands: [cat]}");
    let live = place.start().await;
    for name in [
        "LUA_INIT",
        "GOFLAGS",
        "DOTNET_STARTUP_HOOKS",
        "HTTPS_PROXY",
        "SSL_CERT_FILE",
        "PATH",
        "LD_PRELOAD",
        "BASH_FUNC_ls%%",
        "npm_Config_registry",
        "TOKEN",
    ] {
        assert_not_allowed(&live, RegistryDocument::Servers, "s", &entry(name)).await;
    }
    end(live).await;

    let place = Place::new("policy: {allowed_commands: [cat], allowed_env: [TOKEN, ACME_*]}");
    let live = place.start().await;
    for name in ["TOKENS", "token", "ACM", "ACME_X%%", "MY_ACME_X"] {
        assert_not_allowed(&live, RegistryDocument::Servers, "s", &entry(name)).await;
    }
    for name in ["TOKEN", "ACME_", "ACME_REGION"] {
        made(&live, put(RegistryDocument::Servers, "s", &entry(name))).await;
    }
    end(live).await;
}

/// Installed packages and hidden folders beside the registry's scripts are not tools.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_of_packages_and_hidden_folders_are_refused() {
    let place = Place::new("policy: {allowed_commands: ['bash *.sh']}");
    let live = place.start().await;
    for script in [
        "venv/lib/python3.12/site-packages/pip/__main__.py",
        "venv/Lib/Site-Packages/x.py",
        "node_modules/x/cli.py",
        ".venv/bin/activate_this.py",
        "sub/.hidden.py",
        "./.x/y.py",
    ] {
        let mut entry = echo("t");
        entry["config"] = json!({"script_path": script});
        assert_not_allowed(&live, RegistryDocument::Tools, "t", &entry.to_string()).await;
        entry["config"] = json!({"script_path": script, "runtime": "command"});
        assert_not_allowed(&live, RegistryDocument::Tools, "t", &entry.to_string()).await;
    }
    let mut entry = echo("t");
    entry["config"] = json!({"script_path": ".git/x.sh", "command": ["bash"]});
    assert_not_allowed(&live, RegistryDocument::Tools, "t", &entry.to_string()).await;
    std::fs::create_dir(place.path("tools/sub")).unwrap();
    std::fs::copy(place.path("tools/echo.py"), place.path("tools/sub/site-packages.py")).unwrap();
    for script in ["echo.py", "./echo.py", "sub/site-packages.py"] {
        entry["config"] = json!({"script_path": script});
        made(&live, edit(RegistryDocument::Tools, "t", Action::Put(raw(&entry)))).await;
    }
    end(live).await;
}

/// `*` stands for a plain name: no version, address, alias, path or second word fits it.
#[tokio::test(flavor = "multi_thread")]
async fn a_gap_in_an_allowed_command_is_a_plain_name() {
    let place = Place::new(
        "policy: {allowed_commands: ['npx -y @scope/*', 'uvx mcp-server-*', 'npx -y @pinned/*@1.2.*']}",
    );
    let live = place.start().await;
    let entry = |command: &[&str]| {
        json!({"command": command[0], "args": command[1..], "disabled": true}).to_string()
    };
    for command in [
        &["npx", "-y", "@scope/x@https://evil/x.tgz"][..],
        &["npx", "-y", "@scope/x@npm:evil"],
        &["npx", "-y", "@scope/x@file:../evil"],
        &["npx", "-y", "@scope/x@1.0.0"],
        &["npx", "-y", "@scope/x y"],
        &["npx", "-y", "@scope/../x"],
        &["npx", "-y", "@scope/x", "y"],
        &["uvx", "mcp-server-x@git+https://evil/x"],
        &["uvx", "mcp-server-x[evil]"],
        &["npx", "-y", "@pinned/x@1.2.3@evil"],
    ] {
        assert_not_allowed(&live, RegistryDocument::Servers, "s", &entry(command)).await;
    }
    for command in [
        &["npx", "-y", "@scope/server-x_1"][..],
        &["uvx", "mcp-server-time"],
        &["npx", "-y", "@pinned/x@1.2.3"],
    ] {
        made(&live, put(RegistryDocument::Servers, "s", &entry(command))).await;
    }
    end(live).await;
}

/// A JSON text. Written by hand: a serializer would leave out what parsers disagree about.
fn json_text() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec![
        "cat",
        "sh",
        "e",
        "local",
        "mcp",
        "http",
        "command",
        "python",
        "all",
        "lazy",
        "http://localhost:9/mcp",
        "echo.py",
        ".venv/x.py",
        "/tmp",
        "${SECRET}",
        "${env:SECRET}",
        "x${FINE:-${SECRET}}",
        "${FINE}",
        "$${SECRET}",
        "\\u0024{SECRET}",
        "${SECRET:-x}",
    ]);
    let leaf = prop_oneof![
        6 => text.prop_map(|text| format!("\"{text}\"")),
        2 => prop::sample::select(vec!["1e999", "-1e999", "1E+400", "0", "1.5", "123456789012345678901234567890"])
            .prop_map(ToOwned::to_owned),
        1 => prop::sample::select(vec!["true", "false", "null"]).prop_map(ToOwned::to_owned),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop::sample::select(vec![
            "FINE_A",
            "LD_PRELOAD",
            "A",
            "n",
            "server",
            "script_path",
            "command",
            "args",
            "entrypoint",
            "runtime",
            "type",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((key, inner), 0..4).prop_map(object),
        ]
    })
}

fn object(members: Vec<(&str, String)>) -> String {
    let members = members.into_iter().map(|(key, value)| format!("\"{key}\":{value}"));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// An entry that is mostly right, so that many are loaded, with anything in it.
fn entry() -> impl Strategy<Value = String> {
    let keys = vec![
        "url",
        "command",
        "args",
        "cwd",
        "env",
        "env_file",
        "envFile",
        "headers",
        "config",
        "inherit_env",
        "transport",
        "description",
        "disabled",
        "name",
        "type",
        "input_schema",
        "function",
    ];
    let bases = prop::sample::select(vec![
        vec![("url", "\"http://localhost:9/mcp\"")],
        vec![("command", "\"cat\"")],
        vec![("name", "\"e\""), ("type", "\"local\""), ("config", "{\"script_path\":\"echo.py\"}")],
        vec![("name", "\"e\""), ("type", "\"local\""), ("config", "{\"command\":[\"cat\"]}")],
        vec![("name", "\"e\""), ("type", "\"mcp\"")],
        vec![],
    ]);
    let free = prop::collection::vec((prop::sample::select(keys), json_text()), 0..3);
    let likely = prop::collection::vec(likely_member(), 0..3);
    (bases, free, likely, any::<bool>()).prop_map(|(base, free, likely, is_wild)| {
        let mut members: Vec<(&str, String)> =
            base.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
        members.extend(likely);
        if is_wild {
            members.extend(free);
        }
        members.dedup_by_key(|(key, _)| *key);
        object(members)
    })
}

/// A member with a value of the right kind.
fn likely_member() -> impl Strategy<Value = (&'static str, String)> {
    let text =
        prop::sample::select(vec!["${SECRET}", "${FINE}", "$${SECRET}", "${FINE:-${SECRET}}", "x"]);
    let key = prop::sample::select(vec![
        "headers",
        "env",
        "args",
        "config",
        "cwd",
        "env_file",
        "description",
    ]);
    (key, text, any::<bool>()).prop_map(|(key, text, is_beyond)| {
        let value = match key {
            "headers" => format!("{{\"X\":\"{text}\"}}"),
            "env" => format!("{{\"FINE_A\":\"{text}\"}}"),
            "args" => format!("[\"{text}\"]"),
            "config" if is_beyond => format!("{{\"n\":1e999,\"t\":\"{text}\"}}"),
            "config" => format!("{{\"t\":\"{text}\"}}"),
            _ => format!("\"{text}\""),
        };
        (key, value)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    /// Whatever the loader resolves, the policy has seen: a permitted entry reaches no variable, command,
    /// folder or file that is not allowed. `haft::fuzz::permit` panics otherwise.
    #[test]
    fn the_policy_sees_whatever_the_loader_resolves(entry in entry()) {
        haft::fuzz::permit(&entry);
    }
}

/// The property above is worth something only if entries of every kind are permitted too.
#[test]
fn plain_entries_are_permitted() {
    for (entry, expected) in [
        (json!({"url": "http://localhost:9/mcp", "headers": {"X": "${FINE}"}}), 1),
        (json!({"command": "cat", "env": {"FINE_A": "${FINE}"}}), 1),
        (
            json!({"name": "e", "type": "local", "input_schema": {"type": "object"}, "config": {"script_path": "echo.py"}}),
            0,
        ),
        (json!({"name": "e", "type": "mcp"}), 0),
    ] {
        let decisions = haft::fuzz::permit(&Value::to_string(&entry));
        assert_eq!(decisions.lines().nth(expected), Some("permitted"), "{entry}: {decisions}");
    }
}

/// A client secret is a variable like any other: a registration names it only if the operator allows it.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_secret_needs_an_allowed_variable() {
    let place = Place::new("policy: {allowed_variables: [FINE]}");
    let live = start(&place, &[("SECRET", "value"), ("FINE", "fine")]).await;
    let entry = |variable: &str| {
        let oauth =
            json!({"grant": "client_credentials", "client_id": "a", "client_secret_env": variable});
        json!({"url": "http://localhost:9/mcp", "start": "lazy", "oauth": oauth}).to_string()
    };
    assert_not_allowed(&live, RegistryDocument::Servers, "s", &entry("SECRET")).await;
    assert_eq!(live.runtime().config().servers.len(), 0);
    made(&live, put(RegistryDocument::Servers, "s", &entry("FINE"))).await;
    assert_not_allowed(&live, RegistryDocument::Servers, "s", &entry("SECRET")).await;
    end(live).await;
}

/// An entry does not choose its own sandbox: it could choose a weaker one than the operator's.
#[tokio::test(flavor = "multi_thread")]
async fn a_registration_does_not_choose_its_sandbox() {
    let place =
        Place::new("policy: {allowed_commands: [cat]}\ndefaults: {sandbox: {kind: none, cpu: 5s}}");
    let live = start(&place, &[]).await;
    let server = r#"{"command": "cat", "start": "lazy", "sandbox": "none"}"#;
    assert_not_allowed(&live, RegistryDocument::Servers, "s", server).await;
    let tool = r#"{"name": "t", "type": "local", "description": "d", "input_schema": {"type": "object"},
                   "config": {"script_path": "echo.py"}, "sandbox": {"kind": "none", "cpu": "9h"}}"#;
    assert_not_allowed(&live, RegistryDocument::Tools, "t", tool).await;
    let server = r#"{"command": "cat", "start": "lazy"}"#;
    made(&live, put(RegistryDocument::Servers, "s", server)).await;
    let config = live.runtime().config();
    assert!(config.servers[0].sandbox.value.limits.cpu.is_some());
    end(live).await;
}
