//! Traces from files: opens, decompresses and decodes.
//!
//! Compression (gzip, zstd, xz, bzip2) is recognised by content, never by name. A file may consist of several
//! compressed streams. An archive that ends early or is damaged is an error, and no part of it is used.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::thread;

use bimetal_core::trace::{self, DeviceChoice, ErrorKind, Options, ReadError, Shared, Trace, TraceError};

use crate::read_ahead::{Counted, ReadAhead};

/// Reason why a trace could not be opened. Displays as one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// No file was given.
    #[error("no trace is given; hint: name at least one file, or `-` for the standard input")]
    NoFile,
    /// The path does not exist or is not readable.
    #[error("{}: the file cannot be opened: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The path is a directory.
    #[error("{}: this is a directory; hint: name the trace files in it", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// Reading failed half way.
    #[error("{}: reading failed: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is compressed but cannot be decompressed.
    #[error("{}: the {compression} data are damaged or cut off: {source}; hint: fetch the file again", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The compression format.
        compression: Compression,
        /// The error of the decompressor.
        source: io::Error,
    },
    /// None of several files has a chosen device.
    #[error("no file has a device `{id}`; hint: without `--volumes` all devices are taken")]
    Device {
        /// The device's number.
        id: u64,
    },
    /// The bytes cannot be decoded.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The progress callback stopped it.
    #[error("stopped before the end")]
    Stopped,
}

/// A compression format that is decompressed while reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
        })
    }
}

impl Compression {
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            _ => None,
        }
    }

    /// A reader of the decompressed data of all streams in `source`.
    fn undo<'a>(self, source: impl Read + Send + 'a) -> io::Result<Box<dyn Read + Send + 'a>> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(source)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(source)?),
            Self::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(source)),
            Self::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(source)),
        })
    }
}

/// Opens one or more trace files as one trace; `-` is the standard input. [`trace::concat`] combines several files.
///
/// # Errors
/// An [`InputError`] for the first file that cannot be opened, decompressed or decoded.
pub fn open(paths: &[PathBuf], options: &Options) -> Result<Trace, InputError> {
    open_with_progress(paths, options, &|_, _| ControlFlow::Continue(()))
}

/// [`open`] with a progress callback, which gets the bytes read so far and the total, both in compressed size. The
/// callback returns whether to continue. The standard input counts as 0 bytes.
///
/// # Errors
/// The errors of [`open`], or `progress` stopped it.
pub fn open_with_progress(
    paths: &[PathBuf],
    options: &Options,
    progress: &dyn Fn(u64, u64) -> ControlFlow<()>,
) -> Result<Trace, InputError> {
    if paths.is_empty() {
        return Err(InputError::NoFile);
    }
    let sizes = paths.iter().map(|path| size(path)).collect::<Result<Vec<u64>, _>>()?;
    let total = sizes.iter().sum();
    let mut before = 0;
    let mut traces = Vec::with_capacity(paths.len());
    let mut without = Vec::new();
    let options = &Options { is_part: paths.len() > 1, ..options.clone() };
    for (path, size) in paths.iter().zip(sizes) {
        let stopped = Cell::new(false);
        let go_on = |done: u64| {
            stopped.set(progress((before + done).min(total), total).is_break());
            !stopped.get()
        };
        let opened = open_one(path, size, options, &go_on);
        if stopped.get() {
            return Err(InputError::Stopped);
        }
        before += size;
        let mut trace = match opened {
            Err(InputError::Trace(error)) if paths.len() > 1 && is_without_requests(&error) => {
                without.push(error);
                continue;
            }
            opened => opened?,
        };
        if let Some(name) = path.file_name().filter(|_| !is_standard_input(path)) {
            trace.name = name.to_string_lossy().into_owned();
        }
        traces.push(trace);
    }
    if !without.is_empty() && !traces.first().is_some_and(is_part_of_recording) {
        return Err(without.swap_remove(0).into());
    }
    check_devices(&traces, options)?;
    let mut whole = trace::concat(traces)?;
    whole.warnings.extend(without.iter().map(|error| format!("left out: {error}")));
    Ok(whole)
}

/// Checks that each chosen device is in one of the files at least. With a limit they are not read to the end.
fn check_devices(traces: &[Trace], options: &Options) -> Result<(), InputError> {
    let (DeviceChoice::Only(ids), None) = (&options.devices, options.limit) else { return Ok(()) };
    let known: BTreeSet<u64> = traces.iter().flat_map(|trace| &trace.devices).map(|device| device.id).collect();
    match ids.iter().find(|id| !known.contains(id)) {
        Some(&id) => Err(InputError::Device { id }),
        None => Ok(()),
    }
}

/// Whether the files of this format are hours or processors of one recording.
fn is_part_of_recording(trace: &Trace) -> bool {
    trace::format(trace.format).is_ok_and(|format| format.shared == Shared::ClockAndDevices)
}

