//! Command tools: any executable that reads its arguments from stdin and prints its answer.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{json, value::RawValue};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};
use tokio::time::timeout;

use super::process::{Exit, ProcessScope, ProcessTree, SharedTail, Tail, last_line};
use super::sandbox::{Confined, ToolSandbox, not_made};
use super::{answer, program, script_path};
use crate::config::Secret;
use crate::config::choices::Background;
use crate::content::ToolOutput;
use crate::error::ToolFailure;
use crate::tool::CallContext;

/// The most that is read from a command's standard output.
pub const STDOUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Number of bytes kept of a standard output that exceeds [`STDOUT_BYTES_MAX`].
const STOPPED_BYTES_MAX: usize = 1024 * 1024;
/// Time to read output after the command ended. A process it left behind may hold the pipe open
/// forever.
pub(super) const AFTER_EXIT_WAIT_MAX: Duration = Duration::from_millis(200);
const READ_BYTES: usize = 64 * 1024;

/// The settings of a command tool.
#[derive(Debug, Clone, Default)]
pub struct CommandSettings {
    /// The tool's name, for messages.
    pub name: String,
    /// The directory the script must lie in.
    pub tools_dir: PathBuf,
    /// The script, relative to the tools directory. Without a command it is executed itself.
    pub script_path: Option<String>,
    /// The program, looked up on `PATH`, and its first arguments, such as `["node"]`.
    pub command: Vec<String>,
    /// Arguments after the command and the script.
    pub args: Vec<String>,
    /// The handling of processes that a call leaves running.
    pub background: Background,
    /// Variables that the program gets; `None` removes one.
    pub env: Vec<(String, Option<Secret>)>,
    /// The sandbox of its processes; `None` for none.
    pub sandbox: Option<ToolSandbox>,
}

/// A tool that is a program: command, script and arguments make the argument vector, never a
/// shell line.
pub struct CommandTool {
    settings: CommandSettings,
    scope: ProcessScope,
}

impl CommandTool {
    /// Creates a tool that starts one process per call, in `scope`. Nothing starts before.
    pub fn new(settings: CommandSettings, scope: ProcessScope) -> Self {
        Self { settings, scope }
    }

    /// Runs the command once. Dropping the future kills it with everything it started.
    pub async fn run(
        &self,
        arguments: &RawValue,
        _context: &CallContext,
    ) -> Result<ToolOutput, ToolFailure> {
        let (program, args) = self.argv()?;
        let Confined { mut command, temp } = self.command(&program, args)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut tree = ProcessTree::spawn(&mut command, self.scope)
            .map_err(|error| program::failed_to_start(&program, "command", &error))?
            .with_folder(temp);
        let mut stdout = Vec::new();
        let stderr = SharedTail::default();
        let ended = exchange(&mut tree, arguments.get(), &mut stdout, &stderr).await;
        // Otherwise dropping `tree` ends the remaining processes.
        if self.settings.background == Background::Allow && matches!(ended, Ok(Ended::By(_))) {
            tree.release();
        }
        match ended {
            Ok(Ended::By(Exit::Code(0))) => Ok(answer::from_stdout(&stdout)),
            Ok(Ended::By(exit)) => Err(self.failed(exit, &stdout, &stderr.text())),
            Ok(Ended::TooMuchOutput) => Ok(cut(&stdout)),
            Err(error) => Err(ToolFailure::execution(format!(
                "`{}` was started and lost: {error}",
                self.settings.name
            ))),
        }
    }

    /// The command that runs the program, inside its sandbox if it has one.
    fn command(&self, program: &OsStr, args: Vec<OsString>) -> Result<Confined, ToolFailure> {
        let CommandSettings { name, tools_dir, env, sandbox, .. } = &self.settings;
        let Some(sandbox) = sandbox else {
            let mut command = Command::new(program);
            for (name, value) in env {
                match value {
                    Some(value) => command.env(name, value.expose()),
                    None => command.env_remove(name),
                };
            }
            command.args(args);
            return Ok(Confined { command, temp: None });
        };
        let words = [program.to_owned()].into_iter().chain(args).collect();
        let confined = sandbox.confine(words, env, vec![tools_dir.clone()]);
        confined.map_err(|error| error.into_failure(&format!("`{name}`"), program, "command"))
    }

