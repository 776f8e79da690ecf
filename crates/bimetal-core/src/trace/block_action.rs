//! blktrace records several steps of each request. A trace must use exactly one of them, or it counts requests twice.
//!
//! `Q` (queue) is the arrival and the default. A recording filtered to the driver's side has no `Q` records. Then `D`
//! (issue) or `C` (complete) is used, with a warning, unless the user chose an action.

use super::collect::{Collector, Row};
use super::error::{ErrorKind, Parsed, TraceError};
use super::{Action, Input, Trace};

/// The records of each action.
pub(super) struct Steps<'a> {
    input: &'a Input<'a>,
    /// By action, in the order of [`Action::ALL`].
    collectors: [Collector<'a>; 3],
    /// Number of records of each action.
    seen: [u64; 3],
}

impl<'a> Steps<'a> {
    pub(super) fn new(input: &'a Input<'a>) -> Self {
        // Few of the records of a recording are requests, so the lists grow as needed.
        Self { input, collectors: Action::ALL.map(|_| Collector::new(input.options, 0)), seen: [0; 3] }
    }

    /// Adds a record. `row` parses it, which is only needed if its action may be used.
    pub(super) fn push(&mut self, action: Action, row: impl FnOnce() -> Parsed<Row>) -> Parsed<()> {
        if self.may_use(action) {
            self.collectors[action as usize].push(&row()?)?;
        }
        self.seen[action as usize] += 1;
        Ok(())
    }

    /// Whether the requests may be the records of this action: it is chosen, or no arrival has been recorded so far.
    fn may_use(&self, action: Action) -> bool {
        match self.input.options.action {
            Some(chosen) => action == chosen,
            None => action == Action::Queue || self.seen[Action::Queue as usize] == 0,
        }
    }

    /// The trace of the chosen action, or of the first one that has records.
    pub(super) fn finish(self) -> Result<Trace, TraceError> {
        let Self { input, collectors, seen } = self;
        let wanted = input.options.action.unwrap_or(Action::Queue);
        let others = || Action::ALL.into_iter().zip(seen).filter(|&(action, count)| action != wanted && count > 0);
        let mut used = wanted;
        let stand_in = others().next().filter(|_| seen[wanted as usize] == 0);
        if let Some((stand_in, _)) = stand_in {
            if input.options.action.is_some() {
                let found: Vec<String> =
                    others().map(|(action, count)| format!("{count} `{}`", action.letter())).collect();
                let what = format!("the trace has no `{}` records, only {}", wanted.letter(), found.join(" and "));
                let hint = format!("take those with `--action {}`", stand_in.letter());
                return Err(input.error(ErrorKind::NoRequests, what).with_hint(hint));
            }
            used = stand_in;
        }
        let [queue, issue, complete] = collectors;
        let mut collector = match used {
            Action::Queue => queue,
            Action::Issue => issue,
            Action::Complete => complete,
        };
        if used != wanted {
            collector.warn(format!(
                "no `Q` (queue) records: arrivals are those of the `{}` records, after merging and waiting",
                used.letter()
            ));
        }
        let mut trace = collector.finish(input)?;
        trace.action = Some(used);
        Ok(trace)
    }
}
