//! HySSD 2013: SLC or MLC beside TLC, and the best utilisation of the faster SSD (schemes `hyssd`, `hyssd-static`).
//!
//! Quick runs are a sixteenth of the paper's: requests, data, both SSDs and the period. The block size does not change.

mod any_trace;
mod fit;
mod formulae;
mod lifetime;
mod over_time;

use std::sync::Arc;

use bimetal_core::replay::Arrivals;

use super::claim::{Kind, StandIn};
use super::experiment::{Experiment, Source};
use super::finding::{Best, Finding, highest, lowest, row};
use super::lab::Lab;
use super::opfcl::FINANCIAL1;
use super::reading::{curve, height_at, heights, level, metric, response_ms};
use super::{Drawn, FigureSpec, PaperSpec};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series, short};

use over_time::{EXCHANGE_PHASES, FINANCIAL_PHASES};

/// The registry entry.
pub static SPEC: PaperSpec = PaperSpec {
    name: "hyssd",
    citation: "Yongseok Oh, Eunjae Lee, Jongmoo Choi, Donghee Lee, Sam H. Noh, Hybrid Solid State Drives for Improved \
               Performance and Enhanced Lifetime, MSST 2013",
    summary: "SLC or MLC beside TLC, and how full to keep the faster one",
    figures: &[
        FigureSpec { name: "table2", title: "times of the flash parts", sources: &[], make: formulae::table2 },
        FigureSpec { name: "fig2", title: "cost of a write over the utilisation", sources: &[], make: formulae::fig2 },
        FigureSpec {
            name: "fig3a",
            title: "response over the utilisation, ST-SSD, Financial",
            sources: &[&FINANCIAL],
            make: |lab| response(lab, &ST_FINANCIAL),
        },
        FigureSpec {
            name: "fig3b",
            title: "response over the utilisation, ST-SSD, Exchange",
            sources: &[&EXCHANGE],
            make: |lab| response(lab, &ST_EXCHANGE),
        },
        FigureSpec {
            name: "fig3c",
            title: "response over the utilisation, MT-SSD, Financial",
            sources: &[&FINANCIAL],
            make: |lab| response(lab, &MT_FINANCIAL),
        },
        FigureSpec {
            name: "fig3d",
            title: "response over the utilisation, MT-SSD, Exchange",
            sources: &[&EXCHANGE],
            make: |lab| response(lab, &MT_EXCHANGE),
        },
        FigureSpec {
            name: "fig4a",
            title: "utilisation over time, ST-SSD, Financial",
            sources: &[&FINANCIAL, &FINANCIAL_PHASES],
            make: |lab| over_time::figure(lab, &ST_FINANCIAL, &FINANCIAL_PHASES),
        },
        FigureSpec {
            name: "fig4b",
            title: "utilisation over time, ST-SSD, Exchange",
            sources: &[&EXCHANGE, &EXCHANGE_PHASES],
            make: |lab| over_time::figure(lab, &ST_EXCHANGE, &EXCHANGE_PHASES),
        },
        FigureSpec {
            name: "fig5a",
            title: "lifetime over the utilisation, ST-SSD, Financial",
            sources: &[&FINANCIAL],
            make: |lab| lifetime::figure(lab, &ST_FINANCIAL),
        },
        FigureSpec {
            name: "fig5b",
            title: "lifetime over the utilisation, ST-SSD, Exchange",
            sources: &[&EXCHANGE],
            make: |lab| lifetime::figure(lab, &ST_EXCHANGE),
        },
        FigureSpec {
            name: "fig5c",
            title: "lifetime over the utilisation, MT-SSD, Financial",
            sources: &[&FINANCIAL],
            make: |lab| lifetime::figure(lab, &MT_FINANCIAL),
        },
        FigureSpec {
            name: "fig5d",
            title: "lifetime over the utilisation, MT-SSD, Exchange",
            sources: &[&EXCHANGE],
            make: |lab| lifetime::figure(lab, &MT_EXCHANGE),
        },
        FigureSpec {
            name: "fit",
            title: "the calibrated stand-ins",
            sources: &[&FINANCIAL, &EXCHANGE],
            make: fit::figure,
        },
    ],
    on_any_trace: any_trace::FIGURES,
    calibrations: fit::CALIBRATIONS,
};

/// Financial1, the same trace as in OP-FCL.
static FINANCIAL: Source = Source { calibrated: Some(fit::FITTED_FINANCIAL), ..FINANCIAL1 };

