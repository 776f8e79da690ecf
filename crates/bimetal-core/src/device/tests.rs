use super::*;
use crate::drive::Model;
use crate::scheme::{self, Regions};

const EXAMPLE: &str = r#"
name = "example"
scheme = "pagemap"
logical = "64MiB"

[[region]]
name = "mlc"
chip = { base = "chang-mlc", endurance = 5000 }
capacity = "70MiB"
channels = 2
dies_per_channel = 2

[parameters]
gc_free_blocks = 2
"#;

fn pagemap() -> &'static scheme::SchemeSpec {
    scheme::find("pagemap").unwrap()
}

#[test]
fn a_device_file_resolves_and_round_trips() {
    let device = Device::from_toml(EXAMPLE).unwrap();
    assert_eq!(Device::from_toml(&device.to_toml().unwrap()).unwrap(), device);
    let resolved = device.resolve().unwrap();
    let region = &resolved.regions[0];
    assert_eq!((region.geometry.blocks, region.geometry.dies, region.channels), (140, 4, 2));
    assert_eq!((region.chip.endurance, region.chip.page_bytes), (5000, 4096));
    assert!(region.chip.source.ends_with("changed here: endurance"), "{}", region.chip.source);
    assert_eq!(resolved.settings[0], ("gc_free_blocks".into(), "2".into()));
    assert!((resolved.spare() - 6.0 / 64.0).abs() < 1e-12);
    // The resolved device is a device file too, and describes the same device in full.
    let again = Device::from_toml(&resolved.device.to_toml().unwrap()).unwrap();
    assert_eq!(again, resolved.device);
    assert_eq!(again.resolve().unwrap().regions[0].chip, region.chip);
}

#[test]
fn every_preset_can_be_fitted_to_a_trace() {
    let fit = [(set::FIT_TO_TRACE.to_owned(), "true".to_owned())];
    for known in PRESETS {
        for touched_bytes in [1, 130 << 20, (1 << 30) + 512] {
            let device = preset(known.name).unwrap();
            let spec = if device.scheme.is_empty() { pagemap() } else { scheme::find(&device.scheme).unwrap() };
            let template = Template::for_trace(Some(device), &fit, touched_bytes).unwrap();
            let fitted = template.resolve(spec, &[]);
            let fitted = fitted.unwrap_or_else(|error| panic!("{} at {touched_bytes}: {error}", known.name));
            assert!(fitted.device.logical.0 >= touched_bytes, "{}", known.name);
        }
    }
}

#[test]
fn every_preset_is_a_device_that_its_scheme_takes() {
    for known in PRESETS {
        let device = preset(known.name).unwrap();
        assert_eq!(device.name, known.name);
        assert!(!device.summary.is_empty(), "{}", known.name);
        assert_eq!(Device::from_toml(&device.to_toml().unwrap()).unwrap(), device);
        if device.scheme.is_empty() {
            // For any scheme: scaled first, like in the tests below.
            continue;
        }
        let resolved = device.resolve().unwrap();
        // Real drives have their known raw capacity, and billions of units.
        assert!(resolved.notes.is_empty() || device.controller.is_some(), "{:?}", resolved.notes);
        let built = if device.controller.is_some() { device.scaled(ByteSize(1 << 30)).unwrap() } else { device };
        built.resolve().unwrap().build::<crate::media::SimMedia>().unwrap();
    }
    assert!(preset("chang-c9").unwrap_err().to_string().contains("chang-c3"));
}

