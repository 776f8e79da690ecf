//! A region of flash in a file: frames in slots.
//!
//! The file begins with a label. Slots follow from byte 4,096 on; a slot has a frame for each page of a block.
//!
//! A sparse file allocates space as slots come into use, and releases the space of slots that are not needed soon. The
//! space for some slots is allocated ahead of programs, so that an accepted request does not run out of space halfway.

use std::collections::BTreeSet;
use std::io::{self, IoSlice};
use std::sync::Arc;

use bimetal_core::save::Table;
use bimetal_core::units::{BlockId, Geometry, Ppa};

use super::backing::File;
use super::bytes::Buffer;
use super::frame::{FrameError, Layout, Place};
use super::label::{FileRole, Label};
use super::slots::Slots;
use super::state::{Reader, Writer};
use super::write_buffer::{FrameRun, WriteBuffer};

/// Offset of the first slot.
pub const FIRST_SLOT: u64 = Label::BYTES as u64;
/// Additional slots for blocks that were erased since the last commit: the number of blocks divided by `RESERVE_PART`,
/// and at least `RESERVE_MIN`.
const RESERVE_PART: u32 = 50;
const RESERVE_MIN: u32 = 32;
/// Bytes of slots that a sparse file allocates ahead, and their least number.
const AHEAD_BYTES: u64 = 64 << 20;
const AHEAD_MIN: u64 = 2;

/// Bytes of a file for all blocks of a region, including the reserve.
pub fn file_bytes(part: FileRole) -> u64 {
    let FileRole::Region { page_bytes, pages_per_block, blocks, .. } = part else { return 0 };
    let slot_bytes = Layout::new(page_bytes).stride() as u64 * u64::from(pages_per_block);
    FIRST_SLOT + (u64::from(blocks) + u64::from(reserve(blocks))) * slot_bytes
}

fn reserve(blocks: u32) -> u32 {
    (blocks / RESERVE_PART).max(RESERVE_MIN)
}

/// Releases the space of a slot. If that fails, it remains allocated without other effects.
fn punch(file: &File, slot: u32, slot_bytes: u64) {
    file.punch(FIRST_SLOT + u64::from(slot) * slot_bytes, slot_bytes).ok();
}

/// A region.
pub struct Region {
    /// Index in the device.
    pub id: u8,
    /// Numbers of blocks and pages.
    pub geometry: Geometry,
    /// Format of a page in the file.
    pub layout: Layout,
    file: File,
    waiting: WriteBuffer,
    slots: Slots,
    /// Number of programmed pages in each block, and the sequence number of the first program.
    programmed: Table<u32>,
    births: Table<u64>,
    /// Largest number of slots in the file, and number of slots kept beyond the blocks.
    slots_max: Option<u32>,
    reserve: u32,
    /// Number of slots that must have space before a request is accepted; 0 if the file is fully allocated.
    ahead: u32,
    slot_bytes: u64,
    /// Slots whose space is to be released when the replay of events has ended.
    owed: BTreeSet<u32>,
    /// Whether the file has writes since it was last handed over for a sync, and whether frames were written since the
    /// last commit began.
    is_dirty: bool,
    is_ahead: bool,
}

/// Place of a page.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// The place that its frame must state.
    pub place: Place,
    /// Sequence number of the block's first program since its erase.
    pub since: u64,
    /// Offset in the file.
    pub offset: u64,
}

/// Writes of a commit to a file.
pub struct Leaving {
    /// Index of the region in the device.
    pub region: u8,
    /// Frames that waited for the commit.
    pub runs: Vec<Arc<FrameRun>>,
    file: File,
}

impl Leaving {
    /// Writes the frames that waited.
    ///
    /// # Errors
    /// Some may not have been written. After an error that [`is_full`](super::backing::is_full) the call can be
    /// repeated.
    pub fn write(&self) -> io::Result<()> {
        self.runs.iter().try_for_each(|run| run.write(self.file.as_ref()))
    }

    /// The file, to be synced after that.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Spot {
    /// Whether its frame directly follows that of another page in the same region.
    pub fn is_behind(&self, other: &Self, stride: usize) -> bool {
        self.place.region == other.place.region && self.offset == other.offset + stride as u64
    }
}

