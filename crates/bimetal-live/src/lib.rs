//! Bimetal's live device: a registered scheme, unchanged, served as a block device over real files or block devices.
//!
//! ```text
//! client ─▶ nbd, fuse ─▶ BlockDevice ─▶ Store ─▶ Scheme ─▶ FileMedia ─▶ files, journal
//! ```
//!
//! [`store`] keeps the bytes and survives a power cut at any moment. [`BlockDevice`] is the seam between what stores sectors
//! and what exports them. [`nbd`] exports one over the network block device protocol, `fuse` as a file; [`endpoint`] answers questions about
//! it; [`backup`] copies one while it is used; [`MemoryDevice`] is the plainest one, for tests and benchmarks. [`runtime`] puts them together: a program serves a store
//! with a few lines.

pub mod backup;
mod block_device;
mod clients;
pub mod endpoint;
pub mod fuse;
pub mod health;
pub mod latency;
pub mod measured;
mod memory;
pub mod nbd;
pub mod pace;
pub mod runtime;
pub mod store;

pub use block_device::{BlockDevice, Extent, IoError, Payload, SECTOR_BYTES};
pub use memory::MemoryDevice;
