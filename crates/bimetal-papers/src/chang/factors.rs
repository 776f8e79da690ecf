//! Fig. 9, section 5.3.2 and table 3: components of the response time, and the model of section 4.1.

use std::sync::Arc;

use bimetal_core::chip;
use bimetal_core::model::chang::{ChainFactors, LogFactors, chain_write_us, hybrid_write_us, log_write_us};

use super::{EXT3, NTFS, replay, speedup};
use crate::Drawn;
use crate::claim::Kind;
use crate::finding::{Finding, row};
use crate::lab::Lab;
use crate::reading::{metric, time_s};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series, short};

/// Purposes of operations in Fig. 9: legend, region if that matters, causes.
const PARTS: [(&str, Option<&str>, &[&str]); 5] = [
    ("SLC, user", Some("slc"), &["host"]),
    ("MLC, user", Some("mlc"), &["host"]),
    ("garbage collection", None, COLLECTION),
    ("wear levelling", None, &["wear_level"]),
    ("scan", None, &["scan"]),
];

/// Folding in MLC, and emptying the tail of SLC to any destination.
pub(super) const COLLECTION: &[&str] = &["fold", "gc", "migrate_down"];

/// Fig. 9: time of reads, programs and erases by cause, with and without SLC.
pub(super) fn fig9(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let configurations = [
        ("C1, no SLC", "chang-c1", "conventional"),
        ("C1", "chang-c1", "chang"),
        ("C3, no SLC", "chang-c3", "conventional"),
        ("C3", "chang-c3", "chang"),
    ];
    let entries = lab.run(&configurations.map(|(_, device, scheme)| replay(lab, &NTFS, device, scheme)))?;
    let plot = |title: &str, op: &'static str| Plot {
        title: title.into(),
        kind: PlotKind::StackedBars,
        x: Axis::linear("configuration"),
        y: Axis::linear("time (s)"),
        series: PARTS
            .iter()
            .map(|&(name, region, causes)| {
                let bar = |(&(configuration, ..), entry): (&(&str, &str, &str), &Arc<Entry>)| {
                    (configuration.to_owned(), time_s(entry, region, Some(op), causes))
                };
                Series::measured_by_name(name, configurations.iter().zip(&entries).map(bar).collect())
            })
            .collect(),
    };
    let saved = |with: usize, causes: &[&str]| {
        let time = |entry: &Entry| time_s(entry, None, None, causes);
        time(&entries[with - 1]) - time(&entries[with])
    };
    let total = |with: usize| entries[with - 1].report.simulated_s - entries[with].report.simulated_s;
    let share = |with: usize| saved(with, COLLECTION) / total(with);
    let slc_share = metric(&entries[1], "slc_write_share");
    let findings = vec![
        Finding::fact(
            "C1: SLC takes a part of the write traffic, not its most",
            "more than none, less than half of the bytes",
            slc_share > 0.0 && slc_share < 0.5,
            short(slc_share),
        ),
        Finding::fact(
            "C3 gains by less garbage collection in MLC",
            "most of the saved time is of garbage collection",
            share(3) > 0.5,
            format!("{} of it", short(share(3))),
        ),
        Finding::fact(
            "garbage collection falls by more in C3 than in C1",
            "more time",
            saved(3, COLLECTION) > saved(1, COLLECTION),
            format!("{} and {} s", short(saved(3, COLLECTION)), short(saved(1, COLLECTION))),
        ),
    ];
    Ok(Drawn {
        caption: "256 MB of SLC, NTFS. Garbage collection is folding in MLC and emptying tail blocks of SLC.".into(),
        plots: vec![plot("Writes", "program"), plot("Reads", "read"), plot("Erases", "erase")],
        findings,
    })
}

/// Section 5.3.2: the share of write requests that SLC serves.
pub(super) fn s532(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let entry = &lab.run(&[replay(lab, &NTFS, "chang-c1", "chang")])?[0];
    let share = metric(entry, "slc_request_share");
    Ok(Drawn {
        caption: "C1, 256 MB of SLC, NTFS. The rest of the small writes finds no room in the hash table.".into(),
        plots: vec![Plot {
            title: "Writes served by SLC".into(),
            kind: PlotKind::Bars,
            x: Axis::linear("of"),
            y: Axis::linear("share"),
            series: vec![
                Series::measured_by_name(
                    "here",
                    vec![("requests".into(), share), ("bytes".into(), metric(entry, "slc_write_share"))],
                ),
                Series::of_paper_by_name("paper", vec![("requests".into(), 0.68)]),
            ],
        }],
        findings: vec![Finding::about("share of the write requests that SLC handles", 0.68, 0.1, share)],
    })
}

/// A row of table 3, as far as it is legible: λ, n1, n2, n3, n4, p1, p2.
type Factors = [Option<f64>; 7];

/// Names of the factors.
const FACTORS: [&str; 7] = ["λ", "n1", "n2", "n3", "n4", "p1", "p2"];

