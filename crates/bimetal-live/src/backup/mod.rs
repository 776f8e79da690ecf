//! Backups of a device while it is used: its state at the moment at which the backup begins.
//!
//! The device is copied chunk by chunk. A write, trim or zeroing of a chunk that is not copied yet copies the chunk
//! first. Reads, and changes of copied chunks, do not wait. A backup begins between two changes, so it contains each
//! change completely or not at all.
//!
//! [`Backups`] belongs to a device. [`BackedUp`] wraps the device for all who change it. A [`Sink`] takes the copied
//! sectors. `wire` transfers a backup to another process.

pub mod wire;

use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use crate::block_device::{BlockDevice, Extent, IoError, Payload, SECTOR_BYTES};
use crate::store::read_range;

/// Sectors of a chunk, the unit of copying.
pub const CHUNK_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

/// Takes the copied sectors: each sector that holds data once, in any order.
pub trait Sink: Send {
    /// Takes sectors.
    ///
    /// # Errors
    /// The backup ends.
    fn take(&mut self, sector: u64, bytes: &[u8]) -> io::Result<()>;

    /// Records sectors that cannot be read.
    ///
    /// # Errors
    /// The backup ends.
    fn lose(&mut self, sector: u64, sectors: u64) -> io::Result<()>;

    /// Makes calls fail at once, for other threads: one may be under way. A sink that is never slow needs nothing.
    fn interrupter(&self) -> Interrupter {
        Box::new(|| {})
    }
}

/// Interrupts the calls of a [`Sink`].
pub type Interrupter = Box<dyn Fn() + Send + Sync>;

/// State of the chunks of a backup.
#[derive(Debug)]
struct Chunks {
    is_copied: Vec<bool>,
    /// Chunks that a thread copies now.
    underway: Vec<usize>,
    /// The backup has ended; no further chunks are copied.
    is_over: bool,
    failure: Option<io::Error>,
}

/// A backup.
struct Backup {
    source: Arc<dyn BlockDevice>,
    sink: Mutex<Box<dyn Sink>>,
    interrupt: Interrupter,
    chunks: Mutex<Chunks>,
    changed: Condvar,
}

