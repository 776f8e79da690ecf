//! Load of a device during a replay, and whether the device was overloaded.
//!
//! An overloaded device has no mean response in an open loop: the queue grows as long as the trace lasts, and so does
//! every figure of the responses.

use serde::{Deserialize, Serialize};

use super::{DiskDescription, RegionDescription};
use crate::ledger::{Server, ServerKind};
use crate::replay::{Course, Measured, STRETCHES, Stretch};
use crate::units::Nanos;

/// Load of a device.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoadFigures {
    /// Busiest part: a region's dies (`mlc`), its channels (`mlc channels`), a disk, the `controller`, the `host link`,
    /// or `device` if the device does one operation at a time.
    pub bottleneck: String,
    /// Share of the simulated time in which this part was busy, the mean over all of its dies or channels.
    pub utilisation: f64,
    /// Open loop: time from the last arrival to the last completion, in seconds.
    pub backlog_s: f64,
    /// Mean responses of the first to the last eighth of the measured requests, in microseconds.
    pub response_trend_us: Vec<f64>,
    /// Whether responses measure the queue more than the device.
    pub overload: Overload,
}

/// Whether a device was overloaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overload {
    /// The device kept up, or the loop is closed.
    #[default]
    None,
    /// The device fell behind in bursts and recovered: most of the mean response is waiting time in bursts.
    Bursts,
    /// The device fell behind more and more, or was far behind at the end: means and percentiles of the responses
    /// depend on the length of the trace.
    Growing,
}

/// A device has fallen behind if its last completion is later than the last arrival by more than this share of the
/// trace's duration ...
const BACKLOG_SHARE: f64 = 0.01;
/// ... and by more than a second. The responses then depend on the length of the trace, whatever their trend.
const BACKLOG_NS: f64 = 1e9;
/// A backlog of less than a second counts, too, if the mean response grows from the first half to the last quarter of
/// the requests by more than this share of the trace's duration. A queue that grows steadily to the backlog above grows
/// by 0.625 % in between.
const GROWTH_SHARE: f64 = 0.0025;
/// A mean response of more than this many times the work that a request causes, with the shortest response for the time
/// in the controller, is mostly waiting time.
const WAITING_RATIO: f64 = 20.0;

