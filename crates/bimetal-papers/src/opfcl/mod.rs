//! OP-FCL 2012: a flash cache in front of disks that caches less in order to have more spare area (schemes `opfcl`,
//! `rwfcl`, `fpfcl`).
//!
//! Quick runs are a sixteenth of the paper's: requests, working set, flash, segments, period, and the rate of size
//! changes. The distances between data on the disks are those of full runs.

mod any_trace;
mod effects;
mod fit;
mod model;
mod over_time;
mod response;
mod sensitivity;

use std::sync::Arc;

use bimetal_core::replay::Arrivals;

use super::experiment::{Experiment, Source};
use super::lab::Lab;
use super::reading::{curve, level, response_ms};
use super::{FigureSpec, PaperSpec};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series};

pub(super) use fit::LOCALITIES;
use fit::{CALIBRATIONS, FITTED_EXCHANGE, FITTED_FINANCIAL, FITTED_HOME, FITTED_MSN, FITTED_SEARCH};
pub(super) use model::zipf_hits;

/// The registry entry.
pub static SPEC: PaperSpec = PaperSpec {
    name: "opfcl",
    citation: "Yongseok Oh, Jongmoo Choi, Donghee Lee, Sam H. Noh, Caching less for better performance: balancing cache size \
               and update cost of flash memory cache in hybrid storage systems, FAST 2012",
    summary: "a flash cache in front of disks that caches less, to have more spare area",
    figures: &[
        FigureSpec { name: "fig3", title: "the model's best size of a read cache", sources: &[], make: model::fig3 },
        FigureSpec { name: "fig4", title: "the model's best division", sources: &[], make: model::fig4 },
        FigureSpec {
            name: "fig6a",
            title: "response over the caching space, Financial",
            sources: &[&FINANCIAL],
            make: |lab| response::figure(lab, &ON_FINANCIAL, response::fig6a),
        },
        FigureSpec {
            name: "fig6b",
            title: "response over the caching space, Home",
            sources: &[&HOME],
            make: |lab| response::figure(lab, &ON_HOME, response::fig6b),
        },
        FigureSpec {
            name: "fig6c",
            title: "response over the caching space, Search Engine",
            sources: &[&SEARCH],
            make: |lab| response::figure(lab, &ON_SEARCH, response::fig6c),
        },
        FigureSpec {
            name: "fig7",
            title: "collecting time over the caching space",
            sources: &[&FINANCIAL, &HOME, &SEARCH],
            make: effects::fig7,
        },
        FigureSpec {
            name: "fig8",
            title: "hit rate over the caching space",
            sources: &[&FINANCIAL, &HOME, &SEARCH],
            make: effects::fig8,
        },
        FigureSpec {
            name: "fig9",
            title: "sizes over time, Financial, Home, Search Engine",
            sources: &[&FINANCIAL, &HOME, &SEARCH],
            make: over_time::fig9,
        },
        FigureSpec {
            name: "fig10a",
            title: "response over the caching space, Exchange",
            sources: &[&EXCHANGE],
            make: |lab| response::figure(lab, &ON_EXCHANGE, response::fig10a),
        },
        FigureSpec {
            name: "fig10b",
            title: "response over the caching space, MSN",
            sources: &[&MSN],
            make: |lab| response::figure(lab, &ON_MSN, response::fig10b),
        },
        FigureSpec {
            name: "fig11",
            title: "collecting time over the caching space, Exchange, MSN",
            sources: &[&EXCHANGE, &MSN],
            make: effects::fig11,
        },
        FigureSpec {
            name: "fig12",
            title: "hit rate over the caching space, Exchange, MSN",
            sources: &[&EXCHANGE, &MSN],
            make: effects::fig12,
        },
        FigureSpec {
            name: "fig13",
            title: "sizes over time, Exchange, MSN",
            sources: &[&EXCHANGE, &MSN],
            make: over_time::fig13,
        },
        FigureSpec {
            name: "fig14",
            title: "erases over the caching space",
            sources: &[&FINANCIAL, &HOME, &SEARCH, &EXCHANGE, &MSN],
            make: effects::fig14,
        },
        FigureSpec {
            name: "fig15a",
            title: "sensitivity to the sequential unit",
            sources: &[&FINANCIAL, &HOME, &SEARCH, &EXCHANGE, &MSN],
            make: sensitivity::fig15a,
        },
        FigureSpec {
            name: "fig15b",
            title: "sensitivity to the period",
            sources: &[&FINANCIAL, &HOME, &SEARCH, &EXCHANGE, &MSN],
            make: sensitivity::fig15b,
        },
        FigureSpec {
            name: "fit",
            title: "the calibrated stand-ins",
            sources: &[&FINANCIAL, &HOME, &SEARCH, &EXCHANGE, &MSN],
            make: fit::figure,
        },
    ],
    on_any_trace: any_trace::FIGURES,
    calibrations: CALIBRATIONS,
};

