//! Sweeps: many devices under many traces, from a study file to rows that can be repeated.
//!
//! [`study`] reads the file, finds what is wrong in it and lists its points. A [`point`] is plain data: it is what an engine
//! hands to a worker, whether that is a thread here or a process elsewhere, and [`run`] makes a [`row`] of it.
//! [`schedule`] runs points on threads, with each trace decoded once; a [`worker`] those that it is sent. [`kept`] has the rows
//! as they come, [`results`] keeps them in a file, so that a study that was interrupted goes on. [`export`] writes rows as
//! tables, [`pareto`] finds the best of them.

pub mod export;
pub mod failure;
pub mod kept;
pub mod label;
pub mod pareto;
#[cfg(feature = "parquet")]
pub mod parquet_file;
pub mod point;
pub mod results;
pub mod row;
pub mod run;
pub mod schedule;
pub mod source;
pub mod study;
mod values;
pub mod worker;
