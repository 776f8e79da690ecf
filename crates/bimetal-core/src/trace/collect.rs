//! Gathers the records of a file, device by device, and lays them out as one [`Trace`].

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::{DeviceChoice, Input, Options, Trace, TraceDevice, plausible};
use crate::request::{Op, Request, SECTOR_BYTES};

/// Largest end of a trace's address space, in bytes. No store is larger, and sector arithmetic below it cannot overflow.
pub const MAX_BYTES: u64 = 1 << 63;

/// Largest number of records for which room is reserved.
const RESERVED_MAX: u64 = 1 << 26;

/// Devices start at multiples of this (1 MiB), which keeps the alignment within a device.
pub(super) const DEVICE_ALIGN_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

/// One record of a source, with the source's clock and the device's addresses.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Time in nanoseconds, with any origin that is the same for the whole file.
    pub time_ns: u64,
    /// Number of the device.
    pub device: u64,
    /// First byte on the device.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// The operation.
    pub op: Op,
}

struct Device {
    id: u64,
    taken: bool,
    end_sector: u64,
    requests: u64,
}

/// The collected records.
pub struct Collector<'a> {
    options: &'a Options,
    requests: Vec<Request>,
    /// Index in `devices` of each request's device; empty with one device, as most traces have.
    device_of: Vec<u32>,
    devices: Vec<Device>,
    index: BTreeMap<u64, u32>,
    /// Index of the device of the last record, which is probably also the device of the next.
    last_device: usize,
    last_time: u64,
    first_time: u64,
    out_of_order: u64,
    widened: u64,
    empty: u64,
    counts: [u64; 3],
    bytes: [u64; 3],
    warnings: Vec<String>,
}

impl<'a> Collector<'a> {
    /// A collector with these options, with room for about `expected` records.
    pub fn new(options: &'a Options, expected: u64) -> Self {
        // Few of the records may be taken, and all may be more than fit into memory.
        let expected = match options.devices {
            DeviceChoice::All => expected.min(options.limit.unwrap_or(RESERVED_MAX)).min(RESERVED_MAX) as usize,
            DeviceChoice::Only(_) => 0,
        };
        Self {
            options,
            requests: Vec::with_capacity(expected),
            device_of: Vec::new(),
            devices: Vec::new(),
            index: BTreeMap::new(),
            last_device: 0,
            last_time: 0,
            first_time: u64::MAX,
            out_of_order: 0,
            widened: 0,
            empty: 0,
            counts: [0; 3],
            bytes: [0; 3],
            warnings: Vec::new(),
        }
    }

    /// Adds a warning about the file.
    pub fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Adds a record without a placement handle. Records of length 0 are only counted.
    #[inline]
    pub fn push(&mut self, row: &Row) -> Parsed<()> {
        self.push_with_handle(row, 0)
    }

    /// Adds a record with a placement handle. Records of length 0 are only counted.
    #[inline]
    pub fn push_with_handle(&mut self, row: &Row, handle: u8) -> Parsed<()> {
        if row.bytes == 0 {
            self.empty += 1;
            return Ok(());
        }
        let Some(end) = row.offset.checked_add(row.bytes).filter(|&end| end <= MAX_BYTES) else {
            let text = format!("{} + {}", row.offset, row.bytes);
            return Err(Fault::field(ErrorKind::Range, "offset + size", "lies beyond 2^63 bytes", text.as_bytes()));
        };
        let sector = row.offset / SECTOR_BYTES;
        let end_sector = end.div_ceil(SECTOR_BYTES);
        let Ok(sectors) = u32::try_from(end_sector - sector) else {
            let text = format!("{} bytes", row.bytes);
            return Err(Fault::field(ErrorKind::Range, "size", "is above 2 TiB", text.as_bytes()));
        };
        let slot = self.slot(row.device);
        let device = &mut self.devices[slot];
        device.requests += 1;
        if !device.taken {
            return Ok(());
        }
        device.end_sector = device.end_sector.max(end_sector);
        let op = row.op as usize;
        self.counts[op] += 1;
        self.bytes[op] = self.bytes[op].saturating_add(row.bytes);
        self.widened += u64::from(!(row.offset | row.bytes).is_multiple_of(SECTOR_BYTES));
        self.out_of_order += u64::from(row.time_ns < self.last_time);
        self.last_time = row.time_ns;
        self.first_time = self.first_time.min(row.time_ns);
        self.requests.push(Request { arrival_ns: row.time_ns, sector, sectors, op: row.op, handle });
        if self.devices.len() > 1 {
            self.device_of.push(slot as u32);
        }
        Ok(())
    }

