//! `code_execution`: runs Python and shell code of a model, each time in a new folder.

mod capture;
mod folder;
mod open_folder;
mod outcome;
mod removal;
mod request;
mod run;
mod sandbox;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::folder::WorkFolder;
use self::request::Request;
use self::run::Ended;
use super::example_lines;
use crate::backend::process::ProcessScope;
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

/// The isolation of the code from the rest of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// None: the code has the rights of Haft.
    Nothing,
    /// `bwrap`; the code does not run without it.
    Bubblewrap {
        /// True if the code may use the network.
        network: bool,
    },
}

/// The settings of the tool.
#[derive(Debug, Clone)]
pub struct CodeSettings {
    /// The interpreter, usually `python3`.
    pub python: String,
    /// The isolation of the code.
    pub confinement: Confinement,
}

/// `code_execution`.
pub struct CodeTool {
    settings: CodeSettings,
    scope: ProcessScope,
}

impl CodeTool {
    /// Creates a tool that starts one process per call, in `scope`. Nothing starts before.
    pub fn new(settings: &CodeSettings, scope: ProcessScope) -> Self {
        let CodeSettings { python, confinement } = settings;
        let python = absolute_program(python);
        Self { settings: CodeSettings { python, confinement: *confinement }, scope }
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

/// The tool's definition.
pub(super) fn definition(confinement: Confinement) -> ToolDefinition {
    let confined = match confinement {
        Confinement::Nothing => "",
        Confinement::Bubblewrap { network: true } => {
            " The code runs in a sandbox: it can write only into its working directory and /tmp."
        }
        Confinement::Bubblewrap { network: false } => {
            " The code runs in a sandbox: it has no network and can write only into its working directory \
             and /tmp."
        }
    };
    ToolDefinition {
        name: NAME.into(),
        title: Some("Run code".into()),
        description: format!("{DESCRIPTION}{confined}"),
        input_schema: request::schema(),
        output_schema: Some(output_schema()),
        annotations: Some(annotations(confinement)),
        icons: None,
    }
}

/// Sandboxed code changes nothing permanent, and reaches other systems only through the network.
fn annotations(confinement: Confinement) -> ToolAnnotations {
    let (destructive, open_world) = match confinement {
        Confinement::Nothing => (true, true),
        Confinement::Bubblewrap { network } => (false, network),
    };
    ToolAnnotations::new()
        .read_only(false)
        .destructive(destructive)
        .idempotent(false)
        .open_world(open_world)
}

impl Tool for CodeTool {
    fn definition(&self) -> ToolDefinition {
        definition(self.settings.confinement)
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
