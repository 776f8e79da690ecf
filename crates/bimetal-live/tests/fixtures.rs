//! Stores of every scheme, written by this and earlier versions: stores of earlier versions must remain readable.
//!
//! `tests/fixtures/SCHEME.zst` has two stores of a tiny device: one that was closed, and one that was killed with a
//! journal to replay. `SCHEME.fN.zst` has the same in format N of the store, and `SCHEME.vN.zst` in version N of the
//! scheme. `BIMETAL_UPDATE_FIXTURES=1 cargo test -p bimetal-live --test fixtures` rewrites all of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bimetal_core::part::random::below;
use bimetal_core::scheme::{SCHEMES, SchemeSpec, find};
use bimetal_live::BlockDevice;
use bimetal_live::store::backing::{Access, Storage};
use bimetal_live::store::crash_backing::CrashStorage;
use bimetal_live::store::soak::TINY;
use bimetal_live::store::{
    CreateOptions, DumpOptions, Limits, OpenOptions, Parts, Store, StoreError, create, dump, rescue, source,
};

const UPDATE: &str = "BIMETAL_UPDATE_FIXTURES";
const LEVEL: i32 = 19;
const REQUESTS: u64 = 24;

/// Last state of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Closed,
    Killed,
}

const LEFT: [Left; 2] = [Left::Closed, Left::Killed];

fn path(spec: &SchemeSpec) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(spec.name).with_extension("zst")
}

/// Creates a store. Returns it with its data.
fn generate(spec: &SchemeSpec, left: Left) -> (CrashStorage, Vec<u8>) {
    let storage = Arc::new(CrashStorage::new());
    let (mut content, mut state) = (Vec::new(), left as u64);
    let device = TINY[0].device(spec, 0).unwrap();
    let options = CreateOptions { number: Some(5 + left as u64), sparse: true, ..CreateOptions::default() };
    create(storage.as_ref(), &device, &options).unwrap();
    // First with a checkpoint after almost every commit, then without checkpoints.
    for (opening, journal_bytes) in [(11, 1), (12, u64::MAX)] {
        let limits = Limits { journal_bytes, ..Limits::default() };
        let options = OpenOptions { limits, opening: Some(opening), ..OpenOptions::default() };
        let store = Store::open(Arc::clone(&storage) as Arc<dyn Storage>, options).unwrap();
        content.resize(store.sectors() as usize * 512, 0);
        for number in 1..=REQUESTS {
            request(&store, &mut state, number as u8, &mut content);
        }
        store.flush().unwrap();
        if left == Left::Closed {
            store.close().unwrap();
        }
    }
    (storage.as_ref().clone(), content)
}

fn request(store: &Store, state: &mut u64, fill: u8, content: &mut [u8]) {
    let sectors = 1 + below(state, 24);
    let sector = below(state, store.sectors() - sectors);
    let range = sector as usize * 512..(sector + sectors) as usize * 512;
    let fua = below(state, 8) == 0;
    match below(state, 8) {
        0 => {
            content[range].fill(0);
            store.trim(sector, sectors, fua).unwrap();
        }
        1 => store.read(sector, &mut vec![0; range.len()]).unwrap(),
        _ => {
            content[range.clone()].fill(fill);
            store.write(sector, &content[range], fua).unwrap();
        }
    }
}

/// Stores as bytes: for each store the number of files, then for each file the lengths of name and contents, name,
/// contents.
fn pack<'a>(stores: impl IntoIterator<Item = &'a CrashStorage>) -> Vec<u8> {
    let mut packed = Vec::new();
    for storage in stores {
        let names = storage.names();
        packed.extend((names.len() as u64).to_le_bytes());
        for (name, length) in names {
            packed.extend([name.len() as u64, length as u64].map(u64::to_le_bytes).concat());
            packed.extend(name.as_bytes());
            packed.extend(storage.bytes(&name));
        }
    }
    packed
}

