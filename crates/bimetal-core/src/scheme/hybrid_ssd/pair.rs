//! Two SSDs with one address space: placement and movement of pages.

use serde::{Deserialize, Serialize};

use super::super::space::Slots;
use crate::media::{Cause, Media, PageMerge, Part};
use crate::model::hyssd::remaining_life;
use crate::part::lru::Lists;
use crate::region::Space;
use crate::region::log::{Capacity, Collection, HostAndCopied, Log};
use crate::request::SECTOR_BYTES;
use crate::save::Table;
use crate::scheme::Shape;
use crate::units::{Division, Geometry, RegionId, Span, greatest_common_divisor};

/// The only list of the fast SSD's slots, with the page written longest ago first.
const BY_RECENCY: usize = 0;

/// Two page-mapped SSDs that share an address space; each page is completely in one of them.
///
/// A page is the unit of placement: the larger of the two flash pages, or their least common multiple. It has `k` flash
/// pages in either SSD.
#[derive(Debug, Serialize, Deserialize)]
pub struct Pair {
    fast: Slots,
    slow: Log,
    /// Divides addresses into pages.
    #[serde(with = "crate::save::fixed")]
    pages: Division,
    #[serde(with = "crate::save::fixed")]
    logical_pages: u32,
    /// Flash pages of a page in the fast SSD, and in the slow one.
    #[serde(with = "crate::save::fixed")]
    fast_per_page: u32,
    #[serde(with = "crate::save::fixed")]
    slow_per_page: u32,
    recency: Lists,
    /// By slot: the number of the last page write.
    written_at: Table<u64>,
    /// Least number of pages in the fast SSD: the slow one has room for the others.
    #[serde(with = "crate::save::fixed")]
    fast_min: u32,
    #[serde(with = "crate::save::fixed")]
    slow_flash_pages_max: u64,
    /// Cycles that a block lasts: of the fast SSD, of the slow one.
    #[serde(with = "crate::save::fixed")]
    endurance: (u32, u32),
    promoted_pages: u64,
    destaged_pages: u64,
}

/// Part of the host's data within one page.
fn part_of<D>(span: &Span, data: D, start: u32, sectors: u32) -> Option<Part<D>> {
    let (first, end) = (span.first.max(start), (span.first + span.sectors).min(start + sectors));
    (first < end).then(|| Part { data, from: span.at + (first - span.first), to: first - start, sectors: end - first })
}

/// Completes a part of a page from flash pages of `page_sectors` sectors with its old content; `last` is the flash page
/// read last, and `read` returns existing flash pages.
fn complete<D: Copy>(
    merge: &mut PageMerge<D>,
    (start, sectors): (u32, u32),
    page_sectors: u32,
    last: &mut Option<(u32, Option<D>)>,
    mut read: impl FnMut(u32) -> Option<D>,
) {
    let mut first = start;
    while first < start + sectors {
        let number = first / page_sectors;
        let end = ((number + 1) * page_sectors).min(start + sectors);
        merge.fill_with(first % page_sectors, first - start, end - first, || {
            let data = match *last {
                Some((known, data)) if known == number => data,
                _ => read(number),
            };
            *last = Some((number, data));
            data
        });
        first = end;
    }
}

