//! The slow region: a log whose pages hold several units each, of whatever addresses.
//!
//! ```text
//!  from the cache ─▶ open blocks ─▶ |#_##|____|#__#|  full          victim: valid units
//!                                   units become invalid one by one ─────▶ pages of other open blocks; then erased
//! ```
//!
//! A page is always programmed as a whole. With too few units for it, the rest of the page is garbage from the
//! beginning. A block is a band. The valid units of a victim are packed into new pages, in steps between the pages from
//! the cache.

use std::collections::VecDeque;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use crate::media::{Cause, CellMode, Media, Part, Stream};
use crate::region::slot_table::{LastRead, SlotTable};
use crate::save::Table;
use crate::units::{BlockId, Geometry, Ppa, RegionId};

/// Largest number of units of a page.
const UNITS_MAX: usize = 128;
/// Streams: units from the cache, and collected units.
const STREAMS: usize = 2;
const COLLECTED: usize = 1;
/// Blocks whose shares of invalid units differ by no more than this, in hundredths, are equally good victims.
const EQUAL_PERCENT: u32 = 10;

/// Units that will be written to a page together.
#[derive(Debug)]
pub struct Batch<D> {
    units: ArrayVec<u32, UNITS_MAX>,
    parts: ArrayVec<Part<D>, UNITS_MAX>,
}

impl<D: Copy> Batch<D> {
    /// An empty batch.
    pub fn new() -> Self {
        Self { units: ArrayVec::new(), parts: ArrayVec::new() }
    }

    /// Adds a unit of `sectors` sectors, which are in `data` from sector `from` on.
    pub fn push(&mut self, unit: u32, (data, from): (D, u32), sectors: u32) {
        self.parts.push(Part { data, from, to: self.units.len() as u32 * sectors, sectors });
        self.units.push(unit);
    }

    /// Adds a unit without content.
    pub fn push_undefined(&mut self, unit: u32) {
        self.units.push(unit);
    }

    /// Its number of units.
    pub fn len(&self) -> u32 {
        self.units.len() as u32
    }
}

/// A block that is being written.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Open {
    block: u32,
    /// Its next page; the number of pages if a new block is needed.
    page: u32,
}

/// The block that is being collected.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Victim {
    block: u32,
    /// Slot at which collection continues, counted from the block's first.
    slot: u32,
    /// Its valid units when it was chosen.
    valid: u32,
    /// Pages of copies that are due, times the units that the victim frees.
    owed: u64,
}

/// The region's state.
#[derive(Debug, Serialize, Deserialize)]
pub struct PackedLog {
    #[serde(with = "crate::save::fixed")]
    region: RegionId,
    slots: SlotTable,
    #[serde(with = "crate::save::fixed")]
    unit_sectors: u32,
    /// Erased blocks at or below which a block is collected.
    #[serde(with = "crate::save::fixed")]
    free_blocks: u32,
    /// Open blocks of a stream.
    #[serde(with = "crate::save::fixed")]
    lanes: u32,
    /// Erased blocks; the last one is written next.
    erased: VecDeque<u32>,
    /// By stream and lane.
    #[serde(with = "crate::save::sized")]
    open: Vec<Open>,
    /// By stream: the lane of the next page, and the number of further pages on this lane.
    #[serde(with = "crate::save::tuple")]
    next: [u32; STREAMS],
    #[serde(with = "crate::save::tuple")]
    stripe_left: [u32; STREAMS],
    victim: Option<Victim>,
    /// By block: valid units, and number of times that it was written.
    valid: Table<u32>,
    writes: Table<u32>,
    erases: u64,
    copied_units: u64,
    padded_units: u64,
}

