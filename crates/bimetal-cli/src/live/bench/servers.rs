//! The servers of a benchmark: a device of this process over NBD or as a file, nbdkit, and nbdfuse.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bimetal_live::BlockDevice;
use bimetal_live::fuse::Mount;
use bimetal_live::nbd::{Address, Export, Options, Server, Stop};

use super::client::{Target, missing};
use crate::failure::Failure;

/// A served device, the program that serves it, and the processes that work for its clients.
pub(super) struct Served {
    pub(super) program: &'static str,
    pub(super) target: Target,
    pub(super) processes: Vec<u32>,
}

impl Served {
    fn by_this_process(target: Target) -> Self {
        Self { program: "bimetal", target, processes: vec![std::process::id()] }
    }
}

/// A device served by this process over NBD.
pub(super) struct Ours {
    pub(super) served: Served,
    stop: Stop,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Ours {
    pub(super) fn serve(device: Arc<dyn BlockDevice>, socket: &Path) -> Result<Self, Failure> {
        let server = Server::bind(&Address::Unix(socket.into()), Export::default(), Options::default());
        let server = server.map_err(Failure::failed)?;
        let stop = server.stop();
        let served = Served::by_this_process(Target::Socket(socket.into()));
        Ok(Self { served, stop, thread: Some(thread::spawn(move || server.run(&*device))) })
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.stop.stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A device shown as a file by this process.
pub(super) struct OursAsFile {
    pub(super) served: Served,
    _mount: Mount,
}

impl OursAsFile {
    pub(super) fn mount(device: Arc<dyn BlockDevice>, file: &Path) -> Result<Self, Failure> {
        let mount = Mount::new(file, device).map_err(|error| Failure::failed(error.to_string()))?;
        let served = Served::by_this_process(Target::File(mount.file().into()));
        Ok(Self { served, _mount: mount })
    }
}

/// An nbdkit or nbdfuse process, which ends when this is dropped.
pub(super) struct Theirs {
    pub(super) served: Served,
    process: Child,
}

impl Theirs {
    /// Starts nbdkit, which serves a plugin with its arguments at a socket.
    pub(super) fn nbdkit(socket: &Path, plugin: &[&str]) -> Result<Self, Failure> {
        let ready = socket.with_extension("pid");
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--pidfile"]).arg(&ready).arg("--unix").arg(socket).args(plugin);
        Self::start("nbdkit", &mut command, Target::Socket(socket.into()), &ready)
    }

    /// Checks that nbdfuse is installed.
    pub(super) fn check_nbdfuse() -> Result<(), Failure> {
        let mut command = Command::new("nbdfuse");
        command.arg("--version").stdout(Stdio::null()).status().map_err(|error| missing(&command, &error))?;
        Ok(())
    }

    /// Starts nbdfuse, which shows the device behind a socket of this process as a file. The processor time of this
    /// process counts, too.
    pub(super) fn nbdfuse(socket: &Path, file: &Path) -> Result<Self, Failure> {
        File::create_new(file)?;
        let mut command = Command::new("nbdfuse");
        let ready = file.with_extension("pid");
        command.arg("--pidfile").arg(&ready).arg(file).arg(format!("nbd+unix:///?socket={}", socket.display()));
        let mut started = Self::start("nbdfuse", &mut command, Target::File(file.into()), &ready)?;
        started.served.processes.push(std::process::id());
        Ok(started)
    }

    fn start(program: &'static str, command: &mut Command, target: Target, ready: &Path) -> Result<Self, Failure> {
        command.stdin(Stdio::null());
        let process = command.spawn().map_err(|error| missing(command, &error))?;
        let served = Served { program, target, processes: vec![process.id()] };
        let mut started = Self { served, process };
        while !ready.exists() {
            if let Some(status) = started.process.try_wait()? {
                return Err(Failure::failed(format!("{program}: it ended with {status}")));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(started)
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if let Target::File(file) = &self.served.target {
            let _ = Command::new("fusermount3").args(["-u", "-q", "-z"]).arg(file).status();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
