//! Signing in at a server that wants OAuth.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use testkit::guarded::Guarded;
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

/// Without a login the error says how to log in; nothing is tried again and again.
#[test]
fn a_server_that_wants_credentials_says_how_to_log_in() {
    let server = Guarded::start(3600);
    let workspace = workspace(&server);
    let finished = run(&workspace, &["call", "secret_word"]);
    assert_eq!(finished.code, 1);
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(said.contains("auth_required") && said.contains("haft login guarded"), "{said}");
}

/// Proves S3-SC-005: the token is in a file of its own that nobody else can read, and nowhere else.
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

/// A token that has expired is refreshed without anybody noticing.
#[test]
fn an_expiring_token_is_refreshed() {
    let server = Guarded::start(0);
    let workspace = workspace(&server);
    assert_eq!(log_in(&workspace).code, 0);
    let call = run(&workspace, &["call", "secret_word"]);
    assert_eq!((call.code, call.stdout.as_str()), (0, "swordfish\n"), "{call:?}");
    assert!(server.refreshed() >= 1);
}

/// What cannot be logged in at is an error that says what to do instead.
#[test]
fn only_remote_servers_that_exist_can_be_logged_in_at() {
    let workspace = Workspace::with(&[("haft.yaml", "servers: {files: {command: cat}}\n")]);
    for (server, message) in [("fils", "did you mean `files`?"), ("files", "by `env`")] {
        let finished = run(&workspace, &["login", server]);
        assert_eq!(finished.code, 2);
        assert!(finished.stderr.contains(message), "{}", finished.stderr);
    }
}
