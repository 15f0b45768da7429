//! Three replicas on a real PostgreSQL: `chaos` checks them under faults (`cargo xtask chaos`), `demo` shows them
//! (`cargo xtask demo replicas`), `figures` measures them (`cargo xtask bench replicas`).
//!
//! Options of `chaos`: `--minutes N` or `--seconds N`, `--seed N`, `--plant-fault` (the check of the registry must fail).

mod balancer;
mod calls;
mod chaos;
mod client;
mod cluster;
mod demo;
mod figures;
mod health;
mod keys;
mod leaks;
mod mcp;
mod mcp_legacy;
mod mcp_modern;
mod nemesis;
mod offers;
mod proxy;
mod questions;
mod registry;
mod report;

use std::process::ExitCode;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<ExitCode, Failure> {
    // Cargo passes `--bench` to every benchmark.
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    // The client requires a provider of TLS, which no request uses. It is an error only if one is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match args.next().as_deref() {
        Some("chaos") => {
            let problems = runtime.block_on(chaos::run(&chaos::Options::parse(args)?))?;
            for problem in &problems {
                println!("FAILED: {problem}");
            }
            println!("{}", if problems.is_empty() { "passed" } else { "failed" });
            Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Some("demo") => runtime.block_on(demo::run()).map(|()| ExitCode::SUCCESS),
        Some("figures") => runtime.block_on(figures::run(args)).map(|()| ExitCode::SUCCESS),
        _ => Err("choose `chaos`, `demo` or `figures`".into()),
    }
}
