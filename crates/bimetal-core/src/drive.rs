//! The drive catalogue: hard disks, their access times and sources.
//!
//! A drive has two models of time. The papers' constant model adds a mean time to reach the first sector to the
//! transfer; the mechanical model follows arm and platters ([`Mechanism`]).

mod mechanics;
mod parts;

use serde::{Deserialize, Serialize};

use crate::units::{ByteSize, Nanos};

pub use mechanics::{Mechanics, Mechanism};

/// Model of access times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// The transfer, and a constant time to reach the first sector unless the access continues the previous one.
    #[default]
    Constant,
    /// Seek, rotation and transfer, from the drive's [`Mechanics`].
    Mechanical,
}

/// The order in which queued writes are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// The next one towards the end of the drive, then again from the beginning (C-LOOK).
    #[default]
    Elevator,
    /// First come, first served.
    Fcfs,
}

/// A hard disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// Name in device files and on the command line.
    pub name: String,
    /// Capacity as sold.
    #[schemars(with = "String")]
    pub capacity: ByteSize,
    /// Model of its access times.
    #[serde(default)]
    pub model: Model,
    /// Mean time to reach the first sector of a read, in microseconds: the papers' `C_D_RPOS`.
    pub read_position_us: f64,
    /// Mean time to reach the first sector of a write, in microseconds: the papers' `C_D_WPOS`.
    pub write_position_us: f64,
    /// Rate of consecutive sectors in MB/s (10^6 bytes): the papers' `B`.
    pub mb_per_s: f64,
    /// Destages that the controller may hold for it while it works for the host; 0: the host waits for each.
    #[serde(default = "default_queue")]
    pub queue: u32,
    /// The order in which these are served.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// Price per GiB in US dollars.
    pub usd_per_gib: f64,
    /// Power during accesses, in watts.
    pub active_w: f64,
    /// Power while it only spins, in watts.
    #[serde(default)]
    pub idle_w: f64,
    /// Arm and platters; a drive without them has only the constant model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanics: Option<Mechanics>,
    /// Where the figures come from, and which of them are derived.
    pub source: String,
}

/// Number of destages that OP-FCL's authors collect and sort by address before they go to the disk.
const QUEUE: u32 = 128;
/// Longest queue: the next write is searched among all that wait.
pub const QUEUE_MAX: u32 = 4096;

fn default_queue() -> u32 {
    QUEUE
}

impl Drive {
    /// Transfer time of consecutive bytes in the constant model, without the time to reach the first.
    pub fn transfer(&self, bytes: u64) -> Nanos {
        Nanos((bytes as f64 * 1000.0 / self.mb_per_s).round() as u64)
    }
}

/// Every drive of the catalogue.
///
/// Prices are per GiB in US dollars; see the sources, and override them. Power is that of the whole drive, during
/// accesses and while it only spins.
pub fn catalogue() -> Vec<Drive> {
    parts::drives()
}

/// The drive with this name.
pub fn find(name: &str) -> Option<Drive> {
    catalogue().into_iter().find(|drive| drive.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::SECTOR_BYTES;

    #[test]
    fn every_drive_is_complete() {
        let drives = catalogue();
        for drive in &drives {
            for figure in [drive.read_position_us, drive.write_position_us, drive.mb_per_s, drive.usd_per_gib] {
                assert!(figure > 0.0 && figure.is_finite(), "{}", drive.name);
            }
            assert!(drive.idle_w > 0.0 && drive.active_w >= drive.idle_w, "{}", drive.name);
            assert!(drive.source.len() > 20 && !drive.source.contains("  "), "{}", drive.name);
            assert!(drive.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
            assert_eq!(drives.iter().filter(|other| other.name == drive.name).count(), 1, "{}", drive.name);
            assert_eq!(find(&drive.name).as_ref(), Some(drive));
            let mechanics = drive.mechanics.as_ref().unwrap();
            mechanics.check().unwrap();
            let tracks_bytes = Mechanism::new(mechanics).sectors() * SECTOR_BYTES;
            let capacity = drive.capacity.0;
            assert!((capacity..capacity + capacity / 200).contains(&tracks_bytes), "{}: {tracks_bytes}", drive.name);
        }
        assert_eq!(find("no-such-drive"), None);
    }
}
