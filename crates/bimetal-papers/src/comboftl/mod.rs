//! ComboFTL 2010: blocks of an MLC chip in SLC mode (schemes `comboftl`, `combo-static`, `2q-gclock`, `mixedftl`, and
//! `unitmap` for chips of one kind).

mod adaptation;
mod any_trace;
mod erases;
mod fit;
mod techniques;
mod time;
mod traces;

use std::sync::Arc;

use bimetal_core::operation::FlashOp;

use fit::{CALIBRATIONS, FITTED_IOZONE, FITTED_PC, FITTED_PHONE};

use super::experiment::{Experiment, Source};
use super::lab::Lab;
use super::{FigureSpec, PaperSpec};
use crate::reading::time_s;
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;

/// The registry entry.
pub static SPEC: PaperSpec = PaperSpec {
    name: "comboftl",
    citation: "Soojun Im and Dongkun Shin, ComboFTL: Improving performance and lifespan of MLC flash memory using SLC flash \
               buffer, Journal of Systems Architecture 56, 2010",
    summary: "blocks of an MLC chip in SLC mode",
    figures: &[
        FigureSpec { name: "table2", title: "beside Chang's hybrid", sources: TRACES, make: time::table2 },
        FigureSpec { name: "table3", title: "the traces: how much they write", sources: TRACES, make: traces::table3 },
        FigureSpec { name: "fig9", title: "the traces: time between writes", sources: TRACES, make: traces::fig9 },
        FigureSpec { name: "fig10", title: "execution time of all schemes", sources: WITH_WARM, make: time::fig10 },
        FigureSpec {
            name: "fig11",
            title: "share of blocks in SLC mode",
            sources: &[&PHONE, &WARM_SMALL],
            make: time::fig11,
        },
        FigureSpec { name: "fig12", title: "without each technique", sources: WITH_WARM, make: techniques::fig12 },
        FigureSpec { name: "fig13", title: "the threshold over time", sources: WITH_WARM, make: adaptation::fig13 },
        FigureSpec {
            name: "fig14",
            title: "the number of chances over time (and table 5)",
            sources: WITH_WARM,
            make: adaptation::fig14,
        },
        FigureSpec { name: "fig15", title: "erases of MLC", sources: ALL, make: erases::fig15 },
        FigureSpec { name: "fig16", title: "size of a unit", sources: ALL, make: erases::fig16 },
        FigureSpec { name: "fit", title: "the calibrated stand-ins", sources: TRACES, make: fit::figure },
        FigureSpec { name: "introduction", title: "the headline", sources: TRACES, make: time::headline },
    ],
    on_any_trace: any_trace::FIGURES,
    calibrations: CALIBRATIONS,
};

/// The paper's traces (section 6).
const TRACES: &[&Source] = &[&PHONE, &PC, &IOZONE];

/// The paper's traces, and two with more warm data, which the stand-ins lack: data that are neither hot nor cold.
const WITH_WARM: &[&Source] = &[&PHONE, &PC, &IOZONE, &WARM_SMALL, &WARM_LARGE];

/// The same traces, and one that gives MLC much garbage collection.
const ALL: &[&Source] = &[&PHONE, &PC, &IOZONE, &WARM_SMALL, &WARM_LARGE, &SPREAD];

/// Names of the traces in figures, in the order of [`ALL`].
const NAMES: [&str; 6] = ["Phone", "PC", "IOzone", "warm, small", "warm, large", "spread"];

/// Logical capacity of the chip, in MiB.
const LOGICAL_MIB: u32 = 2048;

/// Indexes in [`ALL`].
const PHONE_AT: usize = 0;
const IOZONE_AT: usize = 2;
const WARM_AT: std::ops::Range<usize> = 3..5;
const SPREAD_AT: usize = 5;

/// PhoneTrace.
static PHONE: Source =
    Source { name: "phone", workload: "phone", settings: &[], quick: &[], calibrated: Some(FITTED_PHONE) };

/// PCTrace.
static PC: Source = Source { name: "pc", workload: "pc", settings: &[], quick: &[], calibrated: Some(FITTED_PC) };

/// IOzoneTrace.
static IOZONE: Source =
    Source { name: "iozone", workload: "iozone", settings: &[], quick: &[], calibrated: Some(FITTED_IOZONE) };

