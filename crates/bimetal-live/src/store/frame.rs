//! Frames: the format of a flash page in a file.
//!
//! ```text
//! 0            page bytes
//! page + 0     u32   CRC-32C of all other bytes of the frame, seeded with the store's number
//! page + 4     u32   magic `BMFR`
//! page + 8     u64   sequence number of the program
//! page + 16    u32   slot
//! page + 20    u16   page within the block
//! page + 22    u8    region
//! page + 23    u8    0
//! page + 24    u32   block that occupied the slot
//! page + 28    u32   0
//! page + 32    14 bytes for each sector of the page: u48 tag, u64 sequence number of the host write
//! ```
//!
//! A frame ends at a multiple of 512 bytes, so that no two frames share an atomic write. A sector's tag is its host
//! sector, and it accompanies the data through every copy. So a store can be reconstructed from its frames alone, and
//! no sector can be mistaken for another.

use bimetal_core::request::SECTOR_BYTES;

use super::bytes::{put_u32, put_u64, u32_at, u64_at};
use super::crc32c::crc32c_append;

/// Bytes of a sector, as an index.
pub const SECTOR: usize = SECTOR_BYTES as usize;

const MAGIC: u32 = u32::from_le_bytes(*b"BMFR");
const HEADER_BYTES: usize = 32;
const TAG_BYTES: usize = 14;
const TAG_BITS: u32 = 48;
const NO_SECTOR: u64 = (1 << TAG_BITS) - 1;
const LOST: u64 = 1 << (TAG_BITS - 1);

/// One more than the largest host sector that a tag can hold.
pub const SECTORS_MAX: u64 = LOST - 1;

/// Contents of a sector in transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    sector: u64,
    sequence: u64,
}

impl Tag {
    /// No host data: zeros.
    pub const NONE: Self = Self { sector: NO_SECTOR, sequence: 0 };
    /// Data that could not be read.
    pub const UNREADABLE: Self = Self { sector: LOST, sequence: 0 };

    /// Data of the host write with number `sequence` to `sector`.
    pub fn new(sector: u64, sequence: u64) -> Self {
        Self { sector, sequence }
    }

    /// Whether it holds data of this host sector.
    pub fn is(&self, sector: u64) -> bool {
        self.sector == sector
    }

    /// Whether its data could not be read.
    pub fn is_lost(&self) -> bool {
        self.sector != NO_SECTOR && self.sector & LOST != 0
    }

    /// Its host sector, and the sequence number of the write.
    pub fn written(&self) -> Option<(u64, u64)> {
        (self.sector < SECTORS_MAX).then_some((self.sector, self.sequence))
    }
}

/// Place and owner of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the region in the device.
    pub region: u8,
    /// Slot within the file.
    pub slot: u32,
    /// Page within the block.
    pub page: u32,
    /// The block that occupies the slot.
    pub block: u32,
}

/// Error of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame was never written, or is damaged.
    #[error("the checksum is wrong")]
    Checksum,
    /// The frame is valid but belongs to another place.
    #[error("it is a page from elsewhere")]
    Misplaced,
    /// The frame is valid but older than the last erase of the block.
    #[error("it is from before the last erase")]
    Stale,
}

/// Format of the frames of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    page_bytes: usize,
    stride: usize,
}

/// The checksum of a page. With a label it gives the checksum of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSum(u32);

impl PageSum {
    /// The checksum of a page. `seed` is derived from the store's number.
    #[inline]
    pub fn of(page: &[u8], seed: u32) -> Self {
        Self(crc32c_append(seed, page))
    }
}

impl Layout {
    /// The format for pages of `page_bytes` bytes, a multiple of 512.
    pub fn new(page_bytes: u32) -> Self {
        let page_bytes = page_bytes as usize;
        let spare = HEADER_BYTES + page_bytes / SECTOR * TAG_BYTES;
        Self { page_bytes, stride: (page_bytes + spare).next_multiple_of(SECTOR) }
    }

    /// Bytes from one frame to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Bytes of a label.
    pub fn label_bytes(&self) -> usize {
        self.stride - self.page_bytes
    }

    /// Sectors of a page.
    pub fn page_sectors(&self) -> usize {
        self.page_bytes / SECTOR
    }

    /// The tag of a sector of a frame.
    pub fn tag(&self, frame: &[u8], sector: usize) -> Tag {
        label_tag(&frame[self.page_bytes..], sector)
    }

    /// Sets the tag of a sector of a frame.
    pub fn set_tag(&self, frame: &mut [u8], sector: usize, tag: Tag) {
        set_label_tag(&mut frame[self.page_bytes..], sector, tag);
    }

    /// Empties a frame: zeros, with the same tag for each sector.
    pub fn clear(&self, frame: &mut [u8], tag: Tag) {
        frame.fill(0);
        for sector in 0..self.page_sectors() {
            self.set_tag(frame, sector, tag);
        }
    }

    /// Completes a frame whose page and tags are set.
    pub fn seal(&self, frame: &mut [u8], place: Place, sequence: u64, seed: u32) {
        let (page, label) = frame.split_at_mut(self.page_bytes);
        seal_label(label, PageSum::of(page, seed), place, sequence);
    }

    /// Checks that a frame is intact. Returns its stated place and sequence number.
    ///
    /// # Errors
    /// The frame is not intact.
    pub fn open(&self, frame: &[u8], seed: u32) -> Result<(Place, u64), FrameError> {
        let (page, label) = frame.split_at(self.page_bytes);
        open_label(label, PageSum::of(page, seed))
    }

