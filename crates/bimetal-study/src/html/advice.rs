//! Advice as a page: the answer, the simulated devices with the goals drawn as lines, and price sensitivity.

use super::page::Page;
use super::table::Table;
use crate::advise::answer::{Answer, Choice, DrivesToBuy, response_of};
use crate::advise::goals::{Cause, Measure, WRITTEN};
use crate::describe;
use crate::figure::{Axis, Described, Plot, PlotKind, Points, Series};
use crate::number::{LIVES, NOTHING, TIMES, Units, common_unit, dollars, significant};

/// Name of the line that joins the points of the front.
const FRONT: &str = "the best";
/// Width of a mark in pixels, and of the answer's mark.
const MARKS: (usize, usize) = (8, 15);
/// A logarithmic axis is used if the ratio of the largest to the smallest value exceeds this.
const WIDE: f64 = 12.0;

/// A budget beyond this multiple of the most expensive device is not drawn.
const COST_BEYOND: f64 = 1.5;

/// A page of an answer. `command` is the command that reproduces it.
pub fn advice(answer: &Answer, command: &str) -> String {
    let mut schemes: Vec<String> = Vec::new();
    for choice in &answer.simulated {
        if !schemes.contains(&choice.scheme) {
            schemes.push(choice.scheme.clone());
        }
    }
    let mut page = Page::new(&format!("Advice for {}", answer.trace.name), schemes.clone());
    head(&mut page, answer, command);
    if let Some(drives) = &answer.drives {
        drives_to_buy(&mut page, answer, drives);
    }
    page.section("Simulated devices by cost");
    page.paragraph(
        "Every simulated device. The stepped line is the best device at or below each price; straight lines are goals; the \
         large mark is the answer.",
    );
    let response = response_of(&answer.goals);
    let is_known = |measure: &Measure| answer.simulated.iter().any(|choice| choice.of(*measure).is_some());
    let wear = wear_of(answer);
    let drawn: Vec<Plot> = [response, wear]
        .iter()
        .filter(|measure| is_known(measure))
        .map(|&measure| cost_and(answer, measure, &schemes))
        .collect();
    page.plots(&drawn);
    if !is_known(&response) {
        page.paragraph("Every device falls behind: responses would only reflect the length of the trace.");
    }
    page.section("When prices change");
    page.paragraph("The cheapest simulated device that meets all goals, if the price of one kind of parts changes.");
    let changes = changes(answer);
    if answer.is_out_of_reach() {
        page.paragraph("No device meets all goals from a quarter to four times the price of each kind.");
    } else {
        page.plots(&[prices(answer)]);
        if changes.rows.is_empty() {
            page.paragraph("The device stays the same from a quarter to four times the price of each kind.");
        } else {
            page.table(&changes);
        }
    }
    page.section("All simulated devices");
    page.sifted_table(&Table::of(answer.listing(&answer.simulated)));
    page.finish()
}

fn head(page: &mut Page, answer: &Answer, command: &str) {
    let goals: Vec<String> = answer.goals.iter().map(ToString::to_string).collect();
    let mut facts = vec![format!("goals: {}", goals.join("; "))];
    facts.push(format!("trace: {}, {}", answer.trace.name, answer.trace.format));
    facts.extend(describe::trace(&answer.trace));
    facts.extend(answer.terms());
    page.list("facts", &facts);
    page.paragraph(&match &answer.recommended {
        Some(choice) => format!("The cheapest that meets all goals, for {} USD:", dollars(choice.cost_usd)),
        None => "No device meets all goals. The closest:".to_owned(),
    });
    let chosen = answer.chosen();
    page.table(&Table::of(answer.listing(chosen)));
    page.table(&met(answer, chosen));
    page.list("facts", &answer.binding());
    if let Some(command) = chosen.first().and_then(|choice| choice.command.as_ref()) {
        page.paragraph("To confirm it:");
        page.code(command);
    }
    page.paragraph("To repeat the answer:");
    page.code(command);
}

/// Whole drives instead of a composed device.
fn drives_to_buy(page: &mut Page, answer: &Answer, drives: &DrivesToBuy) {
    page.section("Drives to buy");
    page.paragraph(&format!("Whole drives, the cheapest first; {}.", drives.verdict(&answer.goals)));
    if !drives.offered.is_empty() {
        page.table(&Table::of_sheet(&drives.simulated(&answer.replay.arrivals, &answer.goals)));
        page.paragraph("● meets all goals");
        page.table(&Table::of_sheet(&drives.data_sheet()));
    }
    page.list("facts", &drives.notes(answer.price_year));
    if let Some(command) = drives.chosen().and_then(|drive| drive.choice.command.as_ref()) {
        page.paragraph("To confirm it:");
        page.code(command);
    }
}

/// The figures of the first chosen device beside each goal.
fn met(answer: &Answer, chosen: &[Choice]) -> Table {
    let heads = ["goal", "measured", "verdict"].map(str::to_owned).to_vec();
    let rows = chosen.first().map(|choice| answer.verdicts(choice)).unwrap_or_default();
    Table { text_columns: 3, ..Table::new(heads, rows) }
}

/// The wear measure of the diagrams: the measure of the first wear goal. Without such a goal it is the life, or TBW if
/// the daily write volume is unknown.
fn wear_of(answer: &Answer) -> Measure {
    let of_goal = answer.goals.iter().map(|goal| goal.measure).find(|measure| measure.cause() == Cause::Wear);
    let usual = if answer.write_bytes_per_day.is_some() { Measure::Life } else { Measure::Tbw };
    of_goal.unwrap_or(usual)
}

