//! What must hold of parts, of schemes on whole devices and of traces, in one program: the schemes are compiled for it once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chang;
mod combo;
mod controller;
mod csal;
mod handles;
mod hyssd;
mod memory;
mod midas;
mod opfcl;
mod papers;
mod pslc;
mod queueing;
mod separation;
#[path = "../support/mod.rs"]
mod support;
mod traces;
mod wlaftl;
mod write_amplification;
