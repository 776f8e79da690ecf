//! Collects the accesses of an object trace, and lays the objects out once all sizes are known.

use std::collections::BTreeMap;

use super::super::collect::{Collector, MAX_BYTES, Row, count};
use super::super::error::{ErrorKind, Fault, Parsed, Place, TraceError};
use super::super::object_places::Objects;
use super::super::{Input, Trace};
use crate::request::{Op, SECTOR_BYTES};

/// Largest object in bytes, far above any in a cache.
const OBJECT_MAX: u64 = 1 << 40;

/// Ids below this may be sector addresses of disks of up to 1 PiB.
const ADDRESS_END: u64 = (1 << 50) / SECTOR_BYTES;

/// Limits of the requests of a file: their mean number for each access, and an additional total. They bound the memory
/// by the length of the file.
const REPEATS_MEAN: u64 = 1024;
const REPEATS_FREE: u64 = 1 << 20;

/// An access in a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// Time in nanoseconds, with any origin that is the same for the whole file.
    pub time_ns: u64,
    /// Number of the tenant or volume. Each has separate ids.
    pub tenant: u64,
    /// The number that identifies the object.
    pub key: u64,
    /// Its numeric id, if it has one.
    pub id: Option<u64>,
    /// First byte within the object.
    pub offset: u64,
    /// Length in bytes; 0 for a miss.
    pub bytes: u64,
    /// The operation. [`Op::Trim`] deletes the whole object.
    pub op: Op,
    /// Number of repetitions.
    pub times: u64,
}

struct Object {
    tenant: u64,
    /// Its id in bytes, if ids are addresses.
    address: u64,
    /// End of the last accessed byte.
    length: u64,
}

/// An access with the number of its object.
struct Numbered {
    time_ns: u64,
    offset: u64,
    bytes: u64,
    times: u64,
    object: u32,
    op: Op,
}

/// The collected accesses.
pub(super) struct ObjectCollector {
    how: Objects,
    numbers: BTreeMap<(u64, u64), u32>,
    objects: Vec<Object>,
    accesses: Vec<Numbered>,
    requests: u64,
    /// Whether all ids may be addresses.
    like_addresses: bool,
}

impl ObjectCollector {
    pub(super) fn new(input: &Input<'_>) -> Self {
        Self {
            how: input.options.objects.unwrap_or_default(),
            numbers: BTreeMap::new(),
            objects: Vec::new(),
            accesses: Vec::new(),
            requests: 0,
            like_addresses: true,
        }
    }

    /// Adds an access.
    pub(super) fn push(&mut self, access: &Access) -> Parsed<()> {
        let range = |field, what, value: u64| Fault::field(ErrorKind::Range, field, what, value.to_string().as_bytes());
        let end = access.offset.saturating_add(access.bytes);
        if end > OBJECT_MAX {
            return Err(range("size", "makes an object of more than 1 TiB", end));
        }
        self.requests = self.requests.saturating_add(access.times);
        if self.requests > REPEATS_FREE + REPEATS_MEAN * self.accesses.len() as u64 {
            return Err(range("op_count", "stands for more requests than a file of this length can", access.times));
        }
        let address = match (self.how.unit_bytes, access.id) {
            (None, _) => 0,
            (Some(unit), Some(id)) => {
                let fits = |address: &u64| *address <= MAX_BYTES - OBJECT_MAX;
                let address = id.checked_mul(unit).filter(fits);
                address.ok_or_else(|| range("id", "is not an address: it is beyond 2^63 bytes", id))?
            }
            (Some(_), None) => {
                let what = "is not a number, and therefore not an address";
                return Err(Box::new(Fault { kind: ErrorKind::Field, field: "id", what, text: None }));
            }
        };
        self.like_addresses &= access.id.is_some_and(|id| id < ADDRESS_END);
        let next = u32::try_from(self.objects.len())
            .map_err(|_| Fault::field(ErrorKind::Range, "id", "is one object too many: 4 billion is the limit", b""))?;
        let number = *self.numbers.entry((access.tenant, access.key)).or_insert(next);
        if number == next {
            self.objects.push(Object { tenant: access.tenant, address, length: 0 });
        }
        let object = &mut self.objects[number as usize];
        object.length = object.length.max(end);
        let Access { time_ns, offset, bytes, op, times, .. } = *access;
        self.accesses.push(Numbered { time_ns, offset, bytes, times, object: number, op });
        Ok(())
    }

    /// Warns if the ids may be addresses but are not used as such. For formats to which disk traces are often
    /// converted.
    pub(super) fn warn_of_addresses(&self, warnings: &mut Vec<String>) {
        if self.like_addresses && self.how.unit_bytes.is_none() {
            let what = "ids are read as names, and each object gets its own address; if ids are block addresses, use \
                        `--objects sectors`";
            warnings.push(what.to_owned());
        }
    }

    /// Warns that the source does not record operations.
    pub(super) fn warn_of_reads(&self, warnings: &mut Vec<String>) {
        if !self.how.insert {
            let what = "the format has no operations, so all accesses are reads; with `--objects insert` the first access to each \
                        object is a write";
            warnings.push(what.to_owned());
        }
    }

    /// Lays out the objects and converts the accesses to requests.
    pub(super) fn finish(mut self, input: &Input<'_>, warnings: Vec<String>) -> Result<Trace, TraceError> {
        self.lay_out(input)?;
        let mut collector = Collector::new(input.options, self.accesses.len() as u64);
        warnings.into_iter().for_each(|warning| collector.warn(warning));
        let mut is_there = vec![false; self.objects.len()];
        for access in &self.accesses {
            let object = &self.objects[access.object as usize];
            let (offset, bytes) = match access.op {
                Op::Trim => (0, object.length),
                _ => (access.offset, access.bytes),
            };
            let mut row = Row {
                time_ns: access.time_ns,
                device: object.tenant,
                offset: object.address + offset,
                bytes,
                op: access.op,
            };
            for _ in 0..access.times {
                let there = &mut is_there[access.object as usize];
                let inserts = self.how.insert && !*there && access.op == Op::Read && bytes > 0;
                row.op = if inserts { Op::Write } else { access.op };
                *there = if bytes > 0 { row.op != Op::Trim } else { *there };
                collector.push(&row).map_err(|fault| input.fault(Place::File, *fault))?;
            }
        }
        collector.finish(input)
    }

    /// Gives each object its address, unless ids are addresses.
    fn lay_out(&mut self, input: &Input<'_>) -> Result<(), TraceError> {
        if self.how.unit_bytes.is_some() {
            return Ok(());
        }
        let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
        for object in &mut self.objects {
            let end = ends.entry(object.tenant).or_insert(0);
            object.address = *end;
            *end += object.length.next_multiple_of(SECTOR_BYTES); // both far below 2^64
            if *end > MAX_BYTES {
                let what = "all objects together have more than 2^63 bytes";
                return Err(input.error(ErrorKind::Range, what));
            }
        }
        Ok(())
    }
}

/// A warning about accesses that were left out.
pub(super) fn left_out(number: u64, thing: &str) -> Option<String> {
    (number > 0).then(|| format!("{} left out", count(number, thing)))
}
