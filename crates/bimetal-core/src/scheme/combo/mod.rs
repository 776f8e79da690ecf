//! Common base of `comboftl` and its baselines: a log of fast pages in a hot and a warm partition in front of a page-mapped
//! region (Im and Shin, *`ComboFTL`: Improving performance and lifespan of MLC flash memory using SLC flash buffer*, Journal
//! of Systems Architecture 56, 2010).
//!
//! ```text
//! write ─▶ small, or its unit is hot ─▶ hot partition ─tail─▶ warm partition ─tail─▶ slow region
//!              │ neither                  ▲ head                  ▲    │ chances left
//!              ▼                          └─ update ──────────────┤    │
//!          slow region                                            └────┘
//! ```
//!
//! Small writes go to the log: those up to the [`threshold`] θ, which follows the traffic from the log to the slow
//! region (§3.2). Valid data at the hot partition's tail move to the warm one, and there back to its head while they
//! have [`chances`] (§4.1, §4.2); data that were never updated there leave half-way (§4.3). Large writes go to the log,
//! too, if their data are written often ([`detection`], §5.2). The [`partitions`] exchange blocks for even wear.
//!
//! Where the paper is silent or contradicts itself, `docs/papers/comboftl-2010.md` gives the reading.

pub mod chances;
pub mod detection;
mod partitions;
mod reclaim;
pub mod threshold;

use serde::{Deserialize, Serialize};

pub use partitions::Partition;
pub use reclaim::{HotTail, StayingTime};

use super::space::{MappedSpace, SlowRegion};
use super::tiered::{FastTier, Run, THRESHOLD, Tiers, unit_bytes};
use super::{Adaptation, Metrics, Scheme, Shape, ratio};
use crate::media::{Cause, CellMode, Media};
use crate::region::Space;
use crate::request::{Op, Request};
use crate::save::Table;
use crate::units::{BlockId, RegionId};
use chances::{Chances, State};
use detection::{Detection, Granularity, HotHits};
use partitions::Partitions;
use reclaim::ValidShares;
use threshold::{Mode, Threshold};

/// Data demoted in a period (section 3.2).
pub const MIGRATION_RATIO: Adaptation = Adaptation {
    metric: "migration_ratio",
    title: "Migration ratio φ",
    unit: "share of the SLC capacity",
    meaning: "Data that the log moved to the slow region in the last period; the threshold θ keeps it near its target.",
};

/// The number of chances (section 4.2).
pub const CHANCES: Adaptation = Adaptation {
    metric: "chances",
    title: "Chances N",
    unit: "laps",
    meaning: "Laps of the warm partition that data get before they go to the slow region.",
};

/// The bound of the detection of hot data (section 5.2).
pub const HOT_THRESHOLD: Adaptation = Adaptation {
    metric: "hot_threshold",
    title: "Threshold of hot data δ",
    unit: "page writes to a unit",
    meaning: "A unit of the slow region that is written more often is hot: its data go to the log, whatever the size of the write.",
};

crate::choices! {
    /// Handling of the warm bit of a unit that is updated in the hot partition.
    pub enum WarmBit {
        /// It stays: a unit that is updated even sooner is not colder.
        Keep = "keep",
        /// It is cleared, as printed, like at every write from elsewhere.
        Reset = "reset",
    }
}

/// How a scheme uses the log.
#[derive(Clone, Debug)]
pub struct ComboSettings {
    /// Which writes are small.
    pub threshold: Threshold,
    /// Policy at the hot partition's tail.
    pub hot_tail: HotTail,
    /// Chances in the warm partition.
    pub chances: chances::ChanceSettings,
    /// Handling of the warm bit of data updated in the hot partition.
    pub warm_bit: WarmBit,
    /// Blocks of the hot partition, in percent of the fast region; 100 without a warm one.
    pub hot_percent: u32,
    /// Whether the partitions exchange blocks to even out their wear.
    pub boundary_shift: bool,
    /// Hot data in the slow region.
    pub detection: detection::DetectionSettings,
    /// Formula for the stay of a cold page in the log.
    pub staying_time: StayingTime,
}

impl ComboSettings {
    /// One ring whose tail is demoted, for writes up to `threshold`, and no detection (CLOCK: table 4, "Baseline").
    pub fn clock(threshold: Threshold) -> Self {
        Self {
            threshold,
            hot_tail: HotTail::Leaves,
            chances: chances::ChanceSettings {
                mode: Mode::Fixed,
                start: 0,
                window: 0,
                low: 0.0,
                high: 1.0,
                early_migration: false,
            },
            warm_bit: WarmBit::Keep,
            hot_percent: 100,
            boundary_shift: false,
            detection: detection::DetectionSettings {
                granularity: Granularity::None,
                hits: HotHits::Units,
                low: 0.0,
                high: 1.0,
            },
            staying_time: StayingTime::Corrected,
        }
    }
}

