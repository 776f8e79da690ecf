//! Extended headers: their negotiation, and what they allow and forbid.

use bimetal_live::Extent;
use bimetal_live::nbd::proto::*;
use bimetal_live::nbd::{Close, Export, MAX_PAYLOAD_BYTES};

use crate::client::*;
use crate::devices::{Call, Recorder, contents};

/// A device larger than any length field of compact requests: 512 TiB.
const SECTORS: u64 = 1 << 40;
const INVALID: u32 = NbdError::Inval as u32;
const PAYLOAD: u16 = NBD_CMD_FLAG_PAYLOAD_LEN;

fn structured() -> Vec<u8> {
    option(NBD_OPT_STRUCTURED_REPLY, &[])
}

fn extended() -> Vec<u8> {
    option(NBD_OPT_EXTENDED_HEADERS, &[])
}

fn context() -> Vec<u8> {
    option(NBD_OPT_SET_META_CONTEXT, &contexts(b"", &[b"base:allocation"]))
}

fn request(flags: u16, kind: u16, offset: u64, bytes: u64) -> Vec<u8> {
    Form::Extended.request(flags, kind, 7, offset, bytes)
}

/// The answer to requests after a negotiation of extended headers and the context.
fn ask(device: &Recorder, bytes: &[u8]) -> Vec<u8> {
    transmit(device, (Form::Extended, true), bytes)
}

/// Says `options`, of which the last is `NBD_OPT_INFO` or `NBD_OPT_GO`, to a new connection, and then a read with
/// extended headers. Returns the types of the replies to the other options, the transmission flags, and whether the read
/// was answered.
fn negotiated(options: &[Vec<u8>]) -> (Vec<u32>, u16, bool) {
    let (device, export) = (Recorder::new(SECTORS), Export::default());
    let mut talk = Talk::new(&device, &export, false);
    assert_eq!(talk.say(&[client_flags(), options.concat()].concat()), End::Waiting);
    let sent = talk.heard();
    let mut heard = Heard(&sent[18..]);
    let mut types = Vec::new();
    let flags = loop {
        let (_, kind, data) = heard.option_reply();
        match kind {
            NBD_REP_INFO => break u16::from_be_bytes([data[10], data[11]]),
            NBD_REP_META_CONTEXT => {}
            _ => types.push(kind),
        }
    };
    let is_extended = talk.say(&request(0, NBD_CMD_READ, 512, 512)) == End::Waiting;
    if is_extended {
        assert_eq!(Heard(&talk.heard()).data(Form::Extended, 7, 512, 512), contents(1, 512));
    }
    (types, flags, is_extended)
}

/// Options before `NBD_OPT_GO`, the types of their replies, and whether extended headers were agreed on.
type Case<'c> = (&'c [Vec<u8>], &'c [u32], bool);

#[test]
fn extended_headers_include_structured_replies_in_any_order() {
    let (ack, invalid, needed) = (NBD_REP_ACK, NBD_REP_ERR_INVALID, NBD_REP_ERR_EXT_HEADER_REQD);
    let go = || option(NBD_OPT_GO, &info(b"", &[]));
    let with_data = || option(NBD_OPT_EXTENDED_HEADERS, b"x");
    let structured_with_data = option(NBD_OPT_STRUCTURED_REPLY, b"x");
    let cases: [Case<'_>; 10] = [
        (&[extended()], &[ack], true),
        (&[extended(), extended()], &[ack, ack], true),
        (&[structured(), extended()], &[ack, ack], true),
        (&[extended(), structured()], &[ack, needed], true),
        (&[extended(), structured_with_data], &[ack, invalid], true),
        (&[extended(), with_data()], &[ack, invalid], true),
        (&[with_data()], &[invalid], false),
        (&[with_data(), structured()], &[invalid, ack], false),
        (&[structured(), context(), extended()], &[ack, ack, ack], true),
        (&[extended(), context()], &[ack, ack], true),
    ];
    for (options, types, is_extended) in cases {
        let (heard, flags, extended) = negotiated(&[options, &[go()]].concat());
        assert_eq!((&heard[..], extended), (types, is_extended), "{options:?}");
        let has_chunks = heard.contains(&ack);
        assert_eq!(flags & NBD_FLAG_SEND_DF != 0, has_chunks, "{options:?}");
        let filters = extended && options.contains(&context());
        assert_eq!(flags & NBD_FLAG_BLOCK_STATUS_PAYLOAD != 0, filters, "{options:?}");
    }
}

