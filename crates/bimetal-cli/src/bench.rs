//! `bimetal bench nbd`: what serving costs, beside other servers on the like backing.
//!
//! All servers run at once and take turns with one client, fio, so that whatever else the machine does slows all of them
//! alike. Where there are two processors, servers have the first and fio the second: left to the scheduler, a server and
//! its client are now on one and now on two, which matters more than what the server does.

mod client;
mod servers;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bimetal_core::device::Template;
use bimetal_core::part::random::{below, split_mix};
use bimetal_core::request::SECTOR_BYTES;
use bimetal_core::scheme;
use bimetal_live::health::Health;
use bimetal_live::store::{CreateOptions, Directory, OpenOptions, Store, create};
use bimetal_live::{BlockDevice, IoError, MemoryDevice};
use bimetal_study::number::{NOTHING, SIZES, significant, thousands, with_unit};
use bimetal_study::prepare;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::args::BenchNbdArgs;
use crate::failure::Failure;
use crate::output;
use crate::progress::StepBar;
use crate::table::{Align, bold, plain, remark};
use client::{Fio, Requests, Workload};
use servers::{Ours, Theirs};

const WORKLOADS: [Workload; 4] = [
    Workload::new("read 4K, depth 1", "randread", REQUEST_BYTES, 1),
    Workload::new("read 4K, depth 32", "randread", REQUEST_BYTES, 32),
    Workload::new("write 4K, depth 1", "randwrite", REQUEST_BYTES, 1),
    Workload::new("write 4K, depth 32", "randwrite", REQUEST_BYTES, 32),
];
/// What is measured on a store that is not full before these, whose small writes scatter the pages of larger requests.
const LARGE_WORKLOADS: [Workload; 4] = [
    Workload::new("read 64K, depth 8", "randread", 64 << 10, 8),
    Workload::new("write 64K, depth 8", "randwrite", 64 << 10, 8),
    Workload::new("read 1M, depth 4", "randread", 1 << 20, 4),
    Workload::new("write 1M, depth 4", "randwrite", 1 << 20, 4),
];
/// And after these.
const SYNCHRONOUS_WORKLOADS: [Workload; 4] = [
    Workload::synchronous("write 4K + flush, 1 client", 1),
    Workload::synchronous("write 4K + flush, 8 clients", 8),
    Workload::synchronous("write 4K + flush, 32 clients", 32),
    Workload { beside_writer: true, ..Workload::new("read 4K beside write + flush", "randread", REQUEST_BYTES, 1) },
];
/// Bytes of a request that preconditions a store, and of the smallest one that is measured.
const REQUEST_BYTES: u64 = 4096;
/// How much larger a store is than what is used of it, where it has room to spare.
const ROOMY: u64 = 4;

/// A workload on two servers in turns.
#[derive(Debug, Serialize)]
struct Row {
    backing: &'static str,
    workload: &'static str,
    /// Requests per second in each round.
    bimetal: Vec<f64>,
    nbdkit: Vec<f64>,
    /// Median of the rounds' ratios.
    ratio: f64,
    /// Microseconds of processor time for each request in each round, of the server alone.
    bimetal_cpu_us: Vec<f64>,
    nbdkit_cpu_us: Vec<f64>,
    /// Median of the rounds' ratios: how many times what `bimetal` takes `nbdkit` does.
    cpu_ratio: Option<f64>,
    /// Pages programmed per page that the host wrote.
    write_amplification: Option<f64>,
}

/// Servers on the like backing.
struct Pair<'a> {
    backing: &'static str,
    ours: &'a Ours,
    theirs: &'a Theirs,
}

