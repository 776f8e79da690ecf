//! Where the papers' experiments run: workloads are made once and shared, replays run side by side, and none twice.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bimetal_core::device;
use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::replay::{Arrivals, Plan};
use bimetal_core::report::{TraceFacts, WearFigures};

use crate::claim::StandIn;
use bimetal_study::compare::{self, Entry};
use bimetal_study::prepare::{Schemes, Workload, prepare};
use bimetal_study::{StudyError, arrivals, generate};

/// How large experiments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Fewer requests: minutes for everything.
    Quick,
    /// As large as in the papers.
    Full,
}

impl Scale {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// A trace of a paper: a stand-in is generated unless a user has the trace.
#[derive(Debug)]
pub struct Source {
    /// Name on the command line: `--trace NAME=FILE`.
    pub name: &'static str,
    /// The workload that stands in for it.
    pub workload: &'static str,
    /// Settings of the workload at any scale.
    pub settings: &'static [(&'static str, &'static str)],
    /// Settings of a quick run, beside those or in their place: fewer requests, or less space for a device that is smaller,
    /// too. A user's trace is taken whole.
    pub quick: &'static [(&'static str, &'static str)],
    /// The calibrated stand-in, if there is one.
    pub calibrated: Option<Fitted>,
}

/// A calibrated stand-in: what `examples/calibrate.rs` found.
#[derive(Clone, Copy, Debug)]
pub struct Fitted {
    /// The workload.
    pub workload: &'static str,
    /// Settings beside those of the first stand-in, or in their place.
    pub settings: &'static [(&'static str, &'static str)],
}

impl Source {
    /// The calibrated stand-in, if it is asked for and there is one.
    fn fitted(&self, stand_in: StandIn) -> Option<Fitted> {
        self.calibrated.filter(|_| stand_in == StandIn::Calibrated)
    }

    /// The workload and its settings.
    fn generator(&self, scale: Scale, stand_in: StandIn) -> (&'static str, Vec<(String, String)>) {
        let fitted = self.fitted(stand_in);
        let quick = if scale == Scale::Quick { self.quick } else { &[] };
        let mut settings: Vec<(String, String)> = Vec::new();
        for &(key, value) in self.settings.iter().chain(fitted.map_or(&[][..], |fitted| fitted.settings)).chain(quick) {
            settings.retain(|(known, _)| known != key);
            settings.push((key.to_owned(), value.to_owned()));
        }
        (fitted.map_or(self.workload, |fitted| fitted.workload), settings)
    }

    /// Name of a file with it.
    fn file(&self, stand_in: StandIn) -> String {
        let kind = if self.fitted(stand_in).is_some() { "-calibrated" } else { "" };
        format!("{}{kind}.bimetal", self.name)
    }

    /// The command that writes that file.
    fn command(&self, scale: Scale, stand_in: StandIn) -> String {
        let (workload, settings) = self.generator(scale, stand_in);
        let mut command = format!("bimetal generate {workload} {}", self.file(stand_in));
        for (key, value) in settings {
            command += &format!(" --set {key}={value}");
        }
        command
    }
}

/// One replay: a trace, a device, a scheme and how.
#[derive(Clone, Debug)]
pub struct Experiment {
    source: &'static Source,
    device: &'static str,
    scheme: &'static str,
    settings: Vec<(String, String)>,
    plan: Plan,
}

impl Experiment {
    /// A trace on a device of `bimetal list devices`, with its own scheme, one request after the other, on a filled device.
    pub fn new(source: &'static Source, device: &'static str, scheme: &'static str) -> Self {
        Self { source, device, scheme, settings: Vec::new(), plan: Plan { intervals: 0, ..Plan::default() } }
    }

    /// Sets a parameter of the scheme or a field of the device, in the place of what it was set to before.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.settings.retain(|(known, _)| known != key);
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    /// Requests arrive so.
    pub fn arrivals(mut self, arrivals: Arrivals) -> Self {
        self.plan.arrivals = arrivals;
        self
    }

