//! The common base of schemes with a log of fast pages in front of a page-mapped region: the location of data and their
//! movement.
//!
//! ```text
//!  unit ──▶ has a slot in the fast log ──▶ fast page        (the latest copy, whatever the slow region holds)
//!    │ no
//!    └────▶ its slow page is mapped ─────▶ slow page
//! ```
//!
//! The mapping unit is the largest size that divides the page of either region and the 4-KiB block of hosts. A fast
//! page holds units of one write; a slow page holds the units of its own address. Each unit has one valid copy
//! (exclusive tiers). A slow page is invalidated once all of its units are in the log; before that, its copies of units
//! in the log are stale and never read. If a slow page is one unit, the unit has either a slot or a slow page, and the
//! slow region's map records both. Otherwise an index records the slots; it grows with the log and not with the drive.
//!
//! [`Tiers`] moves data on request. Each scheme decides where data go, when the log is reclaimed and what survives:
//! `comboftl` and its baselines, `wlaftl` and its baselines, `mixedftl`, `csal`, `pslc-static`, `pslc-dynamic`.

mod fast;
mod placement;
mod run;
mod survivors;

use serde::{Deserialize, Serialize};

pub use fast::FastTier;
pub use run::Run;
pub use survivors::Survivors;

use crate::media::{Cause, Media, PageMerge, Part, Stream};
use crate::region::slot_index::SlotIndex;
use crate::request::{Request, SECTOR_BYTES};
use crate::scheme::Adaptation;
use crate::units::{BlockId, Division, Ppa, Span, greatest_common_divisor};

use crate::region::{LastRead, Space};

/// Pages read into the controller to complete a host write: at most one of each tier.
struct OldPages<D> {
    fast: LastRead<D>,
    slow: LastRead<D>,
}

/// Number of slots of a block being emptied whose map entries are prefetched together.
const SLOTS_AT_ONCE: u32 = 32;

/// Sectors of the largest possible page.
const UNITS_PER_PAGE_MAX: u32 = 128;

/// Common write size of hosts: file system and database pages.
const HOST_BLOCK_BYTES: u32 = 4096;

/// Bytes of the mapping unit of a device with pages of these sizes.
pub fn unit_bytes(fast_page_bytes: u32, slow_page_bytes: u32) -> u32 {
    greatest_common_divisor(greatest_common_divisor(fast_page_bytes, slow_page_bytes), HOST_BLOCK_BYTES)
}

/// The threshold of `comboftl` and `wlaftl`.
pub const THRESHOLD: Adaptation = Adaptation {
    metric: "threshold_kib",
    title: "Threshold θ",
    unit: "KiB",
    meaning: "Writes up to this size go to the fast region.",
};

/// A log of fast pages in front of a page-mapped region.
#[derive(Debug, Serialize, Deserialize)]
#[serde(from = "Saved<S>", bound(deserialize = "S: Space + Deserialize<'de>"))]
pub struct Tiers<S> {
    /// The log.
    pub fast: FastTier,
    /// The page-mapped region.
    pub slow: S,
    /// The slots of units in the log; `None` if the slow region's map records them.
    #[serde(skip_serializing)]
    index: Option<SlotIndex>,
    /// Divides addresses into mapping units.
    #[serde(with = "crate::save::fixed")]
    units: Division,
    #[serde(with = "crate::save::fixed")]
    units_per_slow_page: u32,
}

/// The saved form. The index follows from the units of the slots.
#[derive(Deserialize)]
struct Saved<S> {
    fast: FastTier,
    slow: S,
    #[serde(with = "crate::save::fixed")]
    units: Division,
    #[serde(with = "crate::save::fixed")]
    units_per_slow_page: u32,
}

impl<S: Space> From<Saved<S>> for Tiers<S> {
    fn from(Saved { fast, slow, units, units_per_slow_page }: Saved<S>) -> Self {
        // Restored data may be damaged and have not been checked yet.
        let count = slow.logical_pages().saturating_mul(units_per_slow_page.min(UNITS_PER_PAGE_MAX));
        let index = (units_per_slow_page > 1).then(|| SlotIndex::of(fast.slots(), count));
        Self { fast, slow, index, units, units_per_slow_page }
    }
}

