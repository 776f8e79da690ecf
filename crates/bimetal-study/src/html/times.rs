//! Service times and responses: means side by side, then the percentiles of each.

use bimetal_core::report::{Figure, Overload, ResponseFigures};

use crate::compare::Entry;
use crate::figure::{Axis, Plot, PlotKind, Series};
use crate::headline::time_name;
use crate::number::IN_BURSTS;
use crate::scale::Scale;

/// Terms for a kind of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    /// In titles.
    pub title: &'static str,
    /// In sentences and on axes.
    pub name: &'static str,
}

const SERVICE: Time = Time { title: "Service time", name: "service time" };
const RESPONSE: Time = Time { title: "Response", name: "response" };

/// The kind of time that the main replay measures.
pub(super) fn main_time(entries: &[Entry]) -> Time {
    let name = entries.first().map(|entry| time_name(&entry.arrivals));
    if name == Some("service") { SERVICE } else { RESPONSE }
}

/// Figures of all requests, reads and writes.
type Kinds<'a> = [(&'static str, &'a ResponseFigures); 3];

/// Every percentile, without mean and maximum.
fn percentile_figures() -> impl Iterator<Item = &'static Figure<ResponseFigures>> {
    ResponseFigures::ALL.iter().filter(|figure| figure.name.starts_with('p'))
}

/// Times of the main replay; none for an overloaded device.
fn responses(entry: &Entry) -> Option<Kinds<'_>> {
    let report = &entry.report;
    let kinds = [("all requests", &report.response_us), ("reads", &report.read_us), ("writes", &report.write_us)];
    (!entry.falls_behind()).then_some(kinds)
}

/// Service times of the second replay.
fn service(entry: &Entry) -> Option<Kinds<'_>> {
    let (reads, writes) = (entry.service_read_us.as_ref()?, entry.service_write_us.as_ref()?);
    Some([("all requests", entry.service_beside()?), ("reads", reads), ("writes", writes)])
}

/// For several schemes: means of both kinds in one diagram, then the percentiles.
pub(super) fn plots(entries: &[Entry]) -> Vec<Plot> {
    let of_service: Vec<_> =
        entries.iter().filter_map(|entry| Some((entry.report.scheme.clone(), service(entry)?))).collect();
    let of_responses: Vec<_> = entries.iter().filter_map(|entry| Some((marked(entry), responses(entry)?))).collect();
    let mut plots = Vec::new();
    if entries.len() > 1 && !of_service.is_empty() {
        plots.push(means(entries));
    }
    let scale = Scale::of(entries);
    plots.extend(percentiles(entries.len(), SERVICE, scale.service, &of_service));
    plots.extend(percentiles(entries.len(), main_time(entries), scale.time, &of_responses));
    plots
}

/// The name of a scheme, marked if the device is overloaded in bursts.
fn marked(entry: &Entry) -> String {
    let mark = if entry.report.load.overload == Overload::Bursts { IN_BURSTS } else { "" };
    format!("{mark}{}", entry.report.scheme)
}

fn means(entries: &[Entry]) -> Plot {
    let Scale { time, service, .. } = Scale::of(entries);
    let (unit, size) = if service.1 < time.1 { service } else { time };
    let of = |name: &str, value: &dyn Fn(&Entry) -> Option<f64>| {
        let point = |entry: &Entry| Some((entry.report.scheme.clone(), value(entry)? / size));
        Series::measured_by_name(name, entries.iter().filter_map(point).collect())
    };
    let series = vec![
        of("service time, one request at a time", &Entry::mean_service_us),
        of("response, at the trace's times", &Entry::mean_us),
    ];
    let axis = Axis::logarithmic(format!("mean of all requests ({unit})"));
    Plot::by_name("Mean service time and mean response", PlotKind::Marks, "scheme", axis, series)
}

/// Percentiles of all requests, of reads and of writes: a diagram for each, or a single one for one scheme.
fn percentiles(schemes: usize, time: Time, unit: (&str, f64), rows: &[(String, Kinds<'_>)]) -> Vec<Plot> {
    let title = format!("Percentiles of the {}", time.name);
    match rows {
        [] => Vec::new(),
        [(_, kinds)] if schemes == 1 => {
            let rows: Vec<_> = kinds.iter().map(|&(name, figures)| (name.to_owned(), figures)).collect();
            vec![of_rows(title, time, unit, "requests", &rows)]
        }
        [(_, kinds), ..] => {
            let of_kind = |(kind, (name, _)): (usize, &(&str, &ResponseFigures))| {
                let rows: Vec<_> = rows.iter().map(|(scheme, kinds)| (scheme.clone(), kinds[kind].1)).collect();
                of_rows(format!("{title}, {name}"), time, unit, "scheme", &rows)
            };
            kinds.iter().enumerate().map(of_kind).collect()
        }
    }
}

/// The percentiles of each row.
fn of_rows(
    title: String,
    time: Time,
    (unit, size): (&str, f64),
    names: &str,
    rows: &[(String, &ResponseFigures)],
) -> Plot {
    let of = |figure: &Figure<ResponseFigures>| {
        let served = rows.iter().filter(|(_, figures)| figures.count > 0);
        let point = |(row, figures): &(String, &ResponseFigures)| Some((row.clone(), (figure.of)(figures)? / size));
        Series::measured_by_name(figure.head, served.filter_map(point).collect())
    };
    let series = percentile_figures().map(of).collect();
    Plot::by_name(title, PlotKind::Marks, names, Axis::logarithmic(format!("{} ({unit})", time.name)), series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{Sketch, entries};

    const A: Sketch = Sketch { scheme: "a", mean_us: 5.0, years: None, usd: 8.0, disk: false, growing: false };

    #[test]
    fn service_times_and_responses_are_told_apart() {
        let titles = |entries: &[Entry]| -> Vec<(String, String)> {
            plots(entries).into_iter().map(|plot| (plot.title, plot.y.label)).collect()
        };
        let mut some = entries(&[A, Sketch { scheme: "b", growing: true, ..A }]);
        assert_eq!(main_time(&some), SERVICE);
        assert!(
            titles(&some).iter().all(|(title, axis)| title.contains("service time") && axis == "service time (µs)")
        );
        some.iter_mut().for_each(|entry| entry.arrivals = "trace".into());
        let both = titles(&some);
        assert_eq!((both.len(), both[0].1.as_str()), (7, "mean of all requests (µs)"));
        assert!(both[1..4].iter().all(|(_, axis)| axis == "service time (µs)"));
        assert!(both[4..].iter().all(|(title, axis)| title.contains("response") && axis == "response (µs)"));
        let drawn = plots(&some);
        // The overloaded device has a service time and no response.
        assert_eq!(drawn[0].series.iter().map(|series| series.points.values().len()).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(titles(&some[..1]).len(), 2);
    }
}
