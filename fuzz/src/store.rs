//! Fuzzes the files of a store.
//!
//! The first byte of an input selects a prepared store. The second selects the kind of the edits and the operation on
//! the edited store. The other bytes are the edits. Damaged files must lead to an error, or to a device whose reads
//! return the written data or fail. Files with recomputed checksums may contain anything: no operation on them may
//! panic, run for ever or allocate unbounded memory.

mod edits;
mod files;
mod prepared;
mod seal;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Once};

use bimetal_core::part::random::{below, split_mix};
use bimetal_live::store::backing::{Access, Storage};
use bimetal_live::store::{DumpOptions, OpenOptions, Parts, Store, StoreError, check, dump, rescue};
use bimetal_live::{BlockDevice, IoError};

use edits::Input;
use files::{Files, IMAGE};
use prepared::{Prepared, SECTOR, content, is_version, version_of};

/// Limit of the memory allocated at one time, in bytes, for a store of less than one megabyte.
const MEMORY_MAX: u64 = 32 << 20;
/// Number of each opening of an edited store; its value does not matter.
const OPENING: u64 = 7;
/// Requests to a store that is open for writing.
const REQUESTS: usize = 12;

/// Bit of the second byte: all checksums are recomputed after the edits.
const SEALED: u8 = 1;
/// The other bits of this byte select one of these operations. Half of the values serve the store.
const ASKED: [Asked; 8] = [
    Asked::Serve { closes: false },
    Asked::Serve { closes: true },
    Asked::Serve { closes: false },
    Asked::Serve { closes: true },
    Asked::Read,
    Asked::Check,
    Asked::Rescue,
    Asked::Dump,
];

/// Operation on a store with edited files.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Open, read and write, then close or only flush, and open again.
    Serve {
        closes: bool,
    },
    /// Open read-only, and read.
    Read,
    Check,
    Rescue,
    Dump,
}

/// Edits the files of a prepared store and checks an operation on it.
pub fn store(data: &[u8]) {
    static HOOK: Once = Once::new();
    // Panics that the store catches are printed on one line: a backtrace takes memory, and libFuzzer's hook ends the
    // process. A panic that is not caught still ends it.
    HOOK.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
    let [number, how, edits @ ..] = data else { return };
    let prepared = prepared::store(*number);
    let files = prepared.files.clone();
    let mut input = Input(edits);
    let is_sealed = how & SEALED != 0;
    let edits = if is_sealed { edits::seal(prepared, &files, &mut input) } else { edits::damage(&files, &mut input) };
    let run = Expected { prepared, is_sealed, edits, random: u64::from(*how) };
    let (asked, mut answer) = (ASKED[usize::from(how >> 1) % ASKED.len()], Ok(()));
    // The measurement must end, so a panic is caught inside it and resumed later.
    let memory = allocation_counter::measure(|| answer = catch_unwind(AssertUnwindSafe(|| run.ask(&files, asked))));
    answer.unwrap_or_else(|panic| resume_unwind(panic));
    let complaint = files.complaint();
    assert!(complaint.is_none(), "{complaint:?}");
    assert!(memory.bytes_max < MEMORY_MAX, "{memory:?}");
}

/// Expected results of operations on a store.
struct Expected<'a> {
    prepared: &'a Prepared,
    is_sealed: bool,
    edits: usize,
    random: u64,
}

