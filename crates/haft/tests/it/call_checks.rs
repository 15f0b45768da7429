//! Arguments and outputs match their schemas, and every call writes one log entry.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::{
    Code, Content, Envelope, FunctionTool, Runtime, Status, ToolCall, ToolFailure, ToolOutput,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Bench, empty};

fn weather_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 1}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city"],
        "additionalProperties": false,
    })
}

async fn echo(bench: &Bench, reached: &Arc<AtomicUsize>) -> Runtime {
    let reached = reached.clone();
    let tool = FunctionTool::new("weather", "Weather.", weather_schema(), move |args, context| {
        reached.fetch_add(1, Ordering::SeqCst);
        async move {
            let visits = context.state.get("visits").and_then(|it| it.as_u64()).unwrap_or(0) + 1;
            context.state.set("visits", json!(visits));
            Ok(ToolOutput::from_json(&json!({"args": args, "visits": visits})).unwrap())
        }
    });
    let config = bench.config("tools: [{name: weather, parallel_capable: true}]");
    Runtime::builder(config).tool(tool).start().await.unwrap()
}

/// Proves S2-FR-005 (input), S2-EC-10.
#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_tool() {
    let (bench, reached) = (Bench::new(), Arc::default());
    let runtime = echo(&bench, &reached).await;
    for (arguments, pointer, problem) in [
        (r#"{"city": 5}"#, "/city", "expected string, found number"),
        (r#"{"days": 2}"#, "", "`city` is missing"),
        (r#"{"city": "x", "town": 1}"#, "", "`town` is not expected"),
    ] {
        let answer = runtime.call(ToolCall::from_text("weather", arguments)).await;
        let error = answer.error.unwrap();
        assert_eq!(error.code, Code::ValidationError);
        let violation = json!([{"pointer": pointer, "problem": problem}]);
        assert_eq!(error.details["violations"], violation, "{arguments}");
        let entry = bench.logged().pop().unwrap();
        assert_eq!((entry.execution_id, entry.input.get()), (answer.execution_id, arguments));
    }
    for arguments in ["[1]", "nonsense", r#"{"city": "a", "city": "b"}"#] {
        let answer = runtime.call(ToolCall::from_text("weather", arguments)).await;
        assert_eq!(answer.error.unwrap().code, Code::ValidationError, "{arguments}");
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0);
    assert_eq!(bench.logged().len(), 6);
}

/// Proves S2-FR-005 (output): the raw answer is logged, but not handed on.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_not_handed_on() {
    let bench = Bench::new();
    let schema =
        json!({"type": "object", "properties": {"temp": {"type": "number"}}, "required": ["temp"]});
    let wrong = FunctionTool::new("wrong", "", json!({"type": "object"}), |_, _| async {
        Ok(ToolOutput::from_json(&json!({"temp": "warm"})).unwrap())
    })
    .with_output_schema(schema.clone());
    let none = FunctionTool::new("none", "", json!({"type": "object"}), |_, _| async {
        Ok(ToolOutput::from_text("12"))
    })
    .with_output_schema(schema.clone());
    let failing = FunctionTool::new("failing", "", json!({"type": "object"}), |_, _| async {
        Ok(ToolOutput { is_error: true, ..ToolOutput::from_text("no sensor") })
    })
    .with_output_schema(schema);
    let config = bench.config("tools: [{name: wrong}, {name: none}, {name: failing}]");
    let runtime =
        Runtime::builder(config).tool(wrong).tool(none).tool(failing).start().await.unwrap();
    let answer = runtime.call(empty("wrong")).await;
    assert!(answer.data.is_none() && answer.content.is_empty());
    let error = answer.error.unwrap();
    assert_eq!(error.code, Code::OutputValidationError);
    assert_eq!(
        error.message,
        "the answer of `wrong` does not fit its output schema: at `/temp`: expected number, found string"
    );
    assert_eq!(bench.logged()[0].output.as_ref().unwrap().get(), r#"{"temp":"warm"}"#);
    let error = runtime.call(empty("none")).await.error.unwrap();
    assert_eq!(error.code, Code::OutputValidationError);
    // A tool that reports failure need not return the declared output.
    let answer = runtime.call(empty("failing")).await;
    assert_eq!(answer.content, [Content::text("no sensor")]);
    let error = answer.error.unwrap();
    assert_eq!((error.code, error.message.as_str()), (Code::ToolExecutionError, "no sensor"));
}

/// Proves S2-FR-008, S2-KE-04, S2-KE-05, S2-KE-06, S2-FR-011, S2-Q-03.
#[tokio::test]
async fn one_envelope_and_one_entry_tell_the_same_story() {
    let (bench, reached) = (Bench::new(), Arc::default());
    let runtime = echo(&bench, &reached).await;
    let call =
        || ToolCall::from_text("weather", r#"{"city": "Seoul"}"#).caller("tests").session("s1");
    let first = runtime.call(call()).await;
    let second = runtime.call(call()).await;
    assert_eq!(first.status, Status::Success);
    assert_eq!(first.data.as_ref().unwrap().get(), r#"{"args":{"city":"Seoul"},"visits":1}"#);
    // The two calls belong to one session, so they share its state.
    assert_eq!(second.data.as_ref().unwrap().get(), r#"{"args":{"city":"Seoul"},"visits":2}"#);
    let logged = bench.logged();
    for (envelope, entry) in [first, second].iter().zip(&logged) {
        assert_eq!(entry.execution_id, envelope.execution_id);
        assert_eq!(entry.input.get(), r#"{"city": "Seoul"}"#);
        assert_eq!(entry.output.as_ref().unwrap().get(), envelope.data.as_ref().unwrap().get());
        assert_eq!(
            (entry.caller.as_deref(), entry.session.as_deref()),
            (Some("tests"), Some("s1"))
        );
        assert_eq!((entry.status, entry.duration_ms), (envelope.status, envelope.duration_ms));
    }
    let json = serde_json::to_value(runtime.call(empty("nope")).await).unwrap();
    let mut keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let expected = [
        "content",
        "data",
        "duration_ms",
        "error",
        "execution_id",
        "message",
        "queued_ms",
        "status",
        "tool",
    ];
    assert_eq!(keys, expected);
    assert_eq!(json["status"], "error");
    assert_eq!(json["error"]["code"], "UnknownTool");
    assert_eq!(json["message"], "no tool is named `nope`");
}

/// Proves S2-FR-008: a model reads the code of a failure first, and the tool's own words unmodified.
#[tokio::test]
async fn a_model_reads_the_code_of_a_failure_first() {
    let bench = Bench::new();
    let any = || json!({"type": "object"});
    let raising = FunctionTool::new("raising", "", any(), |_, _| async {
        Err(ToolFailure::execution("no sensor"))
    });
    let away = FunctionTool::new("away", "", any(), |_, _| async {
        Err(ToolFailure::Unavailable {
            message: "the sensor is away".into(),
            remedy: None,
            details: Value::Null,
        })
    });
    let says = FunctionTool::new("says", "", any(), |_, _| async {
        Ok(ToolOutput { is_error: true, ..ToolOutput::from_text("no battery") })
    });
    let mute = FunctionTool::new("mute", "", any(), |_, _| async {
        Ok(ToolOutput { is_error: true, ..ToolOutput::default() })
    });
    let config = bench.config("tools: [{name: raising}, {name: away}, {name: says}, {name: mute}]");
    let builder = Runtime::builder(config).tool(raising).tool(away).tool(says).tool(mute);
    let runtime = builder.start().await.unwrap();
    for (tool, text, message) in [
        ("raising", "ToolExecutionError: no sensor", "no sensor"),
        ("away", "ServiceUnavailable: the sensor is away", "the sensor is away"),
        ("says", "no battery", "no battery"),
        (
            "mute",
            "ToolExecutionError: the tool reported a failure without a message",
            "the tool reported a failure without a message",
        ),
        ("nope", "UnknownTool: no tool is named `nope`", "no tool is named `nope`"),
    ] {
        let envelope = runtime.call(empty(tool)).await;
        assert_eq!(envelope.model_text(), text);
        assert_eq!(envelope.message.as_deref(), Some(message), "{tool}");
    }
}

/// Proves S2-SC-006: success, unknown tool, bad input, failure, panic, timeout, refusal.
#[tokio::test]
async fn every_way_to_end_leaves_exactly_one_entry() {
    let bench = Bench::new();
    let any = json!({"type": "object"});
    let ok = FunctionTool::new("ok", "", any.clone(), |_, _| async { Ok(ToolOutput::default()) });
    let fails = FunctionTool::new("fails", "", any.clone(), |_, _| async {
        Err(ToolFailure::execution("broken"))
    });
    let panics = FunctionTool::new("panics", "", any.clone(), |_, _| async {
        assert!(std::hint::black_box(false), "oh");
        Ok(ToolOutput::default())
    });
    let hangs = FunctionTool::new("hangs", "", any.clone(), |_, _| async {
        std::future::pending::<()>().await;
        Ok(ToolOutput::default())
    });
    let asks = FunctionTool::new("asks", "", any, |_, _| async { Ok(ToolOutput::default()) });
    let config = bench.config(
        "tools: [{name: ok}, {name: fails}, {name: panics}, {name: hangs, timeout: 20ms}, \
         {name: asks, approval: ask}]",
    );
    let builder = Runtime::builder(config).tool(ok).tool(fails).tool(panics).tool(hangs).tool(asks);
    let runtime = builder.start().await.unwrap();
    let code = |answer: Envelope| answer.error.map(|error| error.code);
    assert_eq!(code(runtime.call(empty("ok")).await), None);
    assert_eq!(code(runtime.call(empty("nothing")).await), Some(Code::UnknownTool));
    assert_eq!(
        code(runtime.call(ToolCall::from_text("ok", "[")).await),
        Some(Code::ValidationError)
    );
    assert_eq!(code(runtime.call(empty("fails")).await), Some(Code::ToolExecutionError));
    assert_eq!(code(runtime.call(empty("panics")).await), Some(Code::ToolExecutionError));
    assert_eq!(code(runtime.call(empty("asks")).await), Some(Code::Denied));
    assert_eq!(code(runtime.call(empty("asks").approved()).await), None);
    let answer = runtime.call(empty("hangs")).await;
    let error = answer.error.unwrap();
    assert_eq!(error.code, Code::Timeout);
    assert_eq!(error.message, "`hangs` gave no answer within 20ms and was stopped");
    assert_eq!(error.details, json!({"timeout_ms": 20}));
    let logged = bench.logged();
    assert_eq!(logged.len(), 8);
    let mut ids: Vec<_> = logged.iter().map(|entry| &entry.execution_id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 8);
}

#[tokio::test]
async fn a_long_answer_is_cut_for_the_model_and_whole_in_the_log() {
    let bench = Bench::new();
    let long = FunctionTool::new("long", "", json!({"type": "object"}), |_, _| async {
        Ok(ToolOutput::from_text("ä".repeat(600)))
    });
    let config = bench.config("defaults: {output_bytes_max: 1001}\ntools: [{name: long}]");
    let runtime = Runtime::builder(config).tool(long).start().await.unwrap();
    let answer = runtime.call(empty("long")).await;
    let [Content::Text { text }] = &answer.content[..] else { panic!("{answer:?}") };
    let id = &answer.execution_id;
    let marker =
        format!("\n[200 of 1200 bytes cut here; the execution log has the result of `{id}`]");
    assert_eq!(text, &format!("{}{marker}", "ä".repeat(500)));
    assert!(bench.logged()[0].output.as_ref().unwrap().get().contains(&"ä".repeat(600)));
}

#[tokio::test]
async fn a_full_disk_refuses_calls_or_lets_them_run_as_configured() {
    for (policy, is_refused) in [("refuse", true), ("degrade", false)] {
        let bench = Bench::new();
        let logs = bench.logs();
        let tool = FunctionTool::new("a", "", json!({"type": "object"}), |_, _| async {
            Ok(ToolOutput::default())
        });
        let config = haft::Config::from_yaml(&format!(
            "log: {{dir: {logs:?}, on_failure: {policy}}}\ntools: [{{name: a}}]"
        ));
        let runtime = Runtime::builder(config.unwrap()).tool(tool).start().await.unwrap();
        let file = std::fs::read_dir(&logs).unwrap().next().unwrap().unwrap().path();
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/full", &file).unwrap();
        let first = runtime.call(empty("a")).await;
        let second = runtime.call(empty("a")).await;
        assert!(!runtime.log_health().unwrap().is_working(), "{policy}");
        assert_eq!(second.status == Status::Error, is_refused, "{policy}");
        if is_refused {
            assert!(first.message.unwrap().contains("not in the execution log"));
            let error = second.error.unwrap();
            assert_eq!(error.code, Code::ServiceUnavailable);
            assert!(error.message.contains("No space left on device"), "{}", error.message);
            assert!(error.remedy.unwrap().to_string().contains("log.on_failure: degrade"));
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(runtime.call(empty("a")).await.status, Status::Success);
        runtime.shutdown(Duration::from_secs(1)).await;
    }
}

/// Any JSON value of moderate size.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![Just("city".to_owned()), Just("days".to_owned()), ".{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The schema's meaning, written by hand: an independent check.
fn fits(value: &Value) -> bool {
    let Some(map) = value.as_object() else {
        return false;
    };
    let is_whole =
        |days: &Value| days.as_f64().is_some_and(|days| days.fract() == 0.0 && days >= 1.0);
    map.keys().all(|key| key == "city" || key == "days")
        && map.get("city").and_then(Value::as_str).is_some_and(|city| !city.is_empty())
        && map.get("days").is_none_or(is_whole)
}

/// Proves S2-SC-004: whatever comes in, the tool sees only what fits.
#[test]
fn no_random_input_gets_past_the_schema() {
    let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (bench, reached) = (Bench::new(), Arc::<AtomicUsize>::default());
    let runtime = executor.block_on(echo(&bench, &reached));
    proptest!(ProptestConfig::with_cases(400), |(value in any_json())| {
        let before = reached.load(Ordering::SeqCst);
        let answer = executor.block_on(runtime.call(ToolCall::new("weather", &value)));
        let ran = reached.load(Ordering::SeqCst) > before;
        prop_assert_eq!(ran, fits(&value), "{}", value);
        prop_assert_eq!(answer.status == Status::Success, ran);
    });
}

/// A schema that refers to itself at every branch never finishes on a deep value: the call is
/// refused in time instead, and other calls are not delayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_would_take_for_ever_refuses_the_call() {
    let bench = Bench::new();
    let again = json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "required": ["x"]});
    let schema = json!({
        "$defs": {"a": {"type": "object", "anyOf": [again, again, again]}}, "$ref": "#/$defs/a",
    });
    let tool = FunctionTool::new("deep", "", schema, |_, _| async { Ok(ToolOutput::default()) });
    let runtime =
        Runtime::builder(bench.config("tools: [{name: deep}]")).tool(tool).start().await.unwrap();
    let nested = |depth: usize| format!("{}1{}", r#"{"x":"#.repeat(depth), "}".repeat(depth));
    let refused = runtime.call(ToolCall::from_text("deep", nested(60))).await.error.unwrap();
    assert_eq!(refused.code, Code::ValidationError);
    assert!(refused.message.contains("nested deeper than 18 levels"), "{}", refused.message);
    let refused = runtime.call(ToolCall::from_text("deep", nested(18))).await.error.unwrap();
    assert_eq!(refused.code, Code::ValidationError);
    assert!(refused.message.contains("it took longer than 1s"), "{}", refused.message);
    let shallow = runtime.call(ToolCall::from_text("deep", nested(3))).await.error.unwrap();
    assert_eq!(shallow.code, Code::ValidationError);
    assert_eq!(bench.logged().len(), 3);
}

#[test]
fn a_pattern_with_a_huge_automaton_is_refused_and_an_ordinary_one_is_not() {
    let pattern =
        |pattern: &str| haft_config::schema::Schema::compile(&json!({"pattern": pattern}));
    assert!(pattern("^((a{1,100}){1,100}){1,5}$").is_err());
    assert!(pattern("^[a-z0-9]+(-[a-z0-9]+){0,63}$").is_ok());
    assert!(pattern("^\\w{1,255}@[\\w.]{1,255}$").is_ok());
}

#[tokio::test]
async fn a_tool_that_panics_at_any_moment_fails_its_own_call_only() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(std::hint::black_box(false), "dropped");
        }
    }
    let bench = Bench::new();
    let any = json!({"type": "object"});
    let at_start = FunctionTool::new("at_start", "", any.clone(), |_, _| {
        assert!(std::hint::black_box(false), "started");
        async { Ok(ToolOutput::default()) }
    });
    let at_drop = FunctionTool::new("at_drop", "", any.clone(), |_, _| async {
        let _bomb = Bomb;
        std::future::pending::<()>().await;
        Ok(ToolOutput::default())
    });
    let fine = FunctionTool::new("fine", "", any, |_, _| async { Ok(ToolOutput::default()) });
    let config =
        bench.config("tools: [{name: at_start}, {name: at_drop, timeout: 20ms}, {name: fine}]");
    let builder = Runtime::builder(config).tool(at_start).tool(at_drop).tool(fine);
    let runtime = builder.start().await.unwrap();
    let calls = ["fine", "at_start", "at_drop", "fine"].map(empty).to_vec();
    let codes: Vec<Option<Code>> = runtime
        .call_batch(calls)
        .await
        .into_iter()
        .map(|answer| answer.error.map(|error| error.code))
        .collect();
    assert_eq!(codes, [None, Some(Code::ToolExecutionError), Some(Code::Timeout), None]);
    assert_eq!(bench.logged().len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_too_late_is_a_timeout() {
    let bench = Bench::new();
    let blocks = FunctionTool::new("blocks", "", json!({"type": "object"}), |_, _| async {
        std::thread::sleep(Duration::from_millis(120));
        Ok(ToolOutput::default())
    });
    let config = bench.config("tools: [{name: blocks, timeout: 20ms}]");
    let runtime = Runtime::builder(config).tool(blocks).start().await.unwrap();
    let error = runtime.call(empty("blocks")).await.error.unwrap();
    assert_eq!(error.code, Code::Timeout);
}

/// Errors reach a model: a configured secret is masked in their text, remedy and details.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_configured_secret_appears_in_an_error() {
    let bench = Bench::new();
    let canary = "canary-s3cr3t-value-42";
    let tools = bench.path().join("tools");
    std::fs::create_dir_all(&tools).unwrap();
    let entry = |name: &str, command: Value| json!({"name": name, "description": "", "type": "local", "input_schema": {"type": "object"}, "config": {"command": command}});
    let echo = entry("echo", json!(["sh", "-c", "echo token ${CANARY} >&2; exit 3"]));
    let missing = entry("missing", json!(["prog-${CANARY}"]));
    std::fs::write(tools.join("tools.json"), json!({"tools": [echo, missing]}).to_string())
        .unwrap();
    let mut config = haft::Config::load(&haft::config::LoadOptions {
        files: vec![tools.join("tools.json")],
        environment: [("CANARY".to_owned(), canary.to_owned())].into(),
        ..haft::config::LoadOptions::default()
    })
    .unwrap();
    config.log.dir.value = bench.logs();
    let runtime = Runtime::start(config).await.unwrap();
    for tool in ["echo", "missing"] {
        let answer = runtime.call(empty(tool)).await;
        assert_eq!(answer.error.as_ref().unwrap().code, Code::ToolExecutionError);
        let text = serde_json::to_string(&answer).unwrap();
        assert!(!text.contains(canary) && text.contains("***"), "{text}");
    }
    runtime.shutdown(Duration::from_secs(2)).await;
}
