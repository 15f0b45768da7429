//! The audit log: what admins did. One line before an action, on disk before it begins, and one after it.

mod file;
mod query;

use std::io;
use std::path::PathBuf;

use haft::config::Config;
use haft::record::Redactor;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use file::AuditFiles;
pub(crate) use query::{AuditFilter, AuditPage};

/// Largest size of `before` and `after` together. Larger ones are left out.
const VALUE_BYTES_MAX: usize = 256 * 1024;

/// The audit log of a configuration, in the folder `audit` of the execution log.
#[derive(Debug)]
pub struct AuditLog {
    files: AuditFiles,
}

/// An action that is about to begin.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditAction {
    /// The caller: `key:` and the key's name, `cli:` and the user, `local` or `signal`.
    pub(crate) who: String,
    /// The address it came from, or `terminal`.
    pub(crate) from: String,
    /// The action, such as `key.create`.
    pub(crate) action: String,
    /// The name of the changed item, if it is known before.
    pub(crate) target: Option<String>,
    /// The item before the change.
    pub(crate) before: Option<Value>,
}

/// The end of an action.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditResult {
    pub(crate) outcome: AuditOutcome,
    /// The name of the changed item.
    pub(crate) target: Option<String>,
    /// The item after the change.
    pub(crate) after: Option<Value>,
    /// The HTTP status of the answer.
    pub(crate) status: Option<u16>,
}

/// The outcome of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditOutcome {
    /// It began, and its end is not recorded: it is running, or Haft ended first.
    #[default]
    Started,
    /// It was done.
    Done,
    /// It was refused or failed, and changed nothing.
    Failed,
}

/// An action of the log. Lines have the same form; the second line of an action has what the first lacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Identifies the action.
    pub id: String,
    /// The time of its beginning, RFC 3339.
    pub at: String,
    /// The caller.
    #[serde(default)]
    pub who: String,
    /// The address it came from.
    #[serde(default)]
    pub from: String,
    /// The action.
    #[serde(default)]
    pub action: String,
    /// The name of the changed item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The item before, secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The item after, secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// Its outcome.
    pub outcome: AuditOutcome,
    /// The HTTP status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

impl AuditLog {
    /// The log of a configuration. Creates nothing.
    pub fn of(config: &Config) -> Self {
        let dir = config.log.dir.value.join("audit");
        Self { files: AuditFiles::new(dir, config.log.retain_days.value) }
    }

    /// A log in this folder, which keeps everything.
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { files: AuditFiles::new(dir, u32::MAX) }
    }

    /// The folder of its files.
    pub fn dir(&self) -> &PathBuf {
        self.files.dir()
    }

    /// Writes that an action begins and returns its id. Unless this succeeds, the action must not begin. Waits for the
    /// disk.
    pub(crate) fn begin(&self, action: AuditAction, redactor: &Redactor) -> io::Result<String> {
        let AuditAction { who, from, action, target, before } = action;
        let now = Timestamp::now();
        let entry = AuditEntry {
            id: Uuid::now_v7().to_string(),
            at: now.to_string(),
            who,
            from,
            action,
            target,
            before: before.map(|before| masked(&before, redactor)),
            after: None,
            outcome: AuditOutcome::Started,
            status: None,
        };
        self.files.append(&entry, now)?;
        Ok(entry.id)
    }

    /// Writes how an action ended. Waits for the disk.
    pub(crate) fn end(&self, id: &str, result: AuditResult, redactor: &Redactor) -> io::Result<()> {
        let AuditResult { outcome, target, after, status } = result;
        let now = Timestamp::now();
        let entry = AuditEntry {
            id: id.to_owned(),
            at: now.to_string(),
            who: String::new(),
            from: String::new(),
            action: String::new(),
            target,
            before: None,
            after: after.map(|after| masked(&after, redactor)),
            outcome,
            status,
        };
        self.files.append(&entry, now)
    }
}

/// Stands for the state of an item that cannot be read.
pub(crate) fn unreadable(problem: impl std::fmt::Display) -> Value {
    serde_json::json!({ "unreadable": problem.to_string() })
}

/// A value without secrets.
fn masked(value: &Value, redactor: &Redactor) -> Value {
    let text = value.to_string();
    if text.len() > VALUE_BYTES_MAX {
        return Value::from(format!("left out: {} bytes", text.len()));
    }
    serde_json::from_str(&redactor.json(&text)).unwrap_or_else(|_| Value::from("left out"))
}
