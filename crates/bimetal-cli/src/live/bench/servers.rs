//! The servers of a benchmark: a device of this process, and nbdkit.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bimetal_live::BlockDevice;
use bimetal_live::nbd::{Address, Export, Options, Server, Stop};

use super::client::missing;
use crate::failure::Failure;

/// A device that is served by this process.
pub(super) struct Ours {
    pub(super) socket: PathBuf,
    stop: Stop,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Ours {
    pub(super) fn serve(device: Arc<dyn BlockDevice>, socket: &Path) -> Result<Self, Failure> {
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
pub(super) struct Theirs {
    pub(super) socket: PathBuf,
    pub(super) process: Child,
}

impl Theirs {
    pub(super) fn start(socket: &Path, plugin: &[&str]) -> Result<Self, Failure> {
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
