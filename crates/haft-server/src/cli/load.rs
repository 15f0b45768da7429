//! Finding and loading the configuration.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use haft::Config;
use haft::config::choices::StoreKind;
use haft::config::model::Origin;
use haft::config::{BrokenEntries, ConfigError, Dialect, InputRequest, LoadOptions, RegistryTexts};
use parking_lot::Mutex;

use super::{EXIT_CONFIG, Failure, Global, remedy};

/// Files that are looked for where none is named.
const DEFAULT_FILES: [&str; 3] = ["haft.yaml", "haft.yml", "haft.json"];

/// Loads what is named or lies in this folder. Nothing there is an error.
pub(super) fn load(global: &Global) -> anyhow::Result<Config> {
    load_files(global, files(global)?).map(|(config, _)| config)
}

/// The same for commands that do not use the registry: its folder need not be there yet.
pub(super) fn load_without_registry(global: &Global) -> anyhow::Result<Config> {
    let tolerance = LoadOptions { allows_missing_registry: true, ..LoadOptions::default() };
    load_with(global, files(global)?, tolerance).map(|(config, _)| config)
}

/// The same, where there need not be a file: Haft brings tools of its own.
pub(super) fn load_if_any(global: &Global) -> anyhow::Result<(Config, LoadOptions<'static>)> {
    load_files(global, if is_named(global) { files(global)? } else { Vec::new() })
}

/// The same for commands that run without servers whose entries have problems.
pub(super) fn load_usable_if_any(
    global: &Global,
) -> anyhow::Result<(Config, LoadOptions<'static>)> {
    load_usable(global, if is_named(global) { files(global)? } else { Vec::new() })
}

/// Loads files without servers whose entries have problems. When the files are loaded again, an entry that breaks
/// meanwhile is an error: the state before stays in use.
pub(super) fn load_usable(
    global: &Global,
    files: Vec<PathBuf>,
) -> anyhow::Result<(Config, LoadOptions<'static>)> {
    let usable = LoadOptions { broken: BrokenEntries::Disable, ..LoadOptions::default() };
    let (config, mut options) = load_with(global, files, usable)?;
    let names = config.misconfigured.iter().map(|server| server.name.clone()).collect();
    options.broken = BrokenEntries::DisableOnly(names);
    Ok((config, options))
}

/// Loads files, and returns a function that loads them again without questions.
pub(super) fn load_files(
    global: &Global,
    files: Vec<PathBuf>,
) -> anyhow::Result<(Config, LoadOptions<'static>)> {
    load_with(global, files, LoadOptions::default())
}

/// Loads files for a service. A registry's folder that is missing or empty is created, once the rest is valid.
pub(super) fn load_served(global: &Global, files: Vec<PathBuf>) -> anyhow::Result<Served> {
    let served = LoadOptions {
        broken: BrokenEntries::Disable,
        allows_missing_registry: true,
        ..LoadOptions::default()
    };
    let (config, _) = load_with(global, files.clone(), served)?;
    let dir = config.registry_dir.map(|dir| dir.value);
    let new_registry = match config.registry_store.value {
        StoreKind::Files => dir.filter(|dir| !dir.join("tools.json").exists()),
        // It holds scripts only.
        StoreKind::Shared => dir.filter(|dir| !dir.exists()),
    };
    if let Some(dir) = &new_registry {
        create_registry(dir, config.registry_store.value)?;
    }
    let (config, options) = load_usable(global, files)?;
    Ok(Served { config, options, new_registry })
}

/// The configuration of a service.
pub(super) struct Served {
    pub(super) config: Config,
    pub(super) options: LoadOptions<'static>,
    /// The folder of the registry, if it was created.
    pub(super) new_registry: Option<PathBuf>,
}

