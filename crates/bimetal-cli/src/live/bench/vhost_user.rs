//! `bimetal bench vhost-user`: a store as a disk of a virtual machine, compared with qemu-storage-daemon over a file.

use std::fs::File;

use bimetal_core::scheme;

use super::client::Client;
use super::measure::Pair;
use super::servers::{OursAsQueue, Theirs};
use super::workload::Workload;
use super::{Interrupted, LARGE_WORKLOADS, ROOMY, WORKLOADS, folder, pin, stores, text};
use crate::args::MeasureArgs;
use crate::failure::Failure;
use crate::output;
use crate::progress::StepBar;

const SYNCHRONOUS_WORKLOADS: [Workload; 3] = [
    Workload::synchronous("write 4K + flush, 1 process", 1),
    Workload::synchronous("write 4K + flush, 8 processes", 8),
    Workload::synchronous("write 4K + flush, 32 processes", 32),
];

pub fn vhost_user(args: &MeasureArgs) -> Result<(), Failure> {
    let interrupted = Interrupted::watch()?;
    let client = Client { processor: pin()?, args, interrupted: &interrupted };
    let scheme = scheme::find(&args.scheme)?;
    let folder = folder(args)?;
    let path = |name: &str| folder.path().join(name);
    let workloads = [&LARGE_WORKLOADS[..], &WORKLOADS, &SYNCHRONOUS_WORKLOADS].concat();
    let bar = StepBar::new((workloads.len() * usize::from(args.rounds) + 1) as u64);
    // A missing program is reported before the store is filled.
    let image = path("image");
    File::create(&image)?.set_len(args.bytes())?;
    let theirs = Theirs::storage_daemon(&path("daemon.sock"), &image)?;
    let store =
        stores::preconditioned(scheme, &path("store"), args.bytes() * ROOMY, args.bytes(), (&interrupted, &bar))?;
    let ours = OursAsQueue::serve(&store, &path("vm.sock"))?;
    for served in [&ours.served, &theirs.served] {
        client.fill(&served.target)?;
    }
    let pair = Pair {
        backing: "files, a quarter of the store in use".to_owned(),
        ours: &ours.served,
        theirs: &theirs.served,
        store: Some(&store),
    };
    let rows = workloads.iter().map(|workload| pair.measure(&client, workload, &bar)).collect::<Result<Vec<_>, _>>()?;
    drop(bar);
    output::emit(&args.json, &rows, || text::vhost_user(args, &rows))
}
