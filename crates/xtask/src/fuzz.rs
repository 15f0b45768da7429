//! Coverage-guided fuzzing on the stable compiler: libFuzzer, with the same instrumentation as `cargo fuzz`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;

use crate::run::{cargo, root, shown_path, step, target};
use crate::tools::require;

/// Run time of each target in `cargo xtask test`.
pub(crate) const SECONDS: u64 = 60;
/// The longest that one input may take.
const INPUT_SECONDS_MAX: &str = "20";
const MEMORY_MB_MAX: &str = "1024";
/// Long enough for nesting and aliases beyond the limits.
const INPUT_BYTES_MAX: &str = "4096";
/// The lines of a failed run that are printed.
const SHOWN_LINES: usize = 40;

/// Coverage counters, the program counters they belong to, and the operands of comparisons.
const FLAGS: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// `cargo xtask fuzz [--seconds N] [TARGET...]`.
pub(crate) fn run_with(options: &[&str]) -> Result<()> {
    let mut seconds = SECONDS;
    let mut wanted = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--seconds" => {
                let value = options.next().context("`--seconds` needs a number")?;
                seconds = value.parse().with_context(|| format!("`{value}` is not a number"))?;
            }
            name => wanted.push(name),
        }
    }
    run(seconds, &wanted)
}

/// Runs targets for this long each, as many at once as there are cores. No names: all targets.
pub(crate) fn run(seconds: u64, wanted: &[&str]) -> Result<()> {
    // libFuzzer is written in C++.
    require("c++", "g++")?;
    let targets = targets()?;
    if let Some(unknown) = wanted.iter().find(|name| !targets.iter().any(|it| it == *name)) {
        bail!("there is no fuzz target `{unknown}`: choose among {}", targets.join(", "));
    }
    let binaries = build()?;
    let is_wanted = |name: &String| wanted.is_empty() || wanted.contains(&name.as_str());
    let targets: Vec<String> = targets.into_iter().filter(is_wanted).collect();
    let at_once = thread::available_parallelism().map_or(1, usize::from).min(targets.len());
    eprintln!("\n==> fuzz {} for {seconds} s each, {at_once} at once", targets.join(", "));
    let queue = Mutex::new(targets.into_iter());
    let next = || queue.lock().next();
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(name) = next() {
                    let result = fuzz(&binaries, &name, seconds);
                    if let Err(error) = result {
                        failures.lock().push(format!("{error:#}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner();
    if failures.is_empty() {
        return Ok(());
    }
    bail!("{}", failures.join("\n\n"))
}

/// The names of the files in `fuzz/fuzz_targets`.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Builds all targets and returns the folder of the programs.
fn build() -> Result<PathBuf> {
    let host = host()?;
    let folder = target().join("fuzz");
    // With a target named, the flags apply to what is fuzzed and not to build scripts. Not `--locked`: a new
    // dependency of a crate that is fuzzed must not fail the run.
    let mut build = cargo(&["build", "--manifest-path", "fuzz/Cargo.toml", "--target"]);
    build.arg(&host).arg("--target-dir").arg(&folder).env("RUSTFLAGS", FLAGS.join(" "));
    step(&mut build)?;
    Ok(folder.join(host).join("debug"))
}

fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("`rustc -vV` failed")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// Runs one target. New inputs are kept in `target/fuzz` and used again by the next run.
fn fuzz(binaries: &Path, name: &str, seconds: u64) -> Result<()> {
    let folder = target().join("fuzz");
    let (corpus, artifacts) =
        (folder.join("corpus").join(name), folder.join("artifacts").join(name));
    for made in [&corpus, &artifacts, &folder.join("logs")] {
        fs::create_dir_all(made)?;
    }
    let log = folder.join("logs").join(format!("{name}.log"));
    let output = File::create(&log)?;
    let mut command = Command::new(binaries.join(name));
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
    command.arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"));
    command.arg(format!("-max_len={INPUT_BYTES_MAX}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.args(["-print_final_stats=1", "-use_value_profile=1"]);
    command.arg(&corpus).arg(root().join("fuzz/corpus").join(name));
    command.current_dir(root()).stdin(Stdio::null());
    command.stdout(output.try_clone()?).stderr(output);
    let started = Instant::now();
    let status = command.status().with_context(|| format!("the target `{name}` does not start"))?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    eprintln!("    {name}: {}, {:.0} s", summary(&text), started.elapsed().as_secs_f64());
    if status.success() {
        return Ok(());
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut error = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    write!(
        error,
        "\n\nthe fuzz target `{name}` failed ({status}); the whole output is in {}. Repeat it with \
         `{} FILE`, where FILE is the input that the output names, then add that input to \
         fuzz/corpus/{name}",
        shown_path(&log),
        shown_path(&binaries.join(name)),
    )?;
    bail!(error)
}

/// The number of runs, the coverage and the size of the corpus, from libFuzzer's output.
fn summary(output: &str) -> String {
    let executed =
        output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let last = output.lines().rev().find(|line| line.contains(" cov: ")).unwrap_or_default();
    let word = |label: &str| {
        let rest = last.split_once(label).map(|(_, rest)| rest.trim_start());
        rest.and_then(|rest| rest.split(' ').next()).unwrap_or("?")
    };
    format!(
        "{} inputs tried, coverage {}, corpus {}",
        executed.map_or("?", str::trim),
        word(" cov: "),
        word(" corp: ")
    )
}
