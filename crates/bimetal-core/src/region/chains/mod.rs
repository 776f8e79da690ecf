//! A block-mapped region: a logical block is one data block and a chain of log blocks (Chang 2010 §3.5).
//!
//! ```text
//! L2P   logical block -> first block of its chain
//! LB    block -> next block of its chain, or none
//! data block: page o holds offset o; log blocks: updates in the order of their arrival, the latest counts
//! ```
//!
//! The state here also contains the place of each logical page's latest copy. A controller with little memory would
//! find it by scanning the chain; the caller charges the cost of that scan. If the blocks of a chain run with one bit
//! per cell, its data need several physical blocks; its log blocks are still added one physical block at a time.

mod check;

use serde::{Deserialize, Serialize};

use crate::media::CellMode;
use crate::part::lru::Lists;
use crate::part::run_length::run_length;
use crate::save::Table;
use crate::units::{BlockId, Geometry, Ppa};

const NONE: u32 = u32::MAX;

crate::choices! {
    /// Which chain is folded to regain its log blocks, unless one can be had without copying.
    pub enum Victims {
        /// The one that has not been written for longest.
        LeastRecent = "least_recent",
        /// The one whose first log block is the oldest.
        Oldest = "oldest",
        /// The one with the most log blocks, of those the least recently written.
        Longest = "longest",
    }
}

/// Victim lists: by chain length for [`Victims::Longest`], and one for chains that can be switched.
const LISTS: usize = 64;
const SWITCHABLE: u8 = 63;
const UNLISTED: u8 = u8::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Chain {
    first: u32,
    last: u32,
    blocks: u32,
    /// Number of these blocks that form the data block.
    data_blocks: u32,
    mode: CellMode,
    list: u8,
}

const EMPTY: Chain =
    Chain { first: NONE, last: NONE, blocks: 0, data_blocks: 0, mode: CellMode::Native, list: UNLISTED };

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Block {
    /// `LB`.
    next: u32,
    /// Its logical block; [`NONE`] for a spare block.
    owner: u32,
    /// Number of programmed pages.
    programmed: u32,
    /// Whether each programmed page `o` holds offset `o`.
    in_order: bool,
    /// The mode in which it was last erased.
    mode: CellMode,
}

/// A block's position in its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The logical block.
    pub owner: u32,
    /// Position in the chain.
    pub position: u32,
    /// Whether it is part of the data block.
    pub is_data: bool,
}

/// Maps, chains, spare blocks and victim lists of a region.
#[derive(Debug, Serialize, Deserialize)]
pub struct Chains {
    #[serde(with = "crate::save::fixed")]
    geometry: Geometry,
    #[serde(with = "crate::save::fixed")]
    pages: [u32; 2],
    /// By logical page: the physical page of its latest copy.
    map: Table<Ppa>,
    /// `L2P`, with the state of each chain.
    #[serde(with = "crate::save::sized")]
    chains: Vec<Chain>,
    #[serde(with = "crate::save::sized")]
    blocks: Vec<Block>,
    victims: Lists,
    /// Bitmap of the victim lists that have members.
    listed: u64,
    #[serde(with = "crate::save::fixed")]
    choice: Victims,
    /// Erased blocks, by the mode in which they were erased; used in turn.
    spare: Lists,
    spare_blocks: u32,
}

impl Chains {
    /// An erased region for `logical_blocks` logical blocks. `slc_pages` is the number of pages of a block with one bit
    /// per cell, if the chip supports that mode.
    pub fn new(geometry: Geometry, slc_pages: Option<u32>, logical_blocks: u32, choice: Victims) -> Self {
        let pages = geometry.pages_per_block;
        let block = Block { next: NONE, owner: NONE, programmed: 0, in_order: true, mode: CellMode::Native };
        let mut spare = Lists::new(geometry.blocks as usize, 2);
        for index in 0..geometry.blocks {
            spare.push_back(CellMode::Native as usize, index);
        }
        Self {
            geometry,
            pages: [pages, slc_pages.unwrap_or(pages)],
            map: vec![Ppa::NONE; logical_blocks as usize * pages as usize].into(),
            chains: vec![EMPTY; logical_blocks as usize],
            blocks: vec![block; geometry.blocks as usize],
            victims: Lists::new(logical_blocks as usize, LISTS),
            listed: 0,
            choice,
            spare,
            spare_blocks: geometry.blocks,
        }
    }

