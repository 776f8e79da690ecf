//! A small server beside the device: each connection is one question and one answer.
//!
//! Clients are `bimetal stat` and collectors of metrics over HTTP. Each has a thread and one deadline of a few seconds for the
//! whole conversation; late or overlong questions are not answered. Beyond the maximum number of clients the oldest is dropped.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::clients::{Client, Clients};
use crate::nbd::{Address, Arrival, ListenError, Listener, Remote, Stop, Timed, next_arrival};
pub use crate::socket_path::connect;

/// Maximum length of a question, in bytes.
const QUESTION_BYTES: usize = 8 << 10;
/// Deadline for a whole conversation.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of clients at once.
pub const CONVERSATIONS: usize = 16;

/// Asks a server of this kind, and returns its answer.
///
/// # Errors
/// The connection fails, or the server is silent for longer than `silence`.
pub fn ask(server: UnixStream, question: &str, silence: Duration) -> io::Result<String> {
    let mut server = Awaited::new(server, silence)?;
    server.write_all(format!("{question}\n").as_bytes())?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    if answer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(answer) }
}

/// A connection to a server that may be silent for a limited time.
#[derive(Debug)]
pub(crate) struct Awaited {
    server: UnixStream,
    silence: Duration,
}

impl Awaited {
    pub(crate) fn new(server: UnixStream, silence: Duration) -> io::Result<Self> {
        server.set_read_timeout(Some(silence))?;
        server.set_write_timeout(Some(silence))?;
        Ok(Self { server, silence })
    }

    fn explained(&self, error: io::Error) -> io::Error {
        let Self { silence, .. } = self;
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let what = format!("nothing within {silence:?}; hint: it may be stopped or hung");
                io::Error::new(io::ErrorKind::TimedOut, what)
            }
            _ => error,
        }
    }
}

impl Read for Awaited {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.server.read(bytes).map_err(|error| self.explained(error))
    }
}

impl Write for Awaited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.server.write(bytes).map_err(|error| self.explained(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.server.flush()
    }
}

