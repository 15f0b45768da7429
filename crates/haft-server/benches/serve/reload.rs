//! Loading many tools again while calls run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use haft::{Status, ToolCall};
use serde_json::json;
use tokio::task::JoinSet;

use super::Failure;
use super::host::toolbox;
use super::stats::ms;
use super::writes::prepare;
use testkit::times::Times;

const TOOLS: u32 = 500;
const ROUNDS: usize = 21;
const CALLERS: usize = 4;

pub(crate) async fn measure(folder: &Path) -> Result<(), Failure> {
    println!("\n# A reload of {TOOLS} tools, while {CALLERS} callers call without a pause");
    let folder = folder.join("reload");
    prepare(&folder, TOOLS)?;
    let (live, _telemetry) = toolbox(&folder).await?;
    let idle = rounds(&live).await?;
    println!("idle: p50 {}, p99 {}", ms(idle.percentile(50)), ms(idle.percentile(99)));

    let is_over = Arc::new(AtomicBool::new(false));
    let (calls, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (live, is_over) = (live.clone(), Arc::clone(&is_over));
        let (calls, failed) = (Arc::clone(&calls), Arc::clone(&failed));
        callers.spawn(async move {
            while !is_over.load(Relaxed) {
                let call = ToolCall::new("noop", &json!({"city": "Seoul", "days": 3}));
                let answer = live.runtime().call(call).await;
                calls.fetch_add(1, Relaxed);
                failed.fetch_add(u64::from(answer.status != Status::Success), Relaxed);
                tokio::task::yield_now().await;
            }
        });
    }
    let times = rounds(&live).await;
    is_over.store(true, Relaxed);
    callers.join_all().await;
    let times = times?;
    println!(
        "while calling: p50 {}, p99 {} (target: under 200 ms); {} calls meanwhile, {} failed (target: none)",
        ms(times.percentile(50)),
        ms(times.percentile(99)),
        calls.load(Relaxed),
        failed.load(Relaxed)
    );
    live.stop().await;
    live.runtime().shutdown(Duration::from_secs(1)).await;
    Ok(())
}

async fn rounds(live: &haft::live::Live) -> Result<Times, Failure> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        live.reload().await?;
        times.push(began.elapsed());
    }
    Ok(Times::new(times))
}
