//! Arguments of `bimetal sweep`.

use std::path::PathBuf;

use clap::Args;

use super::{HtmlArgs, JsonArgs, whole};

#[derive(Debug, Args)]
pub struct SweepArgs {
    /// Study file: traces, devices, schemes, sizes and parameters (docs/sweep.md)
    #[arg(value_name = "STUDY")]
    pub study: PathBuf,
    /// How many points run at once; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = whole(1..=u16::MAX), allow_negative_numbers = true)]
    pub jobs: Option<u16>,
    /// Save each row to this file when it is done, and reuse the rows that the file has: an interrupted sweep
    /// continues. By default the path of the study file with the extension `.results.jsonl`
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// Discard the saved results
    #[arg(long)]
    pub restart: bool,
    /// Only show the points; run none
    #[arg(long, conflicts_with_all = ["json", "html"])]
    pub dry_run: bool,
    /// Write a row for each point to a CSV file
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run", help_heading = "Output options")]
    pub csv: Option<PathBuf>,
    /// Write a row for each point to a Parquet file
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run", help_heading = "Output options")]
    pub parquet: Option<PathBuf>,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub html: HtmlArgs,
}
