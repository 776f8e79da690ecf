//! Sockets, threads, limits and stopping.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bimetal_live::nbd::proto::*;
use bimetal_live::nbd::{Export, Options};
use bimetal_live::{BlockDevice, Extent, IoError, MemoryDevice};

use crate::client::*;
use crate::devices::{Call, Recorder, contents};
use crate::running::*;

const SECTORS: u64 = 1 << 17;

#[test]
fn clients_come_and_go_over_both_kinds_of_socket() {
    let device = Arc::new(Recorder::new(SECTORS));
    let running = Running::new(device.clone());
    for _ in 0..3 {
        let clients = Form::ALL.map(|form| (form, running.client(form)));
        for ((form, mut client), header) in clients.into_iter().zip([16, 28, 40]) {
            client.write_all(&form.request(0, NBD_CMD_READ, 7, 512, 8192)).unwrap();
            assert_eq!(receive(&mut client, header + 8192)[header..], contents(1, 8192));
            client.write_all(&form.request(0, NBD_CMD_DISC, 7, 0, 0)).unwrap();
            assert_eq!(rest(&mut client), [0u8; 0]);
        }
    }
    running.stop().unwrap();
    assert_eq!(device.calls().last(), Some(&Call::Flush), "the device is flushed at the end");

    let running = Running::with(device, Export::default(), Options::default(), "tcp");
    let mut client = TcpStream::connect(running.address.to_string().strip_prefix("tcp:").unwrap()).unwrap();
    client.write_all(&negotiate(Form::Simple, false)).unwrap();
    receive(&mut client, 18 + 20 + 12 + 20);
    client.write_all(&request(0, NBD_CMD_READ, 7, 512, 8192)).unwrap();
    assert_eq!(receive(&mut client, 16 + 8192)[16..], contents(1, 8192));
    running.stop().unwrap();
}

/// A reply may wait for a request that has already arrived, but never for the client.
#[test]
fn a_reply_does_not_wait_for_a_request_that_is_not_complete() {
    let device = Arc::new(Recorder::new(SECTORS));
    let running = Running::new(device.clone());
    let mut client = running.client(Form::Simple);
    let [first, second] = [(1, 0), (2, 1 << 20)].map(|(cookie, offset)| write(0, cookie, offset, &[7; 64 << 10]));
    for part in [1, 28, 40 << 10] {
        client.write_all(&[&first[..], &second[..part]].concat()).unwrap();
        assert_eq!(receive(&mut client, 16)[8..16], 1_u64.to_be_bytes());
        client.write_all(&second[part..]).unwrap();
        assert_eq!(receive(&mut client, 16)[8..16], 2_u64.to_be_bytes());
    }
    client.write_all(&[&first[..], &second[..], &first[..], &second[..]].concat()).unwrap();
    for cookie in [1_u64, 2, 1, 2] {
        assert_eq!(receive(&mut client, 16)[8..16], cookie.to_be_bytes());
    }
    assert_eq!(device.calls().len(), 10);
}

/// Polling of an idle client delays neither the end of the client nor that of the server.
#[test]
fn polling_ends_with_the_client_and_with_the_server() {
    for poll in [Duration::ZERO, Duration::from_secs(3600)] {
        let options = Options { poll, ..Options::default() };
        let running = Running::with(Arc::new(Recorder::new(SECTORS)), Export::default(), options, "unix");
        let mut clients = [running.client(Form::Simple), running.client(Form::Simple)];
        for client in &mut clients {
            for _ in 0..3 {
                client.write_all(&request(0, NBD_CMD_READ, 7, 512, 8192)).unwrap();
                assert_eq!(receive(client, 16 + 8192)[16..], contents(1, 8192));
            }
        }
        let [mut gone, mut waiting] = clients;
        gone.write_all(&request(0, NBD_CMD_DISC, 7, 0, 0)).unwrap();
        assert_eq!(rest(&mut gone), [0u8; 0]);
        running.stop().unwrap();
        assert_eq!(rest(&mut waiting), [0u8; 0]);
    }
}

