//! The operator's limits for registrations over an API. A command needs a line in
//! `policy.allowed_commands`, a variable of Haft's environment one in `policy.allowed_variables`, and a
//! variable for a child process one in `policy.allowed_env`. Only files set them.
//!
//! Every decision reads the compiled configuration: what the loader resolved is what will run. An entry's
//! text is never parsed a second time here, since two parsers can disagree about it.

use std::path::{Component, Path};

use super::document::{ParsedTools, RegistryDocument};
use super::edit::{Action, Edit, RegistryEditError};
use super::store::Documents;
use super::upload::UploadedScript;
use crate::config::choices::{AllowedScripts, InheritEnv};
use crate::config::model::{
    Endpoint, LocalProgram, LocalTool, Origin, ServerConfig, Setting, StdioEndpoint,
};
use crate::config::sandbox::SandboxConfig;
use crate::config::{Config, LoadOptions, Masked, Place, RegistryTexts, Secret};
use haft_bounds::json::NODES_MAX;

/// Folders with code that the operator did not write as tools.
const FOREIGN_FOLDERS: [&str; 4] =
    ["site-packages", "dist-packages", "node_modules", "__pycache__"];

/// Decides if the entry that `edit` leaves in `config` is allowed.
pub(super) fn permit(edit: &Edit, config: &Config) -> Result<(), RegistryEditError> {
    match &edit.action {
        Action::Add(_) | Action::Put(_) => {}
        // The entry was permitted before, or the operator wrote it.
        Action::Remove | Action::SetDisabled(_) => return Ok(()),
    }
    let name = &edit.name;
    let is_registrys = |place: &Place| config.is_registry_file(&place.file);
    let mut is_found = false;
    match edit.document {
        RegistryDocument::Tools => {
            // A local tool and the settings of a server's tool may share the name.
            let settings = config.tools.iter().filter(|it| it.name == *name);
            for entry in settings.filter(|it| is_registrys(&it.place)) {
                is_found = true;
                permit_variables(name, &entry.place, config)?;
            }
            let local = config.local.iter().filter(|it| it.definition.name == *name);
            for tool in local.filter(|it| is_registrys(&it.place)) {
                is_found = true;
                permit_variables(name, &tool.place, config)?;
                permit_tool(name, tool, config)?;
            }
        }
        RegistryDocument::Servers => {
            let servers = config.servers.iter().filter(|it| it.name == *name);
            for server in servers.filter(|it| is_registrys(&it.place)) {
                is_found = true;
                permit_variables(name, &server.place, config)?;
                permit_server(server, config)?;
            }
        }
    }
    if is_found {
        return Ok(());
    }
    // A check that found no entry has checked nothing.
    Err(RegistryEditError::NotAllowed {
        problem: format!("the configuration has no entry `{name}` after this change"),
        remedy: "send an entry with this name, and nothing else".to_owned(),
    })
}

/// Applies `edit` to an empty registry and returns the resulting configuration, if it is permitted.
/// Writes nothing. `options` name the registry's folder as their only file.
pub(crate) fn dry_run(edit: &Edit, options: &LoadOptions<'_>) -> Result<Config, RegistryEditError> {
    let mut new = Documents {
        tools: "{\"tools\": []}".to_owned(),
        servers: "{\"mcp_servers\": {}}".to_owned(),
    };
    let applied = edit.make(&mut new, None, NODES_MAX, &mut ParsedTools::default())?;
    let Documents { tools, servers } = new;
    let dir = options.files.first().cloned().unwrap_or_default();
    let registry = Some(RegistryTexts { dir, tools, servers });
    let options = LoadOptions { registry, ..options.clone() };
    let config = Config::load(&options).map_err(RegistryEditError::Invalid)?;
    permit_scripts(applied.script.as_slice(), &config)?;
    permit(edit, &config).map(|()| config)
}

/// Decides if scripts may be uploaded.
pub(super) fn permit_scripts(
    scripts: &[UploadedScript],
    config: &Config,
) -> Result<(), RegistryEditError> {
    scripts.iter().try_for_each(|script| permit_upload(&script.tool, "a script", config))
}

fn permit_tool(name: &str, tool: &LocalTool, config: &Config) -> Result<(), RegistryEditError> {
    permit_sandbox(name, &tool.sandbox)?;
    permit_env(name, &tool.env, config)?;
    match &tool.program {
        LocalProgram::Python { script_path, requirements, .. } => {
            // An installation runs code of the package.
            if !requirements.is_empty() {
                permit_upload(name, "`requirements`", config)?;
            }
            permit_script(name, script_path)
        }
        LocalProgram::Command { command, script_path, args } => {
            if let Some(script_path) = script_path {
                permit_script(name, script_path)?;
            }
            // A script in the registry's folder is the operator's own, as long as the entry does not
            // choose its interpreter or its arguments.
            if command.is_empty() && args.is_empty() {
                return Ok(());
            }
            let script = script_path.as_deref().map(Masked::from);
            permit_command(name, command.iter().chain(&script).chain(args), config)
        }
    }
}

/// Refuses scripts that a package manager or an editor put into the registry's folder.
fn permit_script(name: &str, script_path: &str) -> Result<(), RegistryEditError> {
    let is_foreign = |component: Component<'_>| match component {
        Component::Normal(part) => {
            let part = part.to_string_lossy();
            part.starts_with('.') || FOREIGN_FOLDERS.iter().any(|it| part.eq_ignore_ascii_case(it))
        }
        Component::CurDir => false,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => true,
    };
    if !Path::new(script_path).components().any(is_foreign) {
        return Ok(());
    }
    Err(RegistryEditError::NotAllowed {
        problem: format!(
            "`{name}` may not run `{}`: scripts in hidden folders and in folders of installed packages \
             are not tools",
            script_path.escape_debug()
        ),
        remedy: "name a script of the registry's folder, or let the operator configure the tool in a file"
            .to_owned(),
    })
}