#[test]
fn refusals_name_the_field_and_the_way_out() {
    let cases = [
        ("logical = \"64MiB\"", "logical = \"64 parsecs\"", "line 4: `64 parsecs` is not a size"),
        ("scheme", "schema", "unknown field `schema`"),
        ("scheme = \"pagemap\"", "scheme = \"page\"", "there is no scheme `page`; there are: "),
        ("endurance = 5000", "endurnce = 5000", "`mlc.chip`: unknown field `endurnce`"),
        (
            "endurance = 5000",
            "planes = 1.0",
            "`mlc.chip`: invalid type: floating point `1.0`, expected u32; in `planes`",
        ),
        ("endurance = 5000", "read_us = -1", "`mlc.chip`: read_us = -1"),
        ("endurance = 5000", "read_us = nan", "`mlc.chip`: read_us = NaN"),
        ("endurance = 5000", "page_bytes = 1000", "`mlc.chip`: a page of 1000 bytes"),
        ("endurance = 5000", "page_bytes = 0", "`mlc.chip`: a page of 0 bytes"),
        ("base = \"chang-mlc\", ", "", "`mlc.chip`: missing field"),
        ("chang-mlc", "chang-qlc", "there is no chip `chang-qlc`; there are: chang-slc"),
        ("70MiB", "70%", "`logical`: 67108864 bytes exceed"),
        ("70MiB", "1MiB", "`mlc.capacity`: 1MiB is not possible"),
        ("70MiB", "999999TiB", "`mlc.capacity`"),
        ("70MiB", "-3%", "`-3%` is not a share"),
        ("channels = 2", "channels = 0", "`mlc.channels`"),
        ("channels = 2", "channels = 4294967295", "dies is not within 1 to 4096"),
        ("gc_free_blocks = 2", "gc_free = 2", "has no parameter `gc_free`; it has: gc_free_blocks"),
        ("gc_free_blocks = 2", "gc_free_blocks = 0", "`gc_free_blocks` of `pagemap` cannot be `0`"),
        ("seed", "seed", ""),
    ];
    for (from, to, expected) in cases {
        let text = EXAMPLE.replacen(from, to, 1);
        let error = Device::from_toml(&text).and_then(|device| device.resolve().map(|_| ())).err();
        let shown = error.map_or_else(String::new, |error| error.to_string());
        assert!(shown.contains(expected) && !shown.contains('\n'), "{to}: {shown}");
        assert_eq!(shown.is_empty(), expected.is_empty(), "{to}: {shown}");
    }
}

#[test]
fn fields_can_be_set() {
    let mut device = Device::from_toml(EXAMPLE).unwrap();
    for (key, value) in [
        ("logical", "32MiB"),
        ("seed", "7"),
        ("mlc.spare", "25%"),
        ("slow.endurance", "3000"),
        ("mlc.read_us", "55.5"),
        ("mlc.dies_per_channel", "1"),
        ("mlc.copyback_us", "855.5"),
        ("mlc.program_fail_ppm", "3"),
    ] {
        device.set(key, value).unwrap();
    }
    let resolved = device.resolve().unwrap();
    assert_eq!(resolved.regions[0].geometry.capacity_bytes(), 40 << 20);
    assert_eq!((resolved.regions[0].chip.endurance, resolved.regions[0].chip.read_us), (3000, 55.5));
    assert_eq!(resolved.regions[0].chip.copyback_us, Some(855.5));
    assert_eq!((resolved.shape.seed, resolved.regions[0].faults.program_fail_ppm), (7, 3));
    for (key, value, expected) in [
        ("mlc.endurnce", "1", "`mlc.endurnce` is no setting of device `example`; it has: logical, seed, serial"),
        ("slc.capacity", "1MiB", "`slc.capacity` is no setting"),
        ("logicl", "1", "`logicl` is no setting"),
        ("mlc.copyback_us", "5", "`mlc.copyback_us`: copyback_us = 5.0 is not a time from read_us = 55.5"),
        ("mlc.endurance", "many", "`mlc.endurance`: invalid type"),
        ("mlc.spare", "-0.1", "`mlc.spare`: `-0.1` is not a share"),
        ("mlc.spare", "much", "`mlc.spare`: `much` is not a share"),
        ("seed", "-1", "`seed`: `-1` is not a whole number from 0"),
    ] {
        let shown = device.set(key, value).unwrap_err().to_string();
        assert!(shown.contains(expected) && !shown.contains('\n'), "{key}: {shown}");
    }
}

#[test]
fn sizes_that_are_no_whole_blocks_are_rounded_down_and_said() {
    let resolved = Device::from_toml(&EXAMPLE.replace("70MiB", "72000KiB")).unwrap().resolve().unwrap();
    assert_eq!(resolved.regions[0].geometry.blocks, 140);
    assert!(resolved.notes[0].contains("rounded down to 140 blocks"), "{:?}", resolved.notes);
}

