//! A region of flash in a file: frames in slots.
//!
//! The file begins with a label. Slots follow from byte 4,096 on; a slot has a frame for each page of a block.
//!
//! A sparse file takes room as slots come into use, and gives back that of slots that are not needed soon. Room for some slots
//! is taken ahead of what is programmed, so that a request that was accepted does not fail half-way for lack of it.

use std::io::{self, IoSlice};
use std::sync::Arc;

use bimetal_core::save::Table;
use bimetal_core::units::{BlockId, Geometry, Ppa};

use super::backing::File;
use super::bytes::Buffer;
use super::frame::{FrameError, Layout, Place};
use super::label::{FileRole, Label};
use super::slots::Slots;
use super::state::{self, Reader, Writer};
use super::write_buffer::{FrameRun, WriteBuffer};

/// Where the first slot begins.
pub const FIRST_SLOT: u64 = Label::BYTES as u64;
/// Slots beyond the blocks, for blocks that were erased since the last commit: a part of the blocks, and at least this number.
const RESERVE_PART: u32 = 50;
const RESERVE_MIN: u32 = 32;
/// Bytes of slots for which a sparse file has room ahead, and the least number of them.
const AHEAD_BYTES: u64 = 64 << 20;
const AHEAD_MIN: u64 = 2;

/// Bytes of a file that holds all blocks of a region, with the reserve.
pub fn file_bytes(part: FileRole) -> u64 {
    let FileRole::Region { page_bytes, pages_per_block, blocks, .. } = part else { return 0 };
    let slot_bytes = Layout::new(page_bytes).stride() as u64 * u64::from(pages_per_block);
    FIRST_SLOT + (u64::from(blocks) + u64::from(reserve(blocks))) * slot_bytes
}

fn reserve(blocks: u32) -> u32 {
    (blocks / RESERVE_PART).max(RESERVE_MIN)
}

/// A region.
pub struct Region {
    /// Position in the device.
    pub id: u8,
    /// Blocks and pages.
    pub geometry: Geometry,
    /// How a page lies in the file.
    pub layout: Layout,
    file: File,
    waiting: WriteBuffer,
    slots: Slots,
    /// Pages of each block that are programmed, and the sequence number of the first of them.
    programmed: Table<u32>,
    births: Table<u64>,
    /// Slots that the file can have at most, and those kept beyond the blocks.
    slots_max: Option<u32>,
    reserve: u32,
    /// Slots for which there must be room before a request is accepted; 0 if the file has all its room.
    ahead: u32,
    slot_bytes: u64,
    /// Whether anything was written since the file was last handed over to be synced, and whether frames were since the last commit
    /// began.
    is_dirty: bool,
    is_ahead: bool,
}

/// Where a page lies.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// What its frame must say.
    pub place: Place,
    /// Sequence number of the block's first program since its erase.
    pub since: u64,
    /// Its first byte in the file.
    pub offset: u64,
}

/// What a commit writes to a file, or makes durable in it.
pub struct Leaving {
    /// Position of the region in the device.
    pub region: u8,
    /// Frames that waited.
    pub runs: Vec<Arc<FrameRun>>,
    file: File,
}

impl Leaving {
    /// Writes what waited.
    ///
    /// # Errors
    /// Some may not have been written. After one that [`is_full`](super::backing::is_full) it can be done again.
    pub fn write(&self) -> io::Result<()> {
        self.runs.iter().try_for_each(|run| run.write(self.file.as_ref()))
    }

    /// The file, to be synced when that is done.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Spot {
    /// Whether its frame lies right behind that of another page of the same region.
    pub fn is_behind(&self, other: &Self, stride: usize) -> bool {
        self.place.region == other.place.region && self.offset == other.offset + stride as u64
    }
}

