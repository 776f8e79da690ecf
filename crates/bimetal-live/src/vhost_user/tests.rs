//! Tests with a guest that writes its queue itself, correctly or incorrectly.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod stopping;
mod write_cache;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use vhost_user_backend::{VhostUserBackend, VringMutex, VringT};
use virtio_bindings::virtio_blk::*;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::epoll::EventSet;

use super::guest::{BEGIN_EVENT, Device, Guest, Memory};
use super::request::{DATA_BYTES_MAX, SEGMENTS_MAX};
use crate::MemoryDevice;
use crate::block_device::{BlockDevice, Extent, IoError};

const MEMORY_BYTES: usize = 16 << 20;
const ENTRIES: u16 = 16;
const TABLE: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
/// Address of headers, data, statuses and tables of indirect descriptors.
const DATA: u64 = 0x10000;
const SECTORS: u64 = 64;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    at: u64,
    bytes: u32,
    flags: u16,
    next: u16,
}

fn target(device: Arc<dyn BlockDevice>) -> Arc<Device> {
    Arc::new(Device {
        device,
        serial: *b"serial-number-of-it\0",
        poll: Duration::ZERO,
        is_paced: false,
        may_resume: true.into(),
        is_cache_off: false.into(),
    })
}

/// A guest with one queue, and its driver.
struct Bed {
    guest: Arc<Guest>,
    memory: GuestMemoryMmap,
    vring: VringMutex<Memory>,
    offered: u16,
}

impl Bed {
    fn new(device: Arc<dyn BlockDevice>) -> Self {
        Self::connected_to(&target(device))
    }

    fn connected_to(target: &Arc<Device>) -> Self {
        let memory = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), MEMORY_BYTES)]).unwrap();
        let shared = Memory::new(memory.clone());
        let guest = Arc::new(Guest::new(Arc::clone(target), shared.clone()));
        let vring = VringMutex::new(shared, ENTRIES).unwrap();
        vring.set_queue_size(ENTRIES);
        vring.set_queue_info(TABLE, AVAILABLE, USED).unwrap();
        vring.set_queue_ready(true);
        vring.set_enabled(true);
        guest.handle_event(BEGIN_EVENT, EventSet::IN, std::slice::from_ref(&vring), 0).unwrap();
        Self { guest, memory, vring, offered: 0 }
    }

    fn describe(&self, table: u64, index: u16, descriptor: Descriptor) {
        let Descriptor { at, bytes, flags, next } = descriptor;
        let raw = [&at.to_le_bytes()[..], &bytes.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()].concat();
        self.memory.write_slice(&raw, GuestAddress(table + 16 * u64::from(index))).unwrap();
    }

    fn offer(&mut self, head: u16) {
        let slot = u64::from(self.offered % ENTRIES);
        self.memory.write_slice(&head.to_le_bytes(), GuestAddress(AVAILABLE + 4 + 2 * slot)).unwrap();
        self.offered = self.offered.wrapping_add(1);
        self.memory.write_slice(&self.offered.to_le_bytes(), GuestAddress(AVAILABLE + 2)).unwrap();
    }

    /// Offers these pieces as a chain that begins at descriptor 0.
    fn chain(&mut self, pieces: &[(u64, u32, u16)]) {
        for (index, &(at, bytes, flags)) in (0..).zip(pieces) {
            let flags = flags | if usize::from(index) + 1 < pieces.len() { NEXT } else { 0 };
            self.describe(TABLE, index, Descriptor { at, bytes, flags, next: index + 1 });
        }
        self.offer(0);
    }

    fn header(&self, kind: u32, sector: u64) {
        let raw = [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat();
        self.memory.write_slice(&raw, GuestAddress(DATA)).unwrap();
    }

    /// Serves the offered requests, with a worker.
    fn serve(&self) {
        self.guest.handle_event(0, EventSet::IN, std::slice::from_ref(&self.vring), 0).unwrap();
        let guest = Arc::clone(&self.guest);
        thread::scope(|scope| {
            scope.spawn(move || guest.work());
            self.guest.stop_vring(0).unwrap();
            self.guest.dismiss();
        });
    }

    /// The used entries: heads, and the number of bytes written to each.
    fn used(&self) -> Vec<(u32, u32)> {
        let count: u16 = self.memory.read_obj(GuestAddress(USED + 2)).unwrap();
        let entry = |slot: u16| {
            let at = USED + 4 + 8 * u64::from(slot % ENTRIES);
            (self.memory.read_obj(GuestAddress(at)).unwrap(), self.memory.read_obj(GuestAddress(at + 4)).unwrap())
        };
        (0..count).map(entry).collect()
    }
}