impl PackedLog {
    /// An erased region that can hold `units` units of `unit_sectors` sectors.
    ///
    /// # Errors
    /// Too little spare area, with the amount needed.
    pub fn new(
        region: RegionId,
        geometry: Geometry,
        units: u64,
        unit_sectors: u32,
        free_blocks: u32,
    ) -> Result<Self, String> {
        let slots = geometry.page_sectors() / unit_sectors;
        // A victim must free at least one page, however its valid units are packed.
        let gathered = u64::from(geometry.pages_per_block.saturating_sub(1)) * u64::from(slots);
        let data_blocks = if gathered == 0 { u64::MAX } else { units.div_ceil(gathered) };
        let spare = u64::from(geometry.blocks).saturating_sub(data_blocks);
        let needed = u64::from(free_blocks) + STREAMS as u64;
        if spare < needed {
            return Err(format!(
                "keeping {free_blocks} blocks erased takes {needed} spare blocks and there are {spare}; enlarge the spare area or \
                 lower gc_free_blocks"
            ));
        }
        let lanes = ((spare - u64::from(free_blocks)) / (2 * STREAMS as u64)).clamp(1, u64::from(geometry.dies)) as u32;
        let none = Open { block: u32::MAX, page: geometry.pages_per_block };
        Ok(Self {
            region,
            slots: SlotTable::new(geometry, geometry.pages_per_block, slots)?,
            unit_sectors,
            free_blocks,
            lanes,
            erased: (0..geometry.blocks).rev().collect(),
            open: vec![none; STREAMS * lanes as usize],
            next: [0; STREAMS],
            stripe_left: [0; STREAMS],
            victim: None,
            valid: vec![0; geometry.blocks as usize].into(),
            writes: vec![0; geometry.blocks as usize].into(),
            erases: 0,
            copied_units: 0,
            padded_units: 0,
        })
    }

    /// Blocks and pages.
    pub fn geometry(&self) -> &Geometry {
        self.slots.geometry()
    }

    /// Units of a page.
    pub fn units_per_page(&self) -> u32 {
        self.slots.slots()
    }

    /// One more than the largest slot number.
    pub fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Blocks erased so far.
    pub fn erases(&self) -> u64 {
        self.erases
    }

    /// Units that collecting has copied so far.
    pub fn copied_units(&self) -> u64 {
        self.copied_units
    }

    /// Slots that were left empty in the pages written so far.
    pub fn padded_units(&self) -> u64 {
        self.padded_units
    }

    /// The unit of a slot, if it is valid.
    pub fn unit(&self, slot: u32) -> Option<u32> {
        self.slots.unit(slot)
    }

    /// Invalidates the unit of a slot.
    pub fn forget(&mut self, slot: u32) {
        self.valid[self.slots.block_of(slot).index()] -= 1;
        self.slots.clear(slot);
    }

    /// Reads the page of a slot unless it was the last one read; returns it and the slot's first sector in it.
    pub fn read<M: Media>(
        &self,
        media: &mut M,
        slot: u32,
        cause: Cause,
        last: &mut LastRead<M::Data>,
    ) -> (M::Data, u32) {
        let (data, position) = self.slots.read(media, self.region, slot, cause, last);
        (data, position * self.unit_sectors)
    }

    /// Writes a page of units from the cache, after collecting if that is necessary, and then collects a step further.
    /// `moved` gets each unit with its new slot.
    pub fn write<M: Media>(
        &mut self,
        media: &mut M,
        batch: &Batch<M::Data>,
        cause: Cause,
        moved: &mut impl FnMut(u32, u32),
    ) {
        self.take_turn(0);
        // One erased block is reserved for collected data.
        while self.open[self.lane(0)].page == self.geometry().pages_per_block
            && self.erased.len() <= 1
            && self.begin_collecting()
        {
            while self.collect_page(media, moved) {}
        }
        self.append(media, batch, 0, cause, moved);
        self.collect_step(media, moved);
    }

    fn lane(&self, stream: usize) -> usize {
        stream * self.lanes as usize + self.next[stream] as usize
    }

    /// Chooses the lane of a stream's next page; lanes take turns.
    fn take_turn(&mut self, stream: usize) {
        if self.stripe_left[stream] == 0 {
            self.next[stream] = (self.next[stream] + 1) % self.lanes;
            self.stripe_left[stream] = self.geometry().stripe_pages;
        }
        self.stripe_left[stream] -= 1;
    }

    /// The next page of the lane whose turn it is, and the stream of its block.
    fn next_page(&mut self, stream: usize) -> (Ppa, Stream) {
        let geometry = *self.geometry();
        let pages = geometry.pages_per_block;
        if self.open[self.lane(stream)].page == pages {
            // Preferably on the die of the lane, so that lanes work at the same time.
            let die = self.next[stream];
            let is_of_lane = |&block: &u32| block % geometry.dies % self.lanes == die;
            let position = self.erased.iter().rposition(is_of_lane).or(self.erased.len().checked_sub(1));
            match position.and_then(|position| self.erased.remove(position)) {
                Some(block) => {
                    let lane = self.lane(stream);
                    self.open[lane] = Open { block, page: 0 };
                    self.writes[block as usize] += 1;
                }
                // There is room only in an open block of another lane, or of the other stream.
                None => return self.page_of_any(),
            }
        }
        (self.page_of(self.lane(stream)), Stream::new(stream))
    }

