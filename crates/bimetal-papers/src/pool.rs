//! The processors, traces and finished replays that all figures of a run share. Figures and their replays run in
//! parallel. Each trace is generated once while it is in use, and no replay runs twice, whether its command is repeated or
//! another one describes the same device.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bimetal_study::compare::Entry;
use bimetal_study::prepare::Workload;
use bimetal_study::{StudyError, generate};
use rayon::prelude::*;

use crate::claim::StandIn;
use crate::experiment::{ANY_TRACE, Experiment, Scale, Source};
use crate::variation::{Applied, Variation};

/// Called from several threads.
pub trait LabProgress: Sync {
    /// Number of finished replays among those that figures have requested so far.
    fn replays(&self, done: usize, of: usize);

    /// Called every few milliseconds of a replay, and while a trace is generated. Returns whether to continue. After it
    /// has returned a break, it must do so for every replay.
    fn served(&self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Shows no progress.
#[derive(Debug)]
pub struct QuietLab;

impl LabProgress for QuietLab {
    fn replays(&self, _done: usize, _of: usize) {}
}

/// A value that is made once. It is locked while it is made, so that others that need it wait.
type Once<T> = Arc<Mutex<Option<T>>>;

/// Processors, traces and finished replays.
pub struct Pool<'a> {
    scale: Scale,
    /// `None` if no threads can be started: all work is then done in the calling thread.
    threads: Option<rayon::ThreadPool>,
    progress: &'a dyn LabProgress,
    /// Traces of the user, by the name of the trace that they replace.
    own: BTreeMap<String, Workload>,
    /// Settings of the user, and the number of replays in which each applied.
    variations: Vec<Variation>,
    applied: Vec<AtomicUsize>,
    /// The most recently used workloads by the commands that generate them, the latest at the end.
    recent: Mutex<Vec<(String, Once<Workload>)>>,
    /// Replays by their commands.
    replays: Mutex<BTreeMap<String, Once<Arc<Entry>>>>,
    /// The same replays by their traces, devices in full and plans.
    distinct: Mutex<BTreeMap<String, Once<Arc<Entry>>>>,
    /// Number of requested replays.
    expected: AtomicUsize,
    /// Number of these replays that are finished.
    finished: AtomicUsize,
}

/// Number of workloads kept in memory: at full size those of two figures, and the previous one; in a quick run, where
/// none takes more than some 100 MB, those of most papers.
fn recent_max(scale: Scale) -> usize {
    match scale {
        Scale::Quick => 32,
        Scale::Full => 3,
    }
}

/// Seed of every generated workload, the same as that of `bimetal generate`.
const SEED: u64 = 1;

impl<'a> Pool<'a> {
    /// A pool in which at most `jobs` replays run at once; 0 means one for each processor. Traces of the user replace
    /// generated ones, by names of [`Source`]s.
    pub fn new(scale: Scale, jobs: usize, own: BTreeMap<String, Workload>, progress: &'a dyn LabProgress) -> Self {
        Self {
            scale,
            threads: rayon::ThreadPoolBuilder::new().num_threads(jobs).build().ok(),
            progress,
            own,
            variations: Vec::new(),
            applied: Vec::new(),
            recent: Mutex::default(),
            replays: Mutex::default(),
            distinct: Mutex::default(),
            expected: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
        }
    }

    /// A pool for [`ANY_TRACE`], the requests of this workload.
    pub fn on_any_trace(workload: Workload, jobs: usize, progress: &'a dyn LabProgress) -> Self {
        Self::new(Scale::Full, jobs, BTreeMap::from([(ANY_TRACE.name.to_owned(), workload)]), progress)
    }

    /// The same with settings of the user for all experiments.
    pub fn varied(self, variations: &[Variation]) -> Self {
        let applied = variations.iter().map(|_| AtomicUsize::new(0)).collect();
        Self { variations: variations.to_vec(), applied, ..self }
    }

    /// The settings of the user.
    pub fn variations(&self) -> &[Variation] {
        &self.variations
    }

    /// The settings of the user, and where each has applied so far.
    pub fn applied(&self) -> Vec<Applied> {
        let count = |(variation, replays): (&Variation, &AtomicUsize)| Applied {
            variation: variation.clone(),
            replays: replays.load(Ordering::Relaxed),
        };
        self.variations.iter().zip(&self.applied).map(count).collect()
    }

    /// The workload of a generated trace and its settings.
    pub fn generator(&self, source: &Source, stand_in: StandIn) -> (&'static str, Vec<(String, String)>) {
        source.generator(self.scale, stand_in, &self.variations)
    }

    /// Size of the experiments.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The trace of the user that replaces a generated one.
    pub fn own(&self, source: &Source) -> Option<&Workload> {
        self.own.get(source.name)
    }

    /// Whether any of these traces has a calibrated version.
    pub fn has_calibrated(&self, sources: &[&Source]) -> bool {
        sources.iter().any(|source| source.calibrated.is_some() && self.own(source).is_none())
    }

