//! Prints a turn: the answer as it is written, and on stderr calls and their results.

use std::io::{IsTerminal as _, Write};

use haft_agent::AgentEvent;
use haft_text::{printable, printable_block};
use parking_lot::Mutex;

use super::markdown::Markdown;
use super::spinner::Spinner;
use crate::stderr;
use crate::terminal::{self, Paint};

/// Largest part of arguments and answers that is shown.
const SHOWN_CHARS: usize = 160;

/// Prints a turn while it runs.
pub(in crate::cli) struct Printer {
    paint: Paint,
    /// True if the answer is printed as it is written.
    is_live: bool,
    /// True if something stands on the line that the cursor is in.
    is_mid_line: Mutex<bool>,
    /// Styles the answer, at a terminal with colours.
    markdown: Option<Mutex<Markdown>>,
    spinner: Spinner,
}

impl Printer {
    /// `out` is the paint of the answer, and `paint` that of everything beside it.
    pub(in crate::cli) fn new(out: Paint, paint: Paint, is_live: bool) -> Self {
        let is_styled = is_live && out.is_on() && std::io::stdout().is_terminal();
        let markdown = is_styled.then(Mutex::default);
        let spinner = Spinner::on_stderr();
        Self { paint, is_live, is_mid_line: Mutex::default(), markdown, spinner }
    }

    pub(in crate::cli) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Prints an event, if it has output.
    pub(in crate::cli) fn note(&self, event: &AgentEvent) {
        match event {
            AgentEvent::Text { text } if self.is_live => {
                self.spinner.stop();
                self.write(text);
            }
            AgentEvent::Text { .. } | AgentEvent::Reasoning { .. } => {}
            event => {
                self.spinner.stop();
                self.end_line();
                self.trace(event);
                self.wait_for(event);
            }
        }
    }

    /// Shows what the turn waits for after an event.
    fn wait_for(&self, event: &AgentEvent) {
        match event {
            AgentEvent::TurnStarted { .. }
            | AgentEvent::StepStarted { .. }
            | AgentEvent::ToolCompleted { .. }
            | AgentEvent::Restarted { .. } => self.spinner.start("waiting for the model"),
            AgentEvent::ToolStarted { tool, .. } | AgentEvent::ToolProgress { tool, .. } => {
                self.spinner.start(tool);
            }
            AgentEvent::Text { .. }
            | AgentEvent::Reasoning { .. }
            | AgentEvent::TextCompleted { .. }
            | AgentEvent::Warning { .. }
            | AgentEvent::TurnCompleted { .. }
            | AgentEvent::TurnFailed { .. }
            | _ => {}
        }
    }

    /// Ends the line that the answer stands on.
    pub(in crate::cli) fn end_line(&self) {
        let mut is_mid_line = self.is_mid_line.lock();
        if std::mem::take(&mut *is_mid_line) {
            let rest = self.markdown.as_ref().map(|it| it.lock().end(terminal::stdout_columns()));
            terminal::line(&rest.unwrap_or_default());
        }
    }

    fn write(&self, text: &str) {
        let mut is_mid_line = self.is_mid_line.lock();
        *is_mid_line = !text.ends_with('\n');
        let shown = match &self.markdown {
            Some(markdown) => {
                let mut markdown = markdown.lock();
                let shown = markdown.write(text, terminal::stdout_columns());
                *is_mid_line |= markdown.holds_back();
                shown.into()
            }
            None => printable_block(text),
        };
        let mut stdout = std::io::stdout().lock();
        // A terminal that is gone ends the program by itself.
        let _ = stdout.write_all(shown.as_bytes()).and_then(|()| stdout.flush());
    }

    /// Output beside the answer.
    fn trace(&self, event: &AgentEvent) {
        match event {
            AgentEvent::ToolStarted { tool, arguments, .. } => {
                self.line(&format!("-> {} {}", printable(tool), brief(arguments)));
            }
            AgentEvent::ToolProgress { tool, progress, total, message, .. } => {
                let total = total.map(|total| format!(" of {total}")).unwrap_or_default();
                let message = message.as_deref().map(brief).unwrap_or_default();
                self.line(&format!("  {} {progress}{total} {message}", printable(tool)));
            }
            AgentEvent::ToolCompleted { is_error: true, tool, text, execution_id, .. } => {
                let id = execution_id.as_deref().map(|id| format!(" (execution {id})"));
                stderr::line(&format!(
                    "{} {}: {}{}",
                    self.paint.bad("!"),
                    printable(tool),
                    brief(text),
                    self.paint.dim(&id.unwrap_or_default())
                ));
            }
            AgentEvent::ToolCompleted { tool, text, duration_ms, .. } => {
                self.line(&format!("<- {}, {duration_ms} ms: {}", printable(tool), brief(text)));
            }
            AgentEvent::Restarted { reason } => {
                self.line(&format!("[{}]", printable(reason)));
            }
            AgentEvent::Warning { message } => {
                let level = self.paint.level("WARNING").to_lowercase();
                stderr::line(&format!("{level}: {}", printable(message)));
            }
            // The others print nothing here.
            _ => {}
        }
    }

    fn line(&self, text: &str) {
        stderr::line(&self.paint.dim(text));
    }
}

/// The beginning of a string, on one line.
fn brief(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    terminal::fit(&printable(&line), SHOWN_CHARS)
}
