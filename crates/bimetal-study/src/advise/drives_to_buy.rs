//! The answer about whole drives: the figures of each, with its data sheet.

use bimetal_core::part::real::whole;
use bimetal_core::replay::Arrivals;
use serde::Serialize;

use super::choice::{Choice, FALLS_BEHIND, Made};
use super::goals::{Cause, Goal, Measure, missed_by};
use super::on_sale::{OnSale, Range, SOLD_YEARS};
use crate::arrivals;
use crate::listing::{Rows, Sheet};
use crate::number::{LIVES, NOTHING, SIZES, TIMES, common_unit, dollars, significant, thousands, with_unit};

/// A life is shown in the largest unit in which the shortest life is at least this number.
const LEAST_OF_UNIT: f64 = 0.05;
/// Responses are shown in the smallest unit in which all are below this number. Some drives are a thousand times faster
/// than others.
const MOST_OF_UNIT: f64 = 99_999.5;
/// Mark of drives that meet all goals.
const MEETS: &str = "● ";

/// A drive on the market.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DriveToBuy {
    /// Name on the command line.
    pub name: String,
    /// Maker and model.
    pub title: String,
    /// Year of its release, if known.
    pub released: Option<u16>,
    /// Logical capacity, in bytes.
    pub capacity_bytes: u64,
    /// Host writes that its warranty covers, in terabytes of 10^12 bytes, if known.
    pub rated_tbw: Option<f64>,
    /// MB/s of sequential reads, claimed or measured.
    pub read_mb_per_s: Option<f64>,
    /// MB/s of sequential writes, claimed or measured, into its cache if it has one.
    pub write_mb_per_s: Option<f64>,
    /// Random 4-KiB reads per second with many outstanding, claimed or measured.
    pub read_iops: Option<f64>,
    /// Random 4-KiB writes per second with many outstanding, claimed or measured.
    pub write_iops: Option<f64>,
    /// Whether the user gave a price for the drive, so that its price is not the price of its flash.
    pub is_quoted: bool,
    /// Size relative to the simulated device. Life and TBW are the values that the command prints, times this factor.
    pub scale: f64,
    /// Its figures. Price, life, TBW and DWPD are those of the whole drive.
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

    /// The goals that the drive misses, with the factors, in words.
    fn missed(&self, goals: &[Goal]) -> String {
        let of = |(goal, excess): (&Goal, &Option<f64>)| match excess {
            Some(excess) if *excess <= 1.0 => None,
            Some(excess) => Some(format!("{} {}", goal.measure.words(), missed_by(*excess))),
            None if goal.measure.cause() == Cause::Latency => Some(FALLS_BEHIND.to_owned()),
            None => Some(goal.measure.words().to_owned()),
        };
        let mut missed: Vec<String> = goals.iter().zip(&self.choice.excess).filter_map(of).collect();
        missed.dedup();
        missed.join(", ")
    }
}

/// The description of a drive. `scale` is its size relative to the simulated device.
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

/// The drives on the market.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DrivesToBuy {
    /// The simulated drives, cheapest first; at equal price, fastest first.
    pub offered: Vec<DriveToBuy>,
    /// Bytes that a drive must hold: the bytes that the trace touches, or the requested capacity.
    pub least_bytes: u64,
    /// Drives with less capacity.
    pub too_small: Vec<String>,
    /// Drives whose flash has no price in the year of the prices.
    pub unpriced: Vec<String>,
    /// Drives whose simulation failed, with the reasons.
    pub failed: Vec<String>,
}

impl DrivesToBuy {
    /// The simulated drives of a range, and the failed ones.
    pub(super) fn new(range: &Range, mut offered: Vec<DriveToBuy>, failed: Vec<String>) -> Self {
        // Drives with the same amount of flash have the same price.
        let mean_us = |drive: &DriveToBuy| drive.choice.of(Measure::Mean).unwrap_or(f64::INFINITY);
        let cost_usd = |drive: &DriveToBuy| drive.choice.cost_usd;
        offered.sort_by(|a, b| cost_usd(a).total_cmp(&cost_usd(b)).then(mean_us(a).total_cmp(&mean_us(b))));
        let Range { least_bytes, too_small, unpriced, .. } = range.clone();
        Self { offered, least_bytes, too_small, unpriced, failed }
    }

