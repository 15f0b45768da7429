//! What the agent waits for, and for how long: one line on a terminal that is taken back.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_text::printable;
use parking_lot::{Condvar, Mutex};

use crate::stderr::show_progress;
use crate::terminal;

/// A wait that is shorter is not shown.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
const FRAME: Duration = Duration::from_millis(200);
const FRAMES: [&str; 4] = ["|", "/", "-", "\\"];

/// The line. Nothing is shown where stderr is not a terminal that can take a line back.
pub(super) struct Spinner(Option<Arc<Shared>>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    work: Option<(String, Instant)>,
    is_over: bool,
}

impl Spinner {
    pub(super) fn on_stderr() -> Self {
        let can_erase = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        if !std::io::stderr().is_terminal() || !can_erase {
            return Self(None);
        }
        let shared = Arc::<Shared>::default();
        let drawing = Arc::clone(&shared);
        // Ends when the spinner is dropped.
        std::thread::spawn(move || drawing.draw());
        Self(Some(shared))
    }

    /// Shows the line for this work, with the time since now.
    pub(super) fn start(&self, work: &str) {
        self.set(Some((printable(work).into_owned(), Instant::now())));
    }

    /// Takes the line away.
    pub(super) fn stop(&self) {
        self.set(None);
    }

    fn set(&self, work: Option<(String, Instant)>) {
        let Some(shared) = &self.0 else { return };
        let mut state = shared.state.lock();
        state.work = work;
        // Under the lock, so that no frame is drawn afterwards.
        show_progress("");
        shared.changed.notify_one();
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.stop();
        if let Some(shared) = &self.0 {
            shared.state.lock().is_over = true;
            shared.changed.notify_one();
        }
    }
}

impl Shared {
    fn draw(&self) {
        let mut state = self.state.lock();
        let mut frames = FRAMES.iter().cycle();
        while !state.is_over {
            if let Some((work, since)) = &state.work
                && since.elapsed() >= SHOWN_AFTER
            {
                let frame = frames.next().copied().unwrap_or_default();
                let line = format!("{frame} {work}, {} s", since.elapsed().as_secs());
                // A line that reaches the edge would become two, and only one is taken back.
                show_progress(&terminal::fit(&line, terminal::stderr_width().saturating_sub(1)));
            }
            // Without work a frame's pause is as good as any.
            self.changed.wait_for(&mut state, FRAME);
        }
    }
}
