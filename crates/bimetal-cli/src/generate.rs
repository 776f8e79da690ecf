//! `bimetal generate`: a generated workload as a trace file.

use bimetal_study::generate;

use crate::args::GenerateArgs;
use crate::convert;
use crate::failure::Failure;

/// Runs the command.
pub fn run(args: &GenerateArgs) -> Result<(), Failure> {
    convert::check(&args.output, &args.target)?;
    let trace = generate::trace(&args.workload, &args.set, args.seed)?;
    convert::write(&trace, &args.output, &args.target)
}
