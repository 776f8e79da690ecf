//! Fig. 4: the utilisation that HySSD chooses, period by period.

use std::sync::Arc;

use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series, short};

use super::{Case, Drive, PERIODS, compared, dynamic};
use crate::Drawn;
use crate::claim::{Kind, StandIn};
use crate::experiment::Source;
use crate::finding::Finding;
use crate::lab::Lab;
use crate::reading::{heights, metric_over_time, range, second_half};

/// Financial in two phases: repeated requests go first to recent pages and then to popular ones.
pub(super) static FINANCIAL_PHASES: Source = Source {
    name: "financial-phases",
    workload: "phases",
    settings: &[
        ("of", "financial:popular_share=0,financial:popular_share=1"),
        ("requests", "5334986"),
        ("phase_requests", "2667493"),
        ("used", "3891MiB"),
        ("span", "24400MiB"),
    ],
    quick: &[("requests", "333436"), ("phase_requests", "166718"), ("used", "243MiB")],
    calibrated: None,
};

/// Exchange in the same two phases.
pub(super) static EXCHANGE_PHASES: Source = Source {
    name: "exchange-phases",
    workload: "phases",
    settings: &[
        ("of", "exchange:popular_share=0,exchange:popular_share=1"),
        ("requests", "7500000"),
        ("phase_requests", "3750000"),
        ("used", "16GiB"),
        ("span", "16GiB"),
    ],
    quick: &[("requests", "468750"), ("phase_requests", "234375"), ("used", "1GiB"), ("span", "1GiB")],
    calibrated: None,
};

/// Fig. 4.
pub(super) fn figure(lab: &Lab<'_>, case: &Case, phases: &'static Source) -> Result<Drawn, StudyError> {
    let compared = compared(lab, &case.drive)?;
    let over_time = |entry: &Arc<Entry>| metric_over_time(entry, "utilisation_target");
    let [perf, life] = [&compared.perf, &compared.life].map(over_time);
    let moved = |curve: &[(f64, f64)]| range(&heights(second_half(curve)));
    // Only with the first stand-ins, whose locality the phases vary.
    let phased = match lab.stand_in() {
        StandIn::First => {
            let drive = Drive { source: phases, device: case.drive.device };
            Some(over_time(&lab.run(&[dynamic(lab, &drive, "performance", PERIODS[0])])?[0]))
        }
        StandIn::Calibrated => None,
    };
    let (low, high) = moved(&perf);
    let apart = perf.iter().zip(&life).map(|(perf, life)| (perf.1 - life.1).abs()).fold(0.0, f64::max);
    let mut findings = vec![
        Finding::fact(
            "Perf's utilisation follows the workload",
            "moves by at least 5 % of the fast SSD, in the second half",
            high - low >= 0.05,
            format!("{} to {}", short(low), short(high)),
        )
        .unless(
            "a generated stream ends as it began; with a sixteenth of the period, which is not given (`period`, `timeout`), it moves from \
             0.70 to 0.78 on Financial and from 0.72 to 0.78 on Exchange",
        )
        .unless_calibrated(
            "a generated stream ends as it began; with a sixteenth of the period, which is not given (`period`, `timeout`), it moves from \
             0.53 to 0.63 on Financial and from 0.74 to 0.80 on Exchange",
        ),
        Finding::fact(
            "Life's utilisation leaves Perf's",
            "by at least 5 % of the fast SSD",
            apart >= 0.05,
            format!("by up to {}", short(apart)),
        ),
    ];
    let mut series = vec![Series::measured("Perf", perf), Series::measured("Life", life)];
    if let Some(phased) = phased {
        let (low, high) = moved(&phased);
        findings.push(
            Finding::fact(
                "Perf's utilisation follows a workload of two phases",
                "moves by at least 5 % of the fast SSD, in the second half",
                high - low >= 0.05,
                format!("{} to {}", short(low), short(high)),
            )
            .of_kind(Kind::Ours),
        );
        series.push(Series::measured("Perf, two phases", phased));
    }
    Ok(Drawn {
        caption:
            "The share of the fast SSD that is to hold data, period by period. In the workload of two phases, repeated \
                  requests go first to recent pages and then to popular ones."
                .into(),
        plots: vec![Plot {
            title: "Utilisation".into(),
            kind: PlotKind::Lines,
            x: Axis::linear("requests"),
            y: Axis::linear("utilisation of the fast SSD"),
            series,
        }],
        findings,
    })
}
