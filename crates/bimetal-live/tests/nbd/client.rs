//! The client's side of the protocol: encodes requests and parses replies.

use bimetal_live::BlockDevice;
use bimetal_live::nbd::proto::*;
use bimetal_live::nbd::{Close, Connection, Export, Input, Next, Output};

/// The client's flags: fixed newstyle, and no zeroes.
pub fn client_flags() -> Vec<u8> {
    (NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES).to_be_bytes().to_vec()
}

pub fn option(option: u32, data: &[u8]) -> Vec<u8> {
    [&IHAVEOPT.to_be_bytes()[..], &option.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data].concat()
}

pub fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text].concat()
}

/// The data of `NBD_OPT_INFO` and `NBD_OPT_GO`.
pub fn info(name: &[u8], requests: &[u16]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((requests.len() as u16).to_be_bytes());
    data.extend(requests.iter().flat_map(|request| request.to_be_bytes()));
    data
}

/// The data of `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`.
pub fn contexts(name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((queries.len() as u32).to_be_bytes());
    data.extend(queries.iter().flat_map(|query| string(query)));
    data
}

/// Form of the messages that a client negotiates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Simple,
    Structured,
    Extended,
}

impl Form {
    pub const ALL: [Self; 3] = [Self::Simple, Self::Structured, Self::Extended];

    /// The option with which it is negotiated.
    fn option(self) -> Vec<u8> {
        match self {
            Self::Simple => Vec::new(),
            Self::Structured => option(NBD_OPT_STRUCTURED_REPLY, &[]),
            Self::Extended => option(NBD_OPT_EXTENDED_HEADERS, &[]),
        }
    }

    /// A request, without data.
    pub fn request(self, flags: u16, kind: u16, cookie: u64, offset: u64, bytes: u64) -> Vec<u8> {
        let (magic, length) = match self {
            Self::Extended => (NBD_EXTENDED_REQUEST_MAGIC, bytes.to_be_bytes().to_vec()),
            _ => (NBD_REQUEST_MAGIC, u32::try_from(bytes).unwrap().to_be_bytes().to_vec()),
        };
        let flags = [flags.to_be_bytes(), kind.to_be_bytes()].concat();
        [&magic.to_be_bytes()[..], &flags, &cookie.to_be_bytes(), &offset.to_be_bytes(), &length].concat()
    }

    /// The flag of a write: extended requests announce their data.
    pub fn write_flag(self) -> u16 {
        if self == Self::Extended { NBD_CMD_FLAG_PAYLOAD_LEN } else { 0 }
    }

    pub fn write(self, flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
        let flags = flags | self.write_flag();
        [&self.request(flags, NBD_CMD_WRITE, cookie, offset, data.len() as u64)[..], data].concat()
    }
}

/// A complete negotiation, perhaps with `base:allocation`.
pub fn negotiate(form: Form, allocation: bool) -> Vec<u8> {
    let mut bytes = client_flags();
    bytes.extend(form.option());
    if allocation {
        bytes.extend(option(NBD_OPT_SET_META_CONTEXT, &contexts(b"", &[b"base:allocation"])));
    }
    bytes.extend(option(NBD_OPT_GO, &info(b"", &[])));
    bytes
}

/// A compact request, without data.
pub fn request(flags: u16, kind: u16, cookie: u64, offset: u64, bytes: u32) -> Vec<u8> {
    Form::Simple.request(flags, kind, cookie, offset, bytes.into())
}

/// A compact write.
pub fn write(flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    Form::Simple.write(flags, cookie, offset, data)
}

/// End of a conversation without a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The server waits for the client.
    Waiting,
    /// The server waits for the client to start TLS.
    StartTls,
    Closed(Close),
}

/// A connection with its buffers.
pub struct Talk<'d> {
    connection: Connection<'d>,
    input: Input,
    output: Output,
    /// All bytes that the server sent.
    pub sent: Vec<u8>,
    /// Number of sends.
    pub sends: usize,
}

