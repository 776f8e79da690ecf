//! A host request: the common form of trace records, generated workloads and the requests of block-device clients.

/// Bytes of a host sector, the unit of every host address.
pub const SECTOR_BYTES: u64 = 512;

/// Bytes of the aligned pages in which the touched data of requests are counted, independent of the pages of a device.
pub const PAGE_BYTES: u64 = 4096;

/// Sectors of such a page.
pub(crate) const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Op {
    /// Read sectors; never-written ones read as zeros.
    Read = 0,
    /// Write sectors.
    Write = 1,
    /// Discard sectors: they read as zeros afterwards and occupy no space in the device.
    Trim = 2,
}

/// One host request, exact to the sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Request {
    /// Arrival since the start of the trace, in nanoseconds. Only the replay uses it, never a scheme.
    pub arrival_ns: u64,
    /// First 512-byte sector.
    pub sector: u64,
    /// Number of 512-byte sectors, at least 1.
    pub sectors: u32,
    /// Read, write or trim.
    pub op: Op,
    /// Placement handle of a write: the host expects that data with the same handle become invalid together. 0 if it
    /// gives none.
    pub handle: u8,
}

impl Request {
    /// One past the last sector.
    pub fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }

    /// First and one past the last aligned page of [`PAGE_BYTES`] that it touches.
    pub(crate) fn pages(&self) -> (u64, u64) {
        (self.sector / PAGE_SECTORS, self.end().div_ceil(PAGE_SECTORS))
    }
}

/// A digest of requests: FNV-1a over all fields. It is the same on every machine and with every compiler.
pub fn digest(requests: &[Request]) -> u64 {
    requests.iter().fold(0xcbf2_9ce4_8422_2325, |digest, request| {
        let kind = request.op as u64 | u64::from(request.handle) << 8;
        let fields = [request.arrival_ns, request.sector, u64::from(request.sectors), kind];
        fields.iter().fold(digest, |digest: u64, field| (digest ^ field).wrapping_mul(0x0100_0000_01b3).rotate_left(29))
    })
}

/// The requests that carry data: reads and writes.
pub fn data(requests: &[Request]) -> impl Iterator<Item = &Request> + Clone {
    requests.iter().filter(|request| request.op != Op::Trim)
}
