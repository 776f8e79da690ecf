//! Several threads on one store: no thread waits for the commit of another.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bimetal_core::scheme::SCHEMES;
use bimetal_live::store::backing::Storage;
use bimetal_live::store::crash_backing::{CrashStorage, Fault, Loss};
use bimetal_live::store::{CreateOptions, OpenOptions, Store, create, soak};
use bimetal_live::{BlockDevice, Extent, IoError};

/// Time limit for operations that must not wait, longer than any machine takes.
const LONG: Duration = Duration::from_secs(30);
const WRITERS: u64 = 8;

/// A store whose next sync does not end before the gate opens.
struct Gated {
    storage: Arc<CrashStorage>,
    store: Arc<Store>,
    /// Signals that the sync has begun.
    begun: Receiver<()>,
    /// Dropped to let the sync end.
    gate: Sender<()>,
}

fn gated(scheme: usize) -> Gated {
    let storage = Arc::new(CrashStorage::new());
    let device = soak::TINY[0].device(SCHEMES[scheme], 0).unwrap();
    create(storage.as_ref(), &device, &CreateOptions { number: Some(9), ..CreateOptions::default() }).unwrap();
    let store = Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap();
    let ((begins, begun), (gate, open)) = (mpsc::channel(), mpsc::channel::<()>());
    let open = Mutex::new(open);
    storage.set_meanwhile(Some(Arc::new(move || {
        begins.send(()).ok();
        // Later syncs find the gate open.
        open.lock().unwrap().recv().ok();
    })));
    Gated { storage, store: Arc::new(store), begun, gate }
}

/// Runs `work` in a separate thread, and signals its end.
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
            assert_eq!(bytes, [1; 4096], "data of a commit in progress are read");
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
        // Later writes are not part of the durable data.
        storage.restart(Loss::All, 1);
        drop(store);
        let store = Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap();
        let mut bytes = [9; 3 * 4096];
        store.read(8, &mut bytes).unwrap();
        assert!(bytes[..4096] == [1; 4096] && bytes[4096..] == [0; 8192], "{}", spec.name);
    }
}

/// Maximum number of commits in progress.
const COMMITS: u64 = 32;

#[test]
fn those_who_wait_together_are_served_by_one_commit() {
    let Gated { store, begun, gate, .. } = gated(0);
    let write = |writer: u64| apart(&store, move |store| store.write(writer, &[1; 512], true).unwrap());
    let first: Vec<_> = (0..COMMITS)
        .map(|writer| {
            let done = write(writer);
            begun.recv_timeout(LONG).unwrap();
            done
        })
        .collect();
    let events = store.events();
    let others: Vec<_> = (COMMITS..COMMITS + WRITERS).map(write).collect();
    while store.events() < events + WRITERS {
        thread::yield_now();
    }
    // All have written, and will soon wait for their commits.
    thread::sleep(Duration::from_millis(200));
    assert!(begun.try_recv().is_err(), "the maximum number of commits is in progress");
    drop(gate);
    first.iter().chain(&others).for_each(|writer| writer.recv_timeout(LONG).unwrap());
    assert_eq!(store.status().counts.commits, COMMITS + 1, "one commit for all threads that had to wait");
}

/// Two commits. The second one is synced first, then the first one, which may fail. Returns the results of the writers.
fn two_at_once(fails: bool) -> [Result<(), IoError>; 2] {
    let storage = Arc::new(CrashStorage::new());
    let device = soak::TINY[0].device(SCHEMES[0], 0).unwrap();
    create(storage.as_ref(), &device, &CreateOptions { number: Some(9), ..CreateOptions::default() }).unwrap();
    let open = || Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap();
    let store = Arc::new(open());
    let ((begins, begun), gates) = (mpsc::channel(), [mpsc::channel::<()>(), mpsc::channel()]);
    let [(first, first_opens), (second, second_opens)] = gates;
    let gates = Mutex::new(vec![second_opens, first_opens]);
    storage.set_meanwhile(Some(Arc::new(move || {
        let gate = gates.lock().unwrap().pop();
        begins.send(()).ok();
        gate.map(|gate| gate.recv().ok());
    })));
    let (told, tells) = mpsc::channel();
    let write = |writer: u64| {
        let (store, told) = (Arc::clone(&store), told.clone());
        thread::spawn(move || told.send((writer, store.write(8 * writer, &[1; 4096], true))).unwrap());
        assert!(begun.recv_timeout(LONG).is_ok(), "a sync begins while another one is in progress");
    };
    write(0);
    write(1);
    if fails {
        storage.set_fault(storage.changes() + 2, Fault::Io);
    }
    let before = storage.changes();
    drop(second);
    while storage.changes() == before {
        thread::yield_now();
    }
    assert!(tells.recv_timeout(Duration::from_millis(200)).is_err(), "the previous commit is not durable");
    drop(first);
    let mut results = [0, 1].map(|_| tells.recv_timeout(LONG).unwrap());
    results.sort_by_key(|&(writer, _)| writer);
    assert_eq!(store.read_only(), fails);
    drop(store);
    storage.set_meanwhile(None);
    storage.restart(Loss::All, 1);
    let mut bytes = [0; 2 * 4096];
    open().read(0, &mut bytes).unwrap();
    assert!(fails || bytes == [1; 2 * 4096], "acknowledged data are present");
    results.map(|(_, result)| result)
}

#[test]
fn commits_are_synced_at_the_same_time_and_acknowledged_in_their_order() {
    assert_eq!(two_at_once(false), [Ok(()), Ok(())]);
}

#[test]
fn a_commit_that_fails_takes_those_behind_it_down() {
    assert_eq!(two_at_once(true), [Err(IoError::Io), Err(IoError::Io)]);
}

/// Threads overwrite a full device on disks of the required length. No sync ends meanwhile, so that no commit frees the slots
/// of erased blocks.
#[test]
fn threads_that_write_during_a_sync_do_not_use_up_the_slots() {
    const THREADS: u64 = 64;
    const SECTORS: usize = 256;
    let device = soak::TINY[0].device(SCHEMES[0], 0).unwrap();
    let regions: Vec<_> =
        device.regions.iter().map(|region| (region.name.clone(), format!("/{}", region.name))).collect();
    let made = |bytes| {
        let storage = Arc::new(CrashStorage::new());
        regions.iter().for_each(|(_, disk)| storage.add_fixed(disk, bytes));
        let options = CreateOptions { number: Some(9), regions: regions.clone(), ..CreateOptions::default() };
        create(storage.as_ref(), &device, &options).ok().map(|()| storage)
    };
    let storage = (1..).find_map(|blocks| made(blocks * 4096)).unwrap();
    let store = Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()).unwrap();
    store.write(0, &vec![1; store.sectors() as usize * 512], true).unwrap();
    let (gate, open) = mpsc::channel::<()>();
    let open = Mutex::new(open);
    storage.set_meanwhile(Some(Arc::new(move || {
        open.lock().unwrap().recv().ok();
    })));
    thread::scope(|scope| {
        let write = |thread| {
            let sector = thread * 37 % (store.sectors() / SECTORS as u64) * SECTORS as u64;
            store.write(sector, &[thread as u8; SECTORS * 512], false)
        };
        let writers: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || write(thread))).collect();
        // Each has written or waits.
        let mut before = u64::MAX;
        while std::mem::replace(&mut before, store.events()) != store.events() {
            thread::sleep(Duration::from_millis(100));
        }
        drop(gate);
        writers.into_iter().for_each(|writer| assert_eq!(writer.join().unwrap(), Ok(())));
    });
    assert_eq!(store.status().failure, None);
    store.close().unwrap();
}
