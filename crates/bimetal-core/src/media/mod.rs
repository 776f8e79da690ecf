//! The one seam between a scheme and the medium that it manages.
//!
//! A scheme calls only the verbs of [`Media`]. It moves data without seeing them: `read` returns an opaque
//! [`Media::Data`], which `program` and `deliver` accept. In simulation this is only the time at which the page is
//! ready ([`SimMedia`]); on a real store it is a page buffer. Each flash operation names its [`Cause`], and each
//! program also its [`Stream`]. Accounting happens below the seam, once.
//!
//! The verbs cannot fail. Bad blocks and failed programs are handled below the seam, and their cost is charged there.

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

/// A run of sectors that is copied into a page being programmed.
#[derive(Clone, Copy, Debug)]
pub struct Part<D> {
    /// Source of the sectors: a page that was read, or the host's payload.
    pub data: D,
    /// First sector within the source page or payload.
    pub from: u32,
    /// First sector within the page being programmed.
    pub to: u32,
    /// Number of sectors.
    pub sectors: u32,
}

/// The verbs that a scheme calls.
///
/// The verbs for a home disk are called only on a device that has one. The disks form one sector space, identical to
/// that of the host.
pub trait Media {
    /// Data read into the controller: a flash page, or sectors of a disk.
    type Data: Copy;

    /// The payload of the host write being served.
    fn host(&self) -> Self::Data;

    /// Reads a programmed page.
    fn read(&mut self, region: RegionId, page: Ppa, cause: Cause) -> Self::Data;

    /// Programs the next free page of an erased block from `parts`. Sectors that no part covers stay undefined. The
    /// block belongs to `stream`, which is used only for counting.
    fn program(&mut self, region: RegionId, page: Ppa, parts: &[Part<Self::Data>], stream: Stream, cause: Cause);

    /// Reads a whole page and programs it elsewhere in the same region; the program waits for the read.
    fn copy(&mut self, region: RegionId, from: Ppa, to: Ppa, stream: Stream, cause: Cause);

    /// Copies pages of a region to consecutive pages of one of its blocks, beginning with `to`. Collecting a block uses
    /// this.
    fn copy_run(&mut self, region: RegionId, from: &[Ppa], to: Ppa, stream: Stream, cause: Cause) {
        for (&from, to) in from.iter().zip(to.0..) {
            self.copy(region, from, Ppa(to), stream, cause);
        }
    }

    /// Erases a block; its pages are programmed in `mode` until the next erase.
    fn erase(&mut self, region: RegionId, block: BlockId, mode: CellMode, cause: Cause);

    /// Delivers `sectors` sectors of a read page, from sector `from` of the page, to the host, starting at sector `at`
    /// of the request being served.
    fn deliver(&mut self, data: Self::Data, from: u32, at: u32, sectors: u32);

    /// Delivers zeros to the host, for sectors that were never written or have been trimmed.
    fn deliver_zeros(&mut self, at: u32, sectors: u32);

    /// Reads consecutive sectors of the home disk into the controller as one access. The first becomes sector 0 of the
    /// returned data.
    fn fetch(&mut self, sector: u64, sectors: u32, cause: Cause) -> Self::Data;

    /// Writes sectors of read data, starting at sector `from` of the data, to the home disk. The host does not wait for
    /// it while the disk's queue has room.
    fn destage(&mut self, data: Self::Data, from: u32, sector: u64, sectors: u32, cause: Cause);

    /// Reads sectors of the home disk for the host, bypassing the flash, starting at sector `at` of the request being
    /// served.
    fn disk_read(&mut self, sector: u64, at: u32, sectors: u32) {
        let data = self.fetch(sector, sectors, Cause::Host);
        self.deliver(data, 0, at, sectors);
    }

    /// Writes sectors of the request being served, starting at its sector `from`, to the home disk, bypassing the
    /// flash.
    fn disk_write(&mut self, sector: u64, from: u32, sectors: u32);
}

/// A medium for replays: it computes when a request is served.
pub trait Simulation: Media {
    /// Attributes the following operations to this request, issued at `issue_ns`.
    fn begin(&mut self, request: &Request, issue_ns: u64);

    /// Time at which the last foreground operation since [`Simulation::begin`] ends.
    fn end(&mut self) -> u64;

    /// The following operations are background work: it runs in the idle time of its dies and yields to host work.
    fn begin_background(&mut self);

    /// Reads or programs a page of the mapping table for the controller, which spreads the pages of the table over the
    /// dies of the slow region. Returns the time at which the operation ends.
    fn access_map(&mut self, op: FlashOp, map_page: u32, at_ns: u64) -> u64;

    /// Number of page copies that fit into `idle_ns`; if there is a home disk, number of destages.
    fn background_pages(&self, idle_ns: u64) -> u64;

    /// Time from `at_ns` on until the die or disk with the largest background backlog has finished, if the host stays
    /// idle.
    fn backlog_ns(&self, at_ns: u64) -> u64;

    /// Executes all queued operations, so that they are counted.
    fn finish(&mut self);

    /// Activity of the dies, channels and disks so far.
    fn servers(&self) -> Vec<Server>;

    /// The counts so far.
    fn ledger(&self) -> &Ledger;

    /// Resets counts and clocks and keeps the state of all blocks: used after preconditioning, before measuring.
    fn reset(&mut self);

    /// Resets counts and keeps clocks, so that figures cover only the operations that follow.
    fn reset_counts(&mut self);
}
