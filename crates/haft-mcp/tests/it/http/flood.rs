//! Servers that flood the client before they answer.

use haft_mcp::{Connector, Failure, HEAD_BYTES_MAX, Sent, SseConnector};
use testkit::Flood;

use crate::support::{http, options, unconnected};

/// Bytes that a server can send before it notices that the client closed the connection: the buffers of the system.
/// Without a limit it is gigabytes, until the time limit.
const SENT_BYTES_MAX: u64 = 64 << 20;

/// hyper reads interim responses in one loop, which keeps a worker from everything else.
#[tokio::test]
async fn a_flood_of_interim_responses_is_cut_off() {
    let flood = Flood::of_interim_responses();
    let url = format!("http://{}/mcp", flood.address());
    let connectors: [Box<dyn Connector>; 2] =
        [Box::new(http(&url)), Box::new(SseConnector::new(options(&url)).unwrap())];
    for connector in connectors {
        let error = unconnected(&*connector).await;
        assert_eq!((error.kind, error.sent), (Failure::Protocol, Sent::Maybe), "{error}");
        let excess =
            format!("more than {} KiB of headers and interim responses", HEAD_BYTES_MAX >> 10);
        assert_eq!(error.message, format!("`the server` did not answer: it sent {excess}"));
    }
    assert!(flood.sent_bytes() < SENT_BYTES_MAX, "it sent {} bytes", flood.sent_bytes());
}

#[tokio::test]
async fn headers_without_end_are_cut_off() {
    let flood = Flood::start("HTTP/1.1 200 OK\r\n", "x-header: value\r\n".repeat(1000));
    let error = unconnected(&http(&format!("http://{}/mcp", flood.address()))).await;
    assert_eq!((error.kind, error.sent), (Failure::Closed, Sent::Maybe), "{error}");
    assert!(flood.sent_bytes() < SENT_BYTES_MAX, "it sent {} bytes", flood.sent_bytes());
}
