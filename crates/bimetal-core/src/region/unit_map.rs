//! A region mapped by units: a page lies anywhere within the physical blocks of its unit (`ComboFTL` 2010, section 3.1, after
//! the superblock FTL of Kang et al., EMSOFT 2006).
//!
//! A unit is a number of consecutive logical blocks. Its pages are written in the order in which they arrive to its open
//! physical block; when that is full, it takes an erased one, up to a limit of blocks. A full block is sealed and can be a
//! victim. An entry of the map need only tell the pages of one unit's blocks apart, which is what the paper saves
//! memory by; here it is a plain page address, because a simulator looks for speed.
//!
//! Erased blocks form one queue, oldest first, that begins with the dies in turn. All dies are collected together: a unit
//! takes whichever block is next.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::page_table::{PageTable, Run};
use super::valid_counts::ValidCounts;
use crate::units::{BlockId, Geometry, Ppa};

const NONE: u32 = u32::MAX;

/// What a unit has.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Unit {
    /// Next page of its open block; [`Ppa::NONE`] where it has none.
    next: Ppa,
    /// Number of its physical blocks.
    blocks: u32,
}

/// The unit that has a block, and the block's position among those of the unit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Holder {
    /// [`NONE`] while it is erased or being collected.
    unit: u32,
    position: u32,
}

/// The region's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct UnitMap {
    table: PageTable,
    counts: ValidCounts,
    /// Logical pages of a unit.
    #[serde(with = "crate::save::fixed")]
    unit_pages: u32,
    /// Physical blocks that a unit may have.
    #[serde(with = "crate::save::fixed")]
    blocks_max: u32,
    #[serde(with = "crate::save::sized")]
    units: Vec<Unit>,
    /// Physical blocks of each unit, `blocks_max` entries apart.
    #[serde(with = "crate::save::table")]
    blocks: Vec<u32>,
    #[serde(with = "crate::save::sized")]
    holders: Vec<Holder>,
    free: VecDeque<u32>,
}

impl UnitMap {
    /// An erased region for `logical_pages` pages in units of `unit_blocks` blocks, each of which may have up to
    /// `blocks_max` physical ones.
    ///
    /// # Errors
    /// Blocks with more pages than are counted, and fewer physical blocks for a unit than its data and the next page need.
    pub fn new(geometry: Geometry, logical_pages: u64, unit_blocks: u32, blocks_max: u32) -> Result<Self, String> {
        if unit_blocks == 0 || blocks_max <= unit_blocks {
            return Err(format!("a unit of {unit_blocks} blocks cannot be kept in {blocks_max}; it takes one more"));
        }
        let unit_pages = unit_blocks.saturating_mul(geometry.pages_per_block);
        let units = logical_pages.div_ceil(u64::from(unit_pages)) as usize;
        Ok(Self {
            table: PageTable::new(geometry, logical_pages),
            counts: ValidCounts::new(geometry.blocks as usize, geometry.pages_per_block)?,
            unit_pages,
            blocks_max,
            units: vec![Unit { next: Ppa::NONE, blocks: 0 }; units],
            blocks: vec![NONE; units * blocks_max as usize],
            holders: vec![Holder { unit: NONE, position: 0 }; geometry.blocks as usize],
            // Block `b` lies on die `b % dies`.
            free: (0..geometry.blocks).collect(),
        })
    }

    /// Blocks and pages.
    #[inline(always)]
    pub fn geometry(&self) -> &Geometry {
        self.table.geometry()
    }

    /// Number of logical pages.
    pub fn logical_pages(&self) -> u32 {
        self.table.logical_pages()
    }

    /// Number of units.
    pub fn units(&self) -> u32 {
        self.units.len() as u32
    }

    /// Physical blocks that a unit may have.
    pub fn blocks_max(&self) -> u32 {
        self.blocks_max
    }

    /// The unit of a logical page.
    #[inline(always)]
    pub fn unit_of(&self, logical: u32) -> u32 {
        logical / self.unit_pages
    }

    /// Where a logical page is, if anywhere.
    #[inline(always)]
    pub fn lookup(&self, logical: u32) -> Option<Ppa> {
        self.table.lookup(logical)
    }

    /// The place outside of the region that [`Self::put_elsewhere`] gave a logical page.
    #[inline(always)]
    pub fn elsewhere(&self, logical: u32) -> Option<u32> {
        self.table.elsewhere(logical)
    }

    /// How many places outside of the region can be told from its pages.
    pub fn places_elsewhere(&self) -> u32 {
        self.table.places_elsewhere()
    }

    /// Forgets the copy of a logical page, which is at this place outside of the region until it is invalidated or written.
    #[inline(always)]
    pub fn put_elsewhere(&mut self, logical: u32, place: u32) {
        self.invalidate(logical);
        self.table.put_elsewhere(logical, place);
    }

