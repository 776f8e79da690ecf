//! A small server beside the device: one question, one answer, and the connection is closed.
//!
//! `bimetal stat` asks here, and whoever collects figures over HTTP. One client is served at a time, within seconds: what
//! comes late or is too long is not answered.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use crate::nbd::{Address, ListenError, Listener, Stop, next_client};

/// Bytes of a question, at most.
const QUESTION_BYTES: usize = 8 << 10;
/// How long a client may take to ask, and to take its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server of answers. It stops when it is dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: Address,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens at `address`, beyond the loopback only if `remote`, and answers questions that end with `end`.
    ///
    /// # Errors
    /// Nothing can listen there.
    pub fn open(
        address: &Address,
        remote: bool,
        end: &'static [u8],
        answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static,
    ) -> Result<Self, ListenError> {
        let listener = Listener::bind(address, remote)?;
        let system = |source: io::Error| ListenError::System { address: address.clone(), source };
        let (stop, woken) = Stop::new().map_err(system)?;
        let (address, stopped) = (listener.address(), stop.clone());
        let serve = move || {
            loop {
                match next_client(&listener, &woken, &stopped) {
                    Ok(Some(client)) => {
                        if let Err(error) = converse(client, end, &answer) {
                            tracing::debug!(%error, "a question was not answered");
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(%error, "no more questions are answered");
                        break;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("endpoint".into()).spawn(serve).map_err(system)?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Where it listens, with the port that was chosen.
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

fn converse(client: OwnedFd, end: &[u8], answer: impl Fn(&[u8]) -> Vec<u8>) -> io::Result<()> {
    set_socket_timeout(&client, Timeout::Recv, Some(PATIENCE))?;
    set_socket_timeout(&client, Timeout::Send, Some(PATIENCE))?;
    let mut client = File::from(client);
    let mut question = Vec::new();
    let mut piece = [0; 1024];
    while !question.ends_with(end) {
        match client.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => question.extend(&piece[..bytes]),
        }
        if question.len() > QUESTION_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    client.write_all(&answer(&question))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn questions_are_answered_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let shout = |question: &[u8]| question.to_ascii_uppercase();
        let endpoint = Endpoint::open(&Address::Unix(path.clone()), false, b"\n", shout).unwrap();
        for question in ["one\n", "two\n"] {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(question.as_bytes()).unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert_eq!(answer, question.to_uppercase());
        }
        // One that goes away without a word, and one that never ends.
        drop(UnixStream::connect(&path).unwrap());
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(&vec![b'x'; QUESTION_BYTES + 1]).unwrap();
        assert_eq!(client.read(&mut [0; 8]).unwrap_or(0), 0);
        drop(endpoint);
        assert!(UnixStream::connect(&path).is_err() && !path.exists());
    }
}
