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
    is_closed: bool,
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

    /// Some requests have completed.
    pub fn leave(&self, requests: usize) {
        let mut state = self.lock();
        state.in_flight -= requests;
        if state.in_flight == 0 {
            self.left.notify_all();
        }
    }

    /// Admits no more requests.
    pub fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Waits until no request is in flight.
    pub fn wait(&self) {
        let waited = self.left.wait_while(self.lock(), |state| state.in_flight > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
