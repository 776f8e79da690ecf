//! Labels: the store, the part and the opening that a file belongs to.
//!
//! Every file of a store has a label of 4,096 bytes, except the superblock, the checkpoints, which the superblock
//! identifies by their checksums, and the map. The label is behind the last sector of the home disk, and at the
//! beginning of the other files.
//!
//! ```text
//! 0    u32   CRC-32C of bytes 4 to 64
//! 4    u32   magic `BMLB`
//! 8    u64   number of the store
//! 16   u64   number of the opening since which the file is the store's
//! 24   u32   part: 0 a region, 1 the home disk, 2 its checksums, 3 the journal
//! 28   u32   position of the region in the device
//! 32   u32   bytes of a page
//! 36   u32   pages of a block
//! 40   u32   blocks
//! 44   u32   bytes from one frame to the next
//! 48   u64   sectors of the home disk
//! 56         zeros
//! ```
//!
//! Each opening of a store for writing draws a random number and writes it to the superblock and to all labels. So two
//! copies of a store are different stores as soon as one of them was opened: no file of one is mistaken for a file of
//! the other, and a file that was restored from a backup is recognised as old.

use std::fmt;
use std::io;

use bimetal_core::units::Geometry;

use super::backing::Backing;
use super::bytes::{Buffer, put_u32, put_u64, u32_at, u64_at};
use super::crc32c::crc32c;
use super::frame::Layout;

const MAGIC: u32 = u32::from_le_bytes(*b"BMLB");
const SUMMED: std::ops::Range<usize> = 4..64;

/// Role of a file in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// A region of flash.
    Region {
        /// Position in the device.
        region: u8,
        /// Bytes of a page.
        page_bytes: u32,
        /// Pages of a block.
        pages_per_block: u32,
        /// Number of blocks.
        blocks: u32,
    },
    /// The home disk.
    Disk {
        /// Sectors of the disk.
        sectors: u64,
    },
    /// The checksums of the home disk.
    Sums,
    /// The journal.
    Journal,
}

impl FileRole {
    /// A region of the device.
    pub fn region(region: u8, geometry: &Geometry) -> Self {
        let Geometry { page_bytes, pages_per_block, blocks, .. } = *geometry;
        Self::Region { region, page_bytes, pages_per_block, blocks }
    }

    /// Byte offset of the label in the file.
    pub fn label_at(&self) -> u64 {
        match self {
            Self::Disk { sectors } => sectors * super::frame::SECTOR as u64,
            Self::Region { .. } | Self::Sums | Self::Journal => 0,
        }
    }
}

impl fmt::Display for FileRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Region { region, .. } => write!(f, "region {region}"),
            Self::Disk { .. } => f.write_str("the home disk"),
            Self::Sums => f.write_str("the checksums of the home disk"),
            Self::Journal => f.write_str("the journal"),
        }
    }
}

/// A label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Number of the store.
    pub store: u64,
    /// Number of the opening.
    pub opening: u64,
    /// Role of the file.
    pub part: FileRole,
}

impl Label {
    /// Bytes of a label.
    pub const BYTES: usize = 4096;

    /// The encoded label, aligned for direct I/O.
    pub fn encode(&self) -> Buffer {
        let mut buffer = Buffer::new(Self::BYTES);
        let bytes = buffer.bytes_mut();
        bytes.fill(0);
        put_u32(bytes, 4, MAGIC);
        put_u64(bytes, 8, self.store);
        put_u64(bytes, 16, self.opening);
        let kind = match self.part {
            FileRole::Region { region, page_bytes, pages_per_block, blocks } => {
                put_u32(bytes, 28, u32::from(region));
                put_u32(bytes, 32, page_bytes);
                put_u32(bytes, 36, pages_per_block);
                put_u32(bytes, 40, blocks);
                put_u32(bytes, 44, Layout::new(page_bytes).stride() as u32);
                0
            }
            FileRole::Disk { sectors } => {
                put_u64(bytes, 48, sectors);
                1
            }
            FileRole::Sums => 2,
            FileRole::Journal => 3,
        };
        put_u32(bytes, 24, kind);
        let sum = crc32c(&bytes[SUMMED]);
        put_u32(bytes, 0, sum);
        buffer
    }

    /// Decodes a label; `None` if the bytes are not a valid one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if u32_at(bytes, 4) != MAGIC || u32_at(bytes, 0) != crc32c(&bytes[SUMMED]) {
            return None;
        }
        let part = match u32_at(bytes, 24) {
            0 => {
                let (page_bytes, pages_per_block, blocks) = (u32_at(bytes, 32), u32_at(bytes, 36), u32_at(bytes, 40));
                Geometry::new(page_bytes, pages_per_block, blocks, 1).ok()?;
                if u32_at(bytes, 44) != Layout::new(page_bytes).stride() as u32 {
                    return None;
                }
                let region = u8::try_from(u32_at(bytes, 28)).ok()?;
                FileRole::Region { region, page_bytes, pages_per_block, blocks }
            }
            1 => FileRole::Disk { sectors: u64_at(bytes, 48) },
            2 => FileRole::Sums,
            3 => FileRole::Journal,
            _ => return None,
        };
        Some(Self { store: u64_at(bytes, 8), opening: u64_at(bytes, 16), part })
    }

    /// Reads the label at byte `at` of a file; `None` if there is no valid one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(file: &dyn Backing, at: u64) -> io::Result<Option<Self>> {
        let mut label = Buffer::new(Self::BYTES);
        file.read_at(at, label.bytes_mut())?;
        Ok(Self::decode(label.bytes()))
    }

    /// Writes the label to its place in a file and syncs the file.
    ///
    /// # Errors
    /// The write or the sync failed; the label may not be durable.
    pub fn write(&self, file: &dyn Backing) -> io::Result<()> {
        file.write_at(self.part.label_at(), self.encode().bytes())?;
        file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_and_damaged_ones_do_not() {
        let region = FileRole::Region { region: 1, page_bytes: 4096, pages_per_block: 64, blocks: 12 };
        for part in [region, FileRole::Disk { sectors: 99 }, FileRole::Sums, FileRole::Journal] {
            let label = Label { store: 7, opening: 9, part };
            let mut bytes = label.encode().bytes().to_vec();
            assert_eq!(Label::decode(&bytes), Some(label));
            bytes[17] ^= 1;
            assert_eq!(Label::decode(&bytes), None);
        }
    }
}
