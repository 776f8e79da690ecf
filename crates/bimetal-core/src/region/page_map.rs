//! A page-mapped region: any logical page on any physical page.
//!
//! ```text
//! map    logical page -> physical page        4 bytes
//! owner  physical page -> logical page        4 bytes
//! valid  one bit per physical page
//! dies   free blocks, one open block per stream, sealed blocks by their number of valid pages
//! ```
//!
//! Each die is collected by itself: its open blocks are filled page by page, full ones are sealed and wait in the bucket
//! of their valid count, and the victim of garbage collection is a block of the lowest bucket (greedy). A die never
//! holds more valid pages than all its blocks but [`RESERVED_BLOCKS`], so that a victim always has an invalid page and
//! collection always makes progress.

use std::collections::VecDeque;

use crate::units::{BlockId, Geometry, Ppa};

/// Blocks of each die that can hold no valid page at rest: the open block of each stream and one erased block.
pub const RESERVED_BLOCKS: u32 = 3;

const NONE: u32 = u32::MAX;

/// What is written apart from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stream {
    /// Data that the host writes.
    Host = 0,
    /// Data that garbage collection found still valid: colder.
    Gc = 1,
}

/// The block that a stream fills on a die.
#[derive(Clone, Copy, Debug)]
struct Open {
    block: u32,
    /// Next page; `pages_per_block` where a new block is needed.
    page: u32,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    valid: u32,
    /// Neighbours in the bucket of sealed blocks with as many valid pages.
    previous: u32,
    next: u32,
}

#[derive(Debug)]
struct Die {
    free: VecDeque<u32>,
    open: [Open; 2],
    /// First sealed block by number of valid pages.
    buckets: Vec<u32>,
    /// No bucket below this one has a block.
    lowest: usize,
    valid_pages: u32,
    /// Valid pages may not exceed this.
    valid_limit: u32,
}

/// The region's state.
#[derive(Debug)]
pub struct PageMap {
    geometry: Geometry,
    map: Vec<u32>,
    owner: Vec<u32>,
    valid: Vec<u64>,
    blocks: Vec<Block>,
    dies: Vec<Die>,
    next_die: u32,
}

impl PageMap {
    /// An erased region for `logical_pages` pages.
    ///
    /// # Errors
    /// Too little spare area for garbage collection to make progress, and how much it takes.
    pub fn new(geometry: Geometry, logical_pages: u64) -> Result<Self, String> {
        let pages = geometry.pages_per_block;
        let dies: Vec<Die> = (0..geometry.dies)
            .map(|die| {
                let free: VecDeque<u32> = (die..geometry.blocks).step_by(geometry.dies as usize).collect();
                let valid_limit = (free.len() as u32).saturating_sub(RESERVED_BLOCKS) * pages;
                let open = [Open { block: NONE, page: pages }; 2];
                let buckets = vec![NONE; pages as usize + 1];
                Die { free, open, buckets, lowest: pages as usize + 1, valid_pages: 0, valid_limit }
            })
            .collect();
        let limit: u64 = dies.iter().map(|die| u64::from(die.valid_limit)).sum();
        if logical_pages > limit {
            let needed = logical_pages.div_ceil(u64::from(pages)) + u64::from(RESERVED_BLOCKS * geometry.dies);
            return Err(format!(
                "{} blocks leave too little spare area: {logical_pages} logical pages of {} bytes on {} dies need about \
                 {needed} blocks ({RESERVED_BLOCKS} per die stay free of data); enlarge the region or its spare area",
                geometry.blocks, geometry.page_bytes, geometry.dies
            ));
        }
        Ok(Self {
            geometry,
            map: vec![NONE; logical_pages as usize],
            owner: vec![NONE; geometry.page_slots()],
            valid: vec![0; geometry.page_slots().div_ceil(64)],
            blocks: vec![Block { valid: 0, previous: NONE, next: NONE }; geometry.blocks as usize],
            dies,
            next_die: 0,
        })
    }

    /// Blocks and pages.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Number of logical pages.
    pub fn logical_pages(&self) -> u32 {
        self.map.len() as u32
    }

