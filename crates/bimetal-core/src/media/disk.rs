//! Simulated disks, which compute when an access ends.
//!
//! A disk does one access at a time. Host accesses are served in order of arrival. Destages wait in a bounded queue of
//! the controller and run while the host leaves the disk idle, in the order of the drive's [`Scheduler`]. A host access
//! waits at most for the access in progress. A request that destages into a full queue waits until the disk has written
//! one more. A read of sectors that are still queued takes the same time as any other read.

use serde::{Deserialize, Serialize};

use crate::drive::{Drive, Mechanism, Model, Scheduler};
use crate::ledger::DiskCounts;
use crate::operation::{Cause, DiskOp};
use crate::request::SECTOR_BYTES;
use crate::units::Nanos;

/// A disk's part of the sector space, starting at the outer edge of the drive.
#[derive(Clone, Debug)]
pub struct Volume {
    /// The drive.
    pub drive: Drive,
    /// Number of sectors of the space that are on this disk.
    pub sectors: u64,
}

/// A timing model with its current state.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Arm {
    Constant { drive: Box<Drive>, next: u64 },
    Mechanical(Box<Mechanism>),
}

impl Arm {
    fn new(drive: &Drive) -> Self {
        match (drive.model, &drive.mechanics) {
            (Model::Mechanical, Some(mechanics)) => Self::Mechanical(Box::new(Mechanism::new(mechanics))),
            _ => Self::Constant { drive: Box::new(drive.clone()), next: u64::MAX },
        }
    }

    /// Time at which an access that begins at `start` ends.
    fn access(&mut self, op: DiskOp, start: u64, sector: u64, sectors: u32) -> u64 {
        match self {
            Self::Constant { drive, next } => {
                let position_us = match op {
                    _ if sector == *next => 0.0,
                    DiskOp::Read => drive.read_position_us,
                    DiskOp::Write => drive.write_position_us,
                };
                *next = sector + u64::from(sectors);
                let transfer = drive.transfer(u64::from(sectors) * SECTOR_BYTES);
                start + (position_us * 1000.0).round() as u64 + transfer.0
            }
            Self::Mechanical(mechanism) => mechanism.access(op, start, sector, u64::from(sectors)),
        }
    }

    fn reset(&mut self) {
        match self {
            Self::Constant { next, .. } => *next = u64::MAX,
            Self::Mechanical(mechanism) => mechanism.reset(),
        }
    }
}

/// A queued write of data from the controller.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Destage {
    /// Time at which its data are in the controller.
    pub ready: u64,
    /// First sector.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// Cause of the write.
    pub cause: Cause,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SimDisk {
    arm: Arm,
    /// Range of sectors of the space on it: the first, and one past the last.
    #[serde(with = "crate::save::fixed")]
    first: u64,
    #[serde(with = "crate::save::fixed")]
    end: u64,
    /// Time at which its last accepted access ends, and the sector after that access.
    free_at: u64,
    head: u64,
    #[serde(with = "crate::save::fixed")]
    scheduler: Scheduler,
    /// Queued writes: sorted by sector for the elevator, otherwise in order of arrival.
    queue: Vec<Destage>,
    /// Time at which all writes ever queued are ready.
    all_ready: u64,
    #[serde(with = "crate::save::fixed")]
    queue_max: usize,
    /// Approximate time of a write, for estimates.
    #[serde(with = "crate::save::fixed")]
    write_ns: u64,
}

/// Disks that together hold a sector space, each a consecutive part of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SimDisks {
    #[serde(with = "crate::save::sized")]
    disks: Vec<SimDisk>,
}

impl SimDisks {
    /// Idle disks with empty queues.
    pub fn new(volumes: &[Volume]) -> Self {
        let mut first = 0;
        let mut disk = |volume: &Volume| {
            let disk = SimDisk::new(&volume.drive, first, first + volume.sectors);
            first = disk.end;
            disk
        };
        Self { disks: volumes.iter().map(&mut disk).collect() }
    }

