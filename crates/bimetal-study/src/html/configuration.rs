//! Each scheme in full: its device as a file that can be used again, its own figures, all of its operations, its wear.

use bimetal_core::report::{OpFigures, Report, WearFigures};

use super::page::{Page, escape};
use super::table::Table;
use crate::compare::Entry;
use crate::describe;
use crate::number::{NOTHING, SIZES, TIMES, common_unit, percent, plain, significant, thousands, with_unit};

/// The section's contents.
pub(super) fn section(page: &mut Page, entries: &[Entry]) {
    page.list("facts", &describe::notes(entries));
    page.paragraph("Each device as a file for `--device`, with everything that was counted on it.");
    let open = if entries.len() == 1 { " open" } else { "" };
    for entry in entries {
        let summary = format!("{}: {}", entry.report.scheme, describe::device(entry));
        page.push(&format!("<details{open}>\n<summary>{}</summary>\n", escape(&summary)));
        // A device that was read or made has only numbers that can be written.
        page.code(&entry.device.to_toml().unwrap_or_default());
        page.table(&operations(&entry.report));
        page.table(&wear(&entry.report));
        if !entry.report.metrics.0.is_empty() {
            page.table(&metrics(&entry.report));
        }
        page.push("</details>\n");
    }
}

fn operations(report: &Report) -> Table {
    let all_us: f64 = report.ops.iter().map(|row| row.time_us).sum();
    let (unit, scale) = common_unit(TIMES, std::iter::once(all_us), 1.0);
    let row = |row: &OpFigures| {
        let texts = [row.region.clone(), row.op.to_owned(), row.cause.replace('_', " "), thousands(row.count)];
        let share = if all_us > 0.0 { percent(row.time_us / all_us) } else { NOTHING.to_owned() };
        let figures = [with_unit(SIZES, row.bytes as f64), significant(row.time_us / scale), share];
        texts.into_iter().chain(figures).collect()
    };
    let time = format!("time ({unit})");
    let heads = ["region", "operation", "cause", "count", "bytes", &time, "share"].map(str::to_owned).to_vec();
    Table { text_columns: 3, ..Table::new(heads, report.ops.iter().map(row).collect()) }
}

fn wear(report: &Report) -> Table {
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
    let heads = ["region", "blocks", "erases", "mean", "most", "std. dev.", "endurance", "life used"];
    Table::new(heads.map(str::to_owned).to_vec(), report.wear.iter().map(row).collect())
}

fn metrics(report: &Report) -> Table {
    let row = |&(name, value): &(&str, Option<f64>)| {
        vec![name.replace('_', " "), value.map_or_else(|| NOTHING.to_owned(), plain)]
    };
    let heads = ["figure of the scheme", "value"].map(str::to_owned).to_vec();
    Table::new(heads, report.metrics.0.iter().map(row).collect())
}
