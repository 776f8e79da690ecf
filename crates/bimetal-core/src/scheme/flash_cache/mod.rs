//! A flash cache in front of home disks: what `opfcl`, `rwfcl` and `fpfcl` share.
//!
//! Oh, Choi, Lee, Noh: *Caching less for better performance: balancing cache size and update cost of flash memory cache in
//! hybrid storage systems*, FAST 2012. In the paper's terms:
//!
//! ```text
//!  host ──▶ sequential I/O detector ──▶ page replacer ──▶ mapping manager ──▶ flash
//!                      │                     ▲   │ destage                  read cache | write cache | over-provisioned
//!                      │    workload tracker ┤   ▼
//!                      └───────────────────▶ disks    partition resizer: how much of each
//! ```
//!
//! A page of the cache is a page of flash. A read that misses reads the missing pages that follow each other with one access
//! to the disk and stages each to flash before it is answered. A write never waits for the disk to be read: of a page that
//! it covers in part, the cache holds that part. When the rest is read, it is fetched, and the page programmed again, whole.
//! When dirty pages must leave, a group of the least recently used ones goes to the disk in the order of addresses.
//!
//! Sequential requests go past the cache. They are answered from it as far as it has what they read; what they write
//! replaces what it has. Part of a page that is dirty, or that is nowhere else, is written to the cache even so.
//!
//! Departures from the paper are in `docs/papers/opfcl-2012.md`.

mod checkpoint;
mod detector;
mod mapping;
mod partition;
mod replacer;
mod tracker;

use std::ops::RangeInclusive;

use arrayvec::ArrayVec;

pub use tracker::Curve;

use self::detector::SequentialDetector;
use self::mapping::{Layout, Mapping, Place, Sectors, data_pages, merge_held, span};
use self::partition::{Bounds, Resizer};
use self::replacer::{Kind, Replacer};
use self::tracker::WorkloadTracker;
use super::space::Space;
use super::{Metrics, Scheme, Shape, ratio};
use crate::media::{Cause, Media, Part};
use crate::model::cleaning::{CleaningCost, FlashCosts, VictimUtilisation};
use crate::model::opfcl::{CacheCost, DiskCosts};
use crate::part::page_merge::PageMerge;
use crate::request::{Op, Request};
use crate::units::{ByteSize, Geometry, RegionId};

/// The cache's region: the device's only one.
const REGION: RegionId = RegionId(0);

/// Pages that are fetched with one access to the disk at most: 256 KiB of pages of 4 KiB.
const FETCH_PAGES_MAX: u32 = 64;

/// Pages of the largest group that is destaged together.
const DESTAGE_GROUP_MAX: usize = 256;

/// Segments of the hit-rate curves: at least as many on a small device, and on a large one so many that Algorithm 1, which
/// tries the square of their number, takes no time to speak of.
const SEGMENTS: RangeInclusive<u64> = 16..=256;

/// Dirty pages beyond the write cache's limit that leave it with each request, on average, where no idle time is left: 256 MiB
/// of pages of 4 KiB in a period, as in the authors' code.
const EXCESS_PAGES_PER_REQUEST: u32 = 1;

crate::choices! {
    /// What a period counts.
    pub enum PeriodUnit {
        /// Reads and writes.
        Requests = "requests",
        /// Pages that they touch.
        Pages = "pages",
    }
}

/// Choices for a cache.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Share of the flash that holds data, in percent; the first where the cost model chooses it.
    pub cache_percent: f64,
    /// Length from which on a stream of requests is sequential; 0: none is.
    pub sequential_unit: ByteSize,
    /// Dirty pages that are destaged together, at most.
    pub destage_group: u32,
    /// Blocks of a die that collection keeps erased, in percent.
    pub gc_free_percent: f64,
    /// Whether the last page of each block is its summary.
    pub summary_pages: bool,
    /// Whether the map is written as a checkpoint every period.
    pub checkpoint: bool,
    /// Length of a period.
    pub period: u32,
    /// What it counts.
    pub period_unit: PeriodUnit,
    /// How reads and writes are kept apart. If they are not, clean and dirty pages are in one order.
    pub partition: Option<Partitioning>,
}

