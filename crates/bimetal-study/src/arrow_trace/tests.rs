use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type, UInt16Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, DurationMillisecondArray,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, LargeStringArray, NullArray,
    StringArray, StringViewArray, StructArray, Time32SecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, MetadataVersion};
use bimetal_core::request::Op;
use bimetal_core::trace;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use arrow_array::RecordBatch;

use super::*;

const CODECS: [Option<CompressionType>; 3] = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];

fn compressed(codec: Option<CompressionType>) -> IpcWriteOptions {
    IpcWriteOptions::default().try_with_compression(codec).unwrap()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn file_with(options: IpcWriteOptions, batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn stream_with(options: IpcWriteOptions, batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn file(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    file_with(IpcWriteOptions::default(), &[batch(columns)])
}

/// Operations as a dictionary.
fn words(words: &[&str]) -> ArrayRef {
    Arc::new(words.iter().copied().collect::<DictionaryArray<Int32Type>>())
}

fn columns() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("time_us", Arc::new(Int64Array::from(vec![500, 750, 900]))),
        ("op", words(&["R", "write", "Trim"])),
        ("offset", Arc::new(UInt64Array::from(vec![4096, 8192, 0]))),
        ("size", Arc::new(Int32Array::from(vec![512, 1024, 1 << 20]))),
    ]
}

/// The same columns with one of them replaced.
fn with(name: &'static str, column: ArrayRef) -> Vec<(&'static str, ArrayRef)> {
    columns().into_iter().map(|(own, old)| (own, if own == name { column.clone() } else { old })).collect()
}

const CSV: &str = "time_us,op,offset,size\n500,R,4096,512\n750,write,8192,1024\n900,Trim,0,1048576\n";

fn options(columns: &str) -> Options {
    let columns = (!columns.is_empty()).then(|| columns.parse().unwrap());
    Options { columns, ..Options::default() }
}

fn error(bytes: Vec<u8>, columns: &str) -> String {
    let error = decode("t", &bytes, &options(columns)).unwrap_err().to_string();
    assert!(!error.contains('\n') && error.contains("hint: "), "{error}");
    error
}

#[test]
fn an_equal_text_gives_the_same_requests_in_files_and_streams() {
    let text = trace::decode("t", CSV.as_bytes(), &Options::default()).unwrap();
    let expected = Trace { format: "arrow", ..text };
    let batches = [batch(columns())];
    for codec in CODECS {
        for bytes in [file_with(compressed(codec), &batches), stream_with(compressed(codec), &batches)] {
            assert!(trace::is_arrow(&bytes[..8]));
            let trace = decode("t", &bytes, &Options::default()).unwrap();
            assert_eq!(trace, expected, "{codec:?}");
            assert_eq!((trace.trims, trace.warnings.len()), (1, 0));
        }
    }
    // Headers as they were before version 0.15 of the format.
    let old = IpcWriteOptions::try_new(8, true, MetadataVersion::V4).unwrap();
    assert_eq!(decode("t", &file_with(old, &batches), &Options::default()).unwrap(), expected);
}

#[test]
fn a_file_is_known_by_its_first_bytes() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(columns());
    let stream = stream_with(IpcWriteOptions::default(), &[batch(columns())]);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&bytes).unwrap();
    let packed = encoder.finish().unwrap();
    for (name, bytes) in [("a.arrow", &bytes), ("b.feather", &bytes), ("c", &stream), ("d.gz", &packed)] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        for columns in ["", "time=time_us:us,op=op,offset=offset,size=size"] {
            let trace = crate::input::open(std::slice::from_ref(&path), &options(columns)).unwrap();
            assert_eq!((trace.format, trace.name.as_str(), trace.requests.len()), ("arrow", name, 3));
        }
    }
}

#[test]
fn files_of_other_writers_are_read() {
    for (name, bytes) in [
        ("pyarrow-lz4.feather", &include_bytes!("../../tests/fixtures/arrow/pyarrow-lz4.feather")[..]),
        ("pyarrow-zstd.arrows", include_bytes!("../../tests/fixtures/arrow/pyarrow-zstd.arrows")),
        ("polars-uncompressed.arrow", include_bytes!("../../tests/fixtures/arrow/polars-uncompressed.arrow")),
        ("polars-zstd.arrow", include_bytes!("../../tests/fixtures/arrow/polars-zstd.arrow")),
    ] {
        let trace = decode(name, bytes, &Options::default()).unwrap();
        assert_eq!((trace.requests.len(), trace.warnings.len()), (300, 0), "{name}");
        for (request, row) in trace.requests.iter().zip(0u32..) {
            let op = if row % 3 == 0 { Op::Read } else { Op::Write };
            let place = (u64::from(row * 7919 % 4096 * 8), 8 * (1 + row % 4));
            assert_eq!((request.op, request.sector, request.sectors), (op, place.0, place.1), "{name} {row}");
            assert_eq!(request.arrival_ns, u64::from(row) * 5_000_000, "{name} {row}");
        }
        let message = error(bytes.to_vec(), "time=timestamp,op=op,offset=lba:sectors,size=latency");
        assert!(message.starts_with("t: row 1: field `size` has no value: it is null"), "{message}");
    }
}

