//! The laboratory for the figures of the papers: it runs their experiments, and keeps the commands that repeat them.

use std::sync::{Arc, Mutex};

use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::report::{TraceFacts, WearFigures};

use crate::claim::StandIn;
use crate::experiment::{ANY_TRACE, Experiment, Scale, Source, with_trace};
use crate::finding::Finding;
use crate::pool::{Pool, lock};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::prepare::Workload;

/// The work on one figure: its replays, and the commands that repeat them.
pub struct Lab<'a> {
    pool: &'a Pool<'a>,
    stand_in: StandIn,
    /// Commands of all requests so far, in order.
    commands: Mutex<Vec<String>>,
    /// Reason why a user's trace cannot decide a claim.
    undecided: Mutex<Option<String>>,
}

impl<'a> Lab<'a> {
    /// A lab that replays these stand-ins.
    pub fn new(pool: &'a Pool<'a>, stand_in: StandIn) -> Self {
        Self { pool, stand_in, commands: Mutex::default(), undecided: Mutex::default() }
    }

    /// Facts about [`ANY_TRACE`].
    pub fn any_trace(&self) -> Option<&TraceFacts> {
        self.pool.own(&ANY_TRACE).map(|own| &own.facts)
    }

    /// A finding on [`ANY_TRACE`], which is not judged if a region of any of these replays was never erased: those of the
    /// schemes that the claim is about.
    pub fn judged<'e>(&self, replays: impl IntoIterator<Item = &'e Arc<Entry>>, finding: Finding) -> Finding {
        let why = |entry: &Arc<Entry>| cannot_decide(self.any_trace()?, &entry.report.wear);
        match replays.into_iter().find_map(why) {
            Some(why) => finding.undecided(why),
            None => finding,
        }
    }

    /// The kind of generated traces.
    pub fn stand_in(&self) -> StandIn {
        self.stand_in
    }

    /// The workload of a trace and its settings.
    pub fn generator(&self, source: &Source) -> (&'static str, Vec<(String, String)>) {
        self.pool.generator(source, self.stand_in)
    }

    /// Size of the experiments.
    pub fn scale(&self) -> Scale {
        self.pool.scale()
    }

    /// Whether a user's trace replaces a generated one.
    pub fn is_own(&self, source: &Source) -> bool {
        self.pool.own(source).is_some()
    }

    /// Whether the user has changed settings of the experiments.
    pub fn is_varied(&self) -> bool {
        !self.pool.variations().is_empty()
    }

    /// Whether a generated trace is shorter than the paper's.
    pub fn is_cut(&self, source: &Source) -> bool {
        self.scale() == Scale::Quick && !self.is_own(source)
    }

    /// The requests of a trace.
    ///
    /// # Errors
    /// A workload that does not fit into memory.
    pub fn workload(&self, source: &'static Source) -> Result<Workload, StudyError> {
        self.pool.workload(source, self.stand_in)
    }

    /// Number and sizes of a trace's requests.
    ///
    /// # Errors
    /// The errors of [`Self::workload`].
    pub fn facts(&self, source: &'static Source) -> Result<TraceFacts, StudyError> {
        self.note_source(source);
        Ok(self.workload(source)?.facts)
    }

    /// The profile of a trace.
    ///
    /// # Errors
    /// The errors of [`Self::workload`].
    pub fn profile(&self, source: &'static Source, curves: &CurvePlan) -> Result<Profile, StudyError> {
        self.note_source(source);
        let command = with_trace("bimetal profile", &self.file(source));
        self.note(format!("{command} --curve-points {}", curves.points));
        let workload = self.workload(source)?;
        Ok(workload.profile(curves))
    }

    /// Runs every experiment that has not run yet, with the user's settings. Results are in the order of the experiments.
    ///
    /// # Errors
    /// An experiment that fails.
    pub fn run(&self, experiments: &[Experiment]) -> Result<Vec<Arc<Entry>>, StudyError> {
        let experiments: Vec<Experiment> =
            experiments.iter().map(|experiment| experiment.varied(self.pool.variations())).collect();
        let mut due = Vec::with_capacity(experiments.len());
        for (place, experiment) in experiments.iter().enumerate() {
            let command = experiment.command(&self.file(experiment.source));
            self.note_source(experiment.source);
            self.note(command.clone());
            due.push((place, experiment, command));
        }
        // Replays of a trace follow each other, so that it is generated once.
        due.sort_by(|(_, one, command), (_, other, than)| (one.source.name, command).cmp(&(other.source.name, than)));
        let replay = |(place, experiment, command): &(usize, &Experiment, String)| {
            Ok((*place, self.pool.replay(experiment, command, self.stand_in)?))
        };
        self.pool.expect(due.len());
        let mut entries = self.pool.each(&due, replay)?;
        entries.sort_by_key(|(place, _)| *place);
        let entries: Vec<Arc<Entry>> = entries.into_iter().map(|(_, entry)| entry).collect();
        for (experiment, entry) in experiments.iter().zip(&entries) {
            if let Some(own) = self.pool.own(experiment.source)
                && let Some(why) = cannot_decide(&own.facts, &entry.report.wear)
            {
                lock(&self.undecided).get_or_insert(why);
            }
        }
        Ok(entries)
    }

    /// The commands that repeat all requests, without duplicates.
    pub fn commands(&self) -> Vec<String> {
        lock(&self.commands).clone()
    }

    /// Reason why a user's trace could not decide a claim, if there is one.
    pub fn undecided(&self) -> Option<String> {
        lock(&self.undecided).clone()
    }

    /// The file of a trace: the user's, or the one that [`Source::command`] writes.
    fn file(&self, source: &Source) -> String {
        self.pool.own(source).map_or_else(|| source.file(self.stand_in), |own| own.facts.name.clone())
    }

    fn note_source(&self, source: &Source) {
        if !self.is_own(source) {
            self.note(source.command(self.scale(), self.stand_in, self.pool.variations()));
        }
    }

    fn note(&self, command: String) {
        let mut commands = lock(&self.commands);
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
}

