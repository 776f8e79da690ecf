//! Text with one object access on each line and a header that names the fields, shared by CacheLib's and libCacheSim's
//! CSV.
//!
//! libCacheSim's own format: `time,object,size[,next_access_vtime]` after `#`, as `tracePrint` writes it, or
//! `clock_time,obj_id,obj_size,next_access_vtime` as `traceConv` writes it; seconds, a number, bytes. A column `op`
//! with libCacheSim's words is used if there is one, and other columns are ignored.

use super::super::detect::{Likeness, Sample};
use super::super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::super::lines::{self, Fields, whole};
use super::super::numbering::Numbering;
use super::super::roles::{Role, role};
use super::super::{Format, Input, Place, Shared, TimeUnit, Trace};
use super::collector::{Access, ObjectCollector, left_out};
use crate::request::Op;

/// The format's entry in [`FORMATS`](crate::trace::FORMATS).
pub static FORMAT: Format = Format {
    name: "libcachesim-csv",
    aliases: &[],
    summary: "libCacheSim's CSV of objects, as tracePrint and traceConv write it",
    layout: "time,object,size[,op][,next_access_vtime] by a header: seconds, an object's id, bytes, get or set or delete",
    time_unit: Some(TimeUnit::Seconds),
    has_actions: false,
    has_objects: true,
    has_columns: false,
    shared: Shared::Nothing,
    probe: |sample| probe(sample, &NAMES),
    decode: |input| decode(input, &NAMES),
};

const NAMES: Names = Names {
    time: &["time", "clock_time", "real_time"],
    key: &["object", "obj_id"],
    op: &["op"],
    size: &["size", "obj_size"],
    offset: &[],
    times: &[],
    needed: &[],
    keys_are_numbers: true,
    operation,
};

/// Names of the columns of a format; each may have several, in any case.
pub(super) struct Names {
    pub time: &'static [&'static str],
    pub key: &'static [&'static str],
    pub op: &'static [&'static str],
    pub size: &'static [&'static str],
    /// The first byte within the object.
    pub offset: &'static [&'static str],
    /// Number of repetitions.
    pub times: &'static [&'static str],
    /// Other columns that the format must have.
    pub needed: &'static [&'static str],
    pub keys_are_numbers: bool,
    /// Parses an operation; `None` for one that is left out.
    pub operation: fn(&[u8]) -> Parsed<Option<Op>>,
}

/// Index of each field in a line.
struct Places {
    time: Option<usize>,
    key: usize,
    op: Option<usize>,
    size: usize,
    offset: Option<usize>,
    times: Option<usize>,
    fields: usize,
}

/// The first line, without a leading `#`.
fn header(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    line.strip_prefix(b"#").unwrap_or(line).trim_ascii()
}

impl Names {
    fn places(&self, bytes: &[u8]) -> Option<Places> {
        let mut fields = Fields::commas(header(bytes));
        let names: Vec<&[u8]> = std::iter::from_fn(|| fields.optional()).collect();
        let place = |known: &[&str]| {
            names.iter().position(|name| known.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())))
        };
        self.needed.iter().all(|name| place(&[name]).is_some()).then_some(())?;
        Some(Places {
            time: place(self.time),
            key: place(self.key)?,
            op: place(self.op),
            size: place(self.size)?,
            offset: place(self.offset),
            times: place(self.times),
            fields: names.len(),
        })
    }

    fn access(&self, places: &Places, line: &[u8], unit: TimeUnit, keys: &mut Numbering) -> Parsed<Option<Access>> {
        const FIELDS: usize = 32;
        let mut fields = Fields::commas(line);
        let mut found: [&[u8]; FIELDS] = [b""; FIELDS];
        for (place, name) in found.iter_mut().zip(0..places.fields) {
            *place = fields.next(if name == places.key {
                "key"
            } else if name == places.size {
                "size"
            } else {
                ""
            })?;
        }
        fields.end()?;
        let get = |place: usize| found.get(place).copied().unwrap_or_default();
        let number = |place: Option<usize>, name, absent| place.map_or(Ok(absent), |place| whole(get(place), name));
        let Some(op) = places.op.map_or(Ok(Some(Op::Read)), |place| (self.operation)(get(place)))? else {
            return Ok(None);
        };
        let key = get(places.key);
        if key.is_empty() {
            return Err(Fault::field(ErrorKind::Field, "key", "is empty", key));
        }
        let id = whole(key, "key");
        Ok(Some(Access {
            time_ns: places.time.map_or(Ok(0), |place| lines::time(get(place), "time", unit))?,
            tenant: 0,
            key: keys.number(key),
            id: if self.keys_are_numbers { Some(id?) } else { id.ok() },
            offset: number(places.offset, "offset", 0)?,
            bytes: whole(get(places.size), "size")?,
            op,
            times: number(places.times, "op_count", 1)?,
        }))
    }
}

