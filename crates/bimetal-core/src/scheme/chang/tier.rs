//! The fast tier: circular log, hash table and counts per slow page, kept consistent (Chang 2010 §3.3).
//!
//! Units are fast pages, or disk sectors if those are the table's keys. A unit with a regular entry has its valid copy
//! here, whatever the slow region holds: the hash table takes precedence over the block map.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::parameters::{Key, Parameters};
use crate::media::{Cause, Media, PageMerge};
use crate::part::probed_hash::{Entry, KEY_MAX, ProbedHash};
use crate::part::run_length::run_length;
use crate::region::LastRead;
use crate::region::ring::Ring;
use crate::region::slot_table::SlotTable;
use crate::save::Table;
use crate::scheme::Shape;
use crate::scheme::block_mapped::{Overlay, Span};
use crate::units::{Geometry, RegionId};

/// The fast tier's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tier {
    /// Its region.
    #[serde(with = "crate::save::fixed")]
    pub region: RegionId,
    /// Units in the pages of the circular log.
    pub slots: SlotTable,
    /// The blocks of the circular log.
    pub ring: Ring,
    /// The place of each unit.
    pub hash: ProbedHash,
    /// Sectors of each slow logical page whose valid copy is here.
    newer: Table<u8>,
    #[serde(with = "crate::save::fixed")]
    slow: Geometry,
    #[serde(with = "crate::save::fixed")]
    unit_sectors: u32,
    #[serde(with = "crate::save::fixed")]
    units_per_slow_page: u32,
    #[serde(with = "crate::save::fixed")]
    joins_folds: bool,
    /// Sectors that folds took from here.
    pub pulled_sectors: u64,
}

impl Tier {
    /// An empty tier over a device's first region, in front of its last, which has `slow_pages` logical pages.
    ///
    /// # Errors
    /// Pages or keys that do not fit each other.
    pub fn new(shape: &Shape, parameters: &Parameters, slow_pages: usize) -> Result<Self, String> {
        let (fast, slow) = (shape.regions[0].geometry, shape.regions[shape.regions.len() - 1].geometry);
        let unit_sectors = match parameters.hash_key {
            Key::Sector => 1,
            Key::Page => fast.page_sectors().min(slow.page_sectors()),
        };
        if fast.page_sectors() % unit_sectors != 0 || slow.page_sectors() % unit_sectors != 0 {
            return Err(format!(
                "hash_key=page needs page sizes of which the larger is a multiple of the smaller, not {} and {} bytes; \
                 set hash_key=sector",
                fast.page_bytes, slow.page_bytes
            ));
        }
        if shape.logical_sectors / u64::from(unit_sectors) > u64::from(KEY_MAX) {
            return Err("the hash table's keys are too short for this logical capacity; lower it".into());
        }
        let entries = match parameters.hash_entries {
            0 => (fast.pages() / 2).min(1 << 30) as u32,
            entries => entries,
        };
        let hash = ProbedHash::new(entries.max(3), fast.blocks, parameters.hash_probing, parameters.hash_probes);
        let slots = SlotTable::new(fast, fast.pages_per_block, fast.page_sectors() / unit_sectors)?;
        let mut ring = Ring::new(0..fast.blocks, fast.blocks, fast.pages_per_block, 1, 1);
        ring.open_block();
        Ok(Self {
            region: RegionId(0),
            slots,
            ring,
            hash,
            newer: vec![0; slow_pages].into(),
            slow,
            unit_sectors,
            units_per_slow_page: slow.page_sectors() / unit_sectors,
            joins_folds: parameters.mlc_writeback,
            pulled_sectors: 0,
        })
    }

    /// Sectors of a unit.
    #[inline]
    pub fn unit_sectors(&self) -> u32 {
        self.unit_sectors
    }

    /// The slow logical page of a unit, and the first sector within it.
    #[inline]
    pub fn slow_page(&self, unit: u32) -> (u32, u32) {
        self.slow.logical_page(u64::from(unit) * u64::from(self.unit_sectors))
    }

