//! `sepbit`: pages that will be overwritten at about the same time share blocks (*SepBIT*: Wang, Wang, Xu, Zhang, Lee, Yang, FAST 2022).
//!
//! ```text
//! the host writes a page     overwritten soon after its last write?     yes: class 1    no: class 2
//! a valid page is copied     from a block of class 1: class 3     else by its age, below 4ℓ, below 16ℓ, above: classes 4, 5, 6
//! ```
//!
//! Each class is a stream of the [`Log`]. Time is counted in pages that the host writes. The *block invalidation time*
//! of a page, at which it will be overwritten, is inferred: a page that lived shorter than ℓ is assumed to do so again,
//! and a page that has long been valid is assumed to stay valid for long. ℓ is the mean lifetime of the last 16
//! collected blocks of class 1, from their opening on, and infinite at first.
//!
//! The last write of a page counts while the page is among the ℓ last written ones, or as many as the host has data;
//! the paper keeps these in a queue. Times of pages have 24 bits, in units of a power of two of pages, about a
//! millionth of the capacity or less. A page that is not written for 8 times the capacity or more may appear younger.

use serde::{Deserialize, Serialize};

use super::space::{OneRegion, logical_pages};
use super::{Regions, SchemeSpec, Shape};
use crate::region::log::{Blocks, Capacity, Collection, Log, Separation, VictimPolicy, Victims};
use crate::region::page_table::PageTable;
use crate::region::valid_counts::ValidCounts;
use crate::save::Table;
use crate::units::RegionId;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "sepbit",
    summary: "one region, six streams by inferred time of invalidation",
    source: "Wang et al., SepBIT, FAST 2022",
    regions: Regions::One,
    parameters: Parameters::specs,
    adapts: &[],
    version: 3,
};

crate::parameters! {
    SPEC.name;
    /// Parameters of `sepbit`.
    pub struct Parameters {
        /// Erased blocks for each die at or below which blocks are collected before the next write.
        pub gc_free_blocks: u32 = 1, in 1..=1024;
        /// Share of garbage (invalid pages of full blocks), in percent of the pages in use, above which a block is collected after
        /// each write request, as in log-structured stores (SepBIT, FAST 2022, section 2.1). 0 means that only erased blocks count.
        pub gc_garbage_percent: f64 = 0.0, in 0.0..=90.0;
        /// Whether idle time is used to collect up to twice `gc_free_blocks`, as far as the spare area allows.
        pub idle_gc: bool = false;
        /// How the block to be collected is chosen.
        pub victim: VictimPolicy = VictimPolicy::CostBenefit;
    }
}

/// Classes: streams.
const CLASSES: usize = 6;
/// Blocks of class 1 over which ℓ is a mean.
const LIFETIMES: u64 = 16;
/// The class of pages that are copied from blocks of class 1, the first class by age, and the age limits of the next
/// ones in ℓ.
const COPIED_YOUNG: usize = 2;
const COPIED: usize = 3;
const AGES: [u64; CLASSES - COPIED - 1] = [4, 16];

/// Units of time in the capacity, unless a unit were less than a page.
const UNITS: u64 = 1 << 20;

/// Times of the last writes of pages.
#[derive(Debug, Serialize, Deserialize)]
struct WriteTimes {
    /// Binary logarithm of the pages of a unit of time.
    #[serde(with = "crate::save::fixed")]
    unit_log2: u32,
    /// By logical page: the unit, modulo 2^24; 0 for never, and 1 for the units 0 and 1.
    units: Table<[u8; 3]>,
}

impl WriteTimes {
    const BITS: u32 = 24;

    fn new(logical_pages: u64) -> Self {
        Self { unit_log2: (logical_pages / UNITS).max(1).ilog2(), units: vec![[0; 3]; logical_pages as usize].into() }
    }

