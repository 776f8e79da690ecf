//! Replay: gives requests to a scheme over simulated media at their arrival times, and measures.
//!
//! Deterministic: the same requests, configuration and seed give the same [`Outcome`] to the bit on any machine. A
//! replay allocates nothing after it has made its buffers.

mod fill;
mod outcome;
mod responses;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

pub use fill::{Fill, fill};
pub use outcome::{Course, HostCounts, Interval, Measured, Outcome, STRETCHES, Stretch};
pub use responses::Responses;

use crate::controller::{self, Controller, Direct, Front};
use crate::ledger::Ledger;
use crate::media::{DiskOp, FlashOp, Simulation};
use crate::request::{Op, Request};
use crate::scheme::{Metrics, Scheme};

/// When requests are issued.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Open loop: at the trace's timestamps, divided by `speed`.
    Trace {
        /// 2 is twice as fast.
        speed: f64,
    },
    /// Closed loop: a new request as soon as fewer than `depth` are outstanding; timestamps are ignored. With depth 1
    /// and one die the response is the papers' sum of operation times.
    Closed {
        /// Outstanding requests, at least 1.
        depth: u32,
    },
}

impl Arrivals {
    /// Whether the device itself sets the pace.
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Closed { .. })
    }
}

/// How to replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// When requests are issued.
    pub arrivals: Arrivals,
    /// How often the requests are replayed, at least 1.
    pub passes: u32,
    /// Number of last passes that the figures cover.
    pub measured_passes: u32,
    /// Data on the device before the first pass.
    pub fill: Fill,
    /// Number of intervals that the measured passes are cut into for figures over time; 0 for none.
    pub intervals: u32,
    /// The controller in front of the scheme, on a device that has one.
    pub controller: Option<controller::Spec>,
    /// Open loop: the host counts as idle if no request arrives for this long after the last completion.
    pub idle_after_ns: u64,
}

impl Default for Plan {
    /// One measured pass over a filled device, closed loop at depth 1.
    fn default() -> Self {
        Self {
            arrivals: Arrivals::Closed { depth: 1 },
            passes: 1,
            measured_passes: 1,
            fill: Fill::Device,
            intervals: 0,
            controller: None,
            idle_after_ns: 10_000_000,
        }
    }
}

/// Called every few milliseconds with the number of requests served so far; returns whether to continue.
pub type Progress<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// The [`Progress`] of a replay that is neither watched nor stopped.
pub fn to_the_end(_served: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// How many requests ahead a scheme prefetches: memory latency divided by the time of a request, generously rounded up.
const PREFETCH_FAR: usize = 12;
const PREFETCH_NEAR: usize = 4;
/// Number of requests that are prefetched together. If entries are far apart, most of the time goes into finding their
/// memory pages, and the processor finds several at the same time.
const PREFETCH_BATCH: usize = 8;

const PROGRESS_STEP: u64 = 1 << 14;

/// Replays `requests` into `scheme` over `media` according to `plan`.
///
/// The requests must lie within the scheme's logical capacity. If `progress` stops the replay, the outcome is that of
/// the requests served until then.
pub fn run<M: Simulation>(
    media: &mut M,
    scheme: &mut dyn Scheme<M>,
    requests: &[Request],
    plan: &Plan,
    progress: Progress<'_>,
) -> Outcome {
    fill(media, scheme, requests, plan.fill);
    match &plan.controller {
        Some(spec) => run_behind(Controller::new(spec), media, scheme, requests, plan, progress),
        None => run_behind(Direct, media, scheme, requests, plan, progress),
    }
}

/// Replays requests that reach the scheme through `front`.
fn run_behind<F: Front, M: Simulation>(
    front: F,
    media: &mut M,
    scheme: &mut dyn Scheme<M>,
    requests: &[Request],
    plan: &Plan,
    progress: Progress<'_>,
) -> Outcome {
    let mut driver = Driver::new(front, media, scheme, requests, plan);
    for pass in 0..plan.passes {
        if pass + plan.measured_passes.max(1) == plan.passes {
            driver.start_measuring(media);
        }
        let flow = match plan.arrivals {
            Arrivals::Trace { speed } => driver.open_pass(media, scheme, requests, pass, speed, progress),
            Arrivals::Closed { depth } => driver.closed_pass(media, scheme, requests, depth, progress),
        };
        if flow.is_break() {
            break;
        }
    }
    driver.finish(media, scheme)
}

struct Driver<'a, F> {
    plan: &'a Plan,
    front: F,
    measured: Measured,
    course: Course,
    served: u64,
    /// Requests of an interval and of a stretch, and the number that the current ones still lack.
    interval_requests: u64,
    interval_left: u64,
    stretch_requests: u64,
    stretch_left: u64,
    /// Requests until the current interval or stretch is full, whichever is first; their number at the last mark; and
    /// the reads and writes served since that mark.
    mark_left: u64,
    mark_requests: u64,
    since_mark: Stretch,
    since_mark_max_ns: u64,
    metrics: Metrics,
    current: Interval,
    stretch: Stretch,
    /// Completion of the request that ended last, and the start of measuring.
    latest_ns: u64,
    start_ns: u64,
    outstanding: BinaryHeap<Reverse<u64>>,
}