    /// Does some work for each item, in parallel. Results are in the order of the items.
    ///
    /// # Errors
    /// An item's error.
    pub fn each<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: impl Fn(&T) -> Result<R, StudyError> + Sync + Send,
    ) -> Result<Vec<R>, StudyError> {
        match &self.threads {
            Some(threads) => threads.install(|| items.par_iter().with_max_len(1).map(work).collect()),
            None => items.iter().map(work).collect(),
        }
    }

    /// Announces replays.
    pub fn expect(&self, replays: usize) {
        let expected = self.expected.fetch_add(replays, Ordering::Relaxed) + replays;
        self.progress.replays(self.finished.load(Ordering::Relaxed), expected);
    }

    /// The requests of a trace.
    ///
    /// # Errors
    /// A workload that does not fit into memory.
    pub fn workload(&self, source: &'static Source, stand_in: StandIn) -> Result<Workload, StudyError> {
        if let Some(own) = self.own(source) {
            return Ok(own.clone());
        }
        let once = {
            let mut recent = lock(&self.recent);
            // Two papers have stand-ins of one trace, each fitted to its own figures.
            let command = source.command(self.scale, stand_in, &self.variations);
            let known = recent.iter().position(|(known, _)| *known == command);
            let once = known.map_or_else(Default::default, |at| recent.remove(at).1);
            recent.push((command, Arc::clone(&once)));
            if recent.len() > recent_max(self.scale) {
                recent.remove(0);
            }
            once
        };
        made_once(&once, || {
            let progress = &mut |_| self.progress.served();
            let (workload, settings) = self.generator(source, stand_in);
            let trace = generate::trace_with_progress(workload, &settings, SEED, progress)?;
            Ok(Workload::of(trace, None))
        })
    }

    /// The result of an experiment with this command.
    ///
    /// # Errors
    /// The experiment's error.
    pub fn replay(&self, experiment: &Experiment, command: &str, stand_in: StandIn) -> Result<Arc<Entry>, StudyError> {
        let once = Arc::clone(lock(&self.replays).entry(command.to_owned()).or_default());
        let entry = made_once(&once, || {
            let source = experiment.source;
            let prepared = experiment.prepare(self.workload(source, stand_in)?)?;
            // The file of a trace follows from the command that generates it, or is the user's.
            let trace = source.command(self.scale, stand_in, &self.variations);
            let distinct = format!("{trace} {}", prepared.description());
            let once = Arc::clone(lock(&self.distinct).entry(distinct).or_default());
            let entry = made_once(&once, || Ok(Arc::new(prepared.replay(&mut || self.progress.served())?)))?;
            self.count_applied(experiment, stand_in);
            Ok(entry)
        })?;
        let finished = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        self.progress.replays(finished, self.expected.load(Ordering::Relaxed));
        Ok(entry)
    }

    /// Counts the user's settings that apply to an experiment.
    fn count_applied(&self, experiment: &Experiment, stand_in: StandIn) {
        let source = experiment.source;
        let generator = self.own(source).is_none().then(|| self.generator(source, stand_in).0);
        for (variation, replays) in self.variations.iter().zip(&self.applied) {
            replays.fetch_add(usize::from(experiment.takes(variation, generator)), Ordering::Relaxed);
        }
    }
}

/// The value, which is made if it does not exist yet. An error leaves it unmade.
fn made_once<T: Clone>(once: &Once<T>, make: impl FnOnce() -> Result<T, StudyError>) -> Result<T, StudyError> {
    let mut value = lock(once);
    match value.as_ref() {
        Some(known) => Ok(known.clone()),
        None => Ok(value.insert(make()?).clone()),
    }
}

/// Locks a value that is never inconsistent, whatever became of other threads.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Lab;

    static FEW: Source = Source {
        name: "few",
        workload: "zipf",
        settings: &[("requests", "50"), ("span", "16MiB")],
        quick: &[],
        calibrated: None,
    };

    #[test]
    fn a_device_is_replayed_once_however_commands_describe_it() {
        let pool = Pool::new(Scale::Full, 1, BTreeMap::new(), &QuietLab);
        let lab = Lab::new(&pool, StandIn::First);
        let plain = Experiment::new(&FEW, "opfcl-1", "fpfcl").set("cache.capacity", "64MiB");
        let experiments = [
            plain.clone(),
            plain.clone().set("cache.capacity", "65536KiB"),
            plain.clone().set("sequential_unit", "128KiB"),
            plain.clone().set("sequential_unit", "64KiB"),
            plain.passes(2, 1),
        ];
        let entries = lab.run(&experiments).unwrap();
        let same_as_first: Vec<bool> = entries.iter().map(|entry| Arc::ptr_eq(entry, &entries[0])).collect();
        assert_eq!(same_as_first, [true, true, true, false, false]);
        assert_eq!(lock(&pool.replays).len(), experiments.len());
        assert_eq!(lock(&pool.distinct).len(), 3);
    }
}
