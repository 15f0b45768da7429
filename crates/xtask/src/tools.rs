//! Programs that the steps need: used if they are installed, otherwise installed into `target/tools`.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::run::{cargo, root, step};

/// A cargo subcommand that comes from a crate.
pub(crate) struct Tool {
    /// The binary's and the crate's name.
    pub(crate) name: &'static str,
    /// The version that is installed where there is none.
    pub(crate) version: &'static str,
}

/// Runs the tests.
pub(crate) const NEXTEST: Tool = Tool { name: "cargo-nextest", version: "0.9.143" };
/// Checks licences, sources and forbidden crates.
pub(crate) const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };
/// Measures line coverage; its ptrace engine needs nothing of the toolchain.
pub(crate) const TARPAULIN: Tool = Tool { name: "cargo-tarpaulin", version: "0.37.5" };

impl Tool {
    /// The program, installed if need be.
    pub(crate) fn command(&self) -> Result<Command> {
        if runs(self.name) {
            return Ok(Command::new(self.name));
        }
        let folder = root().join("target/tools");
        let binary: PathBuf = folder.join("bin").join(self.name);
        if !runs(&binary) {
            let args =
                ["install", self.name, "--version", self.version, "--locked", "--debug", "--root"];
            step(cargo(&args).arg(&folder))?;
        }
        Ok(Command::new(binary))
    }
}

/// A program of the system that tests run, with the Debian package that has it.
pub(crate) fn require(program: &str, package: &str) -> Result<()> {
    require_answer(program, &["--version"], package)
}

/// As [`require`], for a part of a program: its presence shows in how these arguments end.
pub(crate) fn require_answer(program: &str, probe: &[&str], package: &str) -> Result<()> {
    if succeeds(program, probe) {
        return Ok(());
    }
    // Packages are installed if that is permitted; otherwise the error names the missing program.
    let installed = install(package);
    if installed.is_err() || !succeeds(program, probe) {
        let probe = probe.join(" ");
        bail!("the tests run `{program}`, and `{program} {probe}` failed: install {package}");
    }
    Ok(())
}

/// As [`require`], for a program that has no way to be asked for without failing.
pub(crate) fn require_program(program: &str, package: &str) -> Result<()> {
    let is_there = || Command::new(program).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if is_there().is_ok() {
        return Ok(());
    }
    let installed = install(package);
    if installed.is_err() || is_there().is_err() {
        bail!("`{program}` is needed and not there: install {package}");
    }
    Ok(())
}

/// Installs a package; a fresh machine may not know yet which there are.
fn install(package: &str) -> Result<()> {
    let install = || step(Command::new("apt-get").args(["install", "--yes", package]));
    install().or_else(|_| {
        step(Command::new("apt-get").arg("update"))?;
        install()
    })
}

fn runs(program: impl AsRef<OsStr>) -> bool {
    succeeds(program, &["--version"])
}

fn succeeds(program: impl AsRef<OsStr>, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
