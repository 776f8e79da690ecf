//! `bimetal advise`: the cheapest devices that meet goals.

use std::ops::ControlFlow;
use std::path::Path;

use bimetal_study::advise::answer::{Answer, Choice, DrivesToBuy, PriceStep, Sensitivity, WEAR, response_of};
use bimetal_study::advise::asked::Asked;
use bimetal_study::advise::prices::PriceList;
use bimetal_study::advise::{Question, advise, replay};
use bimetal_study::sweep::source::TraceSource;

use crate::args::{AdviseArgs, TraceArgs};
use crate::failure::Failure;
use crate::files::Files;
use crate::number::dollars;
use crate::progress::StepBar;
use crate::table::{bold, indented, plain, remark, right_aligned, sheet};
use crate::{header, output, setup, warn};

/// Maximum number of lines of a front.
const FRONT_SHOWN: usize = 8;

/// Runs the command.
pub fn run(args: &AdviseArgs) -> Result<(), Failure> {
    let goals = args.goals.all();
    if goals.is_empty() {
        let what = "no goal is given; hint: add one, such as `--life 5y`, `--p99 2ms` or `--budget 20`";
        return Err(Failure::usage(what));
    }
    Files::default().reads(&args.trace.traces).reads(&args.prices).results(&args.json, &args.html).check()?;
    let prices = prices(args)?;
    let workload = setup::workload(&args.trace)?;
    for warning in &workload.warnings {
        warn(warning);
    }
    let replay = replay(&workload, args.capacity, args.arrivals, args.load, args.repeat, args.measure);
    let replay = replay.map_err(Failure::usage)?;
    let question = Question {
        goals,
        asked: Asked {
            chips: args.chips.clone(),
            schemes: args.schemes.clone(),
            capacity: args.capacity,
            disk: args.disk.clone(),
            channels: args.channels,
            dies_per_channel: args.dies_per_channel,
        },
        drives: args.drives.clone(),
        prices,
        write_bytes_per_day: args.goals.writes_per_day.map(|bytes| bytes.0 as f64),
        replay,
        simulations: args.simulations.map(|most| most as usize),
        jobs: usize::from(args.jobs.unwrap_or(0)),
    };
    let TraceArgs { traces, options } = &args.trace;
    let source = TraceSource::opened(&workload.facts.name, traces, &setup::reading(options));
    let answer = {
        let bar = StepBar::new(0);
        advise(workload, &source, &question, &|phase, done, most| {
            bar.is_at(phase.words(), done as u64, most as u64);
            ControlFlow::Continue(())
        })
    };
    let answer = answer.map_err(Failure::usage)?;
    output::write_html(&args.html, || bimetal_study::html::advice(&answer, &output::command_line()))?;
    output::emit(&args.json, &answer, || text(&answer))?;
    if !answer.is_found() {
        return Err(Failure::failed("no simulated device meets all goals; the answer shows the closest ones"));
    }
    Ok(())
}

fn prices(args: &AdviseArgs) -> Result<PriceList, Failure> {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|error| Failure::failed(format!("{}: the price file cannot be read: {error}", path.display())))
    };
    let file = args.prices.as_deref().map(read).transpose()?;
    PriceList::new(args.year, file.as_deref(), &args.price).map_err(|error| match &args.prices {
        Some(path) => Failure::failed(format!("{}: {error}", path.display())),
        None => Failure::usage(error),
    })
}

fn text(answer: &Answer) -> String {
    let mut text = header::trace(&answer.trace);
    text += &header::remarks(&answer.terms());
    text.push('\n');
    text += &recommended(answer);
    text.push('\n');
    text += &front(answer);
    text.push('\n');
    if let Some(drives) = &answer.drives {
        text += &drives_to_buy(answer, drives);
        text.push('\n');
    }
    text += &sensitivity(answer);
    text
}

fn recommended(answer: &Answer) -> String {
    let mut text = String::new();
    match &answer.recommended {
        Some(choice) => {
            text += &format!(
                "{}  {}\n",
                bold("Cheapest that meets all goals:"),
                bold(&format!("{} USD", dollars(choice.cost_usd)))
            );
            text += &remark(&choice.words());
            text += &goals(answer, choice);
            text += &binding(answer);
            text += &confirm(choice);
        }
        None => {
            text += &format!("{}\n", bold("No device meets all goals. The closest:"));
            for choice in &answer.closest {
                text += &remark(&format!("{} USD: {}", dollars(choice.cost_usd), choice.words()));
            }
            if let Some(choice) = answer.closest.first() {
                text += &goals(answer, choice);
            }
            text += &binding(answer);
            text += &answer.closest.first().map(confirm).unwrap_or_default();
        }
    }
    text
}

/// One line of any length, which can be copied.
fn confirm(choice: &Choice) -> String {
    choice.command.as_ref().map(|command| format!("  to confirm: {command}\n")).unwrap_or_default()
}

/// Each goal beside the figure of a device.
fn goals(answer: &Answer, choice: &Choice) -> String {
    plain(&right_aligned(&["goal", "measured", ""], 1), answer.verdicts(choice))
}

