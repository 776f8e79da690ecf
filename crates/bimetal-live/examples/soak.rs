//! Long crash test of stores: `make soak`, or
//! `cargo run --release --package bimetal-live --example soak -- CRASHES [SEED]`.
//!
//! Tests every scheme in turn, with one thread for each processor, until CRASHES crashes have been survived. The first
//! failure ends the test, with instructions to repeat it.

use std::env;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bimetal_core::scheme::SCHEMES;
use bimetal_live::store::soak::{Tally, crash_run};

/// Interval of progress reports.
const REPORT: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let arguments: Result<Vec<u64>, _> = env::args().skip(1).map(|argument| argument.parse()).collect();
    let (crashes, first) = match arguments.as_deref() {
        Ok([]) => (1_000_000, 0),
        Ok(&[crashes]) => (crashes, 0),
        Ok(&[crashes, seed]) => (crashes, seed),
        _ => {
            eprintln!("usage: soak [CRASHES [SEED]]");
            return ExitCode::from(2);
        }
    };
    let start = Instant::now();
    let (next, total) = (AtomicU64::new(0), Mutex::new(Ok(Tally::default())));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let (seed, spec) = (first + number / SCHEMES.len() as u64, SCHEMES[number as usize % SCHEMES.len()]);
            let ran = crash_run(spec.name, seed);
            let Ok(mut total) = total.lock() else { return };
            match (&mut *total, ran) {
                (Ok(tally), Ok(more)) => *tally += more,
                (Ok(_), Err(failure)) => *total = Err(failure),
                (Err(_), _) => {}
            }
            if !matches!(&*total, Ok(tally) if tally.crashes < crashes) {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..thread::available_parallelism().map_or(1, usize::from)).map(|_| scope.spawn(work)).collect();
        let mut said = Instant::now();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(100));
            if said.elapsed() >= REPORT
                && let Ok(total) = total.lock()
                && let Ok(tally) = &*total
            {
                said = Instant::now();
                eprintln!("{} of {crashes} crashes in {:.0} s", tally.crashes, start.elapsed().as_secs_f64());
            }
        }
    });
    match total.into_inner() {
        Ok(Ok(tally)) => {
            println!("{tally:?}: nothing lost, in {:.0} s", start.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Ok(Err(failure)) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
        Err(_) => ExitCode::FAILURE,
    }
}
