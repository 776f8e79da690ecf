//! `mixedftl`: every write goes to a block of SLC that belongs to its logical block; data that were not updated for
//! longest are demoted to MLC (after Park et al., *MixedFTL*, as sketched by Im and Shin, *`ComboFTL`*, Journal of
//! Systems Architecture 56, 2010, §2).
//!
//! ```text
//! write ─▶ SLC block of the logical block ── full ─┬─ mostly invalid ─▶ its valid pages to a fresh SLC block
//!               │ no SLC block is left             └─ mostly valid ───▶ MLC
//!               └─▶ that of the logical block not written for longest ─▶ MLC
//! ```
//!
//! That paper only argues about it: cold data cost a write to SLC and another to MLC, and a block of SLC for each
//! logical block is badly used. The handling of a full block is our reading. Both regions keep their size:
//! blocks that change modes at run time, which the paper criticises, are left out, so that it can be compared on the
//! same device.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::space::{Map, MappedSpace, SlowRegion};
use super::tiered::{FastTier, Run, Tiers, unit_bytes};
use super::{Metrics, Regions, Scheme, SchemeSpec, Shape, ratio};
use crate::media::{Cause, CellMode, Media};
use crate::part::lru::Lists;
use crate::region::Space;
use crate::request::{Op, Request};
use crate::units::{BlockId, RegionId};

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "mixedftl",
    summary: "every write to an SLC block of its logical block, the one not written for longest down to MLC",
    source: "sketch of MixedFTL in ComboFTL, JSA 2010",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    adapts: &[],
    version: 5,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `mixedftl`.
    pub struct Parameters {
        /// Valid pages of a full SLC block, in percent, up to which they go to a fresh SLC block instead of MLC.
        pub compact_percent: u32 = 50, in 0..=99;
        /// Mapping of MLC (section 3.1).
        pub slow_map: Map = Map::Unit;
        /// Logical blocks of a unit of MLC: q. 0: 8, doubled until there are fewer units than spare blocks (sections
        /// 3.1, 5.1).
        pub unit_blocks: u32 = 0, in 0..=65_536;
        /// Erased MLC blocks at or below which MLC is collected.
        pub reserve_blocks: u32 = 2, in 1..=1024;
    }
}

/// A logical block's block in the fast region.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Held {
    block: u32,
    /// Next page.
    page: u32,
}

const NONE: u32 = u32::MAX;

/// Erased blocks that are kept: the valid pages of a full block go to one.
const ERASED_MIN: usize = 1;

/// Counters since the start.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counts {
    slc_pages: u64,
    slc_to_slc_pages: u64,
    slc_to_mlc_pages: u64,
    log_units: u64,
    updated_units: u64,
    demoted_units: u64,
    /// Blocks taken from logical blocks that were not written for longest, and programmed pages in them.
    evicted_blocks: u64,
    evicted_block_pages: u64,
}

/// The state of `mixedftl`.
#[derive(Debug, Serialize, Deserialize)]
pub struct MixedFtl {
    tiers: Tiers<MappedSpace>,
    /// Erased fast blocks, oldest erase first.
    erased: VecDeque<u32>,
    /// By logical block.
    #[serde(with = "crate::save::sized")]
    held: Vec<Held>,
    /// Logical blocks that hold a fast block, in the order of their last writes.
    order: Lists,
    /// Mapping units of a logical block.
    #[serde(with = "crate::save::fixed")]
    block_units: u32,
    /// Valid pages up to which those of a full block go to a fresh one.
    #[serde(with = "crate::save::fixed")]
    compact_pages: u32,
    counts: Counts,
}

