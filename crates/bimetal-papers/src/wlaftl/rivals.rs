//! The abstract's comparison of WLAFTL with ComboFTL and CFTL. The underlying figures are lost.

use std::sync::Arc;

use super::{
    Before, Measure, TRACES, Trial, WLAFTL, by_trace, each, mlc_erases, on_all_traces, phi, response_ms, slc_erases,
};
use crate::Drawn;
use crate::claim::Kind;
use crate::finding::{Finding, row};
use crate::lab::Lab;
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series};

/// Runs on a new device; the first [`RIVALS`] also on a filled one. The others show which assumption matters.
pub(super) const RUNS: [Trial; 6] = [
    WLAFTL,
    // "Under the same address mapping scheme": MLC has a page map here, too.
    Trial::new("ComboFTL", "comboftl", &[("slow_map", "page")]),
    Trial::new("CFTL", "cftl", &[]),
    Trial::new("CFTL, 4 KB", "cftl", &[("threshold_mode", "fixed")]),
    Trial::new("WLAFTL, no laps", "wlaftl", &[("max_cycle_time", "0")]),
    Trial::new("WLAFTL, up to 16 KB", "wlaftl", &[("threshold_max", "16KiB")]),
];

/// The schemes of the paper as the laboratory's program interprets the papers.
const LABORATORY: [Trial; RIVALS] = [
    Trial::new("WLAFTL", "wlaftl", &[("cycle_time", "laps_and_writes"), ("max_cycle_time", "2")]),
    RUNS[COMBO],
    Trial::new("CFTL", "cftl", &[("threshold_mode", "mean")]),
];

/// Reading of the claims. Claims of kind result are for new devices; the others are ours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    New,
    Filled,
    Laboratory,
}

impl Reading {
    fn kind(self) -> Kind {
        if self == Self::New { Kind::Result } else { Kind::Ours }
    }
}

// Indexes in `RUNS`.
pub(super) const OURS: usize = 0;
pub(super) const COMBO: usize = 1;
pub(super) const CFTL: usize = 2;

/// Number of runs that are schemes of the paper.
pub(super) const RIVALS: usize = 3;

