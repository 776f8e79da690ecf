//! What the abstract says of WLAFTL beside ComboFTL and CFTL. The figures that it is drawn from are lost.

use std::sync::Arc;

use super::{
    Before, Measure, TRACES, Trial, WLAFTL, by_trace, each, mlc_erases, on_all_traces, phi, response_ms, slc_erases,
};
use crate::Drawn;
use crate::finding::{Finding, row};
use crate::lab::Lab;
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series};

/// What runs on a filled device; the first [`RIVALS`] on a new one, too. The others show which assumption decides.
const RUNS: [Trial; 6] = [
    WLAFTL,
    // "Under the same address mapping scheme": MLC has a page map here, too.
    Trial::new("ComboFTL", "comboftl", &[("slow_map", "page")]),
    Trial::new("CFTL", "cftl", &[]),
    Trial::new("CFTL, 4 KB", "cftl", &[("threshold_mode", "fixed")]),
    Trial::new("WLAFTL, no laps", "wlaftl", &[("max_cycle_time", "0")]),
    Trial::new("WLAFTL, up to 16 KB", "wlaftl", &[("threshold_max", "16KiB")]),
];

// Places in `RUNS`.
const OURS: usize = 0;
const COMBO: usize = 1;
const CFTL: usize = 2;

/// How many of them are of the paper.
const RIVALS: usize = 3;

