//! Schemes side by side on the same requests.
//!
//! Each scheme runs on its own simulated device, several at once on threads of their own. Results are in the order in
//! which the schemes were given, and everything in them but `speed` is the same for any number of threads.

use std::time::Instant;

use bimetal_core::device::{Device, Resolved};
use bimetal_core::replay::{self, Plan};
use bimetal_core::report::{self, DiskDescription, RegionDescription, Report, TraceFacts};
use bimetal_core::request::Request;
use rayon::prelude::*;
use serde::Serialize;

use crate::prepare::{Addresses, Prepared};
use crate::{StudyError, arrivals, memory};

/// What `compare` and `replay` write as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Version of this program.
    pub bimetal: &'static str,
    /// The trace.
    pub trace: TraceFacts,
    /// Where its addresses lie on the devices.
    pub addresses: Addresses,
    /// How it was replayed.
    pub replay: ReplayFacts,
    /// What a user should know before trusting a figure.
    pub warnings: Vec<String>,
    /// One entry for each scheme.
    pub results: Vec<Entry>,
}

/// How a trace was replayed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayFacts {
    /// `closed:DEPTH` or `trace:SPEED`.
    pub arrivals: String,
    /// How often the trace was replayed.
    pub passes: u32,
    /// How many of the last passes were measured.
    pub measured_passes: u32,
    /// Whether the devices were filled before.
    pub filled: bool,
}

/// One scheme.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// All figures.
    #[serde(flatten)]
    pub report: Report,
    /// The device in full, as configured: a device file of its own.
    pub device: Device,
    /// What the regions amount to.
    pub regions: Vec<RegionFacts>,
    /// Capacity of the slow region beyond the logical capacity, as a share of the logical capacity.
    pub spare: f64,
    /// Wear of the fast region by that of the slow one: Chang's BW.
    pub block_wearing: Option<f64>,
    /// Share of life used of the more worn region by that of the other: WLAFTL's Φ.
    pub phi: Option<f64>,
    /// Beside the first scheme of the comparison; none for that one itself.
    pub relative: Option<Relative>,
    /// What was rounded or adapted.
    pub notes: Vec<String>,
    /// How fast the simulation was.
    pub speed: Speed,
}

/// A scheme beside the first one of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Relative {
    /// The first scheme.
    pub to: String,
    /// Its total response by this one's: Chang's RS.
    pub response_speedup: Option<f64>,
    /// This one's energy by its: Chang's ES.
    pub energy: Option<f64>,
    /// The price of this one's flash by that of its: Chang's EC.
    pub cost: Option<f64>,
}

impl Relative {
    fn of(first: &Report, report: &Report) -> Self {
        Self {
            to: first.scheme.clone(),
            response_speedup: report::response_speedup(first, report),
            energy: report::energy_saving(first, report),
            cost: report::extra_cost(first, report),
        }
    }
}

/// What a region amounts to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegionFacts {
    /// Name.
    pub name: String,
    /// Name of the part.
    pub chip: String,
    /// Raw capacity.
    pub capacity_bytes: u64,
    /// Blocks.
    pub blocks: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Dies, over all channels.
    pub dies: u32,
    /// Share of the simulated time in which its dies worked.
    pub busy: f64,
}

/// How fast the simulation was. The only figures that differ from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Speed {
    /// Duration of all passes on this machine, without filling the device.
    pub wall_s: f64,
    /// Requests by that.
    pub requests_per_s: f64,
    /// Flash page reads and programs by that; those of unmeasured passes are taken to be as many as of measured ones.
    pub page_ops_per_s: f64,
}

/// Called from several threads while schemes run.
pub trait Progress: Sync {
    /// A scheme has served so many requests; `run` is its place in the results.
    fn served(&self, run: usize, requests: u64);
    /// A scheme is done.
    fn done(&self, run: usize);
}

/// No progress is shown.
#[derive(Debug)]
pub struct Quiet;

impl Progress for Quiet {
    fn served(&self, _run: usize, _requests: u64) {}
    fn done(&self, _run: usize) {}
}

