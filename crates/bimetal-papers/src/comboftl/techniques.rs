//! Fig. 12: execution time without each technique.

use std::sync::Arc;

use super::time::{bars, with_warm};
use super::{COMBO_5, IOZONE_AT, NAMES, Settings, WARM_AT, WITH_WARM, collection_s, demotion_s, execution_s, kinds_s};
use super::{of_each, time_ratio};
use crate::Drawn;
use crate::finding::{Finding, row};
use crate::lab::Lab;
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;

/// Index in [`KINDS`](super::KINDS) of what the host writes to MLC.
const MLC_WRITES: usize = 3;

/// The versions of Fig. 12: ComboFTL, each without one of its techniques.
pub(super) const VERSIONS: [(&str, Settings); 6] = [
    ("complete", &[]),
    ("no early migration", &[("early_migration", "false")]),
    ("threshold 8 KB", &[("threshold_mode", "fixed"), ("threshold", "8KiB")]),
    ("threshold 64 KB", &[("threshold_mode", "fixed"), ("threshold", "64KiB")]),
    ("no hot unit detection", &[("detection", "none")]),
    ("1-chance", &[("chances_mode", "fixed"), ("chances", "0")]),
];

/// Reason why a threshold of 64 KB changes nothing on IOzone.
const ALL_LARGE_FIXED: &str = "nearly all of IOzone's writes have 128 KB, so that by this threshold none goes to SLC; \
    with writes of 64 KB (`warm_kib=64`, `large_kib=64`), which it admits, it is 2.49 there";

/// Reason why fewer copies of tail pages cost less.
const COLD_COPIES: &str = "without warm data, half the chances are half the copies of cold data; with a threshold that \
    stays at 16 KB, so that fewer of these go to SLC, it is 1.00; 1.00; 1.03";

/// Reason why a low threshold that stays is faster than one that adapts.
const TOO_HIGH: &str = "it is faster: the adapting threshold rises until a tenth of SLC goes down, all of which is lost; \
    beside one that stays at 16 KB (`threshold_mode=fixed`) it is 1.03; 1.09; 1.00";

/// Complete ComboFTL with the other detection of section 5.2: "HUD was better than HPD in exploiting the spatial locality of
/// data" (6.1). Not a bar of Fig. 12.
const BY_PAGE: (&str, Settings) = ("hot page detection", &[("detection", "page")]);

/// Index of [`BY_PAGE`] behind [`VERSIONS`].
const BY_PAGE_AT: usize = VERSIONS.len();

