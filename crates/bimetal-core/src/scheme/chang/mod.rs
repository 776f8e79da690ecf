//! `chang`: a small SLC region in front of a block-mapped MLC array (Chang, *A hybrid approach to NAND-flash-based
//! solid-state
//! disks*, IEEE Transactions on Computers 59(10), 2010).
//!
//! ```text
//! write ─▶ hot-data filter ─▶ utilisation throttle ─▶ hash table has room ─▶ fast region: a circular log
//!              │ large              │ worn                  │ full              │ tail: copy or demote
//!              └────────────────────┴───────────────────────┴───────────────────▶ slow region: block chains
//! ```
//!
//! Small writes are taken for hot data (§3.2) and go to a circular log of SLC blocks (§3.3). Valid data at the log's
//! tail are demoted to the MLC array if their logical block has a log block anyway, and otherwise copied to the head
//! (§3.6). A fold on the MLC side includes the log's data of its logical block. While the SLC is worn more than its
//! endurance allows, only updates are accepted, and the log gets shorter (§3.4). The MLC side is
//! [`super::block_mapped`].
//!
//! Where the paper is silent or contradicts itself, `docs/papers/chang-2010.md` gives the reading.

mod control;
mod figures;
mod parameters;
mod tier;

use serde::{Deserialize, Serialize};

pub use parameters::Parameters;

use super::block_mapped::{BlockMapSettings, BlockMapped, Overlay, Span};
use super::{Metrics, Regions, Scheme, SchemeSpec, Shape};
use crate::chip::Chip;
use crate::media::{Cause, CellMode, Media, PageMerge, Part, Stream};
use crate::model::wear_balance::RelativeWear;
use crate::part::two_means::SizeHistogram;
use crate::request::{Op, Request};
use crate::units::{Ppa, RegionId};
use control::{LapGuard, LogBound, UpdateMonitor};
use figures::{Counts, LOG_BOUND, THRESHOLD};
use tier::Tier;

/// Registry line.
pub static SPEC: SchemeSpec = SchemeSpec {
    name: "chang",
    summary: "small writes to a circular log of SLC, the rest to block-mapped MLC, wear kept in proportion",
    source: "Chang, IEEE Trans. Computers 2010",
    regions: Regions::FastAndSlow,
    parameters: Parameters::specs,
    adapts: &[THRESHOLD, LOG_BOUND],
    version: 4,
};

/// Units of the largest write that can be small.
const SMALL_UNITS_MAX: usize = 1024;

/// Destination of a write.
enum Admission {
    /// To the fast region; its buckets are reserved.
    Fast,
    /// To the slow region, leaving virtual entries in the hash table at this block, if any.
    Slow(Option<u32>),
}

/// The state of `chang`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Chang {
    #[serde(with = "crate::save::text")]
    fast: Chip,
    slow: BlockMapped,
    tier: Tier,
    sizes: SizeHistogram,
    #[serde(with = "crate::save::fixed")]
    wear: RelativeWear,
    bound: LogBound,
    monitor: UpdateMonitor,
    guard: LapGuard,
    #[serde(with = "crate::save::fixed")]
    throttle: bool,
    #[serde(with = "crate::save::fixed")]
    slc_writeback: bool,
    /// Buckets of the write being accepted, and whether each was taken for it.
    buckets: Vec<(u32, bool)>,
    counts: Counts,
}

impl Chang {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Too few blocks in either region, or a parameter that does not suit the device.
    pub fn new(shape: &Shape, parameters: Parameters) -> Result<Self, String> {
        let [fast, .., slow] = shape.regions.as_slice() else { return Err("it needs a fast and a slow region".into()) };
        let settings = BlockMapSettings {
            spare_low: parameters.spare_low,
            map_cache_chains: parameters.map_cache_chains,
            scan_data_block: parameters.scan_data_block,
            gc_victim: parameters.gc_victim,
            wear_levelling: parameters.wear_levelling,
            wear_threshold: parameters.wear_threshold,
        };
        let slow_id = RegionId((shape.regions.len() - 1) as u8);
        let blocks = BlockMapped::new(slow_id, slow, shape.logical_sectors, settings)?;
        let geometry = fast.geometry;
        if geometry.blocks < 4 {
            return Err(format!(
                "the log needs at least 4 fast blocks and there are {}; enlarge the fast region",
                geometry.blocks
            ));
        }
        let most = if parameters.k == 0 { geometry.blocks - 2 } else { parameters.k };
        if most > geometry.blocks - 2 {
            return Err(format!("k={most} is above {}, the most for {} blocks", geometry.blocks - 2, geometry.blocks));
        }
        let least = (f64::from(geometry.blocks) * parameters.k_min_percent / 100.0).ceil().max(2.0) as u32;
        let pages = u64::from(blocks.chains().logical_blocks()) * u64::from(slow.geometry.pages_per_block);
        let tier = Tier::new(shape, &parameters, pages as usize)?;
        let Parameters { k_step, k_period, update_window, update_weight, update_low, update_high, .. } = parameters;
        Ok(Self {
            fast: fast.chip.clone(),
            slow: blocks,
            tier,
            sizes: SizeHistogram::new(
                parameters.threshold_mode,
                parameters.initial_threshold,
                parameters.threshold_period,
                parameters.histogram_halving,
            ),
            wear: RelativeWear::new(
                (geometry.blocks, fast.chip.endurance),
                (slow.geometry.blocks, slow.chip.endurance),
            ),
            bound: LogBound::new(least, most, k_step, k_period),
            monitor: UpdateMonitor::new(update_window, update_weight, update_low, update_high),
            guard: LapGuard::new(geometry.blocks, geometry.pages_per_block),
            throttle: parameters.throttle,
            slc_writeback: parameters.slc_writeback,
            buckets: Vec::with_capacity(SMALL_UNITS_MAX),
            counts: Counts::default(),
        })
    }