/// Runs every prepared device, at most `jobs` at once; 0 is as many as there are processors.
///
/// # Errors
/// A device that does not suit its scheme, or too little memory.
pub fn run(prepared: &Prepared, plan: &Plan, jobs: usize, progress: &dyn Progress) -> Result<Comparison, StudyError> {
    let jobs = if jobs == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    memory::check(&prepared.runs, jobs)?;
    let workload = &prepared.workload;
    let one = |(index, resolved): (usize, &Resolved)| {
        let result = entry(resolved, &workload.requests, &workload.facts, plan, &mut |served| {
            progress.served(index, served);
        });
        progress.done(index);
        result
    };
    let every = || prepared.runs.par_iter().enumerate().with_max_len(1).map(one).collect::<Result<Vec<Entry>, _>>();
    let results = match rayon::ThreadPoolBuilder::new().num_threads(jobs.min(prepared.runs.len())).build() {
        Ok(pool) => pool.install(every),
        // No thread is to be had: one scheme after the other.
        Err(_) => prepared.runs.iter().enumerate().map(one).collect(),
    }?;
    let results = beside_the_first(results);
    let mut warnings = workload.warnings.clone();
    warnings.extend(prepared.warnings.iter().cloned());
    warnings.extend(results.iter().flat_map(worn_out));
    warnings.extend(overload(&results, plan));
    Ok(Comparison {
        bimetal: env!("CARGO_PKG_VERSION"),
        trace: workload.facts.clone(),
        addresses: prepared.addresses,
        replay: ReplayFacts {
            arrivals: arrivals::name(plan.arrivals),
            passes: plan.passes,
            measured_passes: plan.measured_passes,
            filled: plan.fill,
        },
        warnings,
        results,
    })
}

/// Each scheme but the first is put beside the first.
fn beside_the_first(mut results: Vec<Entry>) -> Vec<Entry> {
    if let Some((first, others)) = results.split_first_mut() {
        for other in others {
            other.relative = Some(Relative::of(&first.report, &other.report));
        }
    }
    results
}

fn entry(
    resolved: &Resolved,
    requests: &[Request],
    facts: &TraceFacts,
    plan: &Plan,
    served: &mut dyn FnMut(u64),
) -> Result<Entry, StudyError> {
    let mut media = resolved.media();
    let mut scheme = resolved.build().map_err(bimetal_core::device::DeviceError::from)?;
    if plan.fill {
        // Apart from the passes, so that they alone are timed.
        replay::run(&mut media, scheme.as_mut(), &[], &Plan { intervals: 0, ..plan.clone() }, &mut |_| {});
    }
    let start = Instant::now();
    let outcome = replay::run(&mut media, scheme.as_mut(), requests, &Plan { fill: false, ..plan.clone() }, served);
    let wall_s = start.elapsed().as_secs_f64();
    let passes = f64::from(plan.passes);
    let page_ops = outcome.ledger.page_ops() as f64 / f64::from(plan.measured_passes.max(1)) * passes;
    let per_s = |count: f64| if wall_s > 0.0 { count / wall_s } else { 0.0 };
    let speed =
        Speed { wall_s, requests_per_s: per_s(requests.len() as f64 * passes), page_ops_per_s: per_s(page_ops) };
    let names = resolved.device.regions.iter().map(|region| region.name.as_str());
    let described: Vec<RegionDescription<'_>> = names
        .zip(&resolved.regions)
        .map(|(name, region)| RegionDescription { name, chip: &region.chip, geometry: region.geometry })
        .collect();
    let disks = resolved.device.disks.iter().zip(&resolved.volumes);
    let disks: Vec<_> = disks.map(|(disk, volume)| DiskDescription { name: &disk.name, volume }).collect();
    let report = Report::of(&resolved.device.scheme, &described, &disks, &outcome, facts);
    let busy_ns = |index: usize| {
        let rows = outcome.ledger.rows.iter().filter(|row| row.region == index);
        rows.map(|row| row.busy().0).sum::<u64>() as f64
    };
    let regions = described.iter().enumerate().map(|(index, region)| RegionFacts {
        name: region.name.into(),
        chip: region.chip.name.clone(),
        capacity_bytes: region.geometry.capacity_bytes(),
        blocks: region.geometry.blocks,
        block_bytes: region.geometry.block_bytes(),
        dies: region.geometry.dies,
        busy: busy_ns(index) / (outcome.simulated_ns.max(1) as f64 * f64::from(region.geometry.dies)),
    });
    let (block_wearing, phi) = match report.wear.as_slice() {
        [fast, .., slow] => (report::block_wearing(fast, slow), report::phi(fast, slow)),
        _ => (None, None),
    };
    Ok(Entry {
        report,
        block_wearing,
        phi,
        relative: None,
        device: resolved.device.clone(),
        regions: regions.collect(),
        spare: resolved.spare(),
        notes: resolved.notes.clone(),
        speed,
    })
}

