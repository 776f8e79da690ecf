//! Traces from sources: read in pieces of any size, with bounded memory, and with the errors of the source.

use std::io::{self, ErrorKind, Read};

use allocation_counter::measure;
use bimetal_core::trace::contract::{Format, Likeness, Shared, decode_lines};
use bimetal_core::trace::{
    DeviceChoice, FORMATS, Options, Place, ReadError, Trace, decode, encode_bimetal, encoded, format, read,
};

/// Lines of the SPC format, one for each request to the devices 0 to 3.
struct Lines {
    /// Number of the next line, from 0.
    next: u64,
    end: u64,
    line: io::Cursor<Vec<u8>>,
    /// Largest number of bytes for each read.
    step: usize,
    /// Error after the last line.
    failure: Option<ErrorKind>,
}

impl Lines {
    fn new(end: u64, step: usize, failure: Option<ErrorKind>) -> Self {
        Self { next: 0, end, line: io::Cursor::default(), step, failure }
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(self.step);
        let mut filled = 0;
        while filled < wanted {
            let read = self.line.read(&mut buffer[filled..wanted])?;
            filled += read;
            if read > 0 {
                continue;
            }
            if self.next == self.end {
                let failure = self.failure.filter(|_| filled == 0);
                return failure.map_or(Ok(filled), |kind| Err(kind.into()));
            }
            let number = self.next;
            self.next += 1;
            let text = format!("{},{},4096,{},{number}.5\n", number % 4, number * 8, ["r", "w"][number as usize % 2]);
            self.line = io::Cursor::new(text.into_bytes());
        }
        Ok(filled)
    }
}

fn spc() -> Options {
    Options { format: Some(format("spc").unwrap()), ..Options::default() }
}

fn trace_error(result: Result<Trace, ReadError>) -> bimetal_core::trace::TraceError {
    match result.unwrap_err() {
        ReadError::Trace(error) => error,
        ReadError::Source(error) => panic!("{error}"),
    }
}

/// More lines than detection reads, of which some end in each position of a buffer.
const MANY: u64 = 100_000;

#[test]
fn pieces_of_any_size_are_one_file() {
    let mut text = Vec::new();
    Lines::new(MANY, usize::MAX, None).read_to_end(&mut text).unwrap();
    assert!(text.len() > 2 << 20);
    let whole = decode("t", &text, &Options::default()).unwrap();
    assert_eq!((whole.reads, whole.writes, whole.devices.len()), (MANY / 2, MANY / 2, 4));
    // A length that is not known is 0.
    for (step, expected_length) in [(1, 0), (7, text.len() as u64), (4096, 1 << 40), (1 << 20, 1)] {
        let piecewise = read("t", &mut Lines::new(MANY, step, None), expected_length, &Options::default()).unwrap();
        assert!(piecewise == whole, "{step} {expected_length}");
    }
    // Without a line end at the end, and with a line that is longer than any buffer.
    text.pop();
    assert_eq!(decode("t", &text, &Options::default()).unwrap(), whole);
    let long = [&text[..], b"\n#", &vec![b'x'; 3 << 20], b"\n\n0,8,512,r,9e5"].concat();
    assert_eq!(decode("t", &long, &spc()).unwrap().reads, MANY / 2 + 1);
    let error = decode("t", &[&long[..], b"x"].concat(), &spc()).unwrap_err();
    assert_eq!(error.place(), Place::Line(MANY + 3), "{error}");
}

#[test]
fn an_invalid_line_far_into_the_file_has_its_number() {
    let mut source = Lines::new(MANY, 1000, None).chain(&b"0,8,512,q,1\n"[..]).chain(Lines::new(MANY, 1000, None));
    let error = trace_error(read("t", &mut source, 0, &Options::default()));
    assert_eq!((error.place(), error.field()), (Place::Line(MANY + 1), "Opcode"), "{error}");
}

#[test]
fn memory_depends_on_the_requests_that_are_taken() {
    let only = |id| Options { devices: DeviceChoice::Only(vec![id]), ..spc() };
    let mut taken = 0;
    let memory = measure(|| {
        let mut source = Lines::new(10 * MANY, 1 << 16, None).chain(&b"7,8,512,w,1000000\n"[..]);
        taken = read("t", &mut source, 1 << 40, &only(7)).unwrap().requests.len();
    });
    assert_eq!(taken, 1);
    // The start of the file, and the buffer of lines. The text has more than 20 MB.
    assert!(memory.bytes_max < 4 << 20, "{memory:?}");
}

