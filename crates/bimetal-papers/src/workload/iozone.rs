//! `iozone`: stands in for IOzoneTrace of ComboFTL (2010), the IOzone benchmark in automatic mode.
//!
//! From the paper: `iozone -automatic`, 1,416 MB of address space, 18,640 MB written (table 3); many updates in large
//! requests, high temporal and spatial locality (section 6).
//!
//! From the manual and the source of IOzone 3: `-a` uses files of 64 KiB to 512 MiB, each size twice the previous one.
//! Each file is rewritten for every record size from 4 KiB to 16 MiB that fits, also doubling; from 32 MiB on, records
//! begin at 64 KiB. Each test ends with `fsync`, so that caches merge records, but not tests. All files, written and
//! then rewritten, are 18,624 MB. So the trace can contain only these two tests, its MB are 2^20 bytes, and 16 MB
//! remain. FAT32 with clusters of 4 KiB writes 18 MB of its two tables for these files, four bytes for each new
//! cluster, which gives 18,642 MB.
//!
//! Chosen before any scheme was run on it, except for the size of requests:
//! - The file system is FAT32, as on the paper's phone. Both tables are at the start of the address space, and each new
//!   file starts at the next free cluster, circularly. Files at one fixed place would need 512 MB instead of 1,416.
//! - Data that a test leaves to `fsync` are written in ascending order, data before tables, in requests of up to 64
//!   KiB, the largest of Windows. That follows from a result: the paper's baseline that treats writes of up to 64 KiB
//!   as hot sends enough of this trace to SLC to be worse than no SLC at all (section 6.1). It would send no larger
//!   requests. `size=128KiB` is the other reading. Table updates on deletion and directories are left out.
//! - Half of the written data is rewritten after as many bytes as the file has. The rest returns after the file
//!   allocation has gone round the disk, which takes twice the address space.
//! - Arrivals are not published, and the paper sums the times of operations. At 100 ms, writing the 16 pages of a
//!   request to MLC (table 1: 994 µs each) takes a sixth of the time.

use std::collections::VecDeque;

use super::{rewrites, sectors};
use bimetal_core::request::{Op, Request, SECTOR_BYTES};
use bimetal_core::scheme::ParameterError;
use bimetal_core::units::ByteSize;
use bimetal_core::workload::Arrivals;
use bimetal_core::workload::{Requests, Target, WorkloadSpec, request_sectors};

/// Registry entry.
pub(super) static SPEC: WorkloadSpec = WorkloadSpec {
    name: "iozone",
    summary: "`iozone -a` on FAT32: files of 64 KiB to 512 MiB, each written and rewritten 5 to 13 times",
    source: "ComboFTL, JSA 2010, section 6, table 3: stands in for IOzoneTrace; manual and source of IOzone 3",
    parameters: Parameters::specs,
    targets,
    in_small: &[],
};

bimetal_core::parameters! {
    SPEC.name;
    /// Parameters of `iozone`.
    pub struct Parameters {
        /// Number of requests; by default one complete `iozone -a`, which repeats after that.
        pub requests: u64 = 298_512, in 1..=1_000_000_000;
        /// Bytes of the address space (table 3: 1,416 MB); files that do not fit are left out.
        pub span: ByteSize = ByteSize(1416 << 20);
        /// Bytes of the largest file (IOzone's `-g`).
        pub file: ByteSize = ByteSize(512 << 20);
        /// Divides `span` and `file`; request sizes and number stay.
        pub scale: u32 = 1, in 1..=1024;
        /// Bytes of the largest request.
        pub size: ByteSize = ByteSize(64 << 10);
        /// Mean time between arrivals in microseconds.
        pub interval_us: f64 = 100_000.0, in 0.0..=1e9;
    }
}

const FILE_FIRST: u64 = 64 << 10;
const RECORD_FIRST: u64 = 4 << 10;
const RECORD_LAST: u64 = 16 << 20;
/// From files of this size on, `-a` leaves out records smaller than [`FILE_FIRST`].
const FILE_LARGE: u64 = 32 << 20;

