//! The write buffer: data of the host that wait for the flash, or are on their way to it.
//!
//! It holds units of 4 KiB with a bit for each sector, in frames of one wordline each. A unit takes the next slot of
//! the frame that is being filled. A sector that is written again while its unit waits stays in its slot. Full frames
//! go to the flash in the order in which they were filled, and are free when all of their data are on the flash.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::part::page_index::PageIndex;
use crate::request::Request;

/// Sectors of a unit.
pub(super) const UNIT_SECTORS: u32 = 8;
const ALL_SECTORS: u8 = u8::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    unit: u32,
    /// Bits of the sectors that it holds.
    sectors: u8,
    is_waiting: bool,
    /// Placement handle of its last write.
    handle: u8,
}

/// The frame that is being filled.
#[derive(Clone, Copy, Debug)]
struct Open {
    frame: u32,
    /// Its next slot, and the end of its slots.
    next: u32,
    end: u32,
}

/// A frame on its way to the flash.
#[derive(Debug)]
pub(super) struct Batch {
    frame: u32,
    /// The current slot, the end of the slots, and the sectors that are left of the current slot.
    slot: u32,
    end: u32,
    left: u8,
}

/// The buffer's state.
#[derive(Debug)]
pub(super) struct WriteBuffer {
    /// Slots, frame by frame.
    slots: Vec<Slot>,
    /// The newest slot of each unit.
    index: PageIndex,
    frame_units: u32,
    /// Number of full frames from which on the oldest is written out.
    kept_frames: usize,
    free: Vec<u32>,
    open: Option<Open>,
    /// Frames that wait, the oldest first.
    full: VecDeque<u32>,
    on_their_way: BinaryHeap<Reverse<(u64, u32)>>,
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
    /// An empty buffer of `frames` frames of `frame_units` units, at least 1 each. The oldest frame is due once
    /// `kept_frames` are full.
    pub(super) fn new(frames: u32, frame_units: u32, kept_frames: u32) -> Self {
        let units = frames * frame_units;
        Self {
            slots: vec![Slot::default(); units as usize],
            // Twice the necessary size: units are added and removed all the time, and short probe runs make that fast.
            index: PageIndex::new(2 * units),
            frame_units,
            kept_frames: kept_frames as usize,
            free: (0..frames).rev().collect(),
            open: None,
            full: VecDeque::with_capacity(frames as usize),
            on_their_way: BinaryHeap::with_capacity(frames as usize),
        }
    }

    /// Whether data wait in it.
    pub(super) fn has_waiting(&self) -> bool {
        self.open.is_some() || !self.full.is_empty()
    }

