//! Tests of parts, of every scheme in the registry, of single schemes on whole devices, and of traces. They are one
//! program, so that the schemes are compiled for [`Checked`](bimetal_core::media::Checked) media only once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chang;
mod combo;
mod controller;
mod csal;
mod handles;
mod hyssd;
mod memory;
mod midas;
mod model;
mod opfcl;
mod papers;
mod pslc;
mod queueing;
mod registry;
mod separation;
mod sources;
mod support;
mod traces;
mod wlaftl;
mod write_amplification;