/// Bytes of a page of the cluster table, and of the data that it describes: four bytes for each 4 KiB.
const TABLE_PAGE: u64 = 4 << 10;
const TABLE_PAGE_COVERS: u64 = TABLE_PAGE / 4 * (4 << 10);
/// FAT32 keeps two copies of the table.
const TABLES: u64 = 2;

/// Targets from table 3.
fn targets(settings: &[(String, String)]) -> Result<Vec<Target>, ParameterError> {
    let (whole, here) = (Parameters::default(), Parameters::parse(settings)?);
    let bytes = |parameters: &Parameters| parameters.requests as f64 * parameters.size.0 as f64;
    Ok(rewrites::table_3(1416.0, 18_640.0, here.scale, bytes(&here) / bytes(&whole)))
}

/// The requests.
///
/// # Errors
/// A request size that is not whole sectors, or an address space in which no file fits.
pub(super) fn generate(parameters: &Parameters, seed: u64) -> Result<Requests, String> {
    let Parameters { requests, span, file, scale, size, interval_us } = *parameters;
    let (span, file) = (ByteSize(span.0 / u64::from(scale)), file.0 / u64::from(scale));
    let request_bytes = u64::from(request_sectors(size, span)?) * SECTOR_BYTES;
    let mut writes = Writes::new(span, file, request_bytes)?;
    let mut state = seed;
    let mut arrivals = Arrivals::new(interval_us);
    Ok(Box::new((0..requests).map(move |_| {
        let (byte, bytes) = writes.next();
        Request {
            arrival_ns: arrivals.next(&mut state),
            sector: byte / SECTOR_BYTES,
            sectors: sectors(bytes),
            op: Op::Write,
            handle: 0,
        }
    })))
}

/// The files of `iozone -a`, one for each size and record size.
#[derive(Debug)]
struct Program {
    file: u64,
    record: u64,
    file_last: u64,
}

impl Program {
    fn new(file_last: u64) -> Self {
        Self { file: FILE_FIRST, record: RECORD_FIRST, file_last }
    }

    /// Bytes of the next file.
    fn next(&mut self) -> u64 {
        let file = self.file;
        self.record *= 2;
        if self.record > file.min(RECORD_LAST) {
            self.file = if 2 * file > self.file_last { FILE_FIRST } else { 2 * file };
            self.record = if self.file < FILE_LARGE { RECORD_FIRST } else { FILE_FIRST };
        }
        file
    }
}

/// The file system's writes for the program.
#[derive(Debug)]
struct Writes {
    /// Bytes of each table; the tables come first.
    table: u64,
    /// Bytes of the clusters after the tables.
    data: u64,
    request_bytes: u64,
    program: Program,
    /// Place of the next file within the clusters, in bytes.
    next_free: u64,
    /// Extents that remain to be written: first byte and length.
    due: VecDeque<(u64, u64)>,
}

impl Writes {
    fn new(span: ByteSize, file: u64, request_bytes: u64) -> Result<Self, String> {
        let table = span.0.div_ceil(TABLE_PAGE_COVERS) * TABLE_PAGE;
        let data = span.0.saturating_sub(TABLES * table) / TABLE_PAGE * TABLE_PAGE;
        if file.min(data) < FILE_FIRST {
            return Err(format!(
                "the smallest file, of {}, does not fit into {span}; set a larger `span` or `file`, or a smaller `scale`",
                ByteSize(FILE_FIRST)
            ));
        }
        let program = Program::new(file.min(data));
        Ok(Self { table, data, request_bytes, program, next_free: 0, due: VecDeque::new() })
    }

    /// First byte and length of the next request.
    fn next(&mut self) -> (u64, u64) {
        loop {
            let Some((byte, left)) = self.due.front_mut() else {
                self.file();
                continue;
            };
            let request = (*byte, self.request_bytes.min(*left));
            *byte += request.1;
            *left -= request.1;
            if *left == 0 {
                self.due.pop_front();
            }
            return request;
        }
    }