    fn argv(&self) -> Result<(OsString, Vec<OsString>), ToolFailure> {
        let CommandSettings { name, tools_dir, script_path, command, args, .. } = &self.settings;
        let script = match script_path {
            Some(path) => Some(script_path::resolve(tools_dir, path)?.into_os_string()),
            None => None,
        };
        let words = command.iter().map(OsString::from).chain(script);
        let mut argv = words.chain(args.iter().map(OsString::from));
        match argv.next() {
            Some(program) if !command.is_empty() || script_path.is_some() => {
                Ok((program, argv.collect()))
            }
            _ => Err(ToolFailure::Execution {
                message: format!("`{name}` has neither a command nor a script"),
                remedy: Some("set `script_path` or `command`".into()),
                details: serde_json::Value::Null,
            }),
        }
    }

    fn failed(&self, exit: Exit, stdout: &[u8], stderr: &str) -> ToolFailure {
        let mut tail = Tail::default();
        tail.push(stdout);
        let stdout = tail.text();
        let name = &self.settings.name;
        let confined = self.settings.sandbox.as_ref();
        if let Some(failure) = confined.and_then(|_| not_made(&format!("`{name}`"), stderr)) {
            return failure;
        }
        ToolFailure::Execution {
            message: match last_line(stderr).or_else(|| last_line(&stdout)) {
                Some(line) => format!("`{name}` ended with {exit}: {line}"),
                None => format!("`{name}` ended with {exit}"),
            },
            remedy: Some("stderr and stdout in the details say more".into()),
            details: json!({
                "command": self.settings.command,
                "script_path": self.settings.script_path,
                "exit_code": exit.code(),
                "signal": exit.signal(),
                "stderr": stderr,
                "stdout": stdout,
            }),
        }
    }
}

enum Ended {
    By(Exit),
    TooMuchOutput,
}

/// Writes, reads both outputs and waits, all at the same time: with large arguments, doing one
/// after the other leaves both sides waiting on a full pipe.
async fn exchange(
    tree: &mut ProcessTree,
    arguments: &str,
    stdout: &mut Vec<u8>,
    stderr: &SharedTail,
) -> std::io::Result<Ended> {
    let (Some(stdin), Some(out), Some(err)) =
        (tree.take_stdin(), tree.take_stdout(), tree.take_stderr())
    else {
        return Err(std::io::Error::other("it has no pipes"));
    };
    let pipes = async {
        let drain = async {
            stderr.drain(err).await;
            Ok(())
        };
        tokio::try_join!(feed(stdin, arguments), collect(out, stdout), drain)
    };
    tokio::pin!(pipes);
    let too_much = tokio::select! {
        done = &mut pipes => done,
        exit = tree.wait() => {
            let exit = exit?;
            match timeout(AFTER_EXIT_WAIT_MAX, &mut pipes).await {
                Ok(Err(too_much)) => Err(too_much),
                Ok(Ok(_)) | Err(_) => return Ok(Ended::By(exit)),
            }
        }
    };
    match too_much {
        Ok(_) => tree.wait().await.map(Ended::By),
        Err(TooMuchOutput) => Ok(Ended::TooMuchOutput),
    }
}

struct TooMuchOutput;

/// A command need not read its arguments, so a pipe it closed early is not an error.
async fn feed(mut stdin: ChildStdin, arguments: &str) -> Result<(), TooMuchOutput> {
    let _ = stdin.write_all(arguments.as_bytes()).await;
    Ok(())
}

async fn collect(
    mut pipe: impl AsyncRead + Unpin,
    stdout: &mut Vec<u8>,
) -> Result<(), TooMuchOutput> {
    loop {
        stdout.reserve(READ_BYTES);
        match pipe.read_buf(stdout).await {
            Ok(1..) if stdout.len() > STDOUT_BYTES_MAX => return Err(TooMuchOutput),
            Ok(1..) => {}
            Ok(0) | Err(_) => return Ok(()),
        }
    }
}

/// A stopped answer is incomplete, so its beginning is enough. As JSON, in the log and for the
/// caller, one byte may take six.
fn cut(stdout: &[u8]) -> ToolOutput {
    let kept = String::from_utf8_lossy(&stdout[..STOPPED_BYTES_MAX.min(stdout.len())]);
    let kept = kept.trim_end_matches('\u{fffd}');
    ToolOutput::from_text(format!(
        "{kept}\n[cut: the command printed more than {STDOUT_BYTES_MAX} bytes and was stopped; the first \
         {STOPPED_BYTES_MAX} are kept]"
    ))
}
