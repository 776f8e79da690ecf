//! A virtual machine as a client: the driver of its virtio disk, with all requests in one queue, as one processor of a guest makes them.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bimetal_core::part::random::{below, split_mix};
use bimetal_core::request::SECTOR_BYTES;
use bimetal_live::vhost_user::Driver;
use bimetal_live::vhost_user::virtio_blk::{VIRTIO_BLK_S_OK, VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::workload::{Requests, Workload};

/// Maximum time of a request.
const PATIENCE: Duration = Duration::from_secs(60);

/// The end of a measurement.
#[derive(Clone, Copy)]
pub(super) enum End {
    After(Duration),
    AtEndOfDisk,
}

/// Runs a workload over the first `disk_bytes` bytes of the disk at `socket`, on a processor if there is one for the client.
pub(super) fn run(
    socket: &Path,
    workload: &Workload,
    disk_bytes: u64,
    processor: Option<usize>,
    end: End,
) -> io::Result<Requests> {
    let make = || {
        if let Some(processor) = processor {
            let mut only = CpuSet::new();
            only.set(processor);
            sched_setaffinity(None, &only)?;
        }
        Machine::start(socket, workload, disk_bytes)?.run(end)
    };
    thread::scope(|scope| scope.spawn(make).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A machine with one request at a time in each of its places.
struct Machine<'w> {
    driver: Driver,
    workload: &'w Workload,
    disk_bytes: u64,
    places: Vec<Place>,
    random: u64,
    /// Requests made so far, without flushes.
    made: u64,
}

#[derive(Clone, Copy)]
struct Place {
    began: Instant,
    is_flushing: bool,
}

impl<'w> Machine<'w> {
    fn start(socket: &Path, workload: &'w Workload, disk_bytes: u64) -> io::Result<Self> {
        let places = workload.depth * workload.clients;
        let driver = Driver::connect(socket, places, workload.bytes, 0)?;
        let mut random = 1;
        let mut data = vec![0; workload.bytes as usize];
        for place in 0..places {
            data.chunks_mut(8).for_each(|word| word.copy_from_slice(&split_mix(&mut random).to_le_bytes()));
            driver.write_buffer(place, &data)?;
        }
        let idle = Place { began: Instant::now(), is_flushing: false };
        Ok(Self { driver, workload, disk_bytes, places: vec![idle; places.into()], random, made: 0 })
    }

    fn run(mut self, end: End) -> io::Result<Requests> {
        let began = Instant::now();
        let requests = self.disk_bytes / u64::from(self.workload.bytes);
        let is_over = |made: u64| match end {
            End::After(duration) => began.elapsed() >= duration,
            End::AtEndOfDisk => made >= requests,
        };
        let mut durations = Vec::new();
        let mut busy = self.workload.depth * self.workload.clients;
        for place in 0..busy {
            self.request(place)?;
        }
        while busy > 0 {
            let Some((place, status)) = self.driver.completed()? else {
                self.driver.announce()?;
                self.driver.wait(PATIENCE)?;
                continue;
            };
            if u32::from(status) != VIRTIO_BLK_S_OK {
                return Err(io::Error::other(format!("a request failed with status {status}")));
            }
            let Place { began, is_flushing } = self.places[usize::from(place)];
            if !is_flushing {
                durations.push(began.elapsed());
            }
            if self.workload.syncs && !is_flushing {
                self.places[usize::from(place)].is_flushing = true;
                self.driver.offer(place, VIRTIO_BLK_T_FLUSH, 0, 0)?;
            } else if is_over(self.made) {
                busy -= 1;
            } else {
                self.request(place)?;
            }
        }
        Ok(Requests::in_process(began.elapsed(), durations))
    }

    /// Makes the next request at a free place.
    fn request(&mut self, place: u16) -> io::Result<()> {
        let Workload { rw, bytes, .. } = *self.workload;
        let requests = self.disk_bytes / u64::from(bytes);
        let number = if rw.starts_with("rand") { below(&mut self.random, requests) } else { self.made % requests };
        self.made += 1;
        self.places[usize::from(place)] = Place { began: Instant::now(), is_flushing: false };
        let kind = if rw.ends_with("write") { VIRTIO_BLK_T_OUT } else { VIRTIO_BLK_T_IN };
        self.driver.offer(place, kind, number * u64::from(bytes) / SECTOR_BYTES, bytes)
    }
}
