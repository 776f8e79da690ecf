//! Order of schemes, their groups, and the Pareto front of each group.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use bimetal_core::report::{Better, Figure, KeyFigures, Shown, Unit};

use crate::compare::Entry;
use crate::number::{self, dollars, significant};
use crate::scale::Scale;
use crate::sweep::pareto::{self, Aims};

/// A sort key of schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Mean response.
    #[default]
    Response,
    /// 99th percentile of the responses.
    P99,
    /// Mean service time.
    Service,
    /// The figure at this index of [`KeyFigures::ALL`].
    Figure(usize),
    /// Name.
    Name,
    /// The order in which the schemes were requested; for all schemes the order of the registry.
    Listed,
}

/// A sort order.
#[derive(Clone, Debug)]
pub struct Order {
    /// Its name on a command line.
    pub name: String,
    /// Its sort key.
    pub sort: Sort,
    /// Its description, to follow the word "sorted".
    pub phrase: String,
}

/// All orders.
pub static ORDERS: LazyLock<Vec<Order>> = LazyLock::new(|| {
    let order = |name: &str, sort: Sort, phrase: &str| Order { name: name.into(), sort, phrase: phrase.into() };
    let times = [
        order("response", Sort::Response, "by mean response, best first"),
        order("p99", Sort::P99, "by the 99th percentile of the response, best first"),
        order("service", Sort::Service, "by mean service time, best first"),
    ];
    let has_best = |figure: &Figure<KeyFigures>| figure.better != Better::Neither && figure.shown != Shown::Details;
    let figures = KeyFigures::ALL.iter().enumerate().filter(|(_, figure)| has_best(figure)).map(|(at, figure)| Order {
        name: figure.title.replace(' ', "-"),
        sort: Sort::Figure(at),
        phrase: format!("by {}, best first", figure.title),
    });
    let others = [order("name", Sort::Name, "by name"), order("listed", Sort::Listed, "in the order asked for")];
    times.into_iter().chain(figures).chain(others).collect()
});

impl Sort {
    /// Its description, to follow the word "sorted".
    pub fn phrase(self) -> &'static str {
        ORDERS.iter().find(|order| order.sort == self).map_or("", |order| order.phrase.as_str())
    }

    /// The sort value; smaller is better.
    fn key(self, entry: &Entry) -> Option<f64> {
        let report = &entry.report;
        match self {
            // Overloaded devices come last, among them the one with the smallest backlog first.
            Self::Response | Self::P99 if entry.falls_behind() => Some(entry.backlog_s),
            Self::Response => entry.mean_us(),
            Self::P99 => entry.mean_us().map(|_| report.response_us.p99),
            Self::Service => entry.mean_service_us(),
            Self::Figure(at) => {
                let figure = &KeyFigures::ALL[at];
                // A device whose flash is not written does not wear out.
                let unworn = (figure.unit == Unit::Year).then_some(f64::NEG_INFINITY);
                figure.badness(&report.key_figures).or(unworn)
            }
            Self::Name | Self::Listed => None,
        }
    }

    /// Compares by the figure. Overloaded devices come last, except by service time. Devices without the figure come
    /// before them.
    fn order(self, a: &Entry, b: &Entry) -> Ordering {
        match self {
            Self::Listed => Ordering::Equal,
            Self::Name => a.report.scheme.cmp(&b.report.scheme),
            _ => {
                let (key_a, key_b) = (self.key(a), self.key(b));
                let known = key_a.is_none().cmp(&key_b.is_none());
                let values = key_a.zip(key_b).map_or(Ordering::Equal, |(a, b)| a.total_cmp(&b));
                let falls_behind = |entry: &Entry| self != Self::Service && entry.falls_behind();
                falls_behind(a).cmp(&falls_behind(b)).then(known).then(values)
            }
        }
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ORDERS.iter().find(|order| order.sort == *self).map_or(Ok(()), |order| f.write_str(&order.name))
    }
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = ORDERS.iter().find(|order| order.name == name);
        found.map(|order| order.sort).ok_or_else(|| {
            let known: Vec<&str> = ORDERS.iter().map(|order| order.name.as_str()).collect();
            format!("there is no order `{name}`; there are: {}", known.join(", "))
        })
    }
}

/// The storage below a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Flash alone.
    Flash,
    /// Disks with flash as their cache.
    OverDisk,
}

impl Kind {
    /// The title above schemes of this kind.
    fn title(self) -> &'static str {
        match self {
            Self::Flash => "flash only",
            Self::OverDisk => "flash cache over a disk",
        }
    }

    /// A phrase for all schemes of this kind.
    pub fn together(self) -> &'static str {
        match self {
            Self::Flash => "all without a disk",
            Self::OverDisk => "all over a disk",
        }
    }
}

