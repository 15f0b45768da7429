//! Questions to people. Two people answer each at two replicas at the same time: one answer counts, and the call receives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::Random;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use crate::client::{Answer, Target, status_of};
use crate::health::{Health, Owner, Trouble};
use crate::report::Report;

/// Tasks that ask.
const ASKERS: usize = 3;
const PAUSE: Duration = Duration::from_millis(150);
/// Longest time until a question is listed at every replica that reaches its owner.
const LISTED_MAX: Duration = Duration::from_secs(5);
/// Longest wait of a call for its end, once an answer was accepted and no fault delays it.
const RECEIVED_MAX: Duration = Duration::from_secs(30);

struct Workload {
    replicas: Vec<Target>,
    health: Arc<Health>,
    report: Arc<Report>,
}

/// Asks and answers until the run is over.
pub(crate) async fn run(
    replicas: Vec<Target>,
    health: Arc<Health>,
    mut random: Random,
    is_over: Arc<AtomicBool>,
) -> Arc<Report> {
    let report = Arc::<Report>::default();
    let workload = Arc::new(Workload { replicas, health, report: Arc::clone(&report) });
    let mut tasks = JoinSet::new();
    for asker in 0..ASKERS {
        let (workload, is_over) = (Arc::clone(&workload), Arc::clone(&is_over));
        let mut random = random.fork();
        tasks.spawn(async move {
            for number in 0_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                workload.ask(&format!("q-{asker}-{number}"), &mut random).await;
                sleep(PAUSE).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    report
}

impl Workload {
    /// One question at one replica, from its call to its end.
    async fn ask(&self, name: &str, random: &mut Random) {
        let index = *random.choose(&[0, 1, 2]);
        let owner = self.health.current(index);
        let began = self.health.now();
        let arguments = json!({"question": name, "options": ["left", "right"]});
        let body = json!({"arguments": arguments});
        let target = self.replicas[index].clone();
        let call = TaskTracker::new()
            .spawn(async move { target.post("/tools/request_human_input/call", &body).await });
        let Some(id) = self.find(name, &call, owner, began, random).await else {
            // The connection ends, and its call with it.
            call.abort();
            return;
        };
        // A process that was killed before its request arrived was followed by another one.
        let owner = self.health.owner_of_id(&id).unwrap_or(owner);
        if owner.replica != index {
            self.report.problem(format!("question {name} of {index} names {owner:?}: {id}"));
        }
        let first = random.within(0..3);
        let left = self.answer(first, &id, "left");
        let right = self.answer(first + 1 + random.within(0..2), &id, "right");
        let sent = self.health.now();
        let (left, right) = tokio::join!(left, right);
        for answer in [&left, &right] {
            self.report.count(format!("question: answer {}", status_of(answer)));
        }
        let explained = self.health.explains(owner, sent);
        let received = match tokio::time::timeout(RECEIVED_MAX, call).await {
            Ok(Ok(received)) => received,
            Ok(Err(_)) | Err(_) => Err("no end of the call".to_owned()),
        };
        self.report.count(format!("question: call {}", status_of(&received)));
        let received =
            Received { answer: text_of(&received), killed: self.health.was_killed(owner) };
        let all = [("left", &left), ("right", &right)];
        if let Some(problem) = judge(&all, &received, explained) {
            self.report.problem(format!("question {name} ({id}) of {owner:?}: {problem}"));
        }
    }

    /// Waits until a replica lists a question.
    async fn find(
        &self,
        name: &str,
        call: &tokio::task::JoinHandle<Result<Answer, String>>,
        owner: Owner,
        began: Duration,
        random: &mut Random,
    ) -> Option<String> {
        loop {
            let polled = self.health.now();
            let list = random.choose(&self.replicas).get("/inbox").await;
            if let Ok(list) = &list
                && let Some(items) = list.body.get("items").and_then(Value::as_array)
                && let Some(item) = items.iter().find(|item| item["question"] == name)
            {
                self.report.count("question: listed");
                return item["id"].as_str().map(str::to_owned);
            }
            let explained = self.health.explains(owner, began);
            if call.is_finished() && explained.is_some() {
                self.report.count("question: lost before it was listed");
                return None;
            }
            let is_missing = list.is_ok_and(|it| {
                it.status.is_success() && it.body.get("replicas_missing").is_none()
            });
            if is_missing && explained.is_none() && polled > began + LISTED_MAX {
                self.report.problem(format!("question {name} of {owner:?} is not listed"));
                return None;
            }
            if polled > began + RECEIVED_MAX {
                self.report.count("question: not listed under a fault");
                return None;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn answer(&self, replica: u64, id: &str, word: &str) -> Result<Answer, String> {
        let replica = usize::try_from(replica).unwrap_or_default() % self.replicas.len();
        self.replicas[replica].post(&format!("/inbox/{id}"), &json!({"answer": word})).await
    }
}

/// The end of the call.
struct Received {
    answer: Option<String>,
    /// True if its replica was killed before.
    killed: bool,
}

fn text_of(received: &Result<Answer, String>) -> Option<String> {
    let data = received.as_ref().ok()?.body.get("data")?;
    data.get("answer").and_then(Value::as_str).map(str::to_owned)
}

/// The problem of a question, if there is one. `explained` is the fault of the owner while it was answered, if there was one.
fn judge(
    answers: &[(&str, &Result<Answer, String>); 2],
    received: &Received,
    explained: Option<Trouble>,
) -> Option<String> {
    let accepted: Vec<&str> =
        answers.iter().filter(|it| is_accepted(it.1)).map(|it| it.0).collect();
    for (word, answer) in answers {
        if let Ok(answer) = answer
            && ![StatusCode::OK, StatusCode::NOT_FOUND].contains(&answer.status)
        {
            return Some(format!("`{word}` is answered with {} {}", answer.status, answer.body));
        }
    }
    match (&accepted[..], &received.answer) {
        ([_, _, ..], _) => Some("both answers are accepted".to_owned()),
        ([one], Some(answer)) if one == answer => None,
        ([one], Some(answer)) => Some(format!("`{one}` is accepted, and the call has `{answer}`")),
        ([one], None) if !received.killed => {
            Some(format!("`{one}` is accepted, and the call has no answer"))
        }
        // The response was lost on its way: the other replica reports the owner as gone.
        ([_] | [], _) if explained.is_some() || received.killed => None,
        ([], Some(_)) if answers.iter().any(|it| it.1.is_err()) => None,
        ([_], None) => None,
        ([], _) => {
            let statuses: Vec<String> = answers.iter().map(|it| status_of(it.1)).collect();
            Some(format!("no answer is accepted: {statuses:?}, the call has {:?}", received.answer))
        }
    }
}

fn is_accepted(answer: &Result<Answer, String>) -> bool {
    answer.as_ref().is_ok_and(|answer| answer.status == StatusCode::OK)
}
