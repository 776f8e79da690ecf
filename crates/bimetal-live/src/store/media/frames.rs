//! Frames between regions and memory: the bytes of a page with their tags, read and verified, sealed and written, or held where
//! nothing is written any more.

use std::io;

use bimetal_core::media::Part;
use bimetal_core::units::{Ppa, RegionId};

use super::{Carried, FileMedia, From, Io, PageRead};
use crate::store::backing::is_full;
use crate::store::frame::{FrameError, PageSum, Place, SECTOR, Tag, seal_label, verify_label};
use crate::store::region::{Region, Spot};

/// Bytes of frames that are read at once to be copied, unless a frame has more.
pub(super) const COPY_BYTES: usize = 128 << 10;

impl FileMedia {
    /// Reads the frames of `count` pages of a block that follow one another; all of a page that is damaged is marked as
    /// lost.
    pub(super) fn load(&mut self, region: RegionId, first: Ppa, count: usize) {
        // Several at once, unless one of them is elsewhere or cannot be read: the others still can be.
        let of_region = &self.regions[region.index()];
        let frames = &mut self.frames.bytes_mut()[..count * of_region.layout.stride()];
        let is_loaded = count > 1
            && self.held.is_empty()
            && of_region.spot(first).is_some_and(|spot| of_region.load(&spot, frames).is_ok());
        self.sums.clear();
        for (index, page) in (first.0..).take(count).enumerate() {
            let spot = self.regions[region.index()].spot(Ppa(page));
            debug_assert!(spot.is_some(), "a page is copied that was not programmed");
            let sum = self.load_frame(region, spot.as_ref(), index, is_loaded);
            self.sums.push(sum);
        }
    }

    /// Reads a frame, unless it is loaded already, and verifies it. Returns the checksum of its page.
    fn load_frame(&mut self, region: RegionId, spot: Option<&Spot>, index: usize, is_loaded: bool) -> PageSum {
        let region = &self.regions[region.index()];
        let (layout, id) = (region.layout, region.id);
        let frame = &mut self.frames.bytes_mut()[index * layout.stride()..(index + 1) * layout.stride()];
        let sum = |frame: &[u8]| PageSum::of(&frame[..layout.page_bytes()], self.seed);
        let Some(spot) = spot else {
            layout.clear(frame, Tag::UNREADABLE);
            return sum(frame);
        };
        let loaded = match self.held.get(&(id, spot.offset)) {
            Some(held) => {
                frame.copy_from_slice(held);
                Ok(())
            }
            None if is_loaded => Ok(()),
            None => region.load(spot, frame),
        };
        let found = sum(frame);
        let verify = |()| verify_label(&frame[layout.page_bytes()..], found, spot.place, spot.since);
        let wrong = match loaded.map(verify) {
            Ok(Ok(_)) => return found,
            Ok(Err(error)) => Ok(error),
            Err(error) => Err(error),
        };
        layout.clear(frame, Tag::UNREADABLE);
        let cleared = sum(frame);
        match wrong {
            Ok(error) => self.note_damage(spot, error),
            Err(error) => self.fail(format!("a page of region {id} cannot be read"), &error),
        }
        cleared
    }

    /// A page is damaged.
    pub(super) fn note_damage(&mut self, spot: &Spot, error: FrameError) {
        let Place { region, block, page, .. } = spot.place;
        tracing::warn!("region {region}, block {block}, page {page} is damaged: {error}");
        self.media_errors += 1;
    }

    /// Whether the frame of a page is in its file, and neither waits in memory nor is held there.
    pub(super) fn is_in_file(&self, spot: &Spot) -> bool {
        let region = spot.place.region;
        !self.held.contains_key(&(region, spot.offset)) && !self.regions[usize::from(region)].is_waiting(spot)
    }

    /// Where sectors on their way begin in the arena; a page is loaded.
    pub(super) fn loaded(&mut self, data: Carried) -> u32 {
        let number = match data.from {
            From::Arena(first) => return first,
            From::Page(number) => number as usize,
        };
        let PageRead { region, spot, first } = self.pages[number];
        if let Some(first) = first {
            return first;
        }
        self.load_frame(region, spot.as_ref(), 0, false);
        let layout = self.regions[region.index()].layout;
        let sectors = layout.page_sectors();
        let first = self.arena.take(sectors);
        let (bytes, tags) = self.arena.sectors_mut(first, sectors as u32);
        let frame = self.frames.bytes();
        bytes.copy_from_slice(&frame[..bytes.len()]);
        for (index, tag) in tags.iter_mut().enumerate() {
            *tag = layout.tag(frame, index);
        }
        self.pages[number].first = Some(first);
        first
    }

    /// Writes parts, which are in memory, as a page.
    pub(super) fn store(&mut self, region: RegionId, spot: &Spot, parts: &[Part<Carried>]) {
        let Self { regions, arena, pages, sequence, seed, io, .. } = self;
        let region = &mut regions[region.index()];
        let layout = region.layout;
        let compose = |frame: &mut [u8]| {
            if parts.iter().map(|part| part.sectors as usize).sum::<usize>() < layout.page_sectors() {
                layout.clear(frame, Tag::NONE);
            }
            for part in parts {
                let first = part.from
                    + match part.data.from {
                        From::Arena(first) => first,
                        From::Page(page) => pages[page as usize].first.unwrap_or_default(),
                    };
                let to = part.to as usize;
                let bytes = arena.bytes(first, part.sectors);
                frame[to * SECTOR..to * SECTOR + bytes.len()].copy_from_slice(bytes);
                for (index, &tag) in arena.tags(first, part.sectors).iter().enumerate() {
                    layout.set_tag(frame, to + index, tag);
                }
            }
            layout.seal(frame, spot.place, *sequence, *seed);
        };
        match if *io == Io::Files { region.write(spot, compose) } else { Err(io::ErrorKind::StorageFull.into()) } {
            Ok(()) => {}
            Err(error) => {
                let mut frame = vec![0; layout.stride()];
                compose(&mut frame);
                self.hold(spot, frame, &error);
            }
        }
    }

