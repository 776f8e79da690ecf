//! Trace decoding from outside: real excerpts compared with totals counted by an independent script, and properties of
//! every format for any bytes.

use bimetal_core::request::{Op, Request};
use bimetal_core::trace::{
    DeviceChoice, ErrorKind, FORMATS, Options, Place, TimeUnit, Trace, concat, decode, detect, encode_bimetal,
    encode_msr, encode_spc, encoded, format,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// An excerpt with its known figures.
struct Excerpt {
    name: &'static str,
    bytes: &'static [u8],
    /// Result of detection.
    detected: &'static str,
    /// Options for decoding, if detection cannot find them.
    format: Option<&'static str>,
    time_unit: Option<TimeUnit>,
    reads: u64,
    writes: u64,
    trims: u64,
    read_bytes: u64,
    write_bytes: u64,
    footprint_bytes: u64,
    duration_ns: u64,
    devices: usize,
}

macro_rules! excerpt {
    ($name:literal, $detected:literal, $totals:expr) => {{
        let [reads, writes, trims, read_bytes, write_bytes, footprint_bytes, duration_ns, devices] = $totals;
        Excerpt {
            name: $name,
            bytes: include_bytes!(concat!("../fixtures/traces/", $name)),
            detected: $detected,
            format: None,
            time_unit: None,
            reads,
            writes,
            trims,
            read_bytes,
            write_bytes,
            footprint_bytes,
            duration_ns,
            devices: devices as usize,
        }
    }};
}

/// Totals: reads, writes, trims, bytes read, bytes written, bytes of the footprint, nanoseconds, disks.
fn excerpts() -> Vec<Excerpt> {
    vec![
        excerpt!("umass_financial1.spc", "spc", [183, 766, 0, 302592, 2268160, 2011136, 28442623000, 16]),
        excerpt!("msr_hm_0.csv", "msr", [508, 492, 0, 6108672, 3580928, 7852032, 127233494100, 1]),
        excerpt!("opfcl_financial1.disksim.txt", "disksim", [101, 299, 0, 487424, 1925120, 888832, 12104498000, 1]),
        Excerpt {
            format: Some("flashsim"),
            ..excerpt!("flashsim_financial1.trace", "disksim", [123, 377, 0, 516096, 1650688, 1318912, 14470348000, 1])
        },
        excerpt!("ssdsim_financial1.ascii", "mqsim", [123, 377, 0, 196608, 1104384, 1142784, 14411366210, 15]),
        excerpt!("mqsim_websearch1.trace", "mqsim", [1001, 2, 0, 15179776, 16384, 15196160, 60055212000, 4]),
        Excerpt {
            time_unit: Some(TimeUnit::Microseconds),
            ..excerpt!("ssdsim_msprod_dtrs_us.trace", "mqsim", [484, 16, 0, 26021888, 229376, 26312704, 2178281000, 1])
        },
        excerpt!("fio_mixed.log", "fio", [92, 208, 0, 1396736, 2928640, 2875392, 173870000, 1]),
        excerpt!("diskmon_system-disk.txt", "diskmon", [224, 276, 0, 9105920, 3052544, 11124736, 7483849000, 1]),
        excerpt!("cloudphysics.vscsi", "vscsi", [0, 500, 0, 0, 2980864, 1933312, 151615715000, 1]),
        excerpt!("cloudphysics.csv", "vscsi-csv", [0, 500, 0, 0, 2980864, 1933312, 151000000000, 1]),
        excerpt!("cloudphysics.oracleGeneral.bin", "oracleGeneral", [500, 0, 0, 2503168, 0, 1568768, 151000000000, 1]),
        excerpt!("cloudphysics.lcs", "lcs", [0, 500, 0, 0, 2980864, 1777664, 151000000000, 1]),
        excerpt!("systor17.csv", "systor", [277, 22, 0, 13343744, 82432, 13631488, 738701000, 1]),
        excerpt!("tencent_cbs.csv", "tencent", [238, 262, 0, 7276544, 11558400, 18952192, 1000000000, 109]),
        excerpt!(
            "biotracer_nexus5_booting.txt",
            "biotracer",
            [276, 24, 0, 11315712, 137216, 11243520, BIOTRACER_NS, 1]
        ),
        excerpt!("heimdall_msr.replayer.txt", "replayer", [78, 422, 0, 272384, 2246656, 1445888, 13178041000, 1]),
        excerpt!("alibaba.csv", "alibaba", [2, 5, 0, 8192, 110592, 118784, 763000, 6]),
        excerpt!("hp_2003.srt", "srt", [49, 251, 0, 204800, 1111040, 1093632, 23492516000, 20]),
        excerpt!("cachelib_kv.csv", "cachelib", [661, 10, 0, 321404, 1827, 53248, 8000000000, 1]),
        excerpt!("cachelib_block.csv", "cachelib", [95, 59, 0, 212060011, 324214676, 534069248, 15000000000, 1]),
        excerpt!("cloudphysics.objects.csv", "libcachesim-csv", [500, 0, 0, 2980864, 0, 1777664, 151000000000, 1]),
        excerpt!("linux_ext4.blktrace.0", "blktrace", [76, 85, 14, 1379328, 4675584, 5603328, 459908697, 1]),
        excerpt!("linux_ext4.blkparse.txt", "blkparse", [60, 3, 2, 1130496, 4262912, 5292032, 137460606, 1]),
    ]
}

/// Time of the phone's log without the jump of its clock.
const BIOTRACER_NS: u64 = 585_920_209;

fn options(excerpt: &Excerpt) -> Options {
    let format = excerpt.format.map(|name| format(name).unwrap());
    Options { format, time_unit: excerpt.time_unit, ..Options::default() }
}

fn read(excerpt: &Excerpt) -> Trace {
    decode(excerpt.name, excerpt.bytes, &options(excerpt)).unwrap()
}

#[test]
fn real_excerpts_have_the_independently_counted_totals() {
    for excerpt in excerpts() {
        assert_eq!(detect(excerpt.name, excerpt.bytes).unwrap().name, excerpt.detected, "{}", excerpt.name);
        let trace = read(&excerpt);
        let got = (trace.reads, trace.writes, trace.trims, trace.read_bytes, trace.write_bytes);
        let expected = (excerpt.reads, excerpt.writes, excerpt.trims, excerpt.read_bytes, excerpt.write_bytes);
        assert_eq!(got, expected, "{}", excerpt.name);
        assert_eq!(trace.footprint_bytes(), excerpt.footprint_bytes, "{}", excerpt.name);
        assert_eq!(trace.duration_ns(), excerpt.duration_ns, "{}", excerpt.name);
        assert_eq!(trace.devices.len(), excerpt.devices, "{}", excerpt.name);
        check(&trace);
    }
}

/// Properties of every decoded trace.
fn check(trace: &Trace) {
    assert!(!trace.requests.is_empty());
    assert_eq!(trace.requests[0].arrival_ns, 0);
    assert!(trace.requests.is_sorted_by_key(|request| request.arrival_ns));
    assert_eq!(trace.reads + trace.writes + trace.trims, trace.requests.len() as u64);
    assert_eq!(trace.devices.iter().map(|device| device.requests).sum::<u64>(), trace.requests.len() as u64);
    assert!(trace.requests.iter().all(|request| request.sectors > 0 && request.end() <= trace.span_sectors()));
    assert!(trace.requests.iter().all(|request| {
        let device = trace.device_of(request.sector).unwrap();
        request.end() <= device.base_sector + device.sectors
    }));
    let mut base = 0;
    for device in &trace.devices {
        assert_eq!(device.base_sector, base);
        assert!(device.sectors.is_multiple_of(2048));
        base += device.sectors;
    }
    assert!(trace.footprint_bytes() <= trace.span_sectors() * 512);
    assert!(trace.warnings.iter().all(|warning| !warning.contains('\n')));
}

#[test]
fn every_excerpt_survives_conversion() {
    for excerpt in excerpts() {
        let trace = read(&excerpt);
        let compact = decode("c", &encoded(encode_bimetal, &trace).unwrap(), &Options::default()).unwrap();
        assert_eq!((&compact.requests, &compact.devices), (&trace.requests, &trace.devices), "{}", excerpt.name);
        assert_eq!((compact.read_bytes, compact.write_bytes), (trace.read_bytes, trace.write_bytes));
        // SPC and MSR have no trims.
        if trace.trims > 0 {
            assert!(encoded(encode_spc, &trace).is_err() && encoded(encode_msr, &trace).is_err());
            continue;
        }
        let spc = decode("s", &encoded(encode_spc, &trace).unwrap(), &Options::default()).unwrap();
        assert_eq!((&spc.requests, &spc.devices), (&trace.requests, &trace.devices), "{}", excerpt.name);
        let msr = decode("m", &encoded(encode_msr, &trace).unwrap(), &Options::default()).unwrap();
        assert_eq!(msr.format, "msr");
        assert_eq!(msr.footprint_bytes(), trace.footprint_bytes(), "{}", excerpt.name);
    }
}

#[test]
fn a_trace_beside_itself_is_twice_the_trace() {
    for excerpt in excerpts() {
        let one = read(&excerpt);
        let two = concat(vec![one.clone(), one.clone()]).unwrap();
        assert_eq!((two.requests.len(), two.duration_ns()), (2 * one.requests.len(), one.duration_ns()));
        let shared = matches!(one.format, "systor" | "tencent" | "alibaba" | "srt" | "blktrace" | "blkparse");
        let times = if shared { 1 } else { 2 };
        assert_eq!(two.footprint_bytes(), times * one.footprint_bytes(), "{}", excerpt.name);
        check(&two);
    }
}

#[test]
fn a_chosen_device_stands_alone() {
    let bytes = excerpts()[0].bytes;
    let all = decode("f", bytes, &Options::default()).unwrap();
    let mut requests = 0;
    for device in &all.devices {
        let only = Options { devices: DeviceChoice::Only(vec![device.id]), ..Options::default() };
        let one = decode("f", bytes, &only).unwrap();
        assert_eq!((one.devices.len(), one.devices[0].sectors), (1, device.sectors));
        requests += one.requests.len();
        check(&one);
    }
    assert_eq!(requests, all.requests.len());
}

#[test]
fn an_error_names_the_line_in_every_real_excerpt() {
    let is_text =
        |excerpt: &&Excerpt| !["vscsi", "oracleGeneral", "lcs", "srt", "blktrace"].contains(&excerpt.detected);
    for excerpt in excerpts().iter().filter(is_text) {
        let lines = excerpt.bytes.split(|&byte| byte == b'\n').count() as u64;
        let text = [excerpt.bytes, b"\nnonsense\n"].concat();
        let error = decode(excerpt.name, &text, &options(excerpt)).unwrap_err();
        assert_eq!(error.place(), Place::Line(lines + 1), "{error}");
        assert!(error.to_string().starts_with(&format!("{}: line {}: ", excerpt.name, lines + 1)), "{error}");
    }
}

#[test]
fn no_bytes_are_an_error_in_every_format() {
    for known in FORMATS {
        let options = Options { format: Some(known), ..Options::default() };
        assert_eq!(decode("e", b"", &options).unwrap_err().kind(), ErrorKind::Empty);
        for bytes in [&b"\n"[..], b"# nothing\n", b"\0", b"\xff\xff\xff\xff", b"x,y\n"] {
            let error = decode("e", bytes, &options).unwrap_err();
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}

/// Decodes in every format and by detection: the result is an error of one line, or a sound trace.
fn decode_in_every_way(bytes: &[u8]) {
    for known in FORMATS.iter().copied().map(Some).chain([None]) {
        let options = Options { format: known, ..Options::default() };
        match decode("p", bytes, &options) {
            Ok(trace) => check(&trace),
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
}

/// The beginning of a trace in every format, short enough to keep tests quick.
fn samples() -> Vec<Vec<u8>> {
    let excerpts = excerpts();
    let start = |excerpt: &Excerpt| excerpt.bytes[..excerpt.bytes.len().min(4096)].to_vec();
    // Binary files that end within their header or a record are refused as a whole; complete ones follow below.
    let is_cut = |excerpt: &&Excerpt| ["oracleGeneral", "lcs", "srt", "blktrace"].contains(&excerpt.detected);
    let mut samples: Vec<Vec<u8>> = excerpts.iter().filter(|excerpt| !is_cut(excerpt)).map(start).collect();
    let first_rows = excerpts[0].bytes.split_inclusive(|&byte| byte == b'\n').take(20).collect::<Vec<_>>();
    let short = decode("s", &first_rows.concat(), &Options::default()).unwrap();
    samples.push(encoded(encode_bimetal, &short).unwrap());
    samples.push(b"419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360813\n".to_vec());
    samples.push(b"fio version 2 iolog\na add\na open\na read 4096 8192\na wait 150 0\na trim 0 4096\n".to_vec());
    samples.push(b"fio version 3 iolog\n0 a add\n5 a open\n7 a write 4096 8192\n9 b read 0 512\n".to_vec());
    samples.push(
        b"8,0 3 1 0.000000000 697 Q W 223490 + 8 [k]\n8,0 3 2 0.000001829 697 D RA 64 + 8 [k]\nCPU0 (8,0):\n".to_vec(),
    );
    for (version, length) in [(7u8, 48), (8, 64)] {
        let mut record = vec![0u8; length];
        record[..4].copy_from_slice(&[version, b't', b'a', b'e']);
        record[16] = 8; // sector
        record[25] = 16; // bytes, high byte
        let action_at = if version == 7 { 28 } else { 32 };
        record[action_at..action_at + 3].copy_from_slice(&[1, 0, 2]); // queue, write
        samples.push(record.repeat(4));
    }
    samples.push(b"time_ms;rw;lba;sectors\n0.5;r;8;1\n0.75;w;16;2\n".to_vec());
    samples.push(b"{\"time_us\": 5, \"op\": \"write\", \"offset\": 4096, \"size\": 512}\n".to_vec());
    samples.push(srt());
    samples.push(b"PAR1\x15\x04\x15\x20PAR1".to_vec());
    samples.push(b"ARROW1\0\0\xff\xff\xff\xff\x88\x01\0\0ARROW1".to_vec());
    samples.push(b"0.146559796 1 0 4096 \n0.146609386 3 1 4096 \n".to_vec());
    samples.push(b"version,time,op,size,lbn\n1,33898,2a,512,42932745\n1,33899,28,4096,6160447\n".to_vec());
    samples.push(object_records(&[]));
    samples.push(lcs());
    samples.push(b"# time,object,size,next_access_vtime\n0,3345071,4096,3\n0,7,100,-1\n".to_vec());
    samples.push(
        b"op_time,key,key_size,op,op_count,size,cache_hits,ttl\n5,k,1,SET,2,87,1,0\n5,l,1,GET,3,9,0,0\n".to_vec(),
    );
    // Sizes in pages: each request continues the one before.
    let pages = (0..100).map(|number| format!("{number}.5 0 {} 2 0\n", 1000 + number * 16));
    samples.push(pages.collect::<String>().into_bytes());
    samples
}

/// Two requests of HP's traces in version 1, behind their header.
fn srt() -> Vec<u8> {
    let mut bytes = b"tracedate\t= \"Sat Apr 18 00:00:00 1992\";\n\x0c".to_vec();
    for sector in [16u32, 48] {
        let words = [52, 1 << 16 | 1, 5, 250_000, 100, 9_000, 8192, sector, 0x0700, 0, 31, 1, 5];
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    }
    bytes
}

/// Accesses to three objects, each of which is the object's last one, in libCacheSim's oracleGeneral format.
fn object_records(before: &[u8]) -> Vec<u8> {
    let mut bytes = before.to_vec();
    for (seconds, id) in [(7u32, 1u64 << 60), (7, 5), (9, 6)] {
        bytes.extend(seconds.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(4000u32.to_le_bytes());
        bytes.extend((-1i64).to_le_bytes());
    }
    bytes
}

/// The same behind a header of libCacheSim's lcs, version 1.
fn lcs() -> Vec<u8> {
    let magic = 0x1234_5678_9abc_def0_u64.to_le_bytes();
    let mut header = vec![0; 8192];
    header[..8].copy_from_slice(&magic);
    header[8] = 1;
    header[24] = 3;
    header[8184..].copy_from_slice(&magic);
    object_records(&header)
}

#[test]
fn there_is_a_sample_of_every_format() {
    let samples = samples();
    for known in FORMATS {
        let is_known = |bytes: &&Vec<u8>| detect("s", bytes).is_ok_and(|found| found.name == known.name);
        let sample = samples.iter().find(is_known).unwrap_or_else(|| panic!("no sample of `{}`", known.name));
        // The start of an excerpt may end within a record, which binary formats refuse.
        match decode("s", sample, &Options::default()) {
            Ok(trace) => check(&trace),
            // This crate does not read the content of these files.
            Err(_) if ["parquet", "arrow"].contains(&known.name) => {}
            Err(error) => assert!(matches!(error.place(), Place::Line(_)), "{error}"),
        }
    }
}

/// Requests to a few devices, in order of arrival.
fn rows() -> impl Strategy<Value = Vec<(u64, u64, u64, u32, bool)>> {
    let row = (0u64..4, 0u64..1 << 40, 1u32..1 << 12, any::<bool>(), 0u64..1 << 40);
    prop::collection::vec(row, 1..60).prop_map(|rows| {
        let mut time = 0;
        let timed = rows.into_iter().map(|(device, sector, sectors, read, gap)| {
            let at = time;
            time += gap * 100;
            (at, device, sector, sectors, read)
        });
        timed.collect()
    })
}

fn trace_of(rows: &[(u64, u64, u64, u32, bool)]) -> Trace {
    let text: String = rows
        .iter()
        .map(|(ns, device, sector, sectors, read)| {
            let op = if *read { 'r' } else { 'w' };
            let (s, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
            format!("{device},{sector},{},{op},{s}.{ns:09}\n", u64::from(*sectors) * 512)
        })
        .collect();
    decode("r", text.as_bytes(), &Options { format: Some(format("spc").unwrap()), ..Options::default() }).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_give_an_error_or_a_sound_trace(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        decode_in_every_way(&bytes);
    }

    #[test]
    fn any_numbers_give_an_error_or_a_sound_trace(text in "([0-9]{0,20}[ ,.]?[0-9rwRWQ+e-]{0,4}[ ,\t\n]){0,60}") {
        decode_in_every_way(text.as_bytes());
    }

    #[test]
    fn a_damaged_sample_gives_an_error_or_a_sound_trace(
        which in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let samples = samples();
        let mut bytes = samples[which.index(samples.len())].clone();
        bytes.truncate(1 + cut.index(bytes.len()));
        let at = at.index(bytes.len());
        bytes[at] = byte;
        decode_in_every_way(&bytes);
    }

    #[test]
    fn whatever_is_written_reads_back(rows in rows()) {
        let trace = trace_of(&rows);
        check(&trace);
        for (bytes, name) in [
            (encoded(encode_bimetal, &trace).unwrap(), "bimetal"),
            (encoded(encode_spc, &trace).unwrap(), "spc"),
            (encoded(encode_msr, &trace).unwrap(), "msr"),
        ] {
            prop_assert_eq!(detect("r", &bytes).unwrap().name, name);
            let again = decode("r", &bytes, &Options::default()).unwrap();
            prop_assert_eq!(&again.requests, &trace.requests);
            prop_assert_eq!(&again.devices, &trace.devices);
            prop_assert_eq!((again.read_bytes, again.write_bytes), (trace.read_bytes, trace.write_bytes));
        }
    }

    #[test]
    fn trims_survive_the_compact_form(rows in rows()) {
        let mut trace = trace_of(&rows);
        let trim = |request: &mut Request| request.op = Op::Trim;
        trace.requests.iter_mut().for_each(trim);
        (trace.reads, trace.writes, trace.trims) = (0, 0, trace.requests.len() as u64);
        (trace.read_bytes, trace.write_bytes) = (0, 0);
        let again = decode("r", &encoded(encode_bimetal, &trace).unwrap(), &Options::default()).unwrap();
        prop_assert_eq!(&again.requests, &trace.requests);
        prop_assert_eq!(again.footprint_bytes(), 0);
        prop_assert_eq!(encoded(encode_spc, &trace).unwrap_err().kind(), ErrorKind::Inexpressible);
    }
}
