//! Conditional writes and reads of a few registry entries at all replicas, and the check of their history.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::Random;
use testkit::linear::{self, Kind, Operation};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::client::{Answer, Request, RunClock, Target, status_of};

/// Entries that are written.
const ENTRIES: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
/// Tasks that write them.
const WRITERS: usize = 8;
/// Pause of a writer between two writes.
const PAUSE: Duration = Duration::from_millis(60);
/// Distance of the operations that are shown around one that nothing explains.
const NEAR: Duration = Duration::from_millis(500);
/// Attempts at the set-up, while the replicas start.
const SET_UP_TRIES: usize = 100;

/// The operations on the entries.
#[derive(Debug, Default)]
pub(crate) struct History {
    operations: BTreeMap<usize, Vec<Operation>>,
    /// Answers by status or error, for the report.
    pub(crate) counts: BTreeMap<String, u64>,
}

struct Workload {
    replicas: Vec<Target>,
    clock: RunClock,
    next_value: AtomicU64,
    /// True if writers ignore what they read, so that the check must fail.
    has_planted_fault: bool,
    history: Mutex<History>,
}

fn name(entry: usize) -> String {
    format!("register_{entry}")
}

fn entry_with(entry: usize, value: u64) -> Value {
    json!({
        "name": name(entry),
        "description": format!("value {value}"),
        "type": "local",
        "config": {"script_path": "record.py", "entrypoint": "record"},
        "input_schema": {"type": "object", "properties": {"nonce": {"type": "string"}}},
    })
}

/// The value of an entry in an answer.
fn value_in(answer: &Answer) -> Option<u64> {
    let description = answer.body.get("entry")?.get("description")?.as_str()?;
    description.strip_prefix("value ")?.parse().ok()
}

/// Registers the entries with the value 0.
pub(crate) async fn set_up(replica: &Target) -> Result<(), String> {
    for entry in ENTRIES {
        let (path, body) = (format!("/tools/{}", name(entry)), entry_with(entry, 0));
        let mut last = String::new();
        for _ in 0..SET_UP_TRIES {
            let request = Request { path: &path, body: Some(&body), ..Request::default() };
            match replica.send(Method::PUT, request).await {
                Ok(answer) if answer.status.is_success() => {
                    last.clear();
                    break;
                }
                Ok(answer) => last = format!("{}: {}", answer.status, answer.body),
                Err(error) => last = error,
            }
            sleep(PAUSE).await;
        }
        if !last.is_empty() {
            return Err(format!("`{}` cannot be registered: {last}", name(entry)));
        }
    }
    Ok(())
}

/// Writes and reads until the run is over. With a planted fault the writes are unconditional, and the history is not
/// linearizable.
pub(crate) async fn run(
    replicas: Vec<Target>,
    clock: RunClock,
    mut random: Random,
    has_planted_fault: bool,
    is_over: Arc<AtomicBool>,
) -> History {
    let workload = Arc::new(Workload {
        replicas,
        clock,
        next_value: AtomicU64::new(1),
        has_planted_fault,
        history: Mutex::default(),
    });
    let mut tasks = JoinSet::new();
    for _ in 0..WRITERS {
        let (workload, is_over) = (Arc::clone(&workload), Arc::clone(&is_over));
        let mut random = random.fork();
        tasks.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                workload.step(&mut random).await;
                sleep(PAUSE).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    std::mem::take(&mut *workload.history.lock())
}

impl Workload {
    /// Reads an entry at one replica and replaces what was read at another one.
    async fn step(&self, random: &mut Random) {
        let entry = *random.choose(&ENTRIES);
        let Some((expected, etag)) = self.read(entry, random).await else { return };
        let new = self.next_value.fetch_add(1, Ordering::Relaxed);
        let (path, body) = (format!("/tools/{}", name(entry)), entry_with(entry, new));
        let if_match = if self.has_planted_fault { "*" } else { etag.as_str() };
        let headers = [("if-match", if_match)];
        let request = Request { path: &path, headers: &headers, body: Some(&body) };
        let began = self.clock.now();
        let answer = self.replica(random).send(Method::PUT, request).await;
        let ended = self.clock.now();
        let kind = match &answer {
            Ok(answer) if answer.status.is_success() => Some(Kind::Written { expected, new }),
            Ok(answer) if answer.status == StatusCode::PRECONDITION_FAILED => {
                Some(Kind::Refused { expected })
            }
            Ok(answer) if is_unknown(answer) => Some(Kind::Unknown { expected, new }),
            // Any other status states that nothing was changed. A value that appears nevertheless has no writer.
            Ok(_) => None,
            Err(_) => Some(Kind::Unknown { expected, new }),
        };
        let word = format!("write: {}", status_of(&answer));
        self.note(entry, word, kind.map(|kind| Operation { began, ended, kind }));
    }

    async fn read(&self, entry: usize, random: &mut Random) -> Option<(u64, String)> {
        let began = self.clock.now();
        let answer = self.replica(random).get(&format!("/tools/{}", name(entry))).await;
        let ended = self.clock.now();
        let found = match &answer {
            Ok(answer) if answer.status.is_success() => value_in(answer).zip(answer.etag.clone()),
            Ok(_) | Err(_) => None,
        };
        let word = format!("read: {}", status_of(&answer));
        let operation =
            found.as_ref().map(|(value, _)| Operation { began, ended, kind: Kind::Read(*value) });
        self.note(entry, word, operation);
        found
    }

    fn replica(&self, random: &mut Random) -> &Target {
        random.choose(&self.replicas)
    }

    fn note(&self, entry: usize, word: String, operation: Option<Operation>) {
        let mut history = self.history.lock();
        *history.counts.entry(word).or_default() += 1;
        history.operations.entry(entry).or_default().extend(operation);
    }
}

/// Returns true if the service does not know whether it wrote.
fn is_unknown(answer: &Answer) -> bool {
    answer.body.get("code").and_then(Value::as_str) == Some("OutcomeUnknown")
}

/// The operations around one, a line each.
fn near(operations: &[Operation], at: &Operation) -> String {
    let mut near: Vec<&Operation> = operations
        .iter()
        .filter(|it| {
            it.began.abs_diff(at.began) < NEAR || it.kind.new_value() == at.kind.expected()
        })
        .collect();
    near.sort_by_key(|it| it.began);
    let lines = near.iter().map(|it| format!("  {:?} to {:?}: {:?}", it.began, it.ended, it.kind));
    lines.collect::<Vec<_>>().join("\n")
}

impl History {
    /// Everything that no order of the operations explains.
    pub(crate) fn problems(&self) -> Vec<String> {
        let checked = self.operations.iter().map(|(entry, operations)| {
            linear::check(0, operations).map_err(|error| {
                let near = near(operations, &error.operation);
                format!("{}: {error}; operations around it:\n{near}", name(*entry))
            })
        });
        checked.filter_map(Result::err).collect()
    }

    /// Number of operations that were checked.
    pub(crate) fn len(&self) -> usize {
        self.operations.values().map(Vec::len).sum()
    }
}
