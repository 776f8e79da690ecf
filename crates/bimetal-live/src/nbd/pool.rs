//! Memory limit over all connections: a fixed allotment for each, and a shared pool for large requests.
//!
//! Requests that fit the allotment of their connection are served without a lock. A larger one borrows memory for all its data
//! from the pool before the buffer is allocated, and returns it when the message is consumed or the reply is sent. A connection
//! has at most one loan, so that loans cannot deadlock. Loans are granted first come, first served, so that small requests
//! cannot starve a large one. While others wait, a borrower whose client neither sends nor reads is dropped.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::listen::ListenError;
use super::{MAX_PAYLOAD_BYTES, Options};
use crate::clients::{Client, Progress};

/// Largest and smallest allotment of a connection, in bytes.
const OWN_BYTES_MAX: usize = 4 << 20;
const OWN_BYTES_MIN: usize = 1 << 20;
/// Smallest memory limit: half of it is for allotments, and the largest request must fit the other half.
pub const MEMORY_BYTES_MIN: usize = 96 << 20;
/// Largest header of a message or reply, not counted with the data: four 32-MiB requests fit a pool of 128 MiB.
const HEADER_BYTES: usize = 64;

const _: () = assert!(MEMORY_BYTES_MIN / 2 > MAX_PAYLOAD_BYTES);

/// Allotment of a connection, in bytes; the rest of it is for TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// Receive buffer.
    pub input: usize,
    /// Send buffer.
    pub output: usize,
}

/// The pool for large requests.
#[derive(Debug)]
pub struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    own: Own,
    /// Time for which a borrower may delay others because of its client.
    patience: Duration,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Numbers of the waiting requests, in order of arrival.
    waiting: VecDeque<u64>,
    next: u64,
    loans: Vec<Loan>,
    is_closed: bool,
}

#[derive(Debug)]
struct Loan {
    number: u64,
    bytes: usize,
    borrower: Arc<Client>,
    /// Tracked while other requests wait.
    progress: Option<Progress>,
}

/// Borrowed memory, returned when this is dropped.
#[derive(Debug)]
pub struct Grant {
    pool: Arc<Pool>,
    number: u64,
}

impl Drop for Grant {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        if let Some(index) = state.loans.iter().position(|loan| loan.number == self.number) {
            state.free += state.loans.swap_remove(index).bytes;
        }
        drop(state);
        self.pool.changed.notify_all();
    }
}

impl Options {
    /// Checks that the memory limit suffices for the number of connections.
    ///
    /// # Errors
    /// [`ListenError::Memory`]: it does not.
    pub fn check(&self) -> Result<(), ListenError> {
        Pool::new(self).map(drop)
    }
}

impl Pool {
    /// The pool of a server with these options.
    ///
    /// # Errors
    /// The memory is too little for this number of connections.
    pub fn new(options: &Options) -> Result<Self, ListenError> {
        let (connections, given) = (options.connections, options.memory_bytes);
        let own_bytes = (given / 2 / connections.max(1)).min(OWN_BYTES_MAX);
        if own_bytes < OWN_BYTES_MIN || given < MEMORY_BYTES_MIN {
            let needed = MEMORY_BYTES_MIN.max(connections.saturating_mul(2 * OWN_BYTES_MIN));
            return Err(ListenError::Memory { connections, needed, given });
        }
        let state = State {
            free: given - connections * own_bytes,
            waiting: VecDeque::new(),
            next: 0,
            loans: Vec::new(),
            is_closed: false,
        };
        let own = Own { input: own_bytes / 8 * 3 + HEADER_BYTES, output: own_bytes / 2 + HEADER_BYTES };
        Ok(Self { state: Mutex::new(state), changed: Condvar::new(), own, patience: options.loan })
    }

