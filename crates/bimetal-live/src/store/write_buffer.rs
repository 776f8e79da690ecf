//! Frames that wait to be written to a file.
//!
//! A scheme programs the pages of a block in order, and they are adjacent in the file. Programmed pages need not be
//! durable before the next commit. So they may wait here until there are enough of them for one large write. A commit
//! takes the waiting frames and writes them while others arrive. Until it has finished, these frames are read from
//! memory.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::backing::Backing;
use super::bytes::Buffer;

/// Approximate number of blocks that are filled at the same time. Schemes have a few open blocks, often one for each
/// die.
const RUNS: usize = 8;
/// Bytes of one write, unless a single frame has more.
const RUN_BYTES: usize = 256 << 10;

/// Frames that wait, in runs that are adjacent in the file.
#[derive(Debug)]
pub struct WriteBuffer {
    runs: Vec<FrameRun>,
    /// Runs of commits in progress, oldest first, and their number for each commit.
    leaving: VecDeque<Arc<FrameRun>>,
    counts: VecDeque<usize>,
    spare: Vec<FrameRun>,
    run_bytes: usize,
    /// The run that was begun first, if all are in use.
    oldest: usize,
}

/// Adjacent frames in the file.
#[derive(Debug, Default)]
pub struct FrameRun {
    offset: u64,
    bytes: Buffer,
    filled: usize,
}

impl FrameRun {
    fn end(&self) -> u64 {
        self.offset + self.filled as u64
    }

    fn holds(&self, offset: u64) -> bool {
        self.filled > 0 && (self.offset..self.end()).contains(&offset)
    }

    fn frame(&self, offset: u64, frame_bytes: usize) -> &[u8] {
        let from = (offset - self.offset) as usize;
        &self.bytes.bytes()[from..from + frame_bytes]
    }

    /// Writes it to the file.
    ///
    /// # Errors
    /// It may not have been written.
    pub fn write(&self, file: &dyn Backing) -> io::Result<()> {
        file.write_at(self.offset, self.frames())
    }

    /// Writes the run and empties it. Returns whether it contained anything. If the write fails, the run keeps its
    /// frames.
    fn write_out(&mut self, file: &dyn Backing) -> io::Result<bool> {
        if self.filled == 0 {
            return Ok(false);
        }
        self.write(file)?;
        self.filled = 0;
        Ok(true)
    }

    /// Its offset in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its frames.
    pub fn frames(&self) -> &[u8] {
        &self.bytes.bytes()[..self.filled]
    }
}

impl WriteBuffer {
    /// An empty buffer for frames of `stride` bytes. At most `in_a_row` of them are adjacent.
    pub fn new(stride: usize, in_a_row: usize) -> Self {
        let run_bytes = (RUN_BYTES / stride).clamp(1, in_a_row) * stride;
        let runs = (0..RUNS).map(|_| FrameRun::default()).collect();
        let (leaving, spare) = (VecDeque::with_capacity(RUNS), Vec::with_capacity(RUNS));
        Self { runs, leaving, counts: VecDeque::new(), spare, run_bytes, oldest: 0 }
    }

    /// Adds a frame for this place in the file, which `compose` fills. Full runs are written. Returns whether there was
    /// a write.
    ///
    /// # Errors
    /// Some frames could not be written. They remain here, but this one may not.
    pub fn put(
        &mut self,
        file: &dyn Backing,
        offset: u64,
        frame_bytes: usize,
        compose: impl FnOnce(&mut [u8]),
    ) -> io::Result<bool> {
        let (at, written) = self.run_for(file, offset, frame_bytes)?;
        let run = &mut self.runs[at];
        compose(&mut run.bytes.bytes_mut()[run.filled..run.filled + frame_bytes]);
        Ok(self.fill(at, file, frame_bytes, frame_bytes)? || written)
    }