    /// Accesses consecutive sectors once they are `ready`. Returns the time at which the last disk has finished.
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
            if let Some((sector, sectors)) = disk.part(sector, sectors) {
                disk.work_off(ready, counts);
                completion = completion.max(disk.take(op, ready, sector, sectors, cause, counts));
            }
        }
        completion
    }

    /// Queues a write of consecutive sectors. Returns the time at which it entered the queue, or its end if the disk
    /// has no queue.
    pub fn destage(&mut self, now: u64, destage: Destage, counts: &mut [DiskCounts]) -> u64 {
        let mut queued = now;
        for (disk, counts) in self.disks.iter_mut().zip(counts) {
            if let Some((sector, sectors)) = disk.part(destage.sector, destage.sectors) {
                queued = queued.max(disk.enqueue(now, Destage { sector, sectors, ..destage }, counts));
            }
        }
        queued
    }

    /// Executes all queued writes.
    pub fn drain(&mut self, counts: &mut [DiskCounts]) {
        for (disk, counts) in self.disks.iter_mut().zip(counts) {
            disk.work_off(u64::MAX, counts);
        }
    }

    /// Number of single-page writes that fit into `idle_ns`; `None` without disks.
    pub fn background_writes(&self, idle_ns: u64) -> Option<u64> {
        if self.disks.is_empty() { None } else { Some(self.disks.iter().map(|disk| idle_ns / disk.write_ns).sum()) }
    }

    /// Approximate time from `at_ns` on that the disk with the largest backlog needs.
    pub fn backlog_ns(&self, at_ns: u64) -> u64 {
        let waiting = |disk: &SimDisk| disk.queue.len() as u64 * disk.write_ns;
        let left = |disk: &SimDisk| (disk.free_at + waiting(disk)).saturating_sub(at_ns);
        self.disks.iter().map(left).max().unwrap_or(0)
    }

    /// Checks that the queued writes are possible accesses and that no time is beyond `far_ns`.
    ///
    /// # Errors
    /// The first disk with an invalid state.
    pub fn check(&self, far_ns: u64) -> Result<(), String> {
        self.disks
            .iter()
            .enumerate()
            .try_for_each(|(number, disk)| disk.check(far_ns).map_err(|broken| format!("disk {number}: {broken}")))
    }

    /// Resets the clocks and clears the queues.
    pub fn reset(&mut self) {
        for disk in &mut self.disks {
            disk.arm.reset();
            disk.queue.clear();
            (disk.free_at, disk.head, disk.all_ready) = (0, 0, 0);
        }
    }
}

impl SimDisk {
    fn new(drive: &Drive, first: u64, end: u64) -> Self {
        Self {
            arm: Arm::new(drive),
            first,
            end,
            free_at: 0,
            head: 0,
            scheduler: drive.scheduler,
            queue: Vec::with_capacity(drive.queue as usize),
            all_ready: 0,
            queue_max: drive.queue as usize,
            write_ns: ((drive.write_position_us * 1000.0) as u64).max(1),
        }
    }

    fn check(&self, far_ns: u64) -> Result<(), String> {
        let ended = match &self.arm {
            Arm::Constant { .. } => 0,
            Arm::Mechanical(mechanism) => mechanism.check()?,
        };
        if [ended, self.free_at, self.all_ready].iter().any(|&moment| moment > far_ns) {
            return Err("a time is too far in the future".into());
        }
        let sectors = self.end - self.first;
        let is_on_it = |write: &Destage| {
            let end = write.sector.checked_add(u64::from(write.sectors));
            write.sectors > 0 && end.is_some_and(|end| end <= sectors) && write.ready <= far_ns
        };
        if self.queue.len() > self.queue_max || !self.queue.iter().all(is_on_it) {
            return Err("its queue has too many writes, or an impossible one".into());
        }
        Ok(())
    }

    /// The part of a run of sectors that is on this disk, relative to the disk's first sector.
    fn part(&self, sector: u64, sectors: u32) -> Option<(u64, u32)> {
        let (from, to) = (sector.max(self.first), (sector + u64::from(sectors)).min(self.end));
        (from < to).then(|| (from - self.first, (to - from) as u32))
    }

    /// Executes an access once it is ready and the disk is free. Returns its end.
    fn take(
        &mut self,
        op: DiskOp,
        ready: u64,
        sector: u64,
        sectors: u32,
        cause: Cause,
        counts: &mut DiskCounts,
    ) -> u64 {
        let start = self.free_at.max(ready);
        self.free_at = self.arm.access(op, start, sector, sectors);
        self.head = sector + u64::from(sectors);
        counts.add(op, cause, sectors, Nanos(self.free_at - start));
        self.free_at
    }

    /// Executes queued writes while one can begin before `until`.
    fn work_off(&mut self, until: u64, counts: &mut DiskCounts) {
        while self.free_at < until && !self.queue.is_empty() {
            let (index, start) = self.next_write();
            if start >= until {
                break;
            }
            self.take_queued(index, counts);
        }
    }

    fn take_queued(&mut self, index: usize, counts: &mut DiskCounts) -> u64 {
        let write = self.queue.remove(index);
        self.take_write(write, counts)
    }

    fn take_write(&mut self, write: Destage, counts: &mut DiskCounts) -> u64 {
        self.take(DiskOp::Write, write.ready, write.sector, write.sectors, write.cause, counts)
    }