impl Region {
    /// An erased region in a file that has its label, and all its room unless it is sparse.
    ///
    /// # Errors
    /// The length of the file cannot be found out.
    pub fn new(file: File, id: u8, geometry: Geometry, sparse: bool) -> io::Result<Self> {
        let layout = Layout::new(geometry.page_bytes);
        let slot_bytes = layout.stride() as u64 * u64::from(geometry.pages_per_block);
        let slots_max = if file.is_fixed() {
            Some((file.length()?.saturating_sub(FIRST_SLOT) / slot_bytes).min(u64::from(u32::MAX - 1)) as u32)
        } else {
            None
        };
        let spare = slots_max.map(|slots| slots.saturating_sub(geometry.blocks));
        let reserve = spare.unwrap_or_else(|| reserve(geometry.blocks));
        let ahead = (AHEAD_BYTES / slot_bytes).clamp(AHEAD_MIN, u64::from(reserve).max(AHEAD_MIN)) as u32;
        Ok(Self {
            id,
            geometry,
            layout,
            file,
            waiting: WriteBuffer::new(layout.stride(), geometry.pages_per_block as usize),
            slots: Slots::new(geometry.blocks),
            programmed: vec![0; geometry.blocks as usize].into(),
            births: vec![0; geometry.blocks as usize].into(),
            slots_max,
            reserve,
            ahead: if sparse && slots_max.is_none() { ahead } else { 0 },
            slot_bytes,
            is_dirty: false,
            is_ahead: false,
        })
    }

    /// Where a programmed page lies; none if its block is erased.
    #[inline]
    pub fn spot(&self, page: Ppa) -> Option<Spot> {
        let block = self.geometry.block_of(page);
        let slot = self.slots.of(block.index())?;
        Some(self.spot_in(slot, block, self.geometry.page_of(page)))
    }

    fn spot_in(&self, slot: u32, block: BlockId, page: u32) -> Spot {
        Spot {
            place: Place { region: self.id, slot, page, block: block.0 },
            since: self.births[block.index()],
            offset: self.offset(slot, page),
        }
    }

    /// Takes a page for a program of that sequence number. Its block gets a slot if it has none.
    pub fn take(&mut self, page: Ppa, sequence: u64) -> Spot {
        let (block, number) = (self.geometry.block_of(page), self.geometry.page_of(page));
        let slot = self.slots.of(block.index()).unwrap_or_else(|| {
            self.births[block.index()] = sequence;
            self.slots.attach(block.index())
        });
        debug_assert_eq!(number, self.programmed[block.index()], "pages are programmed in order, once per erase");
        self.programmed[block.index()] = number + 1;
        self.spot_in(slot, block, number)
    }

