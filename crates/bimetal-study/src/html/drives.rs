//! Real drives: write speed of each over a fill, and every figure, compared with reviewers' measurements.

use super::page::Page;
use super::table::Table;
use crate::drives::{Assessment, Compared, Drive, Figure, Mark, Predictions, Role, Verdict};
use crate::figure::{Axis, Plot, PlotKind, Series};
use crate::number::{NOTHING, plain};

/// Points of a drawn curve: one or two pixels each on a phone.
const POINTS: usize = 200;

/// A page of drives. `command` reproduces it.
pub fn drives(predictions: &Predictions, command: &str) -> String {
    let mut page = Page::new("Real drives", Vec::new());
    page.paragraph(
        "Drives predicted from their construction, compared with reviewers' measurements (M) and makers' claims (C). Firmware \
         constants were fitted to some drives; the predicted drives use the same constants. An input is a figure from which \
         the construction was taken: it does not count.",
    );
    let facts = [(Role::Fitted, &predictions.fitted), (Role::Predicted, &predictions.predicted)];
    let fact = |(role, assessment): (Role, &Assessment)| Some(format!("{}: {}", role.name(), assessment.sentence()?));
    page.list("facts", &facts.into_iter().filter_map(fact).collect::<Vec<_>>());
    page.code(command);
    for drive in &predictions.drives {
        section(&mut page, drive);
    }
    page.section("All figures");
    page.paragraph("Click a column head to sort; click again to reverse the order.");
    page.sifted_table(&all(predictions));
    page.finish()
}

/// The cells of a figure that follow its name.
fn cells(figure: &Compared) -> [String; 5] {
    let shown = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), plain);
    let mark = figure.mark.map_or(NOTHING, Mark::letter);
    let verdict = match figure.verdict {
        Some(Verdict::Within) => "✓ within 20 %",
        Some(Verdict::Beyond) => "✗ beyond 20 %",
        Some(Verdict::Input) => "– input",
        None => NOTHING,
    };
    [verdict.into(), mark.into(), shown(figure.predicted), shown(figure.measured), figure.shown_error()]
}

fn all(predictions: &Predictions) -> Table {
    let heads = ["drive", "role", "figure", "verdict", "by", "predicted", "measured", "error"].map(str::to_owned);
    let row = |drive: &Drive, figure: &Compared| {
        let names = [drive.name.as_str(), drive.role.name(), figure.figure.title()].map(str::to_owned);
        names.into_iter().chain(cells(figure)).collect()
    };
    let rows = predictions.drives.iter().flat_map(|drive| drive.figures.iter().map(move |figure| row(drive, figure)));
    Table { text_columns: 5, ..Table::new(heads.to_vec(), rows.collect()) }
}

fn section(page: &mut Page, drive: &Drive) {
    page.section(&drive.title);
    page.paragraph(&format!("{}: {}", drive.role.name(), drive.device));
    page.paragraph(&drive.note);
    let heads = ["figure", "verdict", "by", "predicted", "measured", "error"].map(str::to_owned).to_vec();
    let row = |figure: &Compared| std::iter::once(figure.figure.title().to_owned()).chain(cells(figure)).collect();
    let rows = drive.figures.iter().map(row).collect();
    page.table(&Table { text_columns: 3, ..Table::new(heads, rows) });
    page.plots(&[plot(drive)]);
    if !drive.sources.is_empty() {
        page.paragraph("Sources:");
        page.list("facts", &drive.sources);
    }
}

/// Write speed over a fill of the drive, with the published levels.
fn plot(drive: &Drive) -> Plot {
    let mut series = Vec::new();
    if !drive.curve.is_empty() {
        series.push(Series::measured("predicted", thinned(&drive.curve)));
        series.extend(levels(drive));
    }
    Plot {
        title: "One stream of writes over the empty drive".into(),
        kind: PlotKind::Lines,
        x: Axis::linear("written (GB)"),
        y: Axis::linear("speed (MB/s)"),
        series,
    }
}

/// A curve with fewer points. Each point stands for several of the original, and its speed is their data by their time.
/// The first point may stand for fewer.
fn thinned(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let from = std::iter::once(0.0).chain(curve.iter().map(|&(gb, _)| gb));
    let points: Vec<_> =
        curve.iter().zip(from).map(|(&(to, speed), from)| (to, to - from, (to - from) / speed)).collect();
    let merged = |points: &[(f64, f64, f64)]| {
        let (gb, time) = points.iter().fold((0.0, 0.0), |sums, point| (sums.0 + point.1, sums.1 + point.2));
        (points[points.len() - 1].0, gb / time)
    };
    let mut thin: Vec<(f64, f64)> = points.rchunks(curve.len().div_ceil(POINTS).max(1)).map(merged).collect();
    thin.reverse();
    thin
}

