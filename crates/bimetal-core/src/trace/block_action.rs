//! blktrace records several steps of each request. A trace must use exactly one of them, or it counts requests twice.
//!
//! `Q` (queue) is the arrival and the default. A recording filtered to the driver's side has no `Q` records. Then `D`
//! (issue) or `C` (complete) is used, with a warning, unless the user chose an action.

use super::collect::Collector;
use super::error::{ErrorKind, TraceError};
use super::{Action, Input, Trace};

/// Number of records of each of [`Action::ALL`] in a pass.
pub(super) type Seen = [u64; 3];

/// Decodes with `pass`, which takes the records of one action: the chosen action, or the first one that has records.
pub(super) fn decode<'a>(
    input: &Input<'a>,
    pass: impl Fn(Action) -> Result<(Collector<'a>, Seen), TraceError>,
) -> Result<Trace, TraceError> {
    let wanted = input.options.action.unwrap_or(Action::Queue);
    let (collector, seen) = pass(wanted)?;
    let others = || Action::ALL.into_iter().zip(seen).filter(|&(action, count)| action != wanted && count > 0);
    let Some((stand_in, _)) = others().next() else {
        return collector.finish(input);
    };
    if seen[wanted as usize] > 0 {
        return collector.finish(input);
    }
    if input.options.action.is_some() {
        let found: Vec<String> = others().map(|(action, count)| format!("{count} `{}`", action.letter())).collect();
        let what = format!("the trace has no `{}` records, only {}", wanted.letter(), found.join(" and "));
        let hint = format!("take those with `--action {}`", stand_in.letter());
        return Err(input.error(ErrorKind::NoRequests, what).with_hint(hint));
    }
    let (mut collector, _) = pass(stand_in)?;
    collector.warn(format!(
        "no `Q` (queue) records: arrivals are those of the `{}` records, after merging and waiting",
        stand_in.letter()
    ));
    collector.finish(input)
}
