//! Table 3 and Fig. 9: amounts and sizes of writes, and times between rewrites.

use std::collections::BTreeMap;

use bimetal_core::request::{Op, Request, SECTOR_BYTES};

use super::{NAMES, TRACES};
use crate::Drawn;
use crate::claim::Kind;
use crate::experiment::Source;
use crate::finding::{Finding, row};
use crate::lab::Lab;
use bimetal_study::StudyError;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series, short};

const MIB: f64 = 1_048_576.0;

/// Table 3: address space and written amount in MB, by trace.
const PAPER_MB: [(f64, f64); 3] = [(2036.0, 10_475.0), (2005.0, 7_837.0), (1416.0, 18_640.0)];

/// Table 3: sizes of the traces.
pub(super) fn table3(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let mut measured = Vec::new();
    for source in TRACES {
        let workload = lab.workload(source)?;
        let end = workload.requests.iter().map(|request| request.sector + u64::from(request.sectors)).max();
        let space = end.unwrap_or(0) * SECTOR_BYTES;
        measured.push((space as f64 / MIB, workload.facts.write_bytes as f64 / MIB));
    }
    let near = |value: fn(&(f64, f64)) -> f64| {
        measured.iter().zip(&PAPER_MB).all(|(here, paper)| (value(here) / value(paper) - 1.0).abs() <= 0.02)
    };
    let finding = |claim, value: fn(&(f64, f64)) -> f64| {
        let expected = format!("{} ± 2 %", row(PAPER_MB.iter().map(value)));
        Finding::fact(claim, expected, near(value), row(measured.iter().map(value))).of_kind(Kind::Generator)
    };
    let bars = |values: &[(f64, f64)]| {
        let pairs = NAMES.iter().zip(values);
        let bar = |(name, &(space, written)): (&&str, &(f64, f64))| {
            [(format!("{name}, space"), space), (format!("{name}, written"), written)]
        };
        pairs.flat_map(bar).collect()
    };
    Ok(Drawn {
        caption: "The stand-ins are made to these sizes. A MB is 2^20 bytes.".into(),
        plots: vec![Plot {
            title: "Sizes".into(),
            kind: PlotKind::Bars,
            x: Axis::linear("trace"),
            y: Axis::linear("MB"),
            series: vec![
                Series::measured_by_name("here", bars(&measured)),
                Series::of_paper_by_name("paper", bars(&PAPER_MB)),
            ],
        }],
        findings: vec![
            finding("address space in MB: Phone, PC, IOzone", |sizes| sizes.0),
            finding("written MB: Phone, PC, IOzone", |sizes| sizes.1),
        ],
    })
}

/// Writes of one size class, from a power of two up to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rewrites {
    writes: u64,
    /// Writes whose first page was written before.
    again: u64,
    /// Writes whose first page was last written less than `soon_bytes` bytes ago.
    soon: u64,
    /// Sum over all rewrites of the bytes that the host had written since the last write.
    between: u64,
}

/// Most small data of Phone and PC return before this number of bytes is written.
const SOON_BYTES: u64 = 2 << 20;

impl Rewrites {
    /// Mean bytes between two writes of the same data, in MB.
    fn between_mb(&self) -> f64 {
        self.between as f64 / self.again as f64 / MIB
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            again: self.again + other.again,
            soon: self.soon + other.soon,
            between: self.between + other.between,
        }
    }
}

/// Writes by size class in sectors, a power of two. `soon_bytes` is the limit for [`Rewrites::soon`].
fn rewrites(requests: &[Request], soon_bytes: u64) -> BTreeMap<u32, Rewrites> {
    let mut classes: BTreeMap<u32, Rewrites> = BTreeMap::new();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut written = 0;
    for write in requests.iter().filter(|request| request.op == Op::Write && request.sectors > 0) {
        let class = classes.entry(1 << write.sectors.ilog2()).or_default();
        class.writes += 1;
        let pages = write.sector / 8..(write.sector + u64::from(write.sectors)).div_ceil(8);
        if let Some(before) = last.get(&pages.start) {
            class.again += 1;
            class.between += written - before;
            class.soon += u64::from(written - before < soon_bytes);
        }
        pages.for_each(|page| _ = last.insert(page, written));
        written += u64::from(write.sectors) * SECTOR_BYTES;
    }
    classes
}

