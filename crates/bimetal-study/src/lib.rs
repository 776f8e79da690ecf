//! Experiments over the core.
