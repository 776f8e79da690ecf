//! The clients of a benchmark, fio and a virtual machine, and the workloads that they run.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use super::{Interrupted, REQUEST_BYTES, machine};
use crate::args::MeasureArgs;
use crate::failure::Failure;

/// A workload, in words of fio.
#[derive(Clone, Copy)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) rw: &'static str,
    pub(super) bytes: u32,
    /// Outstanding requests.
    pub(super) depth: u16,
    /// Clients, each with its own connection.
    pub(super) clients: u16,
    /// Whether each write is followed by a flush.
    pub(super) syncs: bool,
    /// Whether another client writes and flushes at the same time.
    pub(super) beside_writer: bool,
}

impl Workload {
    pub(super) const fn new(name: &'static str, rw: &'static str, bytes: u32, depth: u16) -> Self {
        Self { name, rw, bytes, depth, clients: 1, syncs: false, beside_writer: false }
    }

    pub(super) const fn connected(name: &'static str, rw: &'static str, bytes: u32, depth: u16) -> Self {
        Self { clients: 4, ..Self::new(name, rw, bytes, depth) }
    }

    pub(super) const fn synchronous(name: &'static str, clients: u16) -> Self {
        Self { clients, syncs: true, ..Self::new(name, "randwrite", REQUEST_BYTES, 1) }
    }
}

/// The place where a client finds a device.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// A device for fio: the options of its engine.
    Fio(Vec<String>),
    /// Unix socket of a vhost-user-blk server.
    Queue(PathBuf),
}

impl Target {
    /// The Unix socket of an NBD server.
    pub(super) fn socket(socket: &Path) -> Self {
        Self::Fio(vec!["--ioengine=nbd".into(), format!("--uri=nbd+unix:///?socket={}", socket.display())])
    }

    /// A file. The kernel does not cache it, so the server is measured.
    pub(super) fn file(file: &Path) -> Self {
        Self::Fio(vec!["--ioengine=libaio".into(), "--direct=1".into(), format!("--filename={}", file.display())])
    }
}

/// A client on a processor of its own: fio, or a virtual machine in this process.
pub(super) struct Client<'a> {
    pub(super) processor: Option<usize>,
    pub(super) args: &'a MeasureArgs,
    pub(super) interrupted: &'a Interrupted,
}

impl Client<'_> {
    /// Writes the whole range that will be read.
    pub(super) fn fill(&self, target: &Target) -> Result<(), Failure> {
        match target {
            Target::Fio(engine) => {
                self.start(engine, &["--rw=write", "--bs=1m", "--iodepth=4"].map(str::to_owned)).map(|_| ())
            }
            Target::Queue(socket) => machine::fill(self, socket),
        }
    }

    /// Runs a workload.
    pub(super) fn run(&self, target: &Target, workload: &Workload) -> Result<Requests, Failure> {
        match target {
            Target::Fio(engine) => self.run_fio(engine, workload),
            Target::Queue(socket) => machine::run(self, socket, workload),
        }
    }

    fn run_fio(&self, engine: &[String], workload: &Workload) -> Result<Requests, Failure> {
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
            // The writer starts before the measurement and ends after it.
            self.command(engine, &options(&writer, seconds(self.args.seconds + 1.0))).stdout(Stdio::null()).spawn()
        });
        if writer.is_some() {
            thread::sleep(Duration::from_millis(300));
        }
        let ran = self.start(engine, &options(workload, seconds(self.args.seconds)));
        if let Some(writer) = writer {
            writer?.wait()?;
        }
        ran
    }

    /// The command of fio.
    fn command(&self, engine: &[String], options: &[String]) -> Command {
        let mut command = match self.processor {
            Some(processor) => {
                let mut command = Command::new("taskset");
                command.args(["--cpu-list", &processor.to_string(), "fio"]);
                command
            }
            None => Command::new("fio"),
        };
        command.args(["--name=bench", "--output-format=json", "--randrepeat=0"]);
        command.arg(format!("--size={}", self.args.bytes()));
        command.args(engine);
        command.args(options);
        command
    }

    fn start(&self, engine: &[String], options: &[String]) -> Result<Requests, Failure> {
        let mut command = self.command(engine, options);
        let done = command.output().map_err(|error| missing(&command, &error))?;
        self.interrupted.check()?;
        let printed = String::from_utf8_lossy(&done.stdout);
        // The engine prints a line of its own before the JSON.
        let parsed = printed.find('{').and_then(|at| serde_json::from_str::<Value>(&printed[at..]).ok());
        let sum = |value: &Value, figure: &str| {
            let job = &value["jobs"][0];
            Some(job["read"][figure].as_f64()? + job["write"][figure].as_f64()?)
        };
        // A workload only reads or only writes.
        let p99_us = |value: &Value| {
            let of = |kind: &str| value["jobs"][0][kind]["clat_ns"]["percentile"]["99.000000"].as_f64();
            Some(of("read").unwrap_or(0.0).max(of("write").unwrap_or(0.0)) / 1e3)
        };
        let requests =
            parsed.as_ref().and_then(|value| Some((sum(value, "iops")?, sum(value, "total_ios")?, p99_us(value)?)));
        match requests {
            Some((per_second, count, p99_us)) if done.status.success() && per_second > 0.0 && count > 0.0 => {
                Ok(Requests { per_second, count, p99_us, own_cpu_seconds: 0.0 })
            }
            _ => Err(Failure::failed(format!("fio: {}", String::from_utf8_lossy(&done.stderr).trim()))),
        }
    }
}

/// Requests of a client.
pub(super) struct Requests {
    pub(super) per_second: f64,
    pub(super) count: f64,
    /// 99th percentile of their durations, in microseconds.
    pub(super) p99_us: f64,
    /// Processor time of a client in this process.
    pub(super) own_cpu_seconds: f64,
}

impl Requests {
    /// Requests of this thread, which has done nothing else, within `elapsed`. There is at least one.
    pub(super) fn in_process(elapsed: Duration, mut durations: Vec<Duration>) -> Self {
        let count = durations.len();
        let (_, p99, _) = durations.select_nth_unstable((count * 99).div_ceil(100) - 1);
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        Self {
            per_second: count as f64 / elapsed.as_secs_f64(),
            count: count as f64,
            p99_us: p99.as_secs_f64() * 1e6,
            own_cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        }
    }
}

pub(super) fn missing(command: &Command, error: &io::Error) -> Failure {
    Failure::failed(format!(
        "{}: {error}; hint: `bench nbd` needs fio with its nbd engine, taskset and nbdkit; `bench fuse` fio, taskset and \
         nbdfuse; `bench vhost-user` qemu-storage-daemon",
        command.get_program().display()
    ))
}
