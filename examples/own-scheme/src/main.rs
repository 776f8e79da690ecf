//! All commands of `bimetal`, with one additional scheme.

mod sizes;

use std::process::ExitCode;

use bimetal_cli::Program;

fn main() -> ExitCode {
    Program::new().scheme(&sizes::SPEC, sizes::new).run()
}
