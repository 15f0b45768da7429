//! Lines on stderr, above what stands on the last line of a terminal: progress, or what a person is typing.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// Goes to the start of the line and empties it.
const ERASE: &str = "\r\u{1b}[K";

/// Lines that may wait for an editor to show them.
const WAITING_MAX: usize = 1000;

/// Content of the last line.
static LAST: Mutex<Last> = Mutex::new(Last { progress: String::new(), editor: None });

struct Last {
    progress: String,
    /// Takes lines while the user types, and shows them above.
    editor: Option<Arc<Waiting>>,
}

/// Lines that wait for an editor to show them.
#[derive(Default)]
pub(crate) struct Waiting {
    lines: Mutex<VecDeque<String>>,
    more: Condvar,
}

impl Waiting {
    /// The next line, as soon as there is one.
    pub(crate) fn next(&self) -> String {
        let mut lines = self.lines.lock();
        self.more.wait_while(&mut lines, |lines| lines.is_empty());
        lines.pop_front().unwrap_or_default()
    }

    /// Returns true if there was room.
    fn add(&self, line: &[u8]) -> bool {
        let mut lines = self.lines.lock();
        let has_room = lines.len() < WAITING_MAX;
        if has_room {
            lines.push_back(String::from_utf8_lossy(line).into_owned());
            self.more.notify_one();
        }
        has_room
    }

    fn take(&self) -> VecDeque<String> {
        std::mem::take(&mut *self.lines.lock())
    }
}

/// Shows a line that is taken back when it changes; nothing where it is empty.
pub(crate) fn show_progress(line: &str) {
    let mut last = LAST.lock();
    // The line belongs to what a person is typing.
    if last.editor.is_none() && last.progress != line {
        line.clone_into(&mut last.progress);
        // A terminal that is gone needs no progress.
        let _ = write!(std::io::stderr().lock(), "{ERASE}{line}");
    }
}

/// Hands lines to an editor for as long as the guard lives.
pub(crate) fn while_editing(editor: Arc<Waiting>) -> Editing {
    let mut last = LAST.lock();
    if !std::mem::take(&mut last.progress).is_empty() {
        // A terminal that is gone needs no progress.
        let _ = write!(std::io::stderr().lock(), "{ERASE}");
    }
    last.editor = Some(editor);
    Editing
}

/// The user is typing.
pub(crate) struct Editing;

impl Drop for Editing {
    fn drop(&mut self) {
        end_editing();
    }
}

/// Hands no more lines to an editor, and writes those that it has not shown.
pub(crate) fn end_editing() {
    let mut last = LAST.lock();
    let Some(editor) = last.editor.take() else { return };
    let mut stderr = std::io::stderr().lock();
    for line in editor.take() {
        // A terminal that is gone shows nothing.
        let _ = stderr.write_all(line.as_bytes());
    }
}

/// Prints a line to stderr. `eprintln!` panics if stderr is closed, which would lose an answer.
macro_rules! say {
    ($($text:tt)*) => { $crate::stderr::line(&format!($($text)*)) };
}
pub(crate) use say;

/// Writes a line.
pub(crate) fn line(text: &str) {
    // A closed stderr has no reader.
    let _ = writeln!(AboveLast, "{text}");
}

/// Writes whole lines to stderr, above the last line if something stands there.
pub(crate) struct AboveLast;

impl Write for AboveLast {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.write_all(text).map(|()| text.len())
    }

    fn write_all(&mut self, text: &[u8]) -> std::io::Result<()> {
        let last = LAST.lock();
        if last.editor.as_ref().is_some_and(|editor| editor.add(text)) {
            return Ok(());
        }
        let mut stderr = std::io::stderr().lock();
        if last.progress.is_empty() {
            return stderr.write_all(text);
        }
        stderr.write_all(ERASE.as_bytes())?;
        stderr.write_all(text)?;
        stderr.write_all(last.progress.as_bytes())
    }

    fn write_fmt(&mut self, text: std::fmt::Arguments<'_>) -> std::io::Result<()> {
        // Piece by piece, each would be a line of its own.
        self.write_all(text.to_string().as_bytes())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}
