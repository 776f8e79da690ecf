//! Bimetal's own compact form: what `bimetal convert` writes once so that every replay starts at once.
//!
//! All little-endian. Header, 80 bytes: magic `BMTRACE\0`, u32 version (1), u32 devices, then u64 each: requests, reads,
//! writes, trims, bytes read, bytes written (exact, from the source), clock at arrival 0 in ns, reserved (0). Then 32
//! bytes a device: u64 id, base sector, sectors, requests. Then 24 bytes a request: u64 arrival in ns, u64 sector,
//! u32 sectors, u32 operation (0 read, 1 write, 2 trim).
//!
//! No checksum, but the length must be exact and the records must agree with the header's counts. Requests are in order
//! of arrival and lie within the devices.

use super::collect::{DEVICE_ALIGN_SECTORS, MAX_BYTES};
use super::detect::{Likeness, Sample};
use super::error::{ErrorKind, Fault, Place, TraceError};
use super::{DeviceChoice, Format, Input, Shared, Trace, TraceDevice, plausible};
use crate::request::{Op, Request, SECTOR_BYTES};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "bimetal",
    aliases: &[],
    summary: "Bimetal's compact binary form (what `bimetal convert` writes)",
    layout: "arrival sector sectors op: nanoseconds, 512-byte sectors, 0 = read, 1 = write, 2 = trim",
    time_unit: None,
    has_actions: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

const MAGIC: &[u8; 8] = b"BMTRACE\0";
const VERSION: u32 = 1;
const HEADER: usize = 80;
const DEVICE: usize = 32;
const RECORD: usize = 24;

/// Records that are checked together, so that the check costs no branch a record.
const BLOCK: usize = 1024;

/// Writes a trace in the compact form. Its name, source format and warnings are not kept.
pub fn encode_bimetal(trace: &Trace) -> Vec<u8> {
    let mut out =
        Vec::with_capacity(HEADER + DEVICE * trace.devices.len() + RECORD * trace.requests.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(trace.devices.len() as u32).to_le_bytes());
    let counts = [
        trace.requests.len() as u64,
        trace.reads,
        trace.writes,
        trace.trims,
    ];
    for word in counts
        .into_iter()
        .chain([trace.read_bytes, trace.write_bytes, trace.origin_ns, 0])
    {
        out.extend_from_slice(&word.to_le_bytes());
    }
    for device in &trace.devices {
        for word in [
            device.id,
            device.base_sector,
            device.sectors,
            device.requests,
        ] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    for request in &trace.requests {
        out.extend_from_slice(&request.arrival_ns.to_le_bytes());
        out.extend_from_slice(&request.sector.to_le_bytes());
        out.extend_from_slice(&request.sectors.to_le_bytes());
        out.extend_from_slice(&(request.op as u32).to_le_bytes());
    }
    out
}

fn probe(sample: &Sample<'_>) -> Likeness {
    if sample.bytes.starts_with(MAGIC) {
        Likeness::Magic
    } else {
        Likeness::No
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

struct Header<'a> {
    requests: u64,
    counts: [u64; 3],
    read_bytes: u64,
    write_bytes: u64,
    origin_ns: u64,
    devices: Vec<TraceDevice>,
    records: &'a [[u8; RECORD]],
}

fn bad_header(input: &Input<'_>, what: String) -> TraceError {
    input
        .error(ErrorKind::Field, what)
        .with_hint("convert the source trace again")
}

fn header<'a>(input: &Input<'a>) -> Result<Header<'a>, TraceError> {
    let bytes = input.bytes;
    let truncated = |what: String| {
        input
            .error(ErrorKind::Truncated, what)
            .with_hint("copy or convert the file again")
    };
    if bytes.len() < HEADER {
        return Err(truncated(format!(
            "the file ends within the header, after {} of its {HEADER} bytes",
            bytes.len()
        )));
    }
    if !bytes.starts_with(MAGIC) {
        return Err(bad_header(
            input,
            "the file does not start with `BMTRACE`".to_owned(),
        ));
    }
    let version_and_devices = u64_at(bytes, 8);
    let version = version_and_devices as u32;
    if version != VERSION {
        return Err(bad_header(
            input,
            format!("version {version} of the form is unknown, only {VERSION} is known"),
        ));
    }
    let devices = (version_and_devices >> 32) as usize;
    let word = |index: usize| u64_at(bytes, 16 + 8 * index);
    let requests = word(0);
    let table_end = HEADER + DEVICE * devices;
    let records = bytes.get(table_end..).unwrap_or_default();
    let expected = u128::from(requests) * RECORD as u128 + table_end as u128;
    if (bytes.len() as u128) < expected {
        let whole = records.len() / RECORD;
        return Err(truncated(format!(
            "the file is cut off: it holds {whole} of its {requests} requests"
        )));
    }
    if bytes.len() as u128 > expected {
        return Err(bad_header(
            input,
            format!(
                "{} bytes follow the last request",
                bytes.len() as u128 - expected
            ),
        ));
    }
    let (records, _) = records.as_chunks::<RECORD>();
    Ok(Header {
        requests,
        counts: [word(1), word(2), word(3)],
        read_bytes: word(4),
        write_bytes: word(5),
        origin_ns: word(6),
        devices: device_table(input, &bytes[HEADER..table_end], requests)?,
        records,
    })
}

