//! Every registered scheme on a backing that loses, reorders and tears unsynced data, that fails, and whose bits flip.
//!
//! These tests are a part of the long run of `soak`. A failure prints instructions to repeat it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Instant;

use bimetal_core::scheme::SCHEMES;
use bimetal_live::store::backing::{Access, Storage};
use bimetal_live::store::crash_backing::{CrashStorage, Fault, Loss};
use bimetal_live::store::{CreateOptions, Limits, OpenOptions, Store, StoreError, create, soak};
use bimetal_live::{BlockDevice, IoError};

#[test]
fn every_scheme_is_after_a_crash_as_a_commit_left_it() {
    let start = Instant::now();
    let mut total = soak::Tally::default();
    for spec in SCHEMES {
        for seed in 0..10 {
            total += soak::crash_run(spec.name, seed).unwrap();
        }
    }
    println!("{total:?} in {:?}", start.elapsed());
    assert!(total.crashes > 2000 && total.in_recovery > 300 && total.flushes > 3000, "{total:?}");
    assert!(total.overlapping > 1000 && total.in_flight > 100 && total.failures > 200, "{total:?}");
}

/// The process that creates a store is killed, and the next one finds that the store exists. After that, a power cut
/// must not lose any part of it.
#[test]
fn a_store_that_is_said_to_be_there_stays() {
    let device = soak::TINY[0].device(SCHEMES[0], 0).unwrap();
    let options = CreateOptions { number: Some(7), ..CreateOptions::default() };
    let mut told = 0;
    for operation in 1.. {
        let storage = Arc::new(CrashStorage::new());
        storage.set_fault(operation, Fault::Crash);
        let made = create(storage.as_ref(), &device, &options).is_ok();
        let crashed = storage.is_crashed();
        storage.restart(Loss::Kill, operation);
        match create(storage.as_ref(), &device, &options) {
            Ok(()) => assert!(!made, "operation {operation}"),
            Err(StoreError::Exists) => told += 1,
            Err(error) => panic!("operation {operation}: {error}"),
        }
        storage.restart(Loss::All, operation);
        let opened = Store::open(storage, OpenOptions::default());
        assert!(opened.is_ok(), "operation {operation}: {:?}", opened.err());
        if !crashed {
            break;
        }
    }
    assert!(told > 1);
}

/// A store whose creation was interrupted can be created again over its block device. This is refused if the device
/// contains anything else.
#[test]
fn a_store_that_was_cut_short_is_made_again_and_takes_nothing_else() {
    let device = soak::TINY[0].device(SCHEMES[0], 0).unwrap();
    let regions = vec![(device.regions[0].name.clone(), "/dev/flash".to_owned())];
    let options = CreateOptions { regions, ..CreateOptions::default() };
    for operation in 1.. {
        let storage = CrashStorage::new();
        storage.add_fixed("/dev/flash", 4 << 20);
        storage.set_fault(operation, Fault::Crash);
        let made = create(&storage, &device, &options);
        let crashed = storage.is_crashed();
        storage.restart(Loss::ALL[(operation % 5) as usize], operation);
        let other = storage.clone();
        other.open("/dev/flash", Access::Write, false).unwrap().write_at(0, &[9; 4096]).unwrap();
        let refused = create(&other, &device, &options);
        assert!(matches!(refused, Err(StoreError::Occupied { .. } | StoreError::Exists)), "operation {operation}");
        match create(&storage, &device, &options) {
            Ok(()) => assert!(made.is_err(), "operation {operation}"),
            // The store was complete, or reported as complete.
            Err(StoreError::Exists) => {}
            Err(error) => panic!("operation {operation}: {error}"),
        }
        assert!(Store::open(Arc::new(storage), OpenOptions::default()).is_ok(), "operation {operation}");
        if !crashed {
            break;
        }
    }
}

