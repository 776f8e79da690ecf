//! Servers killed under what people keep on a device: a file system, databases, a guest's kernel.
//!
//! A store is served, exposed by nbdfuse or as a file of the server's own, and mounted as ext4 through a loop device. Something
//! works on it and notes down what it was told is durable. At a moment that is drawn from a seed the server, and nothing else, gets
//! `kill -9`: while it opens and recovers, while the file system is mounted and looked at, in the middle of the work, while it
//! closes. Then everything starts again by the same commands, with nothing to do by hand but to unmount the server's file; the file
//! system must be sound and all that was noted down must be there. A kill leaves the page cache, so that what is tried is the order
//! of things: commits and checkpoints that are half done. What a power cut does to files is tried by the crash tests of
//! `bimetal-live`.
//!
//! `BIMETAL_KILLS` is the number of cycles under the file system over NBD, half of it that through FUSE, and a tenth of it that of
//! each database and of guests; `make soak` has many. `BIMETAL_KILLS_SEED` is the seed of the first store. What is written and when
//! is killed depends on the seed alone; how far the work has come by then does not, so that a failure may need some tries to come
//! again.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod cycles;
mod files;
mod guest;
mod postgresql;
mod served;
mod sqlite;
mod transactions;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use bimetal_core::scheme::SCHEMES;

use common::machine::{can_mount, has};
use cycles::{Totals, Work, kill_again_and_again};

/// Cycles that a store lives through, at most.
const CYCLES_PER_STORE: u64 = 10;
/// Stores that are killed at once.
const STORES_AT_ONCE: usize = 2;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// Cycles under the file system.
fn kills() -> u64 {
    number("BIMETAL_KILLS").unwrap_or(4)
}

/// The scheme of the store of that seed: first a cache before a disk and a hybrid, so that few kills have both; then all.
fn scheme(seed: u64) -> &'static str {
    let first = ["opfcl", "chang"].into_iter();
    first.chain(SCHEMES.iter().map(|spec| spec.name)).nth(seed as usize % (SCHEMES.len() + 2)).unwrap()
}

/// Kills the servers of as many stores as the cycles need, each of a seed and a scheme of its own.
fn kill_stores<W: Work>(test: &str, cycles: u64, at_once: usize, make: impl Fn(u64) -> W + Sync) {
    let start = Instant::now();
    let per_store = cycles.div_ceil(at_once as u64).clamp(1, CYCLES_PER_STORE);
    let stores = cycles.div_ceil(per_store);
    let first = number("BIMETAL_KILLS_SEED").unwrap_or(0);
    let next = AtomicU64::new(0);
    let one_after_another = || -> Result<Totals, String> {
        let mut totals = Totals::default();
        loop {
            let store = next.fetch_add(1, Ordering::Relaxed);
            if store >= stores {
                return Ok(totals);
            }
            let (seed, cycles) = (first + store, per_store.min(cycles - store * per_store));
            let killed = kill_again_and_again(scheme(seed), seed, cycles, &mut make(seed));
            totals += killed.map_err(|what| {
                next.store(stores, Ordering::Relaxed);
                let kills = kills();
                format!(
                    "`{}`, seed {seed}, {what}\nrepeat with: BIMETAL_KILLS_SEED={seed} BIMETAL_KILLS={kills} \
                     cargo test -p bimetal-cli --test kills {test}",
                    scheme(seed)
                )
            })?;
            if store % 5 == 4 {
                eprintln!("{test}: {} of {stores} stores in {:.0} s", store + 1, start.elapsed().as_secs_f64());
            }
        }
    };
    let mut totals = Totals::default();
    for done in thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(one_after_another)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    }) {
        totals += done.unwrap_or_else(|what| panic!("{what}"));
    }
    assert!(totals.cycles == cycles && totals.acknowledged > 0 && totals.verified > 0, "{totals:?}");
    println!("{test}: {totals:?}, 0 lost, {stores} stores, {:.0} s", start.elapsed().as_secs_f64());
}

#[test]
fn files_that_were_synced_are_there() {
    if can_mount() {
        kill_stores("files_that_were_synced_are_there", kills(), STORES_AT_ONCE, files::Files::<false>::new);
    }
}

#[test]
fn files_that_were_synced_through_fuse_are_there() {
    if can_mount() {
        let kills = kills().div_ceil(2);
        kill_stores("files_that_were_synced_through_fuse_are_there", kills, STORES_AT_ONCE, files::Files::<true>::new);
    }
}

#[test]
fn transactions_of_sqlite_are_there() {
    if can_mount() && has(&["sqlite3"]) {
        kill_stores("transactions_of_sqlite_are_there", kills().div_ceil(10), 1, sqlite::Sqlite::new);
    }
}

#[test]
fn transactions_of_postgresql_are_there() {
    if can_mount() && postgresql::can_run() {
        kill_stores("transactions_of_postgresql_are_there", kills().div_ceil(10), 1, postgresql::Postgresql::new);
    }
}

#[test]
fn what_a_guest_has_synced_over_nbd_is_there() {
    kill_guests(guest::Attachment::Nbd);
}

#[test]
fn what_a_guest_has_synced_over_vhost_user_is_there() {
    kill_guests(guest::Attachment::VhostUser);
}

fn kill_guests(attachment: guest::Attachment) {
    if can_mount() && guest::can_run() {
        let start = Instant::now();
        let (first, guests) = (number("BIMETAL_KILLS_SEED").unwrap_or(0), kills().div_ceil(10));
        let synced: u64 = (first..first + guests).map(|seed| guest::kill_under_a_guest(attachment, seed)).sum();
        println!("{attachment:?}: {guests} guests, {synced} files, 0 lost, {:.0} s", start.elapsed().as_secs_f64());
    }
}
