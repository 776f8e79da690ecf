//! Two servers measured in turns with the same client.

use std::io;
use std::sync::Arc;

use bimetal_live::health::Health;
use bimetal_live::store::Store;

use super::client::Client;
use super::servers::Served;
use super::workload::{Requests, Workload};
use crate::benchmarked::Row;
use crate::failure::Failure;
use crate::progress::StepBar;

/// Servers on equivalent backing.
pub(super) struct Pair<'a> {
    pub(super) backing: String,
    pub(super) ours: &'a Served,
    pub(super) theirs: &'a Served,
    /// The store behind our server, if there is one.
    pub(super) store: Option<&'a Arc<Store>>,
}

impl<'a> Pair<'a> {
    /// A store that is not full, and a server of a file in the same directory.
    pub(super) fn of_files(ours: &'a Served, theirs: &'a Served, store: &'a Arc<Store>) -> Self {
        Self { backing: "files, a quarter of the store in use".to_owned(), ours, theirs, store: Some(store) }
    }

    /// Runs a workload on both in turns.
    pub(super) fn measure(&self, client: &Client<'_>, workload: &Workload, bar: &StepBar) -> Result<Row, Failure> {
        let written = || self.store.map(|store| programmed(store)).unwrap_or_default();
        let before = written();
        let (mut bimetal, mut other) = (Measured::default(), Measured::default());
        for round in 0..client.args.rounds {
            bar.at(&format!("{}: {}", self.backing, workload.name));
            let mut turn = |ours: bool| -> Result<(), Failure> {
                let (served, measured) = if ours { (self.ours, &mut bimetal) } else { (self.theirs, &mut other) };
                measured.add(served, || client.run(&served.target, workload))
            };
            turn(round % 2 == 0)?;
            turn(round % 2 == 1)?;
            bar.step();
        }
        let after = written();
        let host = after.1 - before.1;
        let write_amplification = (host > 0.0).then(|| (after.0 - before.0) / host);
        let ratio =
            |over: &[f64], under: &[f64]| median(over.iter().zip(under).map(|(over, under)| over / under).collect());
        Ok(Row {
            backing: self.backing.clone(),
            workload: workload.name,
            other_program: self.theirs.program,
            ratio: ratio(&bimetal.speeds, &other.speeds),
            // No ratio if another client's requests take processor time too, if a time is below one tick of the system's
            // clock, or if it is not known.
            cpu_ratio: Some(ratio(&other.cpu_us, &bimetal.cpu_us))
                .filter(|ratio| ratio.is_finite() && !workload.beside_writer),
            bimetal: bimetal.speeds,
            other: other.speeds,
            bimetal_p99_us: bimetal.p99_us,
            other_p99_us: other.p99_us,
            bimetal_longest_us: bimetal.longest_us,
            other_longest_us: other.longest_us,
            bimetal_cpu_us: bimetal.cpu_us,
            other_cpu_us: other.cpu_us,
            write_amplification,
        })
    }
}

/// Measurements of a server, by round.
#[derive(Default)]
struct Measured {
    /// Requests per second.
    speeds: Vec<f64>,
    /// 99th percentile of their durations, in microseconds.
    p99_us: Vec<f64>,
    /// The longest duration, in microseconds.
    longest_us: Vec<f64>,
    /// Processor time for each, in microseconds.
    cpu_us: Vec<f64>,
}

impl Measured {
    fn add(&mut self, served: &Served, run: impl FnOnce() -> Result<Requests, Failure>) -> Result<(), Failure> {
        let cpu_seconds = || served.processes.iter().map(|&process| cpu_seconds(process)).sum::<io::Result<f64>>();
        let before = cpu_seconds()?;
        let Requests { per_second, count, p99_us, longest_us, own_cpu_seconds } = run()?;
        let client = if served.processes.contains(&std::process::id()) { own_cpu_seconds } else { 0.0 };
        self.speeds.push(per_second);
        self.p99_us.push(p99_us);
        self.longest_us.push(longest_us);
        if !served.processes.is_empty() {
            self.cpu_us.push((cpu_seconds()? - before - client) * 1e6 / count);
        }
        Ok(())
    }
}

/// Processor time of a process, without its children.
fn cpu_seconds(process: u32) -> io::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name before it, in brackets, may contain any characters.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Bytes that a store has programmed, and bytes that the host wrote.
fn programmed(store: &Store) -> (f64, f64) {
    let health = Health::of(store);
    let host = health.host_write_bytes as f64;
    // Rounded to whole bytes.
    ((health.device.key_figures.write_amplification.unwrap_or(0.0) * host).round(), host)
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
