//! `haft servers ping`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use haft::{Runtime, ServerInfo};
use serde_json::{Value, json};

use crate::cli::toolbox::{self, Purpose, Toolbox};
use crate::cli::{EXIT_RUNTIME, Failure, Global, block_on, print_json};
use crate::terminal::{self, Paint};

/// The answer of one server.
struct Answer {
    server: String,
    outcome: Result<Duration, Failure>,
}

pub(super) fn run(global: &Global, names: &[String]) -> anyhow::Result<ExitCode> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let config = toolbox::with_servers(global, &names)?;
    let answers = block_on(async {
        let toolbox = Toolbox::open(config, Purpose::Inspect).await?;
        toolbox.work(async |runtime| Ok(ping_all(runtime).await)).await
    })?;
    print(global, &answers)?;
    let is_failed = answers.iter().any(|answer| answer.outcome.is_err());
    Ok(if is_failed { ExitCode::from(EXIT_RUNTIME) } else { ExitCode::SUCCESS })
}

async fn ping_all(runtime: &Runtime) -> Vec<Answer> {
    let servers = runtime.servers();
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
            outcome.map_err(|failure| toolbox::refused(failure, "fix the server"))
        } else {
            Err(Failure::new(
                EXIT_RUNTIME,
                toolbox::reason(server),
                toolbox::remedy_and_more(server),
            ))
        };
        Some(Answer { server: server.name.clone(), outcome })
    };
    servers.iter().filter_map(answer).collect()
}

fn print(global: &Global, answers: &[Answer]) -> anyhow::Result<()> {
    if global.json {
        let answers: Vec<Value> = answers.iter().map(as_json).collect();
        return print_json(&answers);
    }
    if answers.is_empty() {
        terminal::line("no servers are configured");
        return Ok(());
    }
    let row = |answer: &Answer| {
        let (state, time, reason) = match &answer.outcome {
            Ok(time) => ("ok", format!("{:.1} ms", millis(*time)), String::new()),
            Err(failure) => ("failed", "-".to_owned(), failure.message.clone()),
        };
        vec![answer.server.clone(), state.to_owned(), time, reason]
    };
    let rows: Vec<Vec<String>> = answers.iter().map(row).collect();
    terminal::table(Paint::stdout(global.color), &["SERVER", "PING", "TIME", "REASON"], &rows);
    Ok(())
}

fn as_json(answer: &Answer) -> Value {
    let server = &answer.server;
    match &answer.outcome {
        Ok(time) => json!({"server": server, "ok": true, "round_trip_ms": millis(*time)}),
        Err(Failure { message, remedy, .. }) => {
            json!({"server": server, "ok": false, "error": message, "remedy": remedy})
        }
    }
}

/// Milliseconds, to the microsecond.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