/// Whether the file has no request, like that of an idle processor or hour, or none of a chosen device.
fn is_without_requests(error: &TraceError) -> bool {
    matches!(error.kind(), ErrorKind::Empty | ErrorKind::NoRequests | ErrorKind::Device)
}

pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn size(path: &Path) -> Result<u64, InputError> {
    if is_standard_input(path) {
        return Ok(0);
    }
    let metadata = path.metadata().map_err(|source| InputError::Open { path: path.to_owned(), source })?;
    if metadata.is_dir() {
        return Err(InputError::Directory { path: path.to_owned() });
    }
    Ok(metadata.len())
}

/// Number of first bytes that identify the compression, and Parquet and Arrow files.
const START: u64 = 8;

fn open_one(path: &Path, size: u64, options: &Options, go_on: &dyn Fn(u64) -> bool) -> Result<Trace, InputError> {
    let path_buf = || path.to_owned();
    let source: Box<dyn Read + Send> = if is_standard_input(path) {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(|source| InputError::Open { path: path_buf(), source })?)
    };
    let done = AtomicU64::new(0);
    let failed = |source| InputError::Read { path: path_buf(), source };
    let (start, source) = peek(Counted::new(source, &done)).map_err(failed)?;
    let Some(compression) = Compression::of(&start) else {
        return thread::scope(|scope| {
            let mut source = ReadAhead::start(scope, source, &done, go_on).map_err(failed)?;
            decode(path, &start, &mut source, size, options, failed)
        });
    };
    let corrupt = |source| InputError::Corrupt { path: path_buf(), compression, source };
    let (start, source) = compression.undo(source).and_then(peek).map_err(corrupt)?;
    thread::scope(|scope| {
        let mut source = ReadAhead::start(scope, source, &done, go_on).map_err(failed)?;
        let decoded = decode(path, &start, &mut source, 0, options, corrupt);
        if matches!(decoded, Err(InputError::Trace(_))) {
            // Damage can change the text before a checksum reveals it.
            io::copy(&mut source, &mut io::sink()).map_err(corrupt)?;
        }
        decoded
    })
}

/// The first bytes of a source, and a reader that still starts with them.
fn peek<'a>(mut source: impl Read + Send + 'a) -> io::Result<(Vec<u8>, impl Read + Send + 'a)> {
    let mut start = Vec::new();
    source.by_ref().take(START).read_to_end(&mut start)?;
    Ok((start.clone(), Cursor::new(start).chain(source)))
}

