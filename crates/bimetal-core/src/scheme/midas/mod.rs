//! `midas`: a chain of groups by age whose number and sizes follow from a model of the workload (*MiDAS*: Oh, Kim, Im, Park, Lee, Kim,
//! Chung, FAST 2024).
//!
//! ```text
//!  hot ──▶ group 0 ─┐                                               ┌────────┐
//!                   ▼   valid                valid        valid     ▼        │
//!  else ─────────▶ group 1 ───▶ group 2 ───▶ … ───▶ last group ── victims ───┘
//!                   queue         queue                by the policy
//! ```
//!
//! Each group is a stream of the [`Log`]. All but the last are queues of a fixed size. If a queue is larger than that,
//! its oldest block is collected, otherwise a block of the last group. The [`hot`] filter identifies hot pages. The
//! sizes come from the [`model`] after every epoch of [`intervals`], and are adopted if they promise less write
//! amplification than was measured over the last capacity of writes.
//!
//! The model fails if the workload is irregular. A group whose victims have a share of valid pages a tenth above the
//! predicted one is merged with all groups after it. Merged groups are collected as one, and their pages are copied up
//! a chain of up to four streams, so that they are still separated by age. A new device begins with all groups merged.
//! If groups of the first half were irregular after two sizings in a row, the next epoch is twice as long.
//!
//! Facts and limits come from the authors' simulator (sungkyun123/MiDAS-Simulation, a226265) if the paper has none.
//! Departures: there are at most seven groups; sizes are searched in steps of a sixteenth, so that the search is part
//! of a write and needs no thread (theirs tries each size); epochs grow to at most eight times the first; open blocks
//! are filled up by the group that next has their stream; a hot page's counter is lowered for copies when it is written
//! again, with the same result; the model does not see trims, which theirs counts as the end of an interval and of a
//! valid page.

mod hot;
mod intervals;
mod model;

use serde::{Deserialize, Serialize};

use self::hot::{HotFilter, HotGroup, Place};
use self::intervals::Intervals;
use self::model::{Configuration, GROUPS, Known, Model};
use super::space::{OneRegion, logical_pages};
use super::{Regions, SchemeSpec, Shape};
use crate::region::log::{Blocks, Capacity, Collection, Log, Separation, VictimPolicy};
use crate::region::page_table::PageTable;
use crate::region::valid_counts::ValidCounts;
use crate::save::Table;
use crate::units::{Geometry, RegionId};

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "midas",
    summary: "one region, up to seven groups by age, sized by a model of update intervals",
    source: "Oh et al., MiDAS, FAST 2024",
    regions: Regions::One,
    parameters: Parameters::specs,
    adapts: &[],
    version: 2,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `midas`.
    pub struct Parameters {
        /// Erased blocks for each die at or below which blocks are collected before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
        /// Whether idle time is used to collect up to twice `gc_free_blocks`, as far as the spare area allows.
        pub idle_gc: bool = false;
        /// How the block of the last group to be collected is chosen.
        pub victim: VictimPolicy = VictimPolicy::CostBenefit;
        /// Distance of the logical pages whose update intervals are measured: 100 is every hundredth, as in the authors' program.
        pub sampling: u32 = 100, in 1..=10_000;
        /// Length of an epoch, after which groups are resized, in capacities written; 4 in the authors' program.
        pub epoch_capacities: u32 = 4, in 1..=1000;
    }
}

/// Streams through which merged groups are copied.
const MERGED_STREAMS: usize = 4;
/// Collections without a page written after which groups are merged.
const COLLECTIONS_MAX: u32 = 25;
/// Largest difference of a share of valid pages above the predicted one.
const VALID_ERROR: f64 = 0.1;
/// Part of an epoch after which shares are compared, in tenths.
const CHECK_TENTHS: u64 = 3;
/// Shares of valid pages of a hot group, with at least one block or with fewer, above which hot pages are not
/// identified well enough.
const HOT_VALID_MAX: [f64; 2] = [0.18, 0.3];
/// The assumed hot group before the first measurement.
const HOT_UNKNOWN: HotGroup = HotGroup { traffic: 0.01, valid: 0.05, blocks: 0.0 };
/// The time of a block that is not full.
const NOT_FULL: u64 = u64::MAX;

