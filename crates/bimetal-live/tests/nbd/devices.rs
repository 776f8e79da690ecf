//! Devices that record their requests.

use std::ops::ControlFlow;
use std::sync::Mutex;

use bimetal_live::{BlockDevice, Extent, IoError};

/// A request to the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Read { sector: u64, bytes: usize },
    Write { sector: u64, data: Vec<u8>, fua: bool },
    Trim { sector: u64, sectors: u64, fua: bool },
    Zero { sector: u64, sectors: u64, fua: bool },
    Flush,
    Extents { sector: u64, sectors: u64 },
    Prefetch { sector: u64, sectors: u64 },
}

/// A device of any size that stores nothing, and records every request. Sectors read as their numbers.
pub struct Recorder {
    pub sectors: u64,
    pub read_only: bool,
    /// The answer to every request.
    pub answer: Result<(), IoError>,
    /// The extents of every range.
    pub extents: Vec<(u64, Extent)>,
    pub calls: Mutex<Vec<Call>>,
}

impl Recorder {
    pub fn new(sectors: u64) -> Self {
        Self { sectors, read_only: false, answer: Ok(()), extents: Vec::new(), calls: Mutex::default() }
    }

    /// The requests since the last call.
    pub fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    fn note(&self, call: Call) -> Result<(), IoError> {
        self.calls.lock().unwrap().push(call);
        self.answer
    }
}

/// The contents of a [`Recorder`].
pub fn contents(sector: u64, bytes: usize) -> Vec<u8> {
    (0..bytes / 8).flat_map(|word| (sector + word as u64 / 64).to_le_bytes()).collect()
}

impl BlockDevice for Recorder {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError> {
        // Also if it fails: data read before the error must not be sent.
        out.copy_from_slice(&contents(sector, out.len()));
        self.note(Call::Read { sector, bytes: out.len() })
    }

    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError> {
        self.note(Call::Write { sector, data: data.to_vec(), fua })
    }

    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.note(Call::Trim { sector, sectors, fua })
    }

    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.note(Call::Zero { sector, sectors, fua })
    }

    fn flush(&self) -> Result<(), IoError> {
        self.note(Call::Flush)
    }

    fn extents(
        &self,
        sector: u64,
        sectors: u64,
        visit: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>,
    ) -> Result<(), IoError> {
        for &(length, extent) in &self.extents {
            if visit(length, extent).is_break() {
                break;
            }
        }
        self.note(Call::Extents { sector, sectors })
    }

    fn prefetch(&self, sector: u64, sectors: u64) -> Result<(), IoError> {
        self.note(Call::Prefetch { sector, sectors })
    }
}
