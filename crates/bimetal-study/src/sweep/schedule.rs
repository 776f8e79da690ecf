//! Runs the points of a study on threads. Each trace is decoded once and dropped after its last point.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::failure::{Failure, FailureKind};
use super::kept::Kept;
use super::results::{Results, ResultsError};
use super::row::Row;
use super::run::run_on;
use super::source::{Loaded, TraceSource};
use super::study::Planned;
use crate::{StudyError, memory};

/// Called from several threads while points run.
pub trait Progress: Sync {
    /// This number of points was in the results file.
    fn resumed(&self, _points: usize) {}
    /// A trace is being decoded.
    fn loading(&self, _trace: &TraceSource) {}
    /// A point has progressed by this share; all shares of a point add up to 1. Returns whether to continue. Otherwise
    /// running points stop and no others start.
    fn advanced(&self, _share: f64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// A point is done.
    fn done(&self, _row: &Row) {}
}

/// Shows no progress.
#[derive(Debug)]
pub struct Quiet;

impl Progress for Quiet {}

/// Runs the points that the results file lacks, `jobs` at once; 0 means one for each processor. Rows are in the order
/// of the points. Points that `progress` stopped have no row.
///
/// # Errors
/// The results file cannot be written. Errors of a point are in its row.
pub fn run(
    points: &[Planned],
    folder: &Path,
    results: Option<Results>,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Vec<Row>, ResultsError> {
    let schedule = Schedule::new(points, folder, results, progress);
    let jobs = if jobs == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    std::thread::scope(|scope| {
        for _ in 1..jobs.min(schedule.order.len()) {
            // If no thread can be started, this thread does all the work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, || schedule.work());
        }
        schedule.work();
    });
    let Schedule { kept, error, .. } = schedule;
    match error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(kept.into_inner().unwrap_or_else(PoisonError::into_inner).into_rows()),
    }
}

struct Schedule<'a> {
    points: &'a [Planned],
    folder: &'a Path,
    progress: &'a dyn Progress,
    /// Points to run, grouped by trace: index in `traces` and index of the point.
    order: Vec<(usize, usize)>,
    /// Index of the next one in `order`.
    next: AtomicUsize,
    traces: Vec<Slot<'a>>,
    memory: Gate,
    stop: AtomicBool,
    kept: Mutex<Kept>,
    /// The first error of writing a row.
    error: Mutex<Option<ResultsError>>,
}

/// A trace, in memory from its first point to its last.
struct Slot<'a> {
    source: &'a TraceSource,
    /// Whether all devices are fitted to the trace.
    is_fitted: bool,
    /// Number of points that have not run.
    left: AtomicUsize,
    loaded: Mutex<Option<Result<Arc<Loaded>, Failure>>>,
}

impl<'a> Schedule<'a> {
    fn new(points: &'a [Planned], folder: &'a Path, results: Option<Results>, progress: &'a dyn Progress) -> Self {
        let kept = Kept::new(points, folder, results);
        // Trace by trace, in the order of their first points.
        let mut order = kept.left();
        let mut traces: Vec<Slot<'a>> = Vec::new();
        let mut before: Option<usize> = None;
        for (trace, at) in &mut order {
            let point = &points[*at].point;
            if before.replace(*trace) != Some(*trace) {
                let left = AtomicUsize::new(0);
                traces.push(Slot { source: &point.trace, is_fitted: true, left, loaded: Mutex::default() });
            }
            *trace = traces.len() - 1;
            *traces[*trace].left.get_mut() += 1;
            traces[*trace].is_fitted &= point.device.device().is_ok_and(|device| device.fit_to_trace);
        }
        progress.resumed(points.len() - order.len());
        Self {
            points,
            folder,
            progress,
            order,
            next: AtomicUsize::new(0),
            traces,
            memory: Gate::default(),
            stop: AtomicBool::new(false),
            kept: Mutex::new(kept),
            error: Mutex::default(),
        }
    }