/// The metrics of these factors.
const METRICS: [&str; 7] = [
    "model_lambda",
    "model_n1_valid_pages",
    "model_n2_copied_pages",
    "model_n3_scanned_pages",
    "model_n4_folded_blocks",
    "model_p1_map_miss",
    "model_p2_fold",
];

const NTFS_WITH: Factors = [Some(0.17), Some(12.58), Some(10.29), Some(44.08), Some(1.92), Some(0.011), Some(0.017)];
const NTFS_WITHOUT: Factors = [None, None, None, Some(48.4), Some(2.0), Some(0.034), Some(0.028)];
const EXT3_WITH: Factors = [Some(0.23), None, None, None, None, None, Some(0.009)];
const EXT3_WITHOUT: Factors = [None, None, None, None, None, None, Some(0.011)];

/// Table 3 and section 5.3.3: the model's measured factors, and its results from them.
#[expect(clippy::too_many_lines, reason = "most are a list of claims")]
pub(super) fn table3(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let run = |source, scheme| replay(lab, source, "chang-c3", scheme);
    let rows = [
        ("C3, NTFS", NTFS_WITH, run(&NTFS, "chang")),
        ("C3 without SLC, NTFS", NTFS_WITHOUT, run(&NTFS, "conventional")),
        ("C3, ext3", EXT3_WITH, run(&EXT3, "chang")),
        ("C3 without SLC, ext3", EXT3_WITHOUT, run(&EXT3, "conventional")),
    ];
    let entries = lab.run(&rows.each_ref().map(|(_, _, experiment)| experiment.clone()))?;
    let simulated = [speedup(&entries[1], &entries[0]), speedup(&entries[3], &entries[2])];
    let modelled =
        |with: usize| metric(&entries[with + 1], "model_write_us") / metric(&entries[with], "model_write_us");
    let predicted = [modelled(0), modelled(2)];
    let mut findings = vec![
        Finding::about("the model, of the paper's factors, NTFS", 1.76, 0.04, paper_ratio(&NTFS_WITH, &NTFS_WITHOUT))
            .of_kind(Kind::Arithmetic)
            .target("T1"),
        Finding::fact(
            "the model predicts the speed-up: 1.76 for 1.8, 1.4 for 1.38",
            "within 10 %, both traces",
            predicted.iter().zip(&simulated).all(|(model, simulated)| (model / simulated - 1.0).abs() <= 0.1),
            format!("{} for {}", row(predicted), row(simulated)),
        )
        .unless(
            "at full size under ext3, where it is 10.2 % above; with hot extents of 64 KiB for 8 (`hot_extent=64KiB`) it is 1.41 for 1.30",
        ),
    ];
    for (at, claim) in [
        (0, "λ, share of the data written to SLC"),
        (1, "n1, valid pages in a tail block"),
        (2, "n2, of them copied to the head"),
        (3, "n3, pages that a scan reads"),
        (4, "n4, blocks erased for a fold"),
        (5, "p1, map-cache misses per page write"),
        (6, "p2, folds per page write"),
    ] {
        findings.push(factor(at, claim, rows.each_ref().map(|(_, paper, _)| paper[at]), &entries));
    }
    findings.push(
        Finding::fact(
            "SLC lowers p2 by more under NTFS than under ext3",
            "by 0.39 and 0.18",
            lowered(&entries[1], &entries[0]) > lowered(&entries[3], &entries[2]),
            format!("by {} and {}", short(lowered(&entries[1], &entries[0])), short(lowered(&entries[3], &entries[2]))),
        )
        .unless("both stand-ins have hot extents of 8 KiB; with 64 KiB under ext3 it is 0.18 there")
        .unless_calibrated("the paper prints one figure of ext3 without SLC; with hot extents of 64 KiB and 99 % of the small writes hot (`hot_extent=64KiB`, \
             `hot_share=0.99`) SLC lowers it there by -0.056 in a quick run and by 0.02 at full size"),
    );
    let named = |row: &str, at: usize| format!("{row}: {}", FACTORS[at]);
    let measured = rows.iter().zip(&entries).flat_map(|((row, ..), entry)| {
        (0..7).map(move |at| (named(row, at), metric(entry, METRICS[at]))).filter(|(_, value)| value.is_finite())
    });
    let of_paper = rows
        .iter()
        .flat_map(|(row, paper, _)| (0..7).filter_map(move |at| paper[at].map(|value| (named(row, at), value))));
    Ok(Drawn {
        caption:
            "256 MB of SLC. The metrics `model_*` of the two schemes. Most figures of the paper's table for ext3 are \
                  not legible."
                .into(),
        plots: vec![
            Plot {
                title: "Speed-up".into(),
                kind: PlotKind::Bars,
                x: Axis::linear("trace"),
                y: Axis::linear("speed-up"),
                series: vec![
                    Series::measured_by_name("simulated", by_trace(simulated)),
                    Series::measured_by_name("model", by_trace(predicted)),
                    Series::of_paper_by_name("simulated", by_trace([1.8, 1.38])),
                    Series::of_paper_by_name("model", by_trace([1.76, 1.4])),
                ],
            },
            Plot {
                title: "Factors".into(),
                kind: PlotKind::Bars,
                x: Axis::linear("factor"),
                y: Axis::logarithmic("value"),
                series: vec![
                    Series::measured_by_name("here", measured.collect()),
                    Series::of_paper_by_name("paper", of_paper.collect()),
                ],
            },
        ],
        findings,
    })
}

