//! What the operator lets those do who change the registry over an API. Whoever may register a
//! command may run it, so a command needs a line in `policy.allowed_commands`, and a variable of Haft's
//! own environment one in `policy.allowed_variables`. Only files set them.

use serde_json::Value;
use serde_json::value::RawValue;

use super::document::Document;
use super::edit::{Action, Edit, EditError};
use crate::config::choices::InheritEnv;
use crate::config::model::{Endpoint, LocalProgram, StdioEndpoint};
use crate::config::{Config, Masked};

/// Variables that make an allowed program run something else, by how they begin. Compared without
/// regard to case: some programs read theirs so.
const HIJACKING: [&str; 24] = [
    "PATH", "HOME", "BASH_", "ENV", "SHELL", "IFS", "PS4", "LD_", "DYLD_", "GLIBC_", "GCONV_",
    "MALLOC_", "NODE_", "NPM_", "PYTHON", "PIP_", "UV_", "PERL", "RUBY", "JAVA", "JDK_", "_JAVA",
    "GIT_", "XDG_",
];

/// Whether the entry that `edit` leaves in `config` may be there.
pub(super) fn permit(edit: &Edit, config: &Config) -> Result<(), EditError> {
    let entry = match &edit.action {
        Action::Add(entry) | Action::Put(entry) => entry,
        // What is there was permitted, or written by hand.
        Action::Remove | Action::SetDisabled(_) => return Ok(()),
    };
    let name = &edit.name;
    permit_variables(name, entry, config)?;
    match edit.document {
        Document::Tools => {
            let tool = config.local.iter().find(|tool| tool.definition.name == *name);
            match tool.map(|tool| &tool.program) {
                // A script in the registry's folder is the operator's own, as long as nobody else says
                // what it does.
                Some(LocalProgram::Command { command, args, .. })
                    if command.is_empty() && args.is_empty() =>
                {
                    Ok(())
                }
                Some(LocalProgram::Command { command, script_path, args }) => {
                    let script = script_path.as_deref().map(Masked::from);
                    permit_command(name, command.iter().chain(&script).chain(args), config)
                }
                Some(LocalProgram::Python { .. }) | None => Ok(()),
            }
        }
        Document::Servers => {
            let server = config.servers.iter().find(|server| server.name == *name);
            match server.map(|server| &server.endpoint) {
                Some(Endpoint::Stdio(stdio)) => permit_process(name, entry, stdio, config),
                Some(Endpoint::Http(_) | Endpoint::Sse(_) | Endpoint::Websocket(_)) | None => {
                    Ok(())
                }
            }
        }
    }
}

fn permit_process(
    name: &str,
    entry: &RawValue,
    stdio: &StdioEndpoint,
    config: &Config,
) -> Result<(), EditError> {
    permit_command(name, [&stdio.command].into_iter().chain(&stdio.args), config)?;
    // What stands in files can change after it was permitted, and a folder decides what a name means.
    let says = |key: &str| {
        serde_json::from_str::<Value>(entry.get()).is_ok_and(|it| it.get(key).is_some())
    };
    let files = ["cwd", "env_file", "envFile"].into_iter().find(|key| says(key));
    let all = (stdio.inherit_env.value == InheritEnv::All).then_some("inherit_env: all");
    let is_plain = |it: &str| it.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let hijacks = |variable: &&str| {
        let upper = variable.to_ascii_uppercase();
        !is_plain(variable) || HIJACKING.iter().any(|it| upper.starts_with(it))
    };
    let variable = stdio.env.iter().map(|(variable, _)| variable.as_str()).find(hijacks);
    match files.or(all).or(variable) {
        None => Ok(()),
        Some(what) => Err(EditError::NotAllowed {
            problem: format!("`{name}` may not set `{what}`, which can decide what a program runs"),
            remedy: "leave it out, or let the operator configure the server in a file".to_owned(),
        }),
    }
}

fn permit_command<'a>(
    name: &str,
    command: impl Iterator<Item = &'a Masked>,
    config: &Config,
) -> Result<(), EditError> {
    let words: Vec<&str> = command.map(Masked::expose).collect();
    if config.policy.allowed_commands.value.iter().any(|pattern| pattern.allows(&words)) {
        return Ok(());
    }
    // Only the program: arguments may hold secrets.
    let program = words.first().copied().filter(|it| !it.contains("://")).unwrap_or_default();
    Err(EditError::NotAllowed {
        problem: format!(
            "no line of `policy.allowed_commands` allows what `{name}` would run: `{program}` with these \
             arguments"
        ),
        remedy: "let the operator add the whole command line to `policy.allowed_commands` in the \
                 configuration; `*` stands for a part of a word, a last `...` for any further words"
            .to_owned(),
    })
}

/// What an entry may name of Haft's own environment, which whoever reads it could send anywhere.
fn permit_variables(name: &str, entry: &RawValue, config: &Config) -> Result<(), EditError> {
    let value: Value = serde_json::from_str(entry.get()).unwrap_or_default();
    let allowed = &config.policy.allowed_variables.value;
    match find_reference(&value, &|variable| !allowed.iter().any(|it| it == variable)) {
        None => Ok(()),
        Some(variable) => Err(EditError::NotAllowed {
            problem: format!("`{name}` may not use the variable `{variable}`"),
            remedy:
                "let the operator add it to `policy.allowed_variables` in the configuration; a \
                     `$` that is meant as one is written `$$`"
                    .to_owned(),
        }),
    }
}

/// The first `${NAME}` that `is_wanted`, in any text or key.
fn find_reference(value: &Value, is_wanted: &dyn Fn(&str) -> bool) -> Option<String> {
    match value {
        Value::String(text) => references(text).find(|name| is_wanted(name)).map(ToOwned::to_owned),
        Value::Array(items) => items.iter().find_map(|item| find_reference(item, is_wanted)),
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            let in_key = references(key).find(|name| is_wanted(name)).map(ToOwned::to_owned);
            in_key.or_else(|| find_reference(value, is_wanted))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// What stands between `${` and the end of the name. `$${` is counted too: better one too many.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).map(|rest| {
        let rest = rest.strip_prefix("env:").unwrap_or(rest);
        &rest[..rest.find([':', '}']).unwrap_or(rest.len())]
    })
}
