//! Tables of heads and rows. The table of a diagram lists all of its points.

use super::markup::escape;
use crate::figure::{Described, Origin, Plot, PlotKind, Points, Series};
use crate::listing::{Listing, Sheet};
use crate::number::{NOTHING, plain};

/// A table.
#[derive(Debug, Default)]
pub struct Table {
    /// One for each column.
    pub heads: Vec<String>,
    /// Values of each row, the label first. A row with a label alone is the title of the following rows.
    pub rows: Vec<Vec<String>>,
    /// Number of leading columns with text, left-aligned. The others are figures.
    pub text_columns: usize,
    /// Whether cells are sentences, which may break into several lines.
    pub is_prose: bool,
    /// Whether the text columns may break into several lines, so that the figures beside them stay on the screen.
    pub wraps_text: bool,
    /// Whether an empty cell belongs to the cell before it.
    pub joins_cells: bool,
    /// Meaning and unit of all figures; empty if the heads have them.
    pub caption: String,
}

impl Table {
    /// A table whose rows have one label each, followed by figures.
    pub fn new(heads: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        Self { heads, rows, text_columns: 1, ..Self::default() }
    }

    /// The table of a listing.
    pub fn of(Listing { heads, rows, text_columns }: Listing) -> Self {
        Self { text_columns, wraps_text: true, ..Self::new(heads, rows) }
    }

    /// The table of a sheet, with its groups.
    pub fn of_sheet(sheet: &Sheet) -> Self {
        Self { joins_cells: true, ..Self::new(sheet.flat_heads(), sheet.flat_rows()) }
    }

    /// The table in its own box, which scrolls if the screen is too narrow.
    pub fn html(&self) -> String {
        let side = |column: usize| if column < self.text_columns { " class=\"text\"" } else { "" };
        let head =
            |(column, head): (usize, &String)| format!("<th scope=\"col\"{}>{}</th>", side(column), escape(head));
        let heads: String = self.heads.iter().enumerate().map(head).collect();
        let cell = |row: &[String], column: usize| {
            let value = escape(&row[column]);
            let joined = row[column + 1..].iter().take_while(|cell| self.joins_cells && cell.is_empty()).count();
            match (column, joined) {
                (0, _) => format!("<th scope=\"row\"{}>{value}</th>", side(0)),
                (_, 0) if self.joins_cells && value.is_empty() => String::new(),
                (_, 0) => format!("<td{}>{value}</td>", side(column)),
                _ => format!("<td{} colspan=\"{}\">{value}</td>", side(column), joined + 1),
            }
        };
        let row = |row: &Vec<String>| {
            if let ([title], [_, _, ..]) = (row.as_slice(), self.heads.as_slice()) {
                let span = self.heads.len();
                let title = escape(title);
                return format!("<tr class=\"group\"><th class=\"text\" colspan=\"{span}\">{title}</th></tr>\n");
            }
            let cells: String = (0..row.len()).map(|column| cell(row, column)).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().map(row).collect();
        let class = match (self.is_prose, self.wraps_text) {
            (true, _) => " class=\"prose\"",
            (false, true) => " class=\"wrapped\"",
            (false, false) => "",
        };
        let caption = match self.caption.as_str() {
            "" => String::new(),
            caption => format!("<caption>{}</caption>\n", escape(caption)),
        };
        format!(
            "<div class=\"scroll\" tabindex=\"0\"><table{class}>\n{caption}<thead><tr>{heads}</tr></thead>\n\
             <tbody>\n{rows}</tbody></table></div>\n"
        )
    }
}

/// The name of a series with its source.
pub(super) fn series_name(series: &Series) -> String {
    match series.origin {
        Origin::Measured => series.name.clone(),
        Origin::Paper => format!("{} (paper)", series.name),
    }
}

/// All points of a diagram: a row for each position, a column for each series.
pub(super) fn of_plot(plot: &Plot) -> Table {
    if plot.kind == PlotKind::Front {
        return described(plot);
    }
    let heads = std::iter::once(plot.x.label.clone()).chain(plot.series.iter().map(series_name)).collect();
    let names = plot.names();
    let rows = if names.is_empty() { numbered(plot) } else { named(plot, &names) };
    Table { text_columns: usize::from(!names.is_empty()), caption: plot.y.label.clone(), ..Table::new(heads, rows) }
}

/// Diagrams with one name each: a row for each number. The only scheme of a page needs no name.
pub(super) fn of_single(plots: &[&Plot], is_one_scheme: bool) -> Table {
    let row = |plot: &Plot, series: &Series| {
        let of = if plot.series.len() == 1 { String::new() } else { format!(", {}", series_name(series)) };
        // The label is more precise than the title, because it has the unit.
        let name = if plot.series.len() == 1 { plot.y.label.clone() } else { plot.title.clone() };
        let unit = if plot.series.len() == 1 { String::new() } else { format!(" ({})", plot.y.label) };
        let names = plot.names();
        let place = names.first().filter(|_| !(is_one_scheme && plot.x.label == "scheme"));
        let place = place.map_or_else(String::new, |place| format!(", {place}"));
        let label = format!("{name}{of}{place}{unit}");
        series.points.values().into_iter().map(move |value| vec![label.clone(), shown(Some(value))])
    };
    let rows = plots.iter().flat_map(|plot| plot.series.iter().flat_map(|series| row(plot, series)));
    Table { wraps_text: true, ..Table::new(vec!["figure".into(), "value".into()], rows.collect()) }
}

/// The labelled points, a row for each.
fn described(plot: &Plot) -> Table {
    let row = |point: &Described| vec![point.label.clone(), shown(Some(point.x)), shown(Some(point.y))];
    let rows = plot.series.iter().flat_map(|series| match &series.points {
        Points::Described(points) => points.iter().map(row).collect(),
        Points::Numbers(_) | Points::Names(_) => Vec::new(),
    });
    let heads = vec!["point".into(), plot.x.label.clone(), plot.y.label.clone()];
    Table { wraps_text: true, ..Table::new(heads, rows.collect()) }
}

fn shown(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| NOTHING.to_owned(), plain)
}

