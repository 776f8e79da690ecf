//! The block device itself: commands that make, serve, copy and check stores. They need Linux, and the feature `live`.

mod bench;
mod check;
mod copy;
mod create;
mod dump;
mod grow;
mod serve;
mod stat;

use std::path::Path;

use bimetal_live::store::StoreError;

use crate::args::{Benchmark, LiveCommand};
use crate::failure::Failure;

/// Runs a command.
pub fn run(command: &LiveCommand) -> Result<(), Failure> {
    match command {
        LiveCommand::Create(args) => create::run(args),
        LiveCommand::Serve(args) => serve::run(args),
        LiveCommand::Stat(args) => stat::run(args),
        LiveCommand::Copy(args) => copy::run(args),
        LiveCommand::Grow(args) => grow::run(args),
        LiveCommand::Check(args) => check::run(args),
        LiveCommand::Dump(args) => dump::run(args),
        LiveCommand::Bench(args) => match &args.what {
            Benchmark::Nbd(args) => bench::nbd(args),
            Benchmark::Fuse(args) => bench::fuse(args),
            Benchmark::VhostUser(args) => bench::vhost_user(args),
            Benchmark::Ublk(args) => bench::ublk(args),
        },
    }
}

impl Failure {
    /// A store that cannot be made, opened or checked.
    pub fn store(path: &Path, error: StoreError) -> Self {
        match error {
            StoreError::Device(error) => error.into(),
            StoreError::Scheme(error) => error.into(),
            error => Self::failed(format!("{}: {error}", path.display())),
        }
    }
}
