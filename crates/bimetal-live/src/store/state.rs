//! Numbers and tables of a checkpoint: little-endian, each table preceded by its length.
//!
//! The large tables of a checkpoint are separate, after everything else, so that they can be written and read in
//! pieces.

use bimetal_core::save::{self, Save, Table, Word};

use super::bytes::{u32_at, u64_at};
use super::limits::NUMBER_MAX;

/// Checks a sequence, batch or event number.
///
/// # Errors
/// It is larger than any that can occur.
pub fn bounded(number: u64) -> Result<u64, String> {
    if number <= NUMBER_MAX { Ok(number) } else { Err(format!("{number} is more than can have happened")) }
}

/// Appends data to a checkpoint.
pub struct Writer<'a>(pub &'a mut Vec<u8>);

impl Writer<'_> {
    /// A number.
    pub fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    /// A number.
    pub fn u64(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    /// A list: its length as `u64`, then its numbers.
    pub fn list(&mut self, list: &[u32]) {
        if save::is_passed_over() {
            return;
        }
        self.u64(list.len() as u64);
        self.0.extend(list.iter().flat_map(|number| number.to_le_bytes()));
    }

    /// A table, which is separate.
    pub fn table<W: Word>(&mut self, table: &Table<W>) {
        self.section(|bytes| table.save(bytes));
    }

    /// A section: its length as `u64`, then bytes from `write`.
    pub fn section(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let at = self.0.len();
        self.u64(0);
        write(self.0);
        let length = (self.0.len() - at - 8) as u64;
        self.0[at..at + 8].copy_from_slice(&length.to_le_bytes());
    }
}

/// Reads a checkpoint. Its contents may be wrong, so every length is checked against the available bytes.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: u64) -> Result<&'a [u8], String> {
        let length = usize::try_from(length).ok().filter(|&length| length <= self.0.len());
        let length = length.ok_or("it ends too early")?;
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(taken)
    }

    /// A number.
    ///
    /// # Errors
    /// The data end early.
    pub fn u32(&mut self) -> Result<u32, String> {
        self.take(4).map(|bytes| u32_at(bytes, 0))
    }

    /// A number.
    ///
    /// # Errors
    /// The data end early.
    pub fn u64(&mut self) -> Result<u64, String> {
        self.take(8).map(|bytes| u64_at(bytes, 0))
    }

    /// A list, which replaces the contents of `list`.
    ///
    /// # Errors
    /// The data end early.
    pub fn list(&mut self, list: &mut Vec<u32>) -> Result<(), String> {
        let length = self.u64()?;
        let bytes = self.take(length.saturating_mul(4))?;
        list.clear();
        list.extend(bytes.chunks_exact(4).map(|bytes| u32_at(bytes, 0)));
        Ok(())
    }

    /// A table, which replaces one of the same length.
    ///
    /// # Errors
    /// The data end early, or the length differs.
    pub fn table<W: Word>(&mut self, table: &mut Table<W>) -> Result<(), String> {
        *table = save::restore(table, self.section()?).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// The bytes of a section.
    ///
    /// # Errors
    /// The data end early.
    pub fn section(&mut self) -> Result<&'a [u8], String> {
        let length = self.u64()?;
        self.take(length)
    }

    /// Checks that all data were read.
    ///
    /// # Errors
    /// More data follow.
    pub fn end(&self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err(format!("{} bytes follow it", self.0.len())) }
    }
}