impl<'d> Talk<'d> {
    pub fn new(device: &'d dyn BlockDevice, export: &'d Export, tls: bool) -> Self {
        let mut output = Output::new(64);
        let connection = Connection::new(device, export, tls, &mut output);
        Self { connection, input: Input::new(64), output, sent: Vec::new(), sends: 0 }
    }

    /// The client sends `bytes`.
    pub fn say(&mut self, mut bytes: &[u8]) -> End {
        loop {
            let next = self.connection.advance(&mut self.input, &mut self.output);
            if !self.output.bytes().is_empty() {
                self.sent.extend(self.output.bytes());
                self.sends += 1;
                self.output.clear();
            }
            match next {
                Next::Send => {}
                Next::Room { bytes } => {
                    assert!(bytes > 64, "there is room for such a reply");
                    self.output.grow(bytes);
                }
                Next::Receive { .. } if bytes.is_empty() => return End::Waiting,
                Next::Receive { message_bytes } => {
                    let room = self.input.room(message_bytes);
                    let now = room.len().min(bytes.len());
                    room[..now].copy_from_slice(&bytes[..now]);
                    self.input.received(now);
                    bytes = &bytes[now..];
                }
                Next::StartTls => {
                    assert!(bytes.is_empty() && self.input.bytes().is_empty(), "no input may be left before TLS");
                    self.connection.tls_established();
                    return End::StartTls;
                }
                Next::Close(close) => return End::Closed(close),
            }
        }
    }

    /// The bytes that the server sent since the last call.
    pub fn heard(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent)
    }
}

/// A conversation. Returns the bytes that the server sent after the greeting, and the end of the conversation.
pub fn converse(device: &dyn BlockDevice, export: &Export, bytes: &[u8]) -> (Vec<u8>, End) {
    let mut talk = Talk::new(device, export, false);
    let end = talk.say(bytes);
    (talk.heard()[18..].to_vec(), end)
}

/// A conversation in transmission. Returns the bytes that the server sent after the negotiation.
pub fn transmit(device: &dyn BlockDevice, (form, allocation): (Form, bool), bytes: &[u8]) -> Vec<u8> {
    let export = Export::default();
    let mut talk = Talk::new(device, &export, false);
    assert_eq!(talk.say(&negotiate(form, allocation)), End::Waiting);
    talk.heard();
    assert_eq!(talk.say(bytes), End::Waiting);
    talk.heard()
}

/// A reply of the transmission phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Simple {
        error: u32,
        cookie: u64,
    },
    /// An extended chunk repeats the offset of the request.
    Chunk {
        flags: u16,
        kind: u16,
        cookie: u64,
        of: Option<u64>,
        payload: Vec<u8>,
    },
}

/// Received bytes, parsed from the front.
pub struct Heard<'b>(pub &'b [u8]);

