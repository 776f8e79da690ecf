//! Common base of `wlaftl`, `wlaftl-static` and `cftl`: a circular log of fast blocks, written and reclaimed in turn, in front
//! of a page-mapped region (*WLAFTL*, Chinese Journal of Computers 2018, §3; Chang, IEEE Trans. Computers 2010, §3.3).
//!
//! ```text
//! write ─▶ admission ─▶ small, or an update ─▶ head  fast log  tail ─▶ valid pages: another lap, or demoted
//!              └──────▶ the rest ────────────────────────────────────▶ slow region
//! ```
//!
//! The scheme's [`Admission`] decides which data go to the log; in WLAFTL's, a write whose data are all there is an
//! update and stays, whatever its size. When erased blocks are short, the oldest block is collected (WLAFTL's Algorithm
//! 2): while the fast region is worn more than the slow one, its valid pages are demoted at once; otherwise a page
//! makes up to [`FifoLogSettings::max_cycle_time`] laps. That bounds the copying.
//!
//! Readings: relative wear is compared in whole cycles of the slow region; a page that the host writes starts at
//! `Cycle_Time` 0; half a slow page that is demoted is completed from its old copy. `docs/papers/wlaftl-2018.md` lists
//! all.

use std::cmp::Ordering;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::tiered::{FastTier, Run, Survivors, THRESHOLD, Tiers, unit_bytes};
use super::{Adaptation, Metrics, Scheme, Shape, ratio};
use crate::media::{Cause, CellMode, Media};
use crate::model::wear_balance::{RelativeWear, WearCompare, phi};
use crate::region::Space;
use crate::region::log::{Collection, Log};
use crate::region::ring::Ring;
use crate::request::{Op, Request, SECTOR_BYTES};
use crate::save::Table;
use crate::units::{Ppa, RegionId};

/// Wear balance of `wlaftl`, which sets threshold and demotion (section 4.1).
pub const WEAR_BALANCE: Adaptation = Adaptation {
    metric: "phi",
    title: "Wear-levelling efficiency Φ",
    unit: "larger relative wear / smaller",
    meaning: "How evenly the regions wear, 1 is ideal: while the fast one is worn more, fewer data stay there.",
};

/// Which data go to the log.
pub trait Admission: std::fmt::Debug + Send + Serialize {
    /// Whether data that are in the log are written there whatever the size of the write.
    fn keeps_updates(&self) -> bool;

    /// Called for each host write, of `sectors` sectors.
    fn note_write(&mut self, _sectors: u32) {}

    /// Whether a host write goes to the log. If updates are kept there, some of its data are not in the log yet.
    fn admits(&mut self, write: HostWrite, wear: WearNow<'_>) -> bool;

    /// Size of the largest write that is admitted, in bytes.
    fn threshold_bytes(&self) -> u64;
}

/// A write of the host.
#[derive(Clone, Copy, Debug)]
pub struct HostWrite {
    /// Its size.
    pub sectors: u32,
    /// Whether all of its data are in the log.
    pub is_update: bool,
}

impl HostWrite {
    /// Its size in bytes.
    #[inline]
    pub fn bytes(self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}

/// The wear of both regions at a write, which is calculated when it is needed.
#[derive(Clone, Copy, Debug)]
pub struct WearNow<'a> {
    wear: &'a RelativeWear,
    compare: WearCompare,
    fast_erases: u64,
    slow_erases: u64,
}

impl<'a> WearNow<'a> {
    /// The wear after these erases of the fast and of the slow region.
    #[inline]
    pub fn new(wear: &'a RelativeWear, compare: WearCompare, (fast_erases, slow_erases): (u64, u64)) -> Self {
        Self { wear, compare, fast_erases, slow_erases }
    }

    /// Compares the relative wear of the fast region with that of the slow one, as set.
    #[inline]
    pub fn order(self) -> Ordering {
        self.wear.order(self.fast_erases, self.slow_erases, self.compare)
    }

    /// Whole cycles of the slow region by which the fast one is worn more; negative if it is worn less.
    #[inline]
    pub fn cycles_ahead(self) -> i64 {
        self.wear.cycles_ahead(self.fast_erases, self.slow_erases)
    }
}

crate::choices! {
    /// Unit of `Cycle_Time`.
    pub enum CycleTime {
        /// Laps of this copy of a page: the host's next write to it starts at 0 (section 4.2 and Algorithm 2).
        Laps = "laps",
        /// Laps and writes of the host, the first one included, until the page is demoted: the laboratory's program.
        LapsAndWrites = "laps_and_writes",
    }
}

/// Common settings of the schemes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FifoLogSettings {
    /// Erased blocks of the log below which its oldest block is collected.
    pub free_blocks: u32,
    /// Laps of a page before it is demoted.
    pub max_cycle_time: u8,
    /// Unit of that count.
    pub cycle_time: CycleTime,
    /// Whether pages stay for another lap while both regions are equally worn.
    pub laps_at_equal_wear: bool,
    /// How wear is compared.
    pub wear_compare: WearCompare,
    /// Erased blocks of a die of the slow region at or below which it is collected.
    pub gc_free_blocks: u32,
}

