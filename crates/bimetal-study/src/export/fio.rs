//! JSON of fio (`--output-format=json`): a job for each scheme, with the keys of fio 3.
//!
//! A response is both fio's completion latency (`clat_ns`) and its total latency (`lat_ns`): submission takes no time.
//! The run time is that of the simulated device. Means over time weight each interval by its length, because the samples
//! of fio are equally long. Bytes of trims are not counted. A simulated host uses no processor time. Figures that a
//! simulation does not have are omitted.

use std::io;
use std::ops::Range;

use bimetal_core::report::{Distribution, IntervalFigures, ResponseFigures};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::Export;
use crate::arrivals;
use crate::compare::{Comparison, Entry};

pub(super) static EXPORT: Export = Export {
    name: "fio",
    summary: "JSON of fio: a job for each scheme, for fio-plot and scripts that read fio's results",
    is_over_time: true,
    write,
};

#[derive(Serialize)]
struct Output<'a> {
    #[serde(rename = "fio version")]
    version: String,
    #[serde(rename = "global options")]
    global_options: GlobalOptions<'a>,
    jobs: Vec<Job<'a>>,
}

#[derive(Serialize)]
struct GlobalOptions<'a> {
    filename: &'a str,
}

#[derive(Serialize)]
struct Job<'a> {
    jobname: &'a str,
    groupid: u32,
    error: u32,
    elapsed: u64,
    #[serde(rename = "job options")]
    options: Options<'a>,
    read: Direction,
    write: Direction,
    trim: Direction,
    usr_cpu: f64,
    sys_cpu: f64,
    latency_ns: Shares,
    latency_us: Shares,
    latency_ms: Shares,
}

/// Percent of all reads and writes by upper bound of the bucket.
struct Shares(Vec<(String, f64)>);

impl Serialize for Shares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(bound, percent)| (bound, percent)))
    }
}

/// Options in fio's output, where all are texts.
#[derive(Serialize)]
struct Options<'a> {
    name: &'a str,
    rw: &'static str,
    /// Mean bytes of a read and of a write.
    bs: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    iodepth: Option<String>,
    numjobs: &'static str,
}

#[derive(Serialize)]
struct Direction {
    io_bytes: u64,
    io_kbytes: u64,
    bw_bytes: u64,
    /// In KiB per second.
    bw: u64,
    iops: f64,
    /// In milliseconds.
    runtime: u64,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    slat_ns: Latency,
    clat_ns: Latency,
    lat_ns: Latency,
    #[serde(flatten)]
    over_time: OverTime,
}

/// Bandwidth in KiB per second, and requests per second, over the intervals of the replay.
#[derive(Clone, Copy, Default, Serialize)]
struct OverTime {
    bw_min: u64,
    bw_max: u64,
    bw_agg: f64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: usize,
    iops_min: u64,
    iops_max: u64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: usize,
}

impl OverTime {
    /// Computed from requests and bytes of each interval.
    fn of(intervals: &[IntervalFigures], of: fn(&IntervalFigures) -> (u64, u64)) -> Self {
        let mut start_s = 0.0;
        let rates = intervals.iter().map(|interval| {
            let seconds = interval.end_s - std::mem::replace(&mut start_s, interval.end_s);
            let (requests, bytes) = of(interval);
            let rate = |amount: f64| (amount / seconds, seconds);
            (seconds > 0.0).then(|| (rate(requests as f64), rate(bytes as f64 / 1024.0)))
        });
        let (iops, bw): (Vec<Weighted>, Vec<Weighted>) = rates.flatten().unzip();
        if iops.is_empty() {
            return Self::default();
        }
        let [(iops_min, iops_max, iops_mean, iops_stddev), (bw_min, bw_max, bw_mean, bw_dev)] =
            [&iops, &bw].map(|values| moments(values));
        let (bw_samples, iops_samples, bw_agg) = (bw.len(), iops.len(), 100.0);
        let (bw_min, bw_max) = (whole(bw_min), whole(bw_max));
        let (iops_min, iops_max) = (whole(iops_min), whole(iops_max));
        Self {
            bw_min,
            bw_max,
            bw_agg,
            bw_mean,
            bw_dev,
            bw_samples,
            iops_min,
            iops_max,
            iops_mean,
            iops_stddev,
            iops_samples,
        }
    }
}

/// A value and its weight.
type Weighted = (f64, f64);

/// Minimum, maximum, mean and standard deviation of values with weights.
fn moments(values: &[Weighted]) -> (f64, f64, f64, f64) {
    let all: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mean = values.iter().map(|(value, weight)| value * weight).sum::<f64>() / all;
    let variance = values.iter().map(|(value, weight)| (value - mean).powi(2) * weight).sum::<f64>() / all;
    let (least, most) =
        values.iter().fold((f64::INFINITY, 0.0f64), |(least, most), &(value, _)| (least.min(value), most.max(value)));
    (least, most, mean, variance.sqrt())
}

