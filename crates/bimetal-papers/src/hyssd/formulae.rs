//! The formulae of the paper without a replay: copyback times (table II) and the cost of a page write (Fig. 2).

use bimetal_core::chip;
use bimetal_core::model::cleaning::{CleaningCost, FlashCosts, VictimUtilisation};
use bimetal_core::model::hyssd::{HybridCost, HybridLoad};

use crate::Drawn;
use crate::claim::Kind;
use crate::finding::Finding;
use crate::lab::Lab;
use crate::opfcl::zipf_hits;
use bimetal_study::StudyError;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series, short};

/// The costs of a part of table II.
fn costs(part: &str) -> Option<FlashCosts> {
    chip::find(part).map(|part| FlashCosts::of(&part))
}

/// Table II: whether the copyback times equal the sum of the other operations.
pub(super) fn table2(_: &Lab<'_>) -> Result<Drawn, StudyError> {
    let (mut of_paper, mut by_rule, mut findings) = (Vec::new(), Vec::new(), Vec::new());
    for (name, part, copy_us) in
        [("SLC", "hyssd-slc", 385.0), ("MLC", "hyssd-mlc", 1375.0), ("TLC", "hyssd-tlc", 2450.0)]
    {
        // A copyback moves no data over the bus.
        let array_us = chip::find(part).map_or(f64::NAN, |part| part.read_us + part.program_us);
        of_paper.push((name.to_owned(), copy_us));
        by_rule.push((name.to_owned(), array_us));
        findings.push(match name {
            "SLC" => Finding::not_judged(
                "copyback of SLC is a read and a program without their transfers (us)",
                copy_us,
                array_us,
                "the table has one transfer more than by the rule of MLC and TLC; the printed time is used",
            )
            .of_kind(Kind::Arithmetic),
            "MLC" => Finding::about(
                "copyback of MLC is a read and a program without their transfers (us)",
                copy_us,
                0.0,
                array_us,
            )
            .of_kind(Kind::Arithmetic),
            _ => Finding::about(
                "copyback of TLC is a read and a program without their transfers (us)",
                copy_us,
                0.0,
                array_us,
            )
            .of_kind(Kind::Arithmetic),
        });
    }
    let findings = findings.into_iter().map(|finding| finding.target("T12")).collect();
    Ok(Drawn {
        caption: "Read and program times include the transfer of a page: 100 us for 4 KB.".into(),
        plots: vec![Plot {
            title: "Copyback".into(),
            kind: PlotKind::Bars,
            x: Axis::linear("part"),
            y: Axis::linear("us"),
            series: vec![
                Series::measured_by_name("read and program in the array", by_rule),
                Series::of_paper_by_name("C_CP", of_paper),
            ],
        }],
        findings,
    })
}

/// Fig. 2: the example of section II-B.
pub(super) fn fig2(_: &Lab<'_>) -> Result<Drawn, StudyError> {
    let (Some(fast), Some(slow)) = (costs("hyssd-slc"), costs("hyssd-tlc")) else {
        return Ok(Drawn::default());
    };
    let cleaning = |costs| CleaningCost::new(costs, VictimUtilisation::Fifo).in_whole_pages();
    // Sizes in hundredths of the fast SSD's 2 GB.
    let (fast_pages, gb) = (100.0, 50.0);
    let model = HybridCost {
        fast: cleaning(fast),
        slow: cleaning(slow),
        fast_pages,
        slow_pages: 8.0 * gb,
        data_pages: 9.0 * gb,
    };
    let load = HybridLoad { write_hits: zipf_hits(1.2, 120), read_hits: zipf_hits(1.2, 120), write_share: 0.6 };
    let utilisations = || (1..100).map(|percent| f64::from(percent) / 100.0);
    let costs_at = |cost: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
        let points = utilisations().map(|utilisation| (utilisation, cost(utilisation) / 1e3));
        // If the slow SSD is full, the cost of a write is infinite.
        points.filter(|point| point.1.is_finite()).collect()
    };
    let write = |utilisation: f64| model.page_write_us(utilisation, (load.write_hits)(utilisation * fast_pages));
    let best = model.optimum(&load, utilisations()).map_or(f64::NAN, |best| best.utilisation);
    let (in_fast, in_slow) = model.sizes(0.63);
    let findings = vec![
        Finding::about("data in SLC at u = 0.63 (GB)", 1.26, 1e-6, in_fast / gb)
            .of_kind(Kind::Arithmetic)
            .target("T11"),
        Finding::about("data in TLC at u = 0.63 (GB)", 7.74, 1e-6, in_slow / gb)
            .of_kind(Kind::Arithmetic)
            .target("T11"),
        Finding::not_judged(
            "the best utilisation of the example",
            0.63,
            short(best),
            "the example's hit curve is a drawing without numbers; here it is Zipf's, as in the authors' earlier paper",
        )
        .of_kind(Kind::Arithmetic),
    ];
    Ok(Drawn {
        caption: "2 GB of SLC and 8 GB of TLC with 9 GB of data. The more SLC holds, the dearer are its writes and the cheaper \
                  those of TLC. The hit curve of the example is not given: here hits follow Zipf's law (exponent 1.2, over 120 % \
                  of SLC)."
            .into(),
        plots: vec![Plot {
            title: "Cost of a page write".into(),
            kind: PlotKind::Lines,
            x: Axis::linear("utilisation of SLC"),
            y: Axis::logarithmic("ms"),
            series: vec![
                Series::measured("SLC", costs_at(&|utilisation| model.fast.page_write_us(utilisation))),
                Series::measured(
                    "TLC",
                    costs_at(&|utilisation| model.slow.page_write_us(model.slow_utilisation(utilisation))),
                ),
                Series::measured("hybrid", costs_at(&write)),
            ],
        }],
        findings,
    })
}
