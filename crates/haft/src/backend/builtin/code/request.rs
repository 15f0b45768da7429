//! Requests to run code, with files that must stay inside the folder.

use haft_bounds::parse_error::describe;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::backend::work_folder::WorkFolder;
use crate::error::ToolFailure;

/// Maximum number of files.
pub const FILES_MAX: usize = 100;
const NAME_CHARS_MAX: usize = 255;
const TIMEOUT_SECS_MAX: u32 = 24 * 60 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    Python,
    Shell,
}

impl Language {
    /// The file that holds the code.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Python => "main.py",
            Self::Shell => "main.sh",
        }
    }
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) language: Language,
    code: String,
    files: Vec<(PathBuf, String)>,
    pub(super) timeout: Option<Duration>,
}

/// The arguments as deserialized.
#[derive(Deserialize)]
struct Written {
    language: Language,
    code: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    timeout: Option<f64>,
}

impl Request {
    pub(super) fn read(arguments: &str) -> Result<Self, ToolFailure> {
        let Written { language, code, files, timeout } =
            serde_json::from_str(arguments).map_err(|error| {
                ToolFailure::execution(format!("the arguments: {}", describe(&error)))
            })?;
        let files = files
            .into_iter()
            .map(|(name, text)| Ok((inside(&name).map_err(|why| refused(&name, why))?, text)))
            .collect::<Result<Vec<_>, ToolFailure>>()?;
        if files.iter().any(|(name, _)| name == Path::new(language.file())) {
            return Err(refused(language.file(), "the code itself is written there"));
        }
        let timeout = match timeout.map(Duration::try_from_secs_f64) {
            None => None,
            Some(Ok(timeout)) if !timeout.is_zero() => Some(timeout),
            Some(_) => return Err(ToolFailure::execution("`timeout` is no number of seconds")),
        };
        Ok(Self { language, code, files, timeout })
    }

    pub(super) fn write_into(&self, folder: &WorkFolder) -> Result<(), ToolFailure> {
        let (code, files) = ((Path::new(self.language.file()), &self.code), &self.files);
        let files = files.iter().map(|(name, text)| (name.as_path(), text));
        for (name, text) in std::iter::once(code).chain(files) {
            folder.write(name, text).map_err(|error| unwritable(name, &error))?;
        }
        Ok(())
    }

    /// The files that existed before the code ran.
    pub(super) fn names(&self) -> Vec<&Path> {
        let files = self.files.iter().map(|(name, _)| name.as_path());
        std::iter::once(Path::new(self.language.file())).chain(files).collect()
    }
}

/// The name as a path that cannot leave the folder. The folder is new and Haft creates everything
/// in it, so there are no links to follow.
fn inside(name: &str) -> Result<PathBuf, &'static str> {
    if name.contains('\0') {
        return Err("it holds a NUL");
    }
    let mut path = PathBuf::new();
    for component in Path::new(name).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir => return Err("it leads out of the working directory"),
            Component::RootDir | Component::Prefix(_) => return Err("it is not relative"),
        }
    }
    if path.as_os_str().is_empty() || name.ends_with('/') {
        return Err("it names no file");
    }
    Ok(path)
}

fn refused(name: &str, why: &str) -> ToolFailure {
    ToolFailure::Execution {
        message: format!("`{name}` cannot be written for the code: {why}"),
        remedy: Some("give each of `files` a relative name of its own, such as `data.csv`".into()),
        details: json!({ "file": name }),
    }
}

fn unwritable(name: &Path, error: &io::Error) -> ToolFailure {
    let name = name.to_string_lossy();
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            refused(&name, "another of the files is in its place")
        }
        _ => ToolFailure::Unavailable {
            message: format!("`{name}` could not be written for the code: {error}"),
            remedy: Some("make room in the directory for temporary files (`TMPDIR`)".into()),
            details: json!({ "file": name }),
        },
    }
}

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "language": {
                "type": "string",
                "enum": ["python", "shell"],
                "description": "What the code is written in: Python 3, or shell (bash where there is one, else sh).",
            },
            "code": {
                "type": "string",
                "minLength": 1,
                "description": "The whole program. It prints its results.",
            },
            "files": {
                "type": "object",
                "description": "Text files that the code finds in its working directory, by relative name, such as \
                                {\"data.csv\": \"a,b\\n1,2\\n\"}.",
                "additionalProperties": {"type": "string"},
                "propertyNames": {"minLength": 1, "maxLength": NAME_CHARS_MAX},
                "maxProperties": FILES_MAX,
            },
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": TIMEOUT_SECS_MAX,
                "description": "Stop the code after so many seconds, where that is less than the tool's own limit.",
            },
        },
        "required": ["language", "code"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        for (name, path) in
            [("a", "a"), ("./a", "a"), ("a/./b//c", "a/b/c"), (" ", " "), ("..a", "..a")]
        {
            assert_eq!(inside(name).unwrap(), PathBuf::from(path), "{name}");
        }
        for name in ["", ".", "/", "/etc/passwd", "..", "../a", "a/../../b", "a/..", "a\0b", "a/"] {
            assert!(inside(name).is_err(), "{name:?}");
        }
    }
}
