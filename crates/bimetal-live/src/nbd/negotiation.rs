//! Fixed newstyle negotiation: from the greeting to the agreement on an export and its options.
//!
//! Before a client has completed it, nothing is opened and only a few KiB of buffers are used.

use super::buffer::Output;
use super::mode::Mode;
use super::proto::*;
use super::reply;
use super::{Export, Geometry, MAX_OPTION_BYTES, MAX_OPTIONS, MAX_PAYLOAD_BYTES};

/// Bytes of an option before its data.
const OPTION_HEADER_BYTES: usize = 16;
/// The only context for which a client can ask the status of blocks.
const BASE_ALLOCATION: &[u8] = b"base:allocation";
/// The number of this context in replies.
pub const BASE_ALLOCATION_ID: u32 = 1;
/// Block sizes, in bytes: the required and the preferred alignment of requests.
const BLOCK_BYTES_MIN: u32 = 512;
const BLOCK_BYTES_PREFERRED: u32 = 4096;

/// The agreement between a client and the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Form of requests and replies.
    pub mode: Mode,
    /// The client asked for `base:allocation`.
    pub allocation: bool,
}

/// State of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Not offered.
    Off,
    /// Required before any other option.
    Required,
    /// The connection is encrypted.
    Established,
}

/// Outcome of a step of the negotiation. `used` bytes of the input are consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The message at the head of the input is this long, and not complete.
    Incomplete(usize),
    /// An option was processed.
    Continue { used: usize },
    /// The reply that TLS may start was written.
    StartTls { used: usize },
    /// The negotiation has ended.
    Transmit { used: usize, agreement: Agreement },
    /// The client ends the session.
    Disconnect,
    /// The client broke the protocol, or sent a request for which the protocol has no error reply.
    Violation(&'static str),
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    ClientFlags,
    Options,
    /// Discards the data of an option that was too long.
    Skipping {
        option: u32,
        bytes: usize,
    },
}

/// The state of one negotiation.
#[derive(Debug)]
pub struct Negotiation {
    stage: Stage,
    tls: Tls,
    fixed: bool,
    no_zeroes: bool,
    options: u32,
    agreement: Agreement,
}

/// A received option with its data.
struct Choice<'i> {
    option: u32,
    data: &'i [u8],
}

impl Negotiation {
    /// A negotiation that begins with the greeting.
    pub fn new(tls: Tls, out: &mut Output) -> Self {
        out.put(&NBDMAGIC.to_be_bytes());
        out.put(&IHAVEOPT.to_be_bytes());
        out.put(&(NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES).to_be_bytes());
        Self {
            stage: Stage::ClientFlags,
            tls,
            fixed: false,
            no_zeroes: false,
            options: 0,
            agreement: Agreement::default(),
        }
    }

    /// Input is protected by TLS from now on. Earlier agreements were not authenticated, and are dropped.
    pub fn tls_established(&mut self) {
        self.tls = Tls::Established;
        self.agreement = Agreement::default();
    }

    /// Takes the next message from the head of `input`.
    pub fn advance(&mut self, input: &[u8], export: &Export, geometry: Geometry, out: &mut Output) -> Step {
        match self.stage {
            Stage::ClientFlags => self.client_flags(input),
            Stage::Skipping { option, bytes } => self.skip(option, bytes, input.len(), out),
            Stage::Options => {
                let Some((header, rest)) = input.split_first_chunk::<OPTION_HEADER_BYTES>() else {
                    return Step::Incomplete(OPTION_HEADER_BYTES);
                };
                if header[..8] != IHAVEOPT.to_be_bytes() {
                    return Step::Violation("an option has a wrong magic number");
                }
                let (option, bytes) = (u32_at(header, 8), u32_at(header, 12) as usize);
                self.options += 1;
                if self.options > MAX_OPTIONS {
                    return Step::Violation("too many options");
                }
                if bytes > MAX_OPTION_BYTES {
                    self.stage = Stage::Skipping { option, bytes };
                    return Step::Continue { used: OPTION_HEADER_BYTES };
                }
                let Some(data) = rest.get(..bytes) else {
                    self.options -= 1;
                    return Step::Incomplete(OPTION_HEADER_BYTES + bytes);
                };
                self.option(Choice { option, data }, export, geometry, out)
            }
        }
    }

