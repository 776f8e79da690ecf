//! Figures and the claims that are read off them, as data: a verdict is computed from measured values.

use std::collections::BTreeSet;

use bimetal_study::figure::Plot;
use serde::Serialize;

/// What was reproduced of one table or figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Name of the paper on the command line.
    pub paper: &'static str,
    /// Name of the figure on the command line, such as `fig8a`.
    pub figure: &'static str,
    /// What it shows, in a line.
    pub title: &'static str,
    /// Which stand-ins of the paper's traces it was made with.
    pub stand_in: StandIn,
    /// How it was made and what to look at, in a few sentences.
    pub caption: String,
    /// The diagrams; none where the paper has numbers only.
    pub plots: Vec<Plot>,
    /// What the paper claims, and what was found. In JSON all claims are in one list of their own.
    #[serde(skip)]
    pub claims: Vec<Claim>,
    /// Commands that repeat every point.
    pub commands: Vec<String>,
}

/// What a paper says, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Name of the paper on the command line.
    pub paper: &'static str,
    /// Name of the figure on the command line.
    pub figure: &'static str,
    /// The acceptance target of the specification that it belongs to, such as `T20`.
    pub target: Option<&'static str>,
    /// What kind of statement it is.
    pub kind: Kind,
    /// Which stand-ins of the paper's traces it was judged on.
    pub stand_in: StandIn,
    /// What is claimed, in a few words.
    pub claim: &'static str,
    /// What the paper has, with the tolerance within which it counts as held.
    pub expected: String,
    /// What was found.
    pub measured: String,
    /// Whether it held.
    pub verdict: Verdict,
    /// Why the verdict is so, in a line.
    pub reason: String,
}

/// Which generated traces are in the place of the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StandIn {
    /// Those that were made first, from what is published of the traces alone.
    First,
    /// Those that were fitted, too, to what the paper prints of the schemes that its proposal is compared with.
    Calibrated,
}

impl StandIn {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::First, Self::Calibrated];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Calibrated => "calibrated",
        }
    }
}

/// The claims that count first: as judged on calibrated stand-ins, and on the first ones where nothing depends on calibrated ones.
pub fn primary<'a>(claims: &[&'a Claim]) -> Vec<&'a Claim> {
    let key = |claim: &Claim| (claim.paper, claim.figure, claim.claim);
    let again: BTreeSet<_> =
        claims.iter().filter(|claim| claim.stand_in == StandIn::Calibrated).map(|claim| key(claim)).collect();
    let counts = |claim: &&&Claim| claim.stand_in == StandIn::Calibrated || !again.contains(&key(claim));
    claims.iter().filter(counts).copied().collect()
}

/// What kind of statement a claim is. Kinds are counted apart, since only a result says something of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The paper says that a scheme did something, and the scheme did it again here, or not.
    Result,
    /// A formula, a price, a sum in the paper, or a rule of a scheme held against itself: once it is right it cannot fail.
    Arithmetic,
    /// A trace, generated or the user's, beside what was published of the paper's.
    Generator,
    /// Not the paper's: a further question that we asked.
    Ours,
}

impl Kind {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::Result, Self::Arithmetic, Self::Generator, Self::Ours];

    /// As it is written.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    /// It did.
    #[serde(rename = "held")]
    Held,
    /// It did not.
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

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::NotHeld => "not held",
            Self::NotJudged => "not judged",
        }
    }
}
