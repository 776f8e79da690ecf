//! Counts the requests in flight on a queue, so that a queue can be stopped once they have completed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The requests in flight on one queue.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    in_flight: usize,
    /// Completed requests of which the guest was not told. It may have found them and have sent others.
    untold: usize,
    is_closed: bool,
}

impl State {
    fn is_busy(&self) -> bool {
        self.in_flight + self.untold > 0
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a request, unless the gate is closed or `most` requests are in flight.
    pub fn enter(&self, most: usize) -> bool {
        let mut state = self.lock();
        let enters = !state.is_closed && state.in_flight < most;
        state.in_flight += usize::from(enters);
        enters
    }

    /// An admitted request does not exist.
    pub fn leave(&self) {
        self.change(|state| state.in_flight -= 1);
    }

    /// A request was returned to the guest. [`Gate::told`] follows.
    pub fn completed(&self) {
        let mut state = self.lock();
        state.in_flight -= 1;
        state.untold += 1;
    }

    /// The guest was told of some completed requests.
    pub fn told(&self, requests: usize) {
        self.change(|state| state.untold -= requests);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        if !state.is_busy() {
            self.left.notify_all();
        }
    }

    /// Admits no more requests.
    pub fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Waits until no request is in flight and the guest was told of all.
    pub fn wait(&self) {
        let waited = self.left.wait_while(self.lock(), |state| state.is_busy());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn completed_requests_make_room_and_are_awaited_until_the_guest_was_told() {
        let gate = Gate::default();
        assert!(gate.enter(2) && gate.enter(2) && !gate.enter(2));
        gate.completed();
        assert!(gate.enter(2) && !gate.enter(2), "the guest may have found it and sent another");
        gate.completed();
        gate.completed();
        gate.close();
        assert!(!gate.enter(2));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| gate.wait());
            gate.told(2);
            assert!(!waiter.is_finished(), "one is missing");
            gate.told(1);
            waiter.join().unwrap();
        });
    }
}
