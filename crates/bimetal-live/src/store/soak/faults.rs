//! File failures and damaged files.
//!
//! If any operation fails, a device must lose no durable data, return no wrong data, and open again. If any bit flips,
//! it must return correct data or report an error.

use std::sync::Arc;

use bimetal_core::part::random::{below, split_mix};
use bimetal_core::scheme;

use super::model::Model;
use super::{TINY, Tiny, open, read_and_compare};
use crate::block_device::{BlockDevice, IoError};
use crate::store::crash_backing::{CrashStorage, Fault, Loss, ROOM_BYTES};
use crate::store::create::{CreateOptions, create};
use crate::store::device::Store;
use crate::store::limits::Limits;

const LIMITS: Limits = Limits {
    events: 20,
    disk_sectors: 40,
    journal_bytes: 4000,
    checkpoint_bytes: 100,
    waiting_bytes: 1000,
    request_sectors: 24,
    trim_sectors: 100,
    held_bytes: 1 << 20,
};
const REQUESTS: u64 = 40;
/// Requests after the store has been opened again.
const REQUESTS_LATER: u64 = 4;
/// Number of times that a file system runs full, and requests between two kills while it is full.
const FULL_CYCLES: u64 = 4;
const FULL_REQUESTS: u64 = 60;

/// Results of fault tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Number of faults, each at another operation; or of flipped bits; or of writes that lacked space.
    pub faults: u64,
    /// Number of refused openings.
    pub refusals: u64,
    /// Flushes that lacked space, because a single request had moved more data than the reserved space holds.
    pub flushes_refused: u64,
    /// Number of unreadable sectors.
    pub unreadable: u64,
    /// Number of readable sectors.
    pub readable: u64,
}

impl std::ops::AddAssign for Faults {
    fn add_assign(&mut self, other: Self) {
        self.faults += other.faults;
        self.refusals += other.refusals;
        self.flushes_refused += other.flushes_refused;
        self.unreadable += other.unreadable;
        self.readable += other.readable;
    }
}

struct Prepared {
    storage: Arc<CrashStorage>,
    model: Model,
}

fn prepare(scheme: &str, tiny: &Tiny, seed: u64, limits: Limits, sparse: bool) -> Result<Prepared, String> {
    let spec = scheme::find(scheme).map_err(|error| error.to_string())?;
    let device = tiny.device(spec, seed)?;
    let storage = Arc::new(CrashStorage::new());
    let options = CreateOptions { number: Some(2), sparse, ..CreateOptions::default() };
    create(storage.as_ref(), &device, &options).map_err(|error| error.to_string())?;
    let mut prepared = Prepared { storage, model: Model::new(device.logical.0 / 512) };
    let store = open(&prepared.storage, limits).map_err(|error| error.to_string())?;
    for number in 0..60 {
        request(&store, &mut prepared.model, number, limits).map_err(|error| error.to_string())?;
    }
    store.flush().map_err(|error| error.to_string())?;
    prepared.model.flushed();
    prepared.model.recovered(store.events())?;
    Ok(prepared)
}

/// First sector, sectors and kind of the request with this number: below 5 a write, 5 a trim, 6 a read, 7 a flush.
fn drawn(number: u64, total: u64) -> (u64, u64, u64) {
    let mut state = number;
    let sectors = 1 + below(&mut state, 30);
    (below(&mut state, total - sectors), sectors, below(&mut state, 8))
}

/// Serves the request with this number.
fn request(store: &Store, model: &mut Model, number: u64, limits: Limits) -> Result<(), IoError> {
    let (sector, sectors, kind) = drawn(number, model.sectors());
    match kind {
        0..5 => {
            let data = model.write(sector, sectors, store.events(), u64::from(limits.request_sectors));
            store.write(sector, &data, false)?;
        }
        5 => {
            model.trim(sector, sectors, store.events(), u64::from(limits.trim_sectors));
            store.trim(sector, sectors, false)?;
        }
        6 => store.read(sector, &mut vec![0; sectors as usize * 512])?,
        _ => {
            store.flush()?;
            model.flushed();
        }
    }
    Ok(())
}

