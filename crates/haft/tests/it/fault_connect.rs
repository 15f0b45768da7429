//! Faults that prevent a connection: the server is `unavailable` with a reason, the toolbox starts,
//! and every other server works.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::{TlsAcceptor, rustls};

use super::fault_support::{Fault, Scene, Untouched, faults};

fn hit(action: &Value) -> Value {
    json!({"faults": [{ "do": action }]})
}

fn refused(status: u16) -> Value {
    hit(&json!({"answer": {"status": status}}))
}

/// Soon over, so that the silence of a server costs the test little.
fn hasty() -> Value {
    json!({"connect_timeout": "600ms"})
}

fn assert_not_repeated(scene: &Scene) {
    assert_eq!(scene.sick().retries, 0, "trying again changes nothing");
    assert_eq!(scene.requests().len(), 1, "{:?}", scene.requests());
}

faults! {
    /// Proves S3-US5-1, S3-US5-T.
    command_not_found over [stdio]
        Fault::unavailable(json!({}), &["`nope-not-here`", "PATH"])
            .set(json!({"command": "nope-not-here", "args": []}))
            .also(|scene| assert_eq!(scene.sick().retries, 0));

    server_missing over [http_json, sse, websocket]
        Fault::unavailable(json!({}), &["://127.0.0.1:", "cannot be reached", "refused"])
            .gone()
            .also(|scene| assert_eq!(scene.sick().retries, 2));

    /// Proves S3-EC-6: with the last words, after the pauses of the reconnect rule.
    exits_at_startup over [stdio]
        Fault::unavailable(
            json!({"start": {"exit": 3, "stderr": "no licence\n"}}),
            &["exit code 3", "no licence"],
        )
        .also(|scene| assert_eq!(scene.starts("sick"), 3));

    /// Proves S3-EC-6.
    exits_before_initialize over [stdio, http_json, sse, websocket]
        Fault::unavailable(
            json!({"exit_on": {"initialize": 4, "server/discover": 4}, "start": {"stderr": "bye\n"}}),
            &[],
        )
        .also(|scene| {
            let words = match &scene.remote {
                None => ["exit code 4", "bye"],
                Some(_) => ["cannot be reached", "refused"],
            };
            super::super::fault_support::has_all(&scene.sick().reason.unwrap(), &words);
        });

    /// Proves S3-EC-6, S3-US6-3.
    hangs_before_initialize over [stdio, http_json, sse, websocket]
        Fault::unavailable(
            json!({"silent_on": ["initialize", "server/discover"]}),
            &["did not answer within 600ms", "`connect_timeout`"],
        )
        .set(hasty());

    never_reads over [stdio]
        Fault::unavailable(
            json!({"start": {"hang": true, "stderr": "loading\n"}}),
            &["did not answer within 600ms", "`connect_timeout`", "loading"],
        )
        .set(hasty());

    takes_the_connection_and_says_nothing over [http_json, sse, websocket]
        Fault::unavailable(hit(&json!("stall")), &["within 600ms"]).set(hasty());

    breaks_off_in_the_handshake over [http_json, sse, websocket]
        Fault::unavailable(hit(&json!("cut")), &["://127.0.0.1:"]);

    answers_initialize_with_an_error over [stdio, http_json, http_sse, sse, websocket]
        Fault::unavailable(
            json!({"errors_on": {"initialize": {"code": -32000, "message": "not today"}}}),
            &["not today", "-32000"],
        );

    speaks_another_version over [stdio, http_json, http_sse, sse, websocket]
        Fault::unavailable(json!({"protocol_versions": ["1999-01-01"]}), &["`1999-01-01`"]);

    /// A list that never comes.
    hangs_before_its_list over [stdio, http_json, http_sse, sse, websocket]
        Fault::unavailable(
            json!({"silent_on": ["tools/list"]}),
            &["does not list what it offers", "`tools/list`", "300ms"],
        )
        .set(json!({"request_timeout": "300ms"}));

    unauthorized over [http_json, sse, websocket]
        Fault::unavailable(refused(401), &["auth_required", "401", "sign in to `sick`"])
            .also(assert_not_repeated);

    forbidden over [http_json, sse, websocket]
        Fault::unavailable(refused(403), &["auth_required", "403", "sign in to `sick`"])
            .also(assert_not_repeated);

    /// `Retry-After` is respected, and the server receives no more requests than the policy allows.
    too_many_requests over [http_json, sse, websocket]
        Fault::answers(
            json!({"faults": [{"times": 1, "do":
                {"answer": {"status": 429, "headers": {"Retry-After": "1"}}}}]}),
            "text",
            "plain text",
        )
        .also(|scene| {
            let at = |index: usize| scene.requests()[index]["at_ms"].as_u64().unwrap();
            assert!(at(1) - at(0) >= 1000, "{} ms", at(1) - at(0));
        });

    internal_error over [http_json, sse, websocket]
        Fault::unavailable(refused(500), &["500"])
            .also(|scene| assert_eq!(scene.sick().retries, 2));

    not_mcp_at_all over [http_json, sse, websocket]
        Fault::unavailable(
            hit(&json!({"answer": {"status": 200, "headers": {"Content-Type": "text/html"},
                "body": "<html>Welcome</html>"}})),
            &["://127.0.0.1:"],
        );

    redirect_loop over [http_json, sse, websocket]
        Fault::unavailable(hit(&json!({"redirect": "self"})), &["redirects"])
            .also(|scene| assert!(scene.requests().len() <= 6, "{}", scene.requests().len()));

    /// No header of ours reaches another origin.
    redirect_elsewhere over [http_json, sse, websocket] {
        let elsewhere = Untouched::new();
        Fault::unavailable(hit(&json!({"redirect": elsewhere.url()})), &["redirects", "not followed"])
            .set(json!({"headers": {"Authorization": "Bearer secret"}}))
            .also(move |scene| {
                elsewhere.assert_untouched();
                assert_not_repeated(scene);
            })
    };

    endpoint_elsewhere over [sse] {
        let elsewhere = Untouched::new();
        Fault::unavailable(json!({"sse": {"endpoint": elsewhere.url()}}), &["another origin"])
            .set(json!({"headers": {"Authorization": "Bearer secret"}}))
            .also(move |scene| {
                elsewhere.assert_untouched();
                assert_eq!(scene.got("initialize"), 0);
            })
    };

    no_endpoint over [sse]
        Fault::unavailable(json!({"sse": {"no_endpoint": true}}), &["within 600ms"]).set(hasty());
}

