//! The programs that a configuration starts: as the user sees them, and as one number.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use haft::Config;
use haft::config::model::{Endpoint, LocalProgram, LocalTool, Origin, StdioEndpoint};
use haft::config::sandbox::SandboxConfig;
use haft::config::{Masked, Secret};
use haft_text::printable;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Largest number of programs that are shown one by one.
const LINES_MAX: usize = 100;

/// The programs that a configuration starts.
#[derive(Debug)]
pub(super) struct Starts {
    file: PathBuf,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// Display form, without secrets.
    shown: String,
    /// Everything that decides what is started. It may hold secrets and is only hashed.
    exact: Value,
}

impl Entry {
    /// The program inside its sandbox: a weaker one is another program.
    fn inside(mut self, sandbox: &SandboxConfig) -> Self {
        if !sandbox.is_none() {
            let _ = write!(self.shown, " (sandbox: {})", sandbox.kind);
            self.exact = json!([self.exact, sandbox.shown()]);
        }
        self
    }
}

impl Starts {
    /// Returns the programs that `config`, read from `file`, starts now or when a tool is called.
    pub(super) fn of(file: &Path, config: &Config) -> Self {
        let servers = config.servers.iter().filter(|server| !server.disabled.value);
        let mut entries: Vec<Entry> = servers
            .filter_map(|server| match &server.endpoint {
                Endpoint::Stdio(stdio) => {
                    let settings = server.config.as_ref().map(haft::config::Opaque::expose);
                    Some(of_server(&server.name, stdio, settings).inside(&server.sandbox.value))
                }
                Endpoint::Http(_) | Endpoint::Sse(_) | Endpoint::Websocket(_) => None,
            })
            .collect();
        let python = &config.defaults.python;
        entries.extend(
            config
                .local
                .iter()
                .map(|tool| of_tool(tool, &python.value).inside(&tool.sandbox.value)),
        );
        // Built-in tools run it too.
        if python.origin != Origin::Default {
            let shown = format!("defaults.python: {}", printable(python.value.shown()));
            entries.push(Entry { shown, exact: json!(["python", python.value.expose()]) });
        }
        Self { file: file.to_path_buf(), entries }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The file, for messages.
    pub(super) fn file(&self) -> String {
        format!("`{}`", printable(&self.file.display().to_string()))
    }

    /// One line for each program.
    pub(super) fn lines(&self) -> Vec<String> {
        let shown = self.entries.iter().take(LINES_MAX).map(|entry| entry.shown.clone());
        let more = self.entries.len().saturating_sub(LINES_MAX);
        shown.chain((more > 0).then(|| format!("... and {more} more"))).collect()
    }

    /// The same for the same file that starts the same programs, and for nothing else.
    pub(super) fn digest(&self) -> String {
        let exact: Vec<&Value> = self.entries.iter().map(|entry| &entry.exact).collect();
        // Lossless: two paths that differ only in bytes that are not UTF-8 are two paths.
        let path = self.file.as_os_str().as_encoded_bytes();
        let digest = Sha256::digest(json!(["haft trust 1", path, exact]).to_string());
        haft_text::hex(&digest)
    }
}

fn of_server(name: &str, stdio: &StdioEndpoint, settings: Option<&Value>) -> Entry {
    let StdioEndpoint { command, args, cwd, env, env_file, inherit_env, encoding: _ } = stdio;
    let mut shown = format!("server `{name}`: {}", line([command].into_iter().chain(args)));
    if let Some(cwd) = cwd {
        let _ = write!(shown, " (in {})", cwd.display());
    }
    if !env.is_empty() {
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        let _ = write!(shown, " (sets {})", names.join(", "));
    }
    let env: Vec<(&str, Option<&str>)> = env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_ref().map(Secret::expose)))
        .collect();
    let exact = json!([
        "server",
        name,
        command.expose(),
        exposed(args),
        path(cwd.as_deref()),
        env,
        path(env_file.as_deref()),
        inherit_env.value,
        settings,
    ]);
    Entry { shown: printable(&shown).into_owned(), exact }
}

fn of_tool(tool: &LocalTool, python: &Masked) -> Entry {
    let (name, folder) = (&tool.definition.name, tool.tools_dir.as_path());
    let in_folder = |script: &str| Masked::from(&*folder.join(script).to_string_lossy());
    let (shown, exact) = match &tool.program {
        LocalProgram::Python { script_path, entrypoint, requirements } => (
            line([python, &in_folder(script_path)]),
            json!([
                "python tool",
                name,
                python.expose(),
                path(Some(folder)),
                script_path,
                entrypoint,
                requirements
            ]),
        ),
        LocalProgram::Command { command, script_path, args } => {
            let script = script_path.as_deref().map(in_folder);
            (
                line(command.iter().chain(&script).chain(args)),
                json!([
                    "command tool",
                    name,
                    exposed(command),
                    path(Some(folder)),
                    script_path,
                    exposed(args),
                ]),
            )
        }
    };
    let env: Vec<_> =
        tool.env.iter().map(|(name, value)| (name, value.as_ref().map(Secret::expose))).collect();
    let exact = if env.is_empty() { exact } else { json!([exact, env]) };
    Entry { shown: printable(&format!("tool `{name}`: {shown}")).into_owned(), exact }
}

fn line<'a>(words: impl IntoIterator<Item = &'a Masked>) -> String {
    words.into_iter().map(Masked::shown).collect::<Vec<_>>().join(" ")
}

fn exposed(words: &[Masked]) -> Vec<&str> {
    words.iter().map(Masked::expose).collect()
}

fn path(path: Option<&Path>) -> Option<&[u8]> {
    path.map(|path| path.as_os_str().as_encoded_bytes())
}
