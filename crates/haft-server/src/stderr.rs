//! Lines on stderr, above what stands on the last line of a terminal: progress, or what a person is typing.

use std::io::Write;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

/// Goes to the start of the line and empties it.
const ERASE: &str = "\r\u{1b}[K";

/// What stands on the last line.
static LAST: Mutex<Last> = Mutex::new(Last { progress: String::new(), editor: None });

struct Last {
    progress: String,
    /// Takes lines while somebody types, and shows them above.
    editor: Option<Sender<String>>,
}

/// Shows a line that is taken back when it changes; nothing where it is empty.
pub(crate) fn show_progress(line: &str) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.progress != line {
        line.clone_into(&mut last.progress);
        // A terminal that is gone needs no progress.
        let _ = write!(std::io::stderr().lock(), "{ERASE}{line}");
    }
}

/// Hands lines to an editor for as long as the guard lives.
pub(crate) fn while_editing(editor: Sender<String>) -> Editing {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).editor = Some(editor);
    Editing
}

/// Somebody types.
pub(crate) struct Editing;

impl Drop for Editing {
    fn drop(&mut self) {
        LAST.lock().unwrap_or_else(PoisonError::into_inner).editor = None;
    }
}

/// Prints a line to stderr as `eprintln!` does, which panics where stderr is gone: nobody loses an answer because of that.
macro_rules! say {
    ($($text:tt)*) => { $crate::stderr::line(&format!($($text)*)) };
}
pub(crate) use say;

/// Writes a line.
pub(crate) fn line(text: &str) {
    // Whoever closed stderr wants to know nothing.
    let _ = writeln!(AboveLast, "{text}");
}

/// Writes whole lines to stderr, above the last line if something stands there.
pub(crate) struct AboveLast;

impl Write for AboveLast {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.write_all(text).map(|()| text.len())
    }

    fn write_all(&mut self, text: &[u8]) -> std::io::Result<()> {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(editor) = &last.editor
            && editor.send(String::from_utf8_lossy(text).into_owned()).is_ok()
        {
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
