//! Simulated flash: busy-until clocks for dies and channels, no event heap.
//!
//! An operation occupies its die for its array time and its channel for its transfer time. It starts when the die, the
//! channel and the data it depends on are ready: a copy's program cannot begin before its read has ended. A request is
//! served when every foreground operation that it triggered has ended, so with one die its response is the plain sum of
//! operation times, which is how Chang (2010) and `ComboFTL` (2010) count.
//!
//! If the chip supports copyback, a copy within a die occupies the die for the chip's copyback time and does not use
//! the channel. It is still counted as one read and one program.
//!
//! Background work is a backlog of each die, which is worked off while the die is idle. A foreground operation that
//! arrives earlier waits at most for the background operation in progress.

mod grouped;
mod saved;
mod simulation;

use serde::{Deserialize, Serialize};

use super::clocks::Clocks;
use super::disk::{Destage, SimDisks, Volume};
use super::{Cause, CellMode, DiskOp, Faults, FlashOp, Media, Part, Stream};
use crate::chip::Chip;
use crate::ledger::{Counts, DiskCounts, FaultCounts, Ledger, Row, Timing};
use crate::save::Table;
use crate::units::{BlockId, Geometry, Nanos, Ppa, RegionId};

/// Components of a simulated region.
#[derive(Clone, Debug)]
pub struct SimRegion {
    /// The chip: times, modes.
    pub chip: Chip,
    /// Blocks, pages, dies.
    pub geometry: Geometry,
    /// Channels that the dies are spread over: die `d` is on channel `d % channels`.
    pub channels: u32,
    /// Injected failures; [`Faults::default`] injects none.
    pub faults: Faults,
}

/// The die used for all operations on a device that does one operation at a time.
const SERIAL_DIE: u16 = 0;

/// A physical block below the seam.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct SimBlock {
    #[serde(with = "crate::save::fixed")]
    die: u16,
    mode: u8,
}
crate::save::words!(SimBlock { die: u16, mode: u8 });

#[derive(Debug, Serialize, Deserialize)]
struct Flash {
    #[serde(with = "crate::save::fixed")]
    geometry: Geometry,
    #[serde(with = "crate::save::fixed")]
    channels: u32,
    #[serde(with = "crate::save::fixed")]
    timing: [Timing; 2],
    /// Ledger row of each mode.
    #[serde(with = "crate::save::fixed")]
    rows: [usize; 2],
    #[serde(with = "crate::save::sized_list")]
    blocks: Table<SimBlock>,
    /// Number of blocks in [`CellMode::Slc`].
    slc_blocks: u32,
    #[serde(with = "crate::save::fixed")]
    on_one_die: bool,
    #[serde(with = "crate::save::fixed")]
    has_copyback: bool,
    /// Whether the region's dies read or program pages together.
    #[serde(with = "crate::save::fixed")]
    is_grouped: bool,
    faults: Option<Box<super::faults::Injector>>,
}

/// A simulated device, which computes times and stores no data.
#[derive(Debug, Serialize, Deserialize)]
pub struct SimMedia {
    #[serde(with = "crate::save::sized")]
    regions: Vec<Flash>,
    clocks: Clocks,
    disks: SimDisks,
    ledger: Ledger,
    now: u64,
    completion: u64,
    background: bool,
    /// Whether any dies read or program pages together, or any region can fail. It follows from the regions.
    #[serde(skip, default = "not_known")]
    has_special: bool,
    /// Whether reads and programs need the special paths: background work, or `has_special`.
    #[serde(skip, default = "not_known")]
    is_special: bool,
    #[serde(with = "crate::save::fixed")]
    serial: bool,
}

/// Initial value for a device that was just deserialised: `true` is correct for every device and only costs time.
fn not_known() -> bool {
    true
}

/// Counts a page read. Returns its block, and the timing of the block's mode.
#[inline(always)]
fn counted<'a>(flash: &'a Flash, ledger: &mut Ledger, page: Ppa, cause: Cause) -> (SimBlock, &'a Timing) {
    let block = flash.blocks[flash.geometry.block_of(page).index()];
    ledger.rows[flash.rows[usize::from(block.mode)]].counts.add(FlashOp::Read, cause);
    (block, &flash.timing[usize::from(block.mode)])
}

