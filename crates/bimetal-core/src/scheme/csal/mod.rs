//! `csal`: all writes go to a fast cache, whose blocks are written in turn. Units that are still valid in its oldest
//! blocks go to the slow region in large writes (*CSAL*: Zhang et al., EuroSys 2024; the FTL of SPDK).
//!
//! ```text
//!  write ─▶ |####|####|####|##__|____|   fast: chunks, written in turn
//!             │ 80 % of them full: valid units of the oldest
//!             ▼
//!           |#_##|####|#_#_|____|        slow: bands, pages full of units; collected in a band of their own
//! ```
//!
//! The map has an entry for each unit, the 4-KiB block of hosts, in either region. So the slow region may have pages of
//! 16 or 64 KiB, the *indirection unit* of QLC drives, and small writes need no read-modify-write: units of any
//! addresses share a page. Units that are overwritten in the cache are never written to the slow region.
//!
//! Facts come from SPDK (`lib/ftl`, 3230130): the cache takes every write whatever its size; compaction runs while at
//! least 80 % of the chunks are full, the oldest first, and moves only valid units, to bands separate from those of
//! collected data; the victim is the band with the largest share of invalid units, and among bands within ten points of
//! each other the one that was written fewest times, then the lowest.
//!
//! Choices and departures. A chunk is a block of the fast region, and a band one of the slow region (there 1 GiB). SPDK
//! slows the host down every 20 ms, so that compaction keeps up. A scheme has no clock: while too many chunks are full,
//! it moves one unit for each one written. If compaction or collection has too few units for a page, it writes the page
//! with fewer. A trim drops whole units (SPDK: 4 MiB). The limits of free bands (5 to begin, 2 to stop compaction) are
//! one, and a band is kept for collection.

mod packed;

use serde::{Deserialize, Serialize};

use self::packed::{Batch, PackedLog};
use super::tiered::{FastTier, Run, unit_bytes};
use super::{Metrics, Regions, Scheme, SchemeSpec, Shape, ratio};
use crate::media::{Cause, CellMode, Media, PageMerge, Stream};
use crate::region::ring::Ring;
use crate::region::slot_table::LastRead;
use crate::request::{Op, Request, SECTOR_BYTES};
use crate::save::Table;
use crate::units::{BlockId, Division, Ppa, RegionId};

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "csal",
    summary: "all writes to a fast cache in turn; what is left of the oldest to a slow log in full pages",
    source: "Zhang et al., CSAL, EuroSys 2024; SPDK FTL",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    adapts: &[],
    version: 2,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `csal`.
    pub struct Parameters {
        /// Share of full chunks of the fast region from which on data are moved to the slow one, in percent (SPDK: 80).
        pub compaction_percent: u32 = 80, in 1..=95;
        /// Erased blocks of the slow region at or below which it is collected (SPDK: 5 bands).
        pub gc_free_blocks: u32 = 2, in 1..=1024;
    }
}

/// Least number of chunks for each one that is being written: open chunks must be a small part.
const CHUNKS_PER_OPEN: u32 = 8;
/// Least number of chunks of the fast region.
const CHUNKS_MIN: u32 = 4;

/// The places of units.
#[derive(Debug, Serialize, Deserialize)]
struct Map {
    /// By unit: 0 for none, else one more than its slot; slots of the slow region follow those of the fast one.
    places: Table<u32>,
    #[serde(with = "crate::save::fixed")]
    fast_slots: u32,
}

/// A slot of either region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Fast(u32),
    Slow(u32),
}

impl Map {
    #[inline]
    fn get(&self, unit: u32) -> Option<Place> {
        let slot = self.places[unit as usize].checked_sub(1)?;
        Some(slot.checked_sub(self.fast_slots).map_or(Place::Fast(slot), Place::Slow))
    }

    #[inline]
    fn set(&mut self, unit: u32, place: Place) {
        self.places[unit as usize] = 1 + match place {
            Place::Fast(slot) => slot,
            Place::Slow(slot) => self.fast_slots + slot,
        };
    }
}

