//! Signing in at a server that wants OAuth.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use testkit::guarded::{CLIENT_ID, CLIENT_SECRET, Guarded};
use testkit::{Workspace, eventually};

use crate::{haft, run};

fn workspace(server: &Guarded) -> Workspace {
    let config = format!("servers: {{guarded: {{url: '{}'}}}}\n", server.url);
    Workspace::with(&[("haft.yaml", &config)])
}

/// A GET that follows redirects on this machine, as a browser would.
fn browse(url: &str) -> String {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let location = answer.lines().find_map(|line| line.strip_prefix("location: "));
    location.map_or_else(|| answer.clone(), browse)
}

fn log_in(workspace: &Workspace) -> testkit::Finished {
    let running = haft(workspace, &["login", "guarded", "--no-browser"]).start();
    let url = eventually("the address to sign in at", || {
        let shown = running.stderr_so_far();
        let line = shown.lines().find(|line| line.trim().starts_with("http://"))?;
        shown.contains(&format!("{line}\n")).then(|| line.trim().to_owned())
    });
    let page = browse(&url);
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    running.finish()
}

/// Without a login the error explains how to log in; nothing is retried.
#[test]
fn a_server_that_wants_credentials_names_the_login_command() {
    let server = Guarded::start(3600);
    let workspace = workspace(&server);
    let finished = run(&workspace, &["call", "secret_word"]);
    assert_eq!(finished.code, 1);
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(said.contains("auth_required") && said.contains("haft login guarded"), "{said}");
}

/// Proves S3-SC-005: the token is in a file of its own with private permissions, and nowhere else.
#[test]
fn after_a_login_the_server_answers_and_no_token_is_shown() {
    let server = Guarded::start(3600);
    let workspace = workspace(&server);
    let login = log_in(&workspace);
    assert_eq!((login.code, login.stdout.as_str()), (0, "guarded: logged in\n"), "{login:?}");
    let call = run(&workspace, &["--log-level", "debug", "call", "secret_word"]);
    assert_eq!((call.code, call.stdout.as_str()), (0, "swordfish\n"), "{call:?}");
    let said = format!("{login:?}{call:?}{}", run(&workspace, &["log", "--json"]).stdout);
    assert!(!said.contains("canary-"), "{said}");
    let folder = workspace.path().join(".haft/tokens");
    let modes: Vec<u32> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    assert!(!modes.is_empty() && modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::read_to_string(workspace.path().join(".haft/.gitignore")).unwrap(), "*\n");
    let logout = run(&workspace, &["logout", "guarded"]);
    assert_eq!((logout.code, logout.stdout.as_str()), (0, "guarded: logged out\n"));
    assert_eq!(run(&workspace, &["call", "secret_word"]).code, 1);
}

/// An expired token is refreshed automatically.
#[test]
fn an_expiring_token_is_refreshed() {
    let server = Guarded::start(0);
    let workspace = workspace(&server);
    assert_eq!(log_in(&workspace).code, 0);
    let call = run(&workspace, &["call", "secret_word"]);
    assert_eq!((call.code, call.stdout.as_str()), (0, "swordfish\n"), "{call:?}");
    assert!(server.refreshed() >= 1);
}

/// An unsuitable server is an error with a remedy.
#[test]
fn only_remote_servers_that_exist_can_be_logged_in_at() {
    let workspace = Workspace::with(&[("haft.yaml", "servers: {files: {command: cat}}\n")]);
    for (server, message) in [("fils", "did you mean `files`?"), ("files", "by `env`")] {
        let finished = run(&workspace, &["login", server]);
        assert_eq!(finished.code, 2);
        assert!(finished.stderr.contains(message), "{}", finished.stderr);
    }
}

fn with_oauth(server: &Guarded, oauth: &str) -> Workspace {
    let config = format!("servers:\n  guarded:\n    url: '{}'\n    oauth: {oauth}\n", server.url);
    Workspace::with(&[("haft.yaml", &config)])
}

fn machine(workspace: &Workspace, args: &[&str]) -> testkit::Finished {
    haft(workspace, args).env("GUARDED_SECRET", CLIENT_SECRET).run()
}

