//! Places in files, and problems at them.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::remedy::Remedy;
use haft_text::printable;

/// Most errors, and most warnings, that are kept: a hostile file has a million.
const PROBLEMS_MAX: usize = 200;

/// A place in a configuration source: a file with line and column, or an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
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
        Self { file: file.into(), line: 0, column: 0, path: String::new() }
    }

    /// The same position with a longer path, for a missing key.
    #[must_use]
    pub fn below(&self, key: &str) -> Self {
        let path =
            if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { path, ..self.clone() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.file))?;
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
    /// Its place.
    pub place: Place,
}

impl<T> At<T> {
    /// Keeps the place and changes the value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> At<U> {
        At { value: change(self.value), place: self.place }
    }
}

/// The severity of a problem: it prevents the start, or is only a warning.
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
    /// The place.
    pub place: Place,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: Remedy,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text may contain keys and values of a file, which may try to forge a line.
        write!(f, "{}: ", self.place)?;
        if !self.place.path.is_empty() {
            write!(f, "{}: ", printable(&self.place.path))?;
        }
        f.write_str(&printable(&self.problem))
    }
}

/// Collects every problem, so that one run reports them all, or as many as anyone would read.
#[derive(Debug, Clone, Default)]
pub struct Problems {
    errors: ProblemList,
    warnings: ProblemList,
    /// Places whose first error explains all others.
    silent: HashSet<Place>,
}

#[derive(Debug, Clone, Default)]
struct ProblemList {
    problems: Vec<Problem>,
    left_out: usize,
}

impl Problems {
    /// Notes an error.
    pub fn error(&mut self, place: &Place, problem: impl Into<String>, remedy: impl Into<Remedy>) {
        self.push(Severity::Error, place, problem.into(), remedy.into());
    }

    /// Notes a warning.
    pub fn warn(&mut self, place: &Place, problem: impl Into<String>, remedy: impl Into<Remedy>) {
        self.push(Severity::Warning, place, problem.into(), remedy.into());
    }

    /// Takes no further errors about a place.
    pub fn silence(&mut self, place: Place) {
        self.silent.insert(place);
    }

    /// Returns true if an error (not only a warning) was recorded.
    pub fn has_errors(&self) -> bool {
        !self.errors.problems.is_empty()
    }

    /// Returns true if further errors are only counted.
    pub fn has_many_errors(&self) -> bool {
        self.errors.problems.len() >= PROBLEMS_MAX
    }

    /// Everything noted, errors first, each group in the order of discovery.
    pub fn into_sorted(self) -> Vec<Problem> {
        let Self { errors, warnings, .. } = self;
        let mut all = errors.finish();
        all.extend(warnings.finish());
        all
    }

    fn push(&mut self, severity: Severity, place: &Place, problem: String, remedy: Remedy) {
        let list = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if severity == Severity::Error && self.silent.contains(place) {
            return;
        }
        if list.problems.len() >= PROBLEMS_MAX {
            list.left_out += 1;
            return;
        }
        list.problems.push(Problem { severity, place: place.clone(), problem, remedy });
    }
}

impl ProblemList {
    /// In the order of the files, and within a file from top to bottom.
    fn finish(self) -> Vec<Problem> {
        let Self { mut problems, left_out } = self;
        let mut files: Vec<Arc<str>> = problems.iter().map(|it| it.place.file.clone()).collect();
        files.dedup();
        let rank = |file: &Arc<str>| files.iter().position(|known| known == file);
        problems.sort_by_key(|it| (rank(&it.place.file), it.place.line, it.place.column));
        if let (1.., Some(last)) = (left_out, problems.last()) {
            let rest = Problem {
                severity: last.severity,
                place: Place::whole(last.place.file.clone()),
                problem: format!("{left_out} more like these are left out"),
                remedy: "fix those above first".into(),
            };
            problems.push(rest);
        }
        problems
    }
}
