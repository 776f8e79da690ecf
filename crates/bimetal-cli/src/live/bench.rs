//! `bimetal bench`: cost of serving, compared with other servers on equivalent storage. `nbd` compares with nbdkit,
//! `fuse` with nbdfuse, `vhost-user` with qemu-storage-daemon, `ublk` with a loop device of the kernel.
//!
//! All servers run at once and take turns with one client, so that other load of the machine slows all of them equally.
//! If the machine has two processors, servers run on the first and the client on the second. Otherwise the scheduler
//! would place a server and its client sometimes on one processor and sometimes on two, which has more effect than the
//! server's own work.

mod client;
mod comparison;
mod fuse;
mod machine;
mod measure;
mod schemes;
mod servers;
mod stores;
mod text;
mod ublk;
mod vhost_user;
mod workload;

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bimetal_core::request::SECTOR_BYTES;
use bimetal_core::scheme::{self, SCHEMES};
use bimetal_live::MemoryDevice;
use bimetal_live::store::backing::Storage;
use bimetal_live::store::{Directory, Store};
use bimetal_study::number::{SIZES, with_unit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tempfile::TempDir;

use crate::args::{BenchNbdArgs, MeasureArgs};
use crate::failure::Failure;
use crate::output;
use crate::progress::StepBar;
use client::Client;
pub use fuse::fuse;
use measure::Pair;
use servers::{Ours, Theirs};
pub use ublk::ublk;
pub use vhost_user::vhost_user;
use workload::Workload;

/// Space of all stores and images, in sizes of the measured range.
const STORES: u64 = 8;

const WORKLOADS: [Workload; 4] = [
    Workload::new("read 4K, depth 1", "randread", REQUEST_BYTES, 1),
    Workload::new("read 4K, depth 32", "randread", REQUEST_BYTES, 32),
    Workload::new("write 4K, depth 1", "randwrite", REQUEST_BYTES, 1),
    Workload::new("write 4K, depth 32", "randwrite", REQUEST_BYTES, 32),
];
/// Run on the store that is not full, before [`WORKLOADS`], whose small writes scatter the pages of larger requests.
const LARGE_WORKLOADS: [Workload; 4] = [
    Workload::new("read 64K, depth 8", "randread", 64 << 10, 8),
    Workload::new("write 64K, depth 8", "randwrite", 64 << 10, 8),
    Workload::new("read 1M, depth 4", "randread", 1 << 20, 4),
    Workload::new("write 1M, depth 4", "randwrite", 1 << 20, 4),
];
/// Run on the store that is not full, after [`WORKLOADS`].
const SYNCHRONOUS_WORKLOADS: [Workload; 4] = [
    Workload::synchronous("write 4K + flush, 1 client", 1),
    Workload::synchronous("write 4K + flush, 8 clients", 8),
    Workload::synchronous("write 4K + flush, 32 clients", 32),
    Workload { beside_writer: true, ..Workload::new("read 4K beside write + flush", "randread", REQUEST_BYTES, 1) },
];
/// Flushed writes to a disk.
const DISK_SYNCHRONOUS_WORKLOADS: [Workload; 3] = [
    Workload::synchronous("write 4K + flush, 1 process", 1),
    Workload::synchronous("write 4K + flush, 8 processes", 8),
    Workload::synchronous("write 4K + flush, 32 processes", 32),
];
/// Run last on the store that is not full, with several connections.
const CONNECTED_WORKLOADS: [Workload; 6] = [
    Workload::connected("read 4K, depth 8, 4 connections", "randread", REQUEST_BYTES, 8),
    Workload::connected("write 4K, depth 8, 4 connections", "randwrite", REQUEST_BYTES, 8),
    Workload::connected("read 64K, depth 8, 4 connections", "randread", 64 << 10, 8),
    Workload::connected("write 64K, depth 8, 4 connections", "randwrite", 64 << 10, 8),
    Workload::connected("read 1M, depth 4, 4 connections", "randread", 1 << 20, 4),
    Workload::connected("write 1M, depth 4, 4 connections", "randwrite", 1 << 20, 4),
];
/// Bytes of a request that preconditions a store, and of the smallest measured request.
const REQUEST_BYTES: u32 = 4096;
/// Capacity of the store that is not full, as a multiple of its used part.
const ROOMY: u64 = 4;

pub fn nbd(args: &BenchNbdArgs) -> Result<(), Failure> {
    let measure = &args.measure;
    let client = Client::new(measure)?;
    let scheme = scheme::find(&measure.scheme)?;
    let schemes = match args.schemes.as_slice() {
        [all] if all == "all" => SCHEMES.to_vec(),
        names => names.iter().map(|name| scheme::find(name)).collect::<Result<_, _>>()?,
    };
    let folder = folder(measure)?;
    let path = |name: &str| folder.path().join(name);
    let bytes = measure.bytes();
    let on_roomy = [&LARGE_WORKLOADS[..], &WORKLOADS, &SYNCHRONOUS_WORKLOADS, &CONNECTED_WORKLOADS].concat();
    let measurements = 2 * WORKLOADS.len() + on_roomy.len() + schemes.len() * schemes::WORKLOADS.len();
    let bar = StepBar::new((measurements * usize::from(measure.rounds) + 2 + schemes.len()) as u64);
    // Missing programs are reported before stores are filled.
    let image = path("image");
    File::create(&image)?.set_len(bytes)?;
    let memory = Ours::serve(Arc::new(MemoryDevice::new(bytes / SECTOR_BYTES)), &path("memory"))?;
    let nbdkit_memory = Theirs::nbdkit(&path("nbdkit-memory"), &["memory", &bytes.to_string()])?;
    let nbdkit_file = Theirs::nbdkit(&path("nbdkit-file"), &["file", &image.to_string_lossy()])?;
    let progress = (&client.interrupted, &bar);
    let roomy = stores::preconditioned(scheme, &path("roomy"), bytes * ROOMY, bytes, progress)?;
    let full = stores::preconditioned(scheme, &path("full"), bytes, bytes, progress)?;
    let (roomy_server, full_server) = (
        Ours::serve(Arc::clone(&roomy) as _, &path("roomy.sock"))?,
        Ours::serve(Arc::clone(&full) as _, &path("full.sock"))?,
    );
    for served in
        [&memory.served, &nbdkit_memory.served, &nbdkit_file.served, &roomy_server.served, &full_server.served]
    {
        client.fill(&served.target)?;
    }
    let pairs = [
        (beside_nbdkit("memory, no store", &memory, &nbdkit_memory, None), &WORKLOADS[..]),
        (
            beside_nbdkit("files, a quarter of the store in use", &roomy_server, &nbdkit_file, Some(&roomy)),
            on_roomy.as_slice(),
        ),
        (beside_nbdkit("files, all of the store in use", &full_server, &nbdkit_file, Some(&full)), &WORKLOADS[..]),
    ];
    let mut rows = Vec::new();
    for (pair, workloads) in pairs {
        for workload in workloads {
            rows.push(pair.measure(&client, workload, &bar)?);
        }
    }
    let by_backing = rows.len();
    rows.extend(schemes::rows(&client, &schemes, folder.path(), bytes, &nbdkit_file.served, &bar)?);
    drop(bar);
    let (by_backing, by_scheme) = rows.split_at(by_backing);
    output::emit(&measure.json, &rows, || text::nbd(measure, by_backing, by_scheme))
}

fn beside_nbdkit<'a>(backing: &str, ours: &'a Ours, theirs: &'a Theirs, store: Option<&'a Arc<Store>>) -> Pair<'a> {
    Pair { backing: backing.to_owned(), ours: &ours.served, theirs: &theirs.served, store }
}

