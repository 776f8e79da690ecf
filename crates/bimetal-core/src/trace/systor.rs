//! Systor '17: the VDI traces of Lee et al., published by SNIA as CSV.
//!
//! `Timestamp,Response,IOType,LUN,Offset,Size`: seconds of the Unix epoch with a fraction, the response in seconds,
//! `R` or `W`, the logical unit, bytes. (SNIA IOTTA 4964, README.)
//!
//! Traps: a header line; rows in order of completion, not of arrival; the response may be empty; one file for each hour
//! and LUN.

use super::collect::Row;
use super::detect::{self, Likeness, Sample};
use super::error::{Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "systor",
    aliases: &["systor17"],
    summary: "Systor '17 VDI CSV (SNIA IOTTA 4964)",
    layout: "Timestamp,Response,IOType,LUN,Offset,Size: seconds, seconds or nothing, R or W, bytes",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::ClockAndDevices,
    probe,
    decode,
};

const HEADER: &str = "timestamp,response,iotype,lun,offset,size";

#[inline]
fn row(line: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
    let mut fields = Fields::commas(line);
    let time_ns = fields.time("Timestamp", unit)?;
    fields.next("Response")?;
    let op = fields.letter("IOType")?;
    let device = fields.whole("LUN")?;
    let offset = fields.whole("Offset")?;
    let bytes = fields.whole("Size")?;
    fields.end()?;
    Ok(Some(Row { time_ns, device, offset, bytes, op }))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    detect::probe(sample, HEADER, |line| row(line, TimeUnit::Seconds))
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    lines::decode(input, HEADER, |line| row(line, unit))?.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::error::ErrorKind;
    use super::super::testing::{fault_of, read_as};
    use super::super::{Options, decode as decode_any};
    use super::*;

    const LINES: &str = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                         1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
                         1456095145.126285000,,W,3,4256049987072,122880\n";

    #[test]
    fn the_published_syntax_with_an_empty_response_out_of_order() {
        let trace = read_as(&FORMAT, LINES.as_bytes());
        assert_eq!((trace.reads, trace.write_bytes, trace.devices.len()), (1, 122_880, 2));
        assert_eq!(trace.duration_ns(), 6_791_000);
        assert!(trace.warnings[0].contains("1 row out of time order"));
    }

    #[test]
    fn a_header_alone_is_no_trace() {
        let header = LINES.lines().next().unwrap();
        let error = decode_any("t", header.as_bytes(), &Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoRequests);
        assert!(error.to_string().contains("no requests"), "{error}");
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("1.5,,X,0,0,512", "IOType", "is neither read nor write"),
            ("1.5,,R,0,0", "Size", "is missing"),
            ("1.5,,R,0,0,", "Size", "is empty"),
            ("1.5,,R,0,-1,512", "Offset", "is negative"),
            ("1.5,,R,0,0,512,7", "", "too many fields"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
    }
}
