//! The results of a sweep: the best devices, the effect of each setting, and every point.

use bimetal_core::part::real::whole;
use bimetal_core::report::{Figure, KeyFigures, Overload, Shown};

use super::page::Page;
use super::table::Table;
use crate::describe;
use crate::figure::{Axis, Described, Plot, PlotKind, Points, Series};
use crate::headline::extrapolated_remark;
use crate::number::{
    EXTRAPOLATED, IN_BURSTS, LIVES, NOTHING, OVERLOAD, TIMES, Units, capital, common_unit, dollars, in_unit, labelled,
    significant, thousands, units, with_unit,
};
use crate::sweep::label::Varying;
use crate::sweep::pareto::{self, Goal};
use crate::sweep::point::Replay;
use crate::sweep::row::{self, Figures, MORE_PASSES, Row};

/// Name of the line that joins the points of the front.
const FRONT: &str = "the best";
/// A logarithmic axis is used if the ratio of the largest to the smallest value exceeds this.
const WIDE: f64 = 12.0;
/// Width of the marks for the shortest and the longest life, in pixels.
const MARKS: (f64, f64) = (6.0, 17.0);

/// A page of a study's rows. `left_out` is the number of points that their devices did not allow, and `command`
/// reproduces the page.
pub fn sweep(title: &str, rows: &[Row], left_out: usize, command: &str) -> String {
    let mut schemes: Vec<String> = Vec::new();
    for row in rows {
        if !schemes.contains(&row.point.scheme) {
            schemes.push(row.point.scheme.clone());
        }
    }
    let title = if title.is_empty() { "Sweep" } else { title };
    let mut page = Page::new(title, schemes.clone());
    head(&mut page, rows, left_out, command);
    let varying = Varying::of(rows);
    let groups = pareto::groups(rows);
    let arrivals_vary = groups.iter().any(|group| rows[group[0]].point.replay != rows[groups[0][0]].point.replay);
    for group in &groups {
        let group = Group { rows, at: group, varying: &varying, schemes: &schemes };
        group.section(&mut page, arrivals_vary);
    }
    page.section("All points");
    page.paragraph("Click a column head to sort; click again to reverse the order. ● marks the best points.");
    page.sifted_table(&all(rows, &varying, arrivals_vary));
    page.finish()
}

fn head(page: &mut Page, rows: &[Row], left_out: usize, command: &str) {
    let failed = rows.iter().filter(|row| row.failure.is_some()).count();
    let count = |count: usize| thousands(count as u64);
    let mut facts =
        vec![format!("{} points: {} done, {} failed", count(rows.len()), count(rows.len() - failed), count(failed))];
    if left_out > 0 {
        facts.push(format!("{} more left out: schemes that a device does not allow", count(left_out)));
    }
    page.list("facts", &facts);
    page.list("warnings", &row::failures(rows));
    page.list("facts", &row::notes(rows));
    page.paragraph("To repeat it:");
    page.code(command);
}

/// Rows with the same trace and replay.
struct Group<'a> {
    rows: &'a [Row],
    at: &'a [usize],
    varying: &'a Varying,
    schemes: &'a [String],
}

/// A figure in a diagram.
#[derive(Clone, Copy)]
enum Drawn {
    Mean,
    P99,
    Life,
    Cost,
}

