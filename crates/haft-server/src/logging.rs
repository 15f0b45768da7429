//! Log lines on stderr: `LEVEL: message`, or one JSON object a line.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use haft_text::{printable_block, printable_json};
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::serve::with_current_request;
use crate::stderr::AboveLast;
use crate::terminal::Paint;

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// `LEVEL: message`
    Plain,
    /// The same with the time in front
    Timed,
    /// One JSON object a line
    Json,
}

/// From which level on log lines are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// Everything
    Debug,
    /// Normal operation
    Info,
    /// Possible problems
    Warning,
    /// Problems
    Error,
}

/// True if plain lines have the time in front.
static IS_TIMED: AtomicBool = AtomicBool::new(false);

/// Puts the time in front of plain lines from now on, where no other program does.
pub(crate) fn add_times() {
    // journald has the time of each line.
    let has_times = std::env::var_os("JOURNAL_STREAM").is_some();
    IS_TIMED.store(!has_times, Ordering::Relaxed);
}

/// Sends log lines to stderr.
pub(crate) fn start(format: LogFormat, level: LogLevel, paint: Paint) {
    let filter = match level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| AboveLast)
        // The colours are ours; what colours of its own the crate has is not built in.
        .with_ansi(false)
        .fmt_fields(SpanFields)
        .event_format(Lines { format, paint });
    // Internal messages of libraries are for their authors.
    let libraries = filter.min(LevelFilter::WARN);
    let targets = Targets::new()
        .with_default(libraries)
        // It warns of every empty chunk of an answer, and its errors are reported by the callers.
        .with_target("genai", LevelFilter::OFF)
        .with_target("haft", filter);
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
}

struct Lines {
    format: LogFormat,
    paint: Paint,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut parts = Parts::default();
        event.record(&mut parts);
        for span in context.event_scope().into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                parts.add_missing(fields);
            }
        }
        with_current_request(|id| {
            parts.fields.entry("request_id").or_insert_with(|| id.into());
        });
        let level = word(*event.metadata().level());
        match self.format {
            LogFormat::Plain | LogFormat::Timed => {
                if self.format == LogFormat::Timed || IS_TIMED.load(Ordering::Relaxed) {
                    write!(writer, "{:.3} ", jiff::Timestamp::now())?;
                }
                let level = self.paint.level(level);
                write!(writer, "{level}: {}", printable_block(&parts.message))?;
                for (name, value) in &parts.fields {
                    write!(writer, " {name}={}", printable_json(&value.to_string()))?;
                }
                writeln!(writer)
            }
            LogFormat::Json => {
                let mut line = json!({
                    "timestamp": jiff::Timestamp::now().to_string(),
                    "level": level,
                    "message": parts.message,
                });
                if let Value::Object(line) = &mut line {
                    line.extend(parts.fields);
                }
                writeln!(writer, "{}", printable_json(&line.to_string()))
            }
        }
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::TRACE | Level::DEBUG => "DEBUG",
        Level::INFO => "INFO",
        Level::WARN => "WARNING",
        Level::ERROR => "ERROR",
    }
}

/// Keeps the fields of a span, such as a request's id, as JSON for the lines within it.
struct SpanFields;

impl<'writer> FormatFields<'writer> for SpanFields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut parts = Parts::default();
        fields.record(&mut parts);
        write!(writer, "{}", Value::Object(parts.fields))
    }
}

#[derive(Default)]
struct Parts {
    message: String,
    fields: Map<String, Value>,
}

impl Parts {
    /// Adds the fields of a span; the line's own stay.
    fn add_missing(&mut self, span_fields: &str) {
        // Fields that a span got later follow as objects of their own.
        let objects = serde_json::Deserializer::from_str(span_fields).into_iter();
        for (name, value) in objects.map_while(Result::<Map<String, Value>, _>::ok).flatten() {
            self.fields.entry(name).or_insert(value);
        }
    }
}

impl Visit for Parts {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => drop(self.fields.insert(name.to_owned(), value.into())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::terminal::Color;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Lines within a request carry its id, in both formats; a field of the line's own wins.
    #[test]
    fn lines_carry_the_fields_of_their_spans() {
        for (format, expected) in [
            (LogFormat::Plain, "WARNING: slow tool=\"x\" request_id=\"r-1\"\n"),
            (LogFormat::Json, "\"message\":\"slow\",\"tool\":\"x\",\"request_id\":\"r-1\"}\n"),
        ] {
            let written = Written::default();
            let writer = written.clone();
            let lines = tracing_subscriber::fmt::layer()
                .with_writer(move || writer.clone())
                .fmt_fields(SpanFields)
                .event_format(Lines { format, paint: Paint::stderr(Color::Never) });
            let subscriber = tracing_subscriber::registry().with(lines);
            tracing::subscriber::with_default(subscriber, || {
                let span = tracing::error_span!("request", request_id = "r-1", tool = "outer");
                span.in_scope(|| tracing::warn!(tool = "x", "slow"));
            });
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            assert!(text.ends_with(expected), "{text}");
        }
    }
}