impl<S: Space> Tiers<S> {
    /// Tiers without data. The unit of `fast` must be [`unit_bytes`] of both regions' pages.
    ///
    /// # Errors
    /// The unit numbers do not fit in 32 bits.
    pub fn new(fast: FastTier, slow: S) -> Result<Self, String> {
        let unit_bytes = fast.unit_sectors() * SECTOR_BYTES as u32;
        let units_per_slow_page = slow.geometry().page_bytes / unit_bytes;
        let count = u64::from(slow.logical_pages()) * u64::from(units_per_slow_page);
        if count >= u64::from(u32::MAX) {
            return Err(format!("{count} mapping units of {unit_bytes} bytes are more than 2^32; lower the capacity"));
        }
        if units_per_slow_page == 1 && fast.slots().len() as u64 > u64::from(slow.places_elsewhere()) {
            return Err("the pages of both regions are more than 2^32; lower the capacity".into());
        }
        let units = Division::by(fast.unit_sectors());
        Ok(Saved { fast, slow, units, units_per_slow_page }.into())
    }

    /// Divides addresses into mapping units.
    #[inline]
    pub fn units(&self) -> &Division {
        &self.units
    }

    /// Mapping units of a slow page.
    #[inline]
    pub fn units_per_slow_page(&self) -> u32 {
        self.units_per_slow_page
    }

    /// The slow logical page of a unit.
    #[inline]
    pub fn slow_page(&self, unit: u32) -> u32 {
        // The geometry avoids the division.
        self.slow.geometry().logical_page(u64::from(unit) * u64::from(self.fast.unit_sectors())).0
    }

    /// Writes every slow logical page once.
    pub fn fill<M: Media>(&mut self, media: &mut M) {
        for logical in 0..self.slow.logical_pages() {
            self.slow.write(media, logical, &[], Cause::Host);
        }
    }

    /// Writes host data of up to [`FastTier::units_per_page`] units to a page of the log. Sectors of the first and last
    /// unit that the host does not write come from the old copies.
    pub fn write_fast<M: Media>(&mut self, media: &mut M, run: &Run, page: Ppa, cause: Cause) {
        debug_assert!(run.count <= self.fast.units_per_page());
        let unit_sectors = self.fast.unit_sectors();
        let host = Part { data: media.host(), from: run.at, to: run.first, sectors: run.sectors };
        let after = run.count * unit_sectors - run.first - run.sectors;
        if run.first == 0 && after == 0 {
            media.program(self.fast.region(), page, &[host], Stream::ONLY, cause);
        } else {
            let mut merge = PageMerge::default();
            merge.fill(host.data, run.at, run.first, run.sectors);
            let mut old = OldPages { fast: None, slow: None };
            let last = run.count - 1;
            for index in [0, last].into_iter().take(if last == 0 { 1 } else { 2 }) {
                let is_whole = if index == 0 { run.first == 0 && (last > 0 || after == 0) } else { after == 0 };
                if !is_whole && let Some((data, from)) = self.old_copy(media, run.unit + index, cause, &mut old) {
                    merge.fill(data, from, index * unit_sectors, unit_sectors);
                }
            }
            media.program(self.fast.region(), page, merge.parts(), Stream::ONLY, cause);
        }
        self.put(run.unit, run.count, page);
    }

    /// Writes host data within one slow page to the slow region. The remaining sectors come from the old copies. Units
    /// in the log that the host touches are removed from it; other units in the log stay there and are not copied.
    pub fn write_slow<M: Media>(&mut self, media: &mut M, run: &Run, cause: Cause) {
        let unit_sectors = self.fast.unit_sectors();
        let logical = self.slow_page(run.unit);
        let base = logical * self.units_per_slow_page;
        let first = (run.unit - base) * unit_sectors + run.first;
        let data = media.host();
        let touched = run.unit..run.unit + run.count;
        if run.sectors == self.slow.geometry().page_sectors() {
            touched.for_each(|unit| self.drop_unit(unit));
            self.slow.write(media, logical, &[Part { data, from: run.at, to: 0, sectors: run.sectors }], cause);
            return;
        }
        let mut merge = PageMerge::default();
        merge.fill(data, run.at, first, run.sectors);
        let mut last = None;
        let mut rest_is_slow = false;
        for unit in base..base + self.units_per_slow_page {
            let start = (unit - base) * unit_sectors;
            let covered = first <= start && start + unit_sectors <= first + run.sectors;
            match self.slot(unit) {
                None => rest_is_slow |= !covered,
                Some(_) if !touched.contains(&unit) => {}
                Some(slot) => {
                    if !covered {
                        let (data, from) = self.fast.read(media, slot, cause, &mut last);
                        merge.fill(data, from, start, unit_sectors);
                    }
                    self.drop_slot(unit, slot);
                }
            }
        }
        if rest_is_slow {
            self.add_old_page(media, logical, cause, &mut merge);
        }
        self.slow.write(media, logical, merge.parts(), cause);
    }