#[test]
fn a_template_fits_every_scheme_from_four_mebibytes_up() {
    for spec in scheme::SCHEMES {
        for logical in [0, 4 << 20, 5 << 20, 17 << 20, 300 << 20] {
            let resolved = Template::bare_dies(logical).unwrap().resolve(spec, &[]).unwrap();
            assert!(resolved.shape.logical_sectors * 512 >= logical.max(4 << 20));
            assert_eq!(resolved.device.scheme, spec.name);
            assert!(resolved.spare() >= 0.05 - 1e-9 || !resolved.volumes.is_empty());
            if logical >= 300 << 20 && resolved.regions.len() > 1 {
                assert!(resolved.regions[0].geometry.capacity_bytes() >= logical / 80);
            }
        }
    }
}

#[test]
fn a_drive_of_today_has_the_same_dies_for_every_scheme() {
    for spec in scheme::SCHEMES {
        let resolved = Template::for_trace(None, &[], 1 << 30).unwrap().resolve(spec, &[]).unwrap();
        let dies: u32 = resolved.regions.iter().map(|region| region.geometry.dies).sum();
        assert_eq!(dies, if spec.regions == Regions::FlashOverDisk { 4 } else { 16 }, "{}", spec.name);
        assert!(resolved.controller.is_some(), "{}", spec.name);
        // A block of a drive of 2 TB is 2,000 times as large; its erase takes its share.
        assert!(resolved.regions.iter().all(|region| region.chip.erase_us < 100.0), "{}", spec.name);
    }
}

#[test]
fn what_was_set_does_not_grow() {
    let mut template = Template::bare_dies(8 << 20).unwrap();
    template.set("slow.spare", "1%").unwrap();
    let shown = template.resolve(pagemap(), &[]).unwrap_err().to_string();
    assert!(shown.contains("`pagemap` cannot run on this device") && shown.contains("spare area"), "{shown}");
    template.set("logical", "1GiB").unwrap();
    let resolved = template.resolve(pagemap(), &[]).unwrap();
    assert!((0.01..0.011).contains(&resolved.spare()), "{}", resolved.spare());
}

const CACHE: &str = r#"
name = "cache"
scheme = "rwfcl"
logical = "64GiB"

[[region]]
name = "slc"
chip = "opfcl-slc"
capacity = "1GiB"

[[disk]]
name = "outer"
drive = { base = "atlas-10k-iv", queue = 16, mechanics = { write_settle_us = 400 } }
capacity = "25%"

[[disk]]
name = "home"
drive = "nearline-18tb"
"#;

#[test]
fn disks_share_the_logical_capacity_and_keep_their_figures() {
    let resolved = Device::from_toml(CACHE).unwrap().resolve().unwrap();
    let sectors: Vec<u64> = resolved.volumes.iter().map(|volume| volume.sectors).collect();
    assert_eq!(sectors, [16 << 21, 48 << 21]);
    let outer = &resolved.volumes[0].drive;
    let mechanics = outer.mechanics.as_ref().unwrap();
    assert_eq!((outer.queue, mechanics.write_settle_us, mechanics.rpm), (16, 400.0, 10_017));
    assert!(outer.source.ends_with("changed here: mechanics, queue"), "{}", outer.source);
    // The resolved device is a device file too, and describes the same device in full.
    let again = Device::from_toml(&resolved.device.to_toml().unwrap()).unwrap();
    assert_eq!(again, resolved.device);
    assert_eq!(&again.resolve().unwrap().volumes[0].drive, outer);
}