/// Schemes whose devices are of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The kind.
    pub kind: Kind,
    /// Its title, if there are several groups.
    pub title: Option<&'static str>,
    /// Indexes of the schemes in the results, in display order.
    pub places: Vec<usize>,
}

/// The display order of the results of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// The sort key.
    pub sort: Sort,
    /// The groups, none empty.
    pub groups: Vec<Group>,
    /// Indexes of the schemes on the Pareto front of their group.
    front: Vec<usize>,
}

impl Ranking {
    /// The ranking of these results. Flash caches over a disk and flash alone are different devices, and thus in
    /// different groups.
    pub fn of(entries: &[Entry], sort: Sort) -> Self {
        let without_service = entries.iter().all(|entry| entry.service_us.is_none());
        let sort = if sort == Sort::Service && without_service { Sort::Response } else { sort };
        let (flash, over_disk): (Vec<usize>, Vec<usize>) =
            (0..entries.len()).partition(|&at| entries[at].disks.is_empty());
        let several = !flash.is_empty() && !over_disk.is_empty();
        let group = |(kind, mut places): (Kind, Vec<usize>)| {
            places.sort_by(|&a, &b| sort.order(&entries[a], &entries[b]));
            Group { kind, title: several.then_some(kind.title()), places }
        };
        let kinds = [(Kind::Flash, flash), (Kind::OverDisk, over_disk)];
        let groups: Vec<Group> = kinds.into_iter().filter(|(_, places)| !places.is_empty()).map(group).collect();
        let front = groups.iter().flat_map(|group| front(entries, group)).collect();
        Self { sort, groups, front }
    }

    /// Whether the scheme is on the Pareto front: no other scheme of its group is at least as good in cost, response
    /// and life, and better in one of them. A scheme alone in its group is never on the front.
    pub fn is_on_front(&self, place: usize) -> bool {
        self.front.contains(&place)
    }

    /// Whether any scheme is on a front.
    pub fn has_front(&self) -> bool {
        !self.front.is_empty()
    }

    /// The results in display order.
    pub fn arranged(&self, entries: &[Entry]) -> Vec<Entry> {
        self.groups.iter().flat_map(|group| &group.places).map(|&at| entries[at].clone()).collect()
    }
}

/// Indexes of the schemes on the Pareto front. Figures are compared as a table of the group alone displays them, so that
/// differences below the displayed digits do not count, and other groups do not matter.
fn front(entries: &[Entry], group: &Group) -> Vec<usize> {
    if group.places.len() < 2 {
        return Vec::new();
    }
    let scale = &Scale::of(group.places.iter().map(|&at| &entries[at]));
    let point = |&at: &usize| {
        let aims = aims(&entries[at], scale);
        pareto::USUAL.iter().map(|goal| goal.of(&aims)).collect()
    };
    let points: Vec<pareto::Goals> = group.places.iter().map(point).collect();
    pareto::front(&points).into_iter().map(|at| group.places[at]).collect()
}

