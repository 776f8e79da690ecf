//! Trace, device and replay options: the lines above every table of figures.

use bimetal_core::report::TraceFacts;
use bimetal_study::compare::Comparison;
use bimetal_study::describe;

use crate::table::{bold, remark};

/// Lines about the trace.
pub fn trace(facts: &TraceFacts) -> String {
    format!("{}  {}\n", bold(&facts.name), facts.format) + &remarks(&describe::trace(facts))
}

/// Lines about the trace, addresses, arrivals and passes.
pub fn replay(comparison: &Comparison) -> String {
    trace(&comparison.trace) + &remarks(&describe::replay(comparison))
}

/// Each line as a remark.
pub fn remarks(lines: &[String]) -> String {
    lines.iter().map(|line| remark(line)).collect()
}