    /// Memory that each connection owns.
    pub fn own(&self) -> Own {
        self.own
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Borrows memory for a message or a reply of `bytes` bytes for `borrower`, and waits until enough is free.
    ///
    /// # Errors
    /// The borrower was dropped, or the pool was closed.
    pub fn borrow(self: &Arc<Self>, bytes: usize, borrower: &Arc<Client>) -> io::Result<Grant> {
        let bytes = bytes.saturating_sub(HEADER_BYTES);
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(number);
        let outcome = loop {
            if state.is_closed || borrower.dropped().is_some() {
                break Err(io::ErrorKind::ConnectionAborted.into());
            }
            if state.waiting.front() == Some(&number) {
                if state.free >= bytes {
                    state.free -= bytes;
                    let loan = Loan { number, bytes, borrower: Arc::clone(borrower), progress: None };
                    state.loans.push(loan);
                    break Ok(Grant { pool: Arc::clone(self), number });
                }
                state.make_room(bytes, self.patience);
            }
            let waited = self.changed.wait_timeout(state, self.patience / 8);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        };
        state.waiting.retain(|&waiting| waiting != number);
        drop(state);
        // There may be enough memory for the next request, too.
        self.changed.notify_all();
        outcome
    }

    /// Refuses all further loans.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

impl State {
    /// Drops borrowers whose clients delay others, if their memory is needed for `bytes` bytes.
    fn make_room(&mut self, bytes: usize, patience: Duration) {
        let now = Instant::now();
        let mut free = self.free;
        for Loan { bytes: lent, borrower, progress, .. } in &mut self.loans {
            let progress = progress.get_or_insert_with(|| Progress::new(borrower, now));
            let is_stuck = progress.is_stuck(borrower, now, patience);
            if is_stuck && free < bytes {
                borrower
                    .drop_because("others waited for the memory that its data took, and it did not send or take them");
            }
            if borrower.dropped().is_some() {
                free += *lent;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use crate::clients::Doing;
    use std::os::unix::net::UnixStream;
    use std::thread;

    const MIB: usize = 1 << 20;

    fn pool(loan: Duration) -> Arc<Pool> {
        let options = Options { connections: 16, memory_bytes: 128 * MIB, loan, ..Options::default() };
        Arc::new(Pool::new(&options).unwrap())
    }

    fn client(doing: Doing) -> (Arc<Client>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let client = Client::new(ours.into(), None);
        client.set_doing(doing);
        (Arc::new(client), theirs)
    }

    #[test]
    fn connections_have_their_part_and_the_pool_the_rest() {
        let of = |connections, mib: usize| {
            let options = Options { connections, memory_bytes: mib * MIB, ..Options::default() };
            Pool::new(&options).map(|pool| (pool.own(), pool.lock().free / MIB))
        };
        assert_eq!(of(32, 256).unwrap(), (Own { input: 3 * MIB / 2 + 64, output: 2 * MIB + 64 }, 128));
        assert_eq!(of(48, 96).unwrap(), (Own { input: (384 << 10) + 64, output: (512 << 10) + 64 }, 48));
        assert_eq!(of(1, 96).unwrap().1, 92);
        for (connections, mib, needed) in [(49, 96, 98), (1, 95, 96), (1000, 256, 2000)] {
            let error = of(connections, mib).unwrap_err();
            let text = format!("{connections} connections need at least {needed} MiB of memory, and {mib} are given");
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn first_come_first_served_and_never_more_than_there_is() {
        let pool = pool(Duration::from_secs(3600));
        let (borrower, _theirs) = client(Doing::Working);
        let first = pool.borrow(8 * MIB, &borrower).unwrap();
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            // No two of these fit at the same time.
            for (number, mib) in [(1, 60), (2, 8), (3, 60)] {
                let (pool, borrower, order) = (&pool, &borrower, &order);
                scope.spawn(move || {
                    let grant = pool.borrow(mib * MIB + 28, borrower).unwrap();
                    order.lock().unwrap().push(number);
                    assert!(pool.lock().free <= 64 * MIB);
                    drop(grant);
                });
                // Starts the next one when this one waits.
                while pool.lock().waiting.len() < number {
                    thread::yield_now();
                }
            }
            assert!(order.lock().unwrap().is_empty(), "small ones do not pass a large one");
            drop(first);
        });
        assert_eq!(order.into_inner().unwrap(), [1, 2, 3]);
        let state = pool.lock();
        assert_eq!((state.free, state.loans.len()), (64 * MIB, 0));
    }

    #[test]
    fn who_keeps_others_waiting_is_dropped_and_who_moves_is_not() {
        let pool = pool(Duration::from_millis(80));
        let [(reads, _one), (stuck, _two), (works, _three), (waits, _four)] =
            [Doing::Sending, Doing::Sending, Doing::Working, Doing::Working].map(client);
        let held = [&reads, &works].map(|borrower| pool.borrow(16 * MIB, borrower).unwrap());
        let lost = pool.borrow(32 * MIB, &stuck).unwrap();
        thread::sleep(Duration::from_millis(100));
        assert_eq!(stuck.dropped(), None, "nobody waits");
        thread::scope(|scope| {
            let waiter = scope.spawn(|| pool.borrow(32 * MIB, &waits).map(drop));
            while stuck.dropped().is_none() {
                reads.moved(PROGRESS);
                thread::sleep(Duration::from_millis(5));
            }
            drop(lost);
            waiter.join().unwrap().unwrap();
        });
        assert_eq!((reads.dropped(), works.dropped(), waits.dropped()), (None, None, None));
        drop(held);
        pool.close();
        assert!(pool.borrow(1, &waits).is_err());
    }

    const PROGRESS: usize = 64 << 10;
}