/// Creates a registry without tools and servers, or the folder for the scripts of a shared one.
fn create_registry(dir: &Path, store: StoreKind) -> anyhow::Result<()> {
    let files: &[(&str, &str)] = match store {
        StoreKind::Files => {
            &[("tools.json", "{\"tools\": []}\n"), ("mcp.json", "{\"mcp_servers\": {}}\n")]
        }
        StoreKind::Shared => &[],
    };
    let write = || {
        std::fs::create_dir_all(dir)?;
        for (name, text) in files {
            // Private, because what is registered later may hold secrets.
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(dir.join(name))?;
            file.write_all(text.as_bytes())?;
        }
        Ok(())
    };
    write().map_err(|error: io::Error| {
        let problem =
            format!("the registry's folder `{}` cannot be created: {error}", dir.display());
        Failure::new(EXIT_CONFIG, problem, "create it, or set `registry.dir` to a folder of yours")
    })?;
    Ok(())
}

fn load_with(
    global: &Global,
    files: Vec<PathBuf>,
    tolerance: LoadOptions<'static>,
) -> anyhow::Result<(Config, LoadOptions<'static>)> {
    let LoadOptions { broken, allows_missing_registry, .. } = tolerance;
    let mut options = LoadOptions {
        broken,
        allows_missing_registry,
        format: global.config_format,
        inputs: global.inputs.iter().cloned().collect(),
        builtin: true,
        ..LoadOptions::from_process(files)
    };
    // Also what was not answered: the files may be read more than once.
    let answers: Mutex<HashMap<String, Option<String>>> = Mutex::default();
    let asking = |input: &InputRequest| {
        let mut answers = answers.lock();
        answers.entry(input.id.clone()).or_insert_with(|| ask(input)).clone()
    };
    let is_at_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let config =
        Config::load(&LoadOptions { ask: is_at_terminal.then_some(&asking), ..options.clone() });
    let config = config.map(remedy::in_warnings).map_err(remedy::in_problems)?;
    let config = if options.files.is_empty() { in_state_home(config) } else { config };
    let answers = answers.into_inner();
    options.inputs.extend(answers.into_iter().filter_map(|(id, answer)| Some((id, answer?))));
    Ok((config, options))
}

/// Loads the files of `options` again, with the documents of a registry that is not in files.
pub(super) fn load_with_registry(
    options: LoadOptions<'static>,
    texts: RegistryTexts,
) -> anyhow::Result<(Config, LoadOptions<'static>)> {
    let may_miss = options.broken != BrokenEntries::Refuse;
    let broken = if may_miss { BrokenEntries::Disable } else { BrokenEntries::Refuse };
    let mut options = LoadOptions { registry: Some(texts), broken, ..options };
    let config = Config::load(&options).map(remedy::in_warnings).map_err(remedy::in_problems)?;
    if may_miss {
        let names = config.misconfigured.iter().map(|server| server.name.clone()).collect();
        options.broken = BrokenEntries::DisableOnly(names);
    }
    Ok((config, options))
}

/// Checks that the configuration is valid with other documents of its registry.
pub(super) fn check_with_registry(global: &Global, texts: RegistryTexts) -> anyhow::Result<()> {
    let options = LoadOptions {
        registry: Some(texts),
        format: global.config_format,
        inputs: global.inputs.iter().cloned().collect(),
        builtin: true,
        ..LoadOptions::from_process(files(global)?)
    };
    Config::load(&options).map(drop).map_err(remedy::in_problems)?;
    Ok(())
}

/// Loads files without questions.
pub(super) fn load_unasked(global: &Global, files: Vec<PathBuf>) -> Result<Config, ConfigError> {
    Config::load(&LoadOptions {
        broken: BrokenEntries::Disable,
        allows_missing_registry: true,
        format: global.config_format,
        inputs: global.inputs.iter().cloned().collect(),
        builtin: true,
        ..LoadOptions::from_process(files)
    })
    .map(remedy::in_warnings)
    .map_err(remedy::in_problems)
}