    /// Demotes a unit of the log, together with the units of its slow page that are in the log and for whose slots
    /// `goes` returns `true`. `goes` is also called for the unit itself. Returns the number of demoted units.
    pub fn demote<M: Media>(&mut self, media: &mut M, unit: u32, mut goes: impl FnMut(u32) -> bool) -> u32 {
        if self.units_per_slow_page == 1
            && let Some(slot) = self.slot(unit)
        {
            return self.demote_slot(media, slot, unit);
        }
        let cause = Cause::MigrateDown;
        let unit_sectors = self.fast.unit_sectors();
        let logical = self.slow_page(unit);
        let base = logical * self.units_per_slow_page;
        let mut merge = PageMerge::default();
        let mut last = None;
        let mut rest_is_slow = false;
        let mut moved = 0;
        for unit in base..base + self.units_per_slow_page {
            match self.slot(unit) {
                None => rest_is_slow = true,
                Some(slot) if goes(slot) => {
                    let (data, from) = self.fast.read(media, slot, cause, &mut last);
                    merge.fill(data, from, (unit - base) * unit_sectors, unit_sectors);
                    self.drop_slot(unit, slot);
                    moved += 1;
                }
                Some(_) => {}
            }
        }
        if rest_is_slow {
            self.add_old_page(media, logical, cause, &mut merge);
        }
        debug_assert!(moved > 0);
        self.slow.write(media, logical, merge.parts(), cause);
        moved
    }

    /// Demotes the unit in a slot that holds one, with all units of its slow page.
    #[inline]
    pub fn demote_slot<M: Media>(&mut self, media: &mut M, slot: u32, unit: u32) -> u32 {
        if self.units_per_slow_page > 1 {
            return self.demote(media, unit, |_| true);
        }
        let (data, from) = self.fast.read(media, slot, Cause::MigrateDown, &mut None);
        self.fast.clear(slot);
        let part = Part { data, from, to: 0, sectors: self.fast.unit_sectors() };
        self.slow.write(media, unit, &[part], Cause::MigrateDown);
        1
    }

    /// Copies a page of the log to another page of the log. Its valid units keep their positions. `moved` gets the old
    /// and the new slot of each.
    #[inline]
    pub fn copy_fast<M: Media>(&mut self, media: &mut M, from: Ppa, to: Ppa, moved: impl FnMut(u32, u32)) {
        media.copy(self.fast.region(), from, to, Stream::ONLY, Cause::Gc);
        self.relocate(from, to, moved);
    }

    /// Serves a read.
    pub fn read<M: Media>(&self, media: &mut M, request: &Request) {
        let unit_sectors = self.fast.unit_sectors();
        let slow = *self.slow.geometry();
        let (mut last, mut last_slow) = (None, None);
        for Span { page: logical, first, sectors, at } in slow.spans(request) {
            let base = logical * self.units_per_slow_page;
            let (mut sector, end) = (first, first + sectors);
            while sector < end {
                let index = sector / unit_sectors;
                let stop = end.min((index + 1) * unit_sectors);
                let (at, count) = (at + (sector - first), stop - sector);
                match self.slot(base + index) {
                    Some(slot) => {
                        let (data, from) = self.fast.read(media, slot, Cause::Host, &mut last);
                        media.deliver(data, from + sector % unit_sectors, at, count);
                    }
                    None => match self.slow.read(media, logical, Cause::Host, &mut last_slow) {
                        Some((data, from)) => media.deliver(data, from + sector, at, count),
                        None => media.deliver_zeros(at, count),
                    },
                }
                sector = stop;
            }
        }
    }

