//! fio I/O logs (`--write_iolog`), versions 2 and 3.
//!
//! Version 2 starts with `fio version 2 iolog`. Its lines are `file add|open|close`, `file read|write|trim offset
//! length` in bytes, `sync` and `datasync`, and `file wait microseconds`, the time since the last wait. Version 3 (fio
//! 3.31) has a time stamp before each line and no waits. (fio, HOWTO, "Trace file format".)
//!
//! Traps: the manual does not state the unit of version 3; fio writes microseconds, other tools nanoseconds
//! (`--time-unit`). A version 2 log without waits has no times at all. Each named file is a separate address space,
//! numbered in order of appearance.

use super::collect::{Row, count};
use super::detect::{Likeness, Sample};
use super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::lines::{self, Fields};
use super::numbering::Numbering;
use super::{Format, Input, Shared, TimeUnit, Trace};
use crate::request::Op;

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "fio",
    aliases: &["iolog"],
    summary: "fio I/O log, versions 2 and 3",
    layout: "[time] file action [offset length]: microseconds, bytes, after the line `fio version 2 iolog` or 3",
    time_unit: Some(TimeUnit::Microseconds),
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

const FIRST_WORDS: &[u8] = b"fio version ";

/// State from the lines so far.
struct Log {
    /// 0 until the first line is read.
    version: u8,
    unit: TimeUnit,
    /// Total time of the waits in version 2.
    waited_ns: u64,
    files: Numbering,
    syncs: u64,
}

impl Log {
    fn row(&mut self, line: &[u8]) -> Parsed<Option<Row>> {
        if self.version == 0 {
            self.version = version(line)?;
            return Ok(None);
        }
        let mut fields = Fields::blanks(line);
        let stamp = if self.version == 3 { Some(fields.time("time", self.unit)?) } else { None };
        let file = fields.next("file")?;
        let action = fields.next("action")?;
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"add" | b"open" | b"close" => return Ok(None),
            b"sync" | b"datasync" | b"sync_file_range" | b"syncfs" => {
                self.syncs += 1;
                return Ok(None);
            }
            b"wait" if self.version == 2 => {
                let text = fields.next("wait")?;
                let waited = self.waited_ns.checked_add(lines::time(text, "wait", self.unit)?);
                self.waited_ns = waited.ok_or_else(|| Fault::field(ErrorKind::Range, "wait", "is too long", text))?;
                return Ok(None);
            }
            _ => {
                return Err(Fault::field(ErrorKind::Field, "action", "is no action of this version", action));
            }
        };
        let offset = fields.whole("offset")?;
        let bytes = fields.whole("length")?;
        fields.end()?;
        let time_ns = stamp.unwrap_or(self.waited_ns);
        Ok(Some(Row { time_ns, device: self.files.number(file), offset, bytes, op }))
    }
}

fn version(line: &[u8]) -> Parsed<u8> {
    match line {
        b"fio version 2 iolog" => Ok(2),
        b"fio version 3 iolog" => Ok(3),
        _ => Err(Fault::field(ErrorKind::Field, "version", "is not `fio version 2 iolog` or 3", line)),
    }
}

fn probe(sample: &Sample<'_>) -> Likeness {
    match sample.lines().next() {
        Some((_, line)) if line.starts_with(FIRST_WORDS) => Likeness::Magic,
        _ => Likeness::No,
    }
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let unit = input.time_unit();
    let mut log = Log { version: 0, unit, waited_ns: 0, files: Numbering::default(), syncs: 0 };
    let mut collector = lines::decode(input, "", |line| log.row(line))?;
    if log.syncs > 0 {
        collector.warn(format!("{} left out", count(log.syncs, "sync record")));
    }
    collector.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fault_of, read_as};
    use super::super::{Options, decode as decode_any};
    use super::*;

    const V2: &str = "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a read 4096 8192\n/dev/a wait 150 0\n\
                      /dev/b write 0 512\n/dev/a trim 0 4096\n/dev/a datasync 0 0\n/dev/a close\n";
    const V3: &str = "fio version 3 iolog\n0 f add\n5 f open\n203753 f write 4096 4096\n203800 f read 0 512\n";

    #[test]
    fn version_2() {
        let trace = read_as(&FORMAT, V2.as_bytes());
        let got: Vec<_> = trace.requests.iter().map(|r| (r.arrival_ns, r.sector, r.sectors, r.op)).collect();
        assert_eq!(got, [(0, 8, 16, Op::Read), (150_000, 2048, 1, Op::Write), (150_000, 0, 8, Op::Trim)]);
        assert_eq!((trace.reads, trace.writes, trace.trims, trace.devices.len()), (1, 1, 1, 2));
        assert!(trace.warnings[0].starts_with("1 sync"));
        let of_fio_3_33 = V2.replace("datasync 0 0", "sync_file_range 12288 0");
        assert_eq!(read_as(&FORMAT, of_fio_3_33.as_bytes()), trace);
    }

    #[test]
    fn version_3_counts_microseconds_unless_told() {
        let trace = read_as(&FORMAT, V3.as_bytes());
        assert_eq!((trace.origin_ns, trace.duration_ns()), (203_753_000, 47_000));
        let options = Options { time_unit: Some(TimeUnit::Nanoseconds), ..Options::default() };
        assert_eq!(decode_any("t", V3.as_bytes(), &options).unwrap().duration_ns(), 47);
    }

    #[test]
    fn faults_name_line_and_field() {
        for (good, line, field, what) in [
            (V2, "/dev/a erase 0 512", "action", "is no action"),
            (V2, "/dev/a read 0", "length", "is missing"),
            (V2, "/dev/a read -1 512", "offset", "is negative"),
            (V2, "/dev/a wait", "wait", "is missing"),
            (V3, "7 f wait 5 0", "action", "is no action"),
            (V3, "f read 0 512", "time", "is not a decimal number"),
            ("", "fio version 1 iolog", "version", "is not `fio version 2 iolog`"),
        ] {
            fault_of(&FORMAT, good, line, field, what);
        }
    }
}