/// The status of a request with these data pieces, between a header and a status of their own, and the number of bytes
/// written.
fn status(device: &Arc<MemoryDevice>, kind: u32, sector: u64, pieces: &[(u64, u32, u16)]) -> (u32, u32) {
    let mut bed = Bed::new(Arc::clone(device) as _);
    bed.header(kind, sector);
    bed.memory.write_slice(&[0xee], GuestAddress(DATA + 16)).unwrap();
    bed.chain(&[&[(DATA, 16, 0)], pieces, &[(DATA + 16, 1, WRITE)]].concat());
    bed.serve();
    let [(0, written)] = bed.used()[..] else { panic!("{:?}", bed.used()) };
    (bed.memory.read_obj::<u8>(GuestAddress(DATA + 16)).unwrap().into(), written)
}

const BUFFER: u64 = DATA + 0x1000;

#[test]
fn requests_of_the_standard_are_served() {
    let device = Arc::new(MemoryDevice::new(SECTORS));
    let mut bed = Bed::new(Arc::clone(&device) as _);
    let data: Vec<u8> = (0..1024_u32).map(|at| at as u8).collect();
    bed.memory.write_slice(&data, GuestAddress(BUFFER)).unwrap();
    bed.header(VIRTIO_BLK_T_OUT, 3);
    // Header and data may be split anywhere.
    bed.chain(&[(DATA, 7, 0), (DATA + 7, 9, 0), (BUFFER, 100, 0), (BUFFER + 100, 924, 0), (DATA + 16, 1, WRITE)]);
    bed.serve();
    assert_eq!(bed.used(), [(0, 1)]);
    let mut out = vec![0; 1024];
    device.read(3, &mut out).unwrap();
    assert_eq!(out, data);

    let mut bed = Bed::new(Arc::clone(&device) as _);
    bed.header(VIRTIO_BLK_T_IN, 4);
    bed.describe(DATA + 0x100, 0, Descriptor { at: DATA, bytes: 16, flags: NEXT, next: 1 });
    // The status is the last byte, in the same descriptor as the data or not.
    bed.describe(DATA + 0x100, 1, Descriptor { at: BUFFER, bytes: 513, flags: WRITE, next: 0 });
    bed.describe(TABLE, 5, Descriptor { at: DATA + 0x100, bytes: 32, flags: INDIRECT, next: 0 });
    bed.memory.write_slice(&[0xee; 513], GuestAddress(BUFFER)).unwrap();
    bed.offer(5);
    bed.serve();
    assert_eq!(bed.used(), [(5, 513)]);
    let mut out = vec![0; 513];
    bed.memory.read_slice(&mut out, GuestAddress(BUFFER)).unwrap();
    assert_eq!((&out[..512], out[512]), (&data[512..], 0));
    assert_eq!(status(&device, VIRTIO_BLK_T_FLUSH, 0, &[]), (VIRTIO_BLK_S_OK, 1));
    assert_eq!(status(&device, VIRTIO_BLK_T_GET_ID, 0, &[(BUFFER, 20, WRITE)]), (VIRTIO_BLK_S_OK, 21));
}

