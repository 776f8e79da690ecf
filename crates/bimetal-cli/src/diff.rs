//! `bimetal diff`: changes between two results.

use bimetal_study::diff::Diff;
use bimetal_study::html::page::Page;
use bimetal_study::html::table::Table;

use crate::args::DiffArgs;
use crate::failure::Failure;
use crate::files::Files;
use crate::table::sheet;
use crate::{header, output, warn};

pub fn run(args: &DiffArgs) -> Result<(), Failure> {
    Files::default().reads([&args.a, &args.b]).results(&args.json, &args.html).check()?;
    let diff = Diff::of(&args.a, &args.b).map_err(Failure::failed)?;
    for difference in &diff.differences {
        warn(difference);
    }
    output::write_html(&args.html, || page(&diff))?;
    output::emit(&args.json, &diff, || {
        let table = if diff.schemes.is_empty() { String::new() } else { format!("\n{}", sheet(&diff.sheet())) };
        format!("{}\n{table}{}", diff.verdict().replace('`', ""), header::remarks(&diff.remarks()))
    })
}

fn page(diff: &Diff) -> String {
    let mut page = Page::new(&format!("Changes from {} to {}", diff.a.file, diff.b.file), Vec::new());
    page.verdict(&diff.verdict());
    page.list("warnings", &diff.differences);
    page.table(&Table::of_sheet(&diff.sheet()));
    page.list("facts", &diff.remarks());
    page.section("Values in both files");
    page.table(&Table::of_sheet(&diff.values()));
    let side = |side: &bimetal_study::diff::Side| {
        let digest = side.trace_digest.as_deref().unwrap_or("unknown");
        format!("{}: bimetal {}, schema {}, {}, digest {digest}", side.file, side.bimetal, side.schema, side.trace)
    };
    page.list("facts", &[side(&diff.a), side(&diff.b)]);
    page.code(&output::command_line());
    page.finish()
}
