//! Health of a store: the figures of a drive's SMART log, and figures that only a simulator has.

pub mod figures;
mod openmetrics;
mod service;

use bimetal_core::ledger::FaultCounts;
use bimetal_core::media::SimRegion;
use bimetal_core::report::{Report, TraceFacts};
use bimetal_core::request::SECTOR_BYTES;
use schemars::JsonSchema;
use serde::Serialize;

use crate::block_device::BlockDevice;
use crate::store::{Status, Store, Times};

/// Sectors of a data unit of the SMART log.
const UNIT_SECTORS: u64 = 1000;

/// Health of a store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Health {
    /// Version of this program.
    pub bimetal: &'static str,
    /// Name of the scheme.
    pub scheme: String,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Bytes that hold data.
    pub data_bytes: u64,
    /// Bytes that the host has read since the store was created.
    pub host_read_bytes: u64,
    /// Bytes that the host has written since then.
    pub host_write_bytes: u64,
    /// The SMART log.
    pub smart: Smart,
    /// Figures of the modelled device: operations and wear since the store was created, responses since it was opened.
    pub device: Report,
    /// What keeps it.
    pub store: StoreFigures,
}

/// The SMART / health log of NVMe, with the keys of nvme-cli. Fields that do not apply to a store, such as the
/// temperature, are omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Smart {
    /// Bit 2: the store has media errors or is worn beyond its endurance. Bit 3: it is read-only because a file failed.
    pub critical_warning: u8,
    /// Remaining replacement blocks of the region with the fewest, in percent; 100 if blocks do not fail.
    pub avail_spare: u8,
    /// Used endurance of the most worn region, by its mean erase count, in percent; at most 255.
    pub percent_used: u8,
    /// Thousands of 512-byte units that the host has read, rounded up.
    pub data_units_read: u64,
    /// Thousands of 512-byte units that the host has written, rounded up.
    pub data_units_written: u64,
    /// Reads. A request of more than 128 KiB counts as several.
    pub host_read_commands: u64,
    /// Writes, likewise.
    pub host_write_commands: u64,
    /// Minutes for which the modelled device was busy with host requests.
    pub controller_busy_time: u64,
    /// Number of openings for writing.
    pub power_cycles: u64,
    /// Hours for which the store was open.
    pub power_on_hours: u64,
    /// Number of openings that did not end with a close.
    pub unsafe_shutdowns: u64,
    /// Damaged pages found.
    pub media_errors: u64,
    /// Equal to `media_errors`.
    pub num_err_log_entries: u64,
}

/// What keeps a store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreFigures {
    /// Requests and idle times since it was created.
    pub events: u64,
    /// Requests and idle times that are not durable yet.
    pub events_pending: u64,
    /// Commits since it was opened.
    pub commits: u64,
    /// Checkpoints since it was opened.
    pub checkpoints: u64,
    /// Histograms of the durations of file operations since it was opened, only for OpenMetrics.
    #[serde(skip)]
    pub times: Times,
    /// Bytes of journal since the last checkpoint.
    pub journal_bytes: u64,
    /// Reads since it was opened whose data were lost.
    pub failed_reads: u64,
    /// Bytes of memory for metadata of the scheme and of the store.
    pub metadata_bytes: u64,
    /// Bytes of memory for data in transit.
    pub buffer_bytes: u64,
    /// Whether writes are refused now: the store is open for reading only, or a file has failed.
    pub read_only: bool,
    /// Whether writes are refused until the file system has space.
    pub no_room: bool,
    /// The reason for which writes are refused, if a file has failed.
    pub failure: Option<String>,
}

const MEDIA_WARNING: u8 = 1 << 2;
const READ_ONLY_WARNING: u8 = 1 << 3;

impl Health {
    /// The used share of the write cache in front of slower cells or a disk: data that must be moved there to free it;
    /// `None` where there is no such cache.
    pub fn cache_used(&self) -> Option<f64> {
        let metrics = &self.device.metrics.0;
        let figure = |name| metrics.iter().find(|&&(known, _)| known == name).and_then(|&(_, value)| value);
        let used = match (figure("cache_free_blocks"), figure("dirty_mib")) {
            (Some(free), _) => {
                let (has, may) = (figure("cache_blocks")?, figure("cache_allowed_blocks")?);
                (has - free) / may.max(has)
            }
            (None, Some(dirty)) => dirty / (dirty + figure("clean_mib")? + figure("over_provisioned_mib")?),
            (None, None) => return None,
        };
        used.is_finite().then_some(used)
    }