    /// The units that a request touches.
    #[inline]
    fn units(&self, request: &Request) -> std::ops::Range<u32> {
        let unit_sectors = u64::from(self.tier.unit_sectors());
        let end = request.sector + u64::from(request.sectors);
        (request.sector / unit_sectors) as u32..end.div_ceil(unit_sectors) as u32
    }

    /// The part of a request within some units: its first sector in the request, its first sector in the units, and the
    /// number of sectors.
    #[inline]
    fn part_within(&self, request: &Request, units: std::ops::Range<u32>) -> (u32, u32, u32) {
        let sector = |unit: u32| u64::from(unit) * u64::from(self.tier.unit_sectors());
        let from = request.sector.max(sector(units.start));
        let end = (request.sector + u64::from(request.sectors)).min(sector(units.end));
        ((from - request.sector) as u32, (from - sector(units.start)) as u32, (end - from) as u32)
    }

    fn write<M: Media>(&mut self, media: &mut M, request: &Request) {
        self.counts.writes += 1;
        self.counts.written_sectors += u64::from(request.sectors);
        self.sizes.record(request.sectors);
        match self.admit(media, request) {
            Admission::Fast => self.write_fast(media, request),
            Admission::Slow(anchor) => {
                for span in self.slow.spans(request) {
                    self.write_slow(media, span, anchor);
                }
            }
        }
    }

    /// Filter, throttle and hash table, in this order.
    #[inline]
    fn admit<M: Media>(&mut self, media: &mut M, request: &Request) -> Admission {
        if request.sectors > self.sizes.threshold_sectors() {
            return Admission::Slow(None);
        }
        let units = self.units(request);
        if self.throttle && self.wear.fast_leads(self.counts.erases, self.slow.erases()) {
            self.bound.note_throttled();
            if !units.clone().all(|unit| self.tier.hash.find(unit).is_some()) {
                return self.throttled(media, units);
            }
        } else {
            self.bound.note_relaxed();
        }
        self.buckets.clear();
        for unit in units {
            let Some(reserved) = self.tier.hash.reserve(unit) else {
                for &(bucket, fresh) in &self.buckets {
                    if fresh {
                        self.tier.hash.remove(bucket);
                    }
                }
                self.counts.hash_rejects += 1;
                return Admission::Slow(None);
            };
            self.buckets.push(reserved);
        }
        Admission::Fast
    }

    /// Rejects a write to data that are not all known, but records them: if they are written again soon, they are
    /// accepted.
    #[cold]
    fn throttled<M: Media>(&mut self, media: &mut M, units: std::ops::Range<u32>) -> Admission {
        let anchor = self.tier.anchor();
        for unit in units {
            if let Some((bucket, true)) = self.tier.hash.reserve(unit) {
                self.tier.hash.make_virtual(bucket, anchor);
            }
        }
        self.counts.throttle_rejects += 1;
        self.bound.note_rejected();
        self.shorten(media);
        // Collection may have gone round and erased the first anchor.
        Admission::Slow(Some(self.tier.anchor()))
    }

