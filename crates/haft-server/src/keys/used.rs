//! When each key was last used: notes of running servers, for people to read.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::entry::KeyEntry;
use super::error::KeyError;
use super::file::{KeyFile, replace};
use super::key::KeyDigest;

/// The last use of keys, by their hash, so that a new key does not inherit from an old one of its name.
pub(super) type Notes = HashMap<KeyDigest, Timestamp>;

/// The recorded uses. Nothing depends on them, so unreadable lines are skipped.
pub(super) fn read(path: &Path) -> Notes {
    let text = fs::read(path).unwrap_or_default();
    let notes: Map<String, Value> = serde_json::from_slice(&text).unwrap_or_default();
    let note = |(hex, time): (&String, &Value)| {
        Some((KeyDigest::from_hex(hex)?, time.as_str()?.parse().ok()?))
    };
    notes.iter().filter_map(note).collect()
}

/// Adds to what is written down. Several servers may do so; the later time stays, and keys that are gone
/// are left out.
pub(super) fn add(file: &KeyFile, uses: &Notes, keys: &[KeyEntry]) -> Result<(), KeyError> {
    let _lock = file.lock()?;
    let path = file.used_path();
    let mut notes = read(&path);
    for (digest, time) in uses {
        let latest = notes.entry(*digest).or_insert(*time);
        *latest = (*latest).max(*time);
    }
    let kept = keys.iter().filter_map(|key| {
        notes.get(&key.digest).map(|time| (key.digest.hex(), Value::from(time.to_string())))
    });
    let text = Value::Object(kept.collect()).to_string();
    replace(&path, text.as_bytes()).map_err(|source| KeyError::Io { action: "write", path, source })
}
