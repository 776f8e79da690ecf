//! The fast tier: the units in the slots of the log's pages.

use serde::{Deserialize, Serialize};

use crate::media::{Cause, CellMode, Media};
use crate::region::LastRead;
use crate::region::slot_table::SlotTable;
use crate::units::{BlockId, Geometry, RegionId};

/// The fast tier's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct FastTier {
    #[serde(with = "crate::save::fixed")]
    region: RegionId,
    #[serde(with = "crate::save::fixed")]
    mode: CellMode,
    slots: SlotTable,
    #[serde(with = "crate::save::fixed")]
    unit_sectors: u32,
    valid_units: u32,
    erases: u64,
}

impl FastTier {
    /// An empty tier for units of `unit_bytes` bytes, over blocks of a region that run in `mode` and have
    /// `pages_per_block` pages in it.
    ///
    /// # Errors
    /// Too many units for their numbers.
    pub fn new(
        region: RegionId,
        geometry: Geometry,
        (mode, pages_per_block): (CellMode, u32),
        unit_bytes: u32,
    ) -> Result<Self, String> {
        let slots = SlotTable::new(geometry, pages_per_block, geometry.page_bytes / unit_bytes)?;
        Ok(Self { region, mode, slots, unit_sectors: unit_bytes / 512, valid_units: 0, erases: 0 })
    }

    /// The region that the log is in.
    #[inline]
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// Units in the log's pages.
    #[inline]
    pub fn slots(&self) -> &SlotTable {
        &self.slots
    }

    /// Units of a page.
    #[inline]
    pub fn units_per_page(&self) -> u32 {
        self.slots.slots()
    }

    /// Sectors of a unit.
    #[inline]
    pub fn unit_sectors(&self) -> u32 {
        self.unit_sectors
    }

    /// Units that are in the log.
    #[inline]
    pub fn valid_units(&self) -> u32 {
        self.valid_units
    }

    /// Blocks of the log erased so far.
    pub fn erases(&self) -> u64 {
        self.erases
    }

    /// Puts a unit into a slot. `old` is the slot in which it was, if any.
    #[inline]
    pub fn put(&mut self, unit: u32, slot: u32, old: Option<u32>) {
        match old {
            Some(old) => self.slots.clear(old),
            None => self.valid_units += 1,
        }
        self.slots.set(slot, unit);
    }

    /// Removes the unit of a slot from the log.
    #[inline]
    pub fn clear(&mut self, slot: u32) {
        self.slots.clear(slot);
        self.valid_units -= 1;
    }

    /// Reads the page of a slot unless it was the last one read; returns it and the slot's first sector in it.
    #[inline(always)]
    pub fn read<M: Media>(
        &self,
        media: &mut M,
        slot: u32,
        cause: Cause,
        last: &mut LastRead<M::Data>,
    ) -> (M::Data, u32) {
        let (data, position) = self.slots.read(media, self.region, slot, cause, last);
        (data, position * self.unit_sectors)
    }

    /// Erases a block of the log, which then runs in the log's mode.
    pub fn erase<M: Media>(&mut self, media: &mut M, block: BlockId, cause: Cause) {
        media.erase(self.region, block, self.mode, cause);
        self.erases += 1;
    }

    /// Bytes of the log's map in a controller: for each slot its unit, in a hash table.
    pub fn metadata_bytes(&self) -> u64 {
        self.metadata_bytes_of(self.slots.geometry().blocks)
    }

    /// The same for a log of this number of blocks.
    pub fn metadata_bytes_of(&self, blocks: u32) -> u64 {
        u64::from(blocks) * u64::from(self.slots.pages_per_block() * self.slots.slots()) * 8
    }

    /// Checks that slots are in programmed pages, and their number.
    ///
    /// # Errors
    /// The first wrong one.
    pub fn check(&self, written: impl Iterator<Item = (BlockId, u32)>) -> Result<(), String> {
        match self.slots.check(written)? {
            valid if valid == self.valid_units => Ok(()),
            valid => Err(format!("{valid} units are in the log and {} were counted", self.valid_units)),
        }
    }
}
