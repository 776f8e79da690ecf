//! What is answered of whole drives: what each comes to, beside what is on its data sheet.

use bimetal_core::replay::Arrivals;
use serde::Serialize;

use super::choice::{Choice, FALLS_BEHIND, Made};
use super::goals::{Cause, Goal, Measure};
use super::on_sale::{OnSale, Range, SOLD_YEARS};
use crate::arrivals;
use crate::listing::{Rows, Sheet};
use crate::number::{LIVES, NOTHING, SIZES, TIMES, common_unit, dollars, significant, thousands, with_unit};

/// A unit is large enough if the smallest value is so much of it.
const LEAST_OF_UNIT: f64 = 0.05;
/// The mark of what meets all goals.
const MEETS: &str = "● ";

/// A drive that can be bought.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveToBuy {
    /// Name on the command line.
    pub name: String,
    /// Maker and model.
    pub title: String,
    /// Year in which it came out, if that is known.
    pub released: Option<u16>,
    /// Logical capacity, in bytes.
    pub capacity_bytes: u64,
    /// Terabytes of 10^12 bytes of host writes that its warranty covers, if that is known.
    pub rated_tbw: Option<f64>,
    /// MB/s of sequential reads, claimed or measured.
    pub read_mb_per_s: Option<f64>,
    /// MB/s of sequential writes, claimed or measured, into its cache if it has one.
    pub write_mb_per_s: Option<f64>,
    /// Random 4-KiB reads a second, many at a time, claimed or measured.
    pub read_iops: Option<f64>,
    /// Random 4-KiB writes a second, many at a time, claimed or measured.
    pub write_iops: Option<f64>,
    /// Whether its price was given, and is not that of its flash.
    pub is_quoted: bool,
    /// How many times as large it is as what was simulated: its life and TBW are so many times those that the command prints.
    pub scale: f64,
    /// What it comes to. The price is that of the whole drive, and so are life, TBW and DWPD.
    pub choice: Choice,
}

impl DriveToBuy {
    /// A drive that was simulated at a part of its size.
    pub(super) fn new(drive: &OnSale, is_quoted: bool, scale: f64, choice: Choice) -> Self {
        let product = drive.product.clone();
        Self {
            name: product.name,
            title: product.title,
            released: product.released,
            capacity_bytes: drive.capacity_bytes,
            rated_tbw: product.rated_tbw,
            read_mb_per_s: product.read_mb_per_s,
            write_mb_per_s: product.write_mb_per_s,
            read_iops: product.read_iops,
            write_iops: product.write_iops,
            is_quoted,
            scale,
            choice,
        }
    }

    fn worst_excess(&self) -> f64 {
        self.choice.excess.iter().map(|excess| excess.unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
    }

    fn price(&self) -> String {
        format!("{} USD", dollars(self.choice.cost_usd))
    }

    /// The goals that it misses, and by how much, in words.
    fn missed(&self, goals: &[Goal]) -> String {
        let of = |(goal, excess): (&Goal, &Option<f64>)| match excess {
            Some(excess) if *excess <= 1.0 => None,
            Some(excess) => Some(format!("{} {} times over", goal.measure.words(), significant(*excess))),
            None if goal.measure.cause() == Cause::Latency => Some(FALLS_BEHIND.to_owned()),
            None => Some(goal.measure.words().to_owned()),
        };
        let mut missed: Vec<String> = goals.iter().zip(&self.choice.excess).filter_map(of).collect();
        missed.dedup();
        missed.join(", ")
    }
}

/// A drive as it is made; `scale` is how many times as large it is as what is simulated.
pub(super) fn made(drive: &OnSale, scale: f64, command: Option<String>) -> Made {
    Made {
        device: drive.product.title.clone(),
        scheme: drive.scheme.clone(),
        flash_bytes: drive.flash_bytes as f64,
        channels: drive.channels,
        dies: drive.dies,
        scale,
        command,
    }
}

/// The drives that can be bought.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrivesToBuy {
    /// Those that were simulated, the cheapest first.
    pub offered: Vec<DriveToBuy>,
    /// Bytes that a drive must hold: what the trace touches, or the capacity that is asked for.
    pub least_bytes: u64,
    /// Drives that hold less.
    pub too_small: Vec<String>,
    /// Drives whose flash has no price in the year of the prices.
    pub unpriced: Vec<String>,
    /// Drives whose simulation failed, and why.
    pub failed: Vec<String>,
}