pub fn nbd(args: &BenchNbdArgs) -> Result<(), Failure> {
    let interrupted = Interrupted::watch()?;
    let fio = Fio { processor: pin()?, args, interrupted: &interrupted };
    let folder = match &args.dir {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let folder = folder.map_err(|error| Failure::failed(format!("no directory for the store can be made: {error}")))?;
    let path = |name: &str| folder.path().join(name);
    let bytes = args.size.0.next_multiple_of(1 << 20);
    let workloads = 3 * WORKLOADS.len() + LARGE_WORKLOADS.len() + SYNCHRONOUS_WORKLOADS.len();
    let bar = StepBar::new(workloads as u64 * u64::from(args.rounds) + 2);
    scheme::find(&args.scheme)?;
    // What is missing is said before stores are filled.
    let image = path("image");
    File::create(&image)?.set_len(bytes)?;
    let memory = Ours::serve(Arc::new(MemoryDevice::new(bytes / SECTOR_BYTES)), &path("memory"))?;
    let nbdkit_memory = Theirs::start(&path("nbdkit-memory"), &["memory", &bytes.to_string()])?;
    let nbdkit_file = Theirs::start(&path("nbdkit-file"), &["file", &image.to_string_lossy()])?;
    let roomy = store(args, &path("roomy"), bytes * ROOMY, bytes, (&interrupted, &bar))?;
    let full = store(args, &path("full"), bytes, bytes, (&interrupted, &bar))?;
    let (roomy_server, full_server) = (
        Ours::serve(Arc::clone(&roomy) as _, &path("roomy.sock"))?,
        Ours::serve(Arc::clone(&full) as _, &path("full.sock"))?,
    );
    for socket in
        [&memory.socket, &nbdkit_memory.socket, &nbdkit_file.socket, &roomy_server.socket, &full_server.socket]
    {
        fio.fill(socket)?;
    }
    let pairs = [
        (Pair { backing: "memory, no store", ours: &memory, theirs: &nbdkit_memory }, None, [&WORKLOADS[..], &[], &[]]),
        (
            Pair { backing: "files, a quarter of the store in use", ours: &roomy_server, theirs: &nbdkit_file },
            Some(&roomy),
            [&LARGE_WORKLOADS[..], &WORKLOADS, &SYNCHRONOUS_WORKLOADS],
        ),
        (
            Pair { backing: "files, all of the store in use", ours: &full_server, theirs: &nbdkit_file },
            Some(&full),
            [&WORKLOADS[..], &[], &[]],
        ),
    ];
    let mut rows = Vec::new();
    for (pair, store, workloads) in pairs {
        for workload in workloads.into_iter().flatten() {
            rows.push(measure(&fio, &pair, store, workload, &bar)?);
        }
    }
    drop(bar);
    output::emit(&args.json, &rows, || text(args, bytes, &rows))
}

/// Whether the user wants no more of it: a process that a signal ends would leave its stores behind.
struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Notes signals from now on; a second one ends the process.
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

/// Keeps this process, with its servers, to one processor; the next one is for the client. `None` where there is but one.
fn pin() -> io::Result<Option<usize>> {
    let mine = sched_getaffinity(None)?;
    let mut processors = (0..CpuSet::MAX_CPU).filter(|&processor| mine.is_set(processor));
    let (Some(first), Some(second)) = (processors.next(), processors.next()) else { return Ok(None) };
    let mut servers = CpuSet::new();
    servers.set(first);
    sched_setaffinity(None, &servers)?;
    Ok(Some(second))
}

/// A store of which `used` bytes are in use, written to until it cleans as it always will.
fn store(
    args: &BenchNbdArgs,
    path: &Path,
    capacity: u64,
    used: u64,
    (interrupted, bar): (&Interrupted, &StepBar),
) -> Result<Arc<Store>, Failure> {
    bar.at(&format!("filling a store of {}", with_unit(SIZES, capacity as f64)));
    let resolved = prepare::device(Template::bare_dies(capacity)?, scheme::find(&args.scheme)?, &[])?;
    let directory = Directory::make(path)?;
    // As the files beside it are; a directory in memory has no room for what is never used.
    let options = CreateOptions { sparse: true, ..CreateOptions::default() };
    create(&directory, &resolved.device, &options).map_err(|error| Failure::store(path, error))?;
    let store =
        Store::open(Arc::new(directory), OpenOptions::default()).map_err(|error| Failure::store(path, error))?;
    let failed = |error: IoError| Failure::failed(format!("{}: {error}", path.display()));
    let sectors = REQUEST_BYTES / SECTOR_BYTES;
    let data: Vec<u8> = (0..REQUEST_BYTES).map(|byte| byte as u8 | 1).collect();
    let mut random = 1;
    let pages = used / REQUEST_BYTES;
    for page in 0..pages {
        interrupted.check()?;
        store.write(page * sectors, &data, false).map_err(failed)?;
    }
    let flash: u64 = resolved.shape.regions.iter().map(|region| region.geometry.capacity_bytes()).sum();
    for _ in 0..flash / REQUEST_BYTES {
        interrupted.check()?;
        split_mix(&mut random);
        store.write(below(&mut random, pages) * sectors, &data, false).map_err(failed)?;
    }
    bar.step();
    Ok(Arc::new(store))
}

fn measure(
    fio: &Fio<'_>,
    pair: &Pair<'_>,
    store: Option<&Arc<Store>>,
    workload: &Workload,
    bar: &StepBar,
) -> Result<Row, Failure> {
    let written = || store.map(|store| programmed(store)).unwrap_or_default();
    let before = written();
    let (mut bimetal, mut nbdkit) = (Measured::default(), Measured::default());
    for round in 0..fio.args.rounds {
        bar.at(&format!("{}: {}", pair.backing, workload.name));
        let mut turn = |ours: bool| -> Result<(), Failure> {
            if ours {
                bimetal.add(std::process::id(), || fio.run(&pair.ours.socket, workload))
            } else {
                nbdkit.add(pair.theirs.process.id(), || fio.run(&pair.theirs.socket, workload))
            }
        };
        turn(round % 2 == 0)?;
        turn(round % 2 == 1)?;
        bar.step();
    }
    let after = written();
    let host = after.1 - before.1;
    let write_amplification = (host > 0.0).then(|| (after.0 - before.0) / host);
    let ratio =
        |over: &[f64], under: &[f64]| median(over.iter().zip(under).map(|(over, under)| over / under).collect());
    Ok(Row {
        backing: pair.backing,
        workload: workload.name,
        ratio: ratio(&bimetal.speeds, &nbdkit.speeds),
        // The time that the other client's requests take cannot be told from that of these, nor any below what the system counts.
        cpu_ratio: Some(ratio(&nbdkit.cpu_us, &bimetal.cpu_us))
            .filter(|ratio| ratio.is_finite() && !workload.beside_writer),
        bimetal: bimetal.speeds,
        nbdkit: nbdkit.speeds,
        bimetal_cpu_us: bimetal.cpu_us,
        nbdkit_cpu_us: nbdkit.cpu_us,
        write_amplification,
    })
}

/// What was measured of a server, by round.
#[derive(Default)]
struct Measured {
    /// Requests per second.
    speeds: Vec<f64>,
    /// Processor time for each, in microseconds.
    cpu_us: Vec<f64>,
}

impl Measured {
    fn add(&mut self, process: u32, run: impl FnOnce() -> Result<Requests, Failure>) -> Result<(), Failure> {
        let before = cpu_seconds(process)?;
        let Requests { per_second, count } = run()?;
        self.speeds.push(per_second);
        self.cpu_us.push((cpu_seconds(process)? - before) * 1e6 / count);
        Ok(())
    }
}

/// Processor time that a process has had, without its children.
fn cpu_seconds(process: u32) -> io::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in front, in brackets, may have anything in it.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Bytes that a store has programmed, and those that the host wrote.
fn programmed(store: &Store) -> (f64, f64) {
    let health = Health::of(store);
    let host = health.host_write_bytes as f64;
    // Whole bytes again.
    ((health.device.key_figures.write_amplification.unwrap_or(0.0) * host).round(), host)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn text(args: &BenchNbdArgs, bytes: u64, rows: &[Row]) -> String {
    let heads = [
        ("", Align::Left),
        ("bimetal", Align::Right),
        ("nbdkit", Align::Right),
        ("ratio", Align::Right),
        ("CPU", Align::Right),
        ("written", Align::Right),
    ];
    let mut text = String::new();
    for group in rows.chunk_by(|one, next| one.backing == next.backing) {
        let line = |row: &Row| {
            let speed = |rounds: &[f64]| thousands(median(rounds.to_vec()).round() as u64);
            let amplification =
                row.write_amplification.map_or_else(|| NOTHING.to_owned(), |value| format!("{} x", significant(value)));
            vec![
                row.workload.to_owned(),
                speed(&row.bimetal),
                speed(&row.nbdkit),
                format!("{:.2}", row.ratio),
                row.cpu_ratio.map_or_else(|| NOTHING.to_owned(), |ratio| format!("{ratio:.2}")),
                amplification,
            ]
        };
        text += &format!("\n{}\n", bold(&format!("In {}", group[0].backing)));
        text += &plain(&heads, group.iter().map(line).collect());
    }
    let size = with_unit(SIZES, bytes as f64);
    text += &format!(
        "\n{}",
        remark(&format!(
            "requests/s of fio over a Unix socket, anywhere in {size}: medians of {} rounds of {} s in turns, and the median of the \
             rounds' ratios. `CPU` is that of processor time for each request: above 1, `bimetal` takes less. Stores are of `{}`; \
             `written` is its write amplification. Beside memory stands `nbdkit memory`, beside files `nbdkit file` in the same \
             directory. Each flush costs what the file system in `--dir` takes for it.",
            args.rounds, args.seconds, args.scheme
        ))
    );
    text
}
