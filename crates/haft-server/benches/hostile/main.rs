//! Hostile clients and servers beside honest calls. `cargo xtask faults load`.
//!
//! `--seconds N` or `--minutes N`, `--seed N`, `--clients N`, `--rate N` (honest calls per second), `--only KIND,KIND`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use testkit::hostile::{Limits, Options, run};

type Failure = Box<dyn std::error::Error>;

const LIMITS: Limits = Limits { p99: Some(Duration::from_millis(250)), memory: 400 << 20 };

fn main() -> Result<ExitCode, Failure> {
    let options = options(std::env::args().skip(1))?;
    let report = run(Path::new(env!("CARGO_BIN_EXE_haft")), &options);
    println!("\n{report}");
    let problems = report.problems(&LIMITS);
    for problem in &problems {
        println!("FAILED: {problem}");
    }
    if problems.is_empty() {
        println!("passed");
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        // Cargo passes it to every benchmark.
        if arg == "--bench" {
            continue;
        }
        let value = args.next().ok_or_else(|| format!("`{arg}` needs a value"))?;
        match arg.as_str() {
            "--seconds" => options.duration = Duration::from_secs(value.parse()?),
            "--minutes" => options.duration = Duration::from_mins(value.parse()?),
            "--seed" => options.seed = value.parse()?,
            "--clients" => options.clients = value.parse()?,
            "--rate" => options.calls_per_second = value.parse()?,
            "--only" => options.only = value.split(',').map(str::to_owned).collect(),
            _ => return Err(format!("there is no option `{arg}`").into()),
        }
    }
    let kinds = Options::kinds();
    if let Some(unknown) = options.only.iter().find(|kind| !kinds.contains(&kind.as_str())) {
        return Err(
            format!("there is no kind `{unknown}`: choose among {}", kinds.join(", ")).into()
        );
    }
    Ok(options)
}
