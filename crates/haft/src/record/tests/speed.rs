//! What the log costs a call. Prints figures and judges none of them:
//! `cargo test --release -p haft --lib record::tests::speed -- --ignored --nocapture`

use std::time::Instant;

use super::*;

const CALLS: usize = 20_000;

async fn measure(name: &str, options: LogOptions, tasks_max: usize, calls: usize) {
    let secrets = (0..20).map(|number| format!("configured-secret-{number}"));
    let log = ExecutionLog::open(options, Redactor::new(secrets), Arc::new(SystemClock)).unwrap();
    let tasks = tokio_util::task::TaskTracker::new();
    let started = Instant::now();
    let workers: Vec<_> = (0..tasks_max)
        .map(|_| {
            let log = log.clone();
            tasks.spawn(async move { time_appends(&log, calls / tasks_max).await })
        })
        .collect();
    let mut micros = Vec::new();
    for worker in workers {
        micros.extend(worker.await.unwrap());
    }
    let seconds = started.elapsed().as_secs_f64();
    micros.sort_by(f64::total_cmp);
    let [half, most, worst] = [500, 990, 1000].map(|part| micros[(micros.len() - 1) * part / 1000]);
    println!(
        "{name:<28} {tasks_max:>4} at once: p50 {half:>7.1} µs, p99 {most:>7.1} µs, \
         max {worst:>8.1} µs, {seconds:.2} s in all"
    );
}

async fn time_appends(log: &ExecutionLog, calls: usize) -> Vec<f64> {
    let input = raw(r#"{"city":"Seoul","days":3,"units":"metric","max_tokens":100}"#);
    let data = raw(r#"{"forecast":[{"day":1,"celsius":21.5},{"day":2,"celsius":19.0}]}"#);
    let mut micros = Vec::with_capacity(calls);
    for _ in 0..calls {
        let call = Entry {
            data: Some(&data),
            timestamp: Timestamp::now(),
            ..entry("01890a5d-ac96-774b-bcce-b302099a8057", &input)
        };
        let started = Instant::now();
        log.ready().unwrap();
        log.append(&call).await.unwrap();
        micros.push(started.elapsed().as_secs_f64() * 1e6);
        tokio::task::yield_now().await;
    }
    micros
}

#[test]
#[ignore = "prints figures for a person; run it alone and in release mode"]
fn speed_of_append() {
    let several = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let one = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let dir = tempfile::tempdir_in(".").unwrap();
    let os = LogOptions::new(dir.path());
    let disk = LogOptions {
        durability: Durability::Disk,
        ..os.clone()
    };
    for tasks in [1, 16, 256] {
        several.block_on(measure("several workers", os.clone(), tasks, CALLS));
        one.block_on(measure(
            "one worker (writer thread)",
            os.clone(),
            tasks,
            CALLS,
        ));
        several.block_on(measure(
            "several workers, fsync",
            disk.clone(),
            tasks,
            2_000,
        ));
    }
}

#[test]
#[ignore = "prints figures for a person; run it alone and in release mode"]
fn speed_of_a_line() {
    let redactor = Redactor::new((0..20).map(|number| format!("configured-secret-{number}")));
    let clean = raw(r#"{"city":"Seoul","days":3,"units":"metric","max_tokens":100}"#);
    let secret = raw(r#"{"city":"Seoul","password":"x","note":"Bearer abcdef123456"}"#);
    let large = raw(&serde_json::json!({"text": "the quick brown fox ".repeat(5_000)}).to_string());
    for (name, input, rounds) in [
        ("clean", &clean, 100_000),
        ("with secrets", &secret, 100_000),
        ("100 kB", &large, 1_000),
    ] {
        let call = entry("01890a5d-ac96-774b-bcce-b302099a8057", input);
        let started = Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(Line::new(std::hint::black_box(&call), &redactor));
        }
        let micros = started.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
        println!("{name:<14} {micros:>8.2} µs a line");
    }
}
