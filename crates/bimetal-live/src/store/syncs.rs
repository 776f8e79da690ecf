//! Syncs of several files at the same time.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::backing::File;
use super::times::Clocks;

/// Duration of a sync that justifies waking a thread.
const WORTH_A_THREAD: Duration = Duration::from_micros(200);

/// Longest time that a commit waits for the clients of the last one, as a fraction of the duration of a sync. It is
/// short, because a client that misses this commit takes part in the next one, which begins before this one is durable.
const WAITING_PART: u32 = 32;

/// A thread that syncs files; it ends with its owner.
struct Helper {
    files: Sender<File>,
    synced: Receiver<io::Result<()>>,
}

impl Helper {
    fn start(clocks: Arc<Clocks>) -> io::Result<Self> {
        let ((files, to_sync), (done, synced)) = (mpsc::channel::<File>(), mpsc::channel());
        thread::Builder::new().name("sync".into()).spawn(move || {
            for file in to_sync {
                let synced = sync(&file, &clocks);
                // The thread that is woken may expect to hold the last reference to the file.
                drop(file);
                if done.send(synced).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { files, synced })
    }
}

/// Syncs a file, in the calling thread.
///
/// # Errors
/// The file may not be durable.
pub fn sync(file: &File, clocks: &Clocks) -> io::Result<()> {
    let start = Instant::now();
    let synced = file.sync();
    clocks.synced(start.elapsed());
    synced
}

/// Syncs files.
pub struct Syncs {
    clocks: Arc<Clocks>,
    helpers: Vec<Helper>,
    /// Duration of the last sync of files.
    last: Duration,
}

impl Syncs {
    /// Syncs whose durations go to these clocks.
    pub fn new(clocks: Arc<Clocks>) -> Self {
        Self { clocks, helpers: Vec::new(), last: Duration::ZERO }
    }

    /// Syncs files: in parallel if that takes long, else one after the other.
    ///
    /// # Errors
    /// One of them may not be durable.
    pub fn at_once(&mut self, files: &[&File]) -> io::Result<()> {
        let Some((first, others)) = files.split_first() else { return Ok(()) };
        let start = Instant::now();
        let done = if others.is_empty() || self.last < WORTH_A_THREAD {
            files.iter().try_for_each(|file| sync(file, &self.clocks))
        } else {
            self.in_parallel(first, others)
        };
        self.last = start.elapsed();
        done
    }

    fn in_parallel(&mut self, first: &File, others: &[&File]) -> io::Result<()> {
        while self.helpers.len() < others.len() {
            // Without threads, the syncs take turns.
            let Ok(helper) = Helper::start(Arc::clone(&self.clocks)) else { break };
            self.helpers.push(helper);
        }
        let (others, in_turn) = others.split_at(others.len().min(self.helpers.len()));
        let ended = || io::Error::other("a thread has ended");
        for (helper, file) in self.helpers.iter().zip(others) {
            helper.files.send(Arc::clone(file)).map_err(|_| ended())?;
        }
        // All syncs must have finished before any result is returned.
        let done = in_turn.iter().fold(sync(first, &self.clocks), |done, file| done.and(sync(file, &self.clocks)));
        let others = self.helpers.iter().take(others.len());
        others.fold(done, |done, helper| done.and(helper.synced.recv().unwrap_or_else(|_| Err(ended()))))
    }

    /// Notes the duration of a sync outside.
    pub fn note(&mut self, took: Duration) {
        self.last = took;
    }

    /// Time that a commit should wait for other threads that need durability, if that is worthwhile.
    pub fn worth_waiting(&self) -> Option<Duration> {
        (self.last >= WORTH_A_THREAD).then_some(self.last / WAITING_PART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::backing::{Access, Storage};
    use crate::store::crash_backing::{CrashStorage, Fault, Loss};

    #[test]
    fn files_are_synced_by_several_threads_and_a_failure_is_told() {
        let storage = CrashStorage::new();
        let names = ["a", "b", "c"];
        let files = names.map(|name| File::from(storage.open(name, Access::Create, false).unwrap()));
        storage.sync().unwrap();
        let clocks = Arc::new(Clocks::default());
        let mut syncs = Syncs { last: WORTH_A_THREAD, ..Syncs::new(Arc::clone(&clocks)) };
        files.iter().for_each(|file| file.write_at(0, &[1; 512]).unwrap());
        syncs.at_once(&files.each_ref()).unwrap();
        let cut = storage.clone();
        cut.restart(Loss::All, 1);
        assert!(names.iter().all(|name| cut.bytes(name) == [1; 512]));
        for which in 1..=3 {
            syncs.last = WORTH_A_THREAD;
            storage.set_fault(storage.changes() + which, Fault::Io);
            assert!(syncs.at_once(&files.each_ref()).is_err());
        }
        assert_eq!((syncs.helpers.len(), clocks.times().sync.count()), (2, 12));
    }
}
