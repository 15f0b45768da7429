//! The limits of a connection, each to the last byte.

use std::time::{Duration, Instant};

use haft_mcp::core::{Core, Counts, Ignored, Step};
use haft_mcp::{Failure, Limits};

const NOTIFICATION: &[u8] = br#"{"jsonrpc":"2.0","method":"x"}"#;

fn core(limits: Limits) -> Core<u64> {
    Core::new(limits)
}

fn ends(step: &Step<'_, u64>, why: &str) -> bool {
    matches!(step, Step::End(error) if error.kind == Failure::Protocol && error.message == why)
}

/// Proves S3-SC-007.
#[test]
fn a_message_may_be_as_long_as_the_limit_and_no_longer() {
    let limits = Limits { message_bytes_max: NOTIFICATION.len(), ..Limits::default() };
    let now = Instant::now();
    assert!(matches!(core(limits).receive(NOTIFICATION, None, now), Step::Notification { .. }));
    let longer = [NOTIFICATION, b" "].concat();
    let mut core = core(limits);
    let step = core.receive(&longer, None, now);
    assert!(ends(&step, "the server sent a message of more than 30 bytes"), "{step:?}");
}

#[test]
fn a_message_may_have_as_many_values_as_the_limit_and_no_more() {
    let limits = Limits { nodes_max: 10, ..Limits::default() };
    let mut core = core(limits);
    let (first, second) = (core.next_id(), core.next_id());
    core.wait(first, first).unwrap();
    core.wait(second, second).unwrap();
    let now = Instant::now();
    // The message, its three keys, their values, and two items.
    let few = br#"{"jsonrpc":"2.0","id":1,"result":[0,0]}"#;
    assert!(matches!(core.receive(few, None, now), Step::Answer(1, Ok(_))));
    let many = br#"{"jsonrpc":"2.0","id":2,"result":[0,0,0,0]}"#;
    assert!(matches!(core.receive(many, None, now), Step::Broken(waiters, _) if waiters == [2]));
    assert_eq!(core.pending(), 0);
}

#[test]
fn a_message_may_nest_as_deep_as_the_limit_and_no_deeper() {
    let limits = Limits { depth_max: 3, ..Limits::default() };
    let mut core = core(limits);
    let (first, second) = (core.next_id(), core.next_id());
    core.wait(first, first).unwrap();
    core.wait(second, second).unwrap();
    let now = Instant::now();
    let flat = br#"{"jsonrpc":"2.0","id":1,"result":{"a":[]}}"#;
    assert!(matches!(core.receive(flat, None, now), Step::Answer(1, Ok(_))));
    let deep = br#"{"jsonrpc":"2.0","id":2,"result":{"a":[[]]}}"#;
    assert!(matches!(core.receive(deep, None, now), Step::Broken(waiters, _) if waiters == [2]));
    assert_eq!(core.pending(), 0);
}

#[test]
fn noise_is_bounded_between_two_messages() {
    let limits = Limits { noise_bytes_max: 20, ..Limits::default() };
    let mut core = core(limits);
    let now = Instant::now();
    // Nine bytes and the line's end each.
    let print = b"a warning";
    for _ in 0..3 {
        assert!(matches!(core.receive(print, None, now), Step::Ignored(Ignored::Noise)));
        assert!(matches!(core.receive(print, None, now), Step::Ignored(Ignored::Noise)));
        assert!(matches!(core.receive(NOTIFICATION, None, now), Step::Notification { .. }));
    }
    assert!(matches!(core.receive(print, None, now), Step::Ignored(Ignored::Noise)));
    assert!(matches!(core.receive(print, None, now), Step::Ignored(Ignored::Noise)));
    let step = core.receive(b"", None, now);
    assert!(ends(&step, "the server sent more than 20 bytes that are not messages"));
    assert_eq!(core.counts(), Counts { noise_bytes: 81, malformed: 0, unmatched: 0 });
}

#[test]
fn unasked_messages_are_bounded_within_a_span() {
    let limits = Limits { unasked_max: 3, ..Limits::default() };
    let mut core = core(limits);
    let start = Instant::now();
    let late_in_span = start + Duration::from_millis(9999);
    let next_span = start + Duration::from_secs(10);
    let messages: [(&[u8], Instant); 6] = [
        (NOTIFICATION, start),
        (br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, start),
        (br#"{"jsonrpc":"2.0","id":77,"result":{}}"#, late_in_span),
        (br#"{"jsonrpc":"2.0","id":77,"result":{}}"#, next_span),
        (br#"{"jsonrpc":"2.0"}"#, next_span),
        (NOTIFICATION, next_span),
    ];
    for (message, now) in messages {
        assert!(!matches!(core.receive(message, None, now), Step::End(_)));
    }
    let step = core.receive(NOTIFICATION, None, next_span);
    assert!(ends(&step, "the server sent more than 3 unsolicited messages in 10s"));
    assert_eq!(core.counts(), Counts { noise_bytes: 0, malformed: 1, unmatched: 2 });
}

#[test]
fn log_lines_in_json_are_prints_and_fail_no_request() {
    let mut core = core(Limits::default());
    let id = core.next_id();
    core.wait(id, id).unwrap();
    for line in [
        r#"{"level":"error","error":"connection refused"}"#,
        r#"{"level":"info","id":1}"#,
        r#"{"id":1,"#,
        "[]",
    ] {
        let step = core.receive(line.as_bytes(), None, Instant::now());
        assert!(matches!(step, Step::Ignored(Ignored::Noise)), "{line}: {step:?}");
    }
    assert_eq!(core.pending(), 1);
}

#[test]
fn a_broken_answer_to_an_abandoned_request_fails_no_other() {
    let mut core = core(Limits::default());
    let (gone, waiting) = (core.next_id(), core.next_id());
    core.wait(gone, gone).unwrap();
    core.wait(waiting, waiting).unwrap();
    assert_eq!(core.abandon(gone), Some(gone));
    let late = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}";
    let step = core.receive(late, None, Instant::now());
    assert!(matches!(&step, Step::Broken(waiters, _) if waiters.is_empty()), "{step:?}");
    assert_eq!(core.pending(), 1);
}