/// Without a file, state and log lie in the user's own folder: looking at tools writes nothing into this one.
fn in_state_home(mut config: Config) -> Config {
    let Some(folder) = state_home() else { return config };
    if config.state_dir.origin == Origin::Default {
        config.state_dir.value.clone_from(&folder);
    }
    if config.log.dir.origin == Origin::Default {
        config.log.dir.value = folder.join("logs");
    }
    config
}

/// `$XDG_STATE_HOME/haft`, or the same below `~/.local/state`. Without a home there is none.
pub(super) fn state_home() -> Option<PathBuf> {
    let folder = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
    state.map(|state| state.join("haft"))
}

/// Returns true if there is a configuration: one is named, or lies in this folder.
pub(super) fn is_named(global: &Global) -> bool {
    is_chosen(global) || DEFAULT_FILES.iter().any(|path| Path::new(path).is_file())
}

/// The file that is used because it lies in this folder and none is named, with its real path.
pub(super) fn found(global: &Global) -> Option<PathBuf> {
    if is_chosen(global) {
        return None;
    }
    let path = DEFAULT_FILES.iter().map(PathBuf::from).find(|path| path.is_file())?;
    // Only a file that is gone again has no real path.
    Some(std::fs::canonicalize(&path).unwrap_or(path))
}

/// Returns true if the user names a configuration.
fn is_chosen(global: &Global) -> bool {
    !global.config.is_empty()
        || std::env::var_os("HAFT_CONFIG").is_some_and(|paths| !paths.is_empty())
}

/// The hint for a missing tool that no configuration file was read.
pub(super) fn without_file(global: &Global) -> Option<&'static str> {
    let said = "no haft.yaml is in this folder and none is named with `-c`, so there are only the built-in tools";
    (!is_named(global)).then_some(said)
}

/// The files that are named, or lie in this folder.
pub(super) fn files(global: &Global) -> anyhow::Result<Vec<PathBuf>> {
    if !global.config.is_empty() {
        return Ok(global.config.clone());
    }
    if let Some(paths) = std::env::var_os("HAFT_CONFIG").filter(|paths| !paths.is_empty()) {
        return Ok(std::env::split_paths(&paths).collect());
    }
    let found = DEFAULT_FILES.iter().map(PathBuf::from).find(|path| path.is_file());
    found.map(|path| vec![path]).ok_or_else(|| {
        Failure::new(
            EXIT_CONFIG,
            "there is no configuration: no haft.yaml in this folder and no `-c`",
            "write one with `haft init`, or name one with `-c PATH`; any MCP client's file works too, such as \
             `-c .vscode/mcp.json`",
        )
        .into()
    })
}

/// Asks the person at the terminal.
fn ask(input: &InputRequest) -> Option<String> {
    let hint = if input.password { " (shown as you type)" } else { "" };
    let options = if input.options.is_empty() {
        String::new()
    } else {
        format!(" ({})", haft_text::printable(&input.options.join(", ")))
    };
    let default =
        input.default.as_ref().map(|default| format!(" [{}]", haft_text::printable(default)));
    let description = haft_text::printable(&input.description);
    eprint!("{description}{options}{}{hint}: ", default.unwrap_or_default());
    std::io::stderr().flush().ok()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok()?;
    let answer = answer.trim_end_matches(['\r', '\n']);
    (!answer.is_empty()).then(|| answer.to_owned())
}

pub(super) fn parse_format(word: &str) -> Result<Dialect, String> {
    Dialect::ALL.into_iter().find(|dialect| dialect.word() == word).ok_or_else(|| {
        let words: Vec<_> = Dialect::ALL.iter().map(|dialect| dialect.word()).collect();
        format!("expected one of {}", words.join(", "))
    })
}

pub(super) fn parse_pair(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(id, value)| (id.to_owned(), value.to_owned()))
        .ok_or_else(|| "expected ID=VALUE".to_owned())
}