    fn client_flags(&mut self, input: &[u8]) -> Step {
        let Some(flags) = input.first_chunk::<4>().map(|&flags| u32::from_be_bytes(flags)) else {
            return Step::Incomplete(4);
        };
        if flags & !(NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES) != 0 {
            return Step::Violation("unknown client flags");
        }
        self.fixed = flags & NBD_FLAG_C_FIXED_NEWSTYLE != 0;
        self.no_zeroes = flags & NBD_FLAG_C_NO_ZEROES != 0;
        self.stage = Stage::Options;
        Step::Continue { used: 4 }
    }

    fn skip(&mut self, option: u32, bytes: usize, received: usize, out: &mut Output) -> Step {
        if option == NBD_OPT_EXPORT_NAME {
            return Step::Violation("the name of the export is too long");
        }
        if received < bytes {
            if received == 0 {
                return Step::Incomplete(1);
            }
            self.stage = Stage::Skipping { option, bytes: bytes - received };
            return Step::Continue { used: received };
        }
        self.stage = Stage::Options;
        let (error, message) = match self.tls {
            Tls::Required => (NBD_REP_ERR_TLS_REQD, TLS_REQUIRED),
            Tls::Off | Tls::Established => (NBD_REP_ERR_TOO_BIG, "the option is too long"),
        };
        reply::option(out, option, error, &[message.as_bytes()]);
        Step::Continue { used: bytes }
    }

    fn option(&mut self, choice: Choice<'_>, export: &Export, geometry: Geometry, out: &mut Output) -> Step {
        let Choice { option, data } = choice;
        let used = OPTION_HEADER_BYTES + data.len();
        if !self.fixed && option != NBD_OPT_EXPORT_NAME {
            return Step::Violation("an option without fixed newstyle");
        }
        if option == NBD_OPT_ABORT {
            reply::option(out, option, NBD_REP_ACK, &[]);
            return Step::Disconnect;
        }
        if self.tls == Tls::Required && option != NBD_OPT_STARTTLS {
            if option == NBD_OPT_EXPORT_NAME {
                return Step::Violation("an export was chosen without TLS");
            }
            reply::option(out, option, NBD_REP_ERR_TLS_REQD, &[TLS_REQUIRED.as_bytes()]);
            return Step::Continue { used };
        }
        let done = match option {
            // Only `NBD_OPT_GO` ends a negotiation with extended headers.
            NBD_OPT_EXPORT_NAME if self.agreement.mode == Mode::Extended => {
                return Step::Violation("an export was chosen with EXPORT_NAME after extended headers");
            }
            NBD_OPT_EXPORT_NAME => return self.export_name(data, export, geometry, out),
            NBD_OPT_LIST => list(data, export, out),
            NBD_OPT_STARTTLS => match self.start_tls(data) {
                Ok(()) => {
                    reply::option(out, option, NBD_REP_ACK, &[]);
                    return Step::StartTls { used };
                }
                Err(error) => Err(error),
            },
            NBD_OPT_INFO | NBD_OPT_GO => self.info(&choice, export, geometry, out),
            NBD_OPT_STRUCTURED_REPLY => self.structured_reply(data),
            NBD_OPT_EXTENDED_HEADERS => self.extended_headers(data),
            NBD_OPT_LIST_META_CONTEXT => self.meta_context(&choice, export, out).map(|_| ()),
            NBD_OPT_SET_META_CONTEXT => {
                self.agreement.allocation = false;
                self.meta_context(&choice, export, out).map(|selected| self.agreement.allocation = selected)
            }
            _ => Err((NBD_REP_ERR_UNSUP, "the option is unknown")),
        };
        match done {
            Ok(()) => reply::option(out, option, NBD_REP_ACK, &[]),
            Err((error, message)) => reply::option(out, option, error, &[message.as_bytes()]),
        }
        if option == NBD_OPT_GO && done.is_ok() {
            return Step::Transmit { used, agreement: self.agreement };
        }
        Step::Continue { used }
    }

