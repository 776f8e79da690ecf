//! Tables on a terminal: aligned, at most as wide as the terminal, readable without colour.

use std::fmt::Write;

use anstream::adapter::strip_str;
use anstyle::Style;
use bimetal_core::part::real::whole;
pub use bimetal_study::listing::broken;
use bimetal_study::listing::{Line, Sheet, chars};
use comfy_table::{CellAlignment, ContentArrangement, Table};

/// Minimum width of output.
const WIDTH_MIN: usize = 60;
/// Maximum width of output; longer lines are hard to read.
const WIDTH_MAX: usize = 100;

/// Columns available for a line: the environment variable `COLUMNS`, or the width of the terminal.
pub fn width() -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    asked.or_else(terminal).unwrap_or(WIDTH_MAX).clamp(WIDTH_MIN, WIDTH_MAX)
}

/// Emphasised text. No text has no style, so that blanks before it are recognised as the end of a line.
pub fn bold(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let style = Style::new().bold();
    format!("{style}{text}{style:#}")
}

/// Text wrapped at [`width`] columns, each line indented.
pub fn indented(text: &str, indent: usize) -> String {
    let pad = " ".repeat(indent);
    broken(text, width() - indent).into_iter().map(|line| format!("{pad}{line}\n")).collect()
}

/// A remark under a heading, wrapped at [`width`] columns; continuation lines are indented further.
pub fn remark(text: &str) -> String {
    let lines = broken(text, width() - 4);
    lines.iter().enumerate().map(|(at, line)| format!("{}{line}\n", if at == 0 { "  " } else { "    " })).collect()
}

/// Rows in groups, in their natural width.
pub fn sheet(sheet: &Sheet) -> String {
    let line = |line: Line| match line {
        Line::Head(text) | Line::Title(text) => bold_words(&text),
        Line::Row(text) => text,
    };
    sheet.lines().into_iter().map(|each| line(each) + "\n").collect()
}

/// An emphasised line; its indent is not emphasised.
fn bold_words(line: &str) -> String {
    let words = line.trim_start();
    format!("{}{}", &line[..line.len() - words.len()], bold(words))
}

/// Figures side by side: a label for each row, a column for each compared item.
#[derive(Debug, Default)]
pub struct Grid {
    columns: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Debug)]
enum Row {
    Section(String),
    Values(String, Vec<String>),
}

/// Spaces between columns.
const GAP: u16 = 2;

impl Grid {
    /// A grid with these column heads.
    pub fn new(columns: Vec<String>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Starts a group of rows.
    pub fn section(&mut self, title: &str) {
        self.rows.push(Row::Section(title.to_owned()));
    }

    /// Adds a row; one value for each column.
    pub fn row(&mut self, label: impl Into<String>, values: Vec<String>) {
        debug_assert_eq!(values.len(), self.columns.len());
        self.rows.push(Row::Values(label.into(), values));
    }

    /// As text of at most `width` columns. Columns that do not fit follow below, with the same labels.
    pub fn render(&self, width: usize) -> String {
        let label = self.rows.iter().map(|row| match row {
            Row::Section(title) => chars(title),
            Row::Values(label, _) => chars(label) + 2,
        });
        let label = label.max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.column_width(column)).collect();
        let mut text = String::new();
        let mut from = 0;
        while from < self.columns.len() {
            let mut used = label + usize::from(GAP) + widths[from];
            let mut to = from + 1;
            while to < self.columns.len() && used + usize::from(GAP) + widths[to] <= width {
                used += usize::from(GAP) + widths[to];
                to += 1;
            }
            if from > 0 {
                text.push('\n');
            }
            self.render_columns(from, to, label, &mut text);
            from = to;
        }
        text
    }

    fn column_width(&self, column: usize) -> usize {
        let values = self.rows.iter().filter_map(|row| match row {
            Row::Section(_) => None,
            Row::Values(_, values) => values.get(column).map(|value| chars(&strip_str(value).to_string())),
        });
        values.max().unwrap_or(0).max(chars(&self.columns[column]))
    }

