//! Fig. 15: effect of the sequential unit and of the period on OP-FCL.

use super::super::Drawn;
use super::super::claim::Kind;
use super::super::experiment::{Experiment, Scale};
use super::super::finding::{Finding, lowest, row};
use super::super::lab::Lab;
use super::super::reading::{height_at, range, response_ms};
use super::{ALL, Case, Manner, ON_EXCHANGE, ON_HOME, ON_MSN, ON_SEARCH, PERIOD_LOG2, experiment, period};
use bimetal_study::StudyError;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series};

/// Sequential units of Fig. 15a, in KiB.
pub(super) const UNITS_KIB: [u32; 8] = [4, 8, 16, 32, 64, 128, 256, 512];

/// The same in a quick run.
const UNITS_QUICK_KIB: [u32; 5] = [4, 16, 32, 128, 512];

/// The unit of the other experiments.
pub(super) const NORMAL_KIB: u32 = 128;

/// Periods of Fig. 15b in requests, as powers of two.
pub(super) const PERIODS_LOG2: [u32; 5] = [12, 14, 16, 18, 20];

/// Responses relative to that at `normal`, for each workload.
fn relative(
    lab: &Lab<'_>,
    cases: &[&Case],
    places: &[u32],
    normal: u32,
    make: impl Fn(&Case, u32) -> Experiment,
) -> Result<Vec<Vec<(f64, f64)>>, StudyError> {
    let mut curves = Vec::new();
    for case in cases {
        let experiments: Vec<_> = places.iter().map(|&place| make(case, place)).collect();
        let entries = lab.run(&experiments)?;
        let responses: Vec<_> =
            places.iter().zip(&entries).map(|(&place, entry)| (f64::from(place), response_ms(entry))).collect();
        let base = height_at(&responses, f64::from(normal));
        curves.push(responses.into_iter().map(|(place, response)| (place, response / base)).collect());
    }
    Ok(curves)
}

fn plot(title: &str, x: Axis, cases: &[&Case], curves: &[Vec<(f64, f64)>]) -> Plot {
    let series = cases.iter().zip(curves).map(|(case, curve)| Series::measured(case.name, curve.clone()));
    Plot {
        title: title.into(),
        kind: PlotKind::Lines,
        x,
        y: Axis::linear("relative response"),
        series: series.collect(),
    }
}

/// Reason why a unit of 4 KiB does not cost half of the response.
const ONE_PAGE: &str = "on Home all writes are of 4 KB (3.9 on average in table 1) and stay in the cache, since only \
    more than the unit is sequential; if as much as the unit is, as in the authors' program \
    (`sequential_rule=as_long`), it is 6.24; 8.45; 2.26; 3.04; 3.87";

/// The same on the calibrated stand-ins.
const ONE_PAGE_FITTED: &str = "on Home all writes are of 4 KB (3.9 on average in table 1) and stay in the cache, \
    since only more than the unit is sequential, and Search Engine has few hits to lose; if as much as the unit is \
    sequential, as in the authors' program (`sequential_rule=as_long`), and the working set of Search Engine is half \
    as large (`used=172MiB`), it is 6.49; 8.37; 2.73; 2.30; 1.90";

/// Reason why larger units matter.
const LARGE_REQUESTS: &str = "a request larger than the unit is sequential by itself, and many are larger than 16 \
    KiB, whose hits are lost; with fewer hits to lose, if any page can be requested again (`settled=true`, \
    `popular_share=1`), 16 KB takes 1.09; 0.97; 1.08 on Search Engine, Exchange and MSN, and no larger unit more \
    than 1.01";

/// The same on the calibrated stand-ins.
const LARGE_REQUESTS_FITTED: &str = "a request larger than the unit is sequential by itself, and many are larger \
    than 16 KiB, whose hits are lost; with fewer hits to lose, if no repeated request is for a recent page \
    (`popular_share=1` for 0.7), it is 1.04 on MSN";

