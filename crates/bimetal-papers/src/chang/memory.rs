//! Sections 4.2 and 5.1: memory of the maps, and a check that the traces are long enough for SLC.

use super::{EXT3, NTFS, PAPER_WRITES, SLC_MIB, over_sizes, points};
use crate::Drawn;
use crate::claim::Kind;
use crate::finding::{Finding, row};
use crate::lab::Lab;
use crate::reading::{height_at, metric};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series};

/// Memory of a scheme's maps, in KB.
fn memory_kb(entry: &Entry) -> f64 {
    metric(entry, "metadata_bytes") / 1024.0
}

/// Section 4.2: the tables of a drive of 20 GB, and the hash table of 128 MB of SLC.
pub(super) fn s42(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let (conventional, hybrids) = over_sizes(lab, &NTFS, "chang-c3", &SLC_MIB)?;
    let tables = memory_kb(&conventional);
    let hashes = points(&SLC_MIB, &hybrids, |hybrid| memory_kb(hybrid) - tables);
    Ok(Drawn {
        caption: "What the schemes say that their tables take: two bytes for each logical and each physical block, and for each \
                  entry of the hash table the number of a page of the address space and of a page of SLC. The table has half as \
                  many entries as SLC has pages."
            .into(),
        findings: vec![
            Finding::about("L2P and LB of a drive of 20 GB (KB)", 164.0, 0.0, tables).of_kind(Kind::Arithmetic).target("T2"),
            Finding::about("hash table for 128 MB of SLC (KB)", 160.0, 0.0, height_at(&hashes, 128.0))
                .of_kind(Kind::Arithmetic)
                .target("T2"),
        ],
        plots: vec![Plot {
            title: "Hash table".into(),
            kind: PlotKind::Lines,
            x: Axis::logarithmic("SLC (MiB)"),
            y: Axis::logarithmic("KB"),
            series: vec![Series::measured("here", hashes), Series::of_paper("paper", vec![(128.0, 160.0)])],
        }],
    })
}

/// Number of times that the host's data would fill an SLC of `mib` MiB, scaled to the number of writes in the paper's
/// trace.
fn times_written(entry: &Entry, mib: u32) -> f64 {
    let host =
        entry.report.ops.iter().filter(|row| (row.region.as_str(), row.op, row.cause) == ("slc", "program", "host"));
    let bytes: u64 = host.map(|row| row.bytes).sum();
    bytes as f64 / (f64::from(mib) * f64::from(1 << 20)) * PAPER_WRITES / entry.report.write_us.count as f64
}

/// Section 5.1: "any workload can entirely write the SLC flash more than twice under any experimental setting".
pub(super) fn s51(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let (mut series, mut least) = (Vec::new(), Vec::new());
    let settings = [
        ("C1, NTFS", &NTFS, "chang-c1"),
        ("C2, NTFS", &NTFS, "chang-c2"),
        ("C3, NTFS", &NTFS, "chang-c3"),
        ("C3, ext3", &EXT3, "chang-c3"),
    ];
    for (name, source, device) in settings {
        let (_, hybrids) = over_sizes(lab, source, device, &SLC_MIB)?;
        let times: Vec<(f64, f64)> =
            SLC_MIB.iter().zip(&hybrids).map(|(&mib, hybrid)| (f64::from(mib), times_written(hybrid, mib))).collect();
        least.push(times.iter().map(|&(_, times)| times).fold(f64::INFINITY, f64::min));
        series.push(Series::measured(name, times));
    }
    Ok(Drawn {
        caption: "Host data that SLC takes in 1,534,627 writes, the paper's number, by its size.".into(),
        findings: vec![Finding::fact(
            "a trace writes all of SLC more than twice, under any setting",
            "more than 2 times",
            least.iter().all(|&times| times > 2.0),
            format!("{} times at least", row(least)),
        )],
        plots: vec![Plot {
            title: "SLC written over".into(),
            kind: PlotKind::Lines,
            x: Axis::logarithmic("SLC (MiB)"),
            y: Axis::logarithmic("times"),
            series,
        }],
    })
}