#[test]
fn the_old_way_to_choose_an_export_ends_it() {
    let device = Recorder::new(SECTORS);
    let bytes = [client_flags(), extended(), option(NBD_OPT_EXPORT_NAME, b"")].concat();
    let (sent, end) = converse(&device, &Export::default(), &bytes);
    assert_eq!(Heard(&sent).reply_types(), [NBD_REP_ACK]);
    assert!(matches!(end, End::Closed(Close::Violation(_))), "{end:?}");
    // An option that was refused has no effect.
    let refused = option(NBD_OPT_EXTENDED_HEADERS, b"x");
    let bytes = [client_flags(), refused, option(NBD_OPT_EXPORT_NAME, b"")].concat();
    assert_eq!(converse(&device, &Export::default(), &bytes).1, End::Waiting);
}

#[test]
fn a_context_stays_until_another_query() {
    let device = Recorder { extents: vec![(8, Extent::Hole)], ..Recorder::new(SECTORS) };
    let export = Export::default();
    let none = option(NBD_OPT_SET_META_CONTEXT, &contexts(b"", &[]));
    for (options, is_set) in [
        (vec![structured(), context(), extended()], true),
        (vec![extended(), context(), structured(), extended()], true),
        (vec![structured(), context(), extended(), none.clone()], false),
        (vec![structured(), context(), none, extended()], false),
        (vec![context(), extended()], false),
        (vec![extended()], false),
    ] {
        let mut talk = Talk::new(&device, &export, false);
        let go = option(NBD_OPT_GO, &info(b"", &[]));
        assert_eq!(talk.say(&[client_flags(), options.concat(), go].concat()), End::Waiting);
        talk.heard();
        talk.say(&request(0, NBD_CMD_BLOCK_STATUS, 0, 4096));
        let sent = talk.heard();
        if is_set {
            assert_eq!(Heard(&sent).extents(7), [(4096, 3)]);
        } else {
            assert_eq!(Heard(&sent).status(), (INVALID, 7));
        }
    }
}

#[test]
fn a_request_is_read_and_replies_are_written_to_the_bit() {
    let extents = vec![(1 << 33, Extent::Hole), (8, Extent::Allocated)];
    let device = Recorder { extents, ..Recorder::new(SECTORS) };
    let read = b"\x21\xe4\x1c\x71\0\0\0\0ABCDEFGH\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x02\0";
    let header = b"\x6e\x8a\x27\x8c\0\x01\0\x01ABCDEFGH\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x02\x08";
    let offset = b"\0\0\0\0\0\0\x02\0";
    assert_eq!(ask(&device, read), [&header[..], offset, &contents(1, 512)].concat());
    let status = b"\x21\xe4\x1c\x71\0\0\0\x07ABCDEFGH\0\0\0\0\0\0\x02\0\0\0\x10\0\0\0\0\0";
    let told = b"\x6e\x8a\x27\x8c\0\x01\0\x06ABCDEFGH\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\x28\
\0\0\0\x01\0\0\0\x02\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0";
    assert_eq!(ask(&device, status), told);
    let unaligned = b"\x21\xe4\x1c\x71\0\0\0\0ABCDEFGH\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x02\0";
    let error = b"\x6e\x8a\x27\x8c\0\x01\x80\x01ABCDEFGH\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\0\x21\
\0\0\0\x16\0\x1bnot a multiple of 512 bytes";
    assert_eq!(ask(&device, unaligned), error);
    // A chunk in the middle of a read repeats the offset of the request, and has its own.
    let device = bimetal_live::MemoryDevice::new(1024);
    bimetal_live::BlockDevice::write(&device, 128, &[5; 64 << 10], false).unwrap();
    let sent = transmit(&device, (Form::Extended, false), &request(0, NBD_CMD_READ, 0, 128 << 10));
    let mut heard = Heard(&sent);
    for (kind, from) in [(NBD_REPLY_TYPE_OFFSET_HOLE, 0), (NBD_REPLY_TYPE_OFFSET_DATA, 64 << 10)] {
        let Reply::Chunk { kind: heard, of, payload, .. } = heard.reply() else { panic!("a simple reply") };
        assert_eq!((heard, of, Heard(&payload).u64()), (kind, Some(0), from));
    }
}

