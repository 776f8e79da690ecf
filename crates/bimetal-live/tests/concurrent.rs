//! Several threads at one store: nobody waits for what another one makes durable.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bimetal_core::scheme::SCHEMES;
use bimetal_live::store::backing::Storage;
use bimetal_live::store::crash_backing::{CrashStorage, Loss};
use bimetal_live::store::{CreateOptions, OpenOptions, Store, create, soak};
use bimetal_live::{BlockDevice, Extent};

/// For what must not wait: longer than any machine takes.
const LONG: Duration = Duration::from_secs(30);
const WRITERS: u64 = 8;

/// A store whose next sync does not end before the gate is open.
struct Gated {
    storage: Arc<CrashStorage>,
    store: Arc<Store>,
    /// Says that the sync has begun.
    begun: Receiver<()>,
    /// Lets it end, by going away.
    gate: Sender<()>,
}

fn gated(scheme: usize) -> Gated {
    let storage = Arc::new(CrashStorage::new());
    let device = soak::TINY[0].device(SCHEMES[scheme], 0).unwrap();
    create(storage.as_ref(), &device, &CreateOptions { number: Some(9), ..CreateOptions::default() }).unwrap();
    let store = Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap();
    let ((begins, begun), (gate, open)) = (mpsc::channel(), mpsc::channel::<()>());
    let open = Mutex::new(open);
    storage.set_meanwhile(Some(Box::new(move || {
        begins.send(()).ok();
        // Later syncs find it open.
        open.lock().unwrap().recv().ok();
    })));
    Gated { storage, store: Arc::new(store), begun, gate }
}

/// Does something in a thread of its own; says when it is done.
fn apart(store: &Arc<Store>, work: impl FnOnce(&Store) + Send + 'static) -> Receiver<()> {
    let (store, (done, is_done)) = (Arc::clone(store), mpsc::channel());
    thread::spawn(move || {
        work(&store);
        done.send(()).unwrap();
    });
    is_done
}

#[test]
fn nobody_waits_for_the_sync_of_another() {
    for (scheme, spec) in SCHEMES.iter().enumerate() {
        let Gated { storage, store, begun, gate } = gated(scheme);
        let durable = apart(&store, |store| store.write(8, &[1; 4096], true).unwrap());
        begun.recv_timeout(LONG).unwrap();
        let others = apart(&store, |store| {
            let mut bytes = [0; 4096];
            store.read(8, &mut bytes).unwrap();
            assert_eq!(bytes, [1; 4096], "what is being made durable is read");
            store.write(16, &[2; 4096], false).unwrap();
            store.write(12, &[3; 512], false).unwrap();
            store.trim(8, 1, false).unwrap();
            store.read(8, &mut bytes).unwrap();
            assert_eq!((bytes[0], bytes[512], bytes[4 * 512]), (0, 1, 3));
            let mut extents = Vec::new();
            store
                .extents(0, 32, &mut |sectors, extent| {
                    extents.push((sectors, extent));
                    std::ops::ControlFlow::Continue(())
                })
                .unwrap();
            assert_eq!(extents[..2], [(9, Extent::Hole), (15, Extent::Allocated)]);
        });
        assert!(others.recv_timeout(LONG).is_ok(), "{}: others wait for a sync, or fail", spec.name);
        assert!(durable.try_recv().is_err(), "{}: acknowledged before it was durable", spec.name);
        drop(gate);
        durable.recv_timeout(LONG).unwrap();
        // What came meanwhile is not part of what was made durable.
        storage.restart(Loss::All, 1);
        drop(store);
        let store = Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap();
        let mut bytes = [9; 3 * 4096];
        store.read(8, &mut bytes).unwrap();
        assert!(bytes[..4096] == [1; 4096] && bytes[4096..] == [0; 8192], "{}", spec.name);
    }
}

#[test]
fn those_who_wait_together_are_served_by_one_commit() {
    let Gated { store, begun, gate, .. } = gated(0);
    let first = apart(&store, |store| store.write(0, &[1; 512], true).unwrap());
    begun.recv_timeout(LONG).unwrap();
    let events = store.events();
    let writers: Vec<_> = (1..=WRITERS)
        .map(|writer| apart(&store, move |store| store.write(writer, &[writer as u8; 512], true).unwrap()))
        .collect();
    while store.events() < events + WRITERS {
        thread::yield_now();
    }
    drop(gate);
    first.recv_timeout(LONG).unwrap();
    writers.iter().for_each(|writer| writer.recv_timeout(LONG).unwrap());
    assert_eq!(store.status().counts.commits, 2, "the first one, and one for all others");
}