#[test]
fn a_limit_ends_the_reading() {
    let limited = |limit, devices| Options { limit: Some(limit), devices, ..spc() };
    let first = |requests, devices| {
        // Reading on would fail.
        let mut source = Lines::new(10 * MANY, 1 << 16, Some(ErrorKind::Other));
        let trace = read("t", &mut source, 0, &limited(requests, devices)).unwrap();
        assert!(source.next < MANY, "{}", source.next);
        trace
    };
    let trace = first(10, DeviceChoice::All);
    assert_eq!((trace.reads, trace.writes, trace.devices.len(), trace.duration_ns()), (5, 5, 4, 9_000_000_000));
    // The second device may follow.
    let chosen = first(3, DeviceChoice::Only(vec![1, 9]));
    assert_eq!(chosen.requests.iter().map(|request| request.sector).collect::<Vec<_>>(), [8, 40, 72]);
    assert_eq!(chosen.warnings, ["device `9` has no request before `--limit` is reached"]);
    let absent = read("t", &mut Lines::new(20, 99, None), 0, &limited(6, DeviceChoice::Only(vec![1, 9])));
    assert!(trace_error(absent).to_string().contains("no device `9`"));
    let records: Vec<u8> = (0..MANY as u32).flat_map(|at| vscsi(at, at)).collect();
    let options = Options { limit: Some(7), ..Options::default() };
    let trace = decode("t", &records, &options).unwrap();
    assert_eq!((trace.format, trace.requests.len()), ("vscsi", 7));
}

#[test]
fn a_limit_ends_the_reading_of_a_compact_trace() {
    let mut whole = read("t", &mut Lines::new(MANY, 9999, None), 0, &spc()).unwrap();
    let compact = encoded(encode_bimetal, &whole).unwrap();
    for limit in [1, 1000, MANY - 1, MANY, MANY + 1] {
        let is_cut = limit < MANY / 2;
        let mut source = compact[..compact.len() / if is_cut { 2 } else { 1 }].chain(Lines::new(0, 1, None));
        let options = Options { limit: Some(limit), ..Options::default() };
        let mut first = read("t", &mut source, compact.len() as u64, &options).unwrap();
        assert!(first.requests.len() as u64 >= limit.min(MANY));
        first.keep_first(limit as usize);
        whole.format = "bimetal";
        let mut expected = whole.clone();
        expected.keep_first(limit as usize);
        assert!(first == expected, "{limit}");
        let counted = [first.reads, first.writes].iter().sum::<u64>();
        let of_devices = first.devices.iter().map(|device| device.requests).sum::<u64>();
        assert_eq!((counted, of_devices), (limit.min(MANY), limit.min(MANY)));
    }
}

/// A read in version 1 of the format.
fn vscsi(serial: u32, block: u32) -> Vec<u8> {
    let mut record: Vec<u8> = [serial, 4096, 1].into_iter().flat_map(u32::to_le_bytes).collect();
    record.extend([0x28u16, 0x0100].into_iter().flat_map(u16::to_le_bytes));
    record.extend([u64::from(block), u64::from(serial)].into_iter().flat_map(u64::to_le_bytes));
    record
}

/// A source that fails is no truncated trace, in any format.
#[test]
fn a_source_that_fails_is_the_error() {
    for kind in [ErrorKind::Other, ErrorKind::UnexpectedEof] {
        for lines in [0, 10, MANY] {
            for options in [spc(), Options::default()] {
                match read("t", &mut Lines::new(lines, 5000, Some(kind)), 0, &options) {
                    Err(ReadError::Source(error)) => assert_eq!(error.kind(), kind),
                    other => panic!("{lines} {kind}: {other:?}"),
                }
            }
        }
    }
    let trace = decode("t", b"0,8,4096,r,0.5\n0,16,512,w,0.75\n", &Options::default()).unwrap();
    let compact = encoded(encode_bimetal, &trace).unwrap();
    for cut in 1..=compact.len() {
        for &known in FORMATS.iter().filter(|known| !["parquet", "arrow"].contains(&known.name)) {
            let mut source = compact[..cut].chain(Lines::new(0, 1, Some(ErrorKind::TimedOut)));
            let options = Options { format: Some(known), ..Options::default() };
            let result = read("t", &mut source, 0, &options);
            assert!(matches!(result, Err(ReadError::Source(_))), "{} {cut}: {result:?}", known.name);
        }
    }
}

#[test]
fn a_format_reads_a_file_once() {
    static TWICE: Format = Format {
        name: "twice",
        aliases: &[],
        summary: "",
        layout: "",
        time_unit: None,
        has_actions: false,
        has_objects: false,
        has_columns: false,
        shared: Shared::Nothing,
        probe: |_| Likeness::No,
        decode: |input| {
            assert_eq!(input.whole()?, b"ab");
            decode_lines(input, "", |_| Ok(None))?.finish(input)
        },
    };
    let error = decode("t", b"ab", &Options { format: Some(&TWICE), ..Options::default() }).unwrap_err();
    assert_eq!(error.to_string(), "t: reading failed: the format reads the file twice");
}

#[test]
fn an_interrupted_read_is_repeated() {
    struct Interrupted<R>(R, bool);
    impl<R: Read> Read for Interrupted<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 { Err(ErrorKind::Interrupted.into()) } else { self.0.read(buffer) }
        }
    }
    let whole = read("t", &mut Lines::new(MANY, 9999, None), 0, &Options::default()).unwrap();
    let source = &mut Interrupted(Lines::new(MANY, 9999, None), false);
    assert!(read("t", source, 0, &Options::default()).unwrap() == whole);
    let compact = encoded(encode_bimetal, &whole).unwrap();
    let source = &mut Interrupted(&compact[..], false);
    assert_eq!(read("t", source, 0, &Options::default()).unwrap().requests, whole.requests);
}
