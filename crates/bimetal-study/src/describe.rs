//! Sentences above every table of figures: the trace, the devices and the replay.

use std::collections::BTreeSet;

use bimetal_core::device::Device;
use bimetal_core::replay::Fill;
use bimetal_core::report::TraceFacts;

use crate::arrivals;
use crate::compare::{Comparison, DiskFacts, Entry, RegionFacts};
use crate::number::{SIZES, TIMES, counted, percent, significant, thousands, with_unit};

/// About the trace.
pub fn trace(facts: &TraceFacts) -> Vec<String> {
    let mut kinds = vec![
        format!("{} ({})", counted(facts.reads, "read"), with_unit(SIZES, facts.read_bytes as f64)),
        format!("{} ({})", counted(facts.writes, "write"), with_unit(SIZES, facts.write_bytes as f64)),
    ];
    if facts.trims > 0 {
        kinds.push(counted(facts.trims, "trim"));
    }
    let (touched, duration) =
        (with_unit(SIZES, facts.footprint_bytes as f64), with_unit(TIMES, facts.duration_s * 1e6));
    vec![
        format!("{}: {}", counted(facts.requests, "request"), kinds.join(", ")),
        format!("{touched} touched, recorded over {duration}"),
    ]
}

/// Below this ratio of bytes written to logical capacity, a device counts as new.
const STEADY_TURNOVER: f64 = 2.0;

/// About addresses, devices, arrivals and passes.
pub fn replay(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    let addresses = &comparison.addresses;
    if addresses.compacted {
        lines.push(format!(
            "address space compacted from {} to {} ({} used 64-KiB extents)",
            with_unit(SIZES, addresses.span_bytes as f64),
            with_unit(SIZES, addresses.replayed_span_bytes as f64),
            thousands(addresses.touched_extents)
        ));
    }
    let replay = &comparison.replay;
    let turnover = comparison.results.first().map_or(0.0, |entry| {
        comparison.trace.write_bytes as f64 * f64::from(replay.passes) / entry.device.logical.0.max(1) as f64
    });
    lines.extend(devices(&comparison.results));
    lines.push(format!(
        "replay: {}; devices {} before",
        how(comparison),
        match replay.fill.parse() {
            Ok(Fill::None) => "erased",
            Ok(Fill::Trace) => "filled with the extents of the trace",
            Ok(Fill::Device) | Err(_) => "filled",
        }
    ));
    let advice = match replay.passes {
        _ if turnover >= STEADY_TURNOVER => "",
        1 => "; for the steady state add `--repeat N --measure 1`",
        _ => "; for the steady state raise `--repeat`",
    };
    lines.push(format!("the host writes {} x the logical capacity{advice}", significant(turnover)));
    lines
}

/// The replays of each scheme, in a line.
fn how(comparison: &Comparison) -> String {
    let replay = &comparison.replay;
    let is_open = replay.arrivals.starts_with("trace");
    let speed = replay.arrivals.split_once(':').and_then(|(_, speed)| speed.parse::<f64>().ok()).unwrap_or(1.0);
    let duration = format!(" ({})", with_unit(TIMES, comparison.trace.duration_s / speed * 1e6));
    let both = passes(&replay.arrivals, replay.passes, replay.measured_passes);
    let (main, passes) = both.split_once("; ").unwrap_or((&both, ""));
    let duration = if is_open { duration.as_str() } else { "" };
    let beside = replay.service && replay.arrivals != arrivals::SERVICE;
    let service = if beside { "; service time: one request at a time" } else { "" };
    format!("{main}{duration}{service}; {passes}")
}

