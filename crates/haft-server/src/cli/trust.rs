//! Trust in a configuration that Haft finds in the current folder.
//!
//! A folder may be untrusted, and its configuration starts programs. So the user sees them and agrees once; Haft asks
//! again when they change. A file that is named with `-c` or `HAFT_CONFIG` is the user's own choice and needs no
//! question.

mod starts;
mod store;

use std::ffi::OsStr;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use haft::Config;
use haft::config::{Accept, LoadOptions};

use self::starts::Starts;
use self::store::TrustStore;
use super::{EXIT_CONFIG, Failure, Global, load};
use crate::stderr::say;
use crate::terminal::Paint;

/// For scripts: every configuration is trusted.
const VARIABLE: &str = "HAFT_TRUST";

/// A configuration whose commands may be started. Only this module makes one, so that no command
/// starts a toolbox without asking.
#[derive(Debug)]
pub(super) struct Trusted(Config);

impl Trusted {
    /// Returns the configuration if its commands may be started. Asks at a terminal.
    pub(super) fn require(global: &Global, config: Config) -> anyhow::Result<Self> {
        let Some(starts) = untrusted(global, &config) else { return Ok(Self(config)) };
        let is_agreed = if global.trust {
            true
        } else if can_ask(global) {
            ask(global, &starts)
        } else {
            return Err(refusal(&starts).into());
        };
        if !is_agreed {
            let message = format!("{} is not trusted; nothing was started", starts.file());
            return Err(Failure::new(EXIT_CONFIG, message, HOW_TO_LOOK).into());
        }
        remember(&starts);
        Ok(Self(config))
    }

    pub(super) fn config(&self) -> &Config {
        &self.0
    }

    /// For settings of the command line. Commands are not to be added here.
    pub(super) fn config_mut(&mut self) -> &mut Config {
        &mut self.0
    }

    pub(super) fn into_config(self) -> Config {
        self.0
    }
}

/// Checks the files again when they change while the toolbox runs, where no person can be asked.
pub(super) fn guard(global: &Global, options: LoadOptions<'static>) -> LoadOptions<'static> {
    let Some(file) = asked_about(global) else { return options };
    let accept: Arc<Accept> = Arc::new(move |config| {
        let starts = Starts::of(&file, config);
        if starts.is_empty() || TrustStore::from_process().knows(&starts.digest()) {
            return Ok(());
        }
        let Failure { message, remedy, .. } = refusal(&starts);
        Err((message, remedy.unwrap_or_default()))
    });
    LoadOptions { accept: Some(accept), ..options }
}

/// Trusts a configuration that Haft itself wrote.
pub(super) fn trust_own(global: &Global, config: &Config) {
    if let Some(starts) = untrusted(global, config) {
        remember(&starts);
    }
}

/// Returns true if the programs of a configuration may be started without a question.
pub(super) fn is_trusted(global: &Global, config: &Config) -> bool {
    untrusted(global, config).is_none()
}

/// The programs that need the user's consent, if any.
fn untrusted(global: &Global, config: &Config) -> Option<Starts> {
    let starts = Starts::of(&asked_about(global)?, config);
    let is_known = starts.is_empty() || TrustStore::from_process().knows(&starts.digest());
    (!is_known).then_some(starts)
}

/// The file in the current folder, unless the user chose to trust any.
fn asked_about(global: &Global) -> Option<PathBuf> {
    if std::env::var_os(VARIABLE).as_deref() == Some(OsStr::new("1")) {
        return None;
    }
    load::found(global)
}

fn remember(starts: &Starts) {
    if let Err(error) = TrustStore::from_process().remember(starts) {
        tracing::warn!("Haft will ask again, because the answer cannot be kept: {error}");
    }
}

fn can_ask(global: &Global) -> bool {
    !global.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows the commands and asks. Anything but yes is no.
fn ask(global: &Global, starts: &Starts) -> bool {
    let paint = Paint::stderr(global.color);
    say!("{} starts these programs:", paint.bold(&starts.file()));
    for line in starts.lines() {
        say!("  {line}");
    }
    eprint!("Trust it? Haft asks again when they change. [y/N] ");
    let mut answer = String::new();
    let is_read =
        std::io::stderr().flush().is_ok() && std::io::stdin().lock().read_line(&mut answer).is_ok();
    is_read && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

const HOW_TO_LOOK: &str = "`haft config show` shows everything in it";

fn refusal(starts: &Starts) -> Failure {
    const SHOWN_MAX: usize = 3;
    let lines = starts.lines();
    let mut shown = lines[..lines.len().min(SHOWN_MAX)].join("; ");
    if lines.len() > SHOWN_MAX {
        shown = format!("{shown}; and {} more", lines.len() - SHOWN_MAX);
    }
    let message = format!("{} starts programs and is not trusted yet: {shown}", starts.file());
    let remedy = "run `haft tools list` there at a terminal, which asks once, or add `--trust`; in scripts \
                  set HAFT_TRUST=1, or name the file with `-c`";
    Failure::new(EXIT_CONFIG, message, remedy)
}