/// Measurements since the last sizing of the groups.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Measured {
    /// By group: blocks collected, and their valid pages.
    #[serde(with = "crate::save::tuple")]
    blocks: [u64; GROUPS],
    #[serde(with = "crate::save::tuple")]
    valid_pages: [u64; GROUPS],
    /// Time of the next comparison of shares; 0 until each group was collected once.
    check_at: u64,
    /// Whether a group of the first half was irregular, and the number of sizings in a row with such a group.
    has_failed: bool,
    failures: u8,
}

/// Host and copied pages of a period of one capacity, and write amplification in the last one.
#[derive(Debug, Serialize, Deserialize)]
struct Period {
    began: u64,
    copied: u64,
    cost: f64,
}

/// The policy's state: of pages, blocks and groups.
#[derive(Debug, Serialize, Deserialize)]
pub struct Midas {
    #[serde(with = "crate::save::fixed")]
    victim: VictimPolicy,
    #[serde(with = "crate::save::fixed")]
    logical_pages: u64,
    #[serde(with = "crate::save::fixed")]
    pages_per_block: u32,
    /// Blocks for data, and open blocks of a stream.
    #[serde(with = "crate::save::fixed")]
    data_blocks: u32,
    #[serde(with = "crate::save::fixed")]
    lanes: u32,
    /// Pages that the host wrote, and the number of them that were written for the first time.
    clock_pages: u64,
    written_pages: u64,
    /// By block: its group (that of the stream that filled it, unless groups have changed since) and the time at which
    /// it was full.
    groups: Table<u8>,
    full_at: Table<u64>,
    /// By group: full blocks, the largest length of its queue, and the predicted share of valid pages.
    #[serde(with = "crate::save::tuple")]
    full_blocks: [u32; GROUPS],
    #[serde(with = "crate::save::tuple")]
    sizes: [u32; GROUPS],
    #[serde(with = "crate::save::tuple")]
    predicted: [f64; GROUPS],
    /// The last group.
    last: u8,
    /// Whether it is a chain of streams of merged groups.
    is_merged: bool,
    /// Collections since a page was written.
    collections: u32,
    hot: HotFilter,
    intervals: Intervals,
    measured: Measured,
    period: Period,
}

impl Midas {
    fn new(geometry: &Geometry, pages: u64, parameters: &Parameters, entries: usize, lanes: u32) -> Self {
        let epoch = u64::from(parameters.epoch_capacities) * geometry.pages();
        let erased = parameters.gc_free_blocks.saturating_mul(geometry.dies);
        Self {
            victim: parameters.victim,
            logical_pages: pages,
            pages_per_block: geometry.pages_per_block,
            data_blocks: geometry.blocks.saturating_sub(erased),
            lanes,
            clock_pages: 0,
            written_pages: 0,
            groups: vec![0; entries].into(),
            full_at: vec![NOT_FULL; entries].into(),
            full_blocks: [0; GROUPS],
            sizes: [0; GROUPS],
            predicted: [0.0; GROUPS],
            last: 1,
            is_merged: true,
            collections: 0,
            hot: HotFilter::new(pages),
            intervals: Intervals::new(pages, geometry.pages_per_block, parameters.sampling, epoch),
            measured: Measured::default(),
            period: Period { began: 0, copied: 0, cost: f64::INFINITY },
        }
    }

    fn last(&self) -> usize {
        usize::from(self.last)
    }

    /// Whether blocks of a group are collected like those of the last one. A single group includes the hot one.
    fn is_pooled(&self, group: u8) -> bool {
        group >= self.last || self.last == 1
    }

    /// Pages written since a block was full; 0 if it is not.
    fn age(&self, block: usize) -> u64 {
        self.clock_pages.saturating_sub(self.full_at[block])
    }

