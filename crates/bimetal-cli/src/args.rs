//! The command line.

mod advise;
#[cfg(live)]
mod live;
mod sweep;
mod trace;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

pub use advise::AdviseArgs;
use bimetal_core::profile::CurvePlan;
use bimetal_core::replay::{Arrivals, Fill};
use bimetal_papers::experiment::Scale;
use bimetal_study::arrivals;
use bimetal_study::export::{EXPORTS, Export};
use bimetal_study::ranking::{ORDERS, Sort};
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
#[cfg(live)]
pub use live::{
    BenchNbdArgs, Benchmark, CheckArgs, CopyArgs, CreateArgs, DumpArgs, GrowArgs, LiveCommand, LogLevel, MeasureArgs,
    PlaceArgs, ServeArgs, StatArgs,
};
pub use sweep::SweepArgs;
pub use trace::{TraceArgs, TraceOptions};

/// Design, measure and run hybrid flash storage: a small, fast, durable tier in front of a large, slow, cheap one.
#[derive(Debug, Parser)]
#[command(name = "bimetal", version = VERSION, after_help = examples())]
pub struct Cli {
    /// Print only warnings and errors on the standard error: no progress, no notes
    #[arg(short, long, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub command: Command,
}

/// Version of this package, and the commit from which it was built, if known.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("BIMETAL_COMMIT"));

fn examples() -> String {
    let stores = if cfg!(live) { STORE_EXAMPLES } else { "" };
    format!(
        "\
Examples:
  bimetal compare                            all schemes on the built-in real trace
  bimetal compare disk.csv --repeat 10       your own trace, replayed ten times
  bimetal replay disk.csv --device chang-c3  one device in full: causes, wear, over time
  bimetal profile disk.csv                   characteristics of the workload
  bimetal sweep study.toml --html sweep.html many devices: cells, sizes and schemes, the best of them
  bimetal advise disk.csv --life 5y --p99 2ms the cheapest device that meets these goals
  bimetal drives                             real drives predicted, beside reviewers' measurements
{stores}  bimetal list schemes                       the schemes and their parameters"
    )
}

const STORE_EXAMPLES: &str = "  bimetal create disk.store --scheme chang   a real block device of a scheme ...
  bimetal serve disk.store                   ... for any NBD client: QEMU, fio, nbdfuse
";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run several schemes on the same requests and show them side by side
    Compare(CompareArgs),
    /// Run one scheme and show it in full: operations by cause, wear, percentiles, over time
    Replay(ReplayArgs),
    /// Run many devices under many traces, and show the best: a grid of schemes, sizes, chips and parameters
    Sweep(SweepArgs),
    /// Find the cheapest devices (cells, sizes, scheme) that meet goals for response, life and price
    Advise(Box<AdviseArgs>),
    /// Show the characteristics of a workload: sizes, updates, hot set, hit rates by cache size, arrivals
    Profile(ProfileArgs),
    /// Show the changes between two results of `compare` or `replay`
    Diff(DiffArgs),
    /// Convert traces from one format to another
    Convert(ConvertArgs),
    /// Write a generated workload as a trace
    Generate(GenerateArgs),
    /// Reproduce the papers' tables and figures, and check each claim
    Paper(PaperArgs),
    /// Predict real drives from their construction, and compare with reviewers' measurements
    Drives(DrivesArgs),
    #[cfg(live)]
    #[command(flatten)]
    Live(LiveCommand),
    /// List schemes with their parameters, chips, hard disks (`drives`), devices (including real SSDs), trace formats,
    /// workloads, papers
    List(ListArgs),
    /// Show the JSON schema of a command's `--json` output: every field with its type and meaning
    Schema(SchemaArgs),
    /// Print a shell script that completes the commands and options of `bimetal`
    Completions(CompletionsArgs),
    /// Write the manual pages of all commands into a folder
    Man(ManArgs),
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell for which the script is printed
    pub shell: Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder for the pages; created if it is missing. Existing pages are replaced
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

