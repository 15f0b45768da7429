//! Isolation of a program from the rest of the machine: by `bwrap`, by Landlock, or by resource limits alone.
//!
//! `confine` turns a program into the command that runs it inside its sandbox; `grants` decides which files it
//! may use. Landlock and resource limits are applied by a process that restricts itself and then becomes
//! the program: [`launcher`]. If a sandbox cannot be made, nothing runs.

mod bubblewrap;
mod confine;
mod environment;
mod failure;
mod grants;
mod kernel;
pub mod launcher;
mod limits;
mod own_program;
mod spec;
pub mod support;
mod system;

pub(super) use confine::{Confined, Program, confine};
pub(super) use environment::environment;
pub(super) use failure::{SandboxError, not_made};

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::config::sandbox::SandboxConfig;
use crate::config::{Config, Secret};

/// Facts that all sandboxes of a configuration share.
#[derive(Debug, Clone, Default)]
pub struct SandboxContext(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The program that runs [`launcher::main`].
    launcher: Option<PathBuf>,
    /// The files of Haft, which no program reads because a folder around them is granted.
    own_files: Vec<PathBuf>,
}

/// The sandbox of a local tool.
#[derive(Debug, Clone)]
pub struct ToolSandbox {
    /// Its rules.
    pub config: SandboxConfig,
    /// The context of the configuration.
    pub context: SandboxContext,
}

impl ToolSandbox {
    /// The sandbox of a tool, if it has one.
    pub fn new(config: &SandboxConfig, context: &SandboxContext) -> Option<Self> {
        let is_some = !config.is_none();
        is_some.then(|| Self { config: config.clone(), context: context.clone() })
    }

    /// The command that runs a tool in Haft's working directory.
    pub(super) fn confine(
        &self,
        argv: Vec<OsString>,
        env: &[(String, Option<Secret>)],
        read: Vec<PathBuf>,
    ) -> Result<Confined, SandboxError> {
        let program = Program {
            argv,
            env: environment(self.config.kind, env),
            folder: None,
            starts: Vec::new(),
            read,
            write: Vec::new(),
            setting: "sandbox",
        };
        confine(&self.config, &self.context, program)
    }
}

impl SandboxContext {
    /// The context of a configuration.
    pub fn new(config: &Config, launcher: Option<PathBuf>) -> Self {
        Self(Arc::new(Shared { launcher, own_files: config.own_files() }))
    }
}
