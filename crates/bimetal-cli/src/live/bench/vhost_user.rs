//! `bimetal bench vhost-user`: a store as a disk of a virtual machine, compared with qemu-storage-daemon over a file.

use super::comparison::Comparison;
use super::measure::Pair;
use super::servers::{OursAsQueue, Theirs};
use super::{DISK_SYNCHRONOUS_WORKLOADS, text};
use crate::args::MeasureArgs;
use crate::failure::Failure;
use crate::output;

pub fn vhost_user(args: &MeasureArgs) -> Result<(), Failure> {
    let comparison = Comparison::new(args, &DISK_SYNCHRONOUS_WORKLOADS)?;
    // A missing program is reported before the store is filled.
    let theirs = Theirs::storage_daemon(&comparison.path("daemon.sock"), &comparison.image()?)?;
    let store = comparison.store()?;
    let ours = OursAsQueue::serve(&store, &comparison.path("vm.sock"))?;
    for served in [&ours.served, &theirs.served] {
        comparison.client.fill(&served.target)?;
    }
    let rows = comparison.rows(&Pair::of_files(&ours.served, &theirs.served, &store))?;
    output::emit(&args.json, &rows, || text::vhost_user(args, &rows))
}
