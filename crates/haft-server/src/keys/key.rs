//! The text of a key, and what it permits.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft::config::rules::KeyScope;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Random bytes of a key.
const RANDOM_BYTES: usize = 32;
/// The same in base64url characters.
const RANDOM_CHARS: usize = 43;
/// Hexadecimal digits of a hash that distinguish keys.
const SHORT_CHARS: usize = 16;

/// The permissions of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Everything: registering tools, changing the configuration, and everything a call key may do
    Admin,
    /// Reading and calling tools, and approving calls
    Approve,
    /// Reading and calling tools
    Call,
    /// Reading `/metrics` and the health of the service, nothing else
    Metrics,
}

impl Scope {
    /// Its name in files, keys and messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Approve => "approve",
            Self::Call => "call",
            Self::Metrics => "metrics",
        }
    }

    /// The scope of a name.
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Admin, Self::Approve, Self::Call, Self::Metrics];
        all.into_iter().find(|scope| scope.word() == word)
    }
}

impl From<Scope> for KeyScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Admin => Self::Admin,
            Scope::Approve => Self::Approve,
            // A metrics key calls nothing, so no rule meets it.
            Scope::Call | Scope::Metrics => Self::Call,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

/// A key as its holder has it. Haft keeps only its hash, so this exists when it is made and shown once.
pub struct Key(String);

impl Key {
    /// A new one: `haft_`, its scope and `_`, then 256 random bits.
    pub fn random(scope: Scope) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("haft_{scope}_{}", URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// The text, to be shown once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash that the file holds.
    pub fn digest(&self) -> KeyDigest {
        KeyDigest(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(***)")
    }
}

/// The SHA-256 of a key. Enough to recognise one and of no use to make one: with 256 random bits there is
/// nothing to guess, so no slow hash is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub(super) [u8; 32]);

impl KeyDigest {
    /// The hash of a presented key. `None`: it does not have the form of a key, so that a short or guessable string
    /// is refused even if its hash got into the file.
    pub(super) fn of_presented(text: &str) -> Option<Self> {
        let prefixes = ["haft_admin_", "haft_approve_", "haft_call_", "haft_metrics_"];
        let random = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))?;
        let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_key = random.len() == RANDOM_CHARS && random.bytes().all(is_base64url);
        is_key.then(|| Self(Sha256::digest(text.as_bytes()).into()))
    }

    /// Reads 64 hexadecimal digits.
    pub(super) fn from_hex(hex: &str) -> Option<Self> {
        let is_hex = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex {
            return None;
        }
        let mut bytes = [0; 32];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * place..2 * place + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// A prefix that distinguishes keys.
    pub(super) fn short(self) -> String {
        let mut hex = self.hex();
        hex.truncate(SHORT_CHARS);
        hex
    }

    /// 64 hexadecimal digits.
    pub(super) fn hex(self) -> String {
        haft_text::hex(&self.0)
    }
}
