//! Events: the inputs of a scheme, as the journal records them.
//!
//! A scheme is a deterministic function of its events, so replaying them gives the same state. Events do not contain
//! the data of writes, which are in the frames.

use bimetal_core::request::{Op, Request};

use super::bytes::{put_u32, put_u64, u32_at, u64_at};

/// Bytes of an event: `u64` first sector, `u32` number of sectors, `u32` kind (0 read, 1 write, 2 trim, 3 idle,
/// 4 forget).
pub const EVENT_BYTES: usize = 16;

const IDLE: u32 = 3;
const FORGET: u32 = 4;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request of the host.
    Request {
        /// Its operation.
        op: Op,
        /// First sector.
        sector: u64,
        /// Number of sectors, at least 1.
        sectors: u32,
    },
    /// The host is idle.
    Idle {
        /// Approximate number of pages that may be copied meanwhile.
        pages: u32,
    },
    /// The host trims sectors, and the scheme is not told: it might program pages, and there is no space for them. The
    /// sectors read as zeros, but the scheme keeps their old data as valid.
    Forget {
        /// First sector.
        sector: u64,
        /// Number of sectors, at least 1.
        sectors: u32,
    },
}

impl Event {
    /// Writes its 16 bytes.
    pub fn encode(&self, bytes: &mut [u8]) {
        let (sector, count, kind) = match *self {
            Self::Request { op, sector, sectors } => (sector, sectors, op as u32),
            Self::Idle { pages } => (0, pages, IDLE),
            Self::Forget { sector, sectors } => (sector, sectors, FORGET),
        };
        put_u64(bytes, 0, sector);
        put_u32(bytes, 8, count);
        put_u32(bytes, 12, kind);
    }

    /// Parses an event; `None` if it is invalid for a device of `device_sectors` sectors.
    pub fn decode(bytes: &[u8], device_sectors: u64) -> Option<Self> {
        let (sector, count) = (u64_at(bytes, 0), u32_at(bytes, 8));
        let op = match u32_at(bytes, 12) {
            0 => Some(Op::Read),
            1 => Some(Op::Write),
            2 => Some(Op::Trim),
            IDLE => return Some(Self::Idle { pages: count }),
            FORGET => None,
            _ => return None,
        };
        let within = count > 0 && sector.checked_add(u64::from(count)).is_some_and(|end| end <= device_sectors);
        within.then_some(match op {
            Some(op) => Self::Request { op, sector, sectors: count },
            None => Self::Forget { sector, sectors: count },
        })
    }

    /// Whether its loss would change data of the host.
    pub fn changes_data(&self) -> bool {
        matches!(self, Self::Request { op: Op::Write | Op::Trim, .. } | Self::Forget { .. })
    }

    /// The request that the scheme serves, if there is one.
    pub fn request(&self) -> Option<Request> {
        match *self {
            Self::Request { op, sector, sectors } => Some(Request { arrival_ns: 0, sector, sectors, op, handle: 0 }),
            Self::Idle { .. } | Self::Forget { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_if_the_device_can_have_them() {
        let request = |op, sector, sectors| Event::Request { op, sector, sectors };
        let mut bytes = [0; EVENT_BYTES];
        for event in [
            request(Op::Read, 7, 1),
            request(Op::Write, 0, 100),
            request(Op::Trim, 99, 1),
            Event::Idle { pages: 8 },
            Event::Forget { sector: 40, sectors: 60 },
        ] {
            event.encode(&mut bytes);
            assert_eq!(Event::decode(&bytes, 100), Some(event));
        }
        for event in [request(Op::Read, 99, 2), request(Op::Read, u64::MAX, 2), request(Op::Write, 5, 0)] {
            event.encode(&mut bytes);
            assert_eq!(Event::decode(&bytes, 100), None);
        }
        bytes[12] = 5;
        assert_eq!(Event::decode(&bytes, 100), None);
    }
}
