//! `haft doctor`: what is wrong, and what to do about it.

mod sandbox;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use haft::config::model::{Endpoint, LocalProgram};
use haft::config::{ConfigError, Severity};
use haft::{Config, ServerInfo, ServerState};
use rustix::fs::Access;
use serde::Serialize;
use tokio::process::Command;
use tokio::time::timeout;

use super::service::{self, Reply, Request};
use super::toolbox::{self, Purpose, Toolbox};
use super::trust::Trusted;
use super::{
    EXIT_CONFIG, EXIT_CONNECT, EXIT_RUNTIME, Failure, Global, block_on, count, load, print_json,
};
use crate::terminal::{self, Paint};

/// Time for a program to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// Write permission of everyone.
const OTHERS_WRITE: u32 = 0o022;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haft doctor
  haft doctor --offline        without connecting servers
  haft doctor --json

Exit codes: 0 all is well, 1 something else, 2 the configuration, 3 a server cannot be reached.")]
pub(super) struct DoctorArgs {
    /// Do not connect the servers
    #[arg(long)]
    offline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warning,
    Failed,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    check: String,
    verdict: Verdict,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    #[serde(skip)]
    code: u8,
}

impl Finding {
    fn ok(check: &str, detail: impl Into<String>) -> Self {
        let (verdict, detail) = (Verdict::Ok, detail.into());
        Self { check: check.to_owned(), verdict, detail, remedy: None, code: 0 }
    }

    fn warning(check: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, remedy: Some(remedy.into()), ..Self::ok(check, detail) }
    }

    fn failed(code: u8, check: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Failed, code, ..Self::warning(check, detail, remedy) }
    }
}

pub(super) fn run(global: &Global, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut findings = vec![Finding::ok("haft", env!("CARGO_PKG_VERSION"))];
    let config = check_files(global, &mut findings)?;
    if let Some(config) = config {
        check_folders(&config, &mut findings);
        block_on(async {
            check_programs(&config, &mut findings).await;
            sandbox::check(&config, &mut findings).await;
            Ok(())
        })?;
        check_service(global, &mut findings)?;
        if !args.offline && !config.servers.is_empty() {
            check_servers(global, config, &mut findings)?;
        }
    }
    report(global, &findings)
}

fn check_files(global: &Global, findings: &mut Vec<Finding>) -> anyhow::Result<Option<Config>> {
    let config = match load::load_if_any(global) {
        Ok((config, _)) => config,
        Err(error) => {
            let Some(ConfigError { problems }) = error.downcast_ref::<ConfigError>() else {
                return Err(error);
            };
            findings.extend(problems.iter().map(|problem| match problem.severity {
                Severity::Error => Finding::failed(
                    EXIT_CONFIG,
                    "configuration",
                    problem.to_string(),
                    problem.remedy.to_string(),
                ),
                Severity::Warning => Finding::warning(
                    "configuration",
                    problem.to_string(),
                    problem.remedy.to_string(),
                ),
            }));
            // The rest is checked without the broken entries, if that is possible.
            return Ok(load::load_usable_if_any(global).ok().map(|(config, _)| config));
        }
    };
    if config.files.is_empty() {
        findings.push(Finding::warning(
            "configuration",
            "there is none in this folder, so there are only the built-in tools",
            "write one with `haft init`, or name one with `-c`",
        ));
        return Ok(Some(config));
    }
    let names: Vec<&str> = config.files.iter().map(|file| &*file.name).collect();
    let servers = count(config.servers.len(), "server");
    let tools = count(config.local.len(), "local tool");
    findings
        .push(Finding::ok("configuration", format!("{}: {servers}, {tools}", names.join(", "))));
    for problem in &config.warnings {
        let remedy = problem.remedy.to_string();
        findings.push(Finding::warning("configuration", problem.to_string(), remedy));
    }
    for file in &config.files {
        let mode = std::fs::metadata(&file.path).map_or(0, |it| it.permissions().mode());
        if mode & OTHERS_WRITE != 0 {
            let detail = format!(
                "`{}` can be changed by other users, and it names programs to start",
                file.name
            );
            findings.push(Finding::warning(
                "permissions",
                detail,
                format!("run `chmod go-w {}`", file.path.display()),
            ));
        }
    }
    Ok(Some(config))
}