    /// Writes the frame of that index, which was loaded, as another page. Its page stays as it is, and so does the checksum of that.
    fn store_copy(&mut self, region: RegionId, spot: &Spot, index: usize, sequence: u64) {
        let region = &mut self.regions[region.index()];
        let layout = region.layout;
        let frame = &mut self.frames.bytes_mut()[index * layout.stride()..(index + 1) * layout.stride()];
        seal_label(&mut frame[layout.page_bytes()..], self.sums[index], spot.place, sequence);
        let compose = |place: &mut [u8]| place.copy_from_slice(frame);
        match if self.io == Io::Files { region.write(spot, compose) } else { Err(io::ErrorKind::StorageFull.into()) } {
            Ok(()) => {}
            Err(error) => {
                let frame = frame.to_vec();
                self.hold(spot, frame, &error);
            }
        }
    }

    /// Holds a frame in memory that could not be written.
    pub(super) fn hold(&mut self, spot: &Spot, frame: Vec<u8>, error: &io::Error) {
        let region = spot.place.region;
        self.held_bytes += frame.len();
        if let Some(old) = self.held.insert((region, spot.offset), frame) {
            self.held_bytes -= old.len();
        }
        // For what there is no room now, there may be later.
        if !is_full(error) {
            self.fail(format!("a page of region {region} cannot be written"), error);
        }
    }

    /// Writes the frames that are held because there was no room for them.
    pub(super) fn place_held(&mut self) -> io::Result<()> {
        while let Some((&(region, offset), frame)) = self.held.first_key_value() {
            self.regions[usize::from(region)].write_through(offset, frame)?;
            self.held_bytes -= frame.len();
            self.held.pop_first();
        }
        Ok(())
    }

    /// Takes a page for a program; its frame is stored next.
    pub(super) fn take(&mut self, region: RegionId, page: Ppa) -> Spot {
        self.is_busy = true;
        self.sequence += 1;
        self.regions[region.index()].take(page, self.sequence)
    }

    /// Copies the bytes of `count` pages of a block that follow one another to pages that do.
    pub(super) fn copy_bytes(&mut self, region: RegionId, from: Ppa, count: usize, to: Ppa) {
        let sequence = self.sequence + 1;
        for to in (to.0..).take(count) {
            self.take(region, Ppa(to));
        }
        if self.io == Io::Replay {
            return;
        }
        let mut done = 0;
        while done < count {
            let now = [from, to].map(|page| Ppa(page.0 + done as u32));
            let Some(copied) = self.copy_at_once(region, now, count - done, sequence + done as u64) else { break };
            done += copied;
        }
        if done < count {
            self.load(region, Ppa(from.0 + done as u32), count - done);
        }
        for (index, number) in (done..count).enumerate() {
            if let Some(spot) = self.regions[region.index()].spot(Ppa(to.0 + number as u32)) {
                self.store_copy(region, &spot, index, sequence + number as u64);
            }
        }
    }

    /// Copies pages from their file to the write buffer without another copy. Returns how many; none if one of them is elsewhere,
    /// or the file fails.
    fn copy_at_once(&mut self, region: RegionId, [from, to]: [Ppa; 2], count: usize, sequence: u64) -> Option<usize> {
        let (seed, is_to_files) = (self.seed, self.io == Io::Files && self.held.is_empty());
        let region = &mut self.regions[region.index()];
        let (source, target, layout) = (region.spot(from)?, region.spot(to)?, region.layout);
        let stride = layout.stride();
        let waits = |region: &Region| (0..count).any(|page| region.is_waiting(&source.after(page, stride)));
        if !is_to_files || waits(region) {
            return None;
        }
        let mut damaged = Vec::new();
        let copied = region.write_several(&target, count, |file, frames| {
            file.read_at(source.offset, frames)?;
            for (page, frame) in frames.chunks_exact_mut(stride).enumerate() {
                let (source, target) = (source.after(page, stride), target.after(page, stride));
                let mut sum = PageSum::of(&frame[..layout.page_bytes()], seed);
                if let Err(error) = verify_label(&frame[layout.page_bytes()..], sum, source.place, source.since) {
                    damaged.push((source, error));
                    layout.clear(frame, Tag::UNREADABLE);
                    sum = PageSum::of(&frame[..layout.page_bytes()], seed);
                }
                seal_label(&mut frame[layout.page_bytes()..], sum, target.place, sequence + page as u64);
            }
            Ok(())
        });
        let copied = copied.ok()?;
        for (spot, error) in damaged {
            self.note_damage(&spot, error);
        }
        Some(copied)
    }

    /// How many of the first pages follow one another in a block, and can be copied at once.
    pub(super) fn in_a_row(&self, region: RegionId, pages: &[Ppa]) -> usize {
        let Region { geometry, layout, .. } = &self.regions[region.index()];
        let most = (COPY_BYTES / layout.stride()).max(1);
        let follows = |two: &&[Ppa]| two[1].0 == two[0].0 + 1 && geometry.block_of(two[0]) == geometry.block_of(two[1]);
        1 + pages[..pages.len().min(most)].windows(2).take_while(follows).count()
    }
}