    fn render_columns(&self, from: usize, to: usize, label_width: usize, text: &mut String) {
        let heads = &self.columns[from..to];
        let mut table = blank();
        let head = |name: &String| bold(name);
        // A label of full width keeps several groups of columns in line.
        table.add_row([" ".repeat(label_width)].into_iter().chain(heads.iter().map(head)));
        for row in &self.rows {
            match row {
                Row::Section(title) => table.add_row([bold(title)]),
                Row::Values(label, values) => {
                    table.add_row([format!("  {label}")].into_iter().chain(values[from..to].iter().cloned()))
                }
            };
        }
        align(&mut table, |column| column > 0);
        push_trimmed(&table, text);
    }
}

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A plain table: heads, if there are any, then rows.
pub fn plain(heads: &[(&str, Align)], rows: Vec<Vec<String>>) -> String {
    let mut table = blank();
    if !heads.is_empty() {
        table.add_row(heads.iter().enumerate().map(|(column, (head, _))| {
            let indent = if column == 0 { "  " } else { "" };
            format!("{indent}{}", bold(head))
        }));
    }
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(
            |(column, value)| {
                if column == 0 { format!("  {value}") } else { value }
            },
        ));
    }
    align(&mut table, |column| heads.get(column).is_some_and(|&(_, align)| align == Align::Right));
    let mut text = String::new();
    push_trimmed(&table, &mut text);
    text
}

/// Heads of which the first `left` are aligned to the left.
pub fn right_aligned<'a>(heads: &[&'a str], left: usize) -> Vec<(&'a str, Align)> {
    let align = |index| if index < left { Align::Left } else { Align::Right };
    heads.iter().enumerate().map(|(index, &head)| (head, align(index))).collect()
}

/// Labels and values in two columns; values are wrapped at [`width`] columns.
pub fn pairs(rows: Vec<(String, String)>) -> String {
    paired(&rows, width())
}

fn paired(rows: &[(String, String)], width: usize) -> String {
    let labels = rows.iter().map(|(label, _)| chars(label)).max().unwrap_or(0);
    // After the indent, the longest label and a gap.
    let column = labels + 4;
    let line = |(label, value): &(String, String)| {
        let value = broken(value, width.saturating_sub(column)).join(&format!("\n{:column$}", ""));
        format!("  {label:labels$}  {value}\n")
    };
    rows.iter().map(line).collect()
}

fn blank() -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn align(table: &mut Table, right: impl Fn(usize) -> bool) {
    for (index, column) in table.column_iter_mut().enumerate() {
        let alignment = if right(index) { CellAlignment::Right } else { CellAlignment::Left };
        column.set_cell_alignment(alignment);
        column.set_padding((0, GAP));
    }
}

fn push_trimmed(table: &Table, text: &mut String) {
    for line in table.lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Bars of eighths for values from 0 to their maximum.
pub fn sparkline(values: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(0.0, f64::max);
    let step = |value: f64| if most > 0.0 { whole((value / most * 8.0).ceil()) } else { 0 };
    values.iter().map(|&value| BARS[usize::try_from(step(value)).map_or(7, |step| step.clamp(1, 8) - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_breaks_into_groups_of_columns() {
        let mut grid = Grid::new(["one", "two", "three"].map(str::to_owned).to_vec());
        grid.section("Figures");
        grid.row("first (ms)", ["1.00", "20,000", "3"].map(str::to_owned).to_vec());
        let plain = |text: String| strip_str(&text).to_string();
        let text = plain(grid.render(100));
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.lines().all(|line| line.trim_end() == line), "{text:?}");
        let narrow = plain(grid.render(24));
        assert!(narrow.lines().count() > 6 && narrow.lines().all(|line| chars(line) <= 24), "{narrow}");
    }

    #[test]
    fn no_line_of_a_plain_table_ends_with_blanks() {
        let heads = right_aligned(&["goal", "measured", ""], 1);
        let text = plain(&heads, vec![vec!["life".into(), "7 years".into(), "met".into()]]);
        let text = strip_str(&text).to_string();
        assert_eq!(text, "  goal  measured\n  life   7 years  met\n");
    }

    #[test]
    fn long_values_continue_below_their_beginning() {
        let rows = [("life", "~48.8 days (from 0.022 overwrites)"), ("cost of all", "8 USD")];
        let rows = rows.map(|(label, value)| (label.to_owned(), value.to_owned()));
        assert_eq!(
            paired(&rows, 40),
            "  life         ~48.8 days (from 0.022\n               overwrites)\n  cost of all  8 USD\n"
        );
    }

    #[test]
    fn bars_follow_values() {
        assert_eq!(sparkline(&[0.0, 1.0, 8.0, 4.0]), "▁▁█▄");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
    }
}
