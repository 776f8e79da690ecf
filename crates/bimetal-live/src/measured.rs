//! A device whose requests are timed and counted: real times, not modelled ones.
//!
//! A time is measured from the call of the device to its return. It includes neither the socket nor the delay of
//! [`crate::pace`], which is added to several answers at once.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::block_device::{BlockDevice, Extent, IoError, Payload, SECTOR_BYTES};
use crate::latency::{Histogram, Snapshot};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A read.
    Read,
    /// A write that need not be durable yet.
    Write,
    /// A write with FUA, which returns when it is durable.
    WriteFua,
    /// A trim.
    Trim,
    /// Zeroing without data.
    Zero,
    /// A flush.
    Flush,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::WriteFua, Self::Trim, Self::Zero, Self::Flush];

    fn write(fua: bool) -> Self {
        if fua { Self::WriteFua } else { Self::Write }
    }

    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteFua => "write_fua",
            Self::Trim => "trim",
            Self::Zero => "zero",
            Self::Flush => "flush",
        }
    }
}

/// Counts and times of requests by operation. Recording takes no lock and allocates nothing.
#[derive(Debug, Default)]
pub struct Meter([Gauge; Operation::ALL.len()]);

#[derive(Debug, Default)]
struct Gauge {
    latency: Histogram,
    bytes: AtomicU64,
    errors: AtomicU64,
}

/// Figures of one operation since the meter was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationFigures {
    /// The operation.
    pub operation: Operation,
    /// Histogram of the durations of requests.
    pub latency: Snapshot,
    /// Bytes that successful requests read, wrote, trimmed or zeroed.
    pub bytes: u64,
    /// Requests that ended with an error.
    pub errors: u64,
}

impl Meter {
    /// Performs and times a request of `bytes` bytes.
    fn time(
        &self,
        operation: Operation,
        bytes: u64,
        request: impl FnOnce() -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        let start = Instant::now();
        let done = request();
        let gauge = &self.0[operation as usize];
        gauge.latency.record(start.elapsed());
        match done {
            Ok(()) => gauge.bytes.fetch_add(bytes, Ordering::Relaxed),
            Err(_) => gauge.errors.fetch_add(1, Ordering::Relaxed),
        };
        done
    }

    /// The figures of every operation, used or not.
    pub fn figures(&self) -> [OperationFigures; Operation::ALL.len()] {
        Operation::ALL.map(|operation| {
            let gauge = &self.0[operation as usize];
            OperationFigures {
                operation,
                latency: gauge.latency.snapshot(),
                bytes: gauge.bytes.load(Ordering::Relaxed),
                errors: gauge.errors.load(Ordering::Relaxed),
            }
        })
    }
}

/// A device whose requests are recorded by a meter.
pub struct Measured {
    device: Arc<dyn BlockDevice>,
    meter: Arc<Meter>,
}

impl Measured {
    /// Records all requests to `device` in `meter`.
    pub fn new(device: Arc<dyn BlockDevice>, meter: Arc<Meter>) -> Self {
        Self { device, meter }
    }
}

impl BlockDevice for Measured {
    fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    fn read_only(&self) -> bool {
        self.device.read_only()
    }

    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError> {
        self.meter.time(Operation::Read, out.len() as u64, || self.device.read(sector, out))
    }

    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError> {
        self.meter.time(Operation::write(fua), data.len() as u64, || self.device.write(sector, data, fua))
    }

    fn write_shared(&self, sector: u64, data: &Payload, fua: bool) -> Result<(), IoError> {
        let bytes = data.bytes().len() as u64;
        self.meter.time(Operation::write(fua), bytes, || self.device.write_shared(sector, data, fua))
    }

    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        self.meter.time(Operation::Trim, bytes, || self.device.trim(sector, sectors, fua))
    }

    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        let bytes = sectors.saturating_mul(SECTOR_BYTES);
        self.meter.time(Operation::Zero, bytes, || self.device.zero(sector, sectors, fua))
    }

    fn flush(&self) -> Result<(), IoError> {
        self.meter.time(Operation::Flush, 0, || self.device.flush())
    }

    fn extents(
        &self,
        sector: u64,
        sectors: u64,
        visit: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>,
    ) -> Result<(), IoError> {
        self.device.extents(sector, sectors, visit)
    }

    fn settle(&self) {
        self.device.settle();
    }

    fn prefetch(&self, sector: u64, sectors: u64) -> Result<(), IoError> {
        self.device.prefetch(sector, sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn every_operation_is_counted_as_itself() {
        let (device, meter) = (Arc::new(MemoryDevice::new(64)), Arc::new(Meter::default()));
        let measured = Measured::new(device, Arc::clone(&meter));
        measured.write(0, &[1; 1024], false).unwrap();
        measured.write(0, &[1; 512], true).unwrap();
        measured.write(2, &[1; 512], true).unwrap();
        measured.read(0, &mut [0; 2048]).unwrap();
        measured.trim(8, 8, true).unwrap();
        measured.zero(16, 24, false).unwrap();
        measured.flush().unwrap();
        assert_eq!(measured.read(64, &mut [0; 512]), Err(IoError::OutOfRange));
        let counted = meter.figures().map(|row| (row.operation.name(), row.latency.count(), row.bytes, row.errors));
        let expected = [
            ("read", 2, 2048, 1),
            ("write", 1, 1024, 0),
            ("write_fua", 2, 1024, 0),
            ("trim", 1, 4096, 0),
            ("zero", 1, 12288, 0),
            ("flush", 1, 0, 0),
        ];
        assert_eq!(counted, expected);
    }

    #[test]
    fn a_measured_request_allocates_nothing() {
        let (device, meter) = (Arc::new(MemoryDevice::new(64)), Arc::new(Meter::default()));
        let measured = Measured::new(device, meter);
        measured.write(0, &[1; 512], true).unwrap();
        let mut out = [0; 512];
        let allocated = allocation_counter::measure(|| {
            measured.write(0, &[1; 512], true).unwrap();
            measured.read(0, &mut out).unwrap();
        });
        assert_eq!(allocated.count_total, 0);
    }
}
