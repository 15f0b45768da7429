//! Cached embeddings by hash of their input: one file per service and model.
//!
//! Format: `HEV1`, the dimension of a vector, then hash and numbers of each entry, little endian.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::select::{Direction, Meanings};

pub(super) type TextHash = [u8; 32];

const MAGIC: &[u8; 4] = b"HEV1";
/// More than this is not kept of tools that are gone.
const TEXTS_MAX: usize = 20_000;
/// A larger file was not written by Haft.
const FILE_BYTES_MAX: u64 = 512 << 20;

pub(super) struct EmbeddingCache {
    file: PathBuf,
    directions: HashMap<TextHash, Direction>,
}

pub(super) fn hash(text: &str) -> TextHash {
    Sha256::digest(text).into()
}

/// The file of a service and its model.
pub(super) fn file(state_dir: &Path, service: &str, model: &str) -> PathBuf {
    let id = hash(&format!("{service}\n{model}"));
    let id = u64::from_be_bytes(*id.first_chunk().unwrap_or(&[0; 8]));
    state_dir.join("embeddings").join(format!("{id:016x}.bin"))
}

impl EmbeddingCache {
    /// Loads the cache of an earlier run. An unreadable cache is rebuilt.
    pub(super) async fn load(file: PathBuf) -> Self {
        let path = file.clone();
        let read = tokio::task::spawn_blocking(move || read(&path)).await;
        let directions = read.ok().flatten().and_then(|bytes| parse(&bytes)).unwrap_or_default();
        Self { file, directions }
    }

    /// Clears the cache.
    pub(super) fn forget(&mut self) {
        self.directions.clear();
    }

    pub(super) fn has(&self, hash: &TextHash) -> bool {
        self.directions.contains_key(hash)
    }

    /// Vectors of another length are of another model: those before are forgotten.
    pub(super) fn add(&mut self, new: impl IntoIterator<Item = (TextHash, Direction)>) {
        for (hash, direction) in new {
            let length = direction.numbers().len();
            if self.directions.values().next().is_some_and(|it| it.numbers().len() != length) {
                self.directions.clear();
            }
            self.directions.insert(hash, direction);
        }
    }

    /// The embeddings of tools by their inputs; `None` if one is missing.
    pub(super) fn meanings(&self, tools: &[Vec<String>]) -> Option<Meanings> {
        let tool = |texts: &Vec<String>| -> Option<Vec<Direction>> {
            texts.iter().map(|text| self.directions.get(&hash(text)).cloned()).collect()
        };
        Some(Meanings::new(tools.iter().map(tool).collect::<Option<Vec<_>>>()?))
    }

    /// Saves for the next run: a new file put in place of the old one, so a reader sees no half.
    pub(super) async fn save(
        &mut self,
        in_use: impl IntoIterator<Item = TextHash>,
    ) -> io::Result<()> {
        if self.directions.len() > TEXTS_MAX {
            let in_use: HashSet<TextHash> = in_use.into_iter().collect();
            self.directions.retain(|hash, _| in_use.contains(hash));
        }
        let (bytes, file) = (bytes(&self.directions), self.file.clone());
        let saved = tokio::task::spawn_blocking(move || {
            let dir = file.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(dir)?;
            let draft = file.with_extension(format!("bin.{}", std::process::id()));
            let mut open = std::fs::OpenOptions::new();
            open.write(true).create(true).truncate(true).mode(0o600);
            let saved = open
                .open(&draft)
                .and_then(|mut open| open.write_all(&bytes))
                .and_then(|()| std::fs::rename(&draft, &file));
            if saved.is_err() {
                // The draft is useless; the error of the save is returned.
                let _ = std::fs::remove_file(&draft);
            }
            saved
        });
        saved.await.map_err(io::Error::other)?
    }
}

/// Whatever else lies at the path is not ours to wait for.
fn read(path: &Path) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    let is_ours = metadata.is_file() && metadata.len() <= FILE_BYTES_MAX;
    if is_ours { std::fs::read(path).ok() } else { None }
}

fn bytes(directions: &HashMap<TextHash, Direction>) -> Vec<u8> {
    let length = directions.values().next().map_or(0, |it| it.numbers().len());
    let mut bytes = MAGIC.to_vec();
    bytes.extend(u32::try_from(length).unwrap_or_default().to_le_bytes());
    for (hash, direction) in directions {
        bytes.extend(hash);
        bytes.extend(direction.numbers().iter().flat_map(|number| number.to_le_bytes()));
    }
    bytes
}

fn parse(bytes: &[u8]) -> Option<HashMap<TextHash, Direction>> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let size = size_of::<TextHash>() + length.checked_mul(4)?;
    let records = rest.chunks_exact(size);
    if length == 0 || !records.remainder().is_empty() {
        return None;
    }
    let record = |record: &[u8]| {
        let (hash, numbers) = record.split_first_chunk::<32>()?;
        let (numbers, _) = numbers.as_chunks::<4>();
        let numbers: Vec<f32> = numbers.iter().map(|it| f32::from_le_bytes(*it)).collect();
        Some((*hash, Direction::new(&numbers)?))
    };
    records.map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction(numbers: &[f32]) -> Direction {
        Direction::new(numbers).unwrap()
    }

    #[test]
    fn what_is_kept_is_read_again_and_half_a_file_is_not() {
        let cache = HashMap::from([
            (hash("a"), direction(&[1.0, 0.0])),
            (hash("b"), direction(&[0.0, 1.0])),
        ]);
        let bytes = bytes(&cache);
        assert_eq!(parse(&bytes).unwrap(), cache);
        for cut in [0, 3, 7, bytes.len() - 1] {
            assert_eq!(parse(&bytes[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn another_length_is_another_model() {
        let mut cache = EmbeddingCache { file: PathBuf::new(), directions: HashMap::new() };
        cache.add([(hash("a"), direction(&[1.0, 0.0])), (hash("b"), direction(&[1.0, 0.0]))]);
        cache.add([(hash("c"), direction(&[1.0]))]);
        assert!(cache.has(&hash("c")) && !cache.has(&hash("a")));
        let texts = |text: &str| vec![vec![text.to_owned()]];
        assert!(cache.meanings(&texts("c")).is_some() && cache.meanings(&texts("a")).is_none());
    }
}