impl Backup {
    fn new(source: Arc<dyn BlockDevice>, sink: Box<dyn Sink>) -> Self {
        let is_copied = vec![false; source.sectors().div_ceil(CHUNK_SECTORS) as usize];
        let chunks = Chunks { is_copied, underway: Vec::new(), is_over: false, failure: None };
        let interrupt = sink.interrupter();
        Self { source, sink: Mutex::new(sink), interrupt, chunks: Mutex::new(chunks), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies no further chunks. Nobody waits for the sink from now on.
    fn end(&self, why: io::Error) {
        let mut chunks = self.lock();
        chunks.is_over = true;
        chunks.failure.get_or_insert(why);
        drop(chunks);
        self.changed.notify_all();
        (self.interrupt)();
    }

    /// Makes sure that a chunk is copied, unless the backup is over.
    fn copy(&self, chunk: usize) {
        let is_settled = |chunks: &Chunks| chunks.is_over || chunks.is_copied[chunk];
        let waits = |chunks: &mut Chunks| !is_settled(chunks) && chunks.underway.contains(&chunk);
        let waited = self.changed.wait_while(self.lock(), waits);
        let mut chunks = waited.unwrap_or_else(PoisonError::into_inner);
        if is_settled(&chunks) {
            return;
        }
        chunks.underway.push(chunk);
        drop(chunks);
        let copied = self.hand_over(chunk as u64);
        let mut chunks = self.lock();
        chunks.underway.retain(|&other| other != chunk);
        match copied {
            // Once the backup is over, the sink gets no chunk. The backup must not look complete before its failure is known.
            Ok(()) => chunks.is_copied[chunk] = !chunks.is_over,
            Err(error) => {
                chunks.is_over = true;
                chunks.failure.get_or_insert(error);
            }
        }
        self.changed.notify_all();
    }

    fn hand_over(&self, chunk: u64) -> io::Result<()> {
        let first = chunk * CHUNK_SECTORS;
        let range = first..(first + CHUNK_SECTORS).min(self.source.sectors());
        // The sink may be slow: the chunk is read before the sink is locked.
        let mut runs = Vec::new();
        let (_, lost) = read_range(self.source.as_ref(), range, &mut |sector, bytes| {
            runs.push((sector, bytes.to_vec()));
            Ok(())
        })?;
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        if self.lock().is_over {
            return Ok(());
        }
        let taken = runs.iter().try_for_each(|(sector, bytes)| sink.take(*sector, bytes));
        let taken = taken.and_then(|()| lost.iter().try_for_each(|&(sector, sectors)| sink.lose(sector, sectors)));
        // Before the sink is free: a stalled one holds up nobody else.
        self.lock().is_over |= taken.is_err();
        taken
    }

    /// Copies all chunks that contain any of these sectors, which are about to be changed.
    fn preserve(&self, sector: u64, sectors: u64) {
        let end = sector.saturating_add(sectors).min(self.source.sectors());
        for chunk in sector / CHUNK_SECTORS..end.div_ceil(CHUNK_SECTORS) {
            self.copy(chunk as usize);
        }
    }
}

/// Why there is no backup any more.
const STOPPING: &str = "the server is stopping";

/// The backups of a device, one at a time.
pub struct Backups {
    source: Arc<dyn BlockDevice>,
    place: Mutex<Place>,
    /// Changes of the device hold its read lock.
    current: RwLock<Option<Arc<Backup>>>,
}

/// Whether a backup can begin.
enum Place {
    Free,
    Taken(Arc<Backup>),
    /// The server stops.
    Closed,
}

impl Backups {
    /// Backups of `source`, which may be changed through [`BackedUp`] only.
    pub fn new(source: Arc<dyn BlockDevice>) -> Self {
        Self { source, place: Mutex::new(Place::Free), current: RwLock::new(None) }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a backup of the device as it is now. It ends when it is dropped.
    ///
    /// # Errors
    /// Another backup is under way, or the server stops. The text says which.
    pub fn begin(&self, sink: Box<dyn Sink>) -> Result<Running<'_>, &'static str> {
        let mut place = self.place();
        match *place {
            Place::Free => {}
            Place::Taken(_) => {
                return Err("another backup of the store is under way; wait until that has ended");
            }
            Place::Closed => return Err(STOPPING),
        }
        let backup = Arc::new(Backup::new(Arc::clone(&self.source), sink));
        *place = Place::Taken(Arc::clone(&backup));
        drop(place);
        // Waits for changes that have begun.
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&backup));
        Ok(Running { backups: self, backup, next: 0 })
    }

    /// Ends the backup under way and permits no other one, because the server stops. Changes that wait for the
    /// backup go on. This waits for nothing.
    pub fn close(&self) {
        if let Place::Taken(backup) = std::mem::replace(&mut *self.place(), Place::Closed) {
            backup.end(io::Error::new(io::ErrorKind::Interrupted, STOPPING));
        }
    }

    /// Performs a change of sectors, after their chunks were copied to the backup.
    fn change<T>(&self, sector: u64, sectors: u64, change: impl FnOnce() -> T) -> T {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(backup) = &*current {
            backup.preserve(sector, sectors);
        }
        change()
    }
}

/// A backup under way.
pub struct Running<'b> {
    backups: &'b Backups,
    backup: Arc<Backup>,
    next: usize,
}