fn aims(entry: &Entry, scale: &Scale) -> Aims {
    let (report, figures) = (&entry.report, &entry.report.key_figures);
    let in_time = |us: f64| number::as_shown(&significant(us / scale.time.1));
    let mean = entry.mean_us();
    Aims {
        cost_usd: number::as_shown(&dollars(figures.cost_usd)),
        mean: mean.map(in_time),
        p99: mean.map(|_| in_time(report.response_us.p99)),
        // Without a duration of the trace no life in years is known, and lives are compared in host bytes.
        life: (figures.lifetime_years.map(|years| number::as_shown(&significant(years / scale.life.1))))
            .or(figures.lifetime_host_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{Sketch, entries};
    use crate::verdict::Verdict;

    const FLASH: Sketch = Sketch { scheme: "a", mean_us: 5.0, years: Some(1.0), usd: 8.0, disk: false, growing: false };

    fn shown(sketches: &[Sketch], sort: Sort) -> Vec<Vec<&'static str>> {
        let ranking = Ranking::of(&entries(sketches), sort);
        ranking.groups.iter().map(|group| group.places.iter().map(|&at| sketches[at].scheme).collect()).collect()
    }

    #[test]
    fn the_best_comes_first_and_overloaded_devices_last() {
        let sketches = [
            Sketch { scheme: "slow", mean_us: 9.0, years: None, usd: 7.0, ..FLASH },
            Sketch { scheme: "behind", mean_us: 1.0, years: Some(9.0), usd: 1.0, growing: true, ..FLASH },
            Sketch { scheme: "fast", mean_us: 2.0, usd: 9.0, ..FLASH },
            Sketch { scheme: "equal", mean_us: 2.0, years: Some(2.0), usd: 9.0, ..FLASH },
        ];
        let sort = |name: &str| name.parse::<Sort>().unwrap();
        for (sort, expected) in [
            (Sort::Response, ["fast", "equal", "slow", "behind"]),
            (Sort::P99, ["fast", "equal", "slow", "behind"]),
            // No page was programmed on the slow device.
            (sort("life"), ["slow", "equal", "fast", "behind"]),
            (sort("cost"), ["slow", "fast", "equal", "behind"]),
            (Sort::Name, ["behind", "equal", "fast", "slow"]),
            (Sort::Listed, ["slow", "behind", "fast", "equal"]),
        ] {
            assert_eq!(shown(&sketches, sort), [expected], "{sort:?}");
        }
    }

    #[test]
    fn of_those_that_fall_behind_the_one_that_does_so_least_comes_first() {
        let sketch = |scheme, growing| Sketch { scheme, growing, ..FLASH };
        let mut some = entries(&[sketch("far", true), sketch("near", true), sketch("keeps up", false)]);
        for (entry, (backlog_s, service_us)) in some.iter_mut().zip([(9.0, 1.0), (2.0, 3.0), (0.0, 2.0)]) {
            entry.backlog_s = backlog_s;
            entry.service_us.as_mut().unwrap().mean = service_us;
        }
        let order = |some: &[Entry], sort| -> Vec<String> {
            Ranking::of(some, sort).arranged(some).iter().map(|entry| entry.report.scheme.clone()).collect()
        };
        for sort in [Sort::Response, Sort::P99] {
            assert_eq!(order(&some, sort), ["keeps up", "near", "far"], "{sort:?}");
        }
        assert_eq!(order(&some, Sort::Service), ["far", "keeps up", "near"]);
        some.iter_mut().for_each(|entry| entry.service_us = None);
        assert_eq!(order(&some, Sort::Service), order(&some, Sort::Response));
    }

    #[test]
    fn a_cache_over_a_disk_is_in_a_group_of_its_own() {
        let disk = Sketch { scheme: "over", disk: true, mean_us: 1.0, ..FLASH };
        let other = Sketch { scheme: "b", mean_us: 4.0, ..FLASH };
        assert_eq!(shown(&[disk, FLASH, other], Sort::Response), [vec!["b", "a"], vec!["over"]]);
        let titles = |sketches: &[Sketch]| -> Vec<_> {
            Ranking::of(&entries(sketches), Sort::Response).groups.iter().map(|group| group.title).collect()
        };
        assert_eq!(titles(&[disk, FLASH]), [Some("flash only"), Some("flash cache over a disk")]);
        assert_eq!((titles(&[disk]), titles(&[FLASH, other]), titles(&[])), (vec![None], vec![None], vec![]));
    }

    #[test]
    fn a_front_is_that_of_its_group() {
        let sketches = [
            FLASH,
            Sketch { scheme: "worse", mean_us: 6.0, ..FLASH },
            Sketch { scheme: "dear and fast", mean_us: 1.0, usd: 9.0, ..FLASH },
            Sketch { scheme: "behind", usd: 0.0, growing: true, ..FLASH },
            Sketch { scheme: "over", disk: true, mean_us: 0.5, usd: 0.1, ..FLASH },
        ];
        let ranking = Ranking::of(&entries(&sketches), Sort::Response);
        let front: Vec<bool> = (0..sketches.len()).map(|at| ranking.is_on_front(at)).collect();
        // The scheme over a disk is better in everything, but alone in its group.
        assert_eq!(front, [true, false, true, false, false]);
        assert!(!Ranking::of(&entries(&[FLASH]), Sort::Response).has_front());
        // Better in response by less than the displayed digits, and worse in life.
        let alike = [Sketch { mean_us: 5.0001, years: Some(2.0), ..FLASH }, FLASH];
        let ranking = Ranking::of(&entries(&alike), Sort::Response);
        assert_eq!([0, 1].map(|at| ranking.is_on_front(at)), [true, false]);
        // A slow cache over a disk gives the table a larger unit, in which these two differ by their rounding only.
        let alike = [Sketch { mean_us: 41.49, years: Some(2.0), ..FLASH }, Sketch { mean_us: 41.51, ..FLASH }];
        let slow = [alike[0], alike[1], Sketch { scheme: "over", disk: true, mean_us: 150_000.0, ..FLASH }];
        for sketches in [&alike[..], &slow] {
            let (some, ranking) = (entries(sketches), Ranking::of(&entries(sketches), Sort::Response));
            assert_eq!([0, 1].map(|at| ranking.is_on_front(at)), [true, false]);
            let fastest = Verdict::of(&some, &ranking).unwrap().fastest.unwrap();
            assert_eq!(fastest.schemes, ["a", "a"]);
        }
    }

    #[test]
    fn orders_have_names() {
        for Order { name, sort, phrase } in ORDERS.iter() {
            assert_eq!((name.parse(), sort.phrase(), sort.to_string()), (Ok(*sort), phrase.as_str(), name.clone()));
        }
        assert!("price".parse::<Sort>().unwrap_err().contains("response, p99, service, write-amplification, "));
    }
}
