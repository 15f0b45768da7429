//! Workloads on three replicas under faults, and the checks of what the replicas promise.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::{Random, Workspace};
use tokio::time::sleep;

use crate::Failure;
use crate::calls::{self, Attempts, Row};
use crate::cluster::{Cluster, REPLICAS};
use crate::proxy::Proxy;
use crate::{keys, leaks, mcp_legacy, mcp_modern, nemesis, offers, questions, registry};

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
    let mut random = Random::new(options.seed);
    let is_over = Arc::new(AtomicBool::new(false));
    let over = || Arc::clone(&is_over);
    let attempts = Arc::<Attempts>::default();
    let nonces = || Arc::clone(&attempts);
    let health = || Arc::clone(&cluster.health);
    let (all, balanced) = (cluster.targets(), cluster.balanced());
    let nemesis = nemesis::run(Arc::clone(&cluster), random.fork(), over());
    let has_fault = options.has_planted_fault;
    let registry =
        registry::run(all.clone(), cluster.health.clock(), random.fork(), has_fault, over());
    let calls = calls::run(balanced.clone(), nonces(), over());
    let keys = keys::run(all.clone(), health(), random.fork(), over());
    let questions = questions::run(all.clone(), health(), random.fork(), over());
    let legacy = mcp_legacy::run(balanced.clone(), health(), nonces(), random.fork(), over());
    let modern = mcp_modern::run(balanced, all.clone(), health(), nonces(), random.fork(), over());
    let offers = offers::run(all.clone(), random.fork(), over());
    let end = async {
        sleep(options.duration).await;
        is_over.store(true, Ordering::Relaxed);
    };
    let workloads =
        async { tokio::join!(registry, calls, keys, questions, legacy, modern, offers) };
    let (faults, workloads, ()) = tokio::join!(nemesis, workloads, end);
    let (history, calls, keys, questions, legacy, modern, offers) = workloads;
    offers::settled(&all, &offers).await;
    let mut summary = Summary::default();
    summary.counts.extend([faults?, statements(&cluster), history.counts.clone(), keys.counts]);
    summary.problems.extend(history.problems().into_iter().chain(keys.problems));
    let left = modern.left();
    for report in [calls, questions, legacy, modern, offers] {
        summary.counts.push(report.counts());
        summary.problems.extend(report.problems());
    }
    let (rows, problems) = check_log(&cluster, &attempts, &record).await?;
    summary.problems.extend(problems);
    summary.problems.extend(leaks::problems(&cluster, &left).await);
    summary.print(history.len(), rows, attempts.counts());
    Ok(summary.problems)
}

/// The counts of a run and its problems.
#[derive(Debug, Default)]
struct Summary {
    counts: Vec<BTreeMap<String, u64>>,
    problems: Vec<String>,
}

impl Summary {
    fn print(&self, operations: usize, rows: usize, (calls, succeeded): (usize, usize)) {
        for (word, count) in self.counts.iter().flatten() {
            println!("{count:>8} {word}");
        }
        let sum = |beginnings: &[&str]| -> u64 {
            let all = self.counts.iter().flatten();
            let all = all.filter(|(word, _)| beginnings.iter().any(|it| word.starts_with(it)));
            all.map(|(_, count)| count).sum()
        };
        println!("summary:");
        println!("{operations:>8} operations on the registry checked");
        println!("{succeeded:>8} of {calls} calls answered with success; {rows} rows in the log");
        println!("{:>8} questions answered twice", sum(&["question: listed"]));
        println!("{:>8} MCP requests", sum(&["mcp: ", "modern: "]));
        println!("{:>8} lists compared", sum(&["lists: same"]));
        println!("{:>8} faults", sum(&["fault: "]));
        println!("{:>8} problems", self.problems.len());
    }
}

/// Waits until the log is shipped, then compares it with the calls. Returns the number of rows.
async fn check_log(
    cluster: &Cluster,
    attempts: &Attempts,
    record: &Path,
) -> Result<(usize, Vec<String>), Failure> {
    let recorded = std::fs::read_to_string(record).unwrap_or_default();
    let recorded: BTreeSet<String> = recorded.lines().map(str::to_owned).collect();
    let start = Instant::now();
    loop {
        let rows = rows(cluster)?;
        let problems = attempts.problems(&rows, &recorded);
        if problems.is_empty() || start.elapsed() > SHIPPED_MAX {
            return Ok((rows.len(), problems));
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
    for (statement, count) in
        cluster.replicas.iter().flat_map(|it| &it.databases).flat_map(Proxy::statements)
    {
        *all.entry(format!("statement: {statement}")).or_default() += count;
    }
    all
}
