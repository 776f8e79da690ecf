//! The fast tier: which unit is in which slot of the log's pages.

use serde::{Deserialize, Serialize};

use super::LastRead;
use crate::media::{Cause, CellMode, Media};
use crate::region::slot_table::SlotTable;
use crate::units::{BlockId, Geometry, Ppa, RegionId};

/// The fast tier's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct FastTier {
    #[serde(with = "crate::save::fixed")]
    region: RegionId,
    #[serde(with = "crate::save::fixed")]
    mode: CellMode,
    slots: SlotTable,
    /// Slot of each unit that is in the log.
    #[serde(with = "crate::save::table")]
    slot_of: Vec<u32>,
    #[serde(with = "crate::save::fixed")]
    unit_sectors: u32,
    valid_units: u32,
    erases: u64,
}

impl FastTier {
    /// No slot: the unit is not in the log.
    pub const NONE: u32 = u32::MAX;

    /// An empty tier for `units` units of `unit_bytes` bytes, over blocks of a region that run in `mode` and have
    /// `pages_per_block` pages in it.
    ///
    /// # Errors
    /// More units than numbers.
    pub fn new(
        region: RegionId,
        geometry: Geometry,
        (mode, pages_per_block): (CellMode, u32),
        units: u64,
        unit_bytes: u32,
    ) -> Result<Self, String> {
        if units >= u64::from(Self::NONE) {
            return Err(format!("{units} mapping units of {unit_bytes} bytes are more than 2^32; lower the capacity"));
        }
        let slots = SlotTable::new(geometry, pages_per_block, geometry.page_bytes / unit_bytes)?;
        let slot_of = vec![Self::NONE; units as usize];
        Ok(Self { region, mode, slots, slot_of, unit_sectors: unit_bytes / 512, valid_units: 0, erases: 0 })
    }

    /// The region that the log is in.
    #[inline]
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// What the log's pages hold.
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

    /// Where in the log a unit is, if it is there.
    #[inline]
    pub fn slot(&self, unit: u32) -> Option<u32> {
        let slot = self.slot_of[unit as usize];
        (slot != Self::NONE).then_some(slot)
    }

    /// The slots of consecutive units, [`FastTier::NONE`] for those that are not in the log.
    #[inline]
    pub fn slots_of(&self, unit: u32, count: u32) -> &[u32] {
        &self.slot_of[unit as usize..(unit + count) as usize]
    }

    /// Consecutive units are in the first slots of a page from now on; older copies in the log are invalid.
    #[inline]
    pub fn put(&mut self, unit: u32, count: u32, page: Ppa) {
        for (unit, slot) in (unit..unit + count).zip(self.slots.first_slot(page)..) {
            let old = std::mem::replace(&mut self.slot_of[unit as usize], slot);
            if old == Self::NONE {
                self.valid_units += 1;
            } else {
                self.slots.clear(old);
            }
            self.slots.set(slot, unit);
        }
    }

    /// The log's copy of a unit, if there is one, is not valid any more.
    #[inline]
    pub fn drop_unit(&mut self, unit: u32) {
        let slot = std::mem::replace(&mut self.slot_of[unit as usize], Self::NONE);
        if slot != Self::NONE {
            self.slots.clear(slot);
            self.valid_units -= 1;
        }
    }

    /// The unit that a slot holds is not in the log any more.
    #[inline]
    pub fn empty_slot(&mut self, slot: u32, unit: u32) {
        debug_assert_eq!(self.slot(unit), Some(slot));
        self.slot_of[unit as usize] = Self::NONE;
        self.slots.clear(slot);
        self.valid_units -= 1;
    }

    /// Units of a page are in the same positions of another one from now on; `moved` is told old and new slots.
    #[inline]
    pub fn relocate(&mut self, from: Ppa, to: Ppa, mut moved: impl FnMut(u32, u32)) {
        let (old, new) = (self.slots.first_slot(from), self.slots.first_slot(to));
        for position in 0..self.slots.slots() {
            let Some(unit) = self.slots.unit(old + position) else { continue };
            self.slots.clear(old + position);
            self.slots.set(new + position, unit);
            self.slot_of[unit as usize] = new + position;
            moved(old + position, new + position);
        }
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
        let (page, position) = self.slots.page_of(slot);
        let data = match *last {
            Some((known, data)) if known == page => data,
            _ => media.read(self.region, page, cause),
        };
        *last = Some((page, data));
        (data, position * self.unit_sectors)
    }

    /// Erases a block of the log, which runs in the log's mode from then on.
    pub fn erase<M: Media>(&mut self, media: &mut M, block: BlockId, cause: Cause) {
        media.erase(self.region, block, self.mode, cause);
        self.erases += 1;
    }

    /// Brings what an access to a unit will need into the processor's cache: first (`far` ahead) its map entry, later
    /// (`near`) what that points to.
    #[inline]
    pub fn prefetch(&self, far: u32, near: u32) {
        self.prefetch_entry(far);
        let slot = self.slot_of[near as usize];
        if slot != Self::NONE {
            self.slots.prefetch(slot);
        }
    }

    /// Brings a unit's map entry into the processor's cache.
    #[inline]
    pub fn prefetch_entry(&self, unit: u32) {
        prefetch_index::prefetch_index(&self.slot_of, unit as usize);
    }

    /// Bytes of the log's map as a controller would keep it: for each slot the unit that it holds, in a hash table.
    pub fn metadata_bytes(&self) -> u64 {
        self.metadata_bytes_of(self.slots.geometry().blocks)
    }

    /// The same for a log of that many blocks.
    pub fn metadata_bytes_of(&self, blocks: u32) -> u64 {
        u64::from(blocks) * u64::from(self.slots.pages_per_block() * self.slots.slots()) * 8
    }

    /// Checks that slots and units agree, and that slots are in programmed pages.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self, written: impl Iterator<Item = (BlockId, u32)>) -> Result<(), String> {
        let valid = self.slots.check(written)?;
        let mut counted = 0;
        for (unit, &slot) in self.slot_of.iter().enumerate() {
            if slot == Self::NONE {
                continue;
            }
            counted += 1;
            if slot as usize >= self.slots.len() || self.slots.unit(slot) != Some(unit as u32) {
                return Err(format!("unit {unit} is not in the slot that it is said to be in"));
            }
        }
        if counted == valid && counted == self.valid_units {
            Ok(())
        } else {
            Err(format!(
                "{valid} slots are valid, {counted} units are in the log and {} were counted",
                self.valid_units
            ))
        }
    }
}
