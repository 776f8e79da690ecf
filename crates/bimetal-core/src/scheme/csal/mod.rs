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
//!
//! The places of data are those of [`Tiers`], where a page of the slow region is one unit: its log is
//! [packed](crate::region::log::Packing).

mod bands;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use self::bands::{Bands, STREAMS};
use super::tiered::{FastTier, Run, Tiers, unit_bytes};
use super::{Metrics, Regions, Scheme, SchemeSpec, Shape, ratio};
use crate::media::{Cause, CellMode, Media, Part};
use crate::region::Space;
use crate::region::log::{Blocks, Collection, Log, PACKED_MAX};
use crate::region::ring::Ring;
use crate::request::{Op, Request, SECTOR_BYTES};
use crate::units::{BlockId, Ppa, RegionId};

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "csal",
    summary: "all writes to a fast cache in turn; what is left of the oldest to a slow log in full pages",
    source: "Zhang et al., CSAL, EuroSys 2024; SPDK FTL",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    adapts: &[],
    version: 3,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `csal`.
    pub struct Parameters {
        /// Share of full chunks of the fast region from which on data are moved to the slow one, in percent (SPDK: 80).
        pub compaction_percent: u32 = 80, in 1..=95;
        /// Erased blocks of the slow region at or below which it is collected (SPDK: 5 bands).
        pub gc_free_blocks: u32 = 1, in 1..=1024;
    }
}

/// Least number of chunks for each one that is being written: open chunks must be a small part.
const CHUNKS_PER_OPEN: u32 = 8;
/// Least number of chunks of the fast region.
const CHUNKS_MIN: u32 = 4;

/// Counts so far, in units.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counts {
    written: u64,
    compacted: u64,
}

