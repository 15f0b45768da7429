//! Servers that listen: the same toolbox over streamable HTTP, HTTP+SSE and WebSocket.

use std::time::Duration;

use haft::{Code, ServerState, Status, ToolCall};
use serde_json::{Value, json};
use testkit::fixture::{Fixture, Transport, events};

use super::mcp_support::{Stage, answer, call, failure, names, with};
use super::support::{spawn, until};

const ALL: [Transport; 3] = [Transport::Http, Transport::Sse, Transport::Ws];

/// The headers of every HTTP request a server got, with its method.
fn requests(stage: &Stage, server: &str) -> Vec<(String, Value)> {
    let requests = events(&stage.facts(server), "http").into_iter();
    requests.map(|it| (it["method"].as_str().unwrap().to_owned(), it["headers"].clone())).collect()
}

/// Proves S0-10, S1-3, S2-Q-09, S3-US6-1, S3-US7-1, S3-US7-2, S3-US8-1, S3-SC-007, S3-KE-2: one suite for
/// all: tools, calls, failures, a notice, one connection for everything.
#[tokio::test]
async fn every_transport_carries_the_same() {
    for transport in ALL {
        let stage = Stage::new();
        let (running, server) = stage.remote("one", transport, json!({"page_size": 9}), json!({}));
        let tools = json!({"tools": [{"name": "hang", "timeout": "200ms"}]});
        let runtime = stage.start([server], tools).await;
        assert_eq!(runtime.servers()[0].state, ServerState::Ready, "{transport:?}");
        assert_eq!(runtime.servers()[0].endpoint, running.url);
        assert_eq!(names(&runtime).len(), 41, "{transport:?}: every page");
        for n in 0..20 {
            assert_eq!(answer(&runtime, "echo", json!({ "n": n })).await, json!({ "n": n }));
        }
        let kinds = call(&runtime, "every_content", json!({})).await.content.len();
        assert_eq!(kinds, 6);
        let failed = call(&runtime, "fail", json!({})).await;
        assert_eq!(failure(&failed).1, "the first reason\nthe second reason");
        assert_eq!(
            failure(&call(&runtime, "rpc_error", json!({})).await).0,
            Code::ToolExecutionError
        );
        assert_eq!(failure(&call(&runtime, "hang", json!({})).await).0, Code::Timeout);
        call(&runtime, "add_tool", json!({"name": "fresh"})).await;
        until(|| runtime.tool("fresh").is_some()).await;
        let five = (0..5).map(|_| ToolCall::new("sleep", &json!({"ms": 200})));
        let slept = spawn(&runtime, five).join_all().await;
        assert!(slept.iter().all(|it| it.status == Status::Success));
        let stats = answer(&runtime, "stats", json!({})).await;
        assert_eq!((&stats["initialize"], &stats["in_flight_max"]), (&json!(1), &json!(5)));
        runtime.shutdown(Duration::from_secs(1)).await;
    }
}

/// Proves S3-US6-2, S3-US6-T, S3-FR-005, S3-FR-007: the header is on every request there is.
#[tokio::test]
async fn headers_are_sent_with_every_request() {
    for transport in ALL {
        let stage = Stage::new();
        let settings = json!({"headers": {"Authorization": "Bearer abc", "X-Team": "tools"}});
        let (_running, server) = stage.remote("one", transport, json!({}), settings);
        let runtime = stage.start([server], json!({})).await;
        answer(&runtime, "echo", json!({})).await;
        runtime.shutdown(Duration::from_secs(1)).await;
        let requests = requests(&stage, "one");
        let methods: Vec<&str> = requests.iter().map(|(method, _)| method.as_str()).collect();
        assert!(methods.contains(&"GET"), "{transport:?}: {methods:?}");
        if transport == Transport::Http {
            assert!(methods.contains(&"POST") && methods.contains(&"DELETE"), "{methods:?}");
        }
        for (method, headers) in requests {
            assert_eq!(headers["authorization"], json!("Bearer abc"), "{transport:?} {method}");
            assert_eq!(headers["x-team"], json!("tools"), "{transport:?} {method}");
        }
    }
}

/// Proves S3-US8-2, S3-FR-007, S1-5: the session is ended, unless configured otherwise.
#[tokio::test]
async fn the_session_is_ended_on_close() {
    for (terminate, deleted) in [(true, 1), (false, 0)] {
        let stage = Stage::new();
        let settings = json!({ "terminate_on_close": terminate });
        let (_running, server) = stage.remote("one", Transport::Http, json!({}), settings);
        let runtime = stage.start([server], json!({})).await;
        runtime.shutdown(Duration::from_secs(1)).await;
        let requests = requests(&stage, "one");
        assert_eq!(requests.iter().filter(|(method, _)| method == "DELETE").count(), deleted);
    }
}