impl<'a, F: Front> Driver<'a, F> {
    fn new<M: Simulation>(front: F, media: &M, scheme: &dyn Scheme<M>, requests: &[Request], plan: &'a Plan) -> Self {
        let mut metrics = Metrics::default();
        scheme.metrics(&mut metrics);
        let measured = requests.len() as u64 * u64::from(plan.measured_passes.clamp(1, plan.passes.max(1)));
        let interval_requests =
            if plan.intervals == 0 { u64::MAX } else { measured.div_ceil(u64::from(plan.intervals)).max(1) };
        let current = Interval {
            host: HostCounts::default(),
            end_ns: 0,
            served: 0,
            response_total_ns: 0,
            response_max_ns: 0,
            ops: vec![[0; 3]; media.ledger().rows.len()],
            disk_ops: vec![[0; 2]; media.ledger().disks.len()],
            metrics: Vec::with_capacity(metrics.iter().count()),
        };
        let stretch_requests = measured.div_ceil(STRETCHES as u64).max(1);
        let depth = match plan.arrivals {
            Arrivals::Closed { depth } => depth as usize,
            Arrivals::Trace { .. } => 0,
        };
        Self {
            plan,
            front,
            measured: Measured {
                ledger: Ledger::default(),
                erased_before: Vec::with_capacity(media.ledger().rows.len()),
                fixed_slc_erased_before: 0,
                reads: Responses::new(),
                writes: Responses::new(),
                host: HostCounts::default(),
                simulated_ns: 0,
                servers: Vec::new(),
                metrics: Metrics::default(),
                fixed_slc_blocks: scheme.fixed_slc_blocks(),
            },
            course: Course {
                arrivals: plan.arrivals,
                backlog_ns: 0,
                arrivals_ns: 0,
                stretches: Vec::with_capacity(STRETCHES),
                controller: Metrics::default(),
                intervals: Vec::with_capacity(plan.intervals as usize + 1),
            },
            served: 0,
            interval_requests,
            interval_left: interval_requests,
            stretch_requests,
            stretch_left: stretch_requests,
            mark_left: interval_requests.min(stretch_requests),
            mark_requests: interval_requests.min(stretch_requests),
            since_mark: Stretch::default(),
            since_mark_max_ns: 0,
            metrics,
            current,
            stretch: Stretch::default(),
            latest_ns: 0,
            start_ns: 0,
            outstanding: BinaryHeap::with_capacity(depth + 1),
        }
    }

    fn start_measuring<M: Simulation>(&mut self, media: &mut M) {
        let erased = media.ledger().rows.iter().map(|row| row.counts.total(FlashOp::Erase));
        self.measured.erased_before.clear();
        self.measured.erased_before.extend(erased);
        let fixed = self.measured.fixed_slc_blocks as usize;
        let counts = media.ledger().erases.last().into_iter().flat_map(|blocks| blocks.iter().take(fixed));
        self.measured.fixed_slc_erased_before = counts.map(|&count| u64::from(count)).sum();
        media.reset_counts();
        self.front.reset_counts();
        self.measured.reads.clear();
        self.measured.writes.clear();
        self.measured.host = HostCounts::default();
        self.course.intervals.clear();
        self.course.stretches.clear();
        self.course.arrivals_ns = 0;
        self.start_interval();
        self.start_stretch();
        self.start_mark();
        self.start_ns = self.latest_ns;
    }

