//! Why there is no token.

/// Why there is no token. No variant ever holds a token, a code or a verifier.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// An address that a server announced may not be asked.
    #[error("`{url}` may not be used for signing in: {problem}")]
    Address {
        /// The address, without user info, query and fragment.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl AuthError {
    /// What the reader can do about it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Address { .. } => Some("ask the operator of the server".into()),
        }
    }
}