    #[inline]
    fn slot(&mut self, id: u64) -> usize {
        match self.devices.get(self.last_device) {
            Some(device) if device.id == id => self.last_device,
            _ => self.find_slot(id),
        }
    }

    fn find_slot(&mut self, id: u64) -> usize {
        let next = self.devices.len() as u32;
        let slot = *self.index.entry(id).or_insert(next);
        if slot == next {
            if next == 1 {
                self.device_of.resize(self.requests.len(), 0);
            }
            self.devices.push(Device { id, taken: self.options.devices.takes(id), end_sector: 0, requests: 0 });
        }
        self.last_device = slot as usize;
        self.last_device
    }

    /// Whether no more records are needed: see [`Options::limit`].
    #[inline]
    pub fn is_full(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.requests.len() as u64 >= limit)
    }

    /// [`Break`](ControlFlow::Break) if no more records are needed.
    #[inline]
    pub(super) fn flow(&self) -> ControlFlow<()> {
        if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Lays the devices end to end and puts the requests in order of arrival.
    ///
    /// # Errors
    /// No request, a chosen device that does not exist, or devices that do not fit into one address space.
    pub fn finish(mut self, input: &Input<'_>) -> Result<Trace, TraceError> {
        self.check_choice(input)?;
        if self.requests.is_empty() {
            let skipped = if self.empty > 0 { format!(", only {} of zero length", self.empty) } else { String::new() };
            return Err(input
                .error(ErrorKind::NoRequests, format!("the file holds no requests{skipped}"))
                .with_hint("it was read as format `".to_owned() + input.format.name + "`; `--format` names another"));
        }
        let devices = self.lay_out(input)?;
        if self.out_of_order > 0 {
            self.requests.sort_by_key(|request| request.arrival_ns);
            self.warn(format!("{} out of time order: sorted by arrival", count(self.out_of_order, "row")));
        }
        if self.empty > 0 {
            self.warn(format!("{} left out", count(self.empty, "zero-length request")));
        }
        if self.widened > 0 {
            let doubt = plausible::doubt_of_rounded(self.widened, self.requests.len(), input.format);
            self.warn(format!("{} rounded up to whole 512-byte sectors{doubt}", count(self.widened, "request")));
        }
        let mut trace = Trace {
            name: input.name.to_owned(),
            format: input.format.name,
            requests: self.requests,
            devices,
            reads: self.counts[Op::Read as usize],
            writes: self.counts[Op::Write as usize],
            trims: self.counts[Op::Trim as usize],
            read_bytes: self.bytes[Op::Read as usize],
            write_bytes: self.bytes[Op::Write as usize],
            origin_ns: self.first_time,
            action: None,
            warnings: self.warnings,
        };
        plausible::check(&mut trace, input.format);
        Ok(trace)
    }

    fn check_choice(&mut self, input: &Input<'_>) -> Result<(), TraceError> {
        let DeviceChoice::Only(ids) = &self.options.devices else {
            return Ok(());
        };
        let is_absent = |id: &&u64| !self.index.is_empty() && !self.index.contains_key(*id);
        if self.options.is_part && !ids.iter().all(|id| is_absent(&id)) {
            return Ok(());
        }
        let absent = ids.iter().find(is_absent);
        absent.map_or(Ok(()), |id| {
            if self.is_full() {
                self.warn(format!("device `{id}` has no request before `--limit` is reached"));
                return Ok(());
            }
            let mut known: Vec<String> = self.index.keys().take(20).map(u64::to_string).collect();
            if self.index.len() > known.len() {
                known.push(format!("and {} more", self.index.len() - known.len()));
            }
            let what = format!("the trace has no device `{id}`");
            Err(input.error(ErrorKind::Device, what).with_hint(format!("its devices are {}", known.join(", "))))
        })
    }

    /// Converts addresses and arrivals to those of the trace.
    fn lay_out(&mut self, input: &Input<'_>) -> Result<Vec<TraceDevice>, TraceError> {
        let mut bases = vec![0u64; self.devices.len()];
        let mut devices = Vec::new();
        let mut base = 0u64;
        for &slot in self.index.values() {
            let device = &self.devices[slot as usize];
            if device.end_sector == 0 {
                continue; // not taken, or it has requests of zero length only
            }
            let sectors = device.end_sector.next_multiple_of(DEVICE_ALIGN_SECTORS);
            bases[slot as usize] = base;
            devices.push(TraceDevice { id: device.id, base_sector: base, sectors, requests: device.requests });
            base += sectors; // both at most 2^54
            if base > MAX_BYTES / SECTOR_BYTES {
                return Err(input
                    .error(ErrorKind::Range, "the devices laid end to end span more than 2^63 bytes")
                    .with_hint("choose some with `--volumes`"));
            }
        }
        for (request, &slot) in self.requests.iter_mut().zip(&self.device_of) {
            request.sector += bases[slot as usize];
        }
        if self.first_time > 0 {
            self.requests.iter_mut().for_each(|request| request.arrival_ns -= self.first_time);
        }
        Ok(devices)
    }
}

