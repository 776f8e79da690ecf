//! Figures and the claims that are read off them, as data: a verdict is computed from measured values.

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
