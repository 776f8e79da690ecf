//! The bytes of one file, for one pass from its beginning to its end.
//!
//! A file is not held in memory: traces of some hundred gigabytes are published, of which a study needs a few devices.
//! Detection sees the first megabyte. Afterwards lines and records are taken from a buffer that stays in the
//! processor's cache. Only formats with records of any length take the whole file (`blktrace`, `srt`).

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, Read};

use super::error::{ErrorKind, Fault, Place, TraceError};
use super::{Format, Options, TimeUnit};

/// Size of the buffer of lines or records in bytes. It stays in the processor's cache.
pub(super) const BUFFER_BYTES: usize = 256 << 10;

/// One file and how to read it.
pub struct Input<'a> {
    /// Its name, for errors.
    pub name: &'a str,
    /// Its first bytes: the whole file, or at least one megabyte.
    pub start: &'a [u8],
    /// Its expected length in bytes; smaller or 0 if it is unknown, as that of a compressed file is.
    pub expected_length: u64,
    /// Options for information that is not in the bytes.
    pub options: &'a Options,
    /// The format of the file.
    pub format: &'static Format,
    /// The bytes after `start`.
    pub(super) rest: &'a dyn Rest,
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("name", &self.name).field("format", &self.format).finish_non_exhaustive()
    }
}

impl<'a> Input<'a> {
    /// An input without bytes, for a table whose rows come from another reader.
    pub fn of_table(name: &'a str, options: &'a Options, format: &'static Format) -> Self {
        Self { name, start: &[], expected_length: 0, options, format, rest: &Nothing }
    }

    /// The unit of the time stamps: the given one, or the format's.
    pub fn time_unit(&self) -> TimeUnit {
        self.options.time_unit.or(self.format.time_unit).unwrap_or(TimeUnit::Nanoseconds)
    }

    /// The bytes of the file from the beginning. A file can be read once: a second reader fails.
    pub fn bytes(&self) -> Bytes<'_> {
        Bytes { input: self, start: self.start, is_first: self.rest.begin() }
    }

    /// The whole file. A file can be read once.
    ///
    /// # Errors
    /// The source fails, or the file has been read.
    pub fn whole(&self) -> Result<Vec<u8>, TraceError> {
        read_whole(&mut self.bytes(), self.expected_length).map_err(|error| self.unread(&error))
    }

    /// The error of a record, with its file, place and the layout of the format.
    #[cold]
    pub fn fault(&self, place: Place, fault: Fault) -> TraceError {
        let mut hint = format!("a record of `{}` is: {}", self.format.name, self.format.layout);
        if self.options.format.is_none() {
            hint.push_str("; if the file has another format, name it with `--format`");
        }
        TraceError::of_fault(self.name, place, fault).with_hint(hint)
    }

    /// An error about the file as a whole.
    #[cold]
    pub fn error(&self, kind: ErrorKind, what: impl Into<String>) -> TraceError {
        TraceError::new(kind, self.name, what)
    }

    /// The error of a source that failed. [`read`](super::read) replaces it by the failure itself.
    pub(super) fn unread(&self, error: &io::Error) -> TraceError {
        self.error(ErrorKind::Truncated, format!("reading failed: {error}"))
    }
}

/// All bytes of a source of about `expected_length` bytes.
///
/// # Errors
/// The source fails, or there is too little memory.
pub fn read_whole(source: &mut dyn Read, expected_length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more, so that the read to the end needs no second allocation.
    let expected = usize::try_from(expected_length).unwrap_or(usize::MAX).saturating_add(1);
    bytes.try_reserve_exact(expected).map_err(|_| io::ErrorKind::OutOfMemory)?;
    source.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A reader of the bytes of a file.
#[derive(Debug)]
pub struct Bytes<'a> {
    input: &'a Input<'a>,
    /// Bytes of the start that are not read yet.
    start: &'a [u8],
    is_first: bool,
}

impl Bytes<'_> {
    /// Reads until the buffer is full or the file ends. Returns the number of bytes read.
    ///
    /// # Errors
    /// The source fails.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.input.unread(&error)),
            }
        }
        Ok(filled)
    }
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_first {
            return Err(io::Error::other("the format reads the file twice"));
        }
        if self.start.is_empty() { self.input.rest.read(buffer) } else { self.start.read(buffer) }
    }
}

/// The bytes after the first ones.
pub(super) trait Rest {
    /// Whether the file is read for the first time.
    fn begin(&self) -> bool;

    /// Reads like [`Read::read`].
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;
}

struct Nothing;

impl Rest for Nothing {
    fn begin(&self) -> bool {
        true
    }

    fn read(&self, _: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
}

/// The rest of a source, which is read through a shared [`Input`].
pub(super) struct Source<'a> {
    reader: RefCell<&'a mut dyn Read>,
    is_begun: Cell<bool>,
    /// The failure of the source.
    failure: Cell<Option<io::Error>>,
}

impl<'a> Source<'a> {
    pub(super) fn new(reader: &'a mut dyn Read) -> Self {
        Self { reader: RefCell::new(reader), is_begun: Cell::new(false), failure: Cell::new(None) }
    }

    /// The error that ended the reading, if one did.
    pub(super) fn failure(self) -> Option<io::Error> {
        self.failure.into_inner()
    }
}

impl Rest for Source<'_> {
    fn begin(&self) -> bool {
        !self.is_begun.replace(true)
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.borrow_mut().read(buffer);
        read.map_err(|error| {
            let repeated = io::Error::new(error.kind(), error.to_string());
            if error.kind() != io::ErrorKind::Interrupted {
                self.failure.set(Some(error));
            }
            repeated
        })
    }
}
