//! Errors of keys.

use std::io;
use std::path::PathBuf;

use super::entry::NAME_CHARS_MAX;
use super::file::KEYS_MAX;

/// Reasons why keys cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file, its folder or its lock cannot be used.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not what `haft keys` writes.
    #[error("`{}` is not a valid file of keys: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// Others than the owner may write the file.
    #[error("`{}` may be written by others than its owner", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// A name that no key may have.
    #[error("`{name}` is not a valid key name")]
    Name {
        /// The name.
        name: String,
    },
    /// Parts of a new key that do not fit together.
    #[error("{problem}")]
    Parts {
        /// The problem.
        problem: String,
    },
    /// The name is taken.
    #[error("there is a key named `{name}` already")]
    Taken {
        /// The name.
        name: String,
    },
    /// No key has this name.
    #[error("no key is named `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// One that is nearly the same.
        nearest: Option<String>,
    },
    /// There are as many keys as there may be.
    #[error("there are {KEYS_MAX} keys already")]
    TooMany,
    /// The shared database cannot be used. Nothing was changed.
    #[error("the keys cannot be used now: {problem}")]
    Unavailable {
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// The connection to the shared database broke, so the change may be there or not.
    #[error("it is not known whether the key was changed: {cause}")]
    OutcomeUnknown {
        /// The cause.
        cause: String,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

impl KeyError {
    /// The error for a name that none of `names` is.
    pub(super) fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Self {
        let nearest = haft_text::nearest(name, names).map(str::to_owned);
        Self::Unknown { name: name.to_owned(), nearest }
    }

    /// The next step for the caller.
    pub fn remedy(&self) -> String {
        match self {
            Self::Io { path, .. } => {
                format!("make sure that `{}` can be read and written", path.display())
            }
            Self::Invalid { path, .. } => format!(
                "fix `{0}`, or delete it and create the keys again with `haft keys create`",
                path.display()
            ),
            Self::Exposed { path } => format!("run `chmod 600 {}`", path.display()),
            Self::Name { .. } => format!(
                "use 1 to {NAME_CHARS_MAX} of the characters A-Z a-z 0-9 . _ - and begin with a \
                 letter or digit"
            ),
            Self::Parts { .. } => "leave out one of the options".to_owned(),
            Self::Taken { .. } => {
                "choose another name; both keys work until you revoke one".to_owned()
            }
            Self::Unknown { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
            Self::Unknown { nearest: None, .. } => "`haft keys list` shows every key".to_owned(),
            Self::TooMany => "revoke some with `haft keys revoke NAME`".to_owned(),
            Self::Unavailable { remedy, .. } => remedy.clone(),
            Self::OutcomeUnknown { .. } => {
                "list the keys, then repeat the change if it is not there".to_owned()
            }
            Self::Random(_) => "try again".to_owned(),
        }
    }
}
