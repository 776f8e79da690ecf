//! Threads that wait for a commit. One of them leads it, for all events before it begins.
//!
//! Clients that write synchronously come back together when a commit has ended. A commit that began with the first of them would make
//! the others wait for a second one. So a commit begins when as many threads wait as at the end of the commit before, or after a
//! quarter of the time of a sync.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
struct State {
    /// Threads that wait.
    count: usize,
    /// Threads that waited when the last commit had ended.
    expected: usize,
    is_led: bool,
    /// One past the last event that the last commit made durable.
    durable: u64,
}

/// The threads that wait for a commit of one store.
#[derive(Debug, Default)]
pub struct Waiters {
    state: Mutex<State>,
    arrival: Condvar,
    end: Condvar,
}

/// A thread that waits, until this is dropped.
pub struct Waiter<'a>(&'a Waiters);

/// The lead of a commit, until this is dropped.
pub struct Lead<'a>(&'a Waiters);

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the calling thread.
    pub fn enter(&self) -> Waiter<'_> {
        let mut state = self.lock();
        state.count += 1;
        if state.count >= state.expected {
            self.arrival.notify_one();
        }
        Waiter(self)
    }
}

impl<'a> Waiter<'a> {
    /// Waits until all events before `events` are durable (`None`), or until this thread is to lead the next commit.
    pub fn turn(&self, events: u64) -> Option<Lead<'a>> {
        let waiters = self.0;
        let mut state = waiters.lock();
        while state.is_led && state.durable < events {
            state = waiters.end.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.durable >= events {
            return None;
        }
        state.is_led = true;
        Some(Lead(waiters))
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.lock().count -= 1;
    }
}

impl Lead<'_> {
    /// Waits for the expected threads, at most `at_most`.
    pub fn gather(&self, at_most: Duration) {
        let state = self.0.lock();
        if state.count < state.expected {
            let is_alone = |state: &mut State| state.count < state.expected;
            drop(self.0.arrival.wait_timeout_while(state, at_most, is_alone));
        }
    }

    /// The commit has ended: all events before `durable` are durable.
    pub fn has_ended(&self, durable: u64) {
        let mut state = self.0.lock();
        state.durable = durable;
        state.expected = state.count;
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.0.lock().is_led = false;
        self.0.end.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn one_leads_and_the_others_are_told() {
        let waiters = Waiters::default();
        let first = waiters.enter();
        let lead = first.turn(1).unwrap();
        lead.gather(Duration::MAX);
        thread::scope(|scope| {
            let served = scope.spawn(|| waiters.enter().turn(1).is_none());
            let next = scope.spawn(|| waiters.enter().turn(2).is_some());
            while waiters.lock().count < 3 {
                thread::yield_now();
            }
            assert!(!served.is_finished() && !next.is_finished());
            lead.has_ended(1);
            assert_eq!(waiters.lock().expected, 3);
            drop(lead);
            assert!(served.join().unwrap() && next.join().unwrap());
        });
        assert!(first.turn(1).is_none());
    }

    #[test]
    fn whoever_leads_waits_for_those_who_are_expected() {
        let waiters = Waiters::default();
        waiters.lock().expected = 3;
        let first = waiters.enter();
        let lead = first.turn(1).unwrap();
        lead.gather(Duration::ZERO);
        thread::scope(|scope| {
            let gathered = scope.spawn(|| lead.gather(Duration::MAX));
            let second = waiters.enter();
            assert!(!gathered.is_finished(), "two are not three");
            let third = waiters.enter();
            gathered.join().unwrap();
            drop((second, third));
        });
        assert_eq!(waiters.lock().count, 1);
    }
}
