//! `bimetal bench fuse`: a store as a file, compared with nbdfuse over the same store's NBD server.

use std::sync::Arc;

use bimetal_live::fuse::check;

use super::comparison::Comparison;
use super::measure::Pair;
use super::servers::{Ours, OursAsFile, Theirs};
use super::text;
use super::workload::Workload;
use crate::args::MeasureArgs;
use crate::failure::Failure;
use crate::output;

const SYNCHRONOUS_WORKLOADS: [Workload; 2] =
    [Workload::synchronous("write 4K + fsync, 1 client", 1), Workload::synchronous("write 4K + fsync, 8 clients", 8)];

pub fn fuse(args: &MeasureArgs) -> Result<(), Failure> {
    let comparison = Comparison::new(args, &SYNCHRONOUS_WORKLOADS)?;
    let (file, socket) = (comparison.path("fuse"), comparison.path("nbd.sock"));
    // A missing program is reported before the store is filled.
    Theirs::check_nbdfuse()?;
    check(&file).map_err(Failure::failed)?;
    let store = comparison.store()?;
    let _over_nbd = Ours::serve(Arc::clone(&store) as _, &socket)?;
    let ours = OursAsFile::mount(Arc::clone(&store) as _, &file)?;
    let theirs = Theirs::nbdfuse(&socket, &comparison.path("nbdfuse"))?;
    comparison.client.fill(&ours.served.target)?;
    let rows = comparison.rows(&Pair {
        backing: "one store, a quarter of it in use".to_owned(),
        ours: &ours.served,
        theirs: &theirs.served,
        store: Some(&store),
    })?;
    output::emit(&args.json, &rows, || text::fuse(args, &rows))
}