/// Device and replay options.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A device of `bimetal list devices`, or the path of a device file. `auto` fits a drive of today to the trace for
    /// each scheme: the address space is compacted to the extents that the trace uses; 16 dies of TLC with 7 % spare
    /// area, or 12 dies of TLC behind 4 dies in SLC mode with 1.25 % of the capacity; hybrids of one region get a
    /// larger region at equal cost
    #[arg(long, value_name = "NAME|FILE", default_value = "auto", help_heading = "Device options")]
    pub device: String,
    /// Set a parameter of every scheme that has it, or a field of the device: `logical=1GiB`, `fast.capacity=32MiB`, or
    /// `2%` of the logical capacity, `slow.spare=7%`, `slow.chip=tlc-2014`, `slow.endurance=3000` (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = "Device options")]
    pub set: Vec<(String, String)>,
    /// Seed of the pseudo-random numbers of the device
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX), help_heading = "Device options", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Data on the device before the trace: `device` writes every logical unit, `trace` only the 64-KiB extents that
    /// the trace reads or writes, in order, in requests of up to 1 MiB; with `none` all blocks are erased
    #[arg(long, value_name = "device|trace|none", default_value_t, help_heading = "Replay options")]
    pub fill: Fill,
    /// When requests arrive. `closed:DEPTH` keeps DEPTH requests outstanding and ignores time stamps; `closed` is one
    /// at a time, which measures service times, as in the papers. `trace:SPEED` follows the time stamps, SPEED times as
    /// fast: responses include queueing. By default the trace is replayed one request at a time and, if it has time
    /// stamps, also at its own times
    #[arg(
        long,
        value_name = "closed[:DEPTH]|trace[:SPEED]",
        value_parser = arrivals::parse,
        help_heading = "Replay options"
    )]
    pub arrivals: Option<Arrivals>,
    /// Replay the trace N times
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = whole(1..=u32::MAX),
        allow_negative_numbers = true,
        help_heading = "Replay options"
    )]
    pub repeat: u32,
    /// Measure only the last M passes: the steady state; by default all
    #[arg(
        long,
        value_name = "M",
        value_parser = whole(1..=u32::MAX),
        allow_negative_numbers = true,
        help_heading = "Replay options"
    )]
    pub measure: Option<u32>,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub html: HtmlArgs,
    /// Also write the figures in the format of another program: `fio` is fio's JSON, with a job for each scheme; `iob`
    /// is the log of SSD-iq's iob, with figures over time as CSV (repeatable)
    #[arg(long, value_name = "FORMAT=FILE", value_parser = export, help_heading = "Output options")]
    pub export: Vec<ExportTo>,
}

/// A file in the format of another program.
#[derive(Clone, Debug)]
pub struct ExportTo {
    pub format: &'static Export,
    pub file: PathBuf,
}

/// Machine-readable output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output options")]
pub struct JsonArgs {
    /// Also write the figures as JSON to a file; `-`: print JSON instead of the table
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,
}

