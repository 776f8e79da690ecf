//! A file for the tests of media.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::backing::Backing;

/// A file in memory that counts its reads.
pub(super) struct Memory {
    pub(super) bytes: Mutex<Vec<u8>>,
    pub(super) reads: AtomicU64,
}

impl Memory {
    /// A file of zeros.
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes: Mutex::new(vec![0; bytes]), reads: AtomicU64::new(0) }
    }
}

impl Backing for Memory {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        out.copy_from_slice(&self.bytes.lock().unwrap()[offset as usize..][..out.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.bytes.lock().unwrap()[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn punch(&self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn occupant(&self) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn clear(&self) -> io::Result<()> {
        Ok(())
    }
}