/// Counts so far, in units.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counts {
    written: u64,
    compacted: u64,
}

/// Pages in the controller: consecutive units of one page are read once.
struct LastReads<D> {
    fast: LastRead<D>,
    slow: LastRead<D>,
}

impl<D> LastReads<D> {
    fn none() -> Self {
        Self { fast: None, slow: None }
    }
}

/// The state of `csal`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Csal {
    map: Map,
    fast: FastTier,
    ring: Ring,
    slow: PackedLog,
    /// Divides addresses into mapping units.
    #[serde(with = "crate::save::fixed")]
    units: Division,
    /// Number of full chunks from which on data are moved.
    #[serde(with = "crate::save::fixed")]
    compacted_from: u32,
    /// First slot of the oldest chunk that is not emptied yet.
    cursor: u32,
    /// Written units for which compaction has not yet moved others.
    owed_units: u32,
    counts: Counts,
}

impl Csal {
    /// A scheme over the device's first region, the cache, and its last.
    ///
    /// # Errors
    /// Too few chunks, or too little spare area.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let [fast, .., slow] = shape.regions.as_slice() else { return Err("it needs a fast and a slow region".into()) };
        let (cache, slow_geometry) = (fast.geometry, slow.geometry);
        if cache.blocks < CHUNKS_MIN {
            return Err(format!(
                "a cache of {} blocks is less than {CHUNKS_MIN} chunks; enlarge the fast region",
                cache.blocks
            ));
        }
        let unit = unit_bytes(cache.page_bytes, slow_geometry.page_bytes);
        let unit_sectors = unit / SECTOR_BYTES as u32;
        let count = shape.logical_sectors.div_ceil(u64::from(unit_sectors));
        let slow_id = RegionId((shape.regions.len() - 1) as u8);
        let slow = PackedLog::new(slow_id, slow_geometry, count, unit_sectors, parameters.gc_free_blocks)?;
        let fast = FastTier::new(RegionId(0), cache, (CellMode::Native, cache.pages_per_block), unit)?;
        let fast_slots = fast.slots().len() as u32;
        let width = (cache.blocks / CHUNKS_PER_OPEN).clamp(1, cache.dies);
        let from = (u64::from(cache.blocks) * u64::from(parameters.compaction_percent)).div_ceil(100) as u32;
        Ok(Self {
            map: Map { places: vec![0; count as usize].into(), fast_slots },
            fast,
            ring: Ring::new(0..cache.blocks, cache.blocks, cache.pages_per_block, width, cache.stripe_pages),
            slow,
            units: Division::by(unit_sectors),
            // Even with the last chunk open there is data to move.
            compacted_from: from.min(cache.blocks - width),
            cursor: 0,
            owed_units: 0,
            counts: Counts::default(),
        })
    }

    /// Whether enough chunks are full for data to be moved.
    fn is_full(&self) -> bool {
        self.ring.written() >= self.compacted_from + self.ring.width() && self.ring.tail_is_full()
    }

    fn write<M: Media>(&mut self, media: &mut M, request: &Request) {
        let mut run = Run::whole(&self.units, request);
        let (per_page, unit_sectors) = (self.fast.units_per_page(), self.fast.unit_sectors());
        while let Some(piece) = run.take(per_page, unit_sectors) {
            let page = self.next_page(media);
            self.write_piece(media, &piece, page);
            self.counts.written += u64::from(piece.count);
            self.owed_units += piece.count;
            let per_slow_page = self.slow.units_per_page();
            while self.owed_units >= per_slow_page {
                self.owed_units -= per_slow_page;
                if self.is_full() {
                    self.compact_page(media);
                }
            }
        }
    }

    /// The next page of the cache.
    fn next_page<M: Media>(&mut self, media: &mut M) -> Ppa {
        if self.ring.needs_block() {
            while self.ring.erased() == 0 {
                self.ring.close_tail();
                self.compact_page(media);
            }
            self.ring.open_block();
        }
        let (block, page) = self.ring.next_page();
        self.fast.slots().geometry().ppa(block, page)
    }

    /// Writes host data of up to a page to a page of the cache. The rest of the first and last unit comes from their old copies.
    fn write_piece<M: Media>(&mut self, media: &mut M, run: &Run, page: Ppa) {
        let unit_sectors = self.fast.unit_sectors();
        let mut merge = PageMerge::default();
        merge.fill(media.host(), run.at, run.first, run.sectors);
        let mut last = LastReads::none();
        for index in [0, run.count - 1] {
            let start = index * unit_sectors;
            if !merge.covers(start, unit_sectors)
                && let Some(place) = self.map.get(run.unit + index)
            {
                let (data, from) = self.read_place(media, place, Cause::Host, &mut last);
                merge.fill(data, from, start, unit_sectors);
            }
        }
        media.program(self.fast.region(), page, merge.parts(), Stream::ONLY, Cause::Host);
        let first = self.fast.slots().first_slot(page);
        for (unit, slot) in (run.unit..run.unit + run.count).zip(first..) {
            let old = match self.map.get(unit) {
                Some(Place::Fast(slot)) => Some(slot),
                Some(Place::Slow(slot)) => {
                    self.slow.forget(slot);
                    None
                }
                None => None,
            };
            self.fast.put(unit, slot, old);
            self.map.set(unit, Place::Fast(slot));
        }
    }

    fn read_place<M: Media>(
        &self,
        media: &mut M,
        place: Place,
        cause: Cause,
        last: &mut LastReads<M::Data>,
    ) -> (M::Data, u32) {
        match place {
            Place::Fast(slot) => self.fast.read(media, slot, cause, &mut last.fast),
            Place::Slow(slot) => self.slow.read(media, slot, cause, &mut last.slow),
        }
    }

    /// The next valid slot of the oldest chunks. Chunks without valid slots are emptied, while too many are full or
    /// while a page `is_begun` and can be filled further.
    fn next_valid(&mut self, emptied: &mut Emptied, is_begun: bool) -> Option<u32> {
        while (is_begun || self.is_full()) && self.ring.tail_is_full() && !emptied.is_full() {
            let block = self.ring.tail()?;
            let slots = self.fast.slots().slots_of(block);
            let mut rest = slots.start + self.cursor..slots.end;
            if let Some(slot) = rest.find(|&slot| self.fast.slots().unit(slot).is_some()) {
                self.cursor = slot + 1 - slots.start;
                return Some(slot);
            }
            self.cursor = 0;
            self.ring.retire_tail();
            emptied.push(block);
        }
        None
    }

    /// Moves valid units of the oldest chunks to a page of the slow region.
    fn compact_page<M: Media>(&mut self, media: &mut M) {
        let mut emptied = Emptied::new();
        let mut batch = Batch::new();
        let mut last = None;
        while batch.len() < self.slow.units_per_page()
            && let Some(slot) = self.next_valid(&mut emptied, batch.len() > 0)
        {
            let Some(unit) = self.fast.slots().unit(slot) else { continue };
            let data = self.fast.read(media, slot, Cause::MigrateDown, &mut last);
            batch.push(unit, data, self.fast.unit_sectors());
            self.fast.clear(slot);
        }
        if batch.len() > 0 {
            self.counts.compacted += u64::from(batch.len());
            let map = &mut self.map;
            self.slow.write(media, &batch, Cause::MigrateDown, &mut |unit, slot| map.set(unit, Place::Slow(slot)));
        }
        for block in emptied {
            self.fast.erase(media, block, Cause::MigrateDown);
        }
    }

    fn read<M: Media>(&self, media: &mut M, request: &Request) {
        let mut last = LastReads::none();
        for span in self.units.spans(request) {
            match self.map.get(span.page) {
                Some(place) => {
                    let (data, from) = self.read_place(media, place, Cause::Host, &mut last);
                    media.deliver(data, from + span.first, span.at, span.sectors);
                }
                None => media.deliver_zeros(span.at, span.sectors),
            }
        }
    }

    /// Drops whole units.
    fn trim(&mut self, request: &Request) {
        let unit_sectors = self.fast.unit_sectors();
        for span in self.units.spans(request).filter(|span| span.sectors == unit_sectors) {
            match self.map.get(span.page) {
                Some(Place::Fast(slot)) => self.fast.clear(slot),
                Some(Place::Slow(slot)) => self.slow.forget(slot),
                None => {}
            }
            self.map.places[span.page as usize] = 0;
        }
    }

    /// Checks that the map and the slots of both regions agree.
    fn check_map(&self, valid: u32) -> Result<(), String> {
        let mut mapped = 0;
        for unit in 0..self.map.places.len() as u32 {
            let held = match self.map.get(unit) {
                None => continue,
                Some(Place::Fast(slot)) => self.fast.slots().unit(slot),
                Some(Place::Slow(slot)) if slot < self.slow.len() => self.slow.unit(slot),
                Some(Place::Slow(_)) => None,
            };
            if held != Some(unit) {
                return Err(format!("unit {unit} is not in the slot that the map has for it"));
            }
            mapped += 1;
        }
        match valid + self.fast.valid_units() {
            valid if valid == mapped => Ok(()),
            valid => Err(format!("{valid} slots are valid and {mapped} units are mapped")),
        }
    }
}