/// Counts a page program. Returns its die, and the timing of its block's mode.
#[inline(always)]
fn programmed<'a>(flash: &'a Flash, ledger: &mut Ledger, page: Ppa, stream: Stream, cause: Cause) -> (u16, &'a Timing) {
    let SimBlock { die, mode } = flash.blocks[flash.geometry.block_of(page).index()];
    ledger.rows[flash.rows[usize::from(mode)]].counts.add_programs(stream, cause, 1);
    (die, &flash.timing[usize::from(mode)])
}

impl SimMedia {
    /// A device with the given regions, erased.
    pub fn new(regions: &[SimRegion], seed: u64) -> Self {
        let mut media = Self {
            regions: Vec::new(),
            clocks: Clocks::default(),
            disks: SimDisks::default(),
            ledger: Ledger::default(),
            now: 0,
            completion: 0,
            background: false,
            has_special: false,
            is_special: false,
            serial: false,
        };
        for (index, region) in regions.iter().enumerate() {
            media.add(index, region);
        }
        for (index, region) in regions.iter().enumerate() {
            if region.chip.slc_mode.is_some() {
                media.regions[index].rows[CellMode::Slc as usize] = media.add_row(index, &region.chip, CellMode::Slc);
            }
            media.ledger.erases.push(vec![0; region.geometry.blocks as usize].into());
            let injector = super::faults::Injector::new(region.faults, region.geometry.blocks, seed ^ index as u64);
            media.ledger.faults.push(injector.as_ref().map_or(FaultCounts::default(), |injector| injector.counts));
            media.regions[index].faults = injector.map(Box::new);
        }
        media.note_special();
        media
    }

    fn add(&mut self, index: usize, region: &SimRegion) {
        let geometry = region.geometry;
        let first_die = self.clocks.add(geometry.dies, region.channels);
        let blocks = (0..geometry.blocks)
            .map(|block| SimBlock { die: (first_die + geometry.die_of(BlockId(block))) as u16, mode: 0 })
            .collect();
        let native = self.add_row(index, &region.chip, CellMode::Native);
        let is_grouped = Timing::of(&region.chip, CellMode::Native).is_grouped();
        self.regions.push(Flash {
            geometry,
            channels: region.channels,
            timing: [CellMode::Native, CellMode::Slc].map(|mode| Timing::of(&region.chip, mode)),
            rows: [native; 2],
            blocks,
            slc_blocks: 0,
            on_one_die: geometry.dies == 1 && !is_grouped,
            has_copyback: region.chip.copyback(CellMode::Native).is_some() && !is_grouped,
            is_grouped,
            faults: None,
        });
    }

    /// Recomputes `is_special` from the regions and the current work.
    fn note_special(&mut self) {
        self.has_special = self.regions.iter().any(|flash| flash.is_grouped || flash.faults.is_some());
        self.is_special = self.background || self.has_special;
    }

    fn add_row(&mut self, region: usize, chip: &Chip, mode: CellMode) -> usize {
        self.ledger.rows.push(Row { region, mode, timing: Timing::of(chip, mode), counts: Counts::default() });
        self.ledger.rows.len() - 1
    }

    /// Adds disks below the flash. They form one sector space, of which each volume is a consecutive part.
    #[must_use]
    pub fn with_disks(mut self, volumes: &[Volume]) -> Self {
        self.ledger.disks = volumes.iter().map(|_| DiskCounts::default()).collect();
        self.disks = SimDisks::new(volumes);
        self
    }

    /// Adds a controller that folds data into the slow cells at `efficiency`, a share above 0 and up to 1 of the cells'
    /// own speed.
    #[must_use]
    pub fn folding_at(mut self, efficiency: f64) -> Self {
        let rows = self.ledger.rows.iter_mut().map(|row| &mut row.timing);
        for timing in rows.chain(self.regions.iter_mut().flat_map(|flash| &mut flash.timing)) {
            *timing = timing.folding_at(efficiency);
        }
        self
    }

    /// Makes the device do one operation at a time, regardless of its dies and disks, as papers do that add up
    /// operation times.
    #[must_use]
    pub fn serial(mut self) -> Self {
        self.serial = true;
        for flash in &mut self.regions {
            flash.on_one_die = !flash.is_grouped;
            for block in flash.blocks.as_mut_slice() {
                block.die = SERIAL_DIE;
            }
        }
        self
    }