/// Fig. 12: execution time without each technique.
#[expect(clippy::too_many_lines, reason = "most are a list of claims")]
pub(super) fn fig12(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let versions = || VERSIONS.into_iter().chain([BY_PAGE]);
    let chips: Vec<_> = versions().map(|(_, settings)| (COMBO_5, settings)).collect();
    let runs = of_each(lab, WITH_WARM, &chips)?;
    let each = |value: &dyn Fn(&[Arc<Entry>]) -> f64| [0, 1, 2, 3, 4].map(|trace: usize| value(&runs[trace]));
    let all = |values: [f64; 5], holds: fn(f64) -> bool| values[..WARM_AT.start].iter().copied().all(holds);
    let slower = |version: usize| each(&|entries| time_ratio(&entries[0], &entries[version]));
    let [no_early, eight, undetected, by_page] = [1, 2, 4, BY_PAGE_AT].map(slower);
    let demotes = each(&|entries| demotion_s(&entries[3]) / demotion_s(&entries[0]));
    let worst = each(&|entries| {
        let others = (1..VERSIONS.len()).filter(|&version| version != 4);
        let slowest = others.map(|version| execution_s(&entries[version])).fold(0.0, f64::max);
        execution_s(&entries[4]) / slowest
    });
    let collects = each(&|entries| collection_s(&entries[5]) / collection_s(&entries[0]));
    let findings = vec![
        Finding::fact(
            "without early migration little is lost, all traces",
            "less than 5 % slower",
            all(no_early, |slower| slower < 1.05),
            with_warm(no_early) + " of the time",
        )
        .unless(COLD_COPIES),
        Finding::fact(
            "with a threshold of 8 KB similar, all traces",
            "within 10 %",
            all(eight, |slower| (slower - 1.0).abs() <= 0.1),
            with_warm(eight) + " of the time",
        )
        .unless(TOO_HIGH),
        more_in_mlc(&runs),
        Finding::fact(
            "with a threshold of 64 KB much more goes from SLC to MLC, all traces",
            "at least twice as much",
            all(demotes, |more| more >= 2.0),
            with_warm(demotes) + " times as much",
        )
        .unless(
            "on Phone ComboFTL's own threshold settles at 64 KB, and on IOzone it, too, sends half of the data through SLC in vain; \
             beside one that stays at 16 KB (`threshold_mode=fixed`) it is 32.9; 69.3; 12.2",
        )
        .unless_calibrated(ALL_LARGE_FIXED),
        Finding::fact(
            "without hot unit detection much slower, all traces",
            "at least 5 % slower",
            all(undetected, |slower| slower >= 1.05),
            with_warm(undetected) + " of the time",
        )
        .unless(
            "large data of the stand-ins are rewritten in turn, none is hot; with the warm data of the calibrated stand-ins and \
             `theta=1.1` on PC it is 1.28; 1.16; 1.97",
        )
        .unless_calibrated("on PC, whose warm data are most popular; with `theta=1.1` there it is 1.28; 1.16; 1.97"),
        Finding::fact(
            "without hot unit detection slower than any other version, all traces",
            "slowest",
            all(worst, |ratio| ratio > 1.0),
            with_warm(worst) + " of the slowest other's time",
        )
        .target("T26")
        .unless(
            "large data of the stand-ins are rewritten in turn, none is hot; with the warm data of the calibrated stand-ins and \
             `theta=1` on PC it is 1.15; 1.01; 1.96",
        )
        .unless_calibrated("on PC, whose warm data are most popular; with `theta=1` there it is 1.15; 1.01; 1.96"),
        Finding::fact(
            "with one chance MLC collects more, IOzone",
            "more",
            collects[IOZONE_AT] > 1.0,
            format!("{} times as much, warm {}", row([collects[IOZONE_AT]]), row(collects[WARM_AT].iter().copied())),
        )
        .unless(
            "IOzone's data return after more than SLC holds, however many chances; with small warm data (`warm-small`) it is 1.78, \
             on the calibrated stand-in 1.02",
        ),
        Finding::fact(
            "hot units are better than hot pages (6.1), all traces",
            "slower by page",
            all(by_page, |slower| slower > 1.0),
            with_warm(by_page) + " of the time",
        )
        .unless(
            "large data of the stand-ins are rewritten in turn, none is hot; on IOzone units are detected in vain, and pages are not; \
             with large warm data (`warm-large`) it is 1.06",
        )
        .unless_calibrated("on PC, whose warm data are most popular; with `theta=1.1` there it is 1.08; 1.01; 1.01"),
    ];
    let names: Vec<&str> = versions().map(|(name, _)| name).collect();
    Ok(Drawn {
        caption: "5 % of the blocks in SLC mode, by the time of complete ComboFTL. With one chance SLC is one ring whose valid \
                  tail pages go down. The last two traces are none of the paper's."
            .into(),
        plots: NAMES.iter().zip(&runs).map(|(trace, entries)| bars(trace, &names, entries)).collect(),
        findings,
    })
}

/// "However, it writes more data to the MLC region and thus increases the MLC region garbage collection cost slightly" (6.3):
/// by up to a tenth, as far as a similar time may be off.
fn more_in_mlc(runs: &[Vec<Arc<Entry>>]) -> Finding {
    const EIGHT: usize = 2;
    let times = |value: &dyn Fn(&Entry) -> f64| -> Vec<f64> {
        runs[..WARM_AT.start].iter().map(|entries| value(&entries[EIGHT]) / value(&entries[0])).collect()
    };
    let [written, collected] = [times(&|entry| kinds_s(entry)[MLC_WRITES]), times(&collection_s)];
    let held = written.iter().all(|&more| more > 1.0) && collected.iter().all(|&more| more > 1.0 && more <= 1.1);
    Finding::fact(
        "with a threshold of 8 KB MLC gets more and collects slightly more, all traces",
        "more, by up to 10 %",
        held,
        format!("written {}, collected {} times as much", row(written), row(collected)),
    )
    .unless(
        "MLC has next to nothing to collect, which takes 0.003 to 0.022 of the complete version's time, and 0.004 to 0.088 of it \
         with 8 KB",
    )
    .unless_calibrated(
        "on PC the adapting threshold sends 4.8 times as much to SLC; nearly all of IOzone's writes have 128 KB, which no threshold \
         admits",
    )
}