/// Counters since the start.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counts {
    /// Programs by source and destination of the data: the six categories of Fig. 10 except the slow region's
    /// collection.
    slc_pages: u64,
    mlc_to_slc_pages: u64,
    slc_to_slc_pages: u64,
    mlc_pages: u64,
    slc_to_mlc_pages: u64,
    /// Mapping units written to the log, and the number of them that were there before.
    log_units: u64,
    updated_units: u64,
    /// Demoted mapping units.
    demoted_units: u64,
}

/// Counters of the current adjustment period, in which the host writes as many bytes as the fast region has (§3.2).
#[derive(Debug, Serialize, Deserialize)]
struct Period {
    sectors: u64,
    written_sectors: u64,
    moved_units: u64,
    /// Migration ratio of the last period, and the number of periods.
    migration_ratio: f64,
    passed: u64,
}

/// The state.
#[derive(Debug, Serialize, Deserialize)]
pub struct Combo {
    tiers: Tiers<MappedSpace>,
    partitions: Partitions,
    /// State of the unit in each slot.
    states: Table<State>,
    threshold: Threshold,
    #[serde(with = "crate::save::fixed")]
    hot_tail: HotTail,
    chances: Chances,
    detection: Detection,
    period: Period,
    valid_shares: ValidShares,
    #[serde(with = "crate::save::fixed")]
    staying_time: StayingTime,
    /// Sectors that the host has written since the detection's counters were halved.
    since_decay: u64,
    /// The decay period (§5.2): the stay of a cold page in the log, in sectors written by the host.
    decay_sectors: u64,
    #[serde(with = "crate::save::fixed")]
    warm_bit: WarmBit,
    counts: Counts,
}

impl Combo {
    /// A scheme with its log in the device's first region, in front of its last, `slow`.
    ///
    /// # Errors
    /// Too few blocks in either region.
    pub fn new(shape: &Shape, slow: &SlowRegion, settings: &ComboSettings) -> Result<Self, String> {
        let [fast, .., _] = shape.regions.as_slice() else { return Err("it needs a fast and a slow region".into()) };
        let unit_blocks = slow.unit_blocks();
        let slow = slow.space()?;
        let geometry = fast.geometry;
        let unit_bytes = unit_bytes(geometry.page_bytes, slow.geometry().page_bytes);
        let page_units = slow.geometry().page_bytes / unit_bytes;
        let pages_per_block = geometry.pages_per_block;
        let tier = FastTier::new(RegionId(0), geometry, (CellMode::Native, pages_per_block), unit_bytes)?;
        let partitions =
            Partitions::new(geometry.blocks, settings.hot_percent, pages_per_block, settings.boundary_shift)?;
        let unit_pages = unit_blocks.saturating_mul(slow.geometry().pages_per_block).min(slow.logical_pages());
        let valid_shares = ValidShares::new(pages_per_block);
        let mut combo = Self {
            states: vec![State::default(); tier.slots().len()].into(),
            detection: Detection::new(settings.detection, unit_pages, slow.logical_pages(), page_units),
            tiers: Tiers::new(tier, slow)?,
            partitions,
            threshold: settings.threshold,
            hot_tail: settings.hot_tail,
            chances: Chances::new(settings.chances),
            period: Period {
                sectors: geometry.capacity_bytes() / 512,
                written_sectors: 0,
                moved_units: 0,
                migration_ratio: 0.0,
                passed: 0,
            },
            valid_shares,
            staying_time: settings.staying_time,
            since_decay: 0,
            decay_sectors: 0,
            warm_bit: settings.warm_bit,
            counts: Counts::default(),
        };
        combo.decay_sectors = combo.staying_sectors();
        Ok(combo)
    }

    /// Pages written to the hot partition while a cold page is in the log.
    fn staying_pages(&self) -> u64 {
        let blocks = [Partition::Hot, Partition::Warm].map(|partition| self.partitions.blocks(partition));
        self.valid_shares.staying_time(self.staying_time, self.chances.chances(), blocks)
    }

    fn staying_sectors(&self) -> u64 {
        self.staying_pages() * u64::from(self.tiers.fast.slots().geometry().page_sectors())
    }

