//! WLAFTL 2018: equal wear of SLC and MLC (schemes `wlaftl`, `wlaftl-static`, `cftl`).
//!
//! The paper does not state whether its devices were written before the experiments. Its erase counts are close to
//! those of a new device. Hence claims of kind result are for a new device, and the same questions are asked for a
//! filled one.

mod any_trace;
mod fit;
mod rivals;
mod wear;

use std::sync::Arc;

use bimetal_core::replay::{Arrivals, Fill};

use super::claim::{Kind, StandIn};
use super::experiment::{Experiment, Fitted, Source};
use super::finding::{Finding, falls, lowest, row};
use super::lab::Lab;
use super::{Drawn, FigureSpec, PaperSpec};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series, short};

/// The registry entry.
pub static SPEC: PaperSpec = PaperSpec {
    name: "wlaftl",
    citation: "WLAFTL, a wear-levelling-aware flash translation layer for hybrid solid-state disks, Chinese Journal of \
               Computers, 2018",
    summary: "SLC and MLC worn in step",
    figures: &[
        FigureSpec { name: "table2", title: "the traces", sources: &SOURCES, make: table2 },
        FigureSpec {
            name: "table3",
            title: "erases and wear of both regions, static thresholds and WLAFTL",
            sources: &SOURCES,
            make: wear::table3,
        },
        FigureSpec { name: "fig4", title: "response over Max_Cycle_Time", sources: &SOURCES, make: fig4 },
        FigureSpec { name: "fig5", title: "erases over the size of SLC", sources: &SOURCES, make: fig5 },
        FigureSpec {
            name: "rivals",
            title: "beside ComboFTL and CFTL (abstract; the figures are lost)",
            sources: &SOURCES,
            make: rivals::rivals,
        },
        FigureSpec { name: "fit", title: "the calibrated stand-ins", sources: &SOURCES, make: fit::figure },
    ],
    on_any_trace: any_trace::FIGURES,
    calibrations: fit::CALIBRATIONS,
};

type Settings = &'static [(&'static str, &'static str)];

/// In a quick run, the address space, the device and the number of requests are divided by `scale`, so that blocks have
/// the same number of cycles. Calibrated stand-ins are fitted in quick runs, and hence are smaller.
const fn source(name: &'static str, settings: Settings, fitted: Settings) -> Source {
    let fitted = Fitted { workload: "wlaftl", settings: fitted, quick: Some(&[("scale", "8")]) };
    Source { name, workload: "wlaftl", settings, quick: &[("scale", "2")], calibrated: Some(fitted) }
}

/// OLTP of UMass, Financial1.
static FIN1: Source = source("fin1", &[("trace", "fin1")], fit::FIN1);
/// A PC.
static SYS: Source = source("sys", &[("trace", "sys")], fit::SYS);
/// Synthetic: small writes only.
static TEST1: Source = source("test1", &[("trace", "test1")], fit::TEST1);
/// Synthetic: mostly writes of 8 and 16 KB.
static TEST2: Source = source("test2", &[("trace", "test2")], fit::TEST2);
/// A PC: mostly writes of 8 and 16 KB.
static IOTRACE1: Source = source("iotrace1", &[("trace", "iotrace1")], fit::IOTRACE1);
/// A PC: the longest.
static IOTRACE2: Source = source("iotrace2", &[("trace", "iotrace2")], fit::IOTRACE2);

/// Number of traces.
const TRACES: usize = 6;

/// The traces, in the order of table 3.
static SOURCES: [&Source; TRACES] = [&FIN1, &SYS, &TEST1, &TEST2, &IOTRACE1, &IOTRACE2];

// Indexes in `SOURCES`.
const AT_FIN1: usize = 0;
const AT_SYS: usize = 1;
const AT_TEST1: usize = 2;
const AT_TEST2: usize = 3;
const AT_IOTRACE1: usize = 4;
const AT_IOTRACE2: usize = 5;

/// Logical capacity of the device, in MiB.
const LOGICAL_MIB: u32 = 1914;

/// State of a device before a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Every logical page has been written.
    Filled,
    /// The state in which results are judged. With the first stand-ins, which use the whole address space, it is a new
    /// device. Calibrated stand-ins are fitted to devices that hold the trace's data, as in the laboratory's program.
    AsJudged,
}

