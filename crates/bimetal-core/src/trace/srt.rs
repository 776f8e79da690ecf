//! SRT: the binary traces of HP's disks, such as cello, big-endian.
//!
//! A text header ends with a form feed; files that were merged by tools have none. Then records of 13 words of four
//! bytes: bytes of the record, version (upper half) and type (lower half), seconds and microseconds at which the
//! request was queued, start and stop (microseconds after that), bytes of the request, sector (512 B), device, driver,
//! cylinder, flags, origin. In version 4 the queue length follows them, and in a suspect request (type 4) its faults.
//! (DiskSim 4.0, `disksim_iotrace.c` and `disksim_hptrace.h`.)
//!
//! Version 7, of 2003, has 22 words: the machine in place of the sector, the thread in place of the cylinder, and after
//! the origin the queue length, the process, the logical volume, the first byte on the disk and that in the volume (two
//! words each), and two words of buffer types. (DataSeries, `srt2ds.cpp`, and its file of this version.) Versions 5 and
//! 6 are not read.
//!
//! Traps: times count from the header line `tracedate`, in version 7 from 1970. Suspect requests are left out, and the
//! disk is the second lowest byte of the device number, both as in DiskSim; in version 7 the byte above it is part of
//! the disk. Flag 1 is a read, all else a write.

use super::collect::{Collector, Row, count};
use super::detect::{Likeness, Sample};
use super::error::{ErrorKind, Fault, Parsed, Place, TraceError};
use super::{Format, Input, Shared, Trace};
use crate::request::{Op, SECTOR_BYTES};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "srt",
    aliases: &["hpl"],
    summary: "HP's disk traces in SRT form (cello), versions 1 to 4 as DiskSim reads them, and 7",
    layout: "length version+type seconds microseconds start stop bytes sector device driver cylinder flags origin [queue] [faults] or [queue process volume byte volume_byte types]: words",
    time_unit: None,
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::ClockAndDevices,
    probe,
    decode,
};

const WORD: usize = 4;
/// Words of a record in versions 1 to 3.
const WORDS: usize = 13;
/// The version with addresses in bytes, and the words of its records.
const BYTE_ADDRESSES: u32 = 7;
const BYTE_ADDRESSES_WORDS: usize = 22;
const SHORT: u32 = 1;
const SUSPECT: u32 = 4;
const FLAG_READ: u32 = 1;
const FORM_FEED: u8 = 0x0c;
/// Largest header in bytes; real ones have a page of text or two.
const HEADER_MAX: usize = 64 << 10;
/// Number of records that detection checks.
const SAMPLE_RECORDS: usize = 100;

/// The length of a record in bytes, by its version and type, or an error for unknown ones.
fn length(id: u32) -> Parsed<usize> {
    let fault =
        |field, what, number: u32| Err(Fault::field(ErrorKind::Field, field, what, number.to_string().as_bytes()));
    let (version, kind) = (id >> 16, id & 0xffff);
    match (version, kind) {
        (1..=4, SHORT | SUSPECT) => Ok(WORD * (WORDS + usize::from(version == 4) + usize::from(kind == SUSPECT))),
        (BYTE_ADDRESSES, SHORT) => Ok(WORD * BYTE_ADDRESSES_WORDS),
        (1..=4, _) => fault("type", "is neither 1, a request, nor 4, a suspect request", kind),
        (BYTE_ADDRESSES, _) => fault("type", "is not 1, a request, in version 7", kind),
        _ => fault("version", "is none of 1 to 4 and 7", version),
    }
}

/// A record at the start of a byte slice.
struct Record<'a> {
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// The first record, or `None` if the bytes end within it.
    fn first(bytes: &'a [u8]) -> Parsed<Option<Self>> {
        let Some(head) = bytes.get(..2 * WORD) else { return Ok(None) };
        let (said, id) = (Record { bytes: head }.word(0), Record { bytes: head }.word(1));
        let length = length(id)?;
        if said as usize != length {
            let what = "is not the length of a record of its version and type";
            return Err(Fault::field(ErrorKind::Field, "length", what, said.to_string().as_bytes()));
        }
        Ok(bytes.get(..length).map(|bytes| Self { bytes }))
    }

    fn word(&self, index: usize) -> u32 {
        self.bytes[index * WORD..].first_chunk().map_or(0, |word| u32::from_be_bytes(*word))
    }

    /// The request; `None` if it is suspect.
    fn row(&self, start_seconds: u64) -> Parsed<Option<Row>> {
        let [id, seconds, microseconds, bytes, sector, device, flags] = [1, 2, 3, 6, 7, 8, 11].map(|at| self.word(at));
        if id & 0xffff == SUSPECT {
            return Ok(None);
        }
        if microseconds >= 1_000_000 {
            let text = microseconds.to_string();
            return Err(Fault::field(ErrorKind::Range, "microseconds", "are a second or more", text.as_bytes()));
        }
        let (start_seconds, device, offset) = if id >> 16 == BYTE_ADDRESSES {
            (0, device >> 8 & 0xffff, u64::from(self.word(16)) << 32 | u64::from(self.word(17)))
        } else {
            (start_seconds, device >> 8 & 0xff, u64::from(sector) * SECTOR_BYTES)
        };
        // Below 2^33 seconds, so that nanoseconds fit into 64 bits.
        let time_ns = (start_seconds + u64::from(seconds)) * 1_000_000_000 + u64::from(microseconds) * 1000;
        let op = if flags & FLAG_READ != 0 { Op::Read } else { Op::Write };
        Ok(Some(Row { time_ns, device: u64::from(device), offset, bytes: u64::from(bytes), op }))
    }
}

