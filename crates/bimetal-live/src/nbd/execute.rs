//! Executes commands, each as one request to the device, and writes their replies.

use std::ops::ControlFlow;

use super::accept::Stop;
use super::buffer::Output;
use super::negotiation::BASE_ALLOCATION_ID;
use super::proto::*;
use super::reply::{Refusal, ReplyTo};
use super::transmission::Command;
use crate::block_device::{BlockDevice, Extent, IoError, Payload, SECTOR_BYTES, write_zeros};

/// Unit in which a read is searched for zeros, which are sent as holes. Shorter reads are sent as data.
const HOLE_BYTES: usize = 64 << 10;
/// Maximum number of extents in a reply; a client asks again for later ones.
const MAX_EXTENTS: usize = 1024;

/// Destination and form of the replies to a request.
pub struct Replies<'o> {
    /// The output of the connection.
    pub out: &'o mut Output,
    /// The request.
    pub to: ReplyTo,
}

/// Executes `command` on `device` and replies. The data of a write are `shared`, if they can be. A request that takes
/// long is ended by `stop`.
pub fn execute(
    command: Command<'_>,
    shared: Option<&Payload>,
    device: &dyn BlockDevice,
    stop: Option<&Stop>,
    mut replies: Replies<'_>,
) {
    let done = match command {
        Command::Read { sector, bytes, whole } => return replies.read(device, sector, bytes, whole),
        Command::BlockStatus { sector, sectors, one } => return replies.block_status(device, sector, sectors, one),
        Command::Flush => device.flush(),
        // A request of length 0 is complete at once.
        Command::Write { data: &[], .. }
        | Command::Trim { sectors: 0, .. }
        | Command::Cache { sectors: 0, .. }
        | Command::WriteZeroes { sectors: 0, .. } => Ok(()),
        Command::Write { sector, data, fua } => match shared {
            Some(shared) => device.write_shared(sector, shared, fua),
            None => device.write(sector, data, fua),
        },
        Command::Trim { sector, sectors, fua } => device.trim(sector, sectors, fua),
        Command::Cache { sector, sectors } => device.prefetch(sector, sectors),
        Command::WriteZeroes { no_hole: true, fast: true, .. } => {
            return replies.refuse(Refusal { error: NbdError::NotSup, message: "zeros without a hole are written" });
        }
        Command::WriteZeroes { sector, sectors, fua, no_hole: true, .. } => {
            write_zeros(device, sector, sectors, fua, || !stop.is_some_and(Stop::wanted))
        }
        Command::WriteZeroes { sector, sectors, fua, .. } => device.zero(sector, sectors, fua),
    };
    match done {
        Ok(()) => replies.to.success(replies.out),
        Err(error) => replies.refuse(refusal(error)),
    }
}

/// The reply to the client for an error of the device.
fn refusal(error: IoError) -> Refusal {
    let (error, message) = match error {
        IoError::Io => (NbdError::Io, "the device could not do it, or found its data damaged"),
        IoError::ReadOnly => (NbdError::Perm, "the device takes no writes"),
        IoError::NoSpace => (NbdError::NoSpc, "no space is left where the device keeps its data"),
        IoError::OutOfRange => (NbdError::Inval, "not within the device"),
        IoError::Shutdown => (NbdError::Shutdown, "the device is being stopped"),
    };
    Refusal { error, message }
}

