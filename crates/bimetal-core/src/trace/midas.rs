//! MiDAS: traces of the FTL of FAST 2024 and of its platform FlashDriver, with trims.
//!
//! `seconds type page bytes`: type 0 read, 1 write, 2 not used, 3 trim; the address in 4-KiB pages, the length in bytes. (MiDAS, README.)
//!
//! Traps: the address and the length have different units.

use std::io::Write;

use super::collect::{MAX_BYTES, Row, count};
use super::detect::{self, Likeness, Sample};
use super::encode::WriteError;
use super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace};
use crate::request::{Op, PAGE_BYTES, SECTOR_BYTES};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "midas",
    aliases: &["flashdriver"],
    summary: "MiDAS and FlashDriver text, with trims",
    layout: "time type page bytes: seconds, 0 = read, 1 = write, 3 = trim, 4-KiB pages, bytes",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

/// A line, and whether its type is the unused one.
#[inline]
fn row(line: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
    let mut fields = Fields::blanks(line);
    let time_ns = fields.time("time", unit)?;
    let op = match fields.next("type")? {
        b"0" => Some(Op::Read),
        b"1" => Some(Op::Write),
        b"2" => None,
        b"3" => Some(Op::Trim),
        other => return Err(Fault::field(ErrorKind::Field, "type", "is not 0, 1, 2 or 3", other)),
    };
    let page = fields.whole("page")?;
    let Some(offset) = page.checked_mul(PAGE_BYTES).filter(|&offset| offset <= MAX_BYTES) else {
        return Err(Fault::field(ErrorKind::Range, "page", "lies beyond 2^63 bytes", page.to_string().as_bytes()));
    };
    let bytes = fields.whole("bytes")?;
    fields.end()?;
    Ok(op.map(|op| Row { time_ns, device: 0, offset, bytes, op }))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    // Any four numbers would fit. The seconds of the format have decimals.
    let has_decimals = |line: &[u8]| Fields::blanks(line).optional().is_some_and(|time| time.contains(&b'.'));
    if !sample.lines().any(|(_, line)| has_decimals(line)) {
        return Likeness::No;
    }
    detect::probe(sample, "", |line| row(line, TimeUnit::Seconds))
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let (unit, mut unused) = (input.time_unit(), 0);
    let mut collector = lines::decode(input, "", |line| {
        let row = row(line, unit)?;
        unused += u64::from(row.is_none());
        Ok(row)
    })?;
    if unused > 0 {
        collector.warn(format!("{} of the type that is not used, 2, left out", count(unused, "line")));
    }
    collector.finish(input)
}

/// Writes a trace in this syntax, its devices laid end to end, times to the nanosecond.
///
/// # Errors
/// [`ErrorKind::Inexpressible`] for a request that does not begin with a 4-KiB page, and for placement handles.
pub fn encode_midas(trace: &Trace, out: &mut dyn Write) -> Result<(), WriteError> {
    const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;
    if let Some(at) = trace.requests.iter().position(|request| !request.sector.is_multiple_of(PAGE_SECTORS)) {
        let what = format!("request {} begins within a 4-KiB page, which MiDAS cannot express", at + 1);
        let error = TraceError::new(ErrorKind::Inexpressible, &trace.name, what);
        return Err(error.with_hint("convert it to `bimetal`").into());
    }
    super::encode::text_with_trims(trace, out, "MiDAS", |line, _, request| {
        let op = match request.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Trim => 3,
        };
        let (seconds, ns) = (request.arrival_ns / 1_000_000_000, request.arrival_ns % 1_000_000_000);
        writeln!(line, "{seconds}.{ns:09} {op} {} {}", request.sector / PAGE_SECTORS, request.bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::super::encode::encoded;
    use super::super::testing::{fault_of, read_as};
    use super::super::{Options, decode as decode_any};
    use super::*;

    /// Lines of the example in MiDAS' README, and a trim in the same layout.
    const LINES: &str = "0.146559796 1 0 4096 \n0.146609386 1 1 4096 \n0.146637836 0 5 8182 \n0.146643556 0 6 8192 \n\
                         0.2 3 1 12288\n0.3 2 0 4096\n";

    #[test]
    fn the_published_example() {
        let trace = decode_any("t", LINES.as_bytes(), &Options::default()).unwrap();
        assert_eq!((trace.format, trace.reads, trace.writes, trace.trims), ("midas", 2, 2, 1));
        assert_eq!((trace.requests[3].sector, trace.requests[3].sectors, trace.read_bytes), (48, 16, 8182 + 8192));
        assert_eq!((trace.requests[4].op, trace.requests[4].sectors), (Op::Trim, 24));
        assert_eq!(trace.requests[1].arrival_ns, 49_590);
        assert!(trace.warnings.iter().any(|warning| warning.starts_with("1 line of the type that is not used")));
    }

    #[test]
    fn four_whole_numbers_are_not_recognised() {
        let any = b"0 1 2048 4096\n4000 1 6144 8192\n10500 0 2048 4096\n";
        assert_eq!(decode_any("t", any, &Options::default()).unwrap_err().kind(), ErrorKind::Undetected);
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("1.0 4 0 4096", "type", "is not 0, 1, 2 or 3"),
            ("1.0 1 0", "bytes", "is missing"),
            ("1.0 1 -1 4096", "page", "is negative"),
            ("1.0 1 2251799813685249 4096", "page", "lies beyond 2^63 bytes"),
            ("1.0 1 0 4096 7", "", "too many fields"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let trace = read_as(&FORMAT, b"0.000000001 1 0 4096\n3.5 0 7 8192\n4 3 7 512\n");
        let mut again = read_as(&FORMAT, &encoded(encode_midas, &trace).unwrap());
        again.origin_ns = trace.origin_ns;
        assert_eq!(again, trace);
        let mut within = trace;
        within.requests[1].sector += 1;
        let error = encoded(encode_midas, &within).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Inexpressible);
        assert!(error.to_string().contains("request 2"), "{error}");
    }
}
