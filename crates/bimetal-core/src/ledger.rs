//! Counts below the seam: operations by region, cell mode and cause, erase counts, time.
//!
//! A plain struct of counters that media write and reports read. Nothing feeds back from here into a scheme.

use serde::{Deserialize, Serialize};

use crate::chip::{CellMode, Chip};
use crate::operation::{Cause, DiskOp, FlashOp, Stream};
use crate::request::SECTOR_BYTES;
use crate::save::Table;
use crate::units::Nanos;

/// Operations of one region in one cell mode, by operation and cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SavedCounts", into = "SavedCounts")]
pub struct Counts {
    /// Programs are counted here only if their stream is unknown: pages of a controller's map, and those of a saved
    /// state.
    counts: [[u64; Cause::ALL.len()]; FlashOp::ALL.len()],
    /// Copies within a die: each is one of the reads and one of the programs.
    copybacks: [u64; Cause::ALL.len()],
    /// Those of the reads whose page was sensed together with another one.
    sensed_together: [u64; Cause::ALL.len()],
    /// Programs of each stream. A program is counted once.
    by_stream: [[u64; Cause::ALL.len()]; Stream::MAX],
}

/// Counts in their saved form, with the programs of all streams together. A store that is opened again counts by stream
/// from then on.
#[derive(Serialize, Deserialize)]
struct SavedCounts {
    counts: [[u64; Cause::ALL.len()]; FlashOp::ALL.len()],
    copybacks: [u64; Cause::ALL.len()],
    sensed_together: [u64; Cause::ALL.len()],
}

impl From<Counts> for SavedCounts {
    fn from(counts: Counts) -> Self {
        let Counts { copybacks, sensed_together, .. } = counts;
        let counts = FlashOp::ALL.map(|op| Cause::ALL.map(|cause| counts.get(op, cause)));
        Self { counts, copybacks, sensed_together }
    }
}

impl From<SavedCounts> for Counts {
    fn from(saved: SavedCounts) -> Self {
        let SavedCounts { counts, copybacks, sensed_together } = saved;
        Self { counts, copybacks, sensed_together, ..Self::default() }
    }
}

impl Counts {
    /// Counts one operation.
    #[inline]
    pub fn add(&mut self, op: FlashOp, cause: Cause) {
        self.add_many(op, cause, 1);
    }

    /// Counts several operations.
    #[inline]
    pub fn add_many(&mut self, op: FlashOp, cause: Cause, count: u64) {
        self.counts[op as usize][cause as usize] += count;
    }

    /// Counts pages programmed in a stream.
    #[inline(always)]
    pub fn add_programs(&mut self, stream: Stream, cause: Cause, count: u64) {
        self.by_stream[stream.index()][cause as usize] += count;
    }

    /// Counts pages copied within their die: a read and a program each.
    #[inline]
    pub fn add_copybacks(&mut self, stream: Stream, cause: Cause, count: u64) {
        self.add_many(FlashOp::Read, cause, count);
        self.add_programs(stream, cause, count);
        self.copybacks[cause as usize] += count;
    }

    /// Counts a page read that was sensed together with the previous one.
    #[inline]
    pub fn add_sensed_together(&mut self, cause: Cause) {
        self.add(FlashOp::Read, cause);
        self.sensed_together[cause as usize] += 1;
    }

    /// Number of reads for `cause` whose page was sensed together with another one.
    pub fn sensed_together(&self, cause: Cause) -> u64 {
        self.sensed_together[cause as usize]
    }

    /// Number of copies within a die for `cause`.
    pub fn copybacks(&self, cause: Cause) -> u64 {
        self.copybacks[cause as usize]
    }

    /// Number of programs for `cause` in a stream.
    pub fn of_stream(&self, stream: Stream, cause: Cause) -> u64 {
        self.by_stream[stream.index()][cause as usize]
    }

    /// Number of operations `op` for `cause`.
    pub fn get(&self, op: FlashOp, cause: Cause) -> u64 {
        let count = self.counts[op as usize][cause as usize];
        match op {
            FlashOp::Program => count + self.by_stream.iter().map(|causes| causes[cause as usize]).sum::<u64>(),
            FlashOp::Read | FlashOp::Erase => count,
        }
    }

    /// Number of operations `op` for all causes.
    pub fn total(&self, op: FlashOp) -> u64 {
        Cause::ALL.iter().map(|&cause| self.get(op, cause)).sum()
    }
}

