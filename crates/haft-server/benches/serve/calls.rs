//! Calls per second over HTTP, against an echo with nothing around it.

use std::path::Path;

use super::Failure;
use super::host::{Hosted, Server};
use super::wrk::{self, Run};

const ROUNDS: usize = 3;
const SECS: u32 = 3;
const CONNECTIONS: [u32; 3] = [1, 16, 64];
const BODY: &str = r#"{"arguments":{"city":"Seoul","days":3}}"#;

pub(crate) fn measure(folder: &Path) -> Result<(), Failure> {
    println!(
        "\n# `POST /api/v1/tools/noop/call` with key, validation and log, against a bare JSON echo"
    );
    let folder = folder.join("calls");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(
        folder.join("haft.yaml"),
        "defaults: {max_concurrent: 64}\ntools: [{name: noop, max_instances: 64}]\n",
    )?;
    let echo = Hosted::start(Server::Echo)?;
    let haft = Hosted::start(Server::Haft(folder.clone()))?;
    let echo_url = format!("{}/echo", echo.url);
    let call_url = format!("{}/api/v1/tools/noop/call", haft.url);
    for connections in CONNECTIONS {
        let (mut echoes, mut calls) = (Vec::new(), Vec::new());
        // In turns, so that both see the same machine.
        for _ in 0..ROUNDS {
            echoes.push(wrk::post(&echo_url, "", BODY, connections, SECS, &folder)?);
            calls.push(wrk::post(&call_url, &haft.key, BODY, connections, SECS, &folder)?);
        }
        let (echo, call) = (middle(echoes), middle(calls));
        println!("{connections:>3} connections: echo {}", shown(&echo));
        println!("                 call {}", shown(&call));
        println!(
            "                 {:.2}x the echo's requests per second (target: at least 0.5x)",
            call.per_second / echo.per_second
        );
    }
    Ok(())
}

/// The run in the middle, by requests per second.
fn middle(mut runs: Vec<Run>) -> Run {
    runs.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
    runs.swap_remove(runs.len() / 2)
}

fn shown(run: &Run) -> String {
    format!("{:.0} requests/s, p50 {}, p99 {}", run.per_second, run.p50, run.p99)
}
