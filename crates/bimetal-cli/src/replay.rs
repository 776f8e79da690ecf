//! `bimetal replay`: one scheme in full.

use bimetal_study::compare::{self, Comparison};
use bimetal_study::describe;
use bimetal_study::prepare::{Schemes, prepare};
use bimetal_study::ranking::Sort;

use bimetal_core::scheme::SCHEMES;

use crate::args::ReplayArgs;
use crate::failure::Failure;
use crate::files::Files;
use crate::progress::Bars;
use crate::table::remark;
use crate::{figures, header, output, setup, warn};

/// Default number of intervals of figures over time.
const INTERVALS: u32 = 12;

/// Runs the command.
pub fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let run = &args.run;
    let usual = setup::intervals(run).unwrap_or(INTERVALS);
    setup::check_passes(run)?;
    let device = setup::device(&run.device)?;
    let name = args.scheme.clone().unwrap_or_else(|| device.scheme.clone());
    if name.is_empty() {
        let known = SCHEMES.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!("no scheme is named; hint: add `--scheme` with one of {known}")));
    }
    if name == "all" || name.contains(',') {
        return Err(Failure::usage("`replay` runs one scheme; hint: use `compare` for several"));
    }
    let schemes = Schemes::named(&[name])?;
    Files::default().replay(&args.trace, run).check()?;
    let workload = setup::workload(&args.trace)?;
    let profile = setup::profile(&run.html, &workload);
    let prepared = prepare(workload, Some(device), &schemes, &setup::settings(run))?;
    let replays = setup::replays(run, args.intervals.unwrap_or(usual), &prepared.workload);
    let bars = Bars::new(&prepared.runs, replays.requests(&prepared.workload.facts, 1));
    let comparison = compare::run(&prepared, &replays, 1, 0, &bars)?;
    for warning in &comparison.warnings {
        warn(warning);
    }
    output::write_exports(&run.export, &comparison)?;
    output::write_report(&run.html, &comparison, Sort::default(), profile.as_ref())?;
    output::emit(&run.json, &comparison, || text(&comparison))
}

fn text(comparison: &Comparison) -> String {
    let mut text = header::replay(comparison);
    for entry in &comparison.results {
        text.push_str(&remark(&describe::device(entry)));
        for note in &entry.notes {
            text.push_str(&remark(note));
        }
        text.push_str(&figures::all(entry));
    }
    text
}
