//! A log that is mapped by units (`ComboFTL` 2010, sections 3.1 and 5.1, after the superblock FTL of Kang et al., EMSOFT 2006).
//!
//! A unit is a number of consecutive logical blocks. Its pages are written in order of arrival to its open physical
//! block, which is a lane of the log. When the open block is full:
//!
//! - a unit with as many blocks as it may have is collected by itself: the victim is its block with the fewest valid pages;
//! - otherwise, where erased blocks are short, the victim is the block with the fewest valid pages of all units;
//! - otherwise the unit takes the block that was erased longest ago, on any die.
//!
//! Valid pages of a victim go to the open block of their own unit and, when that is full, to a new one. The paper only
//! says that units have a limit and that blocks are collected within a unit. The limit chosen here is the unit's even
//! share of all physical blocks, plus two. A victim does not count towards it.
//!
//! An entry of the map only needs to tell the pages of one unit's blocks apart, which is how the paper saves memory.
//! Here the entry is a plain page address, because a simulator is optimised for speed.
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
//! This is the minimum spare area, not a sensible one: the open block of each unit is half empty on average, and no
//! other unit can use that half. Collecting costs more with smaller units (Fig. 16), and far more if there are fewer
//! spare blocks than units. Then some unit has no block to write to, and another unit must be packed to the last page
//! to release one.

use serde::{Deserialize, Serialize};

use super::{Blocks, Capacity, Collection, Log, Separation, check_pages};
use crate::region::page_table::PageTable;
use crate::region::valid_counts::ValidCounts;
use crate::save::Table;
use crate::units::{Geometry, RegionId};

const NONE: u32 = u32::MAX;

/// Division of a region into units, and when it is collected.
#[derive(Clone, Copy, Debug)]
pub struct UnitSettings {
    /// Logical blocks per unit, `q`; at most the number in the region.
    pub unit_blocks: u32,
    /// Erased blocks at or below which units are collected before one of them takes another; at least 1.
    pub reserve_blocks: u32,
    /// Whether idle time is used to collect up to `2 * reserve_blocks` erased blocks, as far as the spare area allows.
    pub idle_gc: bool,
}

/// Default number of logical blocks per unit: 4 MiB with the blocks of `ComboFTL`'s experiments.
const UNIT_BLOCKS: u32 = 8;

/// Default number of logical blocks per unit, for a region that holds `logical_pages` pages: 8, doubled while there are
/// as many units as spare blocks. Each unit needs one spare block to write to, and some must be left for collection.
pub fn default_unit_blocks(geometry: &Geometry, logical_pages: u64) -> u32 {
    let logical_blocks = logical_pages.div_ceil(u64::from(geometry.pages_per_block));
    let spare = u64::from(geometry.blocks).saturating_sub(logical_blocks);
    let mut unit_blocks = UNIT_BLOCKS;
    while u64::from(unit_blocks) < logical_blocks && logical_blocks.div_ceil(u64::from(unit_blocks)) >= spare {
        unit_blocks *= 2;
    }
    unit_blocks
}

/// Blocks that a unit may have beyond its share of all physical blocks.
const LIMIT_EXTRA: u64 = 2;

/// The unit that holds a block, and the block's position among the unit's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Holder {
    /// [`NONE`] while the block is erased or being collected.
    unit: u32,
    position: u32,
}

/// The units and the blocks that each holds.
#[derive(Debug, Serialize, Deserialize)]
pub struct Units {
    #[serde(with = "crate::save::fixed")]
    pages_per_block: u32,
    /// Logical pages per unit.
    #[serde(with = "crate::save::fixed")]
    unit_pages: u32,
    /// Maximum number of physical blocks of a unit.
    #[serde(with = "crate::save::fixed")]
    blocks_max: u32,
    #[serde(with = "crate::save::fixed")]
    reserve_blocks: u32,
    /// By unit: its number of blocks.
    held: Table<u32>,
    /// By unit: the numbers of its blocks, in `blocks_max` entries.
    blocks: Table<u32>,
    #[serde(with = "crate::save::sized")]
    holders: Vec<Holder>,
}

