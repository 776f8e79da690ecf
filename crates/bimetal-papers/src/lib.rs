//! The papers, reproduced: for each table and figure what is swept, what comes out, and whether the paper's claims hold.
//!
//! A paper is a file, a `mod` line and a line of the registry. Each of its figures is a function from a [`Lab`], in which
//! replays run, to plots and findings; verdicts are computed from what was measured ([`finding`]).

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

pub mod calibration;
pub mod catalogue;
mod chang;
pub mod claim;
mod comboftl;
pub mod finding;
mod hyssd;
pub mod lab;
mod opfcl;
mod page;
mod reading;
mod wlaftl;
pub mod workload;

use std::collections::BTreeMap;

use serde::Serialize;

use bimetal_study::StudyError;
use bimetal_study::figure::Plot;
use calibration::Calibration;
use claim::{Claim, Figure, Kind, StandIn, Verdict, primary};
use finding::Finding;
use lab::{Lab, LabProgress, Scale, Source};

use bimetal_study::prepare::Workload;

pub use page::figures;

/// One line of the registry.
#[derive(Debug)]
pub struct PaperSpec {
    /// Name on the command line.
    pub name: &'static str,
    /// Authors, title, where and when.
    pub citation: &'static str,
    /// Its systems, in a line.
    pub summary: &'static str,
    /// Its tables and figures.
    pub figures: &'static [FigureSpec],
    /// How its calibrated stand-ins are fitted, if it has any.
    pub calibrations: &'static [Calibration],
}

/// A table or figure of a paper.
#[derive(Debug)]
pub struct FigureSpec {
    /// Name on the command line: `fig8a`, `table3`.
    pub name: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// The traces that it needs.
    pub sources: &'static [&'static Source],
    /// Makes it.
    pub make: fn(&Lab<'_>) -> Result<Drawn, StudyError>,
}

/// What a figure's function makes.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// How it was made and what to look at.
    pub caption: String,
    /// The diagrams.
    pub plots: Vec<Plot>,
    /// What the paper claims, and what was found.
    pub findings: Vec<Finding>,
}

/// Every paper.
pub static PAPERS: &[&PaperSpec] = &[&chang::SPEC, &comboftl::SPEC, &opfcl::SPEC, &hyssd::SPEC, &wlaftl::SPEC];

/// Why figures cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// No such paper.
    #[error("there is no paper `{name}`; there are: {known}")]
    Paper {
        /// The name that was given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// No such figure of a paper.
    #[error("paper `{paper}` has no figure `{name}`; it has: {known}")]
    Figure {
        /// The paper.
        paper: &'static str,
        /// The name that was given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// None of the chosen figures uses a trace of this name.
    #[error("none of the chosen figures has a trace `{name}`; they have: {known}")]
    Trace {
        /// The name that was given.
        name: String,
        /// The names there are.
        known: String,
    },
}

/// A figure and the paper that it belongs to.
pub type Chosen = (&'static PaperSpec, &'static FigureSpec);

/// The figures whose names begin with one of these; all of a paper, or of all papers, if none is named.
///
/// # Errors
/// A paper or figure that there is not.
pub fn choose(paper: Option<&str>, figures: &[String]) -> Result<Vec<Chosen>, ChoiceError> {
    let Some(name) = paper else {
        return Ok(PAPERS.iter().flat_map(|paper| paper.figures.iter().map(move |figure| (*paper, figure))).collect());
    };
    let spec = PAPERS.iter().copied().find(|paper| paper.name == name).ok_or_else(|| ChoiceError::Paper {
        name: name.to_owned(),
        known: list(PAPERS.iter().map(|paper| paper.name)),
    })?;
    for name in figures {
        if !spec.figures.iter().any(|figure| figure.name.starts_with(name.as_str())) {
            let known = list(spec.figures.iter().map(|figure| figure.name));
            return Err(ChoiceError::Figure { paper: spec.name, name: name.clone(), known });
        }
    }
    let wanted = |figure: &FigureSpec| figures.iter().any(|name| figure.name.starts_with(name.as_str()));
    Ok(spec.figures.iter().filter(|figure| figures.is_empty() || wanted(figure)).map(|figure| (spec, figure)).collect())
}

/// Checks that each of these names is a trace of one of the figures.
///
/// # Errors
/// The first that is not.
pub fn check_traces<'a>(chosen: &[Chosen], names: impl IntoIterator<Item = &'a str>) -> Result<(), ChoiceError> {
    let mut known: Vec<&str> = chosen.iter().flat_map(|(_, figure)| figure.sources).map(|source| source.name).collect();
    known.sort_unstable();
    known.dedup();
    match names.into_iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => Err(ChoiceError::Trace { name: name.to_owned(), known: list(known.iter().copied()) }),
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// What `bimetal paper` writes as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// Version of this program.
    pub bimetal: &'static str,
    /// `quick` or `full`.
    pub scale: &'static str,
    /// Traces of the user, by the names of those that they stand in for: file names.
    pub traces: BTreeMap<String, String>,
    /// Claims by kind and verdict, for each paper: on calibrated stand-ins first, where it has any, and on those made first.
    pub scoreboard: Vec<Score>,
    /// Every claim, in the order of the figures.
    pub claims: Vec<Claim>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// A paper's claims of one kind by verdict, on one kind of stand-ins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Name of the paper.
    pub paper: &'static str,
    /// What kind of claims.
    pub kind: Kind,
    /// Which stand-ins they were judged on. Among the calibrated are claims that no calibrated stand-in is part of.
    pub stand_in: StandIn,
    /// Claims that held.
    pub held: usize,
    /// Claims that did not.
    pub not_held: usize,
    /// Claims that cannot be judged here.
    pub not_judged: usize,
}