    /// The next page of any open block.
    fn page_of_any(&mut self) -> (Ppa, Stream) {
        let pages = self.geometry().pages_per_block;
        let lane = self.open.iter().rposition(|open| open.page < pages);
        let lane = lane.unwrap_or_else(|| unreachable!("a block is collected while there is room for its valid units"));
        (self.page_of(lane), Stream::new(lane / self.lanes as usize))
    }

    /// The next page of an open block.
    fn page_of(&mut self, lane: usize) -> Ppa {
        let open = &mut self.open[lane];
        open.page += 1;
        let (block, page) = (BlockId(open.block), open.page - 1);
        self.geometry().ppa(block, page)
    }

    fn append<M: Media>(
        &mut self,
        media: &mut M,
        batch: &Batch<M::Data>,
        stream: usize,
        cause: Cause,
        moved: &mut impl FnMut(u32, u32),
    ) {
        let (page, stream) = self.next_page(stream);
        let first = self.slots.first_slot(page);
        for (&unit, slot) in batch.units.iter().zip(first..) {
            self.slots.set(slot, unit);
            moved(unit, slot);
        }
        let block = self.geometry().block_of(page);
        self.valid[block.index()] += batch.len();
        self.padded_units += u64::from(self.units_per_page() - batch.len());
        media.program(self.region, page, &batch.parts, stream, cause);
    }

    /// Whether a block is full and not being collected.
    fn is_candidate(&self, block: u32, is_erased: &impl Fn(u32) -> bool) -> bool {
        let is_open = self.open.iter().any(|open| open.block == block && open.page < self.geometry().pages_per_block);
        !is_open && self.victim.is_none_or(|victim| victim.block != block) && !is_erased(block)
    }

    /// Chooses a victim unless there is one: among the blocks with about the most invalid units the one written least,
    /// then the first. Returns whether there is a victim.
    fn begin_collecting(&mut self) -> bool {
        if self.victim.is_some() {
            return true;
        }
        let units = self.geometry().pages_per_block * self.units_per_page();
        let is_erased = |block: u32| self.valid[block as usize] == 0 && self.erased.contains(&block);
        // Few blocks have fewer valid units than those before them, so few are asked whether they are candidates.
        let mut least = None;
        for (block, &valid) in self.valid.iter().enumerate() {
            if least.is_none_or(|least| valid < least) && self.is_candidate(block as u32, &is_erased) {
                least = Some(valid);
            }
        }
        let Some(least) = least else { return false };
        // A victim must free a page.
        let most = (least + units * EQUAL_PERCENT / 100).min(units - self.units_per_page()).max(least);
        let equal = (0..self.geometry().blocks)
            .filter(|&block| self.valid[block as usize] <= most && self.is_candidate(block, &is_erased));
        let Some(block) = equal.min_by_key(|&block| self.writes[block as usize]) else { return false };
        let valid = self.valid[block as usize];
        if valid.div_ceil(self.units_per_page()) >= self.geometry().pages_per_block {
            return false;
        }
        self.victim = Some(Victim { block, slot: 0, valid, owed: 0 });
        true
    }

    /// After a page from the cache: collects as much of a victim as frees one page.
    fn collect_step<M: Media>(&mut self, media: &mut M, moved: &mut impl FnMut(u32, u32)) {
        if self.victim.is_none() && (self.erased.len() as u32 > self.free_blocks || !self.begin_collecting()) {
            return;
        }
        let units = self.geometry().pages_per_block * self.units_per_page();
        let Some(victim) = &mut self.victim else { return };
        let gain = u64::from(units - victim.valid);
        victim.owed += u64::from(victim.valid.max(1));
        while let Some(victim) = &mut self.victim
            && victim.owed >= gain
        {
            victim.owed -= gain;
            self.collect_page(media, moved);
        }
    }

