//! Operations and wear of a scheme as heads and rows of text, the same on a terminal and on a page.

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
