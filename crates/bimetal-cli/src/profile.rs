//! `bimetal profile`: characteristics of a workload.

use bimetal_core::profile::CurvePlan;
use bimetal_study::characteristics::{self, Section};

use crate::args::ProfileArgs;
use crate::failure::Failure;
use crate::figures::listed;
use crate::files::Files;
use crate::profiled::Profiled;
use crate::table::{bold, remark};
use crate::{header, output, setup, warn};

/// Runs the command.
pub fn run(args: &ProfileArgs) -> Result<(), Failure> {
    Files::default().reads(&args.trace.traces).json(&args.json).check()?;
    let workload = setup::workload(&args.trace)?;
    for warning in &workload.warnings {
        warn(warning);
    }
    let curves = CurvePlan { points: args.curve_points, sampling_rate: args.sample };
    workload.check_sample(&curves).map_err(|error| Failure::usage(format!("`--sample`: {error}")))?;
    let profiled = Profiled {
        bimetal: env!("CARGO_PKG_VERSION"),
        profile: workload.profile(&curves),
        trace: workload.facts,
        warnings: workload.warnings,
    };
    output::emit(&args.json, &profiled, || {
        let shown = |section: Section| {
            let remark = if section.remark.is_empty() { String::new() } else { remark(&section.remark) };
            format!("\n{}\n{remark}{}", bold(section.title), listed(section.listing))
        };
        let sections = characteristics::sections(&profiled.profile);
        header::trace(&profiled.trace) + &sections.into_iter().map(shown).collect::<String>()
    })
}
