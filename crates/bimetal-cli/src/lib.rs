//! The command line of `bimetal`, as a library: a [`Program`] has all its commands, and may know more schemes, trace
//! formats and workloads than those that are built in.
//!
//! Data go to the standard output, everything else to the standard error. The exit status is 0 if all went well, 1 if
//! the work failed and 2 if what was asked for cannot be.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod advise;
mod args;
mod bench;
mod check;
mod compare;
mod convert;
mod copy;
mod create;
mod defaults;
mod details;
mod diff;
mod drives;
mod dump;
mod failure;
mod figures;
mod generate;
mod grow;
mod header;
mod list;
mod manual;
mod messages;
mod output;
mod paper;
mod profile;
mod profiled;
mod program;
mod progress;
#[cfg(test)]
mod records;
#[cfg(test)]
mod reference;
mod replay;
mod schema;
mod serve;
mod setup;
mod stat;
mod sweep;
mod table;

use bimetal_study::number;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Benchmark, Cli, Command};
use failure::Failure;
use messages::{inform, warn};
pub use program::Program;

/// Runs the command that the arguments of the process ask for.
fn run() -> Result<(), Failure> {
    let (arguments, added) = defaults::arguments(&Cli::command())?;
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        // Without arguments the help is shown.
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return output::print(&error.render().ansi().to_string());
        }
        Err(error) if error.use_stderr() => return Err(Failure::command_line(&error)),
        // Help and version.
        Err(shown) => return Ok(shown.print()?),
    };
    if cli.quiet {
        messages::be_quiet();
    }
    added.iter().for_each(|options| inform(options));
    match cli.command {
        Command::Compare(args) => compare::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Advise(args) => advise::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Paper(args) => paper::run(&args),
        Command::Drives(args) => drives::run(&args),
        Command::Create(args) => create::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Stat(args) => stat::run(&args),
        Command::Copy(args) => copy::run(&args),
        Command::Grow(args) => grow::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Bench(args) => match args.what {
            Benchmark::Nbd(args) => bench::nbd(&args),
        },
        Command::List(args) => list::run(&args),
        Command::Completions(args) => manual::completions(args.shell),
        Command::Man(args) => manual::pages(&args.folder),
        Command::Schema(args) => output::print(&schema::text(&args.output)?),
    }
}
