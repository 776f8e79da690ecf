//! Sockets and threads: one thread accepts, and each client has one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use super::accept::{Arrival, Stop, next_arrival};
use super::buffer::{Input, Output};
use super::connection::{Close, Connection, Next};
use super::listen::{Address, ListenError, Listener};
use super::mode::Mode;
use super::options::Options;
use super::pool::{Grant, Pool};
use super::proto::EXTENDED_REQUEST_BYTES;
use super::socket::Transport;
use super::tally::Tally;
use super::{Export, OUTPUT_BATCH_BYTES};
use crate::block_device::BlockDevice;
use crate::clients::{Client, Clients, Doing, Full, PROGRESS_BYTES, Place};

/// Size of the buffers during negotiation, in bytes: the longest option, and replies to several options.
const NEGOTIATION_BYTES: usize = super::MAX_OPTION_BYTES + 4096;
/// Bytes per receive.
const INPUT_BYTES: usize = 256 << 10;

/// A reply of at most `HELD_BYTES`, such as that to a write, is held back if the next request, of at most
/// `AWAITED_BYTES`, is arriving: the client is woken once for both.
const HELD_BYTES: usize = Mode::Extended.header_bytes();
const AWAITED_BYTES: usize = EXTENDED_REQUEST_BYTES + (128 << 10);

/// A server that listens; [`Server::run`] serves.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    export: Export,
    options: Options,
    pool: Arc<Pool>,
    tally: Arc<Tally>,
    stop: Stop,
    woken: OwnedFd,
}

impl Server {
    /// Listens at `address`. Clients that connect wait until [`Server::run`].
    ///
    /// # Errors
    /// Nothing can listen there, or machines that are not allowed could connect.
    pub fn bind(address: &Address, export: Export, options: Options) -> Result<Self, ListenError> {
        let listener = Listener::bind(address, options.remote, options.is_encrypted())?;
        Self::with(listener, export, options)
    }

    /// Accepts clients from a socket that listens already.
    ///
    /// # Errors
    /// The memory of `options` is too little, or too many files are open.
    pub fn with(listener: Listener, export: Export, options: Options) -> Result<Self, ListenError> {
        let pool = Arc::new(Pool::new(&options)?);
        let system = |source: io::Error| ListenError::System { address: listener.address(), source };
        let (stop, woken) = Stop::new().map_err(system)?;
        Ok(Self { listener, export, options, pool, tally: Arc::default(), stop, woken })
    }

    /// Counts the connections of this server in `tally`.
    #[must_use]
    pub fn counted_by(self, tally: Arc<Tally>) -> Self {
        Self { tally, ..self }
    }

    /// Address at which it listens, with the chosen port.
    pub fn address(&self) -> Address {
        self.listener.address()
    }

    /// Stops this server.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Serves `device` until it is stopped. Then all connections are closed and the device is flushed.
    pub fn run(self, device: &dyn BlockDevice) -> io::Result<()> {
        let Self { listener, export, options, pool, tally, stop, woken } = self;
        let clients = Clients::new(options.connections, options.connections_per_address);
        let session = Session { device, export: &export, options: &options, pool: &pool, tally: &tally, stop: &stop };
        tracing::info!(address = %listener.address(), "serving");
        let accepted = thread::scope(|scope| {
            let patience = options.patience();
            let (mut number, mut look_at) = (0_u64, Instant::now() + patience.tick());
            let accepted = loop {
                if Instant::now() >= look_at {
                    clients.look(patience);
                    look_at = Instant::now() + patience.tick();
                }
                let client = match next_arrival(&listener, &woken, &stop, Some(look_at)) {
                    Ok(Arrival::Client(socket, address)) => Arc::new(Client::new(socket, address)),
                    Ok(Arrival::Time) => continue,
                    Ok(Arrival::Stop) => break Ok(()),
                    Err(error) => {
                        break Err(io::Error::new(error.kind(), format!("no more clients can be accepted: {error}")));
                    }
                };
                let Some(place) = session.admit(&clients, &client) else { continue };
                number += 1;
                let name = number;
                let started = thread::Builder::new().name(format!("nbd-{name}")).spawn_scoped(scope, move || {
                    let _place = place;
                    session.serve(name, &client);
                });
                if let Err(error) = started {
                    session.tally.turn_away();
                    tracing::warn!(%error, "a client was turned away: no thread for it");
                }
            };
            tracing::info!("stopping");
            // From here on the system refuses new connections, so no client waits in vain.
            drop(listener);
            clients.dismiss(options.farewell);
            pool.close();
            accepted
        });
        let flushed = device.flush().map_err(io::Error::other);
        tracing::info!("stopped");
        accepted.and(flushed)
    }
}

