//! Every short sequence of requests, with a crash at every operation on the backing.
//!
//! Most crash-consistency bugs of file systems need no more than three operations and a crash at a persistence point
//! (Mohan, Martinez, Ponnapalli, Raju, Chidambaram: *Finding Crash-Consistency Bugs with Bounded Black-Box Crash
//! Testing*, OSDI 2018).

use std::sync::Arc;

use bimetal_core::part::random::split_mix;
use bimetal_core::scheme;

use super::model::Model;
use super::{TINY, Tally, open, read_and_compare};
use crate::block_device::BlockDevice;
use crate::store::crash_backing::{CrashStorage, Fault, Loss};
use crate::store::create::{CreateOptions, create};
use crate::store::device::Store;
use crate::store::limits::Limits;

/// A request of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Write,
    WriteDurably,
    Flush,
    Trim,
    Read,
}

const STEPS: [Step; 5] = [Step::Write, Step::WriteDurably, Step::Flush, Step::Trim, Step::Read];
const LIMITS: Limits = Limits {
    events: 1000,
    disk_sectors: 1000,
    journal_bytes: 3000,
    checkpoint_bytes: 100,
    waiting_bytes: 1 << 20,
    request_sectors: 64,
    trim_sectors: 1000,
    held_bytes: 1 << 20,
};
/// Sectors of a request, and first sectors: two requests overlap, one is elsewhere, and none consists of whole pages.
const SECTORS: u64 = 11;
const STARTS: [u64; 3] = [40, 36, 90];

/// A store in use, and its expected contents.
struct Prepared {
    storage: CrashStorage,
    model: Model,
}

/// The share of the crashes that is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Crashes happen at every n-th operation, with another offset for each sequence; 1 means all.
    pub operations: u64,
    /// Whether each crash is repeated with every kind of loss, instead of with one kind in turn.
    pub every_loss: bool,
}

/// Runs all sequences of up to `length` requests on a scheme, with a crash at every operation, or at a share of them. A
/// seed other than 0 gives settings that differ from the scheme's defaults.
///
/// # Errors
/// The first difference, with the sequence and the crash.
pub fn exhaustive(scheme: &str, seed: u64, length: u32, share: Share) -> Result<Tally, String> {
    let prepared = prepare(scheme, seed)?;
    let mut tally = Tally::default();
    for length in 1..=length {
        for number in 0..STEPS.len().pow(length) {
            let digits = (0..length).map(|digit| number / STEPS.len().pow(digit) % STEPS.len());
            let steps: Vec<Step> = digits.map(|digit| STEPS[digit]).collect();
            tally += crash_everywhere(&prepared, &steps, number as u64, share).map_err(|what| {
                format!(
                    "{what}\n`{scheme}`, {steps:?}: repeat with exhaustive(\"{scheme}\", {seed}, {length}, {share:?})"
                )
            })?;
        }
    }
    Ok(tally)
}

/// A device that was overwritten more than once, so that erased blocks are scarce.
fn prepare(scheme: &str, seed: u64) -> Result<Prepared, String> {
    let spec = scheme::find(scheme).map_err(|error| error.to_string())?;
    let device = TINY[TINY.len() - 1].device(spec, seed)?;
    let storage = Arc::new(CrashStorage::new());
    let options = CreateOptions { number: Some(1), ..CreateOptions::default() };
    create(storage.as_ref(), &device, &options).map_err(|error| error.to_string())?;
    let mut model = Model::new(device.logical.0 / 512);
    let store = open(&storage, LIMITS).map_err(|error| error.to_string())?;
    let mut state = 7;
    for number in 0..60 {
        let sector = split_mix(&mut state) % (model.sectors() - SECTORS);
        let data = model.write(sector, SECTORS, store.events(), u64::from(LIMITS.request_sectors));
        store.write(sector, &data, number % 16 == 0).map_err(|error| error.to_string())?;
    }
    store.flush().map_err(|error| error.to_string())?;
    model.flushed();
    model.recovered(store.events())?;
    Ok(Prepared { storage: (*storage).clone(), model })
}

fn crash_everywhere(prepared: &Prepared, steps: &[Step], number: u64, share: Share) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let mut at = 1 + number % share.operations;
    loop {
        for (index, loss) in Loss::ALL.into_iter().enumerate() {
            if !share.every_loss && index as u64 != (number + at / share.operations) % Loss::ALL.len() as u64 {
                continue;
            }
            let crashed = crash_at(prepared, steps, at, loss, &mut tally)
                .map_err(|what| format!("{what}\ncrash at operation {at}, {loss:?}"))?;
            if !crashed {
                return Ok(tally);
            }
        }
        at += share.operations;
    }
}

/// Runs a sequence on a copy of the device, with a crash at an operation, and a second one during recovery. Returns
/// whether there was an operation with this number.
fn crash_at(prepared: &Prepared, steps: &[Step], at: u64, loss: Loss, tally: &mut Tally) -> Result<bool, String> {
    let storage = Arc::new(prepared.storage.clone());
    let mut model = prepared.model.clone();
    let mut state = at;
    storage.set_fault(storage.changes() + at, Fault::Crash);
    if let Ok(store) = open(&storage, LIMITS) {
        for (step, start) in steps.iter().zip(STARTS) {
            take(&store, &mut model, *step, start, &storage, tally)?;
        }
    }
    if !storage.is_crashed() {
        return Ok(false);
    }
    storage.restart(loss, split_mix(&mut state));
    storage.set_fault(storage.changes() + 1 + at % 8, Fault::Crash);
    drop(open(&storage, LIMITS));
    storage.restart(Loss::ALL[(at % 5) as usize], split_mix(&mut state));
    tally.crashes += 2;
    tally.in_recovery += 1;
    let store = open(&storage, LIMITS).map_err(|error| format!("the store cannot be opened: {error}"))?;
    model.recovered(store.events())?;
    read_and_compare(&store, &model)?;
    tally.sectors += model.sectors();
    Ok(true)
}

fn take(
    store: &Store,
    model: &mut Model,
    step: Step,
    start: u64,
    storage: &CrashStorage,
    tally: &mut Tally,
) -> Result<(), String> {
    let per_event = u64::from(LIMITS.request_sectors);
    tally.requests += 1;
    let (done, is_durable) = match step {
        Step::Write | Step::WriteDurably => {
            let fua = step == Step::WriteDurably;
            let data = model.write(start, SECTORS, store.events(), per_event);
            (store.write(start, &data, fua), fua)
        }
        Step::Flush => (store.flush(), true),
        Step::Trim => {
            model.trim(start, SECTORS, store.events(), u64::from(LIMITS.trim_sectors));
            (store.trim(start, SECTORS, false), false)
        }
        Step::Read => (store.read(start, &mut vec![0; SECTORS as usize * 512]), false),
    };
    match done {
        Ok(()) if is_durable => {
            tally.flushes += 1;
            model.flushed();
        }
        Err(error) if !storage.is_crashed() => return Err(format!("{step:?} fails: {error}")),
        _ => {}
    }
    Ok(())
}
