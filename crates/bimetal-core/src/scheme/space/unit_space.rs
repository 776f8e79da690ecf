//! A region mapped by units, with greedy garbage collection (`ComboFTL` 2010, sections 3.1 and 5.1).
//!
//! A page goes to the open block of its unit. When that is full:
//!
//! - a unit with as many blocks as it may have is collected by itself: the victim is its block with the fewest valid pages;
//! - otherwise, where erased blocks are short, the victim is the block with the fewest valid pages of all units;
//! - otherwise the unit takes an erased block.
//!
//! Valid pages of a victim go to the open block of their own unit and, when that is full, to a new one. The paper says no
//! more than that units have a limit and that blocks are collected within a unit. The limit chosen here is what the unit
//! would have if all physical blocks were dealt out evenly, and two more. A victim does not count towards it.
//!
//! # Progress
//!
//! Collecting begins with at least `reserve_blocks` erased blocks; a victim takes at most one and gives one back, and fewer
//! pages are invalid than before. So it ends, at the latest where all sealed blocks are full of valid pages. The unit that
//! wants to write then has fewer of them than logical blocks, because the page to be written is not mapped. Were no more
//! than `reserve_blocks` erased, and the region had as many beyond its logical blocks, another unit would have a block too
//! many: all its pages valid in sealed blocks, and an open block. But the page last placed in a unit lies in its open
//! block, if it has one, and is valid there if all pages of the unit are mapped. So more than `reserve_blocks` are erased:
//! that many blocks beyond the logical ones suffice, and open blocks need never be victims.
//!
//! A unit at its limit has more blocks than its data fill, and all are sealed: one has an invalid page, and collecting it
//! leaves room in a new open block.
//!
//! That is the least spare area, not a sensible one: the open block of each unit is half empty on average, and no other unit
//! can use that half. Collecting costs more the smaller the units (Fig. 16), and far more where there are fewer spare blocks
//! than units: then some unit has none to write to, and another must be packed to the last page to give one up.

use serde::{Deserialize, Serialize};

use crate::media::{Cause, CellMode, Media, Part, Stream};
use crate::region::Space;
use crate::region::page_table::Run;
use crate::region::unit_map::UnitMap;
use crate::units::{BlockId, Geometry, Ppa, RegionId};

/// How a region is divided and when it is collected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Logical blocks of a unit, `q`; no more than the region has.
    pub unit_blocks: u32,
    /// Erased blocks at or below which units are collected before one of them takes another; at least 1.
    pub reserve_blocks: u32,
    /// Whether idle time is used to collect up to twice as many, as far as the spare area allows.
    pub idle_gc: bool,
}

/// Logical blocks of a unit where it is not said how many: 4 MiB of the blocks that `ComboFTL`'s experiments have.
const UNIT_BLOCKS: u32 = 8;

/// Logical blocks of a unit of a region for so many pages if nothing speaks for another size: 8, doubled for as long as
/// there are more units than spare blocks.
pub fn default_unit_blocks(geometry: &Geometry, logical_pages: u64) -> u32 {
    let logical_blocks = logical_pages.div_ceil(u64::from(geometry.pages_per_block));
    let spare = u64::from(geometry.blocks).saturating_sub(logical_blocks);
    let mut unit_blocks = UNIT_BLOCKS;
    while u64::from(unit_blocks) < logical_blocks && logical_blocks.div_ceil(u64::from(unit_blocks)) > spare {
        unit_blocks *= 2;
    }
    unit_blocks
}

/// Blocks that a unit may have beyond its share of all physical blocks.
const LIMIT_EXTRA: u64 = 2;

/// The region's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct UnitSpace {
    #[serde(with = "crate::save::fixed")]
    region: RegionId,
    units: UnitMap,
    #[serde(with = "crate::save::fixed")]
    settings: Settings,
    /// Erased blocks up to which idle time is used.
    #[serde(with = "crate::save::fixed")]
    idle_blocks: u32,
    erases: u64,
    copied_pages: u64,
}

