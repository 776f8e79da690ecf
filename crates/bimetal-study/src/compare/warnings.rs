//! Caveats that a user should know before trusting a figure.

use bimetal_core::report::Overload;

use super::entry::Entry;

/// The warnings for these results: failures without a replacement, then overload.
pub(super) fn of(entries: &[Entry]) -> Vec<String> {
    let overloaded = [Overload::Growing, Overload::Bursts].into_iter().filter_map(|kind| overload(entries, kind));
    entries.iter().flat_map(worn_out).chain(overloaded).collect()
}

/// Regions whose failures exceeded their replacement blocks: a real device would have gone read-only.
fn worn_out(entry: &Entry) -> impl Iterator<Item = String> {
    let regions = entry.report.faults.iter().filter(|faults| faults.counts.failures_unreplaced > 0);
    regions.map(|faults| {
        let (scheme, region) = (&entry.report.scheme, &faults.region);
        format!(
            "`{scheme}`: {} failures in `{region}` found no replacement block, and a real device would be read-only from \
             the first on; hint: set `{region}.replacement_blocks` above {}",
            faults.counts.failures_unreplaced, faults.counts.blocks_replaced
        )
    })
}

/// The schemes with this kind of overload, and the figures of the worst one.
fn overload(entries: &[Entry], overload: Overload) -> Option<String> {
    let so: Vec<&Entry> = entries.iter().filter(|entry| entry.report.load.overload == overload).collect();
    // Responses with service times are marked, and were not requested alone.
    if so.iter().any(|entry| entry.service_beside().is_some()) {
        return None;
    }
    let mean = |entry: &Entry| entry.report.response_us.mean;
    let worst = &so.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)))?.report;
    let load = &worst.load;
    let scheme = if so.len() == 1 { "it".to_owned() } else { format!("`{}`", worst.scheme) };
    let what = match overload {
        Overload::None => return None,
        Overload::Growing => format!(
            ": {scheme} falls behind more and more and ends {:.1} s after the trace, after {:.1} s of simulated time, so its \
             responses only reflect the length of the trace",
            load.backlog_s, worst.simulated_s
        ),
        Overload::Bursts => {
            let work_us = worst.ops.iter().map(|row| row.time_us).sum::<f64>() / worst.response_us.count.max(1) as f64;
            format!(
                " by bursts: {scheme} has a mean response of {:.3} s for {:.6} s of work, so responses measure the queue \
                 more than the device",
                worst.response_us.mean / 1e6,
                work_us / 1e6
            )
        }
    };
    Some(format!(
        "{} overloaded{what}; its `{}` is busy {:.0} % of the time; hint: replay with `--arrivals closed`, or slower with \
         `--arrivals trace:SPEED`",
        are(&so, entries.len()),
        load.bottleneck,
        load.utilisation * 100.0
    ))
}

/// The subject and verb of a sentence: names of the schemes, or "all schemes" if the list is complete.
fn are(entries: &[&Entry], all: usize) -> String {
    match entries {
        [entry] => format!("`{}` is", entry.report.scheme),
        every if every.len() == all => "all schemes are".to_owned(),
        some => {
            let names: Vec<String> = some.iter().map(|entry| format!("`{}`", entry.report.scheme)).collect();
            format!("{} are", names.join(", "))
        }
    }
}
