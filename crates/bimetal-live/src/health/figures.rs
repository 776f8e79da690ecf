//! Measurements of the service itself, not of the modelled device: real times, connections, memory, free space.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::measured::{Meter, Operation, OperationFigures};
use crate::nbd::{ConnectionFigures, Tally};

/// Bytes of a block, the unit of a file's allocated space (`st_blocks`).
const BLOCK_BYTES: u64 = 512;

/// Figures of a service at one time. Counts begin when it starts.
#[derive(Clone, Debug)]
pub struct ServiceFigures {
    /// Every operation, used or not.
    pub operations: [OperationFigures; Operation::ALL.len()],
    /// Clients.
    pub connections: ConnectionFigures,
    /// Resident memory of the process in bytes, if the system reports it.
    pub resident_bytes: Option<u64>,
    /// Space in the store's file system, if the system reports it.
    pub room: Option<Room>,
}

/// Space in the file system of a store's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that this user may still write.
    pub free_bytes: u64,
    /// Bytes that the store's files there may still allocate; 0 unless the store is sparse.
    pub unallocated_bytes: u64,
}

impl Room {
    /// The space for a store in this directory, whose files take `full_bytes` when the whole store is in use. Regions and
    /// disks elsewhere are not included.
    fn of(directory: &Path, full_bytes: u64) -> Option<Self> {
        let system = rustix::fs::statvfs(directory).ok()?;
        let files = std::fs::read_dir(directory).ok()?.filter_map(|entry| entry.ok()?.metadata().ok());
        let allocated: u64 = files.filter(std::fs::Metadata::is_file).map(|file| file.blocks() * BLOCK_BYTES).sum();
        Some(Self {
            free_bytes: system.f_bavail.saturating_mul(system.f_frsize),
            unallocated_bytes: full_bytes.saturating_sub(allocated),
        })
    }
}

/// Sources of the figures of a service.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Directory of the store.
    pub directory: PathBuf,
    /// Bytes of its files when the whole store is in use.
    pub full_bytes: u64,
    /// Requests.
    pub meter: Arc<Meter>,
    /// Connections.
    pub tally: Arc<Tally>,
}

impl Sources {
    /// The figures now.
    pub fn now(&self) -> ServiceFigures {
        ServiceFigures {
            operations: self.meter.figures(),
            connections: self.tally.figures(),
            resident_bytes: resident_bytes(),
            room: Room::of(&self.directory, self.full_bytes),
        }
    }
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_the_files_of_a_sparse_store_lack() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let unallocated = || Room::of(folder.path(), 64 << 20).unwrap().unallocated_bytes;
        let before = unallocated();
        // A file that grows has neither its length nor its blocks yet.
        std::fs::File::create(folder.path().join("sparse")).unwrap().set_len(1 << 20).unwrap();
        assert_eq!(unallocated(), before);
        std::fs::write(folder.path().join("full"), vec![1; 1 << 20]).unwrap();
        assert_eq!(before - unallocated(), 1 << 20);
        let room = Room::of(folder.path(), 0).unwrap();
        assert!(room.free_bytes > 0 && room.unallocated_bytes == 0);
        assert_eq!(Room::of(&folder.path().join("nowhere"), 0), None);
    }

    #[test]
    fn the_process_has_memory() {
        assert!(resident_bytes().unwrap() > 1 << 20);
    }
}