/// The devices: contiguous, aligned, in all with as many requests as there are.
fn device_table(
    input: &Input<'_>,
    table: &[u8],
    requests: u64,
) -> Result<Vec<TraceDevice>, TraceError> {
    let mut devices = Vec::with_capacity(table.len() / DEVICE);
    let (mut base, mut sum) = (0u64, 0u64);
    for (number, entry) in table.chunks_exact(DEVICE).enumerate() {
        let word = |index: usize| u64_at(entry, 8 * index);
        let device = TraceDevice {
            id: word(0),
            base_sector: word(1),
            sectors: word(2),
            requests: word(3),
        };
        let sound = device.base_sector == base
            && device.sectors > 0
            && device.sectors.is_multiple_of(DEVICE_ALIGN_SECTORS)
            && device.sectors <= MAX_BYTES / SECTOR_BYTES - base;
        if !sound {
            return Err(bad_header(
                input,
                format!("entry {number} of the device table is not sound"),
            ));
        }
        base += device.sectors;
        sum = sum.saturating_add(device.requests);
        devices.push(device);
    }
    if sum != requests {
        return Err(bad_header(
            input,
            format!("the devices have {sum} requests in all, the header says {requests}"),
        ));
    }
    Ok(devices)
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let header = header(input)?;
    if header.requests == 0 {
        return Err(input.error(ErrorKind::NoRequests, "the file holds no requests"));
    }
    let span = header
        .devices
        .last()
        .map_or(0, |device| device.base_sector + device.sectors);
    let (requests, totals) = records(input, header.records, span)?;
    if totals.counts != header.counts {
        let what = format!(
            "the file holds {:?} reads, writes, trims; the header says {:?}",
            totals.counts, header.counts
        );
        return Err(bad_header(input, what));
    }
    let exact = [header.read_bytes, header.write_bytes];
    if (0..2).any(|op| {
        exact[op] > totals.sectors[op].saturating_mul(SECTOR_BYTES)
            || (exact[op] == 0) != (totals.counts[op] == 0)
    }) {
        return Err(bad_header(
            input,
            "the byte totals of the header do not fit the requests".to_owned(),
        ));
    }
    let mut trace = Trace {
        name: input.name.to_owned(),
        format: FORMAT.name,
        requests,
        devices: header.devices,
        reads: totals.counts[0],
        writes: totals.counts[1],
        trims: totals.counts[2],
        read_bytes: header.read_bytes,
        write_bytes: header.write_bytes,
        origin_ns: header.origin_ns,
        warnings: Vec::new(),
    };
    if let DeviceChoice::Only(ids) = &input.options.devices {
        trace = choose(input, trace, ids)?;
    }
    plausible::check(&mut trace, &FORMAT);
    Ok(trace)
}