    /// The queued write to be executed next, and its start. The queue must not be empty.
    fn next_write(&self) -> (usize, u64) {
        let first = match self.scheduler {
            Scheduler::Elevator => self.queue.partition_point(|write| write.sector < self.head),
            Scheduler::Fcfs => 0,
        };
        let first = if first == self.queue.len() { 0 } else { first };
        if self.all_ready <= self.free_at {
            return (first, self.free_at);
        }
        let first_ready = self.queue.iter().map(|write| write.ready).min().unwrap_or(0);
        let start = self.free_at.max(first_ready);
        let mut in_order = (first..self.queue.len()).chain(0..first);
        (in_order.find(|&index| self.queue[index].ready <= start).unwrap_or(first), start)
    }

    /// Puts a write into the queue. Returns the time at which the queue had room.
    fn enqueue(&mut self, now: u64, write: Destage, counts: &mut DiskCounts) -> u64 {
        self.work_off(now, counts);
        if self.queue_max == 0 {
            return self.take_write(write, counts);
        }
        let place = match self.scheduler {
            Scheduler::Elevator => self.queue.partition_point(|other| other.sector <= write.sector),
            Scheduler::Fcfs => self.queue.len(),
        };
        let room = if self.queue.len() < self.queue_max {
            self.queue.insert(place, Destage { ready: write.ready.max(now), ..write });
            now
        } else {
            let (index, _) = self.next_write();
            let room = self.take_write(self.queue[index], counts);
            self.replace(index, place, Destage { ready: write.ready.max(room), ..write });
            room
        };
        self.all_ready = self.all_ready.max(write.ready.max(room));
        room
    }