    fn write<M: Media>(&mut self, media: &mut M, request: &Request) {
        let unit_sectors = self.tiers.fast.unit_sectors();
        let mut run = Run::whole(self.tiers.units(), request);
        if self.threshold.admits(request.sectors) {
            self.write_log(media, run, Cause::Host);
        } else {
            let group = self.detection.group();
            while let Some(piece) = run.take_group(group, unit_sectors) {
                if self.detection.is_hot(piece.unit / group) {
                    self.write_log(media, piece, Cause::MigrateUp);
                } else {
                    self.write_slow(media, piece);
                }
            }
        }
        let written = u64::from(request.sectors);
        self.since_decay += written;
        if self.since_decay >= self.decay_sectors {
            self.detection.decay();
            self.since_decay = 0;
        }
        self.period.written_sectors += written;
        if self.period.written_sectors >= self.period.sectors {
            self.close_period();
        }
    }

    /// Writes host data to the hot partition.
    fn write_log<M: Media>(&mut self, media: &mut M, mut run: Run, cause: Cause) {
        let unit_sectors = self.tiers.fast.unit_sectors();
        let group = if self.detection.follows_log() { self.detection.group() } else { u32::MAX };
        while let Some(mut part) = run.take_group(group, unit_sectors) {
            while let Some(piece) = part.take(self.tiers.fast.units_per_page(), unit_sectors) {
                self.write_log_page(media, &piece, cause);
            }
        }
    }

    /// Writes up to a page of host data to the hot partition.
    #[inline]
    fn write_log_page<M: Media>(&mut self, media: &mut M, piece: &Run, cause: Cause) {
        let page = self.hot_page(media);
        let first = self.tiers.fast.slots().first_slot(page) as usize;
        let mut updated = 0;
        for index in 0..piece.count {
            let state = match self.tiers.slot(piece.unit + index) {
                None => State::hot(false, false),
                Some(old) => {
                    updated += 1;
                    self.updated_state(self.states[old as usize])
                }
            };
            self.states[first + index as usize] = state;
        }
        self.tiers.write_fast(media, piece, page, cause);
        self.counts.log_units += u64::from(piece.count);
        self.counts.updated_units += u64::from(updated);
        match cause {
            Cause::MigrateUp => self.counts.mlc_to_slc_pages += 1,
            _ => self.counts.slc_pages += 1,
        }
        if self.detection.follows_log() {
            self.detection.note_log_write(piece.unit, piece.count, updated);
        }
    }

    /// State of a logged unit after an update.
    #[inline]
    fn updated_state(&mut self, old: State) -> State {
        if old.is_in_warm() {
            self.chances.note_updated(old);
            State::hot(true, false)
        } else {
            State::hot(old.is_warm() && self.warm_bit == WarmBit::Keep, true)
        }
    }

    /// Writes host data of one group to the slow region; copies in the log are superseded.
    fn write_slow<M: Media>(&mut self, media: &mut M, mut run: Run) {
        let unit_sectors = self.tiers.fast.unit_sectors();
        if self.detection.follows_log() {
            self.detection.note_left(run.unit, self.in_log(run.unit..run.unit + run.count));
        }
        while let Some(piece) = run.take_group(self.tiers.units_per_slow_page(), unit_sectors) {
            let page = self.tiers.slow_page(piece.unit);
            self.detection.note_slow_write(page, self.tiers.slow.lookup(page).is_some());
            self.tiers.write_slow(media, &piece, Cause::Host);
            self.counts.mlc_pages += 1;
        }
    }

    /// Number of these units that are in the log.
    fn in_log(&self, units: std::ops::Range<u32>) -> u32 {
        self.tiers.count_in_log(units.start, units.end - units.start)
    }

    /// Ends an adjustment period: all adaptive parts adapt.
    #[cold]
    fn close_period(&mut self) {
        let unit_sectors = u64::from(self.tiers.fast.unit_sectors());
        self.period.migration_ratio = ratio(self.period.moved_units * unit_sectors, self.period.sectors);
        (self.period.written_sectors, self.period.moved_units) = (0, 0);
        self.period.passed += 1;
        self.threshold.adapt(self.period.migration_ratio);
        self.chances.adapt();
        self.detection.adapt();
        self.valid_shares.close_period();
        self.decay_sectors = self.staying_sectors();
    }

    fn trim(&mut self, request: &Request) {
        if !self.detection.follows_log() {
            self.tiers.trim(request);
            return;
        }
        let group = self.detection.group();
        let whole = Run::whole(self.tiers.units(), request);
        let unit_sectors = self.tiers.fast.unit_sectors();
        let mut run = whole;
        while let Some(piece) = run.take_group(group, unit_sectors) {
            self.detection.note_left(piece.unit, self.in_log(piece.unit..piece.unit + piece.count));
        }
        self.tiers.trim(request);
        let mut run = whole;
        while let Some(piece) = run.take_group(group, unit_sectors) {
            self.detection.note_log_write(piece.unit, self.in_log(piece.unit..piece.unit + piece.count), 0);
        }
    }

