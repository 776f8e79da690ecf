//! libCacheSim's binary records: the common parts of `oracleGeneral` and all versions of `lcs`. Little-endian, without
//! padding.
//!
//! All begin with u32 seconds and u64 id. (libCacheSim, oracleGeneralBin.h and lcs.h.)

use std::ops::ControlFlow;

use super::super::error::{ErrorKind, Fault, Parsed, TraceError};
use super::super::lines::time_of_whole;
use super::super::records;
use super::super::{Input, TimeUnit, Trace};
use super::collector::{Access, ObjectCollector};
use crate::request::Op;

/// Layout of a record. The size follows the id, and the operation follows the size.
#[derive(Debug)]
pub(super) struct Layout {
    /// Bytes of a record.
    pub length: usize,
    /// Bytes of a size.
    pub size_bytes: usize,
    /// Bytes of a tenant, which follows an operation of 1 byte; `None` if the record has neither.
    pub tenant_bytes: Option<usize>,
}

const SIZE_AT: usize = 12;

/// Seconds, id, size, number of the next access to the object: `oracleGeneral` and version 1 of `lcs`.
pub(super) const PLAIN: Layout = Layout { length: 24, size_bytes: 4, tenant_bytes: None };

/// A field as a number.
fn field(record: &[u8], at: usize, bytes: usize) -> u64 {
    let mut value = [0; 8];
    value[..bytes].copy_from_slice(&record[at..at + bytes]);
    u64::from_le_bytes(value)
}

impl Layout {
    pub(super) fn seconds(&self, record: &[u8]) -> u64 {
        field(record, 0, 4)
    }

    pub(super) fn id(&self, record: &[u8]) -> u64 {
        field(record, 4, 8)
    }

    pub(super) fn size(&self, record: &[u8]) -> u64 {
        field(record, SIZE_AT, self.size_bytes)
    }

    /// The number of the next access to the same object, in the last 8 bytes of records without features.
    pub(super) fn next(&self, record: &[u8]) -> u64 {
        field(record, self.length - 8, 8)
    }

    fn access(&self, record: &[u8], unit: TimeUnit) -> Parsed<Access> {
        let op_at = SIZE_AT + self.size_bytes;
        let (op, tenant) = match self.tenant_bytes {
            None => (Op::Read, 0),
            Some(bytes) => (operation(field(record, op_at, 1))?, field(record, op_at + 1, bytes)),
        };
        let (id, bytes) = (self.id(record), self.size(record));
        if bytes > i64::MAX as u64 {
            return Err(Fault::field(ErrorKind::Range, "size", "is negative", (bytes as i64).to_string().as_bytes()));
        }
        let time_ns = time_of_whole(self.seconds(record), "time", unit)?;
        Ok(Access { time_ns, tenant, key: id, id: Some(id), offset: 0, bytes, op, times: 1 })
    }

    /// Decodes the records of a file after its first `header` bytes. Returns their number, too.
    pub(super) fn decode(&self, input: &Input<'_>, header: usize) -> Result<(Trace, u64), TraceError> {
        let mut collector = ObjectCollector::new(input);
        let records = records::each(input, header, self.length, |record| {
            collector.push(&self.access(record, input.time_unit())?).map(ControlFlow::Continue)
        })?;
        let mut warnings = Vec::new();
        collector.warn_of_addresses(&mut warnings);
        if self.tenant_bytes.is_none() {
            collector.warn_of_reads(&mut warnings);
        }
        Ok((collector.finish(input, warnings)?, records))
    }
}

/// An operation by libCacheSim's number (enum.h). Operations that change an object count as writes.
fn operation(number: u64) -> Parsed<Op> {
    match number {
        0 | 1 | 2 | 12 => Ok(Op::Read),             // none, get, gets, read
        3..=8 | 10 | 11 | 13 | 14 => Ok(Op::Write), // set, add, cas, replace, append, prepend, incr, decr, write, update
        9 => Ok(Op::Trim),                          // delete
        _ => Err(Fault::field(ErrorKind::Field, "op", "is none of libCacheSim's", number.to_string().as_bytes())),
    }
}