/// An HTML report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output options")]
pub struct HtmlArgs {
    /// Write a report: one HTML file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Results written by `compare` or `replay` with `--json`
    pub a: PathBuf,
    /// Later results, compared with A
    pub b: PathBuf,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub html: HtmlArgs,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Schemes to run; the others are compared with the first. `all` is every scheme that the device allows
    #[arg(
        long,
        value_name = "A,B,...|all",
        default_value = "all",
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new(),
        help_heading = "Device options"
    )]
    pub schemes: Vec<String>,
    #[command(flatten)]
    pub run: RunArgs,
    /// How many replays run at once; by default as many as there are processors
    #[arg(
        long,
        value_name = "N",
        value_parser = whole(1..=u16::MAX),
        allow_negative_numbers = true,
        help_heading = "Replay options"
    )]
    pub jobs: Option<u16>,
    /// Replay each scheme with N seeds, starting with the seed of the device, and show the mean response over all
    /// seeds, ± half of its range. A seed decides which operations fail; without failures it makes no difference
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u8>(2..=100),
        allow_negative_numbers = true,
        help_heading = "Replay options"
    )]
    pub seeds: Option<u8>,
    /// Sort key of the table, the best first; `listed` is the order of `--schemes`, which is always the order in JSON
    #[arg(
        long,
        value_name = "ORDER",
        default_value_t,
        value_parser = PossibleValuesParser::new(ORDERS.iter().map(|order| order.name.as_str())).try_map(|name| name.parse::<Sort>()),
        help_heading = "Output options"
    )]
    pub sort: Sort,
    /// Also print devices, wear, energy, every operation by region and cause, and the speed of the simulation
    #[arg(long, help_heading = "Output options")]
    pub details: bool,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Scheme to run; by default the scheme of the device
    #[arg(long, value_name = "NAME", help_heading = "Device options")]
    pub scheme: Option<String>,
    #[command(flatten)]
    pub run: RunArgs,
    /// Number of intervals of figures over time; by default 12, and 60 for a report
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<u32>(0..=100_000),
        allow_negative_numbers = true,
        help_heading = "Replay options"
    )]
    pub intervals: Option<u32>,
}

#[derive(Debug, Args)]
pub struct ProfileArgs {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Number of cache sizes for which hit rates are shown, from a thousandth of the pages that the trace touches up to
    /// all, in steps of a constant factor; 0 for none
    #[arg(
        long,
        value_name = "N",
        default_value_t = CurvePlan::default().points,
        value_parser = whole::<u32>(0..=1000),
        allow_negative_numbers = true,
        help_heading = "Hit-rate options"
    )]
    pub curve_points: u32,
    /// Share of the pages on which hit rates are measured, above 0 and at most 1, or `exact` for all. By default all
    /// pages, or about 100,000 if the trace has over four million references to pages
    #[arg(
        long,
        value_name = "RATE|exact",
        value_parser = sampling_rate,
        allow_negative_numbers = true,
        help_heading = "Hit-rate options"
    )]
    pub sample: Option<f64>,
    #[command(flatten)]
    pub json: JsonArgs,
}

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Trace files, plain or compressed; several files are joined; `-` is the standard input
    #[arg(value_name = "IN", required = true)]
    pub inputs: Vec<PathBuf>,
    /// File to write; `-` is the standard output
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    #[command(flatten)]
    pub options: TraceOptions,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Output format.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output options")]
pub struct TargetArgs {
    /// Format to write; by default from the extension of the file name
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "bimetal generate [OPTIONS] WORKLOAD OUT\n       bimetal generate [OPTIONS] --like TRACE OUT"
)]
pub struct GenerateArgs {
    /// Workload (see `bimetal list workloads`), unless `--like` is given, and the file to write; `-` is the standard
    /// output
    #[arg(value_name = "WORKLOAD OUT", num_args = 1..=2, required = true)]
    pub names: Vec<String>,
    /// Instead of a workload: fit a generator to this trace, and compare the generated requests with the trace.
    /// `sample` is the built-in real trace
    #[arg(long, value_name = "TRACE")]
    pub like: Option<PathBuf>,
    /// Set a parameter of the workload (repeatable); with `--like`, only `requests`, 0 for as many as the trace
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Seed of the pseudo-random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX), allow_negative_numbers = true)]
    pub seed: u64,
    #[command(flatten)]
    pub options: TraceOptions,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub json: JsonArgs,
}