fn unpack(mut packed: &[u8]) -> Vec<Arc<CrashStorage>> {
    fn take<'a>(packed: &mut &'a [u8], bytes: u64) -> &'a [u8] {
        let (taken, rest) = packed.split_at(bytes as usize);
        *packed = rest;
        taken
    }
    let number = |packed: &mut &[u8]| u64::from_le_bytes(take(packed, 8).try_into().unwrap());
    let mut stores = Vec::new();
    while !packed.is_empty() {
        let storage = Arc::new(CrashStorage::new());
        for _ in 0..number(&mut packed) {
            let (name, length) = (number(&mut packed), number(&mut packed));
            let name = std::str::from_utf8(take(&mut packed, name)).unwrap();
            let file = storage.open(name, Access::Create, false).unwrap();
            file.write_at(0, take(&mut packed, length)).unwrap();
            file.sync().unwrap();
        }
        storage.sync().unwrap();
        stores.push(storage);
    }
    stores
}

fn read(storage: &Arc<CrashStorage>, by_map: bool, sectors: usize) -> Result<Vec<u8>, StoreError> {
    let mut content = vec![0; sectors * 512];
    let (mut old, refusal) = source(&(Arc::clone(storage) as Arc<dyn Storage>), by_map)?;
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let (_, lost) = old.read_all(&mut |sector, bytes| {
        content[sector as usize * 512..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    })?;
    assert_eq!(lost, [], "sectors are lost");
    Ok(content)
}

/// The first error of an earlier store, which must hold `content`.
fn fault(storage: &Arc<CrashStorage>, left: Left, content: &[u8]) -> Option<String> {
    for by_map in [false, true] {
        match read(storage, by_map, content.len() / 512) {
            Ok(found) if found == content => {}
            Err(StoreError::NoMap { .. }) if by_map && left == Left::Killed => {}
            Ok(_) => {
                return Some(format!(
                    "read {}, it holds other data",
                    if by_map { "by its map" } else { "by its scheme" }
                ));
            }
            Err(error) => return Some(error.to_string()),
        }
    }
    // The store continues normally.
    let mut content = content.to_vec();
    let store = match Store::open(Arc::clone(storage) as Arc<dyn Storage>, OpenOptions::default()) {
        Ok(store) => store,
        Err(error) => return Some(error.to_string()),
    };
    let is_replayed = store.recovery().batches > 0;
    if is_replayed != (left == Left::Killed) {
        return Some(format!("it was {left:?} and {} commits were replayed", store.recovery().batches));
    }
    let mut state = 9;
    for number in 1..=REQUESTS {
        request(&store, &mut state, 100 + number as u8, &mut content);
    }
    let mut found = vec![0; content.len()];
    match store.read(0, &mut found) {
        Ok(()) if found == content => None,
        _ => Some("it does not hold what is written to it".into()),
    }
}

fn version(storage: &CrashStorage) -> String {
    let mut text = String::new();
    dump(storage, DumpOptions::default(), &mut |lines| {
        text += lines;
        Ok(())
    })
    .unwrap();
    text.split("scheme version ").nth(1).unwrap().lines().next().unwrap().to_owned()
}

/// The format of the store: byte 8 of its superblock.
fn format(storage: &CrashStorage) -> u32 {
    u32::from_le_bytes(storage.bytes("superblock")[8..12].try_into().unwrap())
}

#[test]
fn stores_that_were_made_before_are_read() {
    let (mut faults, mut total) = (Vec::new(), 0);
    for spec in SCHEMES {
        let made: Vec<_> = LEFT.iter().map(|&left| generate(spec, left)).collect();
        if std::env::var_os(UPDATE).is_some() {
            let packed = pack(made.iter().map(|(storage, _)| storage));
            std::fs::create_dir_all(path(spec).parent().unwrap()).unwrap();
            std::fs::write(path(spec), zstd::encode_all(&packed[..], LEVEL).unwrap()).unwrap();
        }
        let Ok(packed) = std::fs::read(path(spec)) else {
            faults.push(format!("{}: there is no fixture", spec.name));
            continue;
        };
        total += packed.len();
        for ((storage, left), (_, content)) in
            unpack(&zstd::decode_all(&packed[..]).unwrap()).iter().zip(LEFT).zip(&made)
        {
            let of = version(storage);
            if of != spec.version.to_string() {
                faults.push(format!(
                    "{}: the fixture is of version {of}, and the scheme has {}",
                    spec.name, spec.version
                ));
            } else if let Some(fault) = fault(storage, left, content) {
                faults.push(format!(
                    "{} ({left:?}): {fault}. What is saved of it has changed and its version has not: raise `version` in its registry \
                     line, of every scheme that shares what you changed, or `FORMAT` in store/superblock.rs if it is not of a scheme",
                    spec.name
                ));
            }
        }
    }
    println!("{total} bytes of fixtures");
    assert!(
        faults.is_empty(),
        "{}\nIf this is intended, rewrite the fixtures: {UPDATE}=1 cargo test -p bimetal-live --test fixtures",
        faults.join("\n")
    );
    assert!(total < 300 << 10, "{total} bytes of fixtures are too many");
}

/// First format whose fixtures have a map if they were closed.
const FORMAT_WITH_MAP: u32 = 4;

/// Checks a store of an earlier version of a scheme: it is refused. If it was closed, it is read by its map. If there
/// is no map, its sectors are rescued, except that trimmed ones may return.
fn assert_read_without_scheme(storage: &Arc<CrashStorage>, left: Left, content: &[u8], stem: &str) {
    let opened = Store::open(Arc::clone(storage) as Arc<dyn Storage>, OpenOptions::default());
    assert!(matches!(opened, Err(StoreError::SchemeVersion { .. })), "{stem} {left:?}");
    let has_map = left == Left::Closed && format(storage) >= FORMAT_WITH_MAP;
    match read(storage, true, content.len() / 512) {
        Ok(found) => assert!(has_map && found == content, "{stem} {left:?}"),
        Err(StoreError::NoMap { .. }) if !has_map => {}
        Err(error) => panic!("{stem} {left:?}: {error}"),
    }
    let rescued = |storage: &Arc<CrashStorage>| {
        let image = CrashStorage::new();
        let file = image.open("image", Access::Create, false).unwrap();
        let rescued = rescue(Arc::clone(storage) as Arc<dyn Storage>, &Parts::default(), file.as_ref()).unwrap();
        assert!(rescued.lost.is_empty(), "{stem} {left:?}: {rescued:?}");
        let mut found = image.bytes("image");
        found.resize(content.len(), 0);
        (rescued.is_state, found)
    };
    if has_map {
        let (is_state, found) = rescued(storage);
        assert!(is_state && found == content, "{stem} {left:?}");
    }
    let searched = Arc::new((**storage).clone());
    searched.flip("map", 8);
    let (is_state, found) = rescued(&searched);
    assert!(!is_state, "{stem} {left:?}");
    let of_both = found.chunks(512).zip(content.chunks(512)).enumerate();
    for (sector, (found, written)) in of_both.filter(|(_, (_, written))| *written != [0; 512]) {
        assert!(found == written, "{stem} {left:?}: sector {sector}");
    }
}

/// `SCHEME.fN.zst` was made in an earlier format of the store, with the current or an earlier version of the scheme.
#[test]
fn stores_of_formats_that_have_changed_are_read() {
    let mut count = 0;
    for entry in path(SCHEMES[0]).parent().unwrap().read_dir().unwrap() {
        let file = entry.unwrap().path();
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let Some((name, _)) = stem.split_once(".f") else { continue };
        let stores = unpack(&zstd::decode_all(&std::fs::read(&file).unwrap()[..]).unwrap());
        for (storage, left) in stores.iter().zip(LEFT) {
            let spec = find(name).unwrap();
            let (_, content) = generate(spec, left);
            if version(storage) == spec.version.to_string() {
                assert_eq!(fault(storage, left, &content), None, "{stem} {left:?}");
            } else {
                assert_read_without_scheme(storage, left, &content, stem);
            }
        }
        count += 1;
    }
    assert!(count > 0);
}

/// `SCHEME.vN.zst` was made by an earlier version of a scheme, whose state can no longer be restored.
#[test]
fn stores_of_schemes_that_have_changed_are_read_without_them() {
    let mut count = 0;
    for entry in path(SCHEMES[0]).parent().unwrap().read_dir().unwrap() {
        let file = entry.unwrap().path();
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let Some((name, version)) = stem.split_once(".v") else { continue };
        let spec = find(name).unwrap();
        assert!(version.parse::<u32>().unwrap() < spec.version, "{stem}");
        let stores = unpack(&zstd::decode_all(&std::fs::read(&file).unwrap()[..]).unwrap());
        for (storage, left) in stores.iter().zip(LEFT) {
            let (_, content) = generate(spec, left);
            assert_read_without_scheme(storage, left, &content, stem);
        }
        count += 1;
    }
    assert!(count > 0);
}
