//! The main figures of a device under a trace, each a single number.

use serde::{Deserialize, Serialize};

use super::figure::figures;
use super::wear::WearGroup;
use super::{DiskDescription, RegionDescription, Shown, TraceFacts, YEAR_S, finite, op_bytes};
use crate::ledger::{DiskCounts, Row};
use crate::media::{FlashOp, Volume};
use crate::model::chang::operation_uj;
use crate::replay::Measured;
use crate::request::SECTOR_BYTES;

figures! {
    /// Main figures of a device under a trace.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
    pub struct KeyFigures() {
        /// Bytes programmed into flash, for all causes, per byte that the host wrote. Less than 1 if writes bypass
        /// flash; `None` if the host wrote nothing.
        write_amplification: Option<f64> = "write amplification", "write\namp.", Ratio, Lower, Shown::Table(0);
        /// Energy of all operations, in joules: supply voltage x current x array and channel time (Chang 2010, section 5), and
        /// for disks power x time of accesses.
        energy_j: f64 = "energy", "energy", Joule, Lower, Shown::Page;
        /// Price of all flash, spare area included, and of the part of a disk that holds data, in US dollars.
        cost_usd: f64 = "cost", "cost", Dollar, Lower, Shown::Table(2);
        /// Bytes that the host can write until the mean erase count of the first region reaches its endurance. The mean
        /// is used, not the worst block: how evenly blocks wear is a separate figure, and a device replaces single
        /// blocks. Extrapolated from the measured passes, in which a block counts as erased once it is filled: a device
        /// that still has erased blocks erases fewer. `None` if they wrote or programmed nothing.
        lifetime_host_bytes: Option<f64> = "host writes until worn", "host writes", Byte, Higher, Shown::Details;
        /// Years of 365.25 days until the first region is worn out, at the write rate of the trace, whatever the speed
        /// of the replay; `None` also if the trace has no duration.
        lifetime_years: Option<f64> = "life", "life", Year, Higher, Shown::Table(1);
    }
}

impl KeyFigures {
    /// The figures of a replay of `trace`.
    pub(super) fn of(
        regions: &[RegionDescription<'_>],
        disks: &[DiskDescription<'_>],
        groups: &[WearGroup<'_>],
        measured: &Measured,
        trace: &TraceFacts,
    ) -> Self {
        let host_bytes = (measured.host.write_sectors * SECTOR_BYTES) as f64;
        let programmed = programmed_bytes(regions, measured) as f64;
        let lifetime_host_bytes = lifetime_host_bytes(groups, measured);
        let bytes_per_s = finite(trace.write_bytes as f64 / trace.duration_s).filter(|&rate| rate > 0.0);
        Self {
            write_amplification: finite(programmed / host_bytes),
            energy_j: energy_j(regions, &measured.ledger.rows) + disk_energy_j(disks, &measured.ledger.disks),
            cost_usd: cost_usd(regions) + disk_cost_usd(disks),
            lifetime_host_bytes,
            lifetime_years: lifetime_host_bytes.zip(bytes_per_s).map(|(bytes, rate)| bytes / rate / YEAR_S),
        }
    }
}

/// Energy of all operations in joules: for each, supply voltage x current x array and channel time.
pub fn energy_j(regions: &[RegionDescription<'_>], rows: &[Row]) -> f64 {
    let worked = |row: &Row| (row.busy() - row.firmware()).as_us();
    rows.iter().map(|row| operation_uj(regions[row.region].chip, worked(row)) / 1e6).sum()
}

/// Price of all flash in US dollars: capacity, spare area included, x price.
pub fn cost_usd(regions: &[RegionDescription<'_>]) -> f64 {
    let gib = |region: &RegionDescription<'_>| region.geometry.capacity_bytes() as f64 / (1u64 << 30) as f64;
    regions.iter().map(|region| gib(region) * region.chip.usd_per_gib).sum()
}

/// Energy of all accesses in joules: power of the working drive x time.
fn disk_energy_j(disks: &[DiskDescription<'_>], counts: &[DiskCounts]) -> f64 {
    disks.iter().zip(counts).map(|(disk, counts)| disk.volume.drive.active_w * counts.busy().as_us() / 1e6).sum()
}

/// Price of the part of each drive that holds data, in US dollars.
fn disk_cost_usd(disks: &[DiskDescription<'_>]) -> f64 {
    let gib = |volume: &Volume| (volume.sectors * SECTOR_BYTES) as f64 / (1u64 << 30) as f64;
    disks.iter().map(|disk| gib(disk.volume) * disk.volume.drive.usd_per_gib).sum()
}

fn programmed_bytes(regions: &[RegionDescription<'_>], measured: &Measured) -> u64 {
    let rows = &measured.ledger.rows;
    rows.iter().map(|row| row.counts.total(FlashOp::Program) * op_bytes(regions, row, FlashOp::Program)).sum()
}

fn lifetime_host_bytes(groups: &[WearGroup<'_>], measured: &Measured) -> Option<f64> {
    let host_bytes = (measured.host.write_sectors * SECTOR_BYTES) as f64;
    let worn = groups.iter().map(|group| group.lives_used(&measured.ledger.rows) / group.counts.len().max(1) as f64);
    finite(host_bytes / worn.fold(0.0, f64::max)).filter(|&bytes| bytes > 0.0)
}
