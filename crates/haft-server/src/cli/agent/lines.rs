//! Lines that a person types. One thread owns the terminal: a read that has begun cannot be cancelled, so a line
//! without a reader goes to the next one.

use std::collections::VecDeque;
use std::fs::DirBuilder;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::completion::{Complete, Completion};
use haft_text::printable;
use rustix::io::ioctl_fionread;
use rustix::process::{getpid, kill_process};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use rustyline::error::{ReadlineError, Signal};
use rustyline::history::FileHistory;
use rustyline::{Behavior, Config, Editor, ExternalPrinter as _};
use tokio::sync::oneshot;

use crate::stderr::{self, Waiting, say};

/// Lines in the history.
const HISTORY_MAX: usize = 1000;

/// Largest number of lines that were typed ahead, and their largest length, as terminals limit them.
const AHEAD_MAX: usize = 100;
const LINE_BYTES_MAX: usize = 4096;

/// Time for an editor that is left in the middle of a line to show pending output.
const SHOWING_MAX: Duration = Duration::from_millis(20);

/// Ends what the editor asks of terminals while a line is read, and the line itself.
const PASTE_OFF: &[u8] = b"\x1b[?2004l\n";

/// The result of reading a line.
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
pub(in crate::cli) struct Lines {
    requests: Sender<Request>,
    _mode: Arc<Mode>,
}

struct Request {
    prompt: String,
    meant: Meant,
    answer: oneshot::Sender<Said>,
}

/// The purpose of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meant {
    /// Free input. It goes into the history, and may be typed ahead.
    Prompt,
    /// The answer to a question, which cannot be typed before the question is shown.
    Question,
    /// To answer the rest of the same question.
    SameQuestion,
}

impl Lines {
    /// Reads from the terminal, with editing; `history` keeps what was typed.
    pub(in crate::cli) fn open(history: Option<PathBuf>) -> Self {
        Self::open_completing(history, None)
    }

    /// The same; Tab completes what is typed at a prompt.
    pub(in crate::cli) fn open_completing(
        history: Option<PathBuf>,
        complete: Option<Box<Complete>>,
    ) -> Self {
        let (send, requests) = channel();
        let mode = Mode::of_now();
        let is_reading = Arc::clone(&mode.is_reading);
        std::thread::spawn(move || serve(&requests, history.as_deref(), complete, &is_reading));
        Self { requests: send, _mode: Arc::new(mode) }
    }

    /// The next line, which is remembered.
    pub(in crate::cli) async fn read(&self, prompt: &str) -> Said {
        self.request(prompt, Meant::Prompt).await
    }

    /// The answer to a question that is shown now. It may be a secret, and is of no use a second time.
    pub(in crate::cli) async fn ask(&self, prompt: &str) -> Said {
        self.request(prompt, Meant::Question).await
    }

    /// Reads a further line of the same answer; it may be typed ahead or pasted.
    pub(in crate::cli) async fn ask_more(&self, prompt: &str) -> Said {
        self.request(prompt, Meant::SameQuestion).await
    }

    async fn request(&self, prompt: &str, meant: Meant) -> Said {
        let (answer, line) = oneshot::channel();
        let request = Request { prompt: prompt.to_owned(), meant, answer };
        if self.requests.send(request).is_err() {
            return Said::Closed;
        }
        line.await.unwrap_or(Said::Closed)
    }
}

/// The terminal's mode before the first read. A program that a signal ends in the middle of a line restores it:
/// otherwise the following shell would not echo.
struct Mode {
    before: Option<Termios>,
    is_reading: Arc<AtomicBool>,
}

impl Mode {
    fn of_now() -> Self {
        Self { before: tcgetattr(std::io::stdin()).ok(), is_reading: Arc::default() }
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        if let Some(before) = &self.before
            && self.is_reading.load(Ordering::SeqCst)
        {
            // What the editor was handed it shows at once.
            std::thread::sleep(SHOWING_MAX);
            // A terminal that is gone needs neither.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
            let _ = std::io::stderr().write_all(PASTE_OFF);
            stderr::end_editing();
        }
    }
}