/// The part of Exchange in table I: a third of OP-FCL's, with data that fit into the SSDs.
static EXCHANGE: Source = Source {
    name: "exchange-third",
    workload: "exchange",
    settings: &[("requests", "7500000"), ("used", "16GiB"), ("span", "16GiB")],
    quick: &[("requests", "468750"), ("used", "1GiB"), ("span", "1GiB")],
    calibrated: Some(fit::FITTED_EXCHANGE),
};

/// A drive under a workload.
struct Drive {
    source: &'static Source,
    device: &'static str,
}

/// A drive under a workload of the paper, with the paper's results.
struct Case {
    drive: Drive,
    /// Utilisation of Static with the lowest response, in percent (Fig. 3).
    fastest: f64,
    /// Utilisation of Static with the longest life, in percent (Fig. 5).
    longest_lived: f64,
}

static ST_FINANCIAL: Case =
    Case { drive: Drive { source: &FINANCIAL, device: "hyssd-st" }, fastest: 60.0, longest_lived: 80.0 };
static ST_EXCHANGE: Case =
    Case { drive: Drive { source: &EXCHANGE, device: "hyssd-st" }, fastest: 80.0, longest_lived: 97.0 };
static MT_FINANCIAL: Case =
    Case { drive: Drive { source: &FINANCIAL, device: "hyssd-mt" }, fastest: 30.0, longest_lived: 10.0 };
static MT_EXCHANGE: Case =
    Case { drive: Drive { source: &EXCHANGE, device: "hyssd-mt" }, fastest: 70.0, longest_lived: 60.0 };

/// Utilisations of Static in percent: from 5 to 97, as in the paper.
const UTILISATIONS: [f64; 11] = [5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 97.0];

/// Step of the utilisations in percent, and the allowed share by which our best may be better than the paper's
/// position.
const PLACE: (f64, f64) = (10.0, 0.05);

/// The goals of HySSD: Perf and Life.
const GOALS: [&str; 2] = ["performance", "lifetime"];

/// N in page writes, which the paper does not state. The second value is tried as an alternative.
const PERIODS: [u32; 2] = [65_536, 4096];

/// A dead band that is tried besides the printed zero: the percentage by which one life must exceed the other.
const LIFE_BAND_PERCENT: u32 = 10;

/// A step of Life's utilisation that is tried besides 1 %, because the paper does not state it.
const SMALL_STEP_PERCENT: f64 = 0.25;

/// Divisor of quick runs.
const QUICK: u32 = 16;

/// Intervals of figures over time.
const INTERVALS: u32 = 64;

/// The schemes of Fig. 3 to 5 on one drive under one workload.
struct Compared {
    fixed: Vec<(f64, Arc<Entry>)>,
    perf: Arc<Entry>,
    life: Arc<Entry>,
    /// Life with a sixteenth of N.
    agile_life: Arc<Entry>,
    /// Life that moves only if one life is a tenth longer than the other.
    banded_life: Arc<Entry>,
    /// The other reading of the destination of write misses: only with the first stand-ins, since no claim of the paper is
    /// about it.
    hot_set: Option<HotSet>,
}

/// The schemes if the slow SSD takes misses (`reading=hot_set`) and Life has a quarter of the step.
struct HotSet {
    fixed: Vec<(f64, Arc<Entry>)>,
    perf: Arc<Entry>,
    life: Arc<Entry>,
}

/// A replay of a scheme on a drive, which is smaller in quick runs and scaled to any trace.
fn replay(lab: &Lab<'_>, drive: &Drive, scheme: &'static str) -> Experiment {
    let experiment = Experiment::new(drive.source, drive.device, scheme);
    match (drive.source.is_any(), lab.is_cut(drive.source)) {
        (true, _) => experiment.fitted(),
        (false, false) => experiment,
        (false, true) => {
            experiment.set("logical", "1GiB").set("fast.capacity", "128MiB").set("slow.capacity", "1023MiB")
        }
    }
}

/// Static at each utilisation.
fn fixed(lab: &Lab<'_>, drive: &Drive) -> [Experiment; UTILISATIONS.len()] {
    UTILISATIONS.map(|percent| replay(lab, drive, "hyssd-static").set("utilisation_percent", percent))
}