/// Makes every operation of a run fail once, and every read too; or one in `every`, starting with one of the first
/// `every`. Settings are the defaults if `first` is 0.
///
/// # Errors
/// The first lost or wrong data, with instructions to repeat it.
pub fn failing_files(scheme: &str, every: usize, first: u64) -> Result<Faults, String> {
    let prepared = prepare(scheme, &TINY[0], first, LIMITS, false)?;
    let mut total = Faults::default();
    for fault in [Some(Fault::Io), Some(Fault::Full), None] {
        for at in (1 + first % every as u64..).step_by(every) {
            let failed = fail_at(&prepared, fault, at, &mut total);
            if !failed.map_err(|what| {
                format!("{what}\n{fault:?} at {at}: repeat with failing_files(\"{scheme}\", {every}, {first})")
            })? {
                break;
            }
        }
    }
    Ok(total)
}

/// Makes an operation fail, or a read if there is no fault. Returns whether there was an operation with this number.
fn fail_at(prepared: &Prepared, fault: Option<Fault>, at: u64, total: &mut Faults) -> Result<bool, String> {
    let storage = Arc::new((*prepared.storage).clone());
    let mut model = prepared.model.clone();
    match fault {
        Some(fault) => storage.set_fault(storage.changes() + at, fault),
        None => storage.set_failing_read(storage.reads() + at),
    }
    let (changes, reads) = (storage.changes() + at, storage.reads() + at);
    match open(&storage, LIMITS) {
        Err(_) => total.refusals += 1,
        Ok(store) => {
            let mut failed = false;
            for number in 100..100 + REQUESTS {
                match request(&store, &mut model, number, LIMITS) {
                    Ok(()) => {}
                    // A single lack of space is not a failure.
                    Err(IoError::NoSpace) => model.refused(store.events()),
                    Err(_) => failed = true,
                }
                if failed && !store.read_only() {
                    return Err("a request failed and the device can still be written to".into());
                }
            }
            // Unacknowledged data may exist or not, but all other readable data must be correct.
            if failed && store.write(0, &[0; 512], true).is_ok() {
                return Err("a device that failed takes a write".into());
            }
            let compared = read_and_compare(&store, &model);
            // The failure may occur as late as here.
            if !failed && !store.read_only() {
                compared?;
            }
        }
    }
    let happened = if fault.is_some() { storage.changes() >= changes } else { storage.reads() >= reads };
    total.faults += u64::from(happened);
    storage.restart(Loss::ALL[(at % 5) as usize], at);
    let store = open(&storage, LIMITS).map_err(|error| format!("the store cannot be opened again: {error}"))?;
    model.recovered(store.events())?;
    read_and_compare(&store, &model)?;
    total.readable += model.sectors();
    lasts(&storage, store, model)?;
    Ok(happened)
}

/// Checks that data which become durable now do not depend on data that a failed sync has lost.
fn lasts(storage: &Arc<CrashStorage>, store: Store, mut model: Model) -> Result<(), String> {
    for number in 200..200 + REQUESTS_LATER {
        request(&store, &mut model, number, LIMITS).map_err(|error| format!("a later request fails: {error}"))?;
    }
    store.flush().map_err(|error| format!("a later flush fails: {error}"))?;
    model.flushed();
    drop(store);
    storage.restart(Loss::All, 0);
    let store = open(storage, LIMITS).map_err(|error| format!("the store cannot be opened later: {error}"))?;
    model.recovered(store.events())?;
    read_and_compare(&store, &model)
}

/// Makes the file system of a sparse store run full at a random moment, kills and reopens the store meanwhile, and then
/// frees space. Writes may be refused while it is full, but nothing else may fail. No acknowledged data may be lost,
/// and writes must be accepted as soon as there is space.
///
/// # Errors
/// The first lost, wrong or refused data, with instructions to repeat it.
pub fn full_file_system(scheme: &str, seed: u64) -> Result<Faults, String> {
    let run = || {
        let tiny = &TINY[(seed % TINY.len() as u64) as usize];
        let Prepared { storage, mut model } = prepare(scheme, tiny, seed, LIMITS, true)?;
        let (mut state, mut total) = (seed, Faults::default());
        for _ in 0..FULL_CYCLES {
            storage.set_room(Some(below(&mut state, 40) * ROOM_BYTES));
            let kill = |model: &mut Model, state: &mut u64| {
                storage.restart(Loss::ALL[below(state, 5) as usize], split_mix(state));
                let store = open(&storage, LIMITS).map_err(|error| format!("the store cannot be opened: {error}"))?;
                model.recovered(store.events())?;
                read_and_compare(&store, model).map(|()| store)
            };
            let mut store = kill(&mut model, &mut state)?;
            for _ in 0..2 {
                total += serve_full(&store, &mut model, &mut state)?;
                drop(store);
                store = kill(&mut model, &mut state)?;
            }
            total += serve_full(&store, &mut model, &mut state)?;
            storage.set_room(None);
            let (sector, data) = (model.sectors() - 1, model.write(model.sectors() - 1, 1, store.events(), 1));
            store.write(sector, &data, true).map_err(|error| format!("there is room again: {error}"))?;
            model.flushed();
            read_and_compare(&store, &model)?;
            total.readable += model.sectors();
            if below(&mut state, 2) == 0 {
                store.close().map_err(|error| format!("the store cannot be closed: {error}"))?;
            }
        }
        Ok(total)
    };
    run().map_err(|what: String| format!("{what}\nrepeat with full_file_system(\"{scheme}\", {seed})"))
}