    /// The geometry in blocks and pages.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Number of logical blocks.
    pub fn logical_blocks(&self) -> u32 {
        self.chains.len() as u32
    }

    /// The logical block of a logical page.
    #[inline]
    pub fn block_of(&self, logical: u32) -> u32 {
        logical / self.pages[0]
    }

    /// The first logical page of a logical block.
    #[inline]
    pub fn first_page(&self, logical_block: u32) -> u32 {
        logical_block * self.pages[0]
    }

    /// Pages per block in a mode.
    #[inline]
    pub fn pages(&self, mode: CellMode) -> u32 {
        self.pages[mode as usize]
    }

    /// Physical blocks of a data block in a mode.
    #[inline]
    pub fn data_width(&self, mode: CellMode) -> u32 {
        self.pages[0].div_ceil(self.pages[mode as usize])
    }

    /// The physical page of a logical page's latest copy, if it has one.
    #[inline]
    pub fn lookup(&self, logical: u32) -> Option<Ppa> {
        let ppa = self.map[logical as usize];
        (ppa != Ppa::NONE).then_some(ppa)
    }

    /// Prefetches the map entry of a logical page into the processor's cache. Chains are few, and finding one takes a
    /// division.
    #[inline]
    pub fn prefetch(&self, logical: u32) {
        prefetch_index::prefetch_index(&self.map, logical as usize);
    }

    /// Sets the place of a logical page's latest copy, or clears it with `None`.
    #[inline]
    pub fn set(&mut self, logical: u32, ppa: Option<Ppa>) {
        self.map[logical as usize] = ppa.unwrap_or(Ppa::NONE);
    }

    /// The latest copies of the logical pages from `logical` to `end`, up to the first page without a copy.
    #[inline]
    pub fn lookup_run(&self, logical: u32, end: u32) -> &[Ppa] {
        let pages = &self.map[logical as usize..end as usize];
        &pages[..run_length(pages, |ppa| ppa == Ppa::NONE)]
    }

    /// Records that the latest copies of `count` logical pages are at consecutive pages of a block.
    #[inline]
    pub fn set_run(&mut self, logical: u32, count: u32, first: Ppa) {
        let pages = &mut self.map[logical as usize..(logical + count) as usize];
        for (page, ppa) in pages.iter_mut().zip(first.0..) {
            *page = Ppa(ppa);
        }
    }

    /// Whether a logical block has at least one physical block.
    #[inline]
    pub fn is_mapped(&self, logical_block: u32) -> bool {
        self.chains[logical_block as usize].blocks > 0
    }

    /// Whether a logical block has a log block.
    #[inline]
    pub fn has_log(&self, logical_block: u32) -> bool {
        let chain = &self.chains[logical_block as usize];
        chain.blocks > chain.data_blocks
    }

    /// Number of physical blocks of a logical block.
    pub fn chain_blocks(&self, logical_block: u32) -> u32 {
        self.chains[logical_block as usize].blocks
    }

    /// The cell mode of a logical block's chain.
    #[inline]
    pub fn mode(&self, logical_block: u32) -> CellMode {
        self.chains[logical_block as usize].mode
    }

