//! Sectors in transit through the controller: data of the current request, and data read for it.
//!
//! The next request clears the arena, but keeps the memory.

use std::ops::Range;

use super::bytes::Buffer;
use super::frame::{SECTOR, Tag};
use crate::block_device::Payload;

/// Data of a host write. They are copied unless they are shared.
#[derive(Clone, Debug)]
pub enum HostData<'d> {
    /// Memory of the caller.
    Borrowed(&'d [u8]),
    /// Shared memory that may be kept until the write returns.
    Shared(Payload),
}

impl HostData<'_> {
    /// For an event without data.
    pub const NONE: Self = Self::Borrowed(&[]);

    /// The data.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(payload) => payload.bytes(),
        }
    }

    /// A part of the data.
    pub fn part(&self, range: Range<usize>) -> Self {
        match self {
            Self::Borrowed(bytes) => Self::Borrowed(&bytes[range]),
            Self::Shared(payload) => Self::Shared(payload.part(range)),
        }
    }
}

/// Sectors with their tags.
#[derive(Debug, Default)]
pub struct Arena {
    bytes: Buffer,
    tags: Vec<Tag>,
    used: usize,
    /// Bytes of the first sectors, if they are in memory that is shared with the host side.
    payload: Option<Payload>,
    shared: usize,
}

impl Arena {
    /// Removes all sectors.
    pub fn clear(&mut self) {
        self.used = 0;
        self.shared = 0;
        self.payload = None;
    }

    /// Adds the sectors that the host writes, which must be the first. Returns their tags.
    pub fn take_host(&mut self, data: HostData<'_>) -> &mut [Tag] {
        debug_assert_eq!(self.used, 0, "what the host writes comes first");
        let sectors = data.bytes().len() / SECTOR;
        match data {
            HostData::Borrowed(data) => {
                let first = self.take(sectors);
                let (bytes, tags) = self.sectors_mut(first, sectors as u32);
                bytes.copy_from_slice(data);
                tags
            }
            HostData::Shared(payload) => {
                self.payload = Some(payload);
                self.shared = sectors;
                self.take(sectors);
                &mut self.tags[..sectors]
            }
        }
    }

    /// Drops the shared payload. Its bytes must not be read before the next [`Arena::clear`].
    pub fn give_back(&mut self) {
        self.payload = None;
    }

    /// Adds `sectors` sectors with undefined bytes. Returns the number of the first.
    pub fn take(&mut self, sectors: usize) -> u32 {
        let first = self.used;
        self.used += sectors;
        if self.used > self.tags.len() {
            self.tags.resize(self.used, Tag::NONE);
        }
        let own_bytes = (self.used - self.shared) * SECTOR;
        if own_bytes > self.bytes.bytes().len() {
            self.bytes.resize(own_bytes);
        }
        self.tags[first..self.used].fill(Tag::NONE);
        first as u32
    }

    /// Bytes of sectors.
    #[inline]
    pub fn bytes(&self, first: u32, sectors: u32) -> &[u8] {
        let (first, bytes) = (first as usize, sectors as usize * SECTOR);
        let (all, first) = match &self.payload {
            Some(payload) if first < self.shared => (payload.bytes(), first),
            _ => (self.bytes.bytes(), first - self.shared),
        };
        &all[first * SECTOR..first * SECTOR + bytes]
    }

    /// Tags of sectors.
    #[inline]
    pub fn tags(&self, first: u32, sectors: u32) -> &[Tag] {
        &self.tags[first as usize..(first + sectors) as usize]
    }

    /// Mutable bytes and tags of sectors that are not shared.
    pub fn sectors_mut(&mut self, first: u32, sectors: u32) -> (&mut [u8], &mut [Tag]) {
        let (first, sectors) = (first as usize, sectors as usize);
        let own = first - self.shared;
        let bytes = &mut self.bytes.bytes_mut()[own * SECTOR..(own + sectors) * SECTOR];
        (bytes, &mut self.tags[first..first + sectors])
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.tags.capacity() * size_of::<Tag>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_the_host_writes_is_shared_and_comes_before_what_is_read() {
        let memory = Arc::new((0..8 * SECTOR).map(|at| (at / SECTOR) as u8).collect::<Vec<_>>());
        let data = HostData::Shared(Payload::new(Arc::clone(&memory), SECTOR..8 * SECTOR)).part(SECTOR..4 * SECTOR);
        let mut arena = Arena::default();
        for data in [HostData::Borrowed(&memory[2 * SECTOR..5 * SECTOR]), data] {
            let is_shared = matches!(data, HostData::Shared(_));
            arena.clear();
            assert_eq!(arena.take_host(data).len(), 3);
            let read = arena.take(2);
            let (bytes, tags) = arena.sectors_mut(read, 2);
            bytes.fill(9);
            tags.fill(Tag::new(7, 1));
            let fills =
                |first, sectors| arena.bytes(first, sectors).iter().step_by(SECTOR).copied().collect::<Vec<_>>();
            assert_eq!((fills(0, 3), fills(1, 2), fills(read, 2)), (vec![2, 3, 4], vec![3, 4], vec![9, 9]));
            assert_eq!((arena.tags(2, 1), arena.tags(read, 1)), (&[Tag::NONE][..], &[Tag::new(7, 1)][..]));
            assert_eq!(arena.bytes(0, 1).as_ptr() == memory[2 * SECTOR..].as_ptr(), is_shared);
        }
        arena.give_back();
        assert_eq!(Arc::strong_count(&memory), 1, "nobody keeps what the host wrote");
        assert_eq!(arena.bytes(3, 1)[0], 9);
    }
}
