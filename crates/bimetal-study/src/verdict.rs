//! Summary of a comparison in words: computed from the figures, no finer than the displayed digits.

use crate::compare::{Entry, Spread};
use crate::headline::speed_up;
use crate::listing::broken;
use crate::number::{EXTRAPOLATED, dollars, significant};
use crate::ranking::{Group, Ranking};
use crate::scale::Scale;

/// Characters in a line: with an indent of two they fit a terminal of 80 columns.
const LINE: usize = 78;
/// Maximum number of lines of a verdict.
const LINES_MAX: usize = 2;

/// The best schemes in one respect.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// Every scheme that equals the best in the displayed digits or, with several seeds, within the spread.
    pub schemes: Vec<String>,
    /// Whether these are all the schemes compared.
    pub is_all: bool,
    /// A phrase for the schemes, if they are one whole group of several.
    pub group: Option<&'static str>,
    /// The figure of the best, with its unit. None for life if the best scheme wrote no flash.
    pub figure: Option<String>,
    /// Number of seeds, if their spreads overlap, so that figures with different digits count as equal.
    pub seeds: Option<u32>,
}

/// The best in each respect.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the trace has reads or writes.
    pub serves: bool,
    /// The fastest scheme that keeps up with the trace. With caches over disks in the comparison, the fastest without a
    /// disk.
    pub fastest: Option<Best>,
    /// The shortest mean service time, if no device keeps up and service times are known.
    pub service: Option<Best>,
    /// Speed-up of the fastest over the first scheme of the comparison, and the name of the first scheme.
    pub ratio: Option<(String, String)>,
    /// The fastest cache over a disk, if both kinds are compared. The inner option is none if no cache keeps up.
    pub over_disk: Option<Option<Best>>,
    /// The longest life; none if no life is known.
    pub life: Option<Best>,
    /// The lowest price.
    pub cheapest: Best,
}

impl Verdict {
    /// The verdict on these results; none for fewer than two.
    pub fn of(entries: &[Entry], ranking: &Ranking) -> Option<Self> {
        if entries.len() < 2 {
            return None;
        }
        let scale = Scale::of(entries);
        let groups: Vec<Vec<&Entry>> =
            ranking.groups.iter().map(|group| group.places.iter().map(|&at| &entries[at]).collect()).collect();
        let (first, second) = match groups.as_slice() {
            [one] => (one, None),
            [flash, over_disk, ..] => (flash, Some(over_disk)),
            [] => return None,
        };
        let over_disk = second.map(|group| fastest(group, &scale));
        let fastest = fastest(first, &scale);
        let all: Vec<&Entry> = groups.iter().flatten().copied().collect();
        let cost = |entry: &Entry| Some(entry.report.key_figures.cost_usd);
        let cheapest = Best::of(&all, cost, |usd| format!("{} USD", dollars(usd)))?;
        let together = |best: Best| Best { group: whole_group(&best, entries, ranking), ..best };
        let none_keeps_up = fastest.is_none() && !matches!(over_disk, Some(Some(_)));
        let service = |entry: &Entry| entry.mean_service_us().filter(|_| none_keeps_up);
        Some(Self {
            serves: entries.iter().any(Entry::serves),
            service: Best::of(&all, service, |us| scale.service(us)),
            ratio: fastest.as_ref().and_then(|best| ratio(first, best)),
            fastest,
            over_disk,
            life: longest_life(&all, &scale).map(together),
            cheapest: together(cheapest),
        })
    }

    /// The verdict in at most two lines.
    pub fn lines(&self) -> Vec<String> {
        let fits = |clauses: &[String]| broken(&clauses.join("; "), LINE).len() <= LINES_MAX;
        let mut styles = STYLES.iter().map(|style| self.clauses(*style));
        let shortest = || self.clauses(STYLES[STYLES.len() - 1]);
        let mut clauses = styles.find(|clauses| fits(clauses)).unwrap_or_else(shortest);
        while clauses.len() > 1 && !fits(&clauses) {
            clauses.pop();
        }
        broken(&clauses.join("; "), LINE)
    }