impl MixedFtl {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Too few blocks in either region.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let [fast, .., _] = shape.regions.as_slice() else { return Err("it needs a fast and a slow region".into()) };
        let Parameters { slow_map: map, unit_blocks, reserve_blocks, .. } = parameters;
        let slow = SlowRegion::of(shape, map, unit_blocks, reserve_blocks)?.space()?;
        let geometry = fast.geometry;
        let least = ERASED_MIN as u32 + 1;
        if geometry.blocks < least {
            return Err(format!(
                "it needs at least {least} fast blocks and there are {}; enlarge the fast region",
                geometry.blocks
            ));
        }
        let unit_bytes = unit_bytes(geometry.page_bytes, slow.geometry().page_bytes);
        let page_units = slow.geometry().page_bytes / unit_bytes;
        let pages_per_block = geometry.pages_per_block;
        let tier = FastTier::new(RegionId(0), geometry, (CellMode::Native, pages_per_block), unit_bytes)?;
        let logical_blocks = slow.logical_pages().div_ceil(slow.geometry().pages_per_block) as usize;
        Ok(Self {
            block_units: slow.geometry().pages_per_block * page_units,
            tiers: Tiers::new(tier, slow)?,
            erased: (0..geometry.blocks).collect(),
            held: vec![Held { block: NONE, page: 0 }; logical_blocks],
            order: Lists::new(logical_blocks, 1),
            compact_pages: pages_per_block * parameters.compact_percent / 100,
            counts: Counts::default(),
        })
    }

    fn write<M: Media>(&mut self, media: &mut M, request: &Request) {
        let (page_units, unit_sectors) = (self.tiers.fast.units_per_page(), self.tiers.fast.unit_sectors());
        let mut run = Run::whole(self.tiers.units(), request);
        while let Some(mut part) = run.take_group(self.block_units, unit_sectors) {
            let logical_block = part.unit / self.block_units;
            if self.order.contains(logical_block) {
                self.order.remove(0, logical_block);
            }
            self.order.push_back(0, logical_block);
            while let Some(piece) = part.take(page_units, unit_sectors) {
                self.write_page(media, &piece, logical_block);
            }
        }
    }

    /// Writes up to a page of a logical block to its fast block.
    fn write_page<M: Media>(&mut self, media: &mut M, piece: &Run, logical_block: u32) {
        self.make_room(media, logical_block);
        let Held { block, page } = &mut self.held[logical_block as usize];
        let to = self.tiers.fast.slots().geometry().ppa(BlockId(*block), *page);
        *page += 1;
        self.counts.updated_units += u64::from(self.tiers.count_in_log(piece.unit, piece.count));
        self.counts.log_units += u64::from(piece.count);
        self.counts.slc_pages += 1;
        self.tiers.write_fast(media, piece, to, Cause::Host);
    }

    /// Makes sure that a logical block holds a fast block with room for a page.
    #[inline]
    fn make_room<M: Media>(&mut self, media: &mut M, logical_block: u32) {
        let pages_per_block = self.tiers.fast.slots().pages_per_block();
        let Held { block, page } = self.held[logical_block as usize];
        if block != NONE {
            if page < pages_per_block {
                return;
            }
            if self.valid_pages(BlockId(block)) <= self.compact_pages {
                self.compact(media, logical_block);
                return;
            }
            self.move_down(media, logical_block);
        }
        while self.erased.len() <= ERASED_MIN {
            let Some(oldest) = self.order.iter(0).find(|&other| other != logical_block) else { break };
            self.order.remove(0, oldest);
            self.counts.evicted_blocks += 1;
            self.counts.evicted_block_pages += u64::from(self.held[oldest as usize].page);
            self.move_down(media, oldest);
            self.prefetch_oldest();
        }
        self.held[logical_block as usize] = Held { block: self.take_erased(), page: 0 };
    }

    fn take_erased(&mut self) -> u32 {
        self.erased.pop_front().unwrap_or_else(|| unreachable!("there is one more block than logical blocks hold"))
    }

    /// Number of pages of a fast block with valid data.
    fn valid_pages(&self, block: BlockId) -> u32 {
        let slots = self.tiers.fast.slots();
        let is_valid = |&page: &u32| slots.is_valid(slots.geometry().ppa(block, page));
        (0..slots.pages_per_block()).filter(is_valid).count() as u32
    }

    /// Moves the valid pages of a logical block's fast block to a fresh one.
    fn compact<M: Media>(&mut self, media: &mut M, logical_block: u32) {
        let fresh = Held { block: self.take_erased(), page: 0 };
        let Held { block, page } = std::mem::replace(&mut self.held[logical_block as usize], fresh);
        let geometry = *self.tiers.fast.slots().geometry();
        let mut next = 0;
        for from in (0..page).map(|page| geometry.ppa(BlockId(block), page)) {
            if self.tiers.fast.slots().is_valid(from) {
                self.tiers.copy_fast(media, from, geometry.ppa(BlockId(fresh.block), next), |_, _| {});
                next += 1;
            }
        }
        self.held[logical_block as usize].page = next;
        self.counts.slc_to_slc_pages += u64::from(next);
        self.release(media, block);
    }

    /// Demotes the valid data in a logical block's fast block, and takes the block from it.
    fn move_down<M: Media>(&mut self, media: &mut M, logical_block: u32) {
        let Held { block, page } = self.held[logical_block as usize];
        let slots = self.tiers.fast.slots();
        let first = slots.first_slot(slots.geometry().ppa(BlockId(block), 0));
        let end = slots.first_slot(slots.geometry().ppa(BlockId(block), page - 1)) + slots.slots();
        for slot in first..end {
            self.tiers.prefetch_emptied(slot, end, |_| true);
            // All units of a slow page that are in the log are in this block.
            if let Some(unit) = self.tiers.fast.slots().unit(slot) {
                self.counts.demoted_units += u64::from(self.tiers.demote(media, unit, |_| true));
                self.counts.slc_to_mlc_pages += 1;
            }
        }
        self.held[logical_block as usize] = Held { block: NONE, page: 0 };
        self.release(media, block);
    }

    /// Brings what the next evictions change into the processor's cache, a step further with each of them: the fast block of a
    /// logical block, the first unit in it, and this unit's entries. They were written long ago.
    fn prefetch_oldest(&self) {
        let slots = self.tiers.fast.slots();
        let first_slot = |logical_block: u32| {
            let block = self.held[logical_block as usize].block;
            (block != NONE).then(|| slots.first_slot(slots.geometry().ppa(BlockId(block), 0)))
        };
        let Some(oldest) = self.order.front(0) else { return };
        first_slot(oldest).into_iter().for_each(|slot| self.tiers.prefetch_unit(slot));
        let Some(second) = self.order.after(oldest) else { return };
        first_slot(second).into_iter().for_each(|slot| slots.prefetch(slot));
        if let Some(third) = self.order.after(second) {
            self.prefetch_held(third);
        }
    }

    /// Prefetches a logical block's fast block, and its place in the order.
    #[inline]
    fn prefetch_held(&self, logical_block: u32) {
        self.order.prefetch(logical_block);
        prefetch_index::prefetch_index(&self.held, logical_block as usize);
    }

    fn release<M: Media>(&mut self, media: &mut M, block: u32) {
        self.tiers.fast.erase(media, BlockId(block), Cause::Gc);
        self.erased.push_back(block);
    }
}

