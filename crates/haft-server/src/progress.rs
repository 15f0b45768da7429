//! A progress line on a terminal with the servers that are still connecting. Prints nothing if stderr is redirected.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::Arc;

use haft::ServerState;
use haft_text::printable;
use parking_lot::Mutex;

use crate::stderr::show_progress;
use crate::terminal;

/// The servers that are connecting. Clones share it.
#[derive(Clone)]
pub(crate) struct Progress(Option<Arc<Mutex<Waiting>>>);

#[derive(Default)]
struct Waiting {
    seen: BTreeSet<String>,
    connecting: Vec<String>,
    is_over: bool,
}

impl Progress {
    /// Shows itself where stderr is a terminal that can take a line back.
    pub(crate) fn on_stderr() -> Self {
        let can_erase = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self((std::io::stderr().is_terminal() && can_erase).then(Arc::default))
    }

    /// A server is in another state now.
    pub(crate) fn note(&self, server: &str, state: ServerState) {
        let Some(waiting) = &self.0 else { return };
        let mut waiting = waiting.lock();
        waiting.connecting.retain(|name| name != server);
        match state {
            ServerState::Connecting => {
                waiting.seen.insert(server.to_owned());
                waiting.connecting.push(server.to_owned());
            }
            ServerState::Misconfigured
            | ServerState::Disabled
            | ServerState::Configured
            | ServerState::Ready
            | ServerState::Degraded
            | ServerState::Unavailable
            | ServerState::Stopped => {}
        }
        if !waiting.is_over {
            show_progress(&waiting.line());
        }
    }

    /// Takes the line away for good.
    pub(crate) fn end(&self) {
        let Some(waiting) = &self.0 else { return };
        waiting.lock().is_over = true;
        show_progress("");
    }
}

impl Waiting {
    fn line(&self) -> String {
        if self.connecting.is_empty() {
            return String::new();
        }
        let names = self.connecting.join(", ");
        let (left, all) = (self.connecting.len(), self.seen.len());
        let line = format!("connecting {left} of {all}: {}", printable(&names));
        // A line that reaches the edge would become two, and only one is taken back.
        terminal::fit(&line, terminal::stderr_width().saturating_sub(1))
    }
}
