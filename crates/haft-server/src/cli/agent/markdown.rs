//! Markdown at a terminal, line by line: a line is shown as it is written, and styled once it is complete. The lines of
//! a table are shown together, once the table is complete.

use std::fmt::Write as _;

use haft_text::printable_block;
use minimad::{Composite, CompositeStyle, Compound, Line, parse_line};
use unicode_width::UnicodeWidthStr as _;

use super::markdown_table::table;

pub(super) const BOLD: &str = "\u{1b}[1m";
pub(super) const DIM: &str = "\u{1b}[2m";
const ITALIC: &str = "\u{1b}[3m";
const UNDERLINE: &str = "\u{1b}[4m";
const STRIKEOUT: &str = "\u{1b}[9m";
const CODE: &str = "\u{1b}[36m";
pub(super) const RESET: &str = "\u{1b}[0m";
/// To the start of the line, and empties everything from there on.
const ERASE_BELOW: &str = "\r\u{1b}[J";
/// Most lines of a table that are held back.
const TABLE_LINES_MAX: usize = 500;

/// Turns pieces of Markdown into what is written to a terminal.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    /// The line that is being written.
    line: String,
    /// Bytes of the line that are shown.
    shown: usize,
    /// The lines of a table that is not complete.
    table: Vec<String>,
    is_in_fence: bool,
}

impl Markdown {
    /// The output for the next piece, at a terminal of this width.
    pub(super) fn write(&mut self, text: &str, columns: usize) -> String {
        let mut out = String::new();
        for part in text.split_inclusive('\n') {
            let is_complete = part.ends_with('\n');
            self.line.push_str(&printable_block(part.trim_end_matches('\n')));
            if self.is_row() {
                if is_complete {
                    out.push_str(&self.hold_back(columns));
                }
                continue;
            }
            // Spaces may be the beginning of another row.
            if !is_complete && self.line.trim().is_empty() {
                continue;
            }
            out.push_str(&self.complete_table(columns));
            out.push_str(&self.line[self.shown..]);
            self.shown = self.line.len();
            if is_complete {
                out.push_str(&self.complete(columns));
                out.push('\n');
            }
        }
        out
    }

    /// Returns true if lines of a table are not shown yet.
    pub(super) fn holds_back(&self) -> bool {
        !self.table.is_empty()
    }

    /// Returns true if the line is one of a table.
    fn is_row(&self) -> bool {
        !self.is_in_fence && self.line.trim_start().starts_with('|')
    }

    /// Adds the line to the table. A table that is too long is shown in parts.
    fn hold_back(&mut self, columns: usize) -> String {
        self.table.push(std::mem::take(&mut self.line));
        self.shown = 0;
        if self.table.len() < TABLE_LINES_MAX {
            return String::new();
        }
        self.complete_table(columns)
    }

    /// The output of the table, if there is one, with its last newline.
    fn complete_table(&mut self, columns: usize) -> String {
        if self.table.is_empty() {
            return String::new();
        }
        table(&std::mem::take(&mut self.table), columns) + "\n"
    }

    /// The output that styles the last line.
    pub(super) fn end(&mut self, columns: usize) -> String {
        if self.is_row() {
            self.table.push(std::mem::take(&mut self.line));
        }
        let mut out = self.complete_table(columns);
        if self.line.is_empty() {
            // The last line has no newline.
            out.truncate(out.trim_end_matches('\n').len());
        }
        out.push_str(&self.line[self.shown..]);
        out.push_str(&self.complete(columns));
        self.is_in_fence = false;
        out
    }

    /// Replaces the shown line with the styled one, if they differ.
    fn complete(&mut self, columns: usize) -> String {
        let line = std::mem::take(&mut self.line);
        self.shown = 0;
        let styled = self.styled(&line);
        if styled == line {
            return String::new();
        }
        // The rows that the line takes; the cursor stands at its end.
        let rows = line.width().div_ceil(columns.max(1)).max(1);
        let up = if rows > 1 { format!("\u{1b}[{}A", rows - 1) } else { String::new() };
        format!("{up}{ERASE_BELOW}{styled}")
    }

    fn styled(&mut self, line: &str) -> String {
        if line.trim_start().starts_with("```") {
            self.is_in_fence = !self.is_in_fence;
            return format!("{DIM}{line}{RESET}");
        }
        if self.is_in_fence {
            return format!("{CODE}{line}{RESET}");
        }
        let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
        match parse_line(line.trim_start_matches(' ')) {
            Line::Normal(composite) => format!("{indent}{}", styled_composite(&composite)),
            Line::HorizontalRule => format!("{DIM}{}{RESET}", "─".repeat(20)),
            // Tables are styled as a whole.
            Line::TableRow(_) | Line::TableRule(_) | Line::CodeFence(_) => line.to_owned(),
        }
    }
}

