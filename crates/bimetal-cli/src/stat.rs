//! `bimetal stat`: what a store has done, served or not.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use bimetal_live::store::{Directory, OpenOptions, Store, StoreError};
use bimetal_study::listing;
use bimetal_study::number::{NOTHING, SIZES, TIMES, plain, significant, thousands, with_unit};
use serde_json::Value;

use crate::args::StatArgs;
use crate::failure::Failure;
use crate::figures::listed;
use crate::serve::STAT_SOCKET;
use crate::table::{bold, pairs};
use crate::output;

pub fn run(args: &StatArgs) -> Result<(), Failure> {
    let health = health(&args.store)?;
    output::emit(&args.json, &health, || text(&health))
}