/// Proves S3-US8-1, S3-US8-T: answers as JSON, as a stream, and as a stream that has to be resumed.
#[tokio::test]
async fn streamed_answers_arrive() {
    for http in [
        json!({"answer": "json"}),
        json!({"answer": "sse"}),
        json!({"resume_calls": 2, "retry_ms": 10}),
    ] {
        let stage = Stage::new();
        let scenario = json!({"http": http, "tools": ["echo", "progress"]});
        let (_running, server) = stage.remote("one", Transport::Http, scenario, json!({}));
        let runtime = stage.start([server], json!({})).await;
        assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}), "{http}");
        assert_eq!(call(&runtime, "progress", json!({})).await.status, Status::Success, "{http}");
    }
}

/// Proves S1-15, X-4, S0-10: every word for streamable HTTP falls back to a server that only knows
/// HTTP+SSE.
#[tokio::test]
async fn http_falls_back_to_sse() {
    for word in ["http", "streamable_http", "streamable-http"] {
        let stage = Stage::new();
        let (_running, server) = stage.remote(
            "one",
            Transport::Sse,
            json!({"tools": ["echo"]}),
            json!({"transport": word}),
        );
        let runtime = stage.start([server], json!({})).await;
        assert_eq!(
            runtime.servers()[0].state,
            ServerState::Ready,
            "{word}: {:?}",
            runtime.servers()[0].reason
        );
        assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
    }
}

/// Proves S1-3, S1-9: a `url` and nothing else is a server over HTTP.
#[tokio::test]
async fn a_url_is_enough() {
    let stage = Stage::new();
    let (running, _) = stage.remote("one", Transport::Http, json!({"tools": ["echo"]}), json!({}));
    let runtime = stage.start([("one", json!({"url": running.url}))], json!({})).await;
    assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
}

/// Proves S3-US6-3, S3-FR-005, S3-FR-007: a stream that is silent for longer than
/// `sse_read_timeout` is given up, long before the tool's own time is over.
#[tokio::test]
async fn a_silent_stream_is_given_up() {
    let stage = Stage::new();
    let scenario = json!({"http": {"answer": "sse"}});
    let settings = json!({"sse_read_timeout": "300ms", "reconnect": {"attempts": 0}});
    let (_running, server) = stage.remote("one", Transport::Http, scenario, settings);
    let tools = json!({"tools": [{"name": "hang", "timeout": "20s"}]});
    let runtime = stage.start([server], tools).await;
    let envelope = call(&runtime, "hang", json!({})).await;
    let (code, message) = failure(&envelope);
    assert_eq!(code, Code::OutcomeUnknown, "{message}");
    assert!(message.contains("300ms"), "{message}");
}

/// Proves X-4: `sse` and `websocket` are exact: no other transport is tried.
#[tokio::test]
async fn sse_and_websocket_are_exact() {
    let stage = Stage::new();
    let settings =
        json!({"transport": "sse", "reconnect": {"attempts": 0}, "connect_timeout": "2s"});
    let (_running, server) = stage.remote("one", Transport::Http, json!({}), settings);
    let runtime = stage.start([server], json!({})).await;
    assert_eq!(runtime.servers()[0].state, ServerState::Unavailable);
    assert!(requests(&stage, "one").iter().all(|(method, _)| method == "GET"));
}

/// Proves S2-EC-13, S1-20: the server is restarted at its place, and the next call of a tool that
/// only reads works.
#[tokio::test]
async fn a_restarted_server_is_found_again() {
    for transport in ALL {
        let stage = Stage::new();
        let (mut running, server) = stage.remote("one", transport, json!({}), json!({}));
        let runtime = stage.start([server], json!({})).await;
        assert_eq!(answer(&runtime, "annotated", json!({"n": 1})).await, json!({"n": 1}));
        running.kill();
        let scenario = with(json!({ "facts": stage.facts("one") }), json!({}));
        let _second = Fixture::serve_at(transport, &scenario, running.port());
        assert_eq!(
            answer(&runtime, "annotated", json!({"n": 2})).await,
            json!({"n": 2}),
            "{transport:?}"
        );
        assert_eq!(stage.messages("one", "initialize").len(), 2, "{transport:?}");
    }
}

/// A session that the server forgot is opened again within the call.
#[tokio::test]
async fn a_forgotten_session_is_opened_again() {
    let stage = Stage::new();
    let scenario = json!({"http": {"expire_session_at_call": 2}, "tools": ["echo"]});
    let settings = json!({"reconnect": {"attempts": 0}});
    let (_running, server) = stage.remote("one", Transport::Http, scenario, settings);
    let runtime = stage.start([server], json!({})).await;
    for n in 1..=3 {
        assert_eq!(answer(&runtime, "echo", json!({ "n": n })).await, json!({ "n": n }));
    }
    assert_eq!(stage.messages("one", "initialize").len(), 2);
}