    /// Pages written since the last write of a page; `None` if it was never written.
    fn age(&self, logical: u32, now: u64) -> Option<u64> {
        let [low, middle, high] = self.units[logical as usize];
        let unit = u64::from(u32::from_le_bytes([low, middle, high, 0]));
        let units = (now >> self.unit_log2).wrapping_sub(unit) % (1 << Self::BITS);
        (unit > 0).then_some(units << self.unit_log2)
    }

    fn set(&mut self, logical: u32, now: u64) {
        let unit = ((now >> self.unit_log2) % (1 << Self::BITS)).max(1);
        let [low, middle, high, ..] = unit.to_le_bytes();
        self.units[logical as usize] = [low, middle, high];
    }
}

/// State of `sepbit` per page and block.
#[derive(Debug, Serialize, Deserialize)]
pub struct SepBit {
    victims: Victims,
    #[serde(with = "crate::save::fixed")]
    gc_garbage_percent: f64,
    written: WriteTimes,
    /// By block: the stream that filled it, and the time of its opening.
    streams: Table<u8>,
    opened_at: Table<u64>,
    /// Logical pages that were ever written.
    pages: u64,
    /// The mean lifetime ℓ.
    lifetime: u64,
    /// Lifetimes of the blocks of class 1 collected since ℓ changed: their sum, and their number.
    lifetimes: u64,
    collected: u64,
}

impl SepBit {
    fn new(parameters: &Parameters, logical_pages: u64, blocks: usize) -> Self {
        Self {
            victims: Victims::new(parameters.victim, blocks),
            gc_garbage_percent: parameters.gc_garbage_percent,
            written: WriteTimes::new(logical_pages),
            streams: vec![0; blocks].into(),
            opened_at: vec![0; blocks].into(),
            pages: 0,
            lifetime: u64::MAX,
            lifetimes: 0,
            collected: 0,
        }
    }

    /// Number of writes to pages whose last write is known.
    fn memory(&self) -> u64 {
        self.lifetime.min(self.pages)
    }
}

impl Separation<CLASSES> for SepBit {
    const POOLED: bool = true;

    fn written(&mut self, logical: u32, _: Option<usize>) -> usize {
        self.victims.note_written();
        let now = self.victims.clock_pages();
        let age = self.written.age(logical, now);
        let is_short_lived = age.is_some_and(|age| age < self.memory());
        self.written.set(logical, now);
        self.pages += u64::from(age.is_none());
        usize::from(!is_short_lived)
    }

    fn copied(&self, logical: u32, victim: usize) -> usize {
        if self.streams[victim] == 0 {
            return COPIED_YOUNG;
        }
        let age = self.written.age(logical, self.victims.clock_pages()).unwrap_or(u64::MAX);
        COPIED + AGES.iter().filter(|&&ages| age >= self.lifetime.saturating_mul(ages)).count()
    }

    fn victim(&mut self, counts: &mut ValidCounts, entries: std::ops::Range<usize>) -> Option<usize> {
        self.victims.choose(counts, entries)
    }

    fn opened(&mut self, block: usize, _: u32, stream: usize) {
        self.streams[block] = stream as u8;
        self.opened_at[block] = self.victims.clock_pages();
    }

    #[inline(always)]
    fn gc_garbage_percent(&self) -> f64 {
        self.gc_garbage_percent
    }

    fn sealed(&mut self, block: usize) {
        self.victims.note_sealed(block);
    }

    fn collected(&mut self, block: usize) {
        if self.streams[block] > 0 {
            return;
        }
        self.lifetimes += self.victims.clock_pages() - self.opened_at[block];
        self.collected += 1;
        if self.collected == LIFETIMES {
            self.lifetime = self.lifetimes / LIFETIMES;
            (self.lifetimes, self.collected) = (0, 0);
        }
    }

    /// The queue of the last written pages: a page number and a place of 4 bytes each. The time of a page's last write
    /// is in its spare area.
    fn metadata_bytes(&self, logical_pages: u32) -> u64 {
        u64::from(logical_pages) * 4 + self.memory() * 8
    }