    #[inline(always)]
    fn read_now(&mut self, region: RegionId, page: Ppa, cause: Cause) -> u64 {
        let (SimBlock { die, mode }, timing) = counted(&self.regions[region.index()], &mut self.ledger, page, cause);
        let end = self.clocks.read((die, mode), self.now, timing);
        self.completion = self.completion.max(end);
        end
    }

    /// A page read in the background or by current dies. A separate function, to keep the other paths short.
    #[cold]
    #[inline(never)]
    fn read_special(&mut self, region: RegionId, page: Ppa, cause: Cause) -> u64 {
        let flash = &self.regions[region.index()];
        if flash.is_grouped {
            return self.read_grouped(region, page, cause);
        }
        if !self.background {
            return self.read_now(region, page, cause);
        }
        let (SimBlock { die, .. }, timing) = counted(flash, &mut self.ledger, page, cause);
        self.clocks.defer(die, timing.of_op(FlashOp::Read));
        self.now
    }

    #[inline(always)]
    fn program_now(&mut self, region: RegionId, page: Ppa, ready: u64, stream: Stream, cause: Cause) {
        let (die, timing) = programmed(&self.regions[region.index()], &mut self.ledger, page, stream, cause);
        let times = (timing.transfer, timing.program_for(cause));
        let end = self.clocks.program(die, (self.now, ready.max(self.now)), times);
        self.completion = self.completion.max(end);
    }

    /// A page program in the background, by current dies, or in a region that can fail.
    #[cold]
    #[inline(never)]
    fn program_special(&mut self, region: RegionId, page: Ppa, ready: u64, stream: Stream, cause: Cause) {
        self.program_page(region, page, ready, stream, cause);
        if self.regions[region.index()].faults.is_some() {
            self.try_program(region, page, ready, stream);
        }
    }

    /// A page program for any region, foreground or background.
    #[inline]
    fn program_page(&mut self, region: RegionId, page: Ppa, ready: u64, stream: Stream, cause: Cause) {
        let flash = &self.regions[region.index()];
        if flash.is_grouped {
            return self.program_grouped(region, page, ready, stream, cause);
        }
        if !self.background {
            return self.program_now(region, page, ready, stream, cause);
        }
        let (die, timing) = programmed(flash, &mut self.ledger, page, stream, cause);
        self.clocks.defer(die, timing.transfer + timing.program_for(cause));
    }

    /// Duration of a copy within a die; `None` if the pages are on different dies or in a mode without copyback.
    #[inline]
    fn copyback(&self, region: RegionId, from: BlockId, to: BlockId) -> Option<Nanos> {
        let flash = &self.regions[region.index()];
        // A serial device uses one die only for the clock; its blocks still lie on different dies.
        let same_die = flash.geometry.die_of(from) == flash.geometry.die_of(to);
        let mode = flash.blocks[to.index()].mode;
        if same_die && flash.blocks[from.index()].mode == mode {
            flash.timing[usize::from(mode)].copyback
        } else {
            None
        }
    }

    /// Copies `pages` pages within the die of a block.
    fn copy_back(&mut self, region: RegionId, to: BlockId, pages: u64, copyback: Nanos, by: (Stream, Cause)) {
        let flash = &self.regions[region.index()];
        let SimBlock { die, mode } = flash.blocks[to.index()];
        self.ledger.rows[flash.rows[usize::from(mode)]].counts.add_copybacks(by.0, by.1, pages);
        if self.background {
            (0..pages).for_each(|_| self.clocks.defer(die, copyback));
            return;
        }
        let end = self.clocks.work(die, self.now, copyback * pages);
        self.completion = self.completion.max(end);
    }