impl Region {
    /// An erased region, in a file that has its label and, unless it is sparse, all its space.
    ///
    /// # Errors
    /// The length of the file cannot be determined.
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
            owed: BTreeSet::new(),
            is_dirty: false,
            is_ahead: false,
        })
    }

    /// The place of a programmed page; `None` if its block is erased.
    #[inline]
    pub fn spot(&self, page: Ppa) -> Option<Spot> {
        let block = self.geometry.block_of(page);
        let slot = self.slots.of(block.index())?;
        Some(self.spot_in(slot, block, self.geometry.page_of(page)))
    }

    /// The slot of a programmed page, and its page within the slot; `None` if its block is erased.
    #[inline]
    pub fn slot_of(&self, page: Ppa) -> Option<(u32, u32)> {
        Some((self.slots.of(self.geometry.block_of(page).index())?, self.geometry.page_of(page)))
    }

    fn spot_in(&self, slot: u32, block: BlockId, page: u32) -> Spot {
        Spot {
            place: Place { region: self.id, slot, page, block: block.0 },
            since: self.births[block.index()],
            offset: self.offset(slot, page),
        }
    }

    /// Allocates the place of a page for a program with this sequence number. Its block gets a slot if it has none.
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

    /// Restores adjacent frames from the journal, unless they or later ones are already in the file. `place` is called
    /// with each missing frame and its offset.
    ///
    /// # Errors
    /// The frames do not belong to this region, or the file fails.
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
            // The slot may have been reused since. Pages of the new block were synced before their batch was written.
            if self.sequence_at(offset, there.bytes(), seed).is_none_or(|there| there < sequence) {
                place(self, offset, frame).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// The sequence number of a valid frame for this place.
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

    /// Bytes by which the file is shorter than its data, at least: those up to the last slot in use.
    ///
    /// # Errors
    /// The length of the file cannot be determined.
    pub fn missing_bytes(&self) -> io::Result<u64> {
        let end = self.slots.last_in_use().map_or(0, |slot| self.offset(slot, 1));
        Ok(end.saturating_sub(self.file.length()?))
    }

    /// Whether the frame of a page waits in memory.
    pub fn is_waiting(&self, spot: &Spot) -> bool {
        self.waiting.get(spot.offset, self.layout.stride()).is_some()
    }

    /// The file, if it has writes since it was last handed over for a sync.
    pub fn take_dirty(&mut self) -> Option<File> {
        std::mem::take(&mut self.is_dirty).then(|| Arc::clone(&self.file))
    }

    /// The offset of a page in the file.
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

    /// Verifies the frame of a page. Returns its sequence number.
    ///
    /// # Errors
    /// The reason why the frame is not valid.
    pub fn verify(&self, spot: &Spot, frame: &[u8], seed: u32) -> Result<u64, FrameError> {
        self.layout.verify(frame, spot.place, spot.since, seed)
    }

    /// Writes the frame of a page, now or with the next commit. `compose` fills the frame in memory.
    ///
    /// # Errors
    /// This frame or others may not have been written.
    pub fn write(&mut self, spot: &Spot, compose: impl FnOnce(&mut [u8])) -> io::Result<()> {
        self.check_slot(spot)?;
        let written = self.waiting.put(self.file.as_ref(), spot.offset, self.layout.stride(), compose)?;
        self.is_dirty |= written;
        self.is_ahead |= written;
        Ok(())
    }

    /// Like [`Region::write`], for `count` adjacent pages. Writes as many of them as possible at once, and returns
    /// their number. `compose` fills their frames in memory.
    ///
    /// # Errors
    /// The errors of [`Region::write`], or of `compose`.
    pub fn write_several(
        &mut self,
        first: &Spot,
        count: usize,
        compose: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<usize> {
        self.check_slot(first)?;
        let (file, stride) = (self.file.as_ref(), self.layout.stride());
        let put = self.waiting.put_several(file, first.offset, stride, count * stride, compose);
        // Space may have been made before `compose` failed.
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

    /// Whether frames from this place on should be written directly, because the file must be synced for the next
    /// commit anyway: other frames of that commit are already in it.
    pub fn takes_rows(&self, spot: &Spot) -> bool {
        self.is_ahead && self.check_slot(spot).is_ok()
    }

    /// Writes adjacent frames directly to the file.
    ///
    /// # Errors
    /// Some may not have been written.
    pub fn write_row(&mut self, offset: u64, frames: &[IoSlice<'_>]) -> io::Result<()> {
        self.is_dirty = true;
        self.is_ahead = true;
        self.file.write_vectored_at(offset, frames)
    }

    /// Writes the frame of a page directly to the file.
    ///
    /// # Errors
    /// It may not have been written.
    pub fn write_through(&mut self, offset: u64, frame: &[u8]) -> io::Result<()> {
        self.is_dirty = true;
        self.is_ahead = true;
        self.file.write_at(offset, frame)
    }

    /// Bytes of frames that wait for the next commit; `None` if other frames of that commit are already in the file.
    pub fn waiting_bytes(&self) -> Option<usize> {
        (!self.is_ahead).then(|| self.waiting.bytes())
    }

    /// Whether a commit has begun that is not durable.
    pub fn is_leaving(&self) -> bool {
        self.slots.is_leaving()
    }

    /// Begins a commit without writes, because events are replayed.
    pub fn pass(&mut self) {
        self.slots.leave();
    }

    /// Begins a commit. Returns its writes, and the file to sync.
    pub fn leave(&mut self) -> Option<Leaving> {
        self.slots.leave();
        let runs = self.waiting.leave();
        // Frames that are already in the file belong to this commit, also if a checkpoint is to sync the file: that sync
        // may be later than the commit, or fail.
        self.is_dirty |= std::mem::take(&mut self.is_ahead) || !runs.is_empty();
        let file = self.take_dirty()?;
        Some(Leaving { region: self.id, runs, file })
    }

    /// Number of slots that wait for a commit.
    #[cfg(feature = "soak")]
    pub fn parked(&self) -> u32 {
        self.slots.parked()
    }

    /// Whether enough slots wait for a commit that it should precede the next request.
    pub fn wants_commit(&self) -> bool {
        self.slots.parked() > self.reserve / 2
    }

    /// Whether a request must wait for a commit that frees slots: the file has space for its blocks and the reserve only, and
    /// the request may take more slots than are left.
    #[inline]
    pub fn lacks_slots(&self) -> bool {
        self.ahead == 0 && self.slots.left(self.geometry.blocks.saturating_add(self.reserve)) < self.reserve / 2
    }

    /// Whether space must be allocated before a request is accepted.
    #[inline]
    pub fn lacks_room(&self) -> bool {
        self.slots.ready() < self.ahead
    }

    /// Whether so little space is left that further programs may leave none for a commit.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.slots.ready() < self.ahead.div_ceil(2)
    }

    /// Allocates space for the slots that the next requests will need.
    ///
    /// # Errors
    /// There is too little space.
    pub fn make_room(&mut self) -> io::Result<()> {
        let (file, slot_bytes) = (&self.file, self.slot_bytes);
        self.slots.make_ready(self.ahead, |slot| file.allocate(FIRST_SLOT + u64::from(slot) * slot_bytes, slot_bytes))
    }

    /// A commit is durable: its pages are in the file, and slots that waited for it are free. The space of slots that are
    /// not needed soon is released, unless the file must keep all its space: now if `punches` is set, otherwise in
    /// [`Region::release_owed`].
    pub fn left(&mut self, punches: bool) {
        let (file, slot_bytes, owed) = (&self.file, self.slot_bytes, &mut self.owed);
        self.waiting.left();
        let keeps_space = self.ahead == 0 && self.slots_max.is_none();
        self.slots.release(self.reserve, |slot| {
            if punches && !keeps_space {
                punch(file, slot, slot_bytes);
            } else if !keeps_space {
                owed.insert(slot);
            }
        });
    }

    /// Releases the space of slots that were freed during a replay of events and are still free. They may have had no space
    /// before: the journal puts frames back into their places. No slot is released before the replay has ended, because
    /// frames of a later batch, which are in the file only, may be in it.
    pub fn release_owed(&mut self) {
        let owed = std::mem::take(&mut self.owed);
        if owed.is_empty() {
            return;
        }
        let released = self.slots.released().iter().filter(|slot| owed.contains(slot));
        released.for_each(|&slot| punch(&self.file, slot, self.slot_bytes));
    }

    /// Numbers of the free slots.
    pub fn free_slots(&self) -> BTreeSet<u32> {
        self.slots.free().iter().copied().collect()
    }

    /// The slot at this offset of the file, which is not before the first slot.
    pub fn slot_at(&self, offset: u64) -> u32 {
        (offset.saturating_sub(FIRST_SLOT) / self.slot_bytes) as u32
    }

    /// Places of all programmed pages.
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
    /// The state does not fit this region.
    pub fn restore(&mut self, state: &mut Reader<'_>) -> Result<(), String> {
        self.slots = Slots::restore(state, self.geometry.blocks)?;
        state.table(&mut self.programmed)?;
        state.table(&mut self.births)?;
        let sound = |(block, &pages): (usize, &u32)| {
            pages <= self.geometry.pages_per_block && (pages > 0) == self.slots.of(block).is_some()
        };
        if !self.programmed.iter().enumerate().all(sound) {
            return Err("the blocks have pages without a slot, or more than they can have".into());
        }
        Ok(())
    }

    /// Memory in bytes for the state of its blocks, and for frames that wait.
    pub fn memory_bytes(&self) -> (usize, usize) {
        let known = self.slots.memory_bytes() + self.programmed.memory_bytes() + self.births.memory_bytes();
        (known, self.waiting.memory_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::backing::{Access, Storage};
    use crate::store::crash_backing::CrashStorage;

    const SEED: u32 = 7;
    const USED: u32 = 40;

    /// A sparse file of 64 blocks.
    struct Sparse {
        storage: CrashStorage,
        file: File,
    }

    impl Sparse {
        fn new() -> Self {
            let storage = CrashStorage::new();
            let file = File::from(storage.open("flash", Access::Create, false).unwrap());
            Self { storage, file }
        }

        fn region(&self) -> Region {
            Region::new(Arc::clone(&self.file), 0, Geometry::new(512, 4, 64, 1).unwrap(), true).unwrap()
        }

        /// Slots of these frames that have been released.
        fn holes(&self, frames: &[(u64, Vec<u8>)]) -> Vec<usize> {
            let bytes = self.storage.bytes("flash");
            let is_hole =
                |(at, frame): &(u64, Vec<u8>)| bytes[*at as usize..][..frame.len()].iter().all(|&byte| byte == 0);
            (0..frames.len()).filter(|&number| is_hole(&frames[number])).collect()
        }
    }

    /// Programs the first page of each block. Returns the offsets and the frames.
    fn program(region: &mut Region, blocks: u32, sequence: u64) -> Vec<(u64, Vec<u8>)> {
        let frame = |block| {
            let spot = region.take(region.geometry.ppa(BlockId(block), 0), sequence + u64::from(block));
            let mut frame = vec![0; region.layout.stride()];
            region.layout.seal(&mut frame, spot.place, sequence + u64::from(block), SEED);
            (spot.offset, frame)
        };
        (0..blocks).map(frame).collect()
    }

    /// Replays the batch that programs all blocks, with its frames, and the batch that erases them.
    fn replay(region: &mut Region) -> Vec<(u64, Vec<u8>)> {
        let frames = program(region, USED, 1);
        for (offset, frame) in &frames {
            region.put_back(*offset, frame, SEED, Region::write_through).unwrap();
        }
        region.pass();
        region.left(false);
        (0..USED).for_each(|block| region.erase(BlockId(block)));
        region.pass();
        region.left(false);
        frames
    }

    #[test]
    fn space_that_was_released_is_released_again_after_a_replay() {
        let sparse = Sparse::new();
        let mut region = sparse.region();
        let frames = program(&mut region, USED, 1);
        frames.iter().for_each(|(offset, frame)| region.write_through(*offset, frame).unwrap());
        region.leave();
        region.left(true);
        (0..USED).for_each(|block| region.erase(BlockId(block)));
        region.leave();
        region.left(true);
        let released: Vec<usize> = (0..8).collect();
        assert_eq!(sparse.holes(&frames), released);

        let mut region = sparse.region();
        assert_eq!(replay(&mut region), frames);
        assert_eq!(sparse.holes(&frames), [0; 0], "the journal has put them back");
        region.release_owed();
        assert_eq!(sparse.holes(&frames), released);
        assert_eq!(region.free_slots().len(), USED as usize);
        assert_eq!(frames.iter().map(|(offset, _)| region.slot_at(*offset)).max(), Some(USED - 1));

        // A later batch has a frame in the last of these slots, which is the first to be used again. The frame is only in
        // the file.
        let mut region = sparse.region();
        replay(&mut region);
        let later = program(&mut region, USED - 7, 1000);
        let (offset, frame) = later.last().unwrap();
        assert_eq!(*offset, frames[7].0);
        region.write_through(*offset, frame).unwrap();
        region.pass();
        region.left(false);
        region.release_owed();
        assert_eq!(sparse.holes(&frames), released[..7]);
        let mut there = vec![0; frame.len()];
        sparse.file.read_at(*offset, &mut there).unwrap();
        assert_eq!(there, *frame);
    }
}
