//! Reproduction of the papers: for each table and figure the sweep, its results, and whether the paper's claims hold.
//!
//! A paper is a file, a `mod` line and an entry of the registry. Each of its figures is a function from a [`Lab`],
//! which runs replays, to plots and findings. Verdicts are computed from measurements ([`finding`]).

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

pub mod calibration;
pub mod catalogue;
mod chang;
pub mod claim;
mod comboftl;
pub mod experiment;
pub mod finding;
mod hyssd;
pub mod lab;
mod opfcl;
mod page;
pub mod pool;
mod reading;
mod settings;
pub mod variation;
mod wlaftl;
pub mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use bimetal_study::StudyError;
use bimetal_study::figure::Plot;
use calibration::Calibration;
use claim::{Claim, Figure, Kind, StandIn, Verdict, primary};
use experiment::{Scale, Source};
use finding::Finding;
use lab::Lab;
use pool::{LabProgress, Pool};
use variation::{Applied, Variation};

use bimetal_study::prepare::Workload;

pub use page::figures;
pub use settings::check_variations;

/// One entry of the registry.
#[derive(Debug)]
pub struct PaperSpec {
    /// Name on the command line.
    pub name: &'static str,
    /// Authors, title, venue and year.
    pub citation: &'static str,
    /// Its systems, in a line.
    pub summary: &'static str,
    /// Its tables and figures.
    pub figures: &'static [FigureSpec],
    /// Those of its tables and figures with claims that any trace can decide: shapes, orders and comparisons, and printed
    /// ranges. Devices are scaled to the trace.
    pub on_any_trace: &'static [FigureSpec],
    /// The fits of its calibrated stand-ins, if it has any.
    pub calibrations: &'static [Calibration],
}

/// A table or figure of a paper.
#[derive(Debug)]
pub struct FigureSpec {
    /// Name on the command line: `fig8a`, `table3`.
    pub name: &'static str,
    /// One-line description of its content.
    pub title: &'static str,
    /// The traces that it uses.
    pub sources: &'static [&'static Source],
    /// Makes the figure.
    pub make: fn(&Lab<'_>) -> Result<Drawn, StudyError>,
}

/// The result of a figure's function.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// The experiment and remarks on its results.
    pub caption: String,
    /// The diagrams.
    pub plots: Vec<Plot>,
    /// Claims of the paper and their verdicts.
    pub findings: Vec<Finding>,
}

impl Drawn {
    /// Claims without a diagram.
    fn of_claims(caption: &str, findings: Vec<Finding>) -> Self {
        Self { caption: caption.into(), plots: Vec::new(), findings }
    }
}

/// Every paper.
pub static PAPERS: &[&PaperSpec] = &[&chang::SPEC, &comboftl::SPEC, &opfcl::SPEC, &hyssd::SPEC, &wlaftl::SPEC];

/// Error in the choice of figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// An unknown paper.
    #[error("there is no paper `{name}`; there are: {known}")]
    Paper {
        /// The given name.
        name: String,
        /// The valid names.
        known: String,
    },
    /// An unknown figure of a paper.
    #[error("paper `{paper}` has no figure `{name}`; it has: {known}")]
    Figure {
        /// The paper.
        paper: &'static str,
        /// The given name.
        name: String,
        /// The valid names.
        known: String,
    },
    /// Two traces on which claims are to be judged have the same name.
    #[error(
        "two traces are called `{name}`; hint: claims are told apart by the names of their traces, give one another name"
    )]
    SameName {
        /// The name.
        name: String,
    },
    /// None of the chosen figures uses a trace of this name.
    #[error("none of the chosen figures has a trace `{name}`; they have: {known}")]
    Trace {
        /// The given name.
        name: String,
        /// The valid names.
        known: String,
    },
}

/// A figure and the paper that it belongs to.
pub type Chosen = (&'static PaperSpec, &'static FigureSpec);

