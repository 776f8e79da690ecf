//! What each scheme of a comparison comes down to: the figures that fit on a line.

use bimetal_core::report::{Overload, Report};

use crate::compare::Entry;
use crate::listing::{Rows, Sheet};
use crate::number::{IN_BURSTS, LIVES, NOTHING, ON_FRONT, OVERLOAD, TIMES, Units, common_unit, dollars, significant};
use crate::ranking::{Group, Ranking};

/// A column: its head and a value for each scheme, in the order of the results.
pub type Column = (String, Vec<String>);

/// Units that figures of all schemes share, so that they can stand side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Of responses: a unit that suits the means is taken for percentiles too.
    pub time: (&'static str, f64),
    /// Of lives.
    pub life: (&'static str, f64),
}

/// Figures from here on take too much of a line: a larger unit is taken, though the least of them is then below one.
const SHOWN_MAX: f64 = 1e5;

impl Scale {
    /// For these results.
    pub fn of(entries: &[Entry]) -> Self {
        let lives = entries.iter().filter_map(|entry| entry.report.lifetime_years);
        Self {
            time: unit(TIMES, entries.iter().filter_map(Entry::mean_us).collect()),
            life: unit(LIVES, lives.collect()),
        }
    }
}

fn unit(units: Units, values: Vec<f64>) -> (&'static str, f64) {
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = common_unit(units, values.into_iter(), 1.0);
    let fits = |&&(_, size): &&(&'static str, f64)| size >= least.1 && most / size < SHOWN_MAX;
    units.iter().find(fits).copied().unwrap_or(least)
}

/// A figure of the responses: of a device that falls behind more and more it is none, and of one that does so in bursts it
/// is marked.
fn of_responses(entries: &[Entry], shown: impl Fn(&Entry) -> String) -> Vec<String> {
    let of = |entry: &Entry| match entry.report.load.overload {
        Overload::None => shown(entry),
        Overload::Bursts => format!("{IN_BURSTS}{}", shown(entry)),
        Overload::Growing => OVERLOAD.to_owned(),
    };
    entries.iter().map(of).collect()
}

/// How many times as fast.
pub(crate) fn speed_up(ratio: f64) -> String {
    if ratio < 99.95 { format!("{ratio:.2}") } else { significant(ratio) }
}

/// Whether any mean response differs from seed to seed.
fn is_spread(entries: &[Entry]) -> bool {
    entries.iter().filter_map(|entry| entry.spread).any(|spread| spread.half_range_us() > 0.0)
}

/// Responses, speed-up over the first scheme, write amplification, life, cost.
fn columns(entries: &[Entry]) -> Vec<Column> {
    let Scale { time, life } = Scale::of(entries);
    let in_time = |us: f64| significant(us / time.1);
    let with_spread = is_spread(entries);
    let mean = |entry: &Entry| {
        let spread = entry.spread.filter(|_| with_spread);
        let half = spread.map_or_else(String::new, |spread| format!(" ± {}", in_time(spread.half_range_us())));
        in_time(entry.mean_us().unwrap_or_default()) + &half
    };
    let optional =
        |value: Option<f64>, size: f64| value.map_or_else(|| NOTHING.to_owned(), |value| significant(value / size));
    let speed_up = |entry: &Entry| {
        let of_first = || entry.mean_us().map(|_| 1.0);
        let ratio = entry.relative.as_ref().map_or_else(of_first, |relative| relative.response_speedup);
        ratio.map_or_else(|| NOTHING.to_owned(), speed_up)
    };
    let of = |value: &dyn Fn(&Report) -> String| entries.iter().map(|entry| value(&entry.report)).collect();
    vec![
        (format!("mean\n({})", time.0), of_responses(entries, mean)),
        (format!("99 %\n({})", time.0), of_responses(entries, |entry| in_time(entry.report.response_us.p99))),
        ("speed-up".into(), entries.iter().map(speed_up).collect()),
        ("write\namp.".into(), of(&|report| optional(report.write_amplification, 1.0))),
        (format!("life\n({})", life.0), of(&|report| optional(report.lifetime_years, life.1))),
        ("cost\n(USD)".into(), of(&|report| dollars(report.cost_usd))),
    ]
}

/// The table: schemes in their groups, those on the front of theirs marked.
pub fn sheet(entries: &[Entry], ranking: &Ranking) -> Sheet {
    let name = |place: usize| {
        let mark = if ranking.is_on_front(place) { ON_FRONT } else { "" };
        format!("{} {mark}", entries[place].report.scheme).trim_end().to_owned()
    };
    grouped(ranking, name, columns(entries))
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

/// What is to be known to read the table: its order, and its marks as far as there are any.
pub fn remarks(entries: &[Entry], ranking: &Ranking) -> Vec<String> {
    let mut remarks = Vec::new();
    if let [first, _, ..] = entries {
        remarks.push(format!("sorted {}; speed-up is over {}", ranking.sort.phrase(), first.report.scheme));
    }
    if ranking.has_front() {
        let group = if ranking.groups.len() > 1 { " of its group" } else { "" };
        remarks.push(format!(
            "{ON_FRONT} no other scheme{group} is at least as good in cost, response and life and better in one"
        ));
    }
    remarks.extend(spread_remark(entries));
    let overloads = [
        (
            Overload::Growing,
            format!("{OVERLOAD}: it falls behind more and more; responses only say how long the trace is"),
        ),
        (
            Overload::Bursts,
            format!("{IN_BURSTS} it falls behind in bursts: the queue is measured more than the device"),
        ),
    ];
    let holds = |overload| entries.iter().any(|entry| entry.report.load.overload == overload);
    remarks.extend(overloads.into_iter().filter(|(overload, _)| holds(*overload)).map(|(_, text)| text));
    remarks
}

/// What several seeds have shown.
fn spread_remark(entries: &[Entry]) -> Option<String> {
    let (entry, spread) = entries.iter().find_map(|entry| Some((entry, entry.spread?)))?;
    let (seeds, first) = (spread.seeds, entry.device.seed);
    Some(if is_spread(entries) {
        format!(
            "mean: over {seeds} seeds from {first} on, ± half of the range between the lowest and the highest; all other \
             figures are those of seed {first}"
        )
    } else {
        format!(
            "{seeds} seeds from {first} on give the same mean responses: what a seed decides, such as which operations \
             fail, makes no difference here"
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
        assert_eq!(text.matches("(ms)").count(), 2, "{text}");
        assert!(text.contains(" 2.77  0.961 "), "{text}");
        // A life of 900 years takes too many digits in days.
        assert!(text.contains("(years)") && text.contains("  0.900  "), "{text}");
    }

    #[test]
    fn the_widest_table_fits_80_columns() {
        let wide = Sketch { mean_us: 987_654.0, years: Some(1234.0), usd: 98_765.4, ..A };
        let least = Sketch { scheme: "b", mean_us: 12.0, years: Some(0.0001), disk: true, ..A };
        let mut some = entries(&[wide, wide, least, Sketch { growing: true, ..wide }]);
        for entry in &mut some {
            let mean_us = entry.report.response_us.mean;
            entry.spread = Some(Spread { seeds: 5, mean_us, min_us: mean_us * 0.8, max_us: mean_us * 1.2 });
        }
        let text = text(&some);
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
}
