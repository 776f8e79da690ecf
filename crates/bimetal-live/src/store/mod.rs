//! The store: a device that survives a power cut at any moment.
//!
//! A scheme is a deterministic function of what the host asks of it. So its state is never written down as it changes:
//! the store keeps a checkpoint of it now and then, and a journal of what was asked since. Recovery replays the journal
//! through the same scheme. What the pages hold is in the files already, as blocks that were erased since the last commit
//! keep their places until the next.
//!
//! | what | module |
//! |---|---|
//! | bytes around a simulated medium | `media`, of `region`s and a `home_disk` |
//! | pages in files | `frame`, `slots`, `write_buffer`, `reading` |
//! | what survives | `journal`, `syncs`, `times`, `checkpoint`, `superblock` |
//! | reading without the scheme, copies | `map`, `copy` |
//! | whose files they are | `files`, `label`; `existing`: what was there before |
//! | order of things | `engine`, `commit`, `upkeep`, `waiters`, `create`, `open` |
//! | when things went wrong | `check`, `rescue`, `dump` |
//! | what it is kept in | `backing`: `directory`, or `crash_backing` |
//!
//! `docs/design/store-format.md` has the format byte by byte, and what each moment of a crash leaves.

mod arena;
pub mod backing;
mod bitmap;
mod bytes;
mod check;
mod checkpoint;
mod commit;
mod copy;
#[cfg(feature = "soak")]
pub mod crash_backing;
mod crc32c;
mod create;
mod device;
mod directory;
mod dump;
mod engine;
mod error;
mod event;
mod existing;
mod files;
mod frame;
mod home_disk;
mod journal;
mod label;
mod map;
mod media;
mod open;
mod reading;
mod region;
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
pub(crate) use copy::read_range;
pub use copy::{NewStore, Opened, Read, Source, Take, source};
pub use create::{CreateOptions, create};
pub use device::{Status, Store};
pub use directory::{Directory, image};
pub use dump::{DumpOptions, dump};
pub use engine::{Counts, Limits};
pub(crate) use error::InFile;
pub use error::StoreError;
pub use map::Mapped;
pub use open::{OpenOptions, Recovery};
pub use rescue::{Parts, Rescued, rescue};
pub use scheme_entry::{StoredScheme, scheme_entry};
pub use superblock::Power;
pub use times::Times;
