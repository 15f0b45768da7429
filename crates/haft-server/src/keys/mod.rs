//! API keys: what they look like, where their hashes lie, and who holds one.

mod file;
mod key;
mod ring;
mod used;

pub use file::{KEYS_MAX, KeyEntry, KeyError, KeyFile};
pub use key::{Key, KeyDigest, Scope};
pub(crate) use ring::chain;
pub use ring::{Holder, Keyring};
pub(crate) use ring::{OWNER_MARK, PresentedKey};
