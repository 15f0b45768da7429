//! How long a call takes. Prints figures; `cargo test --release ... -- --ignored --nocapture`.

use std::time::Instant;

use super::*;

/// Measures what S2-SC-003 limits: the way to a Python tool and back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, for a release build on a quiet machine"]
async fn measure_cold_and_warm_calls() {
    // In a task, as calls are: the thread of the test itself does not drive the pipes.
    tokio_util::task::TaskTracker::new()
        .spawn(measure())
        .await
        .unwrap();
}

async fn measure() {
    for (kind, script) in [
        ("def", "def run(args):\n    return args"),
        ("async def", "async def run(args):\n    return args"),
    ] {
        let bench = Bench::new(script);
        let begun = Instant::now();
        bench.data(r#"{"city":"Seoul"}"#).await;
        let cold = begun.elapsed();
        let mut warm = Vec::new();
        for _ in 0..20_000 {
            let begun = Instant::now();
            bench.call(r#"{"city":"Seoul"}"#).await.unwrap();
            warm.push(begun.elapsed());
        }
        warm.sort_unstable();
        let at = |share: usize| warm[warm.len() * share / 1000];
        println!(
            "{kind}: cold {cold:?}, warm p50 {:?}, p99 {:?}, p99.9 {:?}",
            at(500),
            at(990),
            at(999)
        );
    }
}
