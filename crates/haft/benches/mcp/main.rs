//! The cost of MCP, as ratios measured in one run. `cargo xtask bench mcp`.
//! `cargo bench -p haft --bench mcp -- '1 MB'` measures only the calls with these words in their name.
//!
//! Haft's own client and the official SDK, rmcp, take turns at the same server program and under
//! the same kind of runtime. Both end with the text of the answer in hand. The program is its own
//! server: started with `serve`, it is a child of the measurement.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be set up has failed")]

mod compare;
mod connect;
mod floor;
mod ours;
mod server;
mod stats;
mod theirs;

use tokio::runtime::Builder;
use tokio_util::task::TaskTracker;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [serve, how, rest @ ..] = &words[..]
        && serve == "serve"
    {
        return server::run(how, rest);
    }
    // reqwest is built without a provider of its own; ours brings one, rmcp takes the process's.
    let _ = rustls::crypto::ring::default_provider().install_default();

    // Cargo adds options of its own.
    let only = words.into_iter().find(|word| !word.starts_with('-'));
    // Memory first: later, freed pages would hide what is taken.
    let workers = || Builder::new_multi_thread().worker_threads(2).enable_all().build();
    if only.is_none() {
        let runtime = workers()?;
        runtime.block_on(async { TaskTracker::new().spawn(connect::measure()).await })??;
    }
    let calls = || TaskTracker::new().spawn(compare::measure(only.clone().unwrap_or_default()));

    println!("\n# Calls on a multi-threaded runtime with two workers, as Haft runs");
    workers()?.block_on(async { calls().await })??;
    println!("\n# Calls on a single-threaded runtime");
    let single = Builder::new_current_thread().enable_all().build()?;
    single.block_on(async { calls().await })??;
    Ok(())
}