/// A batch that looks torn by a crash may have been acknowledged. A return to the previous batch would mix old sectors
/// with new ones, as slots and places on the home disk were reused for later ones by then.
#[test]
fn a_journal_that_is_cut_short_is_found_out() {
    for spec in SCHEMES {
        let storage = Arc::new(CrashStorage::new());
        create(storage.as_ref(), &soak::TINY[0].device(spec, 0).unwrap(), &CreateOptions::default()).unwrap();
        let open = || Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default());
        let store = open().unwrap();
        for number in 1..4 {
            store.write(u64::from(number), &[number; 512], true).unwrap();
        }
        drop(store);
        let journal = storage.open("journal", Access::Write, false).unwrap();
        let length = journal.length().unwrap();
        let bytes = storage.bytes("journal");
        for end in [4096, (4096 + length) / 2, length - 512] {
            journal.set_len(end).unwrap();
            assert!(matches!(open(), Err(StoreError::Journal { .. })), "{}: cut at byte {end}", spec.name);
            journal.write_at(0, &bytes).unwrap();
        }
        journal.set_len(0).unwrap();
        assert!(matches!(open(), Err(StoreError::Damaged { .. })), "{}: without its label", spec.name);
        journal.write_at(0, &bytes).unwrap();
        let mut sector = [0; 512];
        open().unwrap().read(3, &mut sector).unwrap();
        assert_eq!(sector, [3; 512]);
    }
}

#[test]
fn every_short_sequence_survives_a_crash_at_every_operation() {
    let start = Instant::now();
    let mut total = soak::Tally::default();
    let share = soak::Share { operations: 40, every_loss: false };
    for (spec, seed) in SCHEMES.iter().zip(1..) {
        total += soak::exhaustive(spec.name, 0, 3, share).unwrap();
        total += soak::exhaustive(spec.name, seed, 3, share).unwrap();
    }
    println!("{total:?} in {:?}", start.elapsed());
}

#[test]
fn a_file_that_fails_makes_the_device_read_only_and_loses_nothing() {
    let start = Instant::now();
    let mut total = soak::Faults::default();
    for (spec, first) in SCHEMES.iter().zip(0..) {
        total += soak::failing_files(spec.name, 14, first).unwrap();
    }
    println!("{total:?} in {:?}", start.elapsed());
}

/// A request of several events at an odd sector. The first of these events becomes durable alone.
#[test]
fn a_block_is_old_or_new_if_a_crash_cuts_a_request_between_two_events() {
    const BLOCK: usize = 8;
    let (first, sectors) = (3, 100);
    let device = soak::TINY[0].device(SCHEMES[0], 0).unwrap();
    let limits = Limits { events: 1, request_sectors: 32, trim_sectors: 32, ..Limits::default() };
    let write = |store: &Store| store.write(first, &vec![2; sectors * 512], false);
    let trim = |store: &Store| store.trim(first, sectors as u64, false);
    for request in [&write as &dyn Fn(&Store) -> Result<(), IoError>, &trim] {
        let mut cut = 0;
        for operation in 1..40 {
            let storage = Arc::new(CrashStorage::new());
            create(storage.as_ref(), &device, &CreateOptions { number: Some(7), ..CreateOptions::default() }).unwrap();
            let options = OpenOptions { limits, ..OpenOptions::default() };
            let open = || Store::open(Arc::clone(&storage) as Arc<dyn Storage>, options).unwrap();
            let store = open();
            store.write(0, &[1; 128 * 512], true).unwrap();
            storage.set_fault(storage.changes() + operation, Fault::Crash);
            request(&store).ok();
            drop(store);
            storage.restart(Loss::All, 1);
            let mut found = vec![9; 128 * 512];
            open().read(0, &mut found).unwrap();
            let is_old: Vec<bool> = found.chunks(512).map(|sector| sector == [1; 512]).collect();
            let within = first as usize..first as usize + sectors;
            for block in (0..128).step_by(BLOCK).filter(|block| within.contains(block)) {
                let covered = &is_old[block..(block + BLOCK).min(within.end)];
                assert!(covered.iter().all(|&old| old == covered[0]), "operation {operation}, block at {block}");
            }
            cut += u32::from(is_old[within.start] != is_old[within.end - 1]);
        }
        assert!(cut > 0, "no crash was between two events");
    }
}

#[test]
fn a_full_file_system_loses_nothing_and_the_device_goes_on_when_there_is_room() {
    let start = Instant::now();
    let mut total = soak::Faults::default();
    for spec in SCHEMES {
        for seed in 0..6 {
            total += soak::full_file_system(spec.name, seed).unwrap();
        }
    }
    println!("{total:?} in {:?}", start.elapsed());
    assert!(total.faults > 1000 && total.flushes_refused == 0, "{total:?}");
}

#[test]
fn a_flipped_bit_is_found_and_never_returned() {
    let start = Instant::now();
    let mut total = soak::Faults::default();
    for (spec, seed) in SCHEMES.iter().zip(0..) {
        total += soak::flipped_bits(spec.name, seed, 10).unwrap();
    }
    println!("{total:?} in {:?}", start.elapsed());
    assert!(total.refusals > 0 && total.unreadable > 0, "{total:?}");
}
