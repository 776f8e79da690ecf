//! Virtual machines at the socket: one connects, uses the device and disconnects; the server stops during use; another
//! one connects.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bimetal_live::nbd::{ListenError, Tally};
use bimetal_live::vhost_user::{Device, Driver, Running, SERIAL_BYTES, Server};
use bimetal_live::{BlockDevice, MemoryDevice};
use tempfile::TempDir;
use vhost::VhostBackend;
use vhost::vhost_user::VhostUserFrontend;
use vhost::vhost_user::message::VhostUserConfigFlags;
use virtio_bindings::virtio_blk::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn described(device: Arc<dyn BlockDevice>, serial: [u8; SERIAL_BYTES], may_resume: bool) -> Device {
    let (may_resume, is_cache_off) = (may_resume.into(), false.into());
    Device { device, serial, poll: Duration::ZERO, is_paced: false, may_resume, is_cache_off }
}

fn serve(path: &Path, device: Arc<dyn BlockDevice>, may_resume: bool) -> Running {
    let serial = [b'7'; SERIAL_BYTES];
    Server::bind(path, described(device, serial, may_resume), Arc::<Tally>::default()).unwrap().start().unwrap()
}

/// A virtual machine that makes one request at a time, of a sector.
struct Machine(Driver);

impl Machine {
    /// Connects; its driver has made earlier requests.
    fn connect(path: &Path, requests: u16) -> Self {
        Self(Driver::connect(path, 1, 512, requests).unwrap())
    }

    /// Makes a request, and does not wait for its end.
    fn ask(&mut self, kind: u32, sector: u64, bytes: u32) {
        self.0.offer(0, kind, sector, bytes).unwrap();
        self.0.announce().unwrap();
    }

    /// Makes a request with a sector of data, and returns its status and the data afterwards.
    fn request(&mut self, kind: u32, sector: u64, fill: u8) -> (u32, Vec<u8>) {
        let mut data = vec![fill; 512];
        self.0.write_buffer(0, &data).unwrap();
        self.ask(kind, sector, 512);
        let status = self.status();
        self.0.read_buffer(0, &mut data).unwrap();
        (status, data)
    }

    fn flush(&mut self) -> u32 {
        self.ask(VIRTIO_BLK_T_FLUSH, 0, 0);
        self.status()
    }

    /// The status of the last request, when it has ended.
    fn status(&mut self) -> u32 {
        self.0.wait(PATIENCE).unwrap();
        let (place, status) = self.0.completed().unwrap().unwrap();
        assert_eq!(place, 0);
        status.into()
    }

    /// Waits until the server closes the connection.
    fn wait_for_end(&mut self) {
        for _ in 0..PATIENCE.as_millis() {
            if self.0.vmm().get_features().is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("still connected");
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
        assert_eq!(machine.request(VIRTIO_BLK_T_OUT, number, number as u8).0, VIRTIO_BLK_S_OK);
        assert_eq!(machine.request(VIRTIO_BLK_T_IN, number, 0), (VIRTIO_BLK_S_OK, vec![number as u8; 512]));
        assert_eq!(machine.request(VIRTIO_BLK_T_GET_ID, 0, 0).1[..SERIAL_BYTES], [b'7'; SERIAL_BYTES]);
        assert_eq!(machine.request(VIRTIO_BLK_T_IN, 1 << 12, 0).0, VIRTIO_BLK_S_IOERR, "beyond the end");
        let vmm = machine.0.vmm();
        let (_, space) = vmm.get_config(0, 8, VhostUserConfigFlags::WRITABLE, &[0; 8]).unwrap();
        assert_eq!(space, (1_u64 << 12).to_le_bytes());
        // The queue stops, and continues at the same place.
        assert_eq!(vmm.get_vring_base(0).unwrap(), u32::from(machine.0.requests()));
        machine.0.start().unwrap();
        assert_eq!(machine.flush(), VIRTIO_BLK_S_OK);
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
    assert_eq!(machine.flush(), VIRTIO_BLK_S_OK);
    drop(running);
    machine.wait_for_end();
    machine.ask(VIRTIO_BLK_T_FLUSH, 0, 0);
    assert_eq!(machine.0.completed().unwrap(), None, "no server is running");
    let running = serve(&path, Arc::clone(&device) as _, true);
    let mut machine = Machine::connect(&path, 1);
    assert_eq!(machine.flush(), VIRTIO_BLK_S_OK);
    drop(running);
    // After a kill of the server the connected machine is refused, and a newly started one is served.
    let running = serve(&path, device, false);
    let mut machine = Machine::connect(&path, 2);
    machine.ask(VIRTIO_BLK_T_FLUSH, 0, 0);
    machine.wait_for_end();
    assert_eq!(machine.0.completed().unwrap(), None);
    let mut machine = Machine::connect(&path, 0);
    assert_eq!(machine.flush(), VIRTIO_BLK_S_OK);
    drop(running);
}

/// Requests at all places at once, of several sizes, by a driver and a server that signal only when asked to.
#[test]
fn a_queue_of_many_requests_is_served() {
    const PLACES: u16 = 40;
    let (_folder, path) = folder();
    let device = Arc::new(MemoryDevice::new(1 << 16));
    let _running = serve(&path, device, true);
    let mut driver = Driver::connect(&path, PLACES, 64 << 10, 0).unwrap();
    let sectors = |place: u16| 8 * (1 + u32::from(place) % 16);
    let at = |place: u16| u64::from(place) * 128;
    for round in 1..50_u8 {
        for kind in [VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_IN] {
            for place in 0..PLACES {
                let bytes = if kind == VIRTIO_BLK_T_FLUSH { 0 } else { 512 * sectors(place) };
                let fill = if kind == VIRTIO_BLK_T_OUT { round ^ place as u8 } else { 0 };
                driver.write_buffer(place, &vec![fill; bytes as usize]).unwrap();
                driver.offer(place, kind, if bytes == 0 { 0 } else { at(place) }, bytes).unwrap();
                // Some are announced alone, and the others together.
                if place % 7 == 0 {
                    driver.announce().unwrap();
                }
            }
            driver.announce().unwrap();
            let mut left = PLACES;
            while left > 0 {
                let Some((place, status)) = driver.completed().unwrap() else {
                    driver.wait(PATIENCE).unwrap();
                    continue;
                };
                left -= 1;
                assert_eq!(u32::from(status), VIRTIO_BLK_S_OK);
                if kind == VIRTIO_BLK_T_IN {
                    let mut data = vec![0; 512 * sectors(place) as usize];
                    driver.read_buffer(place, &mut data).unwrap();
                    assert!(data.iter().all(|&byte| byte == round ^ place as u8), "{place} in round {round}");
                }
            }
        }
    }
    assert_eq!(driver.completed().unwrap(), None);
    assert!(
        driver.offer(PLACES, VIRTIO_BLK_T_IN, 0, 512).is_err() && driver.offer(0, VIRTIO_BLK_T_IN, 0, 1 << 20).is_err()
    );
}

#[test]
fn a_socket_is_taken_from_nobody() {
    let (folder, path) = folder();
    let bind = |path: &Path| {
        let device = Arc::new(MemoryDevice::new(8));
        Server::bind(path, described(device, [0; SERIAL_BYTES], true), Arc::default())
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
    assert!(matches!(bind(&folder.path().join("x".repeat(200))), Err(ListenError::TooLong(_))));
}
