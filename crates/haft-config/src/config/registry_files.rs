//! The two files of a registry as one state, also while or after a change of both was interrupted.
//!
//! A rename replaces one file at once, never two. So a change of both files is written to a journal
//! first: from then on it holds, and every reader of the files takes the journal into account. The journal
//! is removed when both files are replaced.

use haft_bounds::parse_error::describe;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::parse::FILE_BYTES_MAX;
use super::text_file::{read_file, read_plain_file};

/// The local tools of a registry.
pub const TOOLS_FILE: &str = "tools.json";
/// The servers of a registry.
pub const SERVERS_FILE: &str = "mcp.json";
/// The journal of a change of both files.
pub const JOURNAL_FILE: &str = ".haft.journal";
/// Both files, with every character escaped at worst.
const JOURNAL_BYTES_MAX: u64 = 12 * FILE_BYTES_MAX;
/// Maximum number of reads when another process replaces a file meanwhile.
const READS_MAX: usize = 10;

/// The files of a registry, each as it holds or with the reason why it cannot be read.
pub struct RegistryFiles {
    /// The text of `tools.json`.
    pub tools: Result<String, String>,
    /// The text of `mcp.json`.
    pub servers: Result<String, String>,
    /// The journal of an interrupted change.
    pub journal: Option<Journal>,
}

/// A change of both files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    version: u32,
    tools: FileChange,
    servers: FileChange,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileChange {
    /// SHA-256 of the text before.
    before: String,
    /// The text after.
    after: String,
}

impl Journal {
    const VERSION: u32 = 1;

    /// A change of `tools.json` and `mcp.json`, each with its old and new text.
    pub fn new(tools: (&str, &str), servers: (&str, &str)) -> Self {
        let change = |(before, after): (&str, &str)| FileChange {
            before: digest(before),
            after: after.to_owned(),
        };
        Self { version: Self::VERSION, tools: change(tools), servers: change(servers) }
    }

    /// The effective documents for these files: the new ones, unless a file was edited by hand
    /// since.
    pub fn settle<'a>(&'a self, tools: &'a str, servers: &'a str) -> Option<(&'a str, &'a str)> {
        let is_known = |change: &FileChange, found: &str| {
            found == change.after || digest(found) == change.before
        };
        let is_whole = is_known(&self.tools, tools) && is_known(&self.servers, servers);
        is_whole.then_some((&*self.tools.after, &*self.servers.after))
    }
}

/// Reads both files of the registry in `dir`.
pub fn read_registry(dir: &Path) -> RegistryFiles {
    let names = [TOOLS_FILE, SERVERS_FILE, JOURNAL_FILE];
    let fingerprints = || names.map(|name| Fingerprint::of(&dir.join(name)));
    let mut before = fingerprints();
    for _ in 1..READS_MAX {
        let files = read_once(dir);
        let after = fingerprints();
        if before == after {
            return files;
        }
        // Another process replaced a file between two of the reads.
        before = after;
    }
    read_once(dir)
}

fn read_once(dir: &Path) -> RegistryFiles {
    let journal = read_journal(&dir.join(JOURNAL_FILE));
    let tools = read_file(&dir.join(TOOLS_FILE));
    let servers = read_file(&dir.join(SERVERS_FILE));
    let journal = match journal {
        Ok(None) => return RegistryFiles { tools, servers, journal: None },
        Ok(Some(journal)) => journal,
        Err(problem) => {
            let problem = format!(
                "the journal `{JOURNAL_FILE}` beside it cannot be read: {problem}; remove it if both files \
                 are as they should be"
            );
            return RegistryFiles { tools: Err(problem), servers, journal: None };
        }
    };
    let (Ok(found_tools), Ok(found_servers)) = (&tools, &servers) else {
        return RegistryFiles { tools, servers, journal: Some(journal) };
    };
    match journal.settle(found_tools, found_servers) {
        None => RegistryFiles { tools, servers, journal: Some(journal) },
        Some((tools, servers)) => {
            let (tools, servers) = (Ok(tools.to_owned()), Ok(servers.to_owned()));
            RegistryFiles { tools, servers, journal: Some(journal) }
        }
    }
}

fn read_journal(path: &Path) -> Result<Option<Journal>, String> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
        Ok(_) => {}
    }
    let text = read_plain_file(path, JOURNAL_BYTES_MAX)?;
    let journal: Journal = serde_json::from_str(&text).map_err(|error| describe(&error))?;
    if journal.version != Journal::VERSION {
        return Err(format!("its version is {}, not {}", journal.version, Journal::VERSION));
    }
    Ok(Some(journal))
}

/// Metadata that changes when a file is replaced or written.
#[derive(PartialEq, Eq)]
struct Fingerprint {
    inode: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Fingerprint {
    /// Returns `None` if the file does not exist.
    fn of(path: &Path) -> Option<Self> {
        let it = fs::metadata(path).ok()?;
        Some(Self {
            inode: (it.dev(), it.ino()),
            size: it.size(),
            changed: (it.ctime(), it.ctime_nsec()),
        })
    }
}

fn digest(text: &str) -> String {
    haft_text::hex(&Sha256::digest(text))
}
