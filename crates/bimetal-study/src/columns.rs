//! Traces from numeric columns, as other programs hold them.

use bimetal_core::request::{Op, Request, SECTOR_BYTES};
use bimetal_core::trace::{MAX_BYTES, Trace};

use crate::generate::collected;
use crate::number::counted;

/// Format name in results whose requests come from columns.
pub const FORMAT: &str = "columns";

/// Requests as one column for each field.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// Arrival in nanoseconds, with any origin.
    pub time_ns: &'a [u64],
    /// 0 reads, 1 writes, 2 trims.
    pub op: &'a [u64],
    /// First 512-byte sector.
    pub sector: &'a [u64],
    /// Number of 512-byte sectors.
    pub sectors: &'a [u64],
    /// Placement handle; `None` if no request has one.
    pub handle: Option<&'a [u64]>,
}

/// Columns that are not a valid trace. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// There is no row.
    #[error("the columns hold no requests")]
    Empty,
    /// A column differs in length from `time_ns`.
    #[error("`{column}` has {rows} rows and `time_ns` has {expected}")]
    Length {
        /// The column.
        column: &'static str,
        /// Its number of rows.
        rows: usize,
        /// Rows of `time_ns`.
        expected: usize,
    },
    /// A value out of range.
    #[error("row {row}: `{column}` is {value}: {what}")]
    Value {
        /// Its row, from 0.
        row: usize,
        /// Its column.
        column: &'static str,
        /// The value.
        value: u64,
        /// The reason.
        what: &'static str,
    },
}

/// A trace of these columns. Times count from the earliest; rows that are out of time order are sorted, with a warning.
///
/// # Errors
/// The first row that is not a valid request.
pub fn trace(name: &str, columns: &Columns<'_>) -> Result<Trace, ColumnError> {
    let Columns { time_ns, op, sector, sectors, handle } = *columns;
    let expected = time_ns.len();
    let handles = handle.map_or(expected, <[u64]>::len);
    for (column, rows) in [("op", op.len()), ("sector", sector.len()), ("sectors", sectors.len()), ("handle", handles)]
    {
        if rows != expected {
            return Err(ColumnError::Length { column, rows, expected });
        }
    }
    let first_ns = time_ns.iter().copied().min().ok_or(ColumnError::Empty)?;
    let mut requests = Vec::with_capacity(expected);
    for (row, (((&time_ns, &op), &sector), &sectors)) in time_ns.iter().zip(op).zip(sector).zip(sectors).enumerate() {
        let handle = handle.map_or(0, |handle| handle[row]);
        let request = request(time_ns - first_ns, op, sector, sectors, handle);
        requests.push(request.map_err(|(column, value, what)| ColumnError::Value { row, column, value, what })?);
    }
    let late = requests.windows(2).filter(|pair| pair[1].arrival_ns < pair[0].arrival_ns).count();
    requests.sort_by_key(|request| request.arrival_ns);
    let mut trace = collected(name, FORMAT, requests);
    trace.origin_ns = first_ns;
    if late > 0 {
        trace.warnings.push(format!("{} out of time order: sorted by arrival", counted(late as u64, "row")));
    }
    Ok(trace)
}

/// A request, or the column, value and fault that make the row invalid.
fn request(
    arrival_ns: u64,
    op: u64,
    sector: u64,
    sectors: u64,
    handle: u64,
) -> Result<Request, (&'static str, u64, &'static str)> {
    let op = match op {
        0 => Op::Read,
        1 => Op::Write,
        2 => Op::Trim,
        _ => return Err(("op", op, "0 is a read, 1 a write, 2 a trim")),
    };
    let count = match u32::try_from(sectors) {
        Ok(0) => return Err(("sectors", sectors, "a request has at least one sector")),
        Ok(count) => count,
        Err(_) => return Err(("sectors", sectors, "a request is below 2 TiB, which are 2^32 sectors")),
    };
    let Ok(handle) = u8::try_from(handle) else { return Err(("handle", handle, "a placement handle is below 256")) };
    match sector.checked_add(sectors) {
        Some(end) if end <= MAX_BYTES / SECTOR_BYTES => Ok(Request { arrival_ns, sector, sectors: count, op, handle }),
        _ => Err(("sector", sector, "the request ends beyond 2^63 bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns<'a>(time_ns: &'a [u64], op: &'a [u64], sector: &'a [u64], sectors: &'a [u64]) -> Columns<'a> {
        Columns { time_ns, op, sector, sectors, handle: None }
    }

    #[test]
    fn rows_become_requests_in_order_of_time() {
        let trace = trace("t", &columns(&[700, 500, 900], &[1, 0, 2], &[8, 16, 0], &[8, 1, 4096])).unwrap();
        let rows: Vec<_> =
            trace.requests.iter().map(|request| (request.arrival_ns, request.op, request.sector)).collect();
        assert_eq!(rows, [(0, Op::Read, 16), (200, Op::Write, 8), (400, Op::Trim, 0)]);
        assert_eq!((trace.reads, trace.writes, trace.trims, trace.origin_ns), (1, 1, 1, 500));
        assert_eq!((trace.read_bytes, trace.write_bytes), (512, 4096));
        assert_eq!(trace.warnings, ["1 row out of time order: sorted by arrival"]);
    }

    #[test]
    fn what_is_no_request_is_named_by_its_row() {
        let wrong = |time: &[u64], op: &[u64], sector: &[u64], sectors: &[u64]| {
            trace("t", &columns(time, op, sector, sectors)).unwrap_err().to_string()
        };
        assert_eq!(wrong(&[], &[], &[], &[]), "the columns hold no requests");
        assert_eq!(wrong(&[1, 2], &[0], &[0, 0], &[1, 1]), "`op` has 1 rows and `time_ns` has 2");
        assert!(wrong(&[1, 2], &[0, 3], &[0, 0], &[1, 1]).starts_with("row 1: `op` is 3: "));
        assert!(wrong(&[1, 2], &[0, 1], &[0, 0], &[1, 0]).starts_with("row 1: `sectors` is 0: "));
        assert!(wrong(&[1], &[0], &[0], &[1 << 32]).starts_with("row 0: `sectors` is 4294967296: "));
        for sector in [u64::MAX, MAX_BYTES / SECTOR_BYTES] {
            assert!(wrong(&[1], &[0], &[sector], &[1]).starts_with(&format!("row 0: `sector` is {sector}: ")));
        }
        assert!(trace("t", &columns(&[1], &[0], &[MAX_BYTES / SECTOR_BYTES - 1], &[1])).is_ok());
    }
}
