//! The claims that any trace can decide.
//!
//! In the paper the flash holds 20 to 105 % of the data that a workload touches, and the disk's size does not matter. So
//! the flash is not a share of the disk here, but of the trace's footprint: that of MSN, which is the median. Periods are
//! at least as many as in the paper's shortest trace, Search Engine. A short trace would otherwise end before OP-FCL
//! chooses a size. The cache starts empty and is full when it is measured, in the last two of four passes: the paper's
//! traces are much longer than the time that it takes to fill.
//!
//! Left out are the places of minima, sizes in GB and largest erase counts, which are those of one trace.

use std::sync::Arc;

use super::effects::{SLACK, collecting_s, copying_s, erases, hit_rate};
use super::response::{balanced_by_best, best};
use super::sensitivity::{NORMAL_KIB, PERIODS_LOG2, UNITS_KIB};
use super::{Balance, Case, Manner, PERIOD_LOG2, SPACES, Sweep, balance, balanced, experiment, over_time, sweep};
use crate::claim::Kind;
use crate::experiment::{ANY_TRACE, Experiment, ON_ANY_TRACE};
use crate::finding::{Finding, lowest, rises};
use crate::lab::Lab;
use crate::reading::{height_at, heights, range, response_ms};
use crate::{Drawn, FigureSpec};
use bimetal_core::chip;
use bimetal_core::part::real::whole;
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::short;

/// The figures.
pub(super) const FIGURES: &[FigureSpec] = &[
    FigureSpec { name: "fig6", title: "response over the caching space", sources: ON_ANY_TRACE, make: fig6 },
    FigureSpec { name: "fig11", title: "collecting time over the caching space", sources: ON_ANY_TRACE, make: fig11 },
    FigureSpec { name: "fig12", title: "hit rate over the caching space", sources: ON_ANY_TRACE, make: fig12 },
    FigureSpec { name: "fig13", title: "sizes over time", sources: ON_ANY_TRACE, make: fig13 },
    FigureSpec { name: "fig14", title: "erases over the caching space", sources: ON_ANY_TRACE, make: fig14 },
    FigureSpec {
        name: "fig15",
        title: "sensitivity to sequential unit and period",
        sources: ON_ANY_TRACE,
        make: fig15,
    },
];

/// The trace, and the smaller of the paper's configurations.
static CASE: Case = Case { name: ANY_TRACE.name, source: &ANY_TRACE, device: "opfcl-1", flash_gib: 4 };

/// Flash by the footprint of the trace: 16 GB by the 38 GB of MSN (table 1).
const FLASH_BY_FOOTPRINT: f64 = 0.42;

/// Periods in the paper's shortest trace, as a power of two: 1.1 million requests of Search Engine.
const PERIODS_MIN_LOG2: u32 = 4;

/// Least number of blocks of the flash, the same as of every device that is scaled to a trace.
const BLOCKS_MIN: u64 = 128;

/// Least number of pages of a block.
const BLOCK_PAGES_MIN: u64 = 8;

/// Sizes the flash by the trace. Blocks of a small flash are smaller, and erased in proportionally less time.
pub(super) fn fitted(lab: &Lab<'_>, experiment: Experiment, scheme: &str) -> Experiment {
    let Some(flash) = chip::find("opfcl-slc") else { return experiment };
    let (page_bytes, whole_block) = (u64::from(flash.page_bytes), u64::from(flash.pages_per_block));
    let footprint = lab.any_trace().map_or(0, |facts| facts.footprint_bytes);
    let pages = whole(footprint as f64 * FLASH_BY_FOOTPRINT) / page_bytes;
    let block_pages = (pages / BLOCKS_MIN).clamp(BLOCK_PAGES_MIN, whole_block);
    let blocks = (pages / block_pages).max(BLOCKS_MIN);
    let experiment = experiment
        .fitted()
        .set("cache.pages_per_block", block_pages)
        .set("cache.erase_us", flash.erase_us * block_pages as f64 / whole_block as f64)
        .set("cache.capacity", format!("{}KiB", blocks * block_pages * page_bytes / 1024));
    if scheme == "opfcl" || scheme == "rwfcl" { experiment.set("period", period(lab, PERIOD_LOG2)) } else { experiment }
}

