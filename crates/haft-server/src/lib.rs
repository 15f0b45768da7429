//! The command `haft` and the frame of its HTTP service, for programs that embed or measure it.

pub mod api;
pub mod audit;
mod cli;
mod console;
mod explanation;
pub mod gateway;
pub mod keys;
mod logging;
mod progress;
mod quota;
mod runs;
pub mod serve;
mod shared;
mod shared_approvals;
mod shared_conversations;
mod shared_log;
mod sign_ins;
mod stderr;
pub mod telemetry;
mod terminal;
mod timestamp;

use std::process::ExitCode;

/// The command line: reads the process's arguments and gives its exit code.
pub fn main() -> ExitCode {
    cli::main()
}
