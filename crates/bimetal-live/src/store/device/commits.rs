//! Commits and upkeep of an open store: the threads that perform them, and the threads that wait.

use std::io;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Store;
use crate::block_device::IoError;
use crate::store::backing::File;
use crate::store::commit::Committer;
use crate::store::syncs;
use crate::store::waiters::Lead;

/// The upkeep that a thread has taken. If the thread panics, other threads do not wait for it.
struct Kept<'a>(&'a Store);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let mut committer = self.0.committer();
        (committer.is_kept_up, committer.is_checkpoint_taken) = (false, false);
        drop(committer);
        self.0.upkeep.notify_all();
    }
}

impl Store {
    pub(in crate::store) fn committer(&self) -> MutexGuard<'_, Committer> {
        self.committer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the committer while no thread works on the upkeep.
    pub(super) fn settled_committer(&self) -> MutexGuard<'_, Committer> {
        let waited = self.upkeep.wait_while(self.committer(), |committer| committer.is_kept_up);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the committer while no thread works on the upkeep and no batch is in progress.
    pub(super) fn quiet_committer(&self) -> MutexGuard<'_, Committer> {
        let mut committer = self.settled_committer();
        while !committer.flights.is_empty() || committer.is_kept_up {
            let landed = self.landing.wait_while(committer, |committer| !committer.flights.is_empty());
            let committed = landed.unwrap_or_else(PoisonError::into_inner);
            let kept_up = self.upkeep.wait_while(committed, |committer| committer.is_kept_up);
            committer = kept_up.unwrap_or_else(PoisonError::into_inner);
        }
        committer
    }

    /// Locks the committer when another batch may begin.
    fn uncrowded_committer(&self) -> MutexGuard<'_, Committer> {
        let free = self.landing.wait_while(self.committer(), |committer| committer.is_crowded());
        free.unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits, unless this thread would have to wait for another; earlier batches may then still be in progress. Calls
    /// `begins` with their number.
    #[cfg(feature = "soak")]
    pub(in crate::store) fn try_commit(&self, begins: impl FnOnce(usize)) {
        let Ok(committer) = self.committer.try_lock() else { return };
        if committer.is_crowded() || committer.is_kept_up {
            return;
        }
        begins(committer.flights.len() + 1);
        drop(committer);
        if let Some(lead) = self.waiters.try_lead() {
            // The next request that needs the files gets the failure.
            self.commit(lead).ok();
        }
    }

    /// Makes all events before `events` durable. Threads that wait meanwhile share the next commit.
    pub(super) fn make_durable(&self, events: u64) -> Result<(), IoError> {
        while let Some(lead) = self.waiters.turn(events) {
            self.commit(lead)?;
        }
        Ok(())
    }

    /// Commits the events that are in no batch yet: writes the batch, and syncs it while other threads may lead. It may
    /// still be in progress afterwards, if an earlier one is.
    fn commit(&self, lead: Lead<'_>) -> Result<(), IoError> {
        let Some((end, journal)) = self.write_batch(lead)? else { return Ok(()) };
        let start = Instant::now();
        let synced = syncs::sync(&journal, &self.clocks);
        self.land(end, start.elapsed(), synced)
    }

    /// Writes a batch of the changes so far, if there are any. Returns the number after its last event, and the file to
    /// sync.
    fn write_batch(&self, lead: Lead<'_>) -> Result<Option<(u64, File)>, IoError> {
        let mut committer = self.uncrowded_committer();
        if let Some(at_most) = committer.syncs.worth_waiting() {
            drop(committer);
            lead.gather(at_most);
            committer = self.uncrowded_committer();
        }
        let mut engine = self.lock();
        engine.check_writable(false)?;
        let batch = committer.next_batch(&mut engine);
        self.note_failure(&engine);
        let Some(batch) = batch? else {
            lead.found_nothing(engine.durable);
            return Ok(None);
        };
        drop(engine);
        let end = batch.end();
        lead.took(end);
        let written = committer.write(&batch);
        let mut engine = self.lock();
        let launched = committer.launch(&mut engine, batch, written);
        self.note_failure(&engine);
        if committer.unfinished.is_some() {
            lead.gave_back();
        } else if launched.is_err() {
            self.waiters.failed();
            self.landing.notify_all();
        }
        launched.map(|journal| Some((end, journal)))
    }

    /// The sync for the batch with this end has finished. The batch lands if all earlier ones have, and so do later
    /// synced ones.
    fn land(&self, end: u64, took: Duration, synced: io::Result<()>) -> Result<(), IoError> {
        let mut committer = self.committer();
        committer.syncs.note(took);
        committer.note_synced(end);
        let mut done = synced.map_err(|error| committer.fail(&mut self.lock(), error));
        while let Some(flight) = committer.next_landing() {
            let landed = committer.land(&flight);
            let mut engine = self.lock();
            done = committer.finish(&mut engine, flight, landed);
            if done.is_ok() {
                self.waiters.landed(engine.durable);
            }
        }
        let engine = self.lock();
        self.note_failure(&engine);
        if done.is_err() {
            self.waiters.failed();
        }
        let is_upkeep_late = committer.is_upkeep_late(&engine);
        drop(engine);
        self.landing.notify_all();
        if committer.needs_upkeep() {
            self.upkeep.notify_one();
        }
        drop(committer);
        done?;
        if is_upkeep_late { self.catch_up() } else { Ok(()) }
    }

    /// Performs a step of upkeep, if there is any. Returns whether there was.
    pub(super) fn do_upkeep(&self, mut committer: MutexGuard<'_, Committer>) -> Result<bool, IoError> {
        let Some(mut upkeep) = committer.take_upkeep() else { return Ok(false) };
        let kept = Kept(self);
        let collected = {
            // After a panic, `kept` needs this lock.
            let committer = committer;
            upkeep.collect(&mut self.lock(), &committer)
        };
        let performed = collected.and_then(|()| upkeep.perform());
        let mut committer = self.committer();
        let concluded = performed.and_then(|()| committer.conclude(&upkeep));
        let mut engine = self.lock();
        let finished = committer.finish_upkeep(&mut engine, upkeep, concluded);
        self.note_failure(&engine);
        std::mem::forget(kept);
        self.upkeep.notify_all();
        finished.map(|()| true)
    }

    /// Helps with the upkeep until commits need not wait for it.
    fn catch_up(&self) -> Result<(), IoError> {
        loop {
            let committer = self.settled_committer();
            if !committer.is_upkeep_late(&self.lock()) || !self.do_upkeep(committer)? {
                return Ok(());
            }
        }
    }
}