#[test]
fn one_client_too_many_is_turned_away_until_another_leaves() {
    let options = Options { connections: 2, ..Options::default() };
    let running = Running::with(Arc::new(MemoryDevice::new(SECTORS)), Export::default(), options, "unix");
    let clients = [running.client(Form::Simple), running.client(Form::Simple)];
    assert_eq!(rest(&mut running.connect()), [0u8; 0], "closed without a reply");
    drop(clients);
    let served = (0..1000).any(|_| {
        let mut client = running.connect();
        // Its place becomes free when its thread has noticed its end.
        let served = client.write_all(&negotiate(Form::Simple, false)).is_ok() && !rest_now(&mut client).is_empty();
        std::thread::sleep(Duration::from_millis(if served { 0 } else { 5 }));
        served
    });
    assert!(served);
}

/// The first bytes that arrive; empty if the connection is closed.
fn rest_now(client: &mut UnixStream) -> Vec<u8> {
    let mut first = vec![0; 18];
    match std::io::Read::read_exact(client, &mut first) {
        Ok(()) => first,
        Err(_) => Vec::new(),
    }
}

#[test]
fn a_client_that_does_not_say_what_it_wants_is_dismissed() {
    let options = Options { negotiation: Duration::from_millis(300), ..Options::default() };
    let running = Running::with(Arc::new(MemoryDevice::new(SECTORS)), Export::default(), options, "unix");
    let start = Instant::now();
    let mut silent = running.connect();
    let mut slow = running.connect();
    let mut patient = running.client(Form::Simple);
    assert_eq!(rest(&mut silent).len(), 18);
    // A client that sends a byte now and then gets no more time.
    for byte in [client_flags(), option(NBD_OPT_LIST, &[]).repeat(60)].concat() {
        if slow.write_all(&[byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        assert!(start.elapsed() < Duration::from_secs(15));
    }
    // After the negotiation, a client may take any time.
    std::thread::sleep(Duration::from_millis(400));
    patient.write_all(&request(0, NBD_CMD_FLUSH, 1, 0, 0)).unwrap();
    receive(&mut patient, 16);
}

#[test]
fn a_client_that_leaves_in_the_middle_changes_nothing() {
    let device = Arc::new(Recorder::new(SECTORS));
    let running = Running::new(device.clone());
    for cut in [1, 4, 10, 27, 28, 29, 1000] {
        let mut client = running.client(Form::Structured);
        client.write_all(&write(0, 1, 0, &[1; 4096])[..cut]).unwrap();
        drop(client);
    }
    let mut client = running.connect();
    client.write_all(&negotiate(Form::Structured, false)[..30]).unwrap();
    drop(client);
    running.stop().unwrap();
    assert_eq!(device.calls(), [Call::Flush], "only the final flush");
}

/// A device that announces each request, and performs it on command.
struct Slow {
    begun: Mutex<Sender<()>>,
    go: Mutex<Receiver<()>>,
    inner: MemoryDevice,
}

fn slow() -> (Arc<Slow>, Receiver<()>, Sender<()>) {
    let (begun, has_begun) = channel();
    let (go, may_go) = channel();
    (
        Arc::new(Slow { begun: Mutex::new(begun), go: Mutex::new(may_go), inner: MemoryDevice::new(SECTORS) }),
        has_begun,
        go,
    )
}

impl BlockDevice for Slow {
    fn sectors(&self) -> u64 {
        SECTORS
    }

    fn read_only(&self) -> bool {
        false
    }

    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError> {
        self.inner.read(sector, out)
    }

    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError> {
        self.begun.lock().unwrap().send(()).unwrap();
        self.go.lock().unwrap().recv().unwrap();
        self.inner.write(sector, data, fua)
    }

    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.inner.trim(sector, sectors, fua)
    }

    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.inner.zero(sector, sectors, fua)
    }

    fn flush(&self) -> Result<(), IoError> {
        Err(IoError::Io)
    }

    fn extents(
        &self,
        sector: u64,
        sectors: u64,
        visit: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>,
    ) -> Result<(), IoError> {
        self.inner.extents(sector, sectors, visit)
    }
}

#[test]
fn what_is_being_done_is_done_and_answered_before_the_server_stops() {
    let (device, has_begun, go) = slow();
    let running = Running::new(device.clone());
    let (mut busy, mut idle) = (running.client(Form::Simple), running.client(Form::Simple));
    let mut negotiating = running.connect();
    busy.write_all(&write(0, 5, 0, &[9; 4096])).unwrap();
    has_begun.recv().unwrap();
    running.ask_to_stop();
    // Idle clients are disconnected, and no new client is accepted.
    assert_eq!(rest(&mut idle), [0u8; 0]);
    rest(&mut negotiating);
    assert!(UnixStream::connect(&running.socket).is_err());
    assert!(!running.socket.exists());
    go.send(()).unwrap();
    assert_eq!(Heard(&rest(&mut busy)).status(), (0, 5));
    let mut stored = vec![0; 4096];
    device.read(0, &mut stored).unwrap();
    assert_eq!(stored, [9; 4096]);
    let error = running.stop().unwrap_err();
    assert!(error.to_string().contains("input/output error"), "a failed flush is reported: {error}");
}

