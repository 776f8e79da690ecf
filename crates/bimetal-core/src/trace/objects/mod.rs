//! Traces of caches: what was accessed is an object with an id and a size, and not a range of a disk.
//!
//! [`Objects`](super::Objects) says how they become addresses. Unless it is said otherwise each object has a *slot*: a place of its own, as large as the
//! object ever is in the trace, in whole sectors; slots follow each other in the order in which their objects appear. So an object stays
//! where it is, objects that appear together lie together, and no two share a sector.
//!
//! In traces of block devices the ids are addresses. Nothing in a file says so, and so the user does: `--objects sectors`.
//!
//! A deleted object is a trim of its slot. An access without a size is a miss, for which nothing was read.

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
