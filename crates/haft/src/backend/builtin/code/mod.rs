//! `code_execution`: Python and shell code that a model wrote, each time in a folder of its own.

mod capture;
mod folder;
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
use crate::backend::process::Household;
use crate::content::ToolOutput;
use crate::error::ToolFailure;
use crate::policy::Admitted;
use crate::tool::{BoxFuture, Tool, ToolDefinition};
use crate::tool_metadata::ToolAnnotations;

pub use self::capture::OUTPUT_BYTES_MAX;
pub use self::request::FILES_MAX;

/// The tool's name.
pub const NAME: &str = "code_execution";

const DESCRIPTION: &str = "Runs Python or shell code and returns what it prints: stdout, stderr and the exit code. \
    Use it for calculations, statistics, sequences, dates, sorting and counting, for processing data (CSV, JSON, logs, \
    text) that you pass in `files`, and whenever a computed answer is safer than a guessed one. Print what you want to \
    see: the value of the last expression is not returned. Every call starts in a new, empty working directory that is \
    removed afterwards. Not for looking things up on the web, and not for what you can answer without computing.";

/// Requests that the tool is meant for.
pub(super) const EXAMPLES: &str = include_str!("../../../../assets/examples/code_execution.txt");

/// What keeps the code from the rest of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// Nothing: it may do what Haft may do.
    Nothing,
    /// `bwrap`, without which it does not run.
    Bubblewrap {
        /// Whether the code may use the network.
        network: bool,
    },
}

/// What the tool is made of.
#[derive(Debug, Clone)]
pub struct CodeSettings {
    /// The interpreter, usually `python3`.
    pub python: String,
    /// What keeps the code from the rest of the machine.
    pub confinement: Confinement,
}

/// `code_execution`.
pub struct CodeTool {
    settings: CodeSettings,
    household: Household,
}

impl CodeTool {
    /// A tool that starts one process per call, in `household`. Nothing is started before.
    pub fn new(settings: &CodeSettings, household: Household) -> Self {
        let CodeSettings { python, confinement } = settings;
        let python = from_anywhere(python);
        Self { settings: CodeSettings { python, confinement: *confinement }, household }
    }

    /// Runs the code once. Dropping the future kills it with everything it started, and then removes
    /// its folder.
    async fn run(&self, arguments: &str) -> Result<ToolOutput, ToolFailure> {
        let request = Request::read(arguments)?;
        let limit = request.timeout;
        let (folder, request) = prepare(request).await?;
        let run = run::run(&self.settings, self.household, &folder, request.language, limit).await;
        let made = folder.made_besides(&request.names());
        // Before the answer, so that whoever has it finds nothing left.
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

/// The code runs in another directory, from which a relative path would lead elsewhere.
fn from_anywhere(program: &str) -> String {
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

/// Code in a sandbox changes nothing that stays, and reaches others only with a network.
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