pub(super) fn styled_composite(composite: &Composite<'_>) -> String {
    let inner = |outer: &str| -> String {
        composite.compounds.iter().map(|it| styled_compound(it, outer)).collect()
    };
    match composite.style {
        CompositeStyle::Paragraph => inner(""),
        CompositeStyle::Header(1) => {
            let outer = format!("{BOLD}{UNDERLINE}");
            format!("{outer}{}{RESET}", inner(&outer))
        }
        CompositeStyle::Header(_) => format!("{BOLD}{}{RESET}", inner(BOLD)),
        CompositeStyle::ListItem(_) => format!("• {}", inner("")),
        CompositeStyle::OrderedListItem { index, .. } => format!("{index}. {}", inner("")),
        CompositeStyle::Code => format!("{CODE}{}{RESET}", inner(CODE)),
        CompositeStyle::Quote => format!("{DIM}│ {}{RESET}", inner(DIM)),
    }
}

/// A part of a line. `outer` is the style that continues after it.
fn styled_compound(compound: &Compound<'_>, outer: &str) -> String {
    let Compound { src, bold, italic, code, strikeout } = compound;
    let styles = [(*bold, BOLD), (*italic, ITALIC), (*code, CODE), (*strikeout, STRIKEOUT)];
    let mut out = String::new();
    for (_, style) in styles.iter().filter(|(is_on, _)| *is_on) {
        out.push_str(style);
    }
    if out.is_empty() {
        return (*src).to_owned();
    }
    let _ = write!(out, "{src}{RESET}{outer}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&str], columns: usize) -> String {
        let mut markdown = Markdown::default();
        let mut out: String = pieces.iter().map(|it| markdown.write(it, columns)).collect();
        out.push_str(&markdown.end(columns));
        out.replace('\u{1b}', "^")
    }

    #[test]
    fn a_line_is_shown_as_it_is_written_and_styled_when_complete() {
        assert_eq!(shown(&["plain", " text\n"], 80), "plain text\n");
        assert_eq!(shown(&["a **b", "** c\n"], 80), "a **b** c\r^[Ja ^[1mb^[0m c\n");
        assert_eq!(shown(&["# Head\n"], 80), "# Head\r^[J^[1m^[4mHead^[0m\n");
        assert_eq!(shown(&["- `x`"], 80), "- `x`\r^[J• ^[36mx^[0m");
    }

    #[test]
    fn a_line_of_several_rows_is_replaced_as_a_whole() {
        assert_eq!(shown(&["**0123456789**\n"], 10), "**0123456789**^[1A\r^[J^[1m0123456789^[0m\n");
        // Two columns for each of these.
        assert_eq!(shown(&["**가나다**\n"], 10), "**가나다**\r^[J^[1m가나다^[0m\n");
    }

    #[test]
    fn code_in_fences_is_not_read_as_markdown() {
        let out = shown(&["```sh\n**x**\n```\n**y**\n"], 80);
        assert!(out.contains("^[36m**x**^[0m") && out.contains("^[1my^[0m"), "{out}");
    }

    #[test]
    fn a_table_is_shown_as_a_whole_with_aligned_columns() {
        let pieces = [
            "Prices:\n| Na",
            "me | Cost |\n|---|--:|\n",
            "| **tea** | 3 |\n| 커피 | 12 |\n",
            "Done",
        ];
        assert_eq!(
            shown(&pieces, 80),
            "Prices:\n^[1mName^[0m  ^[1mCost^[0m\n^[2m────  ────^[0m\n\
             ^[1mtea^[0m      3\n커피    12\nDone"
        );
        // At the end of the answer, and not wider than the terminal.
        assert_eq!(shown(&["| a |\n|---|\n| b |"], 80), "^[1ma^[0m\n^[2m─^[0m\nb");
        assert_eq!(shown(&["| long |\n|---|\n"], 3), "| long |\n|---|");
        // A line between bars is not a table by itself.
        assert_eq!(shown(&["| x |\nnext\n"], 80), "| x |\nnext\n");
        assert_eq!(shown(&["```\n| x |\n|---|\n```\n"], 80).matches('─').count(), 0);
    }

    #[test]
    fn escapes_of_the_model_stay_harmless() {
        assert!(!shown(&["\u{1b}[2J**x**\n"], 80).contains("^[2J"));
    }
}
