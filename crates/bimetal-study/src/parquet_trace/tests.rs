use std::sync::Arc;

use bimetal_core::request::Op;
use bimetal_core::trace;
use parquet::basic::{GzipLevel, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

/// The values of a column in a generated file.
#[derive(Clone)]
enum Column {
    Truth(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Text(Vec<&'static str>),
    Fixed(Vec<&'static str>),
}

/// A file with this schema. Each row group repeats the same columns. A row is null where `present` is false.
fn file(
    schema: &str,
    columns: &[Column],
    present: Option<&[bool]>,
    groups: usize,
    properties: WriterProperties,
) -> Vec<u8> {
    fn put<T: DataType>(
        writer: &mut parquet::file::writer::SerializedColumnWriter<'_>,
        values: &[T::T],
        present: Option<&[bool]>,
    ) {
        let levels: Option<Vec<i16>> = present.map(|present| present.iter().map(|&has| i16::from(has)).collect());
        writer.typed::<T>().write_batch(values, levels.as_deref(), None).unwrap();
    }
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    for _ in 0..groups {
        let mut group = writer.next_row_group().unwrap();
        for column in columns {
            let mut writer = group.next_column().unwrap().unwrap();
            match column {
                Column::Truth(values) => put::<BoolType>(&mut writer, values, present),
                Column::Int32(values) => put::<Int32Type>(&mut writer, values, present),
                Column::Int64(values) => put::<Int64Type>(&mut writer, values, present),
                Column::Int96(values) => put::<Int96Type>(&mut writer, values, present),
                Column::Float(values) => put::<FloatType>(&mut writer, values, present),
                Column::Double(values) => put::<DoubleType>(&mut writer, values, present),
                Column::Text(values) => {
                    let values: Vec<_> = values.iter().map(|text| ByteArray::from(*text)).collect();
                    put::<ByteArrayType>(&mut writer, &values, present);
                }
                Column::Fixed(values) => {
                    let fixed = |text: &&str| FixedLenByteArray::from(text.as_bytes().to_vec());
                    let values: Vec<_> = values.iter().map(fixed).collect();
                    put::<FixedLenByteArrayType>(&mut writer, &values, present);
                }
            }
            writer.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

fn plain() -> WriterProperties {
    WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build()
}

const SCHEMA: &str =
    "message m { required int64 time_us; required binary op (STRING); required int64 offset; required int32 size; }";

fn columns() -> [Column; 4] {
    [
        Column::Int64(vec![500, 750, 900]),
        Column::Text(vec!["R", "write", "Trim"]),
        Column::Int64(vec![4096, 8192, 0]),
        Column::Int32(vec![512, 1024, 1 << 20]),
    ]
}

const CSV: &str = "time_us,op,offset,size\n500,R,4096,512\n750,write,8192,1024\n900,Trim,0,1048576\n";

fn options(columns: &str) -> Options {
    let columns = (!columns.is_empty()).then(|| columns.parse().unwrap());
    Options { columns, ..Options::default() }
}

fn error(bytes: Vec<u8>, columns: &str) -> String {
    let error = decode("t", bytes, &options(columns)).unwrap_err().to_string();
    assert!(!error.contains('\n') && error.contains("hint: "), "{error}");
    error
}

#[test]
fn an_equal_text_gives_the_same_requests_under_every_compression() {
    let text = trace::decode("t", CSV.as_bytes(), &Options::default()).unwrap();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for dictionary in [true, false] {
                let properties = WriterProperties::builder().set_compression(codec).set_writer_version(version);
                let bytes = file(SCHEMA, &columns(), None, 1, properties.set_dictionary_enabled(dictionary).build());
                let trace = decode("t", bytes, &Options::default()).unwrap();
                assert_eq!((trace.format, trace.trims, trace.warnings.len()), ("parquet", 1, 0));
                assert_eq!(trace, Trace { format: "parquet", ..text.clone() }, "{codec} {version:?}");
            }
        }
    }
}

#[test]
fn a_file_is_known_by_its_first_bytes() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(SCHEMA, &columns(), None, 1, plain());
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&bytes).unwrap();
    let packed = encoder.finish().unwrap();
    for (name, bytes) in [("a.parquet", &bytes), ("b", &bytes), ("c.gz", &packed)] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let trace = crate::input::open(&[path], &options("time=time_us:us,op=op,offset=offset,size=size")).unwrap();
        assert_eq!((trace.format, trace.name.as_str(), trace.requests.len()), ("parquet", name, 3));
    }
}

#[test]
fn rows_go_on_from_batch_to_batch_and_group_to_group() {
    let count = BATCH + 100;
    let rows = i64::try_from(count).unwrap();
    let text = |index: i64| if index % 3 == 0 { "w" } else { "r" };
    let columns = [
        Column::Int64((0..rows).collect()),
        Column::Text((0..rows).map(text).collect()),
        Column::Int64((0..rows).map(|index| index * 4096).collect()),
        Column::Int32(vec![4096; count]),
    ];
    let pages = WriterProperties::builder().set_data_page_row_count_limit(1000).set_write_batch_size(100).build();
    let trace = decode("t", file(SCHEMA, &columns, None, 3, pages), &Options::default()).unwrap();
    assert_eq!(trace.requests.len() as i64, 3 * rows);
    let after = trace.requests
        [trace.requests.partition_point(|request| request.arrival_ns < (rows.cast_unsigned() - 1) * 1000)];
    assert_eq!((after.sector, after.op), ((rows.cast_unsigned() - 1) * 8, Op::Read));
    // A row of the second group.
    let mut late = columns;
    late[3] = Column::Int32((0..rows).map(|index| if index == rows - 1 { -1 } else { 512 }).collect());
    let message = error(file(SCHEMA, &late, None, 2, plain()), "");
    assert!(message.starts_with(&format!("t: row {}: field `size` is negative: `-1`", rows - 1)), "{message}");
}

#[test]
fn types_say_units_and_numbers_are_of_many_types() {
    let expected = |bytes: Vec<u8>, columns: &str| {
        let trace = decode("t", bytes, &options(columns)).unwrap();
        let requests = &trace.requests;
        let facts: Vec<_> = requests.iter().map(|request| (request.op, request.sector, request.sectors)).collect();
        assert_eq!(facts, [(Op::Read, 8, 1), (Op::Write, 16, 2)], "{columns}");
        (trace.duration_ns(), trace.origin_ns)
    };
    let named = "time=when,op=kind:1=read,offset=lba:sectors,size=len";
    let unsigned = Column::Int32(vec![8, 16]);
    let start = 1_700_000_000_000i64;
    let stamps = Column::Int64(vec![start, start + 250]);
    for (unit, nanoseconds) in [("MILLIS", 1_000_000u64), ("MICROS", 1_000), ("NANOS", 1)] {
        let schema = format!(
            "message m {{ required int64 when (TIMESTAMP({unit},true)); required boolean kind; \
             required int32 lba (INTEGER(32,false)); required float len; }}"
        );
        let columns =
            [stamps.clone(), Column::Truth(vec![true, false]), unsigned.clone(), Column::Float(vec![512.0, 1024.0])];
        let bytes = file(&schema, &columns, None, 1, plain());
        assert_eq!(expected(bytes, named), (250 * nanoseconds, start.cast_unsigned() * nanoseconds), "{unit}");
    }
    // Seconds as floating point, one letter in three bytes, digits as text.
    let schema = "message m { required double time_s; required fixed_len_byte_array(3) rw; required binary lba (STRING); required double bytes; }";
    let columns = [
        Column::Double(vec![5.5, 5.75]),
        Column::Fixed(vec!["r\0\0", "W  "]),
        Column::Text(vec!["8", "16"]),
        Column::Double(vec![512.0, 1024.0]),
    ];
    assert_eq!(expected(file(schema, &columns, None, 1, plain()), ""), (250_000_000, 5_500_000_000));
    // Int96 with a day and nanoseconds, as Spark wrote it, and units of converted types.
    let mut day = [Int96::new(), Int96::new()];
    day[0].set_data(1_000, 0, 2_440_589);
    day[1].set_data(1_250, 0, 2_440_589);
    for (kind, times) in [
        ("int96 time", Column::Int96(day.to_vec())),
        ("int64 time (TIMESTAMP_MICROS)", Column::Int64(vec![1_000, 1_250])),
    ] {
        let schema = format!(
            "message m {{ required {kind}; required binary op; required int64 offset (INTEGER(64,false)); required int64 size; }}"
        );
        let columns =
            [times, Column::Text(vec!["read", "wr"]), Column::Int64(vec![4096, 8192]), Column::Int64(vec![512, 1024])];
        let duration = expected(file(&schema, &columns, None, 1, plain()), "").0;
        assert_eq!(duration, if kind.starts_with("int96") { 250 } else { 250_000 });
    }
}

#[test]
fn columns_are_named_as_those_of_text_are() {
    let renamed = SCHEMA.replace("time_us", "started").replace("op ", "kind ").replace("size", "len");
    let bytes = file(&renamed, &columns(), None, 1, plain());
    let trace = decode("t", bytes.clone(), &options("time=started:ms,op=Kind,offset=offset:sectors,size=len:kib"));
    let trace = trace.unwrap();
    assert_eq!((trace.requests[0].sector, trace.requests[0].sectors, trace.duration_ns()), (4096, 1024, 400_000_000));
    let by_position = decode("t", bytes.clone(), &options("time:us,op,offset,size")).unwrap();
    assert_eq!(
        by_position.requests,
        decode("t", file(SCHEMA, &columns(), None, 1, plain()), &options("")).unwrap().requests
    );
    let message = error(bytes, "");
    assert!(message.contains("there is no column `op`, in the columns `started,kind,offset,len`"), "{message}");
    let stamped = SCHEMA.replace("time_us", "t (TIMESTAMP(MILLIS,true))");
    let message = error(file(&stamped, &columns(), None, 1, plain()), "time=t:s,op=op,offset=offset,size=size");
    assert!(message.contains("`t` is of a type with times in `ms`, not in `s`"), "{message}");
}

#[test]
fn cells_without_a_value_and_other_types_are_named() {
    let optional = SCHEMA.replace("required", "optional");
    let short = [
        Column::Int64(vec![500, 750]),
        Column::Text(vec!["r", "w"]),
        Column::Int64(vec![0, 512]),
        Column::Int32(vec![512, 512]),
    ];
    let message = error(file(&optional, &short, Some(&[true, false, true]), 1, plain()), "");
    assert!(message.starts_with("t: row 1: field `time` has no value: it is null"), "{message}");
    let whole = decode("t", file(&optional, &columns(), Some(&[true; 3]), 1, plain()), &options("")).unwrap();
    assert_eq!(whole.requests.len(), 3);
    for (from, to, what) in [
        ("int64 offset", "int64 offset (DECIMAL(10,2))", "the column `offset` is a decimal, which is no offset"),
        ("int32 size", "int32 size (DATE)", "the column `size` is a date, which is no size"),
        ("int64 offset", "int64 offset (TIMESTAMP(MICROS,true))", "the column `offset` is a time, which is no offset"),
        ("op (STRING)", "op (JSON)", "the column `op` is of a special type, which is no op"),
    ] {
        let message = error(file(&SCHEMA.replace(from, to), &columns(), None, 1, plain()), "");
        assert!(message.contains(what), "{message}");
    }
    let mut fraction = columns();
    fraction[2] = Column::Double(vec![0.0, 0.5, f64::NAN]);
    let schema = SCHEMA.replace("int64 offset", "double offset");
    let message = error(file(&schema, &fraction, None, 1, plain()), "");
    assert!(message.starts_with("t: row 1: field `offset` is not a whole number: `0.5`"), "{message}");
    let none = error(file(SCHEMA, &[], None, 0, plain()), "");
    assert!(none.contains("the file holds no requests"), "{none}");
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let bytes = file(SCHEMA, &columns(), None, 1, plain());
    for cut in 1..bytes.len() {
        let message = error(bytes[..cut].to_vec(), "");
        assert!(message.starts_with("t: the Parquet file is damaged or cut off: "), "{cut}: {message}");
    }
    let text = Options { format: Some(trace::format("parquet").unwrap()), ..Options::default() };
    let message = decode("t", CSV.as_bytes().to_vec(), &text).unwrap_err().to_string();
    assert!(message.contains("it does not begin with `PAR1`"), "{message}");
}

/// A file with this footer struct.
fn footer(structure: &[u8]) -> Vec<u8> {
    let length = u32::try_from(structure.len()).unwrap().to_le_bytes();
    [b"PAR1", structure, &length, b"PAR1"].concat()
}

#[test]
fn what_a_file_asks_for_is_held_against_its_bytes() {
    // A list of 2^31 structs; nested lists; a name of 2^40 bytes.
    for (structure, what) in [
        (&[0x29, 0xfc, 0x80, 0x80, 0x80, 0x80, 0x08][..], "a count in a header exceeds the header"),
        (&[0x19; 100], "a header is nested too deep"),
        (&[0x28, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01], "a header ends early"),
        (&[0x2e], "a header has a field of an unknown type"),
        (&[], "a header ends early"),
    ] {
        let message = error(footer(structure), "");
        assert!(message.contains(what), "{what}: {message}");
    }
    // A schema in which every group contains one group.
    let element = [0x48, 1, b'g', 0x15, 2, 0];
    let elements = 100_000u32;
    let count =
        [0x80 | (elements & 0x7f) as u8, 0x80 | (elements >> 7 & 0x7f) as u8, u8::try_from(elements >> 14).unwrap()];
    let schema = [&[0x29, 0xfc], &count[..], &element.repeat(elements as usize), &[0]].concat();
    let message = error(footer(&schema), "");
    assert!(message.contains("its schema is nested too deep"), "{message}");
    assert!(vet::file(&footer(&[0])).is_ok());
    // A page of 2^31 bytes, and a dictionary with more values than bytes.
    for (header, what) in [
        (&[0x25, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 8, 0][..], "a page is larger than 1 GiB"),
        (&[0x25, 20, 0x15, 8, 0x4c, 0x15, 200, 1, 0, 0], "a dictionary counts more values than it has bytes"),
    ] {
        assert_eq!(vet::page(&Bytes::copy_from_slice(header), false, false).unwrap_err(), what);
    }
}

#[test]
fn a_page_in_gzip_is_as_long_as_it_says() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&[0; 1000]).unwrap();
    let packed = encoder.finish().unwrap();
    let page = |bytes: u8| {
        let header = [0x25, 0x80 | (bytes << 1), bytes >> 6, 0x15, u8::try_from(packed.len() * 2).unwrap(), 0];
        vet::page(&Bytes::from([&header, &packed[..]].concat()), true, false)
    };
    assert_eq!(page(100), Err("a page in gzip is longer than its header says"));
    assert_eq!(
        vet::page(&Bytes::from_static(&[0x25, 20, 0x15, 2, 0, 7]), true, false),
        Err("a page in gzip is damaged")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_errors_or_sound_traces(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        codec in 0usize..5,
        is_old in any::<bool>(),
        has_nulls in any::<bool>(),
    ) {
        let gzip = Compression::GZIP(GzipLevel::default());
        let codec = [Compression::UNCOMPRESSED, Compression::SNAPPY, gzip, Compression::LZ4_RAW, plain_codec()][codec];
        let version = if is_old { WriterVersion::PARQUET_1_0 } else { WriterVersion::PARQUET_2_0 };
        let properties = WriterProperties::builder().set_compression(codec).set_writer_version(version).build();
        let (schema, present) = if has_nulls { (SCHEMA.replace("required", "optional"), Some(&[true; 3][..])) } else { (SCHEMA.to_owned(), None) };
        let mut bytes = file(&schema, &columns(), present, 1, properties);
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        match decode("t", bytes, &Options::default()) {
            Ok(trace) => prop_assert_eq!(trace.requests.len() as u64, trace.reads + trace.writes + trace.trims),
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
        }
    }
}

fn plain_codec() -> Compression {
    Compression::ZSTD(ZstdLevel::default())
}
