//! Serving of requests: from the cache, or past it.

use super::mapping::{Place, merge_held, span};
use super::replacer::Kind;
use super::{Capacity, FlashCache};
use crate::media::{Cause, Media, PageMerge, Part};
use crate::request::Request;
use crate::units::Span;

/// Largest number of pages that are fetched with one access to the disk: 256 KiB of pages of 4 KiB.
const FETCH_PAGES_MAX: u32 = 64;

/// Sectors that are consecutive on the disk and in the request.
#[derive(Clone, Copy, Debug, Default)]
struct DiskRun {
    sector: u64,
    at: u32,
    sectors: u32,
}

impl DiskRun {
    /// Adds the sectors that follow it.
    #[inline]
    fn extend(&mut self, sector: u64, at: u32, sectors: u32) {
        if self.sectors == 0 {
            *self = Self { sector, at, sectors };
        } else {
            self.sectors += sectors;
        }
    }

    /// Takes the run, if it is not empty.
    #[inline]
    fn take(&mut self) -> Option<Self> {
        (self.sectors > 0).then(|| std::mem::take(self))
    }
}

impl FlashCache {
    /// Reads pages from the disk for the host and stages them.
    fn stage<M: Media>(&mut self, media: &mut M, run: DiskRun) {
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

    pub(super) fn read<M: Media>(&mut self, media: &mut M, request: &Request) {
        let geometry = *self.mapping.geometry();
        let mut missing = DiskRun::default();
        let fetch_sectors = (FETCH_PAGES_MAX - 1) * geometry.page_sectors();
        for piece in geometry.spans(request) {
            let Span { page, sectors, at, .. } = piece;
            if let Capacity::Partitioned(caches) = &mut self.capacity {
                caches.tracker.read(page);
            }
            self.counts.reads += 1;
            let mut place = self.mapping.find(page);
            if missing.sectors > 0 && (missing.sectors > fetch_sectors || place != Place::Disk) {
                missing.take().into_iter().for_each(|run| self.stage(media, run));
                // Staged pages may have evicted this page.
                place = self.mapping.find(page);
            }
            match place {
                Place::Cached(slot) => self.read_cached(media, slot, piece),
                Place::Disk => missing.extend(request.sector + u64::from(at), at, sectors),
                Place::Absent => media.deliver_zeros(at, sectors),
            }
        }
        missing.take().into_iter().for_each(|run| self.stage(media, run));
    }

    /// Reads sectors of a cached page. If any are missing, the page is completed from the disk.
    #[inline]
    fn read_cached<M: Media>(&mut self, media: &mut M, slot: u32, piece: Span) {
        self.counts.read_hits[self.replacer.kind(slot) as usize] += 1;
        self.replacer.touch(slot);
        let held = self.mapping.held(slot);
        let data = self.mapping.read(media, slot, Cause::Host);
        if span(piece.first, piece.sectors) & !held == 0 {
            media.deliver(data, piece.first, piece.at, piece.sectors);
        } else {
            self.complete(media, slot, data, piece);
        }
    }

    /// Fetches the missing sectors of a cached page, which was read as `data`, delivers a piece of it and programs it again.
    fn complete<M: Media>(&mut self, media: &mut M, slot: u32, data: M::Data, piece: Span) {
        let (sector, sectors) = self.mapping.sectors_of(piece.page);
        let fetched = media.fetch(sector, sectors, Cause::MigrateUp);
        let mut merge = PageMerge::default();
        merge_held(&mut merge, data, self.mapping.held(slot));
        merge.fill(fetched, 0, 0, sectors);
        for part in merge.parts() {
            let first = part.to.max(piece.first);
            let end = (part.to + part.sectors).min(piece.first + piece.sectors);
            if first < end {
                media.deliver(part.data, part.from + first - part.to, piece.at + first - piece.first, end - first);
            }
        }
        self.mapping.write(media, slot, merge.parts(), Cause::MigrateUp);
        self.mapping.hold(slot, span(0, sectors));
        self.counts.completed += 1;
    }

    pub(super) fn write<M: Media>(&mut self, media: &mut M, request: &Request) {
        let geometry = *self.mapping.geometry();
        for piece in geometry.spans(request) {
            if let Capacity::Partitioned(caches) = &mut self.capacity {
                caches.tracker.write(piece.page, caches.settings.read_hits);
            }
            self.write_page(media, piece);
        }
    }

    /// Writes sectors of a page to the cache.
    #[inline]
    fn write_page<M: Media>(&mut self, media: &mut M, piece: Span) {
        let host = Part { data: media.host(), from: piece.at, to: piece.first, sectors: piece.sectors };
        self.counts.writes += 1;
        match self.mapping.find(piece.page) {
            Place::Cached(slot) => self.update(media, slot, piece, host),
            place => {
                // A page without a copy needs no fetch: the rest of it is undefined from now on.
                let (_, sectors) = self.mapping.sectors_of(piece.page);
                let held = if place == Place::Absent { span(0, sectors) } else { span(piece.first, piece.sectors) };
                let slot = self.take(media, piece.page, Kind::Dirty, held);
                self.mapping.write(media, slot, &[host], Cause::Host);
            }
        }
    }

    /// Writes sectors of a cached page. Its other cached sectors are read and programmed again.
    #[inline]
    fn update<M: Media>(&mut self, media: &mut M, slot: u32, piece: Span, host: Part<M::Data>) {
        let mut merge = PageMerge::default();
        merge.fill(host.data, host.from, host.to, host.sectors);
        let kept = self.mapping.held(slot) & !span(piece.first, piece.sectors);
        if kept != 0 {
            let data = self.mapping.read(media, slot, Cause::Host);
            merge_held(&mut merge, data, kept);
        }
        if self.replacer.kind(slot) == Kind::Dirty {
            self.replacer.touch(slot);
            self.counts.write_hits += 1;
        } else {
            // A clean page moves from the read cache to the write cache, where it is a miss; in a cache of both kinds
            // it is a hit.
            self.replacer.remove(slot);
            if self.replacer.is_unified() {
                self.counts.write_hits += 1;
            } else {
                self.make_room(media, Kind::Dirty);
            }
            self.replacer.insert(slot, Kind::Dirty);
        }
        self.mapping.hold(slot, span(piece.first, piece.sectors));
        self.mapping.write(media, slot, merge.parts(), Cause::Host);
    }

    /// Reads past the cache: cached sectors from the cache, the rest from the disk.
    pub(super) fn read_past<M: Media>(&mut self, media: &mut M, request: &Request) {
        let geometry = *self.mapping.geometry();
        let mut run = DiskRun::default();
        for piece in geometry.spans(request) {
            let Span { page, sectors, at, .. } = piece;
            let (held, data) = match self.mapping.find(page) {
                Place::Cached(slot) => match self.mapping.held(slot) & span(piece.first, piece.sectors) {
                    0 => (0, None),
                    held => (held, Some(self.mapping.read(media, slot, Cause::Host))),
                },
                Place::Disk => (0, None),
                Place::Absent => {
                    read_run(media, &mut run);
                    media.deliver_zeros(at, sectors);
                    continue;
                }
            };
            // Runs of held sectors and of missing ones, in turn.
            let mut done = 0;
            while done < sectors {
                let rest = held >> (piece.first + done);
                let (in_flash, length) = match rest.trailing_ones() {
                    0 => (None, rest.trailing_zeros()),
                    ones => (data, ones),
                };
                let length = length.min(sectors - done);
                if let Some(data) = in_flash {
                    read_run(media, &mut run);
                    media.deliver(data, piece.first + done, at + done, length);
                } else {
                    run.extend(request.sector + u64::from(at + done), at + done, length);
                }
                done += length;
            }
        }
        read_run(media, &mut run);
    }

    /// Writes past the cache. Part of a page goes to the cache nevertheless if the rest of it is dirty or has no copy.
    pub(super) fn write_past<M: Media>(&mut self, media: &mut M, request: &Request) {
        let geometry = *self.mapping.geometry();
        let mut run = DiskRun::default();
        for piece in geometry.spans(request) {
            let Span { page, sectors, at, .. } = piece;
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
                continue;
            }
            if let Place::Cached(slot) = place {
                self.replacer.remove(slot);
                self.mapping.release(slot);
            }
            self.mapping.set_present(page);
            run.extend(request.sector + u64::from(at), at, sectors);
        }
        write_run(media, &mut run);
    }

    /// Drops whole pages.
    pub(super) fn trim(&mut self, request: &Request) {
        let geometry = *self.mapping.geometry();
        for Span { page, sectors, .. } in geometry.spans(request) {
            if sectors == self.mapping.sectors_of(page).1 {
                if let Place::Cached(slot) = self.mapping.find(page) {
                    self.replacer.remove(slot);
                    self.mapping.release(slot);
                }
                self.mapping.set_absent(page);
            }
        }
    }
}

/// Reads a run from the disk for the host, if there is any.
#[inline]
fn read_run<M: Media>(media: &mut M, run: &mut DiskRun) {
    if let Some(run) = run.take() {
        media.disk_read(run.sector, run.at, run.sectors);
    }
}

/// Writes a run of the host's request to the disk, if there is any.
#[inline]
fn write_run<M: Media>(media: &mut M, run: &mut DiskRun) {
    if let Some(run) = run.take() {
        media.disk_write(run.sector, run.at, run.sectors);
    }
}
