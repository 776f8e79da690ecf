//! Reads, and decompresses, a file on a thread of its own while another decodes it.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};

/// Size of a piece in bytes. A few pieces stay in the processor's cache.
const PIECE_BYTES: u64 = 256 << 10;
/// Pieces that are read ahead.
const PIECES: usize = 4;
/// Bytes of the source between two reports of progress.
const REPORT_BYTES: u64 = 1 << 20;

/// A reader that counts the bytes read.
pub struct Counted<'a, R> {
    source: R,
    done: &'a AtomicU64,
}

impl<'a, R> Counted<'a, R> {
    /// A reader of this source that adds to `done`.
    pub fn new(source: R, done: &'a AtomicU64) -> Self {
        Self { source, done }
    }
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.done.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The bytes of a source, in pieces that another thread has read. Fails after the progress callback has said stop.
pub struct ReadAhead<'a> {
    full: Receiver<io::Result<Vec<u8>>>,
    empty: Sender<Vec<u8>>,
    piece: Vec<u8>,
    /// Bytes taken from the piece.
    taken: usize,
    /// Bytes that have been read from the file, compressed if it is.
    done: &'a AtomicU64,
    reported: u64,
    go_on: &'a dyn Fn(u64) -> bool,
}

impl<'a> ReadAhead<'a> {
    /// Reads the source to its end on another thread. `go_on` gets the bytes that it has counted in `done`, and
    /// returns whether to continue.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        mut source: impl Read + Send + 'scope,
        done: &'a AtomicU64,
        go_on: &'a dyn Fn(u64) -> bool,
    ) -> io::Result<Self> {
        let (empty, empty_pieces) = channel::<Vec<u8>>();
        let (full_pieces, full) = channel();
        for _ in 0..PIECES {
            // The other end exists.
            let _ = empty.send(Vec::new());
        }
        Builder::new().name("read-ahead".to_owned()).spawn_scoped(scope, move || {
            for mut piece in empty_pieces {
                piece.clear();
                let read = source.by_ref().take(PIECE_BYTES).read_to_end(&mut piece);
                let is_last = !matches!(read, Ok(1..));
                // Nobody takes it after the decoder has failed.
                if full_pieces.send(read.map(|_| piece)).is_err() || is_last {
                    break;
                }
            }
        })?;
        Ok(Self { full, empty, piece: Vec::new(), taken: 0, done, reported: 0, go_on })
    }

    /// The next piece; empty at the end.
    fn next_piece(&mut self) -> io::Result<()> {
        // Nobody takes it at the end of the source.
        let _ = self.empty.send(std::mem::take(&mut self.piece));
        self.taken = 0;
        if let Ok(piece) = self.full.recv() {
            self.piece = piece?;
        }
        let done = self.done.load(Ordering::Relaxed);
        if self.piece.is_empty() || done - self.reported >= REPORT_BYTES {
            self.reported = done;
            if !(self.go_on)(done) {
                return Err(io::Error::other("stopped"));
            }
        }
        Ok(())
    }
}

impl Read for ReadAhead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() {
            self.next_piece()?;
        }
        let read = (&self.piece[self.taken..]).read(buffer)?;
        self.taken += read;
        Ok(read)
    }
}
