//! The one seam between a scheme and what it manages.
//!
//! A scheme calls the verbs of [`Media`] and nothing else. It moves data without seeing them: `read` hands out an
//! opaque [`Media::Data`] which `program` and `deliver` take back. In simulation that is only the moment at which the
//! page is ready ([`SimMedia`]); on a real store it is a page buffer. Each flash operation names its [`Cause`], each
//! program its [`Stream`] as well, and accounting happens below the seam, once.
//!
//! The verbs cannot fail. Bad blocks and failed programs are handled below the seam and their cost is charged there.

mod checked;
mod clocks;
mod disk;
mod faults;
mod page_merge;
mod sim;

pub use crate::chip::CellMode;
pub use crate::operation::{Cause, DiskOp, FlashOp, Stream};
pub use checked::Checked;
pub use disk::Volume;
pub use faults::Faults;
pub use page_merge::PageMerge;
pub use sim::{SimMedia, SimRegion};

use crate::ledger::{Ledger, Server};
use crate::request::Request;
use crate::units::{BlockId, Ppa, RegionId};

/// A run of sectors that goes into a page being programmed.
#[derive(Clone, Copy, Debug)]
pub struct Part<D> {
    /// Where the sectors come from: a page that was read, or the host's payload.
    pub data: D,
    /// First sector within that page or payload.
    pub from: u32,
    /// First sector within the page being programmed.
    pub to: u32,
    /// Number of sectors.
    pub sectors: u32,
}

/// The verbs of a scheme.
///
/// Those for a home disk are called only on a device that has one. Its disks are one space of sectors, that of the host.
pub trait Media {
    /// What was read, on its way through the controller: a page of flash, or sectors of a disk.
    type Data: Copy;

    /// The payload of the host write being served.
    fn host(&self) -> Self::Data;

    /// Reads a programmed page.
    fn read(&mut self, region: RegionId, page: Ppa, cause: Cause) -> Self::Data;

    /// Programs the next free page of an erased block from `parts`; sectors no part covers stay undefined. The block is
    /// one of `stream`'s, which only counting looks at.
    fn program(&mut self, region: RegionId, page: Ppa, parts: &[Part<Self::Data>], stream: Stream, cause: Cause);

    /// Reads a whole page and programs it elsewhere in the same region; the program waits for the read.
    fn copy(&mut self, region: RegionId, from: Ppa, to: Ppa, stream: Stream, cause: Cause);

    /// Copies pages of a region to consecutive pages of one of its blocks, beginning with `to`: what collecting a block
    /// comes down to.
    fn copy_run(&mut self, region: RegionId, from: &[Ppa], to: Ppa, stream: Stream, cause: Cause) {
        for (&from, to) in from.iter().zip(to.0..) {
            self.copy(region, from, Ppa(to), stream, cause);
        }
    }

    /// Erases a block; its pages are programmed in `mode` until the next erase.
    fn erase(&mut self, region: RegionId, block: BlockId, mode: CellMode, cause: Cause);

    /// Hands `sectors` sectors of a read page to the host, as the sectors from `at` on of the request being served.
    fn deliver(&mut self, data: Self::Data, from: u32, at: u32, sectors: u32);

    /// Hands zeros to the host: sectors that were never written or have been trimmed.
    fn deliver_zeros(&mut self, at: u32, sectors: u32);

    /// Reads sectors of the home disk that follow each other into the controller, as one access: the first of them is
    /// sector 0 of what it returns.
    fn fetch(&mut self, sector: u64, sectors: u32, cause: Cause) -> Self::Data;

    /// Writes sectors of what was read, from its sector `from` on, to the home disk. The host does not wait for it as long
    /// as the disk's queue has room.
    fn destage(&mut self, data: Self::Data, from: u32, sector: u64, sectors: u32, cause: Cause);

    /// Reads sectors of the home disk for the host, past the flash, as the sectors from `at` on of the request being
    /// served.
    fn disk_read(&mut self, sector: u64, at: u32, sectors: u32) {
        let data = self.fetch(sector, sectors, Cause::Host);
        self.deliver(data, 0, at, sectors);
    }

    /// Writes sectors of the request being served, from its sector `from` on, to the home disk, past the flash.
    fn disk_write(&mut self, sector: u64, from: u32, sectors: u32);
}

/// A medium on which a replay can run: it knows when a request is served.
pub trait Simulation: Media {
    /// Serves what follows as this request, issued at `issue_ns`.
    fn begin(&mut self, request: &Request, issue_ns: u64);

    /// The moment at which every foreground operation since [`Simulation::begin`] has ended.
    fn end(&mut self) -> u64;

    /// What follows is background work: it takes place in the idle time of its dies and yields to host work.
    fn begin_background(&mut self);

    /// Reads or programs a page of the map for the controller, which keeps the map's pages spread over the dies of the slow
    /// region. Returns when that has ended.
    fn access_map(&mut self, op: FlashOp, map_page: u32, at_ns: u64) -> u64;

    /// How many page copies, or destages to the home disk if there is one, fit into so much idle time.
    fn background_pages(&self, idle_ns: u64) -> u64;

    /// How long the die or disk that is furthest behind with its background work needs from `at_ns` on, if the host stays away.
    fn backlog_ns(&self, at_ns: u64) -> u64;

    /// Does what still waits in queues, so that it is counted.
    fn finish(&mut self);

    /// What its dies, channels and disks did so far.
    fn servers(&self) -> Vec<Server>;

    /// What was counted so far.
    fn ledger(&self) -> &Ledger;

    /// Forgets counts and clocks, and keeps the state of all blocks: the device is preconditioned, measuring starts.
    fn reset(&mut self);

    /// Forgets counts and keeps clocks: figures are restricted to what follows.
    fn reset_counts(&mut self);
}