/// Financial1 of the UMass repository, which HySSD also uses.
pub(super) const FINANCIAL1: Source = Source {
    name: "financial",
    workload: "financial",
    settings: &[],
    quick: &[("requests", "333436"), ("used", "243MiB")],
    calibrated: None,
};

static FINANCIAL: Source = Source { calibrated: Some(FITTED_FINANCIAL), ..FINANCIAL1 };

/// The homes of FIU.
static HOME: Source = Source {
    name: "home",
    workload: "home",
    settings: &[],
    quick: &[("requests", "1139625"), ("used", "1100MiB")],
    calibrated: Some(FITTED_HOME),
};

/// WebSearch of the UMass repository.
static SEARCH: Source = Source {
    name: "search",
    workload: "search",
    settings: &[],
    quick: &[("requests", "69043"), ("used", "345MiB")],
    calibrated: Some(FITTED_SEARCH),
};

/// Volumes 2, 4 and 8 of Microsoft's Exchange server.
static EXCHANGE: Source = Source {
    name: "exchange",
    workload: "exchange",
    settings: &[],
    quick: &[("requests", "1453687"), ("used", "5078MiB")],
    calibrated: Some(FITTED_EXCHANGE),
};

/// Volumes 0, 1 and 4 of Microsoft's MSN file store.
static MSN: Source = Source {
    name: "msn",
    workload: "msn",
    settings: &[],
    quick: &[("requests", "1048131"), ("used", "2430MiB")],
    calibrated: Some(FITTED_MSN),
};

/// A workload and its device.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    source: &'static Source,
    device: &'static str,
    /// Size of the flash in GiB.
    flash_gib: u32,
}

static ON_FINANCIAL: Case = Case { name: "Financial", source: &FINANCIAL, device: "opfcl-1", flash_gib: 4 };
static ON_HOME: Case = Case { name: "Home", source: &HOME, device: "opfcl-1", flash_gib: 4 };
static ON_SEARCH: Case = Case { name: "Search Engine", source: &SEARCH, device: "opfcl-1", flash_gib: 4 };
static ON_EXCHANGE: Case = Case { name: "Exchange", source: &EXCHANGE, device: "opfcl-2", flash_gib: 16 };
static ON_MSN: Case = Case { name: "MSN", source: &MSN, device: "opfcl-2", flash_gib: 16 };

/// Section 6.1.
static SMALL_SCALE: [&Case; 3] = [&ON_FINANCIAL, &ON_HOME, &ON_SEARCH];
/// Section 6.2.
static LARGE_SCALE: [&Case; 2] = [&ON_EXCHANGE, &ON_MSN];
/// All workloads.
static ALL: [&Case; 5] = [&ON_FINANCIAL, &ON_HOME, &ON_SEARCH, &ON_EXCHANGE, &ON_MSN];

/// Caching spaces of the sweep, in percent of the flash.
const SPACES: [f64; 12] = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 85.0, 90.0, 95.0, 97.0];

/// Requests in a period, as a power of two.
const PERIOD_LOG2: u32 = 16;

/// Divisor of quick runs, as a power of two.
const QUICK_LOG2: u32 = 4;

/// Intervals of figures over time.
const INTERVALS: u32 = 64;

/// Kind of replay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Once, with one request at a time. Every destage is charged to the request that causes it or to a later one.
    Closed,
    /// Once, at the trace's time stamps. The host waits for each destage, as equation 5 charges it (O17).
    ByTime,
    /// The second of two passes, with one request at a time.
    SecondPass,
}

/// A replay of one of the schemes; all begin with an empty cache (section 6).
fn experiment(lab: &Lab<'_>, case: &Case, scheme: &'static str, manner: Manner) -> Experiment {
    let mut experiment = Experiment::new(case.source, case.device, scheme);
    if lab.is_cut(case.source) {
        let capacity = format!("{}MiB", (case.flash_gib << 10) >> QUICK_LOG2);
        experiment = experiment.scaled("cache.capacity", capacity).scaled("period", period(lab, case, PERIOD_LOG2));
        if scheme != "fpfcl" {
            experiment = experiment.scaled("segment_bytes", "16MiB").scaled("resize_pages", 8);
        }
    }
    if case.source.is_any() {
        experiment = any_trace::fitted(lab, experiment, scheme);
    }
    if scheme == "opfcl" {
        experiment = experiment.intervals(INTERVALS);
    }
    match manner {
        Manner::Closed => experiment,
        Manner::ByTime => experiment.arrivals(Arrivals::Trace { speed: 1.0 }).set("disk.queue", 0),
        Manner::SecondPass => experiment.passes(2, 1),
    }
}

/// Requests in a period, from their power of two at full size.
fn period(lab: &Lab<'_>, case: &Case, log2: u32) -> u32 {
    if case.source.is_any() {
        return any_trace::period(lab, log2);
    }
    1 << if lab.is_cut(case.source) { log2 - QUICK_LOG2 } else { log2 }
}

