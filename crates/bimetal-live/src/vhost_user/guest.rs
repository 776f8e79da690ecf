//! A connected virtual machine: its queues, from descriptor chains to used entries.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use vhost::vhost_user::message::VhostUserProtocolFeatures;
use vhost_user_backend::{ShutdownHandle, VhostUserBackend, VringMutex, VringT};
use virtio_queue::{QueueOwnedT, QueueT};
use vm_memory::{GuestAddressSpace, GuestMemoryAtomic, GuestMemoryLoadGuard, GuestMemoryMmap};
use vmm_sys_util::epoll::EventSet;

use super::config::{self, QUEUE_ENTRIES, QUEUES};
use super::execute::{SERIAL_BYTES, Target, answer};
use super::gate::Gate;
use super::request::{Command, Refusal, Request, Segments, parse};
use super::write_cache::WriteCache;
use crate::block_device::BlockDevice;
use crate::requests::{self, Buffer, Jobs, QUEUE_THREADS_MAX, was_blocked};
use crate::store::Store;

pub type Memory = GuestMemoryAtomic<GuestMemoryMmap>;
type Vring = VringMutex<Memory>;

/// The event on which a queue thread registers its queues. Smaller numbers are those of queues and of the library.
pub const BEGIN_EVENT: u16 = QUEUES + 1;
/// The event that ends a queue thread.
pub const END_EVENT: u16 = QUEUES + 2;
/// Requests after which a queue thread takes requests from its other queues.
const TURN_REQUESTS: usize = 64;
/// Longest time for which a completed request waits for others, so that one interrupt tells the guest of all of them. An
/// interrupt takes longer than most requests.
const UNTOLD: Duration = Duration::from_micros(50);

/// Properties of the device for virtual machines.
pub struct Device {
    /// The storage of the sectors.
    pub device: Arc<dyn BlockDevice>,
    /// The serial number that guests see.
    pub serial: [u8; SERIAL_BYTES],
    /// Time for which a busy guest is polled before its thread sleeps.
    pub poll: Duration,
    /// Whether answers are delayed (`--pace`): queue threads then execute nothing themselves.
    pub is_paced: bool,
    /// Whether a guest that used the device before this server started may continue. After a kill it may not: unflushed
    /// writes are lost, and the guest relies on them.
    pub may_resume: AtomicBool,
    /// Whether the guest has turned its write cache off. A VMM that connects again does not repeat it.
    pub is_cache_off: AtomicBool,
}

impl Device {
    /// The device of a store, or a layer over it.
    pub fn of(store: &Store, device: Arc<dyn BlockDevice>, poll: Duration, is_paced: bool) -> Self {
        let serial = serial_of(store.number());
        let may_resume = store.recovery().was_closed.into();
        Self { device, serial, poll, is_paced, may_resume, is_cache_off: false.into() }
    }
}

/// The serial number of a store: digits of a hash, from which its own number does not follow. That number is in all
/// checksums of the store, and a guest that knew it could write sectors that look like parts of the journal.
fn serial_of(number: u64) -> [u8; SERIAL_BYTES] {
    let hash = Sha256::new().chain_update(b"serial number").chain_update(number.to_le_bytes()).finalize();
    let digits: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let mut serial = [0; SERIAL_BYTES];
    serial[..digits.len()].copy_from_slice(digits.as_bytes());
    serial
}

/// A connected virtual machine.
pub struct Guest {
    target: Arc<Device>,
    memory: Memory,
    jobs: Jobs<Job>,
    gates: Vec<Gate>,
    /// One for each queue thread.
    lanes: Vec<Mutex<Lane>>,
    /// All queues, once their threads have registered them.
    vrings: Mutex<Vec<Vring>>,
    begun: Condvar,
    cache: WriteCache,
    is_trusted: OnceLock<bool>,
    connection: OnceLock<ShutdownHandle>,
}

/// State of a queue thread: its buffer, the end of the last request that it executed, and whether the storage blocked it.
#[derive(Default)]
struct Lane {
    buffer: Buffer,
    served: Option<Instant>,
    is_blocking: bool,
    untold: Untold,
}

/// Completed requests of which the guest was not told: their number for each queue, and the time at which the first of
/// them was completed.
#[derive(Default)]
struct Untold {
    queues: Vec<(usize, Vring, usize)>,
    since: Option<Instant>,
}

/// A request that was taken from a queue.
struct Job {
    queue: usize,
    vring: Vring,
    memory: GuestMemoryLoadGuard<GuestMemoryMmap>,
    head: u16,
    request: Request,
}

