//! Requests that are served while a flush is under way: what comes meanwhile is not part of it, and shares slots and sectors of the
//! home disk with what is.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Run, below};
use crate::block_device::BlockDevice;
use crate::store::arena::HostData;
use crate::store::device::{Store, Took};
use crate::store::engine::Engine;

/// Requests that may come during one flush.
const REQUESTS_MAX: u64 = 6;
/// Blocks whose erase may wait for a commit, at most: a region has slots for some more, and no commit can come meanwhile.
const PARKED_MAX: u32 = 10;

/// A request that is to come meanwhile: sectors, and their data or nothing if they are read.
struct Request {
    sector: u64,
    sectors: u64,
    data: Option<(u64, Vec<u8>)>,
}

/// What has come of a request.
struct Served {
    /// Events before it.
    events: u64,
    request: Request,
    /// What was read.
    bytes: Vec<u8>,
    failure: Option<String>,
}

/// Whether the engine can serve a request.
fn has_leeway(engine: &Engine) -> bool {
    engine.media.regions().iter().all(|region| region.parked() <= PARKED_MAX)
        && !engine.lacks_room()
        && engine.media.failure().is_none()
}

/// Serves a request, without the commit that it may call for: it would wait for the one under way, which waits for it here.
fn serve(store: &Store, request: Request) -> Served {
    let events = store.events();
    let mut bytes = vec![0xee; request.sectors as usize * 512];
    let done = match &request.data {
        Some((_, data)) => store.change_only(|engine| engine.write(request.sector, HostData::Borrowed(data), None)),
        None => store.read_piece(request.sector, &mut bytes, &mut Took::new(None)),
    };
    Served { events, request, bytes, failure: done.err().map(|error| error.to_string()) }
}

impl Run {
    /// Flushes, with requests of others at one of its syncs.
    pub(super) fn flush(&mut self, store: &Arc<Store>) -> Result<(), String> {
        let last = self.model.last_event();
        let served: Arc<Mutex<Vec<Served>>> = Arc::default();
        let mut coming: Vec<Request> = (0..self.draw(REQUESTS_MAX)).map(|_| self.coming()).collect();
        let (mut before, theirs, log) = (self.draw(2), Arc::clone(store), Arc::clone(&served));
        self.storage.set_meanwhile(Some(Box::new(move || {
            let is_due = before == 0;
            before = before.saturating_sub(1);
            // During a checkpoint nothing is served.
            while is_due && theirs.try_look(has_leeway) == Some(true) {
                let Some(request) = coming.pop() else { break };
                log.lock().unwrap_or_else(PoisonError::into_inner).push(serve(&theirs, request));
            }
        })));
        let flushed = store.flush();
        self.storage.set_meanwhile(None);
        let served = std::mem::take(&mut *served.lock().unwrap_or_else(PoisonError::into_inner));
        for Served { events, request, bytes, failure } in served {
            self.tally.requests += 1;
            self.tally.overlapping += 1;
            let Request { sector, sectors, data } = request;
            match data {
                Some((version, _)) => self.model.written(sector, sectors, events, version),
                None if failure.is_none() => self.model.compare(sector, &bytes)?,
                None => {}
            }
            if let Some(failure) = failure.filter(|_| !self.storage.is_crashed()) {
                return Err(format!("a request during a flush fails: {failure}"));
            }
        }
        if flushed.is_ok() {
            self.tally.flushes += 1;
            self.model.flushed_to(last);
        }
        self.tell(flushed)
    }

    /// A request of one event.
    fn coming(&mut self) -> Request {
        let total = self.model.sectors();
        let sectors = 1 + self.draw(u64::from(self.limits.request_sectors).min(16));
        let sector = below(&mut self.random, total - sectors);
        let data = (self.draw(4) > 0).then(|| self.model.next(sector, sectors));
        Request { sector, sectors, data }
    }
}
