//! `bimetal paper`: the papers' tables and figures, and whether their claims hold.

mod any_trace;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bimetal_papers::claim::{Claim, Figure, Verdict};
use bimetal_papers::variation::{Applied, Variation};
use bimetal_papers::{Chosen, Conditions, Reproduction, Score, check_traces, check_variations, choose, reproduce};
use bimetal_study::figure::{Origin, Plot, Series, short};

use crate::args::{PaperArgs, TraceOptions};
use crate::failure::Failure;
use crate::files::Files;
use crate::progress::PaperBar;
use crate::table::{Align, Grid, bold, broken, indented, plain, remark, right_aligned, width};
use crate::{output, setup, warn};
use bimetal_study::number::{NOTHING, counted};

/// Runs the command.
pub fn run(args: &PaperArgs) -> Result<(), Failure> {
    if !args.on.is_empty() {
        return any_trace::run(args);
    }
    let chosen = choose(args.paper.as_deref(), &args.figures).map_err(Failure::usage)?;
    check_traces(&chosen, args.trace.iter().map(|(name, _)| name.as_str())).map_err(Failure::usage)?;
    let variations = variations(args, &chosen)?;
    let own_files = args.trace.iter().map(|(_, file)| file);
    Files::default().reads(own_files).results(&args.json, &args.html).check()?;
    let mut own = BTreeMap::new();
    for (name, file) in &args.trace {
        own.insert(name.clone(), setup::traces(&[PathBuf::from(file)], &TraceOptions::default())?);
    }
    let bar = PaperBar::new();
    let conditions = Conditions { scale: args.scale(), jobs: usize::from(args.jobs.unwrap_or(0)), own, variations };
    let reproduction = reproduce(&chosen, conditions, &bar)?;
    drop(bar);
    reproduction.settings.iter().filter_map(Applied::warning).for_each(|warning| warn(&warning));
    output::write_html(&args.html, || {
        let title = args.paper.as_ref().map_or_else(|| "The papers".to_owned(), |paper| format!("Paper {paper}"));
        bimetal_papers::figures(&title, &output::command_line(), &reproduction.figures)
    })?;
    output::emit(&args.json, &reproduction, || text(&reproduction, args.paper.is_some()))
}

/// The settings of the user for these figures.
fn variations(args: &PaperArgs, chosen: &[Chosen]) -> Result<Vec<Variation>, Failure> {
    let variations = args.set.iter().map(|(name, value)| Variation::new(name, value)).collect::<Result<Vec<_>, _>>();
    let variations = variations.map_err(Failure::usage)?;
    let own = args.trace.iter().map(|(name, _)| name.as_str());
    check_variations(chosen, own, &variations).map_err(Failure::usage)?;
    Ok(variations)
}

/// The figures, if requested, and the claims.
fn text(reproduction: &Reproduction, with_figures: bool) -> String {
    let mut text = String::new();
    if with_figures {
        for figure in &reproduction.figures {
            text.push_str(&figure_text(figure));
        }
    }
    text.push_str(&claims(&reproduction.claims));
    text.push('\n');
    text.push_str(&scoreboard(&reproduction.scoreboard));
    text.push_str(&settings(&reproduction.settings));
    text
}

/// The settings of the user, and where they applied.
fn settings(settings: &[Applied]) -> String {
    let line = |Applied { variation, replays }: &Applied| {
        remark(&format!("{variation} in {}", counted(*replays as u64, "replay")))
    };
    settings.iter().map(line).collect()
}

fn figure_text(figure: &Figure) -> String {
    let on = figure.stand_in.name();
    let mut text =
        format!("{}  {}, on {on} traces\n", bold(&format!("{} {}", figure.paper, figure.figure)), figure.title);
    text.push_str(&indented(&figure.caption, 2));
    for plot in &figure.plots {
        text.push('\n');
        text.push_str(&plot_text(plot));
    }
    text.push('\n');
    text
}

/// A row for each value of the horizontal axis, and a column for each series.
fn plot_text(plot: &Plot) -> String {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (column, series) in plot.series.iter().enumerate() {
        for (place, value) in series.points.by_name() {
            let at = rows.iter().position(|(known, _)| *known == place).unwrap_or_else(|| {
                rows.push((place, vec![NOTHING.to_owned(); plot.series.len()]));
                rows.len() - 1
            });
            rows[at].1[column] = short(value);
        }
    }
    let name = |series: &Series| match series.origin {
        Origin::Paper => format!("{}, paper", series.name),
        Origin::Measured => series.name.clone(),
    };
    let mut grid = Grid::new(plot.series.iter().map(name).collect());
    rows.into_iter().for_each(|(place, values)| grid.row(place, values));
    remark(&format!("{}: {} by {}", plot.title, plot.y.label, plot.x.label)) + &grid.render(width())
}

/// A line for each claim, and the reasons of those that are not judged.
fn claims(claims: &[Claim]) -> String {
    let mut rows = Vec::new();
    for claim in claims {
        let figure = format!("{} {}", claim.paper, claim.figure);
        let stand_in = claim.stand_in.name();
        let room = width().saturating_sub(94).max(24);
        let (said, expected) = (broken(claim.claim, room), broken(&claim.expected, 18));
        let measured = broken(&claim.measured, 18);
        for line in 0..said.len().max(expected.len()).max(measured.len()) {
            let cell = |lines: &[String]| lines.get(line).cloned().unwrap_or_default();
            let first = |text: &str| if line == 0 { text.to_owned() } else { String::new() };
            let [kind, stand_in, verdict] = [claim.kind.name(), stand_in, claim.verdict.name()].map(first);
            rows.push(vec![first(&figure), cell(&said), kind, stand_in, cell(&expected), cell(&measured), verdict]);
        }
    }
    let heads = ["figure", "claim", "kind", "traces", "paper", "here", "verdict"].map(|head| (head, Align::Left));
    let not_judged = claims.iter().filter(|claim| claim.verdict == Verdict::NotJudged);
    let reasons: BTreeSet<_> = not_judged.map(|claim| claim.reason.as_str()).collect();
    let reasons: String = reasons.iter().map(|reason| remark(&format!("not judged: {reason}"))).collect();
    plain(&heads, rows) + &reasons + &remark("`--html` and `--json` have the reason of each verdict")
}

fn scoreboard(scores: &[Score]) -> String {
    let row = |score: &Score| {
        let counts = [score.held, score.not_held, score.not_judged];
        [score.paper, score.stand_in.name(), score.kind.name()]
            .map(str::to_owned)
            .into_iter()
            .chain(counts.iter().map(usize::to_string))
            .collect()
    };
    plain(
        &right_aligned(&["paper", "traces", "kind", "held", "not held", "not judged"], 3),
        scores.iter().map(row).collect(),
    )
}
