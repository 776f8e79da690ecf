//! Block I/O traces: from the bytes of a file to [`Request`]s, for every format in [`FORMATS`].
//!
//! Decoding is strict. A record that cannot be parsed exactly is an error that names its line (or record) and field.
//! Records that are valid but suspicious (rows out of time order, zero-length requests, an implausible unit) cause a
//! warning in [`Trace::warnings`]. Nothing is skipped silently.
//!
//! **Addresses.** The devices of a trace (ASU, disk, volume, LUN, file) are separate address spaces. They are laid end
//! to end in order of their ids, each rounded up to 1 MiB, which keeps the alignment within a device. Requests are
//! exact to the 512-byte sector. Byte-addressed records that are not multiples of it are widened outward, while the
//! byte totals stay those of the source.
//!
//! **Times** are nanoseconds since the earliest record, parsed from the digits without floating point. Rows out of time
//! order are sorted by arrival, stably, with a warning.
//!
//! **A new format** is one file with a `pub static FORMAT`, one `mod` line and one line in [`FORMATS`]; detection, help
//! texts and tests iterate that list. A format in another crate is the same file, and is registered by [`add`].
//! [`contract`] describes its parts.

mod alibaba;
mod bimetal;
mod biotracer;
mod blkparse;
mod blktrace;
mod block_action;
mod collect;
mod columns;
mod concat;
pub mod contract;
mod detect;
mod diskmon;
mod disksim;
mod encode;
mod error;
mod fio;
mod input;
mod lines;
mod midas;
mod mqsim;
mod msr;
mod numbering;
mod object_places;
mod objects;
mod options;
mod plausible;
mod read;
mod records;
mod replayer;
mod roles;
mod spc;
mod srt;
mod systor;
mod table;
mod tencent;
#[cfg(test)]
mod testing;
mod time_unit;
mod vscsi;
mod vscsi_csv;

pub use bimetal::encode_bimetal;
pub use collect::MAX_BYTES;
pub use concat::concat;
pub use detect::detect;
pub use encode::{Encode, WriteError, encoded};
pub use error::{ErrorKind, Place, TraceError};
pub use input::{Input, read_whole};
pub use midas::encode_midas;
pub use msr::encode_msr;
pub use object_places::Objects;
pub use options::{Action, DeviceChoice, Options};
pub use read::{ReadError, decode, read};
pub use roles::Columns;
pub use spc::encode_spc;
pub use table::{is_arrow, is_parquet};
pub use time_unit::TimeUnit;

use crate::profile::distinct_pages;
use crate::registry::{Named, Registry, RegistryError};
use crate::request::{Op, PAGE_BYTES, Request, data};
use detect::{Likeness, Sample};

/// Every trace format, in the order in which help texts list them.
pub static FORMATS: &Registry<Format> = &REGISTRY;

static REGISTRY: Registry<Format> = Registry::new(&[
    &spc::FORMAT,
    &msr::FORMAT,
    &diskmon::FORMAT,
    &disksim::FORMAT,
    &disksim::FLASHSIM,
    &srt::FORMAT,
    &mqsim::FORMAT,
    &vscsi::FORMAT,
    &vscsi_csv::FORMAT,
    &systor::FORMAT,
    &tencent::FORMAT,
    &alibaba::FORMAT,
    &biotracer::FORMAT,
    &replayer::FORMAT,
    &midas::FORMAT,
    &fio::FORMAT,
    &blkparse::FORMAT,
    &blktrace::FORMAT,
    &objects::ORACLE_GENERAL,
    &objects::LCS,
    &objects::LIBCACHESIM_CSV,
    &objects::CACHELIB,
    &table::DELIMITED,
    &table::JSON_LINES,
    &table::PARQUET,
    &table::ARROW,
    &bimetal::FORMAT,
]);