    /// Current health of a store.
    pub fn of(store: &Store) -> Self {
        let status = store.status();
        let resolved = store.resolved();
        let (regions, disks) = resolved.described();
        let host = &status.measured.host;
        let facts = TraceFacts {
            name: "host".into(),
            format: "nbd".into(),
            requests: host.requests(),
            reads: host.reads,
            writes: host.writes,
            trims: host.trims,
            read_bytes: host.read_sectors * SECTOR_BYTES,
            write_bytes: host.write_sectors * SECTOR_BYTES,
            footprint_bytes: status.written_sectors * SECTOR_BYTES,
            duration_s: status.power.on_ms as f64 / 1e3,
        };
        let device = Report::of(&resolved.device.scheme, &regions, &disks, &status.measured, None, &facts);
        Self {
            bimetal: env!("CARGO_PKG_VERSION"),
            scheme: resolved.device.scheme.clone(),
            capacity_bytes: resolved.shape.logical_sectors * SECTOR_BYTES,
            data_bytes: status.written_sectors * SECTOR_BYTES,
            host_read_bytes: facts.read_bytes,
            host_write_bytes: facts.write_bytes,
            smart: Smart::of(&status, &device, &resolved.regions),
            device,
            store: StoreFigures::of(&status, store.read_only()),
        }
    }
}

impl Smart {
    fn of(status: &Status, device: &Report, regions: &[SimRegion]) -> Self {
        let used = device.wear.iter().map(|wear| wear.used).fold(0.0, f64::max);
        let (host, power) = (&status.measured.host, &status.power);
        let warning = |is_on: bool, bit: u8| if is_on { bit } else { 0 };
        Self {
            critical_warning: warning(status.media_errors > 0 || used >= 1.0, MEDIA_WARNING)
                | warning(status.failure.is_some(), READ_ONLY_WARNING),
            avail_spare: avail_spare(status, regions),
            percent_used: (used * 100.0).round().min(255.0) as u8,
            data_units_read: host.read_sectors.div_ceil(UNIT_SECTORS),
            data_units_written: host.write_sectors.div_ceil(UNIT_SECTORS),
            host_read_commands: host.reads,
            host_write_commands: host.writes,
            controller_busy_time: status.measured.simulated_ns / 60_000_000_000,
            power_cycles: power.cycles,
            power_on_hours: power.on_ms / 3_600_000,
            unsafe_shutdowns: power.unsafe_shutdowns,
            media_errors: status.media_errors,
            num_err_log_entries: status.media_errors,
        }
    }
}

/// Remaining replacement blocks of the region with the fewest, in percent, rounded down; 100 if no region has any.
fn avail_spare(status: &Status, regions: &[SimRegion]) -> u8 {
    let spare = |(counts, region): (&FaultCounts, &SimRegion)| {
        let all = u64::from(region.faults.replacement_blocks);
        match counts {
            FaultCounts { failures_unreplaced: 1.., .. } => 0,
            _ if all == 0 => 100,
            _ => (all.saturating_sub(counts.blocks_replaced) * 100 / all) as u8,
        }
    };
    status.measured.ledger.faults.iter().zip(regions).map(spare).min().unwrap_or(100)
}

impl StoreFigures {
    fn of(status: &Status, read_only: bool) -> Self {
        let (of_scheme, of_store) = status.metadata_bytes;
        Self {
            events: status.events,
            events_pending: status.events_pending,
            commits: status.counts.commits,
            checkpoints: status.counts.checkpoints,
            times: status.times,
            journal_bytes: status.journal_bytes,
            failed_reads: status.counts.failed_reads,
            metadata_bytes: of_scheme.unwrap_or(0) + of_store as u64,
            buffer_bytes: status.buffer_bytes as u64,
            read_only,
            no_room: status.is_full,
            failure: status.failure.clone(),
        }
    }
}
