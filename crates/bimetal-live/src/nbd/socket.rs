//! The socket of one client, plain or under TLS.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::clients::Client;

#[cfg(feature = "tls")]
use super::tls::{TlsServer, TlsStream};

/// The socket of a client, its deadline, and the way of waiting for it.
#[derive(Debug)]
pub(crate) struct Timed {
    client: Arc<Client>,
    deadline: Option<Instant>,
    polling: Polling,
    /// Whether the rest of a message is awaited. The socket is not polled then: the client is busy sending, and polling
    /// would take processor time from it.
    is_within: bool,
}

/// Whether to poll for the next request for a while, or to sleep until it arrives.
///
/// Waking a thread takes longer than most requests, especially in virtual machines, and a part of this time is added to
/// the request. If the last request came soon, the socket is polled for the next one. Otherwise the thread sleeps.
#[derive(Debug)]
struct Polling {
    /// Longest time to poll.
    most: Duration,
    is_on: bool,
}

impl Polling {
    /// Records the duration of a wait.
    fn waited(&mut self, took: Duration) {
        self.is_on = took < self.most;
    }
}

impl Timed {
    /// A client with a deadline, whose socket is polled for up to `poll`.
    pub fn new(client: Arc<Client>, deadline: Instant, poll: Duration) -> Self {
        Self { client, deadline: Some(deadline), polling: Polling { most: poll, is_on: false }, is_within: false }
    }

    /// Sets the socket's time limit to the time until the deadline.
    fn limit(&self, timeout: Timeout) -> io::Result<()> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(set_socket_timeout(&self.client.socket, timeout, Some(left))?)
    }

    /// Removes the deadline: another thread shuts the socket down if the client makes no progress. A send returns at
    /// least every `look`, so that progress is recorded.
    fn without_deadline(&mut self, look: Duration) -> io::Result<()> {
        self.deadline = None;
        let look = look.max(Duration::from_millis(1));
        set_socket_timeout(&self.client.socket, Timeout::Recv, None)?;
        Ok(set_socket_timeout(&self.client.socket, Timeout::Send, Some(look))?)
    }
}

impl Timed {
    /// Receives the bytes that have arrived. The next read that waits reports an end or an error.
    fn read_at_once(&self, room: &mut [u8]) -> Option<usize> {
        let (_, bytes) = recv(&self.client.socket, room, RecvFlags::DONTWAIT).ok()?;
        self.client.moved(bytes);
        (bytes > 0).then_some(bytes)
    }
}

/// The error of a socket whose time limit has passed.
fn timed_out(errno: Errno) -> io::Error {
    if errno == Errno::AGAIN { io::ErrorKind::TimedOut.into() } else { errno.into() }
}

impl Read for Timed {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.limit(Timeout::Recv)?;
        let begun = Instant::now();
        self.client.waits(begun);
        loop {
            let polls = self.polling.is_on && !self.is_within && begun.elapsed() < self.polling.most;
            let flags = if polls { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
            match recv(&self.client.socket, &mut *room, flags) {
                Err(Errno::INTR) => {}
                // Other runnable threads, such as a client on the same processor, go first.
                Err(Errno::AGAIN) if polls => thread::yield_now(),
                received => {
                    if !self.is_within {
                        self.polling.waited(begun.elapsed());
                    }
                    let (_, bytes) = received.map_err(timed_out)?;
                    self.client.moved(bytes);
                    return Ok(bytes);
                }
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit(Timeout::Send)?;
        loop {
            match send(&self.client.socket, bytes, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.deadline.is_none() => {}
                sent => {
                    let bytes = sent.map_err(timed_out)?;
                    self.client.moved(bytes);
                    return Ok(bytes);
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The connection to a client.
pub enum Transport {
    /// Without encryption.
    Plain(Timed),
    /// Under TLS.
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<Timed>>),
}

impl Transport {
    /// The plain socket of a client that must finish the negotiation by `deadline`, polled for the given time.
    pub fn new(client: Arc<Client>, deadline: Instant, poll: Duration) -> Self {
        Self::Plain(Timed::new(client, deadline, poll))
    }

    /// The same socket under TLS, once both sides have agreed on how.
    #[cfg(feature = "tls")]
    pub fn start_tls(self, tls: &TlsServer) -> io::Result<Self> {
        match self {
            Self::Plain(socket) => Ok(Self::Tls(Box::new(tls.accept(socket)?))),
            Self::Tls(_) => Err(io::Error::other("TLS within TLS")),
        }
    }

    /// The negotiation is complete: no deadline from now on. `send` checks the client at this interval.
    pub fn without_deadline(&mut self, look: Duration) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.without_deadline(look),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.sock.without_deadline(look),
        }
    }

    /// Receives available bytes; 0 at the end of the stream. The flag says whether part of the message was received before.
    pub fn receive(&mut self, room: &mut [u8], is_within: bool) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => {
                socket.is_within = is_within;
                socket.read(room)
            }
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                stream.sock.is_within = is_within;
                stream.read(room)
            }
        }
    }

    /// Receives bytes that have arrived already, without waiting.
    pub fn receive_at_once(&self, room: &mut [u8]) -> Option<usize> {
        match self {
            Self::Plain(socket) => socket.read_at_once(room),
            #[cfg(feature = "tls")]
            Self::Tls(_) => None,
        }
    }

    /// Sends all of it.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    /// Announces the end of the stream.
    pub fn close(&mut self) {
        match self {
            Self::Plain(_) => {}
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                stream.conn.send_close_notify();
                // An error is ignored: the client may have gone.
                let _ = stream.flush();
            }
        }
    }
}
