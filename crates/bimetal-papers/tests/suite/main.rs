//! What stands in for the papers' traces, through the registry of workloads, and what schemes make of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod wlaftl;
mod workloads;

use std::sync::Once;

use bimetal_core::request::Request;
use bimetal_core::workload;

/// Adds the stand-ins to the registry, as a program does at its start.
fn add_stand_ins() {
    static ADDED: Once = Once::new();
    ADDED.call_once(|| workload::add(bimetal_papers::workload::entries()).unwrap());
}

/// The requests of a workload of that name.
fn generated(name: &str, settings: &[(&str, &str)]) -> Vec<Request> {
    add_stand_ins();
    let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    workload::build(name, &settings, 1).unwrap().collect()
}
