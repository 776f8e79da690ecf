//! Requests that wait for a thread.
//!
//! A request is slow if it may wait for a sync, and quick otherwise. Queue threads execute quick requests themselves: that costs no
//! wake-up. Workers execute slow requests. If several quick requests wait, workers help with them as far as there are processors. If the
//! storage blocks its callers, such as in a read from a disk, all workers help.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Threads for requests that may wait for a sync.
pub const WORKERS: usize = 16;

/// Whether a quick request that took this time was probably blocked by the storage. A request of pages that the system caches takes less
/// than 1 µs a KiB.
pub fn was_blocked(took: Duration, bytes: usize) -> bool {
    took > Duration::from_nanos(50_000 + bytes as u64)
}

/// Jobs for queue threads and workers.
#[derive(Debug)]
pub struct Jobs<J> {
    waiting: Mutex<Waiting<J>>,
    told: Condvar,
    processors: usize,
}

#[derive(Debug)]
struct Waiting<J> {
    quick: VecDeque<J>,
    slow: VecDeque<J>,
    /// Sleeping workers.
    idle: usize,
    /// Workers that execute a quick job.
    helpers: usize,
    /// Whether the storage has blocked a queue thread in its last job.
    is_blocking: bool,
    is_closed: bool,
}

impl<J> Default for Jobs<J> {
    fn default() -> Self {
        let waiting = Waiting {
            quick: VecDeque::new(),
            slow: VecDeque::new(),
            idle: 0,
            helpers: 0,
            is_blocking: false,
            is_closed: false,
        };
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self { waiting: Mutex::new(waiting), told: Condvar::new(), processors }
    }
}

impl<J> Jobs<J> {
    fn lock(&self) -> MutexGuard<'_, Waiting<J>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job for a worker.
    pub fn add_slow(&self, job: J) {
        let mut waiting = self.lock();
        waiting.slow.push_back(job);
        self.wake(&waiting);
    }

    /// Adds a job for any thread. This wakes nobody: the caller takes jobs by [`Jobs::next_quick`] until there is none,
    /// which wakes workers if it needs them.
    pub fn add_quick(&self, job: J) {
        self.lock().quick.push_back(job);
    }

    /// The next quick job, for a queue thread. `is_blocking` says whether its last job was blocked by the storage.
    pub fn next_quick(&self, is_blocking: bool) -> Option<J> {
        let mut waiting = self.lock();
        waiting.is_blocking = is_blocking;
        let job = waiting.quick.pop_front();
        if waiting.wants_helper(self.processors) {
            self.wake(&waiting);
        }
        job
    }

    /// Executes jobs as a worker, until [`Jobs::close`].
    pub fn work(&self, mut execute: impl FnMut(J)) {
        let mut waiting = self.lock();
        loop {
            let helps = waiting.slow.is_empty();
            let job = if helps { waiting.quick_for_helper(self.processors) } else { waiting.slow.pop_front() };
            if let Some(job) = job {
                waiting.helpers += usize::from(helps);
                if !waiting.slow.is_empty() || waiting.wants_helper(self.processors) {
                    self.wake(&waiting);
                }
                drop(waiting);
                execute(job);
                waiting = self.lock();
                waiting.helpers -= usize::from(helps);
            } else if waiting.is_closed {
                return;
            } else {
                waiting.idle += 1;
                waiting = self.told.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                waiting.idle -= 1;
            }
        }
    }

    /// Takes the waiting slow jobs of a kind.
    pub fn take_slow(&self, is_of_kind: impl Fn(&J) -> bool) -> VecDeque<J> {
        let mut waiting = self.lock();
        let (taken, left) = std::mem::take(&mut waiting.slow).into_iter().partition(is_of_kind);
        waiting.slow = left;
        taken
    }

    /// Ends the workers once no job is left.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.told.notify_all();
    }

    /// Wakes a sleeping worker, which wakes the next one if there are more jobs.
    fn wake(&self, waiting: &Waiting<J>) {
        if waiting.idle > 0 {
            self.told.notify_one();
        }
    }
}

impl<J> Waiting<J> {
    /// One processor is that of the queue thread.
    fn wants_helper(&self, processors: usize) -> bool {
        !self.quick.is_empty() && (self.is_blocking || self.helpers + 1 < processors)
    }

    fn quick_for_helper(&mut self, processors: usize) -> Option<J> {
        if self.wants_helper(processors) { self.quick.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use std::sync::mpsc::channel;

    use super::*;

    /// Adds three quick jobs and takes one; returns the jobs that a worker executes, which waits in the first until `next_quick` has
    /// taken all others.
    fn helped(processors: usize, is_blocking: bool) -> Vec<u32> {
        let jobs = Jobs { processors, ..Jobs::default() };
        let (begun, begins) = channel();
        let (go, may_go) = channel::<()>();
        thread::scope(|scope| {
            let jobs = &jobs;
            scope.spawn(move || {
                jobs.work(|job: u32| {
                    begun.send(job).unwrap();
                    let _ = may_go.recv();
                });
            });
            while jobs.lock().idle == 0 {
                thread::yield_now();
            }
            (0..3).for_each(|job| jobs.add_quick(job));
            assert_eq!(jobs.next_quick(is_blocking), Some(0));
            let patience = Duration::from_secs(if processors > 1 || is_blocking { 20 } else { 0 });
            let mut helped: Vec<_> = begins.recv_timeout(patience).into_iter().collect();
            while jobs.next_quick(is_blocking).is_some() {}
            drop(go);
            jobs.add_slow(9);
            jobs.close();
            helped.extend(begins);
            helped
        })
    }

    #[test]
    fn slow_jobs_of_a_kind_are_taken_together() {
        let jobs = Jobs::default();
        (0..6).for_each(|job| jobs.add_slow(job));
        assert_eq!(jobs.take_slow(|job| job % 2 == 1), [1, 3, 5]);
        let mut executed = Vec::new();
        jobs.close();
        jobs.work(|job| executed.push(job));
        assert_eq!(executed, [0, 2, 4]);
    }

    #[test]
    fn workers_help_if_there_is_a_processor_or_the_storage_blocks() {
        assert_eq!(helped(1, false), [9], "there is only the processor of the queue thread");
        assert_eq!(helped(2, false), [1, 9]);
        assert_eq!(helped(1, true), [1, 9]);
    }
}
