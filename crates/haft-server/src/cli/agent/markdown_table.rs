//! Tables of Markdown at a terminal: columns aligned, the head in bold.

use minimad::{Alignment, Composite, Line, parse_line};
use unicode_width::UnicodeWidthStr as _;

use super::markdown::{BOLD, DIM, RESET, styled_composite};

/// Columns between two cells.
const GAP: &str = "  ";

/// The table of these lines, without a newline at its end. The lines themselves if they are not a table, or one that is
/// wider than the terminal.
pub(super) fn table(lines: &[String], columns: usize) -> String {
    rendered(lines, columns).unwrap_or_else(|| lines.join("\n"))
}

fn rendered(lines: &[String], columns: usize) -> Option<String> {
    let mut parsed = lines.iter().map(|line| parse_line(line.trim()));
    let (Some(Line::TableRow(head)), Some(Line::TableRule(rule))) = (parsed.next(), parsed.next())
    else {
        return None;
    };
    let mut rows = vec![head.cells];
    for line in parsed {
        match line {
            Line::TableRow(row) => rows.push(row.cells),
            // A second rule separates rows, which need no line between them.
            Line::TableRule(_) => {}
            Line::Normal(_) | Line::HorizontalRule | Line::CodeFence(_) => return None,
        }
    }
    let count = rows.iter().map(Vec::len).max()?;
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(width).max().unwrap_or_default().max(1)
    };
    let widths: Vec<usize> = (0..count).map(width_of).collect();
    let whole: usize = widths.iter().sum::<usize>() + GAP.len() * count.saturating_sub(1);
    if whole > columns {
        return None;
    }
    let dashes: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    let rule_line = format!("{DIM}{}{RESET}", dashes.join(GAP));
    let mut out = Vec::with_capacity(rows.len() + 1);
    for (at, cells) in rows.iter().enumerate() {
        let is_head = at == 0;
        let cells: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                let alignment = rule.cells.get(column).copied().unwrap_or_default();
                padded(cells.get(column), *width, alignment, is_head)
            })
            .collect();
        out.push(cells.join(GAP).trim_end().to_owned());
        if is_head {
            out.push(rule_line.clone());
        }
    }
    Some(out.join("\n"))
}

fn width(cell: &Composite<'_>) -> usize {
    cell.compounds.iter().map(|compound| compound.src.width()).sum()
}

fn padded(
    cell: Option<&Composite<'_>>,
    columns: usize,
    alignment: Alignment,
    is_head: bool,
) -> String {
    let Some(cell) = cell else { return " ".repeat(columns) };
    let styled = styled_composite(cell);
    let styled =
        if is_head && !styled.is_empty() { format!("{BOLD}{styled}{RESET}") } else { styled };
    let room = columns.saturating_sub(width(cell));
    let before = match alignment {
        Alignment::Unspecified | Alignment::Left => 0,
        Alignment::Center => room / 2,
        Alignment::Right => room,
    };
    format!("{}{styled}{}", " ".repeat(before), " ".repeat(room - before))
}
