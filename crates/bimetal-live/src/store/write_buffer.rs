//! Frames on their way to a file.
//!
//! A scheme programs the pages of a block one after the other, and they follow one another in the file. Nothing that was
//! programmed counts before the next commit, so they may wait here until there are enough of them for one large write.

use std::io;

use super::backing::Backing;
use super::bytes::Buffer;

/// Blocks that are filled at the same time, more or less: schemes have a few open, often one per die.
const RUNS: usize = 8;
/// Bytes that are written at once, unless a frame has more.
const RUN_BYTES: usize = 128 << 10;

/// Frames that are to be written, in runs that follow one another in the file.
#[derive(Debug)]
pub struct WriteBuffer {
    runs: Vec<Run>,
    run_bytes: usize,
    /// The run that was begun longest ago, if all are in use.
    oldest: usize,
}

#[derive(Debug, Default)]
struct Run {
    offset: u64,
    bytes: Buffer,
    filled: usize,
}

impl Run {
    fn end(&self) -> u64 {
        self.offset + self.filled as u64
    }

    /// Writes it. What cannot be written stays.
    fn write_out(&mut self, file: &dyn Backing) -> io::Result<()> {
        if self.filled > 0 {
            file.write_at(self.offset, &self.bytes.bytes()[..self.filled])?;
            self.filled = 0;
        }
        Ok(())
    }
}

impl WriteBuffer {
    /// An empty one for frames of so many bytes, of which at most `in_a_row` follow one another.
    pub fn new(stride: usize, in_a_row: usize) -> Self {
        let run_bytes = (RUN_BYTES / stride).clamp(1, in_a_row) * stride;
        Self { runs: (0..RUNS).map(|_| Run::default()).collect(), run_bytes, oldest: 0 }
    }

    /// Takes a frame for that place in the file. What has waited long enough is written.
    ///
    /// # Errors
    /// Some could not be written. They are still here, but this one may not be.
    pub fn put(&mut self, file: &dyn Backing, offset: u64, frame: &[u8]) -> io::Result<()> {
        let follows = |run: &Run| run.filled > 0 && run.end() == offset;
        let has_room = |run: &Run| run.filled + frame.len() <= self.run_bytes;
        let found = self.runs.iter().position(follows);
        let at = match found.filter(|&at| has_room(&self.runs[at])) {
            Some(at) => at,
            None => {
                // One that is full could not be written before.
                let empty = || self.runs.iter().position(|run| run.filled == 0);
                let at = found.or_else(empty).unwrap_or(self.oldest);
                let run = &mut self.runs[at];
                run.write_out(file)?;
                run.offset = offset;
                run.bytes.resize(self.run_bytes);
                self.oldest = (at + 1) % RUNS;
                at
            }
        };
        let run = &mut self.runs[at];
        run.bytes.bytes_mut()[run.filled..run.filled + frame.len()].copy_from_slice(frame);
        run.filled += frame.len();
        if run.filled + frame.len() > self.run_bytes { run.write_out(file) } else { Ok(()) }
    }

    /// Writes all that it has.
    ///
    /// # Errors
    /// Some could not be written; it is still here.
    pub fn write_out(&mut self, file: &dyn Backing) -> io::Result<()> {
        self.runs.iter_mut().try_for_each(|run| run.write_out(file))
    }

    /// The frame for that place in the file, if it waits here.
    pub fn get(&self, offset: u64, frame_bytes: usize) -> Option<&[u8]> {
        let holds = |run: &&Run| run.filled > 0 && (run.offset..run.end()).contains(&offset);
        let run = self.runs.iter().find(holds)?;
        let from = (offset - run.offset) as usize;
        Some(&run.bytes.bytes()[from..from + frame_bytes])
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.runs.iter().map(|run| run.bytes.capacity()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const STRIDE: usize = 512;

    /// Notes what is written to it, until it fails.
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

    #[test]
    fn frames_that_follow_one_another_are_written_at_once() {
        let (file, mut buffer) = (Notes::default(), WriteBuffer::new(STRIDE, 4));
        for page in 0..4_u64 {
            for block in 0..2_u64 {
                buffer.put(&file, (block << 20) + page * STRIDE as u64, &[page as u8; STRIDE]).unwrap();
            }
        }
        assert_eq!(*file.writes.lock().unwrap(), [(0, 2048), (1 << 20, 2048)], "four frames of each block");
        buffer.put(&file, 9 << 20, &[1; STRIDE]).unwrap();
        assert_eq!(buffer.get(9 << 20, STRIDE), Some(&[1; STRIDE][..]));
        assert_eq!(buffer.get(0, STRIDE), None, "it is in the file");
        buffer.write_out(&file).unwrap();
        assert_eq!(file.writes.lock().unwrap().last(), Some(&(9 << 20, STRIDE)));
        assert_eq!(buffer.get(9 << 20, STRIDE), None);
    }

    #[test]
    fn one_run_too_many_writes_the_oldest() {
        let (file, mut buffer) = (Notes::default(), WriteBuffer::new(STRIDE, 4));
        for block in 0..=RUNS as u64 + 1 {
            buffer.put(&file, block << 20, &[0; STRIDE]).unwrap();
        }
        assert_eq!(*file.writes.lock().unwrap(), [(0, STRIDE), (1 << 20, STRIDE)]);
    }

    #[test]
    fn what_cannot_be_written_is_still_there() {
        let (file, mut buffer) = (Notes { fails: true, ..Notes::default() }, WriteBuffer::new(STRIDE, 2));
        buffer.put(&file, 0, &[1; STRIDE]).unwrap();
        assert!(buffer.put(&file, 512, &[2; STRIDE]).is_err());
        assert!(buffer.put(&file, 1024, &[3; STRIDE]).is_err(), "the run that it follows is full");
        assert_eq!(buffer.get(0, STRIDE), Some(&[1; STRIDE][..]));
        assert!(buffer.write_out(&file).is_err());
        assert_eq!(buffer.get(0, STRIDE), Some(&[1; STRIDE][..]));
    }
}
