//! Health and measurements of a service as OpenMetrics.

use std::fmt;
use std::sync::atomic::AtomicU64;

use bimetal_core::report::{OpFigures, ResponseFigures, WearFigures};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::Health;
use super::figures::ServiceFigures;

pub(super) type Labels = Vec<(&'static str, String)>;

/// Metrics of one scrape.
pub(super) struct Scrape(pub(super) Registry);

impl Scrape {
    pub(super) fn counters(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        let family = Family::<Labels, Counter>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        match unit {
            Some(unit) => self.0.register_with_unit(name, help, unit, family),
            None => self.0.register(name, help, family),
        }
    }

    pub(super) fn gauges(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).set(value);
        }
        match unit {
            Some(unit) => self.0.register_with_unit(name, help, unit, family),
            None => self.0.register(name, help, family),
        }
    }
}

fn of_op(row: &OpFigures, value: u64) -> (Labels, u64) {
    (vec![("region", row.region.clone()), ("op", row.op.into()), ("cause", row.cause.into())], value)
}

fn of_region(wear: &WearFigures, value: f64) -> (Labels, f64) {
    (vec![("region", wear.region.clone())], value)
}

fn quantiles(op: &str, figures: &ResponseFigures) -> Vec<(Labels, f64)> {
    let quantiles = [
        ("0.5", figures.p50),
        ("0.95", figures.p95),
        ("0.99", figures.p99),
        ("0.999", figures.p999),
        ("1", figures.max),
    ];
    let labelled = |(quantile, us): (&str, f64)| (vec![("op", op.to_owned()), ("quantile", quantile.into())], us / 1e6);
    if figures.count > 0 { quantiles.into_iter().map(labelled).collect() } else { Vec::new() }
}

impl Health {
    /// OpenMetrics text, including the measurements of the service. Names and labels do not depend on the use of the
    /// device, except for ratios and times without a value yet.
    ///
    /// # Errors
    /// None in practice: writing to memory does not fail.
    pub fn openmetrics(&self, service: &ServiceFigures) -> Result<String, fmt::Error> {
        let Self { smart, device, store, .. } = self;
        let mut scrape = Scrape(Registry::with_prefix("bimetal"));
        let alone = |value: u64| [(Labels::new(), value)];
        let single = |value: f64| [(Labels::new(), value)];
        let info: Labels = vec![("scheme", self.scheme.clone()), ("version", self.bimetal.into())];
        scrape.0.register("device", "What is served", Info::new(info));
        scrape.gauges("capacity", "What the host sees", Some(Unit::Bytes), single(self.capacity_bytes as f64));
        scrape.gauges(
            "data",
            "Part of the capacity that holds data",
            Some(Unit::Bytes),
            single(self.data_bytes as f64),
        );
        let host = |op: &str, value| (vec![("op", op.to_owned())], value);
        let requests = [host("read", smart.host_read_commands), host("write", smart.host_write_commands)];
        scrape.counters("host_requests", "Requests; large ones are several", None, requests);
        let bytes = [("read", self.host_read_bytes), ("write", self.host_write_bytes)];
        let bytes = bytes.map(|(op, bytes)| host(op, bytes));
        scrape.counters("host", "Bytes that the host read and wrote", Some(Unit::Bytes), bytes);
        let operations = device.ops.iter().map(|row| of_op(row, row.count));
        scrape.counters("operations", "Operations on flash and disks", None, operations);
        let moved = device.ops.iter().map(|row| of_op(row, row.bytes));
        scrape.counters("media", "Bytes of these operations", Some(Unit::Bytes), moved);
        let erases = device.wear.iter().map(|wear| (vec![("region", wear.region.clone())], wear.erases_total));
        scrape.counters("block_erases", "Erases of blocks", None, erases);
        let worn = device.wear.iter().map(|wear| of_region(wear, wear.used));
        scrape.gauges("life_used", "Mean erase count by endurance", Some(Unit::Ratios), worn);
        let amplification = device.key_figures.write_amplification.map(|value| (Labels::new(), value));
        scrape.gauges("write_amplification", "Bytes programmed by bytes written", Some(Unit::Ratios), amplification);
        let responses = [quantiles("read", &device.read_us), quantiles("write", &device.write_us)].concat();
        scrape.gauges("modelled_response", "Of the modelled device, since opening", Some(Unit::Seconds), responses);
        let figures = device.metrics.0.iter().filter_map(|&(name, value)| Some((vec![("name", name.into())], value?)));
        scrape.gauges("scheme_figure", "The scheme's own figures", None, figures);
        scrape.counters("media_errors", "Damaged pages found", None, alone(smart.media_errors));
        scrape.counters("power_cycles", "Openings", None, alone(smart.power_cycles));
        scrape.counters("unsafe_shutdowns", "Openings that were not closed", None, alone(smart.unsafe_shutdowns));
        scrape.counters("commits", "Commits since opening", None, alone(store.commits));
        scrape.counters("checkpoints", "Checkpoints since opening", None, alone(store.checkpoints));
        scrape.gauges(
            "journal",
            "Journal since the last checkpoint",
            Some(Unit::Bytes),
            single(store.journal_bytes as f64),
        );
        scrape.gauges("events_pending", "Events that are not durable yet", None, single(store.events_pending as f64));
        scrape.gauges("metadata", "Memory for maps", Some(Unit::Bytes), single(store.metadata_bytes as f64));
        scrape.gauges(
            "no_room",
            "Whether writes are refused until there is room",
            None,
            single(f64::from(u8::from(store.no_room))),
        );
        scrape.gauges(
            "failed",
            "Whether a file failed and nothing is written",
            None,
            single(f64::from(u8::from(store.failure.is_some()))),
        );
        let spare = f64::from(smart.avail_spare) / 100.0;
        scrape.gauges("spare", "Replacement blocks left, where they are fewest", Some(Unit::Ratios), single(spare));
        let cache = self.cache_used().map(|used| (Labels::new(), used));
        scrape.gauges("cache_used", "Write cache that must be emptied first", Some(Unit::Ratios), cache);
        let read_only = f64::from(u8::from(store.read_only));
        scrape.gauges("read_only", "Whether all writes are refused", None, single(read_only));
        scrape.times(&store.times);
        scrape.service(service);
        let mut text = String::new();
        text::encode(&mut text, &scrape.0)?;
        Ok(text)
    }
}