pub(super) fn probe(sample: &Sample<'_>, names: &Names) -> Likeness {
    // A table with addresses of its own is no trace of objects, whatever else it names.
    let mut fields = Fields::commas(header(sample.bytes));
    let has_address = std::iter::from_fn(|| fields.optional())
        .any(|name| matches!(role(&String::from_utf8_lossy(name)), Role::Offset(_)));
    if names.offset.is_empty() && has_address {
        return Likeness::No;
    }
    names.places(sample.bytes).map_or(Likeness::No, |_| Likeness::Header)
}

pub(super) fn decode(input: &Input<'_>, names: &Names) -> Result<Trace, TraceError> {
    let Some(places) = names.places(input.start) else {
        let needed = [names.key, names.size, names.needed].concat().join("`, `");
        let what = format!("the first line is no header with the names that are known: `{needed}`");
        return Err(input.error(ErrorKind::Field, what).at(Place::Line(1)));
    };
    let mut collector = ObjectCollector::new(input);
    let (mut others, mut keys, unit) = (0, Numbering::default(), input.time_unit());
    let mut is_header =
        !input.start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input.start).trim_ascii_start().starts_with(b"#");
    lines::each(input, "", |line| {
        if std::mem::take(&mut is_header) {
            return Ok(());
        }
        match names.access(&places, line, unit, &mut keys)? {
            Some(access) => collector.push(&access),
            None => {
                others += 1;
                Ok(())
            }
        }
    })?;
    let mut warnings: Vec<String> = left_out(others, "operation other than reads and writes").into_iter().collect();
    if names.keys_are_numbers {
        collector.warn_of_addresses(&mut warnings);
    }
    if places.op.is_none() {
        collector.warn_of_reads(&mut warnings);
    }
    collector.finish(input, warnings)
}

fn operation(text: &[u8]) -> Parsed<Option<Op>> {
    const READS: [&str; 3] = ["get", "gets", "read"];
    const WRITES: [&str; 10] = ["set", "add", "cas", "replace", "append", "prepend", "incr", "decr", "write", "update"];
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    match () {
        () if is(&READS) => Ok(Some(Op::Read)),
        () if is(&WRITES) => Ok(Some(Op::Write)),
        () if is(&["delete"]) => Ok(Some(Op::Trim)),
        () => Err(Fault::field(ErrorKind::Field, "op", "is none of libCacheSim's", text)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{fault_of, read_as};
    use super::super::super::{self as trace, Options};
    use super::*;

    /// Built from the output of tracePrint and traceConv.
    const PRINTED: &str = "# time,object,size,next_access_vtime\n0,3345071,4096,3\n0,7,100,-1\n2,3345071,8192,-1\n";
    const CONVERTED: &str =
        "clock_time,obj_id,obj_size,next_access_vtime\n0,3345071,4096,3\n0,7,100,-1\n2,3345071,8192,-1\n";

    #[test]
    fn both_headers() {
        for text in [PRINTED, CONVERTED, &format!("\u{feff}{CONVERTED}")] {
            let trace = trace::decode("t", text.as_bytes(), &Options::default()).unwrap();
            assert_eq!((trace.format, trace.reads, trace.duration_ns()), ("libcachesim-csv", 3, 2_000_000_000));
            let places: Vec<_> = trace.requests.iter().map(|request| (request.sector, request.sectors)).collect();
            assert_eq!(places, [(0, 8), (16, 1), (0, 16)], "a slot is as large as its object ever is");
        }
    }

    #[test]
    fn a_table_with_addresses_is_no_trace_of_objects() {
        let text = b"time_ms,op,object,offset,size,device\n0,read,1,8192,4096,0\n5,write,1,4096,4096,0\n";
        let trace = trace::decode("t", text, &Options::default()).unwrap();
        assert_eq!((trace.format, trace.requests[0].sector, trace.duration_ns()), ("csv", 16, 5_000_000));
    }

    #[test]
    fn an_operation_is_read_if_there_is_one() {
        let trace = read_as(&FORMAT, b"time,object,size,op\n5,9,512,set\n6,9,512,get\n7,9,0,delete\n");
        assert_eq!((trace.writes, trace.reads, trace.trims), (1, 1, 1));
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, field, what) in [
            ("3,x,100,-1", "key", "is not a whole number"),
            ("3,,100,-1", "key", "is empty"),
            ("3,7,-100,-1", "size", "is negative"),
            ("3,7", "size", "is missing"),
            ("3,7,100,-1,5", "", "too many fields"),
            ("soon,7,100,-1", "time", "is not a decimal number"),
        ] {
            fault_of(&FORMAT, PRINTED, line, field, what);
            fault_of(&FORMAT, CONVERTED, line, field, what);
        }
        let options = Options { format: Some(&FORMAT), ..Options::default() };
        let error = trace::decode("t", b"0,3345071,4096\n", &options).unwrap_err();
        assert!(error.to_string().starts_with("t: line 1: the first line is no header"), "{error}");
    }
}