    /// The trace is replayed so often, and the last `measured` times count.
    pub fn passes(mut self, passes: u32, measured: u32) -> Self {
        (self.plan.passes, self.plan.measured_passes) = (passes, measured);
        self
    }

    /// The device is new, not filled.
    pub fn fresh(mut self) -> Self {
        self.plan.fill = false;
        self
    }

    /// Figures over time, in `intervals` intervals.
    pub fn intervals(mut self, intervals: u32) -> Self {
        self.plan.intervals = intervals;
        self
    }

    /// The command that does the same with the trace in that file.
    fn command(&self, file: &str) -> String {
        let mut command = format!("bimetal replay {file}");
        command += &format!(" --device {} --scheme {}", self.device, self.scheme);
        for (key, value) in &self.settings {
            command += &format!(" --set {key}={value}");
        }
        let default = Plan::default();
        command += &format!(" --arrivals {}", arrivals::name(self.plan.arrivals));
        if self.plan.passes != default.passes {
            command += &format!(" --repeat {}", self.plan.passes);
        }
        if self.plan.measured_passes != self.plan.passes {
            command += &format!(" --measure {}", self.plan.measured_passes);
        }
        if !self.plan.fill {
            command += " --no-fill";
        }
        if self.plan.intervals > 0 {
            command += &format!(" --intervals {}", self.plan.intervals);
        }
        command
    }
}

/// Called from several threads.
pub trait LabProgress: Sync {
    /// A number of the replays that a figure asked for at once are done.
    fn replays(&self, done: usize, of: usize);

    /// Every few milliseconds of a replay, and while a trace is generated: whether to go on. Once it says no, it must say so for every replay.
    fn served(&self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// No progress is shown.
#[derive(Debug)]
pub struct QuietLab;

impl LabProgress for QuietLab {
    fn replays(&self, _done: usize, _of: usize) {}
}

/// A workload by the name of its file; locked while it is generated, so that others who need it wait.
type Recent = (String, Arc<Mutex<Option<Workload>>>);

/// Generated or opened traces and finished replays.
pub struct Lab<'a> {
    scale: Scale,
    stand_in: StandIn,
    jobs: usize,
    progress: &'a dyn LabProgress,
    /// Traces of the user, by the name of what they stand in for.
    own: BTreeMap<String, Workload>,
    /// The workloads used last, the latest at the end.
    recent: Mutex<Vec<Recent>>,
    /// Finished replays by their commands.
    done: Mutex<BTreeMap<String, Arc<Entry>>>,
    /// Commands since they were last taken, in order.
    commands: Mutex<Vec<String>>,
    /// Why a user's trace cannot decide what it was replayed for since this was last taken.
    undecided: Mutex<Option<String>>,
}

/// Workloads that stay in memory.
const RECENT: usize = 2;

impl<'a> Lab<'a> {
    /// A lab in which at most `jobs` replays run at once, and which takes traces of the user, by names of [`Source`]s, in
    /// the place of generated ones.
    pub fn new(scale: Scale, jobs: usize, own: BTreeMap<String, Workload>, progress: &'a dyn LabProgress) -> Self {
        let jobs = if jobs == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { jobs };
        Self {
            scale,
            stand_in: StandIn::First,
            jobs,
            progress,
            own,
            recent: Mutex::default(),
            done: Mutex::default(),
            commands: Mutex::default(),
            undecided: Mutex::default(),
        }
    }

    /// From now on generated traces are these.
    pub fn take_stand_in(&mut self, stand_in: StandIn) {
        self.stand_in = stand_in;
    }

    /// Which traces are generated.
    pub fn stand_in(&self) -> StandIn {
        self.stand_in
    }

    /// The workload of a trace and its settings.
    pub fn generator(&self, source: &Source) -> (&'static str, Vec<(String, String)>) {
        source.generator(self.scale, self.stand_in)
    }

