//! The input schema of a Python tool, read from the signature and the docstring of its function. The script
//! is parsed by Python and not run.

use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::backend::process::{ProcessScope, ProcessTree};
use crate::backend::script_path;
use haft_config::config::model::LocalTool;

const READER: &str = include_str!("signature.py");
/// Time limit for Python to start and parse one script.
const READ_WAIT_MAX: Duration = Duration::from_secs(20);
/// Maximum size of a schema.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// The signature and the docstring of a function.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Signature {
    pub(crate) input_schema: Value,
    pub(crate) description: String,
    /// True if each argument is a parameter of the function.
    #[serde(rename = "by_name")]
    pub(crate) is_by_name: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Problem { problem: String },
    Signature(Signature),
}

/// Reads the signature of a tool's function with this Python. The error is one sentence.
pub(crate) async fn read(
    tool: &LocalTool,
    script_path: &str,
    entrypoint: &str,
    python: &str,
    scope: ProcessScope,
) -> Result<Signature, String> {
    let script = script_path::resolve(&tool.tools_dir, script_path).map_err(|it| it.to_string())?;
    let mut command = Command::new(python);
    // Isolated: neither the folder nor the user's packages take part.
    command.args(["-I", "-c", READER]).arg(&script).arg(entrypoint);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let unusable = |why: &dyn std::fmt::Display| {
        format!("its signature cannot be read with `{python}`: {why}")
    };
    let mut tree = ProcessTree::spawn(&mut command, scope).map_err(|error| unusable(&error))?;
    let Some(output) = tree.take_stdout() else { return Err(unusable(&"it has no output")) };
    let mut text = Vec::new();
    let mut output = output.take(ANSWER_BYTES_MAX);
    match timeout(READ_WAIT_MAX, output.read_to_end(&mut text)).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(unusable(&error)),
        Err(_) => return Err(unusable(&"it took too long")),
    }
    match serde_json::from_slice(&text) {
        Ok(Answer::Signature(signature)) => Ok(signature),
        Ok(Answer::Problem { problem }) => {
            Err(format!("the signature in `{script_path}` is not usable: {problem}"))
        }
        Err(_) => Err(unusable(&"it gave no answer")),
    }
}
