//! Clients that waste shared resources: places, memory, time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bimetal_live::nbd::proto::*;
use bimetal_live::nbd::{Export, Options};
use bimetal_live::{BlockDevice, Extent, IoError, MemoryDevice};

use crate::client::*;
use crate::running::*;

/// 64 MiB.
const SECTORS: u64 = 1 << 17;
const LARGE: usize = 32 << 20;

fn serve(options: Options) -> Running {
    Running::with(Arc::new(MemoryDevice::new(SECTORS)), Export::default(), options, "unix")
}

fn is_served(client: &mut UnixStream) -> bool {
    client.write_all(&request(0, NBD_CMD_FLUSH, 1, 0, 0)).is_ok() && client.read_exact(&mut [0; 16]).is_ok()
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn who_does_not_come_on_is_dropped_and_who_is_slow_is_not() {
    // Longer than a busy machine delays a thread.
    let stall = milliseconds(1000);
    let running = serve(Options { stall, ..Options::default() });
    let start = Instant::now();
    let [mut trickles, mut reads_nothing, mut slow, mut idle] = [(); 4].map(|()| running.client(Form::Simple));
    reads_nothing.write_all(&request(0, NBD_CMD_READ, 5, 0, LARGE as u32)).unwrap();
    slow.write_all(&request(0, NBD_CMD_READ, 5, 0, 4 << 20)).unwrap();
    thread::scope(|scope| {
        let trickle = scope.spawn(|| {
            let message = write(0, 1, 0, &[1; 8192]);
            let refused = message.chunks(1).find(|byte| {
                thread::sleep(milliseconds(10));
                trickles.write_all(byte).is_err()
            });
            assert!(refused.is_some(), "a trickle is not enough");
            assert!(start.elapsed() >= stall);
        });
        // The whole transfer takes longer than a client may stall.
        receive(&mut slow, 16);
        for _ in 0..64 {
            receive(&mut slow, 64 << 10);
            thread::sleep(milliseconds(30));
        }
        trickle.join().unwrap();
    });
    assert!(rest(&mut reads_nothing).len() < LARGE, "cut off");
    assert!(is_served(&mut slow) && is_served(&mut idle), "they were not stalled");
}

#[test]
fn a_client_that_asks_for_nothing_is_dropped_after_the_longest_time() {
    let running = serve(Options { idle: milliseconds(300), ..Options::default() });
    let [mut idle, mut asks] = [(); 2].map(|()| running.client(Form::Simple));
    let start = Instant::now();
    while start.elapsed() < milliseconds(700) {
        assert!(is_served(&mut asks));
        thread::sleep(milliseconds(20));
    }
    assert!(!is_served(&mut idle));
}

#[test]
fn the_client_that_is_idle_longest_gives_way_to_a_new_one() {
    let running = serve(Options { connections: 3, gives_way_after: milliseconds(300), ..Options::default() });
    let [mut first, mut second, mut third] = [(); 3].map(|()| running.client(Form::Simple));
    assert_eq!(rest(&mut running.connect()), [0u8; 0], "no client has been idle for long enough");
    thread::sleep(milliseconds(320));
    assert!(is_served(&mut first) && is_served(&mut third));
    let mut fourth = running.client(Form::Simple);
    assert!(!is_served(&mut second));
    assert_eq!(rest(&mut running.connect()), [0u8; 0], "the others were not idle for long enough");
    assert!(is_served(&mut first) && is_served(&mut third) && is_served(&mut fourth));
}

#[test]
fn one_address_does_not_get_all_places() {
    let options = Options { connections: 3, connections_per_address: 2, ..Options::default() };
    let running = Running::with(Arc::new(MemoryDevice::new(SECTORS)), Export::default(), options, "tcp");
    let port = running.address.to_string().rsplit_once(':').unwrap().1.to_owned();
    let connect = || {
        let mut client = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let greeted = client.read_exact(&mut [0; 18]).is_ok();
        (client, greeted)
    };
    let (first, second) = (connect(), connect());
    assert!(first.1 && second.1 && !connect().1, "one too many");
    drop(first);
    // Its place becomes free when its thread has noticed its end.
    assert!((0..1000).any(|_| {
        thread::sleep(milliseconds(5));
        connect().1
    }));
}

/// A device of zeros that counts reads of the maximum length.
struct Counting {
    inner: MemoryDevice,
    large: AtomicUsize,
}

impl BlockDevice for Counting {
    fn sectors(&self) -> u64 {
        SECTORS
    }

    fn read_only(&self) -> bool {
        false
    }

    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError> {
        if out.len() == LARGE {
            self.large.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.read(sector, out)
    }

    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError> {
        self.inner.write(sector, data, fua)
    }

    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.inner.trim(sector, sectors, fua)
    }

    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.inner.zero(sector, sectors, fua)
    }

    fn flush(&self) -> Result<(), IoError> {
        self.inner.flush()
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
fn replies_that_nobody_reads_do_not_take_what_others_need() {
    let device = Arc::new(Counting { inner: MemoryDevice::new(SECTORS), large: AtomicUsize::new(0) });
    // 128 MiB of it are shared: room for four of the largest requests.
    let options = Options { connections: 34, loan: milliseconds(300), ..Options::default() };
    let running = Running::with(device.clone(), Export::default(), options, "unix");
    let [mut small, mut large] = [(); 2].map(|()| running.client(Form::Simple));
    let start = Instant::now();
    let greedy: Vec<_> = (0..32)
        .map(|_| {
            let mut client = running.client(Form::Simple);
            client.write_all(&request(0, NBD_CMD_READ, 5, 0, LARGE as u32)).unwrap();
            client
        })
        .collect();
    while device.large.load(Ordering::SeqCst) < 4 {
        assert!(start.elapsed() < Duration::from_secs(20));
        thread::yield_now();
    }
    if start.elapsed() < milliseconds(250) {
        thread::sleep(milliseconds(20));
        assert_eq!(device.large.load(Ordering::SeqCst), 4, "there is no memory for more");
    }
    let data: Vec<u8> = (0..LARGE).map(|at| (at / 511) as u8).collect();
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let small_ones = scope.spawn(|| {
            let mut slowest = Duration::ZERO;
            while !stopped.load(Ordering::SeqCst) {
                let start = Instant::now();
                small.write_all(&request(0, NBD_CMD_READ, 6, 40 << 20, 1 << 20)).unwrap();
                receive(&mut small, 16 + (1 << 20));
                slowest = slowest.max(start.elapsed());
            }
            slowest
        });
        for _ in 0..3 {
            large.write_all(&write(0, 7, LARGE as u64, &data)).unwrap();
            receive(&mut large, 16);
            large.write_all(&request(0, NBD_CMD_READ, 8, LARGE as u64, LARGE as u32)).unwrap();
            assert!(receive(&mut large, 16 + LARGE)[16..] == data);
        }
        stopped.store(true, Ordering::SeqCst);
        let slowest = small_ones.join().unwrap();
        assert!(slowest < Duration::from_secs(1), "a client within its own memory does not wait: {slowest:?}");
    });
    // All 32 were served before it, four at a time.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    drop(greedy);
}

