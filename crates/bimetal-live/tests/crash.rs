//! Every registered scheme on a backing that loses, reorders and tears what was not synced.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bimetal_core::scheme::SCHEMES;
use bimetal_live::store::soak;

#[test]
fn every_scheme_is_after_a_crash_as_a_commit_left_it() {
    let start = std::time::Instant::now();
    let mut total = soak::Tally::default();
    for spec in SCHEMES {
        for seed in 0..10 {
            total += soak::crash_run(spec.name, seed).unwrap();
        }
    }
    println!("{total:?} in {:?}", start.elapsed());
}
