//! Finding out where sectors lie: the scheme is asked for all of them, over media that move nothing.
//!
//! Serving a read may move data: a cache takes what it did not have, a log makes room for that. So the media note, for each page that
//! is programmed on the way, from where in the files its sectors came. What the scheme believes by then is worth nothing to the store.
//! If that becomes too much to note, the scheme begins again in the state in which the store was closed.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bimetal_core::device::Resolved;
use bimetal_core::media::{Cause, CellMode, Media, Part, Stream};
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{self, Scheme};
use bimetal_core::units::{BlockId, Geometry, Ppa, RegionId};

use super::{Place, Writer};
use crate::store::bitmap::Bitmap;
use crate::store::engine::panic_text;
use crate::store::region::Region;

/// Sectors of pages programmed in a survey whose places are noted, at most; one request may lead to somewhat more.
const NOTED_MAX: usize = 1 << 20;
/// Sectors that the scheme is asked for at once.
const REQUEST_SECTORS: u64 = 256;

/// Asks a scheme, in the saved state `saved`, for all sectors that `written` has, and adds them to a map.
///
/// # Errors
/// The map cannot be written, or the scheme cannot be asked.
pub fn survey(
    resolved: &Resolved,
    saved: &[u8],
    regions: &[Region],
    written: &Bitmap,
    map: &mut Writer<'_>,
) -> io::Result<()> {
    survey_by(resolved, saved, regions, written, NOTED_MAX, &mut |sector, place| map.add(sector, place))
}

fn survey_by(
    resolved: &Resolved,
    saved: &[u8],
    regions: &[Region],
    written: &Bitmap,
    noted_max: usize,
    add: &mut dyn FnMut(u64, Place) -> io::Result<()>,
) -> io::Result<()> {
    let restore = || {
        let (name, shape) = (&resolved.device.scheme, &resolved.shape);
        scheme::restore::<Places>(name, shape, &resolved.settings, saved).map_err(io::Error::other)
    };
    let (mut scheme, mut media) = (restore()?, Places::new(regions));
    let (mut sector, end) = (0, resolved.shape.logical_sectors);
    while sector < end {
        if !written.get(sector) {
            sector += written.run(sector, end);
            continue;
        }
        if media.noted > noted_max {
            (scheme, media) = (restore()?, Places::new(regions));
        }
        let sectors = written.run(sector, end.min(sector + REQUEST_SECTORS));
        let served = catch_unwind(AssertUnwindSafe(|| media.serve(scheme.as_mut(), sector, sectors as u32)));
        served.map_err(|panic| io::Error::other(panic_text(panic.as_ref()).to_owned()))?;
        for (place, sector) in media.found.iter().zip(sector..) {
            add(sector, place.unwrap_or(Place::Nowhere))?;
        }
        sector += sectors;
    }
    Ok(())
}

/// Blocks of a region, and the slot that each has in the file.
struct Blocks {
    geometry: Geometry,
    slots: Vec<Option<u32>>,
}

impl Blocks {
    fn new(region: &Region) -> Self {
        let slot = |block| region.spot(region.geometry.ppa(BlockId(block), 0)).map(|spot| spot.place.slot);
        Self { geometry: region.geometry, slots: (0..region.geometry.blocks).map(slot).collect() }
    }

    fn page_sectors(&self) -> usize {
        self.geometry.page_sectors() as usize
    }
}

/// Where sectors on their way come from.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// Those that lie one behind the other, beginning there.
    Row(Place),
    /// As noted, from this entry on.
    Noted(u32),
}

/// Media that know where everything comes from, and move nothing.
pub struct Places {
    regions: Vec<Blocks>,
    /// Where the sectors of pages come from that were programmed since.
    pages: BTreeMap<(RegionId, Ppa), Box<[Place]>>,
    /// Sectors in them.
    noted: usize,
    /// Where sectors of the home disk come from that were written since.
    disk: BTreeMap<u64, Place>,
    /// Notes of the request being served.
    notes: Vec<Place>,
    /// Where the sectors of the request being served come from.
    found: Vec<Option<Place>>,
}