    /// Queues the writes of a file, of its table entries, and of its rewrite.
    fn file(&mut self) {
        let (file, table) = (self.program.next(), self.table);
        let until_end = file.min(self.data - self.next_free);
        let parts = [(self.next_free, until_end), (0, file - until_end)].into_iter().filter(|&(_, bytes)| bytes > 0);
        self.next_free = (self.next_free + file) % self.data;
        let data = parts.clone().map(|(start, bytes)| (TABLES * table + start, bytes));
        let entries = |start: u64| {
            parts.clone().map(move |(byte, bytes)| {
                let (first, end) = (byte / TABLE_PAGE_COVERS, (byte + bytes).div_ceil(TABLE_PAGE_COVERS));
                (start + first * TABLE_PAGE, (end - first) * TABLE_PAGE)
            })
        };
        self.due.extend(data.clone().chain(entries(0)).chain(entries(table)).chain(data));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::rewrites::tests::by_size;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_program_is_that_of_the_manual() {
        let mut program = Program::new(512 * MIB);
        let files: Vec<u64> = (0..126).map(|_| program.next()).collect();
        let records = |file: u64| files.iter().filter(|&&other| other == file).count();
        assert_eq!([64 << 10, MIB, 16 * MIB, 32 * MIB, 512 * MIB].map(records), [5, 9, 13, 9, 9]);
        assert!(files.is_sorted());
        assert_eq!(program.next(), 64 << 10, "and again");
        // Written and rewritten: the amount of the paper's trace except for 16 MB.
        assert_eq!(2 * files.iter().sum::<u64>() / MIB, 18_623);
    }

    #[test]
    fn the_default_is_the_whole_program() {
        let defaults = Parameters::default();
        let mut writes = Writes::new(defaults.span, defaults.file.0, defaults.size.0).unwrap();
        let mut requests = 0;
        loop {
            writes.next();
            requests += 1;
            if writes.due.is_empty() && (writes.program.file, writes.program.record) == (FILE_FIRST, RECORD_FIRST) {
                break;
            }
        }
        assert_eq!(requests, defaults.requests);
    }

    #[test]
    fn it_has_the_papers_profile() {
        let requests: Vec<Request> = generate(&Parameters::default(), 1).unwrap().collect();
        let sizes = by_size(requests.iter().copied());
        let written: u64 = sizes.values().map(|written| written.bytes).sum();
        assert!((written as f64 / (18_640 * MIB) as f64 - 1.0).abs() < 0.001, "{}", written / MIB);
        let end = requests.iter().map(Request::end).max().unwrap() * 512;
        assert!((1415 * MIB..=1416 * MIB).contains(&end), "{end}");
        let pages: u64 = sizes.values().map(|written| written.new_pages).sum();
        assert!((1412 << 8..=1416 << 8).contains(&pages), "{pages}");
        // Large updates: almost all bytes are in the largest requests, half of them rewritten after at most a file.
        let large = &sizes[&64];
        assert!(large.bytes as f64 / written as f64 > 0.998);
        assert!(large.share_below(514 * MIB) > 0.5);
        // Temporal locality of the tables: their pages are rewritten with every file or two.
        let tables: u64 = sizes.iter().filter(|&(&kib, _)| kib < 64).map(|(_, written)| written.bytes).sum();
        assert!((1..20).contains(&(tables / MIB)), "{tables}");
    }

    #[test]
    fn a_file_is_written_with_its_tables_and_rewritten_in_place() {
        let parameters = Parameters { span: ByteSize(64 << 20), requests: 8, ..Parameters::default() };
        let requests = generate(&parameters, 1).unwrap();
        let places: Vec<(u64, u32)> = requests.map(|request| (request.sector, request.sectors)).collect();
        // Tables of 16 pages each, followed by the clusters.
        let file = |start: u64| [(256 + start, 128), (0, 8), (128, 8), (256 + start, 128)];
        assert_eq!(places, [file(0), file(128)].concat());
    }
}
