//! Pace: a store that answers no sooner than its modelled device.
//!
//! A request is issued on the modelled device at the time of its arrival, so that requests of several clients compete
//! for its dies and channels as on a real device. The answers to requests that a client sent together are held back
//! together, until the last of them is due.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::block_device::{BlockDevice, Extent, IoError};
use crate::nbd::Stop;
use crate::store::Store;

/// Time by which a thread oversleeps on a machine that is not overloaded.
const OVERSLEPT: Duration = Duration::from_micros(80);
/// Longest time for which a thread sleeps before it looks for the stop of the service.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

thread_local! {
    /// Time at which the answers of this thread are due.
    static DUE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A store at the pace of the modelled device, multiplied by a factor.
pub struct Paced {
    store: Arc<Store>,
    factor: f64,
    stop: Stop,
    start: Instant,
    start_ns: u64,
}

impl Paced {
    /// A store that takes `factor` times as long as the modelled device, until `stop`: a stop does not wait for the
    /// modelled device, which may be behind by any time.
    pub fn new(store: Arc<Store>, factor: f64, stop: Stop) -> Self {
        let start_ns = store.modelled_ns();
        Self { store, factor, stop, start: Instant::now(), start_ns }
    }

    /// Current time of the modelled device.
    fn now_ns(&self) -> u64 {
        self.start_ns + (self.start.elapsed().as_nanos() as f64 / self.factor) as u64
    }

    /// Holds back the answer to a request issued at `issue_ns`, until `response_ns` later on the modelled device.
    fn hold(&self, issue_ns: u64, response_ns: u64) {
        let modelled_ns = (issue_ns - self.start_ns + response_ns) as f64;
        let due = self.start + Duration::from_nanos((modelled_ns * self.factor) as u64);
        DUE.set(DUE.get().max(Some(due)));
    }
}

impl BlockDevice for Paced {
    fn sectors(&self) -> u64 {
        self.store.sectors()
    }

    fn read_only(&self) -> bool {
        self.store.read_only()
    }

    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError> {
        let issue_ns = self.now_ns();
        let response_ns = self.store.timed_read(sector, out, Some(issue_ns))?;
        self.hold(issue_ns, response_ns);
        Ok(())
    }

    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError> {
        let issue_ns = self.now_ns();
        let response_ns = self.store.timed_write(sector, data, fua, Some(issue_ns))?;
        self.hold(issue_ns, response_ns);
        Ok(())
    }

    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.store.trim(sector, sectors, fua)
    }

    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.store.zero(sector, sectors, fua)
    }

    fn flush(&self) -> Result<(), IoError> {
        self.store.flush()
    }

    fn extents(
        &self,
        sector: u64,
        sectors: u64,
        visit: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>,
    ) -> Result<(), IoError> {
        self.store.extents(sector, sectors, visit)
    }

    fn settle(&self) {
        let Some(due) = DUE.take() else { return };
        while !self.stop.wanted() {
            let left = due.saturating_duration_since(Instant::now());
            match left.saturating_sub(OVERSLEPT) {
                Duration::ZERO if left.is_zero() => return,
                Duration::ZERO => std::hint::spin_loop(),
                sleep => thread::sleep(sleep.min(LOOK_PAUSE)),
            }
        }
    }
}
