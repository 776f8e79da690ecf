//! Arguments of `bimetal advise`.

use std::path::PathBuf;

use bimetal_core::replay::Arrivals;
use bimetal_core::units::ByteSize;
use bimetal_study::advise::goals::{Goal, Measure};
use bimetal_study::advise::offered::OfferedLoad;
use bimetal_study::arrivals;
use clap::Args;

use super::{HtmlArgs, JsonArgs, TraceArgs, whole};

#[derive(Debug, Args)]
pub struct AdviseArgs {
    #[command(flatten)]
    pub trace: TraceArgs,
    #[command(flatten)]
    pub goals: GoalArgs,
    /// Candidate chips. Default: all chips sold in the price year, except chips of papers, and chips for which another
    /// chip with the same cells is at least as good in every time and in erase cycles
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', help_heading = "Device options")]
    pub chips: Vec<String>,
    /// Candidate schemes, or `all`; by default one to three for each way to combine cells (one region, fast and slow
    /// regions, SLC mode), and two caches if there is a `--disk`
    #[arg(long, value_name = "A,B,...|all", value_delimiter = ',', help_heading = "Device options")]
    pub schemes: Vec<String>,
    /// Logical capacity; by default the footprint of the trace
    #[arg(long, value_name = "SIZE", help_heading = "Device options")]
    pub capacity: Option<ByteSize>,
    /// Also consider flash caches over this drive (see `bimetal list drives`)
    #[arg(long, value_name = "DRIVE", help_heading = "Device options")]
    pub disk: Option<String>,
    /// Channels of a device, shared by its regions; by default 1, 2, 4, 8 and 16 are searched
    #[arg(long, value_name = "N", help_heading = "Device options")]
    pub channels: Option<u32>,
    /// Dies on each channel; by default 1, 2, 4 and 8 are searched
    #[arg(long, value_name = "N", help_heading = "Device options")]
    pub dies_per_channel: Option<u32>,
    /// Whole drives to consider too: names of `bimetal drives` or parts of names; by default the drives released in the
    /// year of the prices or the 6 years before it
    #[arg(long, value_name = "A,B,...|all|none", value_delimiter = ',', help_heading = "Device options")]
    pub drives: Vec<String>,
    /// Year of the prices; by default the latest year of the price list
    #[arg(long, value_name = "YEAR", help_heading = "Price options")]
    pub year: Option<u16>,
    /// File of prices that replace those of the price list: TOML with `[[prices]]` of `year`, `cell` and `usd_per_gib`
    #[arg(long, value_name = "FILE", help_heading = "Price options")]
    pub prices: Option<PathBuf>,
    /// Price per GiB of a kind of cells, of disks, or of one part: `tlc=0.10`, `disk=0.02`, `qlc-3d-2020=0.08`; or of a
    /// whole drive: `samsung-980-1tb=75` (repeatable)
    #[arg(long, value_name = "NAME=USD", value_parser = price, help_heading = "Price options")]
    pub price: Vec<(String, f64)>,
    /// Offered load: `2x` doubles the arrival rate of the trace; `5000/s` scales arrivals to 5,000 requests per second
    /// on average
    #[arg(long, value_name = "FACTORx|N/s", help_heading = "Replay options")]
    pub load: Option<OfferedLoad>,
    /// When requests arrive, as for `compare`; by default at the trace's times, or one at a time if the trace has none
    #[arg(
        long,
        value_name = "closed[:DEPTH]|trace[:SPEED]",
        value_parser = arrivals::parse,
        help_heading = "Replay options"
    )]
    pub arrivals: Option<Arrivals>,
    /// Replay the trace N times; by default, a device is overwritten once before the measurement and once during it
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX), help_heading = "Replay options")]
    pub repeat: Option<u32>,
    /// Measure only the last M passes; by default the second half
    #[arg(long, value_name = "M", value_parser = whole(1..=u32::MAX), help_heading = "Replay options")]
    pub measure: Option<u32>,
    /// Maximum number of simulations; by default a fifth of the candidate devices, from 20 to 80, and 8
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX), help_heading = "Replay options")]
    pub simulations: Option<u32>,
    /// Number of threads; by default one for each processor. At most 2 devices are simulated at once
    #[arg(long, value_name = "N", value_parser = whole(1..=u16::MAX), help_heading = "Replay options")]
    pub jobs: Option<u16>,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub html: HtmlArgs,
}

/// Goals for devices.
#[derive(Debug, Args)]
#[command(next_help_heading = "Goals")]
pub struct GoalArgs {
    /// Minimum life: `5y`, `90d`, `12h`
    #[arg(long, value_name = "TIME", value_parser = goal(Measure::Life))]
    pub life: Option<Goal>,
    /// Minimum TBW, the bytes that the host can write until the device is worn out: `600TB`, `1.2PB`
    #[arg(long, value_name = "BYTES", value_parser = goal(Measure::Tbw))]
    pub tbw: Option<Goal>,
    /// Minimum drive writes per day, TBW / (capacity x days of `--life`, or of 5 years): `1`, `0.3`
    #[arg(long, value_name = "N", value_parser = goal(Measure::Dwpd))]
    pub dwpd: Option<Goal>,
    /// Maximum mean response: `500us`, `2ms`, `1s`
    #[arg(long, value_name = "TIME", value_parser = goal(Measure::Mean))]
    pub mean: Option<Goal>,
    /// Maximum median response
    #[arg(long, value_name = "TIME", value_parser = goal(Measure::P50))]
    pub p50: Option<Goal>,
    /// Maximum 95th percentile of the response
    #[arg(long, value_name = "TIME", value_parser = goal(Measure::P95))]
    pub p95: Option<Goal>,
    /// Maximum 99th percentile of the response
    #[arg(long, value_name = "TIME", value_parser = goal(Measure::P99))]
    pub p99: Option<Goal>,
    /// Maximum 99.9th percentile of the response
    #[arg(long, value_name = "TIME", value_parser = goal(Measure::P999))]
    pub p999: Option<Goal>,
    /// Maximum price, in US dollars
    #[arg(long, value_name = "USD", value_parser = goal(Measure::Cost))]
    pub budget: Option<Goal>,
    /// Bytes written per day, for lifetimes; by default the rate of the trace, or of `--load`
    #[arg(long, value_name = "SIZE", value_parser = with_unit)]
    pub writes_per_day: Option<ByteSize>,
}

impl GoalArgs {
    /// The given goals.
    pub fn all(&self) -> Vec<Goal> {
        let wear = [self.life, self.tbw, self.dwpd];
        let all = [self.mean, self.p50, self.p95, self.p99, self.p999, self.budget];
        wear.into_iter().chain(all).flatten().collect()
    }
}

/// A size with its unit: nobody writes single bytes a day.
fn with_unit(text: &str) -> Result<ByteSize, String> {
    if text.trim() != "0" && text.trim().ends_with(|last: char| last.is_ascii_digit()) {
        return Err(format!("`{text}` has no unit; write for example 50GB or 200GiB"));
    }
    text.parse()
}

fn goal(measure: Measure) -> impl Fn(&str) -> Result<Goal, String> + Clone + Send + Sync {
    move |text| Goal::parse(measure, text)
}

fn price(text: &str) -> Result<(String, f64), String> {
    let (name, usd) = super::setting(text)?;
    let usd = usd.parse().ok().filter(|usd: &f64| usd.is_finite());
    Ok((name, usd.ok_or_else(|| format!("`{text}` does not end with a number of US dollars"))?))
}
