//! The command line of `bimetal`, as a library: a [`Program`] has all its commands, and may add schemes, trace formats
//! and workloads to the built-in ones.
//!
//! Data go to the standard output, everything else to the standard error. The exit status is 0 on success, 1 if the
//! work failed and 2 if the request was invalid.

#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod advise;
mod args;
#[cfg(live)]
mod benchmarked;
#[cfg(live)]
mod checked;
mod compare;
mod convert;
mod defaults;
mod details;
mod diff;
mod drives;
mod failure;
mod figures;
mod files;
mod generate;
mod generated;
mod header;
mod list;
#[cfg(live)]
mod live;
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
mod scheme_entry;
mod setup;
mod sweep;
mod table;

use bimetal_study::number;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use defaults::{Arguments, Defaults};
use failure::Failure;
use messages::{inform, warn};
pub use program::Program;

/// The failure of a wrong command line. If it is valid without the options of the user's file, these are wrong.
fn refused(arguments: &Arguments, error: &clap::Error) -> Failure {
    let Some(Defaults { path, .. }) = &arguments.defaults else { return Failure::command_line(error) };
    match Cli::try_parse_from(&arguments.given) {
        Ok(_) => Failure::command_line(error).in_file(path),
        Err(own) if own.use_stderr() && own.kind() != ErrorKind::MissingRequiredArgument => Failure::command_line(&own),
        Err(_) => Failure::command_line(error),
    }
}

/// Runs the command given by the arguments of the process.
fn run() -> Result<(), Failure> {
    let arguments = defaults::arguments(&Cli::command())?;
    let cli = match Cli::try_parse_from(arguments.all()) {
        Ok(cli) => cli,
        // Without arguments the help is shown.
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return output::print(&error.render().ansi().to_string());
        }
        Err(error) if error.use_stderr() => {
            return Err(defaults::not_in_this_build(&error).unwrap_or_else(|| refused(&arguments, &error)));
        }
        // Help and version.
        Err(shown) => return shown.print().map_err(|error| output::unprintable(&error)),
    };
    if cli.quiet {
        messages::be_quiet();
    }
    if let Some(Defaults { path, options, .. }) = &arguments.defaults {
        inform(&format!("defaults of {}: {}", path.display(), options.join(" ")));
    }
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
        #[cfg(live)]
        Command::Live(command) => live::run(&command),
        Command::List(args) => list::run(&args),
        Command::Completions(args) => manual::completions(args.shell),
        Command::Man(args) => manual::pages(&args.folder),
        Command::Schema(args) => output::print(&schema::text(&args.output)?),
    }
}
