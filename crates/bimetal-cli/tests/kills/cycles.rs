//! Kills and starts a server repeatedly.

use std::fs::{self, Permissions};
use std::ops::AddAssign;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bimetal_core::part::random::{below, unit};

use crate::common::Bench;
use crate::served::{Disk, FrontEnd, Server};

/// Work on a file system, with a record of the data acknowledged as durable.
pub trait Work: Send {
    /// Size of the device.
    const CAPACITY: &str;
    /// Longest time of work before the server is killed.
    const SPAN: Duration;
    /// Access of the file system to the server.
    const FRONT_END: FrontEnd = FrontEnd::Nbd;

    /// Prepares the work on an empty file system, durably.
    fn prepare(&mut self, fs: &Path) -> Result<(), String>;

    /// Verifies that all recorded data are present. Returns their number. The record is unchanged if this fails.
    fn verify(&mut self, fs: &Path) -> Result<u64, String>;

    /// Works until an error, and stops everything that it has started. Returns the error.
    ///
    /// Data acknowledged when the server no longer `lives` may not be durable: a file system whose journal was aborted
    /// by errors of its device can report files as synced. (ext4 of Linux 6.18 does, with two threads, on any killed
    /// NBD server.)
    fn work(&mut self, fs: &Path, lives: &(dyn Fn() -> bool + Sync)) -> String;

    /// Number of acknowledgements of durable data.
    fn acknowledged(&self) -> u64;
}

/// Counts of a test.
#[derive(Debug, Default)]
pub struct Totals {
    /// Runs of a server with the file system mounted, or being mounted.
    pub cycles: u64,
    /// Servers that got `kill -9` while they opened the store ...
    pub killed_opening: u64,
    /// ... while the file system was mounted, checked and verified, ...
    pub killed_mounting: u64,
    /// ... in the middle of the work, ...
    pub killed_working: u64,
    /// ... and while they stopped.
    pub killed_stopping: u64,
    /// Acknowledgements of durable data.
    pub acknowledged: u64,
    /// Recorded data found unchanged, in all verifications.
    pub verified: u64,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, more: Self) {
        self.cycles += more.cycles;
        self.killed_opening += more.killed_opening;
        self.killed_mounting += more.killed_mounting;
        self.killed_working += more.killed_working;
        self.killed_stopping += more.killed_stopping;
        self.acknowledged += more.acknowledged;
        self.verified += more.verified;
    }
}

/// Durations without a kill. Moments of kills are fractions of them.
struct Durations {
    opening: Duration,
    mounting: Duration,
    stopping: Duration,
}

/// Moment at which a running server is killed: a fraction of a duration.
#[derive(Clone, Copy)]
enum Moment {
    /// While the file system is mounted, checked and verified.
    Mounting(f64),
    /// In the middle of the work.
    Working(f64),
    /// After a fraction of the work it is asked to stop, and killed while it stops.
    Stopping(f64, f64),
}

impl Moment {
    fn draw(random: &mut u64) -> Self {
        match below(random, 4) {
            0 => Self::Mounting(unit(random)),
            1 => Self::Stopping(unit(random), unit(random)),
            _ => Self::Working(unit(random)),
        }
    }
}

/// Kills the server of a new store `cycles` times, and then verifies all data.
pub fn kill_again_and_again<W: Work>(scheme: &str, seed: u64, cycles: u64, work: &mut W) -> Result<Totals, String> {
    let bench = Bench::new();
    // Servers of databases are not root.
    fs::set_permissions(bench.path(""), Permissions::from_mode(0o755)).unwrap();
    bench.succeed(&["create", "s", "--scheme", scheme, "--capacity", W::CAPACITY]);
    let mut random = seed ^ 0x6b69_6c6c_2d39;
    let mut totals = Totals::default();
    let mut durations = begin(&bench, work)?;
    for cycle in 0..cycles {
        kill_once(&bench, &mut random, work, &mut durations, &mut totals)
            .map_err(|what| format!("cycle {cycle}: {what}"))?;
        totals.cycles += 1;
    }
    let mut server = Server::start(&bench, W::FRONT_END.options());
    server.wait_until_served()?;
    let mut disk = Disk::attach(&bench, W::FRONT_END)?;
    disk.mount_checked()?;
    totals.verified += work.verify(&disk.fs)?;
    drop(disk);
    server.terminate();
    server.wait()?;
    bench.succeed(&["check", "s"]);
    totals.acknowledged = work.acknowledged();
    Ok(totals)
}