/// The state of `csal`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Csal {
    tiers: Tiers<Log<Bands, STREAMS>>,
    ring: Ring,
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
        let units = shape.logical_sectors.div_ceil(u64::from(unit) / SECTOR_BYTES);
        let slow_id = RegionId((shape.regions.len() - 1) as u8);
        let collection = Collection { gc_free_blocks: parameters.gc_free_blocks, idle_gc: false };
        let bands = |blocks: &Blocks<STREAMS>, packing| Bands::new(blocks.entries(), packing);
        let slow = Log::packed(slow_id, slow_geometry, (units, unit), collection, bands)?;
        let fast = FastTier::new(RegionId(0), cache, (CellMode::Native, cache.pages_per_block), unit)?;
        let width = (cache.blocks / CHUNKS_PER_OPEN).clamp(1, cache.dies);
        let from = (u64::from(cache.blocks) * u64::from(parameters.compaction_percent)).div_ceil(100) as u32;
        Ok(Self {
            tiers: Tiers::new(fast, slow)?,
            ring: Ring::new(0..cache.blocks, cache.blocks, cache.pages_per_block, width, cache.stripe_pages),
            // Even with the last chunk open there is data to move.
            compacted_from: from.min(cache.blocks - width),
            cursor: 0,
            owed_units: 0,
            counts: Counts::default(),
        })
    }

    /// Units of a page of the slow region.
    fn units_per_slow_page(&self) -> u32 {
        self.tiers.slow.separation().units_per_page()
    }

    /// Whether enough chunks are full for data to be moved.
    fn is_full(&self) -> bool {
        self.ring.written() >= self.compacted_from + self.ring.width() && self.ring.tail_is_full()
    }

    fn write<M: Media>(&mut self, media: &mut M, request: &Request) {
        let mut run = Run::whole(self.tiers.units(), request);
        let (per_page, unit_sectors) = (self.tiers.fast.units_per_page(), self.tiers.fast.unit_sectors());
        let per_slow_page = self.units_per_slow_page();
        while let Some(piece) = run.take(per_page, unit_sectors) {
            let page = self.next_page(media);
            self.tiers.write_fast(media, &piece, page, Cause::Host);
            self.counts.written += u64::from(piece.count);
            self.owed_units += piece.count;
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
        self.tiers.fast.slots().geometry().ppa(block, page)
    }

    /// The next valid slot of the oldest chunks. Chunks without valid slots are emptied, while too many are full or
    /// while a page `is_begun` and can be filled further.
    fn next_valid(&mut self, emptied: &mut Emptied, is_begun: bool) -> Option<u32> {
        while (is_begun || self.is_full()) && self.ring.tail_is_full() && !emptied.is_full() {
            let block = self.ring.tail()?;
            let slots = self.tiers.fast.slots().slots_of(block);
            let mut rest = slots.start + self.cursor..slots.end;
            if let Some(slot) = rest.find(|&slot| self.tiers.fast.slots().unit(slot).is_some()) {
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
        let mut units: ArrayVec<u32, PACKED_MAX> = ArrayVec::new();
        let mut parts: ArrayVec<Part<M::Data>, PACKED_MAX> = ArrayVec::new();
        let (sectors, most) = (self.tiers.fast.unit_sectors(), self.units_per_slow_page() as usize);
        let mut last = None;
        while units.len() < most
            && let Some(slot) = self.next_valid(&mut emptied, !units.is_empty())
        {
            let fast = &mut self.tiers.fast;
            let Some(unit) = fast.slots().unit(slot) else { continue };
            let (data, from) = fast.read(media, slot, Cause::MigrateDown, &mut last);
            parts.push(Part { data, from, to: units.len() as u32 * sectors, sectors });
            units.push(unit);
            fast.clear(slot);
        }
        if !units.is_empty() {
            self.counts.compacted += units.len() as u64;
            self.tiers.slow.write_together(media, &units, &parts, Cause::MigrateDown);
        }
        for block in emptied {
            self.tiers.fast.erase(media, block, Cause::Gc);
        }
    }
}

/// Chunks without valid data.
type Emptied = ArrayVec<BlockId, PACKED_MAX>;

impl<M: Media> Scheme<M> for Csal {
    fn fill(&mut self, media: &mut M) {
        let (units, per_page) = (self.tiers.slow.logical_pages(), self.units_per_slow_page());
        for first in (0..units).step_by(per_page as usize) {
            let together: ArrayVec<u32, PACKED_MAX> = (first..units.min(first + per_page)).collect();
            self.tiers.slow.write_together(media, &together, &[], Cause::Host);
        }
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        match request.op {
            Op::Write => self.write(media, request),
            Op::Read => self.tiers.read(media, request),
            Op::Trim => self.tiers.trim(request),
        }
    }

    #[inline]
    fn prefetch(&self, far: &Request, near: &Request) {
        self.tiers.prefetch(far, near);
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
        let (counts, Tiers { fast, slow, .. }) = (&self.counts, &self.tiers);
        let of_erased = fast.erases() * u64::from(fast.slots().pages_per_block() * fast.slots().slots());
        let emptied = of_erased + u64::from(self.cursor);
        metrics.count("written_units", counts.written);
        metrics.count("compacted_units", counts.compacted);
        metrics.push("compacted_share", ratio(counts.compacted, emptied));
        metrics.count("gc_copied_units", slow.copied_pages());
        metrics.count("padded_units", slow.separation().padded_units());
        metrics.count("fast_erases", fast.erases());
        metrics.count("slow_erases", slow.erases());
        metrics.count("metadata_bytes", slow.metadata_bytes());
    }

    fn check(&self) -> Result<(), String> {
        let slots = self.tiers.fast.slots();
        let blocks = slots.geometry().blocks;
        self.ring.check(blocks)?;
        self.tiers.check(self.ring.iter_written())?;
        if self.ring.erased() + self.ring.written() != blocks {
            return Err(format!("{} chunks are erased, {} written", self.ring.erased(), self.ring.written()));
        }
        let tail = self.ring.tail().map_or(0..0, |tail| slots.slots_of(tail));
        let is_left = |slot: u32| slots.unit(slot).is_some();
        if self.cursor > tail.end - tail.start || (tail.start..tail.start + self.cursor).any(is_left) {
            return Err("the oldest chunk has valid units that were skipped".into());
        }
        match self.owed_units {
            owed if owed < self.units_per_slow_page() => Ok(()),
            owed => Err(format!("{owed} units are owed to compaction")),
        }
    }
}

#[cfg(test)]
mod tests;
