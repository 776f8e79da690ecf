//! `bimetal paper --on`: the papers' claims on the user's traces, side by side.

use std::collections::BTreeSet;

use bimetal_papers::claim::{Claim, Kind, Verdict};
use bimetal_papers::variation::Applied;
use bimetal_papers::{Reproduction, check_names, choose_on_any_trace, figures, reproduce_on};
use bimetal_study::number::NOTHING;

use super::{settings, variations};
use crate::args::PaperArgs;
use crate::failure::Failure;
use crate::files::Files;
use crate::progress::PaperBar;
use crate::table::{Grid, bold, broken, remark, width};
use crate::{output, setup, warn};

/// Runs the command.
pub fn run(args: &PaperArgs) -> Result<(), Failure> {
    let chosen = choose_on_any_trace(args.paper.as_deref()).map_err(Failure::usage)?;
    let variations = variations(args, &chosen)?;
    let files = args.on.iter().filter(|path| !setup::is_sample(path));
    Files::default().reads(files).results(&args.json, &args.html).check()?;
    let traces = args.on.iter().map(|path| setup::named(path)).collect::<Result<Vec<_>, _>>()?;
    check_names(&traces).map_err(Failure::usage)?;
    let bar = PaperBar::new();
    let reproduction = reproduce_on(&chosen, &traces, usize::from(args.jobs.unwrap_or(0)), &variations, &bar)?;
    drop(bar);
    reproduction.settings.iter().filter_map(Applied::warning).for_each(|warning| warn(&warning));
    output::write_html(&args.html, || {
        let title = args.paper.as_ref().map_or_else(|| "The papers".to_owned(), |paper| format!("Paper {paper}"));
        figures(&title, &output::command_line(), &reproduction.figures)
    })?;
    output::emit(&args.json, &reproduction, || text(&reproduction))
}

/// A table for each paper.
fn text(reproduction: &Reproduction) -> String {
    let of_papers = reproduction.claims.chunk_by(|one, other| one.paper == other.paper);
    of_papers.map(of_paper).collect::<Vec<_>>().join("\n") + &settings(&reproduction.settings)
}

/// Width of the lines of a claim, and of the paper's figure.
const CLAIM_WIDTH: usize = 44;
const EXPECTED_WIDTH: usize = 18;

/// A row for each claim and a column for each trace, and the reasons of claims that are not judged.
fn of_paper(claims: &[Claim]) -> String {
    let of_traces: Vec<&[Claim]> = claims.chunk_by(|one, other| one.trace == other.trace).collect();
    let Some(first) = of_traces.first() else { return String::new() };
    let heads = ["paper".to_owned()].into_iter().chain(heads(&of_traces)).collect();
    let mut grid = Grid::new(heads);
    let mut figure = "";
    for (row, claim) in first.iter().enumerate() {
        if claim.figure != figure {
            figure = claim.figure;
            grid.section(&format!("{} {figure}", claim.paper));
        }
        let said = match claim.kind {
            Kind::Result => claim.claim.to_owned(),
            kind => format!("{} ({})", claim.claim, kind.name()),
        };
        let (said, expected) = (broken(&said, CLAIM_WIDTH), broken(&claim.expected, EXPECTED_WIDTH));
        let line = |lines: &[String], at: usize| lines.get(at).cloned().unwrap_or_default();
        for at in 0..said.len().max(expected.len()) {
            let figures =
                of_traces.iter().map(|claims| claims.get(row).filter(|_| at == 0).map(cell).unwrap_or_default());
            grid.row(line(&said, at), [line(&expected, at)].into_iter().chain(figures).collect());
        }
    }
    let held = of_traces.iter().map(|claims| held(claims));
    grid.section("Results that held, of those that were judged");
    grid.row(first.first().map_or("", |claim| claim.paper), [String::new()].into_iter().chain(held).collect());
    let reasons: Vec<&str> =
        claims.iter().filter(|claim| claim.verdict == Verdict::NotJudged).map(|claim| claim.reason.as_str()).collect();
    let reasons: BTreeSet<&str> = reasons.into_iter().collect();
    let not_judged = reasons.iter().map(|reason| remark(&format!("{NOTHING} not judged: {reason}")));
    grid.render(width()) + &not_judged.collect::<String>()
}

/// Names of the traces up to the first dot or space, if these differ.
fn heads(of_traces: &[&[Claim]]) -> Vec<String> {
    let names = || of_traces.iter().filter_map(|claims| claims.first()?.trace.as_deref());
    let short = || names().map(|name| name.split(['.', ' ']).next().unwrap_or(name));
    let differ = short().collect::<BTreeSet<_>>().len() == of_traces.len();
    if differ { short().map(str::to_owned).collect() } else { names().map(str::to_owned).collect() }
}

/// The measured figure, marked if the claim held.
fn cell(claim: &Claim) -> String {
    match claim.verdict {
        Verdict::Held => bold(&format!("{} ✓", claim.measured)),
        Verdict::NotHeld => format!("{}  ", claim.measured),
        Verdict::NotJudged => format!("{NOTHING}  "),
    }
}

/// The number of results that held, of those that were judged.
fn held(claims: &[Claim]) -> String {
    let of = |wanted: fn(Verdict) -> bool| {
        claims.iter().filter(|claim| claim.kind == Kind::Result && wanted(claim.verdict)).count()
    };
    format!("{} of {}", of(|verdict| verdict == Verdict::Held), of(|verdict| verdict != Verdict::NotJudged))
}