/// Reason why the replay of a user's trace is inconclusive. If a trace never causes an erase in some region, it shows
/// nothing about garbage collection and wear.
fn cannot_decide(trace: &TraceFacts, wear: &[WearFigures]) -> Option<String> {
    let unworn = wear.iter().find(|region| region.erases_total == 0)?;
    let why = if trace.writes == 0 { "writes nothing" } else { "is too short for the device" };
    Some(format!("`{}` {why}: no block of `{}` was ever erased", trace.name, unworn.region))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bimetal_core::request::{Op, Request};

    #[test]
    fn a_trace_decides_nothing_where_it_does_not_write_or_wear() {
        let request = |op| Request { arrival_ns: 0, sector: 0, sectors: 8, op, handle: 0 };
        let facts = |op| TraceFacts::of("mine", "spc", &[request(op)]);
        let region = |name: &str, erases_total| WearFigures {
            region: name.into(),
            blocks: 4,
            erases_total,
            erases_mean: 0.0,
            erases_max: 1,
            erases_stddev: 0.0,
            endurance: 1e4,
            used: 0.0,
            erase_counts: Vec::new(),
        };
        assert_eq!(cannot_decide(&facts(Op::Write), &[region("slc", 1), region("mlc", 1)]), None);
        let why = cannot_decide(&facts(Op::Write), &[region("slc", 1), region("mlc", 0)]).unwrap();
        assert!(why.contains("`mine`") && why.contains("`mlc`"), "{why}");
        assert!(cannot_decide(&facts(Op::Read), &[region("mlc", 0)]).unwrap().contains("writes nothing"));
        assert_eq!(cannot_decide(&facts(Op::Read), &[region("cache", 3)]), None, "a cache is written by reads, too");
    }
}
