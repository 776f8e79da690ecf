//! Waiting for new connections, timeouts and the request to stop.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::listen::Listener;

/// Time to wait for other threads to close files when too many are open, or for a rule that refuses a client.
const EXHAUSTED: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Stops a server, from any thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Stopping>);

#[derive(Debug)]
struct Stopping {
    wanted: AtomicBool,
    wake: OwnedFd,
}

impl Stop {
    /// A stop handle, and a pipe that becomes readable when it is used.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok((Self(Arc::new(Stopping { wanted: AtomicBool::new(false), wake })), woken))
    }

    /// The server accepts no more clients, finishes the requests under way, flushes the device and returns.
    pub fn stop(&self) {
        self.0.wanted.store(true, Ordering::Release);
        // One byte is enough, and the pipe has room for it.
        let _ = rustix::io::write(&self.0.wake, &[0]);
    }

    /// Whether the server is to stop.
    pub(crate) fn wanted(&self) -> bool {
        self.0.wanted.load(Ordering::Acquire)
    }
}

/// Why waiting ended.
pub(crate) enum Arrival {
    /// A client, and its address.
    Client(OwnedFd, Option<IpAddr>),
    /// The time limit.
    Time,
    /// The server is to stop.
    Stop,
}

/// Waits for a client, until the time limit if there is one.
pub(crate) fn next_arrival(
    listener: &Listener,
    woken: &OwnedFd,
    stop: &Stop,
    until: Option<Instant>,
) -> io::Result<Arrival> {
    loop {
        if stop.wanted() {
            return Ok(Arrival::Stop);
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Arrival::Time);
        }
        let mut wait = [PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        match poll(&mut wait, left.map(timespec).as_ref()) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        if wait[0].revents().is_empty() {
            continue;
        }
        let error = match listener.accept() {
            Ok((socket, address)) => return Ok(Arrival::Client(socket, address)),
            Err(error) => error,
        };
        match Errno::from_io_error(&error) {
            Some(errno) if is_of_client(errno) => {}
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::PERM) => {
                tracing::warn!(%error, "a client has to wait");
                match poll(&mut [PollFd::new(woken, PollFlags::IN)], Some(&EXHAUSTED)) {
                    Err(Errno::INTR) => {}
                    polled => drop(polled?),
                }
            }
            _ => return Err(error),
        }
    }
}

/// Whether `accept` returns this error for one client: it has gone already, or its network has failed (accept(2)). Other
/// clients are served.
fn is_of_client(errno: Errno) -> bool {
    let has_gone = [Errno::AGAIN, Errno::INTR, Errno::CONNABORTED, Errno::INVAL, Errno::CONNRESET];
    let network = [
        Errno::NETDOWN,
        Errno::PROTO,
        Errno::NOPROTOOPT,
        Errno::HOSTDOWN,
        Errno::NONET,
        Errno::HOSTUNREACH,
        Errno::OPNOTSUPP,
        Errno::NETUNREACH,
    ];
    has_gone.contains(&errno) || network.contains(&errno)
}

/// Converts a duration for `poll`, capped at 2^31 seconds.
fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().min(i32::MAX as u64) as i64, tv_nsec: time.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_of_one_client_does_not_end_the_server() {
        assert!([Errno::CONNABORTED, Errno::PROTO, Errno::HOSTUNREACH].into_iter().all(is_of_client));
        assert!(![Errno::BADF, Errno::NOTSOCK, Errno::FAULT].into_iter().any(is_of_client));
    }
}
