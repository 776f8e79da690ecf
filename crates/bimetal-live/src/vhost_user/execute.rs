//! Executes a request of a guest, and writes its status.

use virtio_bindings::virtio_blk::{VIRTIO_BLK_ID_BYTES, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP};
use vm_memory::{Bytes, GuestMemoryMmap};

use super::request::{Command, Refusal, Request};
use crate::block_device::{BlockDevice, IoError};
use crate::requests::{self, Buffer, Memory};

/// Bytes of a serial number.
pub const SERIAL_BYTES: usize = VIRTIO_BLK_ID_BYTES as usize;

/// A device that is served to a guest.
pub struct Target<'d> {
    pub device: &'d dyn BlockDevice,
    pub serial: &'d [u8; SERIAL_BYTES],
    /// Whether every write is durable when it completes: the guest does not flush.
    pub writethrough: bool,
}

impl Target<'_> {
    /// Executes a request. Returns the number of data bytes that were written to guest memory.
    pub fn execute(&self, request: &Request, memory: &GuestMemoryMmap, buffer: &mut Buffer) -> Result<usize, Refusal> {
        match &request.command {
            Ok(Command::Block(command)) => {
                requests::execute(self.device, command, self.writethrough, memory, buffer).map_err(refusal)
            }
            Ok(Command::Identify { into }) => {
                let bytes = into.bytes().min(SERIAL_BYTES);
                memory.scatter(into, &self.serial[..bytes]).map_err(refusal).map(|()| bytes)
            }
            Err(refusal) => Err(*refusal),
        }
    }
}

/// Writes the status of a request. Returns the number of bytes that were written to guest memory.
pub fn answer(request: &Request, memory: &GuestMemoryMmap, done: Result<usize, Refusal>) -> u32 {
    let status = match done {
        Ok(_) => VIRTIO_BLK_S_OK,
        Err(Refusal::Io) => VIRTIO_BLK_S_IOERR,
        Err(Refusal::Unsupported) => VIRTIO_BLK_S_UNSUPP,
    };
    let is_told = memory.write_slice(&[status as u8], request.status).is_ok();
    done.unwrap_or(0) as u32 + u32::from(is_told)
}

/// The standard has one status for all errors.
fn refusal(_: IoError) -> Refusal {
    Refusal::Io
}
