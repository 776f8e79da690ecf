//! Each scheme in full: its device as a reusable file, its own figures, all its operations, and its wear.

use bimetal_core::report::MetricFigures;

use super::markup::escape;
use super::page::Page;
use super::table::Table;
use crate::compare::Entry;
use crate::number::{NOTHING, plain};
use crate::{describe, listing};

/// The section's contents.
pub(super) fn section(page: &mut Page, entries: &[Entry]) {
    page.list("facts", &describe::notes(entries));
    page.paragraph("Each device as a file for `--device`, with all its counts.");
    let open = if entries.len() == 1 { " open" } else { "" };
    for entry in entries {
        let summary = format!("{}: {}", entry.report.scheme, describe::device(entry));
        page.push(&format!("<details{open}>\n<summary>{}</summary>\n", escape(&summary)));
        // A device that was parsed or constructed contains only numbers that TOML can represent.
        page.code(&entry.device.to_toml().unwrap_or_default());
        page.table(&Table::of(listing::operations(&entry.report)));
        page.table(&Table::of(listing::wear(&entry.report)));
        for (head, figures) in
            [("figure of the scheme", &entry.report.metrics), ("figure of the controller", &entry.report.controller)]
        {
            if !figures.0.is_empty() {
                page.table(&metrics(head, figures));
            }
        }
        page.push("</details>\n");
    }
}

fn metrics(head: &str, figures: &MetricFigures) -> Table {
    let row = |&(name, value): &(&str, Option<f64>)| {
        vec![name.replace('_', " "), value.map_or_else(|| NOTHING.to_owned(), plain)]
    };
    let heads = [head, "value"].map(str::to_owned).to_vec();
    Table::new(heads, figures.0.iter().map(row).collect())
}