/// The figures whose names begin with one of these. Without names: all of the paper, or of all papers.
///
/// # Errors
/// An unknown paper or figure.
pub fn choose(paper: Option<&str>, figures: &[String]) -> Result<Vec<Chosen>, ChoiceError> {
    let Some(name) = paper else {
        return Ok(PAPERS.iter().flat_map(|paper| paper.figures.iter().map(move |figure| (*paper, figure))).collect());
    };
    let spec = find(name)?;
    for name in figures {
        if !spec.figures.iter().any(|figure| figure.name.starts_with(name.as_str())) {
            let known = list(spec.figures.iter().map(|figure| figure.name));
            return Err(ChoiceError::Figure { paper: spec.name, name: name.clone(), known });
        }
    }
    let wanted = |figure: &FigureSpec| figures.iter().any(|name| figure.name.starts_with(name.as_str()));
    Ok(spec.figures.iter().filter(|figure| figures.is_empty() || wanted(figure)).map(|figure| (spec, figure)).collect())
}

fn find(name: &str) -> Result<&'static PaperSpec, ChoiceError> {
    PAPERS
        .iter()
        .copied()
        .find(|paper| paper.name == name)
        .ok_or_else(|| ChoiceError::Paper { name: name.to_owned(), known: list(PAPERS.iter().map(|paper| paper.name)) })
}

/// The figures of a paper, or of all papers, with claims that any trace can decide.
///
/// # Errors
/// An unknown paper.
pub fn choose_on_any_trace(paper: Option<&str>) -> Result<Vec<Chosen>, ChoiceError> {
    let papers = paper.map_or_else(|| Ok(PAPERS.to_vec()), |name| Ok(vec![find(name)?]))?;
    Ok(papers.into_iter().flat_map(|paper| paper.on_any_trace.iter().map(move |figure| (paper, figure))).collect())
}

/// Checks that each of these names is a trace of one of the chosen figures.
///
/// # Errors
/// The first unknown name.
pub fn check_traces<'a>(chosen: &[Chosen], names: impl IntoIterator<Item = &'a str>) -> Result<(), ChoiceError> {
    let mut known: Vec<&str> = chosen.iter().flat_map(|(_, figure)| figure.sources).map(|source| source.name).collect();
    known.sort_unstable();
    known.dedup();
    match names.into_iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => Err(ChoiceError::Trace { name: name.to_owned(), known: list(known.iter().copied()) }),
    }
}