/// Makes the file system, and prepares the work.
fn begin<W: Work>(bench: &Bench, work: &mut W) -> Result<Durations, String> {
    let start = Instant::now();
    let mut server = Server::start(bench, W::FRONT_END.options());
    server.wait_until_served()?;
    let opening = start.elapsed();
    let mut disk = Disk::attach(bench, W::FRONT_END)?;
    disk.format()?;
    disk.mount()?;
    work.prepare(&disk.fs)?;
    drop(disk);
    let (mounting, stop) = (start.elapsed(), Instant::now());
    server.terminate();
    server.wait()?;
    Ok(Durations { opening, mounting, stopping: stop.elapsed() })
}

/// One run of a server, after a random number of runs that are killed before it serves.
fn kill_once<W: Work>(
    bench: &Bench,
    random: &mut u64,
    work: &mut W,
    durations: &mut Durations,
    totals: &mut Totals,
) -> Result<(), String> {
    while below(random, 3) == 0 {
        let mut server = Server::start(bench, W::FRONT_END.options());
        server.kill_after(durations.opening.mul_f64(unit(random)));
        server.wait()?;
        totals.killed_opening += 1;
    }
    let moment = Moment::draw(random);
    let start = Instant::now();
    let mut server = Server::start(bench, W::FRONT_END.options());
    server.wait_until_served()?;
    durations.opening = start.elapsed();
    if let Moment::Mounting(part) = moment {
        server.kill_after(durations.mounting.mul_f64(part));
    }
    match live(bench, &mut server, moment, work, durations) {
        Ok(verified) => totals.verified += verified,
        // The record is unchanged: if data are missing, the next verification finds that, too.
        Err(_) if server.is_killed() => {}
        Err(what) => {
            let log = fs::read_to_string(bench.path("log")).unwrap_or_default();
            return Err(format!("{what}\nthe server said:\n{log}"));
        }
    }
    server.wait()?;
    match moment {
        Moment::Mounting(_) => totals.killed_mounting += 1,
        Moment::Working(_) => totals.killed_working += 1,
        Moment::Stopping(..) => totals.killed_stopping += 1,
    }
    Ok(())
}

/// Verifies and works while the server runs. Returns the number of verified data.
fn live<W: Work>(
    bench: &Bench,
    server: &mut Server,
    moment: Moment,
    work: &mut W,
    durations: &mut Durations,
) -> Result<u64, String> {
    let start = Instant::now();
    let mut disk = Disk::attach(bench, W::FRONT_END)?;
    disk.mount_checked()?;
    let verified = work.verify(&disk.fs)?;
    if !server.is_killed() {
        durations.mounting = start.elapsed();
    }
    let fs = &disk.fs;
    let (lifeline, is_asked_to_stop) = (server.lifeline(), AtomicBool::new(false));
    let lives = || lifeline.lives() && !is_asked_to_stop.load(Ordering::SeqCst);
    thread::scope(|scope| {
        let working = scope.spawn(|| work.work(fs, &lives));
        match moment {
            Moment::Mounting(_) => {}
            Moment::Working(part) => server.kill_after(W::SPAN.mul_f64(part)),
            Moment::Stopping(part, of_stopping) => {
                thread::sleep(W::SPAN.mul_f64(part));
                is_asked_to_stop.store(!working.is_finished(), Ordering::SeqCst);
                server.kill_after(durations.stopping.mul_f64(of_stopping));
                server.terminate();
            }
        }
        let what = working.join().unwrap();
        if is_asked_to_stop.load(Ordering::SeqCst) || server.is_killed() {
            Ok(verified)
        } else {
            Err(format!("the work ended before the server: {what}"))
        }
    })
}