/// A port that speaks, but not TLS: the cause is named, and nothing is sent without it.
#[tokio::test]
async fn tls_error() {
    for (transport, scheme) in [("http", "https"), ("sse", "https"), ("websocket", "wss")] {
        let plain = testkit::fixture::Fixture::serve(testkit::fixture::Transport::Http, &json!({}));
        let url = format!("{scheme}://127.0.0.1:{}/mcp", plain.port());
        let reason = why_unavailable(json!({"transport": transport, "url": url})).await;
        assert!(reason.contains("InvalidContentType") || reason.contains("TLS"), "{reason}");
        assert!(reason.contains(&url), "{reason}");
    }
}

/// An untrusted certificate: the cause is named, the server is tried once, and never without TLS
/// after that.
#[tokio::test]
async fn untrusted_certificate() {
    for (transport, scheme) in [("http", "https"), ("sse", "https"), ("websocket", "wss")] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://localhost:{}/mcp", listener.local_addr().unwrap().port());
        let acceptor = self_signed();
        let mut handshakes = Vec::new();
        let serving = async {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                // A connection without TLS, such as a plain request, fails for another reason.
                let handshake = acceptor.accept(socket).await;
                handshakes.push(handshake.map(drop).unwrap_err().to_string());
            }
        };
        let reason = tokio::select! {
            reason = why_unavailable(json!({"transport": transport, "url": url})) => reason,
            () = serving => unreachable!(),
        };
        super::fault_support::has_all(&reason, &[&url, "invalid peer certificate"]);
        assert_eq!(handshakes, ["received fatal alert: UnknownCA"], "{transport}");
    }
}

fn self_signed() -> TlsAcceptor {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = certified.signing_key.serialize_der().try_into().unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.into()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn dns_failure() {
    for (transport, scheme) in [("http", "http"), ("sse", "http"), ("websocket", "ws")] {
        let url = format!("{scheme}://no-such-host.invalid/mcp");
        let reason = why_unavailable(json!({"transport": transport, "url": url})).await;
        super::fault_support::has_all(&reason, &["no-such-host.invalid", "cannot be reached"]);
    }
}

async fn why_unavailable(server: Value) -> String {
    let workspace = testkit::Workspace::new();
    let server = super::fault_support::merged(json!({"reconnect": {"attempts": 0}}), &server);
    let config = super::fault_support::config(&workspace, &json!({"sick": server}), &json!([]));
    let runtime = haft::Runtime::start(config).await.unwrap();
    let sick = runtime.servers().remove(0);
    assert_eq!(sick.state, haft::ServerState::Unavailable);
    runtime.shutdown(std::time::Duration::ZERO).await;
    sick.reason.unwrap()
}
