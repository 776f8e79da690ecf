//! Concatenation of several files to one trace.
//!
//! **Addresses**: each file gets its own range after the previous file, with the devices renumbered from 0 in address
//! order. In some formats device ids mean the same in all files of a collection (`systor`, `tencent`, `alibaba`,
//! `blkparse`, `blktrace`, `srt`). There, files are hours or processors of one recording and share devices. The processor
//! that completes a request is often not the one that queued it, so a file may hold only later steps of requests of
//! other files: it is left out.
//!
//! **Times**: requests are merged by arrival. If all files have one format with a wall clock, their distance in time is
//! kept. Otherwise every file starts at time 0, so that they run side by side.

use std::collections::BTreeMap;

use super::collect::MAX_BYTES;
use super::error::{ErrorKind, TraceError};
use super::{Shared, Trace, TraceDevice, format};
use crate::request::SECTOR_BYTES;

/// Merges traces into one. The module documentation describes addresses and times.
///
/// # Errors
/// [`ErrorKind::NoRequests`] for no trace at all, [`ErrorKind::Range`] if they do not fit one address space.
pub fn concat(mut traces: Vec<Trace>) -> Result<Trace, TraceError> {
    if traces.len() < 2 {
        return traces.pop().ok_or_else(|| TraceError::new(ErrorKind::NoRequests, "", "no trace is given"));
    }
    let one_format = traces.iter().all(|trace| trace.format == traces[0].format);
    let kind = if one_format { format(traces[0].format)?.shared } else { Shared::Nothing };
    let name = joined_name(&traces);
    let first_step = traces.iter().filter_map(|trace| trace.action).min();
    let is_of_first = |trace: &Trace| kind != Shared::ClockAndDevices || trace.action == first_step;
    let (traces, later): (Vec<Trace>, Vec<Trace>) = traces.into_iter().partition(is_of_first);
    let left_out = |trace: &Trace| format!("{}: left out: it has only later steps of requests", trace.name);
    let bases = lay_out(&traces, kind == Shared::ClockAndDevices)?;
    let origin_ns = match kind {
        Shared::Nothing => 0,
        _ => traces.iter().map(|trace| trace.origin_ns).min().unwrap_or(0),
    };

    let mut whole = Trace {
        name,
        format: if one_format { traces[0].format } else { "mixed" },
        requests: Vec::with_capacity(traces.iter().map(|trace| trace.requests.len()).sum()),
        devices: bases.devices,
        reads: 0,
        writes: 0,
        trims: 0,
        read_bytes: 0,
        write_bytes: 0,
        origin_ns,
        action: first_step,
        warnings: later.iter().map(left_out).collect(),
    };
    for (trace, new_bases) in traces.into_iter().zip(bases.of_file) {
        whole.reads += trace.reads;
        whole.writes += trace.writes;
        whole.trims += trace.trims;
        whole.read_bytes = whole.read_bytes.saturating_add(trace.read_bytes);
        whole.write_bytes = whole.write_bytes.saturating_add(trace.write_bytes);
        whole.warnings.extend(trace.warnings.iter().map(|warning| format!("{}: {warning}", trace.name)));
        let delay_ns = if kind == Shared::Nothing { 0 } else { trace.origin_ns - origin_ns };
        whole.requests.extend(trace.requests.iter().map(|request| {
            let at = trace.devices.partition_point(|device| device.base_sector <= request.sector) - 1;
            let mut moved = *request;
            moved.sector = request.sector - trace.devices[at].base_sector + new_bases[at];
            moved.arrival_ns += delay_ns;
            moved
        }));
    }
    whole.requests.sort_by_key(|request| request.arrival_ns);
    Ok(whole)
}

struct Bases {
    devices: Vec<TraceDevice>,
    /// For each file, the new base sectors of its devices.
    of_file: Vec<Vec<u64>>,
}

