//! Servers that are processes of ours and speak over their standard streams.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::transport::{Outgoing, Pipes};
use haft_mcp::{BoxFuture, Connector, Failure, MessageRouter, Transport, TransportError};
use tokio::process::{ChildStdin, Command};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use super::connection::Connection;
use super::environment;
use crate::backend::process::{ProcessScope, ProcessTree, SharedTail};
use crate::backend::program::failed_to_start;
use crate::backend::sandbox::{Confined, Program, ToolSandbox, confine};
use crate::config::Masked;
use crate::config::model::StdioEndpoint;
use crate::error::{CallError, ToolFailure};

/// Time for a server to end after each request to do so.
const GRACE: Duration = Duration::from_secs(2);
/// The time that reading the rest of standard error may take.
const DRAIN_WAIT_MAX: Duration = Duration::from_millis(500);
/// Time to wait for the exit code of a server that closed its output.
const EXIT_WAIT_MAX: Duration = Duration::from_millis(500);

/// Size of the pipe. Linux gives 64 KiB, and for a large answer both sides would then wait for each
/// other repeatedly.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 256 * 1024;

/// Enlarges the pipe. A user with very many pipes gets no larger ones, which costs only time.
#[cfg(target_os = "linux")]
fn enlarge(pipe: &impl AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
}

/// Elsewhere the system decides the size of a pipe.
#[cfg(not(target_os = "linux"))]
fn enlarge(_: &impl AsFd) {}

/// The process of one server, if it is a child process. It is replaced with each connection.
#[derive(Default)]
pub(super) struct ServerProcess {
    /// The process with its descendants.
    pub(super) tree: Arc<Mutex<Option<ProcessTree>>>,
    /// The end of its standard error.
    pub(super) tail: SharedTail,
    /// The tasks that read standard error until its last writer closes it.
    drains: TaskTracker,
}

impl ServerProcess {
    /// Waits until standard error is read, for a limited time: a process that escaped may keep the pipe open.
    pub(super) async fn drain(&self) {
        self.drains.close();
        let _ = tokio::time::timeout(DRAIN_WAIT_MAX, self.drains.wait()).await;
    }
}

/// Starts a server. One connector is for one start.
struct ProcessConnector {
    endpoint: StdioEndpoint,
    /// The server's own configuration, as JSON.
    config: Option<String>,
    /// Its sandbox, if it has one.
    sandbox: Option<ToolSandbox>,
    scope: ProcessScope,
    /// Holds what the server writes to its standard error.
    tail: SharedTail,
    /// The tasks that read standard error.
    drains: TaskTracker,
    /// Shared with the connection, so that a failed start can be looked into.
    process: Arc<Mutex<Option<ProcessTree>>>,
}

/// The connector that starts the process of a connection.
pub(super) fn connector(connection: &Connection, endpoint: &StdioEndpoint) -> Box<dyn Connector> {
    let config = connection.config.config.as_ref();
    Box::new(ProcessConnector {
        endpoint: endpoint.clone(),
        config: config.map(|config| config.expose().to_string()),
        sandbox: ToolSandbox::new(&connection.config.sandbox.value, &connection.context.sandbox),
        scope: connection.context.scope,
        tail: connection.process.tail.clone(),
        drains: connection.process.drains.clone(),
        process: Arc::clone(&connection.process.tree),
    })
}

/// Returns the exit status if the process has ended. Kills its remaining processes.
pub(super) async fn bury(process: &Mutex<Option<ProcessTree>>) -> Option<String> {
    let mut tree = process.lock().await.take()?;
    let exit = tokio::time::timeout(EXIT_WAIT_MAX, tree.wait()).await;
    tree.kill().await;
    Some(exit.ok()?.ok()?.to_string())
}

/// Kills whatever is left of the process.
pub(super) async fn end(process: &Mutex<Option<ProcessTree>>) {
    let tree = process.lock().await.take();
    if let Some(tree) = tree {
        tree.kill().await;
    }
}