/// HySSD with one of its goals and a period.
fn dynamic(lab: &Lab<'_>, drive: &Drive, goal: &str, period: u32) -> Experiment {
    let experiment = replay(lab, drive, "hyssd").set("goal", goal).intervals(INTERVALS);
    let period = match (drive.source.is_any(), lab.is_cut(drive.source)) {
        (true, _) => period / any_trace::SHORTER,
        (false, true) => period / QUICK,
        (false, false) => period,
    };
    experiment.scaled("period", period).scaled("timeout", period)
}

fn compared(lab: &Lab<'_>, drive: &Drive) -> Result<Compared, StudyError> {
    let dynamic = |goal, period| dynamic(lab, drive, goal, period);
    let mut experiments = fixed(lab, drive).to_vec();
    experiments.extend(GOALS.map(|goal| dynamic(goal, PERIODS[0])));
    experiments.push(dynamic("lifetime", PERIODS[1]));
    experiments.push(dynamic("lifetime", PERIODS[0]).set("life_band_percent", LIFE_BAND_PERCENT));
    if lab.stand_in() == StandIn::First {
        let hot_set = |experiment: Experiment| experiment.set("reading", "hot_set");
        let small_steps = |goal| hot_set(dynamic(goal, PERIODS[0])).set("life_step_percent", SMALL_STEP_PERCENT);
        experiments.extend(fixed(lab, drive).map(hot_set));
        experiments.extend(GOALS.map(small_steps));
    }
    let entries = lab.run(&experiments)?;
    let (fixed, rest) = entries.split_at(UTILISATIONS.len());
    let [perf, life, agile_life, banded_life] = [0, 1, 2, 3].map(|at| Arc::clone(&rest[at]));
    let hot_set = match &rest[4..] {
        [fixed @ .., perf, life] => {
            Some(HotSet { fixed: by_utilisation(fixed), perf: Arc::clone(perf), life: Arc::clone(life) })
        }
        _ => None,
    };
    Ok(Compared { fixed: by_utilisation(fixed), perf, life, agile_life, banded_life, hot_set })
}

fn by_utilisation(entries: &[Arc<Entry>]) -> Vec<(f64, Arc<Entry>)> {
    UTILISATIONS.into_iter().zip(entries.iter().cloned()).collect()
}

/// Relative remaining life of the drive (equation 4).
fn life_left(entry: &Entry) -> f64 {
    metric(entry, "life")
}

/// Static at each utilisation, and Perf, at the trace's time stamps: in idle time pages leave the fast SSD.
struct ByTime {
    fixed: Vec<(f64, Arc<Entry>)>,
    perf: Arc<Entry>,
}

fn by_time(lab: &Lab<'_>, drive: &Drive) -> Result<ByTime, StudyError> {
    let mut experiments = fixed(lab, drive).to_vec();
    experiments.push(dynamic(lab, drive, "performance", PERIODS[0]));
    let experiments: Vec<_> =
        experiments.into_iter().map(|experiment| experiment.arrivals(Arrivals::Trace { speed: 1.0 })).collect();
    let mut entries = lab.run(&experiments)?;
    let rest = entries.split_off(UTILISATIONS.len());
    Ok(ByTime { fixed: by_utilisation(&entries), perf: Arc::clone(&rest[0]) })
}

impl ByTime {
    /// Perf's response by that of the fastest Static.
    fn perf_by_best(&self) -> f64 {
        let best = lowest(&curve(&self.fixed, response_ms)).map_or(f64::NAN, |((_, best), _)| best);
        response_ms(&self.perf) / best
    }

    fn plot(&self) -> Plot {
        let fixed = curve(&self.fixed, response_ms);
        let perf = Series::measured("Perf", level(&fixed, response_ms(&self.perf)));
        Plot {
            title: "Mean response, by time stamps".into(),
            kind: PlotKind::Lines,
            x: Axis::linear("utilisation of the fast SSD (%)"),
            y: Axis::logarithmic("ms"),
            series: vec![Series::measured("Static", fixed), perf],
        }
    }
}

