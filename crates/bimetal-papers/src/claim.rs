//! Figures and their claims as data. A verdict is computed from measured values.

use std::collections::BTreeSet;

use bimetal_study::figure::Plot;
use schemars::JsonSchema;
use serde::Serialize;

/// The reproduction of one table or figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// Name of the paper on the command line.
    pub paper: &'static str,
    /// Name of the figure on the command line, such as `fig8a`.
    pub figure: &'static str,
    /// One-line description of its content.
    pub title: &'static str,
    /// The stand-ins of the paper's traces in this run.
    pub stand_in: StandIn,
    /// The user's trace, if the figure is about that instead of the paper's traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The experiment and remarks on its results, in a few sentences.
    pub caption: String,
    /// The diagrams; none if the paper has only numbers.
    pub plots: Vec<Plot>,
    /// Claims of the paper and their verdicts. In JSON all claims are in a separate list.
    #[serde(skip)]
    pub claims: Vec<Claim>,
    /// Commands that repeat every point.
    pub commands: Vec<String>,
}

/// A claim of a paper, and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// Name of the paper on the command line.
    pub paper: &'static str,
    /// Name of the figure on the command line.
    pub figure: &'static str,
    /// The acceptance target of the specification to which it belongs, such as `T20`.
    pub target: Option<&'static str>,
    /// Kind of statement.
    pub kind: Kind,
    /// The stand-ins of the paper's traces on which it was judged.
    pub stand_in: StandIn,
    /// The user's trace, if it was judged on that instead of the paper's traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The claim in a few words.
    pub claim: &'static str,
    /// The paper's value, with the tolerance within which the claim counts as held.
    pub expected: String,
    /// The measured value.
    pub measured: String,
    /// Whether it held.
    pub verdict: Verdict,
    /// Reason for the verdict, in a line.
    pub reason: String,
}

/// Kind of generated traces that stand in for the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StandIn {
    /// The original stand-ins, made only from published facts about the traces.
    First,
    /// Stand-ins that are also fitted to the paper's figures of its baseline schemes.
    Calibrated,
}

impl StandIn {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::First, Self::Calibrated];

    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Calibrated => "calibrated",
        }
    }
}

/// The primary claims: judged on calibrated stand-ins, or on the first ones if no calibrated stand-in is involved.
pub fn primary<'a>(claims: &[&'a Claim]) -> Vec<&'a Claim> {
    let key = |claim: &Claim| (claim.paper, claim.figure, claim.claim);
    let again: BTreeSet<_> =
        claims.iter().filter(|claim| claim.stand_in == StandIn::Calibrated).map(|claim| key(claim)).collect();
    let counts = |claim: &&&Claim| claim.stand_in == StandIn::Calibrated || !again.contains(&key(claim));
    claims.iter().filter(counts).copied().collect()
}

/// Kind of statement of a claim. Kinds are counted separately, because only results are about a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The paper reports a behaviour of a scheme, which is or is not reproduced here.
    Result,
    /// A formula, a price, a sum in the paper, or a check of a scheme's rule against itself. Once it is right it cannot
    /// fail.
    Arithmetic,
    /// A generated trace or the user's, compared with published facts about the paper's trace.
    Generator,
    /// A further question of ours, not a claim of the paper.
    Ours,
}

impl Kind {
    /// All kinds, in display order.
    pub const ALL: [Self; 4] = [Self::Result, Self::Arithmetic, Self::Generator, Self::Ours];

    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Arithmetic => "arithmetic",
            Self::Generator => "generator",
            Self::Ours => "ours",
        }
    }
}

/// Whether a claim held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum Verdict {
    /// It held.
    #[serde(rename = "held")]
    Held,
    /// It did not hold.
    #[serde(rename = "not held")]
    NotHeld,
    /// It cannot be judged here.
    #[serde(rename = "not judged")]
    NotJudged,
}

impl Verdict {
    /// Held or not.
    pub fn of(held: bool) -> Self {
        if held { Self::Held } else { Self::NotHeld }
    }

    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::NotHeld => "not held",
            Self::NotJudged => "not judged",
        }
    }
}
