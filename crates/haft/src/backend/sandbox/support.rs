//! The sandboxes of this machine, and the configured ones that it cannot enforce.

use std::fmt::Write as _;

use haft_config::config::choices::Sandbox;
use haft_config::config::model::{Origin, Setting};
use haft_config::config::sandbox::{SandboxConfig, SandboxNetwork};
use haft_config::config::{Config, Place, Problem, Severity};

use super::{bubblewrap, kernel, limits};

/// The first Linux with all required rules about files.
const FILES_SINCE: &str = "Linux 6.2";
/// The first Linux with rules about the network.
const NETWORK_SINCE: &str = "Linux 6.7";

/// The mechanisms of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Support {
    /// Landlock: what it enforces, or the reason why it is not available.
    pub landlock: Result<String, String>,
    /// The path of `bwrap`, or the reason why it is not available. It may still lack the permission to make
    /// namespaces.
    pub bubblewrap: Result<String, String>,
}

/// Looks at this machine. Nothing is started or restricted.
pub fn support() -> Support {
    let kernel::Features { has_files, has_network, has_scopes } = kernel::features();
    let landlock = if has_files {
        let mut enforces = "files".to_owned();
        let more = [(has_network, "TCP ports"), (has_scopes, "signals and abstract Unix sockets")];
        for (_, what) in more.into_iter().filter(|(has, _)| *has) {
            let _ = write!(enforces, ", {what}");
        }
        Ok(enforces)
    } else {
        Err(format!(
            "this kernel does not have Landlock with all rules about files ({FILES_SINCE})"
        ))
    };
    let bubblewrap = match bubblewrap::program() {
        Some(path) => Ok(path.display().to_string()),
        None => Err("`bwrap` is in no directory of PATH".to_owned()),
    };
    Support { landlock, bubblewrap }
}

/// The sandboxes of a configuration that this machine cannot enforce. The programs in them do not start.
pub fn problems(config: &Config) -> Vec<Problem> {
    let servers = config.servers.iter().filter(|server| !server.disabled.value);
    let servers = servers.map(|server| (format!("server `{}`", server.name), &server.sandbox));
    let local = config.local.iter();
    let local = local.map(|tool| (format!("tool `{}`", tool.definition.name), &tool.sandbox));
    let code = &config.builtin.code_execution;
    let code = code.enabled.value.then(|| ("`code_execution`".to_owned(), &code.sandbox));
    servers
        .chain(local)
        .chain(code)
        .flat_map(|(user, sandbox)| problems_of(&user, sandbox))
        .collect()
}

fn problems_of(
    user: &str,
    Setting { value: sandbox, origin }: &Setting<SandboxConfig>,
) -> Vec<Problem> {
    let place = match origin {
        Origin::Explicit(place) | Origin::ServerDefault(_, place) => place.clone(),
        Origin::Implied(_) | Origin::Format(_) | Origin::Default => {
            Place::whole("defaults.sandbox")
        }
    };
    let causes = missing(sandbox).into_iter().chain(missing_paths(sandbox));
    causes
        .map(|(cause, remedy)| Problem {
            severity: Severity::Error,
            place: place.clone(),
            problem: format!("{user} cannot start in its sandbox: {cause}"),
            remedy: remedy.into(),
        })
        .collect()
}

/// The mechanism or the limit that is missing here.
fn missing(sandbox: &SandboxConfig) -> Option<(String, String)> {
    if sandbox.limits.processes.is_some() && limits::is_exempt() {
        return Some((limits::ROOT_IS_EXEMPT.to_owned(), limits::ROOT_REMEDY.to_owned()));
    }
    match sandbox.kind {
        Sandbox::None => None,
        Sandbox::Bubblewrap => {
            let remedy = "install the package `bubblewrap`, or use `sandbox: landlock`";
            support().bubblewrap.err().map(|cause| (cause, remedy.to_owned()))
        }
        Sandbox::Landlock => {
            if let Err(cause) = support().landlock {
                return Some((cause, "use a newer kernel, or `sandbox: bubblewrap`".to_owned()));
            }
            let is_restricted = sandbox.network != SandboxNetwork::All;
            (is_restricted && !kernel::features().has_network).then(|| {
                let cause = format!("this kernel cannot restrict the network ({NETWORK_SINCE})");
                (cause, "use a newer kernel, `network: all`, or `sandbox: bubblewrap`".to_owned())
            })
        }
    }
}

fn missing_paths(sandbox: &SandboxConfig) -> impl Iterator<Item = (String, String)> {
    let listed = sandbox.read.iter().map(|path| ("read", path));
    let listed = listed.chain(sandbox.write.iter().map(|path| ("write", path)));
    listed.filter(|(_, path)| !path.exists()).map(|(list, path)| {
        let cause = format!("`{}` in `{list}` does not exist", path.display());
        (cause, "create it, or correct the path".to_owned())
    })
}
