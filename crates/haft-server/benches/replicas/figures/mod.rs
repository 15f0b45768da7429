//! The cost and the delays of replicas, from one run. `cargo xtask bench replicas`.
//!
//! Words choose parts: `calls`, `statements`, `spread`, `forward`, `log`, `outage`. `--quick` is a short run.

#[path = "../../gateway/backend.rs"]
mod backend;
mod calls;
mod forward;
mod http;
mod log;
mod outage;
mod service;
mod spread;
mod statements;
mod table;

use crate::Failure;
use table::Table;

/// The word of the process that is the server behind the replicas.
const BACKEND: &str = "backend";

/// Calls in flight at once.
const IN_FLIGHT: usize = 64;

/// The amount of work.
#[derive(Debug, Clone, Copy)]
struct Effort {
    rounds: usize,
    one_at_a_time: usize,
    flood_secs: u64,
    samples: usize,
    calls: usize,
    calls_per_second: usize,
    outage_secs: u64,
}

const FULL: Effort = Effort {
    rounds: 5,
    one_at_a_time: 1_000,
    flood_secs: 2,
    samples: 100,
    calls: 10_000,
    calls_per_second: 1_000,
    outage_secs: 60,
};

const QUICK: Effort = Effort {
    rounds: 1,
    one_at_a_time: 100,
    flood_secs: 1,
    samples: 10,
    calls: 1_000,
    calls_per_second: 100,
    outage_secs: 10,
};

/// Measures everything, or the parts that are named, and prints the table.
pub(crate) async fn run(args: impl Iterator<Item = String>) -> Result<(), Failure> {
    let mut args: Vec<String> = args.collect();
    if args == [BACKEND] {
        return tokio::task::spawn_blocking(backend::run).await?;
    }
    let is_quick = args.iter().any(|arg| arg == "--quick");
    args.retain(|arg| arg != "--quick");
    let effort = if is_quick { QUICK } else { FULL };
    let parts = ["calls", "statements", "spread", "forward", "log", "outage"];
    if let Some(unknown) = args.iter().find(|arg| !parts.contains(&arg.as_str())) {
        return Err(format!("`{unknown}` is none of {}", parts.join(", ")).into());
    }
    let mut table = Table::default();
    for part in parts.into_iter().filter(|part| args.is_empty() || args.iter().any(|it| it == part))
    {
        eprintln!("{part} ...");
        match part {
            "calls" => calls::measure(&effort, &mut table).await?,
            "statements" => statements::measure(&effort, &mut table).await?,
            "spread" => spread::measure(&effort, &mut table).await?,
            "forward" => forward::measure(&effort, &mut table).await?,
            "log" => log::measure(&effort, &mut table).await?,
            _ => outage::measure(&effort, &mut table).await?,
        }
    }
    print!("{table}");
    Ok(())
}
