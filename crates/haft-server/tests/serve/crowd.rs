//! More connections than there is room for.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use haft_server::keys::Scope;
use serde_json::json;
use testkit::{Program, Workspace};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::served::{SERVE, Served, create_key, toolbox};
use crate::{Setup, problem, setup, status};

/// A listener with little room whose deadlines do not help.
fn patient(connections_max: usize) -> Setup {
    let mut setup = setup();
    setup.listener.connections_max = connections_max;
    setup.listener.header_timeout = Duration::from_mins(10);
    setup.listener.first_byte_timeout = Duration::from_mins(10);
    setup
}

fn tools(key: &str) -> String {
    format!("GET /tools HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n")
}

/// Asks on a connection that stays open.
async fn ask(stream: &mut TcpStream, request: &str) -> std::io::Result<String> {
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\ntools") {
        let reading = tokio::time::timeout(testkit::DEADLINE, stream.read_buf(&mut answer));
        if reading.await.expect("an answer in time")? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(String::from_utf8(answer).unwrap())
}

/// Silent connections of one address, or half requests, keep no other client out, and none of them costs a client its
/// connection that has presented a key.
#[tokio::test]
async fn silent_connections_make_room() {
    let workspace = Workspace::new();
    let service = patient(64).start(&workspace).await;
    let key = service.key("me", Scope::Call).await;
    let mut known = TcpStream::connect(service.address).await.unwrap();
    ask(&mut known, &tools(&key)).await.unwrap();
    let mut crowd = Vec::new();
    for part in ["", "GET /tools HTTP/1.1\r\nHost: loc", "PRI * HTTP/2.0\r\n"] {
        for _ in 0..100 {
            let mut stream = TcpStream::connect(service.address).await.unwrap();
            // One that was closed to make room takes no more.
            let _ = stream.write_all(part.as_bytes()).await;
            crowd.push(stream);
        }
        let mut new = TcpStream::connect(service.address).await.unwrap();
        assert_eq!(status(&ask(&mut new, &tools(&key)).await.unwrap()), 200);
        assert_eq!(status(&ask(&mut known, &tools(&key)).await.unwrap()), 200);
    }
}

/// An idle connection makes room for a new one. Where all are busy, a new one is answered 503 at once.
#[tokio::test]
async fn beyond_the_limit_idle_connections_make_room() {
    let workspace = Workspace::new();
    let mut setup = patient(1);
    let endless = async || std::future::pending::<&'static str>().await;
    setup.calling = Router::new().route("/endless", get(endless));
    let service = setup.start(&workspace).await;
    let mut first = TcpStream::connect(service.address).await.unwrap();
    ask(&mut first, &tools("")).await.unwrap();
    let mut second = TcpStream::connect(service.address).await.unwrap();
    assert_eq!(status(&ask(&mut second, &tools("")).await.unwrap()), 200);
    assert!(ask(&mut first, &tools("")).await.is_err(), "the first one made room");

    // From here on the one connection is busy.
    second.write_all(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let refused = crate::faults::until("it is busy", async || {
        let answer =
            service.raw("GET /tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = answer.await;
        (status(&answer) == 503).then_some(answer)
    })
    .await;
    assert!(refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
    assert_eq!(problem(&refused)["code"], "Unavailable");
}

/// A client that sends nothing is closed sooner than one that is still sending.
#[tokio::test]
async fn the_first_byte_has_a_deadline() {
    let workspace = Workspace::new();
    let mut setup = patient(8);
    setup.listener.first_byte_timeout = Duration::from_millis(200);
    let service = setup.start(&workspace).await;
    let mut sending = TcpStream::connect(service.address).await.unwrap();
    sending.write_all(b"GET /to").await.unwrap();
    // Returns only because the server closes the connection.
    assert_eq!(service.raw("").await, "");
    sending.write_all(b"ols HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert_eq!(status(&ask(&mut sending, "").await.unwrap()), 200);
}

fn few_descriptors(workspace: Workspace, key: String) -> Served {
    let haft = env!("CARGO_BIN_EXE_haft");
    let program = Program::new("prlimit", &workspace).args(&["--nofile=64:64", haft]).args(&SERVE);
    Served::run(workspace, Some(key), program)
}

async fn ask_service(served: &Served, path: &str, key: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = vec![0; 12];
    let reading = tokio::time::timeout(testkit::DEADLINE, stream.read_exact(&mut head));
    reading.await.expect("an answer in time").unwrap();
    (stream, String::from_utf8(head).unwrap())
}

/// When silent connections take every descriptor, a new client is still accepted and answered.
#[tokio::test]
async fn a_new_client_gets_a_descriptor_of_a_silent_one() {
    let workspace = toolbox();
    let key = create_key(&workspace, "me", Scope::Admin);
    let served = few_descriptors(workspace, key.clone());
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap());
    }
    for _ in 0..10 {
        assert_eq!(status(&ask_service(&served, "/healthz", &key).await.1), 200);
    }
}

/// When connections that have presented a key take every descriptor, a new client is answered 503, and served
/// again as soon as there is room.
#[tokio::test]
async fn without_descriptors_new_clients_are_refused() {
    let workspace = toolbox();
    let key = create_key(&workspace, "me", Scope::Admin);
    let served = few_descriptors(workspace, key.clone());
    let mut held = Vec::new();
    let refused = loop {
        assert!(held.len() < 64, "the limit holds");
        let (stream, answer) = ask_service(&served, "/api/v1/status", &key).await;
        if status(&answer) != 200 {
            break answer;
        }
        held.push(stream);
    };
    assert_eq!(status(&refused), 503);
    drop(held);
    crate::faults::until("there is room again", async || {
        (served.get("/api/v1/status").await.status == 200).then_some(())
    })
    .await;
    assert_eq!(served.get("/readyz").await.json()["status"], json!("ready"));
}
