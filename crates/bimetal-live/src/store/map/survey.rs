//! Survey of the places of all sectors: the scheme is asked for all of them, over media that move no data.
//!
//! The scheme is the instance that served the store, after its last checkpoint is durable, when its state is no longer
//! needed. Serving a read may move data: a cache inserts missing sectors, and a log makes room for them. So for each
//! page programmed on the way, the media note the origin of its sectors in the files. If the notes become too large,
//! the scheme starts again from the state of the checkpoint.

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bimetal_core::request::{Op, Request};

use crate::store::engine::{Engine, panic_text};
use crate::store::places::{Place, REQUEST_SECTORS, Survey};

/// Largest number of noted sectors in pages programmed during a survey. A single request may exceed it somewhat.
pub(super) const NOTED_MAX: usize = 1 << 20;

/// Asks the scheme for all sectors that hold data, and passes the place of each run of them to `add`. `reload` returns
/// the scheme and its media to their current state. The engine must not be used after that.
///
/// # Errors
/// Errors of `add` and `reload`, or a failure of the scheme.
pub fn survey(
    engine: &mut Engine,
    noted_max: usize,
    mut reload: impl FnMut(&mut Engine) -> io::Result<()>,
    add: &mut dyn FnMut(u64, u32, Place) -> io::Result<()>,
) -> io::Result<()> {
    let (mut sector, end) = (0, engine.sectors);
    engine.media.begin_survey();
    while sector < end {
        let written = engine.media.written();
        if !written.get(sector) {
            sector += written.run(sector, end);
            continue;
        }
        let sectors = written.run(sector, end.min(sector + REQUEST_SECTORS));
        if engine.media.survey().is_some_and(|survey| survey.noted > noted_max) {
            reload(engine)?;
            engine.media.begin_survey();
        }
        let Engine { scheme, media, .. } = &mut *engine;
        let request = Request { arrival_ns: 0, sector, sectors: sectors as u32, op: Op::Read, handle: 0 };
        let served = catch_unwind(AssertUnwindSafe(|| {
            if let Some(survey) = media.survey_mut() {
                survey.begin();
            }
            scheme.serve(media, &request);
        }));
        served.map_err(|panic| io::Error::other(panic_text(panic.as_ref()).to_owned()))?;
        let mut at = 0;
        for (first, found, place) in media.survey().into_iter().flat_map(Survey::found) {
            add_lost(sector, at..first, add)?;
            add(sector + u64::from(first), found, place)?;
            at = first + found;
        }
        add_lost(sector, at..sectors as u32, add)?;
        sector += sectors;
    }
    Ok(())
}

/// Adds sectors of a request that were not delivered, if there are any.
fn add_lost(sector: u64, lost: Range<u32>, add: &mut dyn FnMut(u64, u32, Place) -> io::Result<()>) -> io::Result<()> {
    if lost.is_empty() { Ok(()) } else { add(sector + u64::from(lost.start), lost.end - lost.start, Place::Nowhere) }
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
    use crate::store::places::page_sectors;
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
        // As a cache does at some time.
        store.flush().unwrap();
    }

    /// Requests start from the saved state, either always or every 40 sectors, or continue from the effects of earlier
    /// ones.
    #[test]
    fn whatever_serving_reads_moves_the_places_are_those_of_the_files() {
        let mut any_reloads = false;
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
                let mut reloads = 0;
                store.inspect(|committer, engine| {
                    let page_sectors = page_sectors(engine.media.regions());
                    for noted_max in [0, 40, NOTED_MAX] {
                        let mut places = Vec::new();
                        committer.reload(engine, &resolved).unwrap();
                        let reload = |engine: &mut Engine| {
                            reloads += 1;
                            committer.reload(engine, &resolved)
                        };
                        survey(engine, noted_max, reload, &mut |sector, sectors, place| {
                            let each = (0..sectors).map(|ahead| place.after(ahead, &page_sectors).unwrap());
                            places.extend((sector..).zip(each));
                            Ok(())
                        })
                        .unwrap();
                        found.push(places);
                    }
                });
                any_reloads |= reloads > 0;
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
        assert!(any_reloads);
    }
}