    /// Like [`WriteBuffer::put`], for `bytes` bytes of adjacent frames. Takes as many of them as fit into the run;
    /// `compose` fills these, or fails and leaves nothing. Also returns their number of bytes.
    ///
    /// # Errors
    /// The errors of [`WriteBuffer::put`], or of `compose`.
    pub fn put_several(
        &mut self,
        file: &dyn Backing,
        offset: u64,
        frame_bytes: usize,
        bytes: usize,
        compose: impl FnOnce(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<(usize, bool)> {
        let (at, written) = self.run_for(file, offset, frame_bytes)?;
        let run = &mut self.runs[at];
        let taken = bytes.min((self.run_bytes - run.filled) / frame_bytes * frame_bytes);
        compose(&mut run.bytes.bytes_mut()[run.filled..run.filled + taken])?;
        Ok((taken, self.fill(at, file, frame_bytes, taken)? || written))
    }

    /// The run for a frame at this place in the file, and whether a write was needed to make room for it.
    fn run_for(&mut self, file: &dyn Backing, offset: u64, frame_bytes: usize) -> io::Result<(usize, bool)> {
        let follows = |run: &FrameRun| run.filled > 0 && run.end() == offset;
        let has_room = |run: &FrameRun| run.filled + frame_bytes <= self.run_bytes;
        let found = self.runs.iter().position(follows);
        if let Some(at) = found.filter(|&at| has_room(&self.runs[at])) {
            return Ok((at, false));
        }
        // A full run could not be written earlier.
        let empty = || self.runs.iter().position(|run| run.filled == 0);
        let at = found.or_else(empty).unwrap_or(self.oldest);
        let run = &mut self.runs[at];
        let written = run.write_out(file)?;
        run.offset = offset;
        run.bytes.resize(self.run_bytes);
        self.oldest = (at + 1) % RUNS;
        Ok((at, written))
    }

    /// A run has grown by `bytes` bytes. It is written if no further frame fits. Returns whether it was written.
    fn fill(&mut self, at: usize, file: &dyn Backing, frame_bytes: usize, bytes: usize) -> io::Result<bool> {
        let run = &mut self.runs[at];
        run.filled += bytes;
        if run.filled + frame_bytes > self.run_bytes { run.write_out(file) } else { Ok(false) }
    }

    /// Number of bytes that wait.
    pub fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.filled).sum()
    }

    /// Hands all waiting frames to a commit, which writes them.
    pub fn leave(&mut self) -> Vec<Arc<FrameRun>> {
        let before = self.leaving.len();
        for run in self.runs.iter_mut().filter(|run| run.filled > 0) {
            self.leaving.push_back(Arc::new(std::mem::replace(run, self.spare.pop().unwrap_or_default())));
        }
        self.counts.push_back(self.leaving.len() - before);
        self.leaving.range(before..).cloned().collect()
    }

    /// The oldest commit in progress has written its frames to the file.
    pub fn left(&mut self) {
        for run in self.leaving.drain(..self.counts.pop_front().unwrap_or(0)) {
            if let Some(run) = Arc::into_inner(run).filter(|_| self.spare.len() < RUNS) {
                self.spare.push(FrameRun { filled: 0, ..run });
            }
        }
    }

