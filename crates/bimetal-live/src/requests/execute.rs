//! Executes a request as one call of the device: data are gathered from the client's memory to a buffer, or scattered from
//! it.

use std::sync::Arc;

use super::Command;
use crate::block_device::{BlockDevice, IoError, Payload, write_zeros};

/// Bytes of buffer that a thread keeps between requests: the largest request of a Linux client with default limits.
const KEPT_BYTES: usize = 1280 << 10;

/// The memory of a client.
pub trait Memory {
    /// A place in this memory.
    type Place;

    /// Length of a place, in bytes.
    fn bytes(place: &Self::Place) -> usize;

    /// Copies the place to `out`, which has the same length.
    fn gather(&self, from: &Self::Place, out: &mut [u8]) -> Result<(), IoError>;

    /// Copies `data` to the place, which has the same length.
    fn scatter(&self, into: &Self::Place, data: &[u8]) -> Result<(), IoError>;
}

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

/// Executes a request, durable on return if `fua`, and waits until the modelled device would have answered. Returns the
/// number of bytes written to the client's memory.
pub fn execute<M: Memory>(
    device: &dyn BlockDevice,
    command: &Command<M::Place>,
    fua: bool,
    memory: &M,
    buffer: &mut Buffer,
) -> Result<usize, IoError> {
    let done = run(device, command, fua, memory, buffer);
    buffer.shrink();
    device.settle();
    done
}

fn run<M: Memory>(
    device: &dyn BlockDevice,
    command: &Command<M::Place>,
    fua: bool,
    memory: &M,
    buffer: &mut Buffer,
) -> Result<usize, IoError> {
    match command {
        Command::Read { sector, into } => {
            let data = buffer.room(M::bytes(into));
            device.read(*sector, data)?;
            memory.scatter(into, data)?;
            return Ok(data.len());
        }
        Command::Write { sector, from } => {
            let bytes = M::bytes(from);
            memory.gather(from, buffer.room(bytes))?;
            device.write_shared(*sector, &Payload::new(Arc::clone(&buffer.0), 0..bytes), fua)?;
        }
        Command::Flush => device.flush()?,
        Command::Discard(ranges) => {
            for range in ranges.iter().filter(|range| range.sectors > 0) {
                device.trim(range.sector, range.sectors, fua)?;
            }
        }
        Command::Zero { range, .. } if range.sectors == 0 => {}
        Command::Zero { range, may_unmap: true } => device.zero(range.sector, range.sectors, fua)?,
        Command::Zero { range, may_unmap: false } => {
            // Its length is limited.
            write_zeros(device, range.sector, range.sectors, fua, || true)?;
        }
    }
    Ok(0)
}
