//! `haft servers ping`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use haft::{Runtime, ServerInfo};
use serde_json::{Value, json};

use crate::cli::service::{self, FailureBody, PingAnswer, Reply, Request};
use crate::cli::toolbox::{self, Purpose, Toolbox};
use crate::cli::{EXIT_RUNTIME, Failure, Global, block_on, print_json};
use crate::terminal::{self, Paint};

pub(super) fn run(global: &Global, names: &[String]) -> anyhow::Result<ExitCode> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let request = Request::Ping { names: names.iter().map(|it| (*it).to_owned()).collect() };
    let answers = match service::ask(global, &request)? {
        Some(Reply::Pings(answers)) => answers,
        Some(_) => return Err(service::unexpected()),
        None => {
            let config = toolbox::with_servers(global, &names)?;
            block_on(async {
                let toolbox = Toolbox::open(config, Purpose::Inspect).await?;
                toolbox.work(async |runtime| Ok(ping_all(runtime, &runtime.servers()).await)).await
            })?
        }
    };
    print(global, &answers)?;
    let is_failed = answers.iter().any(|answer| answer.outcome.is_err());
    Ok(if is_failed { ExitCode::from(EXIT_RUNTIME) } else { ExitCode::SUCCESS })
}

/// Pings these servers, all at the same time.
pub(in crate::cli) async fn ping_all(runtime: &Runtime, servers: &[ServerInfo]) -> Vec<PingAnswer> {
    let reached = servers.iter().filter(|server| toolbox::answers(server));
    let reached: Vec<String> = reached.map(|server| server.name.clone()).collect();
    let pinged = toolbox::ask_each(reached, |server| {
        let runtime = runtime.clone();
        async move {
            let start = Instant::now();
            runtime.ping(&server).await.map(|()| start.elapsed())
        }
    });
    let mut pinged = pinged.await.into_iter();
    let answer = |server: &ServerInfo| {
        let outcome = if toolbox::answers(server) {
            // In the order of the servers, so the next answer is this one's.
            let (_, outcome) = pinged.next()?;
            let refused = |failure| toolbox::refused(failure, "fix the server").into();
            outcome.map(millis).map_err(refused)
        } else {
            let (reason, remedy) = (toolbox::reason(server), toolbox::remedy_and_more(server));
            Err(Failure::new(EXIT_RUNTIME, reason, remedy).into())
        };
        Some(PingAnswer { server: server.name.clone(), outcome })
    };
    servers.iter().filter_map(answer).collect()
}

fn print(global: &Global, answers: &[PingAnswer]) -> anyhow::Result<()> {
    if global.json {
        let answers: Vec<Value> = answers.iter().map(as_json).collect();
        return print_json(&answers);
    }
    if answers.is_empty() {
        terminal::line("no servers are configured");
        return Ok(());
    }
    let row = |answer: &PingAnswer| {
        let (state, time, reason) = match &answer.outcome {
            Ok(time) => ("ok", format!("{time:.1} ms"), String::new()),
            Err(failure) => ("failed", "-".to_owned(), failure.message.clone()),
        };
        vec![answer.server.clone(), state.to_owned(), time, reason]
    };
    let rows: Vec<Vec<String>> = answers.iter().map(row).collect();
    terminal::table(Paint::stdout(global.color), &["SERVER", "PING", "TIME", "REASON"], &rows);
    Ok(())
}

fn as_json(answer: &PingAnswer) -> Value {
    let server = &answer.server;
    match &answer.outcome {
        Ok(time) => json!({"server": server, "ok": true, "round_trip_ms": time}),
        Err(FailureBody { message, remedy, .. }) => {
            json!({"server": server, "ok": false, "error": message, "remedy": remedy})
        }
    }
}

/// Milliseconds, to the microsecond.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