impl DrivesToBuy {
    /// Of a range, those that were simulated, in its order, and those that failed.
    pub(super) fn new(range: &Range, offered: Vec<DriveToBuy>, failed: Vec<String>) -> Self {
        let Range { least_bytes, too_small, unpriced, .. } = range.clone();
        Self { offered, least_bytes, too_small, unpriced, failed }
    }

    /// The cheapest that meets all goals.
    pub fn cheapest(&self) -> Option<&DriveToBuy> {
        self.offered.iter().find(|drive| drive.choice.meets)
    }

    /// The one that misses the goals by the smallest factor; of equal ones the cheapest.
    pub fn nearest(&self) -> Option<&DriveToBuy> {
        self.offered.iter().min_by(|a, b| a.worst_excess().total_cmp(&b.worst_excess()))
    }

    /// The cheapest that meets all goals, or else the nearest.
    pub fn chosen(&self) -> Option<&DriveToBuy> {
        self.cheapest().or_else(|| self.nearest())
    }

    /// The cheapest drive that meets all goals, or which goals none meets and which drive comes nearest, in words.
    pub fn verdict(&self, goals: &[Goal]) -> String {
        if let Some(drive) = self.cheapest() {
            return format!("the cheapest drive that meets all goals: {}, {}", drive.title, drive.price());
        }
        let Some(drive) = self.nearest() else { return "no drive comes into question".to_owned() };
        let is_missed = |at: usize| {
            let is_met = |drive: &DriveToBuy| drive.choice.excess[at].is_some_and(|excess| excess <= 1.0);
            !self.offered.iter().any(is_met)
        };
        let missed = goals.iter().enumerate().filter(|(at, _)| is_missed(*at)).map(|(_, goal)| goal.to_string());
        let missed: Vec<String> = missed.collect();
        let what = match missed.as_slice() {
            [] => "no drive meets all goals at once".to_owned(),
            [one] => format!("no drive meets the goal: {one}"),
            several => format!("no drive meets any of the goals: {}", several.join("; ")),
        };
        format!("{what}; the nearest: {}, {}, which misses: {}", drive.title, drive.price(), drive.missed(goals))
    }