    /// The verdict in one sentence: its lines without breaks.
    pub fn sentence(&self) -> String {
        self.lines().join(" ")
    }

    /// The verdict in full, without a limit of lines.
    pub fn whole(&self) -> String {
        self.clauses(STYLES[0]).join("; ")
    }

    fn clauses(&self, style: Style) -> Vec<String> {
        let mut clauses = Vec::new();
        let mean = if style.words { " on average" } else { "" };
        let several = self.over_disk.is_some();
        clauses.push(match (&self.fastest, &self.over_disk) {
            (None, Some(Some(_))) => "no flash alone keeps up with the trace".to_owned(),
            (None, _) if !self.serves => "the trace has neither reads nor writes".to_owned(),
            (None, _) => "no scheme keeps up with the trace".to_owned(),
            (Some(best), _) => {
                let all = if several { "all flash takes" } else { "all take" };
                let some = if several { "fastest flash" } else { "fastest" };
                best.clause(if best.is_all { all } else { some }, style) + mean
            }
        });
        if let (Some((ratio, first)), true) = (&self.ratio, style.ratio) {
            let times = if style.words { format!("{ratio} times as fast as") } else { format!("{ratio} x") };
            clauses[0].push_str(&format!(", {times} {first}"));
        }
        clauses.extend(self.over_disk.as_ref().and_then(|best| match best {
            Some(best) => Some(best.named("over a disk", style)),
            // If no device keeps up, the verdict already says so.
            None => self.fastest.as_ref().map(|_| "over a disk: none keeps up".to_owned()),
        }));
        clauses.extend(self.service.as_ref().map(|best| {
            best.clause(if best.is_all { "all serve a request in" } else { "shortest service time" }, style)
        }));
        clauses.extend(
            self.life.as_ref().map(|best| {
                if best.is_all { best.clause("all live", style) } else { best.clause("longest life", style) }
            }),
        );
        let cheapest = &self.cheapest;
        clauses.push(cheapest.clause(if cheapest.is_all { "all cost" } else { "cheapest" }, style));
        clauses
    }
}

/// Level of detail of a verdict.
#[derive(Clone, Copy, Debug)]
struct Style {
    /// Longer lists of names are replaced by their count.
    names: usize,
    /// Whether figures have the words that explain them without the table.
    words: bool,
    /// Whether it states the ratio to the first scheme.
    ratio: bool,
}

/// Styles from full to short. The first one that fits is used.
const STYLES: [Style; 5] = [
    Style { names: 4, words: true, ratio: true },
    Style { names: 2, words: true, ratio: true },
    Style { names: 1, words: true, ratio: true },
    Style { names: 1, words: false, ratio: true },
    Style { names: 1, words: false, ratio: false },
];

impl Best {
    /// The schemes with the least value, among those that have one.
    fn of(entries: &[&Entry], value: impl Fn(&Entry) -> Option<f64>, shown: impl Fn(f64) -> String) -> Option<Self> {
        let known: Vec<(&Entry, f64)> = entries.iter().filter_map(|entry| Some((*entry, value(entry)?))).collect();
        let (_, least) = known.iter().copied().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let figure = shown(least);
        let equal = known.iter().filter(|(_, value)| shown(*value) == figure);
        let schemes: Vec<String> = equal.map(|(entry, _)| entry.report.scheme.clone()).collect();
        Some(Self {
            is_all: schemes.len() == entries.len() && schemes.len() > 1,
            schemes,
            group: None,
            figure: Some(figure),
            seeds: None,
        })
    }

    /// `fastest: a, 1.00 ms`; if all are equal, `all take 1.00 ms`.
    fn clause(&self, what: &str, style: Style) -> String {
        if !self.is_all {
            return self.named(what, style);
        }
        let figure = self.figure.as_deref().unwrap_or_default();
        let noise = self.seeds.map_or_else(String::new, |seeds| format!(", within the spread of {seeds} seeds"));
        format!("{what} {figure}{noise}")
    }

