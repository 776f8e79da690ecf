//! Experiments over the core: traces from files, and schemes side by side on the same requests.

pub mod arrivals;
pub mod compare;
mod error;
pub mod figure;
pub mod generate;
pub mod input;
mod memory;
pub mod paper;
pub mod prepare;
pub mod sample;
pub mod writer;

pub use error::StudyError;
