//! Bimetal's live device: a registered scheme served as a block device.
//!
//! [`BlockDevice`] is the seam between what stores sectors and what exports them. [`nbd`] exports one over the network
//! block device protocol; [`MemoryDevice`] is the plainest one, for tests and benchmarks.

mod block_device;
mod memory;
pub mod nbd;

pub use block_device::{BlockDevice, Extent, IoError, SECTOR_BYTES};
pub use memory::MemoryDevice;