impl<'b> Heard<'b> {
    pub fn take(&mut self, bytes: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(bytes);
        self.0 = rest;
        taken
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    /// The reply to an option: the option, the type of the reply, its data.
    pub fn option_reply(&mut self) -> (u32, u32, &'b [u8]) {
        assert_eq!(self.u64(), NBD_REP_MAGIC);
        let (option, reply, bytes) = (self.u32(), self.u32(), self.u32());
        (option, reply, self.take(bytes as usize))
    }

    /// The types of all remaining replies to options.
    pub fn reply_types(&mut self) -> Vec<u32> {
        let mut types = Vec::new();
        while !self.0.is_empty() {
            types.push(self.option_reply().1);
        }
        types
    }

    /// A reply of the transmission phase; a simple one without its data.
    pub fn reply(&mut self) -> Reply {
        match self.u32() {
            NBD_SIMPLE_REPLY_MAGIC => Reply::Simple { error: self.u32(), cookie: self.u64() },
            NBD_STRUCTURED_REPLY_MAGIC => {
                let (flags, kind, cookie, bytes) = (self.u16(), self.u16(), self.u64(), self.u32());
                Reply::Chunk { flags, kind, cookie, of: None, payload: self.take(bytes as usize).to_vec() }
            }
            NBD_EXTENDED_REPLY_MAGIC => {
                let (flags, kind, cookie) = (self.u16(), self.u16(), self.u64());
                let (offset, bytes) = (self.u64(), self.u64());
                Reply::Chunk { flags, kind, cookie, of: Some(offset), payload: self.take(bytes as usize).to_vec() }
            }
            magic => panic!("a reply begins with {magic:#x}"),
        }
    }

    /// The error of a reply without data, 0 for success, and its cookie.
    pub fn status(&mut self) -> (u32, u64) {
        match self.reply() {
            Reply::Simple { error, cookie } => (error, cookie),
            Reply::Chunk { flags: NBD_REPLY_FLAG_DONE, kind: NBD_REPLY_TYPE_NONE, cookie, .. } => (0, cookie),
            Reply::Chunk { flags: NBD_REPLY_FLAG_DONE, kind: NBD_REPLY_TYPE_ERROR, cookie, payload, .. } => {
                let mut payload = Heard(&payload);
                let (error, message_bytes) = (payload.u32(), payload.u16());
                assert!(std::str::from_utf8(payload.take(message_bytes as usize)).is_ok_and(|text| !text.is_empty()));
                assert!(payload.0.is_empty());
                (error, cookie)
            }
            chunk => panic!("not a status: {chunk:?}"),
        }
    }

    /// The data of a successful read of `bytes` bytes at `offset`, joined from its chunks.
    pub fn data(&mut self, form: Form, cookie: u64, offset: u64, bytes: usize) -> Vec<u8> {
        if form == Form::Simple {
            assert_eq!(self.reply(), Reply::Simple { error: 0, cookie });
            return self.take(bytes).to_vec();
        }
        let repeated = (form == Form::Extended).then_some(offset);
        let (mut data, mut seen) = (vec![0xAA; bytes], 0);
        loop {
            let Reply::Chunk { flags, kind, cookie: for_cookie, of, payload } = self.reply() else {
                panic!("a simple reply")
            };
            assert_eq!((for_cookie, of), (cookie, repeated));
            let mut payload = Heard(&payload);
            match kind {
                NBD_REPLY_TYPE_NONE => assert!(payload.0.is_empty() && bytes == 0),
                NBD_REPLY_TYPE_OFFSET_DATA => {
                    let from = (payload.u64() - offset) as usize;
                    assert_eq!(from, seen, "in order, no gaps");
                    data[from..from + payload.0.len()].copy_from_slice(payload.0);
                    seen += payload.0.len();
                }
                NBD_REPLY_TYPE_OFFSET_HOLE => {
                    let (from, hole) = ((payload.u64() - offset) as usize, payload.u32() as usize);
                    assert_eq!(from, seen, "in order, no gaps");
                    assert!(payload.0.is_empty());
                    data[from..from + hole].fill(0);
                    seen += hole;
                }
                _ => panic!("a chunk of type {kind}"),
            }
            if flags == NBD_REPLY_FLAG_DONE {
                assert_eq!(seen, bytes);
                return data;
            }
            assert_eq!(flags, 0);
        }
    }

    /// The extents of a block status: their length in bytes, and their state.
    pub fn extents(&mut self, cookie: u64) -> Vec<(u64, u64)> {
        let Reply::Chunk { flags, kind, cookie: for_cookie, of, payload } = self.reply() else {
            panic!("a simple reply")
        };
        assert_eq!((flags, for_cookie), (NBD_REPLY_FLAG_DONE, cookie));
        let mut payload = Heard(&payload);
        assert_eq!(payload.u32(), 1, "the context");
        let mut extents = Vec::new();
        if of.is_none() {
            assert_eq!(kind, NBD_REPLY_TYPE_BLOCK_STATUS);
            while !payload.0.is_empty() {
                extents.push((payload.u32().into(), payload.u32().into()));
            }
        } else {
            assert_eq!(kind, NBD_REPLY_TYPE_BLOCK_STATUS_EXT);
            let count = payload.u32();
            while !payload.0.is_empty() {
                extents.push((payload.u64(), payload.u64()));
            }
            assert_eq!(extents.len(), count as usize);
        }
        extents
    }
}
