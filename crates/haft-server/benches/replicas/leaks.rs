//! Leaks after the run: open work while the replicas still serve, and everything of theirs once they ended.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::cluster::{Cluster, REPLICAS};

/// Longest time until nothing is left. Calls of clients that are gone end, broken connections are noticed.
const GONE_MAX: Duration = Duration::from_secs(30);
/// Connections of one replica to the database.
const CONNECTIONS: usize = 3;

const IN_USE: &str = "select count(*) from pg_stat_activity where usename = 'haft'";
const LIVE: &str = "select count(*) from haft.replica where seen > now() - interval '10 seconds'";
const LOCKS: &str = "select count(*) from pg_locks where locktype = 'advisory'";

/// Ends the replicas. `left` are questions that their clients gave up. Returns what is left of them, and what was left before.
pub(crate) async fn problems(cluster: &Cluster, left: &BTreeSet<String>) -> Vec<String> {
    let mut problems = refuse(cluster, left).await;
    problems.extend(until_empty(async || open_work(cluster).await).await);
    problems.extend(lost_commits(cluster).await);
    problems.extend(tokio::task::block_in_place(|| cluster.shut_down()));
    problems.extend(until_empty(async || remains(cluster)).await);
    problems
}

/// Refuses questions that their clients gave up, as an operator does.
async fn refuse(cluster: &Cluster, left: &BTreeSet<String>) -> Vec<String> {
    let target = &cluster.targets()[0];
    let list = match target.get("/inbox").await {
        Ok(list) => list.body,
        Err(error) => return vec![format!("the inbox: {error}")],
    };
    for item in list["items"].as_array().into_iter().flatten() {
        let (id, question) = (&item["id"], &item["question"]);
        if let (Some(id), Some(question)) = (id.as_str(), question.as_str())
            && left.contains(question)
        {
            // One that is open nevertheless shows in the check that follows.
            let _ = target.post(&format!("/inbox/{id}"), &json!({"refuse": true})).await;
        }
    }
    Vec::new()
}

async fn until_empty(left: impl AsyncFn() -> Vec<String>) -> Vec<String> {
    let end = Instant::now() + GONE_MAX;
    loop {
        let problems = left().await;
        if problems.is_empty() || Instant::now() > end {
            return problems;
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Calls, questions and connections of replicas without clients.
async fn open_work(cluster: &Cluster) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, replica) in cluster.targets().iter().enumerate() {
        for (path, field) in [("/calls", "calls"), ("/inbox", "items")] {
            match replica.get(path).await {
                Ok(answer) if answer.body[field].as_array().is_some_and(Vec::is_empty) => {}
                Ok(answer) => problems.push(format!("replica {index}: {path}: {}", answer.body)),
                Err(error) => problems.push(format!("replica {index}: {path}: {error}")),
            }
        }
    }
    let connections = count(cluster, IN_USE);
    if connections > REPLICAS * CONNECTIONS {
        problems.push(format!("{connections} connections to the database are in use"));
    }
    problems
}

/// Replicas that report lost commits: with a synchronous standby there are none.
async fn lost_commits(cluster: &Cluster) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, replica) in cluster.targets().iter().enumerate() {
        let text = match replica.request(reqwest::Method::GET, "/metrics").send().await {
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        if !text.lines().any(|line| line == "haft_shared_lost_commits 0") {
            let found = text.lines().find(|line| line.starts_with("haft_shared_lost"));
            problems.push(format!("replica {index} lost commits: {found:?}"));
        }
    }
    problems
}

/// Processes, connections, locks and rows of replicas that ended.
fn remains(cluster: &Cluster) -> Vec<String> {
    let mut problems = Vec::new();
    for (sql, word) in [(IN_USE, "connections"), (LIVE, "live replicas"), (LOCKS, "locks")] {
        let count = count(cluster, sql);
        if count > 0 {
            problems.push(format!("{count} {word} are left in the database"));
        }
    }
    for folder in cluster.folders() {
        problems.extend(processes_of(folder).into_iter().map(|it| format!("still runs: {it}")));
    }
    problems
}

fn count(cluster: &Cluster, sql: &str) -> usize {
    cluster.database.sql(sql).parse().unwrap_or(usize::MAX)
}

/// Processes that work in a folder or were started with a path in it, also children of killed replicas.
fn processes_of(folder: &Path) -> Vec<String> {
    let name = folder.display().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = processes.filter_map(|process| {
        let path = process.path();
        let _pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let is_in = fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let command = fs::read(path.join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        let is_named = command.contains(&name)
            || environment.windows(name.len()).any(|it| it == name.as_bytes());
        (is_in || is_named).then(|| format!("{} {command}", process.file_name().display()))
    });
    ours.collect()
}
