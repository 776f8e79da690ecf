//! Every registered scheme as a device on real files, compared with a map of sectors and with the simulator.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use bimetal_core::device::Device;
use bimetal_core::ledger::Ledger;
use bimetal_core::media::{Cause, FlashOp, SimMedia, Simulation};
use bimetal_core::part::random::below;
use bimetal_core::request::{Op, Request};
use bimetal_core::scheme::{SCHEMES, SchemeSpec};
use bimetal_live::store::backing::{Access, Storage};
use bimetal_live::store::crash_backing::{CrashStorage, Fault, Loss};
use bimetal_live::store::soak::TINY;
use bimetal_live::store::{
    CreateOptions, Directory, DumpOptions, Limits, OpenOptions, Parts, Store, StoreError, check, create, dump, rescue,
};
use bimetal_live::{BlockDevice, Extent, IoError};

fn device(spec: &SchemeSpec) -> Device {
    TINY[0].device(spec, 0).unwrap()
}

fn options(number: u64) -> CreateOptions {
    CreateOptions { number: Some(number), ..CreateOptions::default() }
}

fn in_memory(device: &Device) -> Arc<CrashStorage> {
    let storage = Arc::new(CrashStorage::new());
    create(storage.as_ref(), device, &options(3)).unwrap();
    storage
}

fn open(storage: &Arc<CrashStorage>, options: OpenOptions) -> Store {
    Store::open(Arc::clone(storage) as Arc<dyn Storage>, options).unwrap()
}

/// Bytes of a page of a tiny `pagemap`, and pages of a block.
const PAGE: (usize, usize) = (4096, 8);

#[test]
fn a_large_write_goes_to_its_file_at_once_when_others_are_there() {
    let storage = in_memory(&device(SCHEMES.iter().find(|spec| spec.name == "pagemap").unwrap()));
    let store = open(&storage, OpenOptions::default());
    let (mut content, sectors) = (vec![0; store.sectors() as usize * 512], PAGE.0 / 512);
    let mut write = |page: usize, pages: usize, fill: u8| {
        let (before, range) = (storage.changes(), page * PAGE.0..(page + pages) * PAGE.0);
        content[range.clone()].fill(fill);
        store.write((page * sectors) as u64, &content[range], false).unwrap();
        assert!(read_all(&store) == content, "page {page}");
        storage.changes() - before
    };
    assert_eq!(write(0, 4, 1), 0, "they wait for a commit that has few pages");
    assert_eq!(write(4, 4, 2), 1, "a block is full");
    assert_eq!(write(8, 4, 3), 1, "the next commit syncs the file anyway");
    assert_eq!(write(12, 3, 4), 0, "too few for a separate call");
    storage.set_fault(storage.changes() + 1, Fault::Full);
    assert_eq!(write(16, 5, 5), 1, "they are held in memory, and the next write finds room");
    assert_eq!(write(30, 1, 6), 5, "each with its own call");
    store.flush().unwrap();
    drop(store);
    storage.restart(Loss::All, 1);
    assert!(read_all(&open(&storage, OpenOptions::default())) == content);
}

#[test]
fn pages_that_only_the_journal_has_are_sound() {
    for spec in SCHEMES {
        let storage = in_memory(&device(spec));
        let store = open(&storage, OpenOptions::default());
        for sector in 0..6 {
            store.write(sector, &[1; 512], true).unwrap();
        }
        drop(store);
        storage.restart(Loss::All, 1);
        let report = check(Arc::clone(&storage) as Arc<dyn Storage>).unwrap();
        assert!(report.is_sound() && report.sectors == 6, "{}: {:?}", spec.name, report.findings);
    }
}

/// A request within `sectors` sectors; half of the requests go to a tenth of them.
fn random_request(state: &mut u64, total: u64) -> Request {
    let sectors = 1 + below(state, 24);
    let range = if below(state, 2) == 0 { total / 10 } else { total };
    let sector = below(state, range).min(total - sectors);
    let op = match below(state, 10) {
        0..6 => Op::Write,
        6..9 => Op::Read,
        _ => Op::Trim,
    };
    Request { arrival_ns: 0, sector, sectors: sectors as u32, op, handle: 0 }
}

