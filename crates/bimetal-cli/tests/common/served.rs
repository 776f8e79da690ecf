//! A server as a process, and a client with the part of the protocol that tests need.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Bench;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const FLUSH: u16 = 3;

/// A server that does not outlive its test.
pub struct Served {
    pub child: Child,
    /// Its output, line by line.
    pub said: BufReader<std::process::ChildStdout>,
    pub uri: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// Runs a script that becomes a server of store `s`, and waits until clients can connect.
    pub fn start(bench: &Bench, script: &str) -> Self {
        Self::with_input(bench, script, Stdio::null())
    }

    /// Like [`Self::start`], with the given standard input.
    pub fn with_input(bench: &Bench, script: &str, input: Stdio) -> Self {
        let path = Path::new(env!("CARGO_BIN_EXE_bimetal")).parent().unwrap();
        let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("PATH", path).current_dir(bench.path("")).stdin(input);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut uri = String::new();
        said.read_line(&mut uri).unwrap();
        let mut served = Self { child, said, uri: uri.trim_end().to_owned() };
        if served.uri.is_empty() {
            panic!("no server: {}", served.errors());
        }
        served
    }

    pub fn of(bench: &Bench, arguments: &str) -> Self {
        Self::start(bench, &format!("exec bimetal serve s {arguments}"))
    }

    pub fn socket(&self) -> PathBuf {
        PathBuf::from(self.uri.split_once("?socket=").unwrap().1)
    }

    pub fn signal(&self, signal: &str) {
        let told = Command::new("kill").args(["-s", signal, &self.child.id().to_string()]).status().unwrap();
        assert!(told.success());
    }

    /// Sends the signal, which must end it. Returns its exit status and the time that this took.
    pub fn stop(&mut self, signal: &str) -> (ExitStatus, Duration) {
        let start = Instant::now();
        self.signal(signal);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, start.elapsed());
            }
            assert!(start.elapsed() < Duration::from_secs(60), "SIG{signal} did not end it");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Its output on the standard error, after it has ended.
    pub fn errors(&mut self) -> String {
        let mut text = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

/// A client that has negotiated, if it is accepted.
pub fn client(socket: &Path) -> Option<UnixStream> {
    let mut client = UnixStream::connect(socket).ok()?;
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let hello = [&3_u32.to_be_bytes()[..], b"IHAVEOPT", &1_u32.to_be_bytes(), &0_u32.to_be_bytes()].concat();
    client.write_all(&hello).ok()?;
    client.read_exact(&mut [0; 28]).ok()?;
    Some(client)
}

pub fn request(kind: u16, offset: u64, bytes: u32) -> Vec<u8> {
    let head = [&0x2560_9513_u32.to_be_bytes()[..], &[0, 0], &kind.to_be_bytes(), &[7; 8]].concat();
    [&head[..], &offset.to_be_bytes(), &bytes.to_be_bytes()].concat()
}

/// Whether the request is answered with `bytes` bytes of data.
pub fn answered(client: &mut UnixStream, request: &[u8], bytes: usize) -> bool {
    let mut reply = vec![0; 16 + bytes];
    client.write_all(request).is_ok() && client.read_exact(&mut reply).is_ok() && reply[4..8] == [0; 4]
}