/// A server that answers questions. It stops when it is dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: Address,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens at `address` and answers questions that end with `end`. `remote` decides whether other machines may
    /// connect. Nothing is encrypted.
    ///
    /// # Errors
    /// Nothing can listen there.
    pub fn open(
        address: &Address,
        remote: Remote,
        end: &'static [u8],
        answer: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> Result<Self, ListenError> {
        let converse = move |client: &Arc<Client>| converse(client, end, &answer);
        Self::with(address, remote, CONVERSATIONS, Some, converse)
    }

    /// Listens at `address` for conversations of any kind, `places` of them at once. A further client replaces the
    /// client with the highest value of `gives_way` for its age. It gets no place if `gives_way` returns `None` for all
    /// clients.
    ///
    /// # Errors
    /// Nothing can listen there.
    pub(crate) fn with(
        address: &Address,
        remote: Remote,
        places: usize,
        gives_way: fn(Duration) -> Option<Duration>,
        converse: impl Fn(&Arc<Client>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, ListenError> {
        let listener = Listener::bind_at_any_length(address, remote, false)?;
        let clients = Clients::new(places, places);
        let system = |source: io::Error| ListenError::System { address: address.clone(), source };
        let (stop, woken) = Stop::new().map_err(system)?;
        let (address, stopped) = (listener.address(), stop.clone());
        let serve = move || {
            if let Err(error) = serve(listener, (&woken, &stopped), &clients, gives_way, &converse) {
                tracing::warn!(%error, "no more questions are answered");
            }
        };
        let thread = thread::Builder::new().name("endpoint".into()).spawn(serve).map_err(system)?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Address at which it listens, with the chosen port.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Answers questions until it is stopped. Questions that are pending then are not answered.
fn serve(
    listener: Listener,
    (woken, stop): (&OwnedFd, &Stop),
    clients: &Clients,
    gives_way: fn(Duration) -> Option<Duration>,
    converse: &(impl Fn(&Arc<Client>) -> io::Result<()> + Sync),
) -> io::Result<()> {
    thread::scope(|scope| {
        let ended = loop {
            let client = match next_arrival(&listener, woken, stop, None) {
                Ok(Arrival::Client(socket, address)) => Arc::new(Client::new(socket, address)),
                Ok(Arrival::Time) => continue,
                Ok(Arrival::Stop) => break Ok(()),
                Err(error) => break Err(error),
            };
            let now = Instant::now();
            let Ok(place) = clients.enter(&client, |other| gives_way(other.age(now))) else { continue };
            let converse = move || {
                let _place = place;
                let outcome = converse(&client);
                if let Some(reason) = client.dropped() {
                    tracing::warn!(reason, "a question was not answered");
                } else if let Err(error) = outcome {
                    tracing::debug!(%error, "a question was not answered");
                }
            };
            if let Err(error) = thread::Builder::new().name("answer".into()).spawn_scoped(scope, converse) {
                tracing::warn!(%error, "a question was not answered: no thread for it");
            }
        };
        drop(listener);
        clients.dismiss(Duration::ZERO);
        ended
    })
}

fn converse(client: &Arc<Client>, end: &[u8], answer: impl Fn(&[u8]) -> Vec<u8>) -> io::Result<()> {
    let mut socket = Timed::new(Arc::clone(client), Instant::now() + PATIENCE, Duration::ZERO);
    let mut question = Vec::new();
    let mut piece = [0; 1024];
    // A body or a further question may follow.
    while !question.windows(end.len()).any(|window| window == end) {
        match socket.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => question.extend(&piece[..bytes]),
        }
        if question.len() > QUESTION_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    socket.write_all(&answer(&question))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_server_that_is_silent_is_not_waited_for() {
        let (client, _server) = UnixStream::pair().unwrap();
        let error = ask(client, "text", Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("stopped or hung"), "{error}");
    }

    #[test]
    fn questions_are_answered_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let shout = |question: &[u8]| question.to_ascii_uppercase();
        let endpoint = Endpoint::open(&Address::Unix(path.clone()), Remote::Refused, b"\n", shout).unwrap();
        for question in ["one\n", "two\n", "three\nwith a body"] {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(question.as_bytes()).unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert_eq!(answer, question.to_uppercase());
        }
        // A client that leaves without a question, and a question that never ends.
        drop(UnixStream::connect(&path).unwrap());
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(&vec![b'x'; QUESTION_BYTES + 1]).unwrap();
        assert_eq!(client.read(&mut [0; 8]).unwrap_or(0), 0);
        drop(endpoint);
        assert!(UnixStream::connect(&path).is_err() && !path.exists());
    }
    #[test]
    fn nobody_waits_for_another_and_the_oldest_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let echo = |question: &[u8]| question.to_vec();
        let endpoint = Endpoint::open(&Address::Unix(path.clone()), Remote::Refused, b"\n", echo).unwrap();
        let ask = || {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(b"here\n").unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert_eq!(answer, "here\n");
        };
        let start = Instant::now();
        let mut slow = Vec::new();
        for _ in 0..CONVERSATIONS + 3 {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(b"h").unwrap();
            slow.push(client);
            ask();
        }
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
        for client in &mut slow[..3] {
            assert_eq!(client.read(&mut [0; 8]).unwrap_or(0), 0, "it was not replaced");
        }
        let last = slow.last_mut().unwrap();
        last.write_all(b"i\n").unwrap();
        assert_eq!(last.read(&mut [0; 8]).unwrap(), 3);
        // Clients in the middle of a question do not delay the stop.
        let start = Instant::now();
        drop(endpoint);
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }

    /// Sending a byte now and then does not extend the deadline.
    #[test]
    fn a_conversation_has_one_deadline() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let client = Arc::new(Client::new(ours.into(), None));
        let start = Instant::now();
        let mut socket = Timed::new(client, start + Duration::from_millis(100), Duration::ZERO);
        let ended = loop {
            theirs.write_all(b"h").unwrap();
            if let Err(error) = socket.read(&mut [0; 8]) {
                break error;
            }
            thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}