    /// The oldest block of the first queue that is too long.
    fn oldest(&self, counts: &ValidCounts, entries: std::ops::Range<usize>) -> Option<usize> {
        let queues = if self.last == 1 { 0..0 } else { 0..self.last() };
        let group = queues.into_iter().find(|&group| self.full_blocks[group] > self.sizes[group])?;
        let blocks = entries.filter(|&block| counts.is_sealed(block) && usize::from(self.groups[block]) == group);
        blocks.min_by_key(|&block| self.full_at[block])
    }

    /// A block of the last group by the policy; `None` if all pages of its blocks are valid.
    fn of_last_group(&self, counts: &mut ValidCounts, entries: std::ops::Range<usize>) -> Option<usize> {
        let is_pooled = |block: usize| self.is_pooled(self.groups[block]);
        self.victim.best(counts, entries, |block| self.age(block), is_pooled)
    }

    /// Counts a block with `valid_pages` valid pages that is about to be collected.
    fn note_victim(&mut self, block: usize, valid_pages: u32) {
        self.collections += 1;
        self.period.copied += u64::from(valid_pages);
        let group = self.groups[block];
        if group == 0 {
            let others = self.full_blocks[0].saturating_sub(1);
            self.hot.collected(self.age(block), valid_pages, self.pages_per_block, others);
        }
        let group = usize::from(group).min(self.last());
        self.measured.blocks[group] += 1;
        self.measured.valid_pages[group] += u64::from(valid_pages);
        if self.collections >= COLLECTIONS_MAX {
            self.collections = 0;
            if self.last > 1 {
                // The queues take more room than they free.
                self.note_failure(group);
                self.merge_from(group.clamp(1, self.last() - 1));
            }
        }
    }

    fn note_failure(&mut self, group: usize) {
        self.measured.has_failed |= group <= self.last().div_ceil(2);
    }

    /// Merges a group with all after it.
    fn merge_from(&mut self, group: usize) {
        self.last = group as u8;
        self.is_merged = true;
        self.reset_measured();
    }

    fn reset_measured(&mut self) {
        self.measured.blocks = [0; GROUPS];
        self.measured.valid_pages = [0; GROUPS];
        self.measured.check_at = 0;
    }

    /// Compares shares of valid pages with the predicted ones, periodically.
    fn compare(&mut self) {
        let period = self.intervals.epoch_pages() * CHECK_TENTHS / 10;
        if self.measured.check_at == 0 {
            if !self.is_merged && self.measured.blocks[..=self.last()].iter().all(|&blocks| blocks > 0) {
                self.reset_measured();
                self.measured.check_at = self.clock_pages + period;
            }
            return;
        }
        if self.clock_pages < self.measured.check_at {
            return;
        }
        let irregular = (1..self.last()).chain([self.last()]).find(|&group| {
            let pages = self.measured.blocks[group] * u64::from(self.pages_per_block);
            pages > 0 && self.measured.valid_pages[group] as f64 / pages as f64 - self.predicted[group] >= VALID_ERROR
        });
        self.reset_measured();
        self.measured.check_at = self.clock_pages + period;
        if let Some(group) = irregular {
            self.note_failure(group);
            self.merge_from(group);
        }
    }

    /// Ends a period of one capacity.
    fn end_period(&mut self) {
        let host = self.clock_pages - self.period.began;
        if host >= u64::from(self.data_blocks) * u64::from(self.pages_per_block) {
            let cost = 1.0 + self.period.copied as f64 / host as f64;
            self.period = Period { began: self.clock_pages, copied: 0, cost };
        }
    }