    /// Runs points until none are left.
    fn work(&self) {
        while let Some(&(trace, at)) = self.order.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            self.run(&self.traces[trace], at);
        }
    }

    fn run(&self, slot: &Slot<'_>, at: usize) {
        let point = &self.points[at].point;
        let mut told = 0.0;
        let row = match self.load(slot) {
            Ok(trace) => {
                let requests = trace.workload.requests.len() as f64 * f64::from(point.replay.repeat);
                run_on(point, &trace, &|bytes| self.memory.enter(bytes), &mut |served| {
                    let share = (served as f64 / requests).min(1.0);
                    let flow = self.progress.advanced(share - told);
                    told = share;
                    flow
                })
            }
            Err(failure) => Row::failed(point, "", failure),
        };
        if slot.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            lock(&slot.loaded).take();
        }
        let is_stopped = row.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Stopped);
        if is_stopped || self.progress.advanced(1.0 - told).is_break() {
            self.stop.store(true, Ordering::Relaxed);
        }
        if is_stopped {
            return;
        }
        self.progress.done(&row);
        self.keep(at, row);
    }

    /// The trace of a point. The first worker that needs it decodes it, and the others wait.
    fn load(&self, slot: &Slot<'_>) -> Result<Arc<Loaded>, Failure> {
        let mut loaded = lock(&slot.loaded);
        let load = || {
            self.progress.loading(slot.source);
            let Loaded { workload, fingerprint } = slot.source.load(self.folder)?;
            let workload = if slot.is_fitted { workload.compacted() } else { workload };
            Ok(Arc::new(Loaded { workload, fingerprint }))
        };
        loaded.get_or_insert_with(load).clone()
    }

    fn keep(&self, at: usize, row: Row) {
        if let Err(error) = lock(&self.kept).keep(at, row) {
            lock(&self.error).get_or_insert(error);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Admits simulations while memory is available. The others wait until one has ended.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Checks whether this number of bytes is available.
    check: fn(u64) -> Result<(), StudyError>,
    /// Bytes that the admitted simulations need.
    taken: Mutex<u64>,
    left: Condvar,
}

/// A reservation of memory until it is dropped.
pub(crate) struct Permit<'a> {
    gate: &'a Gate,
    bytes: u64,
}

impl Default for Gate {
    fn default() -> Self {
        Self { check: memory::check_bytes, taken: Mutex::default(), left: Condvar::new() }
    }
}

impl Gate {
    /// # Errors
    /// The memory is insufficient even for this simulation alone.
    pub(crate) fn enter(&self, bytes: u64) -> Result<Permit<'_>, StudyError> {
        let mut taken = lock(&self.taken);
        // Memory that others reserved but have not touched still counts as available. Hence the check adds the
        // reservations.
        while *taken > 0 && (self.check)(taken.saturating_add(bytes)).is_err() {
            taken = self.left.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        (self.check)(bytes)?;
        *taken += bytes;
        Ok(Permit { gate: self, bytes })
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.gate.taken) -= self.bytes;
        self.gate.left.notify_all();
    }
}