    fn write_fast<M: Media>(&mut self, media: &mut M, request: &Request) {
        let units = self.units(request);
        let (first, last) = (units.start, units.end - 1);
        let ends = [Some(first), (last > first).then_some(last)];
        let rests = ends.map(|unit| unit.and_then(|unit| Some((unit, self.rest_of(media, request, unit)?))));
        let mut updated = 0;
        for (at, unit) in units.clone().enumerate() {
            if self.tier.expect(self.buckets[at].0, unit) {
                updated += self.part_within(request, unit..unit + 1).2;
            }
        }
        self.monitor.record(request.sectors, updated);
        self.counts.accepted_writes += 1;
        self.counts.accepted_sectors += u64::from(request.sectors);
        let mut start = first;
        while start < units.end {
            let end = units.end.min(start + self.tier.slots.slots());
            let page = self.next_page(media);
            let mut merge = PageMerge::default();
            let (from, to, sectors) = self.part_within(request, start..end);
            merge.fill(media.host(), from, to, sectors);
            for (unit, (data, from)) in rests.into_iter().flatten().filter(|(unit, _)| (start..end).contains(unit)) {
                let unit_sectors = self.tier.unit_sectors();
                merge.fill(data, from, (unit - start) * unit_sectors, unit_sectors);
            }
            media.program(self.tier.region, page, merge.parts(), Stream::ONLY, Cause::Host);
            let slot = self.tier.slots.first_slot(page);
            for (position, unit) in (start..end).enumerate() {
                let (bucket, _) = self.buckets[(start - first) as usize + position];
                self.tier.put(bucket, unit, slot + position as u32);
            }
            start = end;
        }
    }

    /// Current data of a write's first or last unit, if the write covers a part of it, and the unit's first sector in
    /// them.
    #[inline]
    fn rest_of<M: Media>(&mut self, media: &mut M, request: &Request, unit: u32) -> Option<(M::Data, u32)> {
        if self.part_within(request, unit..unit + 1).2 == self.tier.unit_sectors() {
            return None;
        }
        if let Some((_, slot)) = self.tier.hash.place(unit) {
            return Some(self.tier.fetch(media, slot, Cause::Host, &mut None));
        }
        let (logical, sector) = self.tier.slow_page(unit);
        let block = self.slow.chains().block_of(logical);
        self.slow.read(media, block, logical, Cause::Host).map(|data| (data, sector))
    }

    #[inline]
    fn write_slow<M: Media>(&mut self, media: &mut M, span: Span, anchor: Option<u32>) {
        if anchor.is_none() {
            self.tier.forget_virtual(span);
        }
        if self.tier.newer_sectors(span.logical) == 0 {
            self.slow.write_span(media, &mut self.tier, span);
            return;
        }
        let mut merge = PageMerge::default();
        merge.fill(media.host(), span.at, span.first, span.sectors);
        self.tier.supersede(media, span, anchor, &mut merge);
        self.slow.write(media, &mut self.tier, span.block, span.logical, &mut merge, Cause::Host);
    }

    fn read<M: Media>(&mut self, media: &mut M, request: &Request) {
        let mut last = None;
        for span in self.slow.spans(request) {
            if self.tier.newer_sectors(span.logical) == 0 {
                self.slow.read_span(media, span);
                continue;
            }
            let wanted = (u128::MAX >> (128 - span.sectors)) << span.first;
            let mut rest = wanted & !self.tier.deliver(media, span, &mut last);
            if rest == 0 {
                continue;
            }
            let data = self.slow.read(media, span.block, span.logical, Cause::Host);
            while rest != 0 {
                let from = rest.trailing_zeros();
                let sectors = (rest >> from).trailing_ones();
                rest &= !((u128::MAX >> (128 - sectors)) << from);
                let at = span.at + (from - span.first);
                match data {
                    Some(data) => media.deliver(data, from, at, sectors),
                    None => media.deliver_zeros(at, sectors),
                }
            }
        }
    }

    fn trim<M: Media>(&mut self, media: &mut M, span: Span) {
        if span.sectors == self.slow.page_sectors() {
            self.tier.forget_virtual(span);
            if self.tier.newer_sectors(span.logical) > 0 {
                self.tier.supersede(media, span, None, &mut PageMerge::default());
            }
        }
        self.slow.trim_span(span);
    }

    /// The fast page for the host's next data.
    #[inline]
    fn next_page<M: Media>(&mut self, media: &mut M) -> Ppa {
        while self.tier.ring.needs_block() {
            self.tier.ring.open_block();
            self.shorten(media);
        }
        self.guard.note_host_page();
        self.take_page()
    }

    /// The next page of the head block.
    fn take_page(&mut self) -> Ppa {
        let (block, page) = self.tier.ring.next_page();
        self.tier.slots.geometry().ppa(block, page)
    }

    /// Collects tail blocks until the log is no longer than its bound.
    fn shorten<M: Media>(&mut self, media: &mut M) {
        while self.tier.ring.written() > self.bound.blocks() + 1 {
            self.collect_tail(media);
        }
    }