#[derive(Clone, Copy, Default, Serialize)]
struct Latency {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentile: Option<Percentiles>,
}

/// Percentiles, written in ascending order, on which some scripts rely.
#[derive(Clone, Copy)]
struct Percentiles([u64; Distribution::PERCENTILES.len()]);

impl Serialize for Percentiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (percent, response_ns) in Distribution::PERCENTILES.iter().zip(self.0) {
            map.serialize_entry(&format!("{percent:.6}"), &response_ns)?;
        }
        map.end()
    }
}

impl Latency {
    fn of(figures: &ResponseFigures, distribution: &Distribution) -> Self {
        Self {
            min: distribution.min_ns,
            max: distribution.max_ns,
            mean: figures.mean * 1e3,
            stddev: distribution.stddev_ns,
            count: figures.count,
            percentile: (figures.count > 0).then_some(Percentiles(distribution.percentiles_ns)),
        }
    }
}

impl Direction {
    fn new(io_bytes: u64, total_ios: u64, clat_ns: Latency, seconds: f64, over_time: OverTime) -> Self {
        let per_second = |value: u64| if seconds > 0.0 { value as f64 / seconds } else { 0.0 };
        Self {
            io_bytes,
            io_kbytes: io_bytes / 1024,
            bw_bytes: whole(per_second(io_bytes)),
            bw: whole(per_second(io_bytes) / 1024.0),
            iops: per_second(total_ios),
            runtime: whole(seconds * 1e3),
            total_ios,
            short_ios: 0,
            drop_ios: 0,
            slat_ns: Latency::default(),
            clat_ns,
            lat_ns: Latency { percentile: None, ..clat_ns },
            over_time,
        }
    }
}

/// A non-negative figure, rounded to a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded, and not negative")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

