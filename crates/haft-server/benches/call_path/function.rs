//! The whole path around a function that does nothing: what Haft itself costs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::json::Arguments;
use haft::record::{
    Entry, ExecutionLog, LogError, LogOptions, Outcomes, RecordSource, Redactor, SystemClock,
};
use haft::{Config, FunctionTool, Runtime, Status, ToolCall, ToolOutput};
use haft_config::schema::Schema;
use serde_json::{Value, json};
use testkit::times::{Times, ratio};

use super::stats::{repeat, us};

pub(super) const CALLS: usize = 20_000;
const CALLS_DISK: usize = 300;
const CONCURRENT: usize = 64;

pub(super) type Failure = Box<dyn std::error::Error>;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city"],
        "additionalProperties": false,
    })
}

fn arguments() -> Value {
    json!({"city": "Seoul", "days": 3})
}

async fn start(folder: &Path, sync: &str) -> Result<Runtime, Failure> {
    start_with(folder, sync, "").await
}

/// Starts a toolbox with one function, and more settings.
pub(super) async fn start_with(folder: &Path, sync: &str, more: &str) -> Result<Runtime, Failure> {
    let logs = folder.join(format!("logs-{sync}"));
    let config = Config::from_yaml(&format!(
        "{{{more}defaults: {{max_concurrent: 64}}, log: {{dir: '{}', sync: {sync}}}, \
          tools: [{{name: noop, max_instances: 64}}]}}",
        logs.display()
    ))?;
    let noop = FunctionTool::new("noop", "Do nothing.", schema(), |_, _| async {
        Ok(ToolOutput::from_text("ok"))
    });
    Ok(Runtime::builder(config).tool(noop).start().await?)
}

/// From a task, as a service calls: a thread in `block_on` hands its log entries to another thread.
pub(super) async fn one_by_one(runtime: &Runtime, calls: usize) -> Result<Times, Failure> {
    let runtime = runtime.clone();
    let calling = async move {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let call = ToolCall::new("noop", &arguments());
            let started = Instant::now();
            let answer = runtime.call(call).await;
            times.push(started.elapsed());
            if answer.status != Status::Success {
                return Err(format!("{:?}", answer.error));
            }
        }
        Ok(Times::new(times))
    };
    Ok(on_worker(calling).await??)
}

async fn on_worker<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Failure> {
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(work);
    Ok(tasks.join_next().await.ok_or("no task")??)
}

/// Calls per second with many callers at once.
async fn all_at_once(runtime: &Runtime, calls: usize) -> f64 {
    let started = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CONCURRENT {
        let runtime = runtime.clone();
        callers.spawn(async move {
            for _ in 0..calls / CONCURRENT {
                runtime.call(ToolCall::new("noop", &arguments())).await;
            }
        });
    }
    callers.join_all().await;
    #[allow(clippy::cast_precision_loss, reason = "a number of calls is far below 2^52")]
    let calls = (calls / CONCURRENT * CONCURRENT) as f64;
    calls / started.elapsed().as_secs_f64()
}

pub(crate) async fn measure(folder: &Path) -> Result<(), Failure> {
    println!("\n# The whole path around a no-op function tool, log on");
    let runtime = start(folder, "os").await?;
    one_by_one(&runtime, CALLS / 10).await?;
    let times = one_by_one(&runtime, CALLS).await?;
    let (p50, p99) = (times.percentile(50), times.percentile(99));
    println!(
        "one call after the other: p50 {}, p99 {} (target: p50 at most 20 us)",
        us(p50),
        us(p99)
    );
    let throughput = all_at_once(&runtime, CALLS).await;
    println!("{CONCURRENT} callers: {throughput:.0} calls/s");
    runtime.shutdown(Duration::from_secs(1)).await;

    let runtime = start(folder, "disk").await?;
    let disk = one_by_one(&runtime, CALLS_DISK).await?;
    println!(
        "the same with the log fsynced per entry: p50 {}; Haft's throughput is {:.0}x that (target: at least 5x)",
        us(disk.percentile(50)),
        ratio(disk.percentile(50), p50)
    );
    runtime.shutdown(Duration::from_secs(1)).await;
    parts(folder, p50).await
}

/// Measures each part of the path by itself.
async fn parts(folder: &Path, whole: Duration) -> Result<(), Failure> {
    println!("\n## The parts");
    let text = arguments().to_string();
    let reading = repeat(CALLS, || {
        std::hint::black_box(Arguments::parse(&text)).ok();
    });
    let read = Arguments::parse(&text)?;
    let compiled = Schema::compile(&schema())?;
    let checking = repeat(CALLS, || {
        std::hint::black_box(compiled.check(read.value())).ok();
    });
    let options = LogOptions::new(folder.join("logs-parts"));
    let log = ExecutionLog::open(options, Redactor::new(Vec::new()), Arc::new(SystemClock))?;
    let input = read.raw().to_owned();
    let logging = on_worker(async move {
        let mut times = Vec::with_capacity(CALLS);
        for _ in 0..CALLS {
            let entry = Entry {
                execution_id: "0198c2f4-0000-7000-8000-000000000000",
                timestamp: jiff::Timestamp::now(),
                tool: "noop",
                source: RecordSource::Function,
                server: None,
                caller: None,
                session: None,
                request: None,
                trace_id: None,
                input: &input,
                started: true,
                data: None,
                raw: None,
                policy: None,
                stdout: None,
                content: &[],
                error: None,
                status: Status::Success,
                outcome: Outcomes::default(),
                queued_ms: 0,
                duration_ms: 0,
            };
            let started = Instant::now();
            log.append(&entry).await?;
            times.push(started.elapsed());
        }
        Ok::<_, LogError>(Times::new(times))
    });
    let logging = logging.await??;
    let (reading, checking, logging) =
        (reading.percentile(50), checking.percentile(50), logging.percentile(50));
    println!("read the arguments    {}", us(reading));
    println!("check them            {}", us(checking));
    println!("write the log entry   {}", us(logging));
    println!("everything else       {}", us(whole.saturating_sub(reading + checking + logging)));
    Ok(())
}