fn serve(store: &Store, request: &Request, content: &mut [u8], fill: u8) {
    let range = request.sector as usize * 512..request.end() as usize * 512;
    match request.op {
        Op::Write => {
            content[range.clone()].fill(fill);
            store.write(request.sector, &content[range], fill.is_multiple_of(32)).unwrap();
        }
        Op::Read => {
            let mut bytes = vec![1; range.len()];
            store.read(request.sector, &mut bytes).unwrap();
            assert!(bytes == content[range], "{request:?}");
        }
        Op::Trim => {
            content[range].fill(0);
            store.trim(request.sector, u64::from(request.sectors), false).unwrap();
        }
    }
}

fn read_all(store: &Store) -> Vec<u8> {
    let mut bytes = vec![1; store.sectors() as usize * 512];
    store.read(0, &mut bytes).unwrap();
    bytes
}

fn assert_same(live: &Ledger, simulated: &Ledger, what: &str) {
    assert_eq!(live.erases, simulated.erases, "{what}: erases");
    assert_eq!(live.faults, simulated.faults, "{what}: faults");
    assert_eq!(live.disks, simulated.disks, "{what}: disks");
    for (live, simulated) in live.rows.iter().zip(&simulated.rows) {
        // Streams are counted since the store was opened.
        for (op, cause) in FlashOp::ALL.into_iter().flat_map(|op| Cause::ALL.map(|cause| (op, cause))) {
            assert_eq!(
                live.counts.get(op, cause),
                simulated.counts.get(op, cause),
                "{what}: {op:?} for {cause:?} in region {} in mode {:?}",
                live.region,
                live.mode
            );
        }
    }
}

#[test]
fn every_scheme_counts_the_same_live_and_simulated() {
    for spec in SCHEMES {
        for (tiny, seed) in TINY.iter().zip(0u8..) {
            let device = tiny.device(spec, u64::from(seed)).unwrap();
            let resolved = device.resolve().unwrap();
            let (mut scheme, mut media) = (resolved.build::<SimMedia>().unwrap(), resolved.media());
            let storage = in_memory(&device);
            let mut store = open(&storage, OpenOptions::default());
            let (mut state, mut end) = (5, 0);
            let mut content = vec![0; store.sectors() as usize * 512];
            for number in 0..1500 {
                let request = random_request(&mut state, store.sectors());
                serve(&store, &request, &mut content, number as u8);
                media.begin(&request, end);
                scheme.serve(&mut media, &request);
                end = media.end();
                if number % 100 == 7 {
                    store.idle(4).unwrap();
                    media.begin_background();
                    scheme.idle(&mut media, 4);
                }
                // Neither a restart nor a crash changes the counts.
                if number % 500 == 250 {
                    store.flush().unwrap();
                    if number > 500 {
                        store.close().unwrap();
                    }
                    drop(store);
                    // Requests after the last write are not durable, and are counted again in the same way.
                    storage.restart(Loss::Nothing, 0);
                    store = open(&storage, OpenOptions::default());
                }
            }
            let what = format!("{} on `{}`", spec.name, tiny.name);
            assert_same(&store.status().measured.ledger, media.ledger(), &what);
            assert!(read_all(&store) == content, "{what}");
        }
    }
}

#[test]
fn wear_survives_a_crash() {
    for spec in SCHEMES {
        let storage = in_memory(&device(spec));
        let store = open(&storage, OpenOptions::default());
        let (mut state, mut content) = (9, vec![0; store.sectors() as usize * 512]);
        for number in 0..600 {
            let request = random_request(&mut state, store.sectors());
            serve(&store, &request, &mut content, number as u8);
        }
        store.write(0, &[1; 512], true).unwrap();
        let before = store.status().measured.ledger;
        let events = store.events();
        for _ in 0..5 {
            store.write(below(&mut state, 400), &[2; 4096], false).unwrap();
        }
        drop(store);
        storage.restart(Loss::All, 0);
        let store = open(&storage, OpenOptions::default());
        assert_eq!(store.events(), events, "{}", spec.name);
        assert_same(&store.status().measured.ledger, &before, spec.name);
    }
}

fn on_files(path: &Path) -> Arc<dyn Storage> {
    Arc::new(Directory::new(path))
}