/// Choices for a cache of reads and one of writes.
#[derive(Clone, Copy, Debug)]
pub struct Partitioning {
    /// Whether the cost model chooses the utilisation, not only the share of the read cache.
    pub adapts_utilisation: bool,
    /// Share of the read cache, in percent, until the model chooses.
    pub read_percent: f64,
    /// Size of a segment of the hit-rate curves, and of a step of Algorithm 1.
    pub segment_bytes: ByteSize,
    /// What is kept of the counts of past periods.
    pub curve_keep: f64,
    /// Share of the pages that is tracked.
    pub sample_rate: f64,
    /// How full victims of collection are taken to be.
    pub victim: VictimUtilisation,
    /// Pages by which a limit moves with a request.
    pub resize_pages: u32,
    /// Whether destaged pages stay, as clean ones, if the read cache has room.
    pub keep_clean: bool,
}

/// What happened so far, in pages where nothing else is said.
#[derive(Clone, Debug, Default)]
struct Counts {
    requests: u64,
    sequential_requests: u64,
    reads: u64,
    /// Read hits by [`Kind`].
    read_hits: [u64; 2],
    writes: u64,
    write_hits: u64,
    fetched: u64,
    /// Pages of which the rest was fetched.
    completed: u64,
    dropped: u64,
    destaged: u64,
}

/// Sectors of a page that a request touches.
#[derive(Clone, Copy, Debug)]
struct Piece {
    page: u32,
    offset: u32,
    sectors: u32,
    /// Their position in the request.
    at: u32,
}

impl Piece {
    #[inline]
    fn span(&self) -> Sectors {
        span(self.offset, self.sectors)
    }
}

/// Sectors that follow each other on the disk and in the request.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    sector: u64,
    at: u32,
    sectors: u32,
}

impl Run {
    /// Sectors that follow it come to it.
    #[inline]
    fn extend(&mut self, sector: u64, at: u32, sectors: u32) {
        if self.sectors == 0 {
            *self = Self { sector, at, sectors };
        } else {
            self.sectors += sectors;
        }
    }

    /// Takes it, if there is any.
    #[inline]
    fn take(&mut self) -> Option<Self> {
        (self.sectors > 0).then(|| std::mem::take(self))
    }
}

/// The state of a cache.
#[derive(Debug)]
pub struct FlashCache {
    settings: Settings,
    detector: SequentialDetector,
    mapping: Mapping,
    replacer: Replacer,
    capacity: Capacity,
    /// Dirty pages that are destaged together.
    group: u32,
    /// Requests or pages until the period ends.
    until_period: u32,
    counts: Counts,
}

/// Pages that may be cached.
#[derive(Debug)]
enum Capacity {
    /// So many of either kind.
    Fixed(u32),
    /// Of each kind as many as the cost model says.
    Partitioned(Box<Partitioned>),
}

/// A read cache and a write cache.
#[derive(Debug)]
struct Partitioned {
    settings: Partitioning,
    tracker: WorkloadTracker,
    resizer: Resizer,
    /// Dirty pages beyond the limit that may leave the write cache by now.
    excess_credit: u32,
}

