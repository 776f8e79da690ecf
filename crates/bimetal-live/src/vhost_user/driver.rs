//! The other side: a virtual machine with the driver of a virtio-blk disk, for benchmarks and tests. It uses one queue of any
//! vhost-user-blk server.
//!
//! Requests have places. Each place has three descriptors, and a header, a status and a buffer in the shared memory, so that a request is
//! only written to its place and offered. The layout of the queue is that of split virtqueues (virtio standard, section 2.7).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use vhost::vhost_user::message::{VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use virtio_bindings::virtio_blk::{VIRTIO_BLK_F_FLUSH, VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_OUT};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VRING_DESC_F_NEXT, VRING_DESC_F_WRITE};
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion, MemoryRegionAddress,
};
use vmm_sys_util::epoll::{ControlOperation, Epoll, EpollEvent, EventSet};
use vmm_sys_util::eventfd::{EFD_CLOEXEC, EFD_NONBLOCK, EventFd};

const DESCRIPTOR_BYTES: u64 = 16;
const HEADER_BYTES: u64 = 16;
/// Header and status of a place.
const CONTROL_BYTES: u64 = 32;
/// Alignment of the parts of the memory.
const ALIGNMENT_BYTES: u64 = 4096;
/// A status that no server writes.
const NO_STATUS: u8 = 0xff;

/// A virtual machine that is connected to a vhost-user-blk server. Dropping it disconnects.
pub struct Driver {
    vmm: Frontend,
    memory: GuestMemoryMmap,
    layout: Layout,
    kick: EventFd,
    call: EventFd,
    /// Ready when `call` is.
    called: Epoll,
    /// Requests offered, and requests of which the server was told, modulo 2^16.
    offered: u16,
    announced: u16,
    /// Requests taken back by [`Driver::completed`], modulo 2^16.
    completed: u16,
}

/// Addresses in the shared memory.
#[derive(Clone, Copy)]
struct Layout {
    places: u16,
    entries: u16,
    available: u64,
    used: u64,
    control: u64,
    buffers: u64,
    buffer_bytes: u64,
    bytes: u64,
}

impl Layout {
    fn new(places: u16, buffer_bytes: u32) -> Self {
        let entries = (3 * places).next_power_of_two();
        let after = |at: u64, bytes: u64| (at + bytes).next_multiple_of(ALIGNMENT_BYTES);
        let available = after(0, DESCRIPTOR_BYTES * u64::from(entries));
        let used = after(available, 6 + 2 * u64::from(entries));
        let control = after(used, 6 + 8 * u64::from(entries));
        let buffers = after(control, CONTROL_BYTES * u64::from(places));
        let buffer_bytes = u64::from(buffer_bytes);
        let bytes = buffers + buffer_bytes * u64::from(places);
        Self { places, entries, available, used, control, buffers, buffer_bytes, bytes }
    }

    fn slot(&self, index: u16) -> u64 {
        u64::from(index % self.entries)
    }
}

