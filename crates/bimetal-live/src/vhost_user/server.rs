//! The socket for virtual machines, which connect one at a time.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use vhost_user_backend::VhostUserDaemon;
use vm_memory::GuestMemoryMmap;
use vmm_sys_util::epoll::EventSet;

use super::guest::{BEGIN_EVENT, Device, END_EVENT, Guest, Memory};
use crate::nbd::{Address, ListenError, Listener, Remote, Stop, Tally};
use crate::requests::WORKERS;

/// Pause after a failed connection, such as for too many open files.
const FAILED_PAUSE: Duration = Duration::from_millis(100);
/// Open files of a virtual machine with eight queues: three for each queue, memory, connection, threads.
pub const OPEN_FILES: usize = 64;

/// A socket for virtual machines.
pub struct Server {
    listener: Listener,
    device: Arc<Device>,
    tally: Arc<Tally>,
}

impl Server {
    /// Listens at `path`. Virtual machines that connect wait until [`Server::start`].
    ///
    /// # Errors
    /// Nothing can listen there: another server does, the path is a file, or the system refuses.
    pub fn bind(path: &Path, device: Device, tally: Arc<Tally>) -> Result<Self, ListenError> {
        let listener = Listener::bind(&Address::Unix(path.into()), Remote::Refused, false)?;
        Ok(Self { listener, device: Arc::new(device), tally })
    }

    /// Serves virtual machines until the result is dropped.
    ///
    /// # Errors
    /// The system refuses a thread or a pipe.
    pub fn start(self) -> io::Result<Running> {
        let (stop, woken) = Stop::new()?;
        let current = Arc::<Mutex<Option<Arc<Guest>>>>::default();
        let (stopped, shared) = (stop.clone(), Arc::clone(&current));
        let serve = move || {
            if let Err(error) = self.serve(&woken, &stopped, &shared) {
                tracing::warn!(%error, "no more virtual machines are served");
            }
        };
        let thread = thread::Builder::new().name("vhost-user".into()).spawn(serve)?;
        Ok(Running { stop, current, thread: Some(thread) })
    }

    fn serve(&self, woken: &OwnedFd, stop: &Stop, current: &Mutex<Option<Arc<Guest>>>) -> io::Result<()> {
        let own = UnixListener::from(self.listener.as_fd().try_clone_to_owned()?);
        let mut listener = vhost::vhost_user::Listener::from(own);
        let mut was_refused = false;
        while wait_for_one(&self.listener, woken, stop)? {
            let guest = Arc::new(Guest::new(Arc::clone(&self.device), Memory::new(GuestMemoryMmap::new())));
            *current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&guest));
            let _open = self.tally.accept();
            // A refused VMM may connect again each second.
            if !was_refused {
                tracing::info!("a virtual machine has connected");
            }
            let ended = converse(&guest, &mut listener, stop);
            let is_first = !std::mem::replace(&mut was_refused, guest.is_refused());
            match ended {
                _ if guest.is_refused() && !is_first => {}
                _ if guest.is_refused() => tracing::warn!(
                    "a virtual machine that used the device when its server was killed is refused: what it had written and not \
                     flushed is lost; reset the virtual machine"
                ),
                Ok(()) => tracing::info!("the virtual machine has disconnected"),
                Err(error) => {
                    tracing::warn!(%error, "the connection to a virtual machine failed");
                    thread::sleep(FAILED_PAUSE);
                }
            }
            *current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Ok(())
    }
}

/// A running server. Dropping it completes the requests in flight and disconnects.
pub struct Running {
    stop: Stop,
    current: Arc<Mutex<Option<Arc<Guest>>>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(guest) = self.current.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The guest gets its answers before the VMM sees the end.
            guest.drain();
            guest.disconnect();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits until a virtual machine connects. Returns false if the server is to stop.
fn wait_for_one(listener: &Listener, woken: &OwnedFd, stop: &Stop) -> io::Result<bool> {
    while !stop.wanted() {
        let mut wait = [PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        match poll(&mut wait, None) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        if !wait[0].revents().is_empty() && !stop.wanted() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A pipe as a signal: the end that becomes readable, and the end to write to.
fn signal() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

/// Ends the queue threads when it is dropped, because dropping the daemon waits for them.
struct Ending(OwnedFd);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.0, &[0]);
    }
}

/// Accepts a virtual machine and serves it until it or the server disconnects.
fn converse(guest: &Arc<Guest>, listener: &mut vhost::vhost_user::Listener, stop: &Stop) -> io::Result<()> {
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let started =
                thread::Builder::new().name(format!("vhost-user-{worker}")).spawn_scoped(scope, || guest.work());
            if let Err(error) = started {
                guest.dismiss();
                return Err(error);
            }
        }
        let ended = exchange(guest, listener, stop);
        // All requests have completed, so that the workers are idle.
        guest.dismiss();
        ended
    })
}

fn exchange(guest: &Arc<Guest>, listener: &mut vhost::vhost_user::Listener, stop: &Stop) -> io::Result<()> {
    let [(begun, begin), (ended, end)] = [signal()?, signal()?];
    let failed = |error: vhost_user_backend::Error| io::Error::other(error.to_string());
    let mut daemon =
        VhostUserDaemon::new("vhost-user-vmm".into(), Arc::clone(guest), guest.memory().clone()).map_err(failed)?;
    let _ending = Ending(end);
    for thread in daemon.get_epoll_handlers() {
        thread.register_listener(ended.as_raw_fd(), EventSet::IN, END_EVENT.into())?;
        thread.register_listener(begun.as_raw_fd(), EventSet::IN | EventSet::ONE_SHOT, BEGIN_EVENT.into())?;
    }
    rustix::io::write(&begin, &[0])?;
    guest.wait_for_queues();
    daemon.start(listener).map_err(failed)?;
    daemon.shutdown_handle().into_iter().for_each(|connection| guest.connected(connection));
    if stop.wanted() {
        guest.disconnect();
    }
    let ended = daemon.wait();
    guest.drain();
    match ended {
        Err(vhost_user_backend::Error::HandleRequest(
            vhost::vhost_user::Error::Disconnected | vhost::vhost_user::Error::PartialMessage,
        )) => Ok(()),
        ended => ended.map_err(failed),
    }
}
