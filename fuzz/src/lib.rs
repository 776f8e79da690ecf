//! The fuzzed functions. They take arbitrary bytes and must not panic, hang or allocate unbounded memory.
//!
//! libFuzzer calls them from `targets/`; the tests run them over the corpus and over mutations of it.

mod nbd;
mod store;

pub use nbd::nbd;
pub use store::store;
