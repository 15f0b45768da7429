//! Faults of what a server sends: too much, too long, too deep, or no message at all.

use haft::Code;
use serde_json::json;

use super::fault_support::{Fault, faults, resident_bytes};

const MIB: u64 = 1024 * 1024;

faults! {
    /// Other output and escape sequences on the channel are not messages, and not a reason to fail.
    garbage_and_colours over [stdio]
        Fault::answers(
            json!({"noise": ["\u{1b}[32mready\u{1b}[0m", "", "{\"level\":\"info\",\"error\":\"x\"}", "]["],
                "start": {"noise": ["Welcome!", "{", "\u{7}"]}}),
            "text",
            "plain text",
        )
        .also(|scene| assert_eq!(scene.starts("sick"), 1));

    garbage_before_an_answer over [stdio, sse, websocket]
        Fault::answers(json!({}), "flood", "after 65536 bytes of noise")
            .with(json!({"bytes": 65536}))
            .also(|scene| assert_eq!(scene.got("initialize"), 1, "the connection stays"));

    /// In the answer to one request there is nothing else to expect, so it is that request's fault.
    garbage_in_an_exchange over [http_json, http_sse]
        Fault::fails(json!({}), "flood", Code::ProtocolError, &["server `sick`"])
            .with(json!({"bytes": 65536}))
            .also(|scene| assert_eq!(scene.got("initialize"), 1, "the connection stays"));

    half_a_message over [stdio, http_json, http_sse, sse, websocket]
        Fault::fails(json!({}), "half_line", Code::ProtocolError, &["server `sick`", "broken message"])
            .also(|scene| assert_eq!(scene.got("initialize"), 1, "the connection stays"));

    /// The server is cut off, and memory stays flat.
    a_gigabyte_of_noise over [stdio, sse, websocket] {
        let before = resident_bytes();
        Fault::fails(json!({}), "flood", Code::ProtocolError, &["server `sick`", "that are not messages"])
            .with(json!({"bytes": 1024 * MIB}))
            .also(move |_| {
                let grown = resident_bytes().saturating_sub(before);
                assert!(grown < 64 * MIB, "{} MiB more", grown / MIB);
            })
    };

    a_gigabyte_in_an_exchange over [http_sse] {
        let before = resident_bytes();
        Fault::fails(json!({}), "flood", Code::ProtocolError, &["server `sick`"])
            .with(json!({"bytes": 1024 * MIB}))
            .also(move |_| {
                let grown = resident_bytes().saturating_sub(before);
                assert!(grown < 64 * MIB, "{} MiB more", grown / MIB);
            })
    };

    /// Many small unsolicited messages are not a heartbeat.
    // The flood lasts longer than the call's time, and two calls together stay below the limit of the next
    // test: a connection that is cut off there brings no cancellation to the server.
    a_flood_of_notices over [stdio, http_json, http_sse, sse, websocket]
        Fault::times_out(json!({}), "notification_flood")
            .with(json!({"count": 20_000, "every_ms": 10, "hang": true}))
            .cancelled();

    /// A connection with too many of them is closed, long before the call's timeout. They are
    /// counted in one place for all transports; this one delivers them fastest.
    more_notices_than_a_connection_may_send over [stdio]
        Fault::fails(
            json!({}),
            "notification_flood",
            Code::ProtocolError,
            &["server `sick`", "more than 50000 unsolicited messages in 10s"],
        )
        .with(json!({"count": 10_000_000}));

    a_flood_on_standard_error over [stdio]
        Fault::answers(
            json!({"start": {"stderr_bytes": 4 * MIB, "stderr": "first\n"}}), "text", "plain text",
        )
        .also(|scene| {
            let tail = scene.sick().stderr_tail.unwrap();
            assert!(tail.len() <= 64 * 1024 + 64, "{} bytes", tail.len());
            assert!(!tail.contains("first"), "only the end is kept");
        });

    an_answer_over_the_cap over [stdio, http_json, http_sse, sse, websocket]
        Fault::fails(json!({}), "big", Code::ProtocolError, &["server `sick`", "more than 8388608 bytes"])
            .with(json!({"bytes": 8 * MIB}));

    a_line_over_the_cap over [stdio, sse, websocket]
        Fault::fails(json!({}), "long_line", Code::ProtocolError, &["server `sick`"])
            .with(json!({"bytes": 17 * MIB}));

    deeper_than_the_cap over [stdio, http_json, http_sse, sse, websocket]
        Fault::fails(json!({}), "deep", Code::ProtocolError, &["server `sick`", "64"])
            .with(json!({"depth": 200}))
            .also(|scene| assert_eq!(scene.got("initialize"), 1, "the connection stays"));

    invalid_utf8 over [stdio, http_json, http_sse, sse, websocket]
        Fault::fails(json!({}), "bad_utf8", Code::ProtocolError, &["server `sick`", "UTF-8"]);
}