    fn written(&self) -> impl Iterator<Item = (BlockId, u32)> + '_ {
        self.partitions.written(Partition::Hot).chain(self.partitions.written(Partition::Warm))
    }

    /// Checks that the recorded partition of each unit in the log is right.
    fn check_states(&self) -> Result<(), String> {
        let slots = self.tiers.fast.slots();
        for partition in [Partition::Hot, Partition::Warm] {
            for (block, pages) in self.partitions.written(partition) {
                for page in 0..pages {
                    let first = slots.first_slot(slots.geometry().ppa(block, page));
                    for slot in (first..first + slots.slots()).filter(|&slot| slots.unit(slot).is_some()) {
                        let state = self.states[slot as usize];
                        if state.is_in_warm() != (partition == Partition::Warm) || state.used() > chances::CHANCES_MAX {
                            return Err(format!(
                                "a unit in block {} of the {partition:?} partition is {state:?}",
                                block.0
                            ));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl<M: Media> Scheme<M> for Combo {
    fn fill(&mut self, media: &mut M) {
        self.tiers.fill(media);
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        match request.op {
            Op::Read => self.tiers.read(media, request),
            Op::Write => self.write(media, request),
            Op::Trim => self.trim(request),
        }
    }

    #[inline]
    fn prefetch(&self, far: &Request, near: &Request) {
        self.tiers.prefetch(far, near);
    }

    fn metrics(&self, metrics: &mut Metrics) {
        let Self { counts, chances, detection, period, .. } = self;
        if let Some(kib) = self.threshold.kib() {
            metrics.push(THRESHOLD.metric, kib);
        }
        metrics.count("adjustments", period.passed);
        metrics.push(MIGRATION_RATIO.metric, period.migration_ratio);
        if self.hot_tail != HotTail::Leaves {
            metrics.count(CHANCES.metric, u64::from(chances.chances()));
            for (name, set) in [("phi_w0", 0), ("phi_w1", 1), ("phi_w2", 2), ("phi_w3", 3), ("phi_w4", 4)] {
                metrics.push(name, chances.ratio(set).unwrap_or(0.0));
            }
            metrics.push("phi_wn", chances.last_ratio().unwrap_or(0.0));
            let (entered, updated) = chances.totals();
            metrics.count("warm_entered_units", entered);
            metrics.count("warm_updated_units", updated);
            metrics.count("staying_time_pages", self.staying_pages());
            metrics.count("boundary_shifts", self.partitions.shifts());
            metrics.count("hot_erases", self.partitions.erases(Partition::Hot));
            metrics.count("warm_erases", self.partitions.erases(Partition::Warm));
        }
        if let Some(threshold) = detection.threshold() {
            let (found, hit) = detection.totals();
            metrics.count(HOT_THRESHOLD.metric, u64::from(threshold));
            metrics.count("hot_units_found", found);
            metrics.push("hot_unit_hit_ratio", ratio(hit, found));
        }
        metrics.push("slc_hit_ratio", ratio(counts.updated_units, counts.log_units));
        metrics.count("slc_pages", counts.slc_pages);
        metrics.count("mlc_to_slc_pages", counts.mlc_to_slc_pages);
        metrics.count("slc_to_slc_pages", counts.slc_to_slc_pages);
        metrics.count("mlc_pages", counts.mlc_pages);
        metrics.count("slc_to_mlc_pages", counts.slc_to_mlc_pages);
        metrics.count("mlc_to_mlc_pages", self.tiers.slow.copied_pages());
        metrics.count("demoted_sectors", counts.demoted_units * u64::from(self.tiers.fast.unit_sectors()));
        metrics.count("slc_erases", self.tiers.fast.erases());
        metrics.count("mlc_erases", self.tiers.slow.erases());
        let states = self.states.len() as u64;
        metrics.count("metadata_bytes", self.tiers.metadata_bytes() + states + detection.metadata_bytes());
    }

    fn check(&self) -> Result<(), String> {
        self.partitions.check()?;
        self.tiers.check(self.written())?;
        self.chances.check()?;
        self.check_states()?;
        if self.detection.follows_log() {
            let units = self.tiers.slow.logical_pages() * self.tiers.units_per_slow_page();
            self.detection.check(|range| self.in_log(range.start..range.end.min(units)))?;
        }
        Ok(())
    }
}