#[test]
fn every_scheme_keeps_its_data_in_real_files() {
    for (spec, seed) in SCHEMES.iter().zip(0..) {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let storage = on_files(directory.path());
        create(storage.as_ref(), &device(spec), &CreateOptions::default()).unwrap();
        assert!(matches!(create(storage.as_ref(), &device(spec), &CreateOptions::default()), Err(StoreError::Exists)));
        let (mut state, mut content) = (seed, Vec::new());
        for round in 0..4 {
            // Every second round bypasses the page cache.
            let options = OpenOptions { direct: round % 2 == 1, ..OpenOptions::default() };
            let store = Store::open(Arc::clone(&storage), options).unwrap();
            content.resize(store.sectors() as usize * 512, 0);
            assert!(read_all(&store) == content, "{}", spec.name);
            assert!(matches!(Store::open(Arc::clone(&storage), options), Err(StoreError::InUse)));
            for number in 0..250 {
                let request = random_request(&mut state, store.sectors());
                serve(&store, &request, &mut content, number as u8);
            }
            if round < 2 {
                store.close().unwrap();
                assert_eq!(store.write(0, &[0; 512], false), Err(IoError::Shutdown));
            } else {
                store.flush().unwrap();
            }
        }
        let report = check(storage).unwrap();
        assert!(report.is_sound(), "{}: {:?}", spec.name, report.findings);
        assert!(report.pages > 0 && report.sectors > 0 && report.recovery.batches > 0);
    }
}

#[test]
fn a_device_opened_to_be_read_changes_nothing() {
    for spec in SCHEMES {
        let storage = in_memory(&device(spec));
        let store = open(&storage, OpenOptions::default());
        let (mut state, mut content) = (11, vec![0; store.sectors() as usize * 512]);
        for number in 0..500 {
            let request = random_request(&mut state, store.sectors());
            serve(&store, &request, &mut content, number as u8);
        }
        store.flush().unwrap();
        drop(store);
        let before: Vec<_> = storage.names().iter().map(|(name, _)| storage.bytes(name)).collect();
        let (events, limits) = (storage.changes(), Limits { held_bytes: 20_000, ..Limits::default() });
        let store = open(&storage, OpenOptions { read_only: true, limits, ..OpenOptions::default() });
        assert!(store.read_only());
        for _ in 0..500 {
            let request = random_request(&mut state, store.sectors());
            if request.op == Op::Read {
                serve(&store, &request, &mut content, 0);
            } else {
                assert_eq!(store.write(request.sector, &[9; 512], false), Err(IoError::ReadOnly));
            }
        }
        store.flush().unwrap();
        store.close().unwrap();
        let after: Vec<_> = storage.names().iter().map(|(name, _)| storage.bytes(name)).collect();
        assert!(before == after && storage.changes() == events, "{}", spec.name);
    }
}

#[test]
fn block_devices_of_fixed_size_do() {
    for spec in SCHEMES {
        let device = device(spec);
        let storage = Arc::new(CrashStorage::new());
        storage.add_fixed("/dev/flash", 4 << 20);
        storage.add_fixed("/dev/disk", device.logical.0 as usize + 4096);
        let mut options = options(4);
        options.regions = vec![(device.regions[0].name.clone(), "/dev/flash".into())];
        options.disk = (!device.disks.is_empty()).then(|| "/dev/disk".into());
        create(storage.as_ref(), &device, &options).unwrap();
        let store = open(&storage, OpenOptions::default());
        let (mut state, mut content) = (13, vec![0; store.sectors() as usize * 512]);
        for number in 0..3000 {
            let request = random_request(&mut state, store.sectors());
            serve(&store, &request, &mut content, (number % 31 + 1) as u8);
        }
        assert!(read_all(&store) == content, "{}", spec.name);
        drop(store);
        // Another store is refused if one of its files has the label of this block device.
        let other = in_memory(&device);
        let label = storage.bytes("/dev/flash")[..4096].to_vec();
        other.open("region0.flash", Access::Write, false).unwrap().write_at(0, &label).unwrap();
        let opened = Store::open(other, OpenOptions::default());
        assert!(matches!(opened, Err(StoreError::Foreign { .. })), "{}", spec.name);
    }
}

