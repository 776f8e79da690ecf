//! The replays of each scheme: at the trace's own times for responses, one request at a time for service times, or
//! both.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bimetal_core::replay::{Arrivals, Plan};
use bimetal_core::report::TraceFacts;

/// Service times are measured in a closed loop with one request.
const SERVICE: Arrivals = Arrivals::Closed { depth: 1 };

/// Called from several threads while schemes run.
pub trait Progress: Sync {
    /// Scheme number `run` of the results has served a number of requests. Returns whether to continue. After it has
    /// returned a break, it must do so for all schemes.
    fn served(&self, run: usize, requests: u64) -> ControlFlow<()>;
    /// A scheme is done.
    fn done(&self, run: usize);
}

/// Shows no progress.
#[derive(Debug)]
pub struct Quiet;

impl Progress for Quiet {
    fn served(&self, _run: usize, _requests: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn done(&self, _run: usize) {}
}

/// The replays of each scheme.
#[derive(Clone, Debug, PartialEq)]
pub struct Replays {
    /// The replay whose figures are shown and written.
    pub main: Plan,
    /// A second replay, which contributes only service times.
    pub service: Option<Plan>,
}

impl Replays {
    /// The requested arrivals alone, if there are any. By default, a trace with times is replayed at these times and
    /// one request at a time, and a trace without times only one request at a time.
    pub fn of(plan: Plan, asked: Option<Arrivals>, trace: &TraceFacts) -> Self {
        match asked {
            Some(arrivals) => Self { main: Plan { arrivals, ..plan }, service: None },
            None if trace.duration_s > 0.0 => Self {
                main: Plan { arrivals: Arrivals::Trace { speed: 1.0 }, ..plan.clone() },
                service: Some(Plan { arrivals: SERVICE, intervals: 0, ..plan }),
            },
            None => Self { main: Plan { arrivals: SERVICE, ..plan }, service: None },
        }
    }

    /// Whether the main replay measures service times.
    pub fn is_service(&self) -> bool {
        self.main.arrivals == SERVICE
    }

    /// Requests served for each scheme, if the main replay is repeated for `seeds` seeds.
    pub fn requests(&self, trace: &TraceFacts, seeds: u32) -> u64 {
        let passes = self.main.passes * seeds + self.service.as_ref().map_or(0, |plan| plan.passes);
        trace.requests * u64::from(passes)
    }

    /// All plans, the main one first.
    pub(crate) fn plans(&self) -> Vec<&Plan> {
        std::iter::once(&self.main).chain(&self.service).collect()
    }
}

/// The progress of schemes whose replays run in parallel.
pub(crate) struct Tally<'a> {
    /// Requests served, by scheme and replay.
    served: Vec<Vec<AtomicU64>>,
    /// Replays of each scheme that are not done.
    left: Vec<AtomicUsize>,
    progress: &'a dyn Progress,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(schemes: usize, replays: usize, progress: &'a dyn Progress) -> Self {
        let served = (0..schemes).map(|_| (0..replays).map(|_| AtomicU64::new(0)).collect()).collect();
        Self { served, left: (0..schemes).map(|_| AtomicUsize::new(replays)).collect(), progress }
    }

    pub(crate) fn served(&self, scheme: usize, replay: usize, requests: u64) -> ControlFlow<()> {
        self.served[scheme][replay].store(requests, Ordering::Relaxed);
        let sum = self.served[scheme].iter().map(|served| served.load(Ordering::Relaxed)).sum();
        self.progress.served(scheme, sum)
    }

    pub(crate) fn done(&self, scheme: usize) {
        if self.left[scheme].fetch_sub(1, Ordering::Relaxed) == 1 {
            self.progress.done(scheme);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn facts(duration_s: f64) -> TraceFacts {
        TraceFacts { duration_s, requests: 7, ..TraceFacts::of("t", "t", &[]) }
    }

    #[test]
    fn a_trace_with_times_is_replayed_twice_unless_arrivals_are_asked_for() {
        let plan = Plan { passes: 3, intervals: 5, ..Plan::default() };
        let of = |asked, duration_s| Replays::of(plan.clone(), asked, &facts(duration_s));
        let both = of(None, 2.0);
        assert_eq!(both.main, Plan { arrivals: Arrivals::Trace { speed: 1.0 }, ..plan.clone() });
        assert_eq!(both.service, Some(Plan { arrivals: SERVICE, intervals: 0, ..plan.clone() }));
        assert_eq!((both.is_service(), both.requests(&facts(2.0), 4)), (false, 7 * (3 * 4 + 3)));
        let untimed = of(None, 0.0);
        assert_eq!((&untimed, untimed.requests(&facts(0.0), 1)), (&of(Some(SERVICE), 2.0), 21));
        assert!(untimed.is_service() && untimed.service.is_none());
        let deep = of(Some(Arrivals::Closed { depth: 8 }), 2.0);
        assert!(deep.service.is_none() && !deep.is_service());
    }

    #[derive(Default)]
    struct Seen(Mutex<Vec<(usize, u64)>>, AtomicUsize);

    impl Progress for Seen {
        fn served(&self, run: usize, requests: u64) -> ControlFlow<()> {
            self.0.lock().unwrap().push((run, requests));
            ControlFlow::Continue(())
        }
        fn done(&self, _run: usize) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn both_replays_of_a_scheme_count_and_it_is_done_once() {
        let seen = Seen::default();
        let tally = Tally::new(2, 2, &seen);
        for (scheme, replay, requests) in [(0, 0, 10), (1, 1, 3), (0, 1, 5), (0, 0, 20)] {
            assert!(tally.served(scheme, replay, requests).is_continue());
        }
        tally.done(0);
        assert_eq!(seen.1.load(Ordering::Relaxed), 0);
        tally.done(0);
        assert_eq!(seen.1.load(Ordering::Relaxed), 1);
        assert_eq!(*seen.0.lock().unwrap(), [(0, 10), (1, 3), (0, 15), (0, 25)]);
    }
}