    /// The frame for this place in the file, if it waits here.
    pub fn get(&self, offset: u64, frame_bytes: usize) -> Option<&[u8]> {
        let leaving = self.leaving.iter().map(Arc::as_ref);
        self.runs.iter().chain(leaving).find(|run| run.holds(offset)).map(|run| run.frame(offset, frame_bytes))
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        let leaving = self.leaving.iter().map(Arc::as_ref);
        self.runs.iter().chain(&self.spare).chain(leaving).map(|run| run.bytes.capacity()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const STRIDE: usize = 512;

    /// Records the writes, until it fails.
    #[derive(Debug, Default)]
    struct Notes {
        writes: Mutex<Vec<(u64, usize)>>,
        fails: bool,
    }

    impl Backing for Notes {
        fn read_at(&self, _offset: u64, _out: &mut [u8]) -> io::Result<()> {
            Ok(())
        }

        fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.writes.lock().unwrap().push((offset, data.len()));
            if self.fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn punch(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
            Ok(())
        }

        fn length(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn set_len(&self, _bytes: u64) -> io::Result<()> {
            Ok(())
        }

        fn occupant(&self) -> io::Result<Option<String>> {
            Ok(None)
        }

        fn clear(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn put(buffer: &mut WriteBuffer, file: &Notes, offset: u64, fill: u8) -> io::Result<bool> {
        buffer.put(file, offset, STRIDE, |frame| frame.fill(fill))
    }

    #[test]
    fn frames_that_follow_one_another_are_written_at_once() {
        let (file, mut buffer) = (Notes::default(), WriteBuffer::new(STRIDE, 4));
        for page in 0..4_u64 {
            for block in 0..2_u64 {
                put(&mut buffer, &file, (block << 20) + page * STRIDE as u64, page as u8).unwrap();
            }
        }
        assert_eq!(*file.writes.lock().unwrap(), [(0, 2048), (1 << 20, 2048)], "four frames of each block");
        put(&mut buffer, &file, 9 << 20, 1).unwrap();
        assert_eq!(buffer.get(9 << 20, STRIDE), Some(&[1; STRIDE][..]));
        assert_eq!(buffer.get(0, STRIDE), None, "it is in the file");
        let leaving = buffer.leave();
        put(&mut buffer, &file, (9 << 20) + STRIDE as u64, 2).unwrap();
        assert_eq!(
            buffer.get(9 << 20, STRIDE),
            Some(&[1; STRIDE][..]),
            "it is read from memory until it is in the file"
        );
        leaving.iter().for_each(|run| run.write(&file).unwrap());
        assert_eq!(file.writes.lock().unwrap().last(), Some(&(9 << 20, STRIDE)));
        drop(leaving);
        buffer.left();
        assert_eq!(buffer.get(9 << 20, STRIDE), None);
        assert_eq!(buffer.get((9 << 20) + STRIDE as u64, STRIDE), Some(&[2; STRIDE][..]), "it came later");
    }

    #[test]
    fn several_frames_are_taken_as_far_as_they_follow() {
        let (file, mut buffer) = (Notes::default(), WriteBuffer::new(STRIDE, 4));
        let mut put = |offset, frames: usize, fill: u8| {
            buffer.put_several(&file, offset, STRIDE, frames * STRIDE, |place| {
                place.fill(fill);
                if fill == 0 { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
            })
        };
        assert_eq!(put(0, 3, 1).unwrap(), (3 * STRIDE, false));
        assert!(put(3 * STRIDE as u64, 1, 0).is_err(), "what is not composed is not taken");
        assert_eq!(put(3 * STRIDE as u64, 3, 2).unwrap(), (STRIDE, true), "the run is full");
        assert_eq!(put(4 * STRIDE as u64, 2, 3).unwrap(), (2 * STRIDE, false));
        assert_eq!(*file.writes.lock().unwrap(), [(0, 4 * STRIDE)]);
        assert_eq!(buffer.get(5 * STRIDE as u64, STRIDE), Some(&[3; STRIDE][..]));
    }

    #[test]
    fn one_run_too_many_writes_the_oldest() {
        let (file, mut buffer) = (Notes::default(), WriteBuffer::new(STRIDE, 4));
        for block in 0..=RUNS as u64 + 1 {
            put(&mut buffer, &file, block << 20, 0).unwrap();
        }
        assert_eq!(*file.writes.lock().unwrap(), [(0, STRIDE), (1 << 20, STRIDE)]);
    }

    #[test]
    fn what_cannot_be_written_is_still_there() {
        let (file, mut buffer) = (Notes { fails: true, ..Notes::default() }, WriteBuffer::new(STRIDE, 2));
        put(&mut buffer, &file, 0, 1).unwrap();
        assert!(put(&mut buffer, &file, 512, 2).is_err());
        assert!(put(&mut buffer, &file, 1024, 3).is_err(), "the run that it follows is full");
        assert_eq!(buffer.get(0, STRIDE), Some(&[1; STRIDE][..]));
        assert!(buffer.leave()[0].write(&file).is_err());
        assert_eq!(buffer.get(0, STRIDE), Some(&[1; STRIDE][..]));
    }

    #[test]
    fn commits_under_way_leave_one_after_the_other() {
        let (file, mut buffer) = (Notes::default(), WriteBuffer::new(STRIDE, 4));
        let held = |buffer: &WriteBuffer| [0, 1, 2].map(|block| buffer.get(block << 20, STRIDE).is_some());
        for block in 0..2 {
            put(&mut buffer, &file, block << 20, 1).unwrap();
            assert_eq!(buffer.leave().len(), 1, "each has its own");
        }
        assert!(buffer.leave().is_empty());
        put(&mut buffer, &file, 2 << 20, 1).unwrap();
        buffer.left();
        assert_eq!(held(&buffer), [false, true, true]);
        buffer.left();
        buffer.left();
        assert_eq!((held(&buffer), buffer.spare.len()), ([false, false, true], 2));
    }
}
