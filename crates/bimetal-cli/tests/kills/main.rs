//! Servers killed under the software that uses a device: a file system, databases, a guest's kernel.
//!
//! A store is served, exposed by nbdfuse or as a file of the server itself, and mounted as ext4 through a loop device.
//! A program works on it and records all data acknowledged as durable. At a random moment, drawn from a seed, only the
//! server gets `kill -9`: while it opens and recovers, while the file system is mounted and verified, in the middle of
//! the work, or while it closes. Then everything starts again by the same commands; the only manual step is to unmount
//! the server's file. The file system must be sound, and all recorded data must be present. A kill preserves the page
//! cache, so this tests incomplete commits and checkpoints. The crash tests of `bimetal-live` test the effect of a
//! power cut on files.
//!
//! `BIMETAL_KILLS` is the number of cycles with the file system over NBD. FUSE gets half of this number, each database
//! and guests a tenth; `make soak` sets a large number. `BIMETAL_KILLS_SEED` is the seed of the first store. The
//! written data and the moments of kills depend only on the seed. The progress of the work at a kill does not, so it
//! may take several runs to repeat a failure.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(feature = "ublk")]
mod bench;
#[path = "../common/mod.rs"]
mod common;
mod cycles;
mod files;
mod guest;
mod postgresql;
mod served;
mod sqlite;
mod transactions;
#[cfg(feature = "ublk")]
mod ublk;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use bimetal_core::scheme::SCHEMES;

use common::machine::{can_mount, has};
use cycles::{Totals, Work, kill_again_and_again};

/// Maximum number of cycles of a store.
const CYCLES_PER_STORE: u64 = 10;
/// Number of stores tested in parallel.
const STORES_AT_ONCE: usize = 2;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// Number of cycles with the file system over NBD.
fn kills() -> u64 {
    number("BIMETAL_KILLS").unwrap_or(4)
}

/// The scheme of the store with this seed: first a flash cache over a disk and a hybrid, so that even a few kills
/// include both; then all schemes.
fn scheme(seed: u64) -> &'static str {
    let first = ["opfcl", "chang"].into_iter();
    first.chain(SCHEMES.iter().map(|spec| spec.name)).nth(seed as usize % (SCHEMES.len() + 2)).unwrap()
}

/// Kills the servers of a number of stores, each with its own seed and scheme, for a total of `cycles` cycles.
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
    if can_mount() && guest::can_run("nbd") {
        kill_each(&format!("{attachment:?}"), |seed| guest::kill_under_a_guest(attachment, seed));
    }
}

#[cfg(feature = "ublk")]
#[test]
fn what_a_guest_has_synced_through_ublk_is_there() {
    if can_mount() && guest::can_run("ublk_drv") {
        kill_each("ublk", ublk::kill_in_a_guest);
    }
}

/// Only `make soak` has the one to three minutes that this takes.
#[cfg(feature = "ublk")]
#[test]
fn the_benchmark_of_ublk_runs_in_a_guest() {
    if number("BIMETAL_KILLS").is_some() && has(&["fio", "losetup", "taskset"]) && guest::can_run("ublk_drv") {
        bench::run_in_a_guest();
    }
}

/// Kills guests, each with its own seed. `kill` returns the number of synced files.
fn kill_each(what: &str, kill: impl Fn(u64) -> u64) {
    let start = Instant::now();
    let (first, guests) = (number("BIMETAL_KILLS_SEED").unwrap_or(0), kills().div_ceil(10));
    let synced: u64 = (first..first + guests).map(kill).sum();
    println!("{what}: {guests} guests, {synced} files, 0 lost, {:.0} s", start.elapsed().as_secs_f64());
}