impl<M: Media> Scheme<M> for MixedFtl {
    fn fill(&mut self, media: &mut M) {
        self.tiers.fill(media);
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        match request.op {
            Op::Read => self.tiers.read(media, request),
            Op::Write => self.write(media, request),
            Op::Trim => self.tiers.trim(request),
        }
    }

    #[inline]
    fn prefetch(&self, far: &Request, near: &Request) {
        self.tiers.prefetch(far, near);
        self.prefetch_held(self.tiers.units().page_of(near.sector).0 / self.block_units);
    }

    fn metrics(&self, metrics: &mut Metrics) {
        let counts = &self.counts;
        let pages = counts.evicted_blocks * u64::from(self.tiers.fast.slots().pages_per_block());
        metrics.count("slc_pages", counts.slc_pages);
        metrics.count("slc_to_slc_pages", counts.slc_to_slc_pages);
        metrics.count("slc_to_mlc_pages", counts.slc_to_mlc_pages);
        metrics.count("mlc_to_mlc_pages", self.tiers.slow.copied_pages());
        metrics.count("demoted_sectors", counts.demoted_units * u64::from(self.tiers.fast.unit_sectors()));
        metrics.push("slc_hit_ratio", ratio(counts.updated_units, counts.log_units));
        metrics.push("evicted_block_use", ratio(counts.evicted_block_pages, pages));
        metrics.count("slc_erases", self.tiers.fast.erases());
        metrics.count("mlc_erases", self.tiers.slow.erases());
        let blocks = (self.held.len() * size_of::<Held>()) as u64;
        metrics.count("metadata_bytes", self.tiers.metadata_bytes() + blocks);
    }

