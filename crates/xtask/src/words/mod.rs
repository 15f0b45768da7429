//! The language check: comments, documentation and messages use the terms of the field.
//!
//! Each crate keeps three limits. Listed words stay below 2 per 1,000 comment lines, no doc comment opens with
//! an indirect question ("What", "Who", "Whether", "How"), and no public type name is defined twice. Comments
//! count everywhere, string literals only in `src`, where they can reach a user. Prose in Markdown and
//! configuration files counts as a crate of its own.

mod allowance;
mod list;
mod source;
mod types;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run::{root, shown_path};
use allowance::{Allowances, Counts};
use source::Source;

/// Listed words per 1,000 comment lines must stay below this number.
const WORDS_PER_1000_LINES: usize = 2;

/// The check's own sources name the words that they reject.
const OWN_FOLDER: &str = "crates/xtask/src/words";

/// Folders and files outside `crates` whose prose is checked.
const PROSE: [&str; 7] = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs",
    "examples",
    "deploy",
    "fuzz/fuzz_targets",
];

/// Folders of generated files, recorded data and the diary of measurements.
const UNCHECKED: [&str; 4] = ["target", "research", "data", "corpus"];

/// Fails if a crate exceeds a limit, and prints each violation with its line.
pub(crate) fn check() -> Result<()> {
    eprintln!("\n==> language of comments, documentation and messages");
    let allowances = Allowances::read()?;
    let mut failures = Vec::new();
    for section in sections()? {
        let report = section.check()?;
        let allowed = allowances.of(&section.name);
        eprintln!("    {}", report.summary(&section.name));
        failures.extend(report.failures(&section.name, &allowed));
    }
    if failures.is_empty() {
        return Ok(());
    }
    bail!("the language check failed:\n\n{}", failures.join("\n"))
}

/// The files that share one set of limits.
struct Section {
    name: String,
    files: Vec<PathBuf>,
}

fn sections() -> Result<Vec<Section>> {
    let mut folders: Vec<PathBuf> = fs::read_dir(root().join("crates"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    folders.sort();
    let mut sections = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        sections.push(Section { name, files: files_below(&folder)? });
    }
    let mut files = Vec::new();
    for path in PROSE.map(|it| root().join(it)) {
        files.extend(files_below(&path)?);
    }
    sections.push(Section { name: "prose".into(), files });
    Ok(sections)
}

/// The checked files at and below `path`. A missing path has none.
fn files_below(path: &Path) -> Result<Vec<PathBuf>> {
    let is_unchecked = path.file_name().is_some_and(|name| UNCHECKED.iter().any(|it| name == *it));
    if is_unchecked || path == root().join(OWN_FOLDER) {
        return Ok(Vec::new());
    }
    if !path.is_dir() {
        let is_checked = path.exists() && Source::is_checked(path);
        return Ok(if is_checked { vec![path.to_path_buf()] } else { Vec::new() });
    }
    let mut entries: Vec<PathBuf> =
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        files.extend(files_below(&entry)?);
    }
    Ok(files)
}

impl Section {
    fn check(&self) -> Result<Report> {
        let mut report = Report::default();
        let mut types = types::PublicTypes::default();
        for file in &self.files {
            let text = fs::read_to_string(file)
                .with_context(|| format!("cannot read `{}`", file.display()))?;
            let shown = shown_path(file);
            let source = Source::read(file, &text);
            report.comment_lines += source.comment_lines;
            for passage in &source.passages {
                for (lines_before, word) in list::find(&passage.text) {
                    let line = passage.line + lines_before;
                    report.words.push(format!("{shown}:{line}: `{word}`"));
                }
            }
            for (line, opening) in &source.openings {
                report.openings.push(format!("{shown}:{line}: doc comment opens with `{opening}`"));
            }
            if source.is_library_code {
                types.add(file, &shown, &text)?;
            }
        }
        report.duplicates = types.duplicates();
        Ok(report)
    }
}

/// The violations of one section, each with its place.
#[derive(Debug, Default)]
struct Report {
    comment_lines: usize,
    words: Vec<String>,
    openings: Vec<String>,
    duplicates: Vec<String>,
}

impl Report {
    fn counts(&self) -> Counts {
        Counts {
            words: self.words.len(),
            openings: self.openings.len(),
            duplicates: self.duplicates.len(),
        }
    }

    fn summary(&self, name: &str) -> String {
        let Counts { words, openings, duplicates } = self.counts();
        let lines = self.comment_lines;
        format!(
            "{name}: {words} words in {lines} lines, {openings} openings, {duplicates} duplicates"
        )
    }

    /// One paragraph per limit that is exceeded.
    fn failures(&self, name: &str, allowed: &Counts) -> Vec<String> {
        let permitted_words = (self.comment_lines * WORDS_PER_1000_LINES).div_ceil(1000).max(1) - 1;
        let limits = [
            ("listed words", &self.words, permitted_words.max(allowed.words)),
            ("indirect questions", &self.openings, allowed.openings),
            ("types defined twice", &self.duplicates, allowed.duplicates),
        ];
        let exceeded = limits.into_iter().filter(|(_, found, limit)| found.len() > *limit);
        exceeded
            .map(|(kind, found, limit)| {
                let count = found.len();
                format!("{name}: {count} {kind}, at most {limit}\n    {}\n", found.join("\n    "))
            })
            .collect()
    }
}