/// Counters since the start.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counts {
    writes: u64,
    units: u64,
    fast_writes: u64,
    fast_units: u64,
    update_units: u64,
    tail_units: u64,
    copied_back_pages: u64,
    worn_units: u64,
    demoted_units: u64,
}

/// Which data in the oldest block are demoted (Algorithm 2).
#[derive(Clone, Copy)]
struct GoesDown {
    /// All, because the fast region is worn more.
    is_worn: bool,
    /// Otherwise those with this number of laps.
    most: u8,
}

impl GoesDown {
    #[inline]
    fn holds(self, cycles: &[u8], slot: u32) -> bool {
        self.is_worn || cycles[slot as usize] >= self.most
    }
}

/// The state of a scheme.
#[derive(Debug, Serialize, Deserialize)]
pub struct FifoLog<A> {
    tiers: Tiers<Log>,
    ring: Ring,
    #[serde(with = "crate::save::fixed")]
    wear: RelativeWear,
    #[serde(with = "crate::save::fixed")]
    settings: FifoLogSettings,
    admission: A,
    /// `Cycle_Time`: laps of the unit in each slot.
    cycles: Table<u8>,
    #[serde(with = "crate::save::fixed")]
    blocks: u32,
    counts: Counts,
}

impl<A: Admission> FifoLog<A> {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Too few blocks in either region.
    pub fn over(shape: &Shape, admission: A, settings: FifoLogSettings) -> Result<Self, String> {
        let [fast, .., slow] = shape.regions.as_slice() else { return Err("it needs a fast and a slow region".into()) };
        let (log, slow_geometry) = (fast.geometry, slow.geometry);
        let least = settings.free_blocks + 2;
        if log.blocks < least {
            return Err(format!(
                "keeping {} fast blocks erased takes at least {least} and there are {}; enlarge the fast region or lower \
                 free_blocks",
                settings.free_blocks, log.blocks
            ));
        }
        let pages = shape.logical_sectors.div_ceil(u64::from(slow_geometry.page_sectors()));
        let space = Collection { gc_free_blocks: settings.gc_free_blocks, idle_gc: false };
        let slow_id = RegionId((shape.regions.len() - 1) as u8);
        let space = Log::new(slow_id, slow_geometry, pages, space)?;
        let unit = unit_bytes(log.page_bytes, slow_geometry.page_bytes);
        let tier = FastTier::new(RegionId(0), log, (CellMode::Native, log.pages_per_block), unit)?;
        let cycles = vec![0; tier.slots().len()];
        let wear = RelativeWear::new((log.blocks, fast.chip.endurance), (slow_geometry.blocks, slow.chip.endurance));
        Ok(Self {
            tiers: Tiers::new(tier, space)?,
            ring: Ring::new(0..log.blocks, log.blocks, log.pages_per_block, 1, 1),
            wear,
            settings,
            admission,
            cycles: cycles.into(),
            blocks: log.blocks,
            counts: Counts::default(),
        })
    }

    fn write<M: Media>(&mut self, media: &mut M, request: &Request) {
        let whole = Run::whole(self.tiers.units(), request);
        let known = self.tiers.count_in_log(whole.unit, whole.count);
        self.admission.note_write(request.sectors);
        let (is_update, keeps_updates) = (known == whole.count, self.admission.keeps_updates());
        let is_fast = is_update && keeps_updates || {
            let write = HostWrite { sectors: request.sectors, is_update };
            let erases = (self.tiers.fast.erases(), self.tiers.slow.erases());
            self.admission.admits(write, WearNow::new(&self.wear, self.settings.wear_compare, erases))
        };
        let counts = &mut self.counts;
        counts.writes += 1;
        counts.units += u64::from(whole.count);
        counts.fast_writes += u64::from(is_fast);
        if is_fast || keeps_updates {
            counts.update_units += u64::from(known);
        }
        if is_fast {
            self.write_fast(media, whole);
        } else if keeps_updates && known > 0 {
            self.write_apart(media, request);
        } else {
            self.write_slow(media, whole);
        }
    }