fn lay_out(traces: &[Trace], shared: bool) -> Result<Bases, TraceError> {
    // The merged device of each device of each file. A shared device is as long as the longest one.
    let mut merged: BTreeMap<u64, TraceDevice> = BTreeMap::new();
    let mut key_of = Vec::with_capacity(traces.len());
    for trace in traces {
        let mut keys = Vec::with_capacity(trace.devices.len());
        for device in &trace.devices {
            let id = if shared { device.id } else { merged.len() as u64 };
            let entry = merged.entry(id).or_insert(TraceDevice { id, base_sector: 0, sectors: 0, requests: 0 });
            entry.sectors = entry.sectors.max(device.sectors);
            entry.requests += device.requests;
            keys.push(id);
        }
        key_of.push(keys);
    }
    let mut base = 0;
    for device in merged.values_mut() {
        device.base_sector = base;
        base += device.sectors; // both at most 2^54
        if base > MAX_BYTES / SECTOR_BYTES {
            return Err(TraceError::new(ErrorKind::Range, "", "the files laid end to end span more than 2^63 bytes"));
        }
    }
    let base_of = |keys: Vec<u64>| keys.iter().map(|key| merged[key].base_sector).collect();
    let of_file = key_of.into_iter().map(base_of).collect();
    Ok(Bases { devices: merged.into_values().collect(), of_file })
}

fn joined_name(traces: &[Trace]) -> String {
    match traces {
        [first, second] => format!("{} + {}", first.name, second.name),
        [first, rest @ ..] => format!("{} + {} more", first.name, rest.len()),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Options, decode};
    use super::*;

    fn read(name: &str, text: &str) -> Trace {
        decode(name, text.as_bytes(), &Options::default()).unwrap()
    }

    #[test]
    fn files_lie_end_to_end_and_run_side_by_side() {
        let a = read("a", "5,0,512,r,10.0\n9,8,512,w,12.0\n");
        let b = read("b", "5,1,512,r,100.0\n5,3,512,w,101.0\n");
        let both = concat(vec![a, b]).unwrap();
        assert_eq!(both.name, "a + b");
        let got: Vec<_> = both.requests.iter().map(|r| (r.arrival_ns / 1_000_000_000, r.sector)).collect();
        assert_eq!(got, [(0, 0), (0, 4097), (1, 4099), (2, 2056)]);
        assert_eq!(both.devices.iter().map(|d| d.id).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((both.reads, both.writes, both.read_bytes), (2, 2, 1024));
        assert_eq!(both.span_sectors(), 3 * 2048);
    }

    #[test]
    fn a_wall_clock_is_kept_and_shared_devices_are_one() {
        let hours = vec![read("2", "1,R,4096,512,9000000\n"), read("1", "2,W,0,512,2000000\n1,W,0,512,3000000\n")];
        let both = concat(hours).unwrap();
        let got: Vec<_> = both.requests.iter().map(|r| (r.arrival_ns / 1_000_000_000, r.sector)).collect();
        assert_eq!(got, [(0, 2048), (1, 0), (7, 8)]);
        assert_eq!(both.devices.len(), 2);
        assert_eq!(both.devices[0].requests, 2);
    }

    #[test]
    fn later_steps_that_another_processor_recorded_are_left_out() {
        let queued = "8,0 0 1 0.0 9 Q W 64 + 8 [x]\n8,0 0 2 0.1 9 D W 64 + 8 [x]\n";
        let completed = "8,0 1 1 0.2 0 C W 64 + 8 [0]\n";
        for files in [[queued, completed], [completed, queued]] {
            let both = concat(files.map(|text| read("t", text)).into()).unwrap();
            assert_eq!((both.writes, both.requests.len(), both.action), (1, 1, Some(Action::Queue)));
            assert_eq!(both.warnings[0], "t: left out: it has only later steps of requests");
        }
        let both = concat(vec![read("t", completed), read("t", completed)]).unwrap();
        assert_eq!((both.writes, both.action), (2, Some(Action::Complete)));
    }

    #[test]
    fn mixed_formats_and_none() {
        let mixed = concat(vec![read("1", "1,R,4096,512,9000000\n"), read("2", "0,0,512,r,1.0\n")]).unwrap();
        assert_eq!((mixed.format, mixed.duration_ns()), ("mixed", 0));
        assert_eq!(concat(Vec::new()).unwrap_err().kind(), ErrorKind::NoRequests);
    }
}
