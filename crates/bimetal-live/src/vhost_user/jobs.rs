//! Requests that wait for a thread.
//!
//! A request is slow if it may wait for a sync, and quick otherwise. Queue threads execute quick requests themselves: that costs no
//! wake-up. Workers execute slow requests. They also take quick requests when several wait, because the queue thread may be blocked in a
//! read from a disk.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs for queue threads and workers.
#[derive(Debug)]
pub struct Jobs<J> {
    waiting: Mutex<Waiting<J>>,
    told: Condvar,
}

#[derive(Debug)]
struct Waiting<J> {
    quick: VecDeque<J>,
    slow: VecDeque<J>,
    /// Sleeping workers.
    idle: usize,
    is_closed: bool,
}

impl<J> Default for Jobs<J> {
    fn default() -> Self {
        let waiting = Waiting { quick: VecDeque::new(), slow: VecDeque::new(), idle: 0, is_closed: false };
        Self { waiting: Mutex::new(waiting), told: Condvar::new() }
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

    /// Adds a job for any thread. The caller takes jobs by [`Jobs::next_quick`] afterwards, which wakes workers if it needs them.
    pub fn add_quick(&self, job: J) {
        self.lock().quick.push_back(job);
    }

    /// The next quick job, for a queue thread.
    pub fn next_quick(&self) -> Option<J> {
        let mut waiting = self.lock();
        let job = waiting.quick.pop_front();
        if !waiting.quick.is_empty() {
            self.wake(&waiting);
        }
        job
    }

    /// Waits for the next job, for a worker; `None` after [`Jobs::close`].
    pub fn next(&self) -> Option<J> {
        let mut waiting = self.lock();
        loop {
            let job = waiting.slow.pop_front().or_else(|| waiting.quick.pop_front());
            if job.is_some() {
                if !(waiting.slow.is_empty() && waiting.quick.is_empty()) {
                    self.wake(&waiting);
                }
                return job;
            }
            if waiting.is_closed {
                return None;
            }
            waiting.idle += 1;
            waiting = self.told.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.idle -= 1;
        }
    }

    /// Ends the workers once no job is left.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.told.notify_all();
    }

    /// Wakes a sleeping worker, which wakes the next one if more jobs wait.
    fn wake(&self, waiting: &Waiting<J>) {
        if waiting.idle > 0 {
            self.told.notify_one();
        }
    }
}
