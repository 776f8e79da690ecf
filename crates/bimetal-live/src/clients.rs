//! Connected clients: a place for each, its state and progress, and which one is dropped when a limit is reached.

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};

/// Bytes that a client must send or take within the time limit, if it does not complete a message or take all its
/// replies in this time. Fewer bytes are no progress.
pub(crate) const PROGRESS_BYTES: u64 = 64 << 10;
/// Time for which a new client waits for the place of a dropped client.
const PLACE_WAIT: Duration = Duration::from_secs(1);

/// State of a client's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Doing {
    /// The client has not chosen an export yet.
    Negotiating,
    /// It waits for a request.
    Idle,
    /// It waits for the rest of a message.
    Receiving,
    /// It waits for the client to take its replies.
    Sending,
    /// It performs a request.
    Working,
}

/// A connected client: its own thread uses the socket, other threads watch its state and may shut the socket down.
#[derive(Debug)]
pub(crate) struct Client {
    /// The socket.
    pub socket: OwnedFd,
    /// Address of the client; a client of a Unix socket has none.
    address: Option<IpAddr>,
    came: Instant,
    /// Time at which its thread began to wait for data, in milliseconds since it connected.
    waits_since: AtomicU64,
    /// Bytes received and sent. Only one thread writes this, so no atomic addition is needed.
    moved: AtomicU64,
    /// Completed messages.
    messages: AtomicU64,
    doing: AtomicU8,
    dropped: OnceLock<&'static str>,
}

impl Client {
    /// A client connected from this address.
    pub fn new(socket: OwnedFd, address: Option<IpAddr>) -> Self {
        Self {
            socket,
            address,
            came: Instant::now(),
            waits_since: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            doing: AtomicU8::new(Doing::Negotiating as u8),
            dropped: OnceLock::new(),
        }
    }

    /// Records when its thread began to wait for data.
    pub fn waits(&self, now: Instant) {
        self.waits_since.store(now.saturating_duration_since(self.came).as_millis() as u64, Ordering::Relaxed);
    }

    /// Adds to the bytes received from and sent to the client.
    pub fn moved(&self, bytes: usize) {
        self.moved.store(self.moved.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
    }

    /// Sets the number of requests completed so far.
    pub fn served(&self, messages: u64) {
        self.messages.store(messages, Ordering::Relaxed);
    }

    /// Requests completed so far.
    pub fn requests(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Address of a TCP client; other clients are on this machine.
    pub fn address(&self) -> Option<IpAddr> {
        self.address.map(|address| address.to_canonical())
    }

    /// The part of its address by which clients are counted.
    fn origin(&self) -> Option<IpAddr> {
        self.address.map(origin)
    }

    /// Sets the state of its thread.
    pub fn set_doing(&self, doing: Doing) {
        self.doing.store(doing as u8, Ordering::Relaxed);
    }

    fn is_doing(&self, doing: Doing) -> bool {
        self.doing.load(Ordering::Relaxed) == doing as u8
    }

    /// Time since its last request, if the connection is idle.
    pub fn idle(&self, now: Instant) -> Option<Duration> {
        let since = self.came + Duration::from_millis(self.waits_since.load(Ordering::Relaxed));
        self.is_doing(Doing::Idle).then(|| now.saturating_duration_since(since))
    }

    /// Time since it connected.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.came)
    }

    /// Shuts the socket down, so that a blocked receive or send returns.
    pub fn shutdown(&self, how: Shutdown) {
        // An error means that the client has gone already, which is the aim.
        let _ = shutdown(&self.socket, how);
    }

    /// Ends the connection, for the given reason.
    pub fn drop_because(&self, reason: &'static str) {
        let _ = self.dropped.set(reason);
        self.shutdown(Shutdown::Both);
    }

    /// Why it was dropped, if it was.
    pub fn dropped(&self) -> Option<&'static str> {
        self.dropped.get().copied()
    }
}

