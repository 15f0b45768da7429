//! Spans as OTLP in JSON: ids in hexadecimal, 64-bit numbers as text, enums as numbers.

use haft::TraceContext;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::span::{Attribute, Kind, Span};

/// The sender's fields of every request.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) service_name: String,
    /// Distinguishes this process from others of the same name.
    pub(super) instance_id: String,
}

/// The body of one request.
pub(super) fn request(sender: &Sender, spans: &[Span]) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let resource = attributes(&[
        ("service.name", Attribute::Text(&sender.service_name)),
        ("service.version", Attribute::Text(version)),
        ("service.instance.id", Attribute::Text(&sender.instance_id)),
    ]);
    let spans: Vec<Value> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "haft", "version": version}, "spans": spans}],
    }]})
    .to_string()
}

/// Number of spans that the collector rejected, and its reason, if given.
pub(super) fn rejected(answer: &[u8]) -> Option<(u64, String)> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let count = match partial.get("rejectedSpans")? {
        Value::String(count) => count.parse().ok()?,
        count => count.as_u64()?,
    };
    let why = partial.get("errorMessage").and_then(Value::as_str).unwrap_or("it gives no reason");
    (count > 0).then(|| (count, why.to_owned()))
}

fn span(span: &Span) -> Value {
    let failure = span.failure();
    let started = nanos(span.started);
    let ended = started.saturating_add(i128::try_from(span.duration.as_nanos()).unwrap_or(0));
    let kind = match span.kind() {
        Kind::Internal => 1,
        Kind::Client => 3,
    };
    let status = match &failure {
        None => json!({}),
        Some(code) => json!({"code": 2, "message": code}),
    };
    let mut json = json!({
        "traceId": span.trace.trace_id(),
        "spanId": span.trace.parent_id(),
        "flags": flags(&span.trace),
        "name": span.name(),
        "kind": kind,
        "startTimeUnixNano": started.to_string(),
        "endTimeUnixNano": ended.to_string(),
        "attributes": attributes(&span.attributes(failure.as_deref())),
        "status": status,
    });
    if let Some(above) = span.trace.above() {
        json["parentSpanId"] = above.into();
    }
    if let Some(state) = span.trace.tracestate() {
        json["traceState"] = state.into();
    }
    json
}

/// The trace's flags; the two bits above them mark that the parent span belongs to another process.
fn flags(trace: &TraceContext) -> u32 {
    let sampled = u32::from(trace.is_sampled());
    let has_remote_parent = 0x100 | (u32::from(trace.above().is_some()) << 9);
    sampled | has_remote_parent
}

fn attributes(all: &[(&str, Attribute<'_>)]) -> Vec<Value> {
    let value = |attribute: &Attribute<'_>| match attribute {
        Attribute::Text(text) => json!({"stringValue": text}),
        Attribute::Number(number) => json!({"intValue": number.to_string()}),
    };
    all.iter().map(|(key, of)| json!({"key": key, "value": value(of)})).collect()
}

/// Calls before 1970 do not occur.
fn nanos(time: Timestamp) -> i128 {
    time.as_nanosecond().max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_reports_rejected_spans() {
        let answer = br#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}"#;
        assert_eq!(rejected(answer), Some((2, "too old".to_owned())));
        let answer = br#"{"partialSuccess":{"rejectedSpans":1}}"#;
        assert_eq!(rejected(answer), Some((1, "it gives no reason".to_owned())));
        for nothing in [
            "{}",
            "",
            "\u{0}",
            r#"{"partialSuccess":{}}"#,
            r#"{"partialSuccess":{"rejectedSpans":0}}"#,
        ] {
            assert_eq!(rejected(nothing.as_bytes()), None, "{nothing}");
        }
    }
}
