//! Tables as heads and rows of text, identical in terminals and HTML pages: schemes in groups, and the operations and
//! wear of one scheme.

use bimetal_core::report::{OpFigures, Report, WearFigures};

use crate::number::{NOTHING, SIZES, TIMES, common_unit, percent, significant, thousands, with_unit};

/// Heads and rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Column heads; none for labels and values.
    pub heads: Vec<String>,
    /// Cells of each row.
    pub rows: Vec<Vec<String>>,
    /// Number of leading columns that are text; the others are figures.
    pub text_columns: usize,
}

/// Rows in groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// Column heads. A head of two lines contains a line break. Adjacent columns with the same upper line share it.
    pub heads: Vec<String>,
    /// The groups.
    pub groups: Vec<Rows>,
}

/// A group of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The common property of the rows.
    pub title: Option<String>,
    /// Cells of each row, the label first. The text of a cell also spans the empty cells that follow it.
    pub rows: Vec<Vec<String>>,
}

/// A line of a table as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A line of column heads.
    Head(String),
    /// The title of a group.
    Title(String),
    /// A row of figures.
    Row(String),
}

impl Line {
    /// Its text.
    pub fn text(&self) -> &str {
        let (Self::Head(text) | Self::Title(text) | Self::Row(text)) = self;
        text
    }
}

/// Indent of a table, and additional indent of the rows in a titled group.
const INDENT: &str = "  ";
/// Space between columns.
const GAP: &str = "  ";

impl Sheet {
    /// The heads, each on one line.
    pub fn flat_heads(&self) -> Vec<String> {
        self.heads.iter().map(|head| head.replace('\n', " ")).collect()
    }

    /// All rows. A group title is a row with one cell.
    pub fn flat_rows(&self) -> Vec<Vec<String>> {
        let titled = |group: &Rows| group.title.iter().map(|title| vec![title.clone()]).collect::<Vec<_>>();
        self.groups.iter().flat_map(|group| titled(group).into_iter().chain(group.rows.iter().cloned())).collect()
    }

    /// The table as text: labels flush left, figures flush right.
    pub fn lines(&self) -> Vec<Line> {
        // A head of one line stands on the lower line.
        let halves = self.heads.iter().map(|head| head.split_once('\n').unwrap_or(("", head)));
        let (mut upper, lower): (Vec<&str>, Vec<&str>) = halves.unzip();
        for column in (1..upper.len()).rev() {
            if upper[column] == upper[column - 1] {
                upper[column] = "";
            }
        }
        // An upper head spans the following columns with the same upper line, and no others.
        let shares = |column: usize| self.heads[column].contains('\n') && upper[column].is_empty();
        let uppers = spans(&upper, shares);
        let indent = |group: &Rows| if group.title.is_some() { INDENT } else { "" };
        let rows: Vec<(&str, Vec<Span<'_>>)> = self
            .groups
            .iter()
            .flat_map(|group| group.rows.iter().map(move |row| (indent(group), row)))
            .map(|(indent, row)| {
                let cells: Vec<&str> = row.iter().map(String::as_str).collect();
                let is_joined = |column: usize| cells[column].is_empty();
                (indent, spans(&cells, is_joined))
            })
            .collect();
        let lowers = spans(&lower, |_| false);
        let all = || [("", &uppers), ("", &lowers)].into_iter().chain(rows.iter().map(|(indent, row)| (*indent, row)));
        let widths = widths(self.heads.len(), all);
        let mut lines = Vec::new();
        if upper.iter().any(|upper| !upper.is_empty()) {
            lines.push(Line::Head(line(&uppers, &widths, "", true)));
        }
        lines.push(Line::Head(line(&lowers, &widths, "", false)));
        let mut rows = rows.iter();
        for group in &self.groups {
            lines.extend(group.title.as_ref().map(|title| Line::Title(format!("{INDENT}{title}"))));
            let of_group = rows.by_ref().take(group.rows.len());
            lines.extend(of_group.map(|(indent, row)| Line::Row(line(row, &widths, indent, false))));
        }
        lines
    }

    /// Width in terminal columns.
    pub fn width(&self) -> usize {
        self.lines().iter().map(|line| chars(line.text())).max().unwrap_or(0)
    }
}

/// A text, its first column, and the number of columns it spans.
type Span<'a> = (&'a str, usize, usize);

