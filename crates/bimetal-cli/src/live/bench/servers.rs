//! The servers of a benchmark: a device of this process over NBD, as a file, as a virtio disk or as a disk of this machine;
//! nbdkit, nbdfuse, qemu-storage-daemon, and a loop device of the kernel.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bimetal_live::BlockDevice;
use bimetal_live::fuse::Mount;
use bimetal_live::nbd::{Address, Export, Options, Server, Stop};
use bimetal_live::store::Store;
use bimetal_live::ublk::{Disk, Number};
use bimetal_live::vhost_user::{self, Device, Running};

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
        let served = Served::by_this_process(Target::socket(socket));
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
        let served = Served::by_this_process(Target::file(mount.file()));
        Ok(Self { served, _mount: mount })
    }
}

/// A store as a virtio disk, served by this process.
pub(super) struct OursAsQueue {
    pub(super) served: Served,
    _running: Running,
}

impl OursAsQueue {
    pub(super) fn serve(store: &Arc<Store>, socket: &Path) -> Result<Self, Failure> {
        let device = Device::of(store, Arc::clone(store) as _, Options::default().poll, false);
        let server = vhost_user::Server::bind(socket, device, Arc::default()).map_err(Failure::failed)?;
        let served = Served::by_this_process(Target::Queue(socket.into()));
        Ok(Self { served, _running: server.start()? })
    }
}

/// A store as a disk of this machine, served by this process.
pub(super) struct OursAsDisk {
    pub(super) served: Served,
    _disk: Disk,
}

impl OursAsDisk {
    pub(super) fn attach(store: &Arc<Store>) -> Result<Self, Failure> {
        let disk = Disk::attach(Number::Any, Arc::clone(store) as _, false).map_err(Failure::failed)?;
        let served = Served::by_this_process(Target::file(disk.path()));
        Ok(Self { served, _disk: disk })
    }
}

/// A loop device over a file, served by the kernel. It is detached when this is dropped.
pub(super) struct Loop {
    pub(super) served: Served,
    device: PathBuf,
}

impl Loop {
    pub(super) fn attach(image: &Path) -> Result<Self, Failure> {
        let mut command = Command::new("losetup");
        // The page cache holds the file, as it holds those of the store.
        command.args(["--find", "--show"]).arg(image);
        let done = command.output().map_err(|error| missing(&command, &error))?;
        if !done.status.success() {
            let error = String::from_utf8_lossy(&done.stderr);
            let hint = "hint: loop devices need root and the kernel's driver (`modprobe loop`)";
            return Err(Failure::failed(format!("{}; {hint}", error.trim())));
        }
        let device = PathBuf::from(String::from_utf8_lossy(&done.stdout).trim());
        let served = Served { program: "loop", target: Target::file(&device), processes: Vec::new() };
        Ok(Self { served, device })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
    }
}

/// A process of another program, which ends when this is dropped.
pub(super) struct Theirs {
    pub(super) served: Served,
    process: Child,
    /// A file that it has mounted.
    mount: Option<PathBuf>,
}

impl Theirs {
    /// Starts nbdkit, which serves a plugin with its arguments at a socket.
    pub(super) fn nbdkit(socket: &Path, plugin: &[&str]) -> Result<Self, Failure> {
        let ready = socket.with_extension("pid");
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--pidfile"]).arg(&ready).arg("--unix").arg(socket).args(plugin);
        Self::start("nbdkit", &mut command, Target::socket(socket), &ready)
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
        let mut started = Self::start("nbdfuse", &mut command, Target::file(file), &ready)?;
        started.served.processes.push(std::process::id());
        started.mount = Some(file.into());
        Ok(started)
    }

    /// Starts qemu-storage-daemon, which serves an image as a virtio disk at a socket.
    pub(super) fn storage_daemon(socket: &Path, image: &Path) -> Result<Self, Failure> {
        let ready = socket.with_extension("pid");
        let mut command = Command::new("qemu-storage-daemon");
        // Threads of its own read and write the file, as for a virtual machine with default options.
        let disk = format!("driver=file,node-name=disk,filename={}", image.display());
        let export = "type=vhost-user-blk,id=export,node-name=disk,writable=on,addr.type=unix,addr.path=";
        command.args(["--blockdev", &disk, "--export", &format!("{export}{}", socket.display())]);
        command.arg("--pidfile").arg(&ready);
        Self::start("qemu-storage-daemon", &mut command, Target::Queue(socket.into()), &ready)
    }

    fn start(program: &'static str, command: &mut Command, target: Target, ready: &Path) -> Result<Self, Failure> {
        command.stdin(Stdio::null());
        let process = command.spawn().map_err(|error| missing(command, &error))?;
        let served = Served { program, target, processes: vec![process.id()] };
        let mut started = Self { served, process, mount: None };
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
        if let Some(file) = &self.mount {
            let _ = Command::new("fusermount3").args(["-u", "-q", "-z"]).arg(file).status();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file that the kernel shows as a loop device, if there is one.
    fn backing(device: &Path) -> Option<PathBuf> {
        let name = device.file_name().unwrap();
        std::fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"))
            .map(|file| file.trim_end().into())
            .ok()
    }

    #[test]
    fn a_loop_device_ends_with_its_benchmark() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        let error = Loop::attach(&image).err().unwrap();
        assert!(format!("{error:?}").contains("modprobe loop"), "{error:?}");
        File::create(&image).unwrap().set_len(1 << 20).unwrap();
        let has_loop_devices = Command::new("losetup").arg("--find").output().is_ok_and(|done| done.status.success());
        if !has_loop_devices {
            eprintln!("skipped: loop devices need root, and the kernel's driver");
            return;
        }
        let attached = Loop::attach(&image).unwrap();
        let device = attached.device.clone();
        assert_eq!(backing(&device), Some(image.clone()));
        drop(attached);
        assert_ne!(backing(&device), Some(image));
    }
}
