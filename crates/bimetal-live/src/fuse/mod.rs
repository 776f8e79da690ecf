//! FUSE: a device as one file, which `mkfs.ext4` and `mount -o loop` can use directly.
//!
//! A [`Mount`] mounts a file system of one file, its root, over a file. Its threads serve one request at a time each.
//! Other front ends may serve the same device meanwhile. Writes of parts of a sector are atomic with respect to other
//! writes of the file, but not to writes of another front end.
//!
//! | subject | module |
//! |---|---|
//! | requests of any bytes, over whole sectors | `bytes` |
//! | the kernel's requests | `operations` |
//! | the file over which the device is mounted | `place` |

mod bytes;
mod error;
mod operations;
mod place;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use fuser::{Config, MountOption, Session, SessionACL};

use crate::block_device::BlockDevice;
use operations::{Disk, Gate};
use place::Place;

pub use error::MountError;
pub use place::check;

/// Threads that serve requests. A thread waits until its request is durable; threads that wait at the same time share a
/// commit.
const THREADS: usize = 16;
/// Number of files that a mount keeps open.
pub const OPEN_FILES: usize = THREADS + 1;
/// Time that clients have to close the file before it is unmounted.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time between two attempts to unmount.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(10);

/// A device shown as a file. Dropping this waits for requests under way and unmounts the file.
pub struct Mount {
    gate: Gate,
    is_ending: Arc<AtomicBool>,
    /// Closed when the file is unmounted.
    unmounted: Receiver<()>,
    place: Place,
}

impl Mount {
    /// Shows `device` at `file`, which must be empty or missing; a missing file is created. It is served from now on.
    ///
    /// # Errors
    /// The file cannot be used, or the system has no FUSE, or this process may not use it.
    pub fn new(file: &Path, device: Arc<dyn BlockDevice>) -> Result<Self, MountError> {
        let place = Place::take(file)?;
        let (sectors, read_only) = (device.sectors(), device.read_only());
        let gate = Gate::new(device);
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("bimetal".into()),
            MountOption::Subtype("bimetal".into()),
            MountOption::NoExec,
            if read_only { MountOption::RO } else { MountOption::RW },
        ];
        // Only this user may use it, as with a socket of the server.
        config.acl = SessionACL::Owner;
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => MountError::NoHelper(file.into()),
            // The helper prints its own message, with the end of the line.
            _ => {
                let source = io::Error::new(source.kind(), source.to_string().trim().trim_end_matches(';').to_owned());
                MountError::System { file: file.into(), source }
            }
        };
        let session =
            Session::new(Disk::new(gate.clone(), sectors, read_only), place.path(), &config).map_err(refused)?;
        let is_ending = Arc::<AtomicBool>::default();
        let (ended, unmounted) = channel();
        let ending = Arc::clone(&is_ending);
        let named = thread::Builder::new().name("fuse".into());
        let started = named.spawn(move || serve(session, &ending, ended));
        started.map_err(|source| MountError::System { file: file.into(), source })?;
        tracing::info!(file = %place.path().display(), read_only, "mounted");
        Ok(Self { gate, is_ending, unmounted, place })
    }

    /// Absolute path at which the device is shown.
    pub fn file(&self) -> &Path {
        self.place.path()
    }

    /// Unmounts the file as soon as no process has it open, and in any case after [`PATIENCE`].
    fn unmount(&self) {
        let file = self.place.path().display();
        let patience = Instant::now() + PATIENCE;
        while let Err(error) = self.place.unmount(false) {
            if self.unmounted.try_recv() == Err(TryRecvError::Disconnected) {
                return;
            }
            if Instant::now() < patience {
                thread::sleep(ATTEMPT_PAUSE);
                continue;
            }
            // From here on no request changes the device.
            self.gate.close();
            tracing::warn!(%file, %error, "a client keeps the file open: it gets errors from now on");
            if let Err(error) = self.place.unmount(true) {
                tracing::warn!(%file, %error, "the file stays mounted; `umount` it");
            }
            return;
        }
        if self.unmounted.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(%file, "a client keeps the file open: it gets errors from now on");
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::SeqCst);
        if self.unmounted.try_recv() != Err(TryRecvError::Disconnected) {
            self.unmount();
        }
        self.gate.close();
    }
}

/// Serves requests until the file is unmounted.
fn serve(session: Session<Disk>, is_ending: &AtomicBool, _ended: Sender<()>) {
    let served = session.run();
    match served {
        Err(error) => tracing::warn!(%error, "the file is not served any more"),
        Ok(()) if is_ending.load(Ordering::SeqCst) => tracing::info!("unmounted"),
        Ok(()) => tracing::info!("the file was unmounted; serving over NBD goes on"),
    }
}