#[test]
fn ranges_are_discarded_and_zeroed() {
    let ranges = |kind, ranges: &[(u64, u32, u32)]| {
        let device = Arc::new(MemoryDevice::new(SECTORS));
        device.write(0, &vec![1; (SECTORS * 512) as usize], false).unwrap();
        let mut bed = Bed::new(Arc::clone(&device) as _);
        bed.header(kind, 0);
        let raw = |&(sector, sectors, flags): &(u64, u32, u32)| {
            [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
        };
        let bytes: Vec<u8> = ranges.iter().flat_map(raw).collect();
        bed.memory.write_slice(&bytes, GuestAddress(BUFFER)).unwrap();
        bed.chain(&[(DATA, 16, 0), (BUFFER, bytes.len() as u32, 0), (DATA + 16, 1, WRITE)]);
        bed.serve();
        let mut out = vec![0; (SECTORS * 512) as usize];
        device.read(0, &mut out).unwrap();
        let zeros = out.chunks(512).filter(|sector| sector.iter().all(|&byte| byte == 0)).count();
        (bed.memory.read_obj::<u8>(GuestAddress(DATA + 16)).unwrap().into(), zeros)
    };
    assert_eq!(ranges(VIRTIO_BLK_T_DISCARD, &[(0, 8, 0), (16, 16, 0)]), (VIRTIO_BLK_S_OK, 24));
    assert_eq!(ranges(VIRTIO_BLK_T_WRITE_ZEROES, &[(8, 8, 0)]), (VIRTIO_BLK_S_OK, 8));
    assert_eq!(ranges(VIRTIO_BLK_T_WRITE_ZEROES, &[(8, 9, VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP)]), (VIRTIO_BLK_S_OK, 9));
    assert_eq!(ranges(VIRTIO_BLK_T_DISCARD, &[(0, 8, 1)]), (VIRTIO_BLK_S_UNSUPP, 0));
    assert_eq!(ranges(VIRTIO_BLK_T_WRITE_ZEROES, &[(0, 8, 2)]), (VIRTIO_BLK_S_UNSUPP, 0));
    // All ranges are checked before the first is discarded.
    for refused in [&[(0, 8, 0), (SECTORS, 1, 0)][..], &[(u64::MAX, 8, 0)], &[], &[(0, 1, 0); 17]] {
        assert_eq!(ranges(VIRTIO_BLK_T_DISCARD, refused), (VIRTIO_BLK_S_IOERR, 0), "{refused:?}");
    }
    assert_eq!(ranges(VIRTIO_BLK_T_WRITE_ZEROES, &[(0, 1, 0), (1, 1, 0)]), (VIRTIO_BLK_S_IOERR, 0));
}

#[test]
fn what_is_wrong_is_refused() {
    let device = Arc::new(MemoryDevice::new(SECTORS));
    let data = |bytes| (BUFFER, bytes, WRITE);
    let refused = (VIRTIO_BLK_S_IOERR, 1);
    for (sector, pieces) in [
        (0, vec![data(511)]),
        (0, vec![]),
        (SECTORS - 1, vec![data(1024)]),
        (u64::MAX, vec![data(512)]),
        (u64::MAX / 512, vec![data(512)]),
        // Outside guest memory, completely and in part.
        (0, vec![(1 << 40, 512, WRITE)]),
        (0, vec![(MEMORY_BYTES as u64 - 256, 512, WRITE)]),
        (0, vec![(u64::MAX - 255, 512, WRITE)]),
        // Data in both directions, in both orders.
        (0, vec![(BUFFER, 512, 0), data(512)]),
        (0, vec![data(512), (BUFFER, 512, 0)]),
    ] {
        let (found, _) = status(&device, VIRTIO_BLK_T_IN, sector, &pieces);
        assert_eq!(found, VIRTIO_BLK_S_IOERR, "{sector} {pieces:?}");
    }
    assert_eq!(status(&device, VIRTIO_BLK_T_OUT, 0, &[data(512)]), refused);
    assert_eq!(status(&device, VIRTIO_BLK_T_OUT, 0, &[(1 << 40, 512, 0)]), refused);
    assert_eq!(status(&device, VIRTIO_BLK_T_DISCARD, 0, &[(BUFFER, 15, 0)]), refused);
    for kind in [VIRTIO_BLK_T_SCSI_CMD, VIRTIO_BLK_T_SECURE_ERASE, VIRTIO_BLK_T_ZONE_APPEND, u32::MAX] {
        assert_eq!(status(&device, kind, 0, &[data(512)]), (VIRTIO_BLK_S_UNSUPP, 1), "{kind}");
    }
    // More data than the maximum of a request, on a device that is large enough.
    let large = Arc::new(MemoryDevice::new(1 << 20));
    assert_eq!(status(&large, VIRTIO_BLK_T_OUT, 0, &[(0, DATA_BYTES_MAX as u32 + 512, 0)]), refused);
    assert_eq!(status(&large, VIRTIO_BLK_T_OUT, 0, &[(0, DATA_BYTES_MAX as u32, 0)]), (VIRTIO_BLK_S_OK, 1));
}

/// A chain without room for a status is returned with a length of 0.
#[test]
fn chains_that_are_no_requests_come_back() {
    let device = Arc::new(MemoryDevice::new(SECTORS));
    let returned = |write: &dyn Fn(&Bed)| {
        let mut bed = Bed::new(Arc::clone(&device) as _);
        bed.header(VIRTIO_BLK_T_IN, 0);
        write(&bed);
        bed.offer(3);
        bed.serve();
        bed.used()
    };
    let only_readable = |bed: &Bed| bed.describe(TABLE, 3, Descriptor { at: DATA, bytes: 16, flags: 0, next: 0 });
    let empty = |bed: &Bed| bed.describe(TABLE, 3, Descriptor { at: DATA, bytes: 0, flags: WRITE, next: 0 });
    let table_of_nothing =
        |bed: &Bed| bed.describe(TABLE, 3, Descriptor { at: DATA, bytes: 0, flags: INDIRECT, next: 0 });
    let table_elsewhere =
        |bed: &Bed| bed.describe(TABLE, 3, Descriptor { at: 1 << 50, bytes: 4096, flags: INDIRECT, next: 0 });
    let table_in_table =
        |bed: &Bed| bed.describe(TABLE, 3, Descriptor { at: TABLE, bytes: 256, flags: INDIRECT, next: 3 });
    for write in [&only_readable as &dyn Fn(&Bed), &empty, &table_of_nothing, &table_elsewhere, &table_in_table] {
        assert_eq!(returned(write), [(3, 0)]);
    }
    // Longer than the limit: an indirect table of 65,535 entries.
    let endless = |bed: &Bed| {
        for index in 0..SEGMENTS_MAX as u16 + 3 {
            let flags = NEXT | if index > 0 { WRITE } else { 0 };
            bed.describe(DATA + 0x1000, index, Descriptor { at: DATA, bytes: 16, flags, next: index.max(1) });
        }
        let bytes = 16 * 65_535;
        bed.describe(TABLE, 3, Descriptor { at: DATA + 0x1000, bytes, flags: INDIRECT, next: 0 });
    };
    assert_eq!(returned(&endless), [(3, 0)]);
    // A loop ends after as many descriptors as the queue has entries.
    let ring = |bed: &Bed| bed.describe(TABLE, 3, Descriptor { at: DATA, bytes: 16, flags: NEXT, next: 3 });
    assert_eq!(returned(&ring), [(3, 0)]);
}

#[test]
fn a_queue_that_lies_is_not_served() {
    let device = Arc::new(MemoryDevice::new(SECTORS));
    let mut bed = Bed::new(Arc::clone(&device) as _);
    // A head beyond the table.
    bed.offer(ENTRIES);
    bed.serve();
    assert_eq!(bed.used(), []);
    // More requests than entries.
    let bed = Bed::new(device);
    bed.memory.write_slice(&(ENTRIES + 1).to_le_bytes(), GuestAddress(AVAILABLE + 2)).unwrap();
    bed.serve();
    assert_eq!(bed.used(), []);
    bed.guest.drain();
}

/// A device that records requests, and whose flushes wait for each other.
struct Slow {
    flushes: Barrier,
    calls: Mutex<Vec<(&'static str, bool)>>,
}

impl Slow {
    /// Requests that have begun.
    fn begun(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    fn note(&self, call: &'static str, fua: bool) -> Result<(), IoError> {
        self.calls.lock().unwrap().push((call, fua));
        Ok(())
    }
}

impl BlockDevice for Slow {
    fn sectors(&self) -> u64 {
        SECTORS
    }
    fn read_only(&self) -> bool {
        false
    }
    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), IoError> {
        self.note("read", false)
    }
    fn write(&self, _: u64, _: &[u8], fua: bool) -> Result<(), IoError> {
        self.note("write", fua)
    }
    fn trim(&self, _: u64, _: u64, fua: bool) -> Result<(), IoError> {
        self.note("trim", fua)
    }
    fn zero(&self, _: u64, _: u64, fua: bool) -> Result<(), IoError> {
        self.note("zero", fua)
    }
    fn flush(&self) -> Result<(), IoError> {
        self.note("flush", false)?;
        self.flushes.wait();
        Ok(())
    }
    fn extents(&self, _: u64, _: u64, _: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>) -> Result<(), IoError> {
        Ok(())
    }
}

/// Two flushes, and a later read that ends before them. Both flushes wait for a worker, so one flush of the device is enough.
#[test]
fn a_flush_holds_nobody_up() {
    let device = Arc::new(Slow { flushes: Barrier::new(2), calls: Mutex::default() });
    let mut bed = Bed::new(Arc::clone(&device) as _);
    let flush = [VIRTIO_BLK_T_FLUSH.to_le_bytes().as_slice(), &[0; 12]].concat();
    bed.memory.write_slice(&flush, GuestAddress(DATA)).unwrap();
    let read = [VIRTIO_BLK_T_IN.to_le_bytes().as_slice(), &[0; 12]].concat();
    bed.memory.write_slice(&read, GuestAddress(DATA + 32)).unwrap();
    for (head, at) in [(0, DATA), (4, DATA), (8, DATA + 32)] {
        bed.describe(TABLE, head, Descriptor { at, bytes: 16, flags: NEXT, next: head + 1 });
        bed.describe(TABLE, head + 1, Descriptor { at: BUFFER, bytes: 513, flags: WRITE, next: 0 });
        bed.offer(head);
    }
    bed.guest.handle_event(0, EventSet::IN, std::slice::from_ref(&bed.vring), 0).unwrap();
    assert_eq!(bed.used(), [(8, 513)], "the read is done, and the flushes are not");
    thread::scope(|scope| {
        scope.spawn(|| bed.guest.work());
        device.flushes.wait();
        bed.guest.drain();
        bed.guest.dismiss();
    });
    let used: BTreeMap<u32, u32> = bed.used().into_iter().collect();
    assert_eq!(used, BTreeMap::from([(0, 1), (4, 1), (8, 513)]));
    assert_eq!(*device.calls.lock().unwrap(), [("read", false), ("flush", false)]);
}

/// A flush that arrives while another one is under way does not wait for it.
#[test]
fn flushes_run_at_the_same_time() {
    let device = Arc::new(Slow { flushes: Barrier::new(3), calls: Mutex::default() });
    let mut bed = Bed::new(Arc::clone(&device) as _);
    bed.header(VIRTIO_BLK_T_FLUSH, 0);
    let guest = Arc::clone(&bed.guest);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| guest.work());
        }
        for head in [0, 4] {
            bed.describe(TABLE, head, Descriptor { at: DATA, bytes: 16, flags: NEXT, next: head + 1 });
            bed.describe(TABLE, head + 1, Descriptor { at: DATA + 16, bytes: 1, flags: WRITE, next: 0 });
            bed.offer(head);
            bed.guest.handle_event(0, EventSet::IN, std::slice::from_ref(&bed.vring), 0).unwrap();
            // The flush has begun when the worker waits for the others.
            while device.begun() <= usize::from(head / 4) {
                thread::yield_now();
            }
        }
        device.flushes.wait();
        bed.guest.drain();
        bed.guest.dismiss();
    });
    assert_eq!(bed.used().len(), 2);
}