    /// Blocks of a chain in order, each with the number of its programmed pages and whether it is part of the data
    /// block.
    pub fn chain(&self, logical_block: u32) -> impl Iterator<Item = (BlockId, u32, bool)> + '_ {
        let chain = self.chains[logical_block as usize];
        let first = (chain.first != NONE).then_some(chain.first);
        let blocks = std::iter::successors(first, |&block| {
            let next = self.blocks[block as usize].next;
            (next != NONE).then_some(next)
        });
        blocks.enumerate().map(move |(position, block)| {
            let programmed = self.blocks[block as usize].programmed;
            (BlockId(block), programmed, (position as u32) < chain.data_blocks)
        })
    }

    /// The next free page of a chain's newest log block; `None` if there is no log block or it is full.
    #[inline]
    pub fn next_free(&self, logical_block: u32) -> Option<Ppa> {
        let chain = &self.chains[logical_block as usize];
        if chain.blocks == chain.data_blocks {
            return None;
        }
        let block = &self.blocks[chain.last as usize];
        let programmed = block.programmed;
        (programmed < self.pages[block.mode as usize]).then(|| self.geometry.ppa(BlockId(chain.last), programmed))
    }

    /// Puts the latest copy of a logical page on the next free page of the chain's newest log block.
    #[inline]
    pub fn place(&mut self, logical_block: u32, logical: u32, ppa: Ppa) {
        self.map[logical as usize] = ppa;
        let offset = logical - self.first_page(logical_block);
        let full = self.note_program(ppa, offset);
        if full && self.chains[logical_block as usize].blocks == 1 && self.switchable(logical_block) {
            // The first write of this logical block filled the log block in order, so the log block is the data block.
            self.chains[logical_block as usize].data_blocks = 1;
        }
        self.relist(logical_block, true);
    }

    /// Records that the first `count` pages of a data block have been programmed.
    pub fn note_data(&mut self, block: BlockId, count: u32) {
        self.blocks[block.index()].programmed = count;
    }

    /// Counts a program. Returns whether the block is now full.
    #[inline]
    pub fn note_program(&mut self, ppa: Ppa, offset: u32) -> bool {
        let block = &mut self.blocks[self.geometry.block_of(ppa).index()];
        let page = self.geometry.page_of(ppa);
        debug_assert_eq!(page, block.programmed);
        block.in_order &= page == offset;
        block.programmed += 1;
        block.programmed == self.pages[block.mode as usize]
    }

    /// Whether the newest log block can become the data block without copying: it is full and its pages are in order of
    /// their offsets, so it holds the latest copy of every page.
    pub fn switchable(&self, logical_block: u32) -> bool {
        let chain = &self.chains[logical_block as usize];
        if chain.blocks == chain.data_blocks {
            return false;
        }
        let block = &self.blocks[chain.last as usize];
        block.in_order && block.mode == CellMode::Native && block.programmed == self.pages[0]
    }

    /// Moves a chain to the victim list where it belongs. A chain that was `written` goes to the end of its list.
    #[inline]
    pub fn relist(&mut self, logical_block: u32, written: bool) {
        let list = self.list_of(logical_block);
        let old = self.chains[logical_block as usize].list;
        if list == old {
            if list == UNLISTED || !written || self.choice == Victims::Oldest {
                return;
            }
            if self.victims.back(usize::from(list)) == Some(logical_block) {
                return;
            }
        }
        if old != UNLISTED {
            self.victims.remove(usize::from(old), logical_block);
            if self.victims.front(usize::from(old)).is_none() {
                self.listed &= !(1 << old);
            }
        }
        if list != UNLISTED {
            self.victims.push_back(usize::from(list), logical_block);
            self.listed |= 1 << list;
        }
        self.chains[logical_block as usize].list = list;
    }

    #[inline]
    fn list_of(&self, logical_block: u32) -> u8 {
        if !self.has_log(logical_block) {
            return UNLISTED;
        }
        if self.switchable(logical_block) {
            return SWITCHABLE;
        }
        match self.choice {
            Victims::LeastRecent | Victims::Oldest => 0,
            Victims::Longest => {
                // In SLC mode a log block holds half as many pages, so two of them count as one.
                let chain = &self.chains[logical_block as usize];
                let logs = (chain.blocks - chain.data_blocks).div_ceil(1 + chain.mode as u32);
                logs.min(u32::from(SWITCHABLE) - 1) as u8
            }
        }
    }

    /// The chain to fold: a switchable chain if there is one, otherwise the chain chosen by the victim policy.
    pub fn victim(&self) -> Option<u32> {
        let list = self.listed.checked_ilog2()?;
        self.victims.front(list as usize)
    }

    /// Number of erased blocks.
    #[inline]
    pub fn spare_blocks(&self) -> u32 {
        self.spare_blocks
    }

    /// Whether a block is erased and unused.
    #[inline]
    pub fn is_spare(&self, block: BlockId) -> bool {
        self.blocks[block.index()].owner == NONE
    }

    /// The mode in which a block was last erased.
    pub fn block_mode(&self, block: BlockId) -> CellMode {
        self.blocks[block.index()].mode
    }

    /// The next spare block for a mode: a block erased in that mode if there is one.
    #[inline]
    pub fn next_spare(&self, mode: CellMode) -> Option<BlockId> {
        let other = 1 - mode as usize;
        self.spare.front(mode as usize).or_else(|| self.spare.front(other)).map(BlockId)
    }

    /// Assigns a spare block to a logical block, without adding it to the chain. It must be erased if its mode differs.
    pub fn take_spare(&mut self, block: BlockId, owner: u32, mode: CellMode) {
        let state = &mut self.blocks[block.index()];
        self.spare.remove(state.mode as usize, block.0);
        self.spare_blocks -= 1;
        *state = Block { next: NONE, owner, programmed: 0, in_order: true, mode };
    }

    /// Returns an erased block to the spare blocks.
    pub fn release(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        debug_assert_ne!(state.owner, NONE);
        *state = Block { next: NONE, owner: NONE, programmed: 0, in_order: true, mode: state.mode };
        self.spare.push_back(state.mode as usize, block.0);
        self.spare_blocks += 1;
    }

    /// Adds a block at the end of its owner's chain, as a log block or as part of the data block.
    pub fn append(&mut self, block: BlockId, as_data: bool) {
        let owner = self.blocks[block.index()].owner;
        let mut chain = self.chains[owner as usize];
        if chain.blocks == 0 {
            chain.first = block.0;
        } else {
            self.blocks[chain.last as usize].next = block.0;
        }
        chain.last = block.0;
        chain.blocks += 1;
        chain.data_blocks += u32::from(as_data);
        self.chains[owner as usize] = chain;
        self.relist(owner, false);
    }

    /// Empties a chain and returns its first block; the blocks stay linked and owned until they are released.
    pub fn detach(&mut self, logical_block: u32) -> Option<BlockId> {
        let chain = self.chains[logical_block as usize];
        self.chains[logical_block as usize] = Chain { list: chain.list, mode: chain.mode, ..EMPTY };
        self.relist(logical_block, false);
        (chain.first != NONE).then_some(BlockId(chain.first))
    }

    /// The next block in a block's chain.
    pub fn next(&self, block: BlockId) -> Option<BlockId> {
        let next = self.blocks[block.index()].next;
        (next != NONE).then_some(BlockId(next))
    }

    /// Makes the newest log block the data block. Returns the first of the other blocks, which stay linked up to the
    /// new data block, and that data block.
    pub fn switch(&mut self, logical_block: u32) -> (BlockId, BlockId) {
        let Chain { first, last, mode, list, .. } = self.chains[logical_block as usize];
        self.chains[logical_block as usize] = Chain { first: last, last, blocks: 1, data_blocks: 1, mode, list };
        self.relist(logical_block, false);
        (BlockId(first), BlockId(last))
    }

    /// Sets the mode of the blocks that an empty chain will get.
    pub fn set_mode(&mut self, logical_block: u32, mode: CellMode) {
        self.chains[logical_block as usize].mode = mode;
    }

    /// The position of an owned block in its chain.
    pub fn member(&self, block: BlockId) -> Option<Member> {
        let owner = self.blocks[block.index()].owner;
        if owner == NONE {
            return None;
        }
        let position = self.chain(owner).position(|(member, _, _)| member == block)? as u32;
        Some(Member { owner, position, is_data: position < self.chains[owner as usize].data_blocks })
    }

    /// Number of programmed pages of a block.
    pub fn programmed(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].programmed
    }

    /// Replaces `old` with `new` in its chain. `old` stays owned until it is released.
    pub fn replace(&mut self, old: BlockId, member: Member, new: BlockId) {
        let previous = member.position.checked_sub(1).and_then(|before| self.chain(member.owner).nth(before as usize));
        self.blocks[new.index()].next = self.blocks[old.index()].next;
        let chain = &mut self.chains[member.owner as usize];
        match previous {
            Some((before, _, _)) => self.blocks[before.index()].next = new.0,
            None => chain.first = new.0,
        }
        if chain.last == old.0 {
            chain.last = new.0;
        }
        self.relist(member.owner, false);
    }
}

#[cfg(test)]
mod tests;