#[test]
fn a_store_without_its_records_is_rescued_from_its_pages() {
    for spec in SCHEMES {
        let storage = in_memory(&device(spec));
        let store = open(&storage, OpenOptions::default());
        let (mut state, mut content) = (17, vec![0; store.sectors() as usize * 512]);
        for number in 0..800 {
            let mut request = random_request(&mut state, store.sectors());
            // Trimmed data may return after a rescue, so nothing is trimmed.
            if request.op == Op::Trim {
                request.op = Op::Write;
            }
            serve(&store, &request, &mut content, number as u8);
        }
        store.flush().unwrap();
        let committed = content.clone();
        for number in 0..60 {
            let sector = below(&mut state, store.sectors() - 8);
            store.write(sector, &[number; 8 * 512], false).unwrap();
        }
        drop(store);
        // Uncommitted pages remain in the files, and must not be mistaken for pages written after the crash.
        storage.restart(Loss::Nothing, 0);
        let store = open(&storage, OpenOptions::default());
        let sectors = 16;
        for (sector, content) in (0..).step_by(sectors).zip(committed.chunks(sectors * 512)) {
            store.write(sector, content, false).unwrap();
        }
        content = committed;
        store.close().unwrap();
        drop(store);
        let image = |name| storage.open(name, Access::Create, false).unwrap();
        let rescue = |name| rescue(Arc::clone(&storage) as Arc<dyn Storage>, &Parts::default(), image(name).as_ref());
        let whole = rescue("whole").unwrap();
        assert!(whole.is_state && whole.lost.is_empty(), "{}", spec.name);
        let mut expected = storage.bytes("whole");
        expected.resize(content.len(), 0);
        assert!(expected == content, "{}", spec.name);
        for bit in [0, 65_536 * 8] {
            storage.flip("superblock", bit + 999);
        }
        assert!(matches!(
            Store::open(Arc::clone(&storage) as Arc<dyn Storage>, OpenOptions::default()),
            Err(StoreError::Damaged { .. })
        ));
        let found = rescue("found").unwrap();
        assert!(!found.is_state && found.pages.1 > 0, "{}", spec.name);
        let mut image = storage.bytes("found");
        image.resize(content.len(), 0);
        assert!(image == content, "{}", spec.name);
    }
}

/// Until a checkpoint, only the journal has the latest sectors of a home disk for certain.
#[test]
fn sectors_of_the_home_disk_that_only_the_journal_has_are_rescued() {
    let (mut schemes, mut from_journal) = (0, 0);
    for spec in SCHEMES.iter().filter(|spec| !device(spec).disks.is_empty()) {
        let storage = in_memory(&device(spec));
        let store = open(&storage, OpenOptions::default());
        let (mut state, mut content) = (23, vec![0; store.sectors() as usize * 512]);
        for number in 0..400 {
            let request = Request { op: Op::Write, ..random_request(&mut state, store.sectors()) };
            serve(&store, &request, &mut content, number as u8);
        }
        store.flush().unwrap();
        let in_place = storage.bytes("disk.image");
        drop(store);
        storage.restart(Loss::All, 0);
        from_journal += usize::from(in_place != storage.bytes("disk.image"));
        for bit in [0, 65_536 * 8] {
            storage.flip("superblock", bit + 999);
        }
        let image = storage.open("image", Access::Create, false).unwrap();
        let found = rescue(Arc::clone(&storage) as Arc<dyn Storage>, &Parts::default(), image.as_ref()).unwrap();
        assert!(!found.is_state && found.unsearched.is_empty(), "{}: {found:?}", spec.name);
        let mut image = storage.bytes("image");
        image.resize(content.len(), 0);
        assert!(image == content, "{}", spec.name);
        schemes += 1;
    }
    assert!(schemes > 0 && from_journal > 0, "{from_journal} of {schemes}");
}

