//! The `haft` command.

mod cli;
mod console;
mod logging;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