/// The part of an address by which its clients are counted: a customer of a provider owns all addresses of an IPv6 /64.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// Tracks when a client last made progress.
#[derive(Debug)]
pub(crate) struct Progress {
    since: Instant,
    moved: u64,
    messages: u64,
}

impl Progress {
    /// Starts the clock at `now`.
    pub fn new(client: &Client, now: Instant) -> Self {
        let (moved, messages) = (client.moved.load(Ordering::Relaxed), client.messages.load(Ordering::Relaxed));
        Self { since: now, moved, messages }
    }

    /// Whether `patience` has passed while the server waited for the client, without a completed message or enough bytes moved.
    pub fn is_stuck(&mut self, client: &Client, now: Instant, patience: Duration) -> bool {
        let latest = Self::new(client, now);
        let waited_for = client.is_doing(Doing::Receiving) || client.is_doing(Doing::Sending);
        if !waited_for || latest.messages != self.messages || latest.moved - self.moved >= PROGRESS_BYTES {
            *self = latest;
        }
        now.saturating_duration_since(self.since) >= patience
    }
}

/// Time limits after which a client is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Without progress in an incomplete message or an unread reply.
    pub stall: Duration,
    /// Without a request; zero means no limit.
    pub idle: Duration,
}

impl Patience {
    /// Interval between two checks.
    pub fn tick(&self) -> Duration {
        let least = if self.idle.is_zero() { self.stall } else { self.stall.min(self.idle) };
        (least / 4).max(Duration::from_millis(5))
    }
}

/// Why a client gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// All places are taken, and no client may be replaced.
    Places,
    /// Its address has the maximum number of connections.
    Address(IpAddr),
}

#[derive(Debug)]
struct Taken {
    client: Arc<Client>,
    progress: Progress,
}

/// The connected clients.
#[derive(Debug)]
pub(crate) struct Clients {
    places: Mutex<Vec<Option<Taken>>>,
    left: Condvar,
    per_address: usize,
}

/// The place of a client, released when its thread ends for any reason.
#[derive(Debug)]
pub(crate) struct Place<'c> {
    clients: &'c Clients,
    index: usize,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.clients.lock()[self.index] = None;
        self.clients.left.notify_all();
    }
}

fn free(places: &[Option<Taken>]) -> Option<usize> {
    places.iter().position(Option::is_none)
}