impl Before {
    /// The states that are asked about. A calibrated stand-in has one, to which it is fitted.
    fn asked(lab: &Lab<'_>) -> &'static [Self] {
        if lab.stand_in() == StandIn::Calibrated { &[Self::AsJudged] } else { &[Self::AsJudged, Self::Filled] }
    }

    fn fill(self, lab: &Lab<'_>) -> Fill {
        match self {
            Self::Filled => Fill::Device,
            Self::AsJudged if lab.stand_in() == StandIn::Calibrated => Fill::Trace,
            Self::AsJudged => Fill::None,
        }
    }

    /// The device in the titles of plots.
    fn device(self, lab: &Lab<'_>) -> &'static str {
        match self.fill(lab) {
            Fill::Device => "filled device",
            Fill::Trace => "device that holds the trace's data",
            Fill::None => "new device",
        }
    }
}

/// Divisor of the device: that of the trace. A user's trace is used completely, on the whole device.
fn divisor(lab: &Lab<'_>, source: &'static Source) -> u32 {
    let (_, settings) = if lab.is_own(source) { Default::default() } else { lab.generator(source) };
    let scale = settings.iter().find(|(key, _)| key == "scale").and_then(|(_, scale)| scale.parse().ok());
    scale.unwrap_or(1)
}

/// A scheme with settings, on a device in one of these states.
#[derive(Clone, Copy, Debug)]
struct Trial {
    name: &'static str,
    scheme: &'static str,
    settings: &'static [(&'static str, &'static str)],
    before: Before,
}

impl Trial {
    const fn new(name: &'static str, scheme: &'static str, settings: &'static [(&'static str, &'static str)]) -> Self {
        Self { name, scheme, settings, before: Before::AsJudged }
    }

    fn on(self, before: Before) -> Self {
        Self { before, ..self }
    }

    /// The experiment with the trace's arrival times, as in FlashSim.
    fn of(self, lab: &Lab<'_>, source: &'static Source) -> Experiment {
        self.with_slc(lab, source, SLC_MIB[SLC_MIB.len() - 1])
    }

    /// The same with `mib` MiB of SLC. For any trace the device is scaled to it and filled, with one request at a time.
    fn with_slc(self, lab: &Lab<'_>, source: &'static Source, mib: u32) -> Experiment {
        if source.is_any() {
            let experiment = Experiment::new(source, "wlaftl", self.scheme).fitted();
            let experiment = experiment.set("slc.capacity", source.capacity(f64::from(mib), LOGICAL_MIB));
            return self.settings.iter().fold(experiment, |experiment, (key, value)| experiment.set(key, value));
        }
        let divisor = divisor(lab, source);
        let mut experiment = Experiment::new(source, "wlaftl", self.scheme).arrivals(Arrivals::Trace { speed: 1.0 });
        experiment = experiment.set("slc.capacity", format!("{}MiB", mib / divisor));
        if divisor > 1 {
            // The values of the preset. The capacity follows from the spare area if that is set.
            experiment = experiment.set("logical", format!("{}KiB", LOGICAL_MIB * 1024 / divisor));
            if !self.settings.iter().any(|&(key, _)| key == "mlc.spare") {
                experiment = experiment.set("mlc.capacity", format!("{}MiB", 2048 / divisor));
            }
        }
        experiment = self.settings.iter().fold(experiment, |experiment, (key, value)| experiment.set(key, value));
        experiment.fill(self.before.fill(lab))
    }
}

const WLAFTL: Trial = Trial::new("WLAFTL", "wlaftl", &[]);

/// Every run on every trace: an entry for each run and trace.
fn on_all_traces(lab: &Lab<'_>, runs: &[Trial]) -> Result<Vec<Vec<Arc<Entry>>>, StudyError> {
    let experiments: Vec<Experiment> = runs.iter().flat_map(|run| SOURCES.map(|source| run.of(lab, source))).collect();
    Ok(lab.run(&experiments)?.chunks(TRACES).map(<[_]>::to_vec).collect())
}

/// A figure of a replay.
type Measure = fn(&Entry) -> f64;

/// A figure of each trace.
fn each(entries: &[Arc<Entry>], figure: Measure) -> Vec<f64> {
    entries.iter().map(|entry| figure(entry)).collect()
}

/// Figures by the names of their traces.
fn by_trace(values: impl IntoIterator<Item = f64>) -> Vec<(String, f64)> {
    SOURCES.iter().map(|source| source.name.to_owned()).zip(values).collect()
}

/// Blocks of a region that were erased since the device was filled.
fn erases(entry: &Entry, region: &str) -> u64 {
    entry.report.wear_of(region).map_or(0, |wear| wear.erases_total)
}

fn slc_erases(entry: &Entry) -> f64 {
    erases(entry, "slc") as f64
}

fn mlc_erases(entry: &Entry) -> f64 {
    erases(entry, "mlc") as f64
}

fn response_ms(entry: &Entry) -> f64 {
    entry.report.response_us.mean / 1e3
}

fn phi(entry: &Entry) -> f64 {
    entry.phi.unwrap_or(f64::NAN)
}

/// Table 2, as far as it is legible: `test1` and `iotrace2`.
fn table2(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let legible = [(AT_TEST1, 0.5, 2.67), (AT_IOTRACE2, 0.534, 5.9505)];
    let (mut shares, mut kib) = (Vec::new(), Vec::new());
    for source in SOURCES {
        let facts = lab.facts(source)?;
        shares.push(facts.writes as f64 / facts.requests as f64);
        kib.push(facts.write_bytes as f64 / facts.writes as f64 / 1024.0);
    }
    let within = |values: &[f64], paper: [f64; 2]| {
        let near = |(&(at, ..), paper): (&(usize, f64, f64), f64)| (values[at] / paper - 1.0).abs() < 0.01;
        let found = row(legible.map(|(at, ..)| values[at]));
        (legible.iter().zip(paper).all(near), found)
    };
    let of_paper = |column: fn(&(usize, f64, f64)) -> f64| {
        let point = |known: &(usize, f64, f64)| (SOURCES[known.0].name.to_owned(), column(known));
        Series::of_paper_by_name("table 2", legible.iter().map(point).collect())
    };
    let plot = |title: &str, unit: &str, values: &[f64], paper| Plot {
        title: title.into(),
        kind: PlotKind::Bars,
        x: Axis::linear("trace"),
        y: Axis::linear(unit),
        series: vec![Series::measured_by_name("stand-in", by_trace(values.to_vec())), paper],
    };
    let (shares_held, shares_found) = within(&shares, legible.map(|(_, share, _)| share));
    let (sizes_held, sizes_found) = within(&kib, legible.map(|(_, _, kib)| kib));
    // Half of 3,181,345 requests of 2.67 KB, divided by the bytes of the SLC erases of 128 KB, which are all caused by
    // writes.
    let written_by_erased = 3_181_345.0 * 0.5 * 2.67 / (wear::TABLE_3[AT_TEST1][0].slc_erases as f64 * 128.0);
    let findings = vec![
        Finding::fact("share of writes of Test1 and Iotrace2", "50 and 53.4 %, within 1 %", shares_held, shares_found)
            .of_kind(Kind::Generator),
        Finding::fact("mean write of Test1 and Iotrace2, in KB", "2.67 and 5.95, within 1 %", sizes_held, sizes_found)
            .of_kind(Kind::Generator),
        Finding::about("what Test1 writes is what SLC erases in table 3", 1.0, 0.05, written_by_erased)
            .of_kind(Kind::Arithmetic),
        Finding::not_judged(
            "the rows of Fin1, Sys, Test2 and Iotrace1",
            "(illegible)",
            row([0, 1, 3, 4].map(|at| kib[at])),
            "the only copy at hand is a scan in which they cannot be read",
        )
        .of_kind(Kind::Generator),
    ];
    Ok(Drawn {
        caption:
            "The traces of the authors' PC and of DiskSim are not public. Stand-ins have the sizes of writes that \
                  follow from table 3's static thresholds, and the lengths of table 2."
                .into(),
        plots: vec![
            plot("Writes", "share of requests", &shares, of_paper(|known| known.1)),
            plot("Mean write", "KiB", &kib, of_paper(|known| known.2)),
        ],
        findings,
    })
}

/// Values of Max_Cycle_Time in Fig. 4.
const LAPS: [u32; 5] = [1, 2, 3, 4, 5];

/// Reason why another number of laps is best.
const PRICE_OF_MLC: &str = "it depends on what a write to MLC costs, which the paper does not let us know: on a filled device with \
    4 % of spare area the best is 3, with 7 % 2, with 15 % or on a new one 1";

/// Reason why laps do not matter on the calibrated Fin1.
const ALL_HOT: &str = "next to no valid data reach the log's tail, so that all numbers of laps respond alike, within \
    0.1 %; with data in all of the space (`footprint=1`, `small_space=1`, `theta=0.99`) and 4 % of spare area \
    (`mlc.spare=4%`) three are best, 14 and 16 % below the ends";

/// Smallest rise of a curve from its lowest point to both ends. The paper's axis is 15 % high.
const RISE: f64 = 0.01;

/// The lowest point of a curve, and whether the curve falls to it and rises from it.
fn best(curve: &[(f64, f64)]) -> Option<((f64, f64), bool)> {
    let ((laps, least), inside) = lowest(curve)?;
    let rises = |end: Option<&(f64, f64)>| end.is_some_and(|&(_, response)| response > least * (1.0 + RISE));
    Some(((laps, least), inside && rises(curve.first()) && rises(curve.last())))
}

/// Claims on the best number of laps, from the curve of each trace.
fn best_laps(traces: &[Vec<(f64, f64)>]) -> Vec<Finding> {
    let best = |curve: &Vec<(f64, f64)>| best(curve).unwrap_or(((f64::NAN, f64::NAN), false));
    let ((best_laps, best_ms), inside) = best(&traces[AT_FIN1]);
    let others: Vec<_> =
        traces.iter().enumerate().filter(|&(at, _)| at != AT_FIN1).map(|(_, curve)| best(curve)).collect();
    vec![
        Finding::fact(
            "Fin1: falls, then rises with Max_Cycle_Time",
            "lowest inside 1 to 5, by 1 % below both ends",
            inside,
            format!("lowest at {}", short(best_laps)),
        )
        .target("T29")
        .unless(PRICE_OF_MLC)
        .unless_calibrated(ALL_HOT),
        Finding::fact("Fin1: lowest at three laps", "3, by 1 % below both ends", inside && best_laps == 3.0, short(best_laps))
            .target("T29")
            .unless(PRICE_OF_MLC)
            .unless_calibrated(ALL_HOT),
        Finding::between("Fin1: lowest mean response, in ms, on the figure's axis", 1.3, 1.5, best_ms)
            .unless("without the rule for updates (`keep_updates=false`) it is 1.46; with it three laps take 1.35 ms")
            .unless_calibrated(
                "the trace's times are not published; with 1.5 ms between requests instead of 10 (`interval_us=1500`) it is 1.34",
            ),
        Finding::fact(
            "the same on the other traces (4.2)",
            "lowest inside 1 to 5, by 1 % below both ends, all five",
            others.iter().all(|&(_, inside)| inside),
            format!("lowest at {}", row(others.iter().map(|&((laps, _), _)| laps))),
        )
        .unless(
            "a write to a new MLC is not followed by its collection, so that laps save little; on the calibrated stand-ins with data \
             in all of the space, with 15 % of spare area and a threshold of at most 16 KB (`footprint=1`, `small_space=1`, \
             `theta=0.99` and 0.6 on Sys, `mlc.spare=15%`, `threshold_max=16KiB`) it is 3; 2; 2; 3; 3",
        )
        .unless_calibrated(
            "hardly any valid data reach the log's tail, or large ones that go round in vain; with data in all of the space, 15 % of \
             spare area and a threshold of at most 16 KB (`footprint=1`, `small_space=1`, `theta=0.99` and 0.6 on Sys, \
             `mlc.spare=15%`, `threshold_max=16KiB`) it is 3; 2; 2; 3; 3",
        ),
    ]
}

/// Fig. 4: mean response by Max_Cycle_Time.
fn fig4(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let laps = |run: Trial, source| LAPS.map(|laps| run.of(lab, source).set("max_cycle_time", laps));
    // Cost of a write to MLC on Fin1, from high to low, if the device is filled: more spare area makes it cheaper.
    let filled = |name, settings| Trial::new(name, "wlaftl", settings).on(Before::Filled);
    let prices = [
        filled("filled, 4 % spare", &[("mlc.spare", "4%")]),
        filled("filled, 7 % spare", &[]),
        filled("filled, 15 % spare", &[("mlc.spare", "15%")]),
    ];
    let prices = if Before::asked(lab).contains(&Before::Filled) { &prices[..] } else { &[] };
    let mut experiments: Vec<Experiment> = SOURCES.iter().flat_map(|source| laps(WLAFTL, source)).collect();
    experiments.extend(prices.iter().flat_map(|&run| laps(run, &FIN1)));
    let entries = lab.run(&experiments)?;
    let curve = |entries: &[Arc<Entry>]| -> Vec<(f64, f64)> {
        LAPS.iter().zip(entries).map(|(&laps, entry)| (f64::from(laps), response_ms(entry))).collect()
    };
    let curves: Vec<Vec<(f64, f64)>> = entries.chunks(LAPS.len()).map(curve).collect();
    let (traces, priced) = curves.split_at(TRACES);
    let series = |name: &str, curve: &Vec<(f64, f64)>| Series::measured(name, curve.clone());
    let plot = |title: &str, series| Plot {
        title: title.into(),
        kind: PlotKind::Lines,
        x: Axis::linear("Max_Cycle_Time"),
        y: Axis::logarithmic("mean response (ms)"),
        series,
    };
    let judged = Before::AsJudged.device(lab);
    let on_fin1 = [(judged, &traces[AT_FIN1])].into_iter().chain(prices.iter().map(|run| run.name).zip(priced));
    Ok(Drawn {
        caption:
            "Requests arrive as recorded and waiting counts. The paper shows Fin1 on an axis from 1.30 to 1.50 ms."
                .into(),
        plots: vec![
            plot(
                &format!("Each trace, {judged}"),
                SOURCES.iter().zip(traces).map(|(source, curve)| series(source.name, curve)).collect(),
            ),
            plot("Fin1, other states of MLC", on_fin1.map(|(name, curve)| series(name, curve)).collect()),
        ],
        findings: best_laps(traces),
    })
}

/// Sizes of SLC in Fig. 5, in MiB. All other experiments use the largest.
const SLC_MIB: [u32; 5] = [32, 64, 128, 256, 512];

/// Fig. 5: erases by size of SLC.
fn fig5(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let sizes = |source| SLC_MIB.map(|mib| WLAFTL.with_slc(lab, source, mib));
    let experiments: Vec<Experiment> = SOURCES.iter().flat_map(|source| sizes(source)).collect();
    let entries = lab.run(&experiments)?;
    let curves = |figure: Measure| -> Vec<Vec<f64>> {
        entries.chunks(SLC_MIB.len()).map(|entries| each(entries, figure)).collect()
    };
    let (slc, mlc) = (curves(slc_erases), curves(mlc_erases));
    let falling = mlc.iter().filter(|curve| falls(curve, 0.0)).count();
    let ends = |curves: &[Vec<f64>]| row(curves.iter().map(|curve| curve[SLC_MIB.len() - 1] / curve[0]));
    let findings = vec![
        Finding::fact(
            "MLC erases fall with the size of SLC",
            "all six traces",
            falling == TRACES,
            format!("{falling} traces; at 512 MB by those at 32 MB: {}", ends(&mlc)),
        )
        .of_kind(Kind::Ours),
        Finding::not_judged(
            "what SLC erases do",
            "(illegible)",
            format!("at 512 MB by those at 32 MB: {}", ends(&slc)),
            "the verb cannot be read in the only copy at hand",
        ),
    ];
    let plot = |title: &str, curves: &[Vec<f64>]| Plot {
        title: title.into(),
        kind: PlotKind::Lines,
        x: Axis::logarithmic("SLC (MiB)"),
        y: Axis::logarithmic("blocks erased"),
        series: SOURCES
            .iter()
            .zip(curves)
            .map(|(source, curve)| {
                Series::measured(source.name, SLC_MIB.map(f64::from).into_iter().zip(curve.clone()).collect())
            })
            .collect(),
    };
    Ok(Drawn {
        caption: format!(
            "A {}. Of the paper's text only that MLC erases do something as SLC grows can be read.",
            Before::AsJudged.device(lab)
        ),
        plots: vec![plot("SLC erases", &slc), plot("MLC erases", &mlc)],
        findings,
    })
}
