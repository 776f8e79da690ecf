//! Requests during a flush. They are not part of it, but share slots and home-disk sectors with its data. Sometimes
//! they are committed while the flush continues, so that several commits are in progress.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{CrashTest, below};
use crate::block_device::BlockDevice;
use crate::store::arena::HostData;
use crate::store::crash_backing::{CrashStorage, Fault};
use crate::store::device::{Store, Took};
use crate::store::engine::Engine;

/// Largest number of requests during one flush.
const REQUESTS_MAX: u64 = 10;
/// Largest number of commits during one flush.
const COMMITS_MAX: u64 = 5;
/// Largest number of erased blocks that wait for a commit. A region has slots for some more, and no commit can complete
/// meanwhile.
const PARKED_MAX: u32 = 10;

/// A request during the flush: sectors, and their data, or `None` for a read.
struct Request {
    sector: u64,
    sectors: u64,
    data: Option<(u64, Vec<u8>)>,
}

/// Result of a request.
struct Served {
    /// Number of events before it.
    events: u64,
    request: Request,
    /// The data read.
    bytes: Vec<u8>,
    failure: Option<String>,
}

/// Activity during a flush.
struct Meanwhile {
    store: Arc<Store>,
    storage: Arc<CrashStorage>,
    plan: Mutex<Plan>,
}

/// Planned requests and commits, and their results.
struct Plan {
    /// Number of syncs before the first request.
    before: u64,
    coming: Vec<Request>,
    served: Vec<Served>,
    /// For each planned commit, oldest last: number of operations before a crash or a failure, if one is planned.
    commits: Vec<Option<(u64, Fault)>>,
    /// Batches in progress when the crash happened.
    at_crash: usize,
}

impl Meanwhile {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file is about to be synced.
    fn at_sync(&self) {
        if std::mem::replace(&mut self.plan().before, 0) > 0 {
            return;
        }
        // Nothing is served during a checkpoint.
        while self.store.try_look(has_leeway) == Some(true) {
            let Some(request) = self.plan().coming.pop() else { break };
            let served = serve(&self.store, request);
            self.plan().served.push(served);
            if self.plan().coming.len().is_multiple_of(2) {
                self.commit();
            }
        }
    }

    /// Commits the new requests. Its sync calls this function again, so that more commits may begin before it ends.
    fn commit(&self) {
        let Some(crash) = self.plan().commits.pop().filter(|_| !self.storage.is_crashed()) else { return };
        let mut under_way = 0;
        self.store.try_commit(|batches| {
            under_way = batches;
            if let Some((operations, fault)) = crash.filter(|_| batches > 1) {
                self.storage.set_fault(self.storage.changes() + operations, fault);
            }
        });
        if self.storage.is_crashed() {
            let mut plan = self.plan();
            plan.at_crash = plan.at_crash.max(under_way);
        }
    }
}

/// Whether the engine can serve a request.
fn has_leeway(engine: &Engine) -> bool {
    engine.media.regions().iter().all(|region| region.parked() <= PARKED_MAX)
        && !engine.lacks_room()
        && engine.media.failure().is_none()
}

/// Serves a request without the commit that it may require. That commit would wait for the one in progress, which waits
/// here.
fn serve(store: &Store, request: Request) -> Served {
    let events = store.events();
    let mut bytes = vec![0xee; request.sectors as usize * 512];
    let done = match &request.data {
        Some((_, data)) => store.change_only(|engine| engine.write(request.sector, HostData::Borrowed(data), None)),
        None => store.read_piece(request.sector, &mut bytes, &mut Took::new(None)),
    };
    Served { events, request, bytes, failure: done.err().map(|error| error.to_string()) }
}

impl CrashTest {
    /// Flushes, with other requests and commits at one of its syncs.
    pub(super) fn flush(&mut self, store: &Arc<Store>) -> Result<(), String> {
        let last = self.model.last_event();
        let before = self.draw(2);
        let coming = (0..self.draw(REQUESTS_MAX)).map(|_| self.coming()).collect();
        let commits = (0..self.draw(COMMITS_MAX)).map(|_| self.fault_after()).collect();
        let plan = Mutex::new(Plan { before, coming, served: Vec::new(), commits, at_crash: 0 });
        let (theirs, storage) = (Arc::clone(store), Arc::clone(&self.storage));
        let meanwhile = Arc::new(Meanwhile { store: theirs, storage, plan });
        let others = Arc::clone(&meanwhile);
        self.storage.set_meanwhile(Some(Arc::new(move || others.at_sync())));
        let flushed = store.flush();
        self.storage.set_meanwhile(None);
        let served = std::mem::take(&mut meanwhile.plan().served);
        self.tally.in_flight += u64::from(meanwhile.plan().at_crash > 1);
        for Served { events, request, bytes, failure } in served {
            self.tally.requests += 1;
            self.tally.overlapping += 1;
            let Request { sector, sectors, data } = request;
            match data {
                Some((version, _)) => self.model.written(sector, sectors, events, version),
                None if failure.is_none() => self.model.compare(sector, &bytes)?,
                None => {}
            }
            if let Some(failure) = failure.filter(|_| !self.has_failed(store)) {
                return Err(format!("a request during a flush fails: {failure}"));
            }
        }
        if flushed.is_ok() {
            self.tally.flushes += 1;
            self.model.flushed_to(last);
        }
        self.tell(store, flushed)
    }

    /// Whether a crash or a failure happens while several commits are in progress, and after how many operations.
    fn fault_after(&mut self) -> Option<(u64, Fault)> {
        (self.draw(3) == 0).then(|| (1 + self.draw(6), self.fault()))
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