/// Chunks without valid data.
type Emptied = arrayvec::ArrayVec<BlockId, 128>;

impl<M: Media> Scheme<M> for Csal {
    fn fill(&mut self, media: &mut M) {
        let units = self.map.places.len() as u32;
        let per_page = self.slow.units_per_page();
        for first in (0..units).step_by(per_page as usize) {
            let mut batch = Batch::new();
            (first..units.min(first + per_page)).for_each(|unit| batch.push_undefined(unit));
            let map = &mut self.map;
            self.slow.write(media, &batch, Cause::Host, &mut |unit, slot| map.set(unit, Place::Slow(slot)));
        }
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        match request.op {
            Op::Write => self.write(media, request),
            Op::Read => self.read(media, request),
            Op::Trim => self.trim(request),
        }
    }

    #[inline]
    fn prefetch(&self, far: &Request, _near: &Request) {
        prefetch_index::prefetch_index(&self.map.places, self.units.page_of(far.sector).0 as usize);
    }

    fn idle(&mut self, media: &mut M, budget_pages: u32) {
        for _ in 0..budget_pages {
            if !self.is_full() {
                break;
            }
            self.compact_page(media);
        }
    }

    fn metrics(&self, metrics: &mut Metrics) {
        let counts = &self.counts;
        let slots = self.fast.slots();
        let emptied = self.fast.erases() * u64::from(slots.pages_per_block() * slots.slots());
        metrics.count("written_units", counts.written);
        metrics.count("compacted_units", counts.compacted);
        metrics.push("compacted_share", ratio(counts.compacted, emptied));
        metrics.count("gc_copied_units", self.slow.copied_units());
        metrics.count("padded_units", self.slow.padded_units());
        metrics.count("fast_erases", self.fast.erases());
        metrics.count("slow_erases", self.slow.erases());
        metrics.count("metadata_bytes", self.map.places.len() as u64 * 4);
    }

    fn check(&self) -> Result<(), String> {
        let blocks = self.fast.slots().geometry().blocks;
        self.ring.check(blocks)?;
        self.fast.check(self.ring.iter_written())?;
        if self.ring.erased() + self.ring.written() != blocks {
            return Err(format!("{} chunks are erased, {} written", self.ring.erased(), self.ring.written()));
        }
        let tail = self.ring.tail().map_or(0..0, |tail| self.fast.slots().slots_of(tail));
        let is_left = |slot: u32| self.fast.slots().unit(slot).is_some();
        if self.cursor > tail.end - tail.start || (tail.start..tail.start + self.cursor).any(is_left) {
            return Err("the oldest chunk has valid units that were skipped".into());
        }
        if self.owed_units >= self.slow.units_per_page() {
            return Err(format!("{} units are owed to compaction", self.owed_units));
        }
        let valid = self.slow.check()?;
        self.check_map(valid)
    }
}

#[cfg(test)]
mod tests;