impl ProcessConnector {
    fn spawn(&self) -> Result<ProcessTree, TransportError> {
        let StdioEndpoint { command, args, cwd, encoding: _, env: _, env_file: _, inherit_env: _ } =
            &self.endpoint;
        if let Some(cwd) = cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            let cwd = cwd.display();
            let message =
                format!("the folder `{cwd}` (`cwd`) does not exist; create it, or correct `cwd`");
            return Err(TransportError::unsent(Failure::NotFound, message));
        }
        let program = OsStr::new(command.expose());
        let spawned = self.command(program, args, cwd.as_deref()).and_then(|confined| {
            let Confined { command: mut child, temp } = confined;
            child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let tree = ProcessTree::spawn(&mut child, self.scope);
            let tree = tree.map_err(|error| failed_to_start(program, "command", &error))?;
            Ok(tree.with_folder(temp))
        });
        spawned.map_err(|failure| {
            let kind = match &failure {
                ToolFailure::Unavailable { .. } => Failure::Unreachable,
                _ => Failure::NotFound,
            };
            let failed = CallError::Failed { tool: String::new(), failure: Box::new(failure) };
            let remedy = failed.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default();
            // The program may come from a variable that holds more than a name.
            let message = format!("{failed}{remedy}").replace(command.expose(), command.shown());
            TransportError::unsent(kind, message)
        })
    }

    /// The command that runs the server, inside its sandbox if it has one.
    fn command(
        &self,
        program: &OsStr,
        args: &[Masked],
        cwd: Option<&Path>,
    ) -> Result<Confined, ToolFailure> {
        let env = environment::of(&self.endpoint, self.config.as_deref());
        let args = args.iter().map(Masked::expose);
        let Some(ToolSandbox { config, context }) = &self.sandbox else {
            let mut command = Command::new(program);
            command.args(args).env_clear().envs(env);
            if let Some(cwd) = cwd {
                command.current_dir(cwd);
            }
            return Ok(Confined { command, temp: None });
        };
        let words = [program.to_owned()].into_iter().chain(args.map(OsString::from)).collect();
        let (starts, read, write) = (Vec::new(), Vec::new(), Vec::new());
        let program_in_it =
            Program { argv: words, env, folder: cwd, starts, read, write, setting: "sandbox" };
        confine(config, context, program_in_it)
            .map_err(|error| error.into_failure("the server", program, "command"))
    }

    async fn start(&self, router: MessageRouter) -> Result<Arc<dyn Transport>, TransportError> {
        self.tail.clear();
        let mut tree = self.spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (tree.take_stdin(), tree.take_stdout(), tree.take_stderr())
        else {
            return Err(TransportError::unsent(Failure::Closed, "the process has no pipes"));
        };
        enlarge(&stdout);
        // Until the pipe ends and not until the connection does: the last output matters most.
        let tail = self.tail.clone();
        self.drains.spawn(async move { tail.drain(stderr).await });
        let encoding = encoding_rs::Encoding::for_label(self.endpoint.encoding.value.as_bytes());
        let encoding = encoding.unwrap_or(encoding_rs::UTF_8);
        let pipes = Pipes::start(stdout, stdin, encoding, router);
        *self.process.lock().await = Some(tree);
        Ok(Arc::new(Process { pipes, process: Arc::clone(&self.process) }))
    }
}

impl Connector for ProcessConnector {
    fn open(
        &self,
        router: MessageRouter,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        Box::pin(self.start(router))
    }
}

/// A running server. Dropped, it is killed together with everything it started.
struct Process {
    pipes: Pipes<ChildStdin>,
    process: Arc<Mutex<Option<ProcessTree>>>,
}

impl Transport for Process {
    fn deliver<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<(), TransportError>> {
        self.pipes.deliver(message)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let tree = self.process.lock().await.take();
            match tree {
                Some(tree) => {
                    tree.end_by_steps(self.pipes.close(), GRACE).await;
                }
                None => self.pipes.close().await,
            }
        })
    }
}