    /// Brings a logical page's map entry into the processor's cache.
    #[inline]
    pub fn prefetch_entry(&self, logical: u32) {
        self.table.prefetch_map(logical);
    }

    /// Brings what a logical page's map entry points to into the processor's cache.
    #[inline]
    pub fn prefetch_page(&self, logical: u32) {
        if let Some(ppa) = self.table.lookup(logical) {
            self.table.prefetch_valid(ppa);
            self.counts.prefetch(self.geometry().block_of(ppa).index());
        }
    }

    /// Forgets the copy of a logical page; what it occupied can be collected.
    #[inline(always)]
    pub fn invalidate(&mut self, logical: u32) {
        if let Some(ppa) = self.table.clear(logical) {
            self.counts.invalidate(self.table.geometry().block_of(ppa).index());
        }
    }

    /// Erased blocks.
    #[inline]
    pub fn free_blocks(&self) -> u32 {
        self.free.len() as u32
    }

    /// Physical blocks of a unit.
    pub fn blocks_of(&self, unit: u32) -> &[u32] {
        let first = unit as usize * self.blocks_max as usize;
        &self.blocks[first..first + self.units[unit as usize].blocks as usize]
    }

    /// Whether the next page of a unit takes an erased block.
    #[inline(always)]
    pub fn needs_block(&self, unit: u32) -> bool {
        self.units[unit as usize].next == Ppa::NONE
    }

    /// Whether a unit has as many blocks as it may have.
    #[inline]
    pub fn is_at_limit(&self, unit: u32) -> bool {
        self.units[unit as usize].blocks == self.blocks_max
    }

    /// Valid pages of a block.
    pub fn valid_pages(&self, block: BlockId) -> u32 {
        self.counts.valid_pages(block.index())
    }

    /// Maps an unmapped logical page of a unit onto the next page of the unit's open block.
    #[inline(always)]
    pub fn place(&mut self, logical: u32, unit: u32) -> Ppa {
        let ppa = self.open_page(unit);
        self.table.assign(logical, ppa);
        self.fill(unit, ppa, 1);
        ppa
    }

    /// The sealed block with the fewest valid pages of all units, the first of equals; none if all are full of valid pages.
    pub fn victim(&mut self) -> Option<BlockId> {
        let block = self.counts.fewest(0..self.holders.len())?;
        Some(BlockId(block as u32))
    }

    /// The sealed block of a unit with the fewest valid pages; none if all are full of valid pages.
    pub fn victim_of(&self, unit: u32) -> Option<BlockId> {
        let fewest = self.blocks_of(unit).iter().copied().min_by_key(|&block| self.counts.cost(block as usize))?;
        (self.counts.cost(fewest as usize) < self.geometry().pages_per_block).then_some(BlockId(fewest))
    }

    /// Takes a victim out of its unit before its pages are moved: it counts towards the unit's limit no longer. Returns
    /// the unit.
    pub fn detach(&mut self, victim: BlockId) -> u32 {
        debug_assert!(self.counts.is_sealed(victim.index()));
        let Holder { unit, position } =
            std::mem::replace(&mut self.holders[victim.index()], Holder { unit: NONE, position: 0 });
        let space = &mut self.units[unit as usize];
        space.blocks -= 1;
        let first = unit as usize * self.blocks_max as usize;
        let last = self.blocks[first + space.blocks as usize];
        self.blocks[first + position as usize] = last;
        if last != victim.0 {
            self.holders[last as usize].position = position;
        }
        self.counts.unseal(victim.index());
        unit
    }

    /// Moves valid pages of a detached victim from page `page` on to consecutive pages of its unit's open block, as many as
    /// a run and that block hold. Puts their old places into `run`; returns the first new place and the page to go on
    /// from, or nothing if no valid page is left.
    #[inline]
    pub fn relocate(&mut self, victim: BlockId, page: u32, unit: u32, run: &mut Run) -> Option<(Ppa, u32)> {
        let pages = self.table.valid_word(victim, page)?;
        let to = self.open_page(unit);
        let room = self.geometry().pages_per_block - self.geometry().page_of(to);
        self.table.move_run(pages, to, room, run);
        let moved = run.pages();
        self.counts.subtract(victim.index(), moved.len());
        let last = moved[moved.len() - 1];
        self.fill(unit, to, moved.len());
        Some((to, self.geometry().page_of(last) + 1))
    }

    /// An emptied victim is erased and free again.
    pub fn release(&mut self, block: BlockId) {
        debug_assert_eq!(self.valid_pages(block), 0);
        self.free.push_back(block.0);
    }