/// The limiting goals.
fn binding(answer: &Answer) -> String {
    let line = |(nth, line): (usize, &String)| if nth == 0 { remark(line) } else { indented(line, 4) };
    answer.binding().iter().enumerate().map(line).collect()
}

fn front(answer: &Answer) -> String {
    let response = response_of(&answer.goals);
    let mut text = format!(
        "{}  {}\n",
        bold("Best devices"),
        "no other simulated device is cheaper, faster and longer-lived at once"
    );
    if answer.front.is_empty() {
        return text + &remark("none: every device falls behind");
    }
    let service = answer.service_head();
    let row = |choice: &Choice| {
        let mark = if choice.meets { "● " } else { "" };
        let mut row = vec![dollars(choice.cost_usd), answer.shown(choice, response)];
        row.extend(service.as_ref().map(|_| choice.service(response)));
        row.extend(WEAR.map(|measure| answer.shown(choice, measure)));
        row.push(format!("{mark}{}: {}", choice.scheme, choice.device));
        row
    };
    // The choices around the answer.
    let middle = answer.front.iter().position(|choice| choice.meets).unwrap_or(0);
    let from = middle.saturating_sub(FRONT_SHOWN / 2).min(answer.front.len().saturating_sub(FRONT_SHOWN));
    let rows: Vec<_> = answer.front.iter().skip(from).take(FRONT_SHOWN).map(row).collect();
    let more = answer.front.len() - rows.len();
    let words = [Some("cost (USD)".to_owned()), Some(answer.response_head()), service];
    let wear = WEAR.map(|measure| measure.words().to_owned());
    let words: Vec<String> = words.into_iter().flatten().chain(wear).chain(["device".to_owned()]).collect();
    let mut heads = right_aligned(&words.iter().map(String::as_str).collect::<Vec<_>>(), 0);
    if let Some(device) = heads.last_mut() {
        device.1 = crate::table::Align::Left;
    }
    text += &plain(&heads, rows);
    let more = if more > 0 { format!("and {more} more: `--html` and `--json` have all; ") } else { String::new() };
    text + &remark(&format!("{more}● meets all goals"))
}

fn drives_to_buy(answer: &Answer, drives: &DrivesToBuy) -> String {
    let mut text = format!("{}  whole drives, the cheapest first\n", bold("Drives to buy"));
    text += &remark(&drives.verdict(&answer.goals));
    if !drives.offered.is_empty() {
        // The mark is in the margin.
        for table in [drives.simulated(&answer.replay.arrivals, &answer.goals), drives.data_sheet()] {
            text.extend(sheet(&table).lines().flat_map(|line| [line.strip_prefix("  ").unwrap_or(line), "\n"]));
        }
        text += &remark("● meets all goals");
    }
    text += &drives.notes(answer.price_year).iter().map(|note| remark(note)).collect::<String>();
    text + &drives.chosen().map(|drive| confirm(&drive.choice)).unwrap_or_default()
}

fn sensitivity(answer: &Answer) -> String {
    let mut text = format!("{}  {}\n", bold("When prices change"), "price sensitivity of the simulated devices");
    if answer.is_out_of_reach() {
        return text + &remark("no device meets all goals from a quarter to four times the prices");
    }
    for one in &answer.sensitivity {
        let down = nearest(one, |factor| factor < 1.0).map(|step| change(one, step));
        let up = nearest(one, |factor| factor > 1.0).map(|step| change(one, step));
        let changes: Vec<String> = [down, up].into_iter().flatten().collect();
        if changes.is_empty() {
            text += &remark(&format!(
                "{}: the answer stays the same between 0.25 and 4 times the price",
                one.kind.to_uppercase()
            ));
        }
        text += &changes.iter().map(|change| remark(change)).collect::<String>();
    }
    text
}

/// The first change on one side of a factor of 1.
fn nearest(one: &Sensitivity, side: impl Fn(f64) -> bool) -> Option<&PriceStep> {
    let changed = |step: &&PriceStep| side(step.factor) && (step.changes_to.is_some() || step.is_none);
    let distance = |step: &PriceStep| if step.factor > 1.0 { step.factor } else { 1.0 / step.factor };
    one.steps.iter().filter(changed).min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// The change at a step. It happens somewhere between this step and the one before it.
fn change(one: &Sensitivity, step: &PriceStep) -> String {
    let kind = one.kind.to_uppercase();
    let between = one.steps.iter().map(|other| other.factor).filter(|at| (at - 1.0) * (step.factor - at) > 0.0);
    let before = between.min_by(|a, b| (a - step.factor).abs().total_cmp(&(b - step.factor).abs())).unwrap_or(1.0);
    let (least, most) = (before.min(step.factor), before.max(step.factor));
    let when = format!("{kind} at {least:.2} to {most:.2} times the price");
    match &step.changes_to {
        Some(choice) => format!("{when}: {} USD, {}", dollars(choice.cost_usd), choice.words()),
        None => format!("{when}: no device meets the goals any more"),
    }
}
