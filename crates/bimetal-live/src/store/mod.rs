//! The store: a device that survives a power cut at any moment.
//!
//! A scheme is a deterministic function of what the host asks of it. So its state is never written down as it changes:
//! the store keeps a checkpoint of it now and then, and a journal of what was asked since. Recovery replays the journal
//! through the same scheme. What the pages hold is in the files already, as blocks that were erased since the last
//! commit keep their places until the next.
//!
//! Layers, the lowest first: a module imports only from rows above its own, and in its row from what stands before it.
//!
//! | what | module |
//! |---|---|
//! | numbers, names, why not | `bytes`, `crc32c`, `sector_table`, `times`, `names`, `error` |
//! | what it is kept in | `backing`, `syncs`; `crash_backing` is one for tests |
//! | the forms of things | `event`, `frame`, `arena`, `label`, `write_buffer`; `limits`: how large they become; `state`, `bitmap`, `slots` |
//! | whose files they are | `superblock`, `files`; `existing`: what was there before; `directory`, the usual backing |
//! | bytes around a simulated medium | `region`s and a `home_disk`, `reading`, `places`, `media` |
//! | what survives | `batch`, `record`, `journal` |
//! | order of things | `engine`, `checkpoint`, `commit`, `upkeep` |
//! | reading without the scheme | `extract`, `map`, `scheme_entry` |
//! | a store | `create`, `open`, `waiters`, `device` |
//! | copies, and when things went wrong | `copy`, `check`, `rescue`, `dump` |
//! | crashes on purpose | `soak` |
//!
//! `docs/design/store-format.md` has the format byte by byte, and what each moment of a crash leaves.

mod arena;
pub mod backing;
mod batch;
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