    fn export_name(&self, data: &[u8], export: &Export, geometry: Geometry, out: &mut Output) -> Step {
        if !export.answers_to(data) {
            return Step::Violation("no export of that name");
        }
        out.put(&geometry.bytes.to_be_bytes());
        out.put(&transmission_flags(geometry.read_only, self.agreement).to_be_bytes());
        if !self.no_zeroes {
            out.put(&[0; 124]);
        }
        Step::Transmit { used: OPTION_HEADER_BYTES + data.len(), agreement: self.agreement }
    }

    fn start_tls(&self, data: &[u8]) -> Result<(), Refused> {
        match self.tls {
            Tls::Established => Err((NBD_REP_ERR_INVALID, "TLS has started already")),
            _ if !data.is_empty() => Err(NO_DATA),
            Tls::Off => Err((NBD_REP_ERR_POLICY, "TLS is not set up here")),
            Tls::Required => Ok(()),
        }
    }

    fn structured_reply(&mut self, data: &[u8]) -> Result<(), Refused> {
        if !data.is_empty() {
            return Err(NO_DATA);
        }
        if self.agreement.mode == Mode::Extended {
            return Err((NBD_REP_ERR_EXT_HEADER_REQD, "extended headers were agreed on"));
        }
        self.agreement.mode = Mode::Structured;
        Ok(())
    }

    /// Agrees on extended headers. A context that was set before stays set.
    fn extended_headers(&mut self, data: &[u8]) -> Result<(), Refused> {
        if !data.is_empty() {
            return Err(NO_DATA);
        }
        self.agreement.mode = Mode::Extended;
        Ok(())
    }

    fn info(
        &self,
        &Choice { option, data }: &Choice<'_>,
        export: &Export,
        geometry: Geometry,
        out: &mut Output,
    ) -> Result<(), Refused> {
        let mut data = Fields(data);
        let name = data.string().ok_or(MALFORMED)?;
        let requests = data.u16().ok_or(MALFORMED)?;
        if data.0.len() != 2 * requests as usize {
            return Err(MALFORMED);
        }
        if !export.answers_to(name) {
            return Err(UNKNOWN_EXPORT);
        }
        let mut put = |info: u16, parts: [&[u8]; 2]| {
            reply::option(out, option, NBD_REP_INFO, &[&info.to_be_bytes(), parts[0], parts[1]]);
        };
        let flags = transmission_flags(geometry.read_only, self.agreement);
        put(NBD_INFO_EXPORT, [&geometry.bytes.to_be_bytes(), &flags.to_be_bytes()]);
        // Each kind of information is sent once, even if it was requested several times.
        let asked = |info: u16| data.0.chunks_exact(2).any(|request| request == info.to_be_bytes());
        if asked(NBD_INFO_NAME) {
            put(NBD_INFO_NAME, [export.name.as_bytes(), &[]]);
        }
        if asked(NBD_INFO_DESCRIPTION) && !export.description.is_empty() {
            put(NBD_INFO_DESCRIPTION, [export.description.as_bytes(), &[]]);
        }
        if asked(NBD_INFO_BLOCK_SIZE) {
            let mut sizes = [0; 12];
            sizes[..4].copy_from_slice(&BLOCK_BYTES_MIN.to_be_bytes());
            sizes[4..8].copy_from_slice(&BLOCK_BYTES_PREFERRED.to_be_bytes());
            sizes[8..].copy_from_slice(&(MAX_PAYLOAD_BYTES as u32).to_be_bytes());
            put(NBD_INFO_BLOCK_SIZE, [&sizes, &[]]);
        }
        Ok(())
    }

