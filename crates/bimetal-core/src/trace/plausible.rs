//! Warnings about implausible traces, mostly because of a wrong unit.

use super::{Format, Trace};
use crate::request::SECTOR_BYTES;

/// Shortest plausible mean inter-arrival time, in picoseconds: 100 million requests per second.
const SHORTEST_GAP_PS: u128 = 10_000;
/// Longest plausible mean inter-arrival time, in picoseconds: one request a day.
const LONGEST_GAP_PS: u128 = 86_400 * 1_000_000_000_000;
/// Highest plausible mean rate of one device, in bytes per second: four lanes of PCIe 5.
const LARGEST_RATE: u128 = 16_000_000_000;
/// Number of requests below which a high rate may be a burst.
const RATE_REQUESTS: usize = 100;
/// Largest plausible address space of a traced system, in bytes: 1 PiB.
const LARGEST_SPAN: u128 = 1 << 50;

/// Number of requests of a table from which on a property of all of them is no coincidence.
const UNIT_REQUESTS: usize = 100;
/// A byte address that is read as a sector number is a multiple of this number of sectors.
const BYTES_AS_SECTORS: u64 = SECTOR_BYTES;

/// What is added to a warning about `rounded` of `requests` requests, if a wrong unit is the likely reason.
pub(super) fn doubt_of_rounded(rounded: u64, requests: usize, format: &Format) -> &'static str {
    let are_most = 2 * rounded > requests as u64;
    if are_most && format.has_columns { ": are the units of addresses and sizes right?" } else { "" }
}

/// Adds a warning for each implausible figure.
pub(super) fn check(trace: &mut Trace, format: &Format) {
    let hint = if format.time_unit.is_some() { " try `--time-unit`" } else { "" };
    let gaps = trace.requests.len().saturating_sub(1) as u128;
    let mean_gap_ps = (u128::from(trace.duration_ns()) * 1000).checked_div(gaps);
    if mean_gap_ps.is_some() && trace.duration_ns() == 0 {
        trace.warnings.push("all requests have one time stamp: replay them with `--arrivals closed`".to_owned());
    } else if let Some(gap_ps) = mean_gap_ps.filter(|gap| !(SHORTEST_GAP_PS..=LONGEST_GAP_PS).contains(gap)) {
        trace.warnings.push(format!("mean inter-arrival of {}: is the time unit right?{hint}", duration(gap_ps)));
    }
    let bytes = u128::from(trace.read_bytes) + u128::from(trace.write_bytes);
    let rate = (bytes * 1_000_000_000).checked_div(u128::from(trace.duration_ns())).unwrap_or(0);
    if trace.requests.len() >= RATE_REQUESTS && rate > LARGEST_RATE * trace.devices.len() as u128 {
        let rate = decimal(rate, 1_000_000_000, "GB/s");
        trace.warnings.push(format!("mean rate of {rate}: is the time unit right?{hint}"));
    }
    let span = u128::from(trace.span_sectors()) * u128::from(SECTOR_BYTES);
    if span > LARGEST_SPAN {
        trace.warnings.push(format!("address span of {}: are the addresses in the right unit?", size(span)));
    }
    let is_multiple = |sectors: u64| sectors.is_multiple_of(BYTES_AS_SECTORS);
    if format.has_columns
        && trace.requests.len() >= UNIT_REQUESTS
        && trace.requests.iter().all(|request| is_multiple(request.sector) && is_multiple(request.sectors.into()))
    {
        let warning = "all addresses and sizes are multiples of 256 KiB: are they bytes, given as sectors?";
        trace.warnings.push(warning.to_owned());
    }
}

/// A duration in picoseconds as text.
fn duration(ps: u128) -> String {
    let units = [(86_400_000_000_000_000, "days"), (1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us")];
    let fallback = if ps >= 1000 { (1000, "ns") } else { (1, "ps") };
    let (unit, name) = units.into_iter().find(|(unit, _)| ps >= *unit).unwrap_or(fallback);
    decimal(ps, unit, name)
}

/// A size in bytes as text.
fn size(bytes: u128) -> String {
    let (unit, name) = if bytes >= 1_000_000_000_000_000_000 {
        (1_000_000_000_000_000_000, "EB")
    } else {
        (1_000_000_000_000_000, "PB")
    };
    decimal(bytes, unit, name)
}

/// A number with one decimal, unless that is 0.
fn decimal(value: u128, unit: u128, name: &str) -> String {
    match (value / unit, value % unit * 10 / unit) {
        (whole, 0) => format!("{whole} {name}"),
        (whole, tenths) => format!("{whole}.{tenths} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, decode};

    fn warnings(text: &str) -> String {
        decode("t", text.as_bytes(), &Options { format: Some(&super::super::spc::FORMAT), ..Options::default() })
            .unwrap()
            .warnings
            .join("\n")
    }

    #[test]
    fn odd_units_are_named() {
        let close = warnings("0,0,512,r,0\n0,0,512,r,0.000000002\n0,0,512,r,0.000000003\n");
        assert!(
            close.starts_with("mean inter-arrival of 1.5 ns: is the time unit right? try `--time-unit`"),
            "{close}"
        );
        let picoseconds = "0,0,512,r,0.0\n".repeat(1000) + "0,0,512,r,0.000000003\n";
        assert!(warnings(&picoseconds).starts_with("mean inter-arrival of 3 ps"));
        let far = warnings("0,0,512,r,0\n0,0,512,r,864000\n");
        assert!(far.starts_with("mean inter-arrival of 10 days"), "{far}");
        let same = warnings("0,0,512,r,5\n0,0,512,r,5\n");
        assert!(same.contains("one time stamp"), "{same}");
        let fast: String = (0..200).map(|i| format!("0,0,131072,r,{}e-6\n", i * 2)).collect();
        assert_eq!(warnings(&fast), "mean rate of 65.8 GB/s: is the time unit right? try `--time-unit`");
        let vast = warnings("0,3000000000000000,512,r,5\n");
        assert!(vast.starts_with("address span of 1.5 EB"), "{vast}");
        assert_eq!(warnings("0,0,512,r,0\n0,8,512,r,0.001\n"), "");
    }

    #[test]
    fn wrong_units_of_columns_are_suspected() {
        // Bytes, at addresses in bytes.
        let text: String = (0..120).map(|i| format!("{i},w,{},{}\n", i * 12_288, 4096 << (i % 3))).collect();
        let warnings = |columns: &str| {
            let options = Options { columns: Some(columns.parse().unwrap()), ..Options::default() };
            decode("t", text.as_bytes(), &options).unwrap().warnings.join("\n")
        };
        assert_eq!(warnings("time:ms,op,offset:bytes,size:bytes"), "");
        let sectors = warnings("time:ms,op,offset:sectors,size:sectors");
        assert!(sectors.contains("multiples of 256 KiB: are they bytes, given as sectors?"), "{sectors}");
        let text: String = (0..120).map(|i| format!("{i},w,{},{}\n", i * 24, 8 << (i % 3))).collect();
        let options =
            Options { columns: Some("time:ms,op,offset:sectors,size".parse().unwrap()), ..Options::default() };
        let bytes = decode("t", text.as_bytes(), &options).unwrap().warnings.join("\n");
        assert_eq!(
            bytes,
            "120 requests rounded up to whole 512-byte sectors: are the units of addresses and sizes right?"
        );
    }
}