impl Expected<'_> {
    fn ask(mut self, files: &Files, asked: Asked) {
        let shared = Arc::new(files.share());
        match asked {
            Asked::Serve { closes } => self.serve(&shared, false, closes),
            Asked::Read => self.serve(&shared, true, false),
            Asked::Check => {
                let report = check(shared);
                assert!(self.edits > 0 || report.is_ok_and(|report| report.is_sound()), "an unedited store is damaged");
            }
            Asked::Rescue => self.rescue(files),
            Asked::Dump => {
                let dumped = dump(files, DumpOptions { journal: true, pages: true }, &mut |_| Ok(()));
                assert!(self.edits > 0 || dumped.is_ok(), "{dumped:?}");
            }
        }
    }

    /// Each rescued sector must have a version that was written once. No other bytes may be taken for its data.
    fn rescue(&self, files: &Files) {
        let image = files.open(IMAGE, Access::Create, false);
        let Ok(image) = image else { unreachable!("a file in memory") };
        let rescued = rescue(Arc::new(files.share()), &Parts::default(), image.as_ref());
        assert!(self.edits > 0 || rescued.as_ref().is_ok_and(|rescued| rescued.is_state), "{rescued:?}");
        if self.is_sealed || rescued.is_err() {
            return;
        }
        let bytes = files.with(IMAGE, |file| file.get(0, file.length()));
        for (bytes, sector) in bytes.chunks_exact(SECTOR).zip(0..) {
            assert!(is_version(bytes, sector, version_of(bytes)), "sector {sector} was rescued with wrong data");
        }
    }

    fn serve(&mut self, files: &Arc<Files>, read_only: bool, closes: bool) {
        let options = OpenOptions { read_only, opening: Some(OPENING), ..OpenOptions::default() };
        let open = || Store::open(Arc::clone(files) as Arc<dyn Storage>, options);
        let store = match open() {
            Ok(store) => store,
            // Checksums detect damage. Only files with recomputed checksums may make a scheme panic.
            Err(StoreError::Contradiction { what }) => return assert!(self.is_sealed, "{what}"),
            Err(error) => return assert!(self.edits > 0, "{error}"),
        };
        let mut versions = self.recovered(&store);
        self.read(&store, versions.as_deref());
        let mut seen = 0;
        store
            .extents(0, store.sectors(), &mut |sectors, _| {
                seen += sectors;
                ControlFlow::Continue(())
            })
            .ok();
        assert_eq!(seen, store.sectors());
        if read_only {
            return;
        }
        for _ in 0..REQUESTS {
            self.request(&store, versions.as_deref_mut());
        }
        self.read(&store, versions.as_deref());
        let closed = if closes { store.close() } else { store.flush() };
        let is_failed = store.read_only();
        assert_eq!(closed.is_err(), is_failed, "{closed:?}");
        let failure = store.status().failure;
        assert!(self.is_sealed || failure.is_none(), "the device has failed: {failure:?}");
        drop(store);
        match open() {
            Ok(store) if !is_failed => self.read(&store, versions.as_deref()),
            // After a failure the store has the state of the last commit.
            Ok(_) => {}
            Err(error) => assert!(self.is_sealed, "the store does not open again: {error}"),
        }
    }

    /// The versions of an opened store's sectors, which must be those of a commit. It is the last commit, unless damage
    /// in several places removed a batch of the journal and every trace of it.
    fn recovered(&self, store: &Store) -> Option<Vec<u64>> {
        if self.is_sealed && self.edits > 0 {
            return None;
        }
        let (commits, events) = (&self.prepared.commits, store.events());
        let commit = commits.iter().rfind(|commit| commit.0 == events);
        let Some((_, versions)) = commit else { panic!("no commit has the {events} recovered events") };
        let is_last = events == commits[commits.len() - 1].0;
        assert!(is_last || self.edits > 1, "only {events} events were recovered");
        // After an older commit, sectors may contain data that were written later.
        is_last.then(|| versions.clone())
    }

    /// Reads all sectors. A readable sector must have its known version or, if none is known, any version of this
    /// sector.
    fn read(&self, store: &Store, versions: Option<&[u64]>) {
        let mut bytes = vec![0; store.sectors() as usize * SECTOR];
        let is_whole = store.read(0, &mut bytes).is_ok();
        assert!(is_whole || self.edits > 0, "a sector cannot be read");
        for (bytes, sector) in bytes.chunks_exact_mut(SECTOR).zip(0..) {
            if !is_whole && store.read(sector, bytes).is_err() || self.is_sealed && self.edits > 0 {
                continue;
            }
            let version = versions.map_or_else(|| version_of(bytes), |versions| versions[sector as usize]);
            assert!(is_version(bytes, sector, version), "sector {sector}: version {version} is {:02x?}", &bytes[..8]);
        }
    }

    fn request(&mut self, store: &Store, versions: Option<&mut [u64]>) {
        let sectors = 1 + below(&mut self.random, 24).min(store.sectors() - 1);
        let sector = below(&mut self.random, store.sectors() - sectors + 1);
        let range = sector as usize..(sector + sectors) as usize;
        let version = 1000 + split_mix(&mut self.random) % 1000;
        let note = |version| versions.map_or((), |versions| versions[range].fill(version));
        let done = match below(&mut self.random, 8) {
            0 => store.trim(sector, sectors, false).map(|()| note(0)),
            1 => store.idle(4).map(|_| ()),
            2 => store.flush(),
            _ => store.write(sector, &content(sector, sectors, version), false).map(|()| note(version)),
        };
        match done {
            Ok(()) => {}
            Err(IoError::Io) => assert!(self.is_sealed && store.read_only(), "a request failed"),
            Err(error) => panic!("{error}"),
        }
    }
}