impl Log<Units, 1> {
    /// An erased region for `logical_pages` pages, mapped by units.
    ///
    /// # Errors
    /// Too little spare area; the error says how much is needed.
    pub fn by_units(
        region: RegionId,
        geometry: Geometry,
        logical_pages: u64,
        settings: UnitSettings,
    ) -> Result<Self, String> {
        let UnitSettings { unit_blocks, reserve_blocks, idle_gc } = settings;
        let logical_blocks = logical_pages.div_ceil(u64::from(geometry.pages_per_block));
        let needed = logical_blocks + u64::from(reserve_blocks);
        let blocks = u64::from(geometry.blocks);
        if needed > blocks {
            return Err(format!(
                "{blocks} blocks leave too little spare area: {logical_blocks} logical blocks and {reserve_blocks} that are kept \
                 erased make {needed}; enlarge the spare area or lower reserve_blocks"
            ));
        }
        let unit_blocks = u64::from(unit_blocks).clamp(1, logical_blocks.max(1));
        // ⌈q (1 + OP)⌉ + 2, where 1 + OP is the number of physical pages per logical page.
        let share = (u128::from(unit_blocks) * u128::from(geometry.pages())).div_ceil(u128::from(logical_pages.max(1)));
        let blocks_max = (share as u64 + LIMIT_EXTRA).min(blocks) as u32;
        let units = logical_blocks.div_ceil(unit_blocks) as u32;
        // Erased blocks form one queue, which begins with the dies in turn.
        let space = Blocks::new((geometry.blocks, 1), units, geometry.pages_per_block, 0);
        let capacity = Capacity::whole(&geometry, logical_pages);
        check_pages(&geometry, &capacity, space.room(), 0)?;
        // Each unit has an open block. If all spare blocks had to be erased, units would be collected again and again
        // for a few invalid pages.
        let attainable = ((blocks - logical_blocks) as u32).saturating_sub(units);
        let separation = Units {
            pages_per_block: geometry.pages_per_block,
            unit_pages: unit_blocks as u32 * geometry.pages_per_block,
            blocks_max,
            reserve_blocks,
            held: vec![0; units as usize].into(),
            blocks: vec![NONE; units as usize * blocks_max as usize].into(),
            holders: vec![Holder { unit: NONE, position: 0 }; geometry.blocks as usize],
        };
        let collection = Collection { gc_free_blocks: reserve_blocks, idle_gc };
        let idle_blocks = attainable.min(2 * reserve_blocks);
        let log = Self::over(region, (geometry, None), &capacity, space, (collection, idle_blocks), separation);
        Ok(Self { steps: Vec::new(), ..log })
    }
}

impl Units {
    /// Physical blocks of a unit.
    fn blocks_of(&self, unit: u32) -> &[u32] {
        let first = unit as usize * self.blocks_max as usize;
        &self.blocks[first..first + self.held[unit as usize] as usize]
    }

    /// Checks that each unit holds at most `blocks_max` blocks, and that each block names its unit.
    fn check_holders(&self) -> Result<(), String> {
        if self.held.iter().any(|&held| held > self.blocks_max) {
            return Err("a unit has more blocks than it may have".into());
        }
        let mut held = 0;
        for unit in 0..self.held.len() as u32 {
            for (position, &block) in (0..).zip(self.blocks_of(unit)) {
                if self.holders.get(block as usize) != Some(&Holder { unit, position }) {
                    return Err(format!("block {block} of unit {unit} does not know its place"));
                }
                held += 1;
            }
        }
        match self.holders.iter().filter(|holder| holder.unit != NONE).count() {
            known if known == held => Ok(()),
            known => Err(format!("units have {held} blocks, and {known} have a unit")),
        }
    }
}

impl Separation<1> for Units {
    const POOLED: bool = true;
    // Otherwise the unit might fill the block that the victim's remaining pages need, and exceed its limit.
    const AT_ONCE: bool = true;