    /// Copies pages to a block one after the other, all on one die.
    #[inline]
    fn copy_run_on_one_die(&mut self, region: RegionId, from: &[Ppa], to: BlockId, stream: Stream, cause: Cause) {
        let flash = &self.regions[region.index()];
        let pages = from.len() as u64;
        let mode_of = |block: BlockId| u64::from(flash.blocks[block.index()].mode);
        let slc_reads = if flash.slc_blocks == 0 {
            0
        } else if let Some(source) = common_block(&flash.geometry, from) {
            mode_of(source) * pages
        } else {
            from.iter().map(|&page| mode_of(flash.geometry.block_of(page))).sum()
        };
        let mut time = Nanos(0);
        for (mode, reads) in [pages - slc_reads, slc_reads].into_iter().enumerate() {
            self.ledger.rows[flash.rows[mode]].counts.add_many(FlashOp::Read, cause, reads);
            time += flash.timing[mode].of_op(FlashOp::Read) * reads;
        }
        let SimBlock { die, mode } = flash.blocks[to.index()];
        let timing = &flash.timing[usize::from(mode)];
        self.ledger.rows[flash.rows[usize::from(mode)]].counts.add_programs(stream, cause, pages);
        let program = timing.program_for(cause);
        time += (timing.transfer + program) * pages;
        let end = self.clocks.copy_run(die, self.now, time, program);
        self.completion = self.completion.max(end);
    }

    fn erase_block(&mut self, region: RegionId, block: BlockId, cause: Cause) {
        let flash = &self.regions[region.index()];
        let SimBlock { die, mode } = flash.blocks[block.index()];
        let timing = &flash.timing[usize::from(mode)];
        self.ledger.rows[flash.rows[usize::from(mode)]].counts.add(FlashOp::Erase, cause);
        if self.background {
            self.clocks.defer(die, timing.erase);
            return;
        }
        let end = self.clocks.work(die, self.now, timing.erase);
        self.completion = self.completion.max(end);
    }

    /// Draws whether the program of a page fails, in a region that can fail.
    #[cold]
    fn try_program(&mut self, region: RegionId, page: Ppa, ready: u64, stream: Stream) {
        let flash = &mut self.regions[region.index()];
        let (block, index) = (flash.geometry.block_of(page), flash.geometry.page_of(page));
        let replaced = flash.faults.as_mut().is_some_and(|faults| faults.program_fails());
        self.note_faults(region);
        if replaced {
            self.replace_after_program(region, block, index, ready, stream);
        }
    }

    /// After a failed program, the block's pages so far and the new page go to a replacement block (data sheets: "block
    /// replacement"). The replacement takes the place and address of the failed block.
    #[cold]
    fn replace_after_program(&mut self, region: RegionId, block: BlockId, page: u32, ready: u64, stream: Stream) {
        let geometry = self.regions[region.index()].geometry;
        for copied in 0..page {
            let data = self.read(region, geometry.ppa(block, copied), Cause::Meta);
            self.program_page(region, geometry.ppa(block, copied), data, stream, Cause::Meta);
        }
        self.program_page(region, geometry.ppa(block, page), ready, stream, Cause::Meta);
        self.ledger.erases[region.index()][block.index()] = 0;
    }
}

impl SimMedia {
    /// Accesses consecutive sectors of the disks once they are `ready`, and occupies the device if it does one
    /// operation at a time. Returns the end.
    fn access(&mut self, op: DiskOp, ready: u64, sector: u64, sectors: u32, cause: Cause) -> u64 {
        let ready = if self.serial { ready.max(self.clocks.free_at(SERIAL_DIE)) } else { ready };
        let end = self.disks.access(op, ready, sector, sectors, cause, &mut self.ledger.disks);
        if self.serial {
            self.clocks.occupy_until(SERIAL_DIE, end);
        }
        end
    }
}

/// The block that contains all of the pages, if there is one.
#[inline]
fn common_block(geometry: &Geometry, pages: &[Ppa]) -> Option<BlockId> {
    let first = *pages.first()?;
    let differences = pages.iter().fold(0, |differences, page| differences | (page.0 ^ first.0));
    (geometry.block_of(Ppa(differences)) == BlockId(0)).then(|| geometry.block_of(first))
}

impl Media for SimMedia {
    /// Time at which the page is in the controller, in nanoseconds.
    type Data = u64;

    #[inline]
    fn host(&self) -> u64 {
        self.now
    }

    #[inline(always)]
    fn read(&mut self, region: RegionId, page: Ppa, cause: Cause) -> u64 {
        if self.is_special { self.read_special(region, page, cause) } else { self.read_now(region, page, cause) }
    }

