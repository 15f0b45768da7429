//! The lists of tools of all replicas: the same bytes at the same revision of the registry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use testkit::Random;
use tokio::time::{Instant, sleep};

use crate::client::Target;
use crate::mcp;
use crate::report::Report;

const PAUSE: Duration = Duration::from_millis(100);
/// Longest time until all replicas are at the same revision once nothing changes any more.
const SETTLED_MAX: Duration = Duration::from_secs(20);

/// Compares lists until the run is over.
pub(crate) async fn run(
    replicas: Vec<Target>,
    mut random: Random,
    is_over: Arc<AtomicBool>,
) -> Arc<Report> {
    let report = Arc::<Report>::default();
    let mut lists = BTreeMap::new();
    while !is_over.load(Ordering::Relaxed) {
        if let Some((revision, list)) = listed(random.choose(&replicas)).await {
            compare(&mut lists, &revision, list, &report);
        } else {
            report.count("lists: revision changed meanwhile");
        }
        sleep(PAUSE).await;
    }
    report
}

/// Compares the lists of all replicas after the run.
pub(crate) async fn settled(replicas: &[Target], report: &Report) {
    let end = Instant::now() + SETTLED_MAX;
    loop {
        let mut lists = BTreeMap::new();
        let mut answered = 0;
        for replica in replicas {
            if let Some((revision, list)) = listed(replica).await {
                answered += 1;
                compare(&mut lists, &revision, list, report);
            }
        }
        if answered == replicas.len() && lists.len() == 1 {
            return;
        }
        if Instant::now() > end {
            let revisions: Vec<_> = lists.keys().collect();
            report
                .problem(format!("lists: {answered} replicas are at {revisions:?} after the run"));
            return;
        }
        sleep(PAUSE).await;
    }
}

/// The list of a replica, with the revision that it had before and after.
async fn listed(replica: &Target) -> Option<(String, String)> {
    let before = replica.get("/tools/record").await.ok()?.revision?;
    let list = mcp::modern(replica, "tools/list", json!({})).await.ok()?;
    let after = replica.get("/tools/record").await.ok()?.revision?;
    // Without the id of the request.
    let result = list.message()["result"].to_string();
    (before == after && list.status == 200).then_some((before, result))
}

fn compare(lists: &mut BTreeMap<String, String>, revision: &str, list: String, report: &Report) {
    match lists.get(revision) {
        None => report.count("lists: first at its revision"),
        Some(known) if *known == list => report.count("lists: same at the same revision"),
        Some(known) => report.problem(differs(revision, known, &list)),
    }
    lists.entry(revision.to_owned()).or_insert(list);
}

fn differs(revision: &str, known: &str, list: &str) -> String {
    let at = known.bytes().zip(list.bytes()).take_while(|(one, other)| one == other).count();
    let near = |text: &str| {
        let bytes = text.as_bytes();
        String::from_utf8_lossy(&bytes[at.saturating_sub(60)..(at + 60).min(bytes.len())])
            .into_owned()
    };
    format!("lists at {revision} differ at byte {at}: `{}` and `{}`", near(known), near(list))
}