impl UnitSpace {
    /// An erased region for `logical_pages` pages.
    ///
    /// # Errors
    /// Too little spare area, and how much it takes.
    pub fn new(region: RegionId, geometry: Geometry, logical_pages: u64, settings: Settings) -> Result<Self, String> {
        let logical_blocks = logical_pages.div_ceil(u64::from(geometry.pages_per_block));
        let needed = logical_blocks + u64::from(settings.reserve_blocks);
        let blocks = u64::from(geometry.blocks);
        if needed > blocks {
            return Err(format!(
                "{blocks} blocks leave too little spare area: {logical_blocks} logical blocks and {} that are kept erased \
                 make {needed}; enlarge the spare area or lower reserve_blocks",
                settings.reserve_blocks
            ));
        }
        let unit_blocks = u64::from(settings.unit_blocks).min(logical_blocks.max(1));
        // ⌈q (1 + OP)⌉ + 2, where 1 + OP is what the region has per logical page.
        let share = (u128::from(unit_blocks) * u128::from(geometry.pages())).div_ceil(u128::from(logical_pages.max(1)));
        let blocks_max = (share as u64 + LIMIT_EXTRA).min(blocks);
        let units = UnitMap::new(geometry, logical_pages, unit_blocks as u32, blocks_max as u32)?;
        // Each unit has an open block. Were all blocks of the spare area to be erased, units would be copied for the sake of
        // a few invalid pages, again and again.
        let attainable = ((blocks - logical_blocks) as u32).saturating_sub(units.units());
        let idle_blocks = attainable.min(2 * settings.reserve_blocks);
        Ok(Self { region, units, settings, idle_blocks, erases: 0, copied_pages: 0 })
    }

    /// Makes room in a unit for one more page.
    #[inline]
    fn make_room<M: Media>(&mut self, media: &mut M, unit: u32) {
        while self.units.needs_block(unit) {
            let victim = if self.units.is_at_limit(unit) {
                self.units.victim_of(unit)
            } else if self.units.free_blocks() <= self.settings.reserve_blocks {
                self.units.victim()
            } else {
                return;
            };
            let victim =
                victim.unwrap_or_else(|| unreachable!("the spare area was checked: something can be collected"));
            self.collect(media, victim);
        }
    }

    /// Moves the valid pages of a block to others of its unit and erases it.
    fn collect<M: Media>(&mut self, media: &mut M, victim: BlockId) {
        let unit = self.units.detach(victim);
        let mut run = Run::default();
        let mut page = 0;
        while let Some((to, next)) = self.units.relocate(victim, page, unit, &mut run) {
            media.copy_run(self.region, run.pages(), to, Stream::ONLY, Cause::Gc);
            self.copied_pages += run.pages().len() as u64;
            page = next;
        }
        media.erase(self.region, victim, CellMode::Native, Cause::Gc);
        self.units.release(victim);
        self.erases += 1;
    }
}

impl Space for UnitSpace {
    fn region(&self) -> RegionId {
        self.region
    }

    #[inline(always)]
    fn geometry(&self) -> &Geometry {
        self.units.geometry()
    }

    fn logical_pages(&self) -> u32 {
        self.units.logical_pages()
    }

    #[inline(always)]
    fn lookup(&self, logical: u32) -> Option<Ppa> {
        self.units.lookup(logical)
    }

    #[inline(always)]
    fn invalidate(&mut self, logical: u32) {
        self.units.invalidate(logical);
    }

    #[inline(always)]
    fn elsewhere(&self, logical: u32) -> Option<u32> {
        self.units.elsewhere(logical)
    }

    fn places_elsewhere(&self) -> u32 {
        self.units.places_elsewhere()
    }

    #[inline(always)]
    fn put_elsewhere(&mut self, logical: u32, place: u32) {
        self.units.put_elsewhere(logical, place);
    }

    #[inline]
    fn write<M: Media>(&mut self, media: &mut M, logical: u32, parts: &[Part<M::Data>], cause: Cause) {
        self.units.invalidate(logical);
        let unit = self.units.unit_of(logical);
        self.make_room(media, unit);
        let ppa = self.units.place(logical, unit);
        media.program(self.region, ppa, parts, Stream::ONLY, cause);
    }

    fn idle<M: Media>(&mut self, media: &mut M, budget_pages: u32) -> u32 {
        if !self.settings.idle_gc {
            return 0;
        }
        let before = self.copied_pages;
        let budget = before + u64::from(budget_pages);
        while self.units.free_blocks() < self.idle_blocks && self.copied_pages < budget {
            let Some(victim) = self.units.victim() else { break };
            self.collect(media, victim);
        }
        (self.copied_pages - before) as u32
    }

    #[inline]
    fn prefetch_entry(&self, logical: u32) {
        self.units.prefetch_entry(logical);
    }

    #[inline]
    fn prefetch_page(&self, logical: u32) {
        self.units.prefetch_page(logical);
    }

    fn erases(&self) -> u64 {
        self.erases
    }