impl Places {
    fn new(regions: &[Region]) -> Self {
        Self {
            regions: regions.iter().map(Blocks::new).collect(),
            pages: BTreeMap::new(),
            noted: 0,
            disk: BTreeMap::new(),
            notes: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Lets the scheme serve a read.
    fn serve(&mut self, scheme: &mut dyn Scheme<Self>, sector: u64, sectors: u32) {
        self.notes.clear();
        self.found.clear();
        self.found.resize(sectors as usize, None);
        scheme.serve(self, &Request { arrival_ns: 0, sector, sectors, op: Op::Read, handle: 0 });
    }

    fn place(&self, from: From, at: u32) -> Place {
        match from {
            From::Noted(first) => self.notes[(first + at) as usize],
            From::Row(Place::Flash { region, slot, page, sector }) => {
                Place::Flash { region, slot, page, sector: sector + at as u16 }
            }
            From::Row(Place::Disk(sector)) => Place::Disk(sector + u64::from(at)),
            From::Row(Place::Nowhere) => Place::Nowhere,
        }
    }

    fn note(&mut self, places: impl IntoIterator<Item = Place>) -> From {
        let first = self.notes.len() as u32;
        self.notes.extend(places);
        From::Noted(first)
    }

    /// Where the first sector of a page lies that was not programmed since.
    fn first(&self, region: RegionId, page: Ppa) -> Place {
        let Blocks { geometry, slots } = &self.regions[region.index()];
        let page_in_block = geometry.page_of(page) as u16;
        match slots[geometry.block_of(page).index()] {
            Some(slot) => Place::Flash { region: region.0, slot, page: page_in_block, sector: 0 },
            None => Place::Nowhere,
        }
    }

    fn put(&mut self, region: RegionId, page: Ppa, places: Box<[Place]>) {
        self.noted += places.len();
        if let Some(before) = self.pages.insert((region, page), places) {
            self.noted -= before.len();
        }
    }

    fn destaged(&mut self, sector: u64, place: Place) {
        if self.disk.insert(sector, place).is_none() {
            self.noted += 1;
        }
    }
}

impl Media for Places {
    type Data = From;

    fn host(&self) -> From {
        From::Row(Place::Nowhere)
    }

    fn read(&mut self, region: RegionId, page: Ppa, _: Cause) -> From {
        match self.pages.get(&(region, page)) {
            // Its block may be erased before they are needed.
            Some(places) => {
                let first = self.notes.len() as u32;
                self.notes.extend_from_slice(places);
                From::Noted(first)
            }
            None => From::Row(self.first(region, page)),
        }
    }

    fn program(&mut self, region: RegionId, page: Ppa, parts: &[Part<From>], _: Stream, _: Cause) {
        let mut places = vec![Place::Nowhere; self.regions[region.index()].page_sectors()];
        for part in parts {
            for at in 0..part.sectors {
                places[(part.to + at) as usize] = self.place(part.data, part.from + at);
            }
        }
        self.put(region, page, places.into());
    }

    fn copy(&mut self, region: RegionId, from: Ppa, to: Ppa, _: Stream, _: Cause) {
        let places = self.pages.get(&(region, from)).cloned().unwrap_or_else(|| {
            let row = From::Row(self.first(region, from));
            (0..self.regions[region.index()].page_sectors() as u32).map(|at| self.place(row, at)).collect()
        });
        self.put(region, to, places);
    }

    fn erase(&mut self, region: RegionId, block: BlockId, _: CellMode, _: Cause) {
        let Blocks { geometry, slots } = &mut self.regions[region.index()];
        slots[block.index()] = None;
        let pages = (region, geometry.ppa(block, 0))..=(region, geometry.ppa(block, geometry.pages_per_block - 1));
        let erased: Vec<_> = self.pages.range(pages).map(|(&page, _)| page).collect();
        for page in erased {
            self.noted -= self.pages.remove(&page).map_or(0, |places| places.len());
        }
    }

    fn deliver(&mut self, data: From, from: u32, at: u32, sectors: u32) {
        for (index, at) in (from..from + sectors).zip(at as usize..) {
            if self.found[at].is_none() {
                self.found[at] = Some(self.place(data, index));
            }
        }
    }

    fn deliver_zeros(&mut self, _: u32, _: u32) {}

    fn fetch(&mut self, sector: u64, sectors: u32, _: Cause) -> From {
        let end = sector + u64::from(sectors);
        if self.disk.range(sector..end).next().is_none() {
            return From::Row(Place::Disk(sector));
        }
        let places: Vec<Place> =
            (sector..end).map(|sector| self.disk.get(&sector).copied().unwrap_or(Place::Disk(sector))).collect();
        self.note(places)
    }

    fn destage(&mut self, data: From, from: u32, sector: u64, sectors: u32, _: Cause) {
        for (at, sector) in (from..from + sectors).zip(sector..) {
            self.destaged(sector, self.place(data, at));
        }
    }

    fn disk_write(&mut self, sector: u64, _: u32, sectors: u32) {
        for sector in sector..sector + u64::from(sectors) {
            self.destaged(sector, Place::Nowhere);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use bimetal_core::part::random::below;
    use bimetal_core::scheme::SCHEMES;

    use crate::BlockDevice;
    use crate::store::backing::Storage;
    use crate::store::crash_backing::CrashStorage;
    use crate::store::soak::TINY;
    use crate::store::{CreateOptions, Mapped, OpenOptions, Store, create};

    fn serve_anything(store: &Store, content: &mut [u8]) {
        let mut state = 3;
        for number in 0..700_u64 {
            let sectors = 1 + below(&mut state, 24);
            let sector = below(&mut state, store.sectors() - sectors);
            let range = sector as usize * 512..(sector + sectors) as usize * 512;
            if below(&mut state, 6) == 0 {
                content[range].fill(0);
                store.trim(sector, sectors, false).unwrap();
            } else {
                content[range.clone()].fill(number as u8 | 1);
                store.write(sector, &content[range], false).unwrap();
            }
        }
        // As a cache does it at some time.
        store.flush().unwrap();
    }

    /// Every request begins with the state as it was saved, every 40 sectors, or goes on with what the ones before led to.
    #[test]
    fn whatever_serving_reads_moves_the_places_are_those_of_the_files() {
        for spec in SCHEMES {
            for (tiny, seed) in TINY.iter().zip(0..) {
                let storage = Arc::new(CrashStorage::new());
                let device = tiny.device(spec, seed).unwrap();
                create(storage.as_ref(), &device, &CreateOptions { number: Some(1), ..CreateOptions::default() })
                    .unwrap();
                let open = || Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap();
                let store = open();
                let mut content = vec![0; store.sectors() as usize * 512];
                serve_anything(&store, &mut content);
                store.close().unwrap();
                let (resolved, mut found) = (store.resolved().clone(), Vec::new());
                store.inspect(|_, engine| {
                    let mut saved = Vec::new();
                    engine.scheme.save(&mut saved);
                    for noted_max in [0, 40, NOTED_MAX] {
                        let mut places = Vec::new();
                        let (regions, written) = (engine.media.regions(), engine.media.written());
                        survey_by(&resolved, &saved, regions, written, noted_max, &mut |sector, place| {
                            places.push((sector, place));
                            Ok(())
                        })
                        .unwrap();
                        found.push(places);
                    }
                });
                let what = format!("{} on `{}`", spec.name, tiny.name);
                assert!(found[0] == found[1] && found[1] == found[2], "{what}");
                assert!(found[0].iter().all(|&(_, place)| place != Place::Nowhere), "{what}");
                drop(store);
                let mut bytes = vec![0; content.len()];
                let mut mapped = Mapped::open(storage.as_ref()).unwrap();
                let (read, lost) = mapped
                    .read_all(&mut |sector, run| {
                        bytes[sector as usize * 512..][..run.len()].copy_from_slice(run);
                        Ok(())
                    })
                    .unwrap();
                assert_eq!((read, lost), (mapped.written_sectors(), vec![]), "{what}");
                assert!(bytes == content, "{what}");
            }
        }
    }
}