#[test]
fn holes_are_known_and_read_as_zeros() {
    for spec in SCHEMES {
        let storage = in_memory(&device(spec));
        let store = open(&storage, OpenOptions::default());
        store.write(10, &[7; 20 * 512], false).unwrap();
        store.trim(13, 2, false).unwrap();
        store.zero(20, 1, true).unwrap();
        let mut runs = Vec::new();
        let mut take = |sectors, extent| {
            runs.push((sectors, extent == Extent::Hole));
            ControlFlow::Continue(())
        };
        store.extents(5, 30, &mut take).unwrap();
        assert_eq!(
            runs,
            [(5, true), (3, false), (2, true), (5, false), (1, true), (9, false), (5, true)],
            "{}",
            spec.name
        );
        let mut bytes = vec![1; 30 * 512];
        store.read(5, &mut bytes).unwrap();
        let seen: Vec<u8> = bytes.chunks(512).map(|sector| sector[100]).collect();
        assert_eq!(&seen[..17], [0, 0, 0, 0, 0, 7, 7, 7, 0, 0, 7, 7, 7, 7, 7, 0, 7], "{}", spec.name);
        for (sector, sectors) in [(u64::MAX, 1), (store.sectors(), 1), (store.sectors() - 1, 2)] {
            assert_eq!(store.trim(sector, sectors, false), Err(IoError::OutOfRange));
            assert_eq!(store.read(sector, &mut vec![0; sectors as usize * 512]), Err(IoError::OutOfRange));
        }
        assert_eq!(store.write(0, &[0; 100], false), Err(IoError::OutOfRange));
    }
}

/// A page-mapped device with a capacity in bytes.
fn page_mapped(logical: u64) -> Device {
    let text = format!(
        "name = \"d\"\nscheme = \"pagemap\"\nlogical = {logical}\n[[region]]\nname = \"mlc\"\nchip = {{ base = \"chang-mlc\", \
         page_bytes = 4096, pages_per_block = 128 }}\ncapacity = \"107%\"\n"
    );
    Device::from_toml(&text).unwrap()
}

/// A device of 4 GiB has 10 MiB of tables.
#[test]
fn a_close_has_no_second_copy_of_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Directory::new(folder.path()));
    let options = CreateOptions { sparse: true, ..CreateOptions::default() };
    create(storage.as_ref(), &page_mapped(4 << 30), &options).unwrap();
    let open = || Store::open(Arc::clone(&storage), OpenOptions::default()).unwrap();
    let store = open();
    for sector in (0..store.sectors()).step_by(1 << 14) {
        store.write(sector, &[1; 4096], false).unwrap();
    }
    let closing = allocation_counter::measure(|| store.close().unwrap());
    assert!(closing.bytes_max < 4 << 20, "{closing:?}");
    drop(store);
    let store = open();
    let closing = allocation_counter::measure(|| store.close().unwrap());
    assert!(closing.bytes_max < 1 << 20, "{closing:?}");
}

#[test]
fn what_the_device_knows_of_itself_is_small() {
    let checkpoint_bytes = |logical: u64, written: u64| {
        let storage = in_memory(&page_mapped(logical));
        let store = open(&storage, OpenOptions::default());
        (0..written / 4096).for_each(|block| store.write(8 * block, &[1; 4096], false).unwrap());
        store.close().unwrap();
        drop(store);
        open(&storage, OpenOptions::default()).recovery().checkpoint_bytes
    };
    // A checkpoint is the whole state, with the tables as in memory, except parts that were never written.
    let blocks = 16 << 10;
    let bytes = checkpoint_bytes(blocks * 4096, blocks * 4096);
    assert!((7 * blocks..=12 * blocks).contains(&bytes), "{bytes} bytes for {blocks} blocks of 4 KiB");
    let bytes = checkpoint_bytes(16 * blocks * 4096, 4096);
    assert!(bytes < 4 * blocks, "{bytes} bytes for a device of {} blocks", 16 * blocks);
}

#[test]
fn a_dump_shows_what_is_there() {
    let storage = in_memory(&device(SCHEMES[0]));
    let store = open(&storage, OpenOptions::default());
    store.write(3, &[1; 1024], true).unwrap();
    let mut text = String::new();
    dump(storage.as_ref(), DumpOptions { journal: true, pages: true }, &mut |lines| {
        text += lines;
        Ok(())
    })
    .unwrap();
    for expected in
        ["generation 4", "batch 1 at byte 4096", "event 1: Request { op: Write, sector: 3", "sectors - - - 3 4 -"]
    {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    // Once the lines go nowhere, no more of the store is read.
    let mut shown = 0;
    let ended = dump(storage.as_ref(), DumpOptions { journal: true, pages: true }, &mut |_| {
        shown += 1;
        Err(std::io::ErrorKind::BrokenPipe.into())
    });
    assert!(ended.is_err() && shown == 1);
}
