//! A device in memory, for tests and for measuring the cost of a server without a store.

use std::ops::{ControlFlow, Range};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::block_device::{BlockDevice, Extent, IoError, SECTOR_BYTES};

/// Sectors of a page, the granularity of holes.
const PAGE_SECTORS: u64 = 8;

/// A device that keeps its sectors in memory. Nothing is durable.
#[derive(Debug)]
pub struct MemoryDevice {
    sectors: u64,
    pages: RwLock<Pages>,
}

#[derive(Debug)]
struct Pages {
    bytes: Vec<u8>,
    /// Whether each page was written since its last trim.
    written: Vec<bool>,
}

impl MemoryDevice {
    /// A device of `sectors` sectors, all of them holes. The system allocates memory when sectors are written.
    pub fn new(sectors: u64) -> Self {
        let pages = Pages {
            bytes: vec![0; (sectors * SECTOR_BYTES) as usize],
            written: vec![false; sectors.div_ceil(PAGE_SECTORS) as usize],
        };
        Self { sectors, pages: RwLock::new(pages) }
    }

    /// The sectors of a request as a range of bytes, if they are all within the device.
    fn bytes_of(&self, sector: u64, sectors: u64) -> Result<Range<usize>, IoError> {
        let end = sector.checked_add(sectors).filter(|&end| end <= self.sectors).ok_or(IoError::OutOfRange)?;
        Ok((sector * SECTOR_BYTES) as usize..(end * SECTOR_BYTES) as usize)
    }

    fn bytes_of_data(&self, sector: u64, data: &[u8]) -> Result<Range<usize>, IoError> {
        if !(data.len() as u64).is_multiple_of(SECTOR_BYTES) {
            return Err(IoError::OutOfRange);
        }
        self.bytes_of(sector, data.len() as u64 / SECTOR_BYTES)
    }

    fn reader(&self) -> Result<RwLockReadGuard<'_, Pages>, IoError> {
        self.pages.read().map_err(|_| IoError::Io)
    }

    fn writer(&self) -> Result<RwLockWriteGuard<'_, Pages>, IoError> {
        self.pages.write().map_err(|_| IoError::Io)
    }
}

impl BlockDevice for MemoryDevice {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn read_only(&self) -> bool {
        false
    }

    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError> {
        let range = self.bytes_of_data(sector, out)?;
        out.copy_from_slice(&self.reader()?.bytes[range]);
        Ok(())
    }

    fn write(&self, sector: u64, data: &[u8], _fua: bool) -> Result<(), IoError> {
        let range = self.bytes_of_data(sector, data)?;
        let mut pages = self.writer()?;
        pages.bytes[range].copy_from_slice(data);
        let end = sector + data.len() as u64 / SECTOR_BYTES;
        pages.written[(sector / PAGE_SECTORS) as usize..end.div_ceil(PAGE_SECTORS) as usize].fill(true);
        Ok(())
    }

    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.zero(sector, sectors, fua)
    }

    fn zero(&self, sector: u64, sectors: u64, _fua: bool) -> Result<(), IoError> {
        let range = self.bytes_of(sector, sectors)?;
        let mut pages = self.writer()?;
        // Holes are zeros already; skipping them allocates no memory.
        for page in sector / PAGE_SECTORS..(sector + sectors).div_ceil(PAGE_SECTORS) {
            if pages.written[page as usize] {
                let page_bytes = (page * PAGE_SECTORS * SECTOR_BYTES) as usize;
                let page_end = (page_bytes + (PAGE_SECTORS * SECTOR_BYTES) as usize).min(pages.bytes.len());
                let (start, end) = (range.start.max(page_bytes), range.end.min(page_end));
                pages.bytes[start..end].fill(0);
                pages.written[page as usize] = (start, end) != (page_bytes, page_end);
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), IoError> {
        Ok(())
    }

    fn extents(
        &self,
        sector: u64,
        sectors: u64,
        visit: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>,
    ) -> Result<(), IoError> {
        self.bytes_of(sector, sectors)?;
        let pages = self.reader()?;
        let (mut at, end) = (sector, sector + sectors);
        while at < end {
            let next = ((at / PAGE_SECTORS + 1) * PAGE_SECTORS).min(end);
            let extent = if pages.written[(at / PAGE_SECTORS) as usize] { Extent::Allocated } else { Extent::Hole };
            if visit(next - at, extent).is_break() {
                return Ok(());
            }
            at = next;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    fn holes(device: &MemoryDevice) -> Vec<u64> {
        let (mut at, mut holes) = (0, Vec::new());
        device
            .extents(0, device.sectors(), &mut |sectors, extent| {
                if extent == Extent::Hole {
                    holes.extend(at..at + sectors);
                }
                at += sectors;
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(at, device.sectors());
        holes
    }

    #[test]
    fn whole_pages_become_holes_and_parts_become_zeros() {
        let device = MemoryDevice::new(20);
        assert_eq!(holes(&device), (0..20).collect::<Vec<_>>());
        device.write(0, &[7; 20 * 512], false).unwrap();
        assert!(holes(&device).is_empty());
        device.zero(4, 13, false).unwrap();
        assert_eq!(holes(&device), (8..16).collect::<Vec<_>>(), "pages 0 and 2 keep sectors");
        let mut sectors = [0; 20 * 512];
        device.read(0, &mut sectors).unwrap();
        for (sector, bytes) in sectors.chunks(512).enumerate() {
            assert_eq!(bytes, [if (4..17).contains(&sector) { 0 } else { 7 }; 512], "sector {sector}");
        }
        device.zero(16, 4, false).unwrap();
        assert_eq!(holes(&device), (8..20).collect::<Vec<_>>(), "the last page is a short one");
    }

    #[test]
    fn nothing_is_done_beyond_the_end() {
        let device = MemoryDevice::new(8);
        for (sector, sectors) in [(8, 1), (0, 9), (u64::MAX, 1), (1, u64::MAX)] {
            assert_eq!(device.trim(sector, sectors, false), Err(IoError::OutOfRange));
        }
        assert_eq!(device.write(7, &[1; 1024], false), Err(IoError::OutOfRange));
        assert_eq!(device.write(7, &[1; 100], false), Err(IoError::OutOfRange));
        assert_eq!(device.read(8, &mut [0; 512]), Err(IoError::OutOfRange));
        assert_eq!(holes(&device).len(), 8);
    }
}
