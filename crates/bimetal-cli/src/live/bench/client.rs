//! The client of a benchmark: fio, and the workloads that it runs.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{Interrupted, REQUEST_BYTES};
use crate::args::MeasureArgs;
use crate::failure::Failure;

/// A workload of fio.
#[derive(Clone, Copy)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) rw: &'static str,
    pub(super) bytes: u64,
    /// Outstanding requests.
    pub(super) depth: u32,
    /// Clients, each with its own connection.
    pub(super) clients: u32,
    /// Whether each write is followed by a flush.
    pub(super) syncs: bool,
    /// Whether another client writes and flushes at the same time.
    pub(super) beside_writer: bool,
}

impl Workload {
    pub(super) const fn new(name: &'static str, rw: &'static str, bytes: u64, depth: u32) -> Self {
        Self { name, rw, bytes, depth, clients: 1, syncs: false, beside_writer: false }
    }

    pub(super) const fn connected(name: &'static str, rw: &'static str, bytes: u64, depth: u32) -> Self {
        Self { clients: 4, ..Self::new(name, rw, bytes, depth) }
    }

    pub(super) const fn synchronous(name: &'static str, clients: u32) -> Self {
        Self { clients, syncs: true, ..Self::new(name, "randwrite", REQUEST_BYTES, 1) }
    }
}

/// The place where a client finds a device.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// Unix socket of an NBD server.
    Socket(PathBuf),
    File(PathBuf),
}

/// The client.
pub(super) struct Fio<'a> {
    pub(super) processor: Option<usize>,
    pub(super) args: &'a MeasureArgs,
    pub(super) interrupted: &'a Interrupted,
}

impl Fio<'_> {
    /// Writes the whole range that will be read.
    pub(super) fn fill(&self, target: &Target) -> Result<(), Failure> {
        self.start(target, &["--rw=write", "--bs=1m", "--iodepth=4"].map(str::to_owned)).map(|_| ())
    }

    /// Runs a workload.
    pub(super) fn run(&self, target: &Target, workload: &Workload) -> Result<Requests, Failure> {
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
            self.command(target, &options(&writer, seconds(self.args.seconds + 1.0))).stdout(Stdio::null()).spawn()
        });
        if writer.is_some() {
            thread::sleep(Duration::from_millis(300));
        }
        let ran = self.start(target, &options(workload, seconds(self.args.seconds)));
        if let Some(writer) = writer {
            writer?.wait()?;
        }
        ran
    }

    fn command(&self, target: &Target, options: &[String]) -> Command {
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
        match target {
            Target::Socket(socket) => {
                command.args(["--ioengine=nbd", &format!("--uri=nbd+unix:///?socket={}", socket.display())])
            }
            // The kernel does not cache such a file, so the server is measured.
            Target::File(file) => {
                command.args(["--ioengine=libaio", "--direct=1", &format!("--filename={}", file.display())])
            }
        };
        command.args(options);
        command
    }

    fn start(&self, target: &Target, options: &[String]) -> Result<Requests, Failure> {
        let mut command = self.command(target, options);
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
                Ok(Requests { per_second, count, p99_us })
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
}

pub(super) fn missing(command: &Command, error: &io::Error) -> Failure {
    Failure::failed(format!(
        "{}: {error}; hint: `bimetal bench` needs fio and taskset; `nbd` also fio's nbd engine and nbdkit, `fuse` nbdfuse",
        command.get_program().display()
    ))
}
