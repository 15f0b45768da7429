//! What the operator lets those do who change the registry over an API. Whoever may register a
//! command may run it, so a command needs a line in `policy.allowed_commands`, which only files set.

use super::document::Document;
use super::edit::{Action, Edit, EditError};
use crate::config::model::{Endpoint, LocalProgram, StdioEndpoint};
use crate::config::{Config, Masked};

/// Variables that make an allowed program run something else.
const HIJACKING: [&str; 16] = [
    "PATH",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "GIT_SSH_COMMAND",
    "GCONV_PATH",
];

/// The same, by how they begin.
const HIJACKING_BEGIN: [&str; 5] = ["LD_", "DYLD_", "npm_config_", "NPM_CONFIG_", "UV_"];

/// Whether the entry that `edit` leaves in `config` may be there.
pub(super) fn permit(edit: &Edit, config: &Config) -> Result<(), EditError> {
    match edit.action {
        Action::Add(_) | Action::Put(_) => {}
        // What is there was permitted, or written by hand.
        Action::Remove | Action::SetDisabled(_) => return Ok(()),
    }
    let name = &edit.name;
    match edit.document {
        Document::Tools => {
            let tool = config.local.iter().find(|tool| tool.definition.name == *name);
            match tool.map(|tool| &tool.program) {
                Some(LocalProgram::Command { command, script_path, args }) => {
                    // A script in the registry's folder is the operator's own.
                    if command.is_empty() {
                        return Ok(());
                    }
                    let words = command.iter().map(Masked::expose);
                    let words = words.chain(script_path.as_deref());
                    let words: Vec<&str> = words.chain(args.iter().map(Masked::expose)).collect();
                    permit_command(name, &words, config)
                }
                Some(LocalProgram::Python { .. }) | None => Ok(()),
            }
        }
        Document::Servers => {
            let server = config.servers.iter().find(|server| server.name == *name);
            match server.map(|server| &server.endpoint) {
                Some(Endpoint::Stdio(stdio)) => permit_process(name, stdio, config),
                Some(Endpoint::Http(_) | Endpoint::Sse(_) | Endpoint::Websocket(_)) | None => {
                    Ok(())
                }
            }
        }
    }
}

fn permit_process(name: &str, stdio: &StdioEndpoint, config: &Config) -> Result<(), EditError> {
    let words = [stdio.command.expose()].into_iter();
    let words: Vec<&str> = words.chain(stdio.args.iter().map(Masked::expose)).collect();
    permit_command(name, &words, config)?;
    let hijacks = |variable: &str| {
        HIJACKING.contains(&variable) || HIJACKING_BEGIN.iter().any(|it| variable.starts_with(it))
    };
    match stdio.env.iter().find(|(variable, _)| hijacks(variable)) {
        None => Ok(()),
        Some((variable, _)) => Err(EditError::NotAllowed {
            problem: format!(
                "`{name}` may not set `{variable}`, which decides what a program runs"
            ),
            remedy: "leave it out, or let the operator configure the server in a file".to_owned(),
        }),
    }
}

fn permit_command(name: &str, words: &[&str], config: &Config) -> Result<(), EditError> {
    if config.policy.allowed_commands.value.iter().any(|pattern| pattern.allows(words)) {
        return Ok(());
    }
    // Only the program: arguments may hold secrets.
    let program = words.first().copied().unwrap_or_default();
    Err(EditError::NotAllowed {
        problem: format!(
            "`{name}` runs the command `{program}`, which the operator does not allow"
        ),
        remedy: format!(
            "let the operator add the command line to `policy.allowed_commands`, such as `{program} ...`"
        ),
    })
}