/// A scheme with each of these caching spaces.
fn with_spaces(lab: &Lab<'_>, case: &Case, scheme: &'static str, manner: Manner, spaces: &[f64]) -> Vec<Experiment> {
    let with_space = |percent| experiment(lab, case, scheme, manner).set("cache_percent", percent);
    spaces.iter().map(with_space).collect()
}

/// OP-FCL, one request after the other.
fn balanced(lab: &Lab<'_>, case: &Case) -> Result<Arc<Entry>, StudyError> {
    Ok(lab.run(&[experiment(lab, case, "opfcl", Manner::Closed)])?.remove(0))
}

/// FP-FCL by caching space.
fn unified(lab: &Lab<'_>, case: &Case) -> Result<Vec<(f64, Arc<Entry>)>, StudyError> {
    let entries = lab.run(&with_spaces(lab, case, "fpfcl", Manner::Closed, &SPACES))?;
    Ok(SPACES.into_iter().zip(entries).collect())
}

/// OP-FCL beside RW-FCL, which divides the cache as OP-FCL does but keeps its size.
struct Balance {
    /// RW-FCL by caching space.
    divided: Vec<(f64, Arc<Entry>)>,
    /// OP-FCL.
    balanced: Arc<Entry>,
}

fn balance(lab: &Lab<'_>, case: &Case, manner: Manner, spaces: &[f64]) -> Result<Balance, StudyError> {
    let mut experiments = vec![experiment(lab, case, "opfcl", manner)];
    experiments.extend(with_spaces(lab, case, "rwfcl", manner, spaces));
    let mut divided = lab.run(&experiments)?;
    let balanced = divided.remove(0);
    Ok(Balance { divided: spaces.iter().copied().zip(divided).collect(), balanced })
}

/// The same around a minimum of RW-FCL's responses, for claims about the minimum alone. The search goes from the best caching
/// space in `closed`, which has all of them, in the direction in which responses fall, one caching space after the other.
fn balance_around_minimum(lab: &Lab<'_>, case: &Case, manner: Manner, closed: &Balance) -> Result<Balance, StudyError> {
    let start = closed.best();
    let (mut first, mut last) = (start.saturating_sub(1), (start + 1).min(SPACES.len() - 1));
    loop {
        let balance = balance(lab, case, manner, &SPACES[first..=last])?;
        match first + balance.best() {
            best if best == first && first > 0 => first -= 1,
            best if best == last && last + 1 < SPACES.len() => last += 1,
            _ => return Ok(balance),
        }
    }
}

/// The three schemes on one workload, one request after the other.
struct Sweep {
    /// FP-FCL by caching space.
    unified: Vec<(f64, Arc<Entry>)>,
    balance: Balance,
}

fn sweep(lab: &Lab<'_>, case: &Case) -> Result<Sweep, StudyError> {
    Ok(Sweep { unified: unified(lab, case)?, balance: balance(lab, case, Manner::Closed, &SPACES)? })
}

/// A figure by caching space, with OP-FCL as a constant level.
fn plot(title: &str, y: &str, curves: Vec<(&str, Vec<(f64, f64)>)>, balanced: f64) -> Plot {
    let level = level(curves.first().map_or(&[], |(_, curve)| curve), balanced);
    let curves = curves.into_iter().chain([("OP-FCL", level)]);
    Plot {
        title: title.into(),
        kind: PlotKind::Lines,
        x: Axis::linear("caching space (% of the flash)"),
        y: Axis::linear(y),
        series: curves.map(|(name, curve)| Series::measured(name, curve)).collect(),
    }
}

impl Balance {
    /// Index of the caching space with which RW-FCL responds fastest.
    fn best(&self) -> usize {
        let responses: Vec<f64> = self.divided.iter().map(|(_, entry)| response_ms(entry)).collect();
        (0..responses.len()).min_by(|&a, &b| responses[a].total_cmp(&responses[b])).unwrap_or_default()
    }

    /// A figure by caching space, with OP-FCL as a constant level.
    fn plot(&self, title: &str, y: &str, figure: fn(&Entry) -> f64) -> Plot {
        plot(title, y, vec![("RW-FCL", curve(&self.divided, figure))], figure(&self.balanced))
    }
}

impl Sweep {
    /// A figure of FP-FCL and of RW-FCL by caching space.
    fn curves(&self, figure: fn(&Entry) -> f64) -> [Vec<(f64, f64)>; 2] {
        [curve(&self.unified, figure), curve(&self.balance.divided, figure)]
    }

    /// A figure by caching space, with OP-FCL as a constant level.
    fn plot(&self, title: &str, y: &str, figure: fn(&Entry) -> f64) -> Plot {
        let [unified, divided] = self.curves(figure);
        plot(title, y, vec![("FP-FCL", unified), ("RW-FCL", divided)], figure(&self.balance.balanced))
    }
}
