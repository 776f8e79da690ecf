//! One connection without its socket: bytes in, bytes out.

use super::accept::Stop;
use super::buffer::{Input, Output};
use super::execute::{Replies, execute};
use super::negotiation::{Agreement, Negotiation, Step, Tls};
use super::reply::{Refusal, ReplyTo};
use super::transmission::{Command, Received, receive};
use super::{Export, Geometry, OUTPUT_BATCH_BYTES};
use crate::block_device::BlockDevice;

/// The next step for the owner of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the output, then receive more: the message at the head of the input has `message_bytes` bytes.
    Receive {
        /// Bytes of that message, as far as is known.
        message_bytes: usize,
    },
    /// Send the output, then continue: the output is long enough, or the next request takes a while.
    Send,
    /// The output is empty. Give it room for `bytes` bytes, the length of the next reply, then continue.
    Room {
        /// Bytes of the reply.
        bytes: usize,
    },
    /// Send the output, then start TLS; input that follows the request for TLS in plain text is discarded.
    StartTls,
    /// Send the output, then close.
    Close(Close),
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The client asked for it.
    Disconnect,
    /// The client broke the protocol.
    Violation(&'static str),
}

/// The protocol of a connection. It serves all complete messages of the input in order, and writes the replies directly
/// to the output.
pub struct Connection<'d> {
    device: &'d dyn BlockDevice,
    export: &'d Export,
    /// The state at the start of the connection. If the device changes later, it refuses requests itself.
    geometry: Geometry,
    phase: Phase,
    messages: u64,
    /// Requests refused since they were last taken.
    refused: u64,
    stop: Option<Stop>,
}

enum Phase {
    Negotiating(Negotiation),
    Transmitting(Agreement),
    /// The data of a refused request are still arriving.
    Discarding {
        agreement: Agreement,
        to: ReplyTo,
        refusal: Refusal,
        data: u64,
    },
    Closed(Close),
}

impl<'d> Connection<'d> {
    /// A connection that begins with the greeting. With `tls`, nothing else is sent before TLS has started.
    pub fn new(device: &'d dyn BlockDevice, export: &'d Export, tls: bool, out: &mut Output) -> Self {
        let tls = if tls { Tls::Required } else { Tls::Off };
        let geometry = Geometry::of(device, export);
        let phase = Phase::Negotiating(Negotiation::new(tls, out));
        Self { device, export, geometry, phase, messages: 0, refused: 0, stop: None }
    }

    /// Ends requests that take long when the server is to stop.
    #[must_use]
    pub fn until(self, stop: Stop) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Whether the negotiation is under way.
    pub fn negotiating(&self) -> bool {
        matches!(self.phase, Phase::Negotiating(_))
    }

    /// Whether the data of a refused request are still arriving.
    pub fn discarding(&self) -> bool {
        matches!(self.phase, Phase::Discarding { .. })
    }

    /// Requests completed or refused so far.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The number of requests refused since the last call, which the protocol forbids and the device did not see.
    pub fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// Input from now on is protected by TLS.
    pub fn tls_established(&mut self) {
        if let Phase::Negotiating(negotiation) = &mut self.phase {
            negotiation.tls_established();
        }
    }

    /// Serves the messages in `input`.
    pub fn advance(&mut self, input: &mut Input, out: &mut Output) -> Next {
        loop {
            if out.bytes().len() >= OUTPUT_BATCH_BYTES {
                return Next::Send;
            }
            let step = match self.phase {
                Phase::Negotiating(_) => self.negotiate(input, out),
                Phase::Transmitting(agreement) => self.transmit(agreement, input, out),
                Phase::Discarding { agreement, to, refusal, data } => {
                    let now = data.min(input.bytes().len() as u64);
                    input.consume(now as usize);
                    if now < data {
                        self.phase = Phase::Discarding { agreement, to, refusal, data: data - now };
                        Some(Next::Receive { message_bytes: 1 })
                    } else {
                        to.refusal(out, refusal);
                        self.messages += 1;
                        self.refused += 1;
                        self.phase = Phase::Transmitting(agreement);
                        None
                    }
                }
                Phase::Closed(close) => Some(Next::Close(close)),
            };
            if let Some(next) = step {
                return next;
            }
        }
    }

    fn negotiate(&mut self, input: &mut Input, out: &mut Output) -> Option<Next> {
        let Phase::Negotiating(negotiation) = &mut self.phase else { return None };
        match negotiation.advance(input.bytes(), self.export, self.geometry, out) {
            Step::Incomplete(message_bytes) => return Some(Next::Receive { message_bytes }),
            Step::Continue { used } => input.consume(used),
            Step::StartTls { used } => {
                input.consume(used);
                return Some(Next::StartTls);
            }
            Step::Transmit { used, agreement } => {
                input.consume(used);
                self.phase = Phase::Transmitting(agreement);
            }
            Step::Disconnect => self.phase = Phase::Closed(Close::Disconnect),
            Step::Violation(what) => self.phase = Phase::Closed(Close::Violation(what)),
        }
        None
    }

