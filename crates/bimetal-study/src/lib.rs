//! Experiments over the core.

pub mod input;
