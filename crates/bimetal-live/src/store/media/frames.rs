//! Frames between regions and memory: the data of a page with their tags are read and verified, sealed and written, or
//! held in memory when nothing is written any more.

use std::io;

use bimetal_core::media::Part;
use bimetal_core::units::{Ppa, RegionId};

use super::{Carried, FileMedia, From, Held, Io, PageRead};
use crate::store::backing::is_full;
use crate::store::frame::{FrameError, PageSum, Place, SECTOR, Tag, seal_label, verify_label};
use crate::store::region::{Region, Spot};

/// Number of reads of damaged pages that are logged until the store is closed.
const LOGGED_MAX: u32 = 100;

impl FileMedia {
    /// Reads the frame of a page into memory and verifies it. All sectors of a damaged page are marked as lost. Returns
    /// the checksum of its page.
    pub(super) fn load_frame(&mut self, region: RegionId, spot: Option<&Spot>) -> PageSum {
        if let Some(spot) = spot {
            self.write_if_deferred(spot);
        }
        let region = &self.regions[region.index()];
        let (layout, id) = (region.layout, region.id);
        let frame = &mut self.frame.bytes_mut()[..layout.stride()];
        let sum = |frame: &[u8]| PageSum::of(&frame[..layout.page_bytes()], self.seed);
        let Some(spot) = spot else {
            layout.clear(frame, Tag::UNREADABLE);
            return sum(frame);
        };
        let loaded = load(&self.regions, &self.held, spot, frame);
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

    /// Reads the frame of a page, which may be held in memory.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(in crate::store) fn load(&self, spot: &Spot, frame: &mut [u8]) -> io::Result<()> {
        load(&self.regions, &self.held, spot, frame)
    }

    /// Notes a damaged page. A client that reads damaged pages again and again must not fill the log.
    pub(super) fn note_damage(&mut self, spot: &Spot, error: FrameError) {
        let Place { region, block, page, .. } = spot.place;
        self.media_errors += 1;
        if self.logged_errors < LOGGED_MAX {
            self.logged_errors += 1;
            tracing::warn!("region {region}, block {block}, page {page} is damaged: {error}");
            if self.logged_errors == LOGGED_MAX {
                tracing::warn!("more reads of damaged pages are counted and not logged");
            }
        }
    }

    /// Whether the frame of a page is in its file, and neither waits nor is held in memory.
    pub(super) fn is_in_file(&self, spot: &Spot) -> bool {
        let region = spot.place.region;
        !self.held.contains_key(&(region, spot.offset)) && !self.regions[usize::from(region)].is_waiting(spot)
    }

    /// First sector in the arena of sectors in transit. A page is loaded if necessary.
    pub(super) fn loaded(&mut self, data: Carried) -> u32 {
        let number = match data.from {
            From::Arena(first) => return first,
            From::Page(number) => number as usize,
        };
        let PageRead { region, spot, first } = self.pages[number];
        if let Some(first) = first {
            return first;
        }
        self.load_frame(region, spot.as_ref());
        let layout = self.regions[region.index()].layout;
        let sectors = layout.page_sectors();
        let first = self.arena.take(sectors);
        let (bytes, tags) = self.arena.sectors_mut(first, sectors as u32);
        let frame = self.frame.bytes();
        bytes.copy_from_slice(&frame[..bytes.len()]);
        for (index, tag) in tags.iter_mut().enumerate() {
            *tag = layout.tag(frame, index);
        }
        self.pages[number].first = Some(first);
        first
    }

    /// Writes parts, which are in memory, as a page.
    pub(super) fn store(&mut self, region: RegionId, spot: &Spot, parts: &[Part<Carried>], sequence: u64) {
        let Self { regions, arena, pages, seed, io, .. } = self;
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
            layout.seal(frame, spot.place, sequence, *seed);
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

    /// Writes the frame in memory as a page. `sum` is the checksum of its page.
    pub(super) fn store_frame(&mut self, region: RegionId, spot: &Spot, sum: PageSum, sequence: u64) {
        let region = &mut self.regions[region.index()];
        let layout = region.layout;
        let frame = &mut self.frame.bytes_mut()[..layout.stride()];
        seal_label(&mut frame[layout.page_bytes()..], sum, spot.place, sequence);
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
        // A lack of space may be temporary.
        if !is_full(error) {
            self.fail(format!("a page of region {region} cannot be written"), error);
        }
    }

    /// The replay of events has ended. The journal has put frames back into slots that were freed later: drops those that are
    /// held for lack of space, and releases the space of the others.
    pub(in crate::store) fn end_replay(&mut self) {
        let Self { regions, held, held_bytes, .. } = self;
        if !held.is_empty() {
            let free: Vec<_> = regions.iter().map(Region::free_slots).collect();
            held.retain(|&(region, offset), frame| {
                let region = usize::from(region);
                let is_needed = !free[region].contains(&regions[region].slot_at(offset));
                *held_bytes -= if is_needed { 0 } else { frame.len() };
                is_needed
            });
        }
        regions.iter_mut().for_each(Region::release_owed);
    }

    /// Writes the frames that are held because of a lack of space.
    pub(in crate::store) fn place_held(&mut self) -> io::Result<()> {
        while let Some((&(region, offset), frame)) = self.held.first_key_value() {
            self.regions[usize::from(region)].write_through(offset, frame)?;
            self.held_bytes -= frame.len();
            self.held.pop_first();
        }
        Ok(())
    }

    /// Allocates the place of a page for a program. Its frame is stored next.
    pub(super) fn take(&mut self, region: RegionId, page: Ppa) -> Spot {
        self.is_busy = true;
        self.sequence += 1;
        self.regions[region.index()].take(page, self.sequence)
    }
    /// Copies the data of a page.
    pub(super) fn copy_bytes(&mut self, region: RegionId, from: Ppa, to: Ppa) {
        let source = self.regions[region.index()].spot(from);
        let target = self.take(region, to);
        self.add_move(region, source, target);
    }

    /// Writes the pages that are deferred in order to be written together.
    pub(super) fn write_deferred(&mut self) {
        self.write_row();
        self.write_moves();
        self.write_composed();
    }

    /// Does so if this page is one of them.
    pub(super) fn write_if_deferred(&mut self, spot: &Spot) {
        if self.row.holds(spot) || self.is_to_be_moved(spot) || self.composing.holds(spot) {
            self.write_deferred();
        }
    }
}

fn load(regions: &[Region], held: &Held, spot: &Spot, frame: &mut [u8]) -> io::Result<()> {
    let region = spot.place.region;
    match held.get(&(region, spot.offset)) {
        Some(held) => frame.copy_from_slice(held),
        None => regions[usize::from(region)].load(spot, frame)?,
    }
    Ok(())
}
