//! The log of `iob`, the benchmark of SSD-iq (Haas et al., VLDB 2025), with its columns: a line for each interval of a
//! replay.
//!
//! `iob` writes a line per second; here an interval is a share of the measured requests, and `time` is its end in
//! simulated seconds. `hash` identifies a run, by which the R scripts group lines, and `writepercent` is a share of 1,
//! both as in `iob`. Columns without a figure in a replay are empty, which R and pandas read as missing.

use std::io;

use bimetal_core::report::IntervalFigures;
use bimetal_core::request::SECTOR_BYTES;

use super::Export;
use crate::arrivals;
use crate::compare::{Comparison, Entry};

pub(super) static EXPORT: Export = Export {
    name: "iob",
    summary: "CSV log of SSD-iq's iob: throughput and write amplification over time, for its R scripts",
    is_over_time: true,
    write,
};

/// The columns with the names of `iob`, two of which begin with a space.
const COLUMNS: [&str; 34] = [
    "stat",
    "type",
    "prefix",
    "hash",
    "time",
    "exacttime",
    "device",
    "filesizeGib",
    "fill",
    "usedfilesize",
    "pattern",
    "patternDetails",
    "rate",
    "expRate",
    "writepercent",
    "bs",
    "threads",
    "iodepth",
    "writesTotal",
    "readsTotal",
    "writeIOPS",
    "readIOPS",
    "writesMBs",
    "readsMBs",
    "physicalMediaUnitsWrittenBytes",
    " physicalMediaUnitsReadBytes",
    "phyWriteMBs",
    " phyReadMBs",
    "percentFreeBlocks",
    "softECCError",
    "unalignedIO",
    "maxUserDataEraseCount",
    "minUserDataEraseCount",
    "currentThrottlingStatus",
];

/// The last column.
const WRITE_AMPLIFICATION: &str = "wa";

fn write(comparison: &Comparison) -> io::Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(COLUMNS.iter().chain([&WRITE_AMPLIFICATION]))?;
    for entry in &comparison.results {
        let mut totals = Totals::default();
        for interval in &entry.report.intervals {
            let seconds = interval.end_s - totals.end_s;
            totals.add(interval);
            csv.write_record(line(comparison, entry, interval, &totals, seconds))?;
        }
    }
    csv.into_inner().map_err(|error| error.into_error())
}

/// Sums over all intervals up to one.
#[derive(Default)]
struct Totals {
    reads: u64,
    writes: u64,
    flash: Flash,
    end_s: f64,
}

impl Totals {
    fn add(&mut self, interval: &IntervalFigures) {
        self.reads += interval.reads;
        self.writes += interval.writes;
        let flash = Flash::of(interval);
        self.flash.read_bytes += flash.read_bytes;
        self.flash.program_bytes += flash.program_bytes;
        self.end_s = interval.end_s;
    }
}

/// Bytes read from flash, and bytes programmed.
#[derive(Default)]
struct Flash {
    read_bytes: u64,
    program_bytes: u64,
}

impl Flash {
    fn of(interval: &IntervalFigures) -> Self {
        let sum = |bytes: fn(&bimetal_core::report::IntervalOps) -> u64| interval.ops.iter().map(bytes).sum();
        Self { read_bytes: sum(|ops| ops.read_bytes), program_bytes: sum(|ops| ops.program_bytes) }
    }
}

const GIB: f64 = (1_u64 << 30) as f64;
const MIB: f64 = (1_u64 << 20) as f64;

fn line(
    comparison: &Comparison,
    entry: &Entry,
    interval: &IntervalFigures,
    totals: &Totals,
    seconds: f64,
) -> Vec<String> {
    let (trace, flash) = (&comparison.trace, Flash::of(interval));
    let number = |value: f64| if value.is_finite() { format!("{value:.3}") } else { String::new() };
    let mib_per_s = |bytes: u64| number(bytes as f64 / MIB / seconds);
    let per_s = |count: u64| number(count as f64 / seconds);
    let (accesses, bytes) = (trace.reads + trace.writes, trace.read_bytes + trace.write_bytes);
    let empty = String::new;
    let logical_bytes = entry.device.logical.0;
    vec![
        "keep".into(),
        "sim".into(),
        entry.report.scheme.clone(),
        format!("{}-{}", comparison.trace_digest, entry.report.scheme),
        number(interval.end_s),
        interval.end_s.to_string(),
        entry.device.name.clone(),
        number(logical_bytes as f64 / GIB),
        number(trace.footprint_bytes as f64 / logical_bytes as f64),
        number(trace.footprint_bytes as f64 / GIB),
        trace.name.clone(),
        empty(),
        "0".into(),
        "0".into(),
        number(trace.writes as f64 / accesses as f64),
        (bytes / accesses.max(1)).max(SECTOR_BYTES).to_string(),
        "1".into(),
        arrivals::depth(&entry.arrivals).unwrap_or_default(),
        totals.writes.to_string(),
        totals.reads.to_string(),
        per_s(interval.writes),
        per_s(interval.reads),
        mib_per_s(interval.write_bytes),
        mib_per_s(interval.read_bytes),
        totals.flash.program_bytes.to_string(),
        totals.flash.read_bytes.to_string(),
        mib_per_s(flash.program_bytes),
        mib_per_s(flash.read_bytes),
        empty(),
        empty(),
        empty(),
        empty(),
        empty(),
        empty(),
        number(flash.program_bytes as f64 / interval.write_bytes as f64),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::comparison;
    use super::*;

    use bimetal_core::replay::Arrivals;

    #[test]
    fn lines_add_up_to_the_report() {
        let compared = comparison(Arrivals::Closed { depth: 1 });
        let bytes = write(&compared).unwrap();
        let mut log = csv::Reader::from_reader(&bytes[..]);
        let at = |name: &str| COLUMNS.iter().position(|&column| column == name).unwrap_or(COLUMNS.len());
        assert_eq!(log.headers().unwrap().len(), COLUMNS.len() + 1);
        let lines: Vec<csv::StringRecord> = log.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), 2 * 5);
        for entry in &compared.results {
            let own: Vec<_> = lines.iter().filter(|line| line[at("prefix")] == entry.report.scheme).collect();
            assert_eq!(own.len(), 5);
            let with_its_hash = lines.iter().filter(|line| line[at("hash")] == own[0][at("hash")]);
            assert_eq!(with_its_hash.count(), own.len(), "the lines of a run, and no others, have its hash");
            let written = own[0][at("writepercent")].parse::<f64>().unwrap();
            let accesses = compared.trace.reads + compared.trace.writes;
            assert!((written - compared.trace.writes as f64 / accesses as f64).abs() < 1e-3, "{written}");
            let sum = |name: &str| own.iter().map(|line| line[at(name)].parse::<f64>().unwrap()).sum::<f64>();
            let last = |name: &str| own[4][at(name)].parse::<f64>().unwrap();
            assert_eq!(last("writesTotal"), (2 * compared.trace.writes) as f64, "two passes are measured");
            assert_eq!(last("readsTotal"), (2 * compared.trace.reads) as f64);
            let amplification = entry.report.key_figures.write_amplification.unwrap();
            let programmed = last("physicalMediaUnitsWrittenBytes");
            let written = (2 * compared.trace.write_bytes) as f64;
            assert!((programmed / written / amplification - 1.0).abs() < 1e-9, "{programmed} of {written}");
            assert!(sum("wa") > 0.0 && last("time") > 0.0 && own[0][at("percentFreeBlocks")].is_empty());
        }
    }
}
