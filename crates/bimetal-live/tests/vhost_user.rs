//! Virtual machines at the socket: one connects, uses the device and disconnects; the server stops during use; another
//! one connects.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bimetal_live::nbd::{ListenError, Tally};
use bimetal_live::vhost_user::{Device, Running, SERIAL_BYTES, Server};
use bimetal_live::{BlockDevice, MemoryDevice};
use tempfile::TempDir;
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use virtio_bindings::virtio_blk::*;
use virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

const MEMORY_BYTES: usize = 1 << 20;
const ENTRIES: u16 = 16;
const TABLE: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const DATA: u64 = 0x10000;
const PATIENCE: Duration = Duration::from_secs(20);

fn serve(path: &Path, device: Arc<dyn BlockDevice>, may_resume: bool) -> Running {
    let serial = [b'7'; SERIAL_BYTES];
    let device = Device { device, serial, poll: Duration::ZERO, is_paced: false, may_resume: may_resume.into() };
    Server::bind(path, device, Arc::<Tally>::default()).unwrap().start().unwrap()
}

/// A VMM with a guest whose driver uses one queue, one request at a time.
struct Machine {
    vmm: Frontend,
    memory: GuestMemoryMmap,
    kick: EventFd,
    call: EventFd,
    requests: u16,
}

impl Machine {
    /// Connects, and starts the queue after the earlier requests.
    fn connect(path: &Path, requests: u16) -> Self {
        let mut vmm = Frontend::connect(path, 64).unwrap();
        vmm.set_owner().unwrap();
        // Without the event index, each answer is signalled.
        let features = vmm.get_features().unwrap() & !(1 << VIRTIO_RING_F_EVENT_IDX);
        vmm.set_features(features).unwrap();
        let offered = vmm.get_protocol_features().unwrap();
        let wanted = VhostUserProtocolFeatures::CONFIG | VhostUserProtocolFeatures::MQ;
        assert!(offered.contains(wanted | VhostUserProtocolFeatures::RESET_DEVICE));
        vmm.set_protocol_features(wanted).unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(MEMORY_BYTES as u64).unwrap();
        let range = (GuestAddress(0), MEMORY_BYTES, Some(FileOffset::new(file, 0)));
        let memory = GuestMemoryMmap::from_ranges_with_files([range]).unwrap();
        let region = memory.iter().next().unwrap();
        vmm.set_mem_table(&[VhostUserMemoryRegionInfo::from_guest_region(region).unwrap()]).unwrap();
        let mut machine = Self {
            vmm,
            kick: EventFd::new(EFD_NONBLOCK).unwrap(),
            call: EventFd::new(EFD_NONBLOCK).unwrap(),
            memory,
            requests,
        };
        machine.start();
        machine
    }

    fn start(&mut self) {
        let region = self.memory.find_region(GuestAddress(0)).unwrap();
        let base = region.get_host_address(vm_memory::MemoryRegionAddress(0)).unwrap() as u64;
        for at in [AVAILABLE + 2, USED + 2] {
            self.memory.write_obj(self.requests, GuestAddress(at)).unwrap();
        }
        let ring = VringConfigData {
            queue_max_size: ENTRIES,
            queue_size: ENTRIES,
            flags: 0,
            desc_table_addr: base + TABLE,
            used_ring_addr: base + USED,
            avail_ring_addr: base + AVAILABLE,
            log_addr: None,
        };
        self.vmm.set_vring_num(0, ENTRIES).unwrap();
        self.vmm.set_vring_base(0, self.requests).unwrap();
        self.vmm.set_vring_addr(0, &ring).unwrap();
        self.vmm.set_vring_call(0, &self.call).unwrap();
        self.vmm.set_vring_kick(0, &self.kick).unwrap();
        self.vmm.set_vring_enable(0, true).unwrap();
    }