/// Fig. 15a.
pub(super) fn fig15a(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let unit =
        |case: &Case, kib| experiment(lab, case, "opfcl", Manner::Closed).set("sequential_unit", format!("{kib}KiB"));
    let units = if lab.scale() == Scale::Quick { &UNITS_QUICK_KIB[..] } else { &UNITS_KIB };
    let curves = relative(lab, &ALL, units, NORMAL_KIB, unit)?;
    let at = |kib: f64| curves.iter().map(|curve| height_at(curve, kib)).collect::<Vec<_>>();
    let claims = [
        "16 to 512 KB perform alike, Financial",
        "16 to 512 KB perform alike, Home",
        "16 to 512 KB perform alike, Search Engine",
        "16 to 512 KB perform alike, Exchange",
        "16 to 512 KB perform alike, MSN",
    ];
    let mut findings = vec![
        Finding::fact("4 KB performs very poorly", "at least 1.5 times, all", range(&at(4.0)).0 >= 1.5, row(at(4.0)))
            .unless(ONE_PAGE)
            .unless_calibrated(ONE_PAGE_FITTED),
    ];
    findings.extend(claims.into_iter().zip(&curves).map(|(claim, curve)| {
        let from_16: Vec<f64> = curve.iter().filter(|point| point.0 >= 16.0).map(|point| point.1).collect();
        let (least, most) = range(&from_16);
        Finding::fact(claim, "within 10 % of 128 KB", least >= 0.9 && most <= 1.1, row(from_16))
            .unless(LARGE_REQUESTS)
            .unless_calibrated(LARGE_REQUESTS_FITTED)
            .target("T28")
    }));
    Ok(Drawn {
        caption: "Response of OP-FCL by that with 128 KiB. Requests that are accumulated to a unit go past the cache."
            .into(),
        plots: vec![plot("Sequential unit", Axis::logarithmic("sequential unit (KiB)"), &ALL, &curves)],
        findings,
    })
}

/// Reason why short periods can be better.
const EMPTY: &str = "an empty cache: short periods notice sooner what it has begun to hold; in a second pass it is \
    1.04; 0.991; 1; 1.01; 1.07, and on a server that had run before (`settled=true`, `popular_share=1`) 0.998; \
    0.985; 1; 1.03; 1.16";

/// Reason why long periods can be better.
const QUIET: &str = "longer periods bring quieter sizes, as more counts do: with nearly all of the older counts kept \
    (`curve_keep=0.99`) it is 1.14; 1.04; 1; 0.998; 1.03 on Home";

/// The same on the calibrated stand-ins.
const QUIET_FITTED: &str = "longer periods bring quieter sizes, as more counts do: with more of the older counts kept \
    (`curve_keep=0.95`) it is 1.16; 1.04; 1; 1.00; 1.01 on Home";

/// "Performance is relatively consistent and best for periods between 2^14 to 2^16". Consistent is what other claims call
/// alike, within 5 %.
fn best(claim: &'static str, curve: &[(f64, f64)]) -> Finding {
    let least = lowest(curve).map_or(f64::NAN, |((_, least), _)| least);
    let (better, worse) = range(&[14.0, 16.0].map(|log2| height_at(curve, log2)));
    Finding::fact(
        claim,
        "the better at most 2 % above the best, the other at most 5 % above the better",
        better <= 1.02 * least && worse <= 1.05 * better,
        row(curve.iter().map(|point| point.1)),
    )
}