/// Static's curve, and a constant level for each of the other schemes.
fn plot(title: &str, y: &str, compared: &Compared, figure: fn(&Entry) -> f64) -> Plot {
    let fixed = curve(&compared.fixed, figure);
    let line = |name, entry: &Entry| Series::measured(name, level(&fixed, figure(entry)));
    let mut series = vec![
        Series::measured("Static", fixed.clone()),
        line("Perf", &compared.perf),
        line("Life", &compared.life),
        line("Life, period of a sixteenth", &compared.agile_life),
        line("Life, dead band of a tenth", &compared.banded_life),
    ];
    if let Some(hot_set) = &compared.hot_set {
        series.extend([
            Series::measured("Static, misses to the slow SSD", curve(&hot_set.fixed, figure)),
            line("Perf, misses to the slow SSD", &hot_set.perf),
            line("Life, misses to the slow SSD, steps of 0.25 %", &hot_set.life),
        ]);
    }
    Plot {
        title: title.into(),
        kind: PlotKind::Lines,
        x: Axis::linear("utilisation of the fast SSD (%)"),
        y: Axis::linear(y),
        series,
    }
}

/// Fig. 3.
fn response(lab: &Lab<'_>, case: &Case) -> Result<Drawn, StudyError> {
    let compared = compared(lab, &case.drive)?;
    let (fixed, lives) = (curve(&compared.fixed, response_ms), curve(&compared.fixed, life_left));
    let ((_, best), inside) = lowest(&fixed).unwrap_or_default();
    let lives_longest = highest(&lives).map_or(f64::NAN, |((percent, _), _)| height_at(&fixed, percent));
    let (perf, life) = (response_ms(&compared.perf), response_ms(&compared.life));
    let banded = response_ms(&compared.banded_life) / perf;
    // Only with the first stand-ins, since it is not a claim of the paper.
    let by_time = match lab.stand_in() {
        StandIn::First => Some(by_time(lab, &case.drive)?),
        StandIn::Calibrated => None,
    };
    let mut findings = vec![
        Finding::fact(
            "Static's response falls to a minimum inside and rises again",
            "a minimum inside",
            inside,
            row(heights(&fixed)),
        )
        .target("T27"),
        Finding::best_at("utilisation of the fastest Static (%)", case.fastest, Best::Lowest, PLACE, &fixed)
            .unless(
                "at full size in MT-SSD under Financial, where 40 % takes 0.16 % longer than 50 %; with another seed of \
                 the generator (`--seed 3`) 40 % is best, and 30 % takes 1.2 % longer",
            )
            .fitted()
            .target("T27"),
        Finding::between("response of Perf by that of the fastest Static", 0.0, 1.05, perf / best).target("T27"),
        Finding::between("Life is slightly slower than Perf", 1.0, 1.1, life / perf)
            .reason(format!(
                "{} times Perf's response, with a dead band of a tenth {}; Static itself takes {} times its best where it lives \
                 longest",
                short(life / perf),
                short(banded),
                short(lives_longest / best)
            ))
            .unless(
                "the step of Life's utilisation is not printed, and steps of 1 % overshoot: with smaller ones \
                 (`life_step_percent`) it is 1.02 in ST-SSD under Financial (0.5 %) and 1.05 under Exchange (0.25 %), 1.01 and 1.02 in \
                 MT-SSD (0.25 % and 0.1 %)",
            )
            .unless_calibrated(
                "the step of Life's utilisation is not printed, and steps of 1 % overshoot: with steps of 0.2 % \
                 (`life_step_percent=0.2`) it is 1.04 in ST-SSD under Exchange, with 0.5 % 1.06 in MT-SSD under Financial",
            )
            .target("T27"),
    ];
    if let Some(HotSet { perf, life, .. }) = &compared.hot_set {
        const CLAIM: &str = "the same where the slow SSD takes what misses, in steps of 0.25 %";
        findings.push(Finding::between(CLAIM, 1.0, 1.1, response_ms(life) / response_ms(perf)).of_kind(Kind::Ours));
    }
    let mut plots = vec![plot("Mean response", "ms", &compared, response_ms)];
    if let Some(by_time) = &by_time {
        const CLAIM: &str = "response of Perf by that of the fastest Static, by time stamps";
        findings.push(
            Finding::between(CLAIM, 0.0, 1.05, by_time.perf_by_best())
                .unless(
                    "in ST-SSD under Exchange the drive cannot keep up in bursts, and waiting decides; with a sixteenth of \
                     the period, which is not given (`period`), it is 0.820 in a quick run, and at full size at half the \
                     speed (`trace:0.5`) 1.02",
                )
                .of_kind(Kind::Ours),
        );
        plots.push(by_time.plot());
    }
    Ok(Drawn {
        caption: "One request at a time, drives full at the start. Static is tried at each utilisation; the others find theirs. \
                  The paper gives the places of the minima, but no times. By time stamps pages leave the fast SSD in idle time."
            .into(),
        plots,
        findings,
    })
}