/// State shared by the threads of all clients.
#[derive(Clone, Copy)]
struct Session<'s> {
    device: &'s dyn BlockDevice,
    export: &'s Export,
    options: &'s Options,
    pool: &'s Arc<Pool>,
    tally: &'s Tally,
    stop: &'s Stop,
}

/// The buffers of a connection, and memory borrowed from the pool for one of them.
struct Buffers {
    input: Input,
    output: Output,
    /// Dropped after the buffers.
    grant: Option<Grant>,
}

impl Buffers {
    /// Returns unused memory to the pool.
    fn shrink(&mut self) {
        let (input, output) = (self.input.shrink(), self.output.shrink());
        if input && output {
            self.grant = None;
        }
    }
}

/// How a client's connection ended.
enum Ended {
    /// One side closed it according to the protocol.
    Closed(Close),
    /// The client closed the socket.
    Gone,
    /// The server is to stop.
    Stopped,
}

/// Announces the end of the stream. A client that has not read its replies may not let it pass.
fn end(client: &Client, transport: &mut Transport) {
    client.set_doing(Doing::Sending);
    transport.close();
}

impl Session<'_> {
    /// A place for a new client, if one is free or another client can be replaced.
    fn admit<'c>(&self, clients: &'c Clients, client: &Arc<Client>) -> Option<Place<'c>> {
        let now = Instant::now();
        let least = self.options.gives_way_after();
        let entered = clients.enter(client, |other| other.idle(now).filter(|&idle| idle >= least));
        match entered {
            Ok(place) => return Some(place),
            Err(Full::Places) => {
                tracing::warn!(connections = self.options.connections, "a client was turned away: too many");
            }
            Err(Full::Address(address)) => {
                let most = self.options.connections_per_address;
                tracing::warn!(%address, most, "a client was turned away: too many of its address");
            }
        }
        self.tally.turn_away();
        None
    }

    fn serve(&self, name: u64, client: &Arc<Client>) {
        let _open = self.tally.accept();
        let from = client.address().map_or_else(|| "this machine".to_owned(), |address| address.to_string());
        tracing::info!(client = name, from, "connected");
        let ended = self.converse(client);
        let (seconds, requests) = (client.age(Instant::now()).as_secs_f64(), client.requests());
        if let Some(reason) = client.dropped() {
            self.tally.drop_one();
            tracing::warn!(client = name, seconds, requests, reason, "a client was dropped");
            return;
        }
        match ended {
            Ok(Ended::Closed(Close::Disconnect)) => tracing::info!(client = name, seconds, requests, "disconnected"),
            Ok(Ended::Closed(Close::Violation(what))) => {
                self.tally.drop_one();
                tracing::warn!(client = name, seconds, requests, what, "the protocol was broken");
            }
            Ok(Ended::Gone) => tracing::info!(client = name, seconds, requests, "gone"),
            Ok(Ended::Stopped) => tracing::info!(client = name, seconds, requests, "dismissed"),
            // It closed the socket before it had taken everything, like a probe of the port.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                tracing::info!(client = name, seconds, requests, %error, "gone");
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::TimedOut {
                    self.tally.drop_one();
                }
                tracing::warn!(client = name, seconds, requests, %error, "the connection failed");
            }
        }
    }

    fn converse(&self, client: &Arc<Client>) -> io::Result<Ended> {
        let deadline = Instant::now() + self.options.negotiation;
        let mut transport = Transport::new(Arc::clone(client), deadline, self.options.poll);
        let (input, mut output) = (Input::new(NEGOTIATION_BYTES), Output::new(NEGOTIATION_BYTES));
        let connection = Connection::new(self.device, self.export, self.options.is_encrypted(), &mut output);
        let mut connection = connection.until(self.stop.clone());
        let mut buffers = Buffers { input, output, grant: None };
        let mut negotiating = true;
        loop {
            let next = connection.advance(&mut buffers.input, &mut buffers.output);
            client.served(connection.messages());
            self.tally.refuse(connection.take_refused());
            buffers.shrink();
            if negotiating && !connection.negotiating() {
                negotiating = false;
                transport.without_deadline(self.options.loan / 8)?;
                buffers.input.grow(INPUT_BYTES);
                buffers.output.grow(2 * OUTPUT_BATCH_BYTES);
            }
            if self.goes_on(next, &transport, &mut buffers) {
                continue;
            }
            self.send(client, &mut transport, &mut buffers)?;
            match next {
                Next::Send => {}
                Next::Room { bytes } => self.make_room(client, &mut buffers, bytes)?,
                Next::Receive { .. } if self.stop.wanted() => {
                    end(client, &mut transport);
                    return Ok(Ended::Stopped);
                }
                Next::Receive { message_bytes } => {
                    let is_idle = buffers.input.bytes().is_empty() && !connection.discarding();
                    let doing = match (negotiating, is_idle) {
                        (true, _) => Doing::Negotiating,
                        (false, true) => Doing::Idle,
                        (false, false) => Doing::Receiving,
                    };
                    match self.receive(client, &mut transport, &mut buffers, message_bytes, doing) {
                        Ok(0) if self.stop.wanted() => return Ok(Ended::Stopped),
                        Ok(0) => return Ok(Ended::Gone),
                        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Ended::Gone),
                        received => buffers.input.received(received?),
                    };
                }
                Next::StartTls => {
                    // Input received before the start of TLS may have been inserted by an attacker.
                    if !buffers.input.bytes().is_empty() {
                        return Ok(Ended::Closed(Close::Violation("data were sent before TLS started")));
                    }
                    transport = self.start_tls(transport)?;
                    connection.tls_established();
                }
                Next::Close(close) => {
                    end(client, &mut transport);
                    return Ok(Ended::Closed(close));
                }
            }
        }
    }

    /// Receives more of a partly received request, if more bytes are available at once and the pending reply may be
    /// held back. Returns whether bytes were received.
    fn goes_on(&self, next: Next, transport: &Transport, buffers: &mut Buffers) -> bool {
        let Next::Receive { message_bytes } = next else { return false };
        let Buffers { input, output, .. } = buffers;
        let waits = (1..=HELD_BYTES).contains(&output.bytes().len())
            && !input.bytes().is_empty()
            && message_bytes <= AWAITED_BYTES
            && !self.stop.wanted();
        let received = if waits { transport.receive_at_once(input.room(message_bytes)) } else { None };
        input.received(received.unwrap_or(0));
        received.is_some()
    }

    /// Sends the pending output.
    fn send(&self, client: &Client, transport: &mut Transport, buffers: &mut Buffers) -> io::Result<()> {
        let output = &mut buffers.output;
        if output.bytes().is_empty() {
            return Ok(());
        }
        self.device.settle();
        client.set_doing(Doing::Sending);
        // In parts, so that requests that wait for this memory see the progress.
        let part_bytes = if output.is_large() { PROGRESS_BYTES as usize } else { output.bytes().len() };
        for part in output.bytes().chunks(part_bytes) {
            transport.send(part)?;
        }
        client.set_doing(Doing::Working);
        output.clear();
        buffers.shrink();
        Ok(())
    }

    /// Receives more of a message of `message_bytes` bytes; returns 0 at the end of the stream.
    fn receive(
        &self,
        client: &Arc<Client>,
        transport: &mut Transport,
        buffers: &mut Buffers,
        message_bytes: usize,
        doing: Doing,
    ) -> io::Result<usize> {
        if buffers.input.is_outgrown(message_bytes, self.pool.own().input) {
            buffers.grant = Some(self.pool.borrow(message_bytes, client)?);
            buffers.input.enlarge();
        }
        client.set_doing(doing);
        let is_within = !buffers.input.bytes().is_empty();
        let received = transport.receive(buffers.input.room(message_bytes), is_within);
        client.set_doing(Doing::Working);
        received
    }

    /// Makes room for a reply of `bytes` bytes.
    fn make_room(&self, client: &Arc<Client>, buffers: &mut Buffers, bytes: usize) -> io::Result<()> {
        let own = self.pool.own().output;
        if bytes <= own {
            buffers.output.grow(own.min(bytes.next_power_of_two()));
        } else {
            buffers.grant = Some(self.pool.borrow(bytes, client)?);
            buffers.output.enlarge();
        }
        Ok(())
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
