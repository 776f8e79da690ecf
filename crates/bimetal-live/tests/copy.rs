//! Copies of stores: by the scheme and by the map, interrupted, damaged, and of unknown schemes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;
use std::sync::Arc;

use bimetal_core::part::random::below;
use bimetal_core::scheme::SCHEMES;
use bimetal_live::store::backing::{Access, Storage};
use bimetal_live::store::crash_backing::{CrashStorage, Loss};
use bimetal_live::store::soak::TINY;
use bimetal_live::store::{CreateOptions, NewStore, OpenOptions, Store, StoreError, check, create, source};
use bimetal_live::{BlockDevice, Extent};

const OPTIONS: fn(u64) -> CreateOptions = |number| CreateOptions { number: Some(number), ..CreateOptions::default() };

fn storage() -> (Arc<CrashStorage>, Arc<dyn Storage>) {
    let storage = Arc::new(CrashStorage::new());
    (Arc::clone(&storage), storage)
}

fn open(storage: &Arc<dyn Storage>) -> Store {
    Store::open(Arc::clone(storage), OpenOptions::default()).unwrap()
}

/// A store with some data, and these data.
fn filled(scheme: usize) -> (Arc<CrashStorage>, Arc<dyn Storage>, Vec<u8>) {
    let (files, storage) = storage();
    create(storage.as_ref(), &TINY[0].device(SCHEMES[scheme], 0).unwrap(), &OPTIONS(3)).unwrap();
    let store = open(&storage);
    let (mut content, mut state) = (vec![0; store.sectors() as usize * 512], scheme as u64);
    for number in 0..200_u64 {
        let sectors = 1 + below(&mut state, 24);
        let sector = below(&mut state, store.sectors() - sectors);
        let range = sector as usize * 512..(sector + sectors) as usize * 512;
        if number % 5 == 4 {
            content[range].fill(0);
            store.trim(sector, sectors, false).unwrap();
        } else {
            content[range.clone()].fill(number as u8 | 1);
            store.write(sector, &content[range], false).unwrap();
        }
    }
    store.flush().unwrap();
    (files, storage, content)
}

/// Runs of a device: whether each is a hole, and its length.
fn extents(store: &Store) -> Vec<(bool, u64)> {
    let mut runs = Vec::new();
    store
        .extents(0, store.sectors(), &mut |sectors, extent| {
            runs.push((extent == Extent::Hole, sectors));
            ControlFlow::Continue(())
        })
        .unwrap();
    runs
}

fn copied(old: &Arc<dyn Storage>, scheme: usize, by_map: bool) -> (Arc<dyn Storage>, Vec<(u64, u64)>) {
    let (_, storage) = storage();
    let device = TINY[0].device(SCHEMES[scheme], 0).unwrap();
    let new = NewStore::create(Arc::clone(&storage), &device, &OPTIONS(4)).unwrap();
    let (mut old, _) = source(old, by_map).unwrap();
    let (sectors, lost) = old.read_all(&mut |sector, bytes| new.write(sector, bytes)).unwrap();
    assert_eq!(sectors + lost.iter().map(|run| run.1).sum::<u64>(), old.written_sectors());
    new.complete().unwrap();
    (storage, lost)
}

#[test]
fn every_scheme_is_copied_to_every_next_one_and_holes_stay_holes() {
    for (scheme, spec) in SCHEMES.iter().enumerate() {
        let (_, old, content) = filled(scheme);
        let next = (scheme + 1) % SCHEMES.len();
        // The first copy replays a journal; the others copy a closed store.
        for by_map in [false, false, true] {
            let (new, lost) = copied(&old, next, by_map);
            assert!(lost.is_empty());
            let (before, store) = (open(&old), open(&new));
            let mut bytes = vec![1; content.len()];
            store.read(0, &mut bytes).unwrap();
            assert!(bytes == content, "{} by map: {by_map}", spec.name);
            assert_eq!(extents(&store), extents(&before), "{}", spec.name);
            before.close().unwrap();
            drop((before, store));
            assert!(check(new).unwrap().is_sound());
        }
    }
}