impl Pair {
    /// Erased SSDs: the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Regions that together cannot hold the data, with a remedy.
    pub fn new(shape: &Shape, settings: Collection) -> Result<Self, String> {
        let [fast, .., slow] = shape.regions.as_slice() else { return Err("it needs a fast and a slow region".into()) };
        let endurance = (fast.chip.endurance, slow.chip.endurance);
        let (fast, slow) = (fast.geometry, slow.geometry);
        let page_bytes = fast.page_bytes / greatest_common_divisor(fast.page_bytes, slow.page_bytes) * slow.page_bytes;
        let logical_pages = shape.logical_sectors.div_ceil(u64::from(page_bytes) / SECTOR_BYTES);
        let (fast_per_page, slow_per_page) = (page_bytes / fast.page_bytes, page_bytes / slow.page_bytes);
        let slots = Slots::new(RegionId(0), fast, fast_per_page, settings)?;
        let slow_pages_max = (settings.valid_pages_max(&slow) / u64::from(slow_per_page)).min(logical_pages);
        // While two pages are exchanged, both are in the slow SSD.
        let fast_min = if slow_pages_max == logical_pages { 0 } else { logical_pages + 1 - slow_pages_max };
        if fast_min > u64::from(slots.capacity()) {
            return Err(format!(
                "both regions hold at most {} of {logical_pages} logical pages of {page_bytes} bytes, because garbage \
                 collection needs free pages; enlarge one of them or lower the logical capacity",
                u64::from(slots.capacity()) + slow_pages_max.saturating_sub(1)
            ));
        }
        let slow_flash_pages_max = slow_pages_max * u64::from(slow_per_page);
        let slow_id = RegionId((shape.regions.len() - 1) as u8);
        let whole = Capacity::whole(&slow, logical_pages * u64::from(slow_per_page));
        let capacity = Capacity { valid_pages: slow_flash_pages_max, ..whole };
        let slow = Log::with(slow_id, slow, capacity, settings, |_| HostAndCopied)?;
        Ok(Self {
            slow,
            pages: Division::by(page_bytes / SECTOR_BYTES as u32),
            logical_pages: logical_pages as u32,
            fast_per_page,
            slow_per_page,
            recency: Lists::new(slots.capacity() as usize, 1),
            written_at: vec![0; slots.capacity() as usize].into(),
            fast_min: fast_min as u32,
            fast: slots,
            slow_flash_pages_max,
            endurance,
            promoted_pages: 0,
            destaged_pages: 0,
        })
    }

    /// Divides addresses into pages.
    #[inline]
    pub fn pages(&self) -> &Division {
        &self.pages
    }

    /// Pages in the fast SSD.
    #[inline]
    pub fn fast_pages(&self) -> u32 {
        self.fast.used()
    }

    /// Least and largest number of pages in the fast SSD.
    pub fn fast_limits(&self) -> (u32, u32) {
        // At least one, or nothing could be written to it.
        (self.fast_min.max(1), self.fast.capacity())
    }

    /// Pages in the slow SSD, counted by their flash pages.
    pub fn slow_pages(&self) -> f64 {
        self.slow.occupied() as f64 / f64::from(self.slow_per_page())
    }

    /// Raw capacities of the SSDs, spare area included, in pages: the fast one, the slow one.
    pub fn sizes(&self) -> (f64, f64) {
        let size = |geometry: &Geometry| {
            (geometry.capacity_bytes() / SECTOR_BYTES) as f64 / f64::from(self.pages.page_sectors())
        };
        (size(self.fast.geometry()), size(self.slow.geometry()))
    }

    /// Remaining erases divided by past ones, `L`: of the fast SSD, of the slow one.
    pub fn lives(&self) -> (f64, f64) {
        let mean = |space: &Log| space.erases() as f64 / f64::from(space.geometry().blocks);
        (remaining_life(self.endurance.0, mean(self.fast.space())), remaining_life(self.endurance.1, mean(&self.slow)))
    }

    /// Pages promoted because the host wrote part of them or all.
    pub fn promoted_pages(&self) -> u64 {
        self.promoted_pages
    }

    /// Demoted pages.
    pub fn destaged_pages(&self) -> u64 {
        self.destaged_pages
    }

    /// Blocks erased and flash pages copied by garbage collection so far.
    pub fn collected(&self) -> (u64, u64) {
        let fast = self.fast.space();
        (fast.erases() + self.slow.erases(), fast.copied_pages() + self.slow.copied_pages())
    }

    /// Flash pages of a page in the slow SSD.
    #[inline]
    pub fn slow_per_page(&self) -> u32 {
        self.slow_per_page
    }

