//! Python tools: a script with `def run(args)`, executed by a worker that stays warm.

mod failure;
mod fingerprint;
mod frame;
pub(crate) mod requirements;
pub(crate) mod signature;
#[cfg(test)]
mod tests;
mod warm;
mod worker;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use self::frame::{Answer, Kind, NoAnswer};
use self::warm::Owner;
use self::worker::{Reuse, Worker};
use super::sandbox::ToolSandbox;
use super::{answer, program, script_path};
use crate::config::Secret;
use crate::config::choices::Background;
use crate::content::ToolOutput;
use crate::error::ToolFailure;
use crate::tool::CallContext;

pub use self::frame::ANSWER_BYTES_MAX;
pub use self::warm::WarmWorkers;

/// The configuration key of the interpreter.
pub(super) const PYTHON_SETTING: &str = "defaults.python";

/// The settings of a Python tool.
#[derive(Debug, Clone)]
pub struct PythonSettings {
    /// The tool's name, for messages and for the script's context.
    pub name: String,
    /// The directory the script must lie in.
    pub tools_dir: PathBuf,
    /// The script, relative to the tools directory.
    pub script_path: String,
    /// The function to call, usually `run`.
    pub entrypoint: String,
    /// The interpreter, usually `python3`.
    pub python: String,
    /// The script's `sys.argv` after its own path.
    pub args: Vec<String>,
    /// Maximum number of concurrent calls, each in its own worker.
    pub instances: usize,
    /// The handling of processes that a call leaves running.
    pub background: Background,
    /// Variables that the script gets; `None` removes one. Set before the script is loaded.
    pub env: Vec<(String, Option<Secret>)>,
    /// True if each argument is a parameter of the function.
    pub is_by_name: bool,
    /// The sandbox of its workers; `None` for none.
    pub sandbox: Option<ToolSandbox>,
}

/// A Python tool.
pub struct PythonTool {
    settings: PythonSettings,
    slots: Semaphore,
    owner: Owner,
    warm: Arc<WarmWorkers>,
}

impl PythonTool {
    /// Creates a tool that keeps its idle workers in `warm`, which all Python tools share. Nothing
    /// starts before the first call.
    pub fn new(settings: PythonSettings, warm: Arc<WarmWorkers>) -> Self {
        let slots = Semaphore::new(settings.instances.max(1));
        Self { settings, slots, owner: Owner::new(), warm }
    }

    /// Runs the script once. Dropping the future kills the worker with everything it started.
    pub async fn run(
        &self,
        arguments: &RawValue,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let request = frame::request(&self.settings.name, context, arguments)
            .map_err(|error| failure::unsendable(&self.settings.name, &error))?;
        let Ok(_slot) = self.slots.acquire().await else {
            return Err(failure::stopped(&self.settings.name));
        };
        if let Some(mut worker) = self.warm.take(&self.owner) {
            match worker.call(&request).await {
                // It ended while it was idle. The script has not seen the request.
                Err(NoAnswer::Unread) => {}
                answer => return self.conclude(answer, worker, context).await,
            }
        }
        let mut worker = self.fresh_worker()?;
        let answer = worker.call(&request).await;
        self.conclude(answer, worker, context).await
    }

    /// Stops the idle workers and waits for them. A call in flight continues, and its worker ends
    /// with it.
    pub async fn stop(&self) {
        self.warm.stop_all_of(&self.owner).await;
    }

    /// A worker that has loaded nothing yet. Only here the script's path is resolved: a warm worker loads
    /// nothing more from it.
    fn fresh_worker(&self) -> Result<Worker, ToolFailure> {
        let PythonSettings { python, tools_dir, script_path, .. } = &self.settings;
        let script = script_path::resolve(tools_dir, script_path)?;
        let root = tools_dir.canonicalize().unwrap_or_else(|_| tools_dir.clone());
        let fresh = match &self.settings.sandbox {
            Some(sandbox) => self.confined_worker(sandbox, &root)?,
            None => match self.warm.take_spare(python) {
                Some(spare) => Ok(spare),
                None => self.warm.start(python),
            },
        };
        fresh
            .and_then(|worker| worker.assign(&self.settings, &script, &root))
            .map_err(|error| program::failed_to_start(python.as_ref(), PYTHON_SETTING, &error))
    }

    fn limits_cpu(&self) -> bool {
        self.settings.sandbox.as_ref().is_some_and(|sandbox| sandbox.config.limits.cpu.is_some())
    }

    /// A worker inside the sandbox. A spare one is not in it.
    fn confined_worker(
        &self,
        sandbox: &ToolSandbox,
        tools_dir: &Path,
    ) -> Result<io::Result<Worker>, ToolFailure> {
        let PythonSettings { name, python, env, .. } = &self.settings;
        let read = vec![tools_dir.to_owned()];
        let confined = sandbox.confine(worker::argv(python), env, read).map_err(|error| {
            error.into_failure(&format!("`{name}`"), python.as_ref(), PYTHON_SETTING)
        })?;
        Ok(self.warm.start_confined(confined))
    }

    /// Reads the answer and keeps the worker, unless it failed to load the script.
    async fn conclude(
        &self,
        answer: Result<Answer, NoAnswer>,
        mut worker: Worker,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let name = &self.settings.name;
        let script = worker.script();
        let answer = match answer {
            Ok(answer) => answer,
            Err(problem) => {
                let script = script.to_owned();
                return Err(failure::no_answer(&self.settings, &script, problem, worker).await);
            }
        };
        context.printed.set(answer.printed);
        let outcome = match answer.kind {
            Kind::Result => match RawValue::from_string(answer.body) {
                Ok(data) => Ok(answer::from_raw(data)),
                Err(error) => Err(failure::unreadable(name, &error.to_string())),
            },
            Kind::Raised => Err(failure::raised(name, script, &answer.body, &worker.stderr())),
            Kind::NotJson => Err(failure::not_json(name, script, &answer.body)),
            Kind::NotLoaded => {
                return Err(failure::not_loaded(script, &answer.body, &worker.stderr()));
            }
        };
        match worker.end_leftovers(name).await {
            // Processor time counts for the whole life of a process, and the limit is meant for a call.
            Reuse::Yes if self.limits_cpu() => self.warm.retire(worker),
            Reuse::Yes => self.warm.put(&self.owner, worker),
            Reuse::No => self.warm.retire(worker),
        }
        outcome
    }
}

impl Drop for PythonTool {
    fn drop(&mut self) {
        self.warm.drop_all_of(&self.owner);
    }
}
