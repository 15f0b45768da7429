//! Output for a terminal: colours only there, foreign text made safe.

use std::io::{ErrorKind, IsTerminal, Write};

use crate::stderr::say;
use clap::ValueEnum;
use haft_text::{printable, printable_block};
use terminal_size::{Height, Width};

/// Width of a terminal that does not report it.
const COLUMNS_UNKNOWN: usize = 100;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    is_on: bool,
}

impl Paint {
    pub(crate) fn stdout(color: Color) -> Self {
        Self::for_stream(color, std::io::stdout().is_terminal())
    }

    pub(crate) fn stderr(color: Color) -> Self {
        Self::for_stream(color, std::io::stderr().is_terminal())
    }

    fn for_stream(color: Color, is_terminal: bool) -> Self {
        let is_on = match color {
            Color::Auto => {
                is_terminal && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
            }
            Color::Always => true,
            Color::Never => false,
        };
        Self { is_on }
    }

    /// Returns true if there are colours.
    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    pub(crate) fn level(self, level: &str) -> String {
        match level {
            "ERROR" => self.bad(level),
            "WARNING" => self.wrap("33", level),
            "INFO" => self.good(level),
            _ => self.dim(level),
        }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Prints a line to stdout. A reader that went away (`| head`) ends the program quietly; an answer
/// that is lost in any other way does not look like success.
pub(crate) fn line(text: &str) {
    end_if_lost(writeln!(std::io::stdout().lock(), "{text}"));
}

fn end_if_lost(written: std::io::Result<()>) {
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            let message = format!("the output cannot be written: {error}");
            self::error(Paint::stderr(Color::Auto), &message, Some("make room for it"));
            std::process::exit(1);
        }
    }
}

/// Prints foreign text as the whole output: made safe for a terminal, unmodified otherwise.
pub(crate) fn whole(text: &str) {
    if std::io::stdout().is_terminal() {
        line(printable_block(text).trim_end());
    } else {
        bytes(text.as_bytes());
    }
}

/// Writes bytes to stdout, and nothing else.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    end_if_lost(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// Prints an error with its cause and what to do next.
pub(crate) fn error(paint: Paint, message: &str, remedy: Option<&str>) {
    say!("{} {}", paint.bad("error:"), printable_block(message));
    if let Some(remedy) = remedy {
        say!("  {} {}", paint.good("help:"), printable_block(remedy));
    }
}

/// Prints a warning with what to do next.
pub(crate) fn warning(paint: Paint, message: &str, remedy: &str) {
    say!("{} {}", paint.level("WARNING").to_lowercase() + ":", printable_block(message));
    say!("  {} {}", paint.good("help:"), printable_block(remedy));
}

/// A table with aligned columns; the last column is cut at the terminal's edge.
pub(crate) fn table(paint: Paint, head: &[&str], rows: &[Vec<String>]) {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| printable(cell).into_owned()).collect())
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let terminal = stdout_width();
    let row_line = |cells: &[String], paint_cell: &dyn Fn(usize, &str) -> String| {
        let mut out = String::new();
        let mut used = 0;
        for (column, cell) in cells.iter().enumerate() {
            let is_last = column + 1 == cells.len();
            let cell =
                if is_last { fit(cell, terminal.saturating_sub(used)) } else { cell.clone() };
            out.push_str(&paint_cell(column, &cell));
            if !is_last {
                let gap = widths[column].saturating_sub(cell.chars().count()) + 2;
                out.push_str(&" ".repeat(gap));
                used += widths[column] + 2;
            }
        }
        line(out.trim_end());
    };
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    row_line(&head, &|_, cell| paint.dim(cell));
    for row in &rows {
        row_line(row, &|column, cell| {
            if column == 0 { paint.bold(cell) } else { cell.to_owned() }
        });
    }
}

/// A path that is shortened in the middle, so that its file name stays.
pub(crate) fn fit_path(path: &str, chars_max: usize) -> String {
    let count = path.chars().count();
    if count <= chars_max || chars_max < 8 {
        return path.to_owned();
    }
    let name = path.rsplit('/').next().unwrap_or_default().chars().count() + 1;
    let tail = name.min(chars_max - 4);
    let head: String = path.chars().take(chars_max - 3 - tail).collect();
    let tail: String = path.chars().skip(count - tail).collect();
    format!("{head}...{tail}")
}

/// As many characters as fit; what is left out shows as dots.
pub(crate) fn fit(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max || chars_max < 4 {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max - 3).collect();
    format!("{}...", kept.trim_end())
}

/// Columns of stdout; unlimited if it is not a terminal.
pub(crate) fn stdout_width() -> usize {
    if !std::io::stdout().is_terminal() {
        return usize::MAX;
    }
    columns(terminal_size::terminal_size_of(std::io::stdout()))
}

/// Columns of the terminal of stdout.
pub(crate) fn stdout_columns() -> usize {
    columns(terminal_size::terminal_size_of(std::io::stdout()))
}

/// Columns of the terminal of stderr.
pub(crate) fn stderr_width() -> usize {
    columns(terminal_size::terminal_size_of(std::io::stderr()))
}

fn columns(size: Option<(Width, Height)>) -> usize {
    let measured = size.map(|(Width(columns), _)| usize::from(columns)).filter(|it| *it > 0);
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    measured.or_else(said).unwrap_or(COLUMNS_UNKNOWN)
}
