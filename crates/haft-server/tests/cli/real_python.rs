//! The official Python servers for time, git and web pages, of both eras.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::{Value, json};
use testkit::Workspace;
use testkit::peers::{self, Address, Era, Reference};

use crate::real_support::Peer;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

fn times() -> [(&'static str, Value); 3] {
    [
        ("get_current_time", json!({"timezone": "Europe/Oslo"})),
        (
            "convert_time",
            json!({"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}),
        ),
        ("get_current_time", json!({"timezone": "Nowhere/Land"})),
    ]
}

fn speaking(address: &Address, protocol: &str) -> Peer {
    Peer::with(address, &json!({"protocol": protocol}))
}

/// Proves S1-2, S1-22, S1-24, S2-FR-003: a server of the Python SDK, release 1.
#[test]
fn time_of_the_legacy_era_is_what_the_python_sdk_sees() {
    let address = Address::Stdio(peers::time(Era::Legacy));
    let seen = Reference::Python1.see(&address, &times());
    let auto = speaking(&address, "auto");
    auto.assert_sees(&seen, &times());
    assert_eq!(auto.protocol_version(), LEGACY);
    speaking(&address, "legacy").assert_lists(&seen);
}

/// Proves S2-FR-003: the same server of the modern era, asked in either and by itself.
#[test]
fn time_of_the_modern_era_is_what_the_python_sdk_sees() {
    let address = Address::Stdio(peers::time(Era::Modern));
    let seen = Reference::Python2(Era::Modern).see(&address, &times());
    speaking(&address, "modern").assert_sees(&seen, &times());
    assert_eq!(speaking(&address, "modern").protocol_version(), MODERN);
    let legacy = Reference::Python2(Era::Legacy).see(&address, &[]);
    speaking(&address, "legacy").assert_lists(&legacy);
    // Over stdio a server of both eras is met in the legacy one: asking for the other first would
    // end some servers of the legacy era.
    assert_eq!(speaking(&address, "auto").protocol_version(), LEGACY);
}

/// A server of the legacy era is refused with a reason if only the modern one is wanted.
#[test]
fn a_server_of_the_wrong_era_is_refused_with_a_reason() {
    let peer = speaking(&Address::Stdio(peers::time(Era::Legacy)), "modern");
    let shown = crate::run(&peer.workspace, &["servers", "ping", "--log-level", "error"]);
    assert_eq!(shown.code, 1);
    let reason = "the server does not answer `server/discover` and may not speak 2026-07-28: \
                  Invalid request parameters";
    assert!(shown.stdout.contains(reason), "{}", shown.stdout);
}

/// Proves S2-FR-003, S3-US4-T: a repository is looked at through either era.
#[test]
fn git_is_what_the_sdks_see() {
    let repository = Workspace::new();
    peers::git_repository(repository.path());
    repository.write("README.md", "A changed repository.\n");
    let at = repository.path().display().to_string();
    let calls = [
        ("git_status", json!({"repo_path": at})),
        ("git_diff_unstaged", json!({"repo_path": at})),
        ("git_log", json!({"repo_path": at, "max_count": 1})),
        ("git_show", json!({"repo_path": at, "revision": "no-such-revision"})),
    ];
    for (era, protocol, reference, calls) in [
        (Era::Legacy, "auto", Reference::TypeScript1, &calls[..]),
        (Era::Modern, "modern", Reference::TypeScript2(Era::Modern), &calls[2..]),
    ] {
        let address = Address::Stdio(peers::git(era, repository.path()));
        let seen = reference.see(&address, calls);
        assert_eq!(seen.tools.len(), 12);
        speaking(&address, protocol).assert_sees(&seen, calls);
    }
}

/// Proves S2-FR-003: a page of this machine is fetched, and a missing one is an error.
#[test]
fn fetch_is_what_the_typescript_sdk_sees() {
    let page = page();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let calls = [
        ("fetch", json!({"url": page})),
        ("fetch", json!({"url": page, "raw": true, "max_length": 20})),
        ("fetch", json!({"url": format!("http://{nobody}/")})),
    ];
    let address = Address::Stdio(peers::fetch(Era::Modern));
    let seen = Reference::TypeScript2(Era::Modern).see(&address, &calls);
    let text = seen.results[0]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Nothing happened."), "{text}");
    speaking(&address, "modern").assert_sees(&seen, &calls);
}

/// Serves one page until the test's process ends.
fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let page = "<html><body><h1>News</h1><p>Nothing happened.</p></body></html>";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
    let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{page}", page.len());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut request = BufReader::new(&stream).lines();
            while request.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            // The client may have closed the connection.
            drop((&stream).write_all(answer.as_bytes()));
        }
    });
    url
}
