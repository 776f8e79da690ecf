//! Bimetal's live device: a registered scheme, unchanged, served as a block device over real files or block devices.
//!
//! ```text
//! client ─▶ nbd, fuse, ublk, vhost_user ─▶ BlockDevice ─▶ Store ─▶ Scheme ─▶ FileMedia ─▶ files, journal
//! ```
//!
//! [`store`] keeps the bytes and survives a power cut at any moment. [`BlockDevice`] is the seam between storage of sectors and front
//! ends. [`nbd`] exports a device over the network block device protocol, [`fuse`] as a file, [`ublk`] as a disk of this machine, and
//! [`vhost_user`] as the disk of a virtual machine. [`endpoint`] answers questions about a device, and [`backup`] copies it while it is
//! used. [`MemoryDevice`] is the simplest device, for tests and benchmarks. [`runtime`] puts the parts together: a program serves a store
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
mod requests;
pub mod runtime;
mod socket_path;
pub mod store;
pub mod ublk;
pub mod vhost_user;

pub use block_device::{BlockDevice, Extent, IoError, Payload, SECTOR_BYTES};
pub use memory::MemoryDevice;
