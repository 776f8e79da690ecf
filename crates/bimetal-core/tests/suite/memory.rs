//! Memory for the state of a scheme.

use allocation_counter::measure;
use bimetal_core::device::Template;
use bimetal_core::media::SimMedia;
use bimetal_core::scheme::SCHEMES;

/// Data of a device that is fitted as by `bimetal create`.
const LOGICAL: u64 = 4 << 30;

/// Largest number of bytes for each 4 KiB.
fn bound(scheme: &str) -> f64 {
    // Its mapping unit is a page of the fast part, here 2 KiB: two entries in each direction.
    if scheme == "csal" { 17.0 } else { 12.0 }
}

#[test]
fn a_scheme_takes_at_most_so_many_bytes_for_four_kibibytes() {
    let mut too_large = Vec::new();
    for spec in SCHEMES {
        let resolved = Template::bare_dies(LOGICAL).unwrap().resolve(spec, &[]).unwrap();
        let mut scheme = None;
        let memory = measure(|| scheme = Some(resolved.build::<SimMedia>().unwrap()));
        let per_block = memory.bytes_max as f64 / (LOGICAL / 4096) as f64;
        println!("{:16} {per_block:6.2} bytes for 4 KiB", spec.name);
        if per_block > bound(spec.name) {
            too_large.push((spec.name, per_block));
        }
    }
    assert!(too_large.is_empty(), "{too_large:.1?}");
}
