//! What the NBD server costs: 4-KiB requests of fio over a Unix socket to a device in memory, beside `nbdkit memory`,
//! in turns. `cargo bench --package bimetal-live --bench nbd -- ROUNDS SECONDS [pinned]`; pinned, servers have the first
//! processor and fio the second.

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use bimetal_live::MemoryDevice;
use bimetal_live::nbd::{Address, Export, Options, Server};

const MEBIBYTES: u64 = 1024;
/// What fio does, and how many requests at once.
const WORKLOADS: [(&str, u32); 4] = [("randread", 1), ("randread", 32), ("randwrite", 1), ("randwrite", 32)];

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", socket] => serve(socket),
        [] => bench(5, 3, false),
        [rounds, seconds, ref pinned @ ..] => match (rounds.parse(), seconds.parse()) {
            (Ok(rounds), Ok(seconds)) => bench(rounds, seconds, !pinned.is_empty()),
            _ => Err("usage: [ROUNDS SECONDS [pinned]]".into()),
        },
        _ => Err("usage: [ROUNDS SECONDS [pinned]]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nbd: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until standard input ends.
fn serve(socket: &str) -> Outcome<()> {
    let device = MemoryDevice::new(MEBIBYTES * 2048);
    let server = Server::bind(&Address::Unix(socket.into()), Export::default(), Options::default())?;
    let stop = server.stop();
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        stop.stop();
    });
    Ok(server.run(&device)?)
}

/// A server in a process of its own, which ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts it, and waits until it listens at `socket`.
    fn start(command: &mut Command, socket: &Path) -> Outcome<Self> {
        let mut running = Self(command.stdin(Stdio::piped()).spawn().map_err(|error| format!("{command:?}: {error}"))?);
        while UnixStream::connect(socket).is_err() {
            if running.0.try_wait()?.is_some() {
                return Err(format!("{command:?} does not start").into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(running)
    }
}

/// A command, on one processor if it is to be.
fn on(processor: &str, pinned: bool, program: &str) -> Command {
    if !pinned {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(["-c", processor, program]);
    command
}

fn bench(rounds: usize, seconds: u32, pinned: bool) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let sockets = ["bimetal", "nbdkit"].map(|name| folder.path().join(name));
    let this = env::current_exe()?;
    let mut ours = on("0", pinned, &this.to_string_lossy());
    let mut theirs = on("0", pinned, "nbdkit");
    theirs.args(["--foreground", "--unix"]).arg(&sockets[1]).args(["memory", &format!("{MEBIBYTES}M")]);
    let _ours = Running::start(ours.arg("serve").arg(&sockets[0]), &sockets[0])?;
    let _theirs = Running::start(&mut theirs, &sockets[1])?;
    // Both have their memory before it counts.
    for socket in &sockets {
        fio(socket, "write", 16, &["--bs=1m"], pinned)?;
    }
    let seconds = format!("--runtime={seconds}");
    let options = ["--bs=4k", "--time_based", &seconds];
    println!("requests/s, median of {rounds} rounds{}; load {}", if pinned { ", pinned" } else { "" }, load());
    for (rw, depth) in WORKLOADS {
        let mut speeds = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            for turn in 0..2 {
                let which = (round + turn) % 2;
                speeds[which].push(fio(&sockets[which], rw, depth, &options, pinned)?);
            }
        }
        let [ours, theirs] = speeds.map(|mut speeds| {
            speeds.sort_by(f64::total_cmp);
            (speeds[speeds.len() / 2], speeds[0], speeds[speeds.len() - 1])
        });
        let ratio = ours.0 / theirs.0;
        println!(
            "{rw:9} depth {depth:2}  bimetal {:7.0} ({:.0} to {:.0})  nbdkit memory {:7.0} ({:.0} to {:.0})  ratio {ratio:.2}",
            ours.0, ours.1, ours.2, theirs.0, theirs.1, theirs.2
        );
    }
    println!("load {}", load());
    Ok(())
}

/// Requests per second.
fn fio(socket: &Path, rw: &str, depth: u32, options: &[&str], pinned: bool) -> Outcome<f64> {
    let mut fio = on("1", pinned, "fio");
    fio.args(["--name=nbd", "--ioengine=nbd", "--output-format=terse", "--terse-version=3", "--size=1g"])
        .arg(format!("--uri=nbd+unix:///?socket={}", socket.display()))
        .args([format!("--rw={rw}"), format!("--iodepth={depth}")])
        .args(options);
    let output = fio.output().map_err(|error| format!("{fio:?}: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let fields: Vec<&str> =
        printed.lines().find(|line| line.starts_with("3;")).unwrap_or_default().split(';').collect();
    // The eighth field is of reads, the forty-ninth of writes.
    let speed = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok());
    match (speed(7), speed(48)) {
        (Some(reads), Some(writes)) => Ok(reads + writes),
        _ => Err(format!("fio: {printed}{}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn load() -> String {
    fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()
}
