//! A running server, and clients that connect to its socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bimetal_live::BlockDevice;
use bimetal_live::nbd::{Address, Export, Options, Server, Stop};
use tempfile::TempDir;

use crate::client::*;

/// A server at a socket in its own folder. It is stopped at the end, even if the test fails.
pub struct Running {
    /// Folder of the socket; removed with the server.
    _folder: TempDir,
    pub socket: PathBuf,
    pub address: Address,
    stop: Stop,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Running {
    pub fn new(device: Arc<dyn BlockDevice>) -> Self {
        Self::with(device, Export::default(), Options::default(), "unix")
    }

    /// A server at a Unix socket, or at a port of the loopback.
    pub fn with(device: Arc<dyn BlockDevice>, export: Export, options: Options, family: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let address = match family {
            "unix" => Address::Unix(socket.clone()),
            _ => "tcp:127.0.0.1:0".parse().unwrap(),
        };
        let server = Server::bind(&address, export, options).unwrap();
        let (stop, address) = (server.stop(), server.address());
        let thread = Some(thread::spawn(move || server.run(&*device)));
        Self { _folder: folder, socket, address, stop, thread }
    }

    /// Its URI for clients.
    pub fn uri(&self) -> String {
        match &self.address {
            Address::Unix(path) => format!("nbd+unix:///?socket={}", path.display()),
            Address::Tcp(address) => format!("nbd://{address}"),
        }
    }

    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// A client that has negotiated.
    pub fn client(&self, form: Form) -> UnixStream {
        let mut stream = self.connect();
        stream.write_all(&negotiate(form, false)).unwrap();
        let replies = if form == Form::Simple { 0 } else { 20 } + 20 + 12 + 20;
        receive(&mut stream, 18 + replies);
        stream
    }

    pub fn ask_to_stop(&self) {
        self.stop.stop();
    }

    /// Stops it. Returns the result of its run.
    pub fn stop(mut self) -> io::Result<()> {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn receive(stream: &mut impl Read, bytes: usize) -> Vec<u8> {
    let mut received = vec![0; bytes];
    stream.read_exact(&mut received).unwrap();
    received
}

/// Waits until the server has closed the connection. Returns the bytes sent before.
pub fn rest(stream: &mut UnixStream) -> Vec<u8> {
    let mut received = Vec::new();
    match stream.read_to_end(&mut received) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
    }
    received
}
