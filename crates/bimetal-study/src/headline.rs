//! Summary of each scheme of a comparison: the figures that fit on a line.

use bimetal_core::report::{Figure, KeyFigures, Overload, ResponseFigures, Shown};

use crate::arrivals;
use crate::compare::Entry;
use crate::listing::{Rows, Sheet};
use crate::number::{EXTRAPOLATED, IN_BURSTS, NOTHING, ON_FRONT, behind, in_unit, significant};
use crate::ranking::{Group, Ranking};
use crate::scale::{self, Scale};

/// A column: its head and a value for each scheme, in the order of the results.
pub type Column = (String, Vec<String>);

/// Columns of a terminal. Of the alternative terms for a figure, the table uses the longest that fit.
const WIDTH: usize = 80;

/// A speed-up as text.
pub fn speed_up(ratio: f64) -> String {
    if (0.0995..99.95).contains(&ratio) { format!("{ratio:.2}") } else { significant(ratio) }
}

/// Whether any mean response differs between seeds.
fn is_spread(entries: &[Entry]) -> bool {
    entries.iter().filter_map(|entry| entry.spread).any(|spread| spread.half_range_us() > 0.0)
}

/// The kind of time that a replay with these arrivals measures. A request that waits for no other shows the service
/// time.
pub fn time_name(arrivals: &str) -> &'static str {
    if arrivals == arrivals::SERVICE { "service" } else { "response" }
}

/// Whether the table has service times beside the responses of another replay.
fn has_both(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.service_beside().is_some())
}

/// A figure of a scheme in a unit of size `size`, marked if it is extrapolated from less than one overwrite.
pub fn shown(entry: &Entry, figure: &Figure<KeyFigures>, size: f64) -> String {
    let mark = if figure.is_extrapolated() && entry.is_extrapolated() { EXTRAPOLATED } else { "" };
    let value = (figure.of)(&entry.report.key_figures);
    value.map_or_else(|| NOTHING.to_owned(), |value| format!("{mark}{}", in_unit(figure.unit, value / size)))
}

