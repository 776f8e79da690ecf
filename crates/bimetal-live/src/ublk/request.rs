//! Requests of the kernel, and their data.
//!
//! The driver describes a request by an operation, flags and a range of sectors: `struct ublksrv_io_desc` of `linux/ublk_cmd.h`. Its
//! answer is the number of bytes read or written, or a negative error number. The kernel is trusted.

use std::fs::File;
use std::os::unix::fs::FileExt;

use libublk::io::UblkIOCtx;
use libublk::sys::{
    UBLK_IO_F_FUA, UBLK_IO_F_NOUNMAP, UBLK_IO_OP_DISCARD, UBLK_IO_OP_FLUSH, UBLK_IO_OP_READ, UBLK_IO_OP_WRITE,
    UBLK_IO_OP_WRITE_ZEROES, ublksrv_io_desc,
};
use rustix::io::Errno;

use crate::block_device::{BlockDevice, IoError, SECTOR_BYTES};
use crate::requests::{Buffer, Command, Memory, Range, execute};

/// Bits of the operation. The others are flags.
const OPERATION: u32 = 0xff;

/// A request of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `None` if the operation is unknown.
    pub command: Option<Command<Place>>,
    pub fua: bool,
}

/// The data of a request, by its number in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub queue: u16,
    pub tag: u16,
    pub bytes: usize,
}

impl Request {
    /// The request with this description, at this place.
    pub fn of(description: &ublksrv_io_desc, queue: u16, tag: u16) -> Self {
        let (sector, sectors) = (description.start_sector, u64::from(description.nr_sectors));
        let range = Range { sector, sectors };
        let place = Place { queue, tag, bytes: (sectors * SECTOR_BYTES) as usize };
        let has = |flag| description.op_flags & flag != 0;
        let command = match description.op_flags & OPERATION {
            UBLK_IO_OP_READ => Some(Command::Read { sector, into: place }),
            UBLK_IO_OP_WRITE => Some(Command::Write { sector, from: place }),
            UBLK_IO_OP_FLUSH => Some(Command::Flush),
            UBLK_IO_OP_DISCARD => Some(Command::Discard(vec![range])),
            UBLK_IO_OP_WRITE_ZEROES => Some(Command::Zero { range, may_unmap: !has(UBLK_IO_F_NOUNMAP) }),
            _ => None,
        };
        Self { command, fua: has(UBLK_IO_F_FUA) }
    }

    /// Whether it waits for no sync.
    pub fn is_quick(&self) -> bool {
        self.command.as_ref().is_none_or(|command| command.is_quick(self.fua))
    }

    pub fn data_bytes(&self) -> usize {
        self.command.as_ref().and_then(Command::data).map_or(0, |place| place.bytes)
    }

    /// Executes it. Returns the answer to the kernel.
    pub fn execute(&self, device: &dyn BlockDevice, memory: &KernelMemory, buffer: &mut Buffer) -> i32 {
        let Some(command) = &self.command else { return -Errno::OPNOTSUPP.raw_os_error() };
        match execute(device, command, self.fua, memory, buffer) {
            Ok(_) => self.data_bytes() as i32,
            Err(error) => -errno(error).raw_os_error(),
        }
    }
}

fn errno(error: IoError) -> Errno {
    match error {
        IoError::Io => Errno::IO,
        IoError::ReadOnly => Errno::ROFS,
        IoError::NoSpace => Errno::NOSPC,
        IoError::OutOfRange => Errno::INVAL,
        IoError::Shutdown => Errno::SHUTDOWN,
    }
}

/// The data of all requests under way: `/dev/ublkcN` has them at offsets for each queue and request.
#[derive(Debug)]
pub struct KernelMemory(File);

impl KernelMemory {
    /// The data that this file has.
    pub fn new(file: File) -> Self {
        Self(file)
    }
}

fn offset(place: &Place) -> u64 {
    UblkIOCtx::ublk_user_copy_pos(place.queue, place.tag, 0)
}

impl Memory for KernelMemory {
    type Place = Place;

    fn bytes(place: &Place) -> usize {
        place.bytes
    }

    fn gather(&self, from: &Place, out: &mut [u8]) -> Result<(), IoError> {
        self.0.read_exact_at(out, offset(from)).map_err(|_| IoError::Io)
    }