/// Requests in a period that has 2^`log2` of them in the paper.
pub(super) fn period(lab: &Lab<'_>, log2: u32) -> u32 {
    let requests = lab.any_trace().map_or(0, |facts| facts.requests);
    let longest = (requests >> PERIODS_MIN_LOG2).max(1).ilog2().min(PERIOD_LOG2);
    1 << (longest + log2).saturating_sub(PERIOD_LOG2)
}

impl Balance {
    fn replays(&self) -> impl Iterator<Item = &Arc<Entry>> {
        std::iter::once(&self.balanced).chain(self.divided.iter().map(|(_, entry)| entry))
    }
}

impl Sweep {
    fn replays(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.balance.replays().chain(self.unified.iter().map(|(_, entry)| entry))
    }
}

fn fig6(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let closed = sweep(lab, &CASE)?;
    let curves = closed.curves(response_ms);
    let [unified, divided] = curves.each_ref().map(|curve| best(curve));
    let inside = |claim, curve: &[(f64, f64)]| {
        let ((percent, _), inside) = lowest(curve).unwrap_or_default();
        Finding::fact(claim, "inside", inside, short(percent))
    };
    let near = |claim, balance| Finding::at_most(claim, 1.05, balanced_by_best(balance));
    let findings = [
        inside("FP-FCL is fastest at a caching space inside 10 to 97 %: at %", &curves[0]),
        inside("RW-FCL is fastest at a caching space inside 10 to 97 %: at %", &curves[1]),
        Finding::at_most("RW-FCL is faster than FP-FCL or alike, at the best of each", 1.05, divided / unified),
        near("response of OP-FCL by that of the best RW-FCL", &closed.balance),
    ];
    let mut findings: Vec<Finding> = findings.map(|finding| lab.judged(closed.replays(), finding)).into();
    const BY_TIME: &str = "the same by time stamps";
    findings.push(if lab.any_trace().is_some_and(|facts| facts.duration_s > 0.0) {
        let by_time = balance(lab, &CASE, Manner::ByTime, &SPACES)?;
        lab.judged(by_time.replays(), near(BY_TIME, &by_time))
    } else {
        near(BY_TIME, &closed.balance).undecided("the trace has no time stamps")
    });
    Ok(Drawn::of_claims(
        "The flash is 42 % of the trace's footprint, as MSN's in the paper; a period is at most a sixteenth of the trace. \
         The cache starts empty and is full when it is measured. By time stamps the host waits for each destage.",
        findings,
    ))
}

/// Whether a figure of FP-FCL and of RW-FCL rises with the caching space, and the least rise.
fn both_rise(claim: &'static str, sweep: &Sweep, figure: fn(&Entry) -> f64) -> Finding {
    let curves = sweep.curves(figure);
    let rise = curves.iter().all(|curve| rises(&heights(curve), SLACK));
    let times = curves.each_ref().map(|curve| height_at(curve, 97.0) / height_at(curve, 10.0));
    let least = range(&times).0;
    Finding::fact(claim, "rises at every step", rise, if least.is_finite() { short(least) } else { "from 0".into() })
}

fn fig11(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let sweep = sweep(lab, &CASE)?;
    let findings = [
        both_rise("collecting time rises, FP-FCL and RW-FCL: times", &sweep, collecting_s),
        both_rise("the part of it that copies rises: times", &sweep, copying_s).of_kind(Kind::Ours),
    ];
    Ok(Drawn::of_claims(
        "From 10 to 97 % of the flash; the smaller rise of the two.",
        findings.map(|finding| lab.judged(sweep.replays(), finding)).into(),
    ))
}

