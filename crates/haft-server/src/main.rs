//! The `haft` command.

mod cli;
mod console;
mod json_text;
mod logging;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