/// Requests while the file system has little or no space.
fn serve_full(store: &Store, model: &mut Model, state: &mut u64) -> Result<Faults, String> {
    let mut found = Faults::default();
    for _ in 0..FULL_REQUESTS {
        let number = split_mix(state);
        let (.., kind) = drawn(number, model.sectors());
        match request(store, model, number, LIMITS) {
            Ok(()) => {}
            Err(IoError::NoSpace) if kind < 5 => {
                model.refused(store.events());
                found.faults += 1;
            }
            Err(IoError::NoSpace) if kind == 7 => found.flushes_refused += 1,
            Err(error) => return Err(format!("a request of kind {kind} fails: {error}")),
        }
    }
    match store.flush() {
        Ok(()) => model.flushed(),
        Err(IoError::NoSpace) => found.flushes_refused += 1,
        Err(error) => return Err(format!("a flush fails: {error}")),
    }
    read_and_compare(store, model).map(|()| found)
}

/// Flips bits one after the other, `count` in each file.
///
/// # Errors
/// The first wrong sector, with instructions to repeat it.
pub fn flipped_bits(scheme: &str, seed: u64, count: u64) -> Result<Faults, String> {
    let mut total = Faults::default();
    // With all changes in the journal, and with a checkpoint.
    for journal_bytes in [u64::MAX, 1] {
        let limits = Limits { journal_bytes, ..LIMITS };
        let prepared = prepare(scheme, &TINY[(seed % TINY.len() as u64) as usize], seed, limits, false)?;
        for (name, length) in prepared.storage.names() {
            let mut state = seed;
            for _ in 0..count.min(length as u64 * 8) {
                let bit = below(&mut state, length as u64 * 8) as usize;
                total += flip(&prepared, limits, &name, bit).map_err(|what| {
                    format!("{what}\nbit {bit} of `{name}`: repeat with flipped_bits(\"{scheme}\", {seed}, {count})")
                })?;
            }
        }
    }
    Ok(total)
}

fn flip(prepared: &Prepared, limits: Limits, name: &str, bit: usize) -> Result<Faults, String> {
    let storage = Arc::new((*prepared.storage).clone());
    let mut model = prepared.model.clone();
    storage.flip(name, bit);
    let mut found = Faults { faults: 1, ..Faults::default() };
    let Ok(store) = open(&storage, limits) else {
        found.refusals = 1;
        return Ok(found);
    };
    model.recovered(store.events())?;
    read_sectors(&store, &model, &mut found)?;
    // Damage must not spread when data are moved.
    for number in split_mix(&mut (bit as u64)) % 1000..1000 {
        if store.events() > 400 || number > 900 {
            break;
        }
        request(&store, &mut model, number, limits).ok();
    }
    read_sectors(&store, &model, &mut found)?;
    Ok(found)
}

/// Reads all sectors one by one. The readable ones must be correct.
fn read_sectors(store: &Store, model: &Model, found: &mut Faults) -> Result<(), String> {
    let mut bytes = [0; 512];
    for sector in 0..model.sectors() {
        match store.read(sector, &mut bytes) {
            Ok(()) => {
                model.compare(sector, &bytes)?;
                found.readable += 1;
            }
            Err(IoError::Io) => found.unreadable += 1,
            Err(error) => return Err(format!("sector {sector}: {error}")),
        }
    }
    Ok(())
}