/// State and log must be writable; neither is created here.
fn check_folders(config: &Config, findings: &mut Vec<Finding>) {
    for (what, setting, path) in [
        ("state folder", "state_dir", &config.state_dir.value),
        ("log folder", "log.dir", &config.log.dir.value),
    ] {
        let existing = path.ancestors().find(|it| it.exists()).unwrap_or(Path::new("/"));
        let is_writable = rustix::fs::access(existing, Access::WRITE_OK).is_ok();
        let shown = path.display();
        findings.push(if is_writable {
            Finding::ok(what, shown.to_string())
        } else {
            let detail = format!("`{shown}` cannot be written");
            let remedy = format!(
                "set `{setting}` to a folder that you can write, or change its permissions"
            );
            Finding::failed(EXIT_RUNTIME, what, detail, remedy)
        });
    }
    let keys = &config.api.keys_file.value;
    let mode = std::fs::metadata(keys).map_or(0, |it| it.permissions().mode());
    if mode & 0o077 != 0 {
        let detail = format!("`{}` can be read by other users", keys.display());
        findings.push(Finding::warning(
            "permissions",
            detail,
            format!("run `chmod 600 {}`", keys.display()),
        ));
    }
}

/// The programs that servers and tools need, and their versions.
async fn check_programs(config: &Config, findings: &mut Vec<Finding>) {
    let mut needed: Vec<(String, Vec<String>)> = Vec::new();
    let mut need = |program: &str, by: String| match needed.iter_mut().find(|it| it.0 == program) {
        Some((_, users)) => users.push(by),
        None => needed.push((program.to_owned(), vec![by])),
    };
    for server in config.servers.iter().filter(|server| !server.disabled.value) {
        if let Endpoint::Stdio(stdio) = &server.endpoint {
            need(stdio.command.expose(), format!("server `{}`", server.name));
        }
    }
    for tool in &config.local {
        if let LocalProgram::Python { .. } = tool.program {
            need(config.defaults.python.value.expose(), format!("tool `{}`", tool.definition.name));
        }
    }
    for (program, users) in &needed {
        let version = version(program).await;
        findings.push(match version {
            Some(version) => Finding::ok(program, version),
            None if is_there(program) => Finding::ok(program, "found"),
            None => Finding::failed(
                EXIT_RUNTIME,
                program,
                format!("it is not on the path, and {} needs it", users.join(" and ")),
                how_to_get(program),
            ),
        });
    }
    for program in ["node", "uv", "python3"] {
        if needed.iter().any(|(it, _)| it == program) {
            continue;
        }
        findings.push(match version(program).await {
            Some(version) => Finding::ok(program, version),
            None => Finding::ok(program, "not installed; nothing needs it directly"),
        });
    }
}

/// The first line that a known program prints for `--version`. Other programs are not started.
async fn version(program: &str) -> Option<String> {
    const KNOWN: [&str; 9] =
        ["node", "npx", "npm", "uv", "uvx", "python", "python3", "deno", "docker"];
    let name = Path::new(program).file_name()?.to_str()?;
    if !KNOWN.contains(&name) {
        return None;
    }
    let mut command = Command::new(program);
    command.arg("--version").kill_on_drop(true).stdin(std::process::Stdio::null());
    let output = timeout(VERSION_TIMEOUT, command.output()).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next().map(str::trim).filter(|line| !line.is_empty())?;
    output.status.success().then(|| line.to_owned())
}

fn is_there(program: &str) -> bool {
    let can_run = |path: &Path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return can_run(Path::new(program));
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| can_run(&folder.join(program)))
}

