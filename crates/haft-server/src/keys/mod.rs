//! API keys: what they look like, where their hashes lie, and who holds one.

mod entry;
mod file;
mod key;
mod ring;
mod used;

pub use entry::{KeyEntry, NewKey, PreviousSecret};
pub(crate) use entry::{patterns, texts};
pub use file::{KEYS_MAX, KeyError, KeyFile};
pub use key::{Key, KeyDigest, Scope};
pub(crate) use ring::chain;
pub use ring::{Holder, Keyring};
pub(crate) use ring::{OWNER_MARK, PresentedKey};