#[test]
fn a_guest_that_used_a_killed_server_is_refused() {
    for (may_resume, taken, is_served) in [(false, 7, false), (false, 0, true), (true, 7, true)] {
        let mut bed = Bed::new(Arc::new(MemoryDevice::new(SECTORS)));
        bed.guest.may_resume().store(may_resume, Ordering::SeqCst);
        bed.vring.set_queue_next_avail(taken);
        bed.offered = taken;
        bed.header(VIRTIO_BLK_T_FLUSH, 0);
        bed.chain(&[(DATA, 16, 0), (DATA + 16, 1, WRITE)]);
        bed.serve();
        assert_eq!((!bed.used().is_empty(), bed.guest.is_refused()), (is_served, !is_served));
    }
}

fn address() -> impl Strategy<Value = u64> {
    prop_oneof![4 => DATA..DATA + 0x4000, 2 => 0..MEMORY_BYTES as u64 + 4096, 1 => any::<u64>(), 1 => Just(TABLE)]
}

fn length() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => prop_oneof![Just(1_u32), Just(16), Just(512), Just(513), Just(4096), Just(32)],
        2 => 0..70_000_u32,
        1 => any::<u32>()
    ]
}

fn descriptor() -> impl Strategy<Value = Descriptor> {
    (address(), length(), prop_oneof![6 => 0..4_u16, 1 => any::<u16>()], 0..ENTRIES + 1)
        .prop_map(|(at, bytes, flags, next)| Descriptor { at, bytes, flags, next })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// A queue with any contents is served without a panic or a hang.
    #[test]
    fn any_queue_is_survived(
        table in prop::collection::vec(descriptor(), usize::from(ENTRIES)),
        heads in prop::collection::vec(0..ENTRIES, 1..usize::from(ENTRIES)),
        words in prop::collection::vec(prop_oneof![0..16_u32, any::<u32>()], 256),
    ) {
        let mut bed = Bed::new(Arc::new(MemoryDevice::new(SECTORS)));
        let words: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        for page in 0..4 {
            bed.memory.write_slice(&words, GuestAddress(DATA + 0x1000 * page)).unwrap();
        }
        for (index, descriptor) in (0..).zip(table) {
            bed.describe(TABLE, index, descriptor);
        }
        heads.iter().for_each(|&head| bed.offer(head));
        bed.serve();
        // Requests may overwrite the queue itself, so the used ring is not checked.
        bed.guest.drain();
    }
}
