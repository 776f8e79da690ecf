//! Names of the files of a store, but for that of its superblock.

/// The journal's file.
pub const JOURNAL: &str = "journal";
/// The file of the home disk's checksums.
pub const SUMS: &str = "disk.sums";
/// The file of the home disk, unless it is given.
pub const DISK: &str = "disk.image";

/// The file of a region, unless it is given.
pub fn region_file(region: usize) -> String {
    format!("region{region}.flash")
}

/// The checkpoints.
pub const CHECKPOINTS: [&str; 2] = ["checkpoint.0", "checkpoint.1"];

/// The map.
pub const MAP: &str = "map";
