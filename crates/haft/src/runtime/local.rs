//! Local tools of the configuration as [`Tool`]s.

use std::sync::Arc;

use crate::backend::command::{CommandSettings, CommandTool};
use crate::backend::sandbox::{SandboxContext, ToolSandbox};
use crate::backend::script::{PythonSettings, PythonTool, WarmWorkers};
use crate::config::Masked;
use crate::config::model::{LocalProgram, LocalTool};
use crate::content::ToolOutput;
use crate::error::ToolFailure;
use crate::policy::Admitted;
use crate::tool::{BoxFuture, Tool, ToolDefinition};

/// A script or command with the configuration it was made from.
pub(super) struct Script {
    definition: Arc<ToolDefinition>,
    runner: Runner,
}

enum Runner {
    Python(PythonTool),
    Command(CommandTool),
}

impl Script {
    /// Starts nothing before the first call.
    pub(super) fn new(
        tool: &LocalTool,
        python: &str,
        instances: u32,
        warm: &Arc<WarmWorkers>,
        context: &SandboxContext,
    ) -> Self {
        let name = tool.definition.name.clone();
        let (tools_dir, background) = (tool.tools_dir.clone(), tool.background.value);
        let exposed =
            |words: &[Masked]| words.iter().map(|word| word.expose().to_owned()).collect();
        let own_python = tool.prepared.python.as_ref().and_then(|path| path.to_str());
        let sandbox = ToolSandbox::new(&tool.sandbox.value, context);
        let runner = match &tool.program {
            LocalProgram::Python { script_path, entrypoint, requirements: _ } => {
                let settings = PythonSettings {
                    name,
                    tools_dir,
                    script_path: script_path.clone(),
                    entrypoint: entrypoint.clone(),
                    python: own_python.unwrap_or(python).to_owned(),
                    args: Vec::new(),
                    instances: instances as usize,
                    background,
                    env: tool.env.clone(),
                    is_by_name: tool.prepared.is_by_name,
                    sandbox,
                };
                Runner::Python(PythonTool::new(settings, warm.clone()))
            }
            LocalProgram::Command { command, script_path, args } => {
                let settings = CommandSettings {
                    name,
                    tools_dir,
                    script_path: script_path.clone(),
                    command: exposed(command),
                    args: exposed(args),
                    background,
                    env: tool.env.clone(),
                    sandbox,
                };
                Runner::Command(CommandTool::new(settings, warm.scope()))
            }
        };
        Self { definition: Arc::clone(&tool.definition), runner }
    }
}

impl Tool for Script {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::clone(&self.definition)
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        let (arguments, context) = (call.arguments().raw(), call.context());
        match &self.runner {
            Runner::Python(python) => Box::pin(python.run(arguments, context)),
            Runner::Command(command) => Box::pin(command.run(arguments, context)),
        }
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        match &self.runner {
            Runner::Python(python) => Box::pin(python.stop()),
            Runner::Command(_) => Box::pin(async {}),
        }
    }
}