#[test]
fn disks_that_cannot_be_are_refused() {
    let cases = [
        ("queue = 16", "queue = 5000", "`outer.drive`: queue = 5000 is not within 0 to 4096"),
        ("queue = 16", "scheduler = \"lift\"", "`outer.drive`: unknown variant `lift`"),
        ("queue = 16", "capacity = \"1TiB\"", "`outer.drive`: mechanics: its tracks hold"),
        ("write_settle_us = 400", "rpm = 0", "`outer.drive`: mechanics: `rpm` is not within 60 to"),
        ("write_settle_us = 400", "seek_ms = [[1, 2.0], [1, 3.0]]", "`seek_ms` is not a list"),
        ("write_settle_us = 400", "settle = 400", "unknown field `settle`"),
        ("nearline-18tb", "floppy", "there is no drive `floppy`; there are: atlas-10k-iv"),
        ("\"64GiB\"", "\"600GiB\"", "`outer.capacity`: 161061273600 bytes exceed"),
    ];
    for (from, to, message) in cases {
        let text = CACHE.replacen(from, to, 1);
        assert_ne!(text, CACHE, "{from}");
        let error = Device::from_toml(&text).and_then(|device| device.resolve()).unwrap_err().to_string();
        assert!(error.contains(message), "{to}: {error}");
    }
}

#[test]
fn figures_of_disks_are_set_on_automatic_devices_too() {
    let rwfcl = scheme::find("rwfcl").unwrap();
    let mut template = Template::bare_dies(1 << 30).unwrap();
    for (key, value) in [("disk.drive", "atlas-10k-iv"), ("disk.queue", "7"), ("disk.model", "constant")] {
        template.set(key, value).unwrap();
    }
    let resolved = template.resolve(rwfcl, &[]).unwrap();
    let drive = &resolved.volumes[0].drive;
    assert_eq!((drive.name.as_str(), drive.queue, drive.model), ("atlas-10k-iv", 7, Model::Constant));
    assert!(template.set("disk.quue", "0").is_err());
    assert!(template.resolve(pagemap(), &[]).unwrap().device.disks.is_empty());
}

#[test]
fn parts_that_are_set_are_scaled_and_what_was_set_of_them_stays() {
    let mut template = Template::for_trace(None, &[], 1 << 30).unwrap();
    template.set("slow.chip", "tlc-3d-2019").unwrap();
    template.set("fast.capacity", "64MiB").unwrap();
    let hyssd = scheme::find("hyssd").unwrap();
    let resolved = template.resolve(hyssd, &[]).unwrap();
    let [fast, slow] = resolved.regions.as_slice() else { panic!() };
    let whole = crate::chip::find("tlc-3d-2019").unwrap();
    assert!(slow.chip.pages_per_block < whole.pages_per_block && slow.chip.erase_us < whole.erase_us);
    assert!((0.07..0.1).contains(&resolved.spare()), "{}", resolved.spare());
    assert_eq!((fast.geometry.capacity_bytes(), resolved.device.fit_to_trace), (64 << 20, false));
    template.set("slow.pages_per_block", "768").unwrap();
    assert_eq!(template.resolve(hyssd, &[]).unwrap().regions[1].chip.pages_per_block, 768 * 4);
    // Its pages are smaller than the mapping units of the drive.
    template.set("slow.chip", "chang-slc").unwrap();
    assert_eq!(template.resolve(hyssd, &[]).unwrap().regions[1].geometry.page_bytes, 2048);
}

#[test]
fn a_trace_may_touch_more_than_a_drive_of_today_has() {
    let template = Template::for_trace(None, &[], 10 << 40).unwrap();
    let resolved = template.resolve(pagemap(), &[]).unwrap();
    assert_eq!(resolved.device.logical.0, 10 << 40);
    assert!((0.06..0.08).contains(&resolved.spare()) && resolved.regions[0].geometry.dies == 16);
}

#[test]
fn a_write_buffer_is_refused_where_it_would_confuse_sectors() {
    let resolved = |buffer: ByteSize| {
        let mut device = preset("wd-sn770-1tb").unwrap();
        device.logical = ByteSize(20 << 40);
        device.regions[0].capacity = Capacity::Bytes(ByteSize(22 << 40));
        device.regions[0].mapping_unit = Some(ByteSize(64 << 10));
        device.controller.as_mut().unwrap().buffer = buffer;
        device.resolve().map(|_| ()).map_err(|error| error.to_string())
    };
    let refused = resolved(ByteSize(4 << 20)).unwrap_err();
    assert!(refused.contains("`controller.buffer`") && refused.contains("16TiB"), "{refused}");
    assert_eq!(resolved(ByteSize(0)), Ok(()));
}
