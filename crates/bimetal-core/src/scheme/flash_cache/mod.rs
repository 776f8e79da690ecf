//! A flash cache in front of home disks: the common base of `opfcl`, `rwfcl` and `fpfcl`.
//!
//! Oh, Choi, Lee, Noh: *Caching less for better performance: balancing cache size and update cost of flash memory cache in
//! hybrid storage systems*, FAST 2012. In the paper's terms:
//!
//! ```text
//!  host ──▶ sequential I/O detector ──▶ page replacer ──▶ mapping manager ──▶ flash
//!                      │                     ▲   │ destage                  read cache | write cache | over-provisioned
//!                      │    workload tracker ┤   ▼
//!                      └───────────────────▶ disks    partition resizer: the size of each
//! ```
//!
//! A page of the cache is a page of flash. A read that misses reads consecutive missing pages with one access to the
//! disk and stages each to flash before it is answered. A write never waits for a read from the disk: the cache can
//! hold a part of a page. When the rest is read, it is fetched, and the whole page is programmed again. When dirty
//! pages must leave, a group of the least recently used ones goes to the disk in the order of addresses.
//!
//! Sequential requests bypass the cache. Cached data are read from the cache, and cached data that are written are
//! replaced. A partial write to a page that is dirty, or that has no other copy, goes to the cache nevertheless.
//!
//! Departures from the paper are in `docs/papers/opfcl-2012.md`.

mod checkpoint;
mod detector;
pub mod family;
mod mapping;
mod partition;
mod prefetching;
mod replacer;
mod serving;
mod settings;
mod tracker;

use std::ops::RangeInclusive;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

pub use detector::SequentialRule;
pub use settings::{CacheSettings, Partitioning, PeriodUnit};
pub use tracker::{Curve, Rates, ReadHits};

use self::detector::SequentialDetector;
use self::mapping::{Layout, Mapping, Sectors, data_pages};
use self::partition::{Bounds, Resizer};
use self::prefetching::BATCH;
use self::replacer::{Kind, Replacer};
use self::tracker::WorkloadTracker;
use super::{Adaptation, Metrics, Scheme, Shape, ratio};
use crate::media::{Cause, Media};
use crate::model::cleaning::{CleaningCost, FlashCosts, VictimUtilisation};
use crate::model::opfcl::{CacheCost, DiskCosts};
use crate::region::Space;
use crate::request::{Op, Request};
use crate::units::{Geometry, RegionId};

/// The size chosen for the read cache.
pub const READ_LIMIT: Adaptation = Adaptation {
    metric: "read_limit_mib",
    title: "Read cache",
    unit: "MiB",
    meaning: "Clean pages that the cost model allows.",
};

/// The size chosen for the write cache.
pub const WRITE_LIMIT: Adaptation = Adaptation {
    metric: "write_limit_mib",
    title: "Write cache",
    unit: "MiB",
    meaning: "Dirty pages that the cost model allows; more of them are destaged to the disks.",
};

/// The current spare area.
pub const SPARE: Adaptation = Adaptation {
    metric: "over_provisioned_mib",
    title: "Over-provisioned space",
    unit: "MiB",
    meaning: "Flash without data: the more, the fewer pages garbage collection copies.",
};

/// The cache's region: the device's only one.
const REGION: RegionId = RegionId(0);

/// Largest number of pages that are destaged together.
const DESTAGE_GROUP_MAX: usize = 256;

/// Segments of the hit-rate curves. The lower limit is for small devices; the upper one bounds Algorithm 1, which tries
/// the square of their number.
const SEGMENTS: RangeInclusive<u64> = 16..=256;

/// Dirty pages beyond the write cache's limit that leave it with each request, on average, without idle time: 256 MiB
/// of pages of 4 KiB in a period, as in the authors' code.
const EXCESS_PAGES_PER_REQUEST: u32 = 1;