    /// Flash pages of a page in the fast SSD.
    #[inline]
    pub fn fast_per_page(&self) -> u32 {
        self.fast_per_page
    }

    /// The slot of a page in the fast SSD, if it is there.
    #[inline]
    pub fn slot(&self, page: u32) -> Option<u32> {
        self.fast.lookup(page)
    }

    /// The page of the fast SSD that was written longest ago: its slot, and the number of the page write.
    #[inline]
    pub fn oldest(&self) -> Option<(u32, u64)> {
        self.recency.front(BY_RECENCY).map(|slot| (slot, self.written_at[slot as usize]))
    }

    /// Whether the slow SSD can take a page that is not in it, or completely holds it.
    pub fn slow_takes(&self, page: u32) -> bool {
        let per_page = self.slow_per_page();
        self.slow.occupied() + u64::from(per_page) <= self.slow_flash_pages_max
            || (page * per_page..(page + 1) * per_page).all(|logical| self.slow.lookup(logical).is_some())
    }

    /// Writes every page once, `fast` of them to the fast SSD: pages evenly spread, with the lowest write number.
    pub fn fill<M: Media>(&mut self, media: &mut M, fast: u32) {
        let (fast, all) = (u64::from(fast), u64::from(self.logical_pages));
        for page in 0..self.logical_pages {
            let before = |page: u64| page * fast / all;
            if before(u64::from(page) + 1) == before(u64::from(page)) {
                let per_page = self.slow_per_page();
                (0..per_page).for_each(|part| self.slow.write(media, page * per_page + part, &[], Cause::Host));
            } else {
                let slot = self.take(page, 0);
                (0..self.fast_per_page()).for_each(|part| self.fast.write(media, slot, part, &[], Cause::Host));
            }
        }
    }

    /// Assigns a slot to a page, as the one written last.
    fn take(&mut self, page: u32, now: u64) -> u32 {
        let slot = self.fast.take(page);
        self.recency.push_back(BY_RECENCY, slot);
        self.written_at[slot as usize] = now;
        slot
    }

    /// Writes host data to a page in the fast SSD: only the flash pages that they touch.
    pub fn write_hit<M: Media>(&mut self, media: &mut M, slot: u32, span: &Span, now: u64) {
        self.recency.remove(BY_RECENCY, slot);
        self.recency.push_back(BY_RECENCY, slot);
        self.written_at[slot as usize] = now;
        let page_sectors = self.fast.geometry().page_sectors();
        for part in span.first / page_sectors..(span.first + span.sectors).div_ceil(page_sectors) {
            let Some(host) = part_of(span, media.host(), part * page_sectors, page_sectors) else { continue };
            if host.sectors == page_sectors {
                self.fast.write(media, slot, part, &[host], Cause::Host);
                continue;
            }
            let mut merge = PageMerge::default();
            merge.fill(host.data, host.from, host.to, host.sectors);
            if let Some(old) = self.fast.read(media, slot, part, Cause::Host) {
                merge.fill(old, 0, 0, page_sectors);
            }
            self.fast.write(media, slot, part, merge.parts(), Cause::Host);
        }
    }

    /// Writes host data to a page that is not in the fast SSD, and promotes the rest of the page. A slot is free.
    pub fn write_miss<M: Media>(&mut self, media: &mut M, span: &Span, now: u64) {
        let slot = self.take(span.page, now);
        let (page_sectors, slow_sectors) = (self.fast.geometry().page_sectors(), self.slow.geometry().page_sectors());
        let base = span.page * self.slow_per_page();
        let mut last = None;
        for part in 0..self.fast_per_page() {
            let start = part * page_sectors;
            let host = part_of(span, media.host(), start, page_sectors);
            // Most writes cover their page: there is nothing to merge.
            if let Some(host) = host.filter(|host| host.sectors == page_sectors) {
                self.fast.write(media, slot, part, &[host], Cause::Host);
                continue;
            }
            let mut merge = PageMerge::default();
            if let Some(host) = host {
                merge.fill(host.data, host.from, host.to, host.sectors);
            }
            complete(&mut merge, (start, page_sectors), slow_sectors, &mut last, |number| {
                let ppa = self.slow.lookup(base + number)?;
                Some(media.read(self.slow.region(), ppa, Cause::MigrateUp))
            });
            if !merge.parts().is_empty() {
                let cause = if host.is_some() { Cause::Host } else { Cause::MigrateUp };
                self.fast.write(media, slot, part, merge.parts(), cause);
            }
        }
        self.promoted_pages += u64::from(self.forget_slow(span.page));
    }

