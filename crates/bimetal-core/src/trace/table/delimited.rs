//! `csv`: text with fields separated by commas, semicolons, tabs, bars or blanks.
//!
//! The first line may be a header. Fields may be in double quotes, but must not contain the delimiter. Numbers have a
//! decimal point.

use super::NO_TIME;
use crate::trace::detect::{Likeness, Sample};
use crate::trace::error::{ErrorKind, Fault, TraceError};
use crate::trace::lines::{self, Lines};
use crate::trace::roles::{self, Columns, Mapping, OTHER_UNIT};
use crate::trace::time_unit::TimeUnit;
use crate::trace::{Format, Input, Place, Shared, Trace};

/// The format's entry in [`FORMATS`](crate::trace::FORMATS).
pub static FORMAT: Format = Format {
    name: "csv",
    aliases: &["tsv", "delimited"],
    summary: "any delimited text, its columns named by a header or by `--columns`",
    layout: "fields in the order of the header or of `--columns`: between commas or semicolons or tabs or bars or blanks",
    time_unit: Some(TimeUnit::Nanoseconds),
    has_actions: false,
    has_objects: false,
    has_columns: true,
    shared: Shared::Nothing,
    probe,
    decode,
};

/// Largest number of fields that detection checks in a line.
const FIELDS_MAX: usize = 64;

/// Least number of columns of a table of requests: operation, offset and size.
const COLUMNS_MIN: usize = 3;

/// The delimiter of a line; blanks if it contains no other.
fn delimiter(line: &[u8]) -> u8 {
    let line = line.trim_ascii_start();
    [b'\t', b';', b',', b'|'].into_iter().find(|delimiter| line.contains(delimiter)).unwrap_or(b' ')
}

/// The fields of a line, without surrounding blanks and quotes.
fn fields(line: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    // The first of fields between tabs may be empty.
    let line = if delimiter == b'\t' { line } else { line.trim_ascii_start() };
    // Several blanks count as one delimiter.
    let is_field = move |field: &&[u8]| delimiter != b' ' || !field.is_empty();
    line.split(move |&byte| byte == delimiter).filter(is_field).map(|field| {
        let field = field.trim_ascii();
        field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
    })
}

