//! Periodic work beside serving: upkeep, background work in idle time, and observation of the store for the log.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::store::{Status, Store};

/// Time without a request after which the host counts as idle.
pub(super) const IDLE_AFTER: Duration = Duration::from_millis(500);
/// Background work of one call, in pages.
const IDLE_PAGES: u32 = 64;
/// Time for which a thread waits for upkeep, and thus the longest time that it takes to end.
const UPKEEP_PATIENCE: Duration = Duration::from_millis(100);
/// Duration above which a commit is logged.
const SLOW_COMMIT: Duration = Duration::from_secs(1);

/// Threads for periodic work. Dropping this ends them, each after its current call.
#[derive(Debug, Default)]
pub(super) struct Housekeeping {
    end: Arc<End>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct End {
    is_wanted: Mutex<bool>,
    told: Condvar,
}

impl End {
    /// Waits for `pause`, or until the end is requested. Returns whether it was.
    fn comes_within(&self, pause: Duration) -> bool {
        let is_wanted = self.is_wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wait_timeout_while(is_wanted, pause, |is_wanted| !*is_wanted);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Housekeeping {
    /// Calls `work` whenever `pause` has passed, until it breaks.
    pub fn every(
        &mut self,
        pause: Duration,
        name: &str,
        mut work: impl FnMut() -> ControlFlow<()> + Send + 'static,
    ) -> io::Result<()> {
        let end = Arc::clone(&self.end);
        let run = move || while !end.comes_within(pause) && work().is_continue() {};
        self.threads.push(thread::Builder::new().name(name.into()).spawn(run)?);
        Ok(())
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        *self.end.is_wanted.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end.told.notify_all();
        for thread in self.threads.drain(..) {
            // A panic was reported by its thread.
            let _ = thread.join();
        }
    }
}

/// Does one step of a store's upkeep, or waits for some time if nothing is to do. Breaks when the device takes no more
/// work.
pub(super) fn keep_up(store: &Store) -> ControlFlow<()> {
    if store.keep_up(UPKEEP_PATIENCE).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// Gives the scheme idle time of the host, as long as the scheme has background work.
#[derive(Debug)]
pub(super) struct Idle {
    /// Events at the last check.
    events: u64,
    /// Number of events after which no work was left.
    done_at: Option<u64>,
}

impl Idle {
    /// Assumes that the last request of the host was now.
    pub fn new(store: &Store) -> Self {
        Self { events: store.events(), done_at: None }
    }

    /// Lets the scheme work if the host has made no request since the last check. Breaks when the device takes no more
    /// work.
    pub fn look(&mut self, store: &Store) -> ControlFlow<()> {
        let events = store.events();
        if self.events == events && self.done_at != Some(events) {
            return self.work(store);
        }
        self.events = events;
        ControlFlow::Continue(())
    }

    /// Lets the scheme work until no work is left, or the host makes a request.
    fn work(&mut self, store: &Store) -> ControlFlow<()> {
        loop {
            let Ok(is_busy) = store.idle(IDLE_PAGES) else { return ControlFlow::Break(()) };
            // Idle time is one event. If it was not recorded, the file system had no space for it: the next check tries
            // again, so that a full device detects free space by itself.
            let expected = self.events + 1;
            self.events = store.events();
            if self.events != expected {
                return ControlFlow::Continue(());
            }
            if !is_busy {
                self.done_at = Some(self.events);
                return ControlFlow::Continue(());
            }
        }
    }
}

/// Logs checkpoints and slow commits, from the counts of the store.
#[derive(Debug, Default)]
pub(super) struct Watch {
    slow_commits: AtomicU64,
    checkpoints: AtomicU64,
}

impl Watch {
    /// Logs those since the last check.
    pub fn look(&self, status: &Status) {
        let commits = added(&self.slow_commits, status.times.commit.longer_than(SLOW_COMMIT));
        if commits > 0 {
            tracing::info!(commits, "commits took over a second");
        }
        let checkpoints = added(&self.checkpoints, status.counts.checkpoints);
        if checkpoints > 0 {
            tracing::info!(checkpoints, events = status.events, "checkpoint written");
        }
    }
}

/// The increase of a count since it was last seen. A store opened read-only may return to its last commit; its counts then
/// start from zero.
fn added(seen: &AtomicU64, now: u64) -> u64 {
    now.saturating_sub(seen.swap(now, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    use bimetal_core::scheme::SCHEMES;

    use crate::BlockDevice;
    use crate::block_device::IoError;
    use crate::store::backing::Storage;
    use crate::store::crash_backing::CrashStorage;
    use crate::store::soak::TINY;
    use crate::store::{CreateOptions, OpenOptions, create};

    fn store(storage: &Arc<CrashStorage>) -> Store {
        let device = TINY[0].device(SCHEMES[0], 0).unwrap();
        let options = CreateOptions { number: Some(1), sparse: true, ..CreateOptions::default() };
        create(storage.as_ref(), &device, &options).unwrap();
        Store::open(Arc::clone(storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap()
    }

    #[test]
    fn idle_time_is_given_once() {
        let store = store(&Arc::new(CrashStorage::new()));
        let mut idle = Idle::new(&store);
        store.write(0, &[1; 512], false).unwrap();
        assert!(idle.look(&store).is_continue());
        let written = store.events();
        assert!(idle.look(&store).is_continue());
        let worked = store.events();
        assert!(worked > written, "the host was silent");
        assert!(idle.look(&store).is_continue());
        assert_eq!(store.events(), worked, "there was nothing left to do");
        store.close().unwrap();
        store.read(0, &mut [0; 512]).unwrap_err();
        idle.done_at = None;
        assert!(idle.look(&store).is_break(), "it is closed");
    }

    /// The device is not used, and detects lack of space and free space by itself.
    #[test]
    fn a_full_device_finds_out_that_there_is_room() {
        let storage = Arc::new(CrashStorage::new());
        let store = store(&storage);
        storage.set_room(Some(0));
        let refused = (0..store.sectors()).find_map(|sector| store.write(sector, &[1; 512], true).err());
        assert_eq!((refused, store.status().is_full), (Some(IoError::NoSpace), true));
        let mut idle = Idle::new(&store);
        for _ in 0..3 {
            assert!(idle.look(&store).is_continue());
            assert!(store.status().is_full);
        }
        storage.set_room(None);
        assert!(idle.look(&store).is_continue());
        assert!(!store.status().is_full);
    }

    #[test]
    fn work_goes_on_until_it_breaks_or_nobody_wants_it() {
        let (sender, receiver) = channel();
        let mut housekeeping = Housekeeping::default();
        let mut left = 3;
        let count_down = move || {
            left -= 1;
            sender.send(left).unwrap();
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        housekeeping.every(Duration::from_millis(1), "short", count_down).unwrap();
        housekeeping.every(Duration::from_secs(3600), "long", || ControlFlow::Continue(())).unwrap();
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [2, 1, 0]);
        drop(housekeeping);
    }

    #[test]
    fn what_was_added_is_counted_once() {
        let seen = AtomicU64::new(0);
        assert_eq!([2, 2, 5, 0, 1].map(|now| added(&seen, now)), [2, 0, 3, 0, 1]);
    }
}