    /// A unit's data are at a slot of the log.
    #[inline]
    pub fn put(&mut self, bucket: u32, unit: u32, slot: u32) {
        self.hash.make_regular(bucket, slot);
        self.slots.set(slot, unit);
        let (logical, _) = self.slow_page(unit);
        self.newer[logical as usize] += self.unit_sectors as u8;
    }

    /// Invalidates the unit's data at a slot; its bucket stays taken.
    #[inline]
    pub fn invalidate(&mut self, unit: u32, slot: u32) {
        self.slots.clear(slot);
        let (logical, _) = self.slow_page(unit);
        self.newer[logical as usize] -= self.unit_sectors as u8;
    }

    /// Called for data of this unit on their way here: invalidates an old copy. Returns whether there was one.
    #[inline]
    pub fn expect(&mut self, bucket: u32, unit: u32) -> bool {
        let entry = self.hash.entry(bucket);
        if let Entry::Regular(slot) = entry {
            self.invalidate(unit, slot);
        }
        self.hash.make_reserved(bucket);
        matches!(entry, Entry::Regular(_))
    }

    /// Records that a unit's valid copy is elsewhere; with an `anchor`, a virtual entry stays here.
    #[inline]
    pub fn give_up(&mut self, bucket: u32, unit: u32, slot: u32, anchor: Option<u32>) {
        self.invalidate(unit, slot);
        match anchor {
            Some(block) => self.hash.make_virtual(bucket, block),
            None => self.hash.remove(bucket),
        }
    }

    /// Reads the page of a slot unless it was the last page read; returns it and the slot's first sector in it.
    #[inline]
    pub fn fetch<M: Media>(
        &self,
        media: &mut M,
        slot: u32,
        cause: Cause,
        last: &mut LastRead<M::Data>,
    ) -> (M::Data, u32) {
        let (data, position) = self.slots.read(media, self.region, slot, cause, last);
        (data, position * self.unit_sectors)
    }

    /// Delivers the sectors of a span that are here to the host; returns them as a mask of the slow page's sectors.
    pub fn deliver<M: Media>(&self, media: &mut M, span: Span, last: &mut LastRead<M::Data>) -> u128 {
        let mut delivered = 0u128;
        let (first_unit, last_unit) = self.units_of(span);
        let page_unit = span.logical * self.units_per_slow_page;
        for unit in first_unit..=last_unit {
            let Some((_, slot)) = self.hash.place(unit) else { continue };
            let (data, in_page) = self.fetch(media, slot, Cause::Host, last);
            let start = (unit - page_unit) * self.unit_sectors;
            let from = start.max(span.first);
            let end = (start + self.unit_sectors).min(span.first + span.sectors);
            media.deliver(data, in_page + (from - start), span.at + (from - span.first), end - from);
            delivered |= (u128::MAX >> (128 - (end - from))) << from;
        }
        delivered
    }

    /// Called for the host's data of a span that go to the slow region: old copies here are removed, after the sectors
    /// that the host does not write were added to `merge`.
    pub fn supersede<M: Media>(
        &mut self,
        media: &mut M,
        span: Span,
        anchor: Option<u32>,
        merge: &mut PageMerge<M::Data>,
    ) {
        let mut last = None;
        let (first_unit, last_unit) = self.units_of(span);
        let page_unit = span.logical * self.units_per_slow_page;
        for unit in first_unit..=last_unit {
            let Some((bucket, slot)) = self.hash.place(unit) else { continue };
            let start = (unit - page_unit) * self.unit_sectors;
            if start < span.first || start + self.unit_sectors > span.first + span.sectors {
                let (data, from) = self.fetch(media, slot, Cause::Host, &mut last);
                merge.fill(data, from, start, self.unit_sectors);
            }
            self.give_up(bucket, unit, slot, anchor);
        }
    }

