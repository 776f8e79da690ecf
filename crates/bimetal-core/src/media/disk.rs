//! Simulated disks: when an access has ended.

use crate::drive::Drive;
use crate::ledger::DiskCounts;
use crate::operation::{Cause, DiskOp};
use crate::request::SECTOR_BYTES;
use crate::units::Nanos;

/// A disk's part of the space of sectors.
#[derive(Clone, Debug)]
pub struct Volume {
    /// The drive.
    pub drive: Drive,
    /// Sectors of the space that are on it.
    pub sectors: u64,
}

#[derive(Clone, Debug)]
struct SimDisk {
    drive: Drive,
    /// First sector of the space on it, and one past the last.
    first: u64,
    end: u64,
    /// When its last access ends, and the sector after it.
    free_at: u64,
    next_sector: u64,
}

/// Disks that hold a space of sectors one after the other.
#[derive(Debug, Default)]
pub struct SimDisks {
    disks: Vec<SimDisk>,
}

impl SimDisks {
    /// Disks at rest.
    pub fn new(volumes: &[Volume]) -> Self {
        let mut first = 0;
        let mut disk = |volume: &Volume| {
            let end = first + volume.sectors;
            let disk = SimDisk { drive: volume.drive.clone(), first, end, free_at: 0, next_sector: u64::MAX };
            first = end;
            disk
        };
        Self { disks: volumes.iter().map(&mut disk).collect() }
    }

    /// Accesses sectors that follow each other once `ready`. Returns when all of them have been.
    pub fn access(
        &mut self,
        op: DiskOp,
        ready: u64,
        sector: u64,
        sectors: u32,
        cause: Cause,
        counts: &mut [DiskCounts],
    ) -> u64 {
        let mut completion = ready;
        for (disk, counts) in self.disks.iter_mut().zip(counts) {
            let (from, to) = (sector.max(disk.first), (sector + u64::from(sectors)).min(disk.end));
            if from < to {
                let (end, busy) = disk.access(op, ready, from, (to - from) as u32);
                counts.add(op, cause, (to - from) as u32, busy);
                completion = completion.max(end);
            }
        }
        completion
    }

    /// How many writes of single pages fit into so much time; none without disks.
    pub fn background_writes(&self, idle_ns: u64) -> Option<u64> {
        let of_disk = |disk: &SimDisk| idle_ns / (disk.drive.write_position_us * 1000.0).max(1.0) as u64;
        if self.disks.is_empty() { None } else { Some(self.disks.iter().map(of_disk).sum()) }
    }

    /// How long the disk that is furthest behind needs from then on.
    pub fn backlog_ns(&self, at_ns: u64) -> u64 {
        self.disks.iter().map(|disk| disk.free_at.saturating_sub(at_ns)).max().unwrap_or(0)
    }

    /// Clocks start again.
    pub fn reset(&mut self) {
        for disk in &mut self.disks {
            (disk.free_at, disk.next_sector) = (0, u64::MAX);
        }
    }
}

impl SimDisk {
    /// When an access has ended, and how long it took.
    fn access(&mut self, op: DiskOp, ready: u64, sector: u64, sectors: u32) -> (u64, Nanos) {
        let position_us = match op {
            _ if sector == self.next_sector => 0.0,
            DiskOp::Read => self.drive.read_position_us,
            DiskOp::Write => self.drive.write_position_us,
        };
        let transfer = self.drive.transfer(u64::from(sectors) * SECTOR_BYTES);
        let busy = Nanos((position_us * 1000.0).round() as u64) + transfer;
        self.free_at = self.free_at.max(ready) + busy.0;
        self.next_sector = sector + u64::from(sectors);
        (self.free_at, busy)
    }
}