    fn check(&self) -> Result<(), String> {
        let held = || self.held.iter().filter(|held| held.block != NONE);
        self.tiers.check(held().map(|held| (BlockId(held.block), held.page)))?;
        self.order.check()?;
        let blocks = self.tiers.fast.slots().geometry().blocks as usize;
        let mut seen = vec![false; blocks];
        for block in held().map(|held| held.block).chain(self.erased.iter().copied()) {
            if seen.get_mut(block as usize).is_none_or(|seen| std::mem::replace(seen, true)) {
                return Err(format!("fast block {block} is in two places, or does not exist"));
            }
        }
        if held().count() + self.erased.len() != blocks || self.erased.len() < ERASED_MIN {
            return Err(format!("{} fast blocks are held and {} erased", held().count(), self.erased.len()));
        }
        for (logical_block, held) in (0..).zip(&self.held) {
            if self.order.contains(logical_block) != (held.block != NONE) || (held.block != NONE) != (held.page > 0) {
                return Err(format!(
                    "logical block {logical_block} holds a fast block and has no rank or no page, or the reverse"
                ));
            }
        }
        let slots = self.tiers.fast.slots();
        let units = self.tiers.slow.logical_pages() * self.tiers.units_per_slow_page();
        let strayed = (0..units).find(|&unit| {
            let held = self.held[(unit / self.block_units) as usize].block;
            self.tiers.slot(unit).is_some_and(|slot| slots.block_of(slot).0 != held)
        });
        strayed.map_or(Ok(()), |unit| Err(format!("unit {unit} is not in the fast block of its logical block")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::{self, Chip};
    use crate::media::{Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
    use crate::scheme::RegionShape;
    use crate::units::Geometry;

    type Device = (Checked<SimMedia>, MixedFtl);

    /// 4 fast blocks of 4 pages; 8 logical blocks of 8 pages over 14 blocks, all written.
    fn device() -> Device {
        let region = |name: &str, pages: u32, blocks: u32| {
            let chip = Chip { pages_per_block: pages, ..chip::find(name).unwrap() };
            let geometry = Geometry::new(chip.page_bytes, pages, blocks, 1).unwrap();
            SimRegion { chip, geometry, channels: 1, faults: Faults::default() }
        };
        let regions = [region("comboftl-mlc-slc-mode", 4, 4), region("comboftl-mlc", 8, 14)];
        let shapes = regions.iter().map(|r| RegionShape { chip: r.chip.clone(), geometry: r.geometry }).collect();
        let shape = Shape { logical_sectors: 8 * 64, regions: shapes, disks: Vec::new(), seed: 1 };
        let mut scheme = MixedFtl::new(&shape, Parameters::default()).unwrap();
        let mut media =
            Checked::new(SimMedia::new(&regions, 1), &regions.each_ref().map(|region| (region.geometry, 0)));
        scheme.fill(&mut media);
        media.reset();
        (media, scheme)
    }

    /// Writes pages of a logical block.
    fn write((media, scheme): &mut Device, logical_block: u64, pages: &[u64]) {
        for page in pages {
            let request =
                Request { arrival_ns: 0, sector: logical_block * 64 + page * 8, sectors: 8, op: Op::Write, handle: 0 };
            media.begin(&request, 0);
            scheme.serve(media, &request);
            Scheme::<Checked<SimMedia>>::check(scheme).unwrap();
        }
    }

    #[test]
    fn the_logical_block_not_written_for_longest_gives_up_its_fast_block() {
        let mut device = device();
        write(&mut device, 0, &[0, 1]);
        write(&mut device, 1, &[0]);
        write(&mut device, 2, &[0]);
        write(&mut device, 0, &[2]);
        assert_eq!(device.1.counts.evicted_blocks, 0);
        write(&mut device, 3, &[0]);
        assert_eq!(device.1.order.iter(0).collect::<Vec<_>>(), [2, 0, 3]);
        assert_eq!((device.1.counts.slc_to_mlc_pages, device.1.counts.evicted_block_pages), (1, 1));
        assert_eq!(device.0.ledger().total(FlashOp::Program, Cause::MigrateDown), 1);
    }

    #[test]
    fn a_full_block_is_compacted_if_it_is_mostly_invalid_and_goes_down_if_not() {
        let mut device = device();
        write(&mut device, 0, &[0, 1, 0, 1, 0]);
        assert_eq!((device.1.counts.slc_to_slc_pages, device.1.counts.slc_to_mlc_pages), (2, 0));
        write(&mut device, 1, &[0, 1, 2, 2, 0]);
        assert_eq!((device.1.counts.slc_to_slc_pages, device.1.counts.slc_to_mlc_pages), (2, 3));
        assert_eq!(device.1.counts.evicted_blocks, 0);
        assert_eq!(device.1.held[1].page, 1);
    }
}
