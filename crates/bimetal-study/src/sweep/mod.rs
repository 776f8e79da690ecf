//! Sweeps: many devices under many traces, from a study file to reproducible rows.
//!
//! [`study`] reads the file, reports its errors and lists its points. A [`point`] is plain data, which an engine hands
//! to a worker: a local thread or a remote process. [`run`] turns a point into a [`row`]. [`schedule`] runs points on
//! threads and decodes each trace once. A [`worker`] runs the points that it receives. [`kept`] holds the rows of a
//! running study, and [`results`] writes them to a file, so that an interrupted study can continue. [`export`] writes
//! rows as tables, and [`pareto`] finds the best ones.

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
