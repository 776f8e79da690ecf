//! Requests that are served while a flush is under way: what comes meanwhile is not part of it, and shares slots and sectors of the
//! home disk with what is. It is committed at times, while the flush goes on: then several commits are under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{CrashTest, below};
use crate::block_device::BlockDevice;
use crate::store::arena::HostData;
use crate::store::crash_backing::{CrashStorage, Fault};
use crate::store::device::{Store, Took};
use crate::store::engine::Engine;

/// Requests that may come during one flush.
const REQUESTS_MAX: u64 = 10;
/// Commits that may come during one flush.
const COMMITS_MAX: u64 = 5;
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

/// What happens while a flush is under way.
struct Meanwhile {
    store: Arc<Store>,
    storage: Arc<CrashStorage>,
    plan: Mutex<Plan>,
}

/// What is to come, and what has come of it.
struct Plan {
    /// Syncs before the first request comes.
    before: u64,
    coming: Vec<Request>,
    served: Vec<Served>,
    /// For each commit that is to come, oldest last: operations before a crash, if there is to be one.
    commits: Vec<Option<u64>>,
    /// Batches under way when the machine crashed.
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
        // During a checkpoint nothing is served.
        while self.store.try_look(has_leeway) == Some(true) {
            let Some(request) = self.plan().coming.pop() else { break };
            let served = serve(&self.store, request);
            self.plan().served.push(served);
            if self.plan().coming.len().is_multiple_of(2) {
                self.commit();
            }
        }
    }

    /// Commits what has come. The sync of that comes back here, so that more commits may begin before it ends.
    fn commit(&self) {
        let Some(crash) = self.plan().commits.pop().filter(|_| !self.storage.is_crashed()) else { return };
        let mut under_way = 0;
        self.store.try_commit(|batches| {
            under_way = batches;
            if let Some(operations) = crash.filter(|_| batches > 1) {
                self.storage.set_fault(self.storage.changes() + operations, Fault::Crash);
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

impl CrashTest {
    /// Flushes, with requests and commits of others at one of its syncs.
    pub(super) fn flush(&mut self, store: &Arc<Store>) -> Result<(), String> {
        let last = self.model.last_event();
        let before = self.draw(2);
        let coming = (0..self.draw(REQUESTS_MAX)).map(|_| self.coming()).collect();
        let commits = (0..self.draw(COMMITS_MAX)).map(|_| self.crash_after()).collect();
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

    /// Whether a crash comes while several commits are under way, and after how many operations.
    fn crash_after(&mut self) -> Option<u64> {
        (self.draw(3) == 0).then(|| 1 + self.draw(6))
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