/// Counters since the start, in pages unless the name says otherwise.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Counts {
    requests: u64,
    sequential_requests: u64,
    reads: u64,
    /// Read hits by [`Kind`].
    read_hits: [u64; 2],
    writes: u64,
    write_hits: u64,
    fetched: u64,
    /// Pages completed from the disk.
    completed: u64,
    dropped: u64,
    destaged: u64,
}

/// The state of a cache.
#[derive(Debug, Serialize, Deserialize)]
pub struct FlashCache {
    #[serde(with = "crate::save::fixed")]
    settings: CacheSettings,
    detector: SequentialDetector,
    mapping: Mapping,
    replacer: Replacer,
    capacity: Capacity,
    /// Number of dirty pages that are destaged together.
    #[serde(with = "crate::save::fixed")]
    group: u32,
    /// Requests or pages until the period ends.
    until_period: u32,
    counts: Counts,
}

/// Largest number of cached pages.
#[derive(Debug, Serialize, Deserialize)]
enum Capacity {
    /// A fixed number of pages of both kinds together.
    Fixed(#[serde(with = "crate::save::fixed")] u32),
    /// A number for each kind, chosen by the cost model.
    Partitioned(Box<Partitioned>),
}

/// A read cache and a write cache.
#[derive(Debug, Serialize, Deserialize)]
struct Partitioned {
    #[serde(with = "crate::save::fixed")]
    settings: Partitioning,
    tracker: WorkloadTracker,
    resizer: Resizer,
    /// Eviction credit of dirty pages beyond the limit.
    excess_credit: u32,
}

impl Partitioned {
    /// Adds eviction credit for dirty pages beyond the limit; returns whether a full destage group is due.
    #[inline]
    fn is_due(&mut self, pages: u32, group: u32) -> bool {
        self.excess_credit += pages;
        let is_due = self.excess_credit >= group;
        if is_due {
            self.excess_credit = 0;
        }
        is_due
    }
}

impl FlashCache {
    /// A cache in a device's region, in front of its disks.
    ///
    /// # Errors
    /// No disk, or a region that is too small, or too large to follow hit rates exactly.
    pub fn with(shape: &Shape, settings: CacheSettings) -> Result<Self, String> {
        let region = shape.regions.first().ok_or("it has no region")?;
        let flash_pages = data_pages(&region.geometry, settings.summary_pages) as u32;
        if settings.partition.is_some_and(|choices| !WorkloadTracker::holds(flash_pages, choices.sample_rate)) {
            return Err(format!("hit rates of {flash_pages} pages cannot be followed exactly; set curve to sampled"));
        }
        let layout = Layout {
            gc_free_percent: settings.gc_free_percent,
            summary_pages: settings.summary_pages,
            checkpoints: settings.checkpoint,
        };
        let mapping = Mapping::new(REGION, region.geometry, shape.logical_sectors, layout)?;
        let most = mapping.slots().capacity();
        // A group is a small part of the cache, and there is room for a group of each kind.
        let group = settings.destage_group.min(most / 16).max(1);
        if most < 2 * group {
            return Err(format!("{most} pages are too few for reads and writes; enlarge the region"));
        }
        let capacity = match settings.partition {
            None => {
                let pages = (settings.cache_percent / 100.0 * f64::from(flash_pages)) as u32;
                Capacity::Fixed(pages.clamp(group, most))
            }
            Some(choices) => {
                let segments = u64::from(flash_pages) * u64::from(region.geometry.page_bytes) / choices.segment_bytes.0;
                let steps = segments.clamp(*SEGMENTS.start(), *SEGMENTS.end()).min(u64::from(flash_pages)) as u32;
                let bounds = Bounds { most, least: group, stride: choices.resize_pages, steps };
                let (u, r) = (settings.cache_percent / 100.0, choices.read_percent / 100.0);
                let cost = cost_model(shape, &settings, choices.victim)?;
                Capacity::Partitioned(Box::new(Partitioned {
                    settings: choices,
                    tracker: WorkloadTracker::new(flash_pages, steps, choices.sample_rate),
                    resizer: Resizer::new(cost, choices.adapts_utilisation, bounds, u, r),
                    excess_credit: 0,
                }))
            }
        };
        Ok(Self {
            detector: SequentialDetector::new(settings.sequential_unit, settings.sequential_rule)?,
            replacer: Replacer::new(most, settings.partition.is_none()),
            capacity,
            mapping,
            group,
            until_period: settings.period,
            counts: Counts::default(),
            settings,
        })
    }