/// The published levels of a fill, each from the previous drop to the next. A level spans the whole drive if the drops
/// are not published.
fn levels(drive: &Drive) -> Vec<Series> {
    use Figure::{AfterMbPerS, CacheGb, CacheMbPerS, LastMbPerS, SecondGb};
    let of = |figure| drive.figures.iter().find(|compared| compared.figure == figure);
    let drop = |figure| of(figure).and_then(|compared| compared.measured);
    let whole = drive.curve.last().map_or(0.0, |&(gb, _)| gb);
    let level = |(name, figure, from, to): (&str, Figure, Option<f64>, Option<f64>)| {
        let compared = of(figure)?;
        let who = if compared.mark? == Mark::Measured { "reviewers" } else { "maker" };
        let ends = [from.unwrap_or(0.0), to.unwrap_or(whole)];
        Some(Series::measured(format!("{name}, {who}"), ends.map(|gb| (gb, compared.measured.unwrap_or(0.0))).to_vec()))
    };
    let (first, second) = (drop(CacheGb), drop(SecondGb));
    let levels = [
        ("in the cache", CacheMbPerS, None, first),
        ("after the first drop", AfterMbPerS, first, second),
        ("after the second drop", LastMbPerS, second, None),
    ];
    levels.into_iter().filter_map(level).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::drives::{Measured, compare, reviews};
    use crate::figure::Points;

    /// The first listed drive with three levels and two drops, of which the second is not published.
    fn drive() -> Drive {
        let mut review = reviews()[0].clone();
        let measured = |value| Some((value, Mark::Measured));
        review.inputs = vec![Figure::CacheGb];
        review.figures = BTreeMap::from([
            (Figure::CacheMbPerS, measured(2000.0)),
            (Figure::CacheGb, measured(100.0)),
            (Figure::AfterMbPerS, measured(500.0)),
            (Figure::LastMbPerS, Some((300.0, Mark::Claimed))),
        ]);
        let figures = BTreeMap::from([(Figure::CacheMbPerS, 1900.0), (Figure::AfterMbPerS, 900.0)]);
        let curve: Vec<(f64, f64)> =
            (1..=800).map(|gb| (f64::from(gb), if gb <= 100 { 2000.0 } else { 500.0 })).collect();
        let figures = compare(&review, &Measured { figures, ..Measured::default() });
        Drive {
            name: review.name,
            title: "A <b> & drive".into(),
            device: "8 dies of `tlc`".into(),
            role: Role::Predicted,
            figures,
            curve,
            sources: vec!["https://example.org/review?a=1&b=<2>".into()],
            note: "a note".into(),
        }
    }

    #[test]
    fn levels_reach_from_drop_to_drop() {
        let numbers = |series: &Series| match &series.points {
            Points::Numbers(points) => points.clone(),
            _ => Vec::new(),
        };
        let levels = levels(&drive());
        let shown: Vec<_> = levels.iter().map(|series| (series.name.as_str(), numbers(series))).collect();
        let expected = [
            ("in the cache, reviewers", vec![(0.0, 2000.0), (100.0, 2000.0)]),
            ("after the first drop, reviewers", vec![(100.0, 500.0), (800.0, 500.0)]),
            ("after the second drop, maker", vec![(0.0, 300.0), (800.0, 300.0)]),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_thinner_curve_takes_as_long() {
        let curve = drive().curve;
        let seconds = |curve: &[(f64, f64)]| {
            let from = std::iter::once(0.0).chain(curve.iter().map(|point| point.0));
            curve.iter().zip(from).map(|((to, speed), from)| (to - from) / speed).sum::<f64>()
        };
        let thin = thinned(&curve);
        assert!(thin.len() == POINTS && thin.last().unwrap().0 == 800.0);
        assert!((seconds(&thin) / seconds(&curve) - 1.0).abs() < 1e-9);
        let few = thinned(&curve[..7]);
        assert!(few.len() == 7 && few.iter().zip(&curve).all(|(thin, all)| (thin.1 - all.1).abs() < 1e-9));
    }

    #[test]
    fn a_page_has_every_figure_and_loads_nothing() {
        let drive = drive();
        let (fitted, predicted) = (Assessment::default(), Assessment::of(&drive.figures));
        let page = drives(&Predictions { bimetal: "0", drives: vec![drive], fitted, predicted }, "bimetal drives");
        let own = page.replace(&super::super::chart::library().unwrap(), "");
        for text in [
            "<h2 id=\"section-1\">A &lt;b&gt; &amp; drive</h2>",
            "<td class=\"text\">✓ within 20 %</td><td class=\"text\">M</td><td>1,900</td><td>2,000</td><td>-5 %</td>",
            "<td class=\"text\">– input</td><td class=\"text\">M</td><td>–</td><td>100</td><td>–</td>",
            "<td class=\"text\">✗ beyond 20 %</td><td class=\"text\">C</td><td>–</td><td>300</td><td>–</td>",
            "<li>predicted: 1 of 3 figures within 20 % (33 %), median error 80 %</li>",
            "speed (MB/s)",
            "written (GB)",
            "a=1&amp;b=&lt;2&gt;",
        ] {
            assert!(own.contains(text), "no {text} in {own}");
        }
        assert!(!own.contains("fitted:") && !own.contains("href=\"http") && !own.contains("src="));
    }
}
