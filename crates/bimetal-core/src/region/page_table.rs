//! The mapping table of a region: map, owners and validity of its pages.
//!
//! ```text
//! map    logical page -> physical page, or where else it is    4 bytes
//! owner  physical page -> logical page                         4 bytes
//! valid  one bit per physical page
//! ```
//!
//! A logical page may lie outside of the region, in a log in front of it. It needs no entry in another map: its place
//! in that log is stored as a number beyond the numbers of all physical pages.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::save::{Table, entry, number};
use crate::units::{BlockId, Geometry, Ppa};

const NONE: u32 = u32::MAX;

/// Number of pages whose validity fits in one word of the bitmap.
const WORD: usize = u64::BITS as usize;

/// Number of owners in a cache line of 64 bytes.
const OWNERS_PER_LINE: usize = 16;

/// Old places of pages that are copied in one run.
#[derive(Debug)]
pub struct Run {
    pages: [Ppa; WORD],
    len: usize,
}

impl Default for Run {
    fn default() -> Self {
        Self { pages: [Ppa::NONE; WORD], len: 0 }
    }
}

impl Run {
    /// The pages, in the order in which they go to consecutive new places.
    pub fn pages(&self) -> &[Ppa] {
        &self.pages[..self.len]
    }
}

/// Valid pages of a block that share one word of the bitmap; at least one.
#[derive(Clone, Copy, Debug)]
pub struct ValidWord {
    /// Page slot of the word's first bit.
    base: usize,
    bits: u64,
}

/// Map, owners and validity of all pages.
#[derive(Debug, Serialize, Deserialize)]
pub struct PageTable {
    #[serde(with = "crate::save::fixed")]
    geometry: Geometry,
    /// `None` is stored as 0, so entries that were never written take no memory.
    map: Table<Option<NonZeroU32>>,
    owner: Table<u32>,
    valid: Table<u64>,
}

impl PageTable {
    /// A region without valid pages.
    pub fn new(geometry: Geometry, logical_pages: u64) -> Self {
        Self {
            geometry,
            map: vec![None; logical_pages as usize].into(),
            // Rounded up to whole words, so that the owners of a word's pages are one slice. The owner of an invalid
            // page has no meaning. Zeros take memory only when they are overwritten.
            owner: vec![0; geometry.page_slots().next_multiple_of(WORD)].into(),
            valid: vec![0; geometry.page_slots().div_ceil(WORD)].into(),
        }
    }

    /// The geometry in blocks and pages.
    #[inline(always)]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Number of logical pages.
    pub fn logical_pages(&self) -> u32 {
        self.map.len() as u32
    }

    /// The physical page of a logical page, or `None` if it is not in the region.
    #[inline(always)]
    pub fn lookup(&self, logical: u32) -> Option<Ppa> {
        let ppa = Ppa(number(self.map[logical as usize]));
        (ppa.index() < self.geometry.page_slots()).then_some(ppa)
    }

    /// The place outside of the region that [`Self::put_elsewhere`] gave a logical page.
    #[inline(always)]
    pub fn elsewhere(&self, logical: u32) -> Option<u32> {
        let place = number(Some(self.map[logical as usize]?));
        place.checked_sub(self.geometry.page_slots() as u32)
    }

    /// Number of places outside of the region that the map can encode besides the region's own pages.
    pub fn places_elsewhere(&self) -> u32 {
        NONE - self.geometry.page_slots() as u32
    }

    /// Records `place`, a place outside of the region, for a logical page that is unmapped or already outside.
    #[inline(always)]
    pub fn put_elsewhere(&mut self, logical: u32, place: u32) {
        debug_assert!(self.lookup(logical).is_none() && place < self.places_elsewhere());
        self.map[logical as usize] = entry(self.geometry.page_slots() as u32 + place);
    }

    /// Prefetches a logical page's map entry into the processor's cache.
    #[inline(always)]
    pub fn prefetch_map(&self, logical: u32) {
        prefetch_index::prefetch_index(&self.map, logical as usize);
    }

    /// Prefetches a page's validity into the processor's cache.
    #[inline(always)]
    pub fn prefetch_valid(&self, ppa: Ppa) {
        prefetch_index::prefetch_index(&self.valid, ppa.index() / WORD);
    }

    /// Maps an unmapped logical page.
    #[inline(always)]
    pub fn assign(&mut self, logical: u32, ppa: Ppa) {
        debug_assert_eq!(self.map[logical as usize], None);
        self.map[logical as usize] = entry(ppa.0);
        self.owner[ppa.index()] = logical;
        self.valid[ppa.index() / WORD] |= 1 << (ppa.index() % WORD);
    }

    /// Unmaps a logical page. Returns the physical page that is no longer valid.
    #[inline(always)]
    pub fn clear(&mut self, logical: u32) -> Option<Ppa> {
        let ppa = self.lookup(logical);
        self.map[logical as usize] = None;
        let ppa = ppa?;
        self.valid[ppa.index() / WORD] &= !(1 << (ppa.index() % WORD));
        Some(ppa)
    }

    /// The valid pages of a block from page `page` on that lie in the first bitmap word with a valid page.
    #[inline]
    pub fn valid_word(&self, block: BlockId, page: u32) -> Option<ValidWord> {
        let first = self.geometry.ppa(block, 0).index();
        let end = first + self.geometry.pages_per_block as usize;
        let mut slot = first + page as usize;
        while slot < end {
            let base = slot / WORD * WORD;
            let mut bits = self.valid[base / WORD] & (u64::MAX << (slot - base));
            if end < base + WORD {
                bits &= (1 << (end - base)) - 1;
            }
            if bits != 0 {
                return Some(ValidWord { base, bits });
            }
            slot = base + WORD;
        }
        None
    }