impl Job {
    fn is_flush(&self) -> bool {
        matches!(self.request.command, Ok(Command::Block(requests::Command::Flush)))
    }

    fn data_bytes(&self) -> usize {
        match &self.request.command {
            Ok(Command::Block(command)) => command.data().map_or(0, Segments::bytes),
            Ok(Command::Identify { .. }) | Err(_) => 0,
        }
    }
}

/// Result of taking a request from a queue.
enum Taken {
    Job(Job),
    /// A chain without room for a status. It was returned to the guest.
    Malformed,
    /// No request.
    Nothing,
    /// The queue is stopped or inconsistent.
    Stopped,
}

impl Guest {
    pub fn new(target: Arc<Device>, memory: Memory) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from).min(QUEUE_THREADS_MAX);
        Self {
            target,
            memory,
            jobs: Jobs::default(),
            gates: (0..QUEUES).map(|_| Gate::default()).collect(),
            lanes: (0..threads).map(|_| Mutex::default()).collect(),
            vrings: Mutex::default(),
            begun: Condvar::new(),
            cache: WriteCache::default(),
            is_trusted: OnceLock::new(),
            connection: OnceLock::new(),
        }
    }

    /// The memory of the guest.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Whether guests may continue after a restart of the server.
    #[cfg(test)]
    pub fn may_resume(&self) -> &AtomicBool {
        &self.target.may_resume
    }

    /// Sets the connection to the VMM, which is closed if the guest is refused.
    pub fn connected(&self, connection: ShutdownHandle) {
        let connection = self.connection.get_or_init(|| connection);
        if self.is_refused() {
            connection.shutdown();
        }
    }

    /// Whether it is refused: it used the device before the server was killed.
    pub fn is_refused(&self) -> bool {
        self.is_trusted.get() == Some(&false)
    }

    /// Waits until all queues are known.
    pub fn wait_for_queues(&self) {
        let waited = self.begun.wait_while(self.queues(), |vrings| vrings.len() < QUEUES.into());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn queues(&self) -> MutexGuard<'_, Vec<Vring>> {
        self.vrings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes no more requests. The rest stay in the guest's queues.
    pub fn close(&self) {
        self.gates.iter().for_each(Gate::close);
    }

    /// Takes no more requests, and waits for those in flight.
    pub fn drain(&self) {
        self.close();
        self.gates.iter().for_each(Gate::wait);
    }

    /// Closes the connection to the VMM.
    pub fn disconnect(&self) {
        if let Some(connection) = self.connection.get() {
            connection.shutdown();
        }
    }

    /// Executes requests as a worker, until [`Guest::dismiss`].
    pub fn work(&self) {
        let (mut buffer, mut untold) = (Buffer::default(), Untold::default());
        self.jobs.work(|job| {
            // One flush is enough for all that wait. The writes that they cover have completed.
            let others = if job.is_flush() { self.jobs.take_slow(Job::is_flush) } else { VecDeque::new() };
            let done = self.execute(&job, &mut buffer);
            std::iter::once(&job).chain(&others).for_each(|job| self.answer(job, done, &mut untold));
            self.tell(&mut untold);
        });
    }

    /// Ends the workers.
    pub fn dismiss(&self) {
        self.jobs.close();
    }

    /// Serves the queue at `index` of a thread until it is empty. A busy guest is polled for its next request, because a wake-up takes
    /// longer than most requests.
    fn serve(&self, index: usize, thread: usize, vrings: &[Vring]) -> Result<(), virtio_queue::Error> {
        let (Some(vring), Some(lane)) = (vrings.get(index), self.lanes.get(thread)) else { return Ok(()) };
        let mut lane = lane.lock().unwrap_or_else(PoisonError::into_inner);
        let served = self.serve_queue((index, vring), thread, vrings, &mut lane);
        // A queue may stop while its requests wait for this thread. Nobody else is told of them.
        while let Some(job) = self.jobs.next_quick(lane.is_blocking) {
            self.perform(&job, &mut lane);
        }
        self.tell(&mut lane.untold);
        served
    }

    fn serve_queue(
        &self,
        (index, vring): (usize, &Vring),
        thread: usize,
        vrings: &[Vring],
        lane: &mut Lane,
    ) -> Result<(), virtio_queue::Error> {
        let queue = |index| thread + index * self.lanes.len();
        let poll = self.target.poll;
        let is_soon = |served: Option<Instant>| served.is_some_and(|served| served.elapsed() < poll);
        let polls = is_soon(lane.served);
        let mut requests = 0;
        loop {
            vring.disable_notification()?;
            loop {
                match self.take(queue(index), vring) {
                    Taken::Job(job) => self.hand_out(job),
                    Taken::Malformed => {}
                    Taken::Nothing => match self.jobs.next_quick(lane.is_blocking) {
                        Some(job) => {
                            self.perform(&job, lane);
                            requests += 1;
                            if requests % TURN_REQUESTS == 0 {
                                (0..).zip(vrings).for_each(|(index, vring)| self.take_all(queue(index), vring));
                            }
                        }
                        None if polls && is_soon(lane.served) => {
                            self.tell(&mut lane.untold);
                            thread::yield_now();
                        }
                        None => break,
                    },
                    Taken::Stopped => return Ok(()),
                }
            }
            self.tell(&mut lane.untold);
            if !vring.enable_notification()? {
                return Ok(());
            }
        }
    }

    /// Executes and answers a request as a queue thread.
    fn perform(&self, job: &Job, lane: &mut Lane) {
        let began = Instant::now();
        let done = self.execute(job, &mut lane.buffer);
        let ended = Instant::now();
        lane.served = Some(ended);
        lane.is_blocking = was_blocked(ended - began, job.data_bytes());
        self.answer(job, done, &mut lane.untold);
        let is_late = lane.untold.since.is_some_and(|since| ended - since >= UNTOLD);
        if lane.is_blocking || is_late {
            self.tell(&mut lane.untold);
        }
    }

    /// Takes all requests of a queue, at most `QUEUE_ENTRIES`.
    fn take_all(&self, queue: usize, vring: &Vring) {
        for _ in 0..QUEUE_ENTRIES {
            match self.take(queue, vring) {
                Taken::Job(job) => self.hand_out(job),
                Taken::Malformed => {}
                Taken::Nothing | Taken::Stopped => return,
            }
        }
    }

    /// Takes the next request from a queue.
    fn take(&self, queue: usize, vring: &Vring) -> Taken {
        let mut state = vring.get_mut();
        if !state.is_enabled() {
            return Taken::Stopped;
        }
        let memory = self.memory.memory();
        let entries = usize::from(state.get_queue().size());
        let Ok(mut available) = state.get_queue_mut().iter(memory.clone()) else { return Taken::Stopped };
        if !self.gates[queue].enter(entries) {
            return Taken::Stopped;
        }
        let Some(chain) = available.next() else {
            self.gates[queue].leave();
            return Taken::Nothing;
        };
        let head = chain.head_index();
        let request = parse(chain, &memory, self.target.device.sectors());
        drop(state);
        match request {
            Some(request) => Taken::Job(Job { queue, vring: vring.clone(), memory, head, request }),
            None => {
                let mut untold = Untold::default();
                self.put_back(queue, vring, head, 0, &mut untold);
                self.tell(&mut untold);
                Taken::Malformed
            }
        }
    }

    /// Whether the driver starts, with all queues at index 0. VMMs send all indices before they enable the first queue.
    fn is_new(&self) -> bool {
        self.queues().iter().all(|vring| vring.queue_next_avail() == 0)
    }

    /// Decides whether the guest may use the device, and how its cache begins.
    fn judge(&self) -> bool {
        let is_new = self.is_new();
        let is_trusted = self.target.may_resume.fetch_or(is_new, Ordering::SeqCst) || is_new;
        if is_trusted {
            self.cache.begin(&self.target.is_cache_off, is_new);
        } else {
            self.disconnect();
        }
        is_trusted
    }

    /// Whether each write must be durable when it completes.
    fn is_writethrough(&self) -> bool {
        self.cache.is_writethrough(&self.target.is_cache_off)
    }

    fn hand_out(&self, job: Job) {
        let is_quick = match &job.request.command {
            Ok(Command::Block(command)) => command.is_quick(self.is_writethrough()),
            Ok(Command::Identify { .. }) | Err(_) => true,
        };
        if is_quick && !self.target.is_paced {
            self.jobs.add_quick(job);
        } else {
            self.jobs.add_slow(job);
        }
    }

    fn execute(&self, job: &Job, buffer: &mut Buffer) -> Result<usize, Refusal> {
        let Device { device, serial, .. } = self.target.as_ref();
        let target = Target { device: device.as_ref(), serial, writethrough: self.is_writethrough() };
        target.execute(&job.request, &job.memory, buffer)
    }

    /// Returns a request to the guest. [`Guest::tell`] follows.
    fn answer(&self, job: &Job, done: Result<usize, Refusal>, untold: &mut Untold) {
        let written = answer(&job.request, &job.memory, done);
        self.put_back(job.queue, &job.vring, job.head, written, untold);
    }

    /// Returns a chain to the guest. [`Guest::tell`] follows.
    fn put_back(&self, queue: usize, vring: &Vring, head: u16, written: u32, untold: &mut Untold) {
        // Before the guest can find it: it may send another request at once, and must find room.
        self.gates[queue].completed();
        // A used ring outside guest memory has no reader.
        let _ = vring.get_mut().add_used(head, written);
        match untold.queues.iter_mut().find(|(number, ..)| *number == queue) {
            Some((.., requests)) => *requests += 1,
            None => untold.queues.push((queue, vring.clone(), 1)),
        }
        untold.since.get_or_insert_with(Instant::now);
    }

    /// Tells the guest of completed requests.
    fn tell(&self, untold: &mut Untold) {
        untold.since = None;
        for (queue, vring, requests) in untold.queues.drain(..) {
            let mut state = vring.get_mut();
            if state.needs_notification().unwrap_or(true) {
                let _ = state.signal_used_queue();
            }
            drop(state);
            // From here on the queue can be stopped.
            self.gates[queue].told(requests);
        }
    }
}

