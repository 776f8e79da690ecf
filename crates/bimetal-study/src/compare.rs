//! Schemes side by side on the same requests.
//!
//! Each scheme runs on its own simulated device, several at once on threads of their own. Results are in the order in
//! which the schemes were given, and everything in them but `speed` is the same for any number of threads.

use std::ops::ControlFlow;
use std::time::Instant;

use bimetal_core::chip::{self, Cell};
use bimetal_core::device::{Device, Resolved};
use bimetal_core::drive::Model;
use bimetal_core::media::Volume;
use bimetal_core::replay::{self, Plan};
use bimetal_core::report::{self, Overload, RegionDescription, Report, ResponseFigures, TraceFacts};
use bimetal_core::request::{Request, SECTOR_BYTES};
use bimetal_core::units::Nanos;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::prepare::{Addresses, Prepared, Workload};
pub use crate::replays::{Progress, Quiet};
use crate::replays::{Replays, Tally};
use crate::{StudyError, arrivals, memory};

/// What `compare` and `replay` write as JSON.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ReplayFacts {
    /// `closed:DEPTH` or `trace:SPEED`.
    pub arrivals: String,
    /// Whether each scheme was also replayed one request at a time, for service times.
    pub service: bool,
    /// How often the trace was replayed.
    pub passes: u32,
    /// How many of the last passes were measured.
    pub measured_passes: u32,
    /// Whether the devices were filled before.
    pub filled: bool,
}

/// One scheme.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Entry {
    /// All figures.
    #[serde(flatten)]
    pub report: Report,
    /// When requests arrived in the replay of these figures: `closed:DEPTH` or `trace:SPEED`.
    pub arrivals: String,
    /// How much longer the device took than the trace, in seconds; 0 in a closed loop.
    pub backlog_s: f64,
    /// Service times of reads and writes: a closed loop of one request. None where there was no such replay.
    pub service_us: Option<ResponseFigures>,
    /// Service times of reads.
    pub service_read_us: Option<ResponseFigures>,
    /// Service times of writes.
    pub service_write_us: Option<ResponseFigures>,
    /// How many times the host wrote the logical capacity in the measured passes: what lifetimes are extrapolated from.
    pub lifetime_overwrites: f64,
    /// The device in full, as configured: a device file of its own.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub device: Device,
    /// What the regions amount to.
    pub regions: Vec<RegionFacts>,
    /// What the home disks amount to; none where all data are in flash.
    pub disks: Vec<DiskFacts>,
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
    /// How the mean response differs from seed to seed, where more than one was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

impl Entry {
    /// The mean response, over all seeds that were run; none where responses only say how long the trace is.
    pub fn mean_us(&self) -> Option<f64> {
        let mean_us = self.spread.map_or(self.report.response_us.mean, |spread| spread.mean_us);
        (!self.falls_behind()).then_some(mean_us)
    }

    /// Whether the device falls behind the trace more and more.
    pub fn falls_behind(&self) -> bool {
        self.report.load.overload == Overload::Growing
    }

    /// Whether a lifetime is known, and extrapolated from less than one overwrite of the device.
    pub fn is_extrapolated(&self) -> bool {
        self.report.lifetime_host_bytes.is_some() && self.lifetime_overwrites < 1.0
    }

    /// Service times that stand beside responses of another replay.
    pub fn service_beside(&self) -> Option<&ResponseFigures> {
        self.service_us.as_ref().filter(|_| self.arrivals != arrivals::SERVICE)
    }

    /// Takes service times from a replay of one request at a time.
    fn with_service_of(self, report: &Report) -> Self {
        Self {
            service_us: Some(report.response_us),
            service_read_us: Some(report.read_us),
            service_write_us: Some(report.write_us),
            ..self
        }
    }

    /// Whether a row of the report's operations is one of a disk.
    pub fn is_disk(&self, region: &str) -> bool {
        self.disks.iter().any(|disk| disk.name == region)
    }
}

/// The mean response over several seeds: those of the device, the next one, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Spread {
    /// How many seeds were run.
    pub seeds: u32,
    /// Lowest mean response.
    pub min_us: f64,
    /// Highest mean response.
    pub max_us: f64,
    /// Mean of the mean responses.
    pub mean_us: f64,
}

