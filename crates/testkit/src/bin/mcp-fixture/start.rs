//! The command line, and everything that goes wrong before a server serves.

use std::io::{Error, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::facts::Facts;
use crate::scenario::Scenario;
use crate::server::Server;

/// The exit code of a process that SIGTERM ended, as shells report it.
const TERMINATED: i32 = 128 + 15;

/// The parsed command line.
#[derive(Debug)]
pub struct Command {
    /// `stdio`, `http`, `sse` or `ws`.
    pub transport: String,
    /// The server's behaviour.
    pub scenario: Scenario,
    /// Where to listen; any free port by default.
    pub port: u16,
}

impl Command {
    /// Reads the command line. Arguments it does not know are for tests of arguments.
    pub fn read() -> std::io::Result<Self> {
        let mut args = std::env::args().skip(1);
        let transport = args.next().ok_or_else(|| Error::other("name a transport"))?;
        let mut command = Self { transport, scenario: Scenario::default(), port: 0 };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| Error::other(format!("{arg} of what?")));
            match arg.as_str() {
                "--scenario" => command.scenario = serde_json::from_str(&value()?)?,
                "--script" => {
                    let text = std::fs::read_to_string(value()?)?;
                    command.scenario = serde_json::from_str(&text)?;
                }
                "--port" => command.port = value()?.parse().map_err(Error::other)?,
                _ => {}
            }
        }
        Ok(command)
    }
}

/// Goes through the faults of the start; some never return.
pub async fn prepare(scenario: &Scenario, facts: &Facts) {
    let start = &scenario.start;
    tokio::time::sleep(Duration::from_millis(start.delay_ms)).await;
    let mut stderr = std::io::stderr().lock();
    // A closed standard error is the test's affair.
    drop(stderr.write_all(start.stderr.as_bytes()));
    let line = format!("{}\n", "e".repeat(99));
    for _ in 0..start.stderr_bytes.div_ceil(line.len()) {
        drop(stderr.write_all(line.as_bytes()));
    }
    drop(stderr);
    for line in &start.noise {
        println!("{line}");
    }
    if let Some(code) = start.exit {
        facts.exit(code);
    }
    if start.hang {
        std::future::pending::<()>().await;
    }
}

/// Notes the end by SIGTERM, or ignores the signal.
pub fn watch_signals(server: &Arc<Server>) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let watched = Arc::clone(server);
    server.tasks.spawn(async move {
        while terminate.recv().await.is_some() {
            watched.facts.note("sigterm", serde_json::json!({}));
            if !watched.scenario.ignore_sigterm {
                watched.facts.exit(TERMINATED);
            }
        }
    });
    Ok(())
}

/// Listens and prints the address.
pub async fn listen(port: u16, scheme: &str, path: &str) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "listening on {scheme}://{address}{path}")?;
    stdout.flush()?;
    Ok(listener)
}
