//! The store: a block device in files whose data survive a power cut at any moment.
//!
//! A scheme is a deterministic function of the requests that it serves. So its state is not written at every change:
//! the store writes a checkpoint of the state from time to time, and a journal of the requests since that checkpoint.
//! Recovery replays the journal through the same scheme. The page data are already in the region files, because the
//! slots of blocks that were erased since the last commit are not reused before the next commit.
//!
//! Layers, lowest first. A module imports only from rows above its own and, within its row, from modules listed before
//! it.
//!
//! | layer | modules |
//! |---|---|
//! | numbers, names, errors | `bytes`, `crc32c`, `sector_table`, `times`, `names`, `error` |
//! | files and their syncs | `backing`, `syncs`, `descriptions`; `crash_backing` is a backing for tests |
//! | formats, tables | `event`, `frame`, `arena`, `label`, `write_buffer`, `limits`; `state`, `bitmap`, `slots` |
//! | files of a store | `superblock`, `files`; `existing`: earlier contents of a file; `directory`, the usual backing |
//! | bytes around a simulated medium | `region`s and a `home_disk`, `reading`, `places`, `media` |
//! | journal | `batch`, `record`, `journal` |
//! | ordering of events, commits and checkpoints | `engine`, `checkpoint`, `commit`, `upkeep` |
//! | reading without the scheme | `extract`, `map`, `scheme_entry` |
//! | a store | `create`, `open`, `waiters`, `device` |
//! | copies, growth, checks and rescue | `copy`, `replace`, `check`, `rescue`, `dump` |
//! | crash tests | `soak` |
//!
//! `docs/design/store-format.md` specifies the format byte by byte, and the state that a crash leaves at each moment.

mod arena;
pub mod backing;
mod batch;
mod bitmap;
pub(crate) mod bytes;
mod check;
mod checkpoint;
mod commit;
mod copy;
#[cfg(feature = "soak")]
pub mod crash_backing;
mod crc32c;
mod create;
mod descriptions;
mod device;
mod directory;
mod dump;
mod engine;
mod error;
mod event;
mod existing;
mod extract;
mod files;
mod frame;
mod home_disk;
mod journal;
mod label;
mod limits;
mod map;
mod media;
mod names;
mod open;
mod places;
mod reading;
mod record;
mod region;
pub mod replace;
mod rescue;
mod scheme_entry;
mod sector_table;
mod slots;
#[cfg(feature = "soak")]
pub mod soak;
mod state;
mod superblock;
mod syncs;
mod times;
mod upkeep;
mod waiters;
mod write_buffer;

pub(crate) use bytes::{u32_at, u64_at};
pub use check::{CheckReport, check};
pub use copy::{NewStore, Opened, Source, source};
pub use create::{CreateOptions, create};
pub use device::{Status, Store};
pub use directory::{Directory, image};
pub use dump::{DumpOptions, dump};
pub use engine::Counts;
pub(crate) use error::InFile;
pub use error::StoreError;
pub(crate) use extract::read_range;
pub use extract::{Read, Take};
pub use files::OpenOptions;
pub use limits::Limits;
pub use map::Mapped;
pub use open::Recovery;
pub use rescue::{Parts, Rescued, rescue};
pub use scheme_entry::{StoredScheme, scheme_entry};
pub use superblock::{Contents, Power};
pub use times::Times;
