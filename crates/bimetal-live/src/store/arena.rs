//! Sectors on their way through the controller: what a request was given, and what was read for it.
//!
//! All are forgotten when the next request begins, and the memory stays.

use super::bytes::Buffer;
use super::frame::{SECTOR, Tag};

/// Sectors with their tags.
#[derive(Debug, Default)]
pub struct Arena {
    bytes: Buffer,
    tags: Vec<Tag>,
    used: usize,
}

impl Arena {
    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Takes so many sectors; they hold nothing, in bytes that are anything. Returns the number of the first.
    pub fn take(&mut self, sectors: usize) -> u32 {
        let first = self.used;
        self.used += sectors;
        if self.used > self.tags.len() {
            self.tags.resize(self.used, Tag::NONE);
            self.bytes.resize(self.used * SECTOR);
        }
        self.tags[first..self.used].fill(Tag::NONE);
        first as u32
    }

    /// Bytes of sectors.
    #[inline]
    pub fn bytes(&self, first: u32, sectors: u32) -> &[u8] {
        let first = first as usize * SECTOR;
        &self.bytes.bytes()[first..first + sectors as usize * SECTOR]
    }

    /// Tags of sectors.
    #[inline]
    pub fn tags(&self, first: u32, sectors: u32) -> &[Tag] {
        &self.tags[first as usize..(first + sectors) as usize]
    }

    /// Bytes and tags of sectors, to be changed.
    pub fn sectors_mut(&mut self, first: u32, sectors: u32) -> (&mut [u8], &mut [Tag]) {
        let (first, sectors) = (first as usize, sectors as usize);
        let bytes = &mut self.bytes.bytes_mut()[first * SECTOR..(first + sectors) * SECTOR];
        (bytes, &mut self.tags[first..first + sectors])
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.tags.capacity() * size_of::<Tag>()
    }
}
