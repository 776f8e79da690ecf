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

/// What fio does, and how many requests at once.
const WORKLOADS: [(&str, &str, u32); 4] = [
    ("read, depth 1", "randread", 1),
    ("read, depth 32", "randread", 32),
    ("write, depth 1", "randwrite", 1),
    ("write, depth 32", "randwrite", 32),
];
/// Bytes of a request.
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
    let bytes = args.size.0.next_multiple_of(REQUEST_BYTES);
    let bar = StepBar::new((3 * WORKLOADS.len()) as u64 * u64::from(args.rounds) + 2);
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
        (Pair { backing: "memory, no store", ours: &memory, theirs: &nbdkit_memory }, None),
        (
            Pair { backing: "files, a quarter of the store in use", ours: &roomy_server, theirs: &nbdkit_file },
            Some(&roomy),
        ),
        (Pair { backing: "files, all of the store in use", ours: &full_server, theirs: &nbdkit_file }, Some(&full)),
    ];
    let mut rows = Vec::new();
    for (pair, store) in pairs {
        for workload in WORKLOADS {
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
    (workload, rw, depth): (&'static str, &str, u32),
    bar: &StepBar,
) -> Result<Row, Failure> {
    let written = || store.map(|store| programmed(store)).unwrap_or_default();
    let before = written();
    let (mut bimetal, mut nbdkit) = (Vec::new(), Vec::new());
    for round in 0..fio.args.rounds {
        bar.at(&format!("{}: {workload}", pair.backing));
        let mut turn = |ours: bool| -> Result<(), Failure> {
            if ours {
                bimetal.push(fio.run(&pair.ours.socket, rw, depth)?);
            } else {
                nbdkit.push(fio.run(&pair.theirs.socket, rw, depth)?);
            }
            Ok(())
        };
        turn(round % 2 == 0)?;
        turn(round % 2 == 1)?;
        bar.step();
    }
    let after = written();
    let host = after.1 - before.1;
    let write_amplification = (host > 0.0).then(|| (after.0 - before.0) / host);
    let ratios = bimetal.iter().zip(&nbdkit).map(|(ours, theirs)| ours / theirs);
    let ratio = median(ratios.collect());
    Ok(Row { backing: pair.backing, workload, bimetal, nbdkit, ratio, write_amplification })
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
            "4-KiB requests/s of fio over a Unix socket, anywhere in {size}: medians of {} rounds of {} s in turns, and the \
             median of the rounds' ratios. Stores are of `{}`; `written` is its write amplification. Beside memory stands \
             `nbdkit memory`, beside files `nbdkit file` in the same directory.",
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
        self.start(socket, &["--rw=write", "--bs=1m", "--iodepth=4"]).map(|_| ())
    }

    /// Requests per second.
    fn run(&self, socket: &Path, rw: &str, depth: u32) -> Result<f64, Failure> {
        let (rw, depth) = (format!("--rw={rw}"), format!("--iodepth={depth}"));
        let (bytes, seconds) = (format!("--bs={REQUEST_BYTES}"), format!("--runtime={:.0}ms", self.args.seconds * 1e3));
        self.start(socket, &[&rw, &depth, &bytes, "--time_based", &seconds])
    }

    fn start(&self, socket: &Path, options: &[&str]) -> Result<f64, Failure> {
        let mut command = match self.processor {
            Some(processor) => {
                let mut command = Command::new("taskset");
                command.args(["--cpu-list", &processor.to_string(), "fio"]);
                command
            }
            None => Command::new("fio"),
        };
        command.args(["--name=nbd", "--ioengine=nbd", "--output-format=json", "--randrepeat=0"]);
        command.arg(format!("--size={}", self.args.size.0.next_multiple_of(REQUEST_BYTES)));
        command.arg(format!("--uri=nbd+unix:///?socket={}", socket.display())).args(options);
        let done = command.output().map_err(|error| missing(&command, &error))?;
        self.interrupted.check()?;
        let printed = String::from_utf8_lossy(&done.stdout);
        // The engine prints a line of its own before the JSON.
        let parsed = printed.find('{').and_then(|at| serde_json::from_str::<Value>(&printed[at..]).ok());
        let speed = |value: &Value| {
            Some(value["jobs"][0]["read"]["iops"].as_f64()? + value["jobs"][0]["write"]["iops"].as_f64()?)
        };
        match parsed.as_ref().and_then(speed) {
            Some(speed) if done.status.success() && speed > 0.0 => Ok(speed),
            _ => Err(Failure::failed(format!("fio: {}", String::from_utf8_lossy(&done.stderr).trim()))),
        }
    }
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