#[test]
fn rows_go_on_from_batch_to_batch() {
    let part = |first: i64, sizes: Vec<i32>| {
        batch(vec![
            ("time_us", Arc::new(Int64Array::from_iter_values(first..first + 100)) as ArrayRef),
            ("op", words(&["w"; 100])),
            ("offset", Arc::new(UInt64Array::from_iter_values((0..100).map(|row| row * 4096)))),
            ("size", Arc::new(Int32Array::from(sizes))),
        ])
    };
    let mut sizes = vec![4096; 100];
    let batches = [part(0, sizes.clone()), part(100, sizes.clone()), part(200, sizes.clone())];
    let trace = decode("t", &file_with(IpcWriteOptions::default(), &batches), &Options::default()).unwrap();
    assert_eq!((trace.requests.len(), trace.duration_ns()), (300, 299_000));
    sizes[99] = -1;
    let late = [batches[0].clone(), part(100, sizes)];
    for bytes in [file_with(compressed(None), &late), stream_with(compressed(None), &late)] {
        let message = error(bytes, "");
        assert!(message.starts_with("t: row 199: field `size` is negative: `-1`"), "{message}");
    }
}

#[test]
fn dictionaries_are_replaced_and_extended() {
    let part = |values: Vec<&'static str>, keys: Vec<i8>| {
        let keys = arrow_array::Int8Array::from(keys);
        let op = DictionaryArray::<Int8Type>::new(keys, Arc::new(StringArray::from(values)));
        let mut columns = columns();
        columns[1].1 = Arc::new(op);
        batch(columns)
    };
    let ops = |bytes: Vec<u8>| {
        let trace = decode("t", &bytes, &Options::default()).unwrap();
        trace.requests.iter().map(|request| request.op).collect::<Vec<_>>()
    };
    let replaced = [part(vec!["r"], vec![0, 0, 0]), part(vec!["w"], vec![0, 0, 0])];
    let one_clock = |mut ops: Vec<Op>| {
        ops.sort_by_key(|op| *op as u8);
        ops
    };
    let expected = [vec![Op::Read; 3], vec![Op::Write; 3]].concat();
    assert_eq!(one_clock(ops(stream_with(IpcWriteOptions::default(), &replaced))), expected);
    let extended = [part(vec!["r"], vec![0, 0, 0]), part(vec!["r", "w"], vec![1, 1, 1])];
    let deltas = || IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    assert_eq!(one_clock(ops(stream_with(deltas(), &extended))), expected);
    assert_eq!(one_clock(ops(file_with(deltas(), &extended))), expected);
    // A key of a null value is a null.
    let values = StringArray::from(vec![Some("r"), None]);
    let op = DictionaryArray::<UInt16Type>::new(vec![0u16, 1, 0].into(), Arc::new(values));
    let message = error(file(with("op", Arc::new(op))), "");
    assert!(message.starts_with("t: row 1: field `op` has no value: it is null"), "{message}");
}

/// The operations, sectors and lengths of two requests, and their duration.
fn facts(bytes: Vec<u8>, columns: &str) -> u64 {
    let trace = decode("t", &bytes, &options(columns)).unwrap();
    let facts: Vec<_> = trace.requests.iter().map(|request| (request.op, request.sector, request.sectors)).collect();
    assert_eq!(facts, [(Op::Read, 8, 1), (Op::Write, 16, 2)], "{columns}");
    trace.duration_ns()
}