    #[inline(always)]
    fn lane(&self, logical: u32) -> Option<u32> {
        Some(logical / self.unit_pages)
    }

    #[inline]
    fn victim_at_limit(&self, counts: &ValidCounts, unit: u32) -> Option<usize> {
        if self.held[unit as usize] < self.blocks_max {
            return None;
        }
        // A block that is not sealed has a higher cost than any sealed one.
        self.blocks_of(unit).iter().map(|&block| block as usize).min_by_key(|&block| counts.cost(block))
    }

    #[inline(always)]
    fn written(&mut self, _: u32, _: Option<usize>) -> usize {
        0
    }

    fn opened(&mut self, block: usize, unit: u32, _: usize) {
        let held = &mut self.held[unit as usize];
        self.blocks[unit as usize * self.blocks_max as usize + *held as usize] = block as u32;
        self.holders[block] = Holder { unit, position: *held };
        *held += 1;
    }

    fn collected(&mut self, block: usize) {
        let none = Holder { unit: NONE, position: 0 };
        let Holder { unit, position } = std::mem::replace(&mut self.holders[block], none);
        self.held[unit as usize] -= 1;
        let first = unit as usize * self.blocks_max as usize;
        let last = self.blocks[first + self.held[unit as usize] as usize];
        self.blocks[first + position as usize] = last;
        if last as usize != block {
            self.holders[last as usize].position = position;
        }
    }

    /// Entries with enough bits to tell the pages of a unit's blocks apart, and one value for an unmapped page. In
    /// addition, for each unit the numbers of up to `blocks_max` blocks.
    fn metadata_bytes(&self, logical_pages: u32) -> u64 {
        let blocks_max = u64::from(self.blocks_max);
        let bits = |numbers: u64| u64::from(u64::BITS - numbers.leading_zeros());
        let map = u64::from(logical_pages) * bits(blocks_max * u64::from(self.pages_per_block));
        let blocks = self.held.len() as u64 * blocks_max * bits(self.holders.len() as u64);
        (map + blocks).div_ceil(8)
    }

    /// Checks that a unit's pages and its open block lie in its own blocks, and that enough blocks are erased.
    fn check(&self, table: &PageTable, blocks: &Blocks<1>) -> Result<(), String> {
        let units = (self.unit_pages > 0).then(|| table.logical_pages().div_ceil(self.unit_pages));
        let lists = self.held.len() * self.blocks_max as usize;
        let of_log = (units, self.held.len(), self.blocks.len(), self.holders.len());
        if of_log != (Some(blocks.lanes()), blocks.lanes() as usize, lists, blocks.entries()) {
            return Err("units and blocks are not those of such a log".into());
        }
        self.check_holders()?;
        for (unit, open) in blocks.open_blocks() {
            if self.holders[open.block as usize].unit != unit {
                return Err(format!("unit {unit} writes to a block that is not its own"));
            }
        }
        for logical in 0..table.logical_pages() {
            let Some(page) = table.lookup(logical) else { continue };
            let block = table.geometry().block_of(page);
            if Some(self.holders[block.index()].unit) != self.lane(logical) {
                return Err(format!("logical page {logical} lies in block {} of another unit", block.0));
            }
        }
        match blocks.free_in_pool() {
            erased if erased < self.reserve_blocks => {
                Err(format!("{erased} blocks are erased, {} to be kept", self.reserve_blocks))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip;
    use crate::media::{Cause, Checked, Faults, FlashOp, Media, Part, SimMedia, SimRegion, Simulation};
    use crate::part::random;
    use crate::region::Space;
    use crate::request::{Op, Request};

    const REGION: RegionId = RegionId(0);

    fn media(geometry: Geometry) -> Checked<SimMedia> {
        let chip = chip::find("comboftl-mlc").unwrap();
        let region = SimRegion { chip, geometry, channels: geometry.dies, faults: Faults::default() };
        Checked::new(SimMedia::new(&[region], 1), &[(geometry, 0)])
    }

    fn write(media: &mut Checked<SimMedia>, space: &mut Log<Units, 1>, logical: u32) {
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
            let settings = UnitSettings { unit_blocks, reserve_blocks, idle_gc: false };
            let geometry = |blocks| Geometry::new(4096, pages_per_block, blocks, dies).unwrap();
            let error = Log::by_units(REGION, geometry(19 + reserve_blocks), logical_pages, settings).unwrap_err();
            assert!(error.contains(&format!("make {}", 20 + reserve_blocks)), "{error}");
            let geometry = geometry(20 + reserve_blocks);
            let mut space = Log::by_units(REGION, geometry, logical_pages, settings).unwrap();
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
                    1 => _ = space.invalidate(logical),
                    2 => (0..40.min(logical)).for_each(|page| _ = space.invalidate(page)),
                    _ => write(&mut media, &mut space, logical),
                }
                if step % 50 == 0 {
                    space.check().unwrap();
                }
            }
            space.check().unwrap();
            assert!(space.blocks.free_in_pool() >= reserve_blocks);
        }
    }

