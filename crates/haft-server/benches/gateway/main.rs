//! The cost of a gateway: Haft, a bare pass-through and published gateways in front of the same server, in one run.
//! `cargo xtask bench gateway`.
//!
//! `--quick` is a short run. `--also PATH` measures another build of `haft` beside this one. Words as
//! arguments choose the contenders whose names contain one of them.

mod backend;
mod contenders;
mod http;
mod load;
mod messages;
mod peers;
mod pipe;
mod process;
mod raw_proxy;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use load::{Effort, Figures};
use report::Row;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // The servers under test are this program again, each in a process of its own.
    match role(&args) {
        Some("backend") => return backend::run(),
        Some("raw-proxy") => return raw_proxy::run(value(&args, "--port").ok_or("no port")?),
        Some(other) => return Err(format!("there is no role `{other}`").into()),
        None => {}
    }
    let is_quick = args.iter().any(|arg| arg == "--quick");
    let effort = if is_quick { QUICK } else { FULL };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = runtime.block_on(measure(&args, &effort))?;
    report::print(&rows, &effort);
    Ok(())
}

const FULL: Effort = Effort {
    rounds: 3,
    warm_up: 200,
    one_at_a_time: 1_000,
    flood: Duration::from_secs(3),
    blobs: 20,
    patience: Duration::from_secs(10),
};

const QUICK: Effort = Effort {
    rounds: 1,
    warm_up: 50,
    one_at_a_time: 300,
    flood: Duration::from_secs(1),
    blobs: 5,
    patience: Duration::from_secs(5),
};

/// Every contender in every round, in turns, so that all see the same machine.
async fn measure(args: &[String], effort: &Effort) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()?;
    let also = value(args, "--also").map(PathBuf::from);
    let contenders = contenders::all(folder.path(), also)?;
    let words = words(args);
    let is_chosen = |name: &str| words.is_empty() || words.iter().any(|it| name.contains(*it));
    let mut rows: Vec<Row> = contenders
        .into_iter()
        .filter(|it| is_chosen(&it.name))
        .map(|contender| Row { contender, rounds: Vec::new(), left_out: None })
        .collect();
    for round in 1..=effort.rounds {
        for row in &mut rows {
            if row.left_out.is_some() {
                continue;
            }
            eprintln!("round {round} of {}: {}", effort.rounds, row.contender.name);
            match load::measure(&row.contender, effort).await {
                Ok(figures) => row.rounds.push(figures),
                // A failure of our own contenders fails the benchmark; others are reported.
                Err(error) => {
                    let said = row.contender.last_words();
                    let reason = format!("{error}; it said last: {said}");
                    if row.contender.is_ours() {
                        return Err(format!("{}: {reason}", row.contender.name).into());
                    }
                    eprintln!("left out: {}: {reason}", row.contender.name);
                    row.left_out = Some(reason);
                }
            }
        }
    }
    Ok(rows)
}

fn role(args: &[String]) -> Option<&str> {
    value(args, "--role")
}

fn value<'a>(args: &'a [String], option: &str) -> Option<&'a str> {
    let at = args.iter().position(|arg| arg == option)?;
    args.get(at + 1).map(String::as_str)
}

/// The arguments that are neither options nor their values.
fn words(args: &[String]) -> Vec<&str> {
    let mut words = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--also" {
            args.next();
        } else if !arg.starts_with('-') {
            words.push(arg.as_str());
        }
    }
    words
}

/// The figure in the middle.
fn median(rounds: &[Figures], figure: impl Fn(&Figures) -> f64) -> f64 {
    let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