    /// Whether a frame is to be written out.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.full.len() >= self.kept_frames
    }

    /// Whether data stay in the buffer after their frame is full.
    #[inline]
    pub(super) fn keeps_frames(&self) -> bool {
        self.kept_frames > 1
    }

    /// The slot in which a unit waits.
    #[inline]
    fn waiting_slot(&self, unit: u32) -> Option<u32> {
        self.index.get(unit).filter(|&slot| self.slots[slot as usize].is_waiting)
    }

    /// Whether the buffer has room for a sector.
    #[inline]
    pub(super) fn has_room_for(&self, sector: u64) -> bool {
        self.open.is_some() || !self.free.is_empty() || self.waiting_slot(unit_of(sector).0).is_some()
    }

    /// Time at which the next frame will be on the flash.
    pub(super) fn next_room_ns(&self) -> Option<u64> {
        self.on_their_way.peek().map(|&Reverse((end_ns, _))| end_ns)
    }

    /// Puts sectors of one unit into the buffer, which has room for them. Returns how many of them were already
    /// waiting.
    #[inline]
    pub(super) fn put(&mut self, sector: u64, sectors: u32, handle: u8) -> u32 {
        let (unit, first) = unit_of(sector);
        let bits = bits(first, sectors);
        // One look-up decides: a waiting unit keeps its slot, any other gets the next one.
        let first_of = |&frame: &u32| frame * self.frame_units;
        let next = self.open.map(|open| open.next).or(self.free.last().map(first_of));
        let slots = &self.slots;
        let is_waiting = |slot: &u32| slots[*slot as usize].is_waiting;
        let known = self.index.update(unit, |known| known.filter(is_waiting).or(next).unwrap_or_default());
        if let Some(slot) = known.filter(is_waiting) {
            let slot = &mut self.slots[slot as usize];
            let again = slot.sectors & bits;
            slot.sectors |= bits;
            slot.handle = handle;
            return again.count_ones();
        }
        let slot = self.take_slot();
        self.slots[slot as usize] = Slot { unit, sectors: bits, is_waiting: true, handle };
        0
    }

    /// The next slot of the open frame, or of a new one.
    #[inline]
    fn take_slot(&mut self) -> u32 {
        let mut open = self.open.unwrap_or_else(|| {
            let Some(frame) = self.free.pop() else { unreachable!("it has room for the sector") };
            Open { frame, next: frame * self.frame_units, end: (frame + 1) * self.frame_units }
        });
        let slot = open.next;
        open.next += 1;
        self.open = if open.next < open.end {
            Some(open)
        } else {
            self.full.push_back(open.frame);
            None
        };
        slot
    }

    /// Whether `sector` is in the buffer, and the end of the sectors after it for which the answer is the same, at most
    /// `end`.
    #[inline]
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

    /// Discards the waiting sectors of a request.
    pub(super) fn forget(&mut self, request: &Request) {
        let mut sector = request.sector;
        while sector < request.end() {
            let (unit, first) = unit_of(sector);
            let sectors = (UNIT_SECTORS - first).min((request.end() - sector) as u32);
            if let Some(slot) = self.waiting_slot(unit) {
                self.slots[slot as usize].sectors &= !bits(first, sectors);
                if self.slots[slot as usize].sectors == 0 {
                    self.empty(slot);
                }
            }
            sector += u64::from(sectors);
        }
    }

    /// Empties a slot.
    #[inline]
    fn empty(&mut self, slot: u32) {
        let Slot { unit, .. } = std::mem::take(&mut self.slots[slot as usize]);
        // The index may have a newer slot of the unit.
        self.index.remove_if(unit, slot);
    }

    /// Takes the frame that has waited longest, if any.
    pub(super) fn take_batch(&mut self) -> Option<Batch> {
        let (frame, end) = match self.full.pop_front() {
            Some(frame) => (frame, (frame + 1) * self.frame_units),
            None => self.open.take().map(|open| (open.frame, open.next))?,
        };
        let slot = frame * self.frame_units;
        self.slots[slot as usize..end as usize].iter_mut().for_each(|slot| slot.is_waiting = false);
        Some(Batch { frame, slot, end, left: self.slots[slot as usize].sectors })
    }

    /// The first sectors of the units of a batch, each behind that of a unit of the next frame.
    pub(super) fn soon_and_now(&self, batch: &Batch) -> impl Iterator<Item = (u64, u64)> + '_ {
        let sector = |slot: &Slot| u64::from(slot.unit) * u64::from(UNIT_SECTORS);
        let soon = self.full.front().map_or(0..0, |&frame| self.places(frame));
        let now = batch.slot as usize..batch.end as usize;
        self.slots[soon].iter().zip(&self.slots[now]).map(move |(soon, now)| (sector(soon), sector(now)))
    }

    /// Brings the index entry of a sector into the processor's cache.
    #[inline]
    pub(super) fn prefetch(&self, sector: u64) {
        self.index.prefetch(unit_of(sector).0);
    }

    /// The next sectors of a batch that are consecutive and have the same handle: first sector, number, handle.
    pub(super) fn next_run(&mut self, batch: &mut Batch) -> Option<(u64, u32, u8)> {
        let mut run: Option<(u64, u32, u8)> = None;
        while batch.slot < batch.end {
            if batch.left == 0 {
                batch.slot += 1;
                batch.left = if batch.slot < batch.end { self.slots[batch.slot as usize].sectors } else { 0 };
                continue;
            }
            let first = batch.left.trailing_zeros();
            let sectors = if batch.left == ALL_SECTORS { UNIT_SECTORS } else { (batch.left >> first).trailing_ones() };
            let Slot { unit, handle, .. } = self.slots[batch.slot as usize];
            let sector = u64::from(unit) * u64::from(UNIT_SECTORS) + u64::from(first);
            match &mut run {
                None => run = Some((sector, sectors, handle)),
                Some((start, length, of)) if *start + u64::from(*length) == sector && *of == handle => {
                    *length += sectors
                }
                Some(_) => break,
            }
            batch.left &= !bits(first, sectors);
        }
        run
    }

    /// A batch will be on the flash at `end_ns`: until then it occupies room and can be read.
    pub(super) fn is_written(&mut self, batch: Batch, end_ns: u64) {
        self.on_their_way.push(Reverse((end_ns, batch.frame)));
    }

    /// Slots of a frame.
    fn places(&self, frame: u32) -> std::ops::Range<usize> {
        let first = (frame * self.frame_units) as usize;
        first..first + self.frame_units as usize
    }

    /// Frees the frames that are on the flash by `now_ns`.
    #[inline]
    pub(super) fn retire(&mut self, now_ns: u64) {
        while let Some(&Reverse((end_ns, frame))) = self.on_their_way.peek() {
            if end_ns > now_ns {
                break;
            }
            self.on_their_way.pop();
            self.clear(frame);
        }
    }

    /// Empties and frees a frame.
    #[inline(never)]
    fn clear(&mut self, frame: u32) {
        self.slots[self.places(frame)].iter().for_each(|slot| self.index.prefetch(slot.unit));
        for slot in self.places(frame) {
            if self.slots[slot].sectors > 0 {
                self.empty(slot as u32);
            }
        }
        self.free.push(frame);
    }
}