fn serve(
    requests: &Receiver<Request>,
    history: Option<&Path>,
    complete: Option<Box<Complete>>,
    is_reading: &AtomicBool,
) {
    // Where the answer goes into a file, the question does not.
    let is_terminal = std::io::stdin().is_terminal();
    let is_answer_elsewhere = is_terminal && !std::io::stdout().is_terminal();
    let behavior = if is_answer_elsewhere { Behavior::PreferTerm } else { Behavior::Stdio };
    let config = Config::builder()
        .behavior(behavior)
        .completion_type(rustyline::CompletionType::List)
        .max_history_size(HISTORY_MAX);
    let config = config.map(rustyline::config::Builder::build);
    let editor = config.and_then(Editor::<Completion, FileHistory>::with_config);
    let Ok(mut editor) = editor else { return };
    editor.set_helper(complete.map(Completion::new));
    if let Some(file) = history {
        if let Some(folder) = file.parent() {
            // What is typed first comes before the conversation makes its folder. Without one nothing is remembered,
            // and that is all.
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        }
        // The first time there is none.
        let _ = editor.load_history(file);
    }
    let above = above(&mut editor);
    let mut left: Option<Said> = None;
    let mut ahead = VecDeque::new();
    for Request { prompt, meant, answer } in requests {
        if answer.is_closed() {
            continue;
        }
        let kept = match meant {
            Meant::Prompt => {
                if left.is_none() && ahead.is_empty() && is_terminal {
                    typed_ahead(&mut ahead);
                }
                left.take().or_else(|| ahead.pop_front().map(Said::Line))
            }
            Meant::Question => {
                left = None;
                typed_ahead(&mut ahead);
                // The reader notices a closed terminal.
                let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
                None
            }
            Meant::SameQuestion => None,
        };
        if let Some(Said::Line(line)) = &kept {
            say!("{prompt}{}", printable(line));
        }
        let said = kept.unwrap_or_else(|| {
            is_reading.store(true, Ordering::SeqCst);
            if let Some(completion) = editor.helper_mut() {
                // An answer to a question is not a command.
                completion.set_active(meant == Meant::Prompt);
            }
            let _editing = above.clone().map(stderr::while_editing);
            let said = read(&mut editor, &prompt);
            is_reading.store(false, Ordering::SeqCst);
            said
        });
        if let (Said::Line(line), Meant::Prompt, Some(file)) = (&said, meant, history) {
            // What was typed is of use beyond this program, and no more than that.
            let _ = editor.add_history_entry(line).and_then(|_| editor.save_history(file));
        }
        match answer.send(said) {
            // While a line is read, Ctrl-C is a key. Without a reader it is meant for the running work.
            Err(Said::Interrupted) => {
                let _ = kill_process(getpid(), rustix::process::Signal::INT);
            }
            Err(unheard) => left = Some(unheard),
            Ok(()) => {}
        }
    }
}

/// The printer that shows lines above the edited one; none without a terminal. A thread passes them on: the editor
/// takes one only while it reads, and no other task shall wait for that.
fn above(editor: &mut Editor<Completion, FileHistory>) -> Option<Arc<Waiting>> {
    // Where stderr goes elsewhere, so do its lines.
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let mut printer = editor.create_external_printer().ok()?;
    let waiting = Arc::<Waiting>::default();
    let lines = Arc::clone(&waiting);
    // Ends with a terminal that is gone, or with the program.
    std::thread::spawn(move || while printer.print(lines.next()).is_ok() {});
    Some(waiting)
}

/// Collects the complete lines that were typed without a reader, for the next prompts. They never answer a question
/// that is shown later, least of all an approval. The editor gets none of them: it drops input beyond its own line.
fn typed_ahead(ahead: &mut VecDeque<String>) {
    let stdin = std::io::stdin();
    // Between lines the terminal hands over whole ones, and counts no others: the read does not wait.
    while ahead.len() < AHEAD_MAX && ioctl_fionread(&stdin).is_ok_and(|count| count > 0) {
        let mut line = [0; LINE_BYTES_MAX];
        let Ok(length @ 1..) = rustix::io::read(&stdin, &mut line) else { break };
        let text = String::from_utf8_lossy(&line[..length]);
        // Input right after a line still has the second character of its line end.
        ahead.extend(text.split_terminator(['\n', '\r']).map(ToOwned::to_owned));
    }
}

fn read(editor: &mut Editor<Completion, FileHistory>, prompt: &str) -> Said {
    match editor.readline(prompt) {
        Ok(line) => Said::Line(line),
        Err(ReadlineError::Interrupted | ReadlineError::Signal(Signal::Interrupt)) => {
            Said::Interrupted
        }
        Err(_) => Said::Closed,
    }
}
