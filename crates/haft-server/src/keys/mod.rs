//! API keys: what they look like, where their hashes lie, and who holds one.

mod entry;
mod error;
mod file;
mod freshness;
mod held;
mod key;
mod ring;
mod shared;
mod shared_ring;
mod store;
mod used;

pub use entry::{KeyEntry, NewKey, PreviousSecret};
pub(crate) use entry::{patterns, texts};
pub use error::KeyError;
pub use file::{KEYS_MAX, KeyFile};
pub use held::Holder;
pub(crate) use held::OWNER_MARK;
pub use key::{Key, KeyDigest, Scope};
pub use ring::Keyring;
pub(crate) use ring::PresentedKey;
pub(crate) use ring::chain;
pub use shared::SharedKeys;
pub use store::{KeyStore, StoredKey};