/// The figures that are table columns, from left to right.
fn in_table<F>(all: &'static [Figure<F>]) -> Vec<&'static Figure<F>> {
    let place = |figure: &&Figure<F>| if let Shown::Table(place) = figure.shown { Some(place) } else { None };
    let mut columns: Vec<&Figure<F>> = all.iter().filter(|figure| place(figure).is_some()).collect();
    columns.sort_by_key(place);
    columns
}

/// Columns of the service times.
fn service_columns(entries: &[Entry], time: (&str, f64)) -> Vec<Column> {
    let column = |figure: &Figure<ResponseFigures>| {
        let shown = |entry: &Entry| {
            let value = entry.service_us.as_ref().filter(|_| entry.serves()).and_then(figure.of);
            value.map_or_else(|| NOTHING.to_owned(), |us| significant(us / time.1))
        };
        (format!("service ({})\n{}", time.0, figure.head), entries.iter().map(shown).collect())
    };
    in_table(ResponseFigures::ALL).into_iter().map(column).collect()
}

/// Columns of the main replay's times. An overloaded device shows no times. A device that is overloaded in bursts has
/// its times marked.
fn time_columns(entries: &[Entry], time: (&str, f64), words: &str) -> Vec<Column> {
    let in_time = |us: f64| significant(us / time.1);
    let with_spread = is_spread(entries);
    let sign = if has_both(entries) { "±" } else { " ± " };
    let spread = |entry: &Entry| {
        let spread = entry.spread.filter(|_| with_spread);
        spread.map_or_else(String::new, |spread| format!("{sign}{}", in_time(spread.half_range_us())))
    };
    let name = entries.first().map_or("response", |entry| time_name(&entry.arrivals));
    let column = |(nth, figure): (usize, &Figure<ResponseFigures>)| {
        let shown = |entry: &Entry| {
            let mark = if entry.report.load.overload == Overload::Bursts { IN_BURSTS } else { "" };
            match (nth, entry.mean_us()) {
                (_, None) if !entry.falls_behind() => NOTHING.to_owned(),
                (0, None) => format!("{words} {}", behind(entry.backlog_s)),
                // An empty cell belongs to the cell before it.
                (_, None) => String::new(),
                (0, Some(mean_us)) => format!("{mark}{}{}", in_time(mean_us), spread(entry)),
                _ => (figure.of)(&entry.report.response_us)
                    .map_or_else(|| NOTHING.to_owned(), |us| format!("{mark}{}", in_time(us))),
            }
        };
        (format!("{name} ({})\n{}", time.0, figure.head), entries.iter().map(shown).collect())
    };
    in_table(ResponseFigures::ALL).into_iter().enumerate().map(column).collect()
}

/// Columns of the other figures, each column in one unit.
fn figure_columns(entries: &[Entry]) -> Vec<Column> {
    let column = |figure: &Figure<KeyFigures>| {
        let (unit, size) = scale::of_figure(entries, figure);
        let head = if unit.is_empty() { figure.head.to_owned() } else { format!("{}\n({unit})", figure.head) };
        (head, entries.iter().map(|entry| shown(entry, figure, size)).collect())
    };
    in_table(KeyFigures::ALL).into_iter().map(column).collect()
}

/// Columns of service times, responses and the other figures. If only one kind of times is shown, also the speed-up
/// over the first scheme.
fn columns(entries: &[Entry], words: &str) -> Vec<Column> {
    let Scale { time, service, .. } = Scale::of(entries);
    let speed_up = |entry: &Entry| {
        let of_first = || entry.mean_us().map(|_| 1.0);
        let ratio = entry.relative.as_ref().map_or_else(of_first, |relative| relative.response_speedup);
        ratio.map_or_else(|| NOTHING.to_owned(), speed_up)
    };
    let mut columns = Vec::new();
    if has_both(entries) {
        columns.extend(service_columns(entries, service));
        columns.extend(time_columns(entries, time, words));
    } else {
        columns.extend(time_columns(entries, time, words));
        columns.push(("speed-up".into(), entries.iter().map(speed_up).collect()));
    }
    columns.extend(figure_columns(entries));
    columns
}

/// The table: schemes in their groups. Schemes on the Pareto front of their group are marked.
pub fn sheet(entries: &[Entry], ranking: &Ranking) -> Sheet {
    let name = |place: usize| {
        let mark = if ranking.is_on_front(place) { ON_FRONT } else { "" };
        format!("{} {mark}", entries[place].report.scheme).trim_end().to_owned()
    };
    let with = |words: &str| grouped(ranking, name, columns(entries, words));
    let sheet = with("falls behind by");
    if sheet.width() <= WIDTH { sheet } else { with("behind by") }
}

/// Columns of figures in the order and the groups of a ranking.
pub fn grouped(ranking: &Ranking, name: impl Fn(usize) -> String, columns: Vec<Column>) -> Sheet {
    let heads = std::iter::once("scheme".to_owned()).chain(columns.iter().map(|(head, _)| head.clone())).collect();
    let row = |&place: &usize| {
        std::iter::once(name(place)).chain(columns.iter().map(|(_, values)| values[place].clone())).collect()
    };
    let group =
        |group: &Group| Rows { title: group.title.map(str::to_owned), rows: group.places.iter().map(row).collect() };
    Sheet { heads, groups: ranking.groups.iter().map(group).collect() }
}

/// Notes on the table: its order, and the marks that occur in it.
pub fn remarks(entries: &[Entry], ranking: &Ranking) -> Vec<String> {
    let mut remarks = Vec::new();
    if let [first, _, ..] = entries {
        let main = if time_name(&first.arrivals) == "service" { "service time" } else { "response" };
        let sorted = format!("sorted {}", ranking.sort.phrase().replace("response", main));
        let first = &first.report.scheme;
        remarks.push(if has_both(entries) { sorted } else { format!("{sorted}; speed-up is over {first}") });
    }
    if ranking.has_front() {
        let group = if ranking.groups.len() > 1 { " of its group" } else { "" };
        remarks.push(format!(
            "{ON_FRONT} no other scheme{group} is at least as good in cost, response and life and better in one"
        ));
    }
    remarks.extend(spread_remark(entries));
    let holds = |overload| entries.iter().any(|entry| entry.report.load.overload == overload);
    if holds(Overload::Growing) {
        let late = "falls behind: ends that much later than the trace; responses would only reflect the trace's length";
        remarks.push(late.to_owned());
    }
    if holds(Overload::Bursts) {
        remarks.push(format!("{IN_BURSTS} it falls behind in bursts: most of its mean response is waiting"));
    }
    // The table has the mark only where it has a life.
    let has_life = |entry: &&Entry| entry.report.key_figures.lifetime_years.is_some();
    let extrapolated = entries.iter().filter(|entry| entry.is_extrapolated()).filter(has_life);
    let overwrites = extrapolated.map(|entry| entry.lifetime_overwrites);
    remarks.extend(extrapolated_remark(overwrites, "`--repeat` and `--measure`"));
    remarks
}

/// A caveat on lifetimes of devices that were overwritten `overwrites` times, each less than once. It quotes the least,
/// and the `options` that measure more passes.
pub fn extrapolated_remark(overwrites: impl Iterator<Item = f64>, options: &str) -> Option<String> {
    let least = overwrites.min_by(f64::total_cmp)?;
    let shown = significant(least);
    Some(format!(
        "{EXTRAPOLATED} life extrapolated from {shown} overwrites of the device: it may be much shorter; measure more passes \
         with {options}"
    ))
}

/// The result of several seeds.
fn spread_remark(entries: &[Entry]) -> Option<String> {
    let (entry, spread) = entries.iter().find_map(|entry| Some((entry, entry.spread?)))?;
    let (seeds, first) = (spread.seeds, entry.device.seed);
    Some(if is_spread(entries) {
        format!(
            "mean and speed-up: over {seeds} seeds from {first} on, ± half of the range between the lowest and the \
             highest; all other figures are those of seed {first}"
        )
    } else {
        format!(
            "{seeds} seeds from {first} on give the same mean responses: the choices of a seed, such as which operations \
             fail, make no difference here"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Spread;
    use crate::compare::testing::{Sketch, entries};
    use crate::listing::chars;
    use crate::ranking::Sort;

    const A: Sketch =
        Sketch { scheme: "density-control", mean_us: 2_770.0, years: Some(0.9), usd: 8.0, disk: false, growing: false };

    /// Entries with service times beside their responses.
    fn both(sketches: &[Sketch]) -> Vec<Entry> {
        let mut some = entries(sketches);
        for entry in &mut some {
            entry.service_us = Some(ResponseFigures { mean: 1234.0, p99: 8765.0, ..entry.report.response_us });
            entry.arrivals = "trace".into();
            entry.backlog_s = if entry.falls_behind() { 12.3 } else { 0.0 };
        }
        some
    }

    fn text(entries: &[Entry]) -> String {
        let ranking = Ranking::of(entries, Sort::Response);
        let lines = sheet(entries, &ranking).lines();
        lines.iter().map(|line| format!("{}\n", line.text())).collect()
    }

    #[test]
    fn a_column_and_its_neighbour_share_a_unit() {
        let mut some = entries(&[A, Sketch { scheme: "b", mean_us: 26_400.0, years: Some(900.0), ..A }]);
        some[0].report.response_us.p99 = 961.0;
        let text = text(&some);
        assert!(text.contains("service (ms)") && !text.contains("response"), "{text}");
        assert!(text.contains(" 2.77  0.961 "), "{text}");
        // A life of 900 years takes too many digits in days.
        assert!(text.contains("(years)") && text.contains("  0.900  "), "{text}");
    }

    #[test]
    fn the_widest_table_fits_80_columns() {
        let wide = Sketch { mean_us: 987_654.0, years: Some(1234.0), usd: 98_765.4, ..A };
        let least = Sketch { scheme: "b", mean_us: 12.0, years: Some(0.0001), disk: true, ..A };
        for mut some in [entries, both].map(|make| make(&[wide, wide, least, Sketch { growing: true, ..wide }])) {
            fits(&mut some);
        }
    }

    fn fits(some: &mut [Entry]) {
        for entry in &mut *some {
            entry.lifetime_overwrites = 0.1;
            let mean_us = entry.report.response_us.mean;
            entry.spread = Some(Spread { seeds: 5, mean_us, min_us: mean_us * 0.8, max_us: mean_us * 1.2 });
        }
        let text = text(some);
        assert!(text.contains('±') && text.contains("flash cache over a disk"), "{text}");
        assert!(text.lines().all(|line| chars(line) <= 80), "{text}");
    }

    #[test]
    fn a_spread_of_nothing_is_said_once() {
        let mut some = entries(&[A, Sketch { scheme: "b", ..A }]);
        for entry in &mut some {
            entry.spread = Some(Spread { seeds: 3, mean_us: 2770.0, min_us: 2770.0, max_us: 2770.0 });
        }
        assert!(!text(&some).contains('±'));
        let remarks = remarks(&some, &Ranking::of(&some, Sort::Response));
        assert!(remarks[2].starts_with("3 seeds from 1 on give the same mean responses"), "{remarks:?}");
    }

    #[test]
    fn one_scheme_needs_no_legend() {
        let one = entries(&[A]);
        assert_eq!(remarks(&one, &Ranking::of(&one, Sort::Response)), [""; 0]);
    }

    #[test]
    fn service_times_and_responses_stand_side_by_side() {
        let behind = Sketch { scheme: "behind", growing: true, ..A };
        let some = both(&[A, behind]);
        assert_eq!(
            text(&some),
            "                     service (ms)     response (ms)      write    life   cost\n  \
             scheme               mean  99 %            mean  99 %   amp.  (days)  (USD)\n  \
             density-control *    1.23  8.77            2.77  24.9   1.00     329   8.00\n  \
             behind               1.23  8.77  falls behind by 12 s   1.00     329   8.00\n"
        );
        let remarks = remarks(&some, &Ranking::of(&some, Sort::Response));
        assert_eq!(remarks[0], "sorted by mean response, best first");
        assert!(remarks.iter().any(|remark| remark.starts_with("falls behind: ends that much later")), "{remarks:?}");
    }

    #[test]
    fn service_times_have_a_unit_of_their_own_where_responses_are_very_long() {
        let heads = |mean_us: f64| {
            let some = both(&[Sketch { mean_us, ..A }]);
            sheet(&some, &Ranking::of(&some, Sort::Response)).flat_heads()
        };
        assert_eq!(heads(118e6)[1..4], ["service (ms) mean", "service (ms) 99 %", "response (s) mean"]);
        assert_eq!(heads(900.0)[1..4], ["service (ms) mean", "service (ms) 99 %", "response (ms) mean"]);
        assert_eq!(heads(90.0)[1..4], ["service (µs) mean", "service (µs) 99 %", "response (µs) mean"]);
    }

    #[test]
    fn a_life_from_less_than_one_overwrite_is_marked() {
        let mut some = entries(&[A, Sketch { scheme: "b", ..A }]);
        some.iter_mut().for_each(|entry| entry.lifetime_overwrites = 1.0);
        assert!(!text(&some).contains('~'));
        some[1].lifetime_overwrites = 0.00612;
        assert!(text(&some).contains("  ~329  "), "{}", text(&some));
        let remarks = remarks(&some, &Ranking::of(&some, Sort::Response));
        assert_eq!(
            remarks.last().unwrap(),
            "~ life extrapolated from 0.006 overwrites of the device: it may be much shorter; measure more passes with \
             `--repeat` and `--measure`"
        );
    }
}