    fn scatter(&self, into: &Place, data: &[u8]) -> Result<(), IoError> {
        self.0.write_all_at(data, offset(into)).map_err(|_| IoError::Io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    const SECTORS: u64 = 64;
    /// A tag whose data a temporary file can have: it is sparse.
    const TAG: u16 = 3;

    fn description(op_flags: u32, start_sector: u64, nr_sectors: u32) -> ublksrv_io_desc {
        ublksrv_io_desc { op_flags, start_sector, nr_sectors, ..Default::default() }
    }

    /// The request with this description.
    fn request(op_flags: u32, sector: u64, sectors: u32) -> Request {
        Request::of(&description(op_flags, sector, sectors), 0, TAG)
    }

    fn memory() -> KernelMemory {
        KernelMemory::new(tempfile::tempfile().unwrap())
    }

    #[test]
    fn operations_and_flags_are_those_of_the_driver() {
        let place = Place { queue: 5, tag: 7, bytes: 4096 };
        let range = Range { sector: 24, sectors: 8 };
        // Flags without effect: a failed request is not repeated, metadata.
        let other = 1 << 8 | 1 << 11;
        for (op_flags, command) in [
            (0, Some(Command::Read { sector: 24, into: place })),
            (1, Some(Command::Write { sector: 24, from: place })),
            (2, Some(Command::Flush)),
            (3, Some(Command::Discard(vec![range]))),
            (5, Some(Command::Zero { range, may_unmap: true })),
            (5 | 1 << 15, Some(Command::Zero { range, may_unmap: false })),
            (4, None),
            (13, None),
        ] {
            for (flags, fua) in [(0, false), (other, false), (other | 1 << 13, true)] {
                let request = Request::of(&description(op_flags | flags, 24, 8), 5, 7);
                assert_eq!(request, Request { command: command.clone(), fua }, "{op_flags:#x} {flags:#x}");
            }
        }
        let quick = [0, 1, 1 | 1 << 13, 2, 3, 5, 4].map(|op_flags| request(op_flags, 0, 8).is_quick());
        assert_eq!(quick, [true, true, false, false, false, false, true]);
    }

    #[test]
    fn data_go_between_the_kernel_and_the_device() {
        let (device, memory, mut buffer) = (MemoryDevice::new(SECTORS), memory(), Buffer::default());
        let at = 0x8000_0000 + u64::from(TAG) * (32 << 20);
        memory.0.write_all_at(&[7; 4096], at).unwrap();
        let mut execute =
            |op_flags, sector, sectors| request(op_flags, sector, sectors).execute(&device, &memory, &mut buffer);
        assert_eq!(execute(UBLK_IO_OP_WRITE, 8, 8), 4096);
        memory.0.write_all_at(&[0; 8192], at).unwrap();
        assert_eq!(execute(UBLK_IO_OP_READ, 4, 8), 4096);
        let mut read = [1; 8192];
        memory.0.read_exact_at(&mut read, at).unwrap();
        assert!(read[..2048] == [0; 2048] && read[2048..4096] == [7; 2048] && read[4096..] == [0; 4096]);
        assert_eq!(execute(UBLK_IO_OP_FLUSH, 0, 0), 0);
        assert_eq!(execute(UBLK_IO_OP_WRITE_ZEROES, 8, 2), 0);
        assert_eq!(execute(UBLK_IO_OP_WRITE_ZEROES | UBLK_IO_F_NOUNMAP, 10, 2), 0);
        let mut out = [1; 4096];
        device.read(8, &mut out).unwrap();
        assert!(out[..2048] == [0; 2048] && out[2048..] == [7; 2048]);
        assert_eq!(execute(UBLK_IO_OP_DISCARD, 8, 8), 0);
        device.read(8, &mut out).unwrap();
        assert_eq!(out, [0; 4096]);
    }

    #[test]
    fn a_failed_request_is_an_error_number() {
        let (device, memory, mut buffer) = (MemoryDevice::new(SECTORS), memory(), Buffer::default());
        let mut execute = |op_flags, sector| request(op_flags, sector, 8).execute(&device, &memory, &mut buffer);
        assert_eq!(execute(UBLK_IO_OP_DISCARD, SECTORS), -Errno::INVAL.raw_os_error());
        assert_eq!(execute(UBLK_IO_OP_READ, u64::MAX), -Errno::INVAL.raw_os_error());
        assert_eq!(execute(UBLK_IO_OP_WRITE, 0), -Errno::IO.raw_os_error(), "the kernel has no such data");
        assert_eq!(execute(13, 0), -Errno::OPNOTSUPP.raw_os_error());
        assert_eq!(errno(IoError::NoSpace), Errno::NOSPC, "the only error that programs tell from others");
    }
}