    /// `fastest: a and b, each 1.00 ms`.
    fn named(&self, what: &str, style: Style) -> String {
        let who = match (self.group, self.schemes.as_slice()) {
            (Some(group), _) => group.to_owned(),
            (None, [one]) => one.clone(),
            (None, [some @ .., last]) if some.len() < style.names => format!("{} and {last}", some.join(", ")),
            (None, [first, second]) => format!("{first} and {second}"),
            (None, [first, others @ ..]) => format!("{first} and {} more", others.len()),
            (None, []) => String::new(),
        };
        let each = if self.schemes.len() > 1 && self.group.is_none() { "each " } else { "" };
        match (&self.figure, self.seeds) {
            (Some(figure), None) => format!("{what}: {who}, {each}{figure}"),
            (Some(figure), Some(seeds)) => format!("{what}: {who}, {figure} within the spread of {seeds} seeds"),
            (None, _) => format!("{what}: {who}, whose flash was not written"),
        }
    }
}

fn fastest(group: &[&Entry], scale: &Scale) -> Option<Best> {
    // Equal in the unit of the group, so that ties do not depend on another group; shown in that of the table.
    let of_group = Scale::of(group.iter().copied());
    let mut best = Best::of(group, Entry::mean_us, |us| of_group.time(us))?;
    best.figure = group.iter().filter_map(|entry| entry.mean_us()).min_by(f64::total_cmp).map(|us| scale.time(us));
    let spread = |entry: &&Entry| Some((entry.mean_us()?, entry.spread?));
    let slowest_of_best = (group.iter().filter_map(spread))
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, Spread { max_us, seeds, .. })| (max_us, seeds));
    let Some((max_us, seeds)) = slowest_of_best else { return Some(best) };
    let is_equal = |entry: &&&Entry| {
        let overlaps = spread(entry).is_some_and(|(_, spread)| spread.min_us <= max_us);
        overlaps || best.schemes.contains(&entry.report.scheme)
    };
    let equal: Vec<String> = group.iter().filter(is_equal).map(|entry| entry.report.scheme.clone()).collect();
    if equal.len() > best.schemes.len() {
        best = Best { is_all: equal.len() == group.len(), schemes: equal, seeds: Some(seeds), ..best };
    }
    Some(best)
}

/// Speed-up of the fastest over the first scheme. None if the first is one of the fastest or in another group, or if
/// they are equal.
fn ratio(group: &[&Entry], best: &Best) -> Option<(String, String)> {
    let [name] = best.schemes.as_slice() else { return None };
    let relative = group.iter().find(|entry| entry.report.scheme == *name)?.relative.as_ref()?;
    let is_in_group = group.iter().any(|entry| entry.report.scheme == relative.to);
    let ratio = speed_up(relative.response_speedup?);
    (is_in_group && ratio != "1.00").then(|| (ratio, relative.to.clone()))
}

/// A phrase for the best, if they are one whole group of several.
fn whole_group(best: &Best, entries: &[Entry], ranking: &Ranking) -> Option<&'static str> {
    let is_whole = |group: &&Group| {
        let mut names = group.places.iter().map(|&at| &entries[at].report.scheme);
        group.places.len() == best.schemes.len() && names.all(|name| best.schemes.contains(name))
    };
    let group = ranking.groups.iter().find(is_whole)?;
    (best.schemes.len() > 1 && !best.is_all && ranking.groups.len() > 1).then_some(group.kind.together())
}

/// The longest life. It is unknown for all if the trace writes nothing or takes no time. If it is unknown for some
/// only, these wrote no flash.
fn longest_life(entries: &[&Entry], scale: &Scale) -> Option<Best> {
    let unworn = entries.iter().filter(|entry| entry.report.key_figures.lifetime_years.is_none());
    let unworn: Vec<String> = unworn.map(|entry| entry.report.scheme.clone()).collect();
    if unworn.is_empty() {
        let best = Best::of(
            entries,
            |entry| entry.report.key_figures.lifetime_years.map(|years| -years),
            |years| scale.life(-years),
        )?;
        // The mark of the table: no device was overwritten completely.
        let is_extrapolated = entries.iter().any(|entry| entry.is_extrapolated());
        let mark = if is_extrapolated { EXTRAPOLATED } else { "" };
        let figure = best.figure.map(|figure| format!("{mark}{figure}"));
        return Some(Best { figure, ..best });
    }
    let some_are_worn = unworn.len() < entries.len();
    some_are_worn.then_some(Best { schemes: unworn, is_all: false, group: None, figure: None, seeds: None })
}

