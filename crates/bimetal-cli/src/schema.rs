//! `bimetal schema`: the schema of what `--json` writes.

use bimetal_study::schema;

use crate::args::SchemaArgs;
use crate::failure::Failure;
use crate::output;

/// Runs the command.
pub fn run(args: &SchemaArgs) -> Result<(), Failure> {
    let output = schema::find(&args.output);
    let output = output.ok_or_else(|| Failure::usage(format!("there is no schema of `{}`", args.output)))?;
    let text = serde_json::to_string_pretty(&(output.schema)()).map_err(Failure::failed)?;
    output::print(&(text + "\n"))
}