/// Where the authorization server supports it, the configured metadata document is the client; otherwise
/// Haft registers itself.
#[test]
fn a_configured_metadata_document_is_the_client() {
    let document = "https://example.com/haft.json";
    for (server, client) in
        [(Guarded::with_documents(), document), (Guarded::start(3600), "registered-client")]
    {
        let workspace = with_oauth(&server, &format!("{{client_metadata_url: '{document}'}}"));
        assert_eq!(log_in(&workspace).code, 0);
        assert_eq!(server.clients(), [client]);
        assert_eq!(run(&workspace, &["call", "secret_word"]).stdout, "swordfish\n");
    }
}

/// A configured client signs in without a flag, and a flag wins over the file.
#[test]
fn a_configured_client_signs_in() {
    let server = Guarded::start(3600);
    let workspace = with_oauth(&server, "{client_id: from-file, scopes: [read]}");
    assert_eq!(log_in(&workspace).code, 0);
    assert_eq!(server.clients(), ["from-file"]);
}

/// With the client credentials grant no person signs in: the token comes by itself, is renewed when it
/// is refused, and neither it nor the secret is shown anywhere.
#[test]
fn a_program_gets_its_tokens_without_a_person() {
    let server = Guarded::start(3600);
    let oauth = format!(
        "{{grant: client_credentials, client_id: {CLIENT_ID}, client_secret_env: GUARDED_SECRET}}"
    );
    let workspace = with_oauth(&server, &oauth);
    let call = machine(&workspace, &["--log-level", "debug", "call", "secret_word"]);
    assert_eq!((call.code, call.stdout.as_str()), (0, "swordfish\n"), "{call:?}");
    assert_eq!(server.granted(), 1, "one token for the whole command");
    assert!(!workspace.path().join(".haft/tokens").exists(), "tokens stay in memory");

    let shown = machine(&workspace, &["servers", "show", "guarded"]);
    let line = format!(
        "oauth: grant: client_credentials, client_id: {CLIENT_ID}, client_secret_env: GUARDED_SECRET"
    );
    assert!(shown.stdout.contains(&line), "{}", shown.stdout);
    let config = machine(&workspace, &["config", "show"]);
    assert!(config.stdout.contains("GUARDED_SECRET"), "{}", config.stdout);
    let checked = machine(&workspace, &["check", "--connect"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let login = machine(&workspace, &["login", "guarded"]);
    assert_eq!(login.code, 2);
    assert!(login.stderr.contains("no person signs in there"), "{}", login.stderr);
    let log = machine(&workspace, &["log", "--json"]).stdout;
    let said = format!("{call:?}{shown:?}{config:?}{checked:?}{login:?}{log}");
    assert!(!said.contains("canary-"), "{said}");
}

/// Wrong credentials and a missing secret are errors that name the settings.
#[test]
fn wrong_credentials_name_the_settings() {
    let server = Guarded::start(3600);
    let oauth =
        "{grant: client_credentials, client_id: machine, client_secret_env: GUARDED_SECRET}";
    let workspace = with_oauth(&server, oauth);
    let wrong = haft(&workspace, &["servers", "show", "guarded"])
        .env("GUARDED_SECRET", "canary-wrong-7d1f");
    let wrong = wrong.run();
    assert_eq!(wrong.code, 3, "{wrong:?}");
    for part in [
        "auth_required",
        "the authorization server gave no token: invalid_client: unknown client",
        "check `client_id`, `scopes` and `issuer` in `oauth` of `guarded`, and the secret in GUARDED_SECRET",
        "help: correct `oauth` of `guarded`, or the variable with its secret",
    ] {
        assert!(wrong.stdout.contains(part), "{part}: {}", wrong.stdout);
    }
    assert!(!format!("{wrong:?}").contains("canary-"), "{wrong:?}");
    let unset = run(&workspace, &["check"]);
    assert_eq!(unset.code, 2);
    insta::assert_snapshot!(workspace.stable(&unset.stderr), @r"
    error: haft.yaml:4:79: servers.guarded.oauth.client_secret_env: the environment variable `GUARDED_SECRET` with the client's secret is not set
      help: set GUARDED_SECRET in the environment of Haft
    the configuration has 1 error; nothing was started
    ");
}
