//! Does this machine enforce the sandboxes that the configuration chose?

use std::process::Stdio;

use haft::Config;
use haft::config::choices::Sandbox;
use haft::sandbox::{Support, problems, support};
use tokio::process::Command;
use tokio::time::timeout;

use super::{Finding, VERSION_TIMEOUT};
use crate::cli::remedy::command;
use crate::cli::{EXIT_CONFIG, EXIT_RUNTIME};

/// One finding for each kind of sandbox in use, and one for each that cannot be enforced.
pub(super) async fn check(config: &Config, findings: &mut Vec<Finding>) {
    let Support { landlock, bubblewrap, .. } = support();
    let servers = config.servers.iter().map(|server| server.sandbox.value.kind);
    let local = config.local.iter().map(|tool| tool.sandbox.value.kind);
    let code = config.builtin.code_execution.sandbox.value.kind;
    let used: Vec<Sandbox> = servers.chain(local).chain([code]).collect();
    if let (true, Ok(enforced)) = (used.contains(&Sandbox::Landlock), landlock) {
        findings.push(Finding::ok("landlock", format!("the kernel restricts {enforced}")));
    }
    if let (true, Ok(path)) = (used.contains(&Sandbox::Bubblewrap), bubblewrap) {
        findings.push(match probe(&path).await {
            Ok(()) => Finding::ok("bubblewrap", path),
            Err(cause) => Finding::failed(
                EXIT_RUNTIME,
                "bubblewrap",
                format!("`{path}` cannot make a sandbox: {cause}"),
                "let this user make user namespaces, or use `sandbox: landlock`",
            ),
        });
    }
    findings.extend(problems(config).iter().map(|problem| {
        Finding::failed(EXIT_CONFIG, "sandbox", problem.to_string(), command(&problem.remedy))
    }));
}

/// Makes a sandbox around a program that does nothing.
async fn probe(bwrap: &str) -> Result<(), String> {
    let mut command = Command::new(bwrap);
    command.args(["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc"]);
    command.args(["--", "/bin/sh", "-c", "exit 0"]);
    command.kill_on_drop(true).stdin(Stdio::null());
    let output = match timeout(VERSION_TIMEOUT, command.output()).await {
        Ok(output) => output.map_err(|error| error.to_string())?,
        Err(_) => return Err("it does not end".to_owned()),
    };
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().last().unwrap_or("it ended without a word").trim().to_owned())
}