    /// Invalidates whole slow pages covered by a trim, and whole units of pages that the slow region does not hold.
    /// Other data keep their content, because an older copy would become visible.
    pub fn trim(&mut self, request: &Request) {
        let unit_sectors = self.fast.unit_sectors();
        let slow = *self.slow.geometry();
        for Span { page: logical, first, sectors, .. } in slow.spans(request) {
            let is_whole = sectors == slow.page_sectors();
            if !is_whole && self.slow.lookup(logical).is_some() {
                continue;
            }
            let base = logical * self.units_per_slow_page;
            let units = first.div_ceil(unit_sectors)..(first + sectors) / unit_sectors;
            units.for_each(|index| self.drop_unit(base + index));
            if is_whole {
                self.slow.invalidate(logical);
            }
        }
    }

    /// See [`crate::scheme::Scheme::prefetch`].
    #[inline]
    pub fn prefetch(&self, far: &Request, near: &Request) {
        let (far, near) = (self.units.page_of(far.sector).0, self.units.page_of(near.sector).0);
        self.prefetch_slots(far, near);
        self.slow.prefetch_entry(self.slow_page(far));
        self.slow.prefetch_page(self.slow_page(near));
    }

    /// A block of the log is being emptied and the current position is `slot`. Prefetches the data needed to move the
    /// units of later slots, before `end`, into the processor's cache. `goes_down` says which units go to the slow
    /// region.
    ///
    /// It prefetches for many slots at once and then pauses. If entries are far apart, memory latency dominates, and
    /// the processor can overlap several accesses.
    #[inline]
    pub fn prefetch_emptied(&self, slot: u32, end: u32, goes_down: impl Fn(u32) -> bool) {
        if slot.is_multiple_of(SLOTS_AT_ONCE) {
            self.prefetch_many_emptied(slot, end, goes_down);
        }
    }

    fn prefetch_many_emptied(&self, slot: u32, end: u32, goes_down: impl Fn(u32) -> bool) {
        let slots = self.fast.slots();
        let units = |from: u32, to: u32| (from..to).filter_map(|slot| Some((slot, slots.unit(slot)?)));
        let (soon, later) = (end.min(slot + SLOTS_AT_ONCE), end.min(slot + 2 * SLOTS_AT_ONCE));
        let begun = if slots.is_first_of_block(slot) { slot } else { soon };
        for (slot, unit) in units(begun, later) {
            self.prefetch_index(unit);
            if self.index.is_none() || goes_down(slot) {
                self.slow.prefetch_entry(self.slow_page(unit));
            }
        }
        for (_, unit) in units(slot, soon).filter(|&(slot, _)| goes_down(slot)) {
            self.slow.prefetch_page(self.slow_page(unit));
        }
    }

    /// Bytes of both tiers' maps.
    pub fn metadata_bytes(&self) -> u64 {
        self.slow.metadata_bytes() + self.fast.metadata_bytes()
    }

    /// The latest copy of a unit, and its first sector in the data read; `None` if the unit has no copy.
    fn old_copy<M: Media>(
        &self,
        media: &mut M,
        unit: u32,
        cause: Cause,
        old: &mut OldPages<M::Data>,
    ) -> Option<(M::Data, u32)> {
        if let Some(slot) = self.slot(unit) {
            return Some(self.fast.read(media, slot, cause, &mut old.fast));
        }
        let logical = self.slow_page(unit);
        let (data, from) = self.slow.read(media, logical, cause, &mut old.slow)?;
        Some((data, from + (unit - logical * self.units_per_slow_page) * self.fast.unit_sectors()))
    }

    /// Fills the missing sectors of a slow page from its old copy, if there is one.
    fn add_old_page<M: Media>(&self, media: &mut M, logical: u32, cause: Cause, merge: &mut PageMerge<M::Data>) {
        if let Some((data, from)) = self.slow.read(media, logical, cause, &mut None) {
            merge.fill(data, from, 0, self.slow.geometry().page_sectors());
        }
    }

    /// Checks the invariants of both tiers. `written` yields the log's blocks with the number of their programmed
    /// pages.
    ///
    /// # Errors
    /// The first broken invariant.
    pub fn check(&self, written: impl Iterator<Item = (BlockId, u32)>) -> Result<(), String> {
        self.slow.check()?;
        self.fast.check(written)?;
        self.check_placement()
    }
}

#[cfg(test)]
mod tests;
