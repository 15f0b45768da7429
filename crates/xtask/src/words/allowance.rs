//! Violations that a crate may still have while its comments are being rewritten.
//!
//! Each number in `words-allowance.txt` may only go down. The file disappears with the last violation.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::run::root;

const FILE: &str = "crates/xtask/words-allowance.txt";

/// Violations of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) words: usize,
    pub(super) openings: usize,
    pub(super) duplicates: usize,
}

/// Permitted violations by crate.
#[derive(Debug, Default)]
pub(super) struct Allowances(BTreeMap<String, Counts>);

impl Allowances {
    /// A missing file allows nothing.
    pub(super) fn read() -> Result<Self> {
        let path = root().join(FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(path).with_context(|| format!("cannot read `{FILE}`"))?;
        Self::parse(&text)
    }

    /// Lines of `crate words openings duplicates`; `#` starts a comment.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut allowances = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut fields = line.split_whitespace();
            let name = fields.next().unwrap_or_default();
            let numbers: Vec<usize> = fields
                .map(str::parse)
                .collect::<Result<_, _>>()
                .with_context(|| format!("invalid number in `{FILE}`: `{line}`"))?;
            let [words, openings, duplicates] = numbers[..] else {
                bail!("`{FILE}` needs three numbers per crate: `{line}`");
            };
            allowances.insert(name.to_owned(), Counts { words, openings, duplicates });
        }
        Ok(Self(allowances))
    }

    pub(super) fn of(&self, name: &str) -> Counts {
        self.0.get(name).cloned().unwrap_or_default()
    }
}
