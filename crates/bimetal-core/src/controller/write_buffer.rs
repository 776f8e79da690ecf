//! The write buffer: data of the host that wait for the flash, or are on their way to it.
//!
//! It keeps units of 4 KiB with a bit for each sector. Units wait in the order in which they came; a sector that is written again
//! takes the place of the one that waits. A batch of them, a wordline, goes to the flash together and is free when that is done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::part::lru::Lists;
use crate::part::page_index::PageIndex;
use crate::request::Request;

/// Sectors of a unit.
pub(super) const UNIT_SECTORS: u32 = 8;
const ALL_SECTORS: u8 = u8::MAX;

const FREE: usize = 0;
const WAITING: usize = 1;
/// First list of the batches on their way.
const BATCHES: usize = 2;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    unit: u32,
    /// Sectors that it has.
    sectors: u8,
    is_waiting: bool,
}

/// Units on their way to the flash.
#[derive(Debug)]
pub(super) struct Batch {
    list: usize,
    /// The unit that is looked at next, and its sectors that are left.
    slot: Option<u32>,
    left: u8,
}

/// The buffer's state.
#[derive(Debug)]
pub(super) struct WriteBuffer {
    slots: Vec<Slot>,
    lists: Lists,
    /// The newest slot of each unit.
    index: PageIndex,
    free: u32,
    waiting: u32,
    batch_units: u32,
    kept_units: u32,
    /// Lists of batches that are not used.
    unused: Vec<usize>,
    on_their_way: BinaryHeap<Reverse<(u64, usize)>>,
}

/// The bits of `sectors` sectors from `first` on.
#[inline]
fn bits(first: u32, sectors: u32) -> u8 {
    (((1u32 << sectors) - 1) << first) as u8
}

#[inline]
fn unit_of(sector: u64) -> (u32, u32) {
    ((sector / u64::from(UNIT_SECTORS)) as u32, (sector % u64::from(UNIT_SECTORS)) as u32)
}

impl WriteBuffer {
    /// An empty buffer of `units` units, at least 1, written out `batch_units` at a time once more than `kept_units` wait.
    pub(super) fn new(units: u32, batch_units: u32, kept_units: u32) -> Self {
        let mut lists = Lists::new(units as usize, BATCHES + units as usize);
        (0..units).for_each(|slot| lists.push_back(FREE, slot));
        Self {
            slots: vec![Slot::default(); units as usize],
            lists,
            // Twice as large as it must be: units come and go all the time, and short runs make that quick.
            index: PageIndex::new(2 * units),
            free: units,
            waiting: 0,
            batch_units,
            kept_units,
            unused: (BATCHES..BATCHES + units as usize).rev().collect(),
            on_their_way: BinaryHeap::with_capacity(units as usize),
        }
    }