#[test]
fn a_client_that_does_not_take_its_replies_does_not_keep_the_server_from_stopping() {
    let options = Options { farewell: Duration::from_millis(200), ..Options::default() };
    let running = Running::with(Arc::new(MemoryDevice::new(SECTORS)), Export::default(), options, "unix");
    let mut client = running.client(Form::Simple);
    client.write_all(&request(0, NBD_CMD_READ, 5, 0, 32 << 20)).unwrap();
    client.write_all(&request(0, NBD_CMD_READ, 5, 0, 32 << 20)).unwrap();
    receive(&mut client, 16);
    let start = Instant::now();
    running.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

/// A device that loses unflushed data when its power fails.
struct Volatile {
    now: MemoryDevice,
    durable: Mutex<Vec<u8>>,
}

impl Volatile {
    fn contents(&self) -> Vec<u8> {
        let mut all = vec![0; (self.now.sectors() * 512) as usize];
        self.now.read(0, &mut all).unwrap();
        all
    }
}

impl BlockDevice for Volatile {
    fn sectors(&self) -> u64 {
        self.now.sectors()
    }

    fn read_only(&self) -> bool {
        false
    }

    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError> {
        self.now.read(sector, out)
    }

    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError> {
        self.now.write(sector, data, fua)?;
        if fua {
            let at = (sector * 512) as usize;
            self.durable.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
        }
        Ok(())
    }

    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.now.trim(sector, sectors, fua)
    }

    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.now.zero(sector, sectors, fua)
    }

    fn flush(&self) -> Result<(), IoError> {
        *self.durable.lock().unwrap() = self.contents();
        Ok(())
    }

    fn extents(
        &self,
        sector: u64,
        sectors: u64,
        visit: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>,
    ) -> Result<(), IoError> {
        self.now.extents(sector, sectors, visit)
    }
}

#[test]
fn a_flush_of_one_connection_makes_durable_what_another_wrote() {
    let now = MemoryDevice::new(1024);
    let device = Arc::new(Volatile { now, durable: Mutex::new(vec![0; 1024 * 512]) });
    let running = Running::new(device.clone());
    let mut clients: Vec<_> = (0..4).map(|_| running.client(Form::Simple)).collect();
    let mut answered = |client: usize, request: &[u8]| {
        clients[client].write_all(request).unwrap();
        assert_eq!(Heard(&receive(&mut clients[client], 16)).status().0, 0);
    };
    for round in 1..50_u8 {
        for client in 0..3 {
            let offset = (u64::from(round) * 3 + client as u64) * 512;
            answered(client, &write(0, 1, offset, &[round; 512]));
        }
        answered(3, &request(0, NBD_CMD_FLUSH, 1, 0, 0));
        assert!(*device.durable.lock().unwrap() == device.contents(), "round {round}");
        answered(2, &write(FUA, 1, 1023 * 512, &[round; 512]));
        assert_eq!(device.durable.lock().unwrap()[1023 * 512..], [round; 512]);
        assert!(*device.durable.lock().unwrap() == device.contents(), "visible to all clients");
    }
}

const FUA: u16 = NBD_CMD_FLAG_FUA;

#[test]
fn connections_are_served_side_by_side() {
    let (device, has_begun, go) = slow();
    let running = Running::new(device);
    let mut waiting = running.client(Form::Simple);
    waiting.write_all(&write(0, 5, 0, &[9; 512])).unwrap();
    has_begun.recv().unwrap();
    let mut other = running.client(Form::Simple);
    other.write_all(&request(0, NBD_CMD_READ, 6, 4096, 512)).unwrap();
    receive(&mut other, 16 + 512);
    waiting.set_nonblocking(true).unwrap();
    let nothing = std::io::Read::read(&mut waiting, &mut [0; 16]).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    go.send(()).unwrap();
}