    /// Drops the slow SSD's data of a page; returns whether there were any.
    fn forget_slow(&mut self, page: u32) -> bool {
        let per_page = self.slow_per_page();
        let pages = page * per_page..(page + 1) * per_page;
        pages.fold(false, |had, logical| self.slow.invalidate(logical) | had)
    }

    /// Writes host data to a page of the slow SSD, which has room for them.
    pub fn write_slow<M: Media>(&mut self, media: &mut M, span: &Span) {
        let page_sectors = self.slow.geometry().page_sectors();
        let base = span.page * self.slow_per_page();
        for part in span.first / page_sectors..(span.first + span.sectors).div_ceil(page_sectors) {
            let Some(host) = part_of(span, media.host(), part * page_sectors, page_sectors) else { continue };
            let mut merge = PageMerge::default();
            merge.fill(host.data, host.from, host.to, host.sectors);
            if host.sectors < page_sectors
                && let Some(ppa) = self.slow.lookup(base + part)
            {
                let old = media.read(self.slow.region(), ppa, Cause::Host);
                merge.fill(old, 0, 0, page_sectors);
            }
            self.slow.write(media, base + part, merge.parts(), Cause::Host);
        }
    }

    /// Demotes a page of the fast SSD to the slow one, which has room for it; `host` is a host write to the page at the
    /// same time.
    pub fn move_down<M: Media>(&mut self, media: &mut M, slot: u32, host: Option<&Span>) {
        let page = self.fast.page_of(slot);
        let (fast_sectors, page_sectors) = (self.fast.geometry().page_sectors(), self.slow.geometry().page_sectors());
        let base = page * self.slow_per_page();
        let mut last = None;
        for part in 0..self.slow_per_page() {
            let start = part * page_sectors;
            let mut merge = PageMerge::default();
            let host = host.and_then(|span| part_of(span, media.host(), start, page_sectors));
            if let Some(host) = host {
                merge.fill(host.data, host.from, host.to, host.sectors);
            }
            complete(&mut merge, (start, page_sectors), fast_sectors, &mut last, |number| {
                self.fast.read(media, slot, number, Cause::MigrateDown)
            });
            if !merge.parts().is_empty() {
                let cause = if host.is_some() { Cause::Host } else { Cause::MigrateDown };
                self.slow.write(media, base + part, merge.parts(), cause);
            }
        }
        // A host write of the whole page replaces it, so that nothing is demoted.
        self.destaged_pages += u64::from(host.is_none_or(|span| span.sectors < self.pages.page_sectors()));
        self.release(slot);
        self.prefetch_oldest();
    }

    /// Brings the data that the next demotion changes into the processor's cache, and the slot of the one after it: their
    /// pages were written long ago.
    #[inline]
    fn prefetch_oldest(&self) {
        let Some(slot) = self.recency.front(BY_RECENCY) else { return };
        self.prefetch_page(self.fast.page_of(slot));
        self.fast.prefetch_entry(slot);
        if let Some(next) = self.recency.after(slot) {
            self.recency.prefetch(next);
            self.fast.prefetch_page_of(next);
        }
    }

    fn release(&mut self, slot: u32) {
        self.recency.remove(BY_RECENCY, slot);
        self.fast.release(slot);
    }

