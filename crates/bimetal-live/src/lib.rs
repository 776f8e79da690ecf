//! The live device: a scheme of `bimetal-core`, unchanged, over real files or block devices.
//!
//! ```text
//! client ─▶ BlockDevice ─▶ Store ─▶ Scheme ─▶ FileMedia ─▶ files, journal
//! ```
//!
//! [`store`] keeps the bytes and survives a power cut at any moment; [`block_device`] is what it looks like to a server.

pub mod block_device;
pub mod store;
