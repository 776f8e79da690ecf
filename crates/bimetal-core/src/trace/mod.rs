//! Trace decoding.