impl Drawn {
    /// Its value in microseconds, years or dollars. An overloaded device has no responses.
    fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::Mean => figures.is_judged().then_some(figures.response_us.mean),
            Self::P99 => figures.is_judged().then_some(figures.response_us.p99),
            Self::Life => figures.key_figures.lifetime_years,
            Self::Cost => Some(figures.key_figures.cost_usd),
        }
    }

    fn units(self) -> Units {
        match self {
            Self::Mean | Self::P99 => TIMES,
            Self::Life => LIVES,
            Self::Cost => &[("USD", 1.0)],
        }
    }

    /// Its name. With one request at a time, none waits.
    fn name(self, replay: &Replay) -> &'static str {
        match self {
            Self::Mean if replay.arrivals == "closed:1" => "mean service time",
            Self::Mean => "mean response",
            Self::P99 => "99th percentile",
            Self::Life => "life",
            Self::Cost => "cost",
        }
    }

    /// Its name in a table of rows of these replays, which may be service times and responses.
    fn common_name<'a>(self, replays: impl Iterator<Item = &'a Replay>) -> &'static str {
        let name = replays.map(|replay| self.name(replay)).reduce(|a, b| if a == b { a } else { "mean time" });
        name.unwrap_or_default()
    }
}

impl Group<'_> {
    fn done(&self) -> impl Iterator<Item = (usize, &Row, &Figures)> {
        self.at.iter().filter_map(|&at| Some((at, &self.rows[at], self.rows[at].figures.as_ref()?)))
    }

    /// The name of a figure under the replay of these rows.
    fn name(&self, drawn: Drawn) -> &'static str {
        self.at.first().map_or("", |&at| drawn.name(&self.rows[at].point.replay))
    }

    fn section(&self, page: &mut Page, arrivals_vary: bool) {
        let Some(first) = self.at.first().map(|&at| &self.rows[at].point) else { return };
        let arrivals = if arrivals_vary { format!(", {}", first.replay.arrivals) } else { String::new() };
        page.section(&format!("{}{arrivals}: the best", first.trace.name));
        let replay = &first.replay;
        page.paragraph(&format!(
            "Replay: {}. For each of these points, no other point is cheaper, faster and longer-lived at once.",
            describe::passes(&replay.arrivals, replay.repeat, replay.measure)
        ));
        let best = self.best();
        if best.is_empty() {
            page.paragraph("None: every point failed, or is overloaded.");
        } else {
            page.table(&self.listed(&best));
            let commands: Vec<&str> = best.iter().map(|&at| self.rows[at].command.as_str()).collect();
            page.push("<details><summary>Commands that repeat them, in the folder of the study</summary>\n");
            page.code(&commands.join("\n"));
            page.push("</details>\n");
        }
        page.list("facts", &self.remarks());
        let lives = self.done().filter_map(|(_, _, figures)| figures.key_figures.lifetime_years);
        let (shortest, longest) =
            lives.fold((f64::INFINITY, 0.0f64), |(least, most), life| (least.min(life), most.max(life)));
        if longest > 0.0 {
            page.paragraph(&format!(
                "The larger a mark, the longer the life: {} to {}. The line is the best point at or below each price.",
                with_unit(LIVES, shortest),
                with_unit(LIVES, longest)
            ));
        }
        let by_mean = self.front(Drawn::Mean, Goal::Mean, (shortest, longest));
        let by_p99 = self.front(Drawn::P99, Goal::P99, (shortest, longest));
        page.plots(&[by_mean, by_p99, self.front(Drawn::Life, Goal::Life, (shortest, longest))]);
        let plots = self.marginals();
        if !plots.is_empty() {
            page.section(&format!("{}{arrivals}: effect of each choice", first.trace.name));
            page.paragraph("For each value: median, least and most of all points with this value.");
            page.plots(&plots);
        }
    }

    /// A common unit for all values of a figure, and its size.
    fn unit(&self, drawn: Drawn) -> (&'static str, f64) {
        common_unit(drawn.units(), self.done().filter_map(|(_, _, figures)| drawn.of(figures)), 1.0)
    }

    fn axis(&self, drawn: Drawn) -> Axis {
        let label = format!("{} ({})", self.name(drawn), self.unit(drawn).0);
        let values = self.done().filter_map(|(_, _, figures)| drawn.of(figures)).filter(|&value| value > 0.0);
        let (least, most) =
            values.fold((f64::INFINITY, 0.0f64), |(least, most), value| (least.min(value), most.max(value)));
        if most > least * WIDE { Axis::logarithmic(label) } else { Axis::linear(label) }
    }

    /// The rows on the front of cost, mean response and life, cheapest first.
    fn best(&self) -> Vec<usize> {
        let mut best = pareto::of_group(self.rows, self.at, &pareto::USUAL);
        let cost = |at: usize| self.rows[at].figures.as_ref().map_or(0.0, |figures| figures.key_figures.cost_usd);
        best.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)));
        best
    }

    fn listed(&self, best: &[usize]) -> Table {
        let columns = [Drawn::Cost, Drawn::Mean, Drawn::P99, Drawn::Life];
        let heads = columns.map(|drawn| format!("{} ({})", self.name(drawn), self.unit(drawn).0));
        let heads = std::iter::once("point".to_owned()).chain(heads);
        let row = |&at: &usize| {
            let (row, figures) = (&self.rows[at], self.rows[at].figures.as_ref()?);
            let values = columns.map(|drawn| shown(drawn, figures, self.unit(drawn).1));
            Some(std::iter::once(self.varying.short(&row.point)).chain(values).collect())
        };
        Table::new(heads.collect(), best.iter().filter_map(row).collect())
    }

    /// Notes on points that the diagrams lack.
    fn remarks(&self) -> Vec<String> {
        let count = |overload| self.done().filter(|(_, _, figures)| figures.overload == overload).count();
        let (growing, bursts) = (count(Overload::Growing), count(Overload::Bursts));
        let failed = self.at.len() - self.done().count();
        let mut remarks = Vec::new();
        if growing > 0 {
            remarks.push(format!("{growing} without responses: they fall behind more and more over the whole trace"));
        }
        if bursts > 0 {
            remarks.push(format!(
                "{IN_BURSTS} {bursts} fall behind in bursts: the queue is measured more than the device"
            ));
        }
        if failed > 0 {
            remarks.push(format!("{failed} failed"));
        }
        let extrapolated = self.done().filter(|(_, _, figures)| figures.is_extrapolated());
        let overwrites = extrapolated.map(|(_, _, figures)| figures.lifetime_overwrites);
        remarks.extend(extrapolated_remark(overwrites, MORE_PASSES));
        remarks
    }

    /// Every point by its cost and a figure, and the front.
    fn front(&self, drawn: Drawn, goal: Goal, (shortest, longest): (f64, f64)) -> Plot {
        let scale = self.unit(drawn).1;
        let size = |figures: &Figures| {
            let share = match figures.key_figures.lifetime_years {
                Some(life) if longest > shortest && shortest > 0.0 => {
                    (life / shortest).ln() / (longest / shortest).ln()
                }
                _ => 0.5,
            };
            usize::try_from(whole((MARKS.0 + share * (MARKS.1 - MARKS.0)).round())).unwrap_or_default()
        };
        let best = pareto::of_group(self.rows, self.at, &[Goal::Cost, goal]);
        let place = |at: &usize| {
            let figures = self.rows[*at].figures.as_ref()?;
            Some((figures.key_figures.cost_usd, drawn.of(figures)? / scale))
        };
        let mut line: Vec<(f64, f64)> = best.iter().filter_map(place).collect();
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        line.dedup();
        let of_scheme = |scheme: &String| {
            let points = self.done().filter(|(_, row, _)| row.point.scheme == *scheme);
            let point = |(_, row, figures): (usize, &Row, &Figures)| {
                let mark = if figures.overload == Overload::Bursts { IN_BURSTS } else { "" };
                let extrapolated = if figures.is_extrapolated() { EXTRAPOLATED } else { "" };
                let life = figures.key_figures.lifetime_years;
                let life =
                    life.map_or_else(|| NOTHING.to_owned(), |life| format!("{extrapolated}{}", with_unit(LIVES, life)));
                Some(Described {
                    x: figures.key_figures.cost_usd,
                    y: drawn.of(figures)? / scale,
                    size: size(figures),
                    label: format!("{mark}{}, life {life}", self.varying.short(&row.point)),
                })
            };
            let points = points.filter_map(point).collect();
            Series { points: Points::Described(points), ..Series::measured(scheme.clone(), Vec::new()) }
        };
        let mut series = vec![];
        // A line needs two ends.
        if line.len() > 1 {
            series.push(Series::measured(FRONT, line));
        }
        series.extend(self.schemes.iter().map(of_scheme).filter(|series| !series.is_empty()));
        let (x, y) = (self.axis(Drawn::Cost), self.axis(drawn));
        Plot { title: format!("Cost and {}", self.name(drawn)), kind: PlotKind::Front, x, y, series }
    }

    /// Effect of each value of each dimension on response, life and cost.
    fn marginals(&self) -> Vec<Plot> {
        let mut dimensions: Vec<(String, Vec<String>)> = Vec::new();
        let distinct = |value: &dyn Fn(&Row) -> Option<String>| {
            let mut values: Vec<String> = Vec::new();
            for value in self.done().filter_map(|(_, row, _)| value(row)) {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            values
        };
        dimensions.push(("scheme".into(), distinct(&|row| Some(row.point.scheme.clone()))));
        dimensions.push(("device".into(), distinct(&|row| Some(row.point.device.name.clone()))));
        for (key, _) in self.varying.keys() {
            dimensions.push((key.to_owned(), distinct(&|row| row.point.set.get(key).cloned())));
        }
        let has = |row: &Row, dimension: usize, value: &str| match dimension {
            0 => row.point.scheme == value,
            1 => row.point.device.name == value,
            _ => row.point.set.get(&dimensions[dimension].0).is_some_and(|own| own == value),
        };
        let mut plots = Vec::new();
        for (at, (dimension, values)) in dimensions.iter().enumerate().filter(|(_, (_, values))| values.len() > 1) {
            for drawn in [Drawn::Mean, Drawn::Life, Drawn::Cost] {
                let scale = self.unit(drawn).1;
                let figures = |value: &str| {
                    let own = self.done().filter(|(_, row, _)| has(row, at, value));
                    let mut figures: Vec<f64> =
                        own.filter_map(|(_, _, figures)| drawn.of(figures)).map(|value| value / scale).collect();
                    figures.sort_by(f64::total_cmp);
                    figures
                };
                let of = |name: &str, pick: fn(&[f64]) -> Option<f64>| {
                    let points = values.iter().filter_map(|value| Some((value.clone(), pick(&figures(value))?)));
                    Series::measured_by_name(name, points.collect())
                };
                let series = vec![
                    of("median", median),
                    of("least", |sorted| sorted.first().copied()),
                    of("most", |sorted| sorted.last().copied()),
                ];
                let title = format!("{} by {dimension}", capital(self.name(drawn)));
                plots.push(Plot {
                    title,
                    kind: PlotKind::Marks,
                    x: Axis::linear(dimension),
                    y: self.axis(drawn),
                    series,
                });
            }
        }
        plots
    }
}