#[test]
fn a_copy_that_is_cut_short_is_no_store_and_can_be_made_again() {
    let (files, storage) = storage();
    let device = TINY[0].device(SCHEMES[0], 0).unwrap();
    let new = NewStore::create(Arc::clone(&storage), &device, &OPTIONS(4)).unwrap();
    new.write(0, &[1; 4096]).unwrap();
    assert!(matches!(source(&storage, false), Err(StoreError::InUse | StoreError::Unfinished)));
    drop(new);
    files.restart(Loss::Kill, 0);
    for by_map in [false, true] {
        assert!(matches!(source(&storage, by_map), Err(StoreError::Unfinished)));
    }
    assert!(matches!(Store::open(Arc::clone(&storage), OpenOptions::default()), Err(StoreError::Unfinished)));
    NewStore::create(Arc::clone(&storage), &device, &OPTIONS(5)).unwrap().complete().unwrap();
    let store = open(&storage);
    assert_eq!(extents(&store), [(true, store.sectors())]);
    let again = NewStore::create(Arc::clone(&storage), &device, &OPTIONS(6)).err();
    assert!(matches!(again, Some(StoreError::Exists)), "{again:?}");
}

#[test]
fn a_copy_is_complete_or_not_wherever_it_crashes() {
    let (_, old, content) = filled(0);
    for crash in 1.. {
        let (files, storage) = storage();
        files.set_fault(crash, bimetal_live::store::crash_backing::Fault::Crash);
        let device = TINY[0].device(SCHEMES[1], 0).unwrap();
        let copied = NewStore::create(Arc::clone(&storage), &device, &OPTIONS(4)).is_ok_and(|new| {
            let read = source(&old, false).unwrap().0.read_all(&mut |sector, bytes| new.write(sector, bytes));
            read.is_ok() && new.complete().is_ok()
        });
        if copied {
            assert!(crash > 20, "several crashes were tried");
            break;
        }
        files.restart(Loss::All, crash);
        match Store::open(Arc::clone(&storage), OpenOptions::default()) {
            Ok(store) => {
                let mut bytes = vec![1; content.len()];
                store.read(0, &mut bytes).unwrap();
                assert!(bytes == content, "crash {crash}");
            }
            Err(StoreError::Unfinished | StoreError::Missing | StoreError::NoSuperblock) => {}
            Err(error) => panic!("crash {crash}: {error}"),
        }
    }
}

/// Gives a store another version of its scheme.
fn with_version(storage: &Arc<dyn Storage>, version: u32) {
    let file = storage.open("superblock", Access::Write, false).unwrap();
    for copy in [0, 65_536] {
        let mut bytes = vec![0; 65_536];
        file.read_at(copy, &mut bytes).unwrap();
        bytes[64..68].copy_from_slice(&version.to_le_bytes());
        let text = u32::from_le_bytes(bytes[68..72].try_into().unwrap()) as usize;
        let sum = crc32c::crc32c(&bytes[4..132 + text]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        file.write_at(copy, &bytes).unwrap();
    }
}

#[test]
fn a_store_of_an_unknown_version_is_copied_if_it_was_closed() {
    let (_, old, content) = filled(0);
    with_version(&old, 77);
    let refusal = source(&old, false).err().unwrap().to_string();
    assert!(
        refusal.contains("version 77") && refusal.contains("not closed") && refusal.contains("--rescue"),
        "{refusal}"
    );
    with_version(&old, SCHEMES[0].version);
    open(&old).close().unwrap();
    with_version(&old, 77);
    let refusal = Store::open(Arc::clone(&old), OpenOptions::default()).err().unwrap().to_string();
    assert!(refusal.contains("bimetal copy"), "{refusal}");
    let (new, lost) = copied(&old, 1, false);
    assert!(lost.is_empty());
    let mut bytes = vec![1; content.len()];
    open(&new).read(0, &mut bytes).unwrap();
    assert!(bytes == content);
}

#[test]
fn lost_sectors_are_named_and_the_others_copied() {
    let (files, old, content) = filled(0);
    open(&old).close().unwrap();
    (4096..files.bytes("region0.flash").len()).step_by(60 * 512).for_each(|byte| files.flip("region0.flash", byte * 8));
    let by_scheme = copied(&old, 1, false);
    let by_map = copied(&old, 1, true);
    assert!(!by_scheme.1.is_empty());
    assert_eq!(by_scheme.1, by_map.1);
    let mut bytes = vec![1; content.len()];
    open(&by_map.0).read(0, &mut bytes).unwrap();
    for (sector, (found, expected)) in bytes.chunks(512).zip(content.chunks(512)).enumerate() {
        let is_lost = by_map.1.iter().any(|&(first, count)| (first..first + count).contains(&(sector as u64)));
        assert!(if is_lost { found == [0; 512] } else { found == expected }, "sector {sector}");
    }
}