#[test]
fn types_say_units_and_numbers_are_of_many_types() {
    let named = "time=when,op=kind:1=read,offset=lba:sectors,size=len";
    let start = 1_700_000_000i64;
    let times: [(ArrayRef, u64); 7] = [
        (Arc::new(TimestampSecondArray::from(vec![start, start + 250])), 1_000_000_000),
        (Arc::new(TimestampMillisecondArray::from(vec![start, start + 250]).with_timezone("UTC")), 1_000_000),
        (Arc::new(TimestampMicrosecondArray::from(vec![start, start + 250])), 1_000),
        (Arc::new(TimestampNanosecondArray::from(vec![start, start + 250])), 1),
        (Arc::new(DurationMillisecondArray::from(vec![0, 250])), 1_000_000),
        (Arc::new(Time32SecondArray::from(vec![5, 255])), 1_000_000_000),
        (
            Arc::new(DictionaryArray::<Int8Type>::new(
                vec![0i8, 1].into(),
                Arc::new(TimestampMicrosecondArray::from(vec![0, 250])),
            )),
            1_000,
        ),
    ];
    for (when, nanoseconds) in times {
        let kind = when.data_type().clone();
        let bytes = file(vec![
            ("when", when),
            ("kind", Arc::new(BooleanArray::from(vec![true, false]))),
            ("lba", Arc::new(UInt32Array::from(vec![8, 16]))),
            ("len", Arc::new(Float32Array::from(vec![512.0, 1024.0]))),
        ]);
        assert_eq!(facts(bytes, named), 250 * nanoseconds, "{kind}");
    }
    // Seconds as floating point, one letter in three bytes, digits as text.
    let texts: [ArrayRef; 5] = [
        Arc::new(StringArray::from(vec!["8", "16"])),
        Arc::new(LargeStringArray::from(vec![" 8", "16 "])),
        Arc::new(StringViewArray::from(vec!["8", "16"])),
        Arc::new(BinaryArray::from(vec![&b"8"[..], b"16"])),
        Arc::new(Decimal128Array::from(vec![8, 16]).with_precision_and_scale(38, 0).unwrap()),
    ];
    for lba in texts {
        let letters = FixedSizeBinaryArray::try_from_iter([*b"r\0\0", *b"W  "].into_iter()).unwrap();
        let bytes = file(vec![
            ("time_s", Arc::new(Float64Array::from(vec![5.5, 5.75]))),
            ("rw", Arc::new(letters)),
            ("lba", lba),
            ("bytes", Arc::new(Int16Array::from(vec![512, 1024]))),
        ]);
        assert_eq!(facts(bytes, ""), 250_000_000);
    }
    let bytes = file(vec![
        ("op", Arc::new(UInt8Array::from(vec![0, 1])) as ArrayRef),
        ("offset", Arc::new(UInt64Array::from(vec![4096, 8192]))),
        ("size", Arc::new(UInt64Array::from(vec![512, 1024]))),
    ]);
    assert_eq!(facts(bytes, "op:0=read,offset,size"), 0);
}

#[test]
fn columns_are_named_as_those_of_text_are() {
    let renamed = ["started", "kind", "offset", "len"].into_iter().zip(columns().into_iter().map(|(_, column)| column));
    let bytes = file(renamed.collect());
    let trace = decode("t", &bytes, &options("size=len:kib,time=started:ms,op=Kind,offset=offset:sectors"));
    let trace = trace.unwrap();
    assert_eq!((trace.requests[0].sector, trace.requests[0].sectors, trace.duration_ns()), (4096, 1024, 400_000_000));
    let by_position = decode("t", &bytes, &options("time:us,op,offset,size")).unwrap();
    assert_eq!(by_position.requests, decode("t", &file(columns()), &options("")).unwrap().requests);
    let message = error(bytes, "");
    assert!(message.contains("there is no column `op`, in the columns `started,kind,offset,len`"), "{message}");
    let stamps = Arc::new(TimestampMillisecondArray::from(vec![1, 2, 3]));
    let message = error(file(with("time_us", stamps)), "time=time_us:s,op=op,offset=offset,size=size");
    assert!(message.contains("`time_us` is of a type with times in `ms`, not in `s`"), "{message}");
}