/// "For periods beyond 2^18, OP-FCL performance deteriorates slightly": up to a tenth, as HySSD's slight increase.
fn deteriorates_slightly(curves: &[Vec<(f64, f64)>]) -> Finding {
    let beside =
        |curve: &Vec<(f64, f64)>| height_at(curve, 20.0) / range(&[14.0, 16.0].map(|log2| height_at(curve, log2))).0;
    let longest: Vec<f64> = curves.iter().map(beside).collect();
    Finding::fact(
        "beyond 2^18 responses deteriorate slightly: 2^20 by the better of 2^14 and 2^16",
        "above 1, at most 1.10, all",
        longest.iter().all(|&by| by > 1.0 && by <= 1.1),
        row(longest),
    )
    .unless(
        "on Home longer periods bring quieter sizes, with nearly all of the older counts kept (`curve_keep=0.99`) it is 1.03; \
         Search Engine has 1.1 million requests, so that sizes change once, and starts with an empty cache: in a second pass \
         it is 1.08 in a quick run, and 1.03 at full size",
    )
    .unless_calibrated(
        "on Home longer periods bring quieter sizes, with more of the older counts kept (`curve_keep=0.95`) it is 1.01; on MSN \
         a generated stream ends as it began, so that a long period loses nothing; Search Engine has 1.1 million requests and \
         Financial 5.3, so that sizes change once and five times",
    )
}

/// Fig. 15b.
pub(super) fn fig15b(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let with_period =
        |manner| move |case: &Case, log2| experiment(lab, case, "opfcl", manner).set("period", period(lab, case, log2));
    let curves = relative(lab, &ALL, &PERIODS_LOG2, PERIOD_LOG2, with_period(Manner::Closed))?;
    let warm_search = relative(lab, &[&ON_SEARCH], &PERIODS_LOG2, PERIOD_LOG2, with_period(Manner::SecondPass))?;
    let claims = [
        "periods of 2^14 to 2^16 are best, Financial",
        "periods of 2^14 to 2^16 are best, Home",
        "periods of 2^14 to 2^16 are best, Search Engine",
        "periods of 2^14 to 2^16 are best, Exchange",
        "periods of 2^14 to 2^16 are best, MSN",
    ];
    let mut findings: Vec<Finding> = claims
        .into_iter()
        .zip([QUIET, QUIET, EMPTY, QUIET, QUIET])
        .zip(&curves)
        .map(|((claim, why), curve)| best(claim, curve).unless(why).unless_calibrated(QUIET_FITTED).target("T28"))
        .collect();
    findings.push(best("the same in a second pass, Search Engine", &warm_search[0]).of_kind(Kind::Ours));
    findings.push(deteriorates_slightly(&curves));
    let of = |name| ALL.iter().zip(&curves).find(|(case, _)| case.name == name).map_or(&[][..], |(_, curve)| curve);
    let home = of(ON_HOME.name);
    findings.push(Finding::fact(
        "shorter periods are worse on Home",
        "2^12 above 2^14 above 2^16",
        height_at(home, 12.0) > height_at(home, 14.0) && height_at(home, 14.0) > height_at(home, 16.0),
        row([12.0, 14.0, 16.0].map(|log2| height_at(home, log2))),
    ));
    let longest = [ON_EXCHANGE.name, ON_MSN.name].map(|name| height_at(of(name), 20.0));
    findings.push(Finding::fact(
        "2^20 is worse than 2^16 on Exchange and MSN",
        "above 1, both",
        longest.iter().all(|&relative| relative > 1.0),
        row(longest),
    )
    .unless_calibrated(
        "a generated stream ends as it began, so that a long period loses nothing; if all repeated requests go to popular pages \
         (`popular_share=1` on MSN) it is 1.02; 1.00; on four such parts of MSN, one after the other, each with other popular pages, \
         1.01 there",
    ));
    Ok(Drawn {
        caption: "Response of OP-FCL by that with a period of 2^16 requests. At a smaller scale periods are divided like the \
                  requests."
            .into(),
        plots: vec![
            plot("Period", Axis::linear("period (requests, as a power of two)"), &ALL, &curves),
            plot("Period, second pass", Axis::linear("period (requests, as a power of two)"), &[&ON_SEARCH], &warm_search),
        ],
        findings,
    })
}
