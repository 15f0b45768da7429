//! The execution log after the run: how often each honest call is in it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use super::honest::MARK;

/// The entries of the log.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Number of occurrences of each marker.
    pub(super) markers: HashMap<String, u32>,
    /// All entries, hostile ones too.
    pub(super) count: u64,
    pub(super) bytes: u64,
}

pub(super) fn bytes(folder: &Path) -> u64 {
    files(folder).iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// Reads every file line by line: with large arguments in it, a log does not fit into memory.
pub(super) fn read(folder: &Path) -> Entries {
    let mut entries = Entries { bytes: bytes(folder), ..Entries::default() };
    for path in files(folder) {
        let mut file = BufReader::new(File::open(path).expect("a file of the log"));
        let mut line = Vec::new();
        while file.read_until(b'\n', &mut line).expect("a line of the log") > 0 {
            entries.count += 1;
            if let Some(marker) = input_marker(&line) {
                *entries.markers.entry(marker).or_default() += 1;
            }
            line.clear();
        }
    }
    entries
}

/// The first marker of a line: of the input, which precedes the answer. Hostile entries have none.
fn input_marker(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(&line[..line.len().min(8192)]).ok()?;
    let at = text.find(MARK)?;
    let end = text[at..].find('"')?;
    Some(text[at..at + end].to_owned())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    entries.map(|entry| entry.path()).filter(is_log).collect()
}