fn permit_server(server: &ServerConfig, config: &Config) -> Result<(), RegistryEditError> {
    match &server.endpoint {
        Endpoint::Stdio(stdio) => permit_process(server, stdio, config),
        Endpoint::Http(_) | Endpoint::Sse(_) | Endpoint::Websocket(_) => Ok(()),
    }
}

fn permit_process(
    server: &ServerConfig,
    stdio: &StdioEndpoint,
    config: &Config,
) -> Result<(), RegistryEditError> {
    let name = &server.name;
    permit_command(name, [&stdio.command].into_iter().chain(&stdio.args), config)?;
    permit_sandbox(name, &server.sandbox)?;
    // Files can change after the check, and the working directory decides the meaning of a relative
    // name. A value from a variable is the operator's: `permit_variables` allowed that variable.
    let is_operators =
        |key: &str| server.place_of(key).is_some_and(|place| place.file.starts_with('$'));
    let set = [
        ("cwd", stdio.cwd.is_some() && !is_operators("cwd")),
        ("env_file", stdio.env_file.is_some() && !is_operators("env_file")),
        ("inherit_env: all", stdio.inherit_env.value == InheritEnv::All),
    ];
    if let Some((what, _)) = set.into_iter().find(|(_, is_set)| *is_set) {
        return Err(RegistryEditError::NotAllowed {
            problem: format!("`{name}` may not set `{what}`, which can decide what a program runs"),
            remedy: "leave it out, or let the operator configure the server in a file".to_owned(),
        });
    }
    permit_env(name, &stdio.env, config)
}

/// Refuses an entry that chooses its own sandbox: it could choose a weaker one than the operator's. A value from
/// a variable is the operator's.
fn permit_sandbox(name: &str, sandbox: &Setting<SandboxConfig>) -> Result<(), RegistryEditError> {
    match &sandbox.origin {
        Origin::Explicit(place) if !place.file.starts_with('$') => {
            Err(RegistryEditError::NotAllowed {
                problem: format!(
                    "`{name}` may not set `sandbox`, which decides what a program can reach"
                ),
                remedy: "leave it out; the operator sets `defaults.sandbox` in the configuration"
                    .to_owned(),
            })
        }
        Origin::Explicit(_)
        | Origin::ServerDefault(..)
        | Origin::Implied(_)
        | Origin::Format(_)
        | Origin::Default => Ok(()),
    }
}

/// Refuses what runs code that is not the operator's, unless the operator allows exactly that.
fn permit_upload(name: &str, what: &str, config: &Config) -> Result<(), RegistryEditError> {
    match config.policy.allowed_scripts.value {
        AllowedScripts::Upload => Ok(()),
        AllowedScripts::Existing => Err(RegistryEditError::NotAllowed {
            problem: format!("`{name}` may not bring {what} along"),
            remedy: "use a script of the registry's folder, or let the operator set \
                     `policy.allowed_scripts: upload` in the configuration"
                .to_owned(),
        }),
    }
}

fn permit_env(
    name: &str,
    env: &[(String, Option<Secret>)],
    config: &Config,
) -> Result<(), RegistryEditError> {
    let allowed = &config.policy.allowed_env.value;
    let is_allowed = |variable: &str| allowed.iter().any(|pattern| pattern.fits(variable));
    match env.iter().find(|(variable, _)| !is_allowed(variable)) {
        None => Ok(()),
        Some((variable, _)) => Err(RegistryEditError::NotAllowed {
            problem: format!("`{name}` may not set the environment variable `{variable}`"),
            remedy: format!(
                "leave it out, or let the operator add `{variable}` to `policy.allowed_env` in the \
                 configuration"
            ),
        }),
    }
}

fn permit_command<'a>(
    name: &str,
    command: impl Iterator<Item = &'a Masked>,
    config: &Config,
) -> Result<(), RegistryEditError> {
    let words: Vec<&str> = command.map(Masked::expose).collect();
    if config.policy.allowed_commands.value.iter().any(|pattern| pattern.allows(&words)) {
        return Ok(());
    }
    // Only the program: arguments may hold secrets.
    let program = words.first().copied().filter(|it| !it.contains("://")).unwrap_or_default();
    Err(RegistryEditError::NotAllowed {
        problem: format!(
            "no line of `policy.allowed_commands` allows what `{name}` would run: `{program}` with these \
             arguments"
        ),
        remedy: "let the operator add the whole command line to `policy.allowed_commands` in the \
                 configuration; `*` stands for letters, digits, `.`, `_` and `-`, a last `...` for any \
                 further words"
            .to_owned(),
    })
}

/// Refuses references to Haft's own environment, whose values an entry could send anywhere.
fn permit_variables(name: &str, entry: &Place, config: &Config) -> Result<(), RegistryEditError> {
    let allowed = &config.policy.allowed_variables.value;
    let mut variables = config.variables_of(entry);
    match variables.find(|variable| !allowed.iter().any(|it| it == variable)) {
        None => Ok(()),
        Some(variable) => Err(RegistryEditError::NotAllowed {
            problem: format!("`{name}` may not use the variable `{variable}`"),
            remedy: "let the operator add it to `policy.allowed_variables` in the configuration; a `$` that \
                     is meant as one is written `$$`"
                .to_owned(),
        }),
    }
}
