//! The drive catalogue: hard disks, what an access takes and who says so.

use serde::{Deserialize, Serialize};

use crate::units::{ByteSize, Nanos};

/// A hard disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// Name in device files and on the command line.
    pub name: String,
    /// Capacity as sold.
    pub capacity: ByteSize,
    /// Mean time to reach the first sector of a read, in microseconds: the papers' `C_D_RPOS`.
    pub read_position_us: f64,
    /// Mean time to reach the first sector of a write, in microseconds: the papers' `C_D_WPOS`.
    pub write_position_us: f64,
    /// Rate of sectors that follow each other in MB/s (10^6 bytes): the papers' `B`.
    pub mb_per_s: f64,
    /// Price per GiB in US dollars.
    pub usd_per_gib: f64,
    /// Power while it works, in watts.
    pub active_w: f64,
    /// Where the figures come from, and which of them are derived.
    pub source: String,
}

impl Drive {
    /// Time of `sectors` sectors that follow each other, without reaching the first.
    pub fn transfer(&self, bytes: u64) -> Nanos {
        Nanos((bytes as f64 * 1000.0 / self.mb_per_s).round() as u64)
    }
}

/// Every drive of the catalogue.
pub fn catalogue() -> Vec<Drive> {
    vec![Drive {
        name: "atlas-10k-iv".into(),
        capacity: ByteSize(286_749_479 * 512),
        read_position_us: 4500.0,
        write_position_us: 4900.0,
        mb_per_s: 72.0,
        usd_per_gib: 1.0,
        active_w: 12.0,
        source: "Maxtor Atlas 10K IV as in OP-FCL (FAST 2012), table 2".into(),
    }]
}

/// The drive of that name.
pub fn find(name: &str) -> Option<Drive> {
    catalogue().into_iter().find(|drive| drive.name == name)
}