impl Running<'_> {
    /// Copies the next chunk that is not copied yet. Breaks when all are.
    ///
    /// # Errors
    /// The sink takes no more, or the device is being stopped.
    pub fn step(&mut self) -> io::Result<ControlFlow<()>> {
        let mut chunks = self.backup.lock();
        let count = chunks.is_copied.len();
        while self.next < count && chunks.is_copied[self.next] {
            self.next += 1;
        }
        if let Some(error) = chunks.failure.take() {
            return Err(error);
        }
        drop(chunks);
        if self.next == count {
            return Ok(ControlFlow::Break(()));
        }
        self.backup.copy(self.next);
        Ok(ControlFlow::Continue(()))
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.backup.lock().is_over = true;
        self.backup.changed.notify_all();
        *self.backups.current.write().unwrap_or_else(PoisonError::into_inner) = None;
        let place = &mut *self.backups.place();
        if matches!(place, Place::Taken(_)) {
            *place = Place::Free;
        }
    }
}

/// A device that may be changed while backups of it are made.
pub struct BackedUp {
    device: Arc<dyn BlockDevice>,
    backups: Arc<Backups>,
}

impl BackedUp {
    /// `device` is the source of `backups`, or a layer over it.
    pub fn new(device: Arc<dyn BlockDevice>, backups: Arc<Backups>) -> Self {
        Self { device, backups }
    }
}

impl BlockDevice for BackedUp {
    fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    fn read_only(&self) -> bool {
        self.device.read_only()
    }

    fn read(&self, sector: u64, out: &mut [u8]) -> Result<(), IoError> {
        self.device.read(sector, out)
    }

    fn write(&self, sector: u64, data: &[u8], fua: bool) -> Result<(), IoError> {
        self.backups.change(sector, data.len() as u64 / SECTOR_BYTES, || self.device.write(sector, data, fua))
    }

    fn write_shared(&self, sector: u64, data: &Payload, fua: bool) -> Result<(), IoError> {
        let sectors = data.bytes().len() as u64 / SECTOR_BYTES;
        self.backups.change(sector, sectors, || self.device.write_shared(sector, data, fua))
    }

    fn trim(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.backups.change(sector, sectors, || self.device.trim(sector, sectors, fua))
    }

    fn zero(&self, sector: u64, sectors: u64, fua: bool) -> Result<(), IoError> {
        self.backups.change(sector, sectors, || self.device.zero(sector, sectors, fua))
    }

    fn flush(&self) -> Result<(), IoError> {
        self.device.flush()
    }

    fn extents(
        &self,
        sector: u64,
        sectors: u64,
        visit: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>,
    ) -> Result<(), IoError> {
        self.device.extents(sector, sectors, visit)
    }

    fn settle(&self) {
        self.device.settle();
    }