    /// Reads part of a page for the host; `slot` is its slot in the fast SSD, if it has one.
    pub fn read<M: Media>(&self, media: &mut M, slot: Option<u32>, span: &Span) {
        let page_sectors = if slot.is_some() { self.fast.geometry() } else { self.slow.geometry() }.page_sectors();
        let (mut first, end) = (span.first, span.first + span.sectors);
        while first < end {
            let part = first / page_sectors;
            let stop = end.min((part + 1) * page_sectors);
            let (at, sectors) = (span.at + (first - span.first), stop - first);
            let data = match slot {
                Some(slot) => self.fast.read(media, slot, part, Cause::Host),
                None => {
                    let ppa = self.slow.lookup(span.page * self.slow_per_page() + part);
                    ppa.map(|ppa| media.read(self.slow.region(), ppa, Cause::Host))
                }
            };
            match data {
                Some(data) => media.deliver(data, first % page_sectors, at, sectors),
                None => media.deliver_zeros(at, sectors),
            }
            first = stop;
        }
    }

    /// Drops the flash pages that a trim covers entirely. Returns whether no data of the page are left.
    pub fn trim(&mut self, span: &Span) -> bool {
        let whole = span.sectors == self.pages.page_sectors();
        let slot = self.slot(span.page);
        let page_sectors = if slot.is_some() { self.fast.geometry() } else { self.slow.geometry() }.page_sectors();
        let covered = span.first.div_ceil(page_sectors)..(span.first + span.sectors) / page_sectors;
        match slot {
            Some(slot) if whole => self.release(slot),
            Some(slot) => covered.for_each(|part| self.fast.invalidate(slot, part)),
            None => {
                let base = span.page * self.slow_per_page();
                covered.for_each(|part| _ = self.slow.invalidate(base + part));
            }
        }
        whole
    }

    /// Brings the index entry of a page into the processor's cache.
    #[inline]
    pub fn prefetch_page(&self, page: u32) {
        self.fast.prefetch_index(page);
        self.slow.prefetch_entry(page * self.slow_per_page());
    }

    /// Brings the further data for an access to a page into the processor's cache.
    #[inline]
    pub fn prefetch_place(&self, page: u32) {
        if let Some(slot) = self.fast.prefetch_slot(page) {
            self.recency.prefetch(slot);
        }
        self.slow.prefetch_page(page * self.slow_per_page());
    }

    /// Bytes of the tables in a controller: maps, and two neighbours of each slot in the order of writes.
    pub fn metadata_bytes(&self) -> u64 {
        self.slow.metadata_bytes() + self.fast.metadata_bytes() + u64::from(self.fast.capacity()) * 8
    }

    /// Checks that each page is in one SSD only, and that both are consistent.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn check(&self, now: u64) -> Result<(), String> {
        self.fast.check()?;
        self.slow.check()?;
        if self.slow.occupied() > self.slow_flash_pages_max {
            return Err(format!("the slow SSD holds {} pages, more than it can", self.slow.occupied()));
        }
        self.recency.check()?;
        let mut listed = 0;
        for slot in self.recency.iter(BY_RECENCY) {
            listed += 1;
            let page = self.fast.page_of(slot);
            if page >= self.logical_pages || self.slot(page) != Some(slot) {
                return Err(format!("slot {slot} is in the order of writes and has no page"));
            }
            if self.written_at[slot as usize] > now {
                return Err(format!("the last write of page {page} is in the future"));
            }
            let base = page * self.slow_per_page();
            if (base..base + self.slow_per_page()).any(|logical| self.slow.lookup(logical).is_some()) {
                return Err(format!("page {page} is in both SSDs"));
            }
        }
        if listed == self.fast.used() {
            Ok(())
        } else {
            Err(format!("{listed} pages are in the order of writes and {} in the fast SSD", self.fast.used()))
        }
    }
}