/// The devices of all schemes, in a line: cells, year of the parts, dies, disks, write buffer, spare area, year of the
/// prices.
pub fn devices(entries: &[Entry]) -> Option<String> {
    let first = &entries.first()?.device;
    let mut kinds: Vec<String> = Vec::new();
    for kind in entries.iter().map(kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let for_each = if entries.len() > 1 { " for each scheme" } else { "" };
    let mut line = format!("device: {}, {}{for_each}", first.name, with_unit(SIZES, first.logical.0 as f64));
    line += &format!(" on {}", kinds.join(", or "));
    let facts = [buffer(first), spare(entries), prices(entries)];
    line += &facts.into_iter().flatten().map(|fact| format!("; {fact}")).collect::<String>();
    Some(line)
}

/// The parts of a device: `1 die each of SLC and MLC (2010)`, `2 x 4 dies of TLC (2019)`.
fn kind(entry: &Entry) -> String {
    let dies = |region: &RegionFacts| match (region.channels, region.dies / region.channels.max(1)) {
        (1, 1) => "1 die".to_owned(),
        (1, dies) => format!("{dies} dies"),
        (channels, 1) => format!("{channels} x 1 die"),
        (channels, dies) => format!("{channels} x {dies} dies"),
    };
    let cells = |region: &RegionFacts| region.cell.name().to_uppercase().replace("PSLC", "pSLC");
    let year = |region: &RegionFacts| region.year.map_or_else(String::new, |year| format!(" ({year})"));
    let mut text = match entry.regions.as_slice() {
        [fast, slow] if dies(fast) == dies(slow) && fast.year == slow.year => {
            format!("{} each of {} and {}{}", dies(fast), cells(fast), cells(slow), year(slow))
        }
        regions => {
            let each = regions.iter().map(|region| format!("{} of {}{}", dies(region), cells(region), year(region)));
            each.collect::<Vec<_>>().join(" + ")
        }
    };
    if entry.device.serial {
        text += ", one operation at a time";
    }
    if !entry.disks.is_empty() {
        let drives: Vec<&str> = entry.disks.iter().map(|disk| disk.drive.as_str()).collect();
        text += &format!(" over {}", drives.join(" and "));
    }
    text
}

/// The write buffer of the controller, which is the same for every scheme.
fn buffer(device: &Device) -> Option<String> {
    let controller = device.controller.as_ref()?;
    let size = with_unit(SIZES, controller.buffer.0 as f64);
    let protection = if controller.power_protected { ", power-protected" } else { "" };
    Some(if controller.buffer.0 == 0 {
        "no write buffer".into()
    } else {
        format!("write buffer of {size}{protection}")
    })
}

/// Spare area of all devices without disks.
fn spare(entries: &[Entry]) -> Option<String> {
    let of_flash = || entries.iter().filter(|entry| entry.disks.is_empty()).map(|entry| entry.spare * 100.0);
    let least = of_flash().min_by(f64::total_cmp)?;
    let most = of_flash().fold(least, f64::max);
    let [least, most] = [least, most].map(|share| format!("{share:.0}"));
    Some(if least == most { format!("{least} % spare") } else { format!("{least} to {most} % spare") })
}

/// Years of all prices of flash.
fn prices(entries: &[Entry]) -> Option<String> {
    let regions = || entries.iter().flat_map(|entry| &entry.regions);
    let years: BTreeSet<u16> = regions().filter_map(|region| region.price_year).collect();
    let mut prices: Vec<String> = years.iter().map(u16::to_string).collect();
    if regions().any(|region| region.price_year.is_none()) {
        prices.push("your own choice".into());
    }
    (!prices.is_empty()).then(|| format!("flash prices of {}", prices.join(" and ")))
}

/// Arrivals and passes, in a line.
pub fn passes(arrivals: &str, passes: u32, measured: u32) -> String {
    let arrivals = match arrivals.split_once(':') {
        Some(("closed", "1")) => "closed loop, one request at a time".to_owned(),
        Some(("closed", depth)) => format!("closed loop, {depth} outstanding"),
        Some((_, speed)) => format!("at the trace's times, {speed} x as fast"),
        None => "at the trace's own times".to_owned(),
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

/// Notes on rounding and adaptation, each once with the schemes that it concerns.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{both, closed};
    use crate::compare::{Quiet, run};
    use crate::prepare::{Schemes, Workload, prepare};
    use crate::replays::Replays;
    use bimetal_core::device::{BARE_DIES, preset};
    use bimetal_core::replay::{Arrivals, Plan};

    fn lines(schemes: &[&str], settings: &[(&str, &str)], replays: &Replays) -> Vec<String> {
        let trace = crate::generate::trace("zipf", &[("requests".into(), "20".into())], 1).unwrap();
        let schemes: Vec<String> = schemes.iter().map(|&name| name.to_owned()).collect();
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        let workload = Workload::of(trace, None);
        let prepared =
            prepare(workload, preset(BARE_DIES).ok(), &Schemes::named(&schemes).unwrap(), &settings).unwrap();
        replay(&run(&prepared, replays, 1, 1, &Quiet).unwrap())
    }

    #[test]
    fn the_device_is_named_by_cells_year_and_dies() {
        let settings = [
            ("fast.chip", "pslc-tlc-2019"),
            ("slow.chip", "tlc-3d-2019"),
            ("slow.channels", "2"),
            ("slow.dies_per_channel", "4"),
            ("logical", "256GiB"),
        ];
        let device = |schemes: &[&str], settings: &[(&str, &str)]| {
            let lines = lines(schemes, settings, &closed());
            lines.into_iter().find(|line| line.starts_with("device: ")).unwrap()
        };
        assert_eq!(
            device(&["pagemap"], &settings[1..]),
            "device: bare-dies, 256 GiB on 2 x 4 dies of TLC (2019); 5 % spare; flash prices of 2026"
        );
        let all = device(&["pagemap", "wlaftl", "opfcl"], &settings[..1]);
        assert!(
            all.contains(" for each scheme on 1 die of MLC (2010), or 1 die of pSLC (2019) + 1 die of MLC (2010), or ")
        );
        assert!(
            all.contains(" of pSLC (2019) over nearline-18tb; ") && all.ends_with("flash prices of 2009 and 2026"),
            "{all}"
        );
        let workload =
            Workload::of(crate::generate::trace("zipf", &[("requests".into(), "20".into())], 1).unwrap(), None);
        let prepared = prepare(workload, None, &Schemes::named(&["pagemap".to_owned()]).unwrap(), &[]).unwrap();
        let of_today = devices(&run(&prepared, &closed(), 1, 1, &Quiet).unwrap().results).unwrap();
        assert!(of_today.contains(" dies of TLC (2021); write buffer of 4.00 MiB; "), "{of_today}");
        let own = device(&["pagemap"], &[("slow.usd_per_gib", "0.1"), ("serial", "true")]);
        assert!(
            own.contains("(2010), one operation at a time; ") && own.ends_with("flash prices of your own choice"),
            "{own}"
        );
    }

    #[test]
    fn the_replay_says_how_requests_arrive() {
        let how = |replays: &Replays| {
            let lines = lines(&["pagemap"], &[], replays);
            lines.into_iter().find(|line| line.starts_with("replay: ")).unwrap()
        };
        assert_eq!(how(&closed()), "replay: closed loop, one request at a time; 1 pass; devices filled before");
        let faster = Replays { main: Plan { arrivals: Arrivals::Trace { speed: 4.0 }, ..Plan::default() }, ..both() };
        let (own, faster) = (how(&both()), how(&faster));
        let seconds =
            |text: &str| text.split(['(', ')']).nth(1).and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        let (own, faster) = (seconds(&own).unwrap(), seconds(&faster).unwrap());
        assert!((own / faster - 4.0).abs() < 0.1, "{own} {faster}");
        let both = how(&both());
        assert!(both.starts_with("replay: at the trace's own times ("), "{both}");
        assert!(both.ends_with("); service time: one request at a time; 1 pass; devices filled before"), "{both}");
    }
}
