//! The `bimetal` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    bimetal_cli::Program::new().run()
}
