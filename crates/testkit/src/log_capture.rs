//! Captures the log of a test.

use std::fmt::{self, Debug, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span;

/// Lines logged on this thread while this lives: `LEVEL: message field=value`.
#[derive(Clone, Default)]
pub struct LogCapture(Arc<Mutex<Vec<String>>>);

impl LogCapture {
    /// Listens until the guard is dropped.
    pub fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let received = Self::default();
        let guard = tracing::subscriber::set_default(received.clone());
        (received, guard)
    }

    /// Every line so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    /// The lines of this level or a worse one.
    pub fn from(&self, level: &str) -> Vec<String> {
        let levels = ["DEBUG", "INFO", "WARNING", "ERROR"];
        let rank = |word: &str| levels.iter().position(|it| word.starts_with(it));
        self.lines().into_iter().filter(|line| rank(line) >= rank(level)).collect()
    }

    /// Number of lines that contain this string.
    pub fn count(&self, text: &str) -> usize {
        self.lines().iter().filter(|line| line.contains(text)).count()
    }
}

impl tracing::Subscriber for LogCapture {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("haft")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut parts = Parts::default();
        event.record(&mut parts);
        let level = match *event.metadata().level() {
            tracing::Level::WARN => "WARNING".to_owned(),
            level => level.to_string(),
        };
        let line = format!("{level}: {}{}", parts.message, parts.fields);
        self.0.lock().push(line);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Parts {
    message: String,
    fields: String,
}

impl Visit for Parts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let written: fmt::Result = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        written.expect("a string takes any text");
    }
}