    /// Where a logical page is, if anywhere.
    #[inline]
    pub fn lookup(&self, logical: u32) -> Option<Ppa> {
        let ppa = self.map[logical as usize];
        (ppa != NONE).then_some(Ppa(ppa))
    }

    /// Forgets the copy of a logical page; what it occupied can be collected.
    #[inline]
    pub fn invalidate(&mut self, logical: u32) {
        let ppa = std::mem::replace(&mut self.map[logical as usize], NONE);
        if ppa != NONE {
            self.drop_page(Ppa(ppa));
        }
    }

    /// The die that takes the next host page: in turn, past those that are full of valid data.
    #[inline]
    pub fn next_die(&mut self) -> u32 {
        loop {
            let die = self.next_die;
            self.next_die = if die + 1 == self.geometry.dies { 0 } else { die + 1 };
            let space = &self.dies[die as usize];
            if space.valid_pages < space.valid_limit {
                return die;
            }
        }
    }

    /// Erased blocks of a die, open ones not counted.
    #[inline]
    pub fn free_blocks(&self, die: u32) -> u32 {
        self.dies[die as usize].free.len() as u32
    }

    /// Whether the next page of a stream takes an erased block.
    #[inline]
    pub fn needs_block(&self, die: u32, stream: Stream) -> bool {
        self.dies[die as usize].open[stream as usize].page == self.geometry.pages_per_block
    }

    /// Maps an unmapped logical page onto the next page of a stream's open block.
    #[inline]
    pub fn place(&mut self, logical: u32, die: u32, stream: Stream) -> Ppa {
        debug_assert_eq!(self.map[logical as usize], NONE);
        let pages = self.geometry.pages_per_block;
        let space = &mut self.dies[die as usize];
        let open = &mut space.open[stream as usize];
        if open.page == pages {
            *open = Open { block: pop_erased(&mut space.free), page: 0 };
        }
        let block = open.block;
        let ppa = self.geometry.ppa(BlockId(block), open.page);
        open.page += 1;
        space.valid_pages += 1;
        let sealed = open.page == pages;
        if sealed {
            open.block = NONE;
        }
        self.map[logical as usize] = ppa.0;
        self.owner[ppa.index()] = logical;
        self.valid[ppa.index() / 64] |= 1 << (ppa.index() % 64);
        self.blocks[block as usize].valid += 1;
        if sealed {
            self.link(die, block);
        }
        ppa
    }

    /// The sealed block of a die with the fewest valid pages; its page count is at most one below full.
    pub fn victim(&mut self, die: u32) -> Option<BlockId> {
        let space = &mut self.dies[die as usize];
        while space.lowest < space.buckets.len() {
            let block = space.buckets[space.lowest];
            if block != NONE {
                return (space.lowest < self.geometry.pages_per_block as usize).then_some(BlockId(block));
            }
            space.lowest += 1;
        }
        None
    }

