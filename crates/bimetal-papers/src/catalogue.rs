//! The papers as `list papers --json` and Python show them.

use serde::Serialize;

use crate::{PAPERS, PaperSpec};

/// A paper that is reproduced.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PaperItem {
    /// Its name.
    pub name: &'static str,
    /// Its systems, in a line.
    pub summary: &'static str,
    /// Authors, title, venue and year.
    pub citation: &'static str,
    /// Its tables and figures.
    pub figures: Vec<FigureItem>,
}

/// A table or figure of a paper.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FigureItem {
    /// Its name.
    pub name: &'static str,
    /// One-line description of its content.
    pub title: &'static str,
    /// Names of the traces that it needs.
    pub traces: Vec<&'static str>,
}

impl PaperItem {
    /// The catalogue entry of a paper.
    pub fn of(spec: &PaperSpec) -> Self {
        let figures = spec.figures.iter().map(|figure| FigureItem {
            name: figure.name,
            title: figure.title,
            traces: figure.sources.iter().map(|source| source.name).collect(),
        });
        Self { name: spec.name, summary: spec.summary, citation: spec.citation, figures: figures.collect() }
    }
}

/// Every paper.
pub fn papers() -> Vec<PaperItem> {
    PAPERS.iter().map(|spec| PaperItem::of(spec)).collect()
}