    /// The cheapest drive that meets all goals.
    pub fn cheapest(&self) -> Option<&DriveToBuy> {
        self.offered.iter().find(|drive| drive.choice.meets)
    }

    /// The drive that misses the goals by the smallest factor; among equal ones the cheapest.
    pub fn nearest(&self) -> Option<&DriveToBuy> {
        self.offered.iter().min_by(|a, b| a.worst_excess().total_cmp(&b.worst_excess()))
    }

    /// The cheapest drive that meets all goals, or else the nearest.
    pub fn chosen(&self) -> Option<&DriveToBuy> {
        self.cheapest().or_else(|| self.nearest())
    }

    /// The cheapest drive that meets all goals. If there is none: the goals that no drive meets, and the nearest drive.
    /// In words.
    pub fn verdict(&self, goals: &[Goal]) -> String {
        if let Some(drive) = self.cheapest() {
            return format!("the cheapest drive that meets all goals: {}, {}", drive.title, drive.price());
        }
        let Some(drive) = self.nearest() else { return "there is no candidate drive".to_owned() };
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

    /// Further notes, one a line.
    pub fn notes(&self, price_year: u16) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(drive) = self.chosen() {
            let simulated = with_unit(SIZES, drive.capacity_bytes as f64 / drive.scale);
            notes.push(format!(
                "drives are simulated full, and scaled down to {simulated} with their caches: an emptier drive has more cache and \
                 is faster"
            ));
            let times = format!("{} is {} times as large", drive.name, significant(drive.scale));
            notes.push(match &drive.choice.command {
                Some(_) => {
                    format!(
                        "the command below prints the same responses, and the life and TBW of a scaled drive; {times}"
                    )
                }
                None => format!("life and TBW are those of the scaled drive times the ratio of capacities: {times}"),
            });
            let quoted: Vec<&str> =
                self.offered.iter().filter(|drive| drive.is_quoted).map(|drive| drive.title.as_str()).collect();
            let given = if quoted.is_empty() {
                "`--price NAME=USD` sets a quoted price".to_owned()
            } else {
                format!("the price of {} is given", quoted.join(", "))
            };
            notes.push(format!("each price is that of the drive's flash in {price_year}; {given}"));
        } else if self.too_small.is_empty() && self.unpriced.is_empty() && self.failed.is_empty() {
            notes.push(format!("no known drive was released from {} to {price_year}", price_year - SOLD_YEARS));
        }
        notes.extend(counted(&self.too_small, &format!("smaller than {}", with_unit(SIZES, self.least_bytes as f64))));
        notes.extend(counted(&self.unpriced, &format!("without a price in {price_year}")));
        notes.extend(self.failed.iter().map(|what| format!("could not be simulated: {what}")));
        notes
    }