    /// Whether any of these traces is another one if calibrated.
    pub fn has_calibrated(&self, sources: &[&Source]) -> bool {
        sources.iter().any(|source| source.calibrated.is_some() && !self.is_own(source))
    }

    /// How large experiments are.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Whether a user's trace is in the place of a generated one.
    pub fn is_own(&self, source: &Source) -> bool {
        self.own.contains_key(source.name)
    }

    /// Whether a trace is generated shorter than the paper's.
    pub fn is_cut(&self, source: &Source) -> bool {
        self.scale == Scale::Quick && !self.is_own(source)
    }

    /// Requests of a trace.
    ///
    /// # Errors
    /// A workload that does not fit into memory.
    pub fn workload(&self, source: &'static Source) -> Result<Workload, StudyError> {
        if let Some(own) = self.own.get(source.name) {
            return Ok(own.clone());
        }
        let slot = {
            let mut recent = lock(&self.recent);
            let file = source.file(self.stand_in);
            let known = recent.iter().position(|(name, _)| *name == file);
            let slot = known.map_or_else(Default::default, |at| recent.remove(at).1);
            recent.push((file, Arc::clone(&slot)));
            if recent.len() > RECENT {
                recent.remove(0);
            }
            slot
        };
        let mut slot = lock(&slot);
        if let Some(workload) = slot.as_ref() {
            return Ok(workload.clone());
        }
        let progress = &mut |_| self.progress.served();
        let (workload, settings) = self.generator(source);
        let trace = generate::trace_with_progress(workload, &settings, SEED, progress)?;
        Ok(slot.insert(Workload::of(trace, None)).clone())
    }

    /// How many requests a trace has, and of what sizes.
    ///
    /// # Errors
    /// As [`Self::workload`].
    pub fn facts(&self, source: &'static Source) -> Result<TraceFacts, StudyError> {
        self.note_source(source);
        Ok(self.workload(source)?.facts)
    }

    /// What a trace is like.
    ///
    /// # Errors
    /// As [`Self::workload`].
    pub fn profile(&self, source: &'static Source, curves: &CurvePlan) -> Result<Profile, StudyError> {
        self.note_source(source);
        self.note(format!("bimetal profile {} --curve-points {}", self.file(source), curves.points));
        let workload = self.workload(source)?;
        Ok(Profile::of(&workload.requests, curves))
    }

    /// Runs every experiment that has not been run; results are in the order of the experiments.
    ///
    /// # Errors
    /// The first experiment that cannot be done.
    pub fn run(&self, experiments: &[Experiment]) -> Result<Vec<Arc<Entry>>, StudyError> {
        let command = |experiment: &Experiment| experiment.command(&self.file(experiment.source));
        let commands: Vec<String> = experiments.iter().map(command).collect();
        for (experiment, command) in experiments.iter().zip(&commands) {
            self.note_source(experiment.source);
            self.note(command.clone());
        }
        let mut due: Vec<(&Experiment, &String)> = experiments.iter().zip(&commands).collect();
        due.retain(|(_, command)| !lock(&self.done).contains_key(*command));
        due.sort_by_key(|(experiment, command)| (experiment.source.name, *command));
        due.dedup_by_key(|(_, command)| *command);
        let (next, finished, failed) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(None));
        self.progress.replays(0, due.len());
        let work = || {
            while let Some(&(experiment, command)) = due.get(next.fetch_add(1, Ordering::Relaxed)) {
                match self.replay(experiment) {
                    Ok(entry) => lock(&self.done).insert(command.clone(), Arc::new(entry)),
                    Err(error) => {
                        next.store(due.len(), Ordering::Relaxed);
                        lock(&failed).get_or_insert(error);
                        return;
                    }
                };
                self.progress.replays(finished.fetch_add(1, Ordering::Relaxed) + 1, due.len());
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.jobs.min(due.len()) {
                // If no thread is to be had, this one does it all.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let done = lock(&self.done);
        for (experiment, command) in experiments.iter().zip(&commands) {
            if let (Some(own), Some(entry)) = (self.own.get(experiment.source.name), done.get(command))
                && let Some(why) = cannot_decide(&own.facts, &entry.report.wear)
            {
                lock(&self.undecided).get_or_insert(why);
            }
        }
        Ok(commands.iter().filter_map(|command| done.get(command).cloned()).collect())
    }

    /// The commands that repeat what was asked for since this was last called, each once.
    pub fn take_commands(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.commands))
    }

