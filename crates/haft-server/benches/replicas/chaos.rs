//! Workloads on three replicas under faults, and the checks of what the replicas promise.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::{Random, Workspace};
use tokio::time::sleep;

use crate::Failure;
use crate::calls::{self, Calls, Row};
use crate::client::RunClock;
use crate::cluster::{Cluster, REPLICAS};
use crate::keys::{self, Reachable};
use crate::nemesis;
use crate::registry;

/// Longest time until the last entries of the log are shipped after the run.
const SHIPPED_MAX: Duration = Duration::from_mins(1);

/// The options of a run.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
    pub(crate) has_planted_fault: bool,
}

impl Options {
    /// Reads the options of the command line.
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options =
            Self { duration: Duration::from_mins(10), seed: 1, has_planted_fault: false };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("`{arg}` needs a value"));
            match arg.as_str() {
                "--plant-fault" => options.has_planted_fault = true,
                "--seconds" => options.duration = Duration::from_secs(value()?.parse()?),
                "--minutes" => options.duration = Duration::from_mins(value()?.parse()?),
                "--seed" => options.seed = value()?.parse()?,
                _ => return Err(format!("`{arg}` is not an option").into()),
            }
        }
        Ok(options)
    }
}

/// Runs all workloads beside the faults. Returns what does not hold.
pub(crate) async fn run(options: &Options) -> Result<Vec<String>, Failure> {
    let shared = Workspace::new();
    let record = shared.path().join("record");
    let script = calls::script(&record);
    let haft = Path::new(env!("CARGO_BIN_EXE_haft"));
    let cluster = Arc::new(Cluster::start(haft, &script).await?);
    println!("{REPLICAS} replicas serve; seed {}, {:?}", options.seed, options.duration);
    calls::register(&cluster.targets()[0]).await?;
    registry::set_up(&cluster.targets()[0]).await?;
    let clock = RunClock::start();
    let mut random = Random::new(options.seed);
    let is_over = Arc::new(AtomicBool::new(false));
    let over = || Arc::clone(&is_over);
    let registry =
        registry::run(cluster.targets(), clock, random.fork(), options.has_planted_fault, over());
    let calls = calls::run(cluster.balanced(), over());
    let reachable: Arc<dyn Reachable> = Arc::clone(&cluster) as _;
    let keys = keys::run(cluster.targets(), reachable, random.fork(), over());
    let nemesis = nemesis::run(Arc::clone(&cluster), random.fork(), over());
    let end = async {
        sleep(options.duration).await;
        is_over.store(true, Ordering::Relaxed);
    };
    let (history, calls, keys, faults, ()) = tokio::join!(registry, calls, keys, nemesis, end);
    let faults = faults?;
    print_counts(&[&faults, &history.counts, &calls.counts, &keys.counts]);
    print_counts(&[&statements(&cluster)]);
    println!("registry: {} operations checked", history.len());
    let mut problems = history.problems();
    problems.extend(keys.problems);
    problems.extend(check_log(&cluster, &calls, &record).await?);
    Ok(problems)
}

/// Waits until the log is shipped, then compares it with the calls.
async fn check_log(
    cluster: &Cluster,
    calls: &Calls,
    record: &Path,
) -> Result<Vec<String>, Failure> {
    let recorded = std::fs::read_to_string(record).unwrap_or_default();
    let recorded: BTreeSet<String> = recorded.lines().map(str::to_owned).collect();
    let start = Instant::now();
    loop {
        let rows = rows(cluster)?;
        let problems = calls.problems(&rows, &recorded);
        if problems.is_empty() || start.elapsed() > SHIPPED_MAX {
            println!(
                "log: {} rows for {} calls, {} of them answered with success",
                rows.len(),
                calls.attempts(),
                calls.answered.len()
            );
            return Ok(problems);
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// The rows of the log in the database.
fn rows(cluster: &Cluster) -> Result<Vec<Row>, Failure> {
    let sql = "select execution_id || ' ' || (entry::json #>> '{input,nonce}') from haft.call \
               where tool = 'record' and entry::json #>> '{input,nonce}' is not null";
    let text = cluster.database.sql(sql);
    let rows = text.lines().map(|line| {
        let (execution_id, nonce) = line.split_once(' ').ok_or_else(|| format!("row `{line}`"))?;
        Ok(Row { execution_id: execution_id.to_owned(), nonce: nonce.to_owned() })
    });
    rows.collect()
}

/// Statements that passed the proxies of all replicas.
fn statements(cluster: &Cluster) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (statement, count) in cluster.replicas.iter().flat_map(|it| it.proxy.statements()) {
        *all.entry(format!("statement: {statement}")).or_default() += count;
    }
    all
}

fn print_counts(counts: &[&BTreeMap<String, u64>]) {
    for (word, count) in counts.iter().copied().flatten() {
        println!("{count:>8} {word}");
    }
}