    /// Ends an epoch: adopts new sizes, if they promise less write amplification than was measured.
    #[cold]
    fn end_epoch(&mut self, counts: &ValidCounts) {
        let hot = self.hot.measured().unwrap_or(HOT_UNKNOWN);
        let is_unclear = hot.valid > HOT_VALID_MAX[usize::from(hot.blocks < 1.0)];
        let found = if is_unclear { None } else { self.best(hot, counts) };
        let mut is_doubled = is_unclear;
        if let Some(found) = found.filter(|found| found.cost <= self.period.cost) {
            self.measured.failures = if self.measured.has_failed { self.measured.failures + 1 } else { 0 };
            is_doubled = self.measured.failures >= 2;
            self.measured.failures %= 2;
            self.measured.has_failed = false;
            self.apply(&found);
        }
        self.intervals.begin(is_doubled);
    }

    fn best(&self, hot: HotGroup, counts: &ValidCounts) -> Option<Configuration> {
        let last =
            (0..self.groups.len()).filter(|&block| counts.is_sealed(block) && self.is_pooled(self.groups[block]));
        let (blocks, untouched) = last.fold((0u32, 0u32), |(blocks, untouched), block| {
            (blocks + 1, untouched + u32::from(counts.valid_pages(block) == self.pages_per_block))
        });
        let known = Known {
            blocks: self.data_blocks,
            valid_blocks: self.written_pages as f64 / f64::from(self.pages_per_block),
            untouched_blocks: f64::from(untouched) - 0.05 * f64::from(blocks),
            hot,
        };
        Model::new(&self.intervals.distribution(), known).best()
    }

    /// Gives groups these sizes. If a queue has too many blocks, the oldest join the last group without being copied.
    fn apply(&mut self, found: &Configuration) {
        let first_merged = self.last.min(found.last as u8);
        self.last = found.last as u8;
        self.is_merged = false;
        self.predicted = found.valid;
        for group in self.groups.as_mut_slice() {
            if *group >= first_merged {
                *group = self.last;
            }
        }
        for group in 0..GROUPS {
            // Group 1 has open blocks for the host and for pages that are collected into it.
            let open = self.lanes * if group == 1 { 2 } else { 1 };
            self.sizes[group] = found.blocks[group].saturating_sub(open);
        }
        for group in 0..self.last {
            self.shorten(group);
        }
        self.full_blocks = self.counted();
        self.reset_measured();
    }

    /// Moves the oldest blocks of a queue that is too long to the last group.
    fn shorten(&mut self, group: u8) {
        let (groups, full_at) = (&self.groups, &self.full_at);
        let full = || groups.iter().zip(full_at).filter(|&(&of, &at)| of == group && at != NOT_FULL).map(|(_, &at)| at);
        let excess = full().count().saturating_sub(self.sizes[usize::from(group)] as usize);
        if excess == 0 {
            return;
        }
        // The earliest time at which enough of them were full.
        let (mut from, mut to) = (0, self.clock_pages);
        while from < to {
            let time = from + (to - from) / 2;
            if full().filter(|&at| at <= time).count() >= excess { to = time } else { from = time + 1 }
        }
        for (of, at) in self.groups.as_mut_slice().iter_mut().zip(&self.full_at) {
            if *of == group && *at <= to {
                *of = self.last;
            }
        }
    }

    /// Full blocks of each group.
    fn counted(&self) -> [u32; GROUPS] {
        let mut counted = [0; GROUPS];
        for (&group, _) in self.groups.iter().zip(&self.full_at).filter(|&(_, &at)| at != NOT_FULL) {
            counted[usize::from(group)] += 1;
        }
        counted
    }
}

impl Separation<GROUPS> for Midas {
    const POOLED: bool = true;

    fn collected_in_idle_time(&mut self) {
        self.collections = 0;
    }

    fn written(&mut self, logical: u32, old: Option<usize>) -> usize {
        self.clock_pages += 1;
        self.collections = 0;
        // A device is filled and then written once more before measurements begin.
        if self.clock_pages > 2 * self.logical_pages {
            self.intervals.written(logical);
        }
        self.written_pages = (self.written_pages + u64::from(old.is_none())).min(self.logical_pages);
        let from = old.map(|block| Place { group: usize::from(self.groups[block]), age: self.age(block) });
        usize::from(!self.hot.written(logical, from))
    }