    /// Prefetches the number of a slow page's sectors that are here into the processor's cache.
    #[inline]
    pub fn prefetch(&self, logical: u32) {
        prefetch_index::prefetch_index(&self.newer, logical as usize);
    }

    /// The block that new virtual entries are anchored to: the head.
    pub fn anchor(&self) -> u32 {
        self.ring.head().map_or(0, |head| head.0)
    }

    /// Called for data of a span that go to the slow region, or are trimmed: their virtual entries are removed (section
    /// 3.6).
    #[inline]
    pub fn forget_virtual(&mut self, span: Span) {
        if self.hash.without_data() == 0 {
            return;
        }
        let (first_unit, last_unit) = self.units_of(span);
        (first_unit..=last_unit).for_each(|unit| self.hash.forget_virtual(unit));
    }

    /// First and last unit that a span touches.
    #[inline]
    fn units_of(&self, span: Span) -> (u32, u32) {
        let page_unit = span.logical * self.units_per_slow_page;
        let last_sector = span.first + span.sectors - 1;
        (page_unit + span.first / self.unit_sectors, page_unit + last_sector / self.unit_sectors)
    }

    /// Checks that log, hash table and counts agree.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self) -> Result<(), String> {
        self.hash.check()?;
        let blocks = self.slots.geometry().blocks;
        self.ring.check(blocks)?;
        if self.ring.written() == 0 || self.ring.erased() + self.ring.written() != blocks {
            let (written, erased) = (self.ring.written(), self.ring.erased());
            return Err(format!("{written} blocks are written and {erased} erased of {blocks}"));
        }
        let valid = self.slots.check(self.ring.iter_written())?;
        if valid != self.hash.regular() {
            return Err(format!("{valid} units are valid in the log, {} regular entries", self.hash.regular()));
        }
        if let Some(block) = self.ring.iter_erased().find(|&block| self.hash.is_anchor(block.0)) {
            return Err(format!("virtual entries are anchored at block {}, which is erased", block.0));
        }
        let mut newer = vec![0u32; self.newer.len()];
        for (unit, slot) in self.hash.iter_regular() {
            let exists = (slot as usize) < self.slots.len() && (self.slow_page(unit).0 as usize) < newer.len();
            if !exists || self.slots.unit(slot) != Some(unit) {
                return Err(format!("unit {unit} is not where its entry says"));
            }
            newer[self.slow_page(unit).0 as usize] += self.unit_sectors;
        }
        match newer.iter().zip(&self.newer).position(|(&counted, &kept)| counted != u32::from(kept)) {
            Some(page) => {
                Err(format!("slow page {page} has {} sectors here, counted {}", newer[page], self.newer[page]))
            }
            None => Ok(()),
        }
    }
}

impl Overlay for Tier {
    #[inline]
    fn newer_sectors(&self, logical: u32) -> u32 {
        u32::from(self.newer[logical as usize])
    }

    #[inline]
    fn run_without_newer(&self, pages: Range<u32>) -> u32 {
        run_length(&self.newer[pages.start as usize..pages.end as usize], |sectors| sectors > 0) as u32
    }

    #[inline]
    fn joins_folds(&self) -> bool {
        self.joins_folds
    }

    fn pull<M: Media>(&mut self, media: &mut M, logical: u32, merge: &mut PageMerge<M::Data>) {
        let mut last = None;
        let page_unit = logical * self.units_per_slow_page;
        for unit in page_unit..page_unit + self.units_per_slow_page {
            let Some((bucket, slot)) = self.hash.place(unit) else { continue };
            let (data, from) = self.fetch(media, slot, Cause::MigrateDown, &mut last);
            merge.fill(data, from, (unit - page_unit) * self.unit_sectors, self.unit_sectors);
            let own_block = self.slots.block_of(slot);
            self.give_up(bucket, unit, slot, Some(own_block.0));
            self.pulled_sectors += u64::from(self.unit_sectors);
        }
    }
}
