//! The redactors of the configuration in use. Their patterns take longer to compile than most changes take.

use haft_config::redact::Redactor;
use parking_lot::Mutex;

use crate::config::Config;

/// Redactors that are made again only if the secrets changed.
#[derive(Default)]
pub(crate) struct Redactors {
    log: Mutex<Option<(Vec<String>, Redactor)>>,
    descriptions: Mutex<Option<(Vec<String>, Redactor)>>,
}

impl Redactors {
    /// The redactor of everything that is logged.
    pub(crate) fn log(&self, config: &Config) -> Redactor {
        known(&self.log, config.secrets(), Redactor::new)
    }

    /// The redactor of descriptions.
    pub(crate) fn descriptions(&self, config: &Config) -> Redactor {
        known(&self.descriptions, config.described_secrets(), Redactor::of_known)
    }
}

fn known(
    last: &Mutex<Option<(Vec<String>, Redactor)>>,
    secrets: Vec<String>,
    make: impl FnOnce(Vec<String>) -> Redactor,
) -> Redactor {
    let mut last = last.lock();
    match &*last {
        Some((known, redactor)) if *known == secrets => redactor.clone(),
        _ => {
            let redactor = make(secrets.clone());
            *last = Some((secrets, redactor.clone()));
            redactor
        }
    }
}