#[test]
fn a_request_without_data_may_be_as_long_as_the_device() {
    let device = Recorder { extents: vec![(SECTORS, Extent::Hole)], ..Recorder::new(SECTORS) };
    let (bytes, sectors) = (SECTORS * 512, SECTORS);
    for (sent, call) in [
        (request(0, NBD_CMD_TRIM, 0, bytes), Call::Trim { sector: 0, sectors, fua: false }),
        (request(0, NBD_CMD_WRITE_ZEROES, 0, bytes), Call::Zero { sector: 0, sectors, fua: false }),
        (request(0, NBD_CMD_CACHE, 0, bytes), Call::Prefetch { sector: 0, sectors }),
    ] {
        assert_eq!(Heard(&ask(&device, &sent)).status(), (0, 7));
        assert_eq!(device.calls(), [call]);
    }
    for flags in [0, NBD_CMD_FLAG_REQ_ONE] {
        let sent = ask(&device, &request(flags, NBD_CMD_BLOCK_STATUS, 0, bytes));
        assert_eq!(Heard(&sent).extents(7), [(bytes, 3)], "one reply");
        assert_eq!(device.calls(), [Call::Extents { sector: 0, sectors }]);
    }
    for (offset, bytes) in [(0, bytes + 512), (512, bytes), (0, u64::MAX - 511), (512, u64::MAX - 511), (0, u64::MAX)] {
        for kind in [NBD_CMD_TRIM, NBD_CMD_CACHE, NBD_CMD_BLOCK_STATUS, NBD_CMD_READ] {
            assert_eq!(Heard(&ask(&device, &request(0, kind, offset, bytes))).status(), (INVALID, 7));
        }
    }
    assert_eq!(device.calls(), []);
}

#[test]
fn the_flag_decides_whether_data_follow() {
    let device = Recorder::new(SECTORS);
    let flush = Form::Extended.request(0, NBD_CMD_FLUSH, 8, 0, 0);
    // With the flag every command has data, even an unknown one, and they are not requests.
    let trap = Form::Extended.request(0, NBD_CMD_TRIM, 666, 0, 512).repeat(512);
    for kind in [0, 3, 4, 5, 6, 7, 8, u16::MAX] {
        for data in [&trap[..], &trap[..32], &[]] {
            let bytes = [&request(PAYLOAD, kind, 0, data.len() as u64), data, &flush].concat();
            let sent = ask(&device, &bytes);
            let mut heard = Heard(&sent);
            assert_eq!([heard.status(), heard.status()], [(INVALID, 7), (0, 8)], "command {kind}");
        }
    }
    assert!(device.calls().iter().all(|call| *call == Call::Flush));
    // A write has data in any case: QEMU does not set its flag.
    let (bytes, offset) = (trap.len() as u64, 512);
    let call = Call::Write { sector: 1, data: trap.clone(), fua: false };
    for flag in [0, PAYLOAD] {
        let sent = ask(&device, &[&request(flag, NBD_CMD_WRITE, offset, bytes), &trap[..], &flush].concat());
        let mut heard = Heard(&sent);
        assert_eq!([heard.status(), heard.status()], [(0, 7), (0, 8)]);
        assert_eq!(device.calls(), [call.clone(), Call::Flush]);
        let sent = ask(&device, &[&request(flag, NBD_CMD_WRITE, 1, bytes), &trap[..], &flush].concat());
        let mut heard = Heard(&sent);
        assert_eq!([heard.status(), heard.status()], [(INVALID, 7), (0, 8)]);
        assert_eq!(device.calls(), [Call::Flush]);
    }
    // The limit of data is the advertised one. A client that announces more is not waited for.
    let export = Export::default();
    for (flags, kind) in (0..9).map(|kind| (PAYLOAD, kind)).chain([(0, NBD_CMD_WRITE)]) {
        for bytes in [MAX_PAYLOAD_BYTES as u64 + 1, u64::MAX] {
            let mut talk = Talk::new(&device, &export, false);
            talk.say(&negotiate(Form::Extended, true));
            let end = talk.say(&request(flags, kind, 0, bytes));
            assert_eq!(matches!(end, End::Closed(Close::Violation(_))), kind != NBD_CMD_DISC, "{kind}");
        }
    }
    let most = vec![7; MAX_PAYLOAD_BYTES];
    assert_eq!(Heard(&ask(&device, &Form::Extended.write(0, 7, 0, &most))).status(), (0, 7));
}