    /// Evicts pages until there is room for one more of a kind.
    #[inline]
    fn make_room<M: Media>(&mut self, media: &mut M, kind: Kind) {
        let is_full = match &mut self.capacity {
            Capacity::Fixed(pages) => self.replacer.all_pages() >= *pages,
            Capacity::Partitioned(caches) => {
                let (pages, limit) = (self.replacer.pages(kind), caches.resizer.limit(kind));
                // Beyond its limit the write cache shrinks gradually: a new page only replaces another one.
                pages == limit || pages > limit && (kind == Kind::Clean || caches.is_due(1, self.group))
            }
        };
        if is_full {
            self.evict(media, kind);
        }
    }

    /// A slot for a new page.
    #[inline]
    fn take<M: Media>(&mut self, media: &mut M, page: u32, kind: Kind, held: Sectors) -> u32 {
        self.make_room(media, kind);
        // Dirty pages beyond their limit may occupy slots meant for clean pages.
        while !self.mapping.has_room() {
            let clean = self.replacer.pages(Kind::Clean) > 0;
            self.evict(media, if clean { Kind::Clean } else { Kind::Dirty });
        }
        let slot = self.mapping.take(page, held);
        self.mapping.set_present(page);
        self.replacer.insert(slot, kind);
        slot
    }

    /// Evicts the least recently used page of a kind; a dirty one together with others.
    fn evict<M: Media>(&mut self, media: &mut M, kind: Kind) {
        match self.replacer.oldest(kind) {
            Some(slot) if self.replacer.kind(slot) == Kind::Clean => self.drop_clean(slot),
            _ => {
                self.destage(media, self.group);
            }
        }
    }

    /// Drops a clean page, which is also on the disk.
    #[inline]
    fn drop_clean(&mut self, slot: u32) {
        self.replacer.remove(slot);
        self.mapping.release(slot);
        self.counts.dropped += 1;
        self.prefetch_oldest();
    }

    /// Whether a destaged page stays in the cache.
    fn keeps_clean(&self) -> bool {
        match &self.capacity {
            Capacity::Fixed(_) => false,
            Capacity::Partitioned(caches) => {
                caches.settings.keep_clean && self.replacer.pages(Kind::Clean) < caches.resizer.limit(Kind::Clean)
            }
        }
    }

    /// Destages the dirty ones of the `pages` least recently used pages. Returns their number.
    fn destage<M: Media>(&mut self, media: &mut M, pages: u32) -> u32 {
        let pages = pages.min(DESTAGE_GROUP_MAX as u32);
        let page_of = |slot| (self.mapping.slots().page_of(slot), slot);
        let mut group: ArrayVec<(u32, u32), DESTAGE_GROUP_MAX> =
            self.replacer.oldest_dirty(pages).map(page_of).collect();
        group.sort_unstable_by_key(|&(page, _)| page);
        for (at, &(page, slot)) in group.iter().enumerate() {
            if at % BATCH == 0 {
                self.prefetch_destaged(&group, at);
            }
            self.replacer.remove(slot);
            let data = self.mapping.read(media, slot, Cause::MigrateDown);
            let (sector, _) = self.mapping.sectors_of(page);
            for (first, sectors) in mapping::runs(self.mapping.held(slot)) {
                media.destage(data, first, sector + u64::from(first), sectors, Cause::MigrateDown);
            }
            if self.keeps_clean() {
                self.replacer.insert(slot, Kind::Clean);
            } else {
                self.mapping.release(slot);
            }
        }
        self.counts.destaged += group.len() as u64;
        group.len() as u32
    }

