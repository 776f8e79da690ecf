//! Syncs of one file by several threads.
//!
//! Linux reports a failed write of the page cache once to each open file description (`errseq_t` in the kernel's
//! documentation). If two threads synced the same description, only one of them would learn of the failure, and the
//! other would acknowledge data that are lost. So every sync in progress has a description of its own.
//!
//! A new description does not report failures that another one has reported. So descriptions are added only while no
//! sync is in progress and none has failed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Largest number of descriptions, and so of syncs of a file that can be in progress.
pub const DESCRIPTIONS_MAX: usize = 32;

/// Open file descriptions of one file.
#[derive(Debug)]
pub struct Descriptions {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug)]
struct State {
    idle: Vec<File>,
    /// Number of descriptions, with those in use.
    count: usize,
    /// Whether a sync found none idle. Until there are more, no other sync begins.
    is_short: bool,
    has_failed: bool,
}

impl State {
    fn in_use(&self) -> usize {
        self.count - self.idle.len()
    }

    /// Whether a sync can begin, or never will.
    fn is_ready(&self) -> bool {
        self.has_failed || self.in_use() == 0 || !self.is_short && !self.idle.is_empty()
    }

    /// Doubles the number of descriptions. Without more of them, syncs take turns.
    fn grow(&mut self) {
        self.is_short = false;
        for _ in 0..self.count.min(DESCRIPTIONS_MAX - self.count) {
            let again = self.idle.first().map(|file| File::open(format!("/proc/self/fd/{}", file.as_raw_fd())));
            let Some(Ok(file)) = again else { break };
            self.idle.push(file);
            self.count += 1;
        }
    }
}

impl Descriptions {
    /// The description of an open file, for now.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn of(file: &File) -> io::Result<Self> {
        let state = State { idle: vec![file.try_clone()?], count: 1, is_short: false, has_failed: false };
        Ok(Self { state: Mutex::new(state), returned: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs the file with `sync`, through a description that no other thread syncs.
    ///
    /// # Errors
    /// Some of the data may be lost: this sync failed, or an earlier one.
    pub fn sync(&self, sync: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        let mut state = self.lock();
        state.is_short |= state.idle.is_empty() && state.count < DESCRIPTIONS_MAX;
        state = self.returned.wait_while(state, |state| !state.is_ready()).unwrap_or_else(PoisonError::into_inner);
        if !state.has_failed && state.is_short {
            state.grow();
            self.returned.notify_all();
        }
        let file = if state.has_failed { None } else { state.idle.pop() };
        let Some(file) = file else { return Err(io::Error::other("an earlier sync of the file has failed")) };
        drop(state);
        let synced = sync(&file);
        let mut state = self.lock();
        state.has_failed |= synced.is_err();
        state.idle.push(file);
        drop(state);
        self.returned.notify_all();
        synced
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    fn of_a_file() -> Descriptions {
        Descriptions::of(&tempfile::tempfile().unwrap()).unwrap()
    }

    #[test]
    fn syncs_at_the_same_time_have_their_own_descriptions() {
        let descriptions = of_a_file();
        for threads in [1, 2, 8, DESCRIPTIONS_MAX] {
            // No sync ends before all have begun, once there are enough descriptions.
            let (started, is_enough) = (Barrier::new(threads), AtomicBool::new(false));
            let numbers = Mutex::new(HashSet::new());
            while !is_enough.load(Ordering::Relaxed) {
                is_enough.store(descriptions.lock().count >= threads, Ordering::Relaxed);
                thread::scope(|scope| {
                    for _ in 0..threads {
                        scope.spawn(|| {
                            let synced = descriptions.sync(|file| {
                                if is_enough.load(Ordering::Relaxed) {
                                    started.wait();
                                    numbers.lock().unwrap().insert(file.as_raw_fd());
                                } else {
                                    thread::yield_now();
                                }
                                file.sync_data()
                            });
                            synced.unwrap();
                        });
                    }
                });
            }
            assert_eq!(numbers.into_inner().unwrap().len(), threads);
        }
        let state = descriptions.lock();
        assert_eq!((state.count, state.in_use()), (DESCRIPTIONS_MAX, 0));
    }

    #[test]
    fn no_description_is_added_beside_a_sync() {
        let descriptions = of_a_file();
        let waits = || descriptions.lock().is_short;
        thread::scope(|scope| {
            descriptions
                .sync(|_| {
                    scope.spawn(|| descriptions.sync(|_| Ok(())).unwrap());
                    while !waits() {
                        thread::yield_now();
                    }
                    assert_eq!(descriptions.lock().count, 1);
                    Ok(())
                })
                .unwrap();
        });
        assert_eq!(descriptions.lock().count, 2);
    }

    #[test]
    fn a_failure_is_told_to_those_who_waited_and_to_all_later_ones() {
        let descriptions = of_a_file();
        thread::scope(|scope| {
            let mut waiter = None;
            let failed = descriptions.sync(|_| {
                waiter = Some(scope.spawn(|| descriptions.sync(|_| Ok(()))));
                while !descriptions.lock().is_short {
                    thread::yield_now();
                }
                Err(io::Error::other("lost"))
            });
            assert_eq!(failed.unwrap_err().to_string(), "lost");
            assert!(waiter.unwrap().join().unwrap().is_err());
        });
        assert!(descriptions.sync(|_| Ok(())).is_err());
        assert_eq!(descriptions.lock().count, 1);
    }
}