fn write(comparison: &Comparison) -> io::Result<Vec<u8>> {
    let output = Output {
        version: format!("bimetal-{}", comparison.bimetal),
        global_options: GlobalOptions { filename: &comparison.trace.name },
        jobs: comparison.results.iter().map(|entry| job(comparison, entry)).collect(),
    };
    let mut bytes = serde_json::to_vec_pretty(&output)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn job<'a>(comparison: &'a Comparison, entry: &'a Entry) -> Job<'a> {
    let (trace, report) = (&comparison.trace, &entry.report);
    let passes = u64::from(comparison.replay.measured_passes);
    let mean = |bytes: u64, count: u64| bytes.checked_div(count).unwrap_or(0);
    let options = Options {
        name: &report.scheme,
        rw: match (trace.reads, trace.writes) {
            (_, 0) => "randread",
            (0, _) => "randwrite",
            _ => "randrw",
        },
        bs: format!("{},{}", mean(trace.read_bytes, trace.reads), mean(trace.write_bytes, trace.writes)),
        iodepth: arrivals::depth(&entry.arrivals),
        numjobs: "1",
    };
    let seconds = report.simulated_s;
    let direction = |bytes: u64, figures: &ResponseFigures, distribution: &Distribution, over_time: OverTime| {
        Direction::new(bytes * passes, figures.count, Latency::of(figures, distribution), seconds, over_time)
    };
    let reads = OverTime::of(&report.intervals, |interval| (interval.reads, interval.read_bytes));
    let writes = OverTime::of(&report.intervals, |interval| (interval.writes, interval.write_bytes));
    let shares = |unit_ns, buckets| shares(unit_ns, buckets, &report.read_distribution, &report.write_distribution);
    Job {
        jobname: &report.scheme,
        groupid: 0,
        error: 0,
        elapsed: whole(seconds.ceil()),
        options,
        read: direction(trace.read_bytes, &report.read_us, &report.read_distribution, reads),
        write: direction(trace.write_bytes, &report.write_us, &report.write_distribution, writes),
        trim: Direction::new(0, trace.trims * passes, Latency::default(), seconds, OverTime::default()),
        usr_cpu: 0.0,
        sys_cpu: 0.0,
        latency_ns: shares(1, 0..10),
        latency_us: shares(1_000, 10..20),
        latency_ms: shares(1_000_000, 20..Distribution::BOUNDS_NS.len()),
    }
}

/// A range of the buckets of [`Distribution::BOUNDS_NS`], with bounds in units of `unit_ns`.
fn shares(unit_ns: u64, buckets: Range<usize>, read: &Distribution, write: &Distribution) -> Shares {
    let all: u64 = read.counts.iter().chain(&write.counts).sum();
    let share = |at: usize| {
        let bound = match Distribution::BOUNDS_NS[at] {
            u64::MAX => format!(">={}", Distribution::BOUNDS_NS[at - 1] / unit_ns),
            bound_ns => (bound_ns / unit_ns).to_string(),
        };
        (bound, (read.counts[at] + write.counts[at]) as f64 / all.max(1) as f64 * 100.0)
    };
    Shares(buckets.map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::super::testing::comparison;
    use super::*;

    use bimetal_core::replay::Arrivals;
    use serde_json::Value;

    #[test]
    fn a_job_has_the_figures_of_its_scheme() {
        let compared = comparison(Arrivals::Closed { depth: 4 });
        let output: Value = serde_json::from_slice(&write(&compared).unwrap()).unwrap();
        let jobs = output["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), 2);
        for (job, entry) in jobs.iter().zip(&compared.results) {
            assert_eq!(job["jobname"], entry.report.scheme.as_str());
            assert_eq!((&job["job options"]["iodepth"], &job["job options"]["rw"]), (&"4".into(), &"randrw".into()));
            let runtime_ms = job["read"]["runtime"].as_f64().unwrap();
            for (name, requests, bytes, figures) in [
                ("read", compared.trace.reads, compared.trace.read_bytes, &entry.report.read_us),
                ("write", compared.trace.writes, compared.trace.write_bytes, &entry.report.write_us),
            ] {
                let direction = &job[name];
                // Two of three passes are measured.
                assert_eq!(
                    (&direction["total_ios"], &direction["io_bytes"]),
                    (&(2 * requests).into(), &(2 * bytes).into())
                );
                let iops = direction["iops"].as_f64().unwrap();
                let mean = direction["iops_mean"].as_f64().unwrap();
                assert!((mean / iops - 1.0).abs() < 1e-6, "{mean} {iops}");
                assert!((iops * runtime_ms / 1e3 / (2 * requests) as f64 - 1.0).abs() < 0.01, "{iops}");
                let percentiles = direction["clat_ns"]["percentile"].as_object().unwrap();
                assert_eq!(percentiles.len(), Distribution::PERCENTILES.len());
                assert_eq!(percentiles["50.000000"].as_f64().unwrap() / 1e3, figures.p50);
                assert_eq!(percentiles["99.900000"].as_f64().unwrap() / 1e3, figures.p999);
                assert_eq!(direction["lat_ns"]["max"].as_f64().unwrap() / 1e3, figures.max);
                assert!(direction["lat_ns"].get("percentile").is_none() && direction["slat_ns"]["N"] == 0);
                assert_eq!(direction["iops_samples"], 5);
                let within = |low: &str, mean: &str, high: &str| {
                    let [low, mean, high] = [low, mean, high].map(|key| direction[key].as_f64().unwrap());
                    assert!(low <= mean + 0.5 && mean <= high + 0.5 && mean > 0.0, "{low} {mean} {high}");
                };
                within("iops_min", "iops_mean", "iops_max");
                within("bw_min", "bw_mean", "bw_max");
            }
            let units = ["latency_ns", "latency_us", "latency_ms"].map(|unit| job[unit].as_object().unwrap());
            let percent: f64 = units.iter().flat_map(|unit| unit.values()).filter_map(Value::as_f64).sum();
            assert!((percent - 100.0).abs() < 1e-9, "{percent}");
            assert_eq!(units.map(serde_json::Map::len), [10, 10, 12]);
            assert!(units.iter().all(|unit| unit.contains_key("2") && unit.contains_key("1000")));
            assert!(units[2].contains_key("2000") && units[2].contains_key(">=2000"));
        }
    }

    #[test]
    fn intervals_count_by_their_lengths() {
        // 100 a second for a second, and 10 for nine.
        let (least, most, mean, deviation) = moments(&[(100.0, 1.0), (10.0, 9.0)]);
        assert_eq!((least, most, mean, deviation), (10.0, 100.0, 19.0, 27.0));
    }

    #[test]
    fn percentiles_are_in_their_order() {
        let text = String::from_utf8(write(&comparison(Arrivals::Closed { depth: 1 })).unwrap()).unwrap();
        let at = |percent: &str| text.find(percent).unwrap();
        assert!(at("\"1.000000\"") < at("\"5.000000\"") && at("\"5.000000\"") < at("\"10.000000\""));
    }

    #[test]
    fn arrivals_of_a_trace_have_no_depth() {
        let output: Value =
            serde_json::from_slice(&write(&comparison(Arrivals::Trace { speed: 1.0 })).unwrap()).unwrap();
        assert!(output["jobs"][0]["job options"].get("iodepth").is_none());
    }
}
