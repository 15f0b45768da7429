//! The load test in its short form. `cargo xtask faults` runs it at full length and on a release build.

use std::path::Path;
use std::time::Duration;

use testkit::hostile::{Limits, Options, run};

const MEMORY_MAX: u64 = 400 << 20;

/// Hostile clients and servers of every kind neither fail an honest call nor lose its log entry, and memory
/// stays within its limit.
#[test]
fn honest_calls_succeed_beside_every_hostile_kind() {
    let options = Options {
        duration: Duration::from_secs(10),
        clients: 10,
        calls_per_second: 20,
        ..Options::default()
    };
    let report = run(Path::new(env!("CARGO_BIN_EXE_haft")), &options);
    println!("{report}");
    let problems = report.problems(&Limits { p99: None, memory: MEMORY_MAX });
    assert!(problems.is_empty(), "{problems:#?}\n{report}");
}