    /// Lists or sets contexts. Returns whether a supported one was requested.
    fn meta_context(
        &self,
        &Choice { option, data }: &Choice<'_>,
        export: &Export,
        out: &mut Output,
    ) -> Result<bool, Refused> {
        if !self.agreement.mode.has_chunks() {
            return Err((NBD_REP_ERR_INVALID, "contexts need structured replies or extended headers"));
        }
        let mut data = Fields(data);
        let name = data.string().ok_or(MALFORMED)?;
        let queries = data.u32().ok_or(MALFORMED)?;
        let list = option == NBD_OPT_LIST_META_CONTEXT;
        let mut found = list && queries == 0;
        for _ in 0..queries {
            let query = data.string().ok_or(MALFORMED)?;
            found |= query == BASE_ALLOCATION || list && query == b"base:";
        }
        if !data.0.is_empty() {
            return Err(MALFORMED);
        }
        if !export.answers_to(name) {
            return Err(UNKNOWN_EXPORT);
        }
        if found {
            let id = if list { 0 } else { BASE_ALLOCATION_ID };
            reply::option(out, option, NBD_REP_META_CONTEXT, &[&id.to_be_bytes(), BASE_ALLOCATION]);
        }
        Ok(found)
    }
}

/// An error of an option, and a message for the user.
type Refused = (u32, &'static str);

const NO_DATA: Refused = (NBD_REP_ERR_INVALID, "the option takes no data");
const MALFORMED: Refused = (NBD_REP_ERR_INVALID, "the data of the option are malformed");
const UNKNOWN_EXPORT: Refused = (NBD_REP_ERR_UNKNOWN, "no export of that name");
const TLS_REQUIRED: &str = "TLS must be started first";

fn list(data: &[u8], export: &Export, out: &mut Output) -> Result<(), Refused> {
    if !data.is_empty() {
        return Err(NO_DATA);
    }
    let name_bytes = (export.name.len() as u32).to_be_bytes();
    let parts: [&[u8]; 3] = [&name_bytes, export.name.as_bytes(), export.description.as_bytes()];
    reply::option(out, NBD_OPT_LIST, NBD_REP_SERVER, &parts);
    Ok(())
}

/// Transmission flags of the export.
fn transmission_flags(read_only: bool, agreement: Agreement) -> u16 {
    let always =
        NBD_FLAG_HAS_FLAGS | NBD_FLAG_SEND_FLUSH | NBD_FLAG_SEND_FUA | NBD_FLAG_CAN_MULTI_CONN | NBD_FLAG_SEND_CACHE;
    let writes = match read_only {
        true => NBD_FLAG_READ_ONLY,
        false => NBD_FLAG_SEND_TRIM | NBD_FLAG_SEND_WRITE_ZEROES | NBD_FLAG_SEND_FAST_ZERO,
    };
    let chunks = if agreement.mode.has_chunks() { NBD_FLAG_SEND_DF } else { 0 };
    let filters = agreement.mode == Mode::Extended && agreement.allocation;
    always | writes | chunks | if filters { NBD_FLAG_BLOCK_STATUS_PAYLOAD } else { 0 }
}

/// Reads the data of an option field by field; `None` if they end too early or a string is too long.
struct Fields<'i>(&'i [u8]);

impl<'i> Fields<'i> {
    fn take(&mut self, bytes: usize) -> Option<&'i [u8]> {
        let (field, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(field)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|field| u16::from_be_bytes([field[0], field[1]]))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|field| u32_at(field, 0))
    }

    fn string(&mut self) -> Option<&'i [u8]> {
        let bytes = self.u32()? as usize;
        if bytes > STRING_BYTES_MAX { None } else { self.take(bytes) }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
