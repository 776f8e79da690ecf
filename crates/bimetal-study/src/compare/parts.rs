//! Facts about the regions and disks of a device.

use bimetal_core::chip::{self, Cell};
use bimetal_core::drive::Model;
use bimetal_core::media::Volume;
use bimetal_core::report::RegionDescription;
use bimetal_core::request::SECTOR_BYTES;
use bimetal_core::units::Nanos;
use serde::Serialize;

/// Facts about a region.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RegionFacts {
    /// Name.
    pub name: String,
    /// Name of the part.
    pub chip: String,
    /// Raw capacity.
    pub capacity_bytes: u64,
    /// Blocks.
    pub blocks: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Dies, over all channels.
    pub dies: u32,
    /// Channels.
    pub channels: u32,
    /// Bits per cell.
    pub cell: Cell,
    /// Year of the part; none if the catalogue does not state it.
    pub year: Option<u16>,
    /// Year of the catalogue's price; none if the price is not the catalogue's.
    pub price_year: Option<u16>,
    /// Share of the simulated time in which its dies were busy.
    pub busy: f64,
}

impl RegionFacts {
    pub(super) fn of(region: &RegionDescription<'_>, channels: u32, busy: f64) -> Self {
        let RegionDescription { name, chip, geometry } = *region;
        let is_of_catalogue = chip::find(&chip.name).is_some_and(|part| part.usd_per_gib == chip.usd_per_gib);
        Self {
            name: name.into(),
            chip: chip.name.clone(),
            capacity_bytes: geometry.capacity_bytes(),
            blocks: geometry.blocks,
            block_bytes: geometry.block_bytes(),
            dies: geometry.dies,
            channels,
            cell: chip.cell,
            year: chip::year(&chip.name),
            price_year: chip::priced_in(&chip.name).filter(|_| is_of_catalogue),
            busy,
        }
    }
}

/// Facts about a home disk.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DiskFacts {
    /// Name.
    pub name: String,
    /// Name of the drive.
    pub drive: String,
    /// Model of its access times.
    pub model: Model,
    /// Logical capacity on it.
    pub capacity_bytes: u64,
    /// Share of the simulated time in which it was busy.
    pub busy: f64,
    /// Energy while it was spinning and idle, in joules, which is not part of the energy of operations.
    pub idle_j: f64,
}

impl DiskFacts {
    pub(super) fn of(name: &str, volume: &Volume, busy: Nanos, simulated: Nanos) -> Self {
        let idle_s = simulated.as_s() - busy.as_s();
        Self {
            name: name.into(),
            drive: volume.drive.name.clone(),
            model: volume.drive.model,
            capacity_bytes: volume.sectors * SECTOR_BYTES,
            // Requests still queued at the end are written after it.
            busy: (busy.as_s() / simulated.as_s().max(1e-9)).min(1.0),
            idle_j: volume.drive.idle_w * idle_s.max(0.0),
        }
    }
}