    #[test]
    fn there_are_no_more_units_than_spare_blocks_unless_it_is_asked_for() {
        let unit_blocks = |blocks, logical_blocks: u64| {
            default_unit_blocks(&Geometry::new(4096, 128, blocks, 1).unwrap(), logical_blocks * 128 - 1)
        };
        // The regions of the paper: all MLC, 5 %, 10 %, 15 % of the blocks in SLC mode.
        assert_eq!([5120, 4864, 4608, 4352].map(|blocks| unit_blocks(blocks, 4096)), [8, 8, 16, 32]);
        assert_eq!([unit_blocks(1010, 1000), unit_blocks(1001, 1000), unit_blocks(10, 20)], [128, 1024, 32]);
    }

    #[test]
    fn the_limit_follows_from_the_spare_area() {
        let limit = |unit_blocks, blocks, logical_blocks: u64| {
            let geometry = Geometry::new(4096, 128, blocks, 1).unwrap();
            let settings = UnitSettings { unit_blocks, reserve_blocks: 2, idle_gc: false };
            Log::by_units(REGION, geometry, logical_blocks * 128, settings).unwrap().separation.blocks_max
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
        let settings = UnitSettings { unit_blocks: 8, reserve_blocks: 2, idle_gc: false };
        let (mut space, mut media) = (Log::by_units(REGION, geometry, 64 * 16, settings).unwrap(), media(geometry));
        let mut state = 5;
        for _ in 0..5000 {
            write(&mut media, &mut space, 256 + random::below(&mut state, 128) as u32);
        }
        assert_eq!((space.separation.blocks_of(2).len(), space.blocks.free_in_pool()), (12, 80 - 12));
        assert!(space.erases() > 100);
        space.check().unwrap();
    }

    #[test]
    fn idle_time_erases_up_to_twice_the_reserve_and_no_more_than_it_lasts() {
        let geometry = Geometry::new(4096, 16, 80, 1).unwrap();
        let idle = |idle_gc, unit_blocks, budget_pages| {
            let settings = UnitSettings { unit_blocks, reserve_blocks: 4, idle_gc };
            let mut space = Log::by_units(REGION, geometry, 64 * 16, settings).unwrap();
            let (mut media, mut state) = (media(geometry), 3);
            for _ in 0..5000 {
                write(&mut media, &mut space, random::below(&mut state, 64 * 16) as u32);
            }
            assert_eq!(space.blocks.free_in_pool(), 4);
            media.begin_background();
            let copied = space.idle(&mut media, budget_pages);
            space.check().unwrap();
            (copied, space.blocks.free_in_pool())
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
            let settings = UnitSettings { unit_blocks, reserve_blocks: 2, idle_gc: false };
            let (mut space, mut media) =
                (Log::by_units(REGION, geometry, logical_pages, settings).unwrap(), media(geometry));
            let mut state = 42;
            for logical in 0..logical_pages as u32 {
                write(&mut media, &mut space, logical);
            }
            let mut pass = |space: &mut Log<Units, 1>| {
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

    /// Two logical blocks of four pages on eight physical ones, which the tests number from 10 on, as the paper does.
    fn paper(unit_blocks: u32, blocks_max: u32) -> (Log<Units, 1>, Checked<SimMedia>) {
        let geometry = Geometry::new(4096, 4, 8, 1).unwrap();
        let settings = UnitSettings { unit_blocks, reserve_blocks: 1, idle_gc: false };
        let mut space = Log::by_units(REGION, geometry, 8, settings).unwrap();
        space.separation.blocks_max = blocks_max;
        space.separation.blocks =
            space.separation.blocks[..space.blocks.lanes() as usize * blocks_max as usize].iter().copied().collect();
        (space, media(geometry))
    }

    fn write_all((space, media): &mut (Log<Units, 1>, Checked<SimMedia>), pages: &[u32]) {
        pages.iter().for_each(|&logical| write(media, space, logical));
    }

    /// Block, from 10 on, and page in it.
    fn place(space: &Log<Units, 1>, logical: u32) -> (u32, u32) {
        let page = space.lookup(logical).unwrap();
        (10 + space.geometry().block_of(page).0, space.geometry().page_of(page))
    }

    /// Section 3.1, Fig. 4a: one-block units with three physical blocks each. Collecting PB10 moves its valid pages into
    /// PB14.
    #[test]
    fn collecting_a_block_of_a_one_block_unit_moves_its_valid_pages_into_the_units_open_block() {
        let mut paper = paper(1, 3);
        write_all(&mut paper, &[2, 0, 3, 1, 6, 7, 4, 5, 0, 1, 0, 2, 5, 4, 5, 4, 1, 7]);
        let (mut space, mut media) = paper;
        assert_eq!((space.separation.blocks_of(0), space.separation.blocks_of(1)), (&[0, 2, 4][..], &[1, 3, 5][..]));
        let places = [0, 1, 2, 3].map(|logical| place(&space, logical));
        assert_eq!(places, [(12, 2), (14, 0), (12, 3), (10, 2)], "pages are written in the order in which they arrive");
        let victim = |space: &Log<Units, 1>, unit| space.separation.victim_at_limit(space.blocks.counts(), unit);
        assert_eq!(victim(&space, 0), Some(0), "PB10 has one valid page, PB12 two");
        assert!(space.collect_entry(&mut media, 0));
        assert_eq!(place(&space, 3), (14, 1));
        assert_eq!((space.separation.blocks_of(0), space.blocks.free_in_pool()), (&[4, 2][..], 3));
        assert!(victim(&space, 0).is_none() && victim(&space, 1).is_some(), "the other unit has its blocks for itself");
        space.check().unwrap();
    }

    /// Fig. 4b: the logical blocks of a unit share its physical blocks.
    #[test]
    fn pages_of_all_logical_blocks_of_a_unit_share_its_blocks_in_the_order_of_arrival() {
        let mut paper = paper(2, 6);
        write_all(&mut paper, &[7, 0, 4, 1, 0]);
        let space = paper.0;
        assert_eq!([0, 1, 4, 7].map(|logical| place(&space, logical)), [(11, 0), (10, 3), (10, 2), (10, 0)]);
        assert_eq!((space.blocks.lanes(), space.separation.blocks_of(0)), (1, &[0, 1][..]));
        space.check().unwrap();
    }

    #[test]
    fn valid_pages_fill_the_open_block_and_go_on_in_a_new_one() {
        let mut paper = paper(1, 3);
        write_all(&mut paper, &[0, 1, 2, 3, 0, 0, 0]);
        let (mut space, mut media) = paper;
        assert!(space.collect_entry(&mut media, 0));
        assert_eq!([1, 2, 3].map(|logical| place(&space, logical)), [(11, 3), (12, 0), (12, 1)]);
        assert_eq!(space.separation.blocks_of(0), [1, 2]);
    }
}
