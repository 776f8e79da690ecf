//! Executes a request as one call of the device: data are gathered from guest memory to a buffer, or scattered from it.

use std::sync::Arc;

use virtio_bindings::virtio_blk::{VIRTIO_BLK_ID_BYTES, VIRTIO_BLK_S_IOERR, VIRTIO_BLK_S_OK, VIRTIO_BLK_S_UNSUPP};
use vm_memory::{Bytes, GuestMemoryMmap};

use super::request::{Command, Refusal, Request};
use crate::block_device::{BlockDevice, IoError, Payload, write_zeros};

/// Bytes of a serial number.
pub const SERIAL_BYTES: usize = VIRTIO_BLK_ID_BYTES as usize;
/// Bytes of buffer that a thread keeps between requests: the largest request of a Linux guest with default limits.
const KEPT_BYTES: usize = 1280 << 10;

/// Memory for the data of one request at a time.
#[derive(Debug, Default)]
pub struct Buffer(Arc<Vec<u8>>);

impl Buffer {
    /// `bytes` bytes with unspecified contents.
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        let memory = Arc::make_mut(&mut self.0);
        if memory.len() < bytes {
            memory.resize(bytes, 0);
        }
        &mut memory[..bytes]
    }

    fn shrink(&mut self) {
        if self.0.len() > KEPT_BYTES {
            *self = Self::default();
        }
    }
}

/// A device that is served to a guest.
pub struct Target<'d> {
    pub device: &'d dyn BlockDevice,
    pub serial: &'d [u8; SERIAL_BYTES],
    /// Whether every write is durable when it completes: the guest does not flush.
    pub writethrough: bool,
}

impl Target<'_> {
    /// Executes a request and writes its status. Returns the number of bytes that were written to guest memory.
    pub fn execute(&self, request: &Request, memory: &GuestMemoryMmap, buffer: &mut Buffer) -> u32 {
        let done = match &request.command {
            Ok(command) => self.run(command, memory, buffer),
            Err(refusal) => Err(*refusal),
        };
        buffer.shrink();
        self.device.settle();
        let status = match done {
            Ok(_) => VIRTIO_BLK_S_OK,
            Err(Refusal::Io) => VIRTIO_BLK_S_IOERR,
            Err(Refusal::Unsupported) => VIRTIO_BLK_S_UNSUPP,
        };
        let is_told = memory.write_slice(&[status as u8], request.status).is_ok();
        done.unwrap_or(0) as u32 + u32::from(is_told)
    }

    /// Returns the number of data bytes written to guest memory.
    fn run(&self, command: &Command, memory: &GuestMemoryMmap, buffer: &mut Buffer) -> Result<usize, Refusal> {
        let (device, fua) = (self.device, self.writethrough);
        match command {
            Command::Read { sector, into } => {
                let data = buffer.room(into.bytes());
                device.read(*sector, data).map_err(refusal)?;
                into.scatter(memory, data).map_err(|_| Refusal::Io)?;
                Ok(data.len())
            }
            Command::Write { sector, from } => {
                let data = buffer.room(from.bytes());
                from.gather(memory, data).map_err(|_| Refusal::Io)?;
                let data = Payload::new(Arc::clone(&buffer.0), 0..from.bytes());
                device.write_shared(*sector, &data, fua).map_err(refusal)?;
                Ok(0)
            }
            Command::Flush => device.flush().map_err(refusal).map(|()| 0),
            Command::Identify { into } => {
                let bytes = into.bytes().min(SERIAL_BYTES);
                into.scatter(memory, &self.serial[..bytes]).map_err(|_| Refusal::Io)?;
                Ok(bytes)
            }
            Command::Discard(ranges) => {
                for range in ranges.iter().filter(|range| range.sectors > 0) {
                    device.trim(range.sector, range.sectors, fua).map_err(refusal)?;
                }
                Ok(0)
            }
            Command::Zero { range, .. } if range.sectors == 0 => Ok(0),
            Command::Zero { range, may_unmap } => {
                let zeroed = if *may_unmap {
                    device.zero(range.sector, range.sectors, fua)
                } else {
                    write_zeros(device, range.sector, range.sectors, fua)
                };
                zeroed.map_err(refusal).map(|()| 0)
            }
        }
    }
}

/// The standard has one status for all errors.
fn refusal(_: IoError) -> Refusal {
    Refusal::Io
}