    /// What else a reader should know, a thought a line.
    pub fn notes(&self, price_year: u16) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(drive) = self.chosen() {
            let simulated = with_unit(SIZES, drive.capacity_bytes as f64 / drive.scale);
            notes.push(format!(
                "drives are simulated full, and scaled down to {simulated} with their caches: responses are those that the commands \
                 print, lives and TBW are so many times theirs as a drive is larger, {} times for {}",
                significant(drive.scale),
                drive.name
            ));
            let quoted: Vec<&str> =
                self.offered.iter().filter(|drive| drive.is_quoted).map(|drive| drive.title.as_str()).collect();
            let given = if quoted.is_empty() {
                "`--price NAME=USD` puts in a quote".to_owned()
            } else {
                format!("that of {} is given", quoted.join(", "))
            };
            notes.push(format!("a price is that of the drive's flash in {price_year}; {given}"));
        } else if self.too_small.is_empty() && self.unpriced.is_empty() && self.failed.is_empty() {
            notes.push(format!("no drive is known that came out from {} to {price_year}", price_year - SOLD_YEARS));
        }
        notes.extend(counted(&self.too_small, &format!("smaller than {}", with_unit(SIZES, self.least_bytes as f64))));
        notes.extend(counted(&self.unpriced, &format!("without a price in {price_year}")));
        notes.extend(self.failed.iter().map(|what| format!("could not be simulated: {what}")));
        notes
    }

    /// What each comes to: price, responses and wear.
    pub fn simulated(&self, replayed: &str) -> Sheet {
        let is_closed = matches!(arrivals::parse(replayed), Ok(Arrivals::Closed { depth: 1 }));
        let kind = if is_closed { "service" } else { "response" };
        let responses = [Measure::Mean, Measure::P99];
        let values = |measure: Measure| self.offered.iter().filter_map(move |drive| drive.choice.of(measure));
        let (time, us) = common_unit(TIMES, responses.into_iter().flat_map(values), LEAST_OF_UNIT);
        let (life, years) = common_unit(LIVES, values(Measure::Life), LEAST_OF_UNIT);
        let row = |drive: &DriveToBuy| {
            let choice = &drive.choice;
            let mark = if choice.meets { MEETS } else { "  " };
            let mut row = vec![format!("{mark}{}", drive.name), format!("{:.0}", choice.cost_usd)];
            match choice.response_us {
                Some(_) => row.extend(responses.map(|measure| shown(choice.of(measure), us))),
                None => row.extend([FALLS_BEHIND.to_owned(), String::new()]),
            }
            let is_bound = choice.lifetime_host_bytes.is_none();
            let worn = |measure: Measure, unit: f64| {
                let bound = if is_bound && choice.of(measure).is_some() { "≥" } else { "" };
                format!("{bound}{}", shown(choice.of(measure), unit))
            };
            row.extend([worn(Measure::Life, years), worn(Measure::Tbw, 1.0), shown(drive.rated_tbw, 1.0)]);
            row.push(worn(Measure::Dwpd, 1.0));
            row
        };
        let mut heads = vec!["  drive".to_owned(), "USD".to_owned()];
        heads.extend(responses.map(|measure| format!("{kind} ({time})\n{}", measure.name())));
        heads.push(format!("life\n({life})"));
        heads.extend(["TBW (TB)\nsim.", "TBW (TB)\nrated", "DWPD"].map(str::to_owned));
        Sheet { heads, groups: vec![Rows { title: None, rows: self.offered.iter().map(row).collect() }] }
    }

    /// What is on data sheets or was measured.
    pub fn data_sheet(&self) -> Sheet {
        let count = |value: Option<f64>, unit: f64| {
            value.map_or_else(|| NOTHING.to_owned(), |value| thousands((value / unit).round() as u64))
        };
        let row = |drive: &DriveToBuy| {
            vec![
                format!("  {}", drive.name),
                thousands(drive.capacity_bytes / 1_000_000_000),
                drive.released.map_or_else(|| NOTHING.to_owned(), |year| year.to_string()),
                count(drive.read_mb_per_s, 1.0),
                count(drive.write_mb_per_s, 1.0),
                count(drive.read_iops, 1e3),
                count(drive.write_iops, 1e3),
            ]
        };
        let heads = [
            "  as sold",
            "GB",
            "released",
            "sequential (MB/s)\nread",
            "sequential (MB/s)\nwrite",
            "4K (1000 IOPS)\nread",
            "4K (1000 IOPS)\nwrite",
        ];
        let rows = self.offered.iter().map(row).collect();
        Sheet { heads: heads.map(str::to_owned).to_vec(), groups: vec![Rows { title: None, rows }] }
    }
}

fn shown(value: Option<f64>, unit: f64) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| significant(value / unit))
}

/// How many drives are so, and which; nothing where none is.
fn counted(titles: &[String], how: &str) -> Option<String> {
    let (first, others) = titles.split_first()?;
    let names = if others.len() > 2 { String::new() } else { format!(": {}", titles.join(", ")) };
    Some(match others.len() {
        0 => format!("1 drive is {how}: {first}"),
        others => format!("{} drives are {how}{names}", others + 1),
    })
}
