//! The bytes of a device: requests of any offset and length, over a device of whole sectors.
//!
//! A write of a part of a sector reads that sector first. Between the read and the write no other write of this front end may
//! change the sector, or its data would be lost: such writes exclude all others, and writes of whole sectors run in parallel.

use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

use crate::block_device::{BlockDevice, Extent, IoError, SECTOR_BYTES};

const SECTOR: usize = SECTOR_BYTES as usize;

/// A device as a range of bytes.
pub struct Bytes {
    device: Arc<dyn BlockDevice>,
    /// Shared by writes of whole sectors, exclusive to a write of a part of one.
    writes: RwLock<()>,
}

impl Bytes {
    /// The bytes of `device`.
    pub fn new(device: Arc<dyn BlockDevice>) -> Self {
        Self { device, writes: RwLock::default() }
    }

    /// Capacity in bytes.
    pub fn size(&self) -> u64 {
        self.device.sectors() * SECTOR_BYTES
    }

    /// Reads `bytes` bytes from `offset` on, up to the end of the device. The device reads its sectors into `buffer`,
    /// which grows as needed.
    pub fn read<'b>(&self, offset: u64, bytes: usize, buffer: &'b mut Vec<u8>) -> Result<&'b [u8], IoError> {
        let end = self.end(offset, bytes as u64);
        if offset >= end {
            return Ok(&[]);
        }
        let first = offset / SECTOR_BYTES;
        let whole = (end.div_ceil(SECTOR_BYTES) - first) as usize * SECTOR;
        if buffer.len() < whole {
            buffer.resize(whole, 0);
        }
        self.device.read(first, &mut buffer[..whole])?;
        let start = (offset % SECTOR_BYTES) as usize;
        Ok(&buffer[start..start + (end - offset) as usize])
    }

    /// Writes `data` from `offset` on, up to the end of the device; durable on return if `sync`. Returns the number of
    /// bytes.
    ///
    /// # Errors
    /// [`IoError::NoSpace`] at the end of the device, and the errors of the device.
    pub fn write(&self, offset: u64, data: &[u8], sync: bool) -> Result<usize, IoError> {
        let end = self.end(offset, data.len() as u64);
        if offset >= end {
            return if data.is_empty() { Ok(0) } else { Err(IoError::NoSpace) };
        }
        let data = &data[..(end - offset) as usize];
        if is_whole(offset) && is_whole(end) {
            let _shared = self.writes.read().unwrap_or_else(PoisonError::into_inner);
            self.device.write(offset / SECTOR_BYTES, data, sync)?;
        } else {
            self.write_parts(offset, data)?;
            if sync {
                self.device.flush()?;
            }
        }
        Ok(data.len())
    }

    /// Makes `bytes` bytes from `offset` on read as zeros, up to the end of the device.
    pub fn zero(&self, offset: u64, bytes: u64) -> Result<(), IoError> {
        let end = self.end(offset, bytes);
        if offset >= end {
            return Ok(());
        }
        let (first, last) = (offset.next_multiple_of(SECTOR_BYTES), end - end % SECTOR_BYTES);
        let zeros = [0; SECTOR];
        if first > last {
            // All of it is within one sector.
            return self.write_parts(offset, &zeros[..(end - offset) as usize]);
        }
        if offset < first {
            self.write_parts(offset, &zeros[..(first - offset) as usize])?;
        }
        if first < last {
            let _shared = self.writes.read().unwrap_or_else(PoisonError::into_inner);
            self.device.zero(first / SECTOR_BYTES, (last - first) / SECTOR_BYTES, false)?;
        }
        if last < end {
            self.write_parts(last, &zeros[..(end - last) as usize])?;
        }
        Ok(())
    }

    /// The first byte from `offset` on in an extent of this kind. The end of the device is a hole.
    pub fn seek(&self, offset: u64, kind: Extent) -> Result<Option<u64>, IoError> {
        let size = self.size();
        if offset >= size {
            return Ok(None);
        }
        let mut at = offset / SECTOR_BYTES;
        let mut found = None;
        self.device.extents(at, self.device.sectors() - at, &mut |sectors, extent| {
            if extent == kind {
                found = Some((at * SECTOR_BYTES).max(offset));
                return ControlFlow::Break(());
            }
            at += sectors;
            ControlFlow::Continue(())
        })?;
        Ok(found.or((kind == Extent::Hole).then_some(size)))
    }

    /// Makes all earlier writes durable.
    pub fn flush(&self) -> Result<(), IoError> {
        self.device.flush()
    }

    /// Waits until the modelled device would have answered.
    pub fn settle(&self) {
        self.device.settle();
    }

    /// The end of a request, at most the end of the device.
    fn end(&self, offset: u64, bytes: u64) -> u64 {
        offset.saturating_add(bytes).min(self.size())
    }

    /// Writes data that do not fill their first sector or their last one: one write of whole sectors.
    fn write_parts(&self, offset: u64, data: &[u8]) -> Result<(), IoError> {
        let end = offset + data.len() as u64;
        let (first, last) = (offset / SECTOR_BYTES, (end - 1) / SECTOR_BYTES);
        let mut sectors = vec![0; (last - first + 1) as usize * SECTOR];
        let at_last = sectors.len() - SECTOR;
        let _exclusive = self.writes.write().unwrap_or_else(PoisonError::into_inner);
        if !is_whole(offset) {
            self.device.read(first, &mut sectors[..SECTOR])?;
        }
        if !is_whole(end) && (last > first || is_whole(offset)) {
            self.device.read(last, &mut sectors[at_last..])?;
        }
        let start = (offset % SECTOR_BYTES) as usize;
        sectors[start..start + data.len()].copy_from_slice(data);
        self.device.write(first, &sectors, false)
    }
}

