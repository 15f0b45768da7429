//! What a person types, line by line. One thread owns the terminal: a read that has begun cannot be taken back,
//! so a line that nobody waits for any more goes to whoever asks next.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use tokio::sync::oneshot;

/// How many lines are remembered.
const HISTORY_MAX: usize = 1000;

/// What came of asking for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Said {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    Closed,
}

/// The terminal's lines. Clones share it.
#[derive(Clone)]
pub(in crate::cli) struct Lines(Sender<Request>);

struct Request {
    prompt: String,
    answer: oneshot::Sender<Said>,
}

impl Lines {
    /// Reads from the terminal, with editing; `history` keeps what was typed.
    pub(in crate::cli) fn open(history: Option<PathBuf>) -> Self {
        let (send, requests) = channel();
        std::thread::spawn(move || serve(&requests, history.as_deref()));
        Self(send)
    }

    /// The next line.
    pub(in crate::cli) async fn read(&self, prompt: &str) -> Said {
        let (answer, line) = oneshot::channel();
        let request = Request { prompt: prompt.to_owned(), answer };
        if self.0.send(request).is_err() {
            return Said::Closed;
        }
        line.await.unwrap_or(Said::Closed)
    }
}

fn serve(requests: &Receiver<Request>, history: Option<&Path>) {
    let config =
        Config::builder().max_history_size(HISTORY_MAX).map(rustyline::config::Builder::build);
    let editor = config.and_then(Editor::<(), FileHistory>::with_config);
    let Ok(mut editor) = editor else { return };
    if let Some(file) = history {
        // The first time there is none.
        let _ = editor.load_history(file);
    }
    let mut left: Option<Said> = None;
    for Request { prompt, answer } in requests {
        if answer.is_closed() {
            continue;
        }
        let said = left.take().unwrap_or_else(|| read(&mut editor, &prompt));
        if let (Said::Line(line), Some(file)) = (&said, history) {
            // What was typed is of use beyond this program, and no more than that.
            let _ = editor.add_history_entry(line).and_then(|_| editor.save_history(file));
        }
        if let Err(unheard) = answer.send(said) {
            left = Some(unheard).filter(|said| *said != Said::Interrupted);
        }
    }
}

fn read(editor: &mut Editor<(), FileHistory>, prompt: &str) -> Said {
    match editor.readline(prompt) {
        Ok(line) => Said::Line(line),
        Err(ReadlineError::Interrupted) => Said::Interrupted,
        Err(_) => Said::Closed,
    }
}
