//! The queues of a disk: a thread for each, workers for all.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use io_uring::{opcode, types};
use libublk::io::{BufDesc, UblkIOCtx, UblkQueue};
use libublk::sys::{UBLK_IO_RES_ABORT, UBLK_IO_RES_OK};
use libublk::{UblkError, UblkIORes, UblkUringData};
use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::request::{KernelMemory, Request};
use crate::block_device::BlockDevice;
use crate::requests::{Buffer, Command, Jobs, was_blocked};

/// The server of a disk.
pub struct Server {
    device: Arc<dyn BlockDevice>,
    /// Whether answers are delayed (`--pace`): queue threads then execute nothing themselves.
    is_paced: bool,
    memory: KernelMemory,
    jobs: Jobs<Job>,
    lanes: Vec<Lane>,
}

/// A request that was taken from a queue.
#[derive(Debug)]
struct Job {
    queue: u16,
    tag: u16,
    request: Request,
}

/// Answers that other threads give to the requests of a queue, for its own thread.
#[derive(Debug)]
struct Lane {
    answers: Mutex<Vec<(u16, i32)>>,
    /// An eventfd, readable if there are answers.
    told: OwnedFd,
}

impl Lane {
    fn new() -> io::Result<Self> {
        let told = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { answers: Mutex::default(), told })
    }

    fn put(&self, tag: u16, answer: i32) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push((tag, answer));
        // It fails only if it is readable anyway.
        let _ = rustix::io::write(&self.told, &1_u64.to_ne_bytes());
    }

    fn take(&self) -> Vec<(u16, i32)> {
        // Read before the answers, so that a later one makes it readable again.
        let _ = rustix::io::read(&self.told, &mut [0; 8]);
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets the ring of this thread complete once there are answers.
    fn watch(&self, queue: &UblkQueue<'_>) -> Result<(), UblkError> {
        let poll = opcode::PollAdd::new(types::Fd(self.told.as_raw_fd()), PollFlags::IN.bits().into());
        queue.ublk_submit_sqe_sync(poll.build().user_data(UblkUringData::Target as u64))
    }
}

impl Server {
    /// Serves `device` to a disk with this number of queues, whose data are in `memory`.
    ///
    /// # Errors
    /// The system refuses a file.
    pub fn new(device: Arc<dyn BlockDevice>, is_paced: bool, memory: KernelMemory, queues: u16) -> io::Result<Self> {
        let lanes = (0..queues).map(|_| Lane::new()).collect::<Result<_, _>>()?;
        Ok(Self { device, is_paced, memory, jobs: Jobs::default(), lanes })
    }

    /// Executes requests as a worker, until [`Server::dismiss`].
    pub fn work(&self) {
        let mut buffer = Buffer::default();
        self.jobs.work(|job| {
            // One flush is enough for all that wait. The writes that they cover have completed.
            let is_flush = |job: &Job| job.request.command == Some(Command::Flush);
            let others = if is_flush(&job) { self.jobs.take_slow(is_flush) } else { VecDeque::new() };
            let answer = self.execute(&job, &mut buffer);
            for job in std::iter::once(&job).chain(&others) {
                self.lanes[usize::from(job.queue)].put(job.tag, answer);
            }
        });
    }

    /// Ends the workers.
    pub fn dismiss(&self) {
        self.jobs.close();
    }

    /// Serves a queue until the disk is stopped.
    ///
    /// # Errors
    /// The ring fails.
    pub fn serve(&self, queue: &UblkQueue<'_>) -> Result<(), UblkError> {
        let own = queue.get_qid();
        let lane = &self.lanes[usize::from(own)];
        let mut buffer = Buffer::default();
        let mut is_blocking = false;
        lane.watch(queue)?;
        loop {
            let job = self.jobs.next_quick(is_blocking);
            if let Some(job) = &job {
                let began = Instant::now();
                let answer = self.execute(job, &mut buffer);
                is_blocking = was_blocked(began.elapsed(), job.request.data_bytes());
                if job.queue == own {
                    complete(queue, job.tag, answer)?;
                } else {
                    self.lanes[usize::from(job.queue)].put(job.tag, answer);
                }
            }
            let mut done = Ok(());
            let arrived = |data: u64, entry: &io_uring::cqueue::Entry, _: bool| {
                let handled = if data & UblkUringData::Target as u64 != 0 {
                    lane.take()
                        .into_iter()
                        .try_for_each(|(tag, answer)| complete(queue, tag, answer))
                        .and_then(|()| lane.watch(queue))
                } else {
                    self.take(queue, UblkIOCtx::user_data_to_tag(data) as u16, entry.result());
                    Ok(())
                };
                if handled.is_err() {
                    done = handled;
                }
            };
            match queue.flush_and_wake_io_tasks(arrived, usize::from(job.is_none())) {
                Err(UblkError::QueueIsDown) => return Ok(()),
                // Signals may arrive at any thread.
                Err(UblkError::IOError(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                ended => drop(ended?),
            }
            done?;
        }
    }

    /// Takes a request that the kernel has announced by `result`.
    fn take(&self, queue: &UblkQueue<'_>, tag: u16, result: i32) {
        if result == UBLK_IO_RES_OK as i32 {
            let request = Request::of(queue.get_iod(tag), queue.get_qid(), tag);
            let is_quick = request.is_quick() && !self.is_paced;
            let job = Job { queue: queue.get_qid(), tag, request };
            if is_quick { self.jobs.add_quick(job) } else { self.jobs.add_slow(job) }
        } else if result != UBLK_IO_RES_ABORT {
            let error = io::Error::from_raw_os_error(-result);
            tracing::warn!(%error, queue = queue.get_qid(), tag, "the kernel takes no answer");
        }
    }

    fn execute(&self, job: &Job, buffer: &mut Buffer) -> i32 {
        job.request.execute(self.device.as_ref(), &self.memory, buffer)
    }
}

/// Answers a request of this thread's queue. The kernel hears it, and may announce the next request, when the ring is flushed.
fn complete(queue: &UblkQueue<'_>, tag: u16, answer: i32) -> Result<(), UblkError> {
    // The data are in the kernel already: no buffer is passed.
    queue.complete_io_cmd_unified(tag, BufDesc::Slice(&[]), Ok(UblkIORes::Result(answer)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, poll};
    use rustix::time::Timespec;

    fn is_told(lane: &Lane) -> bool {
        let mut wait = [PollFd::new(&lane.told, PollFlags::IN)];
        poll(&mut wait, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
    }

    #[test]
    fn a_queue_is_told_until_it_has_taken_the_answers() {
        let lane = Lane::new().unwrap();
        assert!(!is_told(&lane));
        lane.put(3, 4096);
        lane.put(1, -5);
        assert!(is_told(&lane));
        assert_eq!(lane.take(), [(3, 4096), (1, -5)]);
        assert!(!is_told(&lane) && lane.take().is_empty());
    }
}