fn named(plot: &Plot, names: &[&str]) -> Vec<Vec<String>> {
    let values = |series: &Series, name: &str| match &series.points {
        Points::Names(points) => points.iter().filter(|(known, _)| known == name).map(|&(_, value)| value).collect(),
        Points::Numbers(_) | Points::Described(_) => Vec::new(),
    };
    names.iter().flat_map(|name| rows(plot, name, |series| values(series, name))).collect()
}

fn numbered(plot: &Plot) -> Vec<Vec<String>> {
    let mut places: Vec<f64> = plot.numbers().map(|(x, _)| x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let values = |series: &Series, place: f64| match &series.points {
        Points::Numbers(points) => points.iter().filter(|(x, _)| *x == place).map(|&(_, value)| value).collect(),
        Points::Names(_) | Points::Described(_) => Vec::new(),
    };
    places.iter().flat_map(|&place| rows(plot, &plain(place), |series| values(series, place))).collect()
}

/// The rows of a position: one, or more if a series has several points there.
fn rows(plot: &Plot, label: &str, values: impl Fn(&Series) -> Vec<f64>) -> Vec<Vec<String>> {
    let columns: Vec<Vec<f64>> = plot.series.iter().map(values).collect();
    let most = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = |index: usize| {
        let values = columns.iter().map(|column| shown(column.get(index).copied()));
        std::iter::once(label.to_owned()).chain(values).collect()
    };
    (0..most).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Axis;
    use crate::listing::Rows;

    #[test]
    fn long_labels_of_single_figures_may_break() {
        let series = vec![Series::measured_by_name("life (days)", vec![("a".to_owned(), 1.0)])];
        let plot = Plot::by_name("Life", PlotKind::Bars, "scheme", Axis::linear("life (days)"), series);
        let table = of_single(&[&plot], true);
        assert_eq!(
            (table.rows[0].as_slice(), table.wraps_text),
            (&["life (days)".to_owned(), "1".to_owned()][..], true)
        );
    }

    #[test]
    fn an_empty_cell_belongs_to_the_one_before_it() {
        let cells = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = vec![cells(["a", "falls behind by 1 s", "", "9"])];
        let sheet =
            Sheet { heads: cells(["scheme", "mean", "99 %", "cost"]), groups: vec![Rows { title: None, rows }] };
        let html = Table::of_sheet(&sheet).html();
        assert!(html.contains("</th><td colspan=\"2\">falls behind by 1 s</td><td>9</td></tr>"), "{html}");
        let plain = Table::new(cells(["a", "b", "c", "d"]), vec![cells(["a", "1", "", "2"])]).html();
        assert!(plain.contains("<td>1</td><td></td><td>2</td>"), "{plain}");
    }
}