    /// Makes a request with or without 512 bytes of data, and does not wait for its end.
    fn ask(&mut self, kind: u32, sector: u64, data: Option<(u8, bool)>) {
        let header = [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat();
        self.memory.write_slice(&header, GuestAddress(DATA)).unwrap();
        self.memory.write_slice(&[0xee], GuestAddress(DATA + 16)).unwrap();
        let mut pieces = vec![(DATA, 16_u32, 1_u16)];
        if let Some((fill, is_writable)) = data {
            self.memory.write_slice(&[fill; 512], GuestAddress(DATA + 512)).unwrap();
            pieces.push((DATA + 512, 512, 1 + 2 * u16::from(is_writable)));
        }
        pieces.push((DATA + 16, 1, 2));
        for (index, (at, bytes, flags)) in (0_u16..).zip(pieces) {
            let next = (index + 1).to_le_bytes();
            let raw = [&at.to_le_bytes()[..], &bytes.to_le_bytes(), &flags.to_le_bytes(), &next].concat();
            self.memory.write_slice(&raw, GuestAddress(TABLE + 16 * u64::from(index))).unwrap();
        }
        let slot = u64::from(self.requests % ENTRIES);
        self.memory.write_obj(0_u16, GuestAddress(AVAILABLE + 4 + 2 * slot)).unwrap();
        self.requests = self.requests.wrapping_add(1);
        self.memory.write_obj(self.requests, GuestAddress(AVAILABLE + 2)).unwrap();
        self.kick.write(1).unwrap();
    }

    fn used(&self) -> u16 {
        self.memory.read_obj(GuestAddress(USED + 2)).unwrap()
    }

    /// The status and the data of the last request, when it has ended.
    fn answer(&self) -> (u32, Vec<u8>) {
        let start = Instant::now();
        while self.used() != self.requests || self.call.read().is_err() {
            assert!(start.elapsed() < PATIENCE, "no answer");
            std::thread::sleep(Duration::from_micros(100));
        }
        let mut data = vec![0; 512];
        self.memory.read_slice(&mut data, GuestAddress(DATA + 512)).unwrap();
        (self.memory.read_obj::<u8>(GuestAddress(DATA + 16)).unwrap().into(), data)
    }

    /// Waits until the server closes the connection.
    fn wait_for_end(&mut self) {
        let start = Instant::now();
        while self.vmm.get_features().is_ok() {
            assert!(start.elapsed() < PATIENCE, "still connected");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn folder() -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vm.sock");
    (folder, path)
}

#[test]
fn machines_come_and_go() {
    let (_folder, path) = folder();
    let device = Arc::new(MemoryDevice::new(1 << 12));
    let running = serve(&path, Arc::clone(&device) as _, true);
    for number in 1..4 {
        // A client that only connects, and one with another protocol.
        drop(UnixStream::connect(&path).unwrap());
        let mut stranger = UnixStream::connect(&path).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(stranger.read(&mut [0; 64]).unwrap_or(0), 0);
        let mut machine = Machine::connect(&path, 0);
        machine.ask(VIRTIO_BLK_T_OUT, number, Some((number as u8, false)));
        assert_eq!(machine.answer().0, VIRTIO_BLK_S_OK);
        machine.ask(VIRTIO_BLK_T_IN, number, Some((0, true)));
        assert_eq!(machine.answer(), (VIRTIO_BLK_S_OK, vec![number as u8; 512]));
        machine.ask(VIRTIO_BLK_T_GET_ID, 0, Some((0, true)));
        assert_eq!(machine.answer().1[..SERIAL_BYTES], [b'7'; SERIAL_BYTES]);
        let (_, space) = machine.vmm.get_config(0, 8, VhostUserConfigFlags::WRITABLE, &[0; 8]).unwrap();
        assert_eq!(space, (1_u64 << 12).to_le_bytes());
        // The queue stops, and continues at the same place.
        assert_eq!(machine.vmm.get_vring_base(0).unwrap(), u32::from(machine.requests));
        machine.start();
        machine.ask(VIRTIO_BLK_T_FLUSH, 0, None);
        assert_eq!(machine.answer().0, VIRTIO_BLK_S_OK);
    }
    drop(running);
    assert!(!path.exists());
}

/// The guest has every answer when its VMM notices the end. With another server it continues.
#[test]
fn a_server_stops_under_a_machine() {
    let (_folder, path) = folder();
    let device = Arc::new(MemoryDevice::new(1 << 12));
    let running = serve(&path, Arc::clone(&device) as _, true);
    let mut machine = Machine::connect(&path, 0);
    machine.ask(VIRTIO_BLK_T_FLUSH, 0, None);
    machine.answer();
    drop(running);
    machine.wait_for_end();
    machine.ask(VIRTIO_BLK_T_FLUSH, 0, None);
    assert_eq!(machine.used(), 1, "no server is running");
    let running = serve(&path, Arc::clone(&device) as _, true);
    let mut machine = Machine::connect(&path, 1);
    machine.ask(VIRTIO_BLK_T_FLUSH, 0, None);
    assert_eq!(machine.answer().0, VIRTIO_BLK_S_OK);
    drop(running);
    // After a kill of the server the connected machine is refused, and a newly started one is served.
    let running = serve(&path, device, false);
    let mut machine = Machine::connect(&path, 2);
    machine.ask(VIRTIO_BLK_T_FLUSH, 0, None);
    machine.wait_for_end();
    assert_eq!(machine.used(), 2);
    let mut machine = Machine::connect(&path, 0);
    machine.ask(VIRTIO_BLK_T_FLUSH, 0, None);
    assert_eq!(machine.answer().0, VIRTIO_BLK_S_OK);
    drop(running);
}

#[test]
fn a_socket_is_taken_from_nobody() {
    let (folder, path) = folder();
    let bind = |path: &Path| {
        let device = Arc::new(MemoryDevice::new(8));
        let device = Device {
            device,
            serial: [0; SERIAL_BYTES],
            poll: Duration::ZERO,
            is_paced: false,
            may_resume: true.into(),
        };
        Server::bind(path, device, Arc::default())
    };
    let first = bind(&path).unwrap();
    assert!(matches!(bind(&path), Err(ListenError::InUse(_))));
    drop(first);
    // A socket left by a killed server.
    drop(UnixListener::bind(&path).unwrap());
    drop(bind(&path).unwrap());
    let file = folder.path().join("file");
    File::create(&file).unwrap();
    assert!(matches!(bind(&file), Err(ListenError::NotSocket(_))));
    assert!(matches!(bind(&folder.path().join("x".repeat(200))), Err(ListenError::System { .. })));
}
