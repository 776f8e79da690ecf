//! Crash tests: random requests, a crash at a random operation on the backing, recovery, and a comparison with a model;
//! repeated on the same device.
//!
//! After a crash a device must have exactly the state of some commit, which must not be older than the last
//! acknowledged one. No single sector may be older, newer or mixed. Crashes occur during creation, requests, commits
//! and checkpoints, several parallel commits, and recovery itself. Instead of a crash a file may fail. The device is
//! then opened again, with or without a power cut before.

mod exhaustive;
mod faults;
mod model;
mod overlap;
mod tiny;

use std::sync::Arc;

use bimetal_core::part::random::{below, split_mix};
use bimetal_core::scheme;

use super::backing::Storage;
use super::crash_backing::{CrashStorage, Fault, Loss};
use super::create::{CreateOptions, create};
use super::device::Store;
use super::error::StoreError;
use super::files::OpenOptions;
use super::limits::Limits;
use crate::block_device::{BlockDevice, IoError};
pub use exhaustive::{Share, exhaustive};
pub use faults::{Faults, failing_files, flipped_bits, full_file_system};
use model::Model;
pub use tiny::{TINY, Tiny};

/// Results of crash tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of crashes, each at another point.
    pub crashes: u64,
    /// Crashes during the recovery from another crash.
    pub in_recovery: u64,
    /// Failures of a file, after which the device took no more writes until it was opened again.
    pub failures: u64,
    /// Requests served.
    pub requests: u64,
    /// Acknowledged flushes and writes with FUA.
    pub flushes: u64,
    /// Requests served while a flush was in progress.
    pub overlapping: u64,
    /// Crashes while several commits were in progress.
    pub in_flight: u64,
    /// Sectors compared after a crash.
    pub sectors: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.crashes += other.crashes;
        self.in_recovery += other.in_recovery;
        self.failures += other.failures;
        self.requests += other.requests;
        self.flushes += other.flushes;
        self.overlapping += other.overlapping;
        self.in_flight += other.in_flight;
        self.sectors += other.sectors;
    }
}

/// Consecutive crashes of one device.
const CYCLES: u64 = 12;
/// Largest number of requests between two crashes.
const REQUESTS_MAX: u64 = 300;

/// Runs the crash test with this seed on a scheme.
///
/// # Errors
/// The first difference, with instructions to repeat it.
pub fn crash_run(scheme: &str, seed: u64) -> Result<Tally, String> {
    let run = || {
        let mut run = CrashTest::new(scheme, seed)?;
        for _ in 0..CYCLES {
            run.cycle()?;
        }
        Ok(run.tally)
    };
    run().map_err(|what: String| format!("{what}\nrepeat with: crash_run(\"{scheme}\", {seed})"))
}

fn open(storage: &Arc<CrashStorage>, limits: Limits) -> Result<Store, StoreError> {
    let options = OpenOptions { limits, ..OpenOptions::default() };
    Store::open(Arc::clone(storage) as Arc<dyn Storage>, options)
}

/// Reads all sectors and compares them.
fn read_and_compare(store: &Store, model: &Model) -> Result<(), String> {
    let mut bytes = vec![0; model.sectors() as usize * 512];
    store.read(0, &mut bytes).map_err(|error| format!("the device cannot be read: {error}"))?;
    model.compare(0, &bytes)
}

/// A device between crashes.
struct CrashTest {
    storage: Arc<CrashStorage>,
    limits: Limits,
    model: Model,
    random: u64,
    tally: Tally,
}

impl CrashTest {
    fn new(scheme: &str, seed: u64) -> Result<Self, String> {
        let mut random = seed;
        split_mix(&mut random);
        let spec = scheme::find(scheme).map_err(|error| error.to_string())?;
        let tiny = &TINY[below(&mut random, TINY.len() as u64) as usize];
        // Half of the devices have settings that differ from the defaults.
        let settings = if below(&mut random, 2) == 0 { 0 } else { split_mix(&mut random) };
        let device = tiny.device(spec, settings)?;
        let sectors = device.logical.0 / 512;
        // Small limits cause everything that large devices do occasionally.
        let one_of = |random: &mut u64, values: [u64; 3]| values[below(random, 3) as usize];
        let limits = Limits {
            events: one_of(&mut random, [3, 40, 1000]) as usize,
            disk_sectors: one_of(&mut random, [16, 64, 1000]) as usize,
            journal_bytes: one_of(&mut random, [1, 2000, 20_000]),
            request_sectors: one_of(&mut random, [8, 24, 64]) as u32,
            trim_sectors: one_of(&mut random, [16, 50, 1000]) as u32,
            checkpoint_bytes: one_of(&mut random, [1, 200, 1 << 20]) as usize,
            waiting_bytes: one_of(&mut random, [1, 1000, 1 << 20]) as usize,
            ..Limits::default()
        };
        let mut run =
            Self { storage: Arc::default(), limits, model: Model::new(sectors), random, tally: Tally::default() };
        run.create(&device)?;
        Ok(run)
    }

    fn draw(&mut self, bound: u64) -> u64 {
        below(&mut self.random, bound)
    }

