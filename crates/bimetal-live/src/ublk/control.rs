//! A disk from its start to its end.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle, Scope};
use std::time::{Duration, Instant};

use libublk::ctrl::{UblkCtrl, UblkCtrlBuilder, UblkQueueAffinity};
use libublk::io::{BufDescList, UblkDev, UblkQueue};
use libublk::sys::{UBLK_F_USER_COPY, UBLK_S_DEV_DEAD};
use libublk::{UblkError, UblkFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::parameters::{DATA_BYTES_MAX, DEPTH, parameters};
use super::queue::Server;
use super::request::KernelMemory;
use super::{AttachError, Number};
use crate::block_device::{BlockDevice, SECTOR_BYTES};
use crate::requests::{QUEUE_THREADS_MAX, WORKERS};

/// The driver's file.
const CONTROL: &str = "/dev/ublk-control";
/// Name of the server for other programs.
const NAME: &str = "bimetal";
/// Time for a server that stops to delete its disk.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time for the driver to see that a server was killed, and to delete its disk. It takes longer on a busy machine.
const KILLED_PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// Checks that this process can make a disk.
///
/// # Errors
/// The driver is not loaded, or this process may not use it.
pub fn check() -> Result<(), AttachError> {
    open(Path::new(CONTROL))
}

fn open(control: &Path) -> Result<(), AttachError> {
    match OpenOptions::new().read(true).write(true).open(control) {
        Ok(_) => Ok(()),
        Err(source) if source.kind() == io::ErrorKind::PermissionDenied => Err(AttachError::NotPermitted { source }),
        Err(source) => Err(AttachError::NoDriver { source }),
    }
}

/// A disk of this machine. Dropping this stops it: the kernel writes its cached data, and later requests fail.
pub struct Disk {
    path: PathBuf,
    /// Closed to stop the disk.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Disk {
    /// Makes `device` a disk. It is served from now on. `is_paced` says whether its answers are delayed.
    ///
    /// # Errors
    /// The driver is missing or too old, this process may not use it, the number is taken, or the system refuses a step.
    pub fn attach(number: Number, device: Arc<dyn BlockDevice>, is_paced: bool) -> Result<Self, AttachError> {
        check()?;
        let (tell, told) = channel();
        let (stop, stopped) = channel();
        let run = move || {
            if let Err(error) = run(number, device, is_paced, &tell, &stopped) {
                let _ = tell.send(Err(error));
            }
        };
        // All commands to the driver come from this thread, which has the ring for them.
        let started = thread::Builder::new().name("ublk".into()).spawn(run);
        let thread = started.map_err(|source| AttachError::System { step: "a thread", source })?;
        let ended = |_| AttachError::System { step: "its thread", source: io::ErrorKind::BrokenPipe.into() };
        let path = told.recv().map_err(ended).flatten()?;
        tracing::info!(disk = %path.display(), "attached");
        Ok(Self { path, stop: Some(stop), thread: Some(thread) })
    }

    /// The path of the disk.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes the disk, tells its path, serves it until it is to be stopped, and deletes it.
fn run(
    number: Number,
    device: Arc<dyn BlockDevice>,
    is_paced: bool,
    tell: &Sender<Result<PathBuf, AttachError>>,
    stopped: &Receiver<()>,
) -> Result<(), AttachError> {
    // Deleted from the driver when it is dropped, after its files are closed.
    let control = add(number)?;
    let parameters = parameters(device.sectors(), device.read_only());
    let set = |kernel: &mut UblkDev| {
        // The ring also has a wake-up.
        (kernel.tgt.sq_depth, kernel.tgt.cq_depth) = (2 * DEPTH, 2 * DEPTH);
        kernel.tgt.dev_size = parameters.basic.dev_sectors * SECTOR_BYTES;
        kernel.tgt.params = parameters;
        Ok(())
    };
    let kernel = UblkDev::new(NAME.into(), set, &control).map_err(failed("opening /dev/ublkcN"))?;
    let queues = kernel.dev_info.nr_hw_queues;
    let system = |step| move |source| AttachError::System { step, source };
    let memory = KernelMemory::new(data_file(&kernel).map_err(system("sharing /dev/ublkcN"))?);
    let server = Server::new(device, is_paced, memory, queues).map_err(system("an eventfd"))?;
    let is_ending = AtomicBool::new(false);
    thread::scope(|scope| {
        let started = start_threads(scope, &kernel, &server, &is_ending);
        let started = started.and_then(|threads| {
            for (queue, thread) in threads {
                place(&control, queue, thread);
                control.configure_queue(&kernel, queue, thread).map_err(failed("describing it in /run"))?;
            }
            done(control.start_dev(&kernel)).map_err(failed("starting it"))
        });
        if started.is_ok() {
            let _ = tell.send(Ok(control.get_bdev_path().into()));
            // An error when the sender is dropped.
            let _ = stopped.recv();
        }
        is_ending.store(true, Ordering::SeqCst);
        // The driver also cancels the queues of a disk that has not started. Another program may have removed the disk.
        match done(control.stop_dev()).map_err(system_error) {
            Err(error) if error.raw_os_error() != Some(Errno::NODEV.raw_os_error()) => {
                tracing::warn!(%error, "the disk does not stop");
            }
            _ => {}
        }
        server.dismiss();
        started
    })
}

/// Adds a disk to the driver, without starting it.
fn add(number: Number) -> Result<UblkCtrl, AttachError> {
    let id = match number {
        Number::Any => -1,
        Number::Is(number) => {
            make_free(number)?;
            number as i32
        }
    };
    let queues = thread::available_parallelism().map_or(1, usize::from).min(QUEUE_THREADS_MAX);
    let builder = UblkCtrlBuilder::default()
        .name(NAME)
        .id(id)
        .nr_queues(queues as u16)
        .depth(DEPTH)
        .io_buf_bytes(DATA_BYTES_MAX)
        .ctrl_flags(UBLK_F_USER_COPY.into())
        // Otherwise the deletion waits until nobody has the disk open.
        .dev_flags(UblkFlags::UBLK_DEV_F_ADD_DEV | UblkFlags::UBLK_DEV_F_DEL_DEV_ASYNC);
    let control = builder.build().map_err(|error| match (system_error(error), number) {
        (source, Number::Is(number)) if source.kind() == io::ErrorKind::AlreadyExists => AttachError::Held(number),
        (source, _) => AttachError::System { step: "adding a disk", source },
    })?;
    // The driver clears the flags that it does not know.
    if control.dev_info().flags & u64::from(UBLK_F_USER_COPY) == 0 {
        return Err(AttachError::TooOld);
    }
    Ok(control)
}

/// Deletes the disk that a killed server has left with this number. If the library cannot add a disk, it deletes any disk with the
/// number, so that the number must be free before.
fn make_free(number: u32) -> Result<(), AttachError> {
    // Containers also have it, unlike files in `/dev`.
    let entry = PathBuf::from(format!("/sys/class/ublk-char/ublkc{number}"));
    if !entry.exists() {
        return Ok(());
    }
    let start = Instant::now();
    let left = UblkCtrl::new_simple(number as i32).ok();
    while entry.exists() {
        let state = left.as_ref().filter(|left| left.read_dev_info().is_ok()).map(|left| left.dev_info().state);
        let is_dead = state.is_some_and(|state| u32::from(state) == UBLK_S_DEV_DEAD);
        let is_served = left.as_ref().is_some_and(|left| is_running(left.dev_info().ublksrv_pid));
        if start.elapsed() > if is_served && !is_dead { PATIENCE } else { KILLED_PATIENCE } {
            return Err(if is_dead { AttachError::Held(number) } else { AttachError::Taken(number) });
        }
        if let Some(left) = left.as_ref().filter(|_| is_dead) {
            // An error means that it is gone already.
            let _ = left.del_dev_async();
        }
        thread::sleep(LOOK_PAUSE);
    }
    Ok(())
}

/// Whether a process runs. A killed one that its parent has not seen yet has no program any more.
fn is_running(process: i32) -> bool {
    std::fs::read_link(format!("/proc/{process}/exe")).is_ok()
}

/// Starts the workers and the threads of the queues. Returns the number of each queue with its thread, once it can take requests.
fn start_threads<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    kernel: &'env UblkDev,
    server: &'env Server,
    is_ending: &'env AtomicBool,
) -> Result<Vec<(u16, i32)>, AttachError> {
    let refused = |source| AttachError::System { step: "a thread", source };
    for worker in 0..WORKERS {
        let work = || {
            UblkCtrl::init_queue_thread();
            server.work();
        };
        thread::Builder::new().name(format!("ublk-{worker}")).spawn_scoped(scope, work).map_err(refused)?;
    }
    let (tell, told) = channel();
    for queue in 0..kernel.dev_info.nr_hw_queues {
        let tell = tell.clone();
        let serve = move || serve_queue(queue, kernel, server, is_ending, tell);
        thread::Builder::new().name(format!("ublk-queue-{queue}")).spawn_scoped(scope, serve).map_err(refused)?;
    }
    drop(tell);
    told.iter().collect()
}

fn serve_queue(
    number: u16,
    kernel: &UblkDev,
    server: &Server,
    is_ending: &AtomicBool,
    tell: Sender<Result<(u16, i32), AttachError>>,
) {
    // The kernel must not let this thread wait for memory that the disk's own writes would free.
    let thread = UblkCtrl::init_queue_thread();
    let made = UblkQueue::new(number, kernel);
    let queue = match made.and_then(|queue| queue.submit_fetch_commands_unified(BufDescList::Slices(None))) {
        Ok(queue) => queue,
        Err(error) => {
            let _ = tell.send(Err(failed("a queue")(error)));
            return;
        }
    };
    let _ = tell.send(Ok((number, thread)));
    drop(tell);
    match server.serve(&queue) {
        Err(error) => tracing::warn!(%error, number, "a queue of the disk is not served any more"),
        Ok(()) if number == 0 && !is_ending.load(Ordering::SeqCst) => {
            tracing::warn!("the disk was removed; serving over NBD goes on");
        }
        Ok(()) => {}
    }
}

/// Lets the thread of a queue run only on the queue's processors, where its requests are made. Processors that this process may not use
/// are left out; without the others the thread stays where it is. It also stays if the system refuses, which costs only time.
fn place(control: &UblkCtrl, queue: u16, thread: i32) {
    let mut of_queue = UblkQueueAffinity::new();
    if control.get_queue_affinity(queue.into(), &mut of_queue).is_err() {
        return;
    }
    let placed = sched_getaffinity(None).map(|permitted| common(&of_queue.to_bits_vec(), &permitted));
    if let Ok(Some(processors)) = placed {
        let _ = sched_setaffinity(Pid::from_raw(thread), &processors);
    }
}

/// Those of the processors that are permitted; `None` if there are none.
fn common(processors: &[usize], permitted: &CpuSet) -> Option<CpuSet> {
    let mut common = CpuSet::new();
    processors.iter().filter(|&&processor| permitted.is_set(processor)).for_each(|&processor| common.set(processor));
    (common.count() > 0).then_some(common)
}

/// Another handle of `/dev/ublkcN`, which the driver opens once. The library keeps the number of its handle only.
fn data_file(kernel: &UblkDev) -> io::Result<File> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(own, kernel.tgt.fds[0], PidfdGetfdFlags::empty())?.into())
}

