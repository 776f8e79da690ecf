//! The replay of one device, and its result.

use std::ops::ControlFlow;
use std::time::Instant;

use bimetal_core::device::Resolved;
use bimetal_core::replay::{self, Arrivals, Fill, Plan};
use bimetal_core::report::{self, Report, TraceFacts};
use bimetal_core::request::{Request, SECTOR_BYTES};
use bimetal_core::units::Nanos;

use super::entry::{Entry, Speed};
use super::parts::{DiskFacts, RegionFacts};
use crate::error::YEARS_MAX;
use crate::{StudyError, arrivals};

/// Refuses a replay whose clock would overflow.
fn check_duration(requests: &[Request], plan: &Plan) -> Result<(), StudyError> {
    const YEAR_NS: f64 = 365.0 * 86_400e9;
    let (Arrivals::Trace { speed }, Some(first), Some(last)) = (plan.arrivals, requests.first(), requests.last())
    else {
        return Ok(());
    };
    let duration_ns = last.arrival_ns.saturating_sub(first.arrival_ns) as f64 / speed;
    let years = duration_ns * (1.0 + 1.0 / requests.len() as f64) * f64::from(plan.passes) / YEAR_NS;
    if years > YEARS_MAX as f64 { Err(StudyError::TooLong { years }) } else { Ok(()) }
}

/// Runs one device.
///
/// # Errors
/// The device does not suit its scheme, or `served` stopped it.
pub fn entry(
    resolved: &Resolved,
    requests: &[Request],
    facts: &TraceFacts,
    plan: &Plan,
    served: replay::Progress<'_>,
) -> Result<Entry, StudyError> {
    check_duration(requests, plan)?;
    let mut media = resolved.media();
    let mut scheme = resolved.build().map_err(bimetal_core::device::DeviceError::from)?;
    // The fill runs separately, so that only the passes are timed.
    replay::fill(&mut media, scheme.as_mut(), requests, plan.fill);
    let start = Instant::now();
    let mut flow = ControlFlow::Continue(());
    let mut watched = |requests| {
        flow = served(requests);
        flow
    };
    let plan_of_passes = Plan { fill: Fill::None, controller: resolved.controller.clone(), ..plan.clone() };
    let outcome = replay::run(&mut media, scheme.as_mut(), requests, &plan_of_passes, &mut watched);
    let wall_s = start.elapsed().as_secs_f64();
    if flow.is_break() {
        return Err(StudyError::Stopped);
    }
    let passes = f64::from(plan.passes);
    let page_ops = outcome.measured.ledger.page_ops() as f64 / f64::from(plan.measured_passes.max(1)) * passes;
    let per_s = |count: f64| if wall_s > 0.0 { count / wall_s } else { 0.0 };
    let speed =
        Speed { wall_s, requests_per_s: per_s(requests.len() as f64 * passes), page_ops_per_s: per_s(page_ops) };
    let (described, disks) = resolved.described();
    let report =
        Report::of(&resolved.device.scheme, &described, &disks, &outcome.measured, Some(&outcome.course), facts);
    let at_once = |dies: u32| if resolved.device.serial { 1 } else { dies };
    let busy_ns = |index: usize| {
        let rows = outcome.measured.ledger.rows.iter().filter(|row| row.region == index);
        rows.map(|row| row.on_die().0).sum::<u64>() as f64
    };
    let regions = described.iter().enumerate().map(|(index, region)| {
        let dies = f64::from(at_once(region.geometry.dies));
        let busy = busy_ns(index) / (outcome.measured.simulated_ns.max(1) as f64 * dies);
        RegionFacts::of(region, resolved.regions[index].channels, busy)
    });
    let simulated = Nanos(outcome.measured.simulated_ns);
    let disk_facts = disks.iter().zip(&outcome.measured.ledger.disks);
    let disk_facts = disk_facts.map(|(disk, counts)| DiskFacts::of(disk.name, disk.volume, counts.busy(), simulated));
    let (block_wearing, phi) = match report.wear.as_slice() {
        [fast, .., slow] => (report::block_wearing(fast, slow), report::phi(fast, slow)),
        _ => (None, None),
    };
    let arrivals = arrivals::name(plan.arrivals);
    let service = (arrivals == arrivals::SERVICE).then_some(&report);
    let logical_bytes = resolved.device.logical.0.max(1) as f64;
    Ok(Entry {
        service_us: service.map(|report| report.response_us),
        service_read_us: service.map(|report| report.read_us),
        service_write_us: service.map(|report| report.write_us),
        backlog_s: report.load.backlog_s,
        lifetime_overwrites: (outcome.measured.host.write_sectors * SECTOR_BYTES) as f64 / logical_bytes,
        arrivals,
        report,
        block_wearing,
        phi,
        relative: None,
        device: resolved.device.clone(),
        regions: regions.collect(),
        disks: disk_facts.collect(),
        spare: resolved.spare(),
        notes: resolved.notes.clone(),
        speed,
        spread: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bimetal_core::request::Op;

    #[test]
    fn a_replay_of_centuries_is_refused() {
        let year_ns = 365 * 86_400 * 1_000_000_000;
        let requests = [0, 100 * year_ns].map(|arrival_ns| Request {
            arrival_ns,
            sector: 0,
            sectors: 8,
            op: Op::Write,
            handle: 0,
        });
        let plan = |passes, speed| Plan { passes, arrivals: Arrivals::Trace { speed }, ..Plan::default() };
        assert!(check_duration(&requests, &plan(1, 1.0)).is_ok());
        assert!(check_duration(&requests, &plan(3, 2.0)).is_ok());
        let error = check_duration(&requests, &plan(3, 1.0)).unwrap_err().to_string();
        assert!(error.contains("takes 450 years") && error.contains("at most 292"), "{error}");
        assert!(check_duration(&requests, &Plan { passes: 1000, ..Plan::default() }).is_ok(), "one request at a time");
    }
}
