use bimetal_core::scheme::Metrics;

use super::*;
use crate::store::crash_backing::CrashStorage;
use crate::store::create::{CreateOptions, create};
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
