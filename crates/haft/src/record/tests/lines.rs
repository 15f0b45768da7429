//! The line that is written by hand is the one that serde would write.

use proptest::prelude::*;
use serde::Serialize;

use super::*;
use crate::record::line::{Line, LineLimit};

/// The fields of a line, in their order.
#[derive(Serialize)]
struct Wire<'a> {
    execution_id: &'a str,
    #[serde(with = "crate::record::rfc3339")]
    timestamp: Timestamp,
    tool: &'a str,
    source: RecordSource,
    server: Option<&'a str>,
    caller: Option<&'a str>,
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<&'a str>,
    input: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Output<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a [Content]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorBody>,
    status: Status,
    outcome: Outcomes,
    queued_ms: u64,
    duration_ms: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Data(&'a RawValue),
    Content(&'a [Content]),
}

fn by_serde(entry: &Entry<'_>) -> String {
    let (output, content) = match (entry.data, entry.content) {
        (None, []) => (None, None),
        (None, content) => (Some(Output::Content(content)), None),
        (Some(data), []) => (Some(Output::Data(data)), None),
        (Some(data), [Content::Text { text }]) if text == data.get() => {
            (Some(Output::Data(data)), None)
        }
        (Some(data), content) => (Some(Output::Data(data)), Some(content)),
    };
    let wire = Wire {
        execution_id: entry.execution_id,
        timestamp: entry.timestamp,
        tool: entry.tool,
        source: entry.source,
        server: entry.server,
        caller: entry.caller,
        session: entry.session,
        request: entry.request,
        trace_id: entry.trace_id,
        input: entry.input,
        output,
        content,
        raw: entry.raw,
        stdout: entry.stdout,
        error: entry.error,
        status: entry.status,
        outcome: entry.outcome,
        queued_ms: entry.queued_ms,
        duration_ms: entry.duration_ms,
    };
    serde_json::to_string(&wire).unwrap() + "\n"
}

fn by_hand(entry: &Entry<'_>) -> String {
    // No secret is known, and nothing in the values of this test looks like one.
    Line::new(entry, &Redactor::of_known([]), LineLimit::of_part(u64::MAX)).text
}

fn source() -> impl Strategy<Value = RecordSource> {
    prop::sample::select(vec![
        RecordSource::Local,
        RecordSource::Mcp,
        RecordSource::Builtin,
        RecordSource::Function,
        RecordSource::Unknown,
    ])
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop::sample::select(vec![Outcome::Ok, Outcome::Failed, Outcome::NotReached])
}

fn block() -> impl Strategy<Value = Content> {
    prop_oneof![
        any::<String>().prop_map(|text| Content::Text { text }),
        any::<String>().prop_map(|data| Content::Image { data, mime_type: "image/png".into() }),
        (any::<String>(), any::<Option<String>>()).prop_map(|(uri, text)| Content::Resource {
            uri,
            mime_type: None,
            text,
            data: None,
            about: crate::content::ResourceAbout::default(),
        }),
    ]
}

fn json() -> impl Strategy<Value = Box<RawValue>> {
    any::<Vec<String>>().prop_map(|texts| raw(&serde_json::json!({ "a": texts }).to_string()))
}

proptest! {
    #[test]
    fn a_line_by_hand_is_the_line_of_serde(
        texts in prop::array::uniform4(".*"),
        optional in prop::array::uniform5(prop::option::of(any::<String>())),
        millis in -377_705_000_000_000_i64..253_402_200_000_000,
        (source, layers) in (source(), prop::array::uniform4(outcome())),
        (input, data, whole) in (json(), prop::option::of(json()), prop::option::of(json())),
        content in prop::collection::vec(block(), 0..3),
        (is_error, repeats) in any::<(bool, bool)>(),
        (queued_ms, duration_ms) in any::<(u64, u64)>(),
    ) {
        let [execution_id, tool, message, detail] = &texts;
        let [server, caller, session, request, trace_id] = &optional;
        let error = ErrorBody {
            code: Code::Busy,
            message: message.clone(),
            remedy: request.clone().map(Into::into),
            details: serde_json::json!({ "detail": detail }),
            stage: Stage::Failed,
            rpc: None,
        };
        let repeated = data.as_ref().map(|data| Content::Text { text: data.get().to_owned() });
        let content = match repeated {
            Some(repeated) if repeats => vec![repeated],
            _ => content,
        };
        let [transport, rpc, tool_layer, schema] = layers;
        let entry = Entry {
            execution_id,
            timestamp: Timestamp::from_millisecond(millis).unwrap(),
            tool,
            source,
            server: server.as_deref(),
            caller: caller.as_deref(),
            session: session.as_deref(),
            request: request.as_deref(),
            trace_id: trace_id.as_deref(),
            input: &input,
            started: true,
            data: data.as_deref(),
            content: &content,
            raw: whole.as_deref(),
            stdout: session.as_deref(),
            error: is_error.then_some(&error),
            status: if is_error { Status::Error } else { Status::Success },
            outcome: Outcomes { transport, rpc, tool: tool_layer, schema },
            policy: None,
            queued_ms,
            duration_ms,
        };
        let expected = by_serde(&entry);
        // Escapes of control characters count as suspicious; masking leaves them as they are.
        prop_assert_eq!(by_hand(&entry), expected);
    }
}

#[test]
fn times_are_spelled_to_the_millisecond_and_cut_off() {
    for time in [
        "1970-01-01T00:00:00Z",
        "1999-12-31T23:59:59.999999Z",
        "2000-02-29T12:34:56.7Z",
        "2026-03-01T00:00:00.001Z",
        "2100-02-28T23:59:59.0999Z",
        "9999-12-30T22:00:00Z",
    ] {
        let input = raw("{}");
        let entry = Entry { timestamp: at(time), ..entry("e", &input) };
        assert_eq!(by_hand(&entry), by_serde(&entry));
    }
}