    /// Removes the queued write at `index` and inserts another one before that at `place`. Only the writes between the
    /// two are moved.
    fn replace(&mut self, index: usize, place: usize, write: Destage) {
        if index < place {
            self.queue.copy_within(index + 1..place, index);
            self.queue[place - 1] = write;
        } else {
            self.queue.copy_within(place..index, place + 1);
            self.queue[place] = write;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive;

    const PAGE: u32 = 8;
    /// Times of the constant model: positioning for a read or write, and the transfer of a page.
    const READ: u64 = 4_500_000;
    const WRITE: u64 = 4_900_000;
    const MOVE: u64 = 56_889;

    fn drive(scheduler: Scheduler, queue: u32) -> Drive {
        Drive { model: Model::Constant, scheduler, queue, ..drive::find("atlas-10k-iv").unwrap() }
    }

    struct Disks {
        disks: SimDisks,
        counts: Vec<DiskCounts>,
    }

    impl Disks {
        fn new(drives: &[Drive], sectors: u64) -> Self {
            let volumes: Vec<Volume> = drives.iter().map(|drive| Volume { drive: drive.clone(), sectors }).collect();
            Self { disks: SimDisks::new(&volumes), counts: vec![DiskCounts::default(); drives.len()] }
        }

        fn read(&mut self, at: u64, sector: u64) -> u64 {
            self.disks.access(DiskOp::Read, at, sector, PAGE, Cause::Host, &mut self.counts)
        }

        fn destage(&mut self, at: u64, sector: u64) -> u64 {
            let destage = Destage { ready: at, sector, sectors: PAGE, cause: Cause::MigrateDown };
            self.disks.destage(at, destage, &mut self.counts)
        }

        fn writes(&self, disk: usize) -> u64 {
            self.counts[disk].total(DiskOp::Write).count
        }
    }

    #[test]
    fn the_constant_model_adds_a_position_and_the_transfer() {
        let mut disks = Disks::new(&[drive(Scheduler::Elevator, 0)], 1 << 20);
        assert_eq!(disks.read(1000, 800), 1000 + READ + MOVE);
        assert_eq!(disks.read(1000, 808), 1000 + READ + 2 * MOVE, "continues, after the one before it");
        assert_eq!(disks.destage(0, 800), 1000 + READ + WRITE + 3 * MOVE);
        assert_eq!(disks.counts[0].busy(), Nanos(READ + WRITE + 3 * MOVE));
    }

    #[test]
    fn the_host_waits_for_the_write_in_progress_and_for_no_more() {
        let mut disks = Disks::new(&[drive(Scheduler::Elevator, 128)], 1 << 20);
        for page in 0..3 {
            assert_eq!(disks.destage(0, page * 1000), 0, "the host does not wait");
        }
        // The second write is in progress when the read arrives.
        let end = 2 * (WRITE + MOVE);
        assert_eq!(disks.read(end - 1000, 500_000), end + READ + MOVE);
        assert_eq!(disks.writes(0), 2);
        assert!(disks.disks.backlog_ns(end) >= READ + WRITE);
        disks.disks.drain(&mut disks.counts);
        assert_eq!(disks.writes(0), 3);
        assert_eq!(disks.counts[0].busy(), Nanos(READ + 3 * WRITE + 4 * MOVE));
    }

    #[test]
    fn a_full_queue_makes_the_host_wait_for_one_write() {
        let mut disks = Disks::new(&[drive(Scheduler::Fcfs, 2)], 1 << 20);
        assert_eq!((disks.destage(0, 0), disks.destage(0, 1000)), (0, 0));
        assert_eq!(disks.destage(0, 2000), WRITE + MOVE);
        assert_eq!(disks.destage(0, 3000), 2 * (WRITE + MOVE));
    }

    /// A write that enters a full queue takes the place of the one that leaves it, wherever the two lie in the order.
    #[test]
    fn a_full_queue_stays_in_order() {
        let (mut disks, page) = (Disks::new(&[drive(Scheduler::Elevator, 8)], 1 << 20), u64::from(PAGE));
        let mut expected = Vec::new();
        for step in 0..1000 {
            let sector = step * 617 % 1009 * page;
            disks.destage(0, sector);
            let disk = &disks.disks.disks[0];
            if expected.len() == 8 {
                expected.retain(|&queued| queued + page != disk.head);
            }
            expected.push(sector);
            expected.sort_unstable();
            assert_eq!(disk.queue.iter().map(|write| write.sector).collect::<Vec<_>>(), expected);
        }
        assert_eq!((expected.len(), disks.writes(0)), (8, 992));
    }

    #[test]
    fn the_elevator_goes_up_and_starts_again_at_the_bottom() {
        let order = |scheduler: Scheduler| {
            let mut disks = Disks::new(&[drive(scheduler, 16)], 1 << 20);
            let arm = disks.read(0, 50_000);
            for sector in [40_000, 90_000, 10_000, 60_000, 50_008] {
                disks.destage(arm - 1, sector);
            }
            let disk = &mut disks.disks.disks[0];
            let mut order = Vec::new();
            while !disk.queue.is_empty() {
                let (index, _) = disk.next_write();
                order.push(disk.queue[index].sector);
                disk.take_queued(index, &mut disks.counts[0]);
            }
            order
        };
        assert_eq!(order(Scheduler::Elevator), [50_008, 60_000, 90_000, 10_000, 40_000]);
        assert_eq!(order(Scheduler::Fcfs), [40_000, 90_000, 10_000, 60_000, 50_008]);
    }

    #[test]
    fn neighbours_that_come_in_any_order_are_written_as_one_run() {
        let mut disks = Disks::new(&[drive(Scheduler::Elevator, 128)], 1 << 20);
        for page in (0..64).rev() {
            // The read occupies the disk until all writes are ready.
            disks.read(0, 500_000);
            disks.destage(0, page * u64::from(PAGE));
        }
        let before = disks.counts[0].busy();
        disks.disks.drain(&mut disks.counts);
        assert_eq!(disks.counts[0].busy() - before, Nanos(WRITE + 64 * MOVE));
    }

    #[test]
    fn a_run_over_the_edge_of_a_disk_is_split() {
        let mut disks = Disks::new(&[drive(Scheduler::Elevator, 16), drive(Scheduler::Elevator, 16)], 1004);
        assert_eq!(disks.read(0, 1000), READ + MOVE / 2, "both at the same time");
        disks.destage(0, 1000);
        disks.disks.drain(&mut disks.counts);
        for counts in &disks.counts {
            for op in DiskOp::ALL {
                assert_eq!((counts.total(op).count, counts.total(op).sectors), (1, 4));
            }
        }
        assert_eq!(disks.disks.disks[1].head, 4, "sectors count from the disk's first one");
    }

    /// The reason for queueing destages: sorted, they take less time on a mechanical disk.
    #[test]
    fn sorted_writes_take_less_time() {
        let busy = |scheduler: Scheduler| {
            let drive = Drive { model: Model::Mechanical, ..drive(scheduler, 128) };
            let mut disks = Disks::new(&[drive], 200_000_000);
            let mut state = 3;
            for _ in 0..5_000 {
                disks.destage(0, crate::part::random::below(&mut state, 25_000_000 - 1) * 8);
            }
            disks.disks.drain(&mut disks.counts);
            disks.counts[0].busy().as_s()
        };
        let [fcfs, elevator] = [Scheduler::Fcfs, Scheduler::Elevator].map(busy);
        assert!(elevator < 0.75 * fcfs, "{elevator} {fcfs}");
    }
}
