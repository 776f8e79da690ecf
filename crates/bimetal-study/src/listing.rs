//! Tables as heads and rows of text, the same on a terminal and on a page: schemes in groups, and the operations and wear of
//! one of them.

use bimetal_core::report::{OpFigures, Report, WearFigures};

use crate::number::{NOTHING, SIZES, TIMES, common_unit, percent, significant, thousands, with_unit};

/// Heads and rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// One for each column.
    pub heads: Vec<String>,
    /// Cells of each row.
    pub rows: Vec<Vec<String>>,
    /// So many columns are text; the others are figures.
    pub text_columns: usize,
}

/// Rows in groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// One for each column; a head of two lines has a line break in it.
    pub heads: Vec<String>,
    /// The groups.
    pub groups: Vec<Rows>,
}

/// A group of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// What they have in common.
    pub title: Option<String>,
    /// Cells of each row, its label first.
    pub rows: Vec<Vec<String>>,
}

/// A line of a table as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Of the heads.
    Head(String),
    /// The title of a group.
    Title(String),
    /// Figures.
    Row(String),
}

impl Line {
    /// What it says.
    pub fn text(&self) -> &str {
        let (Self::Head(text) | Self::Title(text) | Self::Row(text)) = self;
        text
    }
}

/// Indent of a table, and of the rows of a group with a title within it.
const INDENT: &str = "  ";
/// Between columns.
const GAP: &str = "  ";

impl Sheet {
    /// The heads, each on one line.
    pub fn flat_heads(&self) -> Vec<String> {
        self.heads.iter().map(|head| head.replace('\n', " ")).collect()
    }

    /// All rows; the title of a group is a row of one cell.
    pub fn flat_rows(&self) -> Vec<Vec<String>> {
        let titled = |group: &Rows| group.title.iter().map(|title| vec![title.clone()]).collect::<Vec<_>>();
        self.groups.iter().flat_map(|group| titled(group).into_iter().chain(group.rows.iter().cloned())).collect()
    }

    /// As text: labels to the left, figures to the right.
    pub fn lines(&self) -> Vec<Line> {
        // A head of one line stands on the lower one.
        let halves: Vec<(&str, &str)> =
            self.heads.iter().map(|head| head.split_once('\n').unwrap_or(("", head))).collect();
        let indent = |group: &Rows| if group.title.is_some() { INDENT } else { "" };
        let rows = || self.groups.iter().flat_map(|group| group.rows.iter().map(move |row| (indent(group), row)));
        let width = |column: usize| {
            let before = |indent: &str| if column == 0 { indent.len() } else { 0 };
            let cells = rows().map(|(indent, row)| before(indent) + chars(&row[column]));
            cells.max().unwrap_or(0).max(chars(halves[column].0)).max(chars(halves[column].1))
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>, indent: &str| {
            let mut text = INDENT.to_owned();
            for (column, (cell, &width)) in cells.zip(&widths).enumerate() {
                text += &match column {
                    0 => format!("{:width$}", format!("{indent}{cell}")),
                    _ => format!("{GAP}{cell:>width$}"),
                };
            }
            text.trim_end().to_owned()
        };
        let mut lines = Vec::new();
        if halves.iter().any(|(upper, _)| !upper.is_empty()) {
            lines.push(Line::Head(line(&mut halves.iter().map(|(upper, _)| *upper), "")));
        }
        lines.push(Line::Head(line(&mut halves.iter().map(|(_, lower)| *lower), "")));
        for group in &self.groups {
            lines.extend(group.title.as_ref().map(|title| Line::Title(format!("{INDENT}{title}"))));
            let row = |row: &Vec<String>| Line::Row(line(&mut row.iter().map(String::as_str), indent(group)));
            lines.extend(group.rows.iter().map(row));
        }
        lines
    }
}

/// How many columns of a terminal a text takes.
pub fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Text in lines of at most `width` columns, unless a word is longer.
pub fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if chars(line) + 1 + chars(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn owned(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|&cell| cell.to_owned()).collect()
}

/// Operations by region, kind and cause, and their sum.
pub fn operations(report: &Report) -> Listing {
    let all_us: f64 = report.ops.iter().map(|row| row.time_us).sum();
    let (unit, size) = common_unit(TIMES, std::iter::once(all_us), 1.0);
    let share = |us: f64| if all_us > 0.0 { percent(us / all_us) } else { NOTHING.to_owned() };
    let row = |row: &OpFigures| {
        let texts = [row.region.clone(), row.op.to_owned(), row.cause.replace('_', " "), thousands(row.count)];
        let figures = [with_unit(SIZES, row.bytes as f64), significant(row.time_us / size), share(row.time_us)];
        texts.into_iter().chain(figures).collect()
    };
    let mut rows: Vec<Vec<String>> = report.ops.iter().map(row).collect();
    if !rows.is_empty() {
        let count = thousands(report.ops.iter().map(|row| row.count).sum());
        rows.push(owned(&["all", "", "", &count, "", &significant(all_us / size), &share(all_us)]));
    }
    let time = format!("time ({unit})");
    let heads = owned(&["region", "operation", "cause", "count", "bytes", &time, "share"]);
    Listing { heads, rows, text_columns: 3 }
}

/// Wear by region.
pub fn wear(report: &Report) -> Listing {
    let row = |wear: &WearFigures| {
        vec![
            wear.region.clone(),
            thousands(u64::from(wear.blocks)),
            thousands(wear.erases_total),
            significant(wear.erases_mean),
            thousands(u64::from(wear.erases_max)),
            significant(wear.erases_stddev),
            significant(wear.endurance),
            format!("{} %", significant(wear.used * 100.0)),
        ]
    };
    let heads = owned(&["region", "blocks", "erases", "mean", "most", "std. dev.", "endurance", "life used"]);
    Listing { heads, rows: report.wear.iter().map(row).collect(), text_columns: 1 }
}