    /// Units that wait.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Whether a batch is to be written out.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.waiting >= self.kept_units
    }

    /// The slot in which a unit waits.
    #[inline]
    fn waiting_slot(&self, unit: u32) -> Option<u32> {
        self.index.get(unit).filter(|&slot| self.slots[slot as usize].is_waiting)
    }

    /// Whether a sector can be put into it.
    #[inline]
    pub(super) fn has_room_for(&self, sector: u64) -> bool {
        self.free > 0 || self.waiting_slot(unit_of(sector).0).is_some()
    }

    /// When the next batch will be on the flash.
    pub(super) fn next_room_ns(&self) -> Option<u64> {
        self.on_their_way.peek().map(|&Reverse((end_ns, _))| end_ns)
    }

    /// Puts sectors of one unit into it, for which it has room. Returns how many of them were there and waiting.
    #[inline]
    pub(super) fn put(&mut self, sector: u64, sectors: u32) -> u32 {
        let (unit, first) = unit_of(sector);
        let bits = bits(first, sectors);
        // One look-up decides: the slot in which the unit waits stays, and a new one takes its place otherwise.
        let (next, slots) = (self.lists.front(FREE), &self.slots);
        let is_waiting = |slot: &u32| slots[*slot as usize].is_waiting;
        let known = self.index.update(unit, |known| known.filter(is_waiting).or(next).unwrap_or_default());
        if let Some(slot) = known.filter(is_waiting) {
            let slot = &mut self.slots[slot as usize];
            let again = slot.sectors & bits;
            slot.sectors |= bits;
            return again.count_ones();
        }
        let Some(slot) = self.lists.pop_front(FREE) else { unreachable!("it has room for the sector") };
        self.free -= 1;
        self.slots[slot as usize] = Slot { unit, sectors: bits, is_waiting: true };
        self.lists.push_back(WAITING, slot);
        self.waiting += 1;
        0
    }

    /// From `sector` on: whether it is in the buffer, and up to where, at most `end`, that stays so.
    pub(super) fn run(&self, sector: u64, end: u64) -> (bool, u64) {
        let is_here = |sector: u64, sectors: u32| {
            let (unit, first) = unit_of(sector);
            let bits = bits(first, sectors);
            self.index.get(unit).is_some_and(|slot| self.slots[slot as usize].sectors & bits == bits)
        };
        let piece = |sector: u64| {
            let left = UNIT_SECTORS - (sector % u64::from(UNIT_SECTORS)) as u32;
            u64::from(left).min(end - sector) as u32
        };
        let hit = is_here(sector, piece(sector));
        let mut at = sector + u64::from(piece(sector));
        while at < end && is_here(at, piece(at)) == hit {
            at += u64::from(piece(at));
        }
        (hit, at)
    }

    /// Forgets the sectors of a request that wait.
    pub(super) fn forget(&mut self, request: &Request) {
        let mut sector = request.sector;
        while sector < request.end() {
            let (unit, first) = unit_of(sector);
            let sectors = (UNIT_SECTORS - first).min((request.end() - sector) as u32);
            if let Some(slot) = self.waiting_slot(unit) {
                self.slots[slot as usize].sectors &= !bits(first, sectors);
                if self.slots[slot as usize].sectors == 0 {
                    self.lists.remove(WAITING, slot);
                    self.waiting -= 1;
                    self.forget_slot(slot);
                    self.lists.push_back(FREE, slot);
                }
            }
            sector += u64::from(sectors);
        }
    }

    /// Empties a slot, which is to join the free ones.
    fn forget_slot(&mut self, slot: u32) {
        let unit = self.slots[slot as usize].unit;
        // A newer one may have come since.
        self.index.remove_if(unit, slot);
        self.slots[slot as usize] = Slot::default();
        self.free += 1;
    }

    /// Takes the units that have waited for longest.
    pub(super) fn take_batch(&mut self) -> Batch {
        let list = self.unused.pop().unwrap_or_else(|| unreachable!("a batch has a unit"));
        if self.waiting <= self.batch_units {
            self.lists.append(WAITING, list);
        } else {
            for _ in 0..self.batch_units {
                let Some(slot) = self.lists.pop_front(WAITING) else { break };
                self.lists.push_back(list, slot);
            }
        }
        self.waiting = self.waiting.saturating_sub(self.batch_units);
        for slot in self.lists.iter(list) {
            self.slots[slot as usize].is_waiting = false;
        }
        let slot = self.lists.front(list);
        Batch { list, slot, left: slot.map_or(0, |slot| self.slots[slot as usize].sectors) }
    }

    /// The next sectors of a batch that follow each other.
    pub(super) fn next_run(&mut self, batch: &mut Batch) -> Option<(u64, u32)> {
        let mut run: Option<(u64, u32)> = None;
        while let Some(slot) = batch.slot {
            if batch.left == 0 {
                batch.slot = self.lists.after(slot);
                batch.left = batch.slot.map_or(0, |slot| self.slots[slot as usize].sectors);
                continue;
            }
            let first = batch.left.trailing_zeros();
            let sectors = if batch.left == ALL_SECTORS { UNIT_SECTORS } else { (batch.left >> first).trailing_ones() };
            let sector = u64::from(self.slots[slot as usize].unit) * u64::from(UNIT_SECTORS) + u64::from(first);
            match &mut run {
                None => run = Some((sector, sectors)),
                Some((start, length)) if *start + u64::from(*length) == sector => *length += sectors,
                Some(_) => break,
            }
            batch.left &= !bits(first, sectors);
        }
        run
    }

    /// A batch will be on the flash at `end_ns`: until then it takes room, and can be read.
    pub(super) fn is_written(&mut self, batch: Batch, end_ns: u64) {
        self.on_their_way.push(Reverse((end_ns, batch.list)));
    }

    /// Frees what is on the flash by `now_ns`.
    #[inline]
    pub(super) fn retire(&mut self, now_ns: u64) {
        while let Some(&Reverse((end_ns, list))) = self.on_their_way.peek() {
            if end_ns > now_ns {
                break;
            }
            self.on_their_way.pop();
            let mut next = self.lists.front(list);
            while let Some(slot) = next {
                self.forget_slot(slot);
                next = self.lists.after(slot);
            }
            self.lists.append(list, FREE);
            self.unused.push(list);
        }
    }
}