/// Locks a mutex even if it is poisoned. No guarded value here is ever inconsistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::export::Table;
    use crate::sweep::failure::FailureKind;
    use crate::sweep::study::Study;

    /// Counts the calls.
    #[derive(Default)]
    struct Counts {
        loaded: AtomicUsize,
        done: AtomicUsize,
        resumed: AtomicUsize,
        advanced: Mutex<f64>,
    }

    impl Progress for Counts {
        fn loading(&self, _trace: &TraceSource) {
            self.loaded.fetch_add(1, Ordering::Relaxed);
        }
        fn resumed(&self, points: usize) {
            self.resumed.fetch_add(points, Ordering::Relaxed);
        }
        fn advanced(&self, share: f64) -> ControlFlow<()> {
            assert!((0.0..=1.0).contains(&share));
            *lock(&self.advanced) += share;
            ControlFlow::Continue(())
        }
        fn done(&self, _row: &Row) {
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    const STUDY: &str = "
        traces = [
            { limit = 400 },
            { generate = \"zipf\", set = { requests = 500, span = \"16MiB\" } },
            { files = \"gone.csv\" },
        ]
        [[grids]]
        scheme = [\"pagemap\", \"chang\"]
        set.\"slow.spare\" = [\"9%\", \"0%\", \"15%\"]
        ";

    fn without_speed(rows: &[Row]) -> Vec<Row> {
        rows.iter().map(Row::without_speed).collect()
    }

    /// Stops everything at the second report of progress.
    struct Impatient(AtomicUsize);

    impl Progress for Impatient {
        fn advanced(&self, _share: f64) -> ControlFlow<()> {
            if self.0.load(Ordering::Relaxed) > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }

        fn done(&self, _row: &Row) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn simulations_wait_for_memory_that_others_use() {
        fn check(needed: u64) -> Result<(), StudyError> {
            if needed > 10 { Err(StudyError::Memory { needed_mib: needed, available_mib: 10 }) } else { Ok(()) }
        }
        let gate = Gate { check, ..Gate::default() };
        assert!(gate.enter(11).is_err(), "no end of another simulation makes room for it");
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _permit = gate.enter(4).unwrap();
                        let others = inside.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        assert!(others < 2, "{others} others have 4 of 10 bytes each");
                    }
                });
            }
        });
    }

    #[test]
    fn whoever_watches_may_end_it() {
        let text = "traces = [{ limit = 400 }]\n[[grids]]\nscheme = [\"pagemap\", \"chang\", \"hyssd\"]";
        let study = Study::parse(text, Path::new(".")).unwrap();
        let rows = run(&study.points, Path::new("."), None, 1, &Impatient(AtomicUsize::new(0))).unwrap();
        assert!((1..3).contains(&rows.len()) && rows.iter().all(|row| row.failure.is_none()), "{rows:?}");
    }

    #[test]
    fn every_point_has_its_row_in_order_whatever_the_threads() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone.csv");
        std::fs::write(&gone, "0,0,4096,w,0.0\n").unwrap();
        let study = Study::parse(STUDY, folder.path()).unwrap();
        // The file disappears after the study was parsed.
        std::fs::remove_file(&gone).unwrap();
        let run = |jobs| {
            let counts = Counts::default();
            let rows = run(&study.points, folder.path(), None, jobs, &counts).unwrap();
            assert!((*lock(&counts.advanced) - 18.0).abs() < 1e-9);
            assert_eq!((counts.loaded.into_inner(), counts.done.into_inner()), (3, 18), "{jobs} jobs");
            rows
        };
        let rows = run(1);
        for (row, planned) in rows.iter().zip(&study.points) {
            assert_eq!(row.point, planned.point);
        }
        let kinds: Vec<_> = rows.iter().map(|row| row.failure.as_ref().map(|failure| failure.kind)).collect();
        let spare = [None, Some(FailureKind::Refused), None];
        let expected = [spare, spare, spare, spare].concat();
        assert_eq!(kinds[..12], expected);
        assert_eq!(kinds[12..], [Some(FailureKind::Trace); 6]);
        for jobs in [2, 7] {
            assert_eq!(without_speed(&run(jobs)), without_speed(&rows), "{jobs} jobs");
        }
    }

    #[test]
    fn what_is_in_the_results_is_not_run_again() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("gone.csv"), "0,0,4096,w,0.0\n").unwrap();
        let study = Study::parse(STUDY, folder.path()).unwrap();
        let path = folder.path().join("results.jsonl");
        let run = |points: &[Planned]| {
            let counts = Counts::default();
            let results = Results::open(&path, false).unwrap();
            let rows = run(points, folder.path(), Some(results), 2, &counts).unwrap();
            assert_eq!(counts.done.into_inner() + counts.resumed.into_inner(), points.len());
            (rows, counts.loaded.into_inner())
        };
        // First the last trace and a part of the first, then all points. Rows of other studies do not interfere.
        let (_, loaded) = run(&study.points[13..]);
        assert_eq!(loaded, 1);
        let (_, loaded) = run(&study.points[..4]);
        assert_eq!(loaded, 1);
        let (rows, loaded) = run(&study.points);
        assert_eq!((rows.len(), loaded), (18, 3));
        let (again, loaded) = run(&study.points);
        assert_eq!((again, loaded), (rows.clone(), 0));
        // A trace with changed content counts as a different trace.
        std::fs::write(folder.path().join("gone.csv"), "0,8,4096,w,0.0\n").unwrap();
        let (changed, loaded) = run(&study.points);
        assert_eq!((&changed[..12], loaded), (&rows[..12], 1));
        assert_ne!(changed[12].key, rows[12].key);
    }

    #[test]
    fn cut_off_anywhere_a_study_ends_as_if_it_never_had_been() {
        let text = "traces = [{ files = \"t.spc\" }]\n[[grids]]\nscheme = \"pagemap\"\nset.\"slow.spare\" = [\"90%\", \"0%\", \"80%\"]";
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.spc"), "0,0,4096,w,0.0\n0,8,4096,r,0.5\n").unwrap();
        let study = Study::parse(text, folder.path()).unwrap();
        let path = folder.path().join("results.jsonl");
        let export = || {
            let results = Results::open(&path, false).unwrap();
            let rows = run(&study.points, folder.path(), Some(results), 1, &Quiet).unwrap();
            let mut csv = Vec::new();
            Table::of(&without_speed(&rows)).write_csv(&mut csv).unwrap();
            csv
        };
        let whole = export();
        let written = std::fs::read(&path).unwrap();
        let ends: Vec<usize> = (1..=written.len()).filter(|&at| written[at - 1] == b'\n').collect();
        assert_eq!(ends.len(), 4);
        // Every byte of the header and of the last two rows, one of which is a failure.
        for cut in (0..=ends[0]).chain(ends[1]..=written.len()) {
            std::fs::write(&path, &written[..cut]).unwrap();
            assert!(export() == whole, "cut at {cut}");
        }
    }
}