#[derive(Debug, Args)]
pub struct PaperArgs {
    /// Paper (see `bimetal list papers`); by default all papers
    pub paper: Option<String>,
    /// Figures of the paper, or the beginning of their names: `fig8` for `fig8a` and `fig8b`; by default all figures
    #[arg(value_name = "FIGURE")]
    pub figures: Vec<String>,
    /// Replay fewer requests: all papers take minutes
    #[arg(long)]
    pub quick: bool,
    /// Replace a generated trace by your own, for example `financial=Financial1.spc` (repeatable; see
    /// `bimetal list papers NAME`)
    #[arg(long, value_name = "NAME=FILE", value_parser = setting)]
    pub trace: Vec<(String, String)>,
    /// Check the papers' claims on your own traces, separately for each trace. Only claims that apply to any trace are
    /// checked, of all figures of a paper. Devices are those of the papers, scaled to the trace; no generated trace is
    /// used. `sample` is the built-in real trace (repeatable)
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["figures", "quick", "trace"])]
    pub on: Vec<PathBuf>,
    /// Repeat the experiments with another setting. SCHEME.KEY=VALUE: a parameter of a scheme, or a field of its
    /// device, in replays in which the figure does not set it itself. TRACE.KEY=VALUE: a parameter of a generated
    /// trace. For example `wlaftl.threshold_rule=cycles` or `fin1.footprint=0.8` (repeatable)
    #[arg(long, value_name = "OF.KEY=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// How many replays run at once; by default as many as there are processors
    #[arg(
        long,
        value_name = "N",
        value_parser = whole(1..=u16::MAX),
        allow_negative_numbers = true
    )]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub html: HtmlArgs,
}

impl PaperArgs {
    /// Scale of the experiments.
    pub fn scale(&self) -> Scale {
        if self.quick { Scale::Quick } else { Scale::Full }
    }
}

#[derive(Debug, Args)]
pub struct DrivesArgs {
    /// SSDs, by name or part of a name: `wd-sn550` for `wd-sn550-500gb` and `wd-sn550-1tb`; by default all
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// A device without measurements, of `bimetal list devices` or the path of a device file: all its figures are
    /// predicted. Without drive names, only this device is predicted (repeatable)
    #[arg(long, value_name = "NAME|FILE")]
    pub device: Vec<String>,
    /// How many drives are measured at once; by default as many as there are processors
    #[arg(
        long,
        value_name = "N",
        value_parser = whole(1..=u16::MAX),
        allow_negative_numbers = true
    )]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub html: HtmlArgs,
}

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct ListArgs {
    /// Kind of entries to list
    #[arg(value_enum)]
    pub what: Listed,
    /// Show only these entries, with all details
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    #[command(flatten)]
    pub json: JsonArgs,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Output whose schema is shown
    #[arg(value_name = "OUTPUT", value_parser = PossibleValuesParser::new(crate::schema::OUTPUTS.iter().map(|output| output.name)))]
    pub output: String,
}

/// Kinds of listed entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    Schemes,
    Chips,
    Drives,
    Devices,
    Formats,
    Workloads,
    Papers,
}

/// Parser of a whole number in this range.
fn whole<T: FromStr + PartialOrd + Display + Clone + Send + Sync>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("not a whole number from {} to {}", range.start(), range.end()))
    }
}

fn sampling_rate(text: &str) -> Result<f64, String> {
    if text == "exact" {
        return Ok(1.0);
    }
    let rate = text.parse().ok().filter(|&rate: &f64| rate > 0.0 && rate <= 1.0);
    rate.ok_or_else(|| "a rate is a number above 0 and at most 1, such as 0.01, or `exact`".to_owned())
}

fn export(text: &str) -> Result<ExportTo, String> {
    let (name, file) = setting(text).map_err(|_| format!("`{text}` is not FORMAT=FILE"))?;
    if file.is_empty() || file == "-" {
        return Err(
            "results in another format are written to a file; hint: name one, such as `fio=results.json`".into()
        );
    }
    let format = Export::find(&name).ok_or_else(|| {
        let known: Vec<_> = EXPORTS.iter().map(|export| export.name).collect();
        format!("there is no format `{name}`; hint: use one of {}", known.join(", "))
    })?;
    Ok(ExportTo { format, file: file.into() })
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("`{text}` is not KEY=VALUE")),
    }
}