/// The duration of each operation of a region in one cell mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Array time of a page read, including the pages that are read together with it.
    pub read: Nanos,
    /// Array time of a page program; if pages are programmed together, the share of one page.
    pub program: Nanos,
    /// The same for data that move from a fast region or a cache in SLC mode to the slow cells.
    pub fold: Nanos,
    /// Array time of a block erase.
    pub erase: Nanos,
    /// Channel time of one page; 0 if the array times include it.
    pub transfer: Nanos,
    /// Time of a page's copy within its die, if the part supports it.
    pub copyback: Option<Nanos>,
    /// Pages that a die reads together.
    pub read_group: u32,
    /// Time for which a page read occupies a die, and the same for each further page that is sensed together with it.
    /// Planes that read independently share the time.
    pub read_share: [Nanos; 2],
    /// Pages that a die programs together.
    pub program_group: u32,
    /// Time to suspend a program or an erase for a read of the host, if the part supports it.
    pub suspend: Option<Nanos>,
}

impl Timing {
    /// The times of a chip in one mode.
    pub fn of(chip: &Chip, mode: CellMode) -> Self {
        let (read, program, erase) = chip.times(mode);
        let (read_group, program_group) = (chip.read_group(), chip.program_group(mode));
        let program = Nanos(program.0 / u64::from(program_group));
        let suspend = chip.suspend_us.map(|us| Nanos((us * 1000.0).round() as u64));
        let (transfer, copyback) = (chip.transfer(), chip.copyback(mode));
        let first = Nanos(read.0 / u64::from(chip.independent_reads));
        let further = Nanos((read - first).0 / u64::from(read_group).saturating_sub(1).max(1));
        let read_share = [first, further];
        Self { read, program, fold: program, erase, transfer, copyback, read_group, read_share, program_group, suspend }
    }

    /// The same, but folding reaches only the share `efficiency` of the cells' speed.
    #[must_use]
    pub fn folding_at(self, efficiency: f64) -> Self {
        Self { fold: Nanos((self.program.0 as f64 / efficiency).round() as u64), ..self }
    }

    /// Array time of a page program for a cause.
    #[inline]
    pub fn program_for(&self, cause: Cause) -> Nanos {
        if cause == Cause::MigrateDown { self.fold } else { self.program }
    }

    /// Whether its die reads or programs pages together.
    pub fn is_grouped(&self) -> bool {
        self.program_group > 1
    }

    /// Array and channel time of one operation that is not a copy within a die.
    pub fn of_op(&self, op: FlashOp) -> Nanos {
        match op {
            FlashOp::Read => self.read + self.transfer,
            FlashOp::Program => self.program + self.transfer,
            FlashOp::Erase => self.erase,
        }
    }
}

/// One line of the ledger: a region in one of its cell modes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Position of the region in the device.
    #[serde(with = "crate::save::fixed")]
    pub region: usize,
    /// Mode in which the operations took place.
    #[serde(with = "crate::save::fixed")]
    pub mode: CellMode,
    /// Durations of the operations.
    #[serde(with = "crate::save::fixed")]
    pub timing: Timing,
    /// Counts by operation and cause.
    pub counts: Counts,
}

impl Row {
    /// Time spent on one kind of operation for one cause. The time of a copy within a die is divided: the read has its
    /// array time, the program the rest.
    pub fn time(&self, op: FlashOp, cause: Cause) -> Nanos {
        let (timing, count, copybacks) = (&self.timing, self.counts.get(op, cause), self.counts.copybacks(cause));
        match op {
            FlashOp::Read => {
                let ([first, further], together) = (timing.read_share, self.counts.sensed_together(cause));
                let alone = count - copybacks - together;
                timing.transfer * (count - copybacks) + first * alone + further * together + timing.read * copybacks
            }
            FlashOp::Program => {
                let of_copyback = timing.copyback.map_or(Nanos(0), |copyback| copyback - timing.read);
                (timing.program_for(cause) + timing.transfer) * (count - copybacks) + of_copyback * copybacks
            }
            FlashOp::Erase => timing.erase * count,
        }
    }

    /// Part of the time in which folding waits for the firmware, so that no cell is programmed.
    pub fn firmware(&self) -> Nanos {
        let cause = Cause::MigrateDown;
        let folded = self.counts.get(FlashOp::Program, cause) - self.counts.copybacks(cause);
        (self.timing.fold - self.timing.program) * folded
    }