    /// Packs a page of the victim's valid units, and erases the victim once it has none. Returns whether some are left.
    fn collect_page<M: Media>(&mut self, media: &mut M, moved: &mut impl FnMut(u32, u32)) -> bool {
        let Some(mut victim) = self.victim else { return false };
        let slots = self.slots.slots_of(BlockId(victim.block));
        let mut batch = Batch::new();
        let mut last = None;
        while self.valid[victim.block as usize] > 0 && batch.len() < self.units_per_page() {
            let slot = slots.start + victim.slot;
            victim.slot += 1;
            if let Some(unit) = self.slots.unit(slot) {
                let data = self.read(media, slot, Cause::Gc, &mut last);
                batch.push(unit, data, self.unit_sectors);
                self.forget(slot);
            }
        }
        if batch.len() > 0 {
            self.copied_units += u64::from(batch.len());
            self.take_turn(COLLECTED);
            self.append(media, &batch, COLLECTED, Cause::Gc, moved);
        }
        let is_empty = self.valid[victim.block as usize] == 0;
        self.victim = (!is_empty).then_some(victim);
        if is_empty {
            media.erase(self.region, BlockId(victim.block), CellMode::Native, Cause::Gc);
            self.erases += 1;
            // The block erased last is written last.
            self.erased.push_front(victim.block);
        }
        !is_empty
    }

    /// Written blocks and their programmed pages.
    fn written(&self) -> impl Iterator<Item = (BlockId, u32)> {
        let pages = self.geometry().pages_per_block;
        (0..self.geometry().blocks).map(move |block| {
            let open = self.open.iter().find(|open| open.block == block && open.page < pages);
            let programmed = open.map_or(pages, |open| open.page);
            (BlockId(block), if self.erased.contains(&block) { 0 } else { programmed })
        })
    }

    /// Checks that blocks are in one state each, that slots are in programmed pages, and their numbers.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self) -> Result<u32, String> {
        let geometry = *self.geometry();
        let mut is_used = vec![false; geometry.blocks as usize];
        let mut takes = |block: u32| is_used.get_mut(block as usize).is_some_and(|used| !std::mem::replace(used, true));
        let open = self.open.iter().filter(|open| open.page != geometry.pages_per_block);
        for block in self.erased.iter().copied().chain(open.clone().map(|open| open.block)) {
            if !takes(block) {
                return Err(format!("slow block {block} does not exist, or is listed twice"));
            }
        }
        if open.clone().any(|open| open.page > geometry.pages_per_block) {
            return Err("an open slow block has too many pages".into());
        }
        if self.next.iter().any(|&next| next >= self.lanes)
            || self.stripe_left.iter().any(|&left| left > geometry.stripe_pages)
        {
            return Err("the next slow page is in no open block".into());
        }
        let valid = self.slots.check(self.written())?;
        let mut counted = vec![0; geometry.blocks as usize];
        for slot in (0..self.len()).filter(|&slot| self.slots.unit(slot).is_some()) {
            counted[self.slots.block_of(slot).index()] += 1;
        }
        if counted != *self.valid {
            return Err("the counts of valid units of slow blocks are wrong".into());
        }
        if let Some(victim) = self.victim {
            let slots = geometry.blocks.checked_sub(1).map(|last| self.slots.slots_of(BlockId(victim.block.min(last))));
            let first = slots.as_ref().map_or(0, |slots| slots.start);
            let length = slots.map_or(0, |slots| slots.end - slots.start);
            let is_left = |slot: u32| self.slots.unit(first + slot).is_some();
            let units = geometry.pages_per_block * self.units_per_page();
            if !takes(victim.block)
                || victim.valid >= units
                || victim.owed > u64::from(u32::MAX)
                || victim.slot > length
                || (0..victim.slot).any(is_left)
            {
                return Err(format!("slow block {} is an impossible victim", victim.block));
            }
        }
        let left: u32 = open.map(|open| geometry.pages_per_block - open.page).sum();
        let needed = self.victim.map(|victim| self.valid[victim.block as usize].div_ceil(self.units_per_page()));
        if self.erased.is_empty() && needed.is_none_or(|needed| left < needed) {
            return Err("no slow block is erased".into());
        }
        Ok(valid)
    }
}

#[cfg(test)]
impl PackedLog {
    /// Valid slots of a block.
    pub fn slots_of_block(&self, block: u32) -> impl Iterator<Item = u32> + use<> {
        let slots: Vec<u32> =
            self.slots.slots_of(BlockId(block)).filter(|&slot| self.slots.unit(slot).is_some()).collect();
        slots.into_iter()
    }

    /// Sets the number of times that a block was written.
    pub fn set_writes(&mut self, block: u32, writes: u32) {
        self.writes[block as usize] = writes;
    }

    /// The block that would be chosen as victim.
    pub fn victim_block(&mut self) -> Option<u32> {
        self.victim = None;
        self.begin_collecting();
        self.victim.take().map(|victim| victim.block)
    }
}
