//! Bimetal's compact binary format. `bimetal convert` writes it once, and replays then start without text parsing.
//!
//! All fields are little-endian. Header, 80 bytes: magic `BMTRACE\0`, u32 version (1 or 2), u32 devices, then u64 each:
//! requests, reads, writes, trims, bytes read, bytes written (exact, from the source), clock at arrival 0 in ns,
//! reserved (0). Then 32 bytes for each device: u64 id, base sector, sectors, requests. Then 24 bytes for each request:
//! u64 arrival in ns, u64 sector, u32 sectors, u8 operation (0 read, 1 write, 2 trim), u8 placement handle (0 none),
//! u16 reserved (0).
//!
//! In version 1 all handles are 0. A trace without handles is written as version 1, so that earlier programs can read
//! it.
//!
//! There is no checksum, but the length must be exact and the records must agree with the header's counts. Requests are
//! in order of arrival and lie within the devices.

use std::io::{Read, Write};

use super::collect::{Collector, DEVICE_ALIGN_SECTORS, MAX_BYTES, Row};
use super::detect::{Likeness, Sample};
use super::encode::{self, WriteError};
use super::error::{ErrorKind, Fault, Place, TraceError};
use super::input::Bytes;
use super::{DeviceChoice, Format, Input, Shared, Trace, TraceDevice, plausible};
use crate::request::{Op, Request, SECTOR_BYTES};

/// The format's entry in [`super::FORMATS`].
pub static FORMAT: Format = Format {
    name: "bimetal",
    aliases: &[],
    summary: "Bimetal's compact binary form (what `bimetal convert` writes)",
    layout: "arrival sector sectors op handle: nanoseconds, 512-byte sectors, 0 = read, 1 = write, 2 = trim, placement handle",
    time_unit: None,
    has_actions: false,
    has_objects: false,
    has_columns: false,
    shared: Shared::Nothing,
    probe,
    decode,
};

const MAGIC: &[u8; 8] = b"BMTRACE\0";
/// The version without placement handles, and the one with them.
const WITHOUT_HANDLES: u32 = 1;
const WITH_HANDLES: u32 = 2;
const HEADER: usize = 80;
const DEVICE: usize = 32;
const RECORD: usize = 24;

/// Records in a block. A block is checked as a whole, so that the check has no branch for each record.
const BLOCK: usize = 1024;
/// Blocks read at once, few enough to stay in a processor's cache.
const BLOCKS_READ: usize = 16;

/// Writes a trace in the compact format. Its name, source format and warnings are not kept.
///
/// # Errors
/// Writing fails.
pub fn encode_bimetal(trace: &Trace, out: &mut dyn Write) -> Result<(), WriteError> {
    let mut start = Vec::with_capacity(HEADER + DEVICE * trace.devices.len());
    start.extend_from_slice(MAGIC);
    let has_handles = trace.requests.iter().any(|request| request.handle > 0);
    let version = if has_handles { WITH_HANDLES } else { WITHOUT_HANDLES };
    start.extend_from_slice(&version.to_le_bytes());
    start.extend_from_slice(&(trace.devices.len() as u32).to_le_bytes());
    let counts = [trace.requests.len() as u64, trace.reads, trace.writes, trace.trims];
    for word in counts.into_iter().chain([trace.read_bytes, trace.write_bytes, trace.origin_ns, 0]) {
        start.extend_from_slice(&word.to_le_bytes());
    }
    for device in &trace.devices {
        for word in [device.id, device.base_sector, device.sectors, device.requests] {
            start.extend_from_slice(&word.to_le_bytes());
        }
    }
    out.write_all(&start)?;
    encode::each(trace, out, |piece, request| {
        piece.extend_from_slice(&request.arrival_ns.to_le_bytes());
        piece.extend_from_slice(&request.sector.to_le_bytes());
        piece.extend_from_slice(&request.sectors.to_le_bytes());
        piece.extend_from_slice(&[request.op as u8, request.handle, 0, 0]);
        Ok(())
    })
}

fn probe(sample: &Sample<'_>) -> Likeness {
    if sample.bytes.starts_with(MAGIC) { Likeness::Magic } else { Likeness::No }
}

fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
    let source = &mut input.bytes();
    let header = header(input, source)?;
    if header.requests == 0 {
        return Err(input.error(ErrorKind::NoRequests, "the file holds no requests"));
    }
    // Requests are in order of arrival, so that the first ones need no others.
    let wanted = match input.options.devices {
        DeviceChoice::All => input.options.limit.unwrap_or(u64::MAX),
        DeviceChoice::Only(_) => u64::MAX,
    };
    let room = header.requests.min(wanted).min(input.expected_length / RECORD as u64) as usize;
    let mut gathered = Gathered {
        requests: Vec::with_capacity(room),
        span: header.devices.last().map_or(0, |device| device.base_sector + device.sectors),
        devices: &header.devices,
        device: 0,
        of_device: vec![0; header.devices.len()],
        last_arrival: 0,
        record_bits: if header.version == WITH_HANDLES { 16 } else { 8 },
        counts: [0; 3],
        sectors: [0; 2],
    };
    let mut piece = vec![0; RECORD * BLOCK * BLOCKS_READ];
    loop {
        let got = source.fill(&mut piece)?;
        let (records, rest) = piece[..got].as_chunks::<RECORD>();
        let missing = header.requests - gathered.requests.len() as u64;
        if (records.len() as u64, rest.len()) > (missing, 0) {
            let what = format!("more bytes follow the {} requests", header.requests);
            return Err(bad_header(input, what));
        }
        for block in records.chunks(BLOCK) {
            gathered.take(input, block)?;
        }
        if got < piece.len() || gathered.requests.len() as u64 >= wanted {
            break;
        }
    }
    let held = gathered.requests.len() as u64;
    if held < header.requests.min(wanted) {
        return Err(truncated(input, format!("it holds {held} of its {} requests", header.requests)));
    }
    if held == header.requests {
        gathered.check(input, &header)?;
    }
    let mut trace = Trace {
        name: input.name.to_owned(),
        format: FORMAT.name,
        requests: gathered.requests,
        devices: header.devices,
        reads: header.counts[0],
        writes: header.counts[1],
        trims: header.counts[2],
        read_bytes: header.bytes[0],
        write_bytes: header.bytes[1],
        origin_ns: header.origin_ns,
        action: None,
        warnings: Vec::new(),
    };
    match &input.options.devices {
        DeviceChoice::Only(_) => choose(input, &trace),
        DeviceChoice::All => {
            if held < header.requests {
                trace.recount();
            }
            plausible::check(&mut trace, &FORMAT);
            Ok(trace)
        }
    }
}

struct Header {
    version: u32,
    requests: u64,
    counts: [u64; 3],
    bytes: [u64; 2],
    origin_ns: u64,
    devices: Vec<TraceDevice>,
}

fn bad_header(input: &Input<'_>, what: String) -> TraceError {
    input.error(ErrorKind::Field, what).with_hint("convert the source trace again")
}

fn truncated(input: &Input<'_>, what: String) -> TraceError {
    let what = format!("the file is cut off: {what}");
    input.error(ErrorKind::Truncated, what).with_hint("copy or convert the file again")
}

fn header(input: &Input<'_>, source: &mut Bytes<'_>) -> Result<Header, TraceError> {
    let mut start = [0; HEADER];
    let got = source.fill(&mut start)?;
    if !start[..got].starts_with(&MAGIC[..got.min(MAGIC.len())]) {
        return Err(bad_header(input, "the file does not start with `BMTRACE`".to_owned()));
    }
    if got < HEADER {
        return Err(truncated(input, format!("it holds {got} of the {HEADER} bytes of its header")));
    }
    let (words, _) = start.as_chunks::<8>();
    let word = |index: usize| u64::from_le_bytes(words[index]);
    let (version, devices) = (word(1) as u32, word(1) >> 32);
    if version != WITHOUT_HANDLES && version != WITH_HANDLES {
        let what =
            format!("version {version} of the form is unknown, only {WITHOUT_HANDLES} and {WITH_HANDLES} are known");
        return Err(bad_header(input, what));
    }
    let length = DEVICE as u64 * devices;
    let mut table = Vec::new();
    let got = source.take(length).read_to_end(&mut table).map_err(|error| input.unread(&error))? as u64;
    if got < length {
        let what = format!("it holds {got} of the {length} bytes of its device table");
        return Err(truncated(input, what));
    }
    Ok(Header {
        version,
        requests: word(2),
        counts: [word(3), word(4), word(5)],
        bytes: [word(6), word(7)],
        origin_ns: word(8),
        devices: device_table(input, &table)?,
    })
}