/// Regions whose failures exceeded their replacement blocks: a real device would have gone read-only.
fn worn_out(entry: &Entry) -> impl Iterator<Item = String> {
    let regions = entry.report.faults.iter().filter(|faults| faults.counts.failures_unreplaced > 0);
    regions.map(|faults| {
        let (scheme, region) = (&entry.report.scheme, &faults.region);
        format!(
            "`{scheme}`: {} failures in `{region}` found no replacement block, and a real device would be read-only from \
             the first on; hint: set `{region}.replacement_blocks` above {}",
            faults.counts.failures_unreplaced, faults.counts.blocks_replaced
        )
    })
}

/// Open loop: a device that ends more than this share of its time after the trace is overloaded.
const BACKLOG_SHARE_MAX: f64 = 0.01;
/// Open loop: a mean response of more than this many times the work that a request causes is waiting.
const WAITING_RATIO_MAX: f64 = 20.0;

/// How an overloaded device shows it, and by how much: its mean response over the work that a request causes.
fn overloaded(entry: &Entry) -> Option<(&str, f64, String)> {
    let report = &entry.report;
    let work_us = report.ops.iter().map(|row| row.time_us).sum::<f64>() / report.response_us.count.max(1) as f64;
    let what = if report.backlog_s > BACKLOG_SHARE_MAX * report.simulated_s {
        format!("ends {:.1} s after the trace, of {:.1} s", report.backlog_s, report.simulated_s)
    } else if report.response_us.mean > WAITING_RATIO_MAX * work_us {
        let (mean_s, work_s) = (report.response_us.mean / 1e6, work_us / 1e6);
        format!("is overloaded by bursts, with a mean response of {mean_s:.3} s for {work_s:.6} s of work")
    } else {
        return None;
    };
    let busiest = entry.regions.iter().max_by(|a, b| a.busy.total_cmp(&b.busy))?;
    let what = format!("{what}; its `{}` is busy {:.0} % of the time", busiest.name, busiest.busy * 100.0);
    Some((&report.scheme, report.response_us.mean / work_us, what))
}

/// Whether responses measure the queue more than the device, of any scheme.
fn overload(entries: &[Entry], plan: &Plan) -> Option<String> {
    let replay::Arrivals::Trace { .. } = plan.arrivals else { return None };
    let overloaded: Vec<_> = entries.iter().filter_map(overloaded).collect();
    let (worst, _, what) = overloaded.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let schemes = match overloaded.as_slice() {
        [(scheme, ..)] => format!("`{scheme}` is"),
        all if all.len() == entries.len() => "all schemes are".to_owned(),
        some => {
            let names: Vec<String> = some.iter().map(|(scheme, ..)| format!("`{scheme}`")).collect();
            format!("{} are", names.join(", "))
        }
    };
    Some(format!(
        "{schemes} overloaded: `{worst}` {what}; responses measure the queue; hint: replay with `--arrivals closed`, or \
         slower with `--arrivals trace:SPEED`"
    ))
}
