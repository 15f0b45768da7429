//! The file that callgrind writes: instructions by function, and calls between functions.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

/// The functions that allocate. A function that grows a block counts as well.
const ALLOCATING: [&str; 8] = [
    "malloc",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "mi_malloc",
    "mi_realloc_aligned",
    "mi_malloc_aligned",
];

pub(super) struct Profile {
    /// Own instructions of each function.
    pub(super) instructions: HashMap<String, u64>,
    /// Calls of functions that allocate.
    pub(super) allocations: u64,
    calls: usize,
}

impl Profile {
    /// Reads the file of `calls` calls.
    pub(super) fn read(file: &Path, calls: usize) -> Result<Self> {
        let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let profile = Self::parse(&String::from_utf8_lossy(&text), calls)?;
        ensure!(!profile.instructions.is_empty(), "{} has no instructions", file.display());
        Ok(profile)
    }

    #[allow(clippy::cast_precision_loss, reason = "counts are far below the limit")]
    pub(super) fn per_call(&self, count: u64) -> f64 {
        count as f64 / self.calls as f64
    }

    fn parse(text: &str, calls: usize) -> Result<Self> {
        let mut names = HashMap::new();
        let (mut function, mut callee) = (String::new(), String::new());
        let mut profile = Self { instructions: HashMap::new(), allocations: 0, calls };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(name) = line.strip_prefix("fn=") {
                function = resolve(name, &mut names)?;
            } else if let Some(name) = line.strip_prefix("cfn=") {
                callee = resolve(name, &mut names)?;
            } else if let Some(calls) = line.strip_prefix("calls=") {
                let calls = calls.split(' ').next().unwrap_or_default();
                if ALLOCATING.contains(&plain(&callee)) && !ALLOCATING.contains(&plain(&function)) {
                    profile.allocations += calls.parse::<u64>()?;
                }
                // The next line has the instructions of the callee.
                lines.next();
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            {
                let count = line.split(' ').nth(1).context("a line without a count")?;
                *profile.instructions.entry(function.clone()).or_default() +=
                    count.parse::<u64>()?;
            }
        }
        Ok(profile)
    }
}

/// A name as it is written once, `(3) name`, and then as `(3)`.
fn resolve(name: &str, names: &mut HashMap<String, String>) -> Result<String> {
    let (id, rest) = name.split_once(')').context("a function without a number")?;
    if !rest.is_empty() {
        names.insert(id.to_owned(), rest.trim().to_owned());
    }
    Ok(names.get(id).context("a function without a name")?.clone())
}

/// A name without the mark of a recursive call.
fn plain(name: &str) -> &str {
    name.split('\'').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_instructions_and_allocations_are_counted() {
        let text = "events: Ir\nfl=(1) a.rs\nfn=(1) one\n10 5\n+1 7\ncfn=(2) malloc\ncalls=3 0\n12 900\n\
                    * 1\n\nfn=(2)\n0 300\ncfn=(3) realloc\ncalls=2 0\n0 50\n\nfn=(1)\n11 2\n";
        let profile = Profile::parse(text, 1).unwrap();
        assert_eq!(profile.instructions["one"], 15);
        assert_eq!(profile.instructions["malloc"], 300);
        assert_eq!(profile.allocations, 3);
    }
}