impl Spread {
    fn of(means_us: &[f64]) -> Self {
        Self {
            seeds: means_us.len() as u32,
            min_us: means_us.iter().copied().fold(f64::INFINITY, f64::min),
            max_us: means_us.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean_us: means_us.iter().sum::<f64>() / means_us.len() as f64,
        }
    }

    /// Half of the range from the lowest to the highest.
    pub fn half_range_us(&self) -> f64 {
        (self.max_us - self.min_us) / 2.0
    }
}

/// A scheme beside the first one of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Relative {
    /// The first scheme.
    pub to: String,
    /// Its total response by this one's: Chang's RS. None where responses of one of the two
    /// grow with the trace.
    pub response_speedup: Option<f64>,
    /// This one's energy by its: Chang's ES.
    pub energy: Option<f64>,
    /// The price of this one's flash by that of its: Chang's EC.
    pub cost: Option<f64>,
}

impl Relative {
    fn of(first: &Report, report: &Report) -> Self {
        let compares = [first, report].iter().all(|report| report.load.overload != Overload::Growing);
        Self {
            to: first.scheme.clone(),
            response_speedup: report::response_speedup(first, report).filter(|_| compares),
            energy: report::energy_saving(first, report),
            cost: report::extra_cost(first, report),
        }
    }
}

/// What a region amounts to.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
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
    /// Channels.
    pub channels: u32,
    /// Bits per cell.
    pub cell: Cell,
    /// Year of the part; none if the catalogue does not have it.
    pub year: Option<u16>,
    /// Year of the catalogue's price; none if the price is another.
    pub price_year: Option<u16>,
    /// Share of the simulated time in which its dies worked.
    pub busy: f64,
}

impl RegionFacts {
    fn of(region: &RegionDescription<'_>, channels: u32, busy: f64) -> Self {
        let RegionDescription { name, chip, geometry } = *region;
        let is_of_catalogue = chip::find(&chip.name).is_some_and(|part| part.usd_per_gib == chip.usd_per_gib);
        Self {
            name: name.into(),
            chip: chip.name.clone(),
            capacity_bytes: geometry.capacity_bytes(),
            blocks: geometry.blocks,
            block_bytes: geometry.block_bytes(),
            dies: geometry.dies,
            channels,
            cell: chip.cell,
            year: chip::year(&chip.name),
            price_year: chip::priced_in(&chip.name).filter(|_| is_of_catalogue),
            busy,
        }
    }
}

/// What a home disk amounts to.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DiskFacts {
    /// Name.
    pub name: String,
    /// Name of the drive.
    pub drive: String,
    /// How the time of its accesses was found.
    pub model: Model,
    /// How much of the logical capacity is on it.
    pub capacity_bytes: u64,
    /// Share of the simulated time in which it worked.
    pub busy: f64,
    /// What it took, in joules, while it span and waited: not in the energy of operations.
    pub idle_j: f64,
}

impl DiskFacts {
    fn of(name: &str, volume: &Volume, busy: Nanos, simulated: Nanos) -> Self {
        let idle_s = simulated.as_s() - busy.as_s();
        Self {
            name: name.into(),
            drive: volume.drive.name.clone(),
            model: volume.drive.model,
            capacity_bytes: volume.sectors * SECTOR_BYTES,
            // What waits in the queue at the end is written after it.
            busy: (busy.as_s() / simulated.as_s().max(1e-9)).min(1.0),
            idle_j: volume.drive.idle_w * idle_s.max(0.0),
        }
    }
}

/// How fast the simulation was. The only figures that differ from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Speed {
    /// Duration of all passes on this machine, without filling the device.
    pub wall_s: f64,
    /// Requests by that.
    pub requests_per_s: f64,
    /// Flash page reads and programs by that; those of unmeasured passes are taken to be as many as of measured ones.
    pub page_ops_per_s: f64,
}