    fn copied(&self, _: u32, victim: usize) -> usize {
        let last = if self.is_merged { self.last() + MERGED_STREAMS - 1 } else { self.last() };
        (usize::from(self.groups[victim]) + 1).min(last).min(GROUPS - 1)
    }

    fn victim(&mut self, counts: &mut ValidCounts, entries: std::ops::Range<usize>) -> Option<usize> {
        self.end_period();
        self.compare();
        if self.intervals.is_complete() {
            self.end_epoch(counts);
        }
        let block = self.oldest(counts, entries.clone()).or_else(|| self.of_last_group(counts, entries.clone()));
        let block = block.or_else(|| counts.fewest(entries))?;
        self.note_victim(block, counts.valid_pages(block));
        Some(block)
    }

    fn opened(&mut self, block: usize, _: u32, stream: usize) {
        self.groups[block] = stream as u8;
    }

    fn sealed(&mut self, block: usize) {
        self.full_at[block] = self.clock_pages;
        self.full_blocks[usize::from(self.groups[block])] += 1;
    }

    fn collected(&mut self, block: usize) {
        self.full_at[block] = NOT_FULL;
        let full = &mut self.full_blocks[usize::from(self.groups[block])];
        *full = full.saturating_sub(1);
    }

    /// The map, two bits for each page, and the sample.
    fn metadata_bytes(&self, logical_pages: u32) -> u64 {
        u64::from(logical_pages) * 4 + self.hot.metadata_bytes() + self.intervals.metadata_bytes()
    }

    fn check(&self, table: &PageTable, blocks: &Blocks<GROUPS>) -> Result<(), String> {
        let (logical_pages, blocks) = (table.logical_pages() as usize, blocks.entries());
        let broken = |what: &str| Err(format!("the groups are inconsistent: {what}"));
        if self.groups.len() != blocks || self.full_at.len() != blocks || self.logical_pages != logical_pages as u64 {
            return broken("they belong to another log");
        }
        if !(1..GROUPS as u8).contains(&self.last) || self.groups.iter().any(|&group| usize::from(group) >= GROUPS) {
            return broken("a block has a group that does not exist");
        }
        if self.full_at.iter().any(|&at| at != NOT_FULL && at > self.clock_pages) || self.full_blocks != self.counted()
        {
            return broken("full blocks");
        }
        // An upper bound, so that no sum can overflow.
        let longest = 1 << 62;
        let measured = &self.measured;
        let is_measured = measured.valid_pages.iter().zip(measured.blocks).all(|(&valid, blocks)| {
            blocks <= longest / u64::from(u32::MAX) && valid <= blocks * u64::from(self.pages_per_block)
        });
        let is_timed = self.clock_pages < longest
            && self.period.began <= self.clock_pages
            && self.period.copied < longest
            && measured.check_at < longest
            && self.written_pages <= self.logical_pages
            && measured.failures <= 1
            && self.collections < COLLECTIONS_MAX;
        if !is_measured || !is_timed || self.predicted.iter().any(|valid| !(0.0..=1.0).contains(valid)) {
            return broken("measurements");
        }
        self.hot.check(logical_pages, self.pages_per_block, self.clock_pages)?;
        self.intervals.check()
    }
}

/// The state of `midas`.
pub type MidasMapped = OneRegion<Log<Midas, GROUPS>>;

impl MidasMapped {
    /// A scheme over the device's only region.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let (geometry, pages) = (shape.regions[0].geometry, logical_pages(shape)?);
        let collection = Collection { gc_free_blocks: parameters.gc_free_blocks, idle_gc: parameters.idle_gc };
        let separation =
            |blocks: &Blocks<GROUPS>| Midas::new(&geometry, pages, &parameters, blocks.entries(), blocks.lanes());
        Log::pooled(RegionId(0), geometry, Capacity::whole(&geometry, pages), collection, separation).map(Self)
    }
}

#[cfg(test)]
mod tests;
