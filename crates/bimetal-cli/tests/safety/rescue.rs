//! Images of damaged stores: a rescue takes everything that is intact, and says what it could not search.

use std::fs;

use super::common::Bench;
use super::common::machine::has;
use super::{create, succeed, write_in};

#[test]
fn an_image_of_a_rescue_has_the_size_of_the_device_and_needs_no_superblock() {
    if !has(&["qemu-io"]) {
        return;
    }
    let bench = Bench::new();
    create(&bench, "s", "pagemap", &["--sparse"]);
    let bytes = bench.json(&["stat", "s"])["capacity_bytes"].as_u64().unwrap();
    write_in(&bench, "s", &[0]);
    bench.succeed(&["check", "s", "--rescue", "image"]);
    assert_eq!(fs::metadata(bench.path("image")).unwrap().len(), bytes);
    fs::remove_file(bench.path("s").join("journal")).unwrap();
    let by_map = bench.run(&["check", "s", "--rescue", "mapped"]);
    assert!(by_map.status == 0 && by_map.stdout.contains("the state of the store by its map"), "{}", by_map.stdout);
    assert_eq!(fs::metadata(bench.path("mapped")).unwrap().len(), bytes);
    fs::remove_file(bench.path("s").join("map")).unwrap();
    fails_to_rescue(&bench, &["check", "s", "--rescue", "searched"], &["`journal` is missing"]);
    assert_eq!(fs::metadata(bench.path("searched")).unwrap().len(), bytes);
    fs::write(bench.path("s").join("superblock"), [0; 4096]).unwrap();
    bench.fail(&["check", "s"], 1, &["superblock is destroyed", "--rescue"]);
    fs::write(bench.path("s").join("journal"), [0; 4096]).unwrap();
    bench.succeed(&["check", "s", "--rescue", "without"]);
    fs::remove_file(bench.path("s").join("superblock")).unwrap();
    bench.fail(&["check", "s"], 1, &["`superblock`: it is missing", "--rescue"]);
    bench.succeed(&["check", "s", "--rescue", "without-any"]);
    bench.fail(&["check", "nothing", "--rescue", "none"], 1, &["there is no store"]);
    assert!(!bench.path("none").exists(), "the next attempt can make it");
}

/// The exit status of a rescue is 1, and its output says why.
fn fails_to_rescue(bench: &Bench, args: &[&str], reasons: &[&str]) {
    let ran = bench.run(args);
    assert_eq!(ran.status, 1, "{args:?}");
    for reason in reasons {
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(reason), "{reason}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_rescue_without_some_files_saves_all_that_the_others_have_and_says_so() {
    if !has(&["qemu-io"]) {
        return;
    }
    let bench = Bench::new();
    let far = 7 << 20;
    let has_ones = |image: &str, at: u64| {
        let image = fs::read(bench.path(image)).unwrap();
        image.get(at as usize..at as usize + 4096).is_some_and(|page| page.iter().all(|&byte| byte == 1))
    };
    let path = |store: &str, file: &str| bench.path(store).join(file);
    // A region that is missing: the other one has both pages, also the one beyond its own size.
    create(&bench, "two", "chang", &["--sparse"]);
    write_in(&bench, "two", &[0, far]);
    fs::remove_file(path("two", "region1.flash")).unwrap();
    fails_to_rescue(&bench, &["check", "two", "--rescue", "of-one-region"], &["`region1.flash` is missing"]);
    assert!(has_ones("of-one-region", 0) && has_ones("of-one-region", far));
    // Regions whose files were swapped: their labels tell.
    create(&bench, "swapped", "chang", &["--sparse"]);
    write_in(&bench, "swapped", &[0, far]);
    succeed(&bench, "cd swapped && mv region0.flash x && mv region1.flash region0.flash && mv x region1.flash");
    bench.succeed(&["check", "swapped", "--rescue", "of-swapped"]);
    assert!(has_ones("of-swapped", 0) && has_ones("of-swapped", far));
    // A damaged label: the superblock describes the region.
    create(&bench, "s", "pagemap", &["--sparse"]);
    write_in(&bench, "s", &[far]);
    let mut region = fs::read(path("s", "region0.flash")).unwrap();
    region[16] ^= 0xff;
    fs::write(path("s", "region0.flash"), region).unwrap();
    bench.succeed(&["check", "s", "--rescue", "without-label"]);
    assert!(has_ones("without-label", far));
    // A home disk that is cut off or missing, and a page that is in the cache.
    for (damage, reason) in [
        ("truncate -s 4096 cache/disk.image", "`disk.image` is cut off after 8 of 32768 sectors"),
        ("rm cache/disk.image", "`disk.image` is missing"),
        ("rm cache/disk.sums", "`disk.sums` is missing"),
    ] {
        let _ = fs::remove_dir_all(bench.path("cache"));
        create(&bench, "cache", "opfcl", &["--sparse"]);
        write_in(&bench, "cache", &[far]);
        succeed(&bench, damage);
        let _ = fs::remove_file(bench.path("of-cache"));
        fails_to_rescue(&bench, &["check", "cache", "--rescue", "of-cache"], &[reason]);
        assert!(has_ones("of-cache", far), "{damage}");
    }
    // A home disk whose cache is gone, and checksums up to the last written sector, which are not cut off.
    create(&bench, "flashless", "opfcl", &["--sparse"]);
    write_in(&bench, "flashless", &[far]);
    succeed(&bench, "cp -r flashless headless && rm flashless/region0.flash && truncate -s 0 headless/superblock");
    fails_to_rescue(&bench, &["check", "flashless", "--rescue", "of-disk"], &["`region0.flash` is missing"]);
    assert_eq!(fs::metadata(bench.path("of-disk")).unwrap().len(), 16 << 20);
    bench.succeed(&["check", "headless", "--rescue", "of-headless"]);
    assert!(has_ones("of-headless", far));
    // Lost sectors of a store that opens are not silently zeros.
    create(&bench, "cut", "pagemap", &["--sparse"]);
    write_in(&bench, "cut", &[0]);
    succeed(&bench, "truncate -s 8192 cut/region0.flash");
    fails_to_rescue(&bench, &["check", "cut", "--rescue", "cut-image"], &["  sectors 0 to 7 are lost", "zeros there"]);
    // Files outside of the directory, and a superblock that cannot name them.
    create(&bench, "apart", "chang", &["--sparse", "--region", "fast=fast.flash", "--region", "slow=slow.flash"]);
    write_in(&bench, "apart", &[far]);
    fs::write(path("apart", "superblock"), [0; 4096]).unwrap();
    bench.fail(&["check", "apart", "--rescue", "apart-image"], 1, &["--region"]);
    bench.succeed(&["check", "apart", "--rescue", "apart-image", "--region", "fast.flash", "--region", "slow.flash"]);
    assert!(has_ones("apart-image", far));
}