    fn transmit(&mut self, agreement: Agreement, input: &mut Input, out: &mut Output) -> Option<Next> {
        match receive(input.bytes(), agreement, self.geometry) {
            Received::Incomplete(message_bytes) => return Some(Next::Receive { message_bytes }),
            Received::Request { used, to, command } => {
                if command.waits() && !out.bytes().is_empty() {
                    return Some(Next::Send);
                }
                let bytes = command.reply_bytes(agreement.mode);
                if bytes > out.left() {
                    return Some(if out.bytes().is_empty() { Next::Room { bytes } } else { Next::Send });
                }
                let shared = match command {
                    Command::Write { data, .. } => Some(input.share(used - data.len()..used)),
                    _ => None,
                };
                execute(command, shared.as_ref(), self.device, self.stop.as_ref(), Replies { out, to });
                self.messages += 1;
                input.consume(used);
            }
            Received::Refused { used, to, refusal, data } => {
                input.consume(used);
                self.phase = Phase::Discarding { agreement, to, refusal, data };
            }
            Received::Disconnect => self.phase = Phase::Closed(Close::Disconnect),
            Received::Violation(what) => self.phase = Phase::Closed(Close::Violation(what)),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::mode::Mode;
    use super::super::proto::*;
    use super::*;
    use crate::MemoryDevice;

    fn request(mode: Mode, flags: u16, kind: u16, offset: u64, bytes: u64) -> Vec<u8> {
        let (magic, length) = match mode {
            Mode::Simple | Mode::Structured => (NBD_REQUEST_MAGIC, (bytes as u32).to_be_bytes().to_vec()),
            Mode::Extended => (NBD_EXTENDED_REQUEST_MAGIC, bytes.to_be_bytes().to_vec()),
        };
        let flags = [flags.to_be_bytes(), kind.to_be_bytes()].concat();
        [&magic.to_be_bytes()[..], &flags, &[0; 8], &offset.to_be_bytes(), &length].concat()
    }

    /// Requests of every kind, one refused, and a long write.
    fn round(mode: Mode) -> Vec<u8> {
        let request = |flags, kind, offset, bytes| request(mode, flags, kind, offset, bytes);
        let has_data = if mode == Mode::Extended { NBD_CMD_FLAG_PAYLOAD_LEN } else { 0 };
        let mut round = Vec::new();
        for at in 0..64 {
            round.extend(request((at % 2) | has_data, NBD_CMD_WRITE, 8192 * u64::from(at), 4096));
            round.extend([3; 4096]);
            round.extend(request(0, NBD_CMD_READ, 4096 * u64::from(at), 1 << (9 + at % 12)));
            round.extend(request(0, NBD_CMD_BLOCK_STATUS, 0, 1 << 20));
            round.extend(request(0, NBD_CMD_TRIM, 4096 * u64::from(at), 8192));
            round.extend(request(0, NBD_CMD_READ, 1, 1));
            round.extend(request(0, NBD_CMD_WRITE_ZEROES, 0, 4096));
            round.extend(request(0, NBD_CMD_FLUSH, 0, 0));
        }
        round.extend(request(has_data, NBD_CMD_WRITE, 0, 1 << 20));
        round.extend(vec![1; 1 << 20]);
        if mode == Mode::Extended {
            round.extend(request(NBD_CMD_FLAG_PAYLOAD_LEN, NBD_CMD_BLOCK_STATUS, 0, 12));
            round.extend([0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 1]);
        }
        round
    }

    #[test]
    fn a_stop_ends_zeros_that_are_written() {
        let (device, export) = (MemoryDevice::new(1 << 16), Export::default());
        let (mut input, mut output) = (Input::new(4096), Output::new(4096));
        let (stop, _woken) = Stop::new().unwrap();
        let mut connection = Connection::new(&device, &export, false, &mut output).until(stop.clone());
        connection.phase = Phase::Transmitting(Agreement { mode: Mode::Simple, allocation: false });
        let zeros = request(Mode::Simple, NBD_CMD_FLAG_NO_HOLE, NBD_CMD_WRITE_ZEROES, 0, 1 << 20);
        let mut answer = || {
            output.clear();
            input.room(zeros.len())[..zeros.len()].copy_from_slice(&zeros);
            input.received(zeros.len());
            connection.advance(&mut input, &mut output);
            output.bytes()[4..8].to_vec()
        };
        assert_eq!(answer(), 0_u32.to_be_bytes());
        stop.stop();
        assert_eq!(answer(), (NbdError::Shutdown as u32).to_be_bytes());
    }

    #[test]
    fn a_warm_connection_allocates_nothing() {
        for mode in [Mode::Simple, Mode::Structured, Mode::Extended] {
            let (device, export) = (MemoryDevice::new(1 << 16), Export::default());
            let (mut input, mut output) = (Input::new(4096), Output::new(4096));
            let mut connection = Connection::new(&device, &export, false, &mut output);
            connection.phase = Phase::Transmitting(Agreement { mode, allocation: true });
            output.clear();
            let round = round(mode);
            let mut serve = || {
                let (mut left, mut sent) = (&round[..], 0);
                loop {
                    let next = connection.advance(&mut input, &mut output);
                    sent += output.bytes().len();
                    output.clear();
                    match next {
                        Next::Receive { .. } if left.is_empty() => return sent,
                        Next::Receive { message_bytes } => {
                            let room = input.room(message_bytes);
                            let (now, later) = left.split_at(room.len().min(left.len()));
                            room[..now.len()].copy_from_slice(now);
                            input.received(now.len());
                            left = later;
                        }
                        Next::Room { bytes } => output.grow(bytes),
                        next => assert_eq!(next, Next::Send),
                    }
                }
            };
            assert!(serve() > 1 << 20);
            let allocated = allocation_counter::measure(|| assert!(serve() > 1 << 20));
            assert_eq!(allocated.count_total, 0);
        }
    }
}