    fn check(&self, table: &PageTable, blocks: &Blocks<CLASSES>) -> Result<(), String> {
        let (logical_pages, blocks) = (table.logical_pages() as usize, blocks.entries());
        self.victims.check()?;
        let now = self.victims.clock_pages();
        let is_late = self.opened_at.iter().any(|&at| at > now) || self.lifetimes / LIFETIMES > now;
        let of_log = (self.written.units.len(), self.streams.len(), self.opened_at.len());
        if is_late
            || self.pages > logical_pages as u64
            || of_log != (logical_pages, blocks, blocks)
            || self.collected >= LIFETIMES
        {
            return Err("times of pages and blocks belong to another log".into());
        }
        Ok(())
    }
}

/// The state of `sepbit`.
pub type SepBitMapped = OneRegion<Log<SepBit, CLASSES>>;

impl SepBitMapped {
    /// A scheme over the device's only region.
    ///
    /// # Errors
    /// Too little spare area.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let (geometry, pages) = (shape.regions[0].geometry, logical_pages(shape)?);
        let collection = Collection { gc_free_blocks: parameters.gc_free_blocks, idle_gc: parameters.idle_gc };
        let separation = |blocks: &Blocks<CLASSES>| SepBit::new(&parameters, pages, blocks.entries());
        Log::pooled(RegionId(0), geometry, Capacity::whole(&geometry, pages), collection, separation).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sepbit() -> SepBit {
        SepBit::new(&Parameters::default(), 1000, 10)
    }

    #[test]
    fn what_is_written_again_soon_is_in_the_first_class() {
        let mut sepbit = sepbit();
        assert_eq!([0, 1, 1, 0, 2].map(|page| sepbit.written(page, None)), [1, 1, 0, 1, 1]);
        sepbit.lifetime = 2;
        assert_eq!([2, 0, 2, 0, 0].map(|page| sepbit.written(page, None)), [0, 1, 1, 1, 0]);
    }

    #[test]
    fn copies_are_parted_by_age_unless_they_come_from_the_first_class() {
        let mut sepbit = sepbit();
        sepbit.lifetime = 10;
        sepbit.written(7, None);
        (0..30).for_each(|_| _ = sepbit.written(8, None));
        sepbit.opened(0, 0, 0);
        sepbit.opened(1, 0, 4);
        assert_eq!([0, 1].map(|block| sepbit.copied(7, block)), [2, 3]);
        (0..100).for_each(|_| _ = sepbit.written(8, None));
        assert_eq!(sepbit.copied(7, 1), 4);
        (0..100).for_each(|_| _ = sepbit.written(8, None));
        assert_eq!((sepbit.copied(7, 1), sepbit.copied(8, 1)), (5, 3));
    }

    #[test]
    fn the_lifetime_is_the_mean_of_sixteen_blocks_of_the_first_class() {
        let mut sepbit = sepbit();
        for block in 0..16 {
            sepbit.opened(1, 0, 1);
            sepbit.opened(0, 0, 0);
            (0..10 + block).for_each(|_| _ = sepbit.written(8, None));
            sepbit.collected(1);
            assert_eq!(sepbit.lifetime, u64::MAX);
            sepbit.collected(0);
        }
        assert_eq!((sepbit.lifetime, sepbit.collected), (17, 0), "the mean of 10 to 25 is 17.5");
    }

    #[test]
    fn times_go_round() {
        let mut times = WriteTimes::new(5 << 20);
        assert_eq!((times.unit_log2, times.age(5, 1000)), (2, None));
        times.set(5, 1000);
        assert_eq!((times.age(5, 1000), times.age(5, 1_000_000)), (Some(0), Some(999_000)));
        assert_eq!(times.age(5, 1000 + (4 << 24)), Some(0));
        times.set(5, 4 << 24);
        assert_eq!(times.age(5, (4 << 24) + 400), Some(396), "0 is never");
    }
}
