//! The `haft` command.

mod cli;
mod console;
mod logging;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
