//! Running a step: what runs is printed, what fails stops everything.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// Cargo's target directory.
pub(crate) fn target() -> PathBuf {
    // Joining an absolute path replaces the root.
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// A path as people read it: from the workspace's root where it lies inside.
pub(crate) fn shown_path(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Runs a command in the workspace's root.
pub(crate) fn step(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    eprintln!("\n==> {shown}");
    let started = Instant::now();
    let status = command
        .current_dir(root())
        .status()
        .with_context(|| format!("`{shown}` could not be started"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    eprintln!("    {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// `cargo` with arguments, and without the variables that cargo sets for this program: build scripts that depend on
/// them would run again, and everything after them, whenever a command with and one without `xtask` take turns.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args);
    for (name, _) in std::env::vars_os() {
        let is_of_package =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    let words: Vec<String> =
        std::iter::once(program.to_string_lossy().into_owned()).chain(args).collect();
    words.join(" ")
}
