//! Shared parts of the tests.

// A test that cannot be set up has failed, so everything here panics.
#![allow(clippy::missing_panics_doc)]

mod balancer;
pub mod canary;
pub mod embeddings;
pub mod fixture;
mod flood;
pub mod guarded;
pub mod hostile;
pub mod linear;
mod log_capture;
pub mod model;
mod ordinary;
pub mod peers;
pub mod postgres;
mod program;
mod random;
pub mod search;
mod tcp_proxy;
pub mod times;
mod workspace;

pub use balancer::Balancer;
pub use flood::Flood;
pub use log_capture::LogCapture;
pub use model::{ModelServer, Step};
pub use ordinary::ordinary_tool;
pub use program::{Finished, Program, Running, TRUSTED, WITHOUT_BUILTINS, WITHOUT_STATUS};
pub use random::Random;
pub use tcp_proxy::{ProxyMode, TcpProxy};
pub use workspace::Workspace;

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The longest a test waits for something that must happen.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Interval between two checks of a condition.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until `probe` finds something. Panics with `what` when the deadline passes.
pub fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "never happened: {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Returns true if a process with this id is running; one that ended and waits to be reaped is not.
pub fn is_running(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The state follows the name, which stands in parentheses and may itself hold some.
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    !state.starts_with(['Z', 'X'])
}

/// A program of this package, beside the folder of the test that runs.
fn built(program: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let found = test.ancestors().map(|folder| folder.join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!(
            "there is no `{program}` near {}: run `cargo build -p testkit`, or the tests with \
             `--workspace`",
            test.display()
        )
    })
}