/// Sums over the records, by operation.
#[derive(Default)]
struct Totals {
    counts: [u64; 3],
    sectors: [u64; 2],
}

fn read(record: &[u8; RECORD]) -> (u64, u64, u32, u32) {
    let [
        a0,
        a1,
        a2,
        a3,
        a4,
        a5,
        a6,
        a7,
        s0,
        s1,
        s2,
        s3,
        s4,
        s5,
        s6,
        s7,
        n0,
        n1,
        n2,
        n3,
        o0,
        o1,
        o2,
        o3,
    ] = *record;
    (
        u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
        u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
        u32::from_le_bytes([n0, n1, n2, n3]),
        u32::from_le_bytes([o0, o1, o2, o3]),
    )
}

fn records(
    input: &Input<'_>,
    records: &[[u8; RECORD]],
    span: u64,
) -> Result<(Vec<Request>, Totals), TraceError> {
    let mut requests = Vec::with_capacity(records.len());
    let mut totals = Totals::default();
    let mut last_arrival = 0;
    for block in records.chunks(BLOCK) {
        let before = last_arrival;
        let mut bad = false;
        let (mut writes, mut trims, mut read_sectors, mut write_sectors) = (0u64, 0u64, 0u64, 0u64);
        requests.extend(block.iter().map(|record| {
            let (arrival_ns, sector, sectors, op) = read(record);
            let length = u64::from(sectors);
            // `sector < span` keeps the sum from wrapping.
            bad |=
                (op > 2) | (length == 0) | (sector >= span) | (sector.wrapping_add(length) > span);
            bad |= arrival_ns < last_arrival;
            last_arrival = arrival_ns;
            writes += u64::from(op == 1);
            trims += u64::from(op == 2);
            read_sectors += length & u64::from(op == 0).wrapping_neg();
            write_sectors += length & u64::from(op == 1).wrapping_neg();
            let op = match op {
                0 => Op::Read,
                1 => Op::Write,
                _ => Op::Trim,
            };
            Request {
                arrival_ns,
                sector,
                sectors,
                op,
            }
        }));
        if bad {
            return Err(first_bad(
                input,
                records,
                requests.len() - block.len(),
                before,
                span,
            ));
        }
        totals.counts[1] += writes;
        totals.counts[2] += trims;
        totals.sectors[0] += read_sectors;
        totals.sectors[1] += write_sectors;
    }
    totals.counts[0] = records.len() as u64 - totals.counts[1] - totals.counts[2];
    Ok((requests, totals))
}

/// The fault of the first bad record from index `from` on.
#[cold]
fn first_bad(
    input: &Input<'_>,
    records: &[[u8; RECORD]],
    from: usize,
    mut last: u64,
    span: u64,
) -> TraceError {
    for (index, record) in records.iter().enumerate().skip(from) {
        let (arrival_ns, sector, sectors, op) = read(record);
        let end = sector.saturating_add(u64::from(sectors));
        let (field, what, value) = match () {
            () if op > 2 => ("op", "is not 0, 1 or 2", u64::from(op)),
            () if sectors == 0 => ("sectors", "is zero", 0),
            () if sector >= span || end > span => ("sector", "lies beyond the devices", sector),
            () if arrival_ns < last => {
                ("arrival", "is before that of the record before", arrival_ns)
            }
            () => {
                last = arrival_ns;
                continue;
            }
        };
        let table = input.bytes.len() - RECORD * records.len();
        let place = Place::Record {
            number: index as u64 + 1,
            byte: (table + RECORD * index) as u64,
        };
        return input.fault(
            place,
            *Fault::field(ErrorKind::Field, field, what, value.to_string().as_bytes()),
        );
    }
    bad_header(input, "a record is not sound".to_owned())
}