    fn closed_pass<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        requests: &[Request],
        depth: u32,
        progress: Progress<'_>,
    ) -> ControlFlow<()> {
        for (index, request) in requests.iter().enumerate() {
            if index % PREFETCH_BATCH == 0 {
                for index in index..index + PREFETCH_BATCH {
                    if let Some(far) = requests.get(index + PREFETCH_FAR) {
                        self.front.prefetch(scheme, far, &requests[index + PREFETCH_NEAR]);
                    }
                }
            }
            let issue_ns = if depth <= 1 {
                self.latest_ns
            } else if self.outstanding.len() < depth as usize {
                self.start_ns
            } else {
                self.outstanding.pop().map_or(self.latest_ns, |Reverse(completion)| completion)
            };
            let completion = self.serve(media, scheme, request, issue_ns, issue_ns);
            if depth > 1 {
                self.outstanding.push(Reverse(completion));
            }
            self.report(progress)?;
        }
        ControlFlow::Continue(())
    }

    fn open_pass<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        requests: &[Request],
        pass: u32,
        speed: f64,
        progress: Progress<'_>,
    ) -> ControlFlow<()> {
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return ControlFlow::Continue(()) };
        let scale = |ns: u64| if speed == 1.0 { ns } else { (ns as f64 / speed) as u64 };
        // A pass begins one mean inter-arrival time after the last arrival of the previous pass. Without times between the
        // requests it begins when the previous pass is served.
        let duration = scale(last.arrival_ns - first.arrival_ns.min(last.arrival_ns));
        let period = duration + duration.checked_div(requests.len() as u64 - 1).unwrap_or(0);
        let offset = if period == 0 { self.latest_ns } else { u64::from(pass) * period };
        for request in requests {
            let arrival_ns = offset + scale(request.arrival_ns.saturating_sub(first.arrival_ns));
            let quiet_ns = arrival_ns.saturating_sub(self.latest_ns);
            if quiet_ns > self.plan.idle_after_ns {
                // Work that was begun in earlier idle times is finished first, or background work would grow without
                // bound.
                let behind_ns = media.backlog_ns(self.latest_ns + self.plan.idle_after_ns);
                self.idle(media, scheme, (quiet_ns - self.plan.idle_after_ns).saturating_sub(behind_ns));
            }
            self.serve(media, scheme, request, arrival_ns, arrival_ns);
            self.report(progress)?;
        }
        self.course.backlog_ns = self.latest_ns.saturating_sub(offset + duration);
        let passes_before =
            u64::from(pass.saturating_sub(self.plan.passes.saturating_sub(self.plan.measured_passes.max(1))));
        self.course.arrivals_ns = passes_before * period + duration;
        ControlFlow::Continue(())
    }

    /// Idle time allows as much background work as fits into it.
    fn idle<M: Simulation>(&mut self, media: &mut M, scheme: &mut dyn Scheme<M>, idle_ns: u64) {
        self.front.idle(media, scheme, self.latest_ns + self.plan.idle_after_ns);
        let budget_pages = media.background_pages(idle_ns).min(u64::from(u32::MAX)) as u32;
        media.begin_background();
        scheme.idle(media, budget_pages);
    }

    #[inline]
    fn serve<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        request: &Request,
        arrival_ns: u64,
        issue_ns: u64,
    ) -> u64 {
        let completion = self.front.serve(media, scheme, request, issue_ns);
        let response_ns = completion - arrival_ns;
        match request.op {
            Op::Read => self.measured.reads.record(response_ns),
            Op::Write => self.measured.writes.record(response_ns),
            Op::Trim => {}
        }
        self.measured.host.add(request);
        self.latest_ns = self.latest_ns.max(completion);
        if request.op != Op::Trim {
            self.since_mark.served += 1;
            self.since_mark.response_total_ns += u128::from(response_ns);
            self.since_mark_max_ns = self.since_mark_max_ns.max(response_ns);
        }
        self.served += 1;
        self.mark_left -= 1;
        if self.mark_left == 0 {
            self.mark(media, scheme);
        }
        completion
    }

    #[inline]
    fn report(&self, progress: Progress<'_>) -> ControlFlow<()> {
        if self.served.is_multiple_of(PROGRESS_STEP) { progress(self.served) } else { ControlFlow::Continue(()) }
    }

    /// Adds the requests served since the last mark to the current interval and stretch, and closes those that are
    /// full.
    #[cold]
    fn mark<M: Simulation>(&mut self, media: &M, scheme: &dyn Scheme<M>) {
        let requests = self.mark_requests - self.mark_left;
        self.current.served += self.since_mark.served;
        self.current.response_total_ns += self.since_mark.response_total_ns;
        self.current.response_max_ns = self.current.response_max_ns.max(self.since_mark_max_ns);
        self.stretch.served += self.since_mark.served;
        self.stretch.response_total_ns += self.since_mark.response_total_ns;
        self.interval_left -= requests;
        self.stretch_left -= requests;
        if self.interval_left == 0 {
            self.close_interval(media, scheme);
        }
        if self.stretch_left == 0 {
            self.close_stretch();
        }
        self.start_mark();
    }

    fn start_mark(&mut self) {
        self.mark_requests = self.interval_left.min(self.stretch_left);
        self.mark_left = self.mark_requests;
        self.since_mark = Stretch::default();
        self.since_mark_max_ns = 0;
    }

    fn close_stretch(&mut self) {
        // Passes that are not measured may have more stretches.
        if self.course.stretches.len() < STRETCHES {
            self.course.stretches.push(self.stretch);
        }
        self.start_stretch();
    }

    fn start_stretch(&mut self) {
        self.stretch_left = self.stretch_requests;
        self.stretch = Stretch::default();
    }

    fn start_interval(&mut self) {
        self.interval_left = self.interval_requests;
        self.current.served = 0;
        self.current.response_total_ns = 0;
        self.current.response_max_ns = 0;
    }

    fn close_interval<M: Simulation>(&mut self, media: &M, scheme: &dyn Scheme<M>) {
        self.metrics.clear();
        scheme.metrics(&mut self.metrics);
        let mut interval = self.current.clone();
        interval.host = self.measured.host;
        interval.end_ns = self.latest_ns - self.start_ns;
        for (ops, row) in interval.ops.iter_mut().zip(&media.ledger().rows) {
            *ops = FlashOp::ALL.map(|op| row.counts.total(op));
        }
        for (ops, counts) in interval.disk_ops.iter_mut().zip(&media.ledger().disks) {
            *ops = DiskOp::ALL.map(|op| counts.total(op).count);
        }
        interval.metrics.clear();
        interval.metrics.extend(self.metrics.iter().map(|(_, value)| value));
        self.course.intervals.push(interval);
        self.start_interval();
    }

    fn finish<M: Simulation>(mut self, media: &mut M, scheme: &mut dyn Scheme<M>) -> Outcome {
        // Data that are still in a buffer, and queued writes of disks, are part of the measurement.
        self.front.drain(media, scheme, self.latest_ns);
        media.finish();
        self.front.metrics(&mut self.course.controller);
        self.mark(media, scheme);
        if self.plan.intervals > 0 {
            // The drain belongs to the last interval, also if that is already full.
            let is_empty = self.interval_left == self.interval_requests;
            if let Some(last) = self.course.intervals.pop_if(|_| is_empty) {
                self.current = last;
                self.close_interval(media, scheme);
            } else if !is_empty {
                self.close_interval(media, scheme);
            }
        }
        if self.stretch.served > 0 {
            self.close_stretch();
        }
        self.measured.reads.close_run();
        self.measured.writes.close_run();
        self.metrics.clear();
        scheme.metrics(&mut self.metrics);
        self.measured.metrics = self.metrics;
        self.measured.servers = media.servers();
        self.measured.servers.extend(self.front.servers());
        self.measured.ledger = media.ledger().clone();
        self.measured.simulated_ns = self.latest_ns - self.start_ns;
        Outcome { measured: self.measured, course: self.course }
    }
}

#[cfg(test)]
mod tests;