fn by_trace(values: [f64; 2]) -> Vec<(String, f64)> {
    ["NTFS", "ext3"].map(String::from).into_iter().zip(values).collect()
}

/// Share by which SLC reduces the fraction of page writes that fold.
pub(super) fn lowered(without: &Entry, with: &Entry) -> f64 {
    1.0 - metric(with, METRICS[6]) / metric(without, METRICS[6])
}

/// Tolerance between measured factors and the paper's, as a share.
const FACTOR_TOLERANCE: f64 = 0.25;

/// The finding on one factor, in all rows of table 3 that contain it.
fn factor(at: usize, claim: &'static str, paper: [Option<f64>; 4], entries: &[Arc<Entry>]) -> Finding {
    let pairs: Vec<(f64, f64)> =
        paper.iter().zip(entries).filter_map(|(paper, entry)| Some(((*paper)?, metric(entry, METRICS[at])))).collect();
    let near = |&(paper, measured): &(f64, f64)| (measured / paper - 1.0).abs() <= FACTOR_TOLERANCE;
    let finding = Finding::fact(
        claim,
        format!("{} ± {} %", row(pairs.iter().map(|pair| pair.0)), short(FACTOR_TOLERANCE * 100.0)),
        pairs.iter().all(near),
        row(pairs.iter().map(|pair| pair.1)),
    );
    match at {
        1 | 2 => finding.unless(
            "nearly all small writes of the stand-in are hot; with 15 % cold (`hot_share=0.85`) n1 is 11.9 and n2 11.5",
        )
        .unless_calibrated("follows the share of small writes that are not hot, 7 %, and how many of them the log has seen: in a quick run n1 is 11.5 \
             and n2 11.1 with 15 % (`hot_share=0.85`), at full size 11.6 and 11.1 with 4 % (`hot_share=0.96`)"),
        3 => {
            finding.unless("with hot extents of 64 KiB, a flatter popularity and 7 % of cold small writes (`hot_extent=64KiB`, `theta=0.7`, \
             `hot_share=0.93`) it is 41.3 and 49.8")
            .unless_calibrated("at full size with SLC, where cold small writes that SLC sends down start chains; with 4 % of them cold \
             for 7 (`hot_share=0.96`) it is 38.6")
        }
        5 => finding
            .unless(
                "with SLC few chains have a log, and all of those are cached; more have one if SLC turns more small \
                 writes away: with 4,096 hash entries and 768 cached maps for 384 on both drives \
                 (`hash_entries=4096`, `map_cache_chains=768`) it is 0.011 and 0.031",
            )
            .unless_calibrated(
                "of NTFS with SLC; few chains have a log then, and all of those are cached; more have one if SLC takes \
                 fewer small writes: with 96 MiB of SLC for 256 (`slc.capacity=96MiB`) it is 0.010 in a \
                 quick run, with 128 MiB 0.012 at full size",
            ),
        6 => finding
            .unless(
                "of ext3 with SLC; with hot extents of 64 KiB and runs of 512 KiB (`hot_extent=64KiB`, `run=512KiB`) \
                 it is 0.0081, and 0.0096 without",
            )
            .unless_calibrated(
                "at full size with SLC, under NTFS and ext3; with 4 % of NTFS' small writes cold (`hot_share=0.96`) it is 0.019, and \
                 under ext3 0.0088, and 0.0101 without SLC, with hot extents of 64 KiB, runs of 512 KiB and 99 % of the \
                 small writes hot (`hot_extent=64KiB`, `run=512KiB`, `hot_share=0.99`)",
            ),
        _ => finding,
    }
}

/// The model's result for the paper's own factors.
fn paper_ratio(with: &Factors, without: &Factors) -> f64 {
    let (Some(slc), Some(mlc)) = (chip::find("chang-slc"), chip::find("chang-mlc-5k")) else {
        return f64::NAN;
    };
    let of = |row: &Factors, at: usize| row[at].unwrap_or(f64::NAN);
    let chain = |row: &Factors| {
        let factors = ChainFactors {
            scanned_pages: of(row, 3),
            erased_blocks: of(row, 4),
            miss_ratio: of(row, 5),
            fold_ratio: of(row, 6),
        };
        chain_write_us(&mlc, factors)
    };
    let log = LogFactors { tail_valid_pages: of(with, 1), copied_back_pages: of(with, 2) };
    chain(without) / hybrid_write_us(of(with, 0), log_write_us(&slc, log), chain(with))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_the_papers_factors() {
        // Calculated by hand from table 3 and section 4.1; the paper prints 1.76.
        assert!((paper_ratio(&NTFS_WITH, &NTFS_WITHOUT) - 1.746).abs() < 0.0005);
        assert!(paper_ratio(&EXT3_WITH, &EXT3_WITHOUT).is_nan(), "factors are missing");
    }
}