#[test]
fn cells_without_a_value_and_other_types_are_named() {
    let times = Int64Array::from(vec![Some(500), None, Some(900)]);
    let message = error(file(with("time_us", Arc::new(times))), "");
    assert!(message.starts_with("t: row 1: field `time` has no value: it is null"), "{message}");
    let struct_of = StructArray::try_from(vec![("a", Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    let offsets = arrow_buffer::OffsetBuffer::<i32>::from_lengths([1, 1, 1]);
    let item = Arc::new(arrow_schema::Field::new_list_field(DataType::Int32, false));
    let list = arrow_array::ListArray::new(item, offsets, Arc::new(Int32Array::from(vec![1, 2, 3])), None);
    let special: [(&str, ArrayRef, &str); 7] = [
        (
            "offset",
            Arc::new(Decimal128Array::from(vec![1, 2, 3])),
            "the column `offset` is a decimal, which is no offset",
        ),
        ("size", Arc::new(Date32Array::from(vec![1, 2, 3])), "the column `size` is a date, which is no size"),
        ("size", Arc::new(struct_of), "the column `size` is a struct, which is no size"),
        ("size", Arc::new(list), "the column `size` is a list, which is no size"),
        ("op", Arc::new(NullArray::new(3)), "the column `op` is of a special type, which is no op"),
        (
            "offset",
            Arc::new(TimestampSecondArray::from(vec![1, 2, 3])),
            "the column `offset` is a time, which is no offset",
        ),
        (
            "offset",
            Arc::new(Float64Array::from(vec![0.0, 0.5, f64::NAN])),
            "row 1: field `offset` is not a whole number: `0.5`",
        ),
    ];
    for (name, column, what) in special {
        let message = error(file(with(name, column)), "");
        assert!(message.starts_with(&format!("t: {what}")), "{message}");
    }
    let none = error(file(columns().into_iter().map(|(name, column)| (name, column.slice(0, 0))).collect()), "");
    assert!(none.contains("the file holds no requests"), "{none}");
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let batches = [batch(columns()), batch(columns())];
    for bytes in [file_with(compressed(None), &batches), stream_with(compressed(CODECS[2]), &batches)] {
        for cut in 1..bytes.len() {
            let message = error(bytes[..cut].to_vec(), "");
            assert!(message.starts_with("t: the Arrow file is damaged or cut off: "), "{cut}: {message}");
        }
        let message = error([&bytes[..], &[0; 8]].concat(), "");
        assert!(message.contains("damaged or cut off: it "), "{message}");
    }
    let text = Options { format: Some(trace::format("feather").unwrap()), ..Options::default() };
    let message = decode("t", CSV.as_bytes(), &text).unwrap_err().to_string();
    assert!(message.contains("a message does not start with its mark"), "{message}");
}

/// The bytes with each occurrence of a number replaced by another.
fn replaced(bytes: &[u8], old: i64, new: i64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> =
        (0..bytes.len() - 7).filter(|&place| bytes[place..place + 8] == old.to_le_bytes()).collect();
    assert!(!places.is_empty(), "{old}");
    places.iter().for_each(|&place| bytes[place..place + 8].copy_from_slice(&new.to_le_bytes()));
    bytes
}

#[test]
fn claims_of_a_file_are_compared_with_its_bytes() {
    let rows = 12_345;
    let many = batch(vec![
        ("op", Arc::new(BooleanArray::from(vec![true; rows])) as ArrayRef),
        ("offset", Arc::new(UInt64Array::from_iter_values((0..rows as u64).map(|row| row * 4096)))),
        ("size", Arc::new(UInt64Array::from_value(4096, rows))),
    ]);
    let named = "op:1=read,offset,size";
    let many = [many];
    for bytes in [file_with(compressed(CODECS[2]), &many), stream_with(compressed(CODECS[1]), &many)] {
        assert_eq!(decode("t", &bytes, &options(named)).unwrap().reads, rows as u64);
        for (new, what) in [
            (1 << 39, "the Arrow file is damaged or cut off: it claims to have 549755813888 rows"),
            (1 << 50, "it claims to have 1125899906842624 rows"),
            (-1, "a number of rows is negative"),
        ] {
            let message = error(replaced(&bytes, rows as i64, new), named);
            assert!(message.contains(what), "{message}");
        }
        // The length of a column of 8-byte numbers in front of its compressed data.
        let length = 8 * rows as i64;
        let message = error(replaced(&bytes, length, 1 << 40), named);
        let expected = "t: a compressed column has more than 1 GiB in one record batch; hint: write it in smaller ";
        assert!(message.starts_with(expected), "{message}");
        for wrong in [length - 1, length + 1, -2] {
            let message = error(replaced(&bytes, length, wrong), named);
            assert!(message.starts_with("t: the Arrow file is damaged or cut off: "), "{message}");
        }
    }
}

#[test]
fn dictionaries_have_a_limit() {
    // The values of one dictionary: 1 GiB is the limit of each buffer, and of all dictionaries together.
    let long = "write".repeat(200);
    let bytes = file_with(compressed(CODECS[2]), &[batch(with("op", words(&["w", &long, "r"])))]);
    let length = i64::try_from(long.len() + 2).unwrap();
    let message = error(replaced(&bytes, length, 1 << 30), "");
    let expected =
        "t: the dictionaries of its columns have more than 1 GiB; hint: write the columns without dictionaries";
    assert_eq!(message, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_errors_or_sound_traces(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        codec in 0usize..3,
        is_stream in any::<bool>(),
        has_views in any::<bool>(),
    ) {
        let ops: ArrayRef = Arc::new(StringViewArray::from(vec!["r", "w", "trim"]));
        let batches = [batch(if has_views { with("op", ops) } else { columns() })];
        let options = compressed(CODECS[codec]);
        let mut bytes = if is_stream { stream_with(options, &batches) } else { file_with(options, &batches) };
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        match decode("t", &bytes, &Options::default()) {
            Ok(trace) => prop_assert_eq!(trace.requests.len() as u64, trace.reads + trace.writes + trace.trims),
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
        }
    }
}