/// Runs every prepared device, at most `jobs` replays at once; 0 is as many as there are processors. The main replay is run
/// with so many seeds: figures are those of the device's own seed; more seeds than one add how the mean response spreads.
///
/// # Errors
/// A device that does not suit its scheme, too little memory, or that `progress` stopped it.
pub fn run(
    prepared: &Prepared,
    replays: &Replays,
    seeds: u32,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Comparison, StudyError> {
    let workload = &prepared.workload;
    let results = beside_the_first(replayed(prepared, replays, seeds, jobs, progress)?);
    let mut warnings = workload.warnings.clone();
    warnings.extend(prepared.warnings.iter().cloned());
    warnings.extend(results.iter().flat_map(worn_out));
    warnings.extend([Overload::Growing, Overload::Bursts].into_iter().filter_map(|kind| overload(&results, kind)));
    let plan = &replays.main;
    Ok(Comparison {
        bimetal: env!("CARGO_PKG_VERSION"),
        trace: workload.facts.clone(),
        addresses: prepared.addresses,
        replay: ReplayFacts {
            arrivals: arrivals::name(plan.arrivals),
            service: replays.is_service() || replays.service.is_some(),
            passes: plan.passes,
            measured_passes: plan.measured_passes,
            filled: plan.fill,
        },
        warnings,
        results,
    })
}

/// Both replays of a device are jobs of their own, so that they run at the same time.
fn replayed(
    prepared: &Prepared,
    replays: &Replays,
    seeds: u32,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Vec<Entry>, StudyError> {
    let jobs = if jobs == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    let plans = replays.plans();
    memory::check(&prepared.runs, plans.len(), jobs)?;
    let tally = Tally::new(prepared.runs.len(), plans.len(), progress);
    let tasks: Vec<(usize, usize)> =
        (0..prepared.runs.len()).flat_map(|run| (0..plans.len()).map(move |replay| (run, replay))).collect();
    let one = |&(run, replay): &(usize, usize)| {
        let served = |requests| tally.served(run, replay, requests);
        if served(0).is_break() {
            return Err(StudyError::Stopped);
        }
        let seeds = if replay == 0 { seeds } else { 1 };
        let result = with_seeds(&prepared.runs[run], &prepared.workload, plans[replay], seeds, served);
        tally.done(run);
        result
    };
    let every = || tasks.par_iter().with_max_len(1).map(one).collect::<Result<Vec<Entry>, _>>();
    let entries = match rayon::ThreadPoolBuilder::new().num_threads(jobs.min(tasks.len())).build() {
        Ok(pool) => pool.install(every),
        // No thread is to be had: one replay after the other.
        Err(_) => tasks.iter().map(one).collect(),
    }?;
    let (mut entries, mut results) = (entries.into_iter(), Vec::with_capacity(prepared.runs.len()));
    while let Some(entry) = entries.next() {
        let service = replays.service.as_ref().and_then(|_| entries.next());
        results.push(match service {
            Some(service) => entry.with_service_of(&service.report),
            None => entry,
        });
    }
    Ok(results)
}

/// Runs one device with its own seed, and with those that follow for how its mean response spreads.
fn with_seeds(
    resolved: &Resolved,
    workload: &Workload,
    plan: &Plan,
    seeds: u32,
    progress: impl Fn(u64) -> ControlFlow<()>,
) -> Result<Entry, StudyError> {
    let (requests, facts) = (&workload.requests, &workload.facts);
    let mut first = entry(resolved, requests, facts, plan, &mut |served| progress(served))?;
    if seeds < 2 {
        return Ok(first);
    }
    let of_one_seed = requests.len() as u64 * u64::from(plan.passes);
    let only_sums = Plan { intervals: 0, ..plan.clone() };
    let mut means_us = vec![first.report.response_us.mean];
    for number in 1..u64::from(seeds) {
        let mut other = resolved.clone();
        other.device.seed = resolved.device.seed.wrapping_add(number);
        other.shape.seed = other.device.seed;
        let served = &mut |served| progress(number * of_one_seed + served);
        means_us.push(entry(&other, requests, facts, &only_sums, served)?.report.response_us.mean);
    }
    first.spread = Some(Spread::of(&means_us));
    Ok(first)
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

/// Runs one device.
///
/// # Errors
/// A device that does not suit its scheme, or that `served` stopped it.
pub fn entry(
    resolved: &Resolved,
    requests: &[Request],
    facts: &TraceFacts,
    plan: &Plan,
    served: replay::Progress<'_>,
) -> Result<Entry, StudyError> {
    let mut media = resolved.media();
    let mut scheme = resolved.build().map_err(bimetal_core::device::DeviceError::from)?;
    if plan.fill {
        // Apart from the passes, so that they alone are timed.
        replay::run(&mut media, scheme.as_mut(), &[], &Plan { intervals: 0, ..plan.clone() }, &mut replay::to_the_end);
    }
    let start = Instant::now();
    let mut flow = ControlFlow::Continue(());
    let mut watched = |requests| {
        flow = served(requests);
        flow
    };
    let plan_of_passes = Plan { fill: false, controller: resolved.controller.clone(), ..plan.clone() };
    let outcome = replay::run(&mut media, scheme.as_mut(), requests, &plan_of_passes, &mut watched);
    let wall_s = start.elapsed().as_secs_f64();
    if flow.is_break() {
        return Err(StudyError::Stopped);
    }
    let passes = f64::from(plan.passes);
    let page_ops = outcome.ledger.page_ops() as f64 / f64::from(plan.measured_passes.max(1)) * passes;
    let per_s = |count: f64| if wall_s > 0.0 { count / wall_s } else { 0.0 };
    let speed =
        Speed { wall_s, requests_per_s: per_s(requests.len() as f64 * passes), page_ops_per_s: per_s(page_ops) };
    let (described, disks) = resolved.described();
    let report = Report::of(&resolved.device.scheme, &described, &disks, &outcome, facts);
    let at_once = |dies: u32| if resolved.device.serial { 1 } else { dies };
    let busy_ns = |index: usize| {
        let rows = outcome.ledger.rows.iter().filter(|row| row.region == index);
        rows.map(|row| row.busy().0).sum::<u64>() as f64
    };
    let regions = described.iter().enumerate().map(|(index, region)| {
        let dies = f64::from(at_once(region.geometry.dies));
        let busy = busy_ns(index) / (outcome.simulated_ns.max(1) as f64 * dies);
        RegionFacts::of(region, resolved.regions[index].channels, busy)
    });
    let simulated = Nanos(outcome.simulated_ns);
    let disk_facts = disks.iter().zip(&outcome.ledger.disks);
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
        lifetime_overwrites: (outcome.host.write_sectors * SECTOR_BYTES) as f64 / logical_bytes,
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

/// Which schemes are so overloaded, and how the worst of them shows it.
fn overload(entries: &[Entry], overload: Overload) -> Option<String> {
    let so: Vec<&Entry> = entries.iter().filter(|entry| entry.report.load.overload == overload).collect();
    // Where service times stand beside the responses, these are marked, and nobody asked for them alone.
    if so.iter().any(|entry| entry.service_beside().is_some()) {
        return None;
    }
    let mean = |entry: &Entry| entry.report.response_us.mean;
    let worst = &so.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)))?.report;
    let load = &worst.load;
    let scheme = if so.len() == 1 { "it".to_owned() } else { format!("`{}`", worst.scheme) };
    let what = match overload {
        Overload::None => return None,
        Overload::Growing => format!(
            ": {scheme} falls behind more and more and ends {:.1} s after the trace, of {:.1} s, so that its responses say \
             how long the trace is",
            load.backlog_s, worst.simulated_s
        ),
        Overload::Bursts => {
            let work_us = worst.ops.iter().map(|row| row.time_us).sum::<f64>() / worst.response_us.count.max(1) as f64;
            format!(
                " by bursts: {scheme} has a mean response of {:.3} s for {:.6} s of work, so that responses measure the \
                 queue more than the device",
                worst.response_us.mean / 1e6,
                work_us / 1e6
            )
        }
    };
    Some(format!(
        "{} overloaded{what}; its `{}` is busy {:.0} % of the time; hint: replay with `--arrivals closed`, or slower with \
         `--arrivals trace:SPEED`",
        are(&so, entries.len()),
        load.bottleneck,
        load.utilisation * 100.0
    ))
}

/// `a`, `b` are; or all schemes, of so many.
fn are(entries: &[&Entry], all: usize) -> String {
    match entries {
        [entry] => format!("`{}` is", entry.report.scheme),
        every if every.len() == all => "all schemes are".to_owned(),
        some => {
            let names: Vec<String> = some.iter().map(|entry| format!("`{}`", entry.report.scheme)).collect();
            format!("{} are", names.join(", "))
        }
    }
}

/// Results that were not replayed, for the tests of what shows them.
#[cfg(test)]
pub(crate) mod testing {
    use super::{Entry, Overload, Quiet, Relative, Replays, run};
    use crate::prepare::{Schemes, Workload, prepare};
    use bimetal_core::device::{BARE_DIES, preset};
    use bimetal_core::replay::{Arrivals, Plan};

    /// One request at a time.
    pub fn closed() -> Replays {
        Replays { main: Plan::default(), service: None }
    }

    /// At the trace's times, and one request at a time.
    pub fn both() -> Replays {
        let main = Plan { arrivals: Arrivals::Trace { speed: 1.0 }, ..Plan::default() };
        Replays { main, service: Some(Plan::default()) }
    }

    /// What a result is to say.
    #[derive(Clone, Copy, Debug)]
    pub struct Sketch {
        pub scheme: &'static str,
        pub mean_us: f64,
        pub years: Option<f64>,
        pub usd: f64,
        pub disk: bool,
        pub growing: bool,
    }

    /// Results that say so: those of small devices with other figures.
    pub fn entries(sketches: &[Sketch]) -> Vec<Entry> {
        let trace = crate::generate::trace("zipf", &[("requests".into(), "20".into())], 1).unwrap();
        let schemes = Schemes::named(&["pagemap".to_owned(), "opfcl".to_owned()]).unwrap();
        let prepared = prepare(Workload::of(trace, None), preset(BARE_DIES).ok(), &schemes, &[]).unwrap();
        let [flash, over_disk] = run(&prepared, &closed(), 1, 1, &Quiet).unwrap().results.try_into().unwrap();
        let entry = |sketch: &Sketch| {
            let mut entry = if sketch.disk { over_disk.clone() } else { flash.clone() };
            let report = &mut entry.report;
            report.scheme = sketch.scheme.to_owned();
            (report.response_us.mean, report.response_us.p99) = (sketch.mean_us, sketch.mean_us * 9.0);
            (report.lifetime_years, report.lifetime_host_bytes) =
                (sketch.years, sketch.years.map(|years| years * 1e12));
            report.cost_usd = sketch.usd;
            report.load.overload = if sketch.growing { Overload::Growing } else { Overload::None };
            (entry.relative, entry.lifetime_overwrites) = (None, 1.0);
            entry
        };
        let mut entries: Vec<Entry> = sketches.iter().map(entry).collect();
        if let Some((first, others)) = entries.split_first_mut() {
            for other in others {
                other.relative = Some(Relative::of(&first.report, &other.report));
            }
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{both, closed};
    use super::*;
    use crate::prepare::{Schemes, prepare};
    use bimetal_core::device::{BARE_DIES, preset};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Goes on so many times.
    struct Impatient(AtomicUsize);

    impl Progress for Impatient {
        fn served(&self, _run: usize, _requests: u64) -> ControlFlow<()> {
            match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
                Ok(_) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        }

        fn done(&self, _run: usize) {}
    }

    #[test]
    fn a_comparison_that_is_stopped_has_no_result() {
        let trace = crate::generate::trace("zipf", &[("requests".into(), "40000".into())], 1).unwrap();
        let prepared = prepare(Workload::of(trace, None), None, &Schemes::all(), &[]).unwrap();
        for (jobs, patience) in [(1, 0), (1, 2), (3, 5)] {
            for replays in [closed(), both()] {
                let progress = Impatient(AtomicUsize::new(patience));
                let stopped = run(&prepared, &replays, 1, jobs, &progress);
                assert!(matches!(stopped, Err(StudyError::Stopped)), "{jobs} {patience}");
            }
        }
    }

    #[test]
    fn seeds_spread_only_what_is_random() {
        let trace = crate::generate::trace("zipf", &[("requests".into(), "3000".into())], 1).unwrap();
        let workload = Workload::of(trace, None);
        let spread = |settings: &[(&str, &str)], seeds| {
            let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            let schemes = Schemes::named(&["pagemap".to_owned()]).unwrap();
            let prepared = prepare(workload.clone(), None, &schemes, &settings).unwrap();
            let entry = run(&prepared, &closed(), seeds, 1, &Quiet).unwrap().results.remove(0);
            (entry.report.response_us.mean, entry.spread)
        };
        let faults = [("slow.program_fail_ppm", "20000"), ("slow.replacement_blocks", "100000")];
        assert_eq!(spread(&faults, 1).1, None);
        let (first, of_three) = spread(&faults, 3);
        let of_three = of_three.unwrap();
        let means: Vec<f64> =
            ["1", "2", "3"].iter().map(|&seed| spread(&[&faults[..], &[("seed", seed)]].concat(), 1).0).collect();
        assert_eq!((first, of_three), (means[0], Spread::of(&means)));
        assert!(of_three.half_range_us() > 0.0 && of_three.seeds == 3);
        let (mean, unmoved) = spread(&[], 3);
        assert_eq!(unmoved.map(|spread| (spread.min_us, spread.max_us)), Some((mean, mean)));
    }

    #[test]
    fn service_times_and_responses_are_those_of_their_own_replays() {
        let trace = crate::generate::trace("zipf", &[("requests".into(), "3000".into())], 1).unwrap();
        let schemes = Schemes::named(&["pagemap".to_owned(), "chang".to_owned()]).unwrap();
        let prepared = prepare(Workload::of(trace, None), None, &schemes, &[]).unwrap();
        let results = |replays: Replays, jobs| run(&prepared, &replays, 1, jobs, &Quiet).unwrap().results;
        let (alone, beside) = (results(closed(), 1), results(both(), 2));
        let open = results(Replays { service: None, ..both() }, 1);
        // Responses that are marked beside service times need no warning.
        assert_eq!(run(&prepared, &both(), 1, 1, &Quiet).unwrap().warnings, [""; 0]);
        for ((closed, both), open) in alone.iter().zip(&beside).zip(&open) {
            let service = Some(closed.report.response_us);
            assert_eq!((closed.service_us, closed.service_beside(), open.service_us), (service, None, None));
            assert_eq!((both.service_us, both.service_beside()), (service, service.as_ref()));
            assert_eq!(
                (both.service_read_us, both.service_write_us),
                (closed.service_read_us, closed.service_write_us)
            );
            assert_eq!((&both.report, both.arrivals.as_str()), (&open.report, "trace"));
            assert_ne!(both.report.response_us, closed.report.response_us);
            let written = prepared.workload.facts.write_bytes as f64 / both.device.logical.0 as f64;
            assert!((both.lifetime_overwrites - written).abs() < 1e-9, "{written}");
            let has_life = both.report.lifetime_host_bytes.is_some();
            assert_eq!(both.is_extrapolated(), has_life && written < 1.0);
        }
    }

    #[test]
    fn regions_say_how_old_their_parts_and_prices_are() {
        let trace = crate::generate::trace("zipf", &[("requests".into(), "20".into())], 1).unwrap();
        let workload = Workload::of(trace, None);
        let region = |settings: &[(&str, &str)]| {
            let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            let schemes = Schemes::named(&["pagemap".to_owned()]).unwrap();
            let prepared = prepare(workload.clone(), preset(BARE_DIES).ok(), &schemes, &settings).unwrap();
            run(&prepared, &closed(), 1, 1, &Quiet).unwrap().results.remove(0).regions.remove(0)
        };
        let of_2019 = region(&[("slow.chip", "tlc-3d-2019"), ("slow.channels", "2")]);
        assert_eq!((of_2019.cell, of_2019.year, of_2019.price_year), (Cell::Tlc, Some(2019), Some(2026)));
        assert_eq!((of_2019.dies, of_2019.channels), (2, 2));
        let cheaper = region(&[("slow.chip", "tlc-3d-2019"), ("slow.usd_per_gib", "0.1")]);
        assert_eq!((cheaper.year, cheaper.price_year), (Some(2019), None));
    }
}
