//! `bimetal bench ublk`: a store as a disk of this machine, compared with a loop device over a file.

use bimetal_live::ublk::check;

use super::comparison::Comparison;
use super::measure::Pair;
use super::servers::{Loop, OursAsDisk};
use super::{DISK_SYNCHRONOUS_WORKLOADS, text};
use crate::args::MeasureArgs;
use crate::failure::Failure;
use crate::output;

pub fn ublk(args: &MeasureArgs) -> Result<(), Failure> {
    let comparison = Comparison::new(args, &DISK_SYNCHRONOUS_WORKLOADS)?;
    // A missing driver or program is reported before the store is filled.
    check().map_err(Failure::failed)?;
    let theirs = Loop::attach(&comparison.image()?)?;
    let store = comparison.store()?;
    let ours = OursAsDisk::attach(&store)?;
    for served in [&ours.served, &theirs.served] {
        comparison.client.fill(&served.target)?;
    }
    let rows = comparison.rows(&Pair::of_files(&ours.served, &theirs.served, &store))?;
    output::emit(&args.json, &rows, || text::ublk(args, &rows))
}