/// Texts with the columns that they span.
fn spans<'a>(texts: &[&'a str], is_joined: impl Fn(usize) -> bool) -> Vec<Span<'a>> {
    let mut spans: Vec<Span<'a>> = Vec::new();
    for (column, text) in texts.iter().enumerate() {
        match spans.last_mut() {
            Some((_, _, columns)) if is_joined(column) => *columns += 1,
            _ => spans.push((text, column, 1)),
        }
    }
    spans
}

/// Terminal columns between the edges of a span.
fn room(&(_, first, columns): &Span<'_>, widths: &[usize]) -> usize {
    widths[first..first + columns].iter().sum::<usize>() + GAP.len() * (columns - 1)
}

/// Column widths for all texts. If a text is wider than the columns it spans, the first of them is widened.
fn widths<'a, I>(columns: usize, lines: impl Fn() -> I) -> Vec<usize>
where
    I: Iterator<Item = (&'a str, &'a Vec<Span<'a>>)>,
{
    let mut widths = vec![0; columns];
    for several in [false, true] {
        for (indent, spans) in lines() {
            for span in spans.iter().filter(|span| (span.2 > 1) == several) {
                let needed = chars(span.0) + if span.1 == 0 { indent.len() } else { 0 };
                widths[span.1] += needed.saturating_sub(room(span, &widths));
            }
        }
    }
    widths
}

/// One line. A head that spans several columns is centred.
fn line(spans: &[Span<'_>], widths: &[usize], indent: &str, is_head: bool) -> String {
    let mut text = INDENT.to_owned();
    for span in spans {
        let width = room(span, widths);
        text += &match span {
            (cell, 0, _) => format!("{:width$}", format!("{indent}{cell}")),
            (cell, _, columns) if is_head && *columns > 1 => format!("{GAP}{cell:^width$}"),
            (cell, _, _) => format!("{GAP}{cell:>width$}"),
        };
    }
    text.trim_end().to_owned()
}

/// Width of a text in terminal columns.
pub fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Text in lines of at most `width` columns, unless a single word is longer.
pub fn broken(text: &str, width: usize) -> Vec<String> {
    // Lines break between words only, because names and options have hyphens.
    let options = textwrap::Options::new(width)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
    textwrap::wrap(text, options).into_iter().map(Into::into).collect()
}

/// Texts as cells.
pub(crate) fn owned(cells: &[&str]) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_that_are_separated_by_spaces() {
        assert_eq!(broken("--set slow.spare=20% pslc-dynamic", 12), ["--set", "slow.spare=20%", "pslc-dynamic"]);
        assert_eq!(broken("one – two", 9), ["one – two"], "a dash takes one column");
        assert_eq!(broken("12 345\u{a0}us", 4), ["12", "345\u{a0}us"]);
    }

    #[test]
    fn heads_and_cells_may_take_several_columns() {
        let heads = ["scheme", "service (ms)\nmean", "service (ms)\n99 %", "cost\n(USD)", "size"];
        let row = |cells: [&str; 5]| owned(&cells);
        let rows = vec![row(["a", "1.00", "2.00", "3", "4"]), row(["b", "falls behind by 1 s", "", "5", "6"])];
        let sheet = Sheet { heads: owned(&heads), groups: vec![Rows { title: None, rows }] };
        let lines: Vec<String> = sheet.lines().iter().map(|line| line.text().to_owned()).collect();
        assert_eq!(
            lines,
            [
                "             service (ms)       cost",
                "  scheme           mean  99 %  (USD)  size",
                "  a                1.00  2.00      3     4",
                "  b       falls behind by 1 s      5     6",
            ]
        );
        assert_eq!((sheet.width(), sheet.flat_heads()[1].as_str()), (42, "service (ms) mean"));
    }
}