    #[inline]
    fn count<M: Media>(&mut self, media: &mut M, request: &Request) {
        let elapsed = match self.settings.period_unit {
            PeriodUnit::Requests => 1,
            PeriodUnit::Pages => {
                let page = |sector| self.mapping.geometry().logical_page(sector).0;
                page(request.end() - 1) - page(request.sector) + 1
            }
        };
        let ends = elapsed >= self.until_period;
        self.until_period = if ends { self.settings.period } else { self.until_period - elapsed };
        if ends {
            self.mapping.begin_checkpoint();
        }
        if let Capacity::Partitioned(caches) = &mut self.capacity {
            if ends {
                caches.resizer.choose(&caches.tracker, caches.settings.rates);
                caches.tracker.end_period(caches.settings.curve_keep);
            }
            caches.resizer.advance();
            self.shrink(media);
        }
        self.mapping.write_checkpoint(media, 1);
    }

    /// Number of dirty pages beyond their limit.
    #[inline]
    fn excess(&self) -> u32 {
        match &self.capacity {
            Capacity::Fixed(_) => 0,
            Capacity::Partitioned(caches) => {
                self.replacer.pages(Kind::Dirty).saturating_sub(caches.resizer.limit(Kind::Dirty))
            }
        }
    }

    /// Drops clean pages beyond their limit, and destages dirty ones gradually.
    #[inline]
    fn shrink<M: Media>(&mut self, media: &mut M) {
        let excess = self.excess();
        let Capacity::Partitioned(caches) = &mut self.capacity else { return };
        let group = self.group;
        let due = excess > 0 && caches.is_due(EXCESS_PAGES_PER_REQUEST, group);
        let clean_limit = caches.resizer.limit(Kind::Clean);
        while self.replacer.pages(Kind::Clean) > clean_limit {
            self.evict(media, Kind::Clean);
        }
        if due {
            self.destage(media, excess.min(group));
        }
    }
}

impl<M: Media> Scheme<M> for FlashCache {
    /// All data are on the disk: the paper starts with an empty cache.
    fn fill(&mut self, _media: &mut M) {
        self.mapping.set_all_present();
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        if request.op == Op::Trim {
            self.trim(request);
            return;
        }
        self.counts.requests += 1;
        match (request.op, self.detector.is_sequential(request)) {
            (Op::Read, false) => self.read(media, request),
            (_, false) => self.write(media, request),
            (op, true) => {
                self.counts.sequential_requests += 1;
                match op {
                    Op::Read => self.read_past(media, request),
                    _ => self.write_past(media, request),
                }
            }
        }
        self.count(media, request);
    }

    #[inline]
    fn prefetch(&self, far: &Request, near: &Request) {
        let geometry = self.mapping.geometry();
        // The pages of a request are scattered in the index.
        for page in geometry.division().pages_ahead(far) {
            self.mapping.prefetch_entry(page);
            if let Capacity::Partitioned(caches) = &self.capacity {
                caches.tracker.prefetch(page);
            }
        }
        for page in geometry.division().pages_ahead(near) {
            self.mapping.prefetch_slot(page);
        }
    }

    fn idle(&mut self, media: &mut M, budget_pages: u32) {
        let destaged = match self.excess() {
            0 => 0,
            excess => self.destage(media, excess.min(budget_pages)),
        };
        self.mapping.write_checkpoint(media, budget_pages.saturating_sub(destaged));
    }