/// Whether a line names columns: none of its fields begins like a number.
fn is_header(line: &[u8], delimiter: u8) -> bool {
    fields(line, delimiter).all(|field| !field.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-'))
}

/// The mapping from a header. The given `columns` have names.
fn of_header(
    line: &[u8],
    delimiter: u8,
    columns: Option<&Columns>,
    unit: Option<TimeUnit>,
) -> Result<Mapping<usize>, String> {
    let header: Vec<String> = fields(line, delimiter).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let mapping = match columns {
        Some(columns) => columns.by_name(unit, |name| header.iter().position(|other| other.eq_ignore_ascii_case(name))),
        None => Mapping::of(header.iter().map(|name| roles::role(name)).zip(0..), unit),
    };
    mapping.map_err(|what| format!("in the header `{}` {what}", header.join(",").escape_debug()))
}

/// The hint for a header that says too little. It has the form by name, because by position a user would repeat units
/// that her header contradicts.
const HEADER_HINT: &str = "name its columns and their units with `--columns`, such as \
     `time=NAME:ms,op=NAME,offset=NAME:sectors,size=NAME:kib`";

fn probe(sample: &Sample<'_>) -> Likeness {
    let mut lines = sample.lines().map(|(_, line)| line);
    let Some(first) = lines.next() else { return Likeness::No };
    let delimiter = delimiter(first);
    if !is_header(first, delimiter) {
        return Likeness::No;
    }
    if of_header(first, delimiter, None, Some(TimeUnit::Nanoseconds)).is_ok() {
        return Likeness::All;
    }
    // The header says too little. If rows follow, decoding says what is missing.
    let columns = fields(first, delimiter).count();
    let is_row = |line: &&[u8]| fields(line, delimiter).count() == columns && !is_header(line, delimiter);
    match lines.filter(is_row).count() {
        good if good > 0 && columns >= COLUMNS_MIN => Likeness::Some { good },
        _ => Likeness::No,
    }
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let Some((number, first)) = Lines::new(input.start).next() else {
        return Err(input.error(ErrorKind::NoRequests, "the file has no line"));
    };
    let (delimiter, columns, unit) = (delimiter(first), input.options.columns.as_ref(), input.options.time_unit);
    let has_header = is_header(first, delimiter);
    let mapping = match columns {
        Some(columns) if !columns.are_named() => columns.by_position(unit),
        None if !has_header => Err("the file has no header".to_owned()),
        Some(_) if !has_header => Err("the columns have names and the file has no header".to_owned()),
        columns => of_header(first, delimiter, columns, unit),
    };
    let agrees = |mapping: Mapping<usize>| if mapping.contradicts(unit) { Err(OTHER_UNIT.into()) } else { Ok(mapping) };
    let mapping = mapping.and_then(agrees).map_err(|what| {
        let by_position = "name the columns with `--columns`, such as `time:ms,op,offset:bytes,size:bytes`";
        let hint = if has_header { HEADER_HINT } else { by_position };
        input.error(ErrorKind::Field, what).at(Place::Line(number)).with_hint(hint)
    })?;
    let expected = has_header.then(|| fields(first, delimiter).count());
    let mut is_first = has_header;
    let mut collector = lines::decode(input, "", |line| {
        if std::mem::take(&mut is_first) {
            return Ok(None);
        }
        let (mut found, mut count) = ([None; FIELDS_MAX], 0);
        for field in fields(line, delimiter) {
            if let Some(place) = found.get_mut(count) {
                *place = Some(field);
            }
            // A delimiter at the end of the line is followed by no field.
            count += usize::from(Some(count) != expected || !field.is_empty());
        }
        let row = mapping.row(|&column| found.get(column).copied().flatten())?;
        // A delimiter within a field shifts those after it, and so does a missing field between blanks. At the end of a
        // line fields may be missing: the line is trimmed there.
        let is_shifted = |expected| count > expected || delimiter == b' ' && count < expected;
        if expected.is_some_and(is_shifted) {
            let what = "the line has not as many fields as the header";
            return Err(Fault::field(ErrorKind::FieldCount, "", what, line));
        }
        Ok(Some(row))
    })?;
    if columns.is_none() && mapping.time.is_none() {
        collector.warn(NO_TIME.to_owned());
    }
    collector.finish(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Op;
    use crate::trace::testing::fault_of;
    use crate::trace::{self, Options};

    fn read(text: &str, columns: &str) -> Result<Trace, TraceError> {
        let columns = (!columns.is_empty()).then(|| columns.parse().unwrap());
        trace::decode("t", text.as_bytes(), &Options { columns, ..Options::default() })
    }

    #[test]
    fn a_header_whose_names_leave_nothing_open_needs_no_word() {
        for text in [
            "time_ms,op,offset,size\n0.5,r,4096,512\n0.75,W,8192,1024\n",
            "Time (ms);Size;Type;LBA\r\n0.5;512;Read;8\r\n0.75;1024;write;16\r\n",
            "\"arrival_ms\"\t\"rw\"\t\"latency_us\"\t\"lba\"\t\"sectors\"\n0.5\tr\t9\t8\t1\n0.75\tw\t\t16\t2\n",
            "rw   sector  sectors ts_ms\nr 8 1   0.5\nw  16 2 0.75\n",
        ] {
            let trace = read(text, "").unwrap();
            let request = |index: usize| {
                let request = trace.requests[index];
                (request.op, request.sector, request.sectors)
            };
            assert_eq!((request(0), request(1)), ((Op::Read, 8, 1), (Op::Write, 16, 2)), "{text}");
            assert_eq!((trace.format, trace.duration_ns()), ("csv", 250_000), "{text}");
        }
    }

    #[test]
    fn a_header_that_says_too_little_is_told() {
        let error = read("issued_ms;rw;lba_512;len_kb\n0.978;W;289208;4\n", "").unwrap_err();
        assert_eq!(
            error.to_string(),
            "t: line 1: in the header `issued_ms,rw,lba_512,len_kb` there is no column `offset`; hint: name its columns and their units \
             with `--columns`, such as `time=NAME:ms,op=NAME,offset=NAME:sectors,size=NAME:kib`"
        );
        for no_table in ["a,b,c\n", "a,b,c\nd,e,f\n", "a,b\n1,2\n", "a,b,c\n1,2\n"] {
            assert_eq!(read(no_table, "").unwrap_err().kind(), ErrorKind::Undetected, "{no_table}");
        }
    }

    #[test]
    fn columns_by_position_and_by_name() {
        let by_position =
            read("7,0.5,1,8,4\n7,0.6,0,16,4\n", "device,time:s,op:1=read,offset:sectors,size:kib").unwrap();
        assert_eq!((by_position.reads, by_position.writes, by_position.read_bytes), (1, 1, 4096));
        assert_eq!((by_position.devices[0].id, by_position.requests[1].sector), (7, 16));
        let text = "start,kind,where,len\n5,trim,0,4096\n6,read,1,512\n";
        let by_name = read(text, "op=kind,offset=where:4kib,size=LEN,time=start:us").unwrap();
        assert_eq!((by_name.trims, by_name.requests[1].sector, by_name.duration_ns()), (1, 8, 1000));
        let untimed = read("r|0|512\nw|512|512\n", "op,offset,size").unwrap();
        assert!(untimed.warnings[0].contains("all requests have one time stamp"), "{:?}", untimed.warnings);
        let unknown = read("when,op,offset,size\n1,r,0,512\n", "").unwrap();
        assert_eq!(unknown.warnings, [NO_TIME]);
    }

    #[test]
    fn a_date_needs_no_unit() {
        for (text, columns) in [
            ("timestamp,op,lba,size\n2024-01-31T12:00:00.5Z,r,8,512\n2024-01-31T12:00:01+00:00,w,8,512\n", ""),
            ("datetime;rw;lba;bytes\n\"2024-01-31 12:00:00.5\";r;8;512\n\"2024-01-31 12:00:01\";w;8;512\n", ""),
            ("2024-01-31T12:00:00.5,r,8,512\n2024-01-31T12:00:01,w,8,512\n", "time,op,offset:sectors,size"),
        ] {
            assert_eq!(read(text, columns).unwrap().duration_ns(), 500_000_000, "{text}");
        }
        let error = read("ts,op,lba,size\n2024-01-31T12:00:00,r,8,512\n2024-01-31,w,8,512\n", "").unwrap_err();
        let what = "t: line 3: field `time` is no date and time such as `2024-01-31T12:00:00.25Z`: `2024-01-31`";
        assert!(error.to_string().starts_with(what), "{error}");
    }

    #[test]
    fn what_is_left_open_is_an_error_that_says_how_to_name_it() {
        for (text, columns, what) in [
            (
                "time_ms,op,block,size\n1,r,0,512\n",
                "",
                "in the header `time_ms,op,block,size` there is no column `offset`",
            ),
            ("1,r,0,512\n", "op=rw,offset=o,size=s", "the columns have names and the file has no header"),
            ("rw,o,s\nr,0,512\n", "op=rw,offset=o,size=len", "in the header `rw,o,s` there is no `len`"),
        ] {
            let options = Options { format: Some(&FORMAT), columns: None, ..Options::default() };
            let columns = (!columns.is_empty()).then(|| columns.parse().unwrap());
            let error = trace::decode("t", text.as_bytes(), &Options { columns, ..options }).unwrap_err();
            assert!(error.to_string().starts_with(&format!("t: line 1: {what}")), "{error}");
            assert!(error.to_string().contains("hint: "), "{error}");
        }
        let unknown = read("timestamp,op,offset,size\n1,r,0,512\n", "").unwrap_err();
        let what = "t: line 2: field `time` has an unknown unit: name it with `--time-unit`: `1`";
        assert!(unknown.to_string().starts_with(what), "{unknown}");
        let seconds = Options { time_unit: Some(TimeUnit::Seconds), ..Options::default() };
        assert!(trace::decode("t", b"timestamp,op,offset,size\n1,r,0,512\n2,r,0,512\n", &seconds).is_ok());
        assert!(trace::decode("t", b"time_s,op,offset,size\n1,r,0,512\n2,r,0,512\n", &seconds).is_ok());
        let columns = Some("time:ms,op,offset,size".parse().unwrap());
        for (text, columns) in [("time_ms,op,offset,size\n1,r,0,512\n", None), ("1,r,0,512\n", columns)] {
            let options = Options { columns, format: Some(&FORMAT), ..seconds.clone() };
            let error = trace::decode("t", text.as_bytes(), &options).unwrap_err();
            assert!(error.to_string().contains("leave `--time-unit` out"), "{error}");
        }
    }

    #[test]
    fn fields_that_a_delimiter_shifts_are_an_error() {
        for (header, shifted, rest) in [
            ("time_ms,op,note,x,offset,size", "1,w,\"a,5\",0,1048576,8192", "0,w,dd,0,4096,8192,"),
            ("time_ms op comm offset size", "1 w thread 7 4096 8192", "0 w thread 4096 8192"),
            ("time_ms op comm offset size latency", "1 w 4096 8192 90", "0 w thread 4096 8192 90"),
        ] {
            assert_eq!(read(&format!("{header}\n{rest}\n"), "").unwrap().requests[0].sector, 8);
            let error = read(&format!("{header}\n{rest}\n{shifted}\n"), "").unwrap_err();
            assert_eq!((error.kind(), error.place()), (ErrorKind::FieldCount, Place::Line(3)), "{error}");
        }
    }

    #[test]
    fn a_first_field_may_be_empty() {
        for delimiter in [",", "\t"] {
            // As pandas writes a frame with its index.
            let indexed = ",time_ms,op,offset,size\n0,0,w,0,512\n1,1,r,4096,512\n".replace(',', delimiter);
            assert_eq!(read(&indexed, "").unwrap().requests[1].sector, 8);
            let named =
                "comm,time_us,offset,size,op,error\ndd,0,0,512,0,0\n,10,8192,4096,1,0\n".replace(',', delimiter);
            let trace = read(&named, "time=time_us:us,op=op:0=read,offset=offset,size=size").unwrap();
            assert_eq!((trace.writes, trace.requests[1].sector, trace.duration_ns()), (1, 16, 10_000));
        }
        let blanks = read("\t 0 1 2048 4096\n \t 4 1 4096 512\n", "time:us,op:1=read,offset,size").unwrap();
        assert_eq!((blanks.reads, blanks.requests[1].sector), (2, 8));
    }

    #[test]
    fn faults_name_line_and_field() {
        const LINES: &str = "time_ms,op,offset,size\n1,r,0,512\n";
        for (line, field, what) in [
            ("2,0,0,512", "op", "name the column `op:0=read`"),
            ("2,x,0,512", "op", "is neither read nor write nor trim"),
            ("2,r,0", "size", "is missing"),
            ("2,r,-1,512", "offset", "is negative"),
            ("2,r,1.5,512", "offset", "is not a whole number"),
            ("soon,r,0,512", "time", "is not a decimal number"),
        ] {
            fault_of(&FORMAT, LINES, line, field, what);
        }
    }

    #[test]
    fn columns_are_of_tables_alone() {
        let columns = Some("op,offset,size".parse().unwrap());
        let options = Options { columns, format: Some(trace::format("spc").unwrap()), ..Options::default() };
        let error = trace::decode("t", b"0,8,4096,r,0.5\n", &options).unwrap_err();
        assert!(error.to_string().contains("`--columns` does not apply to format `spc`"), "{error}");
    }
}
