use bimetal_core::scheme::Metrics;

use super::*;
use crate::store::crash_backing::{CrashStorage, Fault, Loss};
use crate::store::create::{CreateOptions, create};
use crate::store::names::{JOURNAL, region_file};
use crate::store::soak::TINY;
use bimetal_core::media::Media;
use bimetal_core::request::Request;
use bimetal_core::scheme::{SCHEMES, Scheme};

/// A scheme with an inconsistent state.
#[derive(serde::Serialize)]
struct Nonsense;

impl<M: Media> Scheme<M> for Nonsense {
    fn fill(&mut self, _: &mut M) {}
    fn serve(&mut self, _: &mut M, request: &Request) {
        panic!("sector {} is nowhere", request.sector);
    }
    fn metrics(&self, _: &mut Metrics) {
        panic!("there are no figures");
    }
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn a_scheme_that_panics_ends_the_service_and_nothing_else() {
    let storage = Arc::new(CrashStorage::new());
    let device = TINY[0].device(SCHEMES[0], 0).unwrap();
    create(storage.as_ref(), &device, &CreateOptions { number: Some(1), ..CreateOptions::default() }).unwrap();
    let open = || Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap();
    let store = open();
    store.write(0, &[1; SECTOR], true).unwrap();
    store.inspect(|_, engine| engine.scheme = Box::new(Nonsense));
    let mut sector = [9; SECTOR];
    assert_eq!(store.read(0, &mut sector), Err(IoError::Io));
    assert_eq!(store.write(0, &[2; SECTOR], true), Err(IoError::Io));
    assert_eq!((store.flush(), store.close()), (Err(IoError::Io), Err(IoError::Io)));
    let failure = store.status().failure.unwrap();
    assert!(store.read_only() && failure.ends_with("sector 0 is nowhere"), "{failure}");
    drop(store);
    // Durable data are still readable by a scheme that supports them.
    open().read(0, &mut sector).unwrap();
    assert_eq!(sector, [1; SECTOR]);
}

/// The space for a write is checked before the scheme gets it. A commit can lack space all the same, and then its events
/// have happened.
#[test]
fn a_refused_write_may_have_taken_effect_and_become_durable_later() {
    let created = CrashStorage::new();
    let device = TINY[0].device(SCHEMES[0], 0).unwrap();
    let options = CreateOptions { number: Some(1), sparse: true, ..CreateOptions::default() };
    create(&created, &device, &options).unwrap();
    let open = |storage: &Arc<CrashStorage>| {
        Store::open(Arc::clone(storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap()
    };
    let read = |store: &Store| {
        let mut sector = [9; SECTOR];
        store.read(0, &mut sector).unwrap();
        sector
    };
    let mut refused_in_journal = 0;
    for operation in 1..=12 {
        let storage = Arc::new(created.clone());
        let store = open(&storage);
        store.write(0, &[1; SECTOR], true).unwrap();
        let pages = || (0..device.regions.len()).map(|region| storage.bytes(&region_file(region))).collect::<Vec<_>>();
        let before = (storage.bytes(JOURNAL), pages());
        storage.set_fault(storage.changes() + operation, Fault::Full);
        if store.write(0, &[2; SECTOR], true) != Err(IoError::NoSpace) {
            continue;
        }
        let seen = read(&store);
        assert!(seen == [1; SECTOR] || seen == [2; SECTOR], "operation {operation}");
        if seen == [2; SECTOR] && storage.bytes(JOURNAL) == before.0 && pages() != before.1 {
            refused_in_journal += 1;
        }
        // There is space again.
        store.flush().unwrap();
        let later = Arc::new(CrashStorage::clone(&storage));
        later.restart(Loss::All, 0);
        assert_eq!(read(&open(&later)), seen, "operation {operation}");
    }
    assert!(refused_in_journal > 0, "the write of the batch did not fail");
}
