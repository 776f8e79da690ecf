//! The clients of a benchmark: fio, and a virtual machine.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::machine::{self, End};
use super::workload::{Requests, Workload};
use super::{Interrupted, pin};
use crate::args::MeasureArgs;
use crate::failure::Failure;

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
    pub(super) interrupted: Interrupted,
}

impl<'a> Client<'a> {
    /// A client that can be interrupted from now on, on another processor than the servers.
    pub(super) fn new(args: &'a MeasureArgs) -> Result<Self, Failure> {
        let interrupted = Interrupted::watch()?;
        Ok(Self { processor: pin()?, args, interrupted })
    }

    /// Writes the whole range that will be read.
    pub(super) fn fill(&self, target: &Target) -> Result<(), Failure> {
        match target {
            Target::Fio(engine) => {
                self.start(engine, &["--rw=write", "--bs=1m", "--iodepth=4"].map(str::to_owned)).map(|_| ())
            }
            Target::Queue(socket) => {
                let in_order = Workload::new("fill", "write", 1 << 20, 4);
                self.run_machine(socket, &in_order, End::AtEndOfDisk).map(|_| ())
            }
        }
    }

    /// Runs a workload.
    pub(super) fn run(&self, target: &Target, workload: &Workload) -> Result<Requests, Failure> {
        match target {
            Target::Fio(engine) => self.run_fio(engine, workload),
            Target::Queue(socket) => {
                let end = End::After(Duration::from_secs_f64(self.args.seconds));
                self.run_machine(socket, workload, end)
            }
        }
    }

    fn run_machine(&self, socket: &Path, workload: &Workload, end: End) -> Result<Requests, Failure> {
        let ran = machine::run(socket, workload, self.args.bytes(), self.processor, end);
        self.interrupted.check()?;
        ran.map_err(|error| Failure::failed(format!("virtual machine at {}: {error}", socket.display())))
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
        let longest_us = |value: &Value| {
            let job = &value["jobs"][0];
            let durations = [&job["read"]["clat_ns"], &job["write"]["clat_ns"], &job["sync"]["lat_ns"]];
            durations.iter().filter_map(|of| of["max"].as_f64()).fold(0.0, f64::max) / 1e3
        };
        let requests = parsed.as_ref().and_then(|value| {
            Some(Requests {
                per_second: sum(value, "iops")?,
                count: sum(value, "total_ios")?,
                p99_us: p99_us(value)?,
                longest_us: longest_us(value),
                own_cpu_seconds: 0.0,
            })
        });
        match requests {
            Some(requests) if done.status.success() && requests.per_second > 0.0 && requests.count > 0.0 => {
                Ok(requests)
            }
            Some(_) if done.status.success() => Err(Failure::failed(format!(
                "fio: no request was completed in {} s; hint: raise `--seconds`",
                self.args.seconds
            ))),
            _ => Err(Failure::failed(format!("fio: {}", String::from_utf8_lossy(&done.stderr).trim()))),
        }
    }
}

pub(super) fn missing(command: &Command, error: &io::Error) -> Failure {
    Failure::failed(format!(
        "{}: {error}; hint: `bench nbd` needs fio with its nbd engine, taskset and nbdkit; `bench fuse` fio, taskset and \
         nbdfuse; `bench vhost-user` qemu-storage-daemon; `bench ublk` fio, taskset and losetup",
        command.get_program().display()
    ))
}