/// Small writes with gradually decreasing popularity: some data return after any number of bytes.
static WARM_SMALL: Source = Source {
    name: "warm-small",
    workload: "zipf",
    settings: &[("span", "2036MiB"), ("theta", "1.2"), ("read_share", "0"), ("requests", "1500000")],
    quick: &[],
    calibrated: None,
};

/// The same with writes that are too large for any threshold.
static WARM_LARGE: Source = Source {
    name: "warm-large",
    workload: "zipf",
    settings: &[("span", "2036MiB"), ("size", "128KiB"), ("theta", "1.2"), ("read_share", "0"), ("requests", "100000")],
    quick: &[],
    calibrated: None,
};

/// Writes that are spread randomly over a file system and give MLC much garbage collection.
static SPREAD: Source = Source {
    name: "spread",
    workload: "bimodal-ntfs",
    settings: &[("scale", "10"), ("read_share", "0"), ("requests", "600000")],
    quick: &[],
    calibrated: None,
};

/// A chip: a device and its scheme.
type Chip = (&'static str, &'static str);

const MLC_ONLY: Chip = ("comboftl-mlc-only", "unitmap");
const SLC_ONLY: Chip = ("comboftl-slc-only", "unitmap");
/// ComboFTL with 5 % of the blocks in SLC mode.
const COMBO_5: Chip = ("comboftl-5", "comboftl");
const COMBO_10: Chip = ("comboftl-10", "comboftl");

/// Parameters of a scheme or fields of a device.
type Settings = &'static [(&'static str, &'static str)];

/// A replay of a trace's writes, on a filled chip (section 6.1). For any trace the chip is scaled to it.
fn replay(source: &'static Source, (device, scheme): Chip, settings: &[(&str, &str)]) -> Experiment {
    let experiment = Experiment::new(source, device, scheme);
    let experiment = if source.is_any() { experiment.fitted() } else { experiment };
    settings.iter().fold(experiment, |experiment, (key, value)| experiment.set(key, value))
}

/// The same replays for each trace, in the order of the traces.
fn of_each(
    lab: &Lab<'_>,
    traces: &[&'static Source],
    chips: &[(Chip, &[(&str, &str)])],
) -> Result<Vec<Vec<Arc<Entry>>>, StudyError> {
    let of_one = |source: &&'static Source| chips.iter().map(|&(chip, settings)| replay(source, chip, settings));
    let experiments: Vec<Experiment> = traces.iter().flat_map(|source| of_one(source).collect::<Vec<_>>()).collect();
    Ok(lab.run(&experiments)?.chunks(chips.len()).map(<[_]>::to_vec).collect())
}

/// The kinds of work in Fig. 10, each with its region, if that matters, and its causes. Reads, programs and erases of a
/// kind are added up.
const KINDS: [(&str, Option<&str>, &[&str]); 6] = [
    ("SLC", Some("slc"), &["host"]),
    ("MLC to SLC", None, &["migrate_up"]),
    ("SLC to SLC", Some("slc"), &["gc"]),
    ("MLC", Some("mlc"), &["host"]),
    ("SLC to MLC", None, &["migrate_down"]),
    ("MLC to MLC", Some("mlc"), &["gc"]),
];

/// Seconds of each kind of work.
fn kinds_s(entry: &Entry) -> [f64; 6] {
    KINDS.map(|(_, region, causes)| time_s(entry, region, None, causes))
}

/// Total execution time in seconds: the sum of all operations (section 6.1).
fn execution_s(entry: &Entry) -> f64 {
    entry.report.ops.iter().map(|row| row.time_us).sum::<f64>() / 1e6
}

/// Execution time of the second relative to the first.
fn time_ratio(first: &Entry, second: &Entry) -> f64 {
    execution_s(second) / execution_s(first)
}

/// Number of erased MLC blocks.
fn mlc_erases(entry: &Entry) -> f64 {
    entry.report.count("mlc", FlashOp::Erase) as f64
}

/// Time of demotions from SLC to MLC, in seconds.
fn demotion_s(entry: &Entry) -> f64 {
    kinds_s(entry)[4]
}

/// Time of garbage collection in MLC, in seconds.
fn collection_s(entry: &Entry) -> f64 {
    kinds_s(entry)[5]
}