impl VhostUserBackend for Guest {
    type Bitmap = ();
    type Vring = Vring;

    fn num_queues(&self) -> usize {
        QUEUES.into()
    }

    fn max_queue_size(&self) -> usize {
        QUEUE_ENTRIES.into()
    }

    fn features(&self) -> u64 {
        config::features(self.target.device.read_only())
    }

    fn acked_features(&self, features: u64) {
        self.cache.negotiate(features);
    }

    fn protocol_features(&self) -> VhostUserProtocolFeatures {
        VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
            | VhostUserProtocolFeatures::RESET_DEVICE
    }

    fn reset_device(&self) {
        self.gates.iter().for_each(Gate::wait);
        self.cache.reset();
    }

    fn set_event_idx(&self, _: bool) {}

    fn get_config(&self, offset: u32, bytes: u32) -> Vec<u8> {
        let is_cache_read = (offset..offset.saturating_add(bytes)).contains(&config::WRITEBACK_AT);
        let writeback = is_cache_read && self.cache.read(&self.target.is_cache_off, self.is_new());
        config::read(self.target.device.as_ref(), writeback, offset, bytes)
    }

    fn set_config(&self, offset: u32, bytes: &[u8]) -> io::Result<()> {
        match (offset, bytes) {
            (config::WRITEBACK_AT, &[writeback @ (0 | 1)]) => {
                self.cache.set(&self.target.is_cache_off, writeback == 1);
                Ok(())
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn update_memory(&self, _: Memory) -> io::Result<()> {
        Ok(())
    }

    /// Queues are dealt to threads in turn.
    fn queues_per_thread(&self) -> Vec<u64> {
        let threads = self.lanes.len();
        let queues =
            |thread| (thread..QUEUES.into()).step_by(threads).fold(0, |bits: u64, queue: usize| bits | 1 << queue);
        (0..threads).map(queues).collect()
    }

    fn stop_vring(&self, queue: u32) -> io::Result<()> {
        if let Some(gate) = self.gates.get(queue as usize) {
            gate.wait();
        }
        Ok(())
    }

    fn handle_event(&self, event: u16, _: EventSet, vrings: &[Vring], thread: usize) -> io::Result<()> {
        match event {
            BEGIN_EVENT => {
                self.queues().extend_from_slice(vrings);
                self.begun.notify_all();
            }
            END_EVENT => return Err(io::ErrorKind::Interrupted.into()),
            _ if *self.is_trusted.get_or_init(|| self.judge()) => {
                if let Err(error) = self.serve(event.into(), thread, vrings) {
                    tracing::warn!(%error, "a queue of a virtual machine cannot be served");
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guests name disks by it, so it may not change: `hashlib.sha256(b"serial number" + number).hexdigest()[:16]`.
    #[test]
    fn a_serial_number_stays_and_is_not_the_number_of_the_store() {
        assert_eq!(&serial_of(1), b"8367451396b4b864\0\0\0\0");
        assert_ne!(serial_of(1), serial_of(2));
    }
}