/// The middle value, or the mean of the two middle ones.
fn median(sorted: &[f64]) -> Option<f64> {
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

/// A figure as the text of a cell.
fn shown(drawn: Drawn, figures: &Figures, scale: f64) -> String {
    let is_response = matches!(drawn, Drawn::Mean | Drawn::P99);
    let mark = if is_response && figures.overload == Overload::Bursts { IN_BURSTS } else { "" };
    match drawn.of(figures) {
        None if is_response => OVERLOAD.to_owned(),
        None => NOTHING.to_owned(),
        Some(value) => match drawn {
            Drawn::Cost => dollars(value / scale),
            Drawn::Life => figures.life(scale),
            _ => format!("{mark}{}", significant(value / scale)),
        },
    }
}

/// Every point.
fn all(rows: &[Row], varying: &Varying, arrivals_vary: bool) -> Table {
    let traces_vary = rows.iter().any(|row| row.point.trace != rows[0].point.trace);
    let keys: Vec<&str> = varying.keys().map(|(key, _)| key).collect();
    let mut heads = vec!["scheme".to_owned()];
    heads.extend(traces_vary.then(|| "trace".to_owned()));
    heads.extend(arrivals_vary.then(|| "arrivals".to_owned()));
    heads.extend(varying.devices().then(|| "device".to_owned()));
    heads.extend(keys.iter().map(|&key| key.to_owned()));
    heads.push("best".to_owned());
    let text_columns = heads.len();
    let done = || rows.iter().filter_map(|row| row.figures.as_ref());
    let times = [Drawn::Mean, Drawn::P99].map(|drawn| {
        let (unit, size) = common_unit(drawn.units(), done().filter_map(|figures| drawn.of(figures)), 1.0);
        heads.push(labelled(drawn.common_name(rows.iter().map(|row| &row.point.replay)), unit));
        (drawn, size)
    });
    let key_figures: Vec<(&Figure<KeyFigures>, f64)> = (KeyFigures::ALL.iter())
        .filter(|figure| figure.shown != Shown::Details)
        .map(|figure| {
            let values = done().filter_map(|figures| (figure.of)(&figures.key_figures));
            let (unit, size) = common_unit(units(figure.unit), values, 1.0);
            heads.push(labelled(figure.title, unit));
            (figure, size)
        })
        .collect();
    let best = pareto::of_rows(rows, &pareto::USUAL);
    let row = |(at, row): (usize, &Row)| {
        let point = &row.point;
        let mut cells = vec![point.scheme.clone()];
        cells.extend(traces_vary.then(|| point.trace.name.clone()));
        cells.extend(arrivals_vary.then(|| point.replay.arrivals.clone()));
        cells.extend(varying.devices().then(|| point.device.name.clone()));
        cells.extend(keys.iter().map(|&key| point.set.get(key).cloned().unwrap_or_default()));
        let is_best = best.binary_search(&at).is_ok();
        match (&row.figures, &row.failure) {
            (Some(figures), _) => {
                cells.push(if is_best { "●" } else { "" }.to_owned());
                cells.extend(times.iter().map(|&(drawn, size)| shown(drawn, figures, size)));
                cells.extend(key_figures.iter().map(|(figure, size)| {
                    let value = (figure.of)(&figures.key_figures);
                    let is_marked = figure.is_extrapolated() && figures.is_extrapolated();
                    let mark = if is_marked { EXTRAPOLATED } else { "" };
                    let shown = |value| format!("{mark}{}", in_unit(figure.unit, value / size));
                    value.map_or_else(|| NOTHING.to_owned(), shown)
                }));
            }
            (None, failure) => {
                let kind = failure.as_ref().map_or_else(String::new, |failure| failure.kind.to_string());
                cells.push(format!("failed: {kind}"));
                cells.resize(heads.len(), NOTHING.to_owned());
            }
        }
        cells
    };
    let cells = rows.iter().enumerate().map(row).collect();
    Table { text_columns, ..Table::new(heads, cells) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_service_times_and_responses_has_the_name_of_neither() {
        let of = |drawn: Drawn, arrivals: &[&str]| {
            let replay = |arrivals: &&str| Replay { arrivals: (*arrivals).to_owned(), ..Replay::default() };
            let replays: Vec<Replay> = arrivals.iter().map(replay).collect();
            drawn.common_name(replays.iter())
        };
        assert_eq!(of(Drawn::Mean, &["closed:1", "closed:1"]), "mean service time");
        assert_eq!(of(Drawn::Mean, &["trace", "closed:8"]), "mean response");
        assert_eq!(of(Drawn::Mean, &["closed:1", "trace"]), "mean time");
        assert_eq!(of(Drawn::P99, &["closed:1", "trace"]), "99th percentile");
    }
}
