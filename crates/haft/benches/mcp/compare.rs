//! The same calls through both clients, in turns.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::times::{Times, ratio};
use tokio::process::Command;

use super::server::BLOB_BYTES;
use super::stats::{median, shown, verdict};
use super::{Failure, floor, ours, theirs};

const ROUNDS: usize = 7;
/// Within a round, the clients change turns this often.
const TURNS: usize = 10;

/// A client that is measured.
pub(crate) trait Call {
    /// Arguments in the form that the client takes.
    type Prepared;

    /// Not part of the time.
    fn prepare(&self, arguments: &Value) -> Self::Prepared;

    /// Calls a tool and gives the text of its answer.
    async fn call(&self, tool: &str, arguments: Self::Prepared) -> Result<String, Failure>;
}

/// One thing to call, and how often in one turn.
struct Load {
    tool: &'static str,
    arguments: Value,
    answer_bytes_min: usize,
    calls: usize,
}

/// This program again, as a server.
pub(crate) fn serve(words: &[&str]) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve").args(words).kill_on_drop(true);
    Ok(command)
}

/// Measures the calls whose name contains `only`.
pub(crate) async fn measure(only: String) -> Result<(), Failure> {
    let text = "x".repeat(32);
    let echo =
        Load { tool: "echo", arguments: json!({ "text": text }), answer_bytes_min: 32, calls: 200 };
    // The text loses its escapes on the way.
    let blob = Load {
        tool: "blob",
        arguments: json!({}),
        answer_bytes_min: BLOB_BYTES * 97 / 100,
        calls: 4,
    };

    let is_wanted = |what: &str| what.contains(&only);

    let (one, other) = (ours::stdio().await?, theirs::stdio().await?);
    let what = "stdio, echo of 32 B";
    if is_wanted(what) {
        compare(what, &one, &other, &echo, 0.4).await?;
        println!("    the same without a client, blocking: p50 {}", shown(floor::echo(&text)?));
    }
    let what = "stdio, result of 1 MB";
    if is_wanted(what) {
        compare(what, &one, &other, &blob, 0.4).await?;
        println!("    the same without a client, blocking: p50 {}", shown(floor::blob()?));
    }

    let mut server = std::process::Command::new(std::env::current_exe()?)
        .args(["serve", "http"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut port = String::new();
    BufReader::new(server.stdout.take().ok_or("no stdout")?).read_line(&mut port)?;
    let url = format!("http://127.0.0.1:{}/mcp", port.trim());
    let (one, other) = (ours::http(&url).await?, theirs::http(&url).await?);
    let what = "HTTP, echo of 32 B, answered with JSON";
    if is_wanted(what) {
        compare(what, &one, &other, &echo, 0.7).await?;
        let floor = floor::http(&url, &text)?;
        println!("    the same without a client, blocking: p50 {}", shown(floor));
    }
    let what = "HTTP, result of 1 MB, answered with JSON";
    if is_wanted(what) {
        compare(what, &one, &other, &blob, 0.7).await?;
    }
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

async fn compare(
    what: &str,
    ours: &impl Call,
    theirs: &impl Call,
    load: &Load,
    goal: f64,
) -> Result<(), Failure> {
    turn(ours, load, &mut Vec::new()).await?;
    turn(theirs, load, &mut Vec::new()).await?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            turn(ours, load, &mut one).await?;
            turn(theirs, load, &mut other).await?;
        }
        rounds.push((Times::new(one), Times::new(other)));
    }
    let ratios = rounds.iter().map(|(one, other)| ratio(one.median(), other.median()));
    let ratio = median(ratios.collect());
    let over = |percent, whose: fn(&(Times, Times)) -> &Times| {
        let times = rounds.iter().map(|round| whose(round).percentile(percent));
        shown(Times::new(times.collect()).median())
    };
    println!(
        "{what}: haft p50 {}, p99 {}; rmcp p50 {}, p99 {}; {}",
        over(50, |round| &round.0),
        over(99, |round| &round.0),
        over(50, |round| &round.1),
        over(99, |round| &round.1),
        verdict(ratio, goal)
    );
    Ok(())
}

async fn turn(client: &impl Call, load: &Load, times: &mut Vec<Duration>) -> Result<(), Failure> {
    for _ in 0..load.calls {
        let arguments = client.prepare(&load.arguments);
        let started = Instant::now();
        let text = client.call(load.tool, arguments).await?;
        times.push(started.elapsed());
        if text.len() < load.answer_bytes_min {
            return Err(format!("`{}` answered with {} bytes", load.tool, text.len()).into());
        }
    }
    Ok(())
}