    /// Updates logged units in the log, and writes the rest to the slow region.
    fn write_apart<M: Media>(&mut self, media: &mut M, request: &Request) {
        let mut open: Option<(Run, bool)> = None;
        for span in self.tiers.units().spans(request) {
            let is_known = self.tiers.is_in_log(span.page);
            match &mut open {
                Some((run, known)) if *known == is_known => run.push(span),
                _ => {
                    if let Some((run, known)) = open.replace((Run::of(span), is_known)) {
                        self.write_run(media, run, known);
                    }
                }
            }
        }
        if let Some((run, known)) = open {
            self.write_run(media, run, known);
        }
    }

    fn write_run<M: Media>(&mut self, media: &mut M, run: Run, known: bool) {
        if known {
            self.write_fast(media, run);
        } else {
            self.write_slow(media, run);
        }
    }

    #[inline]
    fn write_fast<M: Media>(&mut self, media: &mut M, mut run: Run) {
        self.counts.fast_units += u64::from(run.count);
        let (per_page, unit_sectors) = (self.tiers.fast.units_per_page(), self.tiers.fast.unit_sectors());
        while let Some(piece) = run.take(per_page, unit_sectors) {
            let page = self.next_page(media);
            for (unit, slot) in (piece.unit..piece.unit + piece.count).zip(self.tiers.fast.slots().first_slot(page)..) {
                self.cycles[slot as usize] = self.cycles_of_written(unit);
            }
            self.tiers.write_fast(media, &piece, page, Cause::Host);
        }
    }

    /// `Cycle_Time` of a unit that the host is about to write to the log.
    #[inline]
    fn cycles_of_written(&self, unit: u32) -> u8 {
        match self.settings.cycle_time {
            CycleTime::Laps => 0,
            CycleTime::LapsAndWrites => {
                let before = self.tiers.slot(unit).map_or(0, |old| self.cycles[old as usize]);
                self.settings.max_cycle_time.min(before.saturating_add(1))
            }
        }
    }

    #[inline]
    fn write_slow<M: Media>(&mut self, media: &mut M, mut run: Run) {
        let (per_page, unit_sectors) = (self.tiers.units_per_slow_page(), self.tiers.fast.unit_sectors());
        while let Some(piece) = run.take_group(per_page, unit_sectors) {
            self.tiers.write_slow(media, &piece, Cause::Host);
        }
    }

    /// The page of the log for the host's next data.
    #[inline]
    fn next_page<M: Media>(&mut self, media: &mut M) -> Ppa {
        // A whole block is open when the tail is collected, so that copied data have room.
        while self.ring.needs_block() {
            self.ring.open_block();
            while self.ring.erased() < self.settings.free_blocks {
                self.collect_tail(media);
            }
        }
        self.take_page()
    }

    /// The next page of the head block.
    #[inline]
    fn take_page(&mut self) -> Ppa {
        let (block, page) = self.ring.next_page();
        self.tiers.fast.slots().geometry().ppa(block, page)
    }

    /// Moves valid data of the oldest block to the head or demotes them, and erases the block.
    fn collect_tail<M: Media>(&mut self, media: &mut M) {
        let Some(block) = self.ring.tail() else { return };
        let all = self.tiers.fast.slots().slots_of(block);
        let mut survivors = Survivors::default();
        for slot in all.clone() {
            let goes_down = self.goes_down();
            self.tiers.prefetch_emptied(slot, all.end, |slot| goes_down.holds(&self.cycles, slot));
            let Some(unit) = self.tiers.fast.slots().unit(slot) else { continue };
            if goes_down.holds(&self.cycles, slot) {
                self.demote(media, unit, slot..all.end, goes_down);
            } else {
                let (page, _) = self.tiers.fast.slots().page_of(slot);
                self.copy_back(media, page, &mut survivors);
            }
        }
        self.tiers.copy_survivors(media, &mut survivors);
        self.tiers.fast.erase(media, block, Cause::Gc);
        self.ring.retire_tail();
    }

    /// Demotes a unit, together with those of the same slow page among the given slots that are also due.
    fn demote<M: Media>(&mut self, media: &mut M, unit: u32, slots: Range<u32>, goes_down: GoesDown) {
        let cycles = &self.cycles;
        let is_due = |slot: u32| slots.contains(&slot) && goes_down.holds(cycles, slot);
        let moved = u64::from(self.tiers.demote(media, unit, is_due));
        self.counts.tail_units += moved;
        self.counts.demoted_units += moved;
        self.counts.worn_units += if goes_down.is_worn { moved } else { 0 };
    }

