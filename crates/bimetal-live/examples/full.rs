//! Measures the time to open and close a large store in full use, and its memory, on a disk that is far too small for
//! its data.
//!
//! ```text
//! bimetal create big.store --scheme pagemap --capacity 1TiB --sparse
//! cargo run --release --package bimetal-live --example full -- big.store fill
//! cargo run --release --package bimetal-live --example full -- big.store open
//! ```
//!
//! `fill` writes every sector in order and then random pages, too few to start garbage collection. Pages written to a
//! region are dropped, except in the first and last mebibyte of its file. The superblock, the journal, the checkpoints
//! and the map are normal files. Such a store holds no data and has no other use.

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, IoSlice};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bimetal_core::part::random::{below, split_mix};
use bimetal_live::BlockDevice;
use bimetal_live::store::backing::{Access, Backing, Identity, Storage};
use bimetal_live::store::{Directory, OpenOptions, Store};

const SECTOR: u64 = 512;
/// Bytes at each end of a region's file that are kept.
const KEPT: u64 = 1 << 20;
/// Bytes of a sequential write.
const LARGE: usize = 1 << 20;
/// Number of random page writes.
const SCATTERED: u64 = 1_000_000;
const PAGE: usize = 4096;

/// A directory whose regions drop written data.
struct Forgetful(Directory);

impl Storage for Forgetful {
    fn open(&self, name: &str, access: Access, direct: bool) -> io::Result<Box<dyn Backing>> {
        let file = self.0.open(name, access, direct)?;
        if !name.ends_with(".flash") {
            return Ok(file);
        }
        let length = file.length()?;
        Ok(Box::new(Region { file, length }))
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        self.0.exists(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.0.free_bytes()
    }
}

/// The file of a region.
struct Region {
    file: Box<dyn Backing>,
    length: u64,
}

impl Region {
    fn keeps(&self, offset: u64) -> bool {
        offset < KEPT || offset >= self.length - KEPT
    }
}

impl Backing for Region {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.keeps(offset) { self.file.write_at(offset, data) } else { Ok(()) }
    }

    fn write_vectored_at(&self, offset: u64, data: &[IoSlice<'_>]) -> io::Result<()> {
        if self.keeps(offset) { self.file.write_vectored_at(offset, data) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.file.punch(offset, bytes)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn lock(&self, shared: bool) -> io::Result<()> {
        self.file.lock(shared)
    }

    fn identity(&self) -> io::Result<Option<Identity>> {
        self.file.identity()
    }

    fn occupant(&self) -> io::Result<Option<String>> {
        self.file.occupant()
    }

    fn clear(&self) -> io::Result<()> {
        self.file.clear()
    }
}

/// A line of `/proc/self/status`, in bytes.
fn memory(name: &str) -> Result<f64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
    Ok(line.trim_matches([':', ' ', '\t', 'k', 'B']).parse::<f64>()? * 1024.0)
}

fn say(what: &str, since: Instant) -> Result<(), Box<dyn Error>> {
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    let (now, most) = (gib(memory("VmRSS")?), gib(memory("VmHWM")?));
    println!("{what}: {:.2} s; memory {now:.2} GiB, at most {most:.2} GiB", since.elapsed().as_secs_f64());
    Ok(())
}

fn fill(store: &Store) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let data = vec![1; LARGE];
    let (sectors, step) = (store.sectors(), LARGE as u64 / SECTOR);
    for sector in (0..sectors / step).map(|write| write * step) {
        store.write(sector, &data, false)?;
    }
    store.flush()?;
    say("every sector written in order", start)?;
    let (start, mut random, mut longest) = (Instant::now(), 0, Duration::ZERO);
    let pages = sectors / (PAGE as u64 / SECTOR);
    for _ in 0..SCATTERED {
        let page = below(&mut random, pages);
        let (issued, is_durable) = (Instant::now(), split_mix(&mut random).is_multiple_of(64));
        store.write(page * (PAGE as u64 / SECTOR), &data[..PAGE], is_durable)?;
        longest = longest.max(issued.elapsed());
    }
    say(&format!("{SCATTERED} pages at random, one in 64 with FUA, the longest in {longest:.1?}"), start)
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [path, work] = arguments else { return Err("usage: full STORE fill|open".into()) };
    let start = Instant::now();
    let storage = Arc::new(Forgetful(Directory::new(Path::new(path))));
    let store = Store::open(storage, OpenOptions::default())?;
    say("open", start)?;
    for (step, took) in &store.recovery().steps {
        println!("  {step}: {:.2} s", took.as_secs_f64());
    }
    if work == "fill" {
        thread::scope(|scope| {
            let work = scope.spawn(|| fill(&store).map_err(|error| error.to_string()));
            // As a server does.
            while !work.is_finished() {
                store.keep_up(Duration::from_millis(100)).ok();
            }
            work.join().unwrap_or_else(|_| Err("a panic".into()))
        })?;
    }
    let start = Instant::now();
    store.close()?;
    say("close", start)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