/// A new folder for the stores and images of a benchmark, removed at the end.
fn folder(args: &MeasureArgs) -> Result<TempDir, Failure> {
    if args.bytes() == 0 {
        return Err(Failure::usage("`--size` is 0: clients need a range to read and write, such as 256MiB"));
    }
    let folder = match &args.dir {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let folder = folder.map_err(|error| Failure::failed(format!("no directory for the store can be made: {error}")))?;
    let needed = args.bytes().saturating_mul(STORES);
    match Directory::new(folder.path()).free_bytes().filter(|&free| free < needed) {
        Some(free) => Err(Failure::failed(format!(
            "{}: stores and images take {}, and {} are free; hint: a smaller `--size`, or another `--dir`",
            folder.path().display(),
            with_unit(SIZES, needed as f64),
            with_unit(SIZES, free as f64)
        ))),
        None => Ok(folder),
    }
}

/// Whether the user has interrupted the benchmark. The signal is caught because a killed process would leave its stores
/// behind.
struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Records signals from now on; a second signal ends the process.
    fn watch() -> io::Result<Self> {
        let noted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_default(signal, Arc::clone(&noted))?;
            flag::register(signal, Arc::clone(&noted))?;
        }
        Ok(Self(noted))
    }

    fn check(&self) -> Result<(), Failure> {
        if self.0.load(Ordering::Relaxed) { Err(Failure::failed("interrupted: nothing was measured")) } else { Ok(()) }
    }
}

/// Restricts this process, with its servers, to one processor. Returns the next one, for the client; `None` if there is
/// only one.
fn pin() -> io::Result<Option<usize>> {
    let mine = sched_getaffinity(None)?;
    let mut processors = (0..CpuSet::MAX_CPU).filter(|&processor| mine.is_set(processor));
    let (Some(first), Some(second)) = (processors.next(), processors.next()) else { return Ok(None) };
    let mut servers = CpuSet::new();
    servers.set(first);
    sched_setaffinity(None, &servers)?;
    Ok(Some(second))
}
