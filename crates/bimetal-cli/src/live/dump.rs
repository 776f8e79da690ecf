//! `bimetal dump`: shows the contents of a store's files.

use std::io::{self, Write};

use bimetal_live::store::{Directory, DumpOptions, dump};

use crate::args::DumpArgs;
use crate::failure::Failure;

pub fn run(args: &DumpArgs) -> Result<(), Failure> {
    let mut unwritten = None;
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let options = DumpOptions { journal: true, pages: args.pages };
    let dumped = dump(&Directory::new(&args.store), options, &mut |text| {
        stdout.write_all(text.as_bytes()).map_err(|error| {
            let kind = error.kind();
            unwritten = Some(error);
            kind.into()
        })
    });
    // Nothing more is read for a reader that has gone.
    unwritten.map_or_else(|| stdout.flush(), Err)?;
    dumped.map_err(|error| Failure::store(&args.store, error))
}