impl Score {
    /// All of a paper.
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

    /// How many claims there are.
    pub fn claims(&self) -> usize {
        self.held + self.not_held + self.not_judged
    }
}

/// Called while figures are made.
pub trait Progress: LabProgress {
    /// The next figure begins, one of `of` figures.
    fn figure(&self, paper: &str, figure: &str, number: usize, of: usize);
}

/// Makes the chosen figures, one after the other; the replays of each run side by side.
///
/// # Errors
/// The first experiment that cannot be done.
pub fn reproduce(
    chosen: &[Chosen],
    scale: Scale,
    jobs: usize,
    own: BTreeMap<String, Workload>,
    progress: &impl Progress,
) -> Result<Reproduction, StudyError> {
    let traces = own.iter().map(|(name, workload)| (name.clone(), workload.facts.name.clone())).collect();
    let mut lab = Lab::new(scale, jobs, own, progress);
    let mut figures = Vec::new();
    for (number, &(paper, figure)) in chosen.iter().enumerate() {
        progress.figure(paper.name, figure.name, number + 1, chosen.len());
        for stand_in in StandIn::ALL {
            lab.take_stand_in(stand_in);
            if figure.stand_ins(&lab).contains(&stand_in) {
                figures.push(made(&mut lab, paper, figure)?);
            }
        }
    }
    let claims: Vec<Claim> = figures.iter().flat_map(|figure| figure.claims.iter().cloned()).collect();
    let mut papers: Vec<&str> = figures.iter().map(|figure| figure.paper).collect();
    papers.dedup();
    Ok(Reproduction {
        bimetal: env!("CARGO_PKG_VERSION"),
        scale: scale.name(),
        traces,
        scoreboard: papers.into_iter().flat_map(|paper| Score::all(paper, &claims)).collect(),
        claims,
        figures,
    })
}

/// A figure with the stand-ins of the lab.
fn made(lab: &mut Lab<'_>, paper: &PaperSpec, figure: &FigureSpec) -> Result<Figure, StudyError> {
    let drawn = (figure.make)(lab)?;
    let own_traces = figure.sources.iter().any(|source| lab.is_own(source));
    let (undecided, stand_in) = (lab.take_undecided(), lab.stand_in());
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
            claim: finding.claim,
            expected: finding.expected,
            measured: finding.measured,
            verdict: finding.verdict,
            reason: match explanation {
                Some(explanation) if finding.verdict == Verdict::NotHeld && !own_traces => explanation.to_owned(),
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
        caption: drawn.caption,
        plots: drawn.plots,
        claims: drawn.findings.into_iter().map(claim).filter(depends).collect(),
        commands: lab.take_commands(),
    })
}

impl FigureSpec {
    /// The stand-ins with which it is made: the calibrated ones, too, where there are any.
    fn stand_ins(&self, lab: &Lab<'_>) -> &'static [StandIn] {
        if self.name == FIT {
            return &[StandIn::Calibrated];
        }
        if lab.has_calibrated(self.sources) { &StandIn::ALL } else { &[StandIn::First] }
    }
}

/// Name of the figure that holds calibrated stand-ins against what they are fitted to.
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

    #[test]
    fn names_are_unique_and_traces_are_the_same_everywhere() {
        let mut sources: BTreeMap<&str, String> = BTreeMap::new();
        for paper in PAPERS {
            let mut names: Vec<_> = paper.figures.iter().map(|figure| figure.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), paper.figures.len(), "{}", paper.name);
            for source in paper.figures.iter().flat_map(|figure| figure.sources) {
                // Calibrated stand-ins are fitted to a paper each.
                let trace = format!("{:?}", Source { calibrated: None, ..**source });
                let same = sources.entry(source.name).or_insert_with(|| trace.clone());
                assert_eq!(*same, trace, "two traces are called `{}`", source.name);
            }
        }
    }
}
