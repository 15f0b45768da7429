//! `code_execution`: runs Python and shell code of a model, each time in a new folder.

mod capture;
mod outcome;
mod request;
mod run;
mod sandbox;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::request::Request;
use self::run::Ended;
use super::example_lines;
use crate::backend::process::ProcessScope;
use crate::backend::sandbox::ToolSandbox;
use crate::backend::work_folder::WorkFolder;
use crate::config::choices::Sandbox;
use crate::config::sandbox::{SandboxConfig, SandboxNetwork};
use crate::content::ToolOutput;
use crate::error::ToolFailure;
use crate::policy::Admitted;
use crate::tool::{BoxFuture, Tool, ToolDefinition};
use haft_config::tool_metadata::ToolAnnotations;

/// The tool's name.
pub const NAME: &str = "code_execution";

const DESCRIPTION: &str = "Runs Python or shell code and returns what it prints: stdout, stderr and the exit code. \
    Use it for calculations, statistics, sequences, dates, sorting and counting, for processing data (CSV, JSON, logs, \
    text) that you pass in `files`, and whenever a computed answer is safer than a guessed one. Print what you want to \
    see: the value of the last expression is not returned. Every call starts in a new, empty working directory that is \
    removed afterwards. Not for looking things up on the web, and not for what you can answer without computing.";

/// Example requests.
pub(super) const EXAMPLES: &str = include_str!("../../../../assets/examples/code_execution.txt");

/// The settings of the tool.
#[derive(Debug, Clone)]
pub struct CodeSettings {
    /// The interpreter, usually `python3`.
    pub python: String,
    /// The sandbox of the code; `None` runs it with the rights of Haft.
    pub sandbox: Option<ToolSandbox>,
}

/// `code_execution`.
pub struct CodeTool {
    settings: CodeSettings,
    scope: ProcessScope,
}

impl CodeTool {
    /// Creates a tool that starts one process per call, in `scope`. Nothing starts before.
    pub fn new(settings: &CodeSettings, scope: ProcessScope) -> Self {
        let CodeSettings { python, sandbox } = settings;
        let python = absolute_program(python);
        Self { settings: CodeSettings { python, sandbox: sandbox.clone() }, scope }
    }

    /// Runs the code once. Dropping the future kills all its processes, and then removes its
    /// folder.
    async fn run(&self, arguments: &str) -> Result<ToolOutput, ToolFailure> {
        let request = Request::read(arguments)?;
        let limit = request.timeout;
        let (folder, request) = prepare(request).await?;
        let run = run::run(&self.settings, self.scope, &folder, request.language, limit).await;
        let made = folder.made_besides(&request.names());
        // Before the answer, so that the caller finds no folder left.
        folder.remove().await;
        let run = run?;
        match run.ended {
            Ended::By(exit) if exit.code() == Some(0) => outcome::answer(&run, made),
            Ended::By(exit) => Err(outcome::failed(&run, exit)),
            Ended::TooLate(limit) => Err(outcome::too_late(&run, limit)),
        }
    }
}

/// Writes the code and its files; a disk may be slow.
async fn prepare(request: Request) -> Result<(WorkFolder, Request), ToolFailure> {
    let prepared = tokio::task::spawn_blocking(move || {
        let folder = WorkFolder::create().map_err(|error| outcome::no_folder(&error))?;
        request.write_into(&folder)?;
        Ok((folder, request))
    });
    prepared.await.unwrap_or_else(|error| Err(ToolFailure::execution(error.to_string())))
}

/// Makes a relative path absolute, because the code runs in another directory.
fn absolute_program(program: &str) -> String {
    let path = Path::new(program);
    if path.is_absolute() || path.components().count() < 2 {
        return program.to_owned();
    }
    let absolute: PathBuf = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.to_string_lossy().into_owned()
}

/// The isolation of the code, as far as its callers need to know.
#[derive(Debug, Clone, Copy)]
enum Isolation {
    None,
    /// Its own `/tmp`.
    Network,
    Offline,
    /// A temporary folder among others.
    OwnFolders,
    OwnFoldersOffline,
}

fn isolation(sandbox: Option<&SandboxConfig>) -> Isolation {
    let Some(SandboxConfig { kind, network, .. }) = sandbox else { return Isolation::None };
    match (kind, network) {
        (Sandbox::None, _) => Isolation::None,
        (Sandbox::Bubblewrap, SandboxNetwork::All) => Isolation::Network,
        (Sandbox::Bubblewrap, SandboxNetwork::None | SandboxNetwork::Ports(_)) => {
            Isolation::Offline
        }
        (Sandbox::Landlock, SandboxNetwork::None) => Isolation::OwnFoldersOffline,
        (Sandbox::Landlock, SandboxNetwork::All | SandboxNetwork::Ports(_)) => {
            Isolation::OwnFolders
        }
    }
}

/// The tool's definition.
pub(super) fn definition(sandbox: Option<&SandboxConfig>) -> ToolDefinition {
    let confined = match isolation(sandbox) {
        Isolation::None => "",
        Isolation::Network => {
            " The code runs in a sandbox: it can write only into its working directory and /tmp."
        }
        Isolation::Offline => {
            " The code runs in a sandbox: it has no network and can write only into its working directory \
             and /tmp."
        }
        Isolation::OwnFolders => {
            " The code runs in a sandbox: it can write only into its working directory and $TMPDIR."
        }
        Isolation::OwnFoldersOffline => {
            " The code runs in a sandbox: it has no TCP and can write only into its working directory \
             and $TMPDIR."
        }
    };
    ToolDefinition {
        name: NAME.into(),
        title: Some("Run code".into()),
        description: format!("{DESCRIPTION}{confined}"),
        input_schema: request::schema(),
        output_schema: Some(output_schema()),
        annotations: Some(annotations(isolation(sandbox))),
        icons: None,
    }
}

/// Sandboxed code changes nothing permanent, and reaches other systems only through the network.
fn annotations(isolation: Isolation) -> ToolAnnotations {
    let (destructive, open_world) = match isolation {
        Isolation::None => (true, true),
        // Landlock restricts TCP and not UDP.
        Isolation::Network | Isolation::OwnFolders | Isolation::OwnFoldersOffline => (false, true),
        Isolation::Offline => (false, false),
    };
    ToolAnnotations::new()
        .read_only(false)
        .destructive(destructive)
        .idempotent(false)
        .open_world(open_world)
}

impl Tool for CodeTool {
    fn definition(&self) -> ToolDefinition {
        definition(self.settings.sandbox.as_ref().map(|sandbox| &sandbox.config))
    }

    fn examples(&self) -> Vec<String> {
        example_lines(EXAMPLES)
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(self.run(call.arguments().raw().get()))
    }
}

fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "exit_code": {"type": "integer"},
            "stdout": {"type": "string"},
            "stderr": {"type": "string"},
            "duration_ms": {"type": "integer"},
            "files": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Names of the files that the code made. They are removed with its directory.",
            },
        },
        "required": ["exit_code", "stdout", "stderr", "duration_ms"],
    })
}
