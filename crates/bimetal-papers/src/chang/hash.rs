//! Fig. 11: hash tables of the SLC chip.

use std::sync::Arc;

use super::{EXT3, NTFS, beside_conventional, speedup};
use crate::Drawn;
use crate::finding::{Finding, row};
use crate::lab::{Lab, Source};
use crate::reading::metric;
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series, short};

/// Sizes of the table, as powers of two.
const SIZES: [u32; 3] = [14, 15, 16];

/// Largest numbers of probes.
const PROBES: [u32; 6] = [1, 2, 4, 8, 16, 32];

const PROBINGS: [&str; 2] = ["linear", "quadratic"];

/// The replays for each size, probing and number of probes, with one trace and kind of key.
struct Tables {
    conventional: Arc<Entry>,
    hybrids: Vec<Arc<Entry>>,
}

impl Tables {
    fn run(lab: &Lab<'_>, source: &'static Source, key: &str) -> Result<Self, StudyError> {
        let mut settings = Vec::new();
        for size in SIZES {
            for probing in PROBINGS {
                settings.extend(PROBES.map(|probes| {
                    [
                        ("hash_key", key.to_owned()),
                        ("hash_entries", (1u32 << size).to_string()),
                        ("hash_probing", probing.to_owned()),
                        ("hash_probes", probes.to_string()),
                    ]
                }));
            }
        }
        let settings: Vec<_> = settings.iter().map(|setting| &setting[..]).collect();
        let (conventional, hybrids) = beside_conventional(lab, source, "chang-c3", &settings)?;
        Ok(Self { conventional, hybrids })
    }

    /// The replays by number of probes.
    fn curve(&self, size: u32, probing: usize) -> &[Arc<Entry>] {
        let at = ((size - SIZES[0]) as usize * PROBINGS.len() + probing) * PROBES.len();
        &self.hybrids[at..at + PROBES.len()]
    }

    /// Shares of the write requests that the table rejects, by number of probes.
    fn rejects(&self, size: u32, probing: usize) -> Vec<f64> {
        let share = |entry: &Arc<Entry>| metric(entry, "hash_rejects") / entry.report.write_us.count as f64;
        self.curve(size, probing).iter().map(share).collect()
    }

    /// Speed-ups by number of probes.
    fn speedups(&self, size: u32, probing: usize) -> Vec<f64> {
        self.curve(size, probing).iter().map(|entry| speedup(&self.conventional, entry)).collect()
    }

    fn plot(&self, title: String, y: &str, values: impl Fn(&Self, u32, usize) -> Vec<f64>) -> Plot {
        let probes = || PROBES.iter().map(|&probes| f64::from(probes));
        let mut series = Vec::new();
        for size in SIZES {
            for (at, probing) in PROBINGS.iter().enumerate() {
                let points = probes().zip(values(self, size, at)).collect();
                series.push(Series::measured(format!("2^{size}, {probing}"), points));
            }
        }
        Plot { title, kind: PlotKind::Lines, x: Axis::logarithmic("probes"), y: Axis::linear(y), series }
    }
}

/// Index of eight probes in [`PROBES`].
const EIGHT: usize = 3;
const LINEAR: usize = 0;
const QUADRATIC: usize = 1;

