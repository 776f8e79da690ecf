//! Names of a store's files, except the superblock's.

/// The journal's file.
pub const JOURNAL: &str = "journal";
/// The file with the checksums of the home disk.
pub const SUMS: &str = "disk.sums";
/// The file of the home disk, unless the user names another one.
pub const DISK: &str = "disk.image";

/// The file of a region, unless the user names another one.
pub fn region_file(region: usize) -> String {
    format!("region{region}.flash")
}

/// The files of the two checkpoints.
pub const CHECKPOINTS: [&str; 2] = ["checkpoint.0", "checkpoint.1"];

/// The file of the neutral map.
pub const MAP: &str = "map";