/// Parses the device table. Devices must be contiguous and aligned.
fn device_table(input: &Input<'_>, table: &[u8]) -> Result<Vec<TraceDevice>, TraceError> {
    let mut devices = Vec::with_capacity(table.len() / DEVICE);
    let mut base = 0u64;
    for (number, entry) in table.as_chunks::<8>().0.chunks(DEVICE / 8).enumerate() {
        let word = |index: usize| u64::from_le_bytes(entry[index]);
        let device = TraceDevice { id: word(0), base_sector: word(1), sectors: word(2), requests: word(3) };
        let sound = device.base_sector == base
            && device.sectors > 0
            && device.sectors.is_multiple_of(DEVICE_ALIGN_SECTORS)
            && device.sectors <= MAX_BYTES / SECTOR_BYTES - base;
        if !sound {
            let what = format!("entry {number} of the device table is not sound");
            return Err(bad_header(input, what));
        }
        base += device.sectors;
        devices.push(device);
    }
    Ok(devices)
}

/// A record's arrival, sector and sectors. The last value is the operation, with the handle in the byte above it.
#[inline]
fn fields(record: &[u8; RECORD]) -> (u64, u64, u32, u32) {
    let (words, _) = record.as_chunks::<8>();
    let last = u64::from_le_bytes(words[2]);
    (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1]), last as u32, (last >> 32) as u32)
}

/// The requests so far, and the totals to compare with the header.
struct Gathered<'a> {
    requests: Vec<Request>,
    span: u64,
    devices: &'a [TraceDevice],
    /// Index of the device of the last request, which is probably also the device of the next.
    device: usize,
    of_device: Vec<u64>,
    last_arrival: u64,
    /// Bits of operation and handle that are valid in this version.
    record_bits: u32,
    counts: [u64; 3],
    sectors: [u64; 2],
}

