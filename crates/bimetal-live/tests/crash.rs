//! Every registered scheme on a backing that loses, reorders and tears what was not synced, that fails, and that decays.
//!
//! These are shares of what `soak` runs for long. A failure says how it is repeated.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Instant;

use bimetal_core::scheme::SCHEMES;
use bimetal_live::store::soak;

#[test]
fn every_scheme_is_after_a_crash_as_a_commit_left_it() {
    let start = Instant::now();
    let mut total = soak::Tally::default();
    for spec in SCHEMES {
        for seed in 0..10 {
            total += soak::crash_run(spec.name, seed).unwrap();
        }
    }
    println!("{total:?} in {:?}", start.elapsed());
    assert!(total.crashes > 2000 && total.in_recovery > 300 && total.flushes > 3000, "{total:?}");
}

#[test]
fn every_short_sequence_survives_a_crash_at_every_operation() {
    let start = Instant::now();
    let mut total = soak::Tally::default();
    let share = soak::Share { operations: 40, every_loss: false };
    for (spec, seed) in SCHEMES.iter().zip(1..) {
        total += soak::exhaustive(spec.name, 0, 3, share).unwrap();
        total += soak::exhaustive(spec.name, seed, 3, share).unwrap();
    }
    println!("{total:?} in {:?}", start.elapsed());
}

#[test]
fn a_file_that_fails_makes_the_device_read_only_and_loses_nothing() {
    let start = Instant::now();
    let mut total = soak::Faults::default();
    for (spec, first) in SCHEMES.iter().zip(0..) {
        total += soak::failing_files(spec.name, 14, first).unwrap();
    }
    println!("{total:?} in {:?}", start.elapsed());
}

#[test]
fn a_flipped_bit_is_found_and_never_returned() {
    let start = Instant::now();
    let mut total = soak::Faults::default();
    for (spec, seed) in SCHEMES.iter().zip(0..) {
        total += soak::flipped_bits(spec.name, seed, 10).unwrap();
    }
    println!("{total:?} in {:?}", start.elapsed());
    assert!(total.refusals > 0 && total.unreadable > 0, "{total:?}");
}
