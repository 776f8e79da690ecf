//! A served store, and the file system on it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::common::Bench;

/// Time limit for every step.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `is_so` returns true. Fails with `what` if this takes too long.
pub fn until(what: &str, mut is_so: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let start = Instant::now();
    while !is_so()? {
        if start.elapsed() > PATIENCE {
            return Err(format!("{what}: not in {} seconds", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Runs a program, which must succeed. Returns its output.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let ran = Command::new("timeout").args(["-k", "5", "60", program]).args(arguments).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("{program}: {error}"))?;
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if ran.status.success() {
        Ok(out.into_owned())
    } else {
        Err(format!("{program} {arguments:?}: {}\n{out}\n{err}", ran.status))
    }
}

/// A process that can be killed from another thread.
#[derive(Clone)]
pub struct Killable {
    child: Arc<Mutex<Child>>,
    is_killed: Arc<AtomicBool>,
}

impl Killable {
    /// Whether it was not killed yet.
    pub fn lives(&self) -> bool {
        !self.is_killed.load(Ordering::SeqCst)
    }

    fn kill(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        child.wait().unwrap();
    }
}

/// Access of a file system to the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FrontEnd {
    /// Over NBD, through nbdfuse.
    Nbd,
    /// Through the file mounted by the server itself.
    Fuse,
}

impl FrontEnd {
    /// Options of the server.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Self::Nbd => &[],
            Self::Fuse => &["--fuse", "disk"],
        }
    }
}

/// `bimetal serve` of the store `s` of a bench.
pub struct Server {
    process: Killable,
    socket: PathBuf,
    /// File at which it may have mounted the device.
    file: PathBuf,
    killer: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts it, without waiting until it serves.
    pub fn start(bench: &Bench, options: &[&str]) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(bench.path("log")).unwrap();
        let arguments = [&["serve", "s"], options].concat();
        let child =
            bench.command(&arguments).stdout(File::create(bench.path("uri")).unwrap()).stderr(log).spawn().unwrap();
        let process = Killable { child: Arc::new(Mutex::new(child)), is_killed: Arc::default() };
        Self { process, socket: bench.path("s/nbd.sock"), file: bench.path("disk"), killer: None }
    }

    /// Whether it got `kill -9`.
    pub fn is_killed(&self) -> bool {
        !self.process.lives()
    }

    /// A handle with which another thread can see whether it was killed.
    pub fn lifeline(&self) -> Killable {
        self.process.clone()
    }

    fn ended(&self) -> Option<ExitStatus> {
        self.process.child.lock().unwrap().try_wait().unwrap()
    }

    /// Waits until it takes connections.
    pub fn wait_until_served(&self) -> Result<(), String> {
        until("the server takes connections", || match self.ended() {
            Some(status) => Err(format!("the server has ended: {status}")),
            None => Ok(UnixStream::connect(&self.socket).is_ok()),
        })
    }

    /// Kills it after a delay, from another thread.
    pub fn kill_after(&mut self, delay: Duration) {
        let process = self.process.clone();
        self.killer = Some(thread::spawn(move || {
            thread::sleep(delay);
            process.kill();
        }));
    }

    pub fn kill(&self) {
        self.process.kill();
    }

    /// Asks it to stop, if it has not ended.
    pub fn terminate(&self) {
        let mut child = self.process.child.lock().unwrap();
        if child.try_wait().unwrap().is_none() {
            Command::new("kill").arg(child.id().to_string()).status().unwrap();
        }
    }

    /// Waits until it has ended, by itself or by the kill. Fails if it ended with an error.
    pub fn wait(&mut self) -> Result<(), String> {
        let mut status = None;
        until("the server ends", || {
            status = self.ended();
            Ok(status.is_some())
        })?;
        if let Some(killer) = self.killer.take() {
            killer.join().unwrap();
        }
        if self.is_killed() || status.unwrap().success() {
            Ok(())
        } else {
            Err(format!("the server ended with {status:?}"))
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill();
        if let Some(killer) = self.killer.take() {
            let _ = killer.join();
        }
        // A killed server leaves its mount. There is none if it had stopped, or if it mounts nothing.
        let _ = run("umount", &["-l", self.file.to_str().unwrap()]);
    }
}