/// A number with its noun, for a message.
pub(super) fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::super::{Options, decode};
    use super::*;

    fn spc(text: &str, devices: DeviceChoice) -> Result<Trace, TraceError> {
        decode("t.spc", text.as_bytes(), &Options { devices, ..Options::default() })
    }

    const TWO: &str = "7,0,512,w,2.0\n3,10,1000,r,1.0\n7,4096,512,r,3.0\n";

    #[test]
    fn devices_are_laid_end_to_end_by_id() {
        let trace = spc(TWO, DeviceChoice::All).unwrap();
        let at = |id, base_sector, sectors, requests| TraceDevice { id, base_sector, sectors, requests };
        assert_eq!(trace.devices, [at(3, 0, 2048, 1), at(7, 2048, 6144, 2)]);
        assert_eq!(trace.requests[0], Request { arrival_ns: 0, sector: 10, sectors: 2, op: Op::Read, handle: 0 });
        assert_eq!(
            trace.requests[1],
            Request { arrival_ns: 1_000_000_000, sector: 2048, sectors: 1, op: Op::Write, handle: 0 }
        );
        assert_eq!(trace.requests[2].sector, 2048 + 4096);
        assert_eq!((trace.read_bytes, trace.write_bytes), (1512, 512));
        assert_eq!(trace.span_sectors(), 8192);
        assert_eq!(trace.duration_ns(), 2_000_000_000);
        assert_eq!(trace.origin_ns, 1_000_000_000);
        assert_eq!(trace.device_of(2047).unwrap().id, 3);
        assert_eq!(trace.device_of(2048).unwrap().id, 7);
        assert!(trace.device_of(8192).is_none());
        let warnings = trace.warnings.join("\n");
        assert!(warnings.contains("1 row out of time order"), "{warnings}");
        assert!(warnings.contains("1 request rounded up to whole 512-byte sectors"), "{warnings}");
    }

    #[test]
    fn devices_can_be_chosen() {
        let trace = spc(TWO, DeviceChoice::Only(vec![7])).unwrap();
        assert_eq!(trace.devices.len(), 1);
        assert_eq!(trace.requests.len(), 2);
        assert_eq!(trace.requests[0].sector, 0);
        let error = spc(TWO, DeviceChoice::Only(vec![7, 8])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
        assert!(error.to_string().ends_with("hint: its devices are 3, 7"), "{error}");
    }

    #[test]
    fn beyond_reason_is_an_error_with_line_and_field() {
        let error = spc("0,0,512,r,0\n0,0,3000000000000,r,0\n", DeviceChoice::All).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Range, "size"));
        assert!(error.to_string().contains("line 2"), "{error}");
        let error = spc("0,18014398509481983,1024,r,0\n", DeviceChoice::All).unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Range, "offset + size"));
        let many = "0,18014398509481983,512,r,0\n1,18014398509481983,512,r,0\n";
        assert!(spc(many, DeviceChoice::All).unwrap_err().to_string().contains("2^63"));
    }

    #[test]
    fn zero_length_requests_are_left_out_and_counted() {
        let trace = spc("0,0,0,r,0\n0,0,512,r,1\n", DeviceChoice::All).unwrap();
        assert_eq!(trace.requests.len(), 1);
        assert!(trace.warnings[0].starts_with("1 zero-length request left out"));
        let error = spc("0,0,0,r,0\n", DeviceChoice::All).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoRequests);
        assert!(error.to_string().contains("only 1 of zero length"), "{error}");
    }
}
