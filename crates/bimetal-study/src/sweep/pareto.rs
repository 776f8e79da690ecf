//! Pareto fronts: the points that no other point dominates.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::point::Replay;
use super::row::{Figures, Row};
use super::source::TraceSource;

/// Values to minimise. A long lifetime is better, so its negative is used. Undefined values are NaN.
pub type Goals = Vec<f64>;

/// Whether point `a` is at least as good as `b` in every goal, and better in one.
pub fn dominates(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b) && a.iter().zip(b).any(|(a, b)| a < b)
}

/// The indexes of the points that no other dominates, in ascending order. Equal points on the front are all included.
/// Points with a NaN goal are not.
pub fn front(points: &[Goals]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).filter(|&at| !points[at].iter().any(|goal| goal.is_nan())).collect();
    // In this order a point comes after all points that dominate it. If one of those is itself dominated, its dominator
    // also dominates the point. Thus a comparison with the kept points is enough.
    order.sort_by(|&a, &b| compare(&points[a], &points[b]));
    let mut kept: Vec<usize> = Vec::new();
    for at in order {
        if !kept.iter().any(|&other| dominates(&points[other], &points[at])) {
            kept.push(at);
        }
    }
    kept.sort_unstable();
    kept
}

/// A goal by which devices are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// A low price.
    Cost,
    /// A short mean response.
    Mean,
    /// A short 99th percentile of the responses.
    P99,
    /// A long life.
    Life,
}

/// The default goals.
pub const USUAL: [Goal; 3] = [Goal::Cost, Goal::Mean, Goal::Life];

/// Names of the goals.
const NAMES: [(&str, Goal); 4] = [("cost", Goal::Cost), ("mean", Goal::Mean), ("p99", Goal::P99), ("life", Goal::Life)];

impl FromStr for Goal {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|&(_, goal)| goal).ok_or_else(|| {
            format!("there is no goal `{name}`; there are: {}", NAMES.map(|(known, _)| known).join(", "))
        })
    }
}

/// The figures that goals use, in any unit that is the same for all compared points. Overloaded devices have no
/// responses.
#[derive(Clone, Copy, Debug)]
pub struct Aims {
    /// Price.
    pub cost_usd: f64,
    /// Mean response.
    pub mean: Option<f64>,
    /// 99th percentile of the responses.
    pub p99: Option<f64>,
    /// Life. For one trace, bytes and years are equivalent.
    pub life: Option<f64>,
}

impl Aims {
    fn of_figures(figures: &Figures) -> Self {
        let judged = figures.is_judged().then_some(figures.response_us);
        Self {
            cost_usd: figures.key_figures.cost_usd,
            mean: judged.map(|response| response.mean),
            p99: judged.map(|response| response.p99),
            life: figures.key_figures.lifetime_host_bytes,
        }
    }
}

impl Goal {
    /// The value to minimise. NaN without responses; minus infinity for a device that never wears out.
    pub fn of(self, aims: &Aims) -> f64 {
        match self {
            Self::Cost => aims.cost_usd,
            Self::Mean => aims.mean.unwrap_or(f64::NAN),
            Self::P99 => aims.p99.unwrap_or(f64::NAN),
            Self::Life => -aims.life.unwrap_or(f64::INFINITY),
        }
    }
}

/// Rows that are comparable: the same trace and the same replay.
pub fn groups(rows: &[Row]) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<(&TraceSource, &Replay), usize> = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let group = *places.entry((&row.point.trace, &row.point.replay)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(at);
    }
    groups
}

/// The indexes of the rows on the front of their group.
pub fn of_rows(rows: &[Row], goals: &[Goal]) -> Vec<usize> {
    let mut best: Vec<usize> = groups(rows).iter().flat_map(|group| of_group(rows, group, goals)).collect();
    best.sort_unstable();
    best
}

/// The indexes of a group's rows on its front.
pub fn of_group(rows: &[Row], group: &[usize], goals: &[Goal]) -> Vec<usize> {
    let of = |&at: &usize| {
        let aims = Aims::of_figures(rows[at].figures.as_ref()?);
        Some((at, goals.iter().map(|goal| goal.of(&aims)).collect()))
    };
    let (places, points): (Vec<usize>, Vec<Goals>) = group.iter().filter_map(of).unzip();
    front(&points).into_iter().map(|at| places[at]).collect()
}

fn compare(a: &[f64], b: &[f64]) -> std::cmp::Ordering {
    // Not `total_cmp`, which distinguishes the two zeros.
    let order = |(a, b): (&f64, &f64)| a.partial_cmp(b).filter(|order| order.is_ne());
    a.iter().zip(b).find_map(order).unwrap_or(std::cmp::Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_best_are_kept_and_equal_ones_all() {
        let points =
            [[1.0, 5.0], [2.0, 3.0], [2.0, 3.0], [3.0, 3.0], [4.0, 1.0], [0.5, f64::INFINITY], [f64::NAN, 0.0]];
        let points: Vec<Goals> = points.iter().map(|point| point.to_vec()).collect();
        assert_eq!(front(&points), [0, 1, 2, 4, 5]);
        assert_eq!(front(&[]), [0; 0]);
    }

    #[test]
    fn goals_have_names() {
        assert!(NAMES.iter().all(|(name, goal)| name.parse() == Ok(*goal)));
        assert_eq!("price".parse::<Goal>().unwrap_err(), "there is no goal `price`; there are: cost, mean, p99, life");
    }

    proptest! {
        /// The front agrees with the definition for any number of goals.
        #[test]
        fn a_front_is_what_nothing_dominates(
            goals in 1usize..5,
            raw in prop::collection::vec(prop::collection::vec(prop_oneof![
                (-3i8..4).prop_map(f64::from), Just(-0.0), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(f64::NAN)
            ], 5), 0..40),
        ) {
            let points: Vec<Goals> = raw.iter().map(|point| point[..goals].to_vec()).collect();
            let is_number = |point: &Goals| point.iter().all(|goal| !goal.is_nan());
            let best = |point: &Goals| {
                is_number(point) && !points.iter().any(|other| is_number(other) && dominates(other, point))
            };
            let expected: Vec<usize> = (0..points.len()).filter(|&at| best(&points[at])).collect();
            prop_assert_eq!(front(&points), expected);
        }
    }
}