    fn metrics(&self, metrics: &mut Metrics) {
        let counts = &self.counts;
        let mib = |pages: f64| pages * f64::from(self.mapping.geometry().page_bytes) / f64::from(1 << 20);
        let pages = |kind| f64::from(self.replacer.pages(kind));
        let flash = data_pages(self.mapping.geometry(), self.settings.summary_pages) as f64;
        let cached = f64::from(self.replacer.all_pages());
        let [clean_hits, dirty_hits] = counts.read_hits;
        let hits = clean_hits + dirty_hits;
        metrics.push("utilisation", cached / flash);
        metrics.push("clean_mib", mib(pages(Kind::Clean)));
        metrics.push("dirty_mib", mib(pages(Kind::Dirty)));
        metrics.push(SPARE.metric, mib(flash - cached));
        metrics.push("read_hit_rate", ratio(hits, counts.reads));
        metrics.push("write_hit_rate", ratio(counts.write_hits, counts.writes));
        metrics.push("hit_rate", ratio(hits + counts.write_hits, counts.reads + counts.writes));
        metrics.push("read_share_of_dirty_hits", ratio(dirty_hits, dirty_hits + counts.write_hits));
        metrics.push("sequential_ratio", ratio(counts.sequential_requests, counts.requests));
        metrics.count("fetched_pages", counts.fetched);
        metrics.count("completed_pages", counts.completed);
        metrics.count("dropped_pages", counts.dropped);
        metrics.count("destaged_pages", counts.destaged);
        metrics.count("gc_blocks", self.mapping.slots().space().erases());
        metrics.count("gc_copied_pages", self.mapping.slots().space().copied_pages());
        metrics.count("metadata_bytes", self.mapping.metadata_bytes() + self.replacer.metadata_bytes());
        if let Capacity::Partitioned(caches) = &self.capacity {
            let chosen = caches.resizer.chosen();
            let limit = |kind| mib(f64::from(caches.resizer.limit(kind)));
            metrics.push("chosen_utilisation", chosen.utilisation);
            metrics.push("chosen_read_share", chosen.read_share);
            metrics.push("model_access_us", chosen.access_us);
            metrics.push(READ_LIMIT.metric, limit(Kind::Clean));
            metrics.push(WRITE_LIMIT.metric, limit(Kind::Dirty));
            metrics.count("tracker_bytes", caches.tracker.bytes());
        }
    }

    fn check(&self) -> Result<(), String> {
        self.mapping.check()?;
        self.replacer.check()?;
        let mut slots = 0..self.mapping.slots().capacity();
        if let Some(slot) = slots.find(|&slot| self.replacer.contains(slot) != self.mapping.slots().is_taken(slot)) {
            return Err(format!("slot {slot} is listed and free, or taken and not listed"));
        }
        if self.replacer.all_pages() != self.mapping.slots().used() {
            let (listed, cached) = (self.replacer.all_pages(), self.mapping.slots().used());
            return Err(format!("{listed} pages are listed and {cached} cached"));
        }
        match &self.capacity {
            Capacity::Fixed(pages) if self.replacer.all_pages() > *pages => {
                Err(format!("{} pages are cached, beyond {pages}", self.replacer.all_pages()))
            }
            Capacity::Fixed(_) => Ok(()),
            Capacity::Partitioned(caches) => {
                caches.resizer.check()?;
                caches.tracker.check()
            }
        }
    }
}

/// The cost model of a cache on a device. All disks are assumed to be like the first.
fn cost_model(shape: &Shape, settings: &CacheSettings, victim: VictimUtilisation) -> Result<CacheCost, String> {
    let region = shape.regions.first().ok_or("it has no region")?;
    let disk = shape.disks.first().ok_or("it has no home disk; add a [[disk]]")?;
    let Geometry { page_bytes, pages_per_block, .. } = region.geometry;
    let costs = FlashCosts {
        pages_per_block: pages_per_block - u32::from(settings.summary_pages),
        ..FlashCosts::of(&region.chip)
    };
    let disk = DiskCosts {
        read_position_us: disk.read_position_us,
        write_position_us: disk.write_position_us,
        mb_per_s: disk.mb_per_s,
    };
    Ok(CacheCost {
        flash: CleaningCost::new(costs, victim),
        disk_read_us: disk.read_us(page_bytes),
        disk_write_us: disk.write_us(page_bytes),
        flash_pages: data_pages(&region.geometry, settings.summary_pages) as f64,
    })
}