    /// Assigns a page to the head; its units have completed another lap.
    fn copy_back<M: Media>(&mut self, media: &mut M, page: Ppa, survivors: &mut Survivors) {
        if self.ring.needs_block() || survivors.is_full() {
            self.tiers.copy_survivors(media, survivors);
        }
        if self.ring.needs_block() {
            self.ring.open_block();
        }
        let to = self.take_page();
        let (cycles, tail_units) = (&mut self.cycles, &mut self.counts.tail_units);
        let most = self.settings.max_cycle_time;
        self.tiers.move_survivor(survivors, page, to, |old, new| {
            // A unit that was due is copied together with a unit of its page that was not.
            cycles[new as usize] = most.min(cycles[old as usize] + 1);
            *tail_units += 1;
        });
        self.counts.copied_back_pages += 1;
    }

    /// Which data are demoted at present.
    #[inline]
    fn goes_down(&self) -> GoesDown {
        let most = self.settings.max_cycle_time;
        let is_worn = |order: Ordering| if self.settings.laps_at_equal_wear { order.is_gt() } else { order.is_ge() };
        GoesDown { is_worn: most > 0 && is_worn(self.wear_order()), most }
    }

    /// Compares the relative wear of the fast region with that of the slow one.
    #[inline]
    fn wear_order(&self) -> Ordering {
        self.wear.order(self.tiers.fast.erases(), self.tiers.slow.erases(), self.settings.wear_compare)
    }

    /// Bits of a page's `Cycle_Time`.
    const CYCLE_BITS: u64 = 4;

    /// Bytes of both maps and of the log's cycle times.
    fn metadata_bytes(&self) -> u64 {
        let pages = self.tiers.fast.slots().geometry().pages();
        let cycles = if self.settings.max_cycle_time == 0 { 0 } else { (pages * Self::CYCLE_BITS).div_ceil(8) };
        self.tiers.metadata_bytes() + cycles
    }
}

impl<M: Media, A: Admission> Scheme<M> for FifoLog<A> {
    fn fill(&mut self, media: &mut M) {
        self.tiers.fill(media);
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        match request.op {
            Op::Write => self.write(media, request),
            Op::Read => self.tiers.read(media, request),
            Op::Trim => self.tiers.trim(request),
        }
    }

    #[inline]
    fn prefetch(&self, far: &Request, near: &Request) {
        self.tiers.prefetch(far, near);
    }

    fn metrics(&self, metrics: &mut Metrics) {
        let counts = &self.counts;
        let (fast, slow) = (self.tiers.fast.erases(), self.tiers.slow.erases());
        let (fast_wear, slow_wear) = self.wear.values(fast, slow);
        let slots = self.tiers.fast.slots();
        let collected_units = fast * u64::from(slots.pages_per_block() * slots.slots());
        let sectors = u64::from(self.tiers.fast.unit_sectors());
        metrics.push(THRESHOLD.metric, self.admission.threshold_bytes() as f64 / 1024.0);
        metrics.push(WEAR_BALANCE.metric, phi(fast_wear, slow_wear).unwrap_or(f64::INFINITY));
        metrics.push("relative_wear_slc", fast_wear);
        metrics.push("relative_wear_mlc", slow_wear);
        metrics.push("erases_mean_slc", ratio(fast, u64::from(self.blocks)));
        metrics.push("erases_mean_mlc", slow_wear);
        metrics.push("slc_write_share", ratio(counts.fast_units, counts.units));
        metrics.push("slc_request_share", ratio(counts.fast_writes, counts.writes));
        metrics.count("updated_sectors", counts.update_units * sectors);
        metrics.count("copied_back_pages", counts.copied_back_pages);
        metrics.count("demoted_sectors", counts.demoted_units * sectors);
        metrics.count("demoted_by_wear_sectors", counts.worn_units * sectors);
        metrics.push("tail_valid_ratio", ratio(counts.tail_units, collected_units));
        metrics.count("slc_erases", fast);
        metrics.count("mlc_erases", slow);
        metrics.count("gc_copied_pages", self.tiers.slow.copied_pages());
        metrics.count("metadata_bytes", self.metadata_bytes());
    }

    fn check(&self) -> Result<(), String> {
        self.ring.check(self.tiers.fast.slots().geometry().blocks)?;
        self.tiers.check(self.ring.iter_written())?;
        if self.ring.erased() + self.ring.written() != self.blocks || self.ring.erased() < self.settings.free_blocks {
            return Err(format!(
                "{} blocks of the log are erased, {} written",
                self.ring.erased(),
                self.ring.written()
            ));
        }
        match self.cycles.iter().find(|&&cycles| cycles > self.settings.max_cycle_time) {
            Some(cycles) => Err(format!("a page has made {cycles} laps")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