impl Partitioned {
    /// So many more dirty pages beyond the limit may leave: whether a group may by now.
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
    /// A cache in a device's region, before its disks.
    ///
    /// # Errors
    /// No disk, or a region that is too small.
    pub fn with(shape: &Shape, settings: Settings) -> Result<Self, String> {
        let region = shape.regions.first().ok_or("it has no region")?;
        let layout = Layout {
            gc_free_percent: settings.gc_free_percent,
            summary_pages: settings.summary_pages,
            checkpoints: settings.checkpoint,
        };
        let mapping = Mapping::new(REGION, region.geometry, shape.logical_sectors, layout)?;
        let most = mapping.slots().capacity();
        // A group is a small part of the cache, and each kind of page has room for one.
        let group = settings.destage_group.min(most / 16).max(1);
        if most < 2 * group {
            return Err(format!("{most} pages are too few for reads and writes; enlarge the region"));
        }
        let flash_pages = data_pages(&region.geometry, settings.summary_pages) as u32;
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
            detector: SequentialDetector::new(settings.sequential_unit.0),
            replacer: Replacer::new(most, settings.partition.is_none()),
            capacity,
            mapping,
            group,
            until_period: settings.period,
            counts: Counts::default(),
            settings,
        })
    }

    /// Lets pages go until one more of a kind may come.
    #[inline]
    fn make_room<M: Media>(&mut self, media: &mut M, kind: Kind) {
        let is_full = match &mut self.capacity {
            Capacity::Fixed(pages) => self.replacer.all_pages() >= *pages,
            Capacity::Partitioned(caches) => {
                let (pages, limit) = (self.replacer.pages(kind), caches.resizer.limit(kind));
                // Beyond its limit the write cache shrinks by and by: a page that comes only takes the place of another.
                pages == limit || pages > limit && (kind == Kind::Clean || caches.is_due(1, self.group))
            }
        };
        if is_full {
            self.evict(media, kind);
        }
    }

    /// A slot for a page that comes.
    #[inline]
    fn take<M: Media>(&mut self, media: &mut M, page: u32, kind: Kind, held: Sectors) -> u32 {
        self.make_room(media, kind);
        // Dirty pages beyond their limit may have slots that are clean pages' by now.
        while !self.mapping.has_room() {
            let clean = self.replacer.pages(Kind::Clean) > 0;
            self.evict(media, if clean { Kind::Clean } else { Kind::Dirty });
        }
        let slot = self.mapping.take(page, held);
        self.mapping.set_present(page);
        self.replacer.insert(slot, kind);
        slot
    }

    /// The least recently used page of a kind leaves; a dirty one with others.
    fn evict<M: Media>(&mut self, media: &mut M, kind: Kind) {
        match self.replacer.oldest(kind) {
            Some(slot) if self.replacer.kind(slot) == Kind::Clean => self.drop_clean(slot),
            _ => {
                self.destage(media, self.group);
            }
        }
    }

    /// A clean page leaves: the disk has it.
    #[inline]
    fn drop_clean(&mut self, slot: u32) {
        self.replacer.remove(slot);
        self.mapping.release(slot);
        self.counts.dropped += 1;
    }

    /// Whether a page that was destaged stays.
    fn keeps_clean(&self) -> bool {
        match &self.capacity {
            Capacity::Fixed(_) => false,
            Capacity::Partitioned(caches) => {
                caches.settings.keep_clean && self.replacer.pages(Kind::Clean) < caches.resizer.limit(Kind::Clean)
            }
        }
    }

    /// Destages the dirty ones of the `pages` least recently used pages. Returns how many that were.
    fn destage<M: Media>(&mut self, media: &mut M, pages: u32) -> u32 {
        let pages = pages.min(DESTAGE_GROUP_MAX as u32);
        let page_of = |slot| (self.mapping.slots().page_of(slot), slot);
        let mut group: ArrayVec<(u32, u32), DESTAGE_GROUP_MAX> =
            self.replacer.oldest_dirty(pages).map(page_of).collect();
        group.sort_unstable();
        for &(page, slot) in &group {
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

    /// Reads pages from the disk for the host and stages them.
    fn stage<M: Media>(&mut self, media: &mut M, run: Run) {
        let (first, offset) = self.mapping.geometry().logical_page(run.sector);
        let (last, _) = self.mapping.geometry().logical_page(run.sector + u64::from(run.sectors) - 1);
        let (sector, _) = self.mapping.sectors_of(first);
        let (last_sector, last_sectors) = self.mapping.sectors_of(last);
        let sectors = (last_sector - sector) as u32 + last_sectors;
        let data = media.fetch(sector, sectors, Cause::MigrateUp);
        media.deliver(data, offset, run.at, run.sectors);
        let page_sectors = self.mapping.geometry().page_sectors();
        for page in first..=last {
            let (_, sectors) = self.mapping.sectors_of(page);
            let slot = self.take(media, page, Kind::Clean, span(0, sectors));
            let part = Part { data, from: (page - first) * page_sectors, to: 0, sectors };
            self.mapping.write(media, slot, &[part], Cause::MigrateUp);
            self.counts.fetched += 1;
        }
    }

    fn read<M: Media>(&mut self, media: &mut M, request: &Request) {
        let geometry = *self.mapping.geometry();
        let mut missing = Run::default();
        let fetch_sectors = (FETCH_PAGES_MAX - 1) * geometry.page_sectors();
        geometry.for_each_page(request, |page, offset, sectors, at| {
            if let Capacity::Partitioned(caches) = &mut self.capacity {
                caches.tracker.read(page);
            }
            self.counts.reads += 1;
            let piece = Piece { page, offset, sectors, at };
            if missing.sectors > 0 && (missing.sectors > fetch_sectors || self.mapping.find(page) != Place::Disk) {
                // What it stages may take the place of this page.
                missing.take().into_iter().for_each(|run| self.stage(media, run));
            }
            match self.mapping.find(page) {
                Place::Cached(slot) => self.read_cached(media, slot, piece),
                Place::Disk => missing.extend(request.sector + u64::from(at), at, sectors),
                Place::Absent => media.deliver_zeros(at, sectors),
            }
        });
        missing.take().into_iter().for_each(|run| self.stage(media, run));
    }

    /// Reads sectors of a cached page. If any are missing, the page is completed from the disk.
    #[inline]
    fn read_cached<M: Media>(&mut self, media: &mut M, slot: u32, piece: Piece) {
        self.counts.read_hits[self.replacer.kind(slot) as usize] += 1;
        self.replacer.touch(slot);
        let held = self.mapping.held(slot);
        let data = self.mapping.read(media, slot, Cause::Host);
        if piece.span() & !held == 0 {
            media.deliver(data, piece.offset, piece.at, piece.sectors);
        } else {
            self.complete(media, slot, data, piece);
        }
    }

    /// Fetches what is missing of a cached page, which was read as `data`, delivers a piece of it and programs it again.
    fn complete<M: Media>(&mut self, media: &mut M, slot: u32, data: M::Data, piece: Piece) {
        let (sector, sectors) = self.mapping.sectors_of(piece.page);
        let fetched = media.fetch(sector, sectors, Cause::MigrateUp);
        let mut merge = PageMerge::default();
        merge_held(&mut merge, data, self.mapping.held(slot));
        merge.fill(fetched, 0, 0, sectors);
        for part in merge.parts() {
            let first = part.to.max(piece.offset);
            let end = (part.to + part.sectors).min(piece.offset + piece.sectors);
            if first < end {
                media.deliver(part.data, part.from + first - part.to, piece.at + first - piece.offset, end - first);
            }
        }
        self.mapping.write(media, slot, merge.parts(), Cause::MigrateUp);
        self.mapping.hold(slot, span(0, sectors));
        self.counts.completed += 1;
    }

    fn write<M: Media>(&mut self, media: &mut M, request: &Request) {
        let geometry = *self.mapping.geometry();
        geometry.for_each_page(request, |page, offset, sectors, at| {
            if let Capacity::Partitioned(caches) = &mut self.capacity {
                caches.tracker.write(page);
            }
            self.write_page(media, Piece { page, offset, sectors, at });
        });
    }

    /// Writes sectors of a page to the cache.
    #[inline]
    fn write_page<M: Media>(&mut self, media: &mut M, piece: Piece) {
        let host = Part { data: media.host(), from: piece.at, to: piece.offset, sectors: piece.sectors };
        self.counts.writes += 1;
        match self.mapping.find(piece.page) {
            Place::Cached(slot) => self.update(media, slot, piece, host),
            place => {
                // Of a page that is nowhere, nothing need ever be fetched: the rest of it is undefined from now on.
                let (_, sectors) = self.mapping.sectors_of(piece.page);
                let held = if place == Place::Absent { span(0, sectors) } else { piece.span() };
                let slot = self.take(media, piece.page, Kind::Dirty, held);
                self.mapping.write(media, slot, &[host], Cause::Host);
            }
        }
    }

    /// Writes sectors of a cached page. What else the cache holds of it is read and programmed again.
    #[inline]
    fn update<M: Media>(&mut self, media: &mut M, slot: u32, piece: Piece, host: Part<M::Data>) {
        let mut merge = PageMerge::default();
        merge.fill(host.data, host.from, host.to, host.sectors);
        let kept = self.mapping.held(slot) & !piece.span();
        if kept != 0 {
            let data = self.mapping.read(media, slot, Cause::Host);
            merge_held(&mut merge, data, kept);
        }
        if self.replacer.kind(slot) == Kind::Dirty {
            self.replacer.touch(slot);
            self.counts.write_hits += 1;
        } else {
            // A clean page leaves the read cache for the write cache, which it misses; a cache of both kinds has it.
            self.replacer.remove(slot);
            if self.replacer.is_unified() {
                self.counts.write_hits += 1;
            } else {
                self.make_room(media, Kind::Dirty);
            }
            self.replacer.insert(slot, Kind::Dirty);
        }
        self.mapping.hold(slot, piece.span());
        self.mapping.write(media, slot, merge.parts(), Cause::Host);
    }

    /// Reads past the cache: from it as far as it holds what is read, the rest from the disk.
    fn read_past<M: Media>(&mut self, media: &mut M, request: &Request) {
        let geometry = *self.mapping.geometry();
        let mut run = Run::default();
        geometry.for_each_page(request, |page, offset, sectors, at| {
            let piece = Piece { page, offset, sectors, at };
            let held = match self.mapping.find(page) {
                Place::Cached(slot) => self.mapping.held(slot) & piece.span(),
                Place::Disk => 0,
                Place::Absent => {
                    read_run(media, &mut run);
                    media.deliver_zeros(at, sectors);
                    return;
                }
            };
            let data = match self.mapping.find(page) {
                Place::Cached(slot) if held != 0 => Some(self.mapping.read(media, slot, Cause::Host)),
                _ => None,
            };
            // Runs of sectors that are held and of those that are not, in turn.
            let mut done = 0;
            while done < sectors {
                let rest = held >> (offset + done);
                let (in_flash, length) = match rest.trailing_ones() {
                    0 => (None, rest.trailing_zeros()),
                    ones => (data, ones),
                };
                let length = length.min(sectors - done);
                if let Some(data) = in_flash {
                    read_run(media, &mut run);
                    media.deliver(data, offset + done, at + done, length);
                } else {
                    run.extend(request.sector + u64::from(at + done), at + done, length);
                }
                done += length;
            }
        });
        read_run(media, &mut run);
    }

    /// Writes past the cache. Part of a page goes there all the same if the rest of it is dirty or nowhere.
    fn write_past<M: Media>(&mut self, media: &mut M, request: &Request) {
        let geometry = *self.mapping.geometry();
        let mut run = Run::default();
        geometry.for_each_page(request, |page, offset, sectors, at| {
            let piece = Piece { page, offset, sectors, at };
            let whole = sectors == self.mapping.sectors_of(page).1;
            let place = self.mapping.find(page);
            let to_cache = match place {
                _ if whole => false,
                Place::Cached(slot) => self.replacer.kind(slot) == Kind::Dirty,
                Place::Disk => false,
                Place::Absent => true,
            };
            if to_cache {
                write_run(media, &mut run);
                self.write_page(media, piece);
                return;
            }
            if let Place::Cached(slot) = place {
                self.replacer.remove(slot);
                self.mapping.release(slot);
            }
            self.mapping.set_present(page);
            run.extend(request.sector + u64::from(at), at, sectors);
        });
        write_run(media, &mut run);
    }

    /// Forgets whole pages.
    fn trim(&mut self, request: &Request) {
        let geometry = *self.mapping.geometry();
        geometry.for_each_page(request, |page, _, sectors, _| {
            if sectors == self.mapping.sectors_of(page).1 {
                if let Place::Cached(slot) = self.mapping.find(page) {
                    self.replacer.remove(slot);
                    self.mapping.release(slot);
                }
                self.mapping.set_absent(page);
            }
        });
    }

    /// Counts a request towards the period, and does what comes with its end.
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
                caches.resizer.choose(&caches.tracker);
                caches.tracker.end_period(caches.settings.curve_keep);
            }
            caches.resizer.advance();
            self.shrink(media);
        }
        self.mapping.write_checkpoint(media, 1);
    }

    /// Dirty pages beyond their limit.
    #[inline]
    fn excess(&self) -> u32 {
        match &self.capacity {
            Capacity::Fixed(_) => 0,
            Capacity::Partitioned(caches) => {
                self.replacer.pages(Kind::Dirty).saturating_sub(caches.resizer.limit(Kind::Dirty))
            }
        }
    }

    /// Drops clean pages beyond their limit, and destages dirty ones by and by.
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