fn units(measure: Measure) -> Units {
    match measure {
        Measure::Life => LIVES,
        Measure::Tbw => WRITTEN,
        Measure::Dwpd => &[("a day", 1.0)],
        Measure::Cost => &[("USD", 1.0)],
        _ => TIMES,
    }
}

fn is_wide(values: impl Iterator<Item = f64>) -> bool {
    let (least, most) = values
        .filter(|&value| value > 0.0)
        .fold((f64::INFINITY, 0.0f64), |(least, most), value| (least.min(value), most.max(value)));
    most > least * WIDE
}

fn words(answer: &Answer, measure: Measure) -> String {
    if measure.cause() == Cause::Latency { answer.response_head() } else { measure.words().to_owned() }
}

/// Every device by its cost and another measure, with the goals of both.
fn cost_and(answer: &Answer, measure: Measure, schemes: &[String]) -> Plot {
    let values = || answer.simulated.iter().filter_map(|choice| choice.of(measure));
    let costs = || answer.simulated.iter().map(|choice| choice.cost_usd);
    // The unit of a goal, if there is one.
    let limits = answer.goals.iter().filter(|goal| goal.measure == measure).map(|goal| goal.limit);
    let shown: Vec<f64> = limits.collect();
    let shown = if shown.is_empty() { values().collect() } else { shown };
    let (unit, scale) = common_unit(units(measure), shown.into_iter(), 1.0);
    let place = |choice: &Choice| Some((choice.cost_usd, choice.of(measure)? / scale));
    let mut best: Vec<(f64, f64)> = Vec::new();
    let mut by_cost: Vec<(f64, f64)> = answer.simulated.iter().filter_map(place).collect();
    by_cost.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    for (cost, value) in by_cost {
        let is_better =
            best.last().is_none_or(|last| if measure.is_more_better() { value > last.1 } else { value < last.1 });
        if is_better {
            best.push((cost, value));
        }
    }
    let mut series = Vec::new();
    if best.len() > 1 {
        series.push(Series::measured(FRONT, best));
    }
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0f64), |(least, most), value| (least.min(value), most.max(value)))
    };
    for goal in &answer.goals {
        let line = if goal.measure == measure {
            let (least, most) = ends(&mut costs());
            vec![(least, goal.limit / scale), (most, goal.limit / scale)]
        } else if goal.measure == Measure::Cost && goal.limit <= ends(&mut costs()).1 * COST_BEYOND {
            let (least, most) = ends(&mut values());
            vec![(goal.limit, least / scale), (goal.limit, most / scale)]
        } else {
            continue;
        };
        if line.iter().all(|(x, y)| x.is_finite() && y.is_finite() && *y > 0.0) {
            series.push(Series::measured(format!("goal: {goal}"), line));
        }
    }
    let of_scheme = |scheme: &String| {
        let own = answer.simulated.iter().filter(|choice| choice.scheme == *scheme);
        let point = |choice: &Choice| {
            let (x, y) = place(choice)?;
            let is_answer = answer.recommended.as_ref() == Some(choice);
            let size = if is_answer { MARKS.1 } else { MARKS.0 };
            Some(Described { x, y, size, label: format!("{}: {}", choice.scheme, choice.device) })
        };
        Series {
            points: Points::Described(own.filter_map(point).collect()),
            ..Series::measured(scheme.clone(), Vec::new())
        }
    };
    series.extend(schemes.iter().map(of_scheme).filter(|series| !series.is_empty()));
    let mut plot = Plot {
        title: format!("Cost and {}", words(answer, measure)),
        kind: PlotKind::Front,
        x: Axis::linear("cost (USD)"),
        y: Axis::linear(format!("{} ({unit})", words(answer, measure))),
        series,
    };
    // With the goals, which may be far from every device.
    plot.x.logarithmic = is_wide(plot.numbers().map(|(x, _)| x));
    plot.y.logarithmic = is_wide(plot.numbers().map(|(_, y)| y));
    plot
}

/// Cost of the answer as prices change.
fn prices(answer: &Answer) -> Plot {
    let series = answer.sensitivity.iter().map(|one| {
        let points = one.steps.iter().filter_map(|step| Some((step.factor, step.cost_usd?)));
        Series::measured(one.kind.to_uppercase(), points.collect())
    });
    Plot {
        title: "Cost of the answer".into(),
        kind: PlotKind::Lines,
        x: Axis::logarithmic("factor on the price"),
        y: Axis::linear("cost (USD)"),
        series: series.filter(|series| !series.is_empty()).collect(),
    }
}

/// The prices at which the answer becomes another device.
fn changes(answer: &Answer) -> Table {
    let heads = ["prices of", "factor on the price", "cost (USD)", "device"].map(str::to_owned).to_vec();
    let mut rows = Vec::new();
    for one in &answer.sensitivity {
        for step in one.steps.iter().filter(|step| step.changes_to.is_some() || step.is_none) {
            let device = step.changes_to.as_ref().map_or_else(
                || "none meets all goals".to_owned(),
                |choice| format!("{}: {}", choice.scheme, choice.device),
            );
            let cost = step.cost_usd.map_or_else(|| NOTHING.to_owned(), dollars);
            rows.push(vec![one.kind.to_uppercase(), significant(step.factor), cost, device]);
        }
    }
    Table::new(heads, rows)
}
