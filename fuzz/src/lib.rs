//! What is fuzzed: functions from any bytes, which must not panic, hang or take memory without bound.
//!
//! libFuzzer calls them from `targets/`; the tests run them over the corpus and over mutations of it.

mod nbd;
mod store;

pub use nbd::nbd;
pub use store::store;