/// Keeps some devices. The byte totals become those of whole sectors, as the exact ones are known for all devices only.
fn choose(input: &Input<'_>, trace: Trace, ids: &[u64]) -> Result<Trace, TraceError> {
    let rows = trace.requests.iter().filter_map(|request| {
        let device = trace.device_of(request.sector)?;
        let offset = (request.sector - device.base_sector) * SECTOR_BYTES;
        let time_ns = trace.origin_ns.saturating_add(request.arrival_ns);
        Some(super::collect::Row {
            time_ns,
            device: device.id,
            offset,
            bytes: request.bytes(),
            op: request.op,
        })
    });
    let choice = DeviceChoice::Only(ids.to_vec());
    let mut collector = super::collect::Collector::new(&choice, 0);
    for (index, row) in rows.enumerate() {
        let place = Place::Record {
            number: index as u64 + 1,
            byte: 0,
        };
        collector
            .push(&row)
            .map_err(|fault| input.fault(place, *fault))?;
    }
    collector.finish(input)
}

#[cfg(test)]
mod tests {
    use super::super::testing::read_as;
    use super::super::{Options, decode as decode_any};
    use super::*;

    fn sample() -> Trace {
        let text = b"3,10,1000,r,1.0\n7,0,512,w,2.0\n7,4096,512,r,3.0\n";
        Trace {
            name: "t".to_owned(),
            format: "bimetal",
            warnings: Vec::new(),
            ..read_as(&super::super::spc::FORMAT, text)
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let trace = sample();
        let bytes = encode_bimetal(&trace);
        assert_eq!(bytes.len(), 80 + 2 * 32 + 3 * 24);
        assert_eq!(decode_any("t", &bytes, &Options::default()).unwrap(), trace);
        let options = Options {
            devices: DeviceChoice::Only(vec![7]),
            ..Options::default()
        };
        let seven = decode_any("t", &bytes, &options).unwrap();
        assert_eq!(
            (
                seven.requests.len(),
                seven.read_bytes,
                seven.devices[0].base_sector
            ),
            (2, 512, 0)
        );
    }

    #[test]
    fn every_cut_and_every_extra_byte_is_an_error() {
        let bytes = encode_bimetal(&sample());
        for cut in 8..bytes.len() {
            let error = decode_any("t", &bytes[..cut], &Options::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Truncated, "{error}");
        }
        let error = decode_any("t", &bytes[..bytes.len() - 1], &Options::default()).unwrap_err();
        assert!(
            error.to_string().contains("holds 2 of its 3 requests"),
            "{error}"
        );
        let longer = [&bytes[..], b"x"].concat();
        assert!(
            decode_any("t", &longer, &Options::default())
                .unwrap_err()
                .to_string()
                .contains("1 bytes follow")
        );
    }

    #[test]
    fn every_unsound_field_is_an_error() {
        let bytes = encode_bimetal(&sample());
        let record = 80 + 2 * 32 + 24; // the second
        for (at, value, field) in [
            (record + 20, 3u8, "op"),
            (record + 16, 0, "sectors"),
            (record + 15, 1, "sector"),
            (record + 9, 255, "sector"),
            (record, 0, ""),
            (record + 24 + 3, 0, "arrival"),
            (8, 2, ""),       // version
            (16, 2, ""),      // requests
            (24, 7, ""),      // reads
            (49, 255, ""),    // bytes read
            (80 + 8, 1, ""),  // base of device 0
            (80 + 16, 1, ""), // sectors of device 0
            (80 + 24, 9, ""), // requests of device 0
        ] {
            let mut changed = bytes.clone();
            changed[at] = value;
            if changed == bytes {
                continue;
            }
            let error = decode_any("t", &changed, &Options::default()).unwrap_err();
            assert_eq!(error.field(), field, "{at}: {error}");
            if !field.is_empty() {
                assert!(matches!(error.place(), Place::Record { .. }), "{error}");
            }
        }
        let empty = Trace {
            requests: vec![],
            devices: vec![],
            reads: 0,
            writes: 0,
            read_bytes: 0,
            write_bytes: 0,
            ..sample()
        };
        assert_eq!(
            decode_any("t", &encode_bimetal(&empty), &Options::default())
                .unwrap_err()
                .kind(),
            ErrorKind::NoRequests
        );
    }
}
