//! Sockets and threads: one thread accepts, and each client has one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, pipe_with};

use super::buffer::{Input, Output};
use super::connection::{Close, Connection, Next};
use super::listen::{Address, ListenError, Listener};
use super::socket::{Socket, Transport};
use super::{Export, OUTPUT_BATCH_BYTES};
use crate::block_device::BlockDevice;

/// Buffers while a client negotiates, in bytes: its longest option, and the replies to some.
const NEGOTIATION_BYTES: usize = super::MAX_OPTION_BYTES + 4096;
/// What is received at once, in bytes.
const INPUT_BYTES: usize = 256 << 10;
/// How long to wait for others to close something when there are too many open files.
const EXHAUSTED: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How a server treats its clients.
#[derive(Clone, Debug)]
pub struct Options {
    /// Clients at once; one more is turned away. Each may make the server use 64 MiB.
    pub connections: usize,
    /// Time for a client to say what it wants.
    pub negotiation: Duration,
    /// Time for a client to take its replies when the server is to stop.
    pub farewell: Duration,
    /// How long a client that asks often is polled before its thread sleeps; zero never polls.
    pub poll: Duration,
    /// Whether other machines may connect, where the address allows it.
    pub remote: bool,
    /// With what every client must be protected.
    #[cfg(feature = "tls")]
    pub tls: Option<super::TlsServer>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 32,
            negotiation: Duration::from_secs(10),
            farewell: Duration::from_secs(5),
            poll: Duration::from_micros(100),
            remote: false,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

/// A server that listens; [`Server::run`] serves.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    export: Export,
    options: Options,
    stop: Stop,
    woken: OwnedFd,
}

/// Stops a server, from any thread.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Stopping>);

#[derive(Debug)]
struct Stopping {
    wanted: AtomicBool,
    wake: OwnedFd,
}

impl Stop {
    /// One, and what becomes readable when it is used.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok((Self(Arc::new(Stopping { wanted: AtomicBool::new(false), wake })), woken))
    }

    /// The server takes no more clients, ends what it is at, flushes the device and returns.
    pub fn stop(&self) {
        self.0.wanted.store(true, Ordering::Release);
        // One byte is enough, and there is room for it.
        let _ = rustix::io::write(&self.0.wake, &[0]);
    }

    fn wanted(&self) -> bool {
        self.0.wanted.load(Ordering::Acquire)
    }
}

/// The clients that are connected.
struct Clients {
    sockets: Mutex<Vec<Option<Arc<Socket>>>>,
    left: Condvar,
}

/// The place of one client, given back when its thread ends in whatever way.
struct Place<'c> {
    clients: &'c Clients,
    index: usize,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Arc<Socket>>>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, socket: &Arc<Socket>) -> Option<Place<'_>> {
        let mut sockets = self.lock();
        let index = sockets.iter().position(Option::is_none)?;
        sockets[index] = Some(Arc::clone(socket));
        Some(Place { clients: self, index })
    }

    /// Lets every client's thread end: at once if it waits for the client, else when it has sent its replies, and after
    /// `patience` in any case.
    fn dismiss(&self, patience: Duration) {
        let all =
            |sockets: &[Option<Arc<Socket>>], how| sockets.iter().flatten().for_each(|socket| socket.shutdown(how));
        let sockets = self.lock();
        all(&sockets, Shutdown::Read);
        let busy = |sockets: &mut Vec<Option<Arc<Socket>>>| sockets.iter().any(Option::is_some);
        let waited = self.left.wait_timeout_while(sockets, patience, busy);
        let (sockets, _) = waited.unwrap_or_else(PoisonError::into_inner);
        all(&sockets, Shutdown::Both);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.clients.lock()[self.index] = None;
        self.clients.left.notify_all();
    }
}

impl Server {
    /// Listens at `address`. Clients that connect wait until [`Server::run`].
    pub fn bind(address: &Address, export: Export, options: Options) -> Result<Self, ListenError> {
        let listener = Listener::bind(address, options.remote)?;
        let system = |source: io::Error| ListenError::System { address: address.clone(), source };
        let (stop, woken) = Stop::new().map_err(system)?;
        Ok(Self { listener, export, options, stop, woken })
    }

    /// Where it listens, with the port that was chosen.
    pub fn address(&self) -> Address {
        self.listener.address()
    }

