//! What was replayed, on what, and how, in sentences: what stands above every table of figures.

use bimetal_core::report::TraceFacts;

use crate::compare::{Comparison, DiskFacts, Entry, RegionFacts};
use crate::number::{SIZES, TIMES, percent, significant, thousands, with_unit};

/// About the trace.
pub fn trace(facts: &TraceFacts) -> Vec<String> {
    let mut kinds = vec![
        format!("{} reads ({})", thousands(facts.reads), with_unit(SIZES, facts.read_bytes as f64)),
        format!("{} writes ({})", thousands(facts.writes), with_unit(SIZES, facts.write_bytes as f64)),
    ];
    if facts.trims > 0 {
        kinds.push(format!("{} trims", thousands(facts.trims)));
    }
    let (touched, duration) =
        (with_unit(SIZES, facts.footprint_bytes as f64), with_unit(TIMES, facts.duration_s * 1e6));
    vec![
        format!("{} requests: {}", thousands(facts.requests), kinds.join(", ")),
        format!("{touched} touched, recorded over {duration}"),
    ]
}

/// Less than this many times the logical capacity written, a device is still new.
const STEADY_TURNOVER: f64 = 2.0;

/// About addresses, arrivals and passes.
pub fn replay(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    let addresses = &comparison.addresses;
    if addresses.compacted {
        lines.push(format!(
            "{} touched 1-MiB extents of a span of {} moved together: {}",
            thousands(addresses.touched_extents),
            with_unit(SIZES, addresses.span_bytes as f64),
            with_unit(SIZES, addresses.replayed_span_bytes as f64)
        ));
    }
    let replay = &comparison.replay;
    let turnover = comparison.results.first().map_or(0.0, |entry| {
        comparison.trace.write_bytes as f64 * f64::from(replay.passes) / entry.device.logical.0.max(1) as f64
    });
    let state = if replay.filled { "filled" } else { "erased" };
    let how = passes(&replay.arrivals, replay.passes, replay.measured_passes);
    lines.push(format!("replayed: {how}; devices {state} before"));
    let advice = match replay.passes {
        _ if turnover >= STEADY_TURNOVER => "",
        1 => "; for the steady state add `--repeat N --measure 1`",
        _ => "; for the steady state raise `--repeat`",
    };
    lines.push(format!("the host writes {} x the logical capacity{advice}", significant(turnover)));
    lines
}

/// Arrivals and passes, in a line.
pub fn passes(arrivals: &str, passes: u32, measured: u32) -> String {
    let arrivals = match arrivals.split_once(':') {
        Some(("closed", depth)) => format!("closed loop, {depth} outstanding"),
        Some((_, speed)) => format!("at the trace's times, {speed} x as fast"),
        None => "at the trace's times".to_owned(),
    };
    let passes = match (passes, measured) {
        (1, _) => "1 pass".to_owned(),
        (passes, measured) if passes == measured => format!("{passes} passes"),
        (passes, measured) => format!("{passes} passes, the last {measured} measured"),
    };
    format!("{arrivals}; {passes}")
}

/// A device's regions, disks and spare area, in a line.
pub fn device(entry: &Entry) -> String {
    let region = |region: &RegionFacts| {
        let dies = if region.dies == 1 { String::new() } else { format!(", {} dies", region.dies) };
        format!(
            "{} {} ({}, {} blocks of {}{dies})",
            region.name,
            with_unit(SIZES, region.capacity_bytes as f64),
            region.chip,
            thousands(u64::from(region.blocks)),
            with_unit(SIZES, region.block_bytes as f64)
        )
    };
    let disk =
        |disk: &DiskFacts| format!("{} {} ({})", disk.name, with_unit(SIZES, disk.capacity_bytes as f64), disk.drive);
    let parts = entry.regions.iter().map(region).chain(entry.disks.iter().map(disk)).collect::<Vec<_>>().join(" + ");
    let spare = if entry.disks.is_empty() { format!("; spare area {}", percent(entry.spare)) } else { String::new() };
    let logical = with_unit(SIZES, entry.device.logical.0 as f64);
    format!("{}: {logical} logical on {parts}{spare}", entry.device.name)
}

/// What was rounded or adapted, each note once with the schemes that it is about.
pub fn notes(entries: &[Entry]) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in entries {
        for note in &entry.notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, schemes)) => schemes.push(&entry.report.scheme),
                None => notes.push((note, vec![&entry.report.scheme])),
            }
        }
    }
    notes.iter().map(|(note, schemes)| format!("{}: {note}", schemes.join(", "))).collect()
}
