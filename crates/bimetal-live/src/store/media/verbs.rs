//! The verbs of the seam over files. The simulated media count and time each verb, which also moves bytes.

use bimetal_core::media::{Cause, CellMode, Media, Part, Stream};
use bimetal_core::scheme::{self, BuildError, Platform, Scheme, Shape};
use bimetal_core::units::{BlockId, Ppa, RegionId};

use super::{Carried, FileMedia, From, Io, PageRead};
use crate::store::frame::Tag;
use crate::store::places::Survey;

impl Carried {
    /// Sectors of a note in a survey.
    fn noted(note: u32) -> Self {
        Self { ready: 0, from: From::Arena(note) }
    }

    /// The note.
    fn note(self) -> u32 {
        match self.from {
            From::Arena(note) | From::Page(note) => note,
        }
    }
}

impl Platform for FileMedia {
    fn construct(
        name: &str,
        shape: &Shape,
        settings: &[(String, String)],
        saved: Option<&[u8]>,
    ) -> Result<Box<dyn Scheme<Self>>, BuildError> {
        scheme::construct(name, shape, settings, saved)
    }
}

impl Media for FileMedia {
    type Data = Carried;

    fn host(&self) -> Carried {
        if self.survey.is_some() {
            return Carried::noted(Survey::HOST);
        }
        Carried { ready: self.sim.host(), from: From::Arena(0) }
    }

    fn read(&mut self, region: RegionId, page: Ppa, cause: Cause) -> Carried {
        if let Some(survey) = &mut self.survey {
            return Carried::noted(survey.read(&self.regions[region.index()], page));
        }
        let ready = self.sim.read(region, page, cause);
        if self.io == Io::Replay {
            return Carried { ready, from: From::Arena(0) };
        }
        // Its current place: its block may be erased before its bytes are needed, but its slot does not change until
        // the next commit.
        let spot = self.regions[region.index()].spot(page);
        debug_assert!(spot.is_some(), "a page is read that was not programmed");
        self.pages.push(PageRead { region, spot, first: None });
        Carried { ready, from: From::Page(self.pages.len() as u32 - 1) }
    }

    fn program(&mut self, region: RegionId, page: Ppa, parts: &[Part<Carried>], stream: Stream, cause: Cause) {
        if let Some(survey) = &mut self.survey {
            let noted = |part: &Part<Carried>| {
                let Part { data, from, to, sectors } = *part;
                Part { data: data.note(), from, to, sectors }
            };
            return survey.program(&self.regions[region.index()], page, parts.iter().map(noted));
        }
        self.parts.clear();
        let timed = |part: &Part<Carried>| {
            let Part { data, from, to, sectors } = *part;
            Part { data: data.ready, from, to, sectors }
        };
        self.parts.extend(parts.iter().map(timed));
        self.sim.program(region, page, &self.parts, stream, cause);
        let spot = self.take(region, page);
        if self.io == Io::Replay {
            return;
        }
        if let Some(first) = self.straight(region, &spot, parts) {
            return self.add_to_row(region, &spot, first);
        }
        if let Some(source) = self.moved(region, parts) {
            return self.add_move(region, Some(source), spot);
        }
        self.compose(region, spot, parts);
    }

    fn copy(&mut self, region: RegionId, from: Ppa, to: Ppa, stream: Stream, cause: Cause) {
        if let Some(survey) = &mut self.survey {
            return survey.copy(&self.regions[region.index()], from, to);
        }
        self.sim.copy(region, from, to, stream, cause);
        self.copy_bytes(region, from, to);
    }

    fn copy_run(&mut self, region: RegionId, from: &[Ppa], to: Ppa, stream: Stream, cause: Cause) {
        if let Some(survey) = &mut self.survey {
            let region = &self.regions[region.index()];
            return from.iter().zip(to.0..).for_each(|(&from, to)| survey.copy(region, from, Ppa(to)));
        }
        self.sim.copy_run(region, from, to, stream, cause);
        from.iter().zip(to.0..).for_each(|(&from, to)| self.copy_bytes(region, from, Ppa(to)));
    }

    fn erase(&mut self, region: RegionId, block: BlockId, mode: CellMode, cause: Cause) {
        if let Some(survey) = &mut self.survey {
            let of_region = &mut self.regions[region.index()];
            survey.erase(region, &of_region.geometry, of_region.geometry.ppa(block, 0));
            return of_region.erase(block);
        }
        self.is_busy = true;
        self.sim.erase(region, block, mode, cause);
        self.regions[region.index()].erase(block);
    }

    fn deliver(&mut self, data: Carried, from: u32, at: u32, sectors: u32) {
        if let Some(survey) = &mut self.survey {
            return survey.deliver(data.note(), from, at, sectors);
        }
        self.sim.deliver(data.ready, from, at, sectors);
        if self.io == Io::Replay {
            return;
        }
        if let From::Page(page) = data.from
            && let PageRead { spot: Some(spot), first: None, .. } = self.pages[page as usize]
        {
            self.write_if_deferred(&spot);
            if self.is_in_file(&spot) {
                return self.reading.plan(spot, from, at, sectors);
            }
        }
        let first = self.loaded(data) + from;
        self.reading.take(at, self.arena.bytes(first, sectors), self.arena.tags(first, sectors));
    }

    fn deliver_zeros(&mut self, at: u32, sectors: u32) {
        if self.survey.is_some() {
            return;
        }
        self.sim.deliver_zeros(at, sectors);
    }

    fn fetch(&mut self, sector: u64, sectors: u32, cause: Cause) -> Carried {
        if let Some(survey) = &mut self.survey {
            return Carried::noted(survey.fetch(sector, sectors));
        }
        let ready = self.sim.fetch(sector, sectors, cause);
        let (Some(disk), true) = (&mut self.disk, self.io != Io::Replay) else {
            return Carried { ready, from: From::Arena(0) };
        };
        let first = self.arena.take(sectors as usize);
        let (bytes, tags) = self.arena.sectors_mut(first, sectors);
        if let Err(error) = disk.read(sector, bytes, tags) {
            tags.fill(Tag::UNREADABLE);
            self.fail("the home disk cannot be read", &error);
        }
        let lost = self.arena.tags(first, sectors).iter().filter(|tag| tag.is_lost()).count();
        self.media_errors += u64::from(lost > 0);
        Carried { ready, from: From::Arena(first) }
    }

    fn destage(&mut self, data: Carried, from: u32, sector: u64, sectors: u32, cause: Cause) {
        if let Some(survey) = &mut self.survey {
            return survey.destage(data.note(), from, sector, sectors);
        }
        self.is_busy = true;
        self.sim.destage(data.ready, from, sector, sectors, cause);
        if self.io == Io::Replay {
            return;
        }
        let first = self.loaded(data) + from;
        if let Some(disk) = &mut self.disk {
            disk.write(sector, self.arena.bytes(first, sectors), self.arena.tags(first, sectors));
        }
    }

    fn disk_write(&mut self, sector: u64, from: u32, sectors: u32) {
        if let Some(survey) = &mut self.survey {
            return survey.destage(Survey::HOST, from, sector, sectors);
        }
        self.sim.disk_write(sector, from, sectors);
        if let (Some(disk), true) = (&mut self.disk, self.io != Io::Replay) {
            disk.write(sector, self.arena.bytes(from, sectors), self.arena.tags(from, sectors));
        }
    }
}