    #[inline(always)]
    fn program(&mut self, region: RegionId, page: Ppa, parts: &[Part<u64>], stream: Stream, cause: Cause) {
        let ready = parts.iter().fold(self.now, |ready, part| ready.max(part.data));
        if self.is_special {
            self.program_special(region, page, ready, stream, cause);
        } else {
            self.program_now(region, page, ready, stream, cause);
        }
    }

    #[inline]
    fn copy(&mut self, region: RegionId, from: Ppa, to: Ppa, stream: Stream, cause: Cause) {
        let flash = &self.regions[region.index()];
        if flash.has_copyback {
            let (source, target) = (flash.geometry.block_of(from), flash.geometry.block_of(to));
            if let Some(copyback) = self.copyback(region, source, target) {
                self.copy_back(region, target, 1, copyback, (stream, cause));
                if self.regions[region.index()].faults.is_some() {
                    // The data whose program failed are still in the die's register.
                    self.try_program(region, to, self.now, stream);
                }
                return;
            }
        }
        let data = self.read(region, from, cause);
        self.program(region, to, &[Part { data, from: 0, to: 0, sectors: 0 }], stream, cause);
    }

    #[inline]
    fn copy_run(&mut self, region: RegionId, from: &[Ppa], to: Ppa, stream: Stream, cause: Cause) {
        let flash = &self.regions[region.index()];
        let together = !self.background && flash.faults.is_none();
        let target = flash.geometry.block_of(to);
        let source = if together && flash.has_copyback { common_block(&flash.geometry, from) } else { None };
        let copyback = source.and_then(|source| self.copyback(region, source, target));
        if let Some(copyback) = copyback {
            self.copy_back(region, target, from.len() as u64, copyback, (stream, cause));
        } else if together && flash.on_one_die && !flash.has_copyback && !from.is_empty() {
            self.copy_run_on_one_die(region, from, target, stream, cause);
        } else {
            for (&from, to) in from.iter().zip(to.0..) {
                self.copy(region, from, Ppa(to), stream, cause);
            }
        }
    }

    fn erase(&mut self, region: RegionId, block: BlockId, mode: CellMode, cause: Cause) {
        self.erase_block(region, block, cause);
        let flash = &mut self.regions[region.index()];
        let old_mode = std::mem::replace(&mut flash.blocks[block.index()].mode, mode as u8);
        flash.slc_blocks = flash.slc_blocks + u32::from(mode as u8) - u32::from(old_mode);
        self.ledger.erases[region.index()][block.index()] += 1;
        if let Some(replaced) = flash.faults.as_mut().map(|faults| faults.erase_fails()) {
            self.note_faults(region);
            if replaced {
                // The replacement block is already erased.
                self.ledger.erases[region.index()][block.index()] = 0;
            }
        }
    }

    #[inline]
    fn deliver(&mut self, data: u64, _from: u32, _at: u32, _sectors: u32) {
        self.completion = self.completion.max(data);
    }

    #[inline]
    fn deliver_zeros(&mut self, _at: u32, _sectors: u32) {}

    fn fetch(&mut self, sector: u64, sectors: u32, cause: Cause) -> u64 {
        let end = self.access(DiskOp::Read, self.now, sector, sectors, cause);
        self.completion = self.completion.max(end);
        end
    }

    fn destage(&mut self, data: u64, _from: u32, sector: u64, sectors: u32, cause: Cause) {
        let end = if self.serial {
            self.access(DiskOp::Write, data, sector, sectors, cause)
        } else {
            self.disks.destage(self.now, Destage { ready: data, sector, sectors, cause }, &mut self.ledger.disks)
        };
        if !self.background {
            self.completion = self.completion.max(end);
        }
    }

    fn disk_write(&mut self, sector: u64, _from: u32, sectors: u32) {
        let end = self.access(DiskOp::Write, self.now, sector, sectors, Cause::Host);
        self.completion = self.completion.max(end);
    }
}

impl SimMedia {
    fn note_faults(&mut self, region: RegionId) {
        if let Some(faults) = &self.regions[region.index()].faults {
            self.ledger.faults[region.index()] = faults.counts;
        }
    }
}

#[cfg(test)]
mod tests;