    fn copied_pages(&self) -> u64 {
        self.copied_pages
    }

    /// Entries of as few bits as tell the pages of a unit's blocks apart from each other and from none, and for each unit the
    /// numbers of the blocks that it may have.
    fn metadata_bytes(&self) -> u64 {
        let blocks_max = u64::from(self.units.blocks_max());
        let unit_slots = blocks_max * u64::from(self.geometry().pages_per_block);
        let bits = |numbers: u64| u64::from(u64::BITS - numbers.leading_zeros());
        let map = u64::from(self.units.logical_pages()) * bits(unit_slots);
        let blocks = u64::from(self.units.units()) * blocks_max * bits(u64::from(self.geometry().blocks));
        (map + blocks).div_ceil(8)
    }

    fn check(&self) -> Result<(), String> {
        self.units.check()?;
        let (erased, reserve) = (self.units.free_blocks(), self.settings.reserve_blocks);
        if erased < reserve { Err(format!("{erased} blocks are erased, {reserve} to be kept")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
    use crate::part::random;
    use crate::request::{Op, Request};

    const REGION: RegionId = RegionId(0);

    fn media(geometry: Geometry) -> Checked<SimMedia> {
        let chip = chip::find("comboftl-mlc").unwrap();
        let region = SimRegion { chip, geometry, channels: geometry.dies, faults: Faults::default() };
        Checked::new(SimMedia::new(&[region], 1), &[(geometry, 0)])
    }

    fn write(media: &mut Checked<SimMedia>, space: &mut UnitSpace, logical: u32) {
        media.begin(&Request { arrival_ns: 0, sector: 0, sectors: 8, op: Op::Write, handle: 0 }, 0);
        let host = Part { data: media.host(), from: 0, to: 0, sectors: 8 };
        space.write(media, logical, &[host], Cause::Host);
    }

    /// With `reserve_blocks` beyond the logical blocks everything still works, whatever the units: random writes, the same
    /// pages again and again, and invalidations that empty blocks.
    #[test]
    fn the_least_spare_area_is_enough_and_less_is_refused() {
        let (pages_per_block, logical_pages) = (16, 16 * 20 - 5);
        for (unit_blocks, reserve_blocks, dies) in
            [(1, 1, 1), (1, 2, 2), (3, 1, 1), (8, 3, 3), (20, 1, 1), (1000, 2, 2)]
        {
            let settings = Settings { unit_blocks, reserve_blocks, idle_gc: false };
            let geometry = |blocks| Geometry::new(4096, pages_per_block, blocks, dies).unwrap();
            let error = UnitSpace::new(REGION, geometry(19 + reserve_blocks), logical_pages, settings).unwrap_err();
            assert!(error.contains(&format!("make {}", 20 + reserve_blocks)), "{error}");
            let geometry = geometry(20 + reserve_blocks);
            let mut space = UnitSpace::new(REGION, geometry, logical_pages, settings).unwrap();
            let mut media = media(geometry);
            let mut state = u64::from(unit_blocks);
            let mut draw = |bound: u64| random::below(&mut state, bound) as u32;
            for logical in 0..logical_pages as u32 {
                write(&mut media, &mut space, logical);
            }
            for step in 0..4000 {
                let logical = draw(logical_pages);
                match draw(10) {
                    0 => (0..draw(20)).for_each(|_| write(&mut media, &mut space, logical)),
                    1 => space.invalidate(logical),
                    2 => (0..40.min(logical)).for_each(|page| space.invalidate(page)),
                    _ => write(&mut media, &mut space, logical),
                }
                if step % 50 == 0 {
                    space.check().unwrap();
                }
            }
            space.check().unwrap();
            assert!(space.units.free_blocks() >= reserve_blocks);
        }
    }

    #[test]
    fn there_are_no_more_units_than_spare_blocks_unless_it_is_asked_for() {
        let unit_blocks = |blocks, logical_blocks: u64| {
            default_unit_blocks(&Geometry::new(4096, 128, blocks, 1).unwrap(), logical_blocks * 128 - 1)
        };
        // The regions of the paper: all MLC, 5 %, 10 %, 15 % of the blocks in SLC mode.
        assert_eq!([5120, 4864, 4608, 4352].map(|blocks| unit_blocks(blocks, 4096)), [8, 8, 8, 16]);
        assert_eq!([unit_blocks(1010, 1000), unit_blocks(1001, 1000), unit_blocks(10, 20)], [128, 1024, 32]);
    }

    #[test]
    fn the_limit_follows_from_the_spare_area() {
        let limit = |unit_blocks, blocks, logical_blocks: u64| {
            let geometry = Geometry::new(4096, 128, blocks, 1).unwrap();
            let settings = Settings { unit_blocks, reserve_blocks: 2, idle_gc: false };
            UnitSpace::new(REGION, geometry, logical_blocks * 128, settings).unwrap().units.blocks_max()
        };
        // Section 6.1's MLC-only drive: 25 % over-provisioning.
        assert_eq!([1, 2, 8, 32].map(|unit_blocks| limit(unit_blocks, 5120, 4096)), [4, 5, 12, 42]);
        assert_eq!(limit(8, 4864, 4096), 12, "18.75 %: 9.5 blocks rounded up, and two");
        assert_eq!(limit(10_000, 5120, 4096), 5120, "one unit of all blocks");
    }

    /// A unit that is written alone has no more than its limit, though erased blocks are left.
    #[test]
    fn a_unit_at_its_limit_is_collected_by_itself() {
        let geometry = Geometry::new(4096, 16, 80, 1).unwrap();
        let settings = Settings { unit_blocks: 8, reserve_blocks: 2, idle_gc: false };
        let (mut space, mut media) = (UnitSpace::new(REGION, geometry, 64 * 16, settings).unwrap(), media(geometry));
        let mut state = 5;
        for _ in 0..5000 {
            write(&mut media, &mut space, 256 + random::below(&mut state, 128) as u32);
        }
        assert_eq!((space.units.blocks_of(2).len(), space.units.free_blocks()), (12, 80 - 12));
        assert!(space.erases() > 100);
        space.check().unwrap();
    }

    #[test]
    fn idle_time_erases_up_to_twice_the_reserve_and_no_more_than_it_lasts() {
        let geometry = Geometry::new(4096, 16, 80, 1).unwrap();
        let idle = |idle_gc, unit_blocks, budget_pages| {
            let settings = Settings { unit_blocks, reserve_blocks: 4, idle_gc };
            let mut space = UnitSpace::new(REGION, geometry, 64 * 16, settings).unwrap();
            let (mut media, mut state) = (media(geometry), 3);
            for _ in 0..5000 {
                write(&mut media, &mut space, random::below(&mut state, 64 * 16) as u32);
            }
            assert_eq!(space.units.free_blocks(), 4);
            media.begin_background();
            let copied = space.idle(&mut media, budget_pages);
            space.check().unwrap();
            (copied, space.units.free_blocks())
        };
        assert_eq!(idle(false, 16, 1000), (0, 4));
        assert_eq!(idle(true, 16, 1000).1, 8);
        let (copied, free) = idle(true, 16, 10);
        assert!((10..26).contains(&copied) && free < 8, "a block has up to 15 valid pages: {copied}, {free}");
        assert_eq!(idle(true, 1, 1000), (0, 4), "the spare area goes into open blocks");
    }

    /// Fig. 16: collecting costs less the larger the unit, and more memory.
    #[test]
    fn larger_units_cost_fewer_copies_and_more_map() {
        let geometry = Geometry::new(4096, 64, 320, 1).unwrap();
        let logical_pages = 256 * 64;
        let mut costs = Vec::new();
        for unit_blocks in [1, 2, 4, 8, 16, 32] {
            let settings = Settings { unit_blocks, reserve_blocks: 2, idle_gc: false };
            let (mut space, mut media) =
                (UnitSpace::new(REGION, geometry, logical_pages, settings).unwrap(), media(geometry));
            let mut state = 42;
            for logical in 0..logical_pages as u32 {
                write(&mut media, &mut space, logical);
            }
            let mut pass = |space: &mut UnitSpace| {
                for _ in 0..2 * logical_pages {
                    write(&mut media, space, random::below(&mut state, logical_pages) as u32);
                }
                (space.copied_pages(), media.ledger().total(FlashOp::Program, Cause::Gc))
            };
            let (warm, _) = pass(&mut space);
            let (copied, programmed) = pass(&mut space);
            assert_eq!(copied, programmed);
            let per_write = (copied - warm) as f64 / (2 * logical_pages) as f64;
            println!(
                "units of {unit_blocks}: {per_write:.3} copies per write, {} bytes of map",
                space.metadata_bytes()
            );
            costs.push((per_write, space.metadata_bytes()));
        }
        assert!(costs.windows(2).all(|pair| pair[0].0 > pair[1].0), "copies: {costs:?}");
        assert!(costs[0].1 < costs[5].1, "map: {costs:?}");
    }
}
