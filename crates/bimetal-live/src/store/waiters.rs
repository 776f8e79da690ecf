//! Threads that wait for a commit. One of them at a time leads: it takes a batch of all events so far and writes it.
//! The others wait for the batch that contains their events, now or later. While a batch is being synced, another
//! thread may lead the next one.
//!
//! Clients with synchronous writes return together when a batch has landed. A batch of only the first of them would
//! leave the others to the next one. So a batch is taken when the same number of threads wait for it as waited for the
//! last landed one, or after a small fraction of a sync's duration.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::commit::FLIGHTS_MAX;

/// Batches for which threads may wait: those in progress, and the next one.
const BATCHES: usize = FLIGHTS_MAX + 1;

/// A batch that has been taken.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// Number of its last event plus 1.
    end: u64,
    /// Number of threads that waited for it at that time.
    count: usize,
}

#[derive(Debug)]
struct State {
    is_led: bool,
    /// Number of the last durable event plus 1.
    durable: u64,
    /// Number of the oldest batch that has not landed, and of the next one.
    oldest: usize,
    next: usize,
    /// Batches by their numbers, modulo [`BATCHES`].
    taken: [Taken; BATCHES],
    /// Number of threads that wait for the next batch, and number of those that waited for the last landed one.
    count: usize,
    expected: usize,
}

impl State {
    /// The batch that contains the event before `events`, now or later.
    fn batch_of(&self, events: u64) -> usize {
        (self.oldest..self.next).find(|&batch| self.taken[batch % BATCHES].end >= events).unwrap_or(self.next)
    }
}

/// The threads that wait for a commit of one store.
#[derive(Debug)]
pub struct Waiters {
    state: Mutex<State>,
    arrival: Condvar,
    /// Notified when a batch has landed or failed, or when one of its threads may lead it.
    ends: [Condvar; BATCHES],
}

impl Default for Waiters {
    fn default() -> Self {
        let taken = [Taken::default(); BATCHES];
        let state = State { is_led: false, durable: 0, oldest: 0, next: 0, taken, count: 0, expected: 0 };
        Self { state: Mutex::new(state), arrival: Condvar::new(), ends: std::array::from_fn(|_| Condvar::new()) }
    }
}

/// The lead of a commit, until this is dropped.
pub struct Lead<'a>(&'a Waiters);

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all events before `events` are durable (`None`), or until the calling thread must lead the next
    /// commit.
    pub fn turn(&self, events: u64) -> Option<Lead<'_>> {
        let mut state = self.lock();
        let mut is_counted = false;
        while state.durable < events {
            let batch = state.batch_of(events);
            if batch == state.next && !std::mem::replace(&mut is_counted, true) {
                state.count += 1;
                if state.count == state.expected {
                    self.arrival.notify_one();
                }
            }
            if batch == state.next && !state.is_led {
                state.is_led = true;
                return Some(Lead(self));
            }
            state = self.ends[batch % BATCHES].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Leads the next commit, unless another thread leads it.
    #[cfg(feature = "soak")]
    pub fn try_lead(&self) -> Option<Lead<'_>> {
        let mut state = self.lock();
        state.count += 1;
        (!std::mem::replace(&mut state.is_led, true)).then_some(Lead(self))
    }

    /// The oldest batch has landed: all events before `durable` are durable.
    pub fn landed(&self, durable: u64) {
        let mut state = self.lock();
        state.durable = durable;
        let place = state.oldest % BATCHES;
        state.expected = state.taken[place].count;
        state.oldest += 1;
        drop(state);
        self.ends[place].notify_all();
    }

    /// No taken batch will land. The threads that wait for one lead another.
    pub fn failed(&self) {
        let mut state = self.lock();
        state.oldest = state.next;
        state.count = 0;
        drop(state);
        self.ends.iter().for_each(Condvar::notify_all);
    }
}