fn how_to_get(program: &str) -> String {
    match program {
        "npx" | "node" | "npm" => {
            "install Node.js (nodejs.org), or name the program by its path".to_owned()
        }
        "uvx" | "uv" => {
            "install uv (docs.astral.sh/uv), or name the program by its path".to_owned()
        }
        "python" | "python3" => "install Python 3, or set `defaults.python`".to_owned(),
        program => format!("install `{program}`, or name it by its path"),
    }
}

fn check_service(global: &Global, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    findings.push(match service::ask(global, &Request::Status)? {
        Some(Reply::Status(status)) => {
            Finding::ok("service", format!("running at {}, process {}", status.url, status.pid))
        }
        Some(_) | None => Finding::ok("service", "not running; `haft serve` starts one"),
    });
    Ok(())
}

fn check_servers(
    global: &Global,
    config: Config,
    findings: &mut Vec<Finding>,
) -> anyhow::Result<()> {
    let request = Request::Servers { names: Vec::new(), connect: true };
    let servers = match service::ask(global, &request)? {
        Some(Reply::Servers(servers)) => servers,
        Some(_) => return Err(service::unexpected()),
        None => {
            let config = match Trusted::require(global, config) {
                Ok(config) => config,
                // The other findings stay.
                Err(error) => {
                    let Failure { code, message, remedy } = error.downcast::<Failure>()?;
                    findings.push(Finding::failed(
                        code,
                        "trust",
                        message,
                        remedy.unwrap_or_default(),
                    ));
                    return Ok(());
                }
            };
            block_on(async {
                let toolbox = Toolbox::open(config, Purpose::Inspect).await?;
                toolbox.work(async |runtime| Ok(runtime.servers())).await
            })?
        }
    };
    // A broken entry is reported with the configuration.
    let is_entry_valid = |it: &&ServerInfo| it.state != ServerState::Misconfigured;
    for server in servers.iter().filter(is_entry_valid) {
        let check = format!("server `{}`", server.name);
        findings.push(if toolbox::failed(server) {
            let (reason, remedy) = (toolbox::reason(server), toolbox::remedy_and_more(server));
            Finding::failed(EXIT_CONNECT, &check, reason, remedy)
        } else {
            let tools = count(server.tools.unwrap_or_default(), "tool");
            let detail = if toolbox::answers(server) {
                format!("connected, {tools}")
            } else {
                "disabled".to_owned()
            };
            Finding::ok(&check, detail)
        });
    }
    Ok(())
}

fn report(global: &Global, findings: &[Finding]) -> anyhow::Result<ExitCode> {
    let code = [EXIT_CONFIG, EXIT_CONNECT, EXIT_RUNTIME]
        .into_iter()
        .find(|code| findings.iter().any(|finding| finding.code == *code));
    if global.json {
        print_json(&findings)?;
        return Ok(ExitCode::from(code.unwrap_or_default()));
    }
    let paint = Paint::stdout(global.color);
    for Finding { check, verdict, detail, remedy, .. } in findings {
        let mark = match verdict {
            Verdict::Ok => paint.good("ok     "),
            Verdict::Warning => paint.level("WARNING").to_lowercase(),
            Verdict::Failed => paint.bad("failed "),
        };
        let detail = haft_text::printable(detail);
        terminal::line(&format!("{mark} {}: {detail}", paint.bold(check)));
        if let Some(remedy) = remedy {
            terminal::line(&format!(
                "        {} {}",
                paint.good("help:"),
                haft_text::printable(remedy)
            ));
        }
    }
    let failed = findings.iter().filter(|it| it.verdict == Verdict::Failed).count();
    let warnings = findings.iter().filter(|it| it.verdict == Verdict::Warning).count();
    terminal::line(&match (failed, warnings) {
        (0, 0) => "all is well".to_owned(),
        (failed, warnings) => {
            format!("{}, {}", count(failed, "problem"), count(warnings, "warning"))
        }
    });
    Ok(ExitCode::from(code.unwrap_or_default()))
}
