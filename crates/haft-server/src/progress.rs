//! One line on a terminal that says which servers are being waited for. Nothing elsewhere.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use haft::ServerState;
use haft::text::printable;

use crate::console;

/// Goes to the start of the line and empties it.
const ERASE: &str = "\r\u{1b}[K";

/// The line that stands on stderr. Log lines have to go around it.
static LINE: Mutex<String> = Mutex::new(String::new());

/// Who is being connected. Clones share it.
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
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.connecting.retain(|name| name != server);
        match state {
            ServerState::Connecting => {
                waiting.seen.insert(server.to_owned());
                waiting.connecting.push(server.to_owned());
            }
            ServerState::Disabled
            | ServerState::Configured
            | ServerState::Ready
            | ServerState::Degraded
            | ServerState::Unavailable
            | ServerState::Stopped => {}
        }
        if !waiting.is_over {
            show(&waiting.line());
        }
    }

    /// Takes the line away for good.
    pub(crate) fn end(&self) {
        let Some(waiting) = &self.0 else { return };
        waiting.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        show("");
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
        console::fit(&line, console::stderr_width().saturating_sub(1))
    }
}

fn show(line: &str) {
    let mut shown = LINE.lock().unwrap_or_else(PoisonError::into_inner);
    if *shown != line {
        line.clone_into(&mut shown);
        // A terminal that is gone needs no progress.
        let _ = write!(std::io::stderr().lock(), "{ERASE}{line}");
    }
}

/// Writes log lines to stderr: above the line that shows progress, if there is one.
pub(crate) struct AboveLine;

impl Write for AboveLine {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let line = LINE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stderr = std::io::stderr().lock();
        if line.is_empty() {
            return stderr.write(text);
        }
        stderr.write_all(ERASE.as_bytes())?;
        stderr.write_all(text)?;
        stderr.write_all(line.as_bytes())?;
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}
