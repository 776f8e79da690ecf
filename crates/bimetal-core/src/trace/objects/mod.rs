//! Traces of caches. An access goes to an object with an id and a size, not to a range of a disk.
//!
//! [`Objects`](super::Objects) is the mapping to addresses. By default each object has a *slot*: its own place, as
//! large as the object ever is in the trace, in whole sectors. Slots follow each other in the order in which their
//! objects appear. So an object keeps its address, objects that appear together are adjacent, and no two share a
//! sector.
//!
//! In traces of block devices the ids are addresses. No file states that, so the user has to: `--objects sectors`.
//!
//! A deletion becomes a trim of the object's slot. An access without a size is a miss, which reads nothing.

mod cachelib;
mod collector;
mod csv;
mod lcs;
mod oracle_general;
mod record;

pub use cachelib::FORMAT as CACHELIB;
pub use csv::FORMAT as LIBCACHESIM_CSV;
pub use lcs::FORMAT as LCS;
pub use oracle_general::FORMAT as ORACLE_GENERAL;