/// Adds formats to the registry, once, before the first is looked up.
///
/// # Errors
/// A name is already taken, or the registry is already in use.
pub fn add(formats: &[&'static Format]) -> Result<(), RegistryError> {
    FORMATS.add(formats)
}

/// One trace format: its names, its detection, and its decoder.
#[derive(Debug)]
pub struct Format {
    /// Name, as given to `--format`.
    pub name: &'static str,
    /// Other names of the same format.
    pub aliases: &'static [&'static str],
    /// One-line description.
    pub summary: &'static str,
    /// The layout of its records, in one line.
    pub layout: &'static str,
    /// Unit of its time stamps unless [`Options::time_unit`] overrides it; `None` if the format fixes the unit.
    pub time_unit: Option<TimeUnit>,
    /// Whether a request has several records, so that [`Options::action`] applies.
    pub has_actions: bool,
    /// Whether it has objects instead of addresses, so that [`Options::objects`] applies.
    pub has_objects: bool,
    /// Whether it is a table whose columns can be named, so that [`Options::columns`] applies.
    pub has_columns: bool,
    /// Whether device ids and clock mean the same in every file of a collection (see [`concat()`]).
    pub shared: Shared,
    /// Similarity of a sample to this format.
    pub probe: fn(&Sample<'_>) -> Likeness,
    /// Decodes a whole file.
    pub decode: fn(&Input<'_>) -> Result<Trace, TraceError>,
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl Named for Format {
    const KIND: &'static str = "trace format";

    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

/// Common properties of the files of a collection in one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// None: each file has its own devices and its own clock.
    Nothing,
    /// One wall clock.
    Clock,
    /// One wall clock, and a device id names the same device in each file.
    ClockAndDevices,
}

/// A decoded trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Name of the file or files.
    pub name: String,
    /// Name of the format it was read from; `mixed` for files of several formats.
    pub format: &'static str,
    /// The requests, in order of arrival.
    pub requests: Vec<Request>,
    /// The devices in address order: contiguous from sector 0, without gaps.
    pub devices: Vec<TraceDevice>,
    /// Number of read requests.
    pub reads: u64,
    /// Number of write requests.
    pub writes: u64,
    /// Number of trim requests.
    pub trims: u64,
    /// Bytes read, exactly as in the source.
    pub read_bytes: u64,
    /// Bytes written, exactly as in the source.
    pub write_bytes: u64,
    /// The source's clock at arrival 0, in nanoseconds.
    pub origin_ns: u64,
    /// The step of each request that was recorded; `None` for a format that records no steps.
    pub action: Option<Action>,
    /// Caveats that a user should know before trusting a result, one line each.
    pub warnings: Vec<String>,
}

/// One device of a trace and its place in the trace's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceDevice {
    /// Its number in the source.
    pub id: u64,
    /// Its first sector.
    pub base_sector: u64,
    /// Its length in sectors: the highest address used, rounded up to 1 MiB.
    pub sectors: u64,
    /// Number of requests to it.
    pub requests: u64,
}

impl Trace {
    /// Time from the first arrival to the last, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.requests.last().map_or(0, |request| request.arrival_ns)
    }

    /// End of the address space, in sectors: the sum of the devices.
    pub fn span_sectors(&self) -> u64 {
        self.devices.last().map_or(0, |device| device.base_sector + device.sectors)
    }

    /// Bytes of the distinct 4-KiB pages that reads and writes touch. Trims touch no data.
    pub fn footprint_bytes(&self) -> u64 {
        distinct_pages(data(&self.requests)) * PAGE_BYTES
    }

    /// Keeps only the first requests. The byte totals then count whole sectors, because exact totals are only known for
    /// all requests together.
    pub fn keep_first(&mut self, requests: usize) {
        if requests >= self.requests.len() {
            return;
        }
        self.requests.truncate(requests);
        self.recount();
    }

    /// Counts the requests again, and their bytes in whole sectors.
    fn recount(&mut self) {
        (self.reads, self.writes, self.trims, self.read_bytes, self.write_bytes) = (0, 0, 0, 0, 0);
        self.devices.iter_mut().for_each(|device| device.requests = 0);
        for request in &self.requests {
            match request.op {
                Op::Read => (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + request.bytes()),
                Op::Write => (self.writes, self.write_bytes) = (self.writes + 1, self.write_bytes + request.bytes()),
                Op::Trim => self.trims += 1,
            }
            let after = self.devices.partition_point(|device| device.base_sector <= request.sector);
            if let Some(device) = self.devices[..after].last_mut() {
                device.requests += 1;
            }
        }
    }

    /// The device that contains a sector of the trace's address space.
    pub fn device_of(&self, sector: u64) -> Option<&TraceDevice> {
        let after = self.devices.partition_point(|device| device.base_sector <= sector);
        self.devices[..after].last().filter(|device| sector < device.base_sector + device.sectors)
    }
}

/// The format with this name or alias.
///
/// # Errors
/// [`ErrorKind::Option`] for an unknown name; the message lists the known ones.
pub fn format(name: &str) -> Result<&'static Format, TraceError> {
    let known = |format: &&&'static Format| format.name == name || format.aliases.contains(&name);
    FORMATS.iter().find(known).copied().ok_or_else(|| {
        TraceError::new(ErrorKind::Option, "", format!("no trace format is named `{}`", name.escape_debug()))
            .with_hint(format!("the formats are {}", detect::names(FORMATS.iter().copied())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let mut names: Vec<&str> = FORMATS.iter().flat_map(|f| f.aliases.iter().chain([&f.name])).copied().collect();
        for name in &names {
            assert!(format(name).is_ok());
        }
        let before = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), before);
        let error = format("spx").unwrap_err().to_string();
        assert!(error.contains("`spx`") && error.contains("`spc`") && error.contains("`bimetal`"), "{error}");
    }

    #[test]
    fn options_a_format_does_not_take_are_refused() {
        let spc = b"0,8,4096,r,0.5\n";
        let error = decode("x", spc, &Options { action: Some(Action::Issue), ..Options::default() }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Option);
        assert!(error.to_string().contains("`--action`"), "{error}");
    }
}
