//! Executes commands, each as one request to the device, and writes their replies.

use std::ops::ControlFlow;

use super::buffer::Output;
use super::negotiation::BASE_ALLOCATION_ID;
use super::proto::*;
use super::reply::{self, Refusal};
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
    /// Identifies the request.
    pub cookie: u64,
    /// Whether replies come in chunks.
    pub structured: bool,
}

/// Executes `command` on `device` and replies. The data of a write are `shared`, if they can be.
pub fn execute(command: Command<'_>, shared: Option<&Payload>, device: &dyn BlockDevice, mut replies: Replies<'_>) {
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
        Command::WriteZeroes { sector, sectors, fua, no_hole: true, .. } => write_zeros(device, sector, sectors, fua),
        Command::WriteZeroes { sector, sectors, fua, .. } => device.zero(sector, sectors, fua),
    };
    match done {
        Ok(()) => reply::simple(replies.out, replies.cookie, 0),
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
    pub fn refuse(&mut self, refusal: Refusal) {
        if self.structured {
            reply::error_chunk(self.out, self.cookie, refusal);
        } else {
            reply::simple(self.out, self.cookie, refusal.error as u32);
        }
    }

    /// Lets the device read directly into the output.
    fn read(&mut self, device: &dyn BlockDevice, sector: u64, bytes: usize, whole: bool) {
        if bytes == 0 {
            return if self.structured {
                reply::none_chunk(self.out, self.cookie);
            } else {
                reply::simple(self.out, self.cookie, 0);
            };
        }
        let header_bytes = if self.structured { reply::DATA_HEADER_BYTES } else { reply::SIMPLE_REPLY_BYTES };
        let room = self.out.room(header_bytes + bytes);
        if let Err(error) = device.read(sector, &mut room[header_bytes..]) {
            return self.refuse(refusal(error));
        }
        let filled = if !self.structured {
            reply::simple_header(room, self.cookie, 0);
            header_bytes + bytes
        } else if whole || bytes < HOLE_BYTES {
            reply::data_header(room, NBD_REPLY_FLAG_DONE, self.cookie, sector * SECTOR_BYTES, bytes);
            header_bytes + bytes
        } else {
            chunks(room, self.cookie, sector * SECTOR_BYTES)
        };
        self.out.fill(filled);
    }

    fn block_status(&mut self, device: &dyn BlockDevice, sector: u64, sectors: u64, one: bool) {
        let start = self.out.bytes().len();
        self.out.put(&[0; reply::CHUNK_HEADER_BYTES]);
        self.out.put(&BASE_ALLOCATION_ID.to_be_bytes());
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
        let (cookie, payload_bytes) = (self.cookie, 4 + 8 * extents);
        reply::chunk_header(
            self.out.since(start),
            NBD_REPLY_FLAG_DONE,
            NBD_REPLY_TYPE_BLOCK_STATUS,
            cookie,
            payload_bytes,
        );
    }

    fn put_extent(&mut self, (sectors, extent): (u64, Extent)) {
        let state = match extent {
            Extent::Allocated => 0,
            Extent::Hole => NBD_STATE_HOLE | NBD_STATE_ZERO,
        };
        self.out.put(&((sectors * SECTOR_BYTES) as u32).to_be_bytes());
        self.out.put(&state.to_be_bytes());
    }
}

/// Converts data at `offset`, which begin after the room for one header, to chunks of data and of holes, in place: a
/// hole takes less room than its zeros and two headers. Returns the length of the chunks.
fn chunks(room: &mut [u8], cookie: u64, offset: u64) -> usize {
    let bytes = room.len() - reply::DATA_HEADER_BYTES;
    let data = |from: usize| reply::DATA_HEADER_BYTES + from;
    let (mut from, mut filled) = (0, 0);
    while from < bytes {
        let hole = is_hole(&room[data(from)..]);
        let mut to = from;
        while to < bytes && is_hole(&room[data(to)..]) == hole {
            to = bytes.min(to + HOLE_BYTES);
        }
        let flags = if to == bytes { NBD_REPLY_FLAG_DONE } else { 0 };
        if hole {
            reply::hole_chunk(&mut room[filled..], flags, cookie, offset + from as u64, to - from);
            filled += reply::HOLE_CHUNK_BYTES;
        } else {
            // Data without a hole before them are in place already.
            if data(from) != filled + reply::DATA_HEADER_BYTES {
                room.copy_within(data(from)..data(to), filled + reply::DATA_HEADER_BYTES);
            }
            reply::data_header(&mut room[filled..], flags, cookie, offset + from as u64, to - from);
            filled += reply::DATA_HEADER_BYTES + to - from;
        }
        from = to;
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
    use super::*;

    #[test]
    fn data_after_a_hole_move_up() {
        let sizes = [(HOLE_BYTES, 3), (2 * HOLE_BYTES, 0), (HOLE_BYTES + 512, 4)];
        let mut room = vec![9; reply::DATA_HEADER_BYTES];
        for (bytes, fill) in sizes {
            room.resize(room.len() + bytes, fill);
        }
        let filled = chunks(&mut room, 77, 4096);
        assert_eq!(filled, 2 * reply::DATA_HEADER_BYTES + reply::HOLE_CHUNK_BYTES + 2 * HOLE_BYTES + 512);
        let mut expected = vec![0; reply::DATA_HEADER_BYTES];
        reply::data_header(&mut expected, 0, 77, 4096, HOLE_BYTES);
        expected.resize(expected.len() + HOLE_BYTES, 3);
        let mut hole = [0; reply::HOLE_CHUNK_BYTES];
        reply::hole_chunk(&mut hole, 0, 77, 4096 + HOLE_BYTES as u64, 2 * HOLE_BYTES);
        expected.extend(hole);
        let mut header = [0; reply::DATA_HEADER_BYTES];
        reply::data_header(&mut header, NBD_REPLY_FLAG_DONE, 77, 4096 + 3 * HOLE_BYTES as u64, HOLE_BYTES + 512);
        expected.extend(header);
        expected.resize(expected.len() + HOLE_BYTES + 512, 4);
        assert!(room[..filled] == expected);
    }

    #[test]
    fn one_byte_makes_data_of_a_hole() {
        let mut data = vec![0; HOLE_BYTES];
        assert!(is_hole(&data) && !is_hole(&data[1..]));
        data[HOLE_BYTES - 1] = 1;
        assert!(!is_hole(&data));
    }
}