impl Lead<'_> {
    /// Waits for the expected threads, up to `at_most`.
    pub fn gather(&self, at_most: Duration) {
        let state = self.0.lock();
        if state.count < state.expected {
            let is_alone = |state: &mut State| state.count < state.expected;
            drop(self.0.arrival.wait_timeout_while(state, at_most, is_alone));
        }
    }

    /// A batch was taken, with all events before `end` that earlier batches do not contain.
    pub fn took(&self, end: u64) {
        let mut state = self.0.lock();
        let (count, place) = (std::mem::take(&mut state.count), state.next % BATCHES);
        state.taken[place] = Taken { end, count };
        state.next += 1;
    }

    /// The taken batch could not be written, so it is the next one again. One of its waiting threads leads it.
    pub fn gave_back(&self) {
        let mut state = self.0.lock();
        state.next -= 1;
        state.count = 0;
        let place = state.next % BATCHES;
        drop(state);
        // Threads that came since then wait for the batch after it.
        [place, (place + 1) % BATCHES].iter().for_each(|&place| self.0.ends[place].notify_all());
    }

    /// There was nothing to take: all events before `durable` are durable.
    pub fn found_nothing(&self, durable: u64) {
        let mut state = self.0.lock();
        state.durable = durable;
        state.count = 0;
        let place = state.next % BATCHES;
        drop(state);
        self.0.ends[place].notify_all();
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_led = false;
        let place = state.next % BATCHES;
        drop(state);
        self.0.ends[place].notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn one_leads_and_the_others_are_told() {
        let waiters = Waiters::default();
        let lead = waiters.turn(1).unwrap();
        lead.gather(Duration::MAX);
        thread::scope(|scope| {
            let served = scope.spawn(|| waiters.turn(1).is_none());
            while waiters.lock().count < 2 {
                thread::yield_now();
            }
            lead.took(1);
            let next = scope.spawn(|| waiters.turn(2).map(|lead| lead.took(2)).is_some());
            while waiters.lock().count < 1 {
                thread::yield_now();
            }
            assert!(!served.is_finished() && !next.is_finished());
            drop(lead);
            assert!(next.join().unwrap(), "the next batch is taken before the first one has landed");
            let third = scope.spawn(|| waiters.turn(2).is_none());
            assert!(!served.is_finished());
            waiters.landed(1);
            assert!(served.join().unwrap());
            assert!(!third.is_finished() && waiters.lock().expected == 2);
            waiters.landed(2);
            assert!(third.join().unwrap());
        });
        assert!(waiters.turn(1).is_none());
    }

    #[test]
    fn whoever_waits_for_a_batch_that_fails_leads_another() {
        let waiters = Waiters::default();
        waiters.turn(1).unwrap().took(1);
        thread::scope(|scope| {
            let leads = scope.spawn(|| waiters.turn(1).is_some());
            waiters.failed();
            assert!(leads.join().unwrap());
        });
        let lead = waiters.turn(1).unwrap();
        lead.took(1);
        thread::scope(|scope| {
            let leads = scope.spawn(|| waiters.turn(2).is_some());
            lead.gave_back();
            assert!(!leads.is_finished(), "there is one who leads");
            drop(lead);
            assert!(leads.join().unwrap());
        });
        waiters.turn(2).unwrap().found_nothing(2);
        assert!(waiters.turn(2).is_none());
    }

    #[test]
    fn whoever_leads_waits_for_those_who_are_expected() {
        let waiters = Waiters::default();
        waiters.lock().expected = 3;
        let lead = waiters.turn(1).unwrap();
        lead.gather(Duration::ZERO);
        thread::scope(|scope| {
            let gathered = scope.spawn(|| lead.gather(Duration::MAX));
            let wait = || {
                waiters.turn(1);
            };
            scope.spawn(wait);
            while waiters.lock().count < 2 {
                thread::yield_now();
            }
            assert!(!gathered.is_finished(), "two are not three");
            scope.spawn(wait);
            gathered.join().unwrap();
            lead.took(1);
            waiters.landed(1);
        });
    }
}