/// Fig. 11: writes that the hash table rejects, and speed-ups, by table size, probing and number of probes.
#[expect(clippy::too_many_lines, reason = "most are a list of claims")]
pub(super) fn fig11(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let [ntfs, ext3] = [Tables::run(lab, &NTFS, "page")?, Tables::run(lab, &EXT3, "page")?];
    let by_sector = Tables::run(lab, &NTFS, "sector")?;
    let at_eight = |tables: &Tables, size| tables.rejects(size, LINEAR)[EIGHT];
    let speed = |tables: &Tables, size| tables.speedups(size, LINEAR)[EIGHT];
    let both = [&ntfs, &ext3];
    let of_both = |value: &dyn Fn(&Tables) -> f64| row(both.map(value));
    let times_fewer = |tables: &Tables| at_eight(tables, 14) / at_eight(tables, 15);
    let levels = |tables: &Tables| speed(tables, 16) / speed(tables, 15);
    let more_probes = |tables: &Tables, size| {
        let rejects = tables.rejects(size, LINEAR);
        rejects[EIGHT] - rejects[PROBES.len() - 1]
    };
    let faster = |tables: &Tables, size| {
        let speedups = tables.speedups(size, LINEAR);
        speedups[PROBES.len() - 1] / speedups[EIGHT]
    };
    let quadratic = |tables: &Tables| tables.rejects(14, QUADRATIC)[EIGHT] / at_eight(tables, 14);
    let alike = |tables: &Tables| tables.speedups(16, QUADRATIC)[EIGHT] / speed(tables, 16);
    let findings = vec![
        Finding::fact(
            "2^14 entries reject far more writes than 2^15",
            "at least twice as many, both traces",
            both.iter().all(|tables| times_fewer(tables) >= 2.0),
            of_both(&times_fewer) + " times as many",
        )
        .target("T24"),
        Finding::fact(
            "2^15 entries reject at least as many as 2^16",
            "at least as many, both traces",
            both.iter().all(|tables| at_eight(tables, 15) >= at_eight(tables, 16)),
            format!("{} to {}", of_both(&|tables| at_eight(tables, 15)), of_both(&|tables| at_eight(tables, 16))),
        )
        .target("T24"),
        Finding::fact(
            "2^14 entries reject more under ext3 than under NTFS",
            "a larger share of the writes",
            at_eight(&ext3, 14) > at_eight(&ntfs, 14),
            format!("{} and {}", short(at_eight(&ext3, 14)), short(at_eight(&ntfs, 14))),
        ),
        Finding::fact(
            "the speed-up levels off beyond 2^15 entries",
            "less than 5 % more with 2^16, both traces",
            both.iter().all(|tables| levels(tables) < 1.05),
            of_both(&levels),
        ),
        Finding::fact(
            "quadratic probing rejects at least as many as linear in 2^14 entries",
            "at least as many, both traces, 8 probes",
            both.iter().all(|tables| quadratic(tables) >= 1.0),
            of_both(&quadratic) + " times as many",
        )
        .target("T24")
        .unless(
            "two keys in a row share their first probes, and quadratic ones spread sooner; a full table rejects alike with \
             either",
        ),
        Finding::fact(
            "linear and quadratic probing are alike when the table is large",
            "speed-ups within 5 % with 2^16 entries, both traces",
            both.iter().all(|tables| (alike(tables) - 1.0).abs() < 0.05),
            of_both(&alike),
        ),
        Finding::fact(
            "more than 8 probes reject hardly fewer, 2^15 entries and more",
            "fewer by less than 0.01 of the writes, both traces",
            both.iter().all(|tables| more_probes(tables, 15) < 0.01 && more_probes(tables, 16) < 0.01),
            format!(
                "{} and {}",
                of_both(&|tables| more_probes(tables, 15)),
                of_both(&|tables| more_probes(tables, 16))
            ),
        )
        .target("T24"),
        Finding::fact(
            "more than 8 probes are hardly faster, 2^15 entries and more",
            "less than 5 % faster, both traces",
            both.iter().all(|tables| faster(tables, 15) < 1.05 && faster(tables, 16) < 1.05),
            format!("{} and {}", of_both(&|tables| faster(tables, 15)), of_both(&|tables| faster(tables, 16))),
        )
        .target("T24"),
    ];
    let rejects = |tables: &Tables, name: &str| {
        tables.plot(format!("Rejected writes, {name}"), "share of the writes", Tables::rejects)
    };
    let speedups = |tables: &Tables, name: &str| tables.plot(format!("Speed-up, {name}"), "speed-up", Tables::speedups);
    Ok(Drawn {
        caption:
            "C3, 256 MB of SLC. A write of 4 KiB has two keys of SLC pages. With keys of sectors, the other reading of \
                  the paper's hash table, it has eight; the last diagrams are of that."
                .into(),
        plots: vec![
            rejects(&ntfs, "NTFS"),
            speedups(&ntfs, "NTFS"),
            rejects(&ext3, "ext3"),
            speedups(&ext3, "ext3"),
            rejects(&by_sector, "NTFS, keys of sectors"),
            speedups(&by_sector, "NTFS, keys of sectors"),
        ],
        findings,
    })
}