impl Scale {
    fn time(&self, us: f64) -> String {
        format!("{} {}", significant(us / self.time.1), self.time.0)
    }

    fn service(&self, us: f64) -> String {
        format!("{} {}", significant(us / self.service.1), self.service.0)
    }

    fn life(&self, years: f64) -> String {
        format!("{} {}", significant(years / self.life.1), self.life.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{Sketch, entries};
    use crate::headline;
    use crate::ranking::Sort;
    use bimetal_core::report::ResponseFigures;
    use proptest::prelude::*;

    const A: Sketch = Sketch { scheme: "a", mean_us: 5000.0, years: Some(2.0), usd: 8.0, disk: false, growing: false };

    fn verdict_of(entries: &[Entry]) -> Option<Verdict> {
        Verdict::of(entries, &Ranking::of(entries, Sort::Response))
    }

    fn sentence(sketches: &[Sketch]) -> String {
        verdict_of(&entries(sketches)).map_or_else(String::new, |verdict| verdict.sentence())
    }

    #[test]
    fn each_respect_has_its_best() {
        let b = Sketch { scheme: "b", mean_us: 2500.0, years: Some(1.0), usd: 9.0, ..A };
        assert_eq!(
            sentence(&[A, b]),
            "fastest: b, 2.50 ms on average, 2.00 times as fast as a; longest life: a, 2.00 years; cheapest: a, 8.00 USD"
        );
        // The first is not compared with itself.
        assert!(sentence(&[b, A]).starts_with("fastest: b, 2.50 ms on average; longest"));
    }

    #[test]
    fn what_the_digits_do_not_tell_apart_is_equal() {
        let b = Sketch { scheme: "b", mean_us: 5001.0, years: Some(2.001), ..A };
        assert_eq!(sentence(&[A, b]), "all take 5.00 ms on average; all live 2.00 years; all cost 8.00 USD");
        let c = Sketch { scheme: "c", mean_us: 9000.0, usd: 9.0, years: Some(1.0), ..A };
        assert_eq!(
            sentence(&[c, A, b]),
            "fastest: a and b, each 5.00 ms on average; longest life: a and b, each 2.00 years; \
             cheapest: a and b, each 8.00 USD"
        );
    }

    #[test]
    fn there_is_nothing_to_choose_between_one() {
        assert_eq!(sentence(&[A]), "");
        assert_eq!(sentence(&[]), "");
    }

    #[test]
    fn devices_that_fall_behind_are_not_fast() {
        let behind = Sketch { scheme: "b", mean_us: 1.0, growing: true, ..A };
        assert!(sentence(&[A, behind]).starts_with("fastest: a, 5.00 ms on average; "), "{}", sentence(&[A, behind]));
        let both = [Sketch { growing: true, ..A }, behind];
        let late = "no scheme keeps up with the trace; all serve a request in ";
        assert!(sentence(&both).starts_with(late) && sentence(&both).contains("; all live"), "{}", sentence(&both));
        let mut some = entries(&both);
        some[1].service_us.as_mut().unwrap().mean = 1.0;
        let text = verdict_of(&some).unwrap().sentence();
        assert!(text.starts_with("no scheme keeps up with the trace; shortest service time: b, 1.00 µs; "), "{text}");
    }

    #[test]
    fn a_life_that_is_not_known_is_not_claimed() {
        let unknown = Sketch { scheme: "b", years: None, ..A };
        assert!(sentence(&[A, unknown]).contains("longest life: b, whose flash was not written"));
        assert!(!sentence(&[Sketch { years: None, ..A }, unknown]).contains("li"));
    }

    #[test]
    fn a_cache_over_a_disk_does_not_hide_the_fastest_flash() {
        let over = Sketch { scheme: "over", mean_us: 1000.0, disk: true, usd: 0.5, ..A };
        let b = Sketch { scheme: "b", mean_us: 4000.0, ..A };
        assert_eq!(
            sentence(&[A, b, over]),
            "fastest flash: b, 4.00 ms on average, 1.25 times as fast as a; over a disk: over, 1.00 ms; all live 2.00 years; \
             cheapest: over, 0.500 USD"
        );
        let behind = Sketch { growing: true, ..over };
        assert!(sentence(&[A, b, behind]).contains("; over a disk: none keeps up; "));
        let [a, b] = [A, b].map(|sketch| Sketch { growing: true, ..sketch });
        assert!(
            sentence(&[a, b, over]).starts_with("no flash alone keeps up with the trace; over a disk: over, 1.00 ms; ")
        );
        assert!(sentence(&[a, b, behind]).starts_with("no scheme keeps up with the trace; shortest service time: "));
        // The first scheme is a device of the other kind.
        assert!(sentence(&[over, A]).starts_with("fastest flash: a, 5.00 ms on average; over a disk: over, 1.00 ms; "));
        let two = [A, over, Sketch { scheme: "other", ..over }];
        assert!(sentence(&two).ends_with("; cheapest: all over a disk, 0.500 USD"), "{}", sentence(&two));
    }

    #[test]
    fn a_trace_of_trims_alone_has_no_times() {
        let mut some = entries(&[A, Sketch { scheme: "b", years: None, ..A }]);
        for entry in &mut some {
            entry.report.response_us = ResponseFigures::default();
            entry.service_us = Some(ResponseFigures::default());
            (entry.report.key_figures.lifetime_years, entry.arrivals) = (None, "trace".into());
        }
        let ranking = Ranking::of(&some, Sort::Response);
        let verdict = Verdict::of(&some, &ranking).unwrap().sentence();
        assert_eq!(verdict, "the trace has neither reads nor writes; all cost 8.00 USD");
        assert!(!ranking.has_front());
        let sheet = headline::sheet(&some, &ranking);
        assert!(sheet.flat_rows().iter().all(|row| row[1..5] == ["–"; 4]), "{sheet:?}");
    }

    #[test]
    fn what_the_spread_over_seeds_does_not_tell_apart_is_equal() {
        let c = Sketch { scheme: "c", mean_us: 9000.0, usd: 9.0, ..A };
        let mut some = entries(&[A, Sketch { scheme: "b", mean_us: 5200.0, ..A }, c]);
        let spread =
            |mean_us: f64, half: f64| Spread { seeds: 5, mean_us, min_us: mean_us - half, max_us: mean_us + half };
        for (entry, half) in some.iter_mut().zip([150.0, 100.0, 100.0]) {
            entry.spread = Some(spread(entry.report.response_us.mean, half));
        }
        let text = verdict_of(&some).unwrap().sentence();
        assert!(text.starts_with("fastest: a and b, 5.00 ms within the spread of 5 seeds on average; "), "{text}");
        some[1].spread = Some(spread(5200.0, 40.0));
        assert!(verdict_of(&some).unwrap().sentence().starts_with("fastest: a, 5.00 ms on average; "));
    }

    proptest! {
        /// With names and figures of any length, a verdict begins with the fastest scheme and has at most two lines.
        #[test]
        fn a_verdict_fits(raw in prop::collection::vec((0usize..4, 1u64..9, prop::option::of(1u64..4), any::<bool>(), any::<bool>()), 2..20)) {
            const NAMES: [&str; 4] = ["density-control", "hyssd-static", "conventional", "wlaftl-static"];
            let sketch = |&(name, mean, years, disk, growing): &(usize, u64, Option<u64>, bool, bool)| Sketch {
                scheme: NAMES[name], mean_us: mean as f64 * 123_456.7, years: years.map(|years| years as f64 * 999.0),
                usd: mean as f64 * 12_345.0, disk, growing,
            };
            let sketches: Vec<Sketch> = raw.iter().map(sketch).collect();
            let verdict = verdict_of(&entries(&sketches)).unwrap();
            let lines = verdict.lines();
            prop_assert!((1..=2).contains(&lines.len()), "{lines:?}");
            prop_assert!(lines.iter().all(|line| line.chars().count() <= LINE), "{lines:?}");
        }
    }
}
