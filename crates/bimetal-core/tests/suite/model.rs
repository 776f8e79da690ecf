//! Every registered scheme must meet the requirements of [`conformance`], in every situation.
//!
//! A new scheme is covered by its line in the registry.

use bimetal_core::scheme::conformance::{self, DEVICES, Pairs, Subject};
use bimetal_core::scheme::{self, SCHEMES};

/// Settings that bring a scheme into situations that its defaults avoid on a small device.
const SITUATIONS: &[(&str, Pairs<'_>)] = &[
    // A unit for each logical block, units of two, and all of the region as one unit.
    ("unitmap", &[("unit_blocks", "1")]),
    ("unitmap", &[("unit_blocks", "2"), ("reserve_blocks", "1"), ("idle_gc", "true")]),
    ("unitmap", &[("unit_blocks", "1000"), ("idle_gc", "true")]),
    // Lines of blocks across all dies.
    ("pagemap", &[("layout", "across")]),
    ("pagemap", &[("layout", "across"), ("victim", "cost-benefit"), ("gc_free_blocks", "2"), ("idle_gc", "true")]),
    ("pagemap", &[("idle_gc", "true"), ("gc_free_blocks", "2")]),
    // Collection after nearly every write, and at a share of garbage.
    ("pagemap", &[("gc_garbage_percent", "0.1"), ("layout", "across")]),
    ("pagemap", &[("gc_garbage_percent", "5"), ("idle_gc", "true"), ("gc_free_blocks", "2")]),
    ("sepbit", &[("gc_garbage_percent", "1")]),
    ("dac", &[("gc_garbage_percent", "1"), ("idle_gc", "true")]),
    ("conventional", &[("map_cache_chains", "0"), ("spare_low", "4"), ("wear_threshold", "1")]),
    // A hash table that is never full: the log fills with valid data, tail data are copied back and demoted by force.
    ("chang", &[("hash_entries", "100000"), ("throttle", "false"), ("mlc_writeback", "false")]),
    ("chang", &[("hash_entries", "5000"), ("throttle", "false"), ("k", "3"), ("wear_threshold", "1")]),
    // A log that shrinks to its shortest and grows back, an update share that rises and falls.
    ("chang", &[("hash_entries", "5000"), ("k_step", "2"), ("k_period", "10"), ("k_min_percent", "0")]),
    ("chang", &[("hash_entries", "5000"), ("update_window", "20"), ("update_low", "0.99"), ("update_high", "1")]),
    ("chang", &[("initial_threshold", "1024"), ("threshold_mode", "fixed"), ("hash_entries", "9000")]),
    ("chang", &[("hash_key", "sector"), ("hash_entries", "5000"), ("throttle", "false")]),
    // Logical blocks change modes all the time.
    ("density-control", &[("hot_accesses", "6"), ("cold_accesses", "3"), ("ageing_period", "500")]),
    ("density-control", &[("hot_accesses", "30"), ("ageing_period", "3000"), ("wear_threshold", "1")]),
    // The log takes everything, or hardly anything; each kind of detection with units of all sizes.
    ("comboftl", &[("threshold_mode", "fixed"), ("threshold", "64KiB"), ("unit_blocks", "1")]),
    ("comboftl", &[("threshold_mode", "fixed"), ("threshold", "512"), ("detection", "page")]),
    ("comboftl", &[("threshold", "64KiB"), ("hot_hits_low", "0"), ("hot_hits_high", "0"), ("unit_blocks", "2")]),
    // One ring, a lap, all laps; partitions at their extremes.
    ("comboftl", &[("chances_mode", "fixed"), ("chances", "0")]),
    ("comboftl", &[("chances_mode", "fixed"), ("chances", "1"), ("hot_percent", "99")]),
    ("comboftl", &[("chances_mode", "fixed"), ("chances", "16"), ("early_migration", "false"), ("hot_percent", "1")]),
    ("comboftl", &[("update_low", "0"), ("update_high", "0"), ("chances", "15"), ("observation_window", "16")]),
    ("combo-static", &[("threshold", "1GiB")]),
    ("mixedftl", &[("compact_percent", "0")]),
    ("mixedftl", &[("compact_percent", "99")]),
    ("2q-gclock", &[("hot_percent", "1"), ("update_low", "1"), ("chances", "16")]),
    ("2q-gclock", &[("hot_percent", "99"), ("update_high", "0"), ("boundary_shift", "false")]),
    ("chang", &[("threshold_period", "50"), ("histogram_halving", "true"), ("map_cache_chains", "0")]),
    // All writes go to the log, pages make up to 15 laps or none, a constant and a moving threshold.
    ("wlaftl", &[("threshold", "1GiB"), ("threshold_max", "1GiB"), ("threshold_step", "0"), ("max_cycle_time", "15")]),
    ("wlaftl", &[("threshold", "1MiB"), ("max_cycle_time", "0"), ("free_blocks", "1"), ("wear_compare", "exact")]),
    ("wlaftl", &[("free_blocks", "8"), ("max_cycle_time", "15"), ("threshold_step", "64KiB"), ("gc_free_blocks", "1")]),
    ("wlaftl-static", &[("threshold", "1GiB"), ("max_cycle_time", "15"), ("free_blocks", "1")]),
    ("wlaftl-static", &[("threshold", "1GiB"), ("cycle_time", "laps_and_writes"), ("laps_at_equal_wear", "false")]),
    ("cftl", &[("threshold_mode", "fixed"), ("initial_threshold", "1024"), ("free_blocks", "8")]),
    ("cftl", &[("threshold_mode", "fixed"), ("initial_threshold", "1024"), ("wear_rule", "true")]),
    ("wlaftl", &[("threshold_rule", "cycles"), ("keep_updates", "false"), ("cycle_time", "laps_and_writes")]),
    ("wlaftl", &[("threshold", "0"), ("threshold_interval", "50"), ("wear_compare", "exact"), ("free_blocks", "1")]),
    // A cache of a few blocks; one that fills and is never emptied; one that idle time keeps half empty.
    ("pslc-static", &[("usual_spare_percent", "40")]),
    ("pslc-static", &[("usual_spare_percent", "40"), ("when_full", "direct"), ("idle_fold", "false")]),
    ("pslc-static", &[("when_full", "direct"), ("idle_fold_percent", "50"), ("idle_gc", "true")]),
    // A cache that grows and shrinks with written and trimmed data, to the last block.
    ("pslc-dynamic", &[("usual_spare_percent", "0"), ("exchange_period", "1")]),
    ("pslc-dynamic", &[("usual_spare_percent", "40"), ("idle_fold", "false")]),
    ("pslc-dynamic", &[("usual_spare_percent", "10"), ("cache_percent_max", "50"), ("idle_fold_percent", "50")]),
    (
        "pslc-dynamic",
        &[("usual_spare_percent", "40"), ("when_full", "direct"), ("gc_free_blocks", "2"), ("idle_gc", "true")],
    ),
    // Whole blocks folded at once, a cache that is bypassed until no block is erased, a cache that shrinks early,
    // breaks too short to fold.
    ("pslc-static", &[("fold_in_steps", "false"), ("idle_fold_start_percent", "75"), ("idle_fold_min_pages", "20")]),
    ("pslc-dynamic", &[("fold_in_steps", "false"), ("exchange_period", "2"), ("idle_fold_min_pages", "20")]),
    ("pslc-dynamic", &[("when_full", "direct-then-fold"), ("usual_spare_percent", "40"), ("idle_fold", "false")]),
    ("pslc-dynamic", &[("when_full", "direct-then-fold"), ("fold_in_steps", "false"), ("cache_percent_max", "60")]),
    ("pslc-dynamic", &[("when_full", "direct"), ("shrink_to_percent", "50"), ("usual_spare_percent", "40")]),
    ("pslc-dynamic", &[("shrink_from_percent", "20"), ("shrink_to_percent", "90"), ("idle_fold_start_percent", "75")]),
    // Sizes that change all the time and a map that is written all the time; no requests and all requests past the
    // cache.
    ("opfcl", &[("period", "50"), ("sequential_unit", "0"), ("segment_bytes", "4KiB")]),
    ("opfcl", &[("period", "300"), ("period_unit", "pages"), ("resize_pages", "1"), ("curve_keep", "0.5")]),
    ("opfcl", &[("period", "100"), ("sequential_unit", "512"), ("keep_clean", "true")]),
    (
        "opfcl",
        &[
            ("period", "20"),
            ("sequential_unit", "12KiB"),
            ("sequential_rule", "as_long"),
            ("initial_read_percent", "100"),
        ],
    ),
    ("opfcl", &[("period", "200"), ("curve", "sampled"), ("sample_rate", "0.2"), ("sequential_unit", "1GiB")]),
    // A cache that is full of data to the last block; groups of one page and of a sixteenth.
    (
        "opfcl",
        &[("initial_spare_percent", "1"), ("summary_pages", "false"), ("checkpoint", "false"), ("destage_group", "1")],
    ),
    ("rwfcl", &[("cache_percent", "99"), ("period", "30"), ("keep_clean", "true"), ("sequential_unit", "0")]),
    ("rwfcl", &[("cache_percent", "1"), ("period", "100"), ("checkpoint", "false")]),
    ("rwfcl", &[("cache_percent", "50"), ("initial_read_percent", "0"), ("gc_free_percent", "10")]),
    ("fpfcl", &[("cache_percent", "99"), ("period", "10"), ("sequential_unit", "0")]),
    ("fpfcl", &[("cache_percent", "1"), ("destage_group", "1"), ("summary_pages", "false")]),
    // A fast SSD that is hardly used and one that is full; utilisations that change all the time, with excess pages
    // that are demoted at once, slowly, or only in idle time.
    ("hyssd-static", &[("utilisation_percent", "5")]),
    ("hyssd-static", &[("utilisation_percent", "97"), ("gc_free_blocks", "2")]),
    ("hyssd-static", &[("utilisation_percent", "0"), ("reading", "hot_set")]),
    ("hyssd", &[("period", "50"), ("excess_pages", "1000000"), ("curve_keep", "0"), ("cost_of", "unit")]),
    ("hyssd", &[("period", "20"), ("excess_pages", "0"), ("timeout", "0"), ("victim", "greedy")]),
    (
        "hyssd",
        &[("period", "30"), ("timeout", "100"), ("reading", "hot_set"), ("curve_keep", "0.9"), ("segments", "7")],
    ),
    ("hyssd", &[("period", "40"), ("goal", "lifetime"), ("life_step_percent", "20"), ("reading", "hot_set")]),
    ("hyssd", &[("period", "10"), ("goal", "lifetime"), ("life_mode", "integrate"), ("life_step_percent", "5")]),
    ("hyssd", &[("period", "25"), ("curve", "sampled"), ("sample_rate", "0.2"), ("initial_utilisation_percent", "97")]),
];

fn subjects() -> impl Iterator<Item = Subject> {
    SCHEMES.iter().map(|spec| Subject::registered(spec))
}

fn situations() -> impl Iterator<Item = (Subject, Pairs<'static>)> {
    SITUATIONS.iter().map(|&(name, settings)| (Subject::registered(scheme::find(name).unwrap()), settings))
}

#[test]
fn every_scheme_returns_what_was_written() {
    for subject in subjects() {
        for device in DEVICES {
            conformance::returns_what_was_written(&subject, device, &[], true, 4000, 0x9105_5a4b_8a9f_24d7);
            conformance::returns_what_was_written(&subject, device, &[], false, 4000, 0xe220_a839_7b1d_cdaf);
        }
    }
}

#[test]
fn every_scheme_reports_what_it_adapts_by() {
    for subject in subjects() {
        conformance::reports_what_it_adapts_by(&subject, &[]);
    }
}

#[test]
fn every_choice_returns_what_was_written() {
    for subject in subjects() {
        conformance::every_choice_returns_what_was_written(&subject, 2000);
    }
}

#[test]
fn drawn_devices_return_what_was_written() {
    for subject in subjects() {
        let served = conformance::drawn_devices_return_what_was_written(&subject, 0..1000, 300);
        assert!(served >= 50, "`{}` can be built on {served} of 1000 drawn devices", subject.spec().name);
    }
}

#[test]
fn every_situation_returns_what_was_written() {
    for (subject, settings) in situations() {
        for device in DEVICES {
            assert!(subject.runs_on(device, settings));
            conformance::returns_what_was_written(&subject, device, settings, true, 10_000, 9);
            conformance::returns_what_was_written(&subject, device, settings, false, 3000, 11);
        }
    }
}

#[test]
fn every_scheme_survives_far_beyond_endurance() {
    for subject in subjects() {
        for device in DEVICES.iter().take(2) {
            conformance::returns_what_was_written(&subject, device, &[], true, 200_000, 3);
        }
    }
}

#[test]
fn a_restored_scheme_goes_on_as_if_nothing_had_been() {
    for subject in subjects() {
        for device in DEVICES {
            for filled in [true, false] {
                conformance::goes_on_when_restored(&subject, device, &[], filled, 1000);
                conformance::is_imaged_while_it_serves(&subject, device, &[], filled, 1000);
            }
        }
    }
}

#[test]
fn every_situation_is_restored() {
    for (subject, settings) in situations() {
        for device in DEVICES {
            conformance::goes_on_when_restored(&subject, device, settings, true, 1000);
        }
    }
}

#[test]
fn the_state_of_another_device_or_scheme_is_refused() {
    for subject in subjects() {
        conformance::refuses_states_of_other_devices(&subject);
        for other in subjects() {
            let (own, others) = (subject.spec(), other.spec());
            if own.regions == others.regions && own.name != others.name {
                conformance::refuses_states_of(&subject, &other);
            }
        }
    }
}

#[test]
fn cut_states_are_refused() {
    subjects().for_each(|subject| conformance::refuses_cut_states(&subject));
}

#[test]
fn damaged_states_are_refused_or_can_be_served_from() {
    subjects().for_each(|subject| conformance::survives_damaged_states(&subject));
}
