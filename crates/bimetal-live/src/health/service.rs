//! The measurements of a service as OpenMetrics: real times as histograms, connections, memory, free space.

use std::fmt;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::figures::ServiceFigures;
use super::openmetrics::{Labels, Scrape};
use crate::latency::Snapshot;
use crate::store::Times;

/// Histograms of one name, by their labels.
#[derive(Debug)]
struct Histograms(Vec<(Labels, Snapshot)>);

impl EncodeMetric for Histograms {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, times) in &self.0 {
            let mut encoder = encoder.encode_family(labels)?;
            encoder.encode_histogram::<NoLabelSet>(times.sum().as_secs_f64(), times.count(), &times.buckets(), None)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

impl Scrape {
    fn histograms(&mut self, name: &str, help: &str, times: Vec<(Labels, Snapshot)>) {
        self.0.register_with_unit(name, help, Unit::Seconds, Histograms(times));
    }

    /// Durations of file operations.
    pub(super) fn times(&mut self, times: &Times) {
        let Times { commit, sync, checkpoint } = *times;
        let alone = |times| vec![(Labels::new(), times)];
        self.histograms("commit_duration", "Commits, until they are durable", alone(commit));
        self.histograms("sync_duration", "Syncs of files", alone(sync));
        self.histograms("checkpoint_duration", "Checkpoints, until they are durable", alone(checkpoint));
    }

    /// Requests, connections, memory, free space.
    pub(super) fn service(&mut self, service: &ServiceFigures) {
        let ServiceFigures { operations, connections, resident_bytes, room } = service;
        let of = |name: &'static str| vec![("op", name.to_owned())];
        let latencies = operations.iter().map(|row| (of(row.operation.name()), row.latency)).collect();
        self.histograms("request_duration", "Requests of clients, in real time", latencies);
        let bytes = operations.iter().map(|row| (of(row.operation.name()), row.bytes));
        self.counters("request", "Bytes of these requests", Some(Unit::Bytes), bytes);
        let errors = operations.iter().map(|row| (of(row.operation.name()), row.errors));
        self.counters("request_errors", "Requests that ended with an error", None, errors);
        let alone = |value: u64| [(Labels::new(), value)];
        self.gauges("connections", "Clients now", None, [(Labels::new(), connections.open as f64)]);
        self.counters("connections_accepted", "Clients that came", None, alone(connections.accepted));
        self.counters("connections_turned_away", "Clients without a place", None, alone(connections.turned_away));
        self.counters("connections_dropped", "Clients that were dropped", None, alone(connections.dropped));
        self.counters("requests_refused", "Requests that the protocol forbids", None, alone(connections.refused));
        let single = |value: Option<u64>| value.map(|value| (Labels::new(), value as f64));
        let mut bytes = |name, help, value| self.gauges(name, help, Some(Unit::Bytes), single(value));
        bytes("resident_memory", "Memory of the process", *resident_bytes);
        let (free, unallocated) = (room.map(|room| room.free_bytes), room.map(|room| room.unallocated_bytes));
        bytes("file_system_free", "Room in the file system of the store's directory", free);
        bytes("unallocated", "Room that the files of a sparse store may still take there", unallocated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use crate::latency::Histogram;

    #[test]
    fn buckets_add_up() {
        let histogram = Histogram::default();
        for us in [5, 15, 15, 20_000_000] {
            histogram.record(Duration::from_micros(us));
        }
        let mut scrape = Scrape(Registry::with_prefix("bimetal"));
        let labels: Labels = vec![("op", "read".into())];
        scrape.histograms("request_duration", "Requests", vec![(labels, histogram.snapshot())]);
        let mut text = String::new();
        text::encode(&mut text, &scrape.0).unwrap();
        let of_line = |wanted: &str| {
            let line = text.lines().find(|line| line.contains(wanted)).unwrap_or_else(|| panic!("{wanted}: {text}"));
            line.rsplit_once(' ').unwrap().1.to_owned()
        };
        assert!(text.contains("# TYPE bimetal_request_duration_seconds histogram\n"), "{text}");
        for (bucket, count) in [("0.00001", "1"), ("0.00002", "3"), ("10.0", "3"), ("+Inf", "4")] {
            assert_eq!(of_line(&format!("_bucket{{le=\"{bucket}\",op=\"read\"}}")), count);
        }
        assert_eq!(of_line("_count{op=\"read\"}"), "4");
        assert_eq!(of_line("_sum{op=\"read\"}"), "20.000035");
    }
}