/// nbdfuse, which shows an export as a file. It is stopped at the end, even if the server has failed.
struct NbdFuse {
    process: Child,
    folder: PathBuf,
}

impl NbdFuse {
    /// Starts it. Returns it with the path of the file.
    fn start(bench: &Bench) -> Result<(Self, PathBuf), String> {
        let folder = bench.path("export");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("disk");
        let log = OpenOptions::new().create(true).append(true).open(bench.path("nbdfuse.log")).unwrap();
        let uri = format!("nbd+unix:///?socket={}", bench.path("s/nbd.sock").display());
        let process = Command::new("nbdfuse").arg(&file).arg(uri).stderr(log).spawn().unwrap();
        let mut nbdfuse = Self { process, folder };
        until("nbdfuse makes a file", || match nbdfuse.process.try_wait().unwrap() {
            Some(status) => Err(format!("nbdfuse has ended: {status}")),
            None => Ok(file.exists()),
        })?;
        Ok((nbdfuse, file))
    }
}

impl Drop for NbdFuse {
    fn drop(&mut self) {
        let folder = self.folder.to_str().unwrap();
        let start = Instant::now();
        let mut has_ended = || self.process.try_wait().is_ok_and(|ended| ended.is_some());
        while start.elapsed() < Duration::from_secs(10) && run("fusermount3", &["-u", folder]).is_err() && !has_ended()
        {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = until("nbdfuse ends", || Ok(has_ended()));
        // An nbdfuse that ended by itself may have left its mount.
        let _ = run("fusermount3", &["-u", "-z", folder]);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The served device as a block device with a file system. It is detached at the end, even if the server has failed.
pub struct Disk {
    /// Dropped after the loop device over its file.
    _nbdfuse: Option<NbdFuse>,
    device: String,
    /// Mount point.
    pub fs: PathBuf,
    is_mounted: bool,
}

impl Disk {
    /// Attaches the served device as a block device.
    pub fn attach(bench: &Bench, front_end: FrontEnd) -> Result<Self, String> {
        let fs = bench.path("fs");
        fs::create_dir_all(&fs).unwrap();
        let (nbdfuse, file) = match front_end {
            FrontEnd::Nbd => NbdFuse::start(bench).map(|(nbdfuse, file)| (Some(nbdfuse), file))?,
            FrontEnd::Fuse => (None, bench.path("disk")),
        };
        let device = run("losetup", &["--find", "--show", file.to_str().unwrap()])?.trim().to_owned();
        Ok(Self { _nbdfuse: nbdfuse, device, fs, is_mounted: false })
    }

    /// Makes a file system with 4-KiB blocks: by default, a small file system has smaller blocks.
    pub fn format(&self) -> Result<(), String> {
        run("mkfs.ext4", &["-q", "-b", "4096", &self.device]).map(drop)
    }

    pub fn mount(&mut self) -> Result<(), String> {
        run("mount", &["-t", "ext4", &self.device, self.fs.to_str().unwrap()])?;
        self.is_mounted = true;
        Ok(())
    }

    pub fn unmount(&mut self) -> Result<(), String> {
        let fs = self.fs.to_str().unwrap().to_owned();
        // A killed process may keep files open for a moment.
        until("the file system is unmounted", || Ok(run("umount", &[&fs]).is_ok()))?;
        self.is_mounted = false;
        Ok(())
    }

    /// Mounts it, so that the kernel replays the file system's journal. Then the checker must find no errors.
    pub fn mount_checked(&mut self) -> Result<(), String> {
        self.mount()?;
        self.unmount()?;
        run("e2fsck", &["-f", "-n", &self.device])?;
        self.mount()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted && self.unmount().is_err() {
            let _ = run("umount", &["-l", self.fs.to_str().unwrap()]);
        }
        let _ = run("losetup", &["--detach", &self.device]);
    }
}
