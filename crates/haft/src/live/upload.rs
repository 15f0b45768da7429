//! Scripts that a registration brings along in `config.source`. They are kept in `uploads` of the registry's
//! folder under a name of their content, so that a refused change leaves the script in use untouched.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::edit::RegistryEditError;
use crate::config::model::LocalProgram;
use crate::config::{Config, ConfigError, Place, Problem, Severity};
use haft_config::Remedy;
use haft_text::name::hash;

/// The folder of uploaded scripts, in the registry's folder.
const FOLDER: &str = "uploads";
/// Maximum size of a script.
const SCRIPT_BYTES_MAX: usize = 1024 * 1024;
const HASH_CHARS: usize = 16;
/// The keys of an entry that hold its input schema.
const SCHEMA_KEYS: [&str; 3] = ["input_schema", "inputs", "parameters"];
/// Lets Haft read the schema from the script's function.
const SIGNATURE: &str = "signature";

/// A script on its way into the registry's folder.
#[derive(Debug, Clone)]
pub(super) struct UploadedScript {
    pub(super) tool: String,
    /// Relative to the registry's folder.
    path: String,
    text: String,
}

#[derive(Deserialize)]
struct Probe {
    #[serde(default)]
    config: Option<ProbeConfig>,
}

#[derive(Deserialize)]
struct ProbeConfig {
    #[serde(default)]
    source: Option<serde::de::IgnoredAny>,
}

/// Takes the script out of an entry, which names its path then. An entry without one stays unmodified: if
/// there is a `source` that is overlooked here, the loader refuses it as an unknown key.
pub(super) fn split(
    tool: &str,
    entry: Box<RawValue>,
) -> Result<(Box<RawValue>, Option<UploadedScript>), RegistryEditError> {
    let has_source = serde_json::from_str::<Probe>(entry.get())
        .is_ok_and(|probe| probe.config.is_some_and(|config| config.source.is_some()));
    if !has_source {
        return Ok((entry, None));
    }
    let unreadable = || invalid(tool, "the entry cannot be read", "send a JSON object");
    let mut fields: Map<String, Value> =
        serde_json::from_str(entry.get()).map_err(|_| unreadable())?;
    let Some(Value::Object(config)) = fields.get_mut("config") else { return Err(unreadable()) };
    let Some(Value::String(text)) = config.shift_remove("source") else {
        return Err(invalid(tool, "`source` is not a string", "send the script's text"));
    };
    if text.len() > SCRIPT_BYTES_MAX {
        let problem = format!("`source` has {} bytes, more than {SCRIPT_BYTES_MAX}", text.len());
        return Err(invalid(tool, problem, "put the script into the registry's folder"));
    }
    if config.contains_key("script_path") || config.contains_key("command") {
        let problem = "`source` stands beside `script_path` or `command`";
        return Err(invalid(
            tool,
            problem,
            "send one of them: Haft names an uploaded script itself",
        ));
    }
    if config.get("runtime").is_some_and(|runtime| runtime != "python") {
        let problem = "only Python scripts can be uploaded";
        return Err(invalid(tool, problem, "leave `runtime` out, or send `python`"));
    }
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if !tool.chars().all(is_plain) {
        return Err(invalid(
            tool,
            "the name has other characters",
            "use letters, digits, `_`, `-`",
        ));
    }
    let path = format!("{FOLDER}/{tool}-{}.py", hash(&text, HASH_CHARS));
    config.insert("script_path".to_owned(), path.clone().into());
    if !SCHEMA_KEYS.iter().any(|key| fields.contains_key(*key)) {
        fields.insert("input_schema".to_owned(), SIGNATURE.into());
    }
    let entry = to_raw_value(&fields).map_err(|_| unreadable())?;
    Ok((entry, Some(UploadedScript { tool: tool.to_owned(), path, text })))
}

/// The refusal of an entry.
pub(super) fn invalid(
    tool: &str,
    problem: impl Into<String>,
    remedy: impl Into<Remedy>,
) -> RegistryEditError {
    let place = Place::whole("tools.json").below(tool);
    invalid_at(place, problem, remedy)
}

pub(super) fn invalid_at(
    place: Place,
    problem: impl Into<String>,
    remedy: impl Into<Remedy>,
) -> RegistryEditError {
    let (problem, remedy) = (problem.into(), remedy.into());
    let problem = Problem { severity: Severity::Error, place, problem, remedy };
    RegistryEditError::Invalid(ConfigError { problems: vec![problem] })
}

/// Scripts that were written for a change. Dropped before the change is durable, they are removed.
#[derive(Default)]
pub(super) struct WrittenScripts(Vec<PathBuf>);

impl WrittenScripts {
    pub(super) fn write(dir: &Path, scripts: &[UploadedScript]) -> io::Result<Self> {
        let mut written = Self::default();
        if scripts.is_empty() {
            return Ok(written);
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir.join(FOLDER))?;
        for script in scripts {
            let path = dir.join(&script.path);
            // The name is a hash of the content, so an existing file is this script.
            if fs::read_to_string(&path).is_ok_and(|text| text == script.text) {
                continue;
            }
            // A link there could lead anywhere: it is removed, not followed.
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
            written.0.push(path);
            file.write_all(script.text.as_bytes())?;
            file.sync_all()?;
        }
        Ok(written)
    }

    /// The change is durable.
    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for WrittenScripts {
    fn drop(&mut self) {
        for path in &self.0 {
            // A leftover is harmless: no entry names it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the uploaded scripts that only the old configuration uses.
pub(super) fn remove_unused(dir: &Path, old: &Config, new: &Config) {
    let used = uploads(new);
    for path in uploads(old).into_iter().filter(|path| !used.contains(path)) {
        // A leftover is harmless: no entry names it.
        let _ = fs::remove_file(dir.join(path));
    }
}

fn uploads(config: &Config) -> Vec<&str> {
    let scripts = config.local.iter().filter_map(|tool| match &tool.program {
        LocalProgram::Python { script_path, .. } => Some(script_path.as_str()),
        LocalProgram::Command { .. } => None,
    });
    scripts.filter(|path| path.starts_with(&format!("{FOLDER}/"))).collect()
}