    fn collect_tail<M: Media>(&mut self, media: &mut M) {
        let forced = self.guard.next_is_forced();
        let copies_back = self.slc_writeback && self.monitor.stable() && !forced;
        let Some(block) = self.tier.ring.tail() else { return };
        let geometry = *self.tier.slots.geometry();
        for page in 0..geometry.pages_per_block {
            let page = geometry.ppa(block, page);
            if self.tier.slots.is_valid(page) {
                self.counts.tail_valid_pages += 1;
                self.phase_out(media, page, copies_back);
            }
        }
        self.tier.hash.forget_anchored(block.0);
        media.erase(self.tier.region, block, CellMode::Native, Cause::Gc);
        self.counts.erases += 1;
        self.tier.ring.retire_tail();
    }

    /// Moves valid units of a tail page: to the slow region, or back to the head if its logical block has no log block.
    fn phase_out<M: Media>(&mut self, media: &mut M, page: Ppa, copies_back: bool) {
        let mut data = None;
        let mut slot = self.tier.slots.first_slot(page);
        let end = slot + self.tier.slots.slots();
        while slot < end {
            let Some(unit) = self.tier.slots.unit(slot) else {
                slot += 1;
                continue;
            };
            let (logical, _) = self.tier.slow_page(unit);
            let block = self.slow.chains().block_of(logical);
            if copies_back && !self.slow.chains().has_log(block) {
                slot += 1;
                continue;
            }
            let content = *data.get_or_insert_with(|| media.read(self.tier.region, page, Cause::MigrateDown));
            let mut merge = PageMerge::default();
            slot = self.move_down(content, logical, slot..end, &mut merge);
            self.counts.demoted_sectors += u64::from(merge.sectors());
            self.slow.write(media, &mut self.tier, block, logical, &mut merge, Cause::MigrateDown);
        }
        if self.tier.slots.is_valid(page) {
            self.copy_back(media, page, data);
        }
    }

    /// Adds the units of one slow page among the given slots to `merge` and removes them from the log; returns the slot
    /// after them.
    fn move_down<D: Copy>(
        &mut self,
        content: D,
        logical: u32,
        slots: std::ops::Range<u32>,
        merge: &mut PageMerge<D>,
    ) -> u32 {
        let unit_sectors = self.tier.unit_sectors();
        for slot in slots.clone() {
            let Some(unit) = self.tier.slots.unit(slot) else { continue };
            let (page, sector) = self.tier.slow_page(unit);
            if page != logical {
                return slot;
            }
            let (_, position) = self.tier.slots.page_of(slot);
            merge.fill(content, position * unit_sectors, sector, unit_sectors);
            if let Some(bucket) = self.tier.hash.find(unit) {
                self.tier.give_up(bucket, unit, slot, None);
            }
        }
        slots.end
    }

    /// Copies a tail page to the head; its valid units keep their positions in the page.
    fn copy_back<M: Media>(&mut self, media: &mut M, page: Ppa, data: Option<M::Data>) {
        if self.tier.ring.needs_block() {
            self.tier.ring.open_block();
        }
        let to = self.take_page();
        match data {
            None => media.copy(self.tier.region, page, to, Stream::ONLY, Cause::Gc),
            Some(data) => {
                let sectors = self.tier.slots.geometry().page_sectors();
                media.program(self.tier.region, to, &[Part { data, from: 0, to: 0, sectors }], Stream::ONLY, Cause::Gc);
            }
        }
        self.counts.copied_back_pages += 1;
        let (old, new) = (self.tier.slots.first_slot(page), self.tier.slots.first_slot(to));
        for position in 0..self.tier.slots.slots() {
            let Some(unit) = self.tier.slots.unit(old + position) else { continue };
            if let Some(bucket) = self.tier.hash.find(unit) {
                self.tier.invalidate(unit, old + position);
                self.tier.put(bucket, unit, new + position);
            }
        }
    }
}

impl<M: Media> Scheme<M> for Chang {
    fn fill(&mut self, media: &mut M) {
        self.slow.fill(media);
    }

    #[inline]
    fn prefetch(&self, far: &Request, _near: &Request) {
        self.tier.prefetch(self.slow.prefetch(far));
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        match request.op {
            Op::Read => self.read(media, request),
            Op::Write => self.write(media, request),
            Op::Trim => {
                for span in self.slow.spans(request) {
                    self.trim(media, span);
                }
            }
        }
    }

    fn metrics(&self, metrics: &mut Metrics) {
        self.figures(metrics);
    }

    fn check(&self) -> Result<(), String> {
        self.slow.check()?;
        self.tier.check()?;
        let (least, most) = self.bound.limits();
        let (written, bound) = (self.tier.ring.written(), self.bound.blocks());
        if bound < least || bound > most || written > bound + 1 {
            return Err(format!("the log has {written} blocks; k is {bound}, from {least} to {most}"));
        }
        self.guard.check()
    }
}

#[cfg(test)]
mod tests;
