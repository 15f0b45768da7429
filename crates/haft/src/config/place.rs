//! Where in which file something stands, and what is wrong there.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A place in a configuration source: a file with line and column, or an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file as the user named it, or `$NAME` for an environment variable.
    pub file: Arc<str>,
    /// Line, counted from 1; 0 where the source has no lines.
    pub line: u32,
    /// Column, counted from 1; 0 where the source has no columns.
    pub column: u32,
    /// The path inside the document, such as `servers.customers.mode`.
    pub path: String,
}

impl Place {
    /// The source as a whole.
    pub fn whole(file: impl Into<Arc<str>>) -> Self {
        Self {
            file: file.into(),
            line: 0,
            column: 0,
            path: String::new(),
        }
    }

    /// The same position with a longer path, for a key that is missing there.
    #[must_use]
    pub fn below(&self, key: &str) -> Self {
        let path = if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        };
        Self {
            path,
            ..self.clone()
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        Ok(())
    }
}

/// A value together with the place it was written at.
#[derive(Debug, Clone)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub place: Place,
}

impl<T> At<T> {
    /// Keeps the place and changes the value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> At<U> {
        At {
            value: change(self.value),
            place: self.place,
        }
    }
}

/// Whether a problem stops the start or is only worth a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// The configuration can be used, but not all of it has an effect.
    Warning,
}

/// One thing wrong with a configuration: place, cause, remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Error or warning.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.place.path.is_empty() {
            write!(f, "{}: ", self.place.path)?;
        }
        f.write_str(&self.problem)
    }
}

/// Collects every problem, so that one run reports them all.
#[derive(Debug, Default)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Notes an error.
    pub fn error(&mut self, place: &Place, problem: impl Into<String>, remedy: impl Into<String>) {
        self.push(Severity::Error, place, problem.into(), remedy.into());
    }

    /// Notes a warning.
    pub fn warn(&mut self, place: &Place, problem: impl Into<String>, remedy: impl Into<String>) {
        self.push(Severity::Warning, place, problem.into(), remedy.into());
    }

    /// Whether an error (not only a warning) was noted.
    pub fn has_errors(&self) -> bool {
        self.0
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    /// Everything noted, errors first, each group in the order of discovery.
    pub fn into_sorted(self) -> Vec<Problem> {
        let mut all = self.0;
        all.sort_by_key(|problem| match problem.severity {
            Severity::Error => 0,
            Severity::Warning => 1,
        });
        all
    }

    fn push(&mut self, severity: Severity, place: &Place, problem: String, remedy: String) {
        self.0.push(Problem {
            severity,
            place: place.clone(),
            problem,
            remedy,
        });
    }
}
