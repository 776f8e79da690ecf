//! The map of a closed store: when it exists, and the data read by it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use bimetal_core::scheme::SCHEMES;
use bimetal_live::BlockDevice;
use bimetal_live::store::backing::Storage;
use bimetal_live::store::crash_backing::{CrashStorage, Loss};
use bimetal_live::store::soak::TINY;
use bimetal_live::store::{CreateOptions, Mapped, OpenOptions, Store, StoreError, create};

fn made(scheme: &str) -> Arc<CrashStorage> {
    let storage = Arc::new(CrashStorage::new());
    let spec = SCHEMES.iter().find(|spec| spec.name == scheme).unwrap();
    let options = CreateOptions { number: Some(3), sparse: true, ..CreateOptions::default() };
    create(storage.as_ref(), &TINY[0].device(spec, 0).unwrap(), &options).unwrap();
    storage
}

fn open(storage: &Arc<CrashStorage>) -> Store {
    Store::open(Arc::clone(storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap()
}

/// Runs: the first sector, and the bytes or the length.
type Runs<T> = Vec<(u64, T)>;

/// Runs that can be read, and runs that are lost.
fn read(storage: &CrashStorage) -> (Runs<Vec<u8>>, Runs<u64>) {
    let mut runs = Vec::new();
    let mut mapped = Mapped::open(storage).unwrap();
    let (_, lost) = mapped
        .read_all(&mut |sector, bytes| {
            runs.push((sector, bytes.to_vec()));
            Ok(())
        })
        .unwrap();
    (runs, lost)
}

fn refused(storage: &CrashStorage) -> String {
    match Mapped::open(storage) {
        Err(error @ StoreError::NoMap { .. }) => error.to_string(),
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn a_map_is_of_the_latest_closed_state_or_void() {
    let storage = made("pagemap");
    assert!(refused(&storage).contains("there is no map in it"));
    let store = open(&storage);
    store.write(7, &[1; 1024], true).unwrap();
    drop(store);
    storage.restart(Loss::Nothing, 0);
    assert!(refused(&storage).contains("it was not closed"));
    open(&storage).close().unwrap();
    assert_eq!(read(&storage), (vec![(7, vec![1; 1024])], vec![]));
    let map = storage.bytes("map");
    let store = open(&storage);
    assert!(storage.bytes("map").is_empty(), "it is cleared before anything is written");
    store.write(8, &[2; 1024], true).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(read(&storage), (vec![(7, [[1; 512], [2; 512], [2; 512]].concat())], vec![]));
    // As if it had been restored from a backup.
    storage.open("map", bimetal_live::store::backing::Access::Write, false).unwrap().write_at(0, &map).unwrap();
    assert!(refused(&storage).contains("another time"));
}

#[test]
fn a_store_is_closed_without_room_for_its_map() {
    let storage = made("opfcl");
    let store = open(&storage);
    store.write(7, &[1; 4096], true).unwrap();
    storage.set_room(Some(0));
    store.close().unwrap();
    drop(store);
    assert!(storage.bytes("map").is_empty());
    storage.set_room(None);
    open(&storage).close().unwrap();
    assert_eq!(read(&storage), (vec![(7, vec![1; 4096])], vec![]));
}

#[test]
fn a_sector_that_is_damaged_is_lost_and_others_are_not() {
    for scheme in ["pagemap", "opfcl"] {
        let storage = made(scheme);
        let store = open(&storage);
        for sector in 0..400 {
            store.write(sector, &[sector as u8 | 1; 512], false).unwrap();
        }
        store.close().unwrap();
        drop(store);
        let (runs, lost) = read(&storage);
        assert_eq!((runs.iter().map(|(_, bytes)| bytes.len()).sum::<usize>(), lost), (400 * 512, vec![]));
        for file in ["region0.flash", "disk.image"] {
            (4096..storage.bytes(file).len()).step_by(30 * 512).for_each(|byte| storage.flip(file, byte * 8));
        }
        let (runs, lost) = read(&storage);
        for (sector, bytes) in &runs {
            for (bytes, sector) in bytes.chunks(512).zip(*sector..) {
                assert!(bytes.iter().all(|&byte| byte == sector as u8 | 1), "{scheme}: sector {sector}");
            }
        }
        let (found, missing) = (
            runs.iter().map(|(_, bytes)| bytes.len() as u64 / 512).sum::<u64>(),
            lost.iter().map(|run| run.1).sum::<u64>(),
        );
        assert!(missing > 0 && found > 0 && found + missing == 400, "{scheme}: {found} and {missing}");
    }
}

#[test]
fn no_scheme_is_asked() {
    let storage = made("wlaftl");
    let store = open(&storage);
    store.write(7, &[1; 1024], true).unwrap();
    store.close().unwrap();
    drop(store);
    // Both checkpoints and the journal are gone.
    for file in ["checkpoint.0", "checkpoint.1", "journal"] {
        storage.flip(file, 100);
    }
    assert!(Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).is_err());
    assert_eq!(read(&storage), (vec![(7, vec![1; 1024])], vec![]));
}