/// A number in the abstract: the saving of WLAFTL on its best trace.
pub(super) struct Headline {
    /// By [`Reading`].
    pub(super) claims: [&'static str; 3],
    pub(super) rival: usize,
    pub(super) figure: Measure,
    saving: f64,
    /// Reasons why it does not hold on a new and on a filled device.
    unless: [Option<&'static str>; 2],
    /// Reason why it does not hold on calibrated stand-ins.
    unless_calibrated: Option<&'static str>,
}

/// The numbers of the Chinese abstract, and the English text's for MLC erases. The English text has 9.09 % for the
/// response relative to CFTL.
pub(super) const HEADLINES: [Headline; 5] = [
    Headline {
        claims: [
            "response below ComboFTL's",
            "response below ComboFTL's, filled device",
            "response below ComboFTL's, as the laboratory's program",
        ],
        rival: COMBO,
        figure: response_ms,
        saving: 0.136,
        unless: [
            Some(
                "laps of large data delay the host; with laps counted as in the laboratory's program \
                 (`cycle_time=laps_and_writes`, `max_cycle_time=2`), so that data go round less, it is faster on all six traces",
            ),
            Some(
                "to wear SLC as fast as MLC it admits writes of any size, which go round and go down all the same; with a \
                 threshold of at most 16 KB it is faster on five traces, at a Φ of 1.4 to 2.6",
            ),
        ],
        unless_calibrated: Some(
            "large data of Sys, Iotrace1 and Iotrace2 go to SLC, go round and go down all the same, and on Test1 data that went round \
             go down to a full MLC; with a threshold of at most 16 KB it is faster on five traces, all but Test1",
        ),
    },
    Headline {
        claims: [
            "response below CFTL's",
            "response below CFTL's, filled device",
            "response below CFTL's, as the laboratory's program",
        ],
        rival: CFTL,
        figure: response_ms,
        saving: 0.127,
        unless: [None; 2],
        unless_calibrated: None,
    },
    Headline {
        claims: [
            "fewer erases in all than ComboFTL",
            "fewer erases in all than ComboFTL, filled device",
            "fewer erases in all than ComboFTL, as the laboratory's program",
        ],
        rival: COMBO,
        figure: all_erases,
        saving: 0.092,
        unless: [
            Some(
                "laps are erases of SLC; with laps counted as in the laboratory's program \
                 (`cycle_time=laps_and_writes`, `max_cycle_time=2`), so that data go round less, it erases less on five traces",
            ),
            Some(
                "laps of large data are erases of SLC; without laps it erases less on all traces, with a threshold of at most \
                 16 KB on Sys and Iotrace2",
            ),
        ],
        unless_calibrated: Some(
            "large data of Sys and Iotrace2 go round in SLC; with a threshold of at most 16 KB it erases less on five traces, all \
             but Test1",
        ),
    },
    Headline {
        claims: [
            "fewer erases in all than CFTL",
            "fewer erases in all than CFTL, filled device",
            "fewer erases in all than CFTL, as the laboratory's program",
        ],
        rival: CFTL,
        figure: all_erases,
        saving: 0.204,
        unless: [
            Some(
                "a new MLC takes much before it is erased at all, and CFTL sends it most; if both admit writes of up \
                 to 16 KB (CFTL with `threshold_mode=fixed` and `initial_threshold=32`, WLAFTL with \
                 `threshold_max=16KiB`) and none goes round (`max_cycle_time=0`), WLAFTL erases less on five traces, \
                 by up to 19.6 %",
            ),
            Some(
                "laps are erases of SLC; without laps it erases less on five traces; in the paper's runs next to nothing can \
                 have gone round, since SLC erased what was written",
            ),
        ],
        unless_calibrated: Some(
            "an SLC block has a quarter of the data of an MLC block, so that erases in all rise with the share of SLC, in table 3 \
             from 36,596 (4 KB) to 103,059 (16 KB) on Test2, and CFTL here sends SLC least; if both admit writes of up to \
             16 KB and none goes round (`max_cycle_time=0`), WLAFTL erases less on five traces, by up to 17.6 %",
        ),
    },
    Headline {
        claims: [
            "fewer MLC erases than CFTL",
            "fewer MLC erases than CFTL, filled device",
            "fewer MLC erases than CFTL, as the laboratory's program",
        ],
        rival: CFTL,
        figure: mlc_erases,
        saving: 0.3523,
        unless: [None; 2],
        unless_calibrated: None,
    },
];

fn all_erases(entry: &Entry) -> f64 {
    slc_erases(entry) + mlc_erases(entry)
}

/// MiB demoted from SLC to MLC.
pub(super) fn moved_down_mib(entry: &Entry) -> f64 {
    let down = |row: &&bimetal_core::report::OpFigures| {
        (row.region.as_str(), row.op, row.cause) == ("slc", "read", "migrate_down")
    };
    let bytes: u64 = entry.report.ops.iter().filter(down).map(|row| row.bytes).sum();
    bytes as f64 / f64::from(1 << 20)
}

impl Headline {
    /// A saving on most traces, and on the best trace at least a tenth of the paper's saving. This checks the sign alone:
    /// there is no upper bound, because the paper's two sets of numbers differ from each other, and the underlying figures,
    /// which would say how much is saved on each trace, are lost.
    fn finding(&self, runs: &[Vec<Arc<Entry>>], reading: Reading) -> Finding {
        let (ours, rival) = (each(&runs[OURS], self.figure), each(&runs[self.rival], self.figure));
        let change: Vec<f64> = ours.iter().zip(&rival).map(|(ours, rival)| ours / rival - 1.0).collect();
        let lower = change.iter().filter(|&&change| change < 0.0).count();
        let best = change.iter().copied().fold(f64::INFINITY, f64::min);
        let finding = Finding::fact(
            self.claims[reading as usize],
            format!("on most traces, on the best by at least a tenth of {:.1} %", self.saving * 100.0),
            lower * 2 > TRACES && best <= -self.saving / 10.0,
            format!("on {lower} of {TRACES}: {} %", row(change.iter().map(|change| change * 100.0))),
        );
        let finding = finding.of_kind(reading.kind());
        let finding = match self.unless_calibrated {
            Some(explanation) if reading == Reading::New => finding.unless_calibrated(explanation),
            _ => finding,
        };
        match self.unless.get(reading as usize).copied().flatten() {
            Some(explanation) => finding.unless(explanation),
            None => finding,
        }
    }
}

/// The abstract's claims, and the statement on migrations at the end of section 4.
pub(super) fn rivals(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let on_new = RUNS.into_iter().chain(LABORATORY).map(|run| run.on(Before::AsJudged));
    let is_filled = Before::asked(lab).contains(&Before::Filled);
    let on_filled = RUNS[..RIVALS].iter().filter(|_| is_filled).map(|run| run.on(Before::Filled));
    let runs: Vec<Trial> = on_new.chain(on_filled).collect();
    let entries = on_all_traces(lab, &runs)?;
    let (new, rest) = entries.split_at(RUNS.len());
    let (laboratory, filled) = rest.split_at(RIVALS);
    let readings = [(new, Reading::New), (filled, Reading::Filled), (laboratory, Reading::Laboratory)];
    let readings = || readings.into_iter().filter(|(runs, _)| !runs.is_empty());
    let mut findings = Vec::new();
    for (runs, reading) in readings() {
        findings.push(balance(runs, reading));
        findings.extend(HEADLINES.iter().map(|headline| headline.finding(runs, reading)));
        findings.push(migrations(runs, reading));
    }
    Ok(Drawn {
        caption: "All schemes have page maps in both regions. Requests arrive as recorded, and responses of CFTL on a filled \
                  device are mostly those of a queue. Which assumption decides is shown by a CFTL whose threshold stays at 4 \
                  KB and by a WLAFTL without laps or with a bound on its threshold. In the laboratory's program WLAFTL counts \
                  the host's writes as laps, and CFTL's threshold is the mean of the last writes and 1.5 KB."
            .into(),
        plots: readings().flat_map(|(runs, reading)| plots(runs, reading, Before::AsJudged.device(lab))).collect(),
        findings,
    })
}

/// "Better wear leveling between SLC and MLC than ComboFTL and CFTL".
fn balance(runs: &[Vec<Arc<Entry>>], reading: Reading) -> Finding {
    const EXPECTED: &str = "on every trace";
    let [ours, combo, cftl] = [OURS, COMBO, CFTL].map(|run| each(&runs[run], phi));
    // Without erases of MLC, Φ is undefined. A rival without Φ counts as behind: it wears SLC alone.
    let worn: Vec<usize> = (0..TRACES).filter(|&at| ours[at].is_finite()).collect();
    let best = worn.iter().filter(|&&at| ours[at] < combo[at].min(cftl[at])).count();
    let (claim, explanation) = match reading {
        Reading::New => (
            "Φ below that of ComboFTL and CFTL",
            "on Iotrace1 ComboFTL, whose wear nothing balances, has 1.01 by chance, and WLAFTL 1.02, since wear is compared by whole \
                 cycles; with ComboFTL as in the laboratory's program (`hot_percent=75`, `chances_mode=fixed`, `chances=2`, no early \
                 migration, no detection) it holds on 5 of 5",
        ),
        Reading::Filled => (
            "Φ below that of ComboFTL and CFTL, filled device",
            "any threshold admits all of Test1's writes: where MLC is worn more, there is nothing left to send to SLC",
        ),
        Reading::Laboratory => (
            "Φ below that of ComboFTL and CFTL, as the laboratory's program",
            "pages that the host writes often go down sooner, and wear MLC",
        ),
    };
    if worn.is_empty() {
        return Finding::not_judged(claim, EXPECTED, "no Φ", "MLC was never erased").of_kind(reading.kind());
    }
    Finding::fact(
        claim,
        EXPECTED,
        best == worn.len(),
        format!("on {best} of {}: {}; ComboFTL {}; CFTL {}", worn.len(), row(ours), row(combo), row(cftl)),
    )
    .of_kind(reading.kind())
    .target("T29")
    .unless(explanation)
}

/// "CFTL most, ComboFTL least, WLAFTL in between".
fn migrations(runs: &[Vec<Arc<Entry>>], reading: Reading) -> Finding {
    let moved = [OURS, COMBO, CFTL].map(|run| each(&runs[run], moved_down_mib));
    let so = (0..TRACES).filter(|&at| moved[CFTL][at] > moved[OURS][at] && moved[OURS][at] > moved[COMBO][at]).count();
    let sums = moved.map(|moved| moved.iter().sum::<f64>() / 1024.0);
    let finding = Finding::fact(
        match reading {
            Reading::New => "CFTL migrates most, ComboFTL least",
            Reading::Filled => "CFTL migrates most, ComboFTL least, filled device",
            Reading::Laboratory => "CFTL migrates most, ComboFTL least, as the laboratory's program",
        },
        "on most traces",
        so * 2 > TRACES,
        format!("on {so} of {TRACES}; WLAFTL, ComboFTL, CFTL in all {} GiB", row(sums)),
    )
    .of_kind(reading.kind());
    if reading == Reading::Laboratory {
        return finding;
    }
    let finding = finding.unless_calibrated(
        "CFTL admits least: its threshold is 2 KB; if all three admit the same, with thresholds of 16 KB and ComboFTL \
         without detection of hot units, and WLAFTL's data go round once (`max_cycle_time=1`), it holds on all six \
         traces",
    );
    finding.unless(if reading == Reading::Filled {
        "CFTL admits least: the centre of the smaller writes that it finds is 2 KB, and writes of 4 KB go to MLC at once; where \
         both admit the same, as on Test1 with a threshold that stays at 4 KB, CFTL moves more than WLAFTL"
    } else {
        "CFTL admits least: the centre of the smaller writes that it finds is 2 KB, and writes of 4 KB go to MLC at \
         once; if all three admit the same, with thresholds of 16 KB and ComboFTL without detection of hot units, and \
         none of WLAFTL's data go round (`max_cycle_time=0`), it holds on five traces"
    })
}

/// Response, erases and migrations.
fn plots(runs: &[Vec<Arc<Entry>>], reading: Reading, judged: &str) -> Vec<Plot> {
    let (name, trials) = match reading {
        Reading::New => (judged.to_owned(), &RUNS[..]),
        Reading::Filled => ("filled device".into(), &RUNS[..RIVALS]),
        Reading::Laboratory => (format!("{judged}, as the laboratory's program"), &LABORATORY[..]),
    };
    let figures: [(&str, &str, Measure); 5] = [
        ("Mean response", "ms", response_ms),
        ("Φ", "Φ", phi),
        ("Erases in all", "blocks erased", all_erases),
        ("MLC erases", "blocks erased", mlc_erases),
        ("Moved down", "MiB", moved_down_mib),
    ];
    let plot = |(title, unit, figure): (&str, &str, Measure)| Plot {
        title: format!("{title}, {name}"),
        kind: PlotKind::Bars,
        x: Axis::linear("trace"),
        y: Axis::logarithmic(unit),
        series: trials
            .iter()
            .zip(runs)
            .map(|(run, entries)| Series::measured_by_name(run.name, by_trace(each(entries, figure))))
            .collect(),
    };
    figures.map(plot).to_vec()
}