    /// Time for which the operations held a channel; copies within a die hold none.
    pub fn on_channel(&self) -> Nanos {
        let copybacks: u64 = Cause::ALL.iter().map(|&cause| self.counts.copybacks(cause)).sum();
        let pages = self.counts.total(FlashOp::Read) + self.counts.total(FlashOp::Program);
        self.timing.transfer * (pages - 2 * copybacks)
    }

    /// Time for which the operations held a die. A die with registers is free while pages are on the channel.
    pub fn on_die(&self) -> Nanos {
        if self.timing.is_grouped() { self.busy() - self.on_channel() } else { self.busy() }
    }

    /// Time of all operations.
    pub fn busy(&self) -> Nanos {
        FlashOp::ALL.iter().flat_map(|&op| Cause::ALL.iter().map(move |&cause| self.time(op, cause))).sum()
    }
}

/// Parts of a device that do one operation at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// The whole device, if it does one operation at a time.
    Device,
    /// The dies of a region.
    Dies(usize),
    /// The channels of a region.
    Channels(usize),
    /// A disk.
    Disk(usize),
    /// The controller, which starts one command at a time.
    Controller,
    /// A direction of the host link.
    Link,
}

/// Busy time of the servers of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Their kind.
    pub kind: ServerKind,
    /// Their number.
    pub count: u32,
    /// Sum of their busy times.
    pub busy: Nanos,
}

impl Server {
    /// Share of `time` in which they were busy, the mean of all; 0 if `time` is 0.
    pub fn utilisation(&self, time: Nanos) -> f64 {
        let most = time.0 as f64 * f64::from(self.count);
        if most > 0.0 { self.busy.0 as f64 / most } else { 0.0 }
    }
}

/// Accesses of one kind to a disk for one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// Number of accesses.
    pub count: u64,
    /// Sectors that were read or written.
    pub sectors: u64,
    /// Time of the accesses, positioning included.
    pub busy: Nanos,
}

impl Accesses {
    /// Bytes read or written.
    pub fn bytes(&self) -> u64 {
        self.sectors * SECTOR_BYTES
    }
}

/// Accesses to one disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskCounts {
    counts: [[Accesses; Cause::ALL.len()]; DiskOp::ALL.len()],
}

impl DiskCounts {
    /// Counts one access.
    #[inline]
    pub fn add(&mut self, op: DiskOp, cause: Cause, sectors: u32, busy: Nanos) {
        let counts = &mut self.counts[op as usize][cause as usize];
        counts.count += 1;
        counts.sectors += u64::from(sectors);
        counts.busy += busy;
    }

    /// Accesses of a kind for a cause.
    pub fn get(&self, op: DiskOp, cause: Cause) -> Accesses {
        self.counts[op as usize][cause as usize]
    }

    /// Accesses of a kind.
    pub fn total(&self, op: DiskOp) -> Accesses {
        self.counts[op as usize].iter().fold(Accesses::default(), |sum, one| Accesses {
            count: sum.count + one.count,
            sectors: sum.sectors + one.sectors,
            busy: sum.busy + one.busy,
        })
    }

    /// Time of all accesses.
    pub fn busy(&self) -> Nanos {
        DiskOp::ALL.iter().map(|&op| self.total(op).busy).sum()
    }
}

/// Failures so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FaultCounts {
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Blocks replaced, factory-bad ones included.
    pub blocks_replaced: u64,
    /// Failures without a replacement block: a real device would be read-only from the first on.
    pub failures_unreplaced: u64,
}

/// Counts of a whole device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// Operations: [`CellMode::Native`] of every region, then [`CellMode::Slc`] of those whose chip has it.
    #[serde(with = "crate::save::sized")]
    pub rows: Vec<Row>,
    /// Erase count of each block, by region, since the device was made.
    #[serde(with = "crate::save::tables")]
    pub erases: Vec<Table<u32>>,
    /// Failures and replacements, by region.
    #[serde(with = "crate::save::sized")]
    pub faults: Vec<FaultCounts>,
    /// Accesses, by disk.
    #[serde(with = "crate::save::sized")]
    pub disks: Vec<DiskCounts>,
}

impl Ledger {
    /// All counts of an operation for a cause over regions and modes.
    pub fn total(&self, op: FlashOp, cause: Cause) -> u64 {
        self.rows.iter().map(|row| row.counts.get(op, cause)).sum()
    }

    /// Flash page reads and programs of every cause.
    pub fn page_ops(&self) -> u64 {
        self.rows.iter().map(|row| row.counts.total(FlashOp::Read) + row.counts.total(FlashOp::Program)).sum()
    }