fn fig12(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let sweep = sweep(lab, &CASE)?;
    let [unified, divided] = sweep.curves(hit_rate).map(|curve| height_at(&curve, 80.0));
    let findings = [
        both_rise("hit rate rises, FP-FCL and RW-FCL: times", &sweep, hit_rate),
        Finding::at_least("RW-FCL hits more than FP-FCL or alike at 80 %: times", 0.95, divided / unified),
    ];
    Ok(Drawn::of_claims(
        "A write to a page that was read is a hit for FP-FCL and a miss for the others.",
        findings.map(|finding| lab.judged(sweep.replays(), finding)).into(),
    ))
}

fn fig13(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let (least, most) = over_time::sizes(lab, &CASE)?.late();
    let settled =
        Finding::at_most("OP-FCL's caches settle: share of the flash by which they still move", 0.2, most - least);
    let balanced = balanced(lab, &CASE)?;
    Ok(Drawn::of_claims("In the second half of the measured requests.", vec![lab.judged([&balanced], settled)]))
}

fn fig14(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let sweep = sweep(lab, &CASE)?;
    let curves = sweep.curves(erases);
    let by = |to, from| curves.each_ref().map(|curve| height_at(curve, to) / height_at(curve, from));
    let dense = [90.0, 95.0, 97.0].map(|percent| range(&curves.each_ref().map(|curve| height_at(curve, percent))).0);
    let balanced = erases(&sweep.balance.balanced);
    let findings = [
        Finding::at_most("erases rise only slightly up to 70 %: most by those at 10 %", 1.25, range(&by(70.0, 10.0)).1),
        Finding::at_least("and sharply from there: least at 97 by 70 %", 1.5, range(&by(97.0, 70.0)).0),
        Finding::above("OP-FCL erases less than either from 90 %: least by it", 1.0, range(&dense).0 / balanced),
    ];
    Ok(Drawn::of_claims(
        "Mean erase count of the flash's blocks, FP-FCL and RW-FCL.",
        findings.map(|finding| lab.judged(sweep.replays(), finding)).into(),
    ))
}

fn fig15(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let balanced = || experiment(lab, &CASE, "opfcl", Manner::Closed);
    let units = lab.run(&UNITS_KIB.map(|kib| balanced().set("sequential_unit", format!("{kib}KiB"))))?;
    let periods = lab.run(&PERIODS_LOG2.map(|log2| balanced().set("period", period(lab, log2))))?;
    let curve = |places: &[u32], entries: &[Arc<Entry>]| -> Vec<(f64, f64)> {
        places.iter().zip(entries).map(|(&place, entry)| (f64::from(place), response_ms(entry))).collect()
    };
    let (by_unit, by_period) = (curve(&UNITS_KIB, &units), curve(&PERIODS_LOG2, &periods));
    let normal = height_at(&by_unit, f64::from(NORMAL_KIB));
    let from_16 = by_unit.iter().filter(|point| point.0 >= 16.0).map(|point| point.1 / normal);
    let farthest = from_16.max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs())).unwrap_or(f64::NAN);
    let near = height_at(&by_period, 14.0).min(height_at(&by_period, 16.0)) / best(&by_period);
    let findings = [
        (&units, Finding::at_least("a sequential unit of 4 KB is very poor: times 128 KB", 1.5, by_unit[0].1 / normal)),
        (&units, Finding::about("16 to 512 KB are alike: the farthest by 128 KB", 1.0, 0.1, farthest)),
        (&periods, Finding::at_most("periods of 2^14 to 2^16 are best: by the best", 1.02, near)),
    ];
    let judged = |(replays, finding): (&Vec<Arc<Entry>>, Finding)| lab.judged(replays, finding);
    Ok(Drawn::of_claims(
        "Response of OP-FCL. A period of 2^16 requests stands for at most a sixteenth of the trace, the others for as much \
         more or less.",
        findings.map(judged).into(),
    ))
}
