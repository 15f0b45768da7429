//! Rates and quotas of callers, servers and tools, and the lists of tools that a caller sees.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use haft::config::NamePattern;
use haft::config::call_limits::CallLimits;
use haft::record::{ManualClock, Outcome};
use haft::{
    AccessLists, CallRefusal, CallerAccess, CallerDirectory, CallerStatus, Code, Envelope,
    ErrorBody, FunctionTool, Runtime, RuntimeBuilder, Stage, Status, ToolCall, ToolOutput,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{Bench, empty};

/// Callers with limits. An owner that is not there has ended.
#[derive(Default)]
struct Owners(Mutex<HashMap<String, Arc<CallerAccess>>>);

impl Owners {
    fn set(&self, owner: &str, access: CallerAccess) {
        self.0.lock().insert(owner.to_owned(), Arc::new(access));
    }
}

impl CallerDirectory for Owners {
    fn status(&self, owner: &str) -> CallerStatus {
        self.0
            .lock()
            .get(owner)
            .map_or(CallerStatus::Ended, |access| CallerStatus::Limited(Arc::clone(access)))
    }
}

fn limits(rate: Option<&str>, burst: Option<u32>, quota: Option<&str>) -> CallLimits {
    CallLimits::parse(rate, burst, quota).unwrap()
}

fn limited(limits: CallLimits) -> CallerAccess {
    CallerAccess { limits, ..CallerAccess::default() }
}

fn builder(bench: &Bench, yaml: &str) -> RuntimeBuilder {
    let tool = |name| {
        FunctionTool::new(name, "Answers.", json!({"type": "object"}), |_, _| async {
            Ok(ToolOutput::from_text("done"))
        })
        .with_default_limits()
    };
    Runtime::builder(bench.config(yaml)).tool(tool("read_file")).tool(tool("write_file"))
}

fn refusal(envelope: &Envelope) -> &ErrorBody {
    envelope.error.as_ref().expect("the call was refused")
}

fn wait(envelope: &Envelope) -> Option<Duration> {
    match envelope.error.as_ref()?.stage {
        Stage::Refused(CallRefusal::RateLimited(wait)) => Some(wait),
        other => panic!("{other:?}"),
    }
}

/// Keeps the runtime busy, so that the paused clock does not move while a call is written to the log.
async fn with_still_clock<T>(work: impl Future<Output = T>) -> T {
    let spin = async {
        loop {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { biased; done = work => done, () = spin => unreachable!() }
}

#[tokio::test(start_paused = true)]
async fn each_of_100_keys_gets_its_rate_under_64_parallel_callers() {
    const CALLERS: usize = 64;
    let time = Duration::from_secs(30);
    let (bench, owners) = (Bench::new(), Arc::new(Owners::default()));
    let per_minute = |key: u32| 120 + 2 * key;
    for key in 0..100 {
        let rate = format!("{}/min", per_minute(key));
        owners.set(&format!("key:{key}#id"), limited(limits(Some(&rate), None, None)));
    }
    let yaml = "tools: [{name: read_file, max_instances: 100}]\ndefaults: {max_concurrent: 100}";
    let runtime = builder(&bench, yaml).callers(owners).start().await.unwrap();
    let start = Instant::now();
    let mut due: BinaryHeap<Reverse<(Instant, u32)>> =
        (0..100).map(|key| Reverse((start, key))).collect();
    let mut granted = [0_u32; 100];
    while let Some(Reverse((at, _))) = due.peek().filter(|next| next.0.0 < start + time) {
        tokio::time::advance(at.saturating_duration_since(Instant::now())).await;
        let mut running = JoinSet::new();
        while running.len() < CALLERS
            && let Some(Reverse((_, key))) =
                due.peek().filter(|it| it.0.0 <= Instant::now()).copied()
        {
            due.pop();
            let (runtime, owner) = (runtime.clone(), format!("key:{key}#id"));
            running.spawn(async move {
                let envelope = runtime.call(empty("read_file").owner(owner)).await;
                (key, wait(&envelope))
            });
        }
        for (key, wait) in with_still_clock(running.join_all()).await {
            granted[key as usize] += u32::from(wait.is_none());
            due.push(Reverse((Instant::now() + wait.unwrap_or_default(), key)));
        }
    }
    for (key, granted) in (0..).zip(granted) {
        let expected = f64::from(per_minute(key)) * time.as_secs_f64() / 60.0;
        let burst = f64::from(per_minute(key) / 60);
        let granted = f64::from(granted);
        assert!(granted >= expected * 0.95, "key {key}: {granted} of {expected}");
        assert!(granted <= expected + burst, "key {key}: {granted} of {expected}");
        assert!(granted <= expected * 1.05, "key {key}: {granted} of {expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_of_a_tool_refuses_with_the_time_to_wait_and_is_logged() {
    let bench = Bench::new();
    let yaml = "tools: [{name: read_file, rate: 30/min, burst: 2}]";
    let runtime = builder(&bench, yaml).start().await.unwrap();
    let answers = with_still_clock(runtime.call_batch(vec![empty("read_file"); 3])).await;
    assert_eq!(answers[1].status, Status::Success);
    let error = refusal(&answers[2]);
    assert_eq!(error.code, Code::RateLimited);
    insta::assert_snapshot!(
        format!("{}\n{}", error.message, error.remedy.as_ref().unwrap()),
        @r"
    `read_file` was not called: the tool `read_file` has reached its rate of 30/min
    try again in 2s, or let the operator raise the `rate` of the tool
    "
    );
    assert_eq!(
        error.details,
        json!({"limit": "rate", "of": "tool", "name": "read_file", "max": "30/min", "retry_after_ms": 2000})
    );
    assert_eq!(wait(&answers[2]), Some(Duration::from_secs(2)));
    let logged = bench.logged();
    let refused = logged.iter().find(|call| call.error.is_some()).unwrap();
    assert_eq!(refused.outcome.tool, Outcome::NotReached);
    tokio::time::advance(Duration::from_secs(2)).await;
    let later = with_still_clock(runtime.call(empty("read_file"))).await;
    assert_eq!(later.status, Status::Success);
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_count_too() {
    let bench = Bench::new();
    let yaml = "tools: [{name: read_file, rate: 1/h}]";
    let runtime = builder(&bench, yaml).start().await.unwrap();
    let invalid = ToolCall::from_text("read_file", "[1]");
    let first = with_still_clock(runtime.call(invalid.clone())).await;
    assert_eq!(refusal(&first).code, Code::ValidationError);
    let second = with_still_clock(runtime.call(invalid)).await;
    assert_eq!(refusal(&second).code, Code::RateLimited, "guessing arguments is limited");
}

#[tokio::test(start_paused = true)]
async fn a_caller_beyond_its_rate_takes_nothing_from_others() {
    let (bench, owners) = (Bench::new(), Arc::new(Owners::default()));
    owners.set("key:greedy#1", limited(limits(Some("1/min"), None, None)));
    owners.set("key:modest#2", CallerAccess::default());
    let yaml = "tools: [{name: read_file, rate: 4/h, burst: 4}]";
    let runtime = builder(&bench, yaml).callers(owners.clone()).start().await.unwrap();
    let call =
        |owner: &'static str| with_still_clock(runtime.call(empty("read_file").owner(owner)));
    assert_eq!(call("key:greedy#1").await.status, Status::Success);
    for _ in 0..5 {
        let refused = call("key:greedy#1").await;
        assert_eq!(refusal(&refused).details["of"], "key");
        assert_eq!(refusal(&refused).details["name"], "greedy");
    }
    for _ in 0..3 {
        assert_eq!(call("key:modest#2").await.status, Status::Success);
    }
    assert_eq!(refusal(&call("key:modest#2").await).details["of"], "tool");
    // A changed limit holds for the next call.
    owners.set("key:greedy#1", limited(limits(Some("2/min"), Some(2), None)));
    let refused = call("key:greedy#1").await;
    assert_eq!(refusal(&refused).details["of"], "tool", "the key may call again");
}

fn at(time: &str) -> Arc<ManualClock> {
    Arc::new(ManualClock::new(time.parse().unwrap()))
}

#[tokio::test]
async fn a_quota_survives_a_restart_and_ends_with_the_day() {
    let (bench, clock) = (Bench::new(), at("2026-03-01T23:00:00Z"));
    let yaml = "tools: [{name: read_file, quota: 3/day}]";
    let start = || builder(&bench, yaml).clock(clock.clone()).start();
    let runtime = start().await.unwrap();
    for _ in 0..2 {
        assert_eq!(runtime.call(empty("read_file")).await.status, Status::Success);
    }
    runtime.shutdown(Duration::from_secs(5)).await;
    let runtime = start().await.unwrap();
    assert_eq!(runtime.call(empty("read_file")).await.status, Status::Success);
    let refused = runtime.call(empty("read_file")).await;
    assert_eq!(refusal(&refused).details["limit"], "quota");
    assert_eq!(wait(&refused), Some(Duration::from_hours(1)), "until the next UTC day");
    clock.set("2026-03-02T00:00:00Z".parse().unwrap());
    assert_eq!(runtime.call(empty("read_file")).await.status, Status::Success);
}

/// The counts reach the file soon after a call, so that a crash loses a second.
#[tokio::test]
async fn counts_of_quotas_are_written_without_a_shutdown() {
    let (bench, owners) = (Bench::new(), Arc::new(Owners::default()));
    owners.set("key:ada#1", limited(limits(None, None, Some("100/day"))));
    let runtime = builder(&bench, "").callers(owners).start().await.unwrap();
    runtime.call(empty("read_file").owner("key:ada#1")).await;
    let file = bench.path().join("state/quotas.json");
    crate::support::until(|| file.exists()).await;
    let text: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(text["counts"], json!({"key:ada#1": 1}));
}

#[tokio::test]
async fn processes_with_one_state_folder_share_a_quota() {
    let bench = Bench::new();
    let yaml = "tools: [{name: read_file, quota: 5/day}]";
    let first = builder(&bench, yaml).start().await.unwrap();
    let second = builder(&bench, yaml).start().await.unwrap();
    first.call(empty("read_file")).await;
    second.call(empty("read_file")).await;
    first.shutdown(Duration::from_secs(5)).await;
    second.shutdown(Duration::from_secs(5)).await;
    let third = builder(&bench, yaml).start().await.unwrap();
    let answers = third.call_batch(vec![empty("read_file"); 4]).await;
    let succeeded = answers.iter().filter(|it| it.status == Status::Success).count();
    assert_eq!(succeeded, 3);
}

#[tokio::test]
async fn a_damaged_count_refuses_calls_with_a_quota_only() {
    let bench = Bench::new();
    let state = bench.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("quotas.json"), "{\"version\": 1").unwrap();
    let yaml = "tools: [{name: read_file, quota: 5/day}]";
    let runtime = builder(&bench, yaml).start().await.unwrap();
    let refused = runtime.call(empty("read_file")).await;
    let error = refusal(&refused);
    assert_eq!(error.code, Code::ServiceUnavailable);
    assert!(error.message.contains("quotas.json"), "{}", error.message);
    assert_eq!(runtime.call(empty("write_file")).await.status, Status::Success);
    std::fs::remove_file(state.join("quotas.json")).unwrap();
    assert_eq!(runtime.call(empty("read_file")).await.status, Status::Success);
}

/// A call that the tool's rate refuses is not counted against the quota of its key.
#[tokio::test]
async fn a_refused_call_takes_nothing_from_a_quota() {
    let (bench, owners) = (Bench::new(), Arc::new(Owners::default()));
    owners.set("key:ada#1", limited(limits(None, None, Some("2/day"))));
    let yaml = "tools: [{name: read_file, rate: 1/h}]";
    let runtime = builder(&bench, yaml).callers(owners).start().await.unwrap();
    let call = |tool: &str| runtime.call(empty(tool).owner("key:ada#1"));
    assert_eq!(call("read_file").await.status, Status::Success);
    assert_eq!(refusal(&call("read_file").await).details["of"], "tool");
    assert_eq!(call("write_file").await.status, Status::Success);
    assert_eq!(refusal(&call("write_file").await).details["limit"], "quota");
}

#[tokio::test]
async fn a_caller_sees_and_calls_only_the_tools_of_its_lists() {
    let (bench, owners) = (Bench::new(), Arc::new(Owners::default()));
    let tools = Some(vec![NamePattern::parse("read_*").unwrap()]);
    let lists = AccessLists { tools, servers: None };
    owners.set("key:reader#1", CallerAccess { lists, ..CallerAccess::default() });
    let runtime = builder(&bench, "").callers(owners).start().await.unwrap();
    let call = |tool: &str, owner: &str| runtime.call(empty(tool).owner(owner));
    assert_eq!(call("read_file", "key:reader#1").await.status, Status::Success);
    let hidden = call("write_file", "key:reader#1").await;
    let missing = call("write_fil", "key:reader#1").await;
    assert_eq!(refusal(&hidden).code, Code::UnknownTool);
    let remedy = refusal(&missing).remedy.as_ref().unwrap().to_string();
    assert!(!remedy.contains("write_file"), "a hidden tool is no hint: {remedy}");
    let ended = call("read_file", "key:revoked#1").await;
    assert_eq!(refusal(&ended).code, Code::UnknownTool, "an ended key calls nothing");
}