impl Gathered<'_> {
    /// Adds a block of records and checks them as a whole.
    fn take(&mut self, input: &Input<'_>, block: &[[u8; RECORD]]) -> Result<(), TraceError> {
        let (start, before, span, bits) = (self.requests.len(), self.last_arrival, self.span, self.record_bits);
        let mut last = before;
        let mut bad = false;
        let (mut writes, mut trims, mut read_sectors, mut write_sectors) = (0u64, 0u64, 0u64, 0u64);
        self.requests.extend(block.iter().map(|record| {
            let (arrival_ns, sector, sectors, op) = fields(record);
            let length = u64::from(sectors);
            bad |= op >> bits > 0;
            let (op, handle) = (op & 0xff, (op >> 8) as u8);
            // `sector < span` keeps the sum from wrapping.
            bad |= (op > 2) | (length == 0) | (sector >= span);
            bad |= (sector.wrapping_add(length) > span) | (arrival_ns < last);
            last = arrival_ns;
            writes += u64::from(op == 1);
            trims += u64::from(op == 2);
            read_sectors += length & u64::from(op == 0).wrapping_neg();
            write_sectors += length & u64::from(op == 1).wrapping_neg();
            let op = match op {
                0 => Op::Read,
                1 => Op::Write,
                _ => Op::Trim,
            };
            Request { arrival_ns, sector, sectors, op, handle }
        }));
        self.last_arrival = last;
        if bad || !self.find_devices(start) {
            return Err(self.first_bad(input, start, before, block));
        }
        self.counts[0] += block.len() as u64 - writes - trims;
        self.counts[1] += writes;
        self.counts[2] += trims;
        self.sectors[0] += read_sectors;
        self.sectors[1] += write_sectors;
        Ok(())
    }

    /// Counts the requests from `start` on by device. Returns false if one does not lie within exactly one device.
    fn find_devices(&mut self, start: usize) -> bool {
        let new = &self.requests[start..];
        if self.devices.len() == 1 {
            self.of_device[0] += new.len() as u64;
            return true;
        }
        new.iter().all(|request| {
            let on = |device: &TraceDevice| {
                request.sector >= device.base_sector && request.end() <= device.base_sector + device.sectors
            };
            if !on(&self.devices[self.device]) {
                let after = self.devices.partition_point(|device| device.base_sector <= request.sector);
                self.device = after - 1; // the first device starts at sector 0
            }
            self.of_device[self.device] += 1;
            on(&self.devices[self.device])
        })
    }

    /// The error of the first invalid record in a block that starts at request `start`, after arrival `last`.
    #[cold]
    fn first_bad(&self, input: &Input<'_>, start: usize, mut last: u64, block: &[[u8; RECORD]]) -> TraceError {
        let table_end = (HEADER + DEVICE * self.devices.len()) as u64;
        let ends: Vec<u64> = self.devices.iter().map(|device| device.base_sector + device.sectors).collect();
        for (record, index) in block.iter().zip(start as u64..) {
            let (arrival_ns, sector, sectors, op) = fields(record);
            let end = sector.saturating_add(u64::from(sectors));
            let device_end = ends.get(ends.partition_point(|&end| end <= sector)).or(ends.last()).copied().unwrap_or(0);
            let (field, what, value) = match () {
                () if op & 0xff > 2 => ("op", "is not 0, 1 or 2", u64::from(op & 0xff)),
                () if op >> self.record_bits > 0 => ("op", "is followed by bytes that are not zero", u64::from(op)),
                () if sectors == 0 => ("sectors", "is zero", 0),
                () if end > device_end => ("sector", "does not lie on one device", sector),
                () if arrival_ns < last => ("arrival", "is before the last one", arrival_ns),
                () => {
                    last = arrival_ns;
                    continue;
                }
            };
            let place = Place::Record { number: index + 1, byte: table_end + RECORD as u64 * index };
            let fault = Fault::field(ErrorKind::Field, field, what, value.to_string().as_bytes());
            return input.fault(place, *fault);
        }
        bad_header(input, "a record is not sound".to_owned())
    }

    /// Compares the header's totals with those of the requests.
    fn check(&self, input: &Input<'_>, header: &Header) -> Result<(), TraceError> {
        if self.counts != header.counts {
            let what =
                format!("the file holds {:?} reads, writes, trims; the header says {:?}", self.counts, header.counts);
            return Err(bad_header(input, what));
        }
        let odd_device = self.devices.iter().zip(&self.of_device).find(|(device, of)| device.requests != **of);
        if let Some((device, of)) = odd_device {
            let what = format!("device {} has {of} requests; its entry says {}", device.id, device.requests);
            return Err(bad_header(input, what));
        }
        let fits = |op: usize| {
            header.bytes[op] <= self.sectors[op].saturating_mul(SECTOR_BYTES)
                && (header.bytes[op] == 0) == (self.counts[op] == 0)
        };
        if !fits(0) || !fits(1) {
            let what = "the byte totals of the header do not fit the requests";
            return Err(bad_header(input, what.to_owned()));
        }
        Ok(())
    }
}

/// Keeps only the chosen devices. The byte totals then count whole sectors, because exact totals are only known for all
/// devices together.
fn choose(input: &Input<'_>, trace: &Trace) -> Result<Trace, TraceError> {
    let mut collector = Collector::new(input.options, 0);
    for (request, number) in trace.requests.iter().zip(1..) {
        let Some(device) = trace.device_of(request.sector) else {
            continue;
        };
        let row = Row {
            time_ns: trace.origin_ns.saturating_add(request.arrival_ns),
            device: device.id,
            offset: (request.sector - device.base_sector) * SECTOR_BYTES,
            bytes: request.bytes(),
            op: request.op,
        };
        let place = Place::Record { number, byte: 0 };
        collector.push_with_handle(&row, request.handle).map_err(|fault| input.fault(place, *fault))?;
    }
    collector.finish(input)
}

#[cfg(test)]
mod tests;