/// Large data of Phone and PC return only after this number of bytes is written.
const LATE_BYTES: u64 = 1024 << 20;

/// Share of the writes of 32 KB and more whose data return earlier than the large data of Phone and PC.
pub(super) fn large_that_return(lab: &Lab<'_>, source: &'static Source) -> Result<f64, StudyError> {
    let classes = rewrites(&lab.workload(source)?.requests, LATE_BYTES);
    let large = classes.range(64..).fold(Rewrites::default(), |sum, (_, class)| sum.plus(class));
    Ok(large.soon as f64 / large.writes as f64)
}

/// Fig. 9: sizes of writes and the mean time between writes of the same data, in bytes that the host writes.
pub(super) fn fig9(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let mut traces = Vec::new();
    for source in TRACES {
        traces.push(rewrites(&lab.workload(source)?.requests, SOON_BYTES));
    }
    let sum = |trace: usize, from: u32, below: u32| {
        traces[trace].range(from..below).fold(Rewrites::default(), |sum, (_, class)| sum.plus(class))
    };
    let share = |part: u64, whole: u64| part as f64 / whole as f64;
    let small = |trace| sum(trace, 1, 16);
    let large = |trace| sum(trace, 65, u32::MAX);
    let soon = [0, 1].map(|trace| share(small(trace).soon, small(trace).writes));
    let many = [0, 1].map(|trace| share(small(trace).writes, sum(trace, 1, u32::MAX).writes));
    let late = [0, 1].map(|trace| large(trace).between_mb());
    let updates = share(sum(2, 64, u32::MAX).again, sum(2, 1, u32::MAX).writes);
    let findings = vec![
        Finding::fact(
            "many requests are smaller than 8 KB, Phone and PC",
            "at least half",
            many.iter().all(|&share| share >= 0.5),
            row(many),
        )
        .of_kind(Kind::Generator),
        Finding::fact(
            "most of these are updated before 2 MB are written, Phone and PC",
            "more than half",
            soon.iter().all(|&share| share > 0.5),
            row(soon),
        )
        .of_kind(Kind::Generator),
        Finding::fact(
            "those larger than 32 KB come back after more than 1,024 MB, Phone and PC",
            "on average more",
            late.iter().all(|&mb| mb > 1024.0),
            row(late) + " MB",
        )
        .of_kind(Kind::Generator),
        Finding::fact(
            "IOzone has many large updates",
            "at least half of the requests are updates of 32 KB and more",
            updates >= 0.5,
            short(updates),
        )
        .of_kind(Kind::Generator),
    ];
    let series = NAMES.iter().zip(&traces).map(|(name, classes)| {
        let kib = |sectors: &u32| f64::from(*sectors) / 2.0;
        let again = classes.iter().filter(|(_, class)| class.again > 0);
        Series::measured(*name, again.map(|(sectors, class)| (kib(sectors), class.between_mb())).collect())
    });
    Ok(Drawn {
        caption: "Each write by its size and by what the host has written since its first page was written. The stand-ins are \
                  made after these figures; with `--trace` it checks a trace."
            .into(),
        plots: vec![Plot {
            title: "Mean time between writes".into(),
            kind: PlotKind::Lines,
            x: Axis::logarithmic("size (KiB)"),
            y: Axis::logarithmic("MB written meanwhile"),
            series: series.collect(),
        }],
        findings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_between_writes() {
        let write = |sector, sectors| Request { arrival_ns: 0, sector, sectors, op: Op::Write, handle: 0 };
        let writes = [write(0, 16), write(64, 8), write(8, 8), write(0, 16), write(64, 8192), write(64, 8)];
        let classes = rewrites(&writes, SOON_BYTES);
        let class = |sectors| classes[&sectors];
        // The second page of the first write returns after 12 KiB, and the last write after the 4 MiB before it.
        assert_eq!(class(8), Rewrites { writes: 3, again: 2, soon: 1, between: (12 << 10) + (4 << 20) });
        assert_eq!(class(16), Rewrites { writes: 2, again: 1, soon: 1, between: 16 << 10 });
        assert_eq!(class(8192), Rewrites { writes: 1, again: 1, soon: 1, between: 16 << 10 });
    }
}