    /// The figures of each drive: price, wear, mean response, and another response: the measure of the first goal for
    /// one, or the 99th percentile. `arriving` is the arrival mode.
    pub fn simulated(&self, arriving: &str, goals: &[Goal]) -> Sheet {
        let is_closed = matches!(arrivals::parse(arriving), Ok(Arrivals::Closed { depth: 1 }));
        let kind = if is_closed { "service" } else { "response" };
        let is_other = |measure: &Measure| measure.cause() == Cause::Latency && *measure != Measure::Mean;
        let other = goals.iter().map(|goal| goal.measure).find(is_other);
        let responses = [Measure::Mean, other.unwrap_or(Measure::P99)];
        let values = |measure: Measure| self.offered.iter().filter_map(move |drive| drive.choice.of(measure));
        let slowest_us = responses.into_iter().flat_map(values).fold(0.0, f64::max);
        let fits = |&&(_, us): &&(&str, f64)| slowest_us / us < MOST_OF_UNIT;
        let (time, us) = TIMES.iter().find(fits).copied().unwrap_or(("s", 1e6));
        let (life, years) = common_unit(LIVES, values(Measure::Life), LEAST_OF_UNIT);
        let row = |drive: &DriveToBuy| {
            let choice = &drive.choice;
            let mark = if choice.meets { MEETS } else { "  " };
            let mut row = vec![format!("{mark}{}", drive.name), format!("{:.0}", choice.cost_usd)];
            match choice.response_us {
                Some(_) => row.extend(responses.map(|measure| shown(choice.of(measure), us))),
                None => row.extend([FALLS_BEHIND.to_owned(), String::new()]),
            }
            let worn = |measure: Measure, unit: f64| {
                let mark = if choice.of(measure).is_some() { choice.mark(measure) } else { "" };
                format!("{mark}{}", shown(choice.of(measure), unit))
            };
            row.extend([worn(Measure::Life, years), worn(Measure::Tbw, 1.0), shown(drive.rated_tbw, 1.0)]);
            row.push(worn(Measure::Dwpd, 1.0));
            row
        };
        let mut heads = vec!["  drive".to_owned(), "USD".to_owned()];
        heads.extend(responses.map(|measure| format!("{kind} ({time})\n{}", measure.name())));
        heads.push(format!("life,\n{life}"));
        heads.extend(["TBW (TB)\nsim.", "TBW (TB)\nrated", "DWPD"].map(str::to_owned));
        Sheet { heads, groups: vec![Rows { title: None, rows: self.offered.iter().map(row).collect() }] }
    }

