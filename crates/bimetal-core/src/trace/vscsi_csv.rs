//! libCacheSim's CSV of CloudPhysics' vscsi traces.
//!
//! `version,time,op,size,lbn`, with that header: seconds, the SCSI operation code in hexadecimal, bytes, 512-byte blocks.
//! (libCacheSim, data/cloudPhysicsIO.csv and trace.csv.)
//!
//! Traps: times are in seconds, not in microseconds as in the binary format. Operations that move no data are left out,
//! as in [`vscsi`](super::vscsi).

use super::collect::{Row, count};
use super::detect::{self, Likeness, Sample};
use super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::lines::{self, Fields};
use super::{Format, Input, Shared, TimeUnit, Trace, vscsi};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "vscsi-csv",
    aliases: &[],
    summary: "libCacheSim's CSV of CloudPhysics vscsi",
    layout: "version,time,op,size,lbn: seconds, hexadecimal SCSI operation, bytes, 512-byte blocks",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

const HEADER: &str = "version,time,op,size,lbn";

#[inline]
fn row(line: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
    let mut fields = Fields::commas(line);
    fields.whole("version")?;
    let time_ns = fields.time("time", unit)?;
    let text = fields.next("op")?;
    let code = std::str::from_utf8(text).ok().and_then(|text| u8::from_str_radix(text, 16).ok());
    let Some(code) = code.filter(|_| text[0].is_ascii_hexdigit()) else {
        return Err(Fault::field(ErrorKind::Field, "op", "is no hexadecimal operation code", text));
    };
    let bytes = fields.whole("size")?;
    let offset = fields.sectors("lbn")?;
    fields.end()?;
    Ok(vscsi::operation(u64::from(code)).map(|op| Row { time_ns, device: 0, offset, bytes, op }))
}

fn probe(sample: &Sample<'_>) -> Likeness {
    match detect::probe(sample, HEADER, |line| row(line, TimeUnit::Seconds)) {
        Likeness::Header => Likeness::Header,
        // Without the header, five comma-separated numbers may be any format.
        _ => Likeness::No,
    }
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let (unit, mut others) = (input.time_unit(), 0);
    let mut collector = lines::decode(input, HEADER, |line| {
        let row = row(line, unit)?;
        others += u64::from(row.is_none());
        Ok(row)
    })?;
    if others > 0 {
        collector.warn(format!("{} other than reads and writes left out", count(others, "SCSI command")));
    }
    collector.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::testing::fault_of;
    use super::super::{Options, decode as decode_any};
    use super::*;

    /// The first lines of libCacheSim's data/trace.csv, and a read and another command in the same layout.
    const LINES: &str = "version,time,op,size,lbn\n1,33898,2a,512,42932745\n1,33898,2a,512,42932746\n1,33898,2a,6656,40409911\n\
                         1,33899,28,4096,6160447\n1,33899,0,0,0\n";

    #[test]
    fn the_published_syntax() {
        let trace = decode_any("t", LINES.as_bytes(), &Options::default()).unwrap();
        assert_eq!((trace.format, trace.writes, trace.reads), ("vscsi-csv", 3, 1));
        assert_eq!((trace.requests[0].sector, trace.requests[2].sectors), (42_932_745, 13));
        assert_eq!(trace.duration_ns(), 1_000_000_000);
        assert!(trace.warnings[0].starts_with("1 SCSI command other"), "{:?}", trace.warnings);
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("1,33898,2g,512,1", "op", "is no hexadecimal operation code"),
            ("1,33898,+a,512,1", "op", "is no hexadecimal operation code"),
            ("1,33898,,512,1", "op", "is no hexadecimal operation code"),
            ("1,33898,2a,512", "lbn", "is missing"),
            ("1,33898,2a,-1,1", "size", "is negative"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
    }
}