/// If no other client waits, a client may take its time to read.
#[test]
fn a_client_that_reads_late_is_not_dropped_for_memory_that_nobody_wants() {
    let running = serve(Options { loan: milliseconds(20), ..Options::default() });
    let mut clients = [(); 3].map(|()| running.client(Form::Simple));
    for client in &mut clients {
        client.write_all(&request(0, NBD_CMD_READ, 5, 0, LARGE as u32)).unwrap();
    }
    thread::sleep(milliseconds(200));
    for client in &mut clients {
        receive(client, 16 + LARGE);
    }
}

/// The server stops soon, regardless of its clients.
#[test]
fn stopping_takes_no_longer_than_the_farewell() {
    let running = serve(Options::default());
    let mut clients: Vec<_> = (0..12).map(|_| running.client(Form::Simple)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        match number % 4 {
            0 => client.write_all(&request(0, NBD_CMD_READ, 5, 0, LARGE as u32)).unwrap(),
            1 => client.write_all(&write(0, 1, 0, &[1; 8192])[..100]).unwrap(),
            2 => client.write_all(&write(0, 1, 0, &vec![1; LARGE])[..1 << 20]).unwrap(),
            _ => {}
        }
    }
    let _negotiating = running.connect();
    thread::sleep(milliseconds(50));
    let start = Instant::now();
    running.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}