    /// Checks that a frame is intact, is in its place, and was programmed no earlier than `since`. Returns its sequence
    /// number.
    ///
    /// # Errors
    /// The reason why the frame is not valid.
    pub fn verify(&self, frame: &[u8], expected: Place, since: u64, seed: u32) -> Result<u64, FrameError> {
        let (page, label) = frame.split_at(self.page_bytes);
        verify_label(label, PageSum::of(page, seed), expected, since)
    }
}

/// The tag of a sector in the label of its page.
#[inline]
pub fn label_tag(label: &[u8], sector: usize) -> Tag {
    let at = HEADER_BYTES + sector * TAG_BYTES;
    let low = u64::from(u32_at(label, at));
    let high = u64::from(u16::from_le_bytes([label[at + 4], label[at + 5]]));
    Tag { sector: high << 32 | low, sequence: u64_at(label, at + 6) }
}

/// Sets the tag of a sector in the label of its page.
#[inline]
pub fn set_label_tag(label: &mut [u8], sector: usize, tag: Tag) {
    let at = HEADER_BYTES + sector * TAG_BYTES;
    put_u32(label, at, tag.sector as u32);
    label[at + 4..at + 6].copy_from_slice(&((tag.sector >> 32) as u16).to_le_bytes());
    put_u64(label, at + 6, tag.sequence);
}

/// Completes a label whose tags are set.
pub fn seal_label(label: &mut [u8], page: PageSum, place: Place, sequence: u64) {
    put_u32(label, 4, MAGIC);
    put_u64(label, 8, sequence);
    put_u32(label, 16, place.slot);
    label[20..22].copy_from_slice(&(place.page as u16).to_le_bytes());
    label[22..24].copy_from_slice(&[place.region, 0]);
    put_u32(label, 24, place.block);
    put_u32(label, 28, 0);
    let sum = crc32c_append(page.0, &label[4..]);
    put_u32(label, 0, sum);
}

/// Like [`Layout::open`], for a label and the checksum of its page.
///
/// # Errors
/// The errors of [`Layout::open`].
pub fn open_label(label: &[u8], page: PageSum) -> Result<(Place, u64), FrameError> {
    if u32_at(label, 4) != MAGIC || u32_at(label, 0) != crc32c_append(page.0, &label[4..]) {
        return Err(FrameError::Checksum);
    }
    let place = Place {
        slot: u32_at(label, 16),
        page: u32::from(u16::from_le_bytes([label[20], label[21]])),
        region: label[22],
        block: u32_at(label, 24),
    };
    Ok((place, u64_at(label, 8)))
}

/// Like [`Layout::verify`], for a label and the checksum of its page.
///
/// # Errors
/// The errors of [`Layout::verify`].
pub fn verify_label(label: &[u8], page: PageSum, expected: Place, since: u64) -> Result<u64, FrameError> {
    let (place, sequence) = open_label(label, page)?;
    if place != expected {
        return Err(FrameError::Misplaced);
    }
    if sequence < since { Err(FrameError::Stale) } else { Ok(sequence) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { region: 1, slot: 77, page: 383, block: 12 };

    #[test]
    fn frames_are_multiples_of_a_sector() {
        for (page, stride) in
            [(512, 1024), (2048, 2560), (4096, 4608), (16 << 10, (16 << 10) + 512), (64 << 10, 67_584)]
        {
            assert_eq!(Layout::new(page).stride(), stride);
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let layout = Layout::new(1024);
        let mut frame = vec![0; layout.stride()];
        layout.clear(&mut frame, Tag::NONE);
        layout.set_tag(&mut frame, 1, Tag::new(0x1234_5678_9abc, 99));
        frame[..1024].fill(0xa5);
        layout.seal(&mut frame, PLACE, 4711, 42);
        assert_eq!(layout.verify(&frame, PLACE, 4711, 42), Ok(4711));
        assert_eq!(layout.verify(&frame, PLACE, 4712, 42), Err(FrameError::Stale));
        assert_eq!(layout.verify(&frame, Place { slot: 78, ..PLACE }, 0, 42), Err(FrameError::Misplaced));
        assert_eq!(layout.verify(&frame, PLACE, 0, 43), Err(FrameError::Checksum), "another store's");
        assert_eq!(layout.tag(&frame, 0).written(), None);
        assert_eq!(layout.tag(&frame, 1).written(), Some((0x1234_5678_9abc, 99)));
        for bit in 0..frame.len() * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(layout.verify(&frame, PLACE, 0, 42), Err(FrameError::Checksum), "bit {bit}");
            frame[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn the_sum_of_a_page_suits_every_label() {
        let layout = Layout::new(1024);
        let mut frame = vec![0; layout.stride()];
        layout.clear(&mut frame, Tag::new(3, 4));
        frame[..1024].fill(0x5a);
        layout.seal(&mut frame, PLACE, 1, 42);
        let sum = crc32c_append(42, &[&frame[..1024], &frame[1028..]].concat());
        assert_eq!(u32_at(&frame, 1024), sum, "as it always was");
        let (page, label) = frame.split_at_mut(1024);
        let (sum, moved) = (PageSum::of(page, 42), Place { slot: 1, page: 0, block: 2, ..PLACE });
        seal_label(label, sum, moved, 9);
        assert_eq!(layout.verify(&frame, moved, 9, 42), Ok(9));
    }

    #[test]
    fn lost_and_empty_sectors_are_told_apart() {
        assert!(Tag::UNREADABLE.is_lost() && Tag::UNREADABLE.written().is_none());
        assert!(!Tag::NONE.is_lost() && Tag::NONE.written().is_none());
        assert!(Tag::new(SECTORS_MAX - 1, 1).written().is_some());
    }
}