    /// Figures from data sheets or measurements.
    pub fn data_sheet(&self) -> Sheet {
        let count = |value: Option<f64>, unit: f64| {
            value.map_or_else(|| NOTHING.to_owned(), |value| thousands(whole((value / unit).round())))
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

/// The number of drives with a property, and their names; none if there is no such drive.
fn counted(titles: &[String], how: &str) -> Option<String> {
    let (first, others) = titles.split_first()?;
    let names = if others.len() > 2 { String::new() } else { format!(": {}", titles.join(", ")) };
    Some(match others.len() {
        0 => format!("1 drive is {how}: {first}"),
        others => format!("{} drives are {how}{names}", others + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::choice::ResponseTimes;
    use crate::advise::prices::PriceList;
    use crate::drives::products;

    const GOALS: [Goal; 2] =
        [Goal { measure: Measure::Mean, limit: 1000.0 }, Goal { measure: Measure::Life, limit: 5.0 }];

    /// A drive with a mean response in microseconds and a life in years.
    fn offered(name: &str, mean_us: Option<f64>, years: f64) -> DriveToBuy {
        let prices = PriceList::new(Some(2026), None, &[("tlc".to_owned(), 0.25)]).unwrap();
        let drive = Range::new(&[name.to_owned()], &prices, 1).unwrap().unwrap().drives.remove(0);
        let responses = |us| ResponseTimes { mean: us, p50: us, p95: us, p99: us, p999: us };
        let excess = vec![mean_us.map(|us| us / GOALS[0].limit), Some(GOALS[1].limit / years)];
        let choice = Choice {
            device: drive.product.title.clone(),
            scheme: drive.scheme.clone(),
            flash_bytes: drive.flash_bytes as f64,
            channels: drive.channels,
            dies: drive.dies,
            cost_usd: drive.cost_usd,
            response_us: mean_us.map(responses),
            service_us: None,
            overload: None,
            life_years: Some(years),
            lifetime_host_bytes: Some(1e13 * years),
            lifetime_overwrites: 0.4,
            tbw: Some(10.0 * years),
            dwpd: Some(0.123),
            meets: excess.iter().all(|excess| excess.is_some_and(|excess| excess <= 1.0)),
            excess,
            command: None,
        };
        DriveToBuy::new(&drive, false, 100.0, choice)
    }

    fn drives(offered: Vec<DriveToBuy>) -> DrivesToBuy {
        DrivesToBuy::new(&Range { least_bytes: 1 << 40, ..Range::default() }, offered, Vec::new())
    }

    #[test]
    fn the_cheapest_drive_that_meets_all_goals_is_named() {
        let of = |mean_us| {
            let fast = offered("wd-sn850x-2tb", Some(100.0), 10.0);
            drives(vec![
                fast,
                offered("wd-sn770-1tb", Some(mean_us), 10.0),
                offered("samsung-980-1tb", Some(900.0), 10.0),
            ])
        };
        assert_eq!(
            of(800.0).verdict(&GOALS),
            "the cheapest drive that meets all goals: WD Black SN770 1TB, 251.46 USD"
        );
        // At equal price, the faster drive first.
        let names: Vec<String> = of(950.0).offered.into_iter().map(|drive| drive.name).collect();
        assert_eq!(names, ["samsung-980-1tb", "wd-sn770-1tb", "wd-sn850x-2tb"]);
    }

    #[test]
    fn where_none_meets_all_goals_the_nearest_is_named() {
        let slow = || offered("wd-sn770-1tb", Some(3000.0), 10.0);
        let behind = || offered("samsung-980-1tb", None, 10.0);
        let said = drives(vec![slow(), behind()]).verdict(&GOALS);
        let nearest = "the nearest: WD Black SN770 1TB, 251.46 USD, which misses: mean response by a factor of 3.00";
        assert_eq!(said, format!("no drive meets the goal: mean response at most 1.00 ms; {nearest}"));
        let worn = offered("wd-sn850x-2tb", Some(100.0), 1.0);
        let said = drives(vec![slow(), worn]).verdict(&GOALS);
        assert_eq!(said, format!("no drive meets all goals at once; {nearest}"));
        let said = drives(vec![behind()]).verdict(&GOALS);
        assert!(said.ends_with("Samsung 980 1TB, 251.46 USD, which misses: falls behind"), "{said}");
        assert_eq!(drives(Vec::new()).verdict(&GOALS), "there is no candidate drive");
    }

    #[test]
    fn what_is_not_offered_is_counted() {
        let titles = |count: usize| vec!["WD Blue SN550 1TB".to_owned(); count];
        let notes = |too_small, unpriced| {
            let range = Range {
                too_small: titles(too_small),
                unpriced: titles(unpriced),
                least_bytes: 10 << 40,
                ..Range::default()
            };
            DrivesToBuy::new(&range, Vec::new(), Vec::new()).notes(2026)
        };
        assert_eq!(notes(1, 0), ["1 drive is smaller than 10.0 TiB: WD Blue SN550 1TB"]);
        assert_eq!(notes(13, 0), ["13 drives are smaller than 10.0 TiB"]);
        assert_eq!(notes(0, 2), ["2 drives are without a price in 2026: WD Blue SN550 1TB, WD Blue SN550 1TB"]);
        assert_eq!(notes(0, 0), ["no known drive was released from 2020 to 2026"]);
    }

    /// The mark takes two columns in the margin.
    #[test]
    fn tables_of_every_drive_fit_into_80_columns() {
        let all = products(&[]).unwrap();
        let all = all.iter().map(|drive| match drive.name.as_str() {
            "samsung-980-1tb" => offered(&drive.name, None, 1234.0),
            "wd-sn770-1tb" => offered(&drive.name, Some(60.0), 0.6),
            "crucial-t500-2tb" => offered(&drive.name, Some(7_235_174.0), 1.234),
            name => offered(name, Some(12_345.0), 1.234),
        });
        let drives = drives(all.collect());
        for sheet in [drives.simulated("trace", &GOALS), drives.data_sheet()] {
            assert!(
                sheet.width() <= 82,
                "{}",
                sheet.lines().iter().map(|line| line.text().to_owned() + "\n").collect::<String>()
            );
        }
        let lines: Vec<String> =
            drives.simulated("trace", &GOALS).lines().iter().map(|line| line.text().to_owned()).collect();
        let row = |name: &str| lines.iter().find(|line| line.contains(name)).unwrap();
        assert!(row("samsung-980-1tb").contains("falls behind"), "{lines:#?}");
        assert!(row("wd-sn770-1tb").contains("~0.600") && row("wd-sn770-1tb").contains(" 0.060 "), "{lines:#?}");
        assert!(lines[0].contains("response (ms)") && row("crucial-t500-2tb").contains(" 7,235 "), "{lines:#?}");
    }
}
