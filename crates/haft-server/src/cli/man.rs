//! `haft man`: the manual pages, for packages.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _};

use super::{Cli, EXIT_RUNTIME, Failure};

#[derive(Debug, Args)]
#[command(after_help = "\
Example: haft man ~/.local/share/man/man1, then: man haft-serve")]
pub(super) struct ManArgs {
    /// The folder; it is created if it does not exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub(super) fn run(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map_err(|error| {
        let problem = format!("the pages cannot be written to `{}`: {error}", folder.display());
        Failure::new(EXIT_RUNTIME, problem, "name a folder that you may write to")
    })?;
    Ok(ExitCode::SUCCESS)
}