    /// Why a user's trace cannot decide what it was replayed for since this was last called, if it cannot.
    pub fn take_undecided(&self) -> Option<String> {
        lock(&self.undecided).take()
    }

    /// The file with a trace: the user's, or the one that [`Source::command`] writes.
    fn file(&self, source: &Source) -> String {
        self.own.get(source.name).map_or_else(|| source.file(self.stand_in), |own| own.facts.name.clone())
    }

    fn note_source(&self, source: &Source) {
        if !self.is_own(source) {
            self.note(source.command(self.scale, self.stand_in));
        }
    }

    fn note(&self, command: String) {
        let mut commands = lock(&self.commands);
        if !commands.contains(&command) {
            commands.push(command);
        }
    }

    fn replay(&self, experiment: &Experiment) -> Result<Entry, StudyError> {
        let workload = self.workload(experiment.source)?;
        let device = device::preset(experiment.device)?;
        let scheme = Schemes::named(&[experiment.scheme.to_owned()]).map_err(device::DeviceError::from)?;
        let prepared = prepare(workload, Some(device), &scheme, &experiment.settings)?;
        let (requests, facts) = (&prepared.workload.requests, &prepared.workload.facts);
        match prepared.runs.first() {
            Some(resolved) => {
                compare::entry(resolved, requests, facts, &experiment.plan, &mut |_| self.progress.served())
            }
            None => Err(StudyError::NoScheme { reason: experiment.scheme.to_owned() }),
        }
    }
}

/// Why nothing follows from the replay of a user's trace. The papers' devices have the papers' sizes: a trace that never makes
/// one erase a block of some region says nothing of how schemes collect and wear them.
fn cannot_decide(trace: &TraceFacts, wear: &[WearFigures]) -> Option<String> {
    let unworn = wear.iter().find(|region| region.erases_total == 0)?;
    let why = if trace.writes == 0 { "writes nothing" } else { "is too short for the paper's device" };
    Some(format!("`{}` {why}: no block of `{}` was ever erased", trace.name, unworn.region))
}

/// Seed of every generated workload: that of `bimetal generate`.
const SEED: u64 = 1;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is guarded is ever half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[test]
    fn quick_settings_take_the_place_of_others() {
        let source = Source {
            name: "n",
            workload: "w",
            settings: &[("requests", "100"), ("used", "8GiB"), ("span", "9GiB")],
            quick: &[("requests", "7"), ("used", "1GiB")],
            calibrated: Some(Fitted { workload: "v", settings: &[("theta", "1"), ("used", "6GiB")] }),
        };
        let command =
            |scale, stand_in| source.command(scale, stand_in).replace("bimetal generate ", "").replace("--set ", "");
        let of = StandIn::ALL.map(|stand_in| [Scale::Full, Scale::Quick].map(|scale| command(scale, stand_in)));
        assert_eq!(
            of[0],
            ["w n.bimetal requests=100 used=8GiB span=9GiB", "w n.bimetal span=9GiB requests=7 used=1GiB"]
        );
        let calibrated = ["requests=100 span=9GiB theta=1 used=6GiB", "span=9GiB theta=1 requests=7 used=1GiB"];
        assert_eq!(of[1], calibrated.map(|settings| format!("v n-calibrated.bimetal {settings}")));
    }
}
