//! Faults in the middle of a call: it ends in a result or a typed error, its slot is free again,
//! and the server is used on or found again.

use haft::Code;
use serde_json::{Value, json};

use super::fault_support::{Fault, Then, faults};

/// A tool that the server calls harmless to repeat.
fn careful(behaves: &str) -> Value {
    json!(["text", {"name": "careful", "inputSchema": {"type": "object"}, "behaves": behaves,
        "annotations": {"readOnlyHint": true}}])
}

faults! {
    /// Proves S3-US5-4.
    hangs over [stdio, http_json, http_sse, sse, websocket]
        Fault::times_out(json!({}), "hang").cancelled();

    /// The same with a server that does not care.
    hangs_and_ignores_the_end over [stdio, http_json, http_sse, sse, websocket]
        Fault::times_out(json!({"ignore_cancel": true}), "hang").cancelled();

    /// Proves S3-US5-2: the outcome of the call is unknown; the server is started again.
    crashes over [stdio]
        Fault::fails(
            json!({"start": {"stderr": "the disk is full\n"}}),
            "crash",
            Code::OutcomeUnknown,
            &["server `sick` was lost while `crash` ran"],
        )
        .also(|scene| {
            assert_eq!(scene.got("tools/call"), 3, "nothing is repeated");
            assert_eq!(scene.starts("sick"), 3);
        });

    /// Proves S3-US5-2: a server that does not return is reported as unavailable.
    crashes_and_stays_away over [http_json, http_sse, sse, websocket]
        Fault::fails(
            json!({}),
            "crash",
            Code::OutcomeUnknown,
            &["server `sick` was lost while `crash` ran"],
        )
        .then(Then::Unavailable);

    /// With `reconnect.attempts: 0` what is lost stays lost.
    crashes_for_good over [stdio]
        Fault::fails(json!({}), "crash", Code::OutcomeUnknown, &["server `sick` was lost"])
            .set(json!({"reconnect": {"attempts": 0}}))
            .then(Then::Unavailable)
            .also(|scene| assert_eq!(scene.starts("sick"), 1));

    /// Each process dies in its second call; a harmless one is sent again to the next.
    crashes_in_a_harmless_call over [stdio]
        Fault::answers(
            json!({"tools": careful("text"), "crash_after_calls": 1}), "careful", "plain text",
        )
        .before(|scene| drop(scene.call_now("text", json!({}))))
        .then(Then::NotAsked)
        .also(|scene| {
            assert_eq!(scene.got("tools/call"), 3);
            assert_eq!(scene.starts("sick"), 2);
        });

    slow_drip_of_messages over [stdio, http_json, http_sse, sse, websocket]
        Fault::times_out(json!({}), "drip").with(json!({"every_ms": 20})).cancelled();

    slow_drip_of_bytes over [stdio]
        Fault::times_out(json!({"tools": ["text", "trickle"]}), "trickle")
            .with(json!({"every_ms": 20}))
            .then(Then::NotAsked);

    slow_drip_of_a_body over [http_json]
        Fault::times_out(
            json!({"faults": [{"rpc": "tools/call", "times": 2, "do": {"drip": 20}}]}), "echo",
        );

    wrong_id over [stdio, http_sse, sse, websocket]
        Fault::times_out(json!({}), "wrong_id").cancelled();

    /// A body that answers another request is all that comes back.
    wrong_id_in_a_body over [http_json]
        Fault::fails(json!({}), "wrong_id", Code::ProtocolError, &["server `sick`", "without an answer"]);

    unsolicited_response over [stdio, http_sse, sse, websocket]
        Fault::answers(json!({"tools": ["text", "stray"]}), "stray", "for you");

    duplicate_response over [stdio, http_json, http_sse, sse, websocket]
        Fault::answers(json!({}), "duplicate", "first")
            .also(|scene| assert_eq!(scene.got("initialize"), 1, "the connection stays"));

    /// Proves S3-US5-3.
    error_response over [stdio, http_json, http_sse, sse, websocket]
        Fault::fails(
            json!({}),
            "rpc_error",
            Code::ToolExecutionError,
            &["server `sick` refused `rpc_error`", "the tool objects", "-32050", "as asked"],
        );

    result_that_is_none over [stdio, http_json, http_sse, sse, websocket]
        Fault::fails(
            json!({"tools": ["text", {"name": "odd", "inputSchema": {"type": "object"},
                "result": {"content": 5}}]}),
            "odd",
            Code::ProtocolError,
            &["server `sick`", "cannot be read"],
        );
}
