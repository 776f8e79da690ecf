//! The device as a disk of a virtual machine: a vhost-user-blk back end.
//!
//! The VMM (QEMU, cloud-hypervisor, crosvm) connects to a Unix socket and shares the memory of its guest. Requests then go through
//! queues in guest memory, without the VMM. A request of the guest is one call of the device.
//!
//! ```text
//! VMM ── socket ──▶ server: connections, start and stop
//! guest ── queues ──▶ guest ─▶ request ─▶ execute ─▶ BlockDevice
//! ```
//!
//! Queues are spread over a few threads. Requests that may wait for a sync go to workers, so that neither a flush nor a durable
//! write delays the requests behind it. Requests complete in any order.
//!
//! A flush also completes the other flushes that wait for a worker: the writes that they cover have completed before.
//!
//! [`Driver`] is the other side, a virtual machine for benchmarks and tests.
//!
//! The guest is not trusted: all numbers in its queues and descriptors are checked. The VMM is trusted: it runs as the
//! serving user, because no other user can open the socket. A VMM that truncates its shared memory kills this process.

mod config;
mod driver;
mod execute;
mod gate;
mod guest;
mod request;
mod server;
#[cfg(test)]
mod tests;
mod write_cache;

pub use driver::Driver;
pub use execute::SERIAL_BYTES;
pub use guest::Device;
pub use server::{OPEN_FILES, Running, Server};
/// The numbers of virtio-blk, with the names of the standard.
pub use virtio_bindings::virtio_blk;