    /// Writes frames that follow one another and were durable in the journal, unless they are in the file already, or later ones are.
    /// `place` is told those that are not there, and where they belong.
    ///
    /// # Errors
    /// The frames are none of this region, or the file fails.
    pub fn put_back(
        &mut self,
        offset: u64,
        frames: &[u8],
        seed: u32,
        mut place: impl FnMut(&mut Self, u64, &[u8]) -> io::Result<()>,
    ) -> Result<(), String> {
        let mut there = Buffer::new(self.layout.stride());
        for (frame, offset) in frames.chunks(self.layout.stride()).zip((offset..).step_by(self.layout.stride())) {
            let sequence = self.sequence_at(offset, frame, seed).ok_or("it has a page that cannot be")?;
            self.file.read_at(offset, there.bytes_mut()).map_err(|error| error.to_string())?;
            // A slot may have been given to others since, whose pages were synced before their batch was written.
            if self.sequence_at(offset, there.bytes(), seed).is_none_or(|there| there < sequence) {
                place(self, offset, frame).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// The sequence number of a frame that belongs there.
    fn sequence_at(&self, offset: u64, frame: &[u8], seed: u32) -> Option<u64> {
        if frame.len() != self.layout.stride() {
            return None;
        }
        let (place, sequence) = self.layout.open(frame, seed).ok()?;
        let is_its_place = place.region == self.id
            && place.page < self.geometry.pages_per_block
            && self.offset(place.slot, place.page) == offset;
        is_its_place.then_some(sequence)
    }

    /// Its file.
    pub fn file(&self) -> File {
        Arc::clone(&self.file)
    }

    /// Whether the frame of a page waits in memory.
    pub fn is_waiting(&self, spot: &Spot) -> bool {
        self.waiting.get(spot.offset, self.layout.stride()).is_some()
    }

    /// The file, if anything was written since it was last handed over to be synced.
    pub fn take_dirty(&mut self) -> Option<File> {
        std::mem::take(&mut self.is_dirty).then(|| Arc::clone(&self.file))
    }

    /// The first byte of a page in the file.
    fn offset(&self, slot: u32, page: u32) -> u64 {
        FIRST_SLOT + u64::from(slot) * self.slot_bytes + u64::from(page) * self.layout.stride() as u64
    }

    /// Erases a block.
    pub fn erase(&mut self, block: BlockId) {
        self.programmed[block.index()] = 0;
        self.slots.detach(block.index());
    }

    /// Reads the frame of a page.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn load(&self, spot: &Spot, frame: &mut [u8]) -> io::Result<()> {
        match self.waiting.get(spot.offset, self.layout.stride()) {
            Some(waiting) => frame.copy_from_slice(waiting),
            None => self.file.read_at(spot.offset, frame)?,
        }
        Ok(())
    }

    /// Whether that is the frame of a page. Returns its sequence number.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn verify(&self, spot: &Spot, frame: &[u8], seed: u32) -> Result<u64, FrameError> {
        self.layout.verify(frame, spot.place, spot.since, seed)
    }

    /// Writes the frame of a page, now or with the next commit. `compose` writes it to memory.
    ///
    /// # Errors
    /// This one or others may not have been written.
    pub fn write(&mut self, spot: &Spot, compose: impl FnOnce(&mut [u8])) -> io::Result<()> {
        self.check_slot(spot)?;
        let written = self.waiting.put(self.file.as_ref(), spot.offset, self.layout.stride(), compose)?;
        self.is_dirty |= written;
        self.is_ahead |= written;
        Ok(())
    }

    /// As [`Region::write`], for `count` pages that follow one another. Writes as many of them as can be written together, and returns
    /// how many. `compose` writes their frames to memory.
    ///
    /// # Errors
    /// As there, or those of `compose`.
    pub fn write_several(
        &mut self,
        first: &Spot,
        count: usize,
        compose: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<usize> {
        self.check_slot(first)?;
        let (file, stride) = (self.file.as_ref(), self.layout.stride());
        let put = self.waiting.put_several(file, first.offset, stride, count * stride, compose);
        // Room may have been made before `compose` failed.
        let written = put.as_ref().map_or(true, |&(_, written)| written);
        self.is_dirty |= written;
        self.is_ahead |= written;
        Ok(put?.0 / stride)
    }

    fn check_slot(&self, spot: &Spot) -> io::Result<()> {
        match self.slots_max {
            Some(slots) if spot.place.slot >= slots => Err(io::Error::other("too few slots for one request")),
            _ => Ok(()),
        }
    }

    /// Whether frames from there on are best written at once: others of the next commit are in the file already, which has to be
    /// synced for it.
    pub fn takes_rows(&self, spot: &Spot) -> bool {
        self.is_ahead && self.check_slot(spot).is_ok()
    }

    /// Writes frames that follow one another to the file at once.
    ///
    /// # Errors
    /// Some may not have been written.
    pub fn write_row(&mut self, offset: u64, frames: &[IoSlice<'_>]) -> io::Result<()> {
        self.is_dirty = true;
        self.is_ahead = true;
        self.file.write_vectored_at(offset, frames)
    }

    /// Writes the frame of a page to the file at once.
    ///
    /// # Errors
    /// It may not have been written.
    pub fn write_through(&mut self, offset: u64, frame: &[u8]) -> io::Result<()> {
        self.is_dirty = true;
        self.is_ahead = true;
        self.file.write_at(offset, frame)
    }

    /// Bytes of frames that wait for the next commit; none if others of it are in the file already.
    pub fn waiting_bytes(&self) -> Option<usize> {
        (!self.is_ahead).then(|| self.waiting.bytes())
    }

    /// Whether a commit has begun that is not durable.
    pub fn is_leaving(&self) -> bool {
        self.slots.is_leaving()
    }

    /// A commit begins that has nothing to write: events are replayed.
    pub fn pass(&mut self) {
        self.slots.leave();
    }

    /// A commit begins: what it has to write, and to sync now or later.
    pub fn leave(&mut self) -> Option<Leaving> {
        self.slots.leave();
        self.is_ahead = false;
        let runs = self.waiting.leave();
        self.is_dirty |= !runs.is_empty();
        let file = self.take_dirty()?;
        Some(Leaving { region: self.id, runs, file })
    }

    /// Slots that wait for a commit.
    #[cfg(feature = "soak")]
    pub fn parked(&self) -> u32 {
        self.slots.parked()
    }

    /// Whether enough slots wait for a commit that there should be one before the next request.
    pub fn wants_commit(&self) -> bool {
        self.slots.parked() > self.reserve / 2
    }

    /// Whether room must be taken before a request is accepted.
    #[inline]
    pub fn lacks_room(&self) -> bool {
        self.slots.ready() < self.ahead
    }

    /// Whether so little of that room is left that a commit may find none if anything more is programmed.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.slots.ready() < self.ahead.div_ceil(2)
    }

    /// Takes room for the slots that the next requests will need.
    ///
    /// # Errors
    /// There is too little.
    pub fn make_room(&mut self) -> io::Result<()> {
        let (file, slot_bytes) = (&self.file, self.slot_bytes);
        self.slots.make_ready(self.ahead, |slot| file.allocate(FIRST_SLOT + u64::from(slot) * slot_bytes, slot_bytes))
    }

    /// A commit is durable: its pages are in the file, and slots that wait for it are free. Room that is not needed soon is given back if `punches`, unless
    /// the file is to keep all its room.
    pub fn left(&mut self, punches: bool) {
        let (file, slot_bytes) = (&self.file, self.slot_bytes);
        self.waiting.left();
        let punches = punches && (self.ahead > 0 || self.slots_max.is_some());
        self.slots.release(self.reserve, |slot| {
            if punches {
                // Where it cannot be given back, it stays: that costs room and nothing else.
                file.punch(FIRST_SLOT + u64::from(slot) * slot_bytes, slot_bytes).ok();
            }
        });
    }

    /// Pages that are programmed, and where they lie.
    pub fn programmed(&self) -> impl Iterator<Item = Spot> + '_ {
        (0..self.geometry.blocks).flat_map(move |block| {
            let slot = self.slots.of(block as usize);
            let pages = self.programmed[block as usize];
            slot.into_iter().flat_map(move |slot| (0..pages).map(move |page| self.spot_in(slot, BlockId(block), page)))
        })
    }

    /// Appends its state to a checkpoint.
    pub fn save(&self, out: &mut Writer<'_>) {
        self.slots.save(out);
        out.table(&self.programmed);
        out.table(&self.births);
    }

    /// Reads its state from a checkpoint.
    ///
    /// # Errors
    /// It is not that of such a region.
    pub fn restore(&mut self, state: &mut Reader<'_>, layout: state::Layout) -> Result<(), String> {
        self.slots = Slots::restore(state, layout, self.geometry.blocks)?;
        state.table(&mut self.programmed, layout)?;
        state.table(&mut self.births, layout)?;
        let sound = |(block, &pages): (usize, &u32)| {
            pages <= self.geometry.pages_per_block && (pages > 0) == self.slots.of(block).is_some()
        };
        if !self.programmed.iter().enumerate().all(sound) {
            return Err("the blocks have pages without a slot, or more than they can have".into());
        }
        Ok(())
    }

    /// Bytes of memory that it takes for what it knows of its blocks, and for frames that wait.
    pub fn memory_bytes(&self) -> (usize, usize) {
        let known = self.slots.memory_bytes() + self.programmed.memory_bytes() + self.births.memory_bytes();
        (known, self.waiting.memory_bytes())
    }
}
