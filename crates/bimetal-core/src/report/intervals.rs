//! Figures over time.

use serde::Serialize;

use super::{DiskDescription, RegionDescription, finite, row_name};
use crate::ledger::Row;
use crate::media::FlashOp;
use crate::replay::{HostCounts, Interval};
use crate::request::SECTOR_BYTES;

/// An interval of the measured passes.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct IntervalFigures {
    /// Measured requests up to its end.
    pub requests: u64,
    /// Reads of the host within it.
    pub reads: u64,
    /// Writes of the host within it.
    pub writes: u64,
    /// Bytes that the host read within it.
    pub read_bytes: u64,
    /// Bytes that the host wrote within it.
    pub write_bytes: u64,
    /// Simulated time at its end, in seconds since measuring started.
    pub end_s: f64,
    /// Mean response within it, in microseconds; 0 if it served no request.
    pub response_mean_us: f64,
    /// Longest response within it, in microseconds.
    pub response_max_us: f64,
    /// Operations within it, by region and mode; only regions and modes with operations in the measured passes.
    pub ops: Vec<IntervalOps>,
    /// Accesses within it, by disk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<IntervalAccesses>,
    /// The scheme's own figures at its end, in the order of the result's `metrics`.
    pub metrics: Vec<Option<f64>>,
}

/// Operations of a region and cell mode within an interval.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct IntervalOps {
    /// Region; `:slc` behind its name marks blocks in SLC mode.
    pub region: String,
    /// Page reads.
    pub read: u64,
    /// Page programs.
    pub program: u64,
    /// Block erases.
    pub erase: u64,
    /// Bytes of the pages that were read.
    pub read_bytes: u64,
    /// Bytes of the pages that were programmed.
    pub program_bytes: u64,
}

/// Accesses to a disk within an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct IntervalAccesses {
    /// The disk.
    pub disk: String,
    /// Reads.
    pub read: u64,
    /// Writes.
    pub write: u64,
}

pub(super) fn figures(
    regions: &[RegionDescription<'_>],
    disks: &[DiskDescription<'_>],
    rows: &[Row],
    intervals: &[Interval],
) -> Vec<IntervalFigures> {
    let mut before = vec![[0; 3]; rows.len()];
    let mut before_of_disks = vec![[0; 2]; disks.len()];
    let mut before_of_host = [0; 4];
    let figures = |interval: &Interval| {
        let mut ops = Vec::new();
        for ((row, now), before) in rows.iter().zip(&interval.ops).zip(&mut before) {
            let [read, program, erase] = since(now, before);
            if FlashOp::ALL.iter().any(|&op| row.counts.total(op) > 0) {
                let page_bytes = u64::from(regions[row.region].geometry.page_bytes);
                let (read_bytes, program_bytes) = (read * page_bytes, program * page_bytes);
                ops.push(IntervalOps {
                    region: row_name(regions, row),
                    read,
                    program,
                    erase,
                    read_bytes,
                    program_bytes,
                });
            }
        }
        let accesses = disks.iter().zip(&interval.disk_ops).zip(&mut before_of_disks);
        let accesses = accesses.map(|((disk, now), before)| {
            let [read, write] = since(now, before);
            IntervalAccesses { disk: disk.name.into(), read, write }
        });
        let HostCounts { reads, writes, read_sectors, write_sectors, .. } = interval.host;
        let host = [reads, writes, read_sectors * SECTOR_BYTES, write_sectors * SECTOR_BYTES];
        let [reads, writes, read_bytes, write_bytes] = since(&host, &mut before_of_host);
        IntervalFigures {
            requests: interval.host.requests(),
            reads,
            writes,
            read_bytes,
            write_bytes,
            end_s: interval.end_ns as f64 / 1e9,
            response_mean_us: interval.response_total_ns as f64 / interval.served.max(1) as f64 / 1e3,
            response_max_us: interval.response_max_ns as f64 / 1e3,
            ops,
            disks: accesses.collect(),
            metrics: interval.metrics.iter().copied().map(finite).collect(),
        }
    };
    intervals.iter().map(figures).collect()
}

/// Counts since the previous call; `before` becomes `now`.
fn since<const N: usize>(now: &[u64; N], before: &mut [u64; N]) -> [u64; N] {
    let counts = std::array::from_fn(|op| now[op] - before[op]);
    *before = *now;
    counts
}