/// Proves S2-EC-12: a remote server that went away is tried again and then unavailable, with its
/// address in the text.
#[tokio::test]
async fn a_remote_server_that_went_away_is_unavailable() {
    for transport in ALL {
        let stage = Stage::new();
        let (mut running, server) = stage.remote(
            "one",
            transport,
            json!({}),
            json!({"reconnect": {"base": "20ms", "factor": 1}}),
        );
        let runtime = stage.start([server], json!({})).await;
        running.kill();
        let envelope = call(&runtime, "annotated", json!({})).await;
        let (code, message) = failure(&envelope);
        assert_eq!(code, Code::ServiceUnavailable, "{transport:?}: {message}");
        assert!(message.contains(&running.port().to_string()), "{transport:?}: {message}");
    }
}

/// Proves X-3: 401, 403 and 404 are not tried again; 503 is, and `Retry-After` is kept to.
#[tokio::test]
async fn refusals_are_final_and_overload_is_not() {
    for (status, posts_min, is_ready) in
        [(401, 1, false), (403, 1, false), (404, 1, false), (503, 2, true)]
    {
        let stage = Stage::new();
        let fault = json!({"method": "POST", "times": 1, "do": {"answer": {"status": status}}});
        let always = json!({"method": "POST", "do": {"answer": {"status": status}}});
        let fault = if is_ready { fault } else { always };
        let scenario = json!({"faults": [fault], "tools": ["echo"]});
        let (_running, server) =
            stage.remote("one", Transport::Http, scenario, json!({"protocol": "legacy"}));
        let runtime = stage.start([server], json!({})).await;
        runtime.discover().await;
        let info = runtime.servers().remove(0);
        assert_eq!(info.state == ServerState::Ready, is_ready, "{status}: {:?}", info.reason);
        let posts = requests(&stage, "one").iter().filter(|(method, _)| method == "POST").count();
        assert!(posts >= posts_min && (is_ready || posts == 1), "{status}: {posts} requests");
        assert_eq!(info.retries, 0, "{status}");
    }
}

/// Proves S3-US6-3, S3-FR-005, S3-FR-007: a stall at the start ends with the connect timeout, a
/// stalled answer with the tool's.
#[tokio::test]
async fn stalls_end_in_time() {
    let stage = Stage::new();
    let settings = || json!({"connect_timeout": "300ms", "reconnect": {"attempts": 0}});
    let stalled = json!({"faults": [{"do": "stall"}]});
    let (_one, one) = stage.remote("one", Transport::Http, stalled.clone(), settings());
    let (_two, two) = stage.remote("two", Transport::Sse, stalled, settings());
    let (_three, three) =
        stage.remote("three", Transport::Sse, json!({"sse": {"no_endpoint": true}}), settings());
    let midway =
        json!({"tools": ["echo"], "faults": [{"rpc": "tools/call", "do": "stall_midway"}]});
    let (_four, four) = stage.remote("four", Transport::Http, midway, settings());
    let tools = json!({"tools": [{"name": "echo", "timeout": "300ms"}]});
    let runtime = stage.start([one, two, three, four], tools).await;
    let states: Vec<_> = runtime.servers().iter().map(|server| server.state).collect();
    let away = ServerState::Unavailable;
    assert_eq!(states, [away, away, away, ServerState::Ready]);
    assert_eq!(failure(&call(&runtime, "echo", json!({})).await).0, Code::Timeout);
}

/// Proves S0-25, S0-31, S1-4, S3-US4-4 for a modern server over HTTP: stateless, one discovery,
/// lists that refresh.
#[tokio::test]
async fn a_modern_server_over_http() {
    let stage = Stage::new();
    let scenario = json!({"era": "modern", "page_size": 10});
    let (_running, server) = stage.remote("one", Transport::Http, scenario, json!({}));
    let runtime = stage.start([server], json!({})).await;
    assert_eq!(names(&runtime).len(), 41);
    for n in 0..20 {
        assert_eq!(answer(&runtime, "echo", json!({ "n": n })).await, json!({ "n": n }));
    }
    assert_eq!(stage.messages("one", "server/discover").len(), 1);
    assert!(stage.messages("one", "initialize").is_empty());
    until(|| !stage.messages("one", "subscriptions/listen").is_empty()).await;
    call(&runtime, "add_tool", json!({"name": "fresh"})).await;
    until(|| runtime.tool("fresh").is_some()).await;
    assert!(events(&stage.facts("one"), "header_mismatch").is_empty());
}

/// Proves X-3: a server that answers without TLS is tried once.
#[tokio::test]
async fn a_tls_failure_is_final() {
    for transport in [Transport::Http, Transport::Sse] {
        let stage = Stage::new();
        let (running, (name, mut server)) = stage.remote("one", transport, json!({}), json!({}));
        server["url"] = json!(running.url.replace("http:", "https:"));
        let runtime = stage.start([(name, server)], json!({})).await;
        let info = runtime.servers().remove(0);
        assert_eq!((info.state, info.retries), (ServerState::Unavailable, 0), "{transport:?}");
        assert_eq!(events(&stage.facts("one"), "connection").len(), 1, "{transport:?}");
    }
}
