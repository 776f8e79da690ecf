//! `bimetal bench fuse`: a store as a file, compared with nbdfuse over the same store's NBD server.

use std::sync::Arc;

use bimetal_core::scheme;
use bimetal_live::fuse::check;

use super::client::Client;
use super::measure::Pair;
use super::servers::{Ours, OursAsFile, Theirs};
use super::workload::Workload;
use super::{Interrupted, LARGE_WORKLOADS, ROOMY, WORKLOADS, folder, pin, stores, text};
use crate::args::MeasureArgs;
use crate::failure::Failure;
use crate::output;
use crate::progress::StepBar;

const SYNCHRONOUS_WORKLOADS: [Workload; 2] =
    [Workload::synchronous("write 4K + fsync, 1 client", 1), Workload::synchronous("write 4K + fsync, 8 clients", 8)];

pub fn fuse(args: &MeasureArgs) -> Result<(), Failure> {
    let interrupted = Interrupted::watch()?;
    let client = Client { processor: pin()?, args, interrupted: &interrupted };
    let scheme = scheme::find(&args.scheme)?;
    let folder = folder(args)?;
    let path = |name: &str| folder.path().join(name);
    let workloads = [&LARGE_WORKLOADS[..], &WORKLOADS, &SYNCHRONOUS_WORKLOADS].concat();
    let bar = StepBar::new((workloads.len() * usize::from(args.rounds) + 1) as u64);
    // A missing program is reported before the store is filled.
    Theirs::check_nbdfuse()?;
    check(&path("fuse")).map_err(Failure::failed)?;
    let store =
        stores::preconditioned(scheme, &path("store"), args.bytes() * ROOMY, args.bytes(), (&interrupted, &bar))?;
    let _over_nbd = Ours::serve(Arc::clone(&store) as _, &path("nbd.sock"))?;
    let ours = OursAsFile::mount(Arc::clone(&store) as _, &path("fuse"))?;
    let theirs = Theirs::nbdfuse(&path("nbd.sock"), &path("nbdfuse"))?;
    client.fill(&ours.served.target)?;
    let pair = Pair {
        backing: "one store, a quarter of it in use".to_owned(),
        ours: &ours.served,
        theirs: &theirs.served,
        store: Some(&store),
    };
    let rows = workloads.iter().map(|workload| pair.measure(&client, workload, &bar)).collect::<Result<Vec<_>, _>>()?;
    drop(bar);
    output::emit(&args.json, &rows, || text::fuse(args, &rows))
}
