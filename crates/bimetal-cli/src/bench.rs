//! `bimetal bench nbd`: what serving costs, beside other servers on the like backing.
//!
//! All servers run at once and take turns with one client, fio, so that whatever else the machine does slows all of them
//! alike. Where there are two processors, servers have the first and fio the second: left to the scheduler, a server and
//! its client are now on one and now on two, which matters more than what the server does.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bimetal_core::device::Template;
use bimetal_core::part::random::{below, split_mix};
use bimetal_core::request::SECTOR_BYTES;
use bimetal_core::scheme;
use bimetal_live::health::Health;
use bimetal_live::nbd::{Address, Export, Options, Server, Stop};
use bimetal_live::store::{CreateOptions, Directory, OpenOptions, Store, create};
use bimetal_live::{BlockDevice, IoError, MemoryDevice};
use bimetal_study::number::{NOTHING, SIZES, significant, thousands, with_unit};
use bimetal_study::prepare;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::args::BenchNbdArgs;
use crate::failure::Failure;
use crate::output;
use crate::progress::StepBar;
use crate::table::{Align, bold, plain, remark};

/// What fio does.
#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    rw: &'static str,
    bytes: u64,
    /// Requests at once.
    depth: u32,
    /// Clients, each with a connection of its own.
    clients: u32,
    /// Whether each write is followed by a flush.
    syncs: bool,
    /// Whether somebody else writes and flushes meanwhile.
    beside_writer: bool,
}

impl Workload {
    const fn new(name: &'static str, rw: &'static str, bytes: u64, depth: u32) -> Self {
        Self { name, rw, bytes, depth, clients: 1, syncs: false, beside_writer: false }
    }

    const fn synchronous(name: &'static str, clients: u32) -> Self {
        Self { clients, syncs: true, ..Self::new(name, "randwrite", REQUEST_BYTES, 1) }
    }
}

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
    ((health.device.write_amplification.unwrap_or(0.0) * host).round(), host)
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

/// The client.
struct Fio<'a> {
    processor: Option<usize>,
    args: &'a BenchNbdArgs,
    interrupted: &'a Interrupted,
}

impl Fio<'_> {
    /// Writes all that will be read.
    fn fill(&self, socket: &Path) -> Result<(), Failure> {
        self.start(socket, &["--rw=write", "--bs=1m", "--iodepth=4"].map(str::to_owned)).map(|_| ())
    }

    /// Runs a workload.
    fn run(&self, socket: &Path, workload: &Workload) -> Result<Requests, Failure> {
        let seconds = |seconds: f64| format!("--runtime={:.0}ms", seconds * 1e3);
        let options = |workload: &Workload, runtime: String| {
            let mut options = vec![
                format!("--rw={}", workload.rw),
                format!("--iodepth={}", workload.depth),
                format!("--bs={}", workload.bytes),
                format!("--numjobs={}", workload.clients),
                "--group_reporting".into(),
                "--time_based".into(),
                runtime,
            ];
            options.extend(workload.syncs.then(|| "--fsync=1".into()));
            options
        };
        let writer = workload.beside_writer.then(|| {
            let writer = Workload::synchronous("", 1);
            // It is there from before the beginning until after the end.
            self.command(socket, &options(&writer, seconds(self.args.seconds + 1.0))).stdout(Stdio::null()).spawn()
        });
        if writer.is_some() {
            thread::sleep(Duration::from_millis(300));
        }
        let ran = self.start(socket, &options(workload, seconds(self.args.seconds)));
        if let Some(writer) = writer {
            writer?.wait()?;
        }
        ran
    }

    fn command(&self, socket: &Path, options: &[String]) -> Command {
        let mut command = match self.processor {
            Some(processor) => {
                let mut command = Command::new("taskset");
                command.args(["--cpu-list", &processor.to_string(), "fio"]);
                command
            }
            None => Command::new("fio"),
        };
        command.args(["--name=nbd", "--ioengine=nbd", "--output-format=json", "--randrepeat=0"]);
        command.arg(format!("--size={}", self.args.size.0.next_multiple_of(1 << 20)));
        command.arg(format!("--uri=nbd+unix:///?socket={}", socket.display())).args(options);
        command
    }

    fn start(&self, socket: &Path, options: &[String]) -> Result<Requests, Failure> {
        let mut command = self.command(socket, options);
        let done = command.output().map_err(|error| missing(&command, &error))?;
        self.interrupted.check()?;
        let printed = String::from_utf8_lossy(&done.stdout);
        // The engine prints a line of its own before the JSON.
        let parsed = printed.find('{').and_then(|at| serde_json::from_str::<Value>(&printed[at..]).ok());
        let sum = |value: &Value, figure: &str| {
            let job = &value["jobs"][0];
            Some(job["read"][figure].as_f64()? + job["write"][figure].as_f64()?)
        };
        let requests = parsed.as_ref().and_then(|value| Some((sum(value, "iops")?, sum(value, "total_ios")?)));
        match requests {
            Some((per_second, count)) if done.status.success() && per_second > 0.0 && count > 0.0 => {
                Ok(Requests { per_second, count })
            }
            _ => Err(Failure::failed(format!("fio: {}", String::from_utf8_lossy(&done.stderr).trim()))),
        }
    }
}

/// What a client has done.
struct Requests {
    per_second: f64,
    count: f64,
}

fn missing(command: &Command, error: &io::Error) -> Failure {
    Failure::failed(format!(
        "{}: {error}; hint: `bimetal bench nbd` needs fio with its nbd engine, nbdkit and taskset",
        command.get_program().display()
    ))
}

/// A device that is served by this process.
struct Ours {
    socket: PathBuf,
    stop: Stop,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Ours {
    fn serve(device: Arc<dyn BlockDevice>, socket: &Path) -> Result<Self, Failure> {
        let server = Server::bind(&Address::Unix(socket.into()), Export::default(), Options::default());
        let server = server.map_err(Failure::failed)?;
        let stop = server.stop();
        Ok(Self { socket: socket.into(), stop, thread: Some(thread::spawn(move || server.run(&*device))) })
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.stop.stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// An nbdkit, which ends with this.
struct Theirs {
    socket: PathBuf,
    process: Child,
}

impl Theirs {
    fn start(socket: &Path, plugin: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new("nbdkit");
        let ready = socket.with_extension("pid");
        command.args(["--foreground", "--pidfile"]).arg(&ready).arg("--unix").arg(socket).args(plugin);
        command.stdin(Stdio::null());
        let process = command.spawn().map_err(|error| missing(&command, &error))?;
        let mut started = Self { socket: socket.into(), process };
        while !ready.exists() {
            if let Some(status) = started.process.try_wait()? {
                return Err(Failure::failed(format!("nbdkit {}: it ended with {status}", plugin[0])));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(started)
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
