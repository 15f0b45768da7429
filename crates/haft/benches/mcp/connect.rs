//! Many servers at once through the library, and what each of them takes of our memory.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use haft::{Config, Runtime};
use testkit::times::{Times, ratio};

use super::Failure;
use super::stats::{shown, verdict};

const SERVERS: usize = 20;
const TOOLS: usize = 25;
const ROUNDS: usize = 5;
/// Time until the servers answer, from the first to the last.
const DELAY_MIN_MS: usize = 100;
const DELAY_STEP_MS: usize = 10;

/// Startup time of the servers of a configuration.
#[derive(Clone, Copy)]
enum Readiness {
    /// After a wait, as programs do that load modules or sign in somewhere.
    Later,
    /// At once: only processes, pipes and Haft are left.
    AtOnce,
}

pub(crate) async fn measure() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    // Whatever a first start sets up for good is not counted to the servers.
    stop(&start(folder, 0..1, Readiness::AtOnce).await?.0).await;

    println!(
        "# Memory of our own process for each of {SERVERS} connected servers of {TOOLS} tools"
    );
    let before = resident_kib()?;
    let (runtime, _) = start(folder, 0..SERVERS, Readiness::AtOnce).await?;
    let after = resident_kib()?;
    let each = after.saturating_sub(before) / SERVERS;
    println!("{before} KiB before, {after} KiB after: {each} KiB for each server");
    stop(&runtime).await;

    println!(
        "\n# Connecting {SERVERS} stdio servers of {TOOLS} tools each, against the slowest of them alone"
    );
    compare(folder, Readiness::Later).await?;
    compare(folder, Readiness::AtOnce).await
}

async fn compare(folder: &Path, readiness: Readiness) -> Result<(), Failure> {
    let (mut all, mut slowest) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The last one waits longest; where none waits, any of them may be the slowest.
        let alone = match readiness {
            Readiness::Later => SERVERS - 1..SERVERS,
            Readiness::AtOnce => round..SERVERS,
        };
        let mut single = Duration::ZERO;
        for at in alone {
            let (runtime, took) = start(folder, at..at + 1, readiness).await?;
            single = single.max(took);
            stop(&runtime).await;
        }
        slowest.push(single);
        let (runtime, took) = start(folder, 0..SERVERS, readiness).await?;
        all.push(took);
        stop(&runtime).await;
    }
    let (all, slowest) = (Times::new(all).median(), Times::new(slowest).median());
    let (all_shown, slowest_shown, ratio) = (shown(all), shown(slowest), ratio(all, slowest));
    match readiness {
        Readiness::Later => {
            let last = DELAY_MIN_MS + DELAY_STEP_MS * (SERVERS - 1);
            println!(
                "servers that wait {DELAY_MIN_MS} to {last} ms before they answer (waiting, not computing): \
                 all {all_shown}, slowest alone {slowest_shown}; {}",
                verdict(ratio, 1.5)
            );
        }
        Readiness::AtOnce => println!(
            "servers that answer at once, so that the machine's cores are all there is to share: \
             all {all_shown}, slowest alone {slowest_shown}; {ratio:.2}x (no goal)"
        ),
    }
    Ok(())
}

/// From the compiled configuration to a toolbox that has every tool.
async fn start(
    folder: &Path,
    servers: std::ops::Range<usize>,
    readiness: Readiness,
) -> Result<(Runtime, Duration), Failure> {
    let program = std::env::current_exe()?;
    let program = program.display();
    let logs = folder.join("logs");
    let mut yaml = format!(
        "log: {{dir: '{}'}}\ndefaults: {{on_name_collision: prefix}}\nservers:\n",
        logs.display()
    );
    let expected = servers.len() * TOOLS;
    for at in servers {
        let delay = match readiness {
            Readiness::Later => DELAY_MIN_MS + DELAY_STEP_MS * at,
            Readiness::AtOnce => 0,
        };
        writeln!(
            yaml,
            "  server{at}: {{transport: stdio, command: '{program}', args: [serve, stdio, '{TOOLS}', '{delay}'], mode: dynamic}}"
        )?;
    }
    let config = Config::from_yaml(&yaml)?;
    let started = Instant::now();
    let runtime = Runtime::start(config).await?;
    let took = started.elapsed();
    let tools = runtime.tools().len();
    if tools != expected {
        return Err(format!("{tools} tools instead of {expected}").into());
    }
    Ok((runtime, took))
}

async fn stop(runtime: &Runtime) {
    runtime.shutdown(Duration::from_secs(5)).await;
}

fn resident_kib() -> Result<usize, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?;
    Ok(number.parse()?)
}