/// What the abstract gives a number for: on its best trace WLAFTL saves so much.
struct Headline {
    /// On a filled and on a new device.
    claims: [&'static str; 2],
    rival: usize,
    figure: Measure,
    saving: f64,
    /// Why it does not hold on a filled and on a new device.
    unless: [Option<&'static str>; 2],
}

/// The Chinese abstract's numbers, and the English text's for MLC erases. For the response beside CFTL the latter has 9.09 %.
const HEADLINES: [Headline; 5] = [
    Headline {
        claims: ["response below ComboFTL's", "response below ComboFTL's, new device"],
        rival: COMBO,
        figure: response_ms,
        saving: 0.136,
        unless: [
            Some(
                "to wear SLC as fast as MLC it admits writes of any size, which go round and go down all the same; with a \
                 threshold of at most 16 KB it is faster on five traces, at a Φ of 1.4 to 2.6",
            ),
            None,
        ],
    },
    Headline {
        claims: ["response below CFTL's", "response below CFTL's, new device"],
        rival: CFTL,
        figure: response_ms,
        saving: 0.127,
        unless: [None; 2],
    },
    Headline {
        claims: ["fewer erases in all than ComboFTL", "fewer erases in all than ComboFTL, new device"],
        rival: COMBO,
        figure: all_erases,
        saving: 0.092,
        unless: [
            Some(
                "laps of large data are erases of SLC; without laps it erases less on all traces, with a threshold of at most \
                 16 KB on five",
            ),
            None,
        ],
    },
    Headline {
        claims: ["fewer erases in all than CFTL", "fewer erases in all than CFTL, new device"],
        rival: CFTL,
        figure: all_erases,
        saving: 0.204,
        unless: [
            Some(
                "laps are erases of SLC; without laps it erases less on five traces; in the paper's runs next to nothing can \
                 have gone round, since SLC erased what was written",
            ),
            Some(
                "a new MLC takes much before it is erased at all, and CFTL sends it most; without laps it is still so",
            ),
        ],
    },
    Headline {
        claims: ["fewer MLC erases than CFTL", "fewer MLC erases than CFTL, new device"],
        rival: CFTL,
        figure: mlc_erases,
        saving: 0.3523,
        unless: [None; 2],
    },
];

fn all_erases(entry: &Entry) -> f64 {
    slc_erases(entry) + mlc_erases(entry)
}

/// MiB that went down from SLC to MLC.
fn moved_down_mib(entry: &Entry) -> f64 {
    let down = |row: &&bimetal_core::report::OpFigures| {
        (row.region.as_str(), row.op, row.cause) == ("slc", "read", "migrate_down")
    };
    let bytes: u64 = entry.report.ops.iter().filter(down).map(|row| row.bytes).sum();
    bytes as f64 / f64::from(1 << 20)
}

impl Headline {
    /// Saved on most traces, and on the best at least a tenth of what the paper saves: sign and order of magnitude, since the
    /// paper's two sets of numbers differ from each other.
    fn finding(&self, runs: &[Vec<Arc<Entry>>], before: Before) -> Finding {
        let (ours, rival) = (each(&runs[OURS], self.figure), each(&runs[self.rival], self.figure));
        let change: Vec<f64> = ours.iter().zip(&rival).map(|(ours, rival)| ours / rival - 1.0).collect();
        let lower = change.iter().filter(|&&change| change < 0.0).count();
        let best = change.iter().copied().fold(f64::INFINITY, f64::min);
        let state = usize::from(before == Before::New);
        let finding = Finding::fact(
            self.claims[state],
            format!("on most traces, by up to {:.1} %", self.saving * 100.0),
            lower * 2 > TRACES && best <= -self.saving / 10.0,
            format!("on {lower} of {TRACES}: {} %", row(change.iter().map(|change| change * 100.0))),
        );
        match self.unless[state] {
            Some(explanation) => finding.unless(explanation),
            None => finding,
        }
    }
}

/// The abstract's claims, and what the end of section 4 says of migrations.
pub(super) fn rivals(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let on_new = RUNS[..RIVALS].iter().map(|run| run.on(Before::New));
    let runs: Vec<Trial> = RUNS.into_iter().chain(on_new).collect();
    let entries = on_all_traces(lab, &runs)?;
    let (filled, new) = entries.split_at(RUNS.len());
    let states = [(filled, Before::Filled), (new, Before::New)];
    let mut findings = Vec::new();
    for (runs, before) in states {
        findings.push(balance(runs, before));
        findings.extend(HEADLINES.iter().map(|headline| headline.finding(runs, before)));
        findings.push(migrations(runs, before));
    }
    Ok(Drawn {
        caption: "All schemes have page maps in both regions. Requests arrive as recorded, and responses of CFTL on a filled \
                  device are mostly those of a queue. Which assumption decides is shown by a CFTL whose threshold stays at 4 \
                  KB and by a WLAFTL without laps or with a bound on its threshold."
            .into(),
        plots: states.into_iter().flat_map(|(runs, before)| plots(runs, before)).collect(),
        findings,
    })
}

/// "Better wear leveling between SLC and MLC than ComboFTL and CFTL".
fn balance(runs: &[Vec<Arc<Entry>>], before: Before) -> Finding {
    let [ours, combo, cftl] = [OURS, COMBO, CFTL].map(|run| each(&runs[run], phi));
    // Where MLC was not erased there is no Φ.
    let worn: Vec<usize> = (0..TRACES).filter(|&at| ours[at].is_finite()).collect();
    let best = worn.iter().filter(|&&at| ours[at] < combo[at].min(cftl[at])).count();
    let (claim, explanation) = match before {
        Before::Filled => (
            "Φ below that of ComboFTL and CFTL",
            "any threshold admits all of Test1's writes: where MLC is worn more, there is nothing left to send to SLC",
        ),
        Before::New => (
            "Φ below that of ComboFTL and CFTL, new device",
            "wear is compared by whole cycles, so that Φ stays some hundredths above 1; compared exactly it is 1.00",
        ),
    };
    Finding::fact(
        claim,
        "on every trace",
        best == worn.len(),
        format!("on {best} of {}: {}; ComboFTL {}; CFTL {}", worn.len(), row(ours), row(combo), row(cftl)),
    )
    .target("T29")
    .unless(explanation)
}

/// "CFTL most, ComboFTL least, WLAFTL in between".
fn migrations(runs: &[Vec<Arc<Entry>>], before: Before) -> Finding {
    let moved = [OURS, COMBO, CFTL].map(|run| each(&runs[run], moved_down_mib));
    let so = (0..TRACES).filter(|&at| moved[CFTL][at] > moved[OURS][at] && moved[OURS][at] > moved[COMBO][at]).count();
    let sums = moved.map(|moved| moved.iter().sum::<f64>() / 1024.0);
    Finding::fact(
        if before == Before::Filled {
            "CFTL migrates most, ComboFTL least"
        } else {
            "CFTL migrates most, ComboFTL least; new device"
        },
        "on most traces",
        so * 2 > TRACES,
        format!("on {so} of {TRACES}; WLAFTL, ComboFTL, CFTL in all {} GiB", row(sums)),
    )
    .unless(
        "CFTL admits least: the centre of the smaller writes that it finds is 2 KB, and writes of 4 KB go to MLC at once; where \
         both admit the same, as on Test1 with a threshold that stays at 4 KB, CFTL moves more than WLAFTL",
    )
}

/// Response, erases and migrations.
fn plots(runs: &[Vec<Arc<Entry>>], before: Before) -> Vec<Plot> {
    let figures: [(&str, &str, Measure); 5] = [
        ("Mean response", "ms", response_ms),
        ("Φ", "Φ", phi),
        ("Erases in all", "blocks erased", all_erases),
        ("MLC erases", "blocks erased", mlc_erases),
        ("Moved down", "MiB", moved_down_mib),
    ];
    let plot = |(title, unit, figure): (&str, &str, Measure)| Plot {
        title: format!("{title}, {} device", before.name()),
        kind: PlotKind::Bars,
        x: Axis::linear("trace"),
        y: Axis::logarithmic(unit),
        series: RUNS
            .iter()
            .zip(runs)
            .map(|(run, entries)| Series::measured_by_name(run.name, by_trace(each(entries, figure))))
            .collect(),
    };
    figures.map(plot).to_vec()
}
