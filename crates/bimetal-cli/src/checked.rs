//! JSON output of `bimetal check`. It is not in the module of the command, whose arguments list the outputs with a
//! schema.

use schemars::JsonSchema;
use serde::Serialize;

/// Result of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checked<'a> {
    /// Version of this program.
    pub bimetal: &'static str,
    /// Whether nothing is damaged.
    pub sound: bool,
    /// Commits after the last checkpoint that the next start replays; more than 0 if the store was not closed.
    pub commits_replayed: u64,
    /// Requests and idle times in these commits.
    pub events_replayed: u64,
    /// Programmed pages, all of which are read.
    pub pages: u64,
    /// Damaged pages among them.
    pub pages_damaged: u64,
    /// Sectors of the home disk that have been written; 0 without one.
    pub disk_sectors: u64,
    /// Damaged sectors among them.
    pub disk_sectors_damaged: u64,
    /// Sectors of the host that hold data.
    pub sectors: u64,
    /// Sectors of the host whose data are lost.
    pub lost: Vec<SectorRun>,
    /// Findings other than lost sectors, a line each.
    pub findings: &'a [String],
    /// Number of findings beyond these.
    pub findings_left_out: u64,
}

/// A run of sectors.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SectorRun {
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u64,
}

/// Result of a rescue.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Rescue<'a> {
    /// Version of this program.
    pub bimetal: &'static str,
    /// Whether the store could be opened, so that the image is its state; otherwise it has the newest data found in sound
    /// pages.
    pub state_of_the_store: bool,
    /// Reason why it could not be opened.
    pub refusal: Option<&'a str>,
    /// Sectors in the image.
    pub sectors: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Sound pages among them.
    pub pages_sound: u64,
    /// Sectors of the host that are known to be lost.
    pub lost: Vec<SectorRun>,
    /// Files that could not be searched, or not completely: each with the reason.
    pub unsearched: &'a [String],
}