    /// The logical page of the first of these pages.
    pub fn first_owner(&self, pages: ValidWord) -> u32 {
        self.owner[pages.base + pages.bits.trailing_zeros() as usize]
    }

    /// The subset of these pages for whose logical pages `stays` is true.
    pub fn retain(&self, pages: ValidWord, stays: impl Fn(u32) -> bool) -> ValidWord {
        let ValidWord { base, bits } = pages;
        let (mut rest, mut bits) = (bits, bits);
        while rest != 0 {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            if !stays(self.owner[base + bit as usize]) {
                bits &= !(1 << bit);
            }
        }
        ValidWord { base, bits }
    }

    /// Moves up to `room` valid pages to `to` and the following pages, and puts their old places into `run`.
    #[inline]
    pub fn move_run(&mut self, pages: ValidWord, to: Ppa, room: u32, run: &mut Run) {
        let ValidWord { base, bits } = pages;
        // The next word's owners follow, and they were written long ago.
        for owner in (base + WORD..base + 2 * WORD).step_by(OWNERS_PER_LINE) {
            prefetch_index::prefetch_index(&self.owner, owner);
        }
        let moved = bits.count_ones().min(room) as usize;
        let mut rest = bits;
        let mut owners = [0; WORD];
        let sources = &self.owner[base..base + WORD];
        for (entry, owner) in run.pages[..moved].iter_mut().zip(&mut owners[..moved]) {
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            *owner = sources[bit % WORD];
            // The map entries are scattered: prefetch them all before changing the first.
            prefetch_index::prefetch_index(&self.map, *owner as usize);
            *entry = Ppa((base + bit) as u32);
        }
        run.len = moved;
        self.owner[to.index()..to.index() + moved].copy_from_slice(&owners[..moved]);
        for (&logical, target) in owners[..moved].iter().zip(to.0..) {
            self.map[logical as usize] = entry(target);
        }
        self.valid[base / WORD] &= !(bits & !rest);
        set_bits(&mut self.valid, to.index(), moved);
    }

    /// Checks that map, owners and validity agree. Returns the number of valid pages of each block.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<Vec<u32>, String> {
        let mut valid = vec![0u32; self.geometry.blocks as usize];
        for (logical, &place) in self.map.iter().enumerate() {
            if place.is_none() || self.elsewhere(logical as u32).is_some() {
                continue;
            }
            let ppa = Ppa(number(place));
            if !self.geometry.has_page(ppa) {
                return Err(format!("logical page {logical} maps to no page of the region"));
            }
            if self.owner[ppa.index()] as usize != logical {
                return Err(format!("logical page {logical} maps to a page owned by {}", self.owner[ppa.index()]));
            }
            if self.valid[ppa.index() / WORD] >> (ppa.index() % WORD) & 1 == 0 {
                return Err(format!("logical page {logical} maps to an invalid page"));
            }
            valid[self.geometry.block_of(ppa).index()] += 1;
        }
        let bits: u64 = self.valid.iter().map(|word| u64::from(word.count_ones())).sum();
        if bits != valid.iter().map(|&count| u64::from(count)).sum::<u64>() {
            return Err("there are valid pages that no logical page maps to".into());
        }
        Ok(valid)
    }
}

/// Sets `count` bits, at most 64, starting at bit `first`.
fn set_bits(words: &mut Table<u64>, first: usize, count: usize) {
    let ones = u128::from(u64::MAX >> (64 - count)) << (first % 64);
    words[first / 64] |= ones as u64;
    if (ones >> 64) != 0 {
        words[first / 64 + 1] |= (ones >> 64) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 96 pages in blocks of 24, which begin within a word of the bitmap.
    fn table() -> PageTable {
        let mut table = PageTable::new(Geometry::new(4096, 24, 4, 1).unwrap(), 48);
        let geometry = *table.geometry();
        for logical in 0..48 {
            table.assign(logical, geometry.ppa(BlockId(logical / 24), logical % 24));
        }
        table
    }

    #[test]
    fn a_page_is_mapped_until_it_is_cleared() {
        let mut table = table();
        let ppa = table.geometry().ppa(BlockId(1), 2);
        assert_eq!(table.lookup(26), Some(ppa));
        assert_eq!(table.clear(26), Some(ppa));
        assert_eq!((table.clear(26), table.lookup(26)), (None, None));
        assert_eq!(table.check(), Ok(vec![24, 23, 0, 0]));
    }

    #[test]
    fn valid_pages_move_as_far_as_there_is_room() {
        let mut table = table();
        let geometry = *table.geometry();
        table.clear(24);
        table.clear(26);
        let to = geometry.ppa(BlockId(3), 22);
        let mut run = Run::default();
        let word = table.valid_word(BlockId(1), 0).unwrap();
        table.move_run(word, to, 2, &mut run);
        assert_eq!(run.pages(), [geometry.ppa(BlockId(1), 1), geometry.ppa(BlockId(1), 3)]);
        assert_eq!((table.lookup(25), table.lookup(27)), (Some(to), Some(Ppa(to.0 + 1))));
        assert_eq!(table.check(), Ok(vec![24, 20, 0, 2]));
        assert!(table.valid_word(BlockId(1), 4).is_some() && table.valid_word(BlockId(2), 0).is_none());
    }

    #[test]
    fn bits_are_set_across_words() {
        let mut words = Table::from(vec![0; 3]);
        set_bits(&mut words, 60, 64);
        assert_eq!(*words, [0xf << 60, u64::MAX >> 4, 0]);
        set_bits(&mut words, 124, 4);
        assert_eq!(words[1], u64::MAX);
    }
}