/// The library returns `EBUSY` as success.
fn done(result: Result<i32, UblkError>) -> Result<(), UblkError> {
    match result? {
        error @ ..0 => Err(UblkError::OtherError(error)),
        _ => Ok(()),
    }
}

fn failed(step: &'static str) -> impl Fn(UblkError) -> AttachError {
    move |error| AttachError::System { step, source: system_error(error) }
}

fn system_error(error: UblkError) -> io::Error {
    match error {
        UblkError::IOError(error) => error,
        UblkError::UringIOError(error) | UblkError::OtherError(error) => io::Error::from_raw_os_error(-error),
        error => io::Error::other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_process_does_not_run() {
        let mut process = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let number = process.id() as i32;
        assert!(is_running(number) && is_running(std::process::id() as i32));
        process.kill().unwrap();
        let killed = Instant::now();
        while is_running(number) {
            assert!(killed.elapsed() < Duration::from_secs(20), "still running");
            thread::sleep(LOOK_PAUSE);
        }
        process.wait().unwrap();
        assert!(!is_running(number));
    }

    #[test]
    fn a_queue_stays_on_the_processors_of_the_process() {
        let mut permitted = CpuSet::new();
        [1, 2].into_iter().for_each(|processor| permitted.set(processor));
        let of = |processors: &[usize]| {
            common(processors, &permitted)
                .map(|common| (0..4).filter(|&processor| common.is_set(processor)).collect::<Vec<_>>())
        };
        assert_eq!((of(&[0, 1, 2, 3]), of(&[0, 2])), (Some(vec![1, 2]), Some(vec![2])));
        assert_eq!((of(&[0, 3]), of(&[])), (None, None));
    }

    #[test]
    fn a_missing_driver_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let error = open(&folder.path().join("control")).unwrap_err().to_string();
        assert!(error.contains("/dev/ublk-control: No such file") && error.contains("`modprobe ublk_drv`"), "{error}");
        open(tempfile::NamedTempFile::new().unwrap().path()).unwrap();
    }

    #[test]
    fn errors_of_the_library_are_those_of_the_system() {
        let number = |error: UblkError| system_error(error).raw_os_error();
        assert_eq!(number(UblkError::UringIOError(-22)), Some(22));
        assert_eq!(number(UblkError::OtherError(-13)), Some(13));
        assert_eq!(number(UblkError::IOError(io::Error::from_raw_os_error(1))), Some(1));
        assert!(done(Ok(0)).is_ok());
        assert_eq!(done(Ok(-16)).map_err(number), Err(Some(16)), "it is busy");
        let error = failed("starting it")(UblkError::UringIOError(-22)).to_string();
        assert!(error.starts_with("ublk: starting it: Invalid argument"), "{error}");
    }
}