    fn prefetch(&self, sector: u64, sectors: u64) -> Result<(), IoError> {
        self.device.prefetch(sector, sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    use bimetal_core::part::random::below;

    use crate::MemoryDevice;

    /// Eight chunks, and a part of one.
    const SECTORS: u64 = 8 * CHUNK_SECTORS + 100;

    /// Result of a backup: bytes, and the number of copies of each sector. It fails after a number of sectors.
    struct Brought {
        bytes: Vec<u8>,
        times: Vec<u8>,
        left: u64,
    }

    #[derive(Clone)]
    struct Image(Arc<Mutex<Brought>>);

    impl Image {
        fn new(most: u64) -> Self {
            let (bytes, times) = (vec![0; (SECTORS * 512) as usize], vec![0; SECTORS as usize]);
            Self(Arc::new(Mutex::new(Brought { bytes, times, left: most })))
        }
    }

    impl Sink for Image {
        fn take(&mut self, sector: u64, bytes: &[u8]) -> io::Result<()> {
            let image = &mut *self.0.lock().unwrap();
            image.left = image.left.checked_sub(bytes.len() as u64 / 512).ok_or(io::ErrorKind::BrokenPipe)?;
            image.bytes[sector as usize * 512..][..bytes.len()].copy_from_slice(bytes);
            image.times[sector as usize..][..bytes.len() / 512].iter_mut().for_each(|times| *times += 1);
            Ok(())
        }

        fn lose(&mut self, sector: u64, _: u64) -> io::Result<()> {
            panic!("sector {sector} can be read");
        }
    }

    fn device() -> (Arc<MemoryDevice>, Arc<Backups>) {
        let memory = Arc::new(MemoryDevice::new(SECTORS));
        (Arc::clone(&memory), Arc::new(Backups::new(memory)))
    }

    fn content(device: &dyn BlockDevice) -> Vec<u8> {
        let mut bytes = vec![0; (SECTORS * 512) as usize];
        device.read(0, &mut bytes).unwrap();
        bytes
    }

    /// A random change of up to two chunks.
    fn change(device: &dyn BlockDevice, state: &mut u64) {
        let most = if below(state, 4) == 0 { 2 * CHUNK_SECTORS } else { 40 };
        let sectors = 1 + below(state, most);
        let sector = below(state, SECTORS - sectors);
        match below(state, 5) {
            0 => device.trim(sector, sectors, false).unwrap(),
            1 => device.zero(sector, sectors, false).unwrap(),
            _ => device.write(sector, &vec![below(state, 256) as u8; (sectors * 512) as usize], false).unwrap(),
        }
    }

    #[test]
    fn a_backup_is_the_device_as_it_was_when_it_began() {
        for seed in 0..40 {
            let (memory, backups) = device();
            let used = BackedUp::new(Arc::clone(&memory) as _, Arc::clone(&backups));
            let mut state = seed;
            (0..30).for_each(|_| change(&used, &mut state));
            let (before, image) = (content(&used), Image::new(u64::MAX));
            let mut running = backups.begin(Box::new(image.clone())).unwrap();
            loop {
                // Sometimes most chunks are copied because they are changed.
                (0..below(&mut state, 6)).for_each(|_| change(&used, &mut state));
                if running.step().unwrap().is_break() {
                    break;
                }
            }
            drop(running);
            change(&used, &mut state);
            let Brought { bytes, times, .. } = &*image.0.lock().unwrap();
            assert!(*bytes == before, "seed {seed}");
            assert!(times.iter().all(|&times| times <= 1), "seed {seed}: a sector is copied once, and a hole never");
            assert!(before != content(&used), "seed {seed}: the device was changed meanwhile");
        }
    }

    #[test]
    fn there_is_one_at_a_time_and_one_that_fails_holds_nobody_up() {
        let (memory, backups) = device();
        let used = BackedUp::new(Arc::clone(&memory) as _, Arc::clone(&backups));
        used.write(0, &vec![1; (SECTORS * 512) as usize], false).unwrap();
        let mut running = backups.begin(Box::new(Image::new(CHUNK_SECTORS + 1))).unwrap();
        assert!(backups.begin(Box::new(Image::new(0))).is_err());
        assert!(running.step().unwrap().is_continue());
        used.write(3 * CHUNK_SECTORS, &[2; 512], false).unwrap();
        used.write(5 * CHUNK_SECTORS, &[2; 512], false).unwrap();
        assert_eq!(running.step().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        drop(running);
        used.write(SECTORS, &[2; 512], false).unwrap_err();
        let mut running = backups.begin(Box::new(Image::new(u64::MAX))).unwrap();
        used.write(SECTORS, &[2; 512], false).unwrap_err();
        used.trim(u64::MAX, u64::MAX, false).unwrap_err();
        while running.step().unwrap().is_continue() {}
    }

    /// Takes nothing, and fails after some time.
    struct Stalled(Arc<AtomicUsize>);

    impl Sink for Stalled {
        fn take(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(50));
            Err(io::ErrorKind::TimedOut.into())
        }

        fn lose(&mut self, _: u64, _: u64) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stalled_sink_is_tried_once_for_all_who_wait() {
        let (memory, backups) = device();
        let used = BackedUp::new(Arc::clone(&memory) as _, Arc::clone(&backups));
        used.write(0, &vec![1; (SECTORS * 512) as usize], false).unwrap();
        let tries = Arc::<AtomicUsize>::default();
        let running = backups.begin(Box::new(Stalled(Arc::clone(&tries)))).unwrap();
        thread::scope(|scope| {
            for chunk in 0..6 {
                let used = &used;
                scope.spawn(move || used.write(chunk * CHUNK_SECTORS, &[2; 512], false).unwrap());
            }
        });
        assert_eq!(tries.load(Ordering::Relaxed), 1);
        drop(running);
    }

    /// A thread waits for the sink while that fails for another one, which has not recorded the failure yet.
    #[test]
    fn a_chunk_that_the_sink_did_not_get_is_not_copied() {
        let (memory, _) = device();
        memory.write(0, &[1; 512], false).unwrap();
        let image = Image::new(u64::MAX);
        let backup = Backup::new(memory, Box::new(image.clone()));
        thread::scope(|scope| {
            let sink = backup.sink.lock().unwrap();
            let copying = scope.spawn(|| backup.copy(0));
            while backup.lock().underway.is_empty() {
                thread::yield_now();
            }
            backup.lock().is_over = true;
            drop(sink);
            copying.join().unwrap();
        });
        assert_eq!((image.0.lock().unwrap().times[0], backup.lock().is_copied[0]), (0, false));
    }

    /// Says when it is asked to take data, and waits until it is interrupted.
    struct Slow {
        asked: Sender<()>,
        ended: Receiver<()>,
        end: Sender<()>,
    }

    impl Sink for Slow {
        fn take(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
            self.asked.send(()).unwrap();
            self.ended.recv().unwrap();
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn lose(&mut self, _: u64, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn interrupter(&self) -> Interrupter {
            let end = self.end.clone();
            Box::new(move || end.send(()).unwrap())
        }
    }

    /// A trim of the whole device waits for a slow sink when the server stops.
    #[test]
    fn changes_do_not_wait_for_a_backup_once_the_server_stops() {
        let (memory, backups) = device();
        let used = BackedUp::new(Arc::clone(&memory) as _, Arc::clone(&backups));
        used.write(0, &vec![1; (SECTORS * 512) as usize], false).unwrap();
        let (asked, is_asked) = channel();
        let (end, ended) = channel();
        let mut running = backups.begin(Box::new(Slow { asked, ended, end })).unwrap();
        thread::scope(|scope| {
            let trimming = scope.spawn(|| used.trim(0, SECTORS, false).unwrap());
            is_asked.recv().unwrap();
            assert!(!trimming.is_finished());
            backups.close();
            trimming.join().unwrap();
        });
        assert!(is_asked.try_recv().is_err(), "no other chunk is copied");
        assert!(content(&used).iter().all(|&byte| byte == 0));
        assert_eq!(running.step().unwrap_err().to_string(), STOPPING);
        drop(running);
        assert_eq!(backups.begin(Box::new(Image::new(0))).err(), Some(STOPPING));
    }

    /// A number is written to one chunk, then to another, then with one request to the border between two.
    #[test]
    fn what_other_threads_write_meanwhile_is_there_in_order_or_not_at_all() {
        let (memory, backups) = device();
        let used = BackedUp::new(Arc::clone(&memory) as _, Arc::clone(&backups));
        let border = 3 * CHUNK_SECTORS - 1;
        let write = |number: u8| {
            used.write(7 * CHUNK_SECTORS, &[number; 512], false).unwrap();
            used.write(0, &[number; 512], false).unwrap();
            used.write(border, &[number; 1024], false).unwrap();
        };
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    (1..=200).for_each(&write);
                }
            });
            for _ in 0..50 {
                let image = Image::new(u64::MAX);
                let mut running = backups.begin(Box::new(image.clone())).unwrap();
                while running.step().unwrap().is_continue() {}
                drop(running);
                let bytes = &image.0.lock().unwrap().bytes;
                let at = |sector: u64| u32::from(bytes[sector as usize * 512]);
                let [first, second, third, fourth] = [7 * CHUNK_SECTORS, 0, border, border + 1].map(at);
                assert_eq!(third, fourth, "a request is there as a whole or not at all");
                let follows = |later: u32, earlier: u32| later == earlier || later == earlier % 200 + 1 || earlier == 0;
                assert!(follows(first, second) && follows(second, third), "{first}, {second}, {third}");
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}