    /// The next page of a unit's open block; where it has none, it takes the block that has been erased for longest.
    #[inline(always)]
    fn open_page(&mut self, unit: u32) -> Ppa {
        let next = self.units[unit as usize].next;
        if next == Ppa::NONE { self.attach(unit) } else { next }
    }

    /// Gives a unit the block that has been erased for longest; returns its first page.
    fn attach(&mut self, unit: u32) -> Ppa {
        let block =
            self.free.pop_front().unwrap_or_else(|| unreachable!("a scheme collects before it runs out of blocks"));
        let space = &mut self.units[unit as usize];
        debug_assert!(space.blocks < self.blocks_max);
        self.blocks[unit as usize * self.blocks_max as usize + space.blocks as usize] = block;
        self.holders[block as usize] = Holder { unit, position: space.blocks };
        space.blocks += 1;
        self.table.geometry().ppa(BlockId(block), 0)
    }

    /// Accounts for `pages` valid pages from `first` on in a unit's open block, which is sealed once it is full.
    #[inline(always)]
    fn fill(&mut self, unit: u32, first: Ppa, pages: usize) {
        let geometry = self.table.geometry();
        let block = geometry.block_of(first).index();
        self.counts.add(block, pages);
        let full = geometry.page_of(first) + pages as u32 == geometry.pages_per_block;
        self.units[unit as usize].next = if full { Ppa::NONE } else { Ppa(first.0 + pages as u32) };
        if full {
            self.counts.seal(block);
        }
    }