fn other(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

impl Driver {
    /// Connects to the server at `socket`. The machine has `places` requests at a time, at most 10,000, with at most `buffer_bytes` bytes
    /// of data each. Its driver has already made `requests` requests, modulo 2^16: 0 for a machine that starts.
    ///
    /// # Errors
    /// There is no server, it lacks a feature, or the system refuses memory.
    pub fn connect(socket: &Path, places: u16, buffer_bytes: u32, requests: u16) -> io::Result<Self> {
        let layout = Layout::new(places, buffer_bytes);
        let file = File::from(memfd_create("bimetal-machine", MemfdFlags::CLOEXEC)?);
        file.set_len(layout.bytes)?;
        let range = (GuestAddress(0), layout.bytes as usize, Some(FileOffset::new(file, 0)));
        let memory = GuestMemoryMmap::from_ranges_with_files([range]).map_err(other)?;
        let mut vmm = Frontend::connect(socket, 1).map_err(other)?;
        negotiate(&mut vmm)?;
        let regions = memory.iter().map(VhostUserMemoryRegionInfo::from_guest_region);
        vmm.set_mem_table(&regions.collect::<Result<Vec<_>, _>>().map_err(other)?).map_err(other)?;
        let event = || EventFd::new(EFD_CLOEXEC | EFD_NONBLOCK);
        let (kick, call, called) = (event()?, event()?, Epoll::new()?);
        called.ctl(ControlOperation::Add, call.as_raw_fd(), EpollEvent::new(EventSet::IN, 0))?;
        let mut driver = Self {
            vmm,
            memory,
            layout,
            kick,
            call,
            called,
            offered: requests,
            announced: requests,
            completed: requests,
        };
        driver.start()?;
        Ok(driver)
    }

    /// Starts the queue, at the next request that the driver makes.
    ///
    /// # Errors
    /// The server refuses or has ended.
    pub fn start(&mut self) -> io::Result<()> {
        let Layout { entries, available, used, .. } = self.layout;
        for ring in [available, used] {
            self.store(ring + 2, self.offered, Ordering::Relaxed)?;
        }
        let host = |at: u64| {
            let region = self.memory.find_region(GuestAddress(0)).ok_or_else(|| other("no memory"))?;
            region.get_host_address(MemoryRegionAddress(at)).map(|address| address as u64).map_err(other)
        };
        let queue = VringConfigData {
            queue_max_size: entries,
            queue_size: entries,
            flags: 0,
            desc_table_addr: host(0)?,
            used_ring_addr: host(used)?,
            avail_ring_addr: host(available)?,
            log_addr: None,
        };
        self.vmm.set_vring_num(0, entries).map_err(other)?;
        self.vmm.set_vring_base(0, self.offered).map_err(other)?;
        self.vmm.set_vring_addr(0, &queue).map_err(other)?;
        self.vmm.set_vring_call(0, &self.call).map_err(other)?;
        self.vmm.set_vring_kick(0, &self.kick).map_err(other)?;
        self.vmm.set_vring_enable(0, true).map_err(other)
    }

    /// Its connection.
    pub fn vmm(&mut self) -> &mut Frontend {
        &mut self.vmm
    }

    /// Requests offered so far, modulo 2^16.
    pub fn requests(&self) -> u16 {
        self.offered
    }

    /// Writes data to the buffer of a place.
    ///
    /// # Errors
    /// More data than the buffer has room for.
    pub fn write_buffer(&self, place: u16, data: &[u8]) -> io::Result<()> {
        let at = self.buffer(place, data.len())?;
        self.memory.write_slice(data, at).map_err(other)
    }

    /// Reads data from the buffer of a place.
    ///
    /// # Errors
    /// More data than the buffer has.
    pub fn read_buffer(&self, place: u16, data: &mut [u8]) -> io::Result<()> {
        let at = self.buffer(place, data.len())?;
        self.memory.read_slice(data, at).map_err(other)
    }

    fn buffer(&self, place: u16, bytes: usize) -> io::Result<GuestAddress> {
        if bytes as u64 > self.layout.buffer_bytes || place >= self.layout.places {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        Ok(GuestAddress(self.layout.buffers + self.layout.buffer_bytes * u64::from(place)))
    }

    /// Offers a request of a kind (`VIRTIO_BLK_T_…`) with `bytes` bytes of the buffer of a free place. The server may begin with it before
    /// [`Driver::announce`].
    ///
    /// # Errors
    /// More data than the buffer has.
    pub fn offer(&mut self, place: u16, kind: u32, sector: u64, bytes: u32) -> io::Result<()> {
        let buffer = self.buffer(place, bytes as usize)?;
        let control = self.layout.control + CONTROL_BYTES * u64::from(place);
        let mut header = [0; CONTROL_BYTES as usize];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[8..HEADER_BYTES as usize].copy_from_slice(&sector.to_le_bytes());
        header[HEADER_BYTES as usize] = NO_STATUS;
        self.memory.write_slice(&header, GuestAddress(control)).map_err(other)?;
        let first = 3 * place;
        let (next, write) = (VRING_DESC_F_NEXT as u16, VRING_DESC_F_WRITE as u16);
        let to_server = matches!(kind, VIRTIO_BLK_T_OUT | VIRTIO_BLK_T_FLUSH);
        let data = if to_server { next } else { next | write };
        let after_header = if bytes == 0 { first + 2 } else { first + 1 };
        self.describe(first, control, HEADER_BYTES as u32, next, after_header)?;
        self.describe(first + 1, buffer.0, bytes, data, first + 2)?;
        self.describe(first + 2, control + HEADER_BYTES, 1, write, 0)?;
        let slot = self.layout.available + 4 + 2 * self.layout.slot(self.offered);
        self.store(slot, first, Ordering::Relaxed)?;
        self.offered = self.offered.wrapping_add(1);
        self.store(self.layout.available + 2, self.offered, Ordering::Release)
    }

    fn describe(&self, index: u16, at: u64, bytes: u32, flags: u16, next: u16) -> io::Result<()> {
        let mut raw = [0; DESCRIPTOR_BYTES as usize];
        raw[..8].copy_from_slice(&at.to_le_bytes());
        raw[8..12].copy_from_slice(&bytes.to_le_bytes());
        raw[12..14].copy_from_slice(&flags.to_le_bytes());
        raw[14..].copy_from_slice(&next.to_le_bytes());
        self.memory.write_slice(&raw, GuestAddress(DESCRIPTOR_BYTES * u64::from(index))).map_err(other)
    }

    /// Tells the server of the offered requests, if it asked to be told.
    ///
    /// # Errors
    /// The system refuses the signal.
    pub fn announce(&mut self) -> io::Result<()> {
        fence(Ordering::SeqCst);
        let event = self.load(self.layout.used + 4 + 8 * u64::from(self.layout.entries), Ordering::Relaxed)?;
        let passed = self.offered.wrapping_sub(event).wrapping_sub(1) < self.offered.wrapping_sub(self.announced);
        self.announced = self.offered;
        if passed { self.kick.write(1) } else { Ok(()) }
    }

    /// Takes the next completed request: its place and status (`VIRTIO_BLK_S_…`). `None` if there is none at present.
    ///
    /// # Errors
    /// The server returned a request that was not offered.
    pub fn completed(&mut self) -> io::Result<Option<(u16, u8)>> {
        if self.load(self.layout.used + 2, Ordering::Acquire)? == self.completed {
            return Ok(None);
        }
        let entry = self.layout.used + 4 + 8 * self.layout.slot(self.completed);
        let head = u32::from_le(self.memory.load(GuestAddress(entry), Ordering::Relaxed).map_err(other)?);
        if !head.is_multiple_of(3) || head / 3 >= self.layout.places.into() {
            return Err(other(format!("the server returned descriptor {head}, which begins no request")));
        }
        self.completed = self.completed.wrapping_add(1);
        let place = (head / 3) as u16;
        let status = self.layout.control + CONTROL_BYTES * u64::from(place) + HEADER_BYTES;
        Ok(Some((place, self.memory.read_obj(GuestAddress(status)).map_err(other)?)))
    }

    /// Sleeps until a request has completed.
    ///
    /// # Errors
    /// None completes within `patience`.
    pub fn wait(&mut self, patience: Duration) -> io::Result<()> {
        loop {
            // The server signals when it uses the entry of this index.
            self.store(
                self.layout.available + 4 + 2 * u64::from(self.layout.entries),
                self.completed,
                Ordering::Relaxed,
            )?;
            fence(Ordering::SeqCst);
            if self.load(self.layout.used + 2, Ordering::Acquire)? != self.completed {
                return Ok(());
            }
            let timeout_ms = patience.as_millis().try_into().unwrap_or(i32::MAX);
            match self.called.wait(timeout_ms, &mut [EpollEvent::default()]) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::TimedOut)),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Err(_) => {}
                Ok(_) => {
                    self.call.read()?;
                }
            }
        }
    }

    fn load(&self, at: u64, order: Ordering) -> io::Result<u16> {
        self.memory.load(GuestAddress(at), order).map(u16::from_le).map_err(other)
    }

    fn store(&self, at: u64, value: u16, order: Ordering) -> io::Result<()> {
        self.memory.store(value.to_le(), GuestAddress(at), order).map_err(other)
    }
}

/// Agrees on features with the server: all those that the driver uses, and no others.
fn negotiate(vmm: &mut Frontend) -> io::Result<()> {
    let bit = |feature: u32| 1 << feature;
    let protocol = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();
    let wanted = bit(VIRTIO_F_VERSION_1) | bit(VIRTIO_RING_F_EVENT_IDX) | bit(VIRTIO_BLK_F_FLUSH) | protocol;
    vmm.set_owner().map_err(other)?;
    let offered = vmm.get_features().map_err(other)?;
    if offered & wanted != wanted {
        return Err(other(format!(
            "the server lacks features of virtio: it has {offered:#x}, and not all of {wanted:#x}"
        )));
    }
    vmm.set_features(wanted).map_err(other)?;
    let offered = vmm.get_protocol_features().map_err(other)?;
    let wanted = VhostUserProtocolFeatures::CONFIG | VhostUserProtocolFeatures::MQ;
    if !offered.contains(wanted) {
        return Err(other(format!("the server lacks features of vhost-user: it has {offered:?}")));
    }
    vmm.set_protocol_features(wanted).map_err(other)
}
