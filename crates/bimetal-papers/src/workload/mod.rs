//! Stand-ins for the papers' traces, which are not public or not available here. Each has published characteristics of
//! its trace as targets. A program adds [`entries`] to the registry of workloads at its start to make them known.

mod bimodal;
mod bimodal_ext3;
mod bimodal_ntfs;
mod bursts;
mod exchange;
mod financial;
mod home;
mod iozone;
mod mixture;
mod msn;
mod pc;
mod phone;
mod rewrites;
mod search;
mod server;
mod wlaftl;

use std::ops::RangeInclusive;

use bimetal_core::profile::Profile;
use bimetal_core::request::SECTOR_BYTES;
use bimetal_core::workload::Entry;

macro_rules! entries {
    ($($module:ident),+ $(,)?) => {
        /// All workloads, for `bimetal_core::workload::add`.
        pub fn entries() -> Vec<Entry> {
            vec![$(Entry::of(&$module::SPEC, $module::generate)),+]
        }
    };
}

entries! {
    bimodal_ntfs,
    bimodal_ext3,
    phone,
    pc,
    iozone,
    mixture,
    wlaftl,
    financial,
    home,
    search,
    exchange,
    msn,
}

/// The length of a request in sectors, from bytes.
fn sectors(bytes: u64) -> u32 {
    u32::try_from(bytes / SECTOR_BYTES).unwrap_or(u32::MAX)
}

/// A share of a whole; `None` if the whole is 0.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Number and bytes of the profile's writes with `sectors` sectors.
fn writes_of(profile: &Profile, sectors: RangeInclusive<u32>) -> (u64, u64) {
    let classes = profile.sizes.iter().filter(|class| sectors.contains(&class.sectors));
    classes.fold((0, 0), |(writes, bytes), class| (writes + class.writes, bytes + class.write_bytes))
}