    /// Time of all operations.
    pub fn busy(&self) -> Nanos {
        let flash = self.rows.iter().map(Row::busy);
        flash.chain(self.disks.iter().map(DiskCounts::busy)).sum()
    }

    /// Checks that no sum of counts, bytes or times overflows, now or later, and that copies within dies are counted as
    /// reads and programs.
    ///
    /// # Errors
    /// The impossible count.
    pub fn check(&self) -> Result<(), String> {
        let (mut sum, mut time) = (0_u128, 0_u128);
        for Row { region, timing, counts, .. } in &self.rows {
            for cause in Cause::ALL {
                if counts.get(FlashOp::Read, cause) < counts.sensed_together(cause) {
                    return Err(format!("region {region} has sensed more pages together than it has read"));
                }
                if FlashOp::ALL[..2].iter().any(|&op| counts.get(op, cause) < counts.copybacks(cause)) {
                    return Err(format!(
                        "region {region} has copied more pages within dies than it has read or programmed"
                    ));
                }
                for op in FlashOp::ALL {
                    let count = u128::from(counts.get(op, cause));
                    sum += count;
                    let longest =
                        timing.of_op(op).max(timing.fold + timing.transfer).max(timing.copyback.unwrap_or_default());
                    time += count * u128::from(longest.0);
                }
            }
        }
        for accesses in self.disks.iter().flat_map(|disk| disk.counts.as_flattened()) {
            sum += u128::from(accesses.count) + u128::from(accesses.sectors) * u128::from(SECTOR_BYTES);
            time += u128::from(accesses.busy.0);
        }
        for faults in &self.faults {
            let FaultCounts { program_failures, erase_failures, blocks_replaced, failures_unreplaced } = *faults;
            let counts = [program_failures, erase_failures, blocks_replaced, failures_unreplaced];
            sum += counts.into_iter().map(u128::from).sum::<u128>();
        }
        // Half of the range: the other half is for later counts.
        let most = u128::from(u64::MAX / 2);
        if sum > most || time > most { Err("the counts are too large".into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_all_streams_are_saved_together() {
        let mut counts = Counts::default();
        counts.add(FlashOp::Program, Cause::Meta);
        counts.add_programs(Stream::ONLY, Cause::Host, 5);
        counts.add_programs(Stream::new(7), Cause::Host, 3);
        counts.add_copybacks(Stream::new(7), Cause::Gc, 2);
        let figures = |counts: &Counts| {
            let programs = [Cause::Host, Cause::Gc, Cause::Meta].map(|cause| counts.get(FlashOp::Program, cause));
            (
                programs,
                counts.total(FlashOp::Program),
                counts.copybacks(Cause::Gc),
                counts.get(FlashOp::Read, Cause::Gc),
            )
        };
        assert_eq!(figures(&counts), ([8, 2, 1], 11, 2, 2));
        let saved = postcard::to_allocvec(&counts).unwrap();
        let mut restored: Counts = postcard::from_bytes(&saved).unwrap();
        assert_eq!(figures(&restored), figures(&counts));
        restored.add_programs(Stream::new(7), Cause::Host, 1);
        assert_eq!((restored.of_stream(Stream::new(7), Cause::Host), figures(&restored).0[0]), (1, 9));
    }

    #[test]
    fn counts_that_cannot_be_are_known() {
        let timing = Timing { read: Nanos(25_000), copyback: Some(Nanos(225_000)), ..Timing::default() };
        let row = Row { region: 0, mode: CellMode::Native, timing, counts: Counts::default() };
        let ledger = Ledger { rows: vec![row], disks: vec![DiskCounts::default()], ..Ledger::default() };
        let changed = |change: fn(&mut Ledger)| {
            let mut ledger = ledger.clone();
            change(&mut ledger);
            ledger.check().is_ok()
        };
        assert!(changed(|ledger| ledger.rows[0].counts.add_copybacks(Stream::ONLY, Cause::Gc, 7)));
        assert!(!changed(|ledger| ledger.rows[0].counts.copybacks[0] = 1), "no reads that they could be");
        assert!(!changed(|ledger| ledger.rows[0].counts.add_many(FlashOp::Read, Cause::Gc, u64::MAX / 25_000)));
        assert!(!changed(|ledger| ledger.disks[0].add(DiskOp::Read, Cause::Host, 1, Nanos(u64::MAX))));
    }
}