/// Whether a sector begins at `offset`.
fn is_whole(offset: u64) -> bool {
    offset.is_multiple_of(SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::MemoryDevice;
    use crate::measured::{Measured, Meter, Operation};
    use std::thread;

    use bimetal_core::part::random::{below, split_mix};

    const SECTORS: u64 = 64;
    const SIZE: usize = SECTORS as usize * SECTOR;

    fn bytes() -> (Bytes, Arc<Meter>) {
        let meter = Arc::<Meter>::default();
        let device = Measured::new(Arc::new(MemoryDevice::new(SECTORS)), Arc::clone(&meter));
        (Bytes::new(Arc::new(device)), meter)
    }

    fn count(meter: &Meter, operation: Operation) -> u64 {
        meter.figures()[operation as usize].latency.count()
    }

    /// Reads, writes and zeroing at random offsets, compared with a plain array.
    #[test]
    fn any_range_is_read_written_and_zeroed() {
        let (bytes, _) = bytes();
        let (mut model, mut random, mut buffer) = (vec![0; SIZE], 7, Vec::new());
        for round in 0..4000_u32 {
            split_mix(&mut random);
            let offset = below(&mut random, SIZE as u64 + 600);
            let length = 1 << below(&mut random, 13);
            let length = 1 + below(&mut random, length) as usize;
            let within = offset.min(SIZE as u64) as usize..(offset as usize + length).min(SIZE);
            let within = within.start..within.end.max(within.start);
            match round % 3 {
                0 => {
                    let data: Vec<u8> = (0..length).map(|at| (round as usize + at) as u8 | 1).collect();
                    let written = bytes.write(offset, &data, round % 2 == 0);
                    let expected = if within.is_empty() { Err(IoError::NoSpace) } else { Ok(within.len()) };
                    assert_eq!(written, expected, "{length} bytes at {offset}");
                    model[within.clone()].copy_from_slice(&data[..within.len()]);
                }
                1 => {
                    bytes.zero(offset, length as u64).unwrap();
                    model[within].fill(0);
                }
                _ => {
                    let read = bytes.read(offset, length, &mut buffer).unwrap();
                    assert!(read == &model[within], "{length} bytes at {offset}, round {round}");
                }
            }
        }
        assert!(bytes.read(0, SIZE, &mut buffer).unwrap() == model);
        assert_eq!(bytes.write(u64::MAX, &[1; 9], false), Err(IoError::NoSpace));
        assert_eq!(bytes.read(u64::MAX, 9, &mut buffer), Ok(&[][..]));
        assert_eq!(bytes.zero(u64::MAX, u64::MAX), Ok(()));
    }

    /// Whole sectors are one request. Otherwise only the sectors at the ends are read, and one write follows.
    #[test]
    fn a_request_is_one_of_the_device() {
        let (bytes, meter) = bytes();
        bytes.write(512, &[1; 8192], true).unwrap();
        assert_eq!((count(&meter, Operation::WriteFua), count(&meter, Operation::Read)), (1, 0));
        bytes.write(700, &[2; 10], false).unwrap();
        assert_eq!((count(&meter, Operation::Write), count(&meter, Operation::Read)), (1, 1));
        bytes.write(1024, &[3; 600], false).unwrap();
        assert_eq!((count(&meter, Operation::Write), count(&meter, Operation::Read)), (2, 2));
        bytes.write(700, &[4; 5000], true).unwrap();
        assert_eq!((count(&meter, Operation::Write), count(&meter, Operation::Read)), (3, 4));
        assert_eq!(
            (count(&meter, Operation::WriteFua), count(&meter, Operation::Flush)),
            (1, 1),
            "made durable after it"
        );
        bytes.zero(0, SIZE as u64).unwrap();
        assert_eq!((count(&meter, Operation::Zero), count(&meter, Operation::Write)), (1, 3));
    }

    /// Threads write their own bytes of the same sectors again and again: none of them is lost.
    #[test]
    fn writes_of_the_same_sector_lose_nothing() {
        let (bytes, _) = bytes();
        let (bytes, threads) = (&bytes, 4_usize);
        thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    for round in 1..=200_u8 {
                        for sector in 0..4 {
                            let offset = sector * SECTOR_BYTES + 10 + thread as u64 * 100;
                            bytes.write(offset, &[round; 100], false).unwrap();
                        }
                    }
                });
            }
            // Writes of whole sectors next to them, which no other thread writes.
            scope.spawn(move || {
                for round in 1..=200_u8 {
                    bytes.write(2048, &[round; 512], false).unwrap();
                }
            });
        });
        let mut buffer = Vec::new();
        let read = bytes.read(0, 5 * SECTOR, &mut buffer).unwrap();
        for sector in 0..4 {
            assert_eq!(read[sector * SECTOR + 10..][..threads * 100], [200; 400], "sector {sector}");
        }
        assert_eq!(read[2048..], [200; 512]);
    }

    #[test]
    fn data_and_holes_are_found() {
        let (bytes, _) = bytes();
        let of = |offset| (bytes.seek(offset, Extent::Allocated).unwrap(), bytes.seek(offset, Extent::Hole).unwrap());
        assert_eq!(of(100), (None, Some(100)), "there is nothing yet");
        bytes.write(8192, &[1; 4096], false).unwrap();
        assert_eq!(of(0), (Some(8192), Some(0)));
        assert_eq!(of(8200), (Some(8200), Some(12288)));
        assert_eq!(of(12288), (None, Some(12288)));
        bytes.write(SIZE as u64 - 1, &[1], false).unwrap();
        assert_eq!(of(12288), (Some(SIZE as u64 - 4096), Some(12288)), "holes are of whole pages in this device");
        assert_eq!(of(SIZE as u64 - 1), (Some(SIZE as u64 - 1), Some(SIZE as u64)));
        assert_eq!((of(SIZE as u64), of(u64::MAX)), ((None, None), (None, None)));
        bytes.zero(0, SIZE as u64).unwrap();
        assert_eq!(of(0), (None, Some(0)));
    }
}