    /// What stops this server.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Serves `device` until it is stopped; then nobody is connected any more, and the device is flushed.
    pub fn run(self, device: &dyn BlockDevice) -> io::Result<()> {
        let Self { listener, export, options, stop, woken } = self;
        let clients = Clients { sockets: Mutex::new(vec![None; options.connections]), left: Condvar::new() };
        let session = Session { device, export: &export, options: &options, stop: &stop };
        tracing::info!(address = %listener.address(), "serving");
        let accepted = thread::scope(|scope| {
            let mut number = 0_u64;
            let accepted = loop {
                let socket = match next_client(&listener, &woken, &stop) {
                    Ok(Some(socket)) => Arc::new(Socket(socket)),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                };
                let Some(place) = clients.enter(&socket) else {
                    tracing::warn!(connections = options.connections, "a client was turned away: too many");
                    continue;
                };
                number += 1;
                let client = number;
                let started = thread::Builder::new().name(format!("nbd-{client}")).spawn_scoped(scope, move || {
                    let _place = place;
                    session.serve(client, socket);
                });
                if let Err(error) = started {
                    tracing::warn!(%error, "a client was turned away: no thread for it");
                }
            };
            // From here on a client that connects is refused by the system, and does not wait for nothing.
            drop(listener);
            clients.dismiss(options.farewell);
            accepted
        });
        let flushed = device.flush().map_err(io::Error::other);
        tracing::info!("stopped");
        accepted.and(flushed)
    }
}

/// Waits for a client; `None` when the server is to stop.
pub(crate) fn next_client(listener: &Listener, woken: &OwnedFd, stop: &Stop) -> io::Result<Option<OwnedFd>> {
    loop {
        if stop.wanted() {
            return Ok(None);
        }
        let mut wait = [PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        match poll(&mut wait, None) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        if wait[0].revents().is_empty() {
            continue;
        }
        let error = match listener.accept() {
            Ok(socket) => return Ok(Some(socket)),
            Err(error) => error,
        };
        match Errno::from_io_error(&error) {
            // The client has gone again.
            Some(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED | Errno::INVAL | Errno::CONNRESET) => {}
            Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
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

/// What every client's thread works with.
#[derive(Clone, Copy)]
struct Session<'s> {
    device: &'s dyn BlockDevice,
    export: &'s Export,
    options: &'s Options,
    stop: &'s Stop,
}

/// How a client's connection ended.
enum Ended {
    /// One side closed it in words.
    Closed(Close),
    /// The client closed it without a word.
    Gone,
    /// The server is to stop.
    Stopped,
}

impl Session<'_> {
    fn serve(&self, client: u64, socket: Arc<Socket>) {
        tracing::info!(client, "connected");
        match self.converse(socket) {
            Ok(Ended::Closed(Close::Disconnect)) => tracing::info!(client, "disconnected"),
            Ok(Ended::Closed(Close::Violation(what))) => tracing::warn!(client, what, "the protocol was broken"),
            Ok(Ended::Gone) => tracing::info!(client, "gone"),
            Ok(Ended::Stopped) => tracing::info!(client, "dismissed"),
            Err(error) => tracing::warn!(client, %error, "the connection failed"),
        }
    }

    fn converse(&self, socket: Arc<Socket>) -> io::Result<Ended> {
        let mut transport = Transport::new(socket, Instant::now() + self.options.negotiation, self.options.poll);
        let (mut input, mut output) = (Input::new(NEGOTIATION_BYTES), Output::new(NEGOTIATION_BYTES));
        let mut connection = Connection::new(self.device, self.export, self.tls(), &mut output);
        let mut negotiating = true;
        loop {
            let next = connection.advance(&mut input, &mut output);
            if negotiating && !connection.negotiating() {
                negotiating = false;
                transport.without_limit()?;
                input.grow(INPUT_BYTES);
                output.grow(2 * OUTPUT_BATCH_BYTES);
            }
            if !output.bytes().is_empty() {
                self.device.settle();
                transport.send(output.bytes())?;
                output.clear();
            }
            match next {
                Next::Send => {}
                Next::Receive { .. } if self.stop.wanted() => {
                    transport.close();
                    return Ok(Ended::Stopped);
                }
                Next::Receive { message_bytes } => {
                    match transport.receive(input.room(message_bytes)) {
                        Ok(0) if self.stop.wanted() => return Ok(Ended::Stopped),
                        Ok(0) => return Ok(Ended::Gone),
                        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Ended::Gone),
                        received => input.received(received?),
                    };
                }
                Next::StartTls => {
                    // Whatever came before the client knew that TLS starts may be another's word.
                    if !input.bytes().is_empty() {
                        return Ok(Ended::Closed(Close::Violation("there was more before TLS started")));
                    }
                    transport = self.start_tls(transport)?;
                    connection.tls_established();
                }
                Next::Close(close) => {
                    transport.close();
                    return Ok(Ended::Closed(close));
                }
            }
        }
    }

    #[cfg(feature = "tls")]
    fn tls(&self) -> bool {
        self.options.tls.is_some()
    }

    #[cfg(not(feature = "tls"))]
    fn tls(&self) -> bool {
        false
    }

    #[cfg(feature = "tls")]
    fn start_tls(&self, transport: Transport) -> io::Result<Transport> {
        match &self.options.tls {
            Some(tls) => transport.start_tls(tls),
            None => Err(io::Error::other("TLS was started without being set up")),
        }
    }

    #[cfg(not(feature = "tls"))]
    fn start_tls(&self, _: Transport) -> io::Result<Transport> {
        Err(io::Error::other("TLS was started without being set up"))
    }
}