impl Replies<'_> {
    /// Replies that the request was refused or failed.
    fn refuse(&mut self, refusal: Refusal) {
        self.to.refusal(self.out, refusal);
    }

    /// Lets the device read directly into the output.
    fn read(&mut self, device: &dyn BlockDevice, sector: u64, bytes: usize, whole: bool) {
        if bytes == 0 {
            return self.to.no_data(self.out);
        }
        let header_bytes = self.to.mode.data_header_bytes();
        let room = self.out.room(header_bytes + bytes);
        if let Err(error) = device.read(sector, &mut room[header_bytes..]) {
            return self.refuse(refusal(error));
        }
        let filled = if !self.to.mode.has_chunks() {
            self.to.simple_header(room, 0);
            header_bytes + bytes
        } else if whole || bytes < HOLE_BYTES {
            self.to.data_header(room, NBD_REPLY_FLAG_DONE, self.to.offset, bytes);
            header_bytes + bytes
        } else {
            chunks(room, self.to)
        };
        self.out.fill(filled);
    }

    fn block_status(&mut self, device: &dyn BlockDevice, sector: u64, sectors: u64, one: bool) {
        let start = self.out.bytes().len();
        self.to.begin_status(self.out);
        let mut left = sectors;
        let mut run = (0, Extent::Allocated);
        let mut extents = 0;
        let visited = device.extents(sector, sectors, &mut |length, extent| {
            let length = length.min(left);
            left -= length;
            if length == 0 {
                return ControlFlow::Continue(());
            }
            if extent == run.1 || run.0 == 0 {
                run = (run.0 + length, extent);
                return ControlFlow::Continue(());
            }
            self.put_extent(run);
            extents += 1;
            run = (length, extent);
            if one || extents == MAX_EXTENTS {
                run.0 = 0;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        if run.0 > 0 {
            self.put_extent(run);
            extents += 1;
        }
        if visited.is_err() || extents == 0 {
            self.out.unfill(start);
            return self.refuse(refusal(visited.err().unwrap_or(IoError::Io)));
        }
        self.to.end_status(self.out.since(start), BASE_ALLOCATION_ID, extents);
    }

    fn put_extent(&mut self, (sectors, extent): (u64, Extent)) {
        let state = match extent {
            Extent::Allocated => 0,
            Extent::Hole => NBD_STATE_HOLE | NBD_STATE_ZERO,
        };
        self.to.extent(self.out, sectors * SECTOR_BYTES, state);
    }
}

/// Converts the data of a read, which begin after the room for one header, to chunks of data and of holes, in place: a
/// hole takes less room than its zeros and two headers. Returns the length of the chunks.
fn chunks(room: &mut [u8], to: ReplyTo) -> usize {
    let header_bytes = to.mode.data_header_bytes();
    let bytes = room.len() - header_bytes;
    let data = |from: usize| header_bytes + from;
    let (mut from, mut filled) = (0, 0);
    while from < bytes {
        let hole = is_hole(&room[data(from)..]);
        let mut end = from;
        while end < bytes && is_hole(&room[data(end)..]) == hole {
            end = bytes.min(end + HOLE_BYTES);
        }
        let (offset, flags) = (to.offset + from as u64, if end == bytes { NBD_REPLY_FLAG_DONE } else { 0 });
        if hole {
            to.hole_chunk(&mut room[filled..], flags, offset, end - from);
            filled += to.mode.hole_chunk_bytes();
        } else {
            // Data without a hole before them are in place already.
            if data(from) != filled + header_bytes {
                room.copy_within(data(from)..data(end), filled + header_bytes);
            }
            to.data_header(&mut room[filled..], flags, offset, end - from);
            filled += header_bytes + end - from;
        }
        from = end;
    }
    filled
}

/// Whether the data begin with zeros of a hole's length.
fn is_hole(data: &[u8]) -> bool {
    data.len() >= HOLE_BYTES
        && data[..HOLE_BYTES].chunks(512).all(|part| part.iter().fold(0, |any, byte| any | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::super::mode::Mode;
    use super::*;

    #[test]
    fn data_after_a_hole_move_up() {
        for mode in [Mode::Structured, Mode::Extended] {
            let to = ReplyTo { mode, cookie: 77, offset: 4096 };
            let (header_bytes, hole_bytes) = (mode.data_header_bytes(), mode.hole_chunk_bytes());
            let sizes = [(HOLE_BYTES, 3), (2 * HOLE_BYTES, 0), (HOLE_BYTES + 512, 4)];
            let mut room = vec![9; header_bytes];
            for (bytes, fill) in sizes {
                room.resize(room.len() + bytes, fill);
            }
            let filled = chunks(&mut room, to);
            assert_eq!(filled, 2 * header_bytes + hole_bytes + 2 * HOLE_BYTES + 512);
            let mut expected = vec![0; header_bytes];
            to.data_header(&mut expected, 0, 4096, HOLE_BYTES);
            expected.resize(expected.len() + HOLE_BYTES, 3);
            let mut hole = vec![0; hole_bytes];
            to.hole_chunk(&mut hole, 0, 4096 + HOLE_BYTES as u64, 2 * HOLE_BYTES);
            expected.extend(hole);
            let mut header = vec![0; header_bytes];
            to.data_header(&mut header, NBD_REPLY_FLAG_DONE, 4096 + 3 * HOLE_BYTES as u64, HOLE_BYTES + 512);
            expected.extend(header);
            expected.resize(expected.len() + HOLE_BYTES + 512, 4);
            assert!(room[..filled] == expected);
        }
    }

    #[test]
    fn one_byte_makes_data_of_a_hole() {
        let mut data = vec![0; HOLE_BYTES];
        assert!(is_hole(&data) && !is_hole(&data[1..]));
        data[HOLE_BYTES - 1] = 1;
        assert!(!is_hole(&data));
    }
}