/// Offset of the first record, after the header if there is one.
fn start(bytes: &[u8]) -> usize {
    let header = &bytes[..bytes.len().min(HEADER_MAX)];
    let end = memchr::memchr(FORM_FEED, header);
    // The first line of an original header ends with a zero.
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace() || *byte == 0;
    end.filter(|&end| header[..end].iter().all(is_text)).map_or(0, |end| end + 1)
}

/// Seconds from 1970 to the date of a header such as `tracedate = "Sat Apr 18 00:00:00 1992";`, quoted or not. None
/// without such a date.
fn start_seconds(header: &[u8]) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let line = header.split(|&byte| byte == b'\n').find_map(|line| line.trim_ascii().strip_prefix(b"tracedate"))?;
    let date = std::str::from_utf8(line).ok()?.trim_matches([' ', '\t', '=', '"', ';']);
    let mut words = date.split_ascii_whitespace();
    let (_, month, day, time, year) = (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    let mut clock = time.split(':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    if !(1970..2100).contains(&year) || !(1..=31).contains(&day) || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let leap_days = |year: u64| (year - 1969) / 4; // of the years from 1970 to before `year`
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month as usize];
    let leap_day = u64::from(year.is_multiple_of(4) && month > 1);
    let days = (year - 1970) * 365 + leap_days(year) + before + leap_day + day - 1;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

fn probe(sample: &Sample<'_>) -> Likeness {
    let mut rest = &sample.bytes[start(sample.bytes)..];
    let mut good = 0;
    while good < SAMPLE_RECORDS && !rest.is_empty() {
        match Record::first(rest) {
            Ok(Some(record)) => rest = &rest[record.bytes.len()..],
            Ok(None) => break,
            Err(_) => return Likeness::No,
        }
        good += 1;
    }
    if good > 0 { Likeness::Magic } else { Likeness::No }
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let bytes = input.whole()?;
    let mut at = start(&bytes);
    let start_seconds = start_seconds(&bytes[..at]).unwrap_or(0);
    let mut collector = Collector::new(input.options, (bytes.len() / (WORD * WORDS)) as u64);
    let (mut number, mut suspect) = (0, 0);
    while at < bytes.len() {
        number += 1;
        let place = Place::Record { number, byte: at as u64 };
        let record = Record::first(&bytes[at..]).map_err(|fault| input.fault(place, *fault))?;
        let Some(record) = record else {
            let what = format!("the file ends within this record, after {} bytes", bytes.len() - at);
            return Err(input.error(ErrorKind::Truncated, what).at(place).with_hint("copy the file again"));
        };
        let pushed = record.row(start_seconds).and_then(|row| match row {
            Some(row) => collector.push(&row),
            None => {
                suspect += 1;
                Ok(())
            }
        });
        pushed.map_err(|fault| input.fault(place, *fault))?;
        at += record.bytes.len();
    }
    if suspect > 0 {
        collector.warn(format!("{} left out", count(suspect, "suspect request")));
    }
    collector.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_as;
    use super::super::{Options, decode as decode_any, detect};
    use super::*;

    /// A record of a version and type.
    fn record(version: u32, kind: u32, seconds: u32, sector: u32, flags: u32) -> Vec<u8> {
        let mut words =
            vec![0, version << 16 | kind, seconds, 250_000, 100, 9_000, 8192, sector, 0x1f_0702, 0, 31, flags, 5];
        words.extend((version == 4).then_some(3));
        words.extend((kind == SUSPECT).then_some(1));
        words[0] = 4 * words.len() as u32;
        words.into_iter().flat_map(u32::to_be_bytes).collect()
    }

    const HEADER: &[u8] = b"tracedate\t= \"Sat Apr 18 00:00:00 1992\";\nsystem = \"t\";\n\x0c";

    #[test]
    fn every_version_is_read_with_and_without_a_header() {
        for version in 1..=4 {
            let records = [
                record(version, SHORT, 5, 16, 0x101),
                record(version, SUSPECT, 6, 0, 0),
                record(version, SHORT, 7, 32, 0x100),
            ];
            for header in [HEADER, b""] {
                let bytes = [header, &records.concat()].concat();
                assert_eq!(detect("t", &bytes).unwrap().name, "srt");
                let trace = read_as(&FORMAT, &bytes);
                let request = |index: usize| (trace.requests[index].op, trace.requests[index].sector);
                assert_eq!((request(0), request(1)), ((Op::Read, 16), (Op::Write, 32)), "version {version}");
                assert_eq!((trace.requests[0].sectors, trace.duration_ns()), (16, 2_000_000_000));
                let start_s = if header.is_empty() { 0 } else { 703_555_200 };
                assert_eq!((trace.devices[0].id, trace.origin_ns), (7, (start_s * 4 + 21) * 250_000_000));
                assert_eq!(trace.warnings[0], "1 suspect request left out");
            }
        }
    }

    #[test]
    fn version_7_has_64_bit_byte_addresses_and_absolute_times() {
        let record = |seconds: u32, device: u32, flags: u32, high: u32, low: u32| {
            let mut words =
                vec![88, 7 << 16 | SHORT, seconds, 250_000, 3, 90, 4096, 77, device, 0, 0, flags, 11 << 16, 0];
            words.extend([900, 0x4000_0002, high, low, 0, 0, 10 << 16, 0x4300_0000]);
            words.into_iter().flat_map(u32::to_be_bytes).collect::<Vec<u8>>()
        };
        let header = b"$$TR_IOREC-1.7 : derived from MI trace data \0\nversion = 1.7;\ntracedate = Sun May 18 11:04:05 2003\n\x0c";
        let records =
            [record(1_053_281_044, 0x1f01_6000, 0x20_401b, 0, 8192), record(1_053_281_045, 0x1f02_6000, 0x8a, 4, 512)];
        let bytes = [&header[..], &records.concat()].concat();
        assert_eq!(detect("t", &bytes).unwrap().name, "srt");
        let trace = read_as(&FORMAT, &bytes);
        let ids: Vec<_> = trace.devices.iter().map(|device| device.id).collect();
        assert_eq!((ids, trace.origin_ns), (vec![0x160, 0x260], 1_053_281_044_250_000_000));
        let [first, second] = [&trace.requests[0], &trace.requests[1]];
        assert_eq!((first.op, first.sector, first.sectors), (Op::Read, 16, 8));
        let sector = trace.devices[1].base_sector + (4 << 32) / 512 + 1;
        assert_eq!((second.op, second.sector, second.arrival_ns), (Op::Write, sector, 1_000_000_000));
    }

    #[test]
    fn dates_are_seconds_since_1970() {
        let seconds = |date: &str| start_seconds(format!("tracedate\t= \"{date}\";\n").as_bytes());
        assert_eq!(seconds("Thu Jan 1 00:00:07 1970"), Some(7));
        assert_eq!(seconds("Tue Feb 29 12:00:00 2000"), Some(951_825_600));
        assert_eq!(seconds("Mon Mar  1 00:00:00 1999"), Some(920_246_400));
        assert_eq!(start_seconds(b"system = t\ntracedate = Sun May 18 11:04:05 2003\n"), Some(1_053_255_845));
        for wrong in ["", "Mon Mar 1 00:00 1999", "Mon Mrz 1 00:00:00 1999", "Mon Mar 1 00:00:00 99999999999999999999"]
        {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_wrong_record_is_named_by_its_number_and_byte() {
        let good = record(4, SHORT, 5, 16, 1);
        let wrong = |change: fn(&mut [u8])| {
            let mut second = good.clone();
            change(&mut second);
            let options = Options { format: Some(&FORMAT), ..Options::default() };
            decode_any("t", &[HEADER, &good, &second].concat(), &options).unwrap_err().to_string()
        };
        let at = HEADER.len() + good.len();
        for (error, what) in [
            (
                wrong(|record| record[3] = 52),
                "field `length` is not the length of a record of its version and type: `52`",
            ),
            (wrong(|record| record[5] = 5), "field `version` is none of 1 to 4 and 7: `5`"),
            (wrong(|record| (record[5], record[7]) = (7, 4)), "field `type` is not 1, a request, in version 7: `4`"),
            (wrong(|record| record[7] = 2), "field `type` is neither 1, a request, nor 4"),
            (wrong(|record| record[13] = 0xff), "field `microseconds` are a second or more"),
        ] {
            assert!(error.starts_with(&format!("t: record 2 at byte {at}: {what}")), "{error}");
        }
        let cut = decode_any("t", &[HEADER, &good, &good[..30]].concat(), &Options::default()).unwrap_err().to_string();
        assert!(
            cut.contains(&format!("record 2 at byte {at}: the file ends within this record, after 30 bytes")),
            "{cut}"
        );
    }
}