    /// Creates the store, with a second attempt if the first one crashes.
    fn create(&mut self, device: &bimetal_core::device::Device) -> Result<(), String> {
        let options = CreateOptions { number: Some(split_mix(&mut self.random)), ..CreateOptions::default() };
        if self.draw(4) == 0 {
            self.plan_crash(25);
            if create(self.storage.as_ref(), device, &options).is_err() && !self.storage.is_crashed() {
                return Err("a store cannot be made".into());
            }
            self.crash();
        }
        match create(self.storage.as_ref(), device, &options) {
            Ok(()) | Err(StoreError::Exists) => Ok(()),
            Err(error) => Err(format!("a store cannot be made: {error}")),
        }
    }

    /// Makes one of the next `changes` operations crash.
    fn plan_crash(&mut self, changes: u64) {
        self.plan(changes, Fault::Crash);
    }

    fn plan(&mut self, changes: u64, fault: Fault) {
        let at = self.storage.changes() + 1 + self.draw(changes);
        self.storage.set_fault(at, fault);
    }

    /// A crash, or sometimes a failure of a file.
    fn fault(&mut self) -> Fault {
        if self.draw(4) == 0 { Fault::Io } else { Fault::Crash }
    }

    /// Whether requests may fail: after a crash, or after a failure of a file.
    fn has_failed(&self, store: &Store) -> bool {
        self.storage.is_crashed() || store.read_only()
    }

    fn crash(&mut self) {
        let loss = Loss::ALL[self.draw(Loss::ALL.len() as u64) as usize];
        let seed = split_mix(&mut self.random);
        self.storage.restart(loss, seed);
        self.tally.crashes += 1;
    }

    fn open(&self) -> Result<Store, StoreError> {
        open(&self.storage, self.limits)
    }

    /// Opens the store, possibly with crashes during recovery.
    fn recover(&mut self) -> Result<Store, String> {
        while self.draw(4) == 0 {
            self.plan_crash(12);
            let opened = self.open();
            if !self.storage.is_crashed() {
                opened.map_err(|error| format!("the store cannot be opened: {error}"))?;
            }
            self.crash();
            self.tally.in_recovery += 1;
        }
        self.open().map_err(|error| format!("the store cannot be opened: {error}"))
    }

    /// Recovers, compares, and serves requests until the next crash.
    fn cycle(&mut self) -> Result<(), String> {
        let store = Arc::new(self.recover()?);
        self.model.recovered(store.events())?;
        self.compare(&store)?;
        let (until, fault) = ([8, 60, 600][self.draw(3) as usize], self.fault());
        self.plan(until, fault);
        let requests = self.draw(REQUESTS_MAX);
        for _ in 0..requests {
            self.request(&store)?;
            if self.has_failed(&store) {
                break;
            }
        }
        if !self.has_failed(&store) && self.draw(3) == 0 {
            let failed_before = self.storage.has_failed();
            match store.close() {
                Ok(()) => self.model.flushed(),
                // A file that fails after the last commit does not make the device read-only.
                Err(_) if self.has_failed(&store) || !failed_before && self.storage.has_failed() => {}
                Err(error) => return Err(format!("the store cannot be closed: {error}")),
            }
        }
        self.tally.failures += u64::from(store.read_only());
        drop(store);
        self.crash();
        Ok(())
    }

    /// Reads all sectors.
    fn compare(&mut self, store: &Store) -> Result<(), String> {
        let mut sector = 0;
        while sector < self.model.sectors() {
            let sectors = (self.model.sectors() - sector).min(1 + self.draw(100));
            self.read(store, sector, sectors)?;
            if self.storage.is_crashed() {
                return Ok(());
            }
            self.tally.sectors += sectors;
            sector += sectors;
        }
        Ok(())
    }

    fn read(&mut self, store: &Store, sector: u64, sectors: u64) -> Result<(), String> {
        let mut bytes = vec![0xee; sectors as usize * 512];
        match store.read(sector, &mut bytes) {
            Ok(()) => self.model.compare(sector, &bytes),
            Err(_) if self.storage.is_crashed() => Ok(()),
            Err(error) => Err(format!("sectors {sector} to {} cannot be read: {error}", sector + sectors)),
        }
    }

    fn request(&mut self, store: &Arc<Store>) -> Result<(), String> {
        let total = self.model.sectors();
        let largest = if self.draw(6) == 0 { 100 } else { 20 };
        let sectors = (1 + self.draw(largest)).min(total);
        let hot = if self.draw(2) == 0 { total } else { total / 8 };
        let mut sector = self.draw(hot).min(total - sectors);
        if self.draw(3) > 0 {
            sector = sector / 8 * 8;
        }
        let fua = self.draw(8) == 0;
        self.tally.requests += 1;
        let done = match self.draw(20) {
            0..9 => {
                let data = self.model.write(sector, sectors, store.events(), u64::from(self.limits.request_sectors));
                store.write(sector, &data, fua)
            }
            9..11 => {
                self.model.trim(sector, sectors, store.events(), u64::from(self.limits.trim_sectors));
                store.trim(sector, sectors, fua)
            }
            11..17 => return self.read(store, sector, sectors),
            17 => return self.tell(store, store.idle(4).map(|_| ())),
            _ => return self.flush(store),
        };
        if done.is_ok() && fua {
            self.tally.flushes += 1;
            self.model.flushed();
        }
        self.tell(store, done)
    }

    /// Only the crash or the failure of a file may make requests fail.
    fn tell(&self, store: &Store, done: Result<(), IoError>) -> Result<(), String> {
        match done {
            Err(error) if !self.has_failed(store) => Err(format!("a request fails: {error}")),
            _ => Ok(()),
        }
    }
}
