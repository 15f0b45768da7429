//! Instructions and allocations per call, counted by callgrind. Unlike times they are the same on a busy machine.
//!
//! `cargo xtask bench instructions` measures an optimised build and prints the figures by part. `cargo xtask test`
//! measures the debug build that the tests have made: an optimised build takes several minutes on two cores, and a
//! change that costs 5 % shows in both. Each build has its own budget.

mod backend;
mod budget;
mod client;
mod haft;
mod part;
mod profile;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Result, bail};

use crate::run::{cargo, step, target};
use crate::tools::require;
use budget::Budget;
use client::Client;
use haft::{Haft, Path};
use profile::Profile;

pub(crate) use backend::run as run_backend;

/// The word that makes this program the MCP server behind Haft.
pub(crate) const BACKEND: &str = "instructions-backend";

/// Rounds of calls before counting: the first ones start the server behind and fill caches.
const WARM_ROUNDS: usize = 12;
/// Rounds after counting is on and before its result is used: callgrind translates the code again.
const SETTLE_ROUNDS: usize = 2;
/// Rounds that are counted.
const ROUNDS: usize = 25;
/// Attempts at a path that a busy machine changes.
const ATTEMPTS: usize = 3;
/// The most calls in flight.
const IN_FLIGHT_MAX: usize = 16;

/// The figures of one path, per call.
struct Figures {
    path: Path,
    instructions: f64,
    allocations: f64,
    by_part: BTreeMap<&'static str, f64>,
}

/// Measures an optimised build. `--by-function` adds the functions with the most instructions, `--debug` measures the
/// build of the tests instead.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let (mut by_function, mut budget) = (false, Budget::Optimised);
    for option in options {
        match *option {
            "--by-function" => by_function = true,
            "--debug" => budget = Budget::Debug,
            other => bail!("unknown option {other}: there are --by-function and --debug"),
        }
    }
    let mut build = cargo(&["build", "--package", "haft-server", "--bin", "haft"]);
    match budget {
        Budget::Optimised => step(build.args(["--profile", "instructions"]))?,
        Budget::Debug => step(&mut build)?,
    }
    measure(budget, by_function)
}

/// Measures the build of the tests.
pub(crate) fn check_built() -> Result<()> {
    measure(Budget::Debug, false)
}

fn measure(budget: Budget, by_function: bool) -> Result<()> {
    require("valgrind", "valgrind")?;
    let program = target().join(budget.folder()).join("haft");
    let folder = target().join("callgrind");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut all = Vec::new();
    for path in Path::ALL {
        let folder = folder.join(path.name());
        fs::create_dir_all(&folder)?;
        let profile = profile_of(path, &program, &folder, budget.in_flight())?;
        all.push(figures(path, &profile));
        if by_function {
            print_functions(path, &profile);
        }
    }
    print(&all);
    budget.check(&all)
}

fn profile_of(
    path: Path,
    program: &std::path::Path,
    folder: &std::path::Path,
    in_flight: usize,
) -> Result<Profile> {
    for _ in 0..ATTEMPTS {
        let mut haft = Haft::start(path, program, folder)?;
        let mut client = Client::connect(&mut haft, in_flight)?;
        client.rounds(WARM_ROUNDS)?;
        haft.control("--instr=on")?;
        client.rounds(SETTLE_ROUNDS)?;
        haft.control("--zero")?;
        let before = client.streams;
        client.rounds(ROUNDS)?;
        haft.control("--dump")?;
        if client.streams == before {
            return Profile::read(&folder.join("callgrind.out.1"), ROUNDS * in_flight);
        }
    }
    bail!("calls took so long that they became streams: the machine is too busy")
}

fn figures(path: Path, profile: &Profile) -> Figures {
    let mut by_part = BTreeMap::new();
    for (function, count) in &profile.instructions {
        *by_part.entry(part::of(function)).or_default() += profile.per_call(*count);
    }
    Figures {
        path,
        instructions: profile.per_call(profile.instructions.values().sum()),
        allocations: profile.per_call(profile.allocations),
        by_part,
    }
}

fn print(all: &[Figures]) {
    print!("{:<24}", "per call");
    for figures in all {
        print!("{:>16}", figures.path.name());
    }
    println!();
    let mut parts: Vec<&str> =
        all.iter().flat_map(|figures| figures.by_part.keys().copied()).collect();
    parts.sort_unstable();
    parts.dedup();
    let total = |part: &str| -> f64 { all.iter().filter_map(|it| it.by_part.get(part)).sum() };
    parts.sort_by(|one, other| total(other).total_cmp(&total(one)));
    for part in parts {
        print!("{part:<24}");
        for figures in all {
            print!("{:>16.0}", figures.by_part.get(part).copied().unwrap_or_default());
        }
        println!();
    }
    print!("{:<24}", "instructions");
    for figures in all {
        print!("{:>16.0}", figures.instructions);
    }
    print!("\n{:<24}", "allocations");
    for figures in all {
        print!("{:>16.1}", figures.allocations);
    }
    println!();
}

fn print_functions(path: Path, profile: &Profile) {
    const SHOWN: usize = 100;
    const NAME_CHARS_MAX: usize = 160;
    println!("{}", path.name());
    let mut functions: Vec<_> = profile.instructions.iter().collect();
    functions.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (function, count) in functions.into_iter().take(SHOWN) {
        let name: String = function.chars().take(NAME_CHARS_MAX).collect();
        println!("{:>10.0}  {:<16}  {name}", profile.per_call(*count), part::of(function));
    }
    println!();
}
