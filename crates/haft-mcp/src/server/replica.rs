//! One of several replicas of a service, and the keys that all of them share. A client may send each request to another
//! replica, so what it carries from one request to the next is signed and names the replica that owns its state.

use std::fmt;
use std::num::NonZeroU16;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// As much as the hash takes in at once.
const KEY_BYTES_MAX: usize = 64;
const KEY_BYTES_MIN: usize = 32;
pub(super) const TAG_BYTES: usize = 32;

/// One of several replicas of a service.
#[derive(Debug, Clone)]
pub struct Replica {
    /// Its number, which no other live replica has.
    pub number: NonZeroU16,
    /// The keys of all replicas.
    pub keys: SigningKeys,
    /// The name of the endpoint, the same on every replica. Sessions of one endpoint are unknown at another.
    pub endpoint: Arc<str>,
}

/// Keys that sign and verify. The newest signs, all verify.
#[derive(Clone)]
pub struct SigningKeys {
    newest: Arc<Key>,
    older: Arc<[Key]>,
}

type Key = [u8; KEY_BYTES_MAX];

/// Why keys cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeysError {
    /// There is none.
    #[error("a signing key is missing")]
    Missing,
    /// One is too short to be safe, or too long.
    #[error("a signing key has {0} bytes, not 32 to 64")]
    Length(usize),
}

impl SigningKeys {
    /// Takes the keys of 32 to 64 bytes, the newest first.
    pub fn new<K: AsRef<[u8]>>(
        newest_first: impl IntoIterator<Item = K>,
    ) -> Result<Self, SigningKeysError> {
        let padded = |key: K| {
            let key = key.as_ref();
            if !(KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&key.len()) {
                return Err(SigningKeysError::Length(key.len()));
            }
            // HMAC fills up a shorter key with zeros itself.
            let mut padded = [0; KEY_BYTES_MAX];
            padded[..key.len()].copy_from_slice(key);
            Ok(padded)
        };
        let mut keys = newest_first.into_iter().map(padded);
        let newest = keys.next().ok_or(SigningKeysError::Missing)??;
        Ok(Self { newest: Arc::new(newest), older: keys.collect::<Result<_, _>>()? })
    }

    /// A new key that lives as long as the program.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut key = [0; KEY_BYTES_MAX];
        getrandom::fill(&mut key)?;
        Ok(Self { newest: Arc::new(key), older: Arc::new([]) })
    }

    /// Signs `parts`. `purpose` keeps a signature from being good for anything else.
    pub(super) fn sign(&self, purpose: &str, parts: &[&[u8]]) -> [u8; TAG_BYTES] {
        mac(&self.newest, purpose, parts).finalize().into_bytes().into()
    }

    /// Returns true if one of the keys signed the same parts for the same purpose.
    pub(super) fn is_signed(&self, purpose: &str, parts: &[&[u8]], tag: &[u8]) -> bool {
        let mut keys = std::iter::once(&*self.newest).chain(self.older.iter());
        keys.any(|key| mac(key, purpose, parts).verify_slice(tag).is_ok())
    }
}

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKeys({})", 1 + self.older.len())
    }
}

/// Each part goes in with its length, so that no two lists of parts look the same.
fn mac(key: &Key, purpose: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new(key.into());
    for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_key_signs_and_all_verify() {
        let (old, new) = ([1; 32], [2; 64]);
        let before = SigningKeys::new([old]).unwrap();
        let after = SigningKeys::new([&new[..], &old[..]]).unwrap();
        let tag = before.sign("a", &[b"x", b"y"]);
        assert!(after.is_signed("a", &[b"x", b"y"], &tag));
        assert!(!before.is_signed("a", &[b"x", b"y"], &after.sign("a", &[b"x", b"y"])));
        for (purpose, parts) in [("b", [&b"x"[..], b"y"]), ("a", [b"xy", b""])] {
            assert!(!after.is_signed(purpose, &parts, &tag));
        }
        assert!(!after.is_signed("a", &[b"x", b"y"], &tag[..31]));
    }

    #[test]
    fn keys_that_are_not_safe_are_refused() {
        let none: [[u8; 32]; 0] = [];
        assert_eq!(SigningKeys::new(none).unwrap_err(), SigningKeysError::Missing);
        let short = SigningKeys::new([vec![1; 64], vec![1; 31]]).unwrap_err();
        assert_eq!(short, SigningKeysError::Length(31));
        assert_eq!(format!("{:?}", SigningKeys::new([[7; 32]]).unwrap()), "SigningKeys(1)");
    }
}