/// Checks that the claims on these traces can be told apart by the names of the traces.
///
/// # Errors
/// The first name that occurs twice.
pub fn check_names(traces: &[Workload]) -> Result<(), ChoiceError> {
    let mut known = BTreeSet::new();
    match traces.iter().map(|trace| &trace.facts.name).find(|name| !known.insert(*name)) {
        None => Ok(()),
        Some(name) => Err(ChoiceError::SameName { name: name.clone() }),
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The JSON output of `bimetal paper`.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Reproduction {
    /// Version of this program.
    pub bimetal: &'static str,
    /// `quick` or `full`.
    pub scale: &'static str,
    /// File names of the user's traces, by the names of the traces that they replace.
    pub traces: BTreeMap<String, String>,
    /// Settings of the user for all experiments.
    pub settings: Vec<Applied>,
    /// Claims by kind and verdict, for each paper: first on calibrated stand-ins, if there are any, then on the first
    /// ones.
    pub scoreboard: Vec<Score>,
    /// Every claim, in the order of the figures.
    pub claims: Vec<Claim>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// A paper's claims of one kind by verdict, on one kind of stand-ins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Score {
    /// Name of the paper.
    pub paper: &'static str,
    /// Kind of claims.
    pub kind: Kind,
    /// The stand-ins on which they were judged; the calibrated group includes claims in which no calibrated stand-in is
    /// involved.
    pub stand_in: StandIn,
    /// Claims that held.
    pub held: usize,
    /// Claims that did not hold.
    pub not_held: usize,
    /// Claims that cannot be judged here.
    pub not_judged: usize,
}

impl Score {
    /// All scores of a paper.
    fn all(paper: &'static str, claims: &[Claim]) -> Vec<Self> {
        let of_paper: Vec<&Claim> = claims.iter().filter(|claim| claim.paper == paper).collect();
        let (first, again): (Vec<&Claim>, Vec<&Claim>) =
            of_paper.iter().partition(|claim| claim.stand_in == StandIn::First);
        let kinds = |stand_in, claims: &[&Claim]| Kind::ALL.map(|kind| Self::of(paper, kind, stand_in, claims));
        let mut scores = Vec::new();
        if !again.is_empty() {
            scores.extend(kinds(StandIn::Calibrated, &primary(&of_paper)));
        }
        scores.extend(kinds(StandIn::First, &first));
        scores.retain(|score| score.claims() > 0);
        scores
    }

    fn of(paper: &'static str, kind: Kind, stand_in: StandIn, claims: &[&Claim]) -> Self {
        let count = |verdict| claims.iter().filter(|claim| claim.kind == kind && claim.verdict == verdict).count();
        Self {
            paper,
            kind,
            stand_in,
            held: count(Verdict::Held),
            not_held: count(Verdict::NotHeld),
            not_judged: count(Verdict::NotJudged),
        }
    }

    /// Number of claims.
    pub fn claims(&self) -> usize {
        self.held + self.not_held + self.not_judged
    }
}

/// Called while figures are made.
pub trait Progress: LabProgress {
    /// The next figure begins, one of `of` figures.
    fn figure(&self, paper: &str, figure: &str, number: usize, of: usize);
}

/// Conditions of all experiments of a run.
#[derive(Debug)]
pub struct Conditions {
    /// Size of the experiments.
    pub scale: Scale,
    /// Number of replays at once; 0 means one for each processor.
    pub jobs: usize,
    /// Traces of the user, by the names of the traces that they replace.
    pub own: BTreeMap<String, Workload>,
    /// Settings of the user.
    pub variations: Vec<Variation>,
}

/// Makes the chosen figures. They and their replays run in parallel.
///
/// # Errors
/// An experiment that fails.
pub fn reproduce(
    chosen: &[Chosen],
    conditions: Conditions,
    progress: &impl Progress,
) -> Result<Reproduction, StudyError> {
    let Conditions { scale, jobs, own, variations } = conditions;
    let traces = own.iter().map(|(name, workload)| (name.clone(), workload.facts.name.clone())).collect();
    let pool = Pool::new(scale, jobs, own, progress).varied(&variations);
    let with_stand_ins =
        |&(paper, figure): &Chosen| figure.stand_ins(&pool).iter().map(move |&kind| (paper, figure, kind));
    let figures: Vec<_> = chosen.iter().flat_map(with_stand_ins).collect();
    let begun = AtomicUsize::new(0);
    let figures = pool.each(&figures, |&(paper, figure, stand_in)| {
        progress.figure(paper.name, figure.name, begun.fetch_add(1, Ordering::Relaxed) + 1, figures.len());
        made(&Lab::new(&pool, stand_in), paper, figure)
    })?;
    Ok(Reproduction::of(scale, traces, pool.applied(), figures))
}

/// Judges the claims of the chosen figures on each of these traces, on devices that are scaled to it, with settings of
/// the user.
///
/// # Errors
/// An experiment that fails.
pub fn reproduce_on(
    chosen: &[Chosen],
    traces: &[Workload],
    jobs: usize,
    variations: &[Variation],
    progress: &impl Progress,
) -> Result<Reproduction, StudyError> {
    let mut figures = Vec::new();
    let mut settings: Vec<Applied> =
        variations.iter().map(|variation| Applied { variation: variation.clone(), replays: 0 }).collect();
    let (begun, of) = (AtomicUsize::new(0), chosen.len() * traces.len());
    for of_paper in chosen.chunk_by(|(one, _), (other, _)| one.name == other.name) {
        for workload in traces {
            let pool = Pool::on_any_trace(workload.clone(), jobs, progress).varied(variations);
            figures.extend(pool.each(of_paper, |&(paper, figure)| {
                progress.figure(paper.name, figure.name, begun.fetch_add(1, Ordering::Relaxed) + 1, of);
                made_on(&Lab::new(&pool, StandIn::First), paper, figure, &workload.facts.name)
            })?);
            for (sum, applied) in settings.iter_mut().zip(pool.applied()) {
                sum.replays += applied.replays;
            }
        }
    }
    Ok(Reproduction::of(Scale::Full, BTreeMap::new(), settings, figures))
}

impl Reproduction {
    fn of(scale: Scale, traces: BTreeMap<String, String>, settings: Vec<Applied>, figures: Vec<Figure>) -> Self {
        let claims: Vec<Claim> = figures.iter().flat_map(|figure| figure.claims.iter().cloned()).collect();
        let mut papers: Vec<&str> = figures.iter().map(|figure| figure.paper).collect();
        papers.dedup();
        Self {
            bimetal: env!("CARGO_PKG_VERSION"),
            scale: scale.name(),
            traces,
            settings,
            scoreboard: papers.into_iter().flat_map(|paper| Score::all(paper, &claims)).collect(),
            claims,
            figures,
        }
    }
}

/// A figure about a trace of the user.
fn made_on(lab: &Lab<'_>, paper: &PaperSpec, figure: &FigureSpec, trace: &str) -> Result<Figure, StudyError> {
    let drawn = (figure.make)(lab)?;
    let claim = |finding: Finding| Claim {
        paper: paper.name,
        figure: figure.name,
        target: finding.target,
        kind: finding.kind,
        stand_in: lab.stand_in(),
        trace: Some(trace.to_owned()),
        claim: finding.claim,
        expected: finding.expected,
        measured: finding.measured,
        verdict: finding.verdict,
        reason: finding.reason,
    };
    let claims = drawn.findings.into_iter().map(claim).collect();
    Ok(Figure {
        paper: paper.name,
        figure: figure.name,
        title: figure.title,
        stand_in: lab.stand_in(),
        trace: Some(trace.to_owned()),
        caption: drawn.caption,
        plots: drawn.plots,
        claims,
        commands: lab.commands(),
    })
}

/// A figure with the lab's current stand-ins.
fn made(lab: &Lab<'_>, paper: &PaperSpec, figure: &FigureSpec) -> Result<Figure, StudyError> {
    let drawn = (figure.make)(lab)?;
    // Explanations are about the experiments as they are.
    let is_changed = lab.is_varied() || figure.sources.iter().any(|source| lab.is_own(source));
    let (undecided, stand_in) = (lab.undecided(), lab.stand_in());
    let claim = |finding: Finding| {
        let finding = match (&undecided, finding.kind) {
            (Some(why), Kind::Result) => Finding { verdict: Verdict::NotJudged, ..finding }.reason(why),
            _ => finding,
        };
        let is_fitted = finding.is_fitted && stand_in == StandIn::Calibrated;
        let explanation = match stand_in {
            StandIn::First => finding.explanation,
            StandIn::Calibrated => finding.calibrated_explanation,
        };
        Claim {
            paper: paper.name,
            figure: figure.name,
            target: finding.target,
            kind: if is_fitted { Kind::Generator } else { finding.kind },
            stand_in,
            trace: None,
            claim: finding.claim,
            expected: finding.expected,
            measured: finding.measured,
            verdict: finding.verdict,
            reason: match explanation {
                Some(explanation) if finding.verdict == Verdict::NotHeld && !is_changed => explanation.to_owned(),
                _ => finding.reason,
            },
        }
    };
    let depends =
        |claim: &Claim| stand_in == StandIn::First || claim.kind == Kind::Result || claim.kind == Kind::Generator;
    Ok(Figure {
        paper: paper.name,
        figure: figure.name,
        title: figure.title,
        stand_in,
        trace: None,
        caption: drawn.caption,
        plots: drawn.plots,
        claims: drawn.findings.into_iter().map(claim).filter(depends).collect(),
        commands: lab.commands(),
    })
}

impl FigureSpec {
    /// The stand-ins for this figure: the first ones, and also the calibrated ones if there are any.
    fn stand_ins(&self, pool: &Pool<'_>) -> &'static [StandIn] {
        if self.name == FIT {
            return &[StandIn::Calibrated];
        }
        if pool.has_calibrated(self.sources) { &StandIn::ALL } else { &[StandIn::First] }
    }
}

/// Name of the figure that compares calibrated stand-ins with their goals.
const FIT: &str = "fit";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_chosen_by_how_their_names_begin() {
        let names = |paper, figures: &[&str]| {
            let figures: Vec<String> = figures.iter().map(|&figure| figure.to_owned()).collect();
            choose(paper, &figures).map(|chosen| chosen.iter().map(|(_, figure)| figure.name).collect::<Vec<_>>())
        };
        assert_eq!(names(Some("chang"), &["fig8"]).unwrap(), ["fig8a", "fig8b"]);
        assert!(names(None, &[]).unwrap().len() > 1);
        assert!(names(Some("chang"), &["fig99"]).unwrap_err().to_string().contains("fig8a"));
        assert!(names(Some("nobody"), &[]).unwrap_err().to_string().contains("chang"));
        let chosen = choose(Some("chang"), &["fig8a".into()]).unwrap();
        assert_eq!(check_traces(&chosen, ["ntfs"]), Ok(()));
        assert!(check_traces(&chosen, ["nfts"]).unwrap_err().to_string().contains("ntfs"));
    }

    struct Quiet;

    impl LabProgress for Quiet {
        fn replays(&self, _done: usize, _of: usize) {}
    }

    impl Progress for Quiet {
        fn figure(&self, _paper: &str, _figure: &str, _number: usize, _of: usize) {}
    }

    #[test]
    fn every_paper_has_claims_that_any_trace_can_decide() {
        let settings = [("span", "24MiB"), ("requests", "3000"), ("read_share", "0.3")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let trace = bimetal_study::generate::trace("zipf", &settings, 1).unwrap();
        let trace = Workload::of(trace, None);
        let chosen = choose_on_any_trace(None).unwrap();
        let made = reproduce_on(&chosen, std::slice::from_ref(&trace), 0, &[], &Quiet).unwrap();
        for paper in PAPERS {
            let claims: Vec<&Claim> = made.claims.iter().filter(|claim| claim.paper == paper.name).collect();
            assert!(claims.len() >= 12, "{} has {} claims", paper.name, claims.len());
            let texts: BTreeSet<&str> = claims.iter().map(|claim| claim.claim).collect();
            assert_eq!(texts.len(), claims.len(), "two claims of {} have the same text", paper.name);
            for name in paper.on_any_trace.iter().map(|figure| figure.name) {
                assert!(claims.iter().any(|claim| claim.figure == name), "{} {name} has no claim", paper.name);
            }
        }
        assert!(made.claims.iter().all(|claim| claim.trace.as_ref() == Some(&trace.facts.name)));
        let is_empty =
            |claim: &&Claim| claim.expected.is_empty() || claim.measured.is_empty() || claim.reason.is_empty();
        assert_eq!(made.claims.iter().find(is_empty), None);
        assert!(choose_on_any_trace(Some("nobody")).unwrap_err().to_string().contains("chang"));
    }

    #[test]
    fn names_are_unique_and_traces_are_the_same_everywhere() {
        let mut sources: BTreeMap<&str, String> = BTreeMap::new();
        for paper in PAPERS {
            let mut names: Vec<_> = paper.figures.iter().map(|figure| figure.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), paper.figures.len(), "{}", paper.name);
            for source in paper.figures.iter().flat_map(|figure| figure.sources) {
                // Each calibrated stand-in is fitted to one paper.
                let trace = format!("{:?}", Source { calibrated: None, ..**source });
                let same = sources.entry(source.name).or_insert_with(|| trace.clone());
                assert_eq!(*same, trace, "two traces are called `{}`", source.name);
            }
        }
    }
}