impl LoadFigures {
    /// Without the course of a replay, no waiting is known.
    pub(super) fn of(
        regions: &[RegionDescription<'_>],
        disks: &[DiskDescription<'_>],
        measured: &Measured,
        course: Option<&Course>,
    ) -> Self {
        let simulated = Nanos(measured.simulated_ns);
        let utilisation = |server: &Server| server.utilisation(simulated);
        let busiest = measured.servers.iter().max_by(|a, b| utilisation(a).total_cmp(&utilisation(b)));
        let name = |server: &Server| match server.kind {
            ServerKind::Device => "device".into(),
            ServerKind::Dies(region) => regions[region].name.to_owned(),
            ServerKind::Channels(region) => format!("{} channels", regions[region].name),
            ServerKind::Disk(disk) => disks[disk].name.to_owned(),
            ServerKind::Controller => "controller".into(),
            ServerKind::Link => "host link".into(),
        };
        Self {
            bottleneck: busiest.map(name).unwrap_or_default(),
            // Work that is still queued at the end of the trace is counted, but done later.
            utilisation: busiest.map_or(0.0, utilisation).min(1.0),
            backlog_s: course.map_or(0.0, |course| course.backlog_ns as f64 / 1e9),
            response_trend_us: course.map_or_else(Vec::new, response_trend_us),
            overload: course.map_or(Overload::None, |course| overload(measured, course)),
        }
    }
}

fn mean_ns(stretches: &[Stretch]) -> f64 {
    let served: u64 = stretches.iter().map(|stretch| stretch.served).sum();
    let total: u128 = stretches.iter().map(|stretch| stretch.response_total_ns).sum();
    total as f64 / served.max(1) as f64
}

fn response_trend_us(course: &Course) -> Vec<f64> {
    course.stretches.iter().map(|stretch| mean_ns(&[*stretch]) / 1e3).collect()
}

fn overload(measured: &Measured, course: &Course) -> Overload {
    if course.arrivals.is_closed() || course.stretches.len() < STRETCHES {
        return Overload::None;
    }
    let (first_half, last_quarter) = (&course.stretches[..STRETCHES / 2], &course.stretches[STRETCHES * 3 / 4..]);
    let growth_ns = mean_ns(last_quarter) - mean_ns(first_half);
    let arrivals_ns = course.arrivals_ns as f64;
    let (backlog_ns, limit_ns) = (course.backlog_ns as f64, BACKLOG_SHARE * arrivals_ns);
    let is_behind = backlog_ns > limit_ns.max(BACKLOG_NS);
    if is_behind || (backlog_ns > limit_ns && growth_ns > GROWTH_SHARE * arrivals_ns) {
        return Overload::Growing;
    }
    let served: u64 = course.stretches.iter().map(|stretch| stretch.served).sum();
    let work_ns = measured.ledger.busy().0 as f64 / served.max(1) as f64;
    let shortest_ns = measured.reads.merged(&measured.writes).quantile_ns(0.0) as f64;
    if mean_ns(&course.stretches) > WAITING_RATIO * (work_ns + shortest_ns) { Overload::Bursts } else { Overload::None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Faults, SimMedia, SimRegion};
    use crate::replay::{Arrivals, Plan, run};
    use crate::request::{Op, Request};
    use crate::scheme::{RegionShape, Shape, build};
    use crate::units::Geometry;

    /// Reads of 60 µs, with these gaps before them.
    fn load(gaps_us: impl Iterator<Item = u64>, plan: &Plan) -> LoadFigures {
        let mut arrival_ns = 0;
        let mut request = |(number, gap_us): (u64, u64)| {
            arrival_ns += gap_us * 1000;
            Request { arrival_ns, sector: number * 8 % 4096, sectors: 8, op: Op::Read, handle: 0 }
        };
        let requests: Vec<Request> = (0..).zip(gaps_us).map(&mut request).collect();
        let chip = chip::find("chang-mlc").unwrap();
        let geometry = Geometry::new(chip.page_bytes, chip.pages_per_block, 16, 1).unwrap();
        let regions = vec![RegionShape { chip: chip.clone(), geometry }];
        let shape = Shape { logical_sectors: 8192, regions, disks: Vec::new(), seed: 1 };
        let mut media =
            SimMedia::new(&[SimRegion { chip: chip.clone(), geometry, channels: 1, faults: Faults::default() }], 1);
        let mut scheme = build::<SimMedia>("pagemap", &shape, &[]).unwrap();
        let outcome = run(&mut media, scheme.as_mut(), &requests, plan, &mut crate::replay::to_the_end);
        LoadFigures::of(
            &[RegionDescription { name: "mlc", chip: &chip, geometry }],
            &[],
            &outcome.measured,
            Some(&outcome.course),
        )
    }

    fn open(speed: f64) -> Plan {
        Plan { arrivals: Arrivals::Trace { speed }, ..Plan::default() }
    }

    #[test]
    fn a_closed_loop_keeps_its_die_busy_and_is_never_overloaded() {
        let load = load((0..1000).map(|_| 0), &Plan::default());
        assert_eq!((load.bottleneck.as_str(), load.utilisation, load.overload), ("mlc", 1.0, Overload::None));
        assert_eq!(load.response_trend_us, vec![60.0; STRETCHES]);
    }

    #[test]
    fn more_than_the_device_can_do_is_overload_and_less_is_not() {
        let at = |speed, passes| {
            let plan = Plan { passes, ..open(speed) };
            load((0..10_000).map(|_| 120), &plan)
        };
        let half = at(1.0, 1);
        assert!((half.utilisation - 0.5).abs() < 0.001 && half.overload == Overload::None, "{half:?}");
        assert_eq!(at(1.99, 1).overload, Overload::None);
        for (speed, passes) in [(2.1, 1), (3.0, 1), (3.0, 4), (1e6, 1)] {
            let load = at(speed, passes);
            assert!(load.overload == Overload::Growing && load.utilisation > 0.99, "{speed}: {load:?}");
            assert!(load.response_trend_us.windows(2).all(|pair| pair[0] < pair[1]), "{load:?}");
        }
        // 10,000 reads of 60 µs that arrive within 0.4 s.
        assert!((at(3.0, 1).backlog_s - 0.2).abs() < 0.001);
    }

    #[test]
    fn a_burst_that_the_device_recovers_from_is_told_from_overload() {
        let gap_us = |number: u64| if (4_000..6_000).contains(&number) { 10 } else { 120 };
        let load = load((0..10_000).map(gap_us), &open(1.0));
        assert!(load.overload == Overload::Bursts && load.backlog_s < 0.001, "{load:?}");
        assert!(load.response_trend_us[4] > 1_000.0, "{load:?}");
        let small = |number: u64| if (4_000..4_010).contains(&number) { 10 } else { 120 };
        assert_eq!(self::load((0..10_000).map(small), &open(1.0)).overload, Overload::None);
    }

    #[test]
    fn a_device_that_ends_a_second_and_a_hundredth_of_the_trace_late_has_fallen_behind() {
        // Requests of 60 µs every 120 µs for 1.2 s, then a burst.
        let late =
            |burst: u64| load((0..10_000 + burst).map(|number| if number < 10_000 { 120 } else { 0 }), &open(1.0));
        let (short, long) = (late(1_600), late(17_000));
        assert!(short.backlog_s < 0.1 && short.overload != Overload::None, "{short:?}");
        assert!(long.backlog_s > 1.0 && long.overload == Overload::Growing, "{long:?}");
        // A burst at the end of four minutes of little work is a large share of all requests, but no trend.
        let gap_us = |number: u64| if number < 60_000 { 4_000 } else { 0 };
        let one = |burst: u64| load((0..60_000 + burst).map(gap_us), &open(1.0));
        let (kept_up, behind) = (one(39_000), one(42_000));
        assert!(kept_up.backlog_s < 2.4 && kept_up.overload != Overload::Growing, "{kept_up:?}");
        assert!(behind.backlog_s > 2.4 && behind.overload == Overload::Growing, "{behind:?}");
    }

    #[test]
    fn the_end_of_a_short_trace_is_no_overload() {
        let load = load((0..8).map(|_| 120), &open(1.0));
        assert!(load.backlog_s > BACKLOG_SHARE * 8.0 * 120e-6 && load.overload == Overload::None, "{load:?}");
    }

    #[test]
    fn nothing_is_no_load() {
        let load = load([].into_iter(), &open(1.0));
        assert_eq!((load.utilisation, load.backlog_s, load.overload), (0.0, 0.0, Overload::None));
        assert!(load.response_trend_us.is_empty());
    }
}
