//! Experiments over the core: traces from files, schemes side by side on the same requests, reports of the results.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

pub mod advise;
pub mod arrivals;
#[cfg(feature = "arrow")]
mod arrow_trace;
pub mod catalogue;
pub mod characteristics;
pub mod columns;
pub mod command;
pub mod compare;
pub mod describe;
pub mod diff;
pub mod drives;
mod error;
pub mod export;
pub mod figure;
pub mod frame;
pub mod generate;
pub mod headline;
pub mod html;
pub mod input;
pub mod listing;
mod memory;
pub mod number;
#[cfg(feature = "parquet")]
mod parquet_trace;
pub mod prepare;
pub mod ranking;
mod read_ahead;
pub mod replays;
pub mod sample;
pub mod scale;
pub mod sweep;
#[cfg(any(feature = "arrow", feature = "parquet"))]
mod table_file;
pub mod verdict;
pub mod writer;

pub use error::StudyError;
