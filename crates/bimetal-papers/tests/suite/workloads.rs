//! What every workload is held to, of the stand-ins; and a generator that is fitted to one of them.

use bimetal_core::profile::{CurvePlan, Profile};
use bimetal_core::workload::like::{self, Compared, Model};
use bimetal_core::workload::{self, WORKLOADS, WorkloadSpec, conformance};

use crate::{add_stand_ins, generated};

/// The stand-ins: each has targets, and the others have none.
fn stand_ins() -> impl Iterator<Item = &'static WorkloadSpec> {
    add_stand_ins();
    WORKLOADS.iter().copied().filter(|spec| !(spec.targets)(&[]).unwrap().is_empty())
}

#[test]
fn every_stand_in_is_a_workload() {
    for spec in stand_ins() {
        conformance::repeats_to_the_bit(spec);
        conformance::stays_within_its_span(spec);
        conformance::is_shown_as_it_is(spec);
    }
}

/// A trace of a published length is not refused for the memory of more requests than it has.
#[test]
fn a_stand_in_that_ends_by_itself_says_when() {
    add_stand_ins();
    for name in ["mixture", "wlaftl"] {
        let requests = workload::build(name, &[("scale".into(), "128".into())], 1).unwrap();
        let bound = requests.size_hint().1;
        assert_eq!(bound, Some(requests.count()), "{name}");
    }
}

#[test]
fn every_stand_in_meets_its_targets() {
    let targets: usize = stand_ins().map(conformance::meets_its_targets).sum();
    assert!(targets > stand_ins().count());
}

/// A changed line is a changed workload.
#[test]
fn every_stand_in_is_pinned() {
    let pinned: String =
        stand_ins().map(|spec| format!("{} {:016x}\n", spec.name, conformance::digest(spec))).collect();
    insta::assert_snapshot!(pinned, @r"
    bimodal-ntfs e9785f3bd98b0737
    bimodal-ext3 487b998de2dbc1e8
    phone df4edc8cac89e27c
    pc 1eb3b1b213a6af32
    iozone 78cea776a9f4b732
    mixture 5eaf2314825e82c6
    wlaftl 01760888c94bb232
    financial 99f4837e0a946d4a
    home 5dace65355e742c6
    search bb11abdf02dbbbcc
    exchange 6b6eda1610776aeb
    msn 66e873bbad4009dd
    ");
}

/// The generated NTFS workload has what Chang's figure 7 shows of the real one.
#[test]
fn ntfs_has_the_papers_profile() {
    let profile = Profile::of(&generated("bimodal-ntfs", &[("requests", "1000000")]), &CurvePlan::default());
    let update_ratio = |class: usize| profile.sizes[class].update_ratio.unwrap();
    assert!(update_ratio(3) > 10.0 && update_ratio(7) < 2.0, "{:?}", profile.sizes);
    assert!(profile.write_hits.last().unwrap().hits >= 16_384, "{:?}", profile.write_hits);
    assert!(profile.read_hits.last().unwrap().hits <= 128, "{:?}", profile.read_hits);
    assert!(profile.footprint.span_bytes > 19 << 30);
}

#[test]
fn a_fit_gives_a_server_back() {
    let trace = generated("financial", &[("requests", "83359"), ("used", "60MiB"), ("span", "1GiB")]);
    let model = Model::fit(&trace).unwrap();
    let fitted: Vec<_> = model.generate(trace.len() as u64, 7).collect();
    let comparison = like::compare(&trace, &fitted, 7).unwrap();
    // Requests of several pages that overlap bring reads to pages of writes, and the reverse.
    let is_fitted = |row: &&Compared| row.name == "pages touched" || !row.name.starts_with("pages");
    for row in comparison.fitted.iter().filter(is_fitted) {
        assert!(row.difference.abs() < 0.1, "{row:?}");
    }
    let hits: Vec<_> = comparison.held_back.iter().filter(|row| row.name.starts_with("hits, cache")).collect();
    assert!(!hits.is_empty() && hits.iter().all(|row| row.difference.abs() < 0.05), "{hits:?}");
}
