//! `bimetal dump`: shows the contents of a store's files.

use std::io::{self, Write};

use bimetal_live::store::{Directory, DumpOptions, dump};

use crate::args::DumpArgs;
use crate::failure::Failure;

pub fn run(args: &DumpArgs) -> Result<(), Failure> {
    let mut written: io::Result<()> = Ok(());
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let options = DumpOptions { journal: true, pages: args.pages };
    let dumped = dump(&Directory::new(&args.store), options, &mut |text| {
        if written.is_ok() {
            written = stdout.write_all(text.as_bytes());
        }
    });
    written.and_then(|()| stdout.flush())?;
    dumped.map_err(|error| Failure::store(&args.store, error))
}