#[test]
fn a_query_may_name_the_context() {
    let extents = vec![(8, Extent::Allocated), (SECTORS, Extent::Hole)];
    let device = Recorder { extents, ..Recorder::new(SECTORS) };
    let filtered = |flags: u16, offset: u64, bytes: u64, contexts: &[u32]| {
        let contexts: Vec<u8> = contexts.iter().flat_map(|context| context.to_be_bytes()).collect();
        let data = [&bytes.to_be_bytes()[..], &contexts].concat();
        [request(flags | PAYLOAD, NBD_CMD_BLOCK_STATUS, offset, data.len() as u64), data].concat()
    };
    let bytes = SECTORS * 512 - 512;
    let sent = ask(&device, &filtered(0, 512, bytes, &[1]));
    assert_eq!(Heard(&sent).extents(7), [(4096, 0), (bytes - 4096, 3)]);
    assert_eq!(device.calls(), [Call::Extents { sector: 1, sectors: SECTORS - 1 }]);
    let sent = ask(&device, &filtered(NBD_CMD_FLAG_REQ_ONE, 512, bytes, &[1]));
    assert_eq!(Heard(&sent).extents(7), [(4096, 0)]);
    device.calls();
    let refused = |agreed, query: Vec<u8>| {
        let flush = Form::Extended.request(0, NBD_CMD_FLUSH, 8, 0, 0);
        let sent = transmit(&device, agreed, &[query, flush].concat());
        let mut heard = Heard(&sent);
        assert_eq!([heard.status(), heard.status()], [(INVALID, 7), (0, 8)]);
        assert_eq!(device.calls(), [Call::Flush]);
    };
    let agreed = (Form::Extended, true);
    // Unknown, repeated and no contexts.
    for contexts in [&[0][..], &[2], &[u32::MAX], &[1, 1], &[1, 2], &[], &[1; 1000]] {
        refused(agreed, filtered(0, 0, 4096, contexts));
    }
    // The range is checked as without data.
    for (offset, bytes) in [(0, 0), (0, 1), (1, 512), (0, SECTORS * 512 + 512), (512, SECTORS * 512), (0, u64::MAX)] {
        refused(agreed, filtered(0, offset, bytes, &[1]));
    }
    // A part of a length or of a number, and no data.
    for bytes in [0, 1, 8, 11, 13] {
        let data = vec![0; bytes];
        refused(agreed, [request(PAYLOAD, NBD_CMD_BLOCK_STATUS, 0, bytes as u64), data].concat());
    }
    refused((Form::Extended, false), filtered(0, 0, 4096, &[1]));
}

#[test]
fn a_client_does_not_mix_compact_and_extended_messages() {
    let (device, export) = (Recorder::new(SECTORS), Export::default());
    for form in Form::ALL {
        for other in Form::ALL {
            let mut talk = Talk::new(&device, &export, false);
            talk.say(&negotiate(form, false));
            let end = talk.say(&other.request(0, NBD_CMD_FLUSH, 1, 0, 0).repeat(2));
            let understood = (form == Form::Extended) == (other == Form::Extended);
            let wrong = End::Closed(Close::Violation("a request has a wrong magic number"));
            assert_eq!(end, if understood { End::Waiting } else { wrong }, "{form:?} {other:?}");
        }
    }
    // The flag for data belongs to extended requests. A compact write with it still has its data.
    for form in [Form::Simple, Form::Structured] {
        let write = form.write(PAYLOAD, 7, 0, &form.request(0, NBD_CMD_TRIM, 666, 0, 512).repeat(512));
        let sent = transmit(&device, (form, false), &[write, form.request(0, NBD_CMD_FLUSH, 8, 0, 0)].concat());
        let mut heard = Heard(&sent);
        assert_eq!([heard.status(), heard.status()], [(INVALID, 7), (0, 8)]);
    }
}