/// Reads a run from the disk for the host, if there is any.
#[inline]
fn read_run<M: Media>(media: &mut M, run: &mut Run) {
    if let Some(run) = run.take() {
        media.disk_read(run.sector, run.at, run.sectors);
    }
}

/// Writes a run of the host's request to the disk, if there is any.
#[inline]
fn write_run<M: Media>(media: &mut M, run: &mut Run) {
    if let Some(run) = run.take() {
        media.disk_write(run.sector, run.at, run.sectors);
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
        let (far, _) = geometry.logical_page(far.sector);
        self.mapping.prefetch_entry(far);
        if let Capacity::Partitioned(caches) = &self.capacity {
            caches.tracker.prefetch(far);
        }
        let (near, _) = geometry.logical_page(near.sector);
        self.mapping.prefetch_slot(near);
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
        metrics.push("over_provisioned_mib", mib(flash - cached));
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
            metrics.push("read_limit_mib", limit(Kind::Clean));
            metrics.push("write_limit_mib", limit(Kind::Dirty));
            metrics.count("tracker_bytes", caches.tracker.bytes());
        }
    }

    fn check(&self) -> Result<(), String> {
        self.mapping.check()?;
        self.replacer.check()?;
        if self.replacer.all_pages() != self.mapping.slots().used() {
            let (listed, cached) = (self.replacer.all_pages(), self.mapping.slots().used());
            return Err(format!("{listed} pages are listed and {cached} cached"));
        }
        match &self.capacity {
            Capacity::Fixed(pages) if self.replacer.all_pages() > *pages => {
                Err(format!("{} pages are cached, beyond {pages}", self.replacer.all_pages()))
            }
            Capacity::Fixed(_) => Ok(()),
            Capacity::Partitioned(caches) => caches.resizer.check(),
        }
    }
}

/// The cost model of a cache on a device. All disks are taken to be as the first.
fn cost_model(shape: &Shape, settings: &Settings, victim: VictimUtilisation) -> Result<CacheCost, String> {
    let region = shape.regions.first().ok_or("it has no region")?;
    let disk = shape.disks.first().ok_or("it has no disk to be the home of its data")?;
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