    /// Valid pages of a block.
    pub fn valid_pages(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].valid
    }

    /// The first valid page of a block at or after `page`.
    #[inline]
    pub fn next_valid(&self, block: BlockId, page: u32) -> Option<Ppa> {
        let first = self.geometry.ppa(block, 0).index();
        let end = first + self.geometry.pages_per_block as usize;
        let mut slot = first + page as usize;
        while slot < end {
            let word = self.valid[slot / 64] >> (slot % 64);
            if word != 0 {
                let found = slot + word.trailing_zeros() as usize;
                return (found < end).then_some(Ppa(found as u32));
            }
            slot = (slot / 64 + 1) * 64;
        }
        None
    }

    /// The logical page that a valid physical page holds.
    #[inline]
    pub fn owner(&self, ppa: Ppa) -> u32 {
        self.owner[ppa.index()]
    }

    /// Moves a valid page of a victim to the open block of the `Gc` stream on its die; returns the new place.
    #[inline]
    pub fn relocate(&mut self, ppa: Ppa, die: u32) -> Ppa {
        let logical = self.owner[ppa.index()];
        self.map[logical as usize] = NONE;
        self.valid[ppa.index() / 64] &= !(1 << (ppa.index() % 64));
        self.dies[die as usize].valid_pages -= 1;
        self.place(logical, die, Stream::Gc)
    }

    /// Takes a victim out of its bucket before its pages are moved.
    pub fn unseal(&mut self, die: u32, block: BlockId) {
        self.unlink(die, block.0);
    }

    /// An emptied victim is erased and free again.
    pub fn release(&mut self, die: u32, block: BlockId) {
        self.blocks[block.index()].valid = 0;
        self.dies[die as usize].free.push_back(block.0);
    }

    /// The die of a block.
    pub fn die_of(&self, block: BlockId) -> u32 {
        self.geometry.die_of(block)
    }

    #[inline]
    fn drop_page(&mut self, ppa: Ppa) {
        self.valid[ppa.index() / 64] &= !(1 << (ppa.index() % 64));
        let block = self.geometry.block_of(ppa).0;
        let die = if self.geometry.dies == 1 { 0 } else { block % self.geometry.dies };
        self.dies[die as usize].valid_pages -= 1;
        let open = &self.dies[die as usize].open;
        if open[0].block == block || open[1].block == block {
            self.blocks[block as usize].valid -= 1;
            return;
        }
        self.unlink(die, block);
        self.blocks[block as usize].valid -= 1;
        self.link(die, block);
    }

    #[inline]
    fn link(&mut self, die: u32, block: u32) {
        let space = &mut self.dies[die as usize];
        let valid = self.blocks[block as usize].valid as usize;
        let next = std::mem::replace(&mut space.buckets[valid], block);
        space.lowest = space.lowest.min(valid);
        let entry = &mut self.blocks[block as usize];
        entry.previous = NONE;
        entry.next = next;
        if next != NONE {
            self.blocks[next as usize].previous = block;
        }
    }

    #[inline]
    fn unlink(&mut self, die: u32, block: u32) {
        let Block { valid, previous, next } = self.blocks[block as usize];
        if previous == NONE {
            self.dies[die as usize].buckets[valid as usize] = next;
        } else {
            self.blocks[previous as usize].next = next;
        }
        if next != NONE {
            self.blocks[next as usize].previous = previous;
        }
    }

    /// Checks that map, owners, validity and counts agree.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self) -> Result<(), String> {
        let mut valid = vec![0u32; self.blocks.len()];
        for (logical, &ppa) in self.map.iter().enumerate() {
            if ppa == NONE {
                continue;
            }
            let ppa = Ppa(ppa);
            if self.owner[ppa.index()] as usize != logical {
                return Err(format!("logical page {logical} maps to a page owned by {}", self.owner[ppa.index()]));
            }
            if self.valid[ppa.index() / 64] >> (ppa.index() % 64) & 1 == 0 {
                return Err(format!("logical page {logical} maps to an invalid page"));
            }
            valid[self.geometry.block_of(ppa).index()] += 1;
        }
        let bits: u64 = self.valid.iter().map(|word| u64::from(word.count_ones())).sum();
        if bits != valid.iter().map(|&count| u64::from(count)).sum::<u64>() {
            return Err("there are valid pages that no logical page maps to".into());
        }
        for (block, (&counted, kept)) in valid.iter().zip(&self.blocks).enumerate() {
            if counted != kept.valid {
                return Err(format!("block {block} has {counted} valid pages and counts {}", kept.valid));
            }
        }
        for (die, space) in self.dies.iter().enumerate() {
            let counted: u32 = valid.iter().skip(die).step_by(self.geometry.dies as usize).sum();
            if counted != space.valid_pages || counted > space.valid_limit {
                return Err(format!("die {die} has {counted} valid pages and counts {}", space.valid_pages));
            }
        }
        Ok(())
    }
}

/// Takes the block that has been erased for longest: a simple dynamic wear levelling.
#[inline]
fn pop_erased(free: &mut VecDeque<u32>) -> u32 {
    free.pop_front().unwrap_or_else(|| unreachable!("a scheme collects before it runs out of erased blocks"))
}