/// Decodes a source of about `size` bytes that begins with `start`; `failed` makes the error of a failed read.
fn decode(
    path: &Path,
    #[cfg_attr(
        not(any(feature = "parquet", feature = "arrow")),
        expect(unused_variables, reason = "for tables alone")
    )]
    start: &[u8],
    source: &mut dyn Read,
    size: u64,
    options: &Options,
    failed: impl Fn(io::Error) -> InputError,
) -> Result<Trace, InputError> {
    let name = if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() };
    #[cfg(feature = "parquet")]
    if options.format.map_or(trace::is_parquet(start), |format| format.name == "parquet") && !start.is_empty() {
        return Ok(crate::parquet_trace::decode(&name, trace::read_whole(source, size).map_err(failed)?, options)?);
    }
    #[cfg(feature = "arrow")]
    if options.format.map_or(trace::is_arrow(start), |format| format.name == "arrow") && !start.is_empty() {
        return Ok(crate::arrow_trace::decode(&name, &trace::read_whole(source, size).map_err(failed)?, options)?);
    }
    trace::read(&name, source, size, options).map_err(|error| match error {
        ReadError::Source(error) => failed(error),
        ReadError::Trace(error) => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const TEXT: &[u8] = b"0,8,4096,r,0.5\n0,16,512,w,0.75\n";

    fn compress(compression: Compression, bytes: &[u8]) -> Vec<u8> {
        match compression {
            Compression::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Zstd => {
                // zstd detects the damage only by its checksum, which the `zstd` command writes by default.
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
                encoder.include_checksum(true).unwrap();
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    /// Opens several files of these texts.
    fn open_texts(texts: &[&str], volumes: &[u64]) -> Result<Trace, InputError> {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..texts.len()).map(|number| folder.path().join(format!("{number}"))).collect();
        paths.iter().zip(texts).for_each(|(path, text)| std::fs::write(path, text).unwrap());
        let devices = if volumes.is_empty() { DeviceChoice::All } else { DeviceChoice::Only(volumes.to_vec()) };
        open(&paths, &Options { devices, ..Options::default() })
    }

    #[test]
    fn a_file_of_a_recording_may_lack_requests() {
        let (both, one) = ("1538323200,0,8,0,5\n1538323201,8,8,1,6\n", "1538323202,0,8,0,5\n");
        let chosen = open_texts(&[both, one], &[6]).unwrap();
        assert_eq!((chosen.requests.len(), chosen.writes), (1, 1));
        assert!(chosen.warnings[0].starts_with("left out: "), "{:?}", chosen.warnings);
        assert_eq!(open_texts(&[both, one, ""], &[5, 6]).unwrap().requests.len(), 3);
        for (texts, volumes, what) in [
            (&[both, one][..], &[6, 7][..], "no file has a device `7`"),
            (&[both, one], &[7], "the trace has no device `7`"),
            (&[std::str::from_utf8(TEXT).unwrap(), ""], &[], "the file is empty"),
        ] {
            let error = open_texts(texts, volumes).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }

    const ALL: [Compression; 4] = [Compression::Gzip, Compression::Zstd, Compression::Xz, Compression::Bzip2];

    /// Opens one file of these bytes.
    fn open_bytes(bytes: &[u8]) -> Result<Trace, InputError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.any");
        std::fs::write(&path, bytes).unwrap();
        open(&[path], &Options::default())
    }

    #[test]
    fn every_compression_is_undone_also_in_several_streams() {
        let plain = open_bytes(TEXT).unwrap();
        assert_eq!((plain.name.as_str(), plain.requests.len()), ("t.any", 2));
        for compression in ALL {
            assert_eq!(open_bytes(&compress(compression, TEXT)).unwrap(), plain, "{compression}");
            let (first, second) = TEXT.split_at(20);
            let streams = [compress(compression, first), compress(compression, second)].concat();
            assert_eq!(open_bytes(&streams).unwrap(), plain, "{compression}");
        }
    }

    #[test]
    fn the_compact_form_is_read_piece_by_piece() {
        let compact = trace::encoded(trace::encode_bimetal, &open_bytes(TEXT).unwrap()).unwrap();
        let plain = open_bytes(&compact).unwrap();
        assert_eq!((plain.format, plain.requests.len()), ("bimetal", 2));
        for compression in ALL {
            assert_eq!(open_bytes(&compress(compression, &compact)).unwrap(), plain);
        }
        let error = open_bytes(&compact[..compact.len() - 1]).unwrap_err().to_string();
        assert!(error.contains("t.any: the file is cut off: it holds 1 of its 2 requests"), "{error}");
    }

    #[test]
    fn a_cut_or_damaged_archive_is_an_error() {
        for compression in ALL {
            let whole = compress(compression, TEXT);
            for cut in 6..whole.len() {
                let error = open_bytes(&whole[..cut]).unwrap_err();
                assert!(matches!(error, InputError::Corrupt { .. }), "{compression} cut at {cut}: {error}");
            }
            let mut damaged = whole.clone();
            let middle = whole.len() / 2;
            damaged[middle] ^= 0xff;
            let error = open_bytes(&damaged).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("t.any: the {compression} data")), "{text}");
            assert!(!text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn what_is_no_file_is_said_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let error = open(&[folder.path().to_owned()], &Options::default()).unwrap_err();
        assert!(matches!(error, InputError::Directory { .. }), "{error}");
        let missing = folder.path().join("none.csv");
        let error = open(&[missing], &Options::default()).unwrap_err().to_string();
        assert!(error.contains("none.csv: the file cannot be opened: No such file"), "{error}");
        assert!(matches!(open(&[], &Options::default()), Err(InputError::NoFile)));
        let error = open_bytes(b"").unwrap_err().to_string();
        assert!(error.ends_with("t.any: the file is empty"), "{error}");
        let error = open_bytes(b"0,8,4096,r,0.5\n0,8,4096,q,0.5\n").unwrap_err().to_string();
        assert!(error.contains("t.any: line 2: field `Opcode`"), "{error}");
    }

    #[test]
    fn several_files_are_one_trace_and_progress_reaches_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a.spc", "b.spc.gz"].map(|name| folder.path().join(name));
        std::fs::write(&paths[0], TEXT).unwrap();
        std::fs::write(&paths[1], compress(Compression::Gzip, TEXT)).unwrap();
        let last = Cell::new((0, 0));
        let progress = |done, total| {
            last.set((done, total));
            ControlFlow::Continue(())
        };
        let trace = open_with_progress(&paths, &Options::default(), &progress).unwrap();
        assert_eq!((trace.name.as_str(), trace.requests.len(), trace.devices.len()), ("a.spc + b.spc.gz", 4, 2));
        assert_eq!(last.get().0, last.get().1);
        assert!(last.get().1 > TEXT.len() as u64);
        let stop = |_, _| ControlFlow::Break(());
        let stopped = open_with_progress(&paths, &Options::default(), &stop);
        assert!(matches!(stopped, Err(InputError::Stopped)), "{stopped:?}");
    }
}
