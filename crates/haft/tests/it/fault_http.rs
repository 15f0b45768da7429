//! Faults of single HTTP exchanges: broken or silent connections, and error statuses.

use haft::Code;
use serde_json::{Value, json};

use super::fault_support::{Fault, Scene, faults};

/// The behaviour for the first `times` calls.
fn calls(times: u64, action: &Value) -> Value {
    json!({"faults": [{"rpc": "tools/call", "times": times, "do": action}]})
}

fn status(code: u16) -> Value {
    json!({"answer": {"status": code}})
}

/// A server with a tool that it calls harmless to repeat.
fn harmless(faults: Value) -> Value {
    let tools = json!({"tools": ["text", {"name": "careful", "inputSchema": {"type": "object"},
        "behaves": "text", "annotations": {"idempotentHint": true}}]});
    super::fault_support::merged(faults, &tools)
}

fn assert_one_session(scene: &Scene) {
    assert_eq!(scene.got("initialize"), 1, "the connection stays");
}

faults! {
    closed_in_the_middle_of_a_body over [http_json]
        Fault::fails(
            calls(2, &json!("cut")),
            "echo",
            Code::OutcomeUnknown,
            &["server `sick` was lost while `echo` ran", "://127.0.0.1:", "broke"],
        );

    closed_in_the_middle_of_an_event over [http_sse]
        Fault::fails(
            calls(2, &json!("cut_sse")),
            "echo",
            Code::OutcomeUnknown,
            &["server `sick` was lost while `echo` ran", "://127.0.0.1:"],
        );

    closed_in_a_harmless_call over [http_json, http_sse]
        Fault::answers(harmless(calls(1, &json!("cut"))), "careful", "plain text");

    /// A connection over which nothing comes any more: only the call's own time ends it.
    half_open over [http_json, http_sse]
        Fault::times_out(calls(2, &json!("stall_midway")), "echo").cancelled();

    never_answered over [http_json, http_sse, sse]
        Fault::times_out(calls(2, &json!("stall")), "echo").cancelled();

    unauthorized over [http_json, http_sse, sse]
        Fault::fails(
            calls(2, &status(401)),
            "echo",
            Code::ServiceUnavailable,
            &["auth_required", "server `sick` wants credentials", "401"],
        )
        .also(|scene| {
            assert_eq!(scene.got("tools/call"), 3, "one request for each call");
            assert_one_session(scene);
        });

    forbidden over [http_json, http_sse, sse]
        Fault::fails(
            calls(2, &status(403)),
            "echo",
            Code::ServiceUnavailable,
            &["auth_required", "server `sick`", "403"],
        )
        .also(|scene| assert_eq!(scene.got("tools/call"), 3, "one request for each call"));

    /// One `initialize` and one repetition: a call that was not executed is sent again.
    expired_session over [http_json, http_sse]
        Fault::answers(json!({"http": {"expire_session_at_call": 1}}), "text", "plain text")
            .also(|scene| {
                assert_eq!(scene.got("initialize"), 2);
                // The call, the same again, and the one afterwards.
                assert_eq!(scene.got("tools/call"), 3);
            });

    /// The same where the error carries the id of the request, as an answer to it would.
    expired_session_in_an_answer over [http_json, http_sse]
        Fault::answers(
            json!({"http": {"expire_session_at_call": 1, "expiry_names_request": true}}),
            "text",
            "plain text",
        )
        .also(|scene| {
            assert_eq!(scene.got("initialize"), 2);
            assert_eq!(scene.got("tools/call"), 3);
        });

    /// An error of the request itself with the same status is its answer: the session stays.
    missing_with_an_own_id over [http_json, http_sse]
        Fault::fails(
            calls(2, &json!({"answer_error": {"status": 404, "code": -32002, "message": "no such thing"}})),
            "echo",
            Code::ToolExecutionError,
            &["server `sick` refused `echo`", "no such thing"],
        )
        .also(assert_one_session);

    expired_session_of_sse over [sse]
        Fault::answers(calls(1, &status(404)), "text", "plain text").also(|scene| {
            assert_eq!(scene.got("initialize"), 2);
            assert_eq!(scene.got("tools/call"), 3);
        });

    /// A server that always rejects its sessions is not retried forever.
    sessions_always_expire over [http_json, http_sse, sse]
        Fault::fails(
            calls(1000, &status(404)), "echo", Code::ServiceUnavailable, &["server `sick`", "session"],
        )
        .then(super::super::fault_support::Then::NotAsked)
        .also(|scene| assert_eq!(scene.got("tools/call"), 4, "each call is repeated once"));

    /// `Retry-After` is waited for within the call.
    too_many_requests over [http_json, http_sse, sse]
        Fault::answers(
            calls(1, &json!({"answer": {"status": 429, "headers": {"Retry-After": "1"}}})),
            "text",
            "plain text",
        )
        .also(|scene| {
            let facts = testkit::fixture::events(&scene.facts("sick"), "message");
            let is_call = |fact: &&Value| fact["message"]["method"] == "tools/call";
            let at: Vec<_> = facts.iter().filter(is_call).map(|it| it["at_ms"].as_u64().unwrap()).collect();
            assert!(at[1] - at[0] >= 1000, "{at:?}");
            assert_one_session(scene);
        });

    /// The call's own time is shorter than the server's wish.
    too_many_requests_for_too_long over [http_json, http_sse, sse]
        Fault::times_out(
            calls(2, &json!({"answer": {"status": 429, "headers": {"Retry-After": "3600"}}})), "echo",
        );

    too_many_requests_for_ever over [http_json, http_sse, sse]
        Fault::fails(
            calls(1000, &json!({"answer": {"status": 429}})),
            "echo",
            Code::ServiceUnavailable,
            &["server `sick`", "429"],
        )
        .then(super::super::fault_support::Then::NotAsked)
        .also(|scene| assert!(scene.got("tools/call") <= 6, "{}", scene.got("tools/call")));

    /// Proves S2-FR-017: a server that cannot accept the call now has not begun it, so the call is
    /// sent again, with or without `Retry-After`.
    service_unavailable over [http_json, http_sse, sse]
        Fault::answers(calls(2, &status(503)), "text", "plain text").also(|scene| {
            assert!(scene.got("tools/call") >= 3, "{}", scene.got("tools/call"));
            assert_one_session(scene);
        });

    service_unavailable_for_a_second over [http_json]
        Fault::answers(
            calls(1, &json!({"answer": {"status": 503, "headers": {"Retry-After": "1"}}})),
            "text",
            "plain text",
        )
        .also(assert_one_session);

    /// The retries are those of `reconnect`: two here, and none with `attempts: 0`.
    service_unavailable_for_ever over [http_json, http_sse, sse]
        Fault::fails(
            calls(1000, &status(503)),
            "echo",
            Code::ServiceUnavailable,
            &["server `sick` takes no calls at the moment", "503"],
        )
        .then(super::super::fault_support::Then::NotAsked)
        .also(|scene| assert_eq!(scene.got("tools/call"), 6, "two calls, three attempts each"));

    service_unavailable_without_retries over [http_json]
        Fault::fails(calls(1000, &status(503)), "echo", Code::ServiceUnavailable, &["503"])
            .set(json!({"reconnect": {"attempts": 0}}))
            .then(super::super::fault_support::Then::NotAsked)
            .also(|scene| assert_eq!(scene.got("tools/call"), 2, "two calls, one attempt each"));

    /// The server may have acted before it failed.
    internal_error over [http_json, http_sse, sse]
        Fault::fails(
            calls(2, &status(500)), "echo", Code::OutcomeUnknown, &["server `sick`", "500"],
        )
        .also(|scene| {
            assert_eq!(scene.got("tools/call"), 3, "nothing is repeated");
            assert_one_session(scene);
        });

    /// A harmless call is repeated, after a pause.
    internal_error_in_a_harmless_call over [http_json, http_sse, sse]
        Fault::answers(harmless(calls(2, &status(500))), "careful", "plain text").also(|scene| {
            let facts = testkit::fixture::events(&scene.facts("sick"), "message");
            let is_call = |fact: &&Value| fact["message"]["method"] == "tools/call";
            let at: Vec<_> = facts.iter().filter(is_call).map(|it| it["at_ms"].as_u64().unwrap()).collect();
            assert!(at[1] - at[0] >= 18 && at[2] - at[1] >= 36, "pauses grow: {at:?}");
        });

    redirect_in_a_call over [http_json, http_sse, sse] {
        let elsewhere = super::super::fault_support::Untouched::new();
        Fault::fails(
            calls(2, &json!({"redirect": elsewhere.url()})),
            "echo",
            Code::ServiceUnavailable,
            &["server `sick`", "redirects", "another origin"],
        )
        .also(move |_| elsewhere.assert_untouched())
    };
}
