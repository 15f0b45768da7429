//! Clients that are slow, silent or too many.

use std::process::Command;
use std::time::Duration;

use testkit::Workspace;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::{setup, status};

const GET: &str = "GET /tools HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Reads one answer of a connection that stays open.
async fn answer(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\ntools") {
        let reading = tokio::time::timeout(testkit::DEADLINE, stream.read_buf(&mut answer));
        let read = reading.await.expect("an answer in time").unwrap();
        assert_ne!(read, 0, "closed early: {}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8(answer).unwrap()
}

/// A connection that is silent, or sends half of HTTP/2's preface or half a request, is closed.
#[tokio::test]
async fn slow_clients_are_cut_off() {
    let workspace = Workspace::new();
    let mut setup = setup();
    setup.listener.header_timeout = Duration::from_millis(200);
    let service = setup.start(&workspace).await;
    for part in ["", "PRI * HTTP/2.0\r\n", "GET /tools HTTP/1.1\r\nHost: loc"] {
        // Returns only because the server closes the connection.
        let answer = service.raw(part).await;
        assert!(matches!(status(&answer), 0 | 408), "{answer}");
    }
    assert_eq!(
        status(&service.raw(&GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")).await),
        200
    );
}

/// A client that asks again and again and never reads keeps its connection no longer than a silent one.
#[tokio::test]
async fn a_client_that_never_reads_is_cut_off() {
    let workspace = Workspace::new();
    let mut setup = setup();
    setup.listener.header_timeout = Duration::from_millis(200);
    let service = setup.start(&workspace).await;
    let mut stream = TcpStream::connect(service.address).await.unwrap();
    let asking = GET.repeat(1000);
    loop {
        // Ends only because the server closes the connection.
        let written = tokio::time::timeout(testkit::DEADLINE, stream.write_all(asking.as_bytes()));
        if written.await.expect("cut off in time").is_err() {
            break;
        }
    }
}

/// Too many and too large headers are refused.
#[tokio::test]
async fn headers_are_limited() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let many = "X-Many: 1\r\n".repeat(101);
    let large = format!("X-Large: {}\r\n", "x".repeat(128 * 1024));
    for headers in [many, large] {
        let request = format!("GET /tools HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        assert!(matches!(status(&service.raw(&request).await), 0 | 431));
    }
}

/// The address of the client reaches the handlers.
#[tokio::test]
async fn handlers_see_the_peer() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let request = "GET /peer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert!(service.raw(request).await.ends_with("\r\n\r\n127.0.0.1"));
}

/// Marks the process of this test that runs with few files.
const FEW_FILES: &str = "HAFT_TEST_FEW_FILES";

/// A process out of file descriptors continues to serve as soon as it can. The test runs itself a second time, in a
/// process that may open only a few.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_out_of_files_is_survived() {
    if std::env::var_os(FEW_FILES).is_some() {
        return with_few_files().await;
    }
    let child = Command::new("timeout")
        .args(["60", "prlimit", "--nofile=64"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "limits::running_out_of_files_is_survived", "--nocapture"])
        .env(FEW_FILES, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("1 passed"), "{output}");
}

async fn with_few_files() {
    let workspace = Workspace::new();
    let service = setup().start(&workspace).await;
    let mut held = Vec::new();
    // Both ends lie in this process, so it runs out after some thirty.
    while let Ok(stream) = TcpStream::connect(service.address).await {
        held.push(stream);
        assert!(held.len() < 64, "the limit holds");
    }
    drop(held);
    let mut stream = loop {
        // The server's ends are closed shortly afterwards.
        match TcpStream::connect(service.address).await {
            Ok(stream) => break stream,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    stream.write_all(GET.as_bytes()).await.unwrap();
    assert_eq!(status(&answer(&mut stream).await), 200);
}