impl Clients {
    /// A table of `places` connections, of which at most `per_address` come from one address.
    pub fn new(places: usize, per_address: usize) -> Self {
        let places = std::iter::repeat_with(|| None).take(places).collect();
        Self { places: Mutex::new(places), left: Condvar::new(), per_address }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Taken>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a new client a place. If all are taken, the client with the largest `gives_way` value is dropped first.
    pub fn enter<W: Ord>(
        &self,
        client: &Arc<Client>,
        gives_way: impl Fn(&Client) -> Option<W>,
    ) -> Result<Place<'_>, Full> {
        let mut places = self.lock();
        if let Some(origin) = client.origin() {
            let of_origin = |taken: &&Taken| taken.client.origin() == Some(origin);
            if places.iter().flatten().filter(of_origin).count() >= self.per_address {
                return Err(Full::Address(origin));
            }
        }
        if free(&places).is_none() {
            let ranked = places.iter().flatten().filter_map(|taken| Some((gives_way(&taken.client)?, &taken.client)));
            let Some((_, last)) = ranked.max_by(|one, other| one.0.cmp(&other.0)) else { return Err(Full::Places) };
            last.drop_because("a new client needed its place");
            let waited = self.left.wait_timeout_while(places, PLACE_WAIT, |places| free(places).is_none());
            (places, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let index = free(&places).ok_or(Full::Places)?;
        places[index] = Some(Taken { client: Arc::clone(client), progress: Progress::new(client, Instant::now()) });
        Ok(Place { clients: self, index })
    }

    /// Drops clients that are stalled or have been idle too long.
    pub fn look(&self, patience: Patience) {
        let now = Instant::now();
        for Taken { client, progress } in self.lock().iter_mut().flatten() {
            if progress.is_stuck(client, now, patience.stall) {
                client.drop_because("it neither completed a message nor took its replies");
            } else if !patience.idle.is_zero() && client.idle(now).is_some_and(|idle| idle >= patience.idle) {
                client.drop_because("it was idle for too long");
            }
        }
    }

    /// Ends every client's thread: at once if it waits for data, else when it has sent its replies, and after
    /// `patience` in any case.
    pub fn dismiss(&self, patience: Duration) {
        let all = |places: &[Option<Taken>], how| places.iter().flatten().for_each(|taken| taken.client.shutdown(how));
        let places = self.lock();
        all(&places, Shutdown::Read);
        let busy = |places: &mut Vec<Option<Taken>>| places.iter().any(Option::is_some);
        let waited = self.left.wait_timeout_while(places, patience, busy);
        let (places, _) = waited.unwrap_or_else(PoisonError::into_inner);
        all(&places, Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use std::os::unix::net::UnixStream;

    fn client(address: Option<&str>) -> (Arc<Client>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Arc::new(Client::new(ours.into(), address.map(|address| address.parse().unwrap()))), theirs)
    }

    fn nobody(_: &Client) -> Option<()> {
        None
    }

    #[test]
    fn clients_of_one_address_are_counted_together() {
        let clients = Clients::new(8, 2);
        let mut held = Vec::new();
        let mut enter = |address: Option<&str>| {
            let (client, theirs) = client(address);
            held.push(theirs);
            clients.enter(&client, nobody)
        };
        // IPv4 in both forms, two addresses of one IPv6 network and one of the next, and a Unix socket's.
        let first = enter(Some("192.0.2.1")).unwrap();
        let _second = enter(Some("::ffff:192.0.2.1")).unwrap();
        assert_eq!(enter(Some("192.0.2.1")).unwrap_err(), Full::Address("192.0.2.1".parse().unwrap()));
        let _other = enter(Some("192.0.2.2")).unwrap();
        let _v6 = [enter(Some("2001:db8::1")).unwrap(), enter(Some("2001:db8::ffff:0:0:2")).unwrap()];
        assert_eq!(enter(Some("2001:db8::3")).unwrap_err(), Full::Address("2001:db8::".parse().unwrap()));
        let _next = enter(Some("2001:db8:0:1::1")).unwrap();
        drop(first);
        let _again = enter(Some("192.0.2.1")).unwrap();
        let _local = enter(None).unwrap();
        let _last = enter(None).unwrap();
        assert_eq!(enter(None).unwrap_err(), Full::Places);
    }

    #[test]
    fn progress_is_a_message_done_or_enough_bytes() {
        let (client, _theirs) = client(None);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let patience = Duration::from_secs(10);
        let mut progress = Progress::new(&client, start);
        client.set_doing(Doing::Working);
        assert!(!progress.is_stuck(&client, at(100), patience), "nobody waits for it");
        client.set_doing(Doing::Receiving);
        for second in 101..110 {
            client.moved(1000);
            assert!(!progress.is_stuck(&client, at(second), patience));
        }
        client.moved(1000);
        assert!(progress.is_stuck(&client, at(110), patience), "a trickle is no progress");
        client.moved(PROGRESS_BYTES as usize);
        assert!(!progress.is_stuck(&client, at(111), patience));
        assert!(progress.is_stuck(&client, at(121), patience));
        client.served(1);
        assert!(!progress.is_stuck(&client, at(122), patience));
        client.set_doing(Doing::Sending);
        assert!(progress.is_stuck(&client, at(132), patience));
        client.set_doing(Doing::Idle);
        assert!(!progress.is_stuck(&client, at(1000), patience));
    }
}