    /// Checks that map, owners, validity and counts agree, that each block is erased or has one unit, that a unit's pages
    /// lie in its own blocks, and that none has more of them than it may.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self) -> Result<(), String> {
        self.check_numbers()?;
        let valid = self.table.check()?;
        self.counts.check()?;
        for (block, (&counted, holder)) in valid.iter().zip(&self.holders).enumerate() {
            let kept = self.counts.valid_pages(block);
            let open = holder.unit != NONE && self.is_open(block as u32, holder.unit);
            if counted != kept {
                return Err(format!("block {block} has {counted} valid pages and counts {kept}"));
            }
            if self.counts.is_sealed(block) != (holder.unit != NONE && !open) {
                return Err(format!("block {block} can be a victim and is erased or open, or cannot and is full"));
            }
        }
        for logical in 0..self.logical_pages() {
            let Some(ppa) = self.lookup(logical) else { continue };
            let block = self.geometry().block_of(ppa);
            let Holder { unit, .. } = self.holders[block.index()];
            if unit != self.unit_of(logical) {
                return Err(format!("logical page {logical} lies in block {} of another unit", block.0));
            }
            let next = self.units[unit as usize].next;
            if self.is_open(block.0, unit) && ppa >= next {
                return Err(format!("logical page {logical} lies in a page of block {} not yet written", block.0));
            }
        }
        self.check_blocks()
    }

    /// Checks that all blocks and units that are named exist.
    fn check_numbers(&self) -> Result<(), String> {
        let is_block = |&block: &u32| block < self.geometry().blocks;
        let is_unit = |unit: u32| unit == NONE || unit < self.units();
        if !self.free.iter().all(is_block) || !self.holders.iter().all(|holder| is_unit(holder.unit)) {
            return Err("a block or a unit is named that does not exist".into());
        }
        for (number, unit) in (0..).zip(&self.units) {
            let opens = unit.next == Ppa::NONE || self.geometry().has_page(unit.next);
            if !opens || unit.blocks > self.blocks_max || !self.blocks_of(number).iter().all(is_block) {
                return Err(format!("unit {number} has blocks or pages that do not exist"));
            }
        }
        Ok(())
    }

    fn is_open(&self, block: u32, unit: u32) -> bool {
        let next = self.units[unit as usize].next;
        next != Ppa::NONE && self.geometry().block_of(next).0 == block
    }

    /// Checks that each block is in exactly one place.
    fn check_blocks(&self) -> Result<(), String> {
        let mut seen = vec![false; self.holders.len()];
        let mut see = |block: u32| {
            let twice = std::mem::replace(&mut seen[block as usize], true);
            if twice { Err(format!("block {block} is in two places")) } else { Ok(()) }
        };
        for &block in &self.free {
            see(block)?;
            if self.holders[block as usize].unit != NONE {
                return Err(format!("block {block} is erased and has a unit"));
            }
        }
        for (number, unit) in self.units.iter().enumerate() {
            for (position, &block) in self.blocks_of(number as u32).iter().enumerate() {
                see(block)?;
                let holder = self.holders[block as usize];
                if (holder.unit as usize, holder.position as usize) != (number, position) {
                    return Err(format!("block {block} of unit {number} does not know its place"));
                }
            }
            if unit.next != Ppa::NONE && self.holders[self.geometry().block_of(unit.next).index()].unit != number as u32
            {
                return Err(format!("unit {number} writes to a block that is not its own"));
            }
        }
        match seen.iter().position(|&seen| !seen) {
            Some(block) => Err(format!("block {block} is neither erased nor in a unit")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two logical blocks of four pages on eight physical ones, which the tests number from 10 on, as the paper does.
    fn units(unit_blocks: u32, blocks_max: u32) -> UnitMap {
        UnitMap::new(Geometry::new(4096, 4, 8, 1).unwrap(), 8, unit_blocks, blocks_max).unwrap()
    }

    fn write(units: &mut UnitMap, pages: &[u32]) {
        for &logical in pages {
            units.invalidate(logical);
            units.place(logical, units.unit_of(logical));
        }
        units.check().unwrap();
    }

    fn collect(units: &mut UnitMap, victim: BlockId) {
        let unit = units.detach(victim);
        let mut run = Run::default();
        let mut page = 0;
        while let Some((_, next)) = units.relocate(victim, page, unit, &mut run) {
            page = next;
        }
        units.release(victim);
        units.check().unwrap();
    }

    /// Block, from 10 on, and page in it.
    fn place(units: &UnitMap, logical: u32) -> (u32, u32) {
        let ppa = units.lookup(logical).unwrap();
        (10 + units.geometry().block_of(ppa).0, units.geometry().page_of(ppa))
    }

    /// Section 3.1, Fig. 4a: one-block units with three physical blocks each. Collecting PB10 moves its valid pages into
    /// PB14.
    #[test]
    fn collecting_a_block_of_a_one_block_unit_moves_its_valid_pages_into_the_units_open_block() {
        let mut units = units(1, 3);
        for pages in [[2, 0, 3, 1], [6, 7, 4, 5], [0, 1, 0, 2], [5, 4, 5, 4]] {
            write(&mut units, &pages);
        }
        write(&mut units, &[1, 7]);
        assert_eq!((units.blocks_of(0), units.blocks_of(1)), (&[0, 2, 4][..], &[1, 3, 5][..]));
        assert!(units.is_at_limit(0) && !units.needs_block(0));
        let places = [0, 1, 2, 3].map(|logical| place(&units, logical));
        assert_eq!(places, [(12, 2), (14, 0), (12, 3), (10, 2)], "pages are written in the order in which they arrive");
        assert_eq!(units.victim_of(0), Some(BlockId(0)), "PB10 has one valid page, PB12 two");
        collect(&mut units, BlockId(0));
        assert_eq!(place(&units, 3), (14, 1));
        assert_eq!((units.blocks_of(0), units.free_blocks()), (&[4, 2][..], 3));
        assert!(!units.is_at_limit(0) && units.is_at_limit(1), "the other unit has its blocks for itself");
    }

    /// Fig. 4b: the logical blocks of a unit share its physical blocks.
    #[test]
    fn pages_of_all_logical_blocks_of_a_unit_share_its_blocks_in_the_order_of_arrival() {
        let mut units = units(2, 6);
        write(&mut units, &[7, 0, 4, 1, 0]);
        assert_eq!([0, 1, 4, 7].map(|logical| place(&units, logical)), [(11, 0), (10, 3), (10, 2), (10, 0)]);
        assert_eq!((units.units(), units.blocks_of(0)), (1, &[0, 1][..]));
        assert_eq!((units.victim(), units.victim_of(0)), (Some(BlockId(0)), Some(BlockId(0))));
    }

    #[test]
    fn the_victim_is_the_sealed_block_with_the_fewest_valid_pages_of_all_units_or_of_one() {
        let mut units = units(1, 3);
        write(&mut units, &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(
            (units.victim(), units.victim_of(0)),
            (None, None),
            "full blocks of valid pages cannot be collected"
        );
        write(&mut units, &[0, 4, 5]);
        assert_eq!(
            (units.victim(), units.victim_of(0), units.victim_of(1)),
            (Some(BlockId(1)), Some(BlockId(0)), Some(BlockId(1)))
        );
    }

    #[test]
    fn valid_pages_fill_the_open_block_and_go_on_in_a_new_one() {
        let mut units = units(1, 3);
        write(&mut units, &[0, 1, 2, 3, 0, 0, 0]);
        collect(&mut units, BlockId(0));
        assert_eq!([1, 2, 3].map(|logical| place(&units, logical)), [(11, 3), (12, 0), (12, 1)]);
        assert_eq!(units.blocks_of(0), [1, 2]);
    }

    #[test]
    fn a_unit_needs_a_block_beyond_its_data() {
        let geometry = Geometry::new(4096, 4, 8, 1).unwrap();
        assert!(UnitMap::new(geometry, 8, 1, 1).is_err());
        assert!(UnitMap::new(geometry, 8, 0, 1).is_err());
    }
}
