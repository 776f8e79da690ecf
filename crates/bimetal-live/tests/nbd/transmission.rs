//! Transmission: every command, every error, byte by byte.

use bimetal_live::nbd::proto::*;
use bimetal_live::nbd::{Close, Connection, Export, Input, MAX_PAYLOAD_BYTES, Next, Output};
use bimetal_live::{BlockDevice, Extent, IoError, MemoryDevice};
use proptest::prelude::*;

use crate::client::*;
use crate::devices::{Call, Recorder, contents};

/// Forms of the messages, and whether the client chose `base:allocation`.
const SIMPLE: (Form, bool) = (Form::Simple, false);
const STRUCTURED: (Form, bool) = (Form::Structured, true);
const EXTENDED: (Form, bool) = (Form::Extended, true);
const ALL: [(Form, bool); 3] = [SIMPLE, STRUCTURED, EXTENDED];
const FUA: u16 = NBD_CMD_FLAG_FUA;
/// A device larger than any length field.
const SECTORS: u64 = 1 << 30;

/// The error code of a request that must not reach the device.
fn refused(device: &Recorder, agreed: (Form, bool), request: &[u8]) -> u32 {
    let sent = transmit(device, agreed, request);
    assert_eq!(device.calls(), [], "it must not reach the device");
    let mut heard = Heard(&sent);
    // Chunks have a message.
    assert_eq!(matches!(Heard(&sent).reply(), Reply::Chunk { .. }), agreed.0 != Form::Simple);
    let (error, cookie) = heard.status();
    assert_eq!((cookie, heard.0), (7, &[][..]));
    error
}

#[test]
fn a_request_is_read_and_a_reply_written_to_the_bit() {
    let device = Recorder::new(SECTORS);
    let bytes = b"\x25\x60\x95\x13\0\0\0\0ABCDEFGH\0\0\0\0\0\0\x02\0\0\0\x02\0";
    assert_eq!(transmit(&device, SIMPLE, bytes), [b"\x67\x44\x66\x98\0\0\0\0ABCDEFGH", &contents(1, 512)[..]].concat());
    assert_eq!(device.calls(), [Call::Read { sector: 1, bytes: 512 }]);
    let header = b"\x66\x8e\x33\xef\0\x01\0\x01ABCDEFGH\0\0\x02\x08\0\0\0\0\0\0\x02\0";
    assert_eq!(transmit(&device, STRUCTURED, bytes), [&header[..], &contents(1, 512)].concat());
    let bytes = b"\x25\x60\x95\x13\0\0\0\x01ABCDEFGH\0\0\0\0\0\0\x02\x01\0\0\x02\0";
    let message = b"not a multiple of 512 bytes";
    let error = [b"\x66\x8e\x33\xef\0\x01\x80\x01ABCDEFGH\0\0\0\x21\0\0\0\x16\0\x1b", &message[..]].concat();
    assert_eq!(transmit(&device, STRUCTURED, &[&bytes[..], &[0; 512]].concat()), error);
    assert_eq!(transmit(&device, SIMPLE, &[&bytes[..], &[0; 512]].concat()), b"\x67\x44\x66\x98\0\0\0\x16ABCDEFGH");
}

#[test]
fn every_command_is_one_request_of_the_device() {
    let device = Recorder { extents: vec![(8, Extent::Allocated)], ..Recorder::new(SECTORS) };
    let data: Vec<u8> = (0..1024_u32).map(|byte| byte as u8).collect();
    let long = u64::from(u32::MAX - 511);
    let sectors = long / 512;
    for agreed in ALL {
        let form = agreed.0;
        let request = |flags, kind, offset, bytes| form.request(flags, kind, 7, offset, bytes);
        let fast = FUA | NBD_CMD_FLAG_FAST_ZERO;
        let cases = [
            (form.write(0, 7, 512, &data), Call::Write { sector: 1, data: data.clone(), fua: false }),
            (form.write(FUA, 7, 512, &data), Call::Write { sector: 1, data: data.clone(), fua: true }),
            (request(0, NBD_CMD_FLUSH, 0, 0), Call::Flush),
            (request(FUA, NBD_CMD_FLUSH, 0, 0), Call::Flush),
            (request(0, NBD_CMD_TRIM, 1024, long), Call::Trim { sector: 2, sectors, fua: false }),
            (request(FUA, NBD_CMD_TRIM, 1024, 512), Call::Trim { sector: 2, sectors: 1, fua: true }),
            (request(0, NBD_CMD_WRITE_ZEROES, 1024, long), Call::Zero { sector: 2, sectors, fua: false }),
            (request(fast, NBD_CMD_WRITE_ZEROES, 1024, 512), Call::Zero { sector: 2, sectors: 1, fua: true }),
            (request(0, NBD_CMD_CACHE, 512, long), Call::Prefetch { sector: 1, sectors }),
        ];
        for (bytes, call) in &cases {
            let sent = transmit(&device, agreed, bytes);
            let offset = &bytes[16..24];
            let expected = match form {
                Form::Extended => [&b"\x6e\x8a\x27\x8c\0\x01\0\0\0\0\0\0\0\0\0\x07"[..], offset, &[0; 8]].concat(),
                _ => b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\x07".to_vec(),
            };
            assert_eq!(sent, expected, "{call:?}");
            assert_eq!(device.calls(), std::slice::from_ref(call));
        }
        let bytes = 128 << 10;
        let sent = transmit(&device, agreed, &request(FUA, NBD_CMD_READ, 512, bytes as u64));
        assert_eq!(Heard(&sent).data(form, 7, 512, bytes), contents(1, bytes));
        assert_eq!(device.calls(), [Call::Read { sector: 1, bytes }]);
    }
    for agreed in [STRUCTURED, EXTENDED] {
        let sent = transmit(&device, agreed, &agreed.0.request(0, NBD_CMD_BLOCK_STATUS, 7, 512, long));
        assert_eq!(Heard(&sent).extents(7), [(4096, 0)]);
        assert_eq!(device.calls(), [Call::Extents { sector: 1, sectors }]);
    }
}

#[test]
fn nothing_is_done_about_nothing() {
    let device = Recorder::new(SECTORS);
    for agreed in ALL {
        for kind in [NBD_CMD_READ, NBD_CMD_WRITE, NBD_CMD_TRIM, NBD_CMD_CACHE, NBD_CMD_WRITE_ZEROES] {
            let flags = if kind == NBD_CMD_WRITE { FUA | agreed.0.write_flag() } else { FUA };
            let sent = transmit(&device, agreed, &agreed.0.request(flags, kind, 7, SECTORS * 512, 0));
            assert_eq!(Heard(&sent).status(), (0, 7));
        }
    }
    assert_eq!(device.calls(), []);
    assert_eq!(refused(&device, STRUCTURED, &request(0, NBD_CMD_BLOCK_STATUS, 7, 0, 0)), NbdError::Inval as u32);
}

/// Requests that are refused: flags, command, offset, length, and the error.
fn refusals(form: Form) -> Vec<(u16, u16, u64, u64, NbdError)> {
    use NbdError::{Inval, NoSpc, NotSup};
    let end = SECTORS * 512;
    let (df, no_hole, one, fast) =
        (NBD_CMD_FLAG_DF, NBD_CMD_FLAG_NO_HOLE, NBD_CMD_FLAG_REQ_ONE, NBD_CMD_FLAG_FAST_ZERO);
    let (payload, writes) = (MAX_PAYLOAD_BYTES as u64, form.write_flag());
    let mut cases = vec![
        (0, NBD_CMD_FLUSH, 512, 0, Inval),
        (0, NBD_CMD_FLUSH, 0, 512, Inval),
        (0, NBD_CMD_READ, 0, payload + 512, Inval),
        (0, NBD_CMD_READ, 0, u32::MAX.into(), Inval),
        (no_hole | fast, NBD_CMD_WRITE_ZEROES, 0, 4096, NotSup),
        (0, 8, 0, 0, Inval),
        (0, 99, 0, 512, Inval),
        (0, u16::MAX, 0, 512, Inval),
    ];
    if form != Form::Extended {
        cases.push((0, NBD_CMD_WRITE, 0, payload + 512, Inval));
    }
    // Beyond the end, across it, with an overflow of the sum; and not whole sectors.
    for (flags, kind, beyond) in [
        (0, NBD_CMD_READ, Inval),
        (writes, NBD_CMD_WRITE, NoSpc),
        (0, NBD_CMD_TRIM, Inval),
        (0, NBD_CMD_CACHE, Inval),
        (0, NBD_CMD_WRITE_ZEROES, NoSpc),
        (0, NBD_CMD_BLOCK_STATUS, Inval),
    ] {
        for (offset, bytes) in [(end, 512), (end - 512, 1024), (u64::MAX - 511, 512), (u64::MAX - 511, 1024)] {
            cases.push((flags, kind, offset, bytes, beyond));
        }
        for (offset, bytes) in [(1, 512), (511, 512), (0, 1), (0, 513), (end - 1, 1), (u64::MAX, 1)] {
            cases.push((flags, kind, offset, bytes, Inval));
        }
    }
    // Flags that the command does not have, or not with these data.
    for (kind, has) in [
        (NBD_CMD_READ, df),
        (NBD_CMD_WRITE, writes),
        (NBD_CMD_FLUSH, 0),
        (NBD_CMD_TRIM, 0),
        (NBD_CMD_CACHE, 0),
        (NBD_CMD_WRITE_ZEROES, no_hole | fast),
        (NBD_CMD_BLOCK_STATUS, one),
    ] {
        let bytes = if kind == NBD_CMD_FLUSH { 0 } else { 512 };
        let needed = if kind == NBD_CMD_WRITE { writes } else { 0 };
        for flag in (1..16).map(|bit| 1 << bit).filter(|flag| has & flag == 0) {
            cases.push((flag | needed, kind, 0, bytes, Inval));
            cases.push((flag | needed | FUA, kind, 0, bytes, Inval));
        }
    }
    cases
}

#[test]
fn what_cannot_be_done_is_refused_with_the_error_of_the_protocol() {
    use NbdError::{Inval, Perm};
    let df = NBD_CMD_FLAG_DF;
    let device = Recorder::new(SECTORS);
    for agreed in ALL {
        for (flags, kind, offset, bytes, error) in refusals(agreed.0) {
            let mut sent = agreed.0.request(flags, kind, 7, offset, bytes);
            let has_flag = agreed.0 == Form::Extended && flags & NBD_CMD_FLAG_PAYLOAD_LEN != 0;
            if has_flag || kind == NBD_CMD_WRITE {
                sent.resize(sent.len() + bytes as usize, 0x5A);
            }
            let case = format!("flags {flags:#x} of command {kind} at {offset} for {bytes}, {agreed:?}");
            assert_eq!(refused(&device, agreed, &sent), error as u32, "{case}");
        }
    }
    // Features that were not agreed on.
    assert_eq!(refused(&device, SIMPLE, &request(df, NBD_CMD_READ, 7, 0, 512)), Inval as u32);
    assert_eq!(refused(&device, SIMPLE, &request(0, NBD_CMD_BLOCK_STATUS, 7, 0, 512)), Inval as u32);
    for form in [Form::Structured, Form::Extended] {
        let status = form.request(0, NBD_CMD_BLOCK_STATUS, 7, 0, 512);
        assert_eq!(refused(&device, (form, false), &status), Inval as u32);
    }
    let read_only = Recorder { read_only: true, ..Recorder::new(SECTORS) };
    for agreed in ALL {
        for kind in [NBD_CMD_TRIM, NBD_CMD_WRITE_ZEROES] {
            assert_eq!(refused(&read_only, agreed, &agreed.0.request(0, kind, 7, 0, 512)), Perm as u32);
        }
        assert_eq!(refused(&read_only, agreed, &agreed.0.write(0, 7, 0, &[0; 512])), Perm as u32);
    }
}

#[test]
fn what_the_device_says_is_what_the_client_hears() {
    for (answer, error) in [
        (IoError::Io, NbdError::Io),
        (IoError::ReadOnly, NbdError::Perm),
        (IoError::NoSpace, NbdError::NoSpc),
        (IoError::OutOfRange, NbdError::Inval),
        (IoError::Shutdown, NbdError::Shutdown),
    ] {
        let device = Recorder { answer: Err(answer), extents: vec![(1, Extent::Hole)], ..Recorder::new(SECTORS) };
        for agreed in ALL {
            for kind in 0..8 {
                let bytes = if kind == NBD_CMD_FLUSH { 0 } else { 512 };
                let kinds = match kind {
                    NBD_CMD_DISC => continue,
                    NBD_CMD_BLOCK_STATUS if !agreed.1 => continue,
                    NBD_CMD_WRITE => agreed.0.write(0, 7, 0, &[1; 512]),
                    _ => agreed.0.request(0, kind, 7, 0, bytes),
                };
                // Nothing read before the error is sent, and the connection continues.
                let sent = transmit(&device, agreed, &[kinds.clone(), kinds].concat());
                let mut heard = Heard(&sent);
                assert_eq!((heard.status(), heard.status()), ((error as u32, 7), (error as u32, 7)));
                assert_eq!((heard.0, device.calls().len()), (&[][..], 2));
            }
        }
    }
}

#[test]
fn data_of_a_refused_write_are_not_requests() {
    let device = Recorder::new(SECTORS);
    for agreed in ALL {
        let trap = agreed.0.request(0, NBD_CMD_TRIM, 666, 0, 512).repeat(1000);
        let disc = agreed.0.request(0, NBD_CMD_DISC, 666, 0, 0).repeat(1000);
        for data in [&trap, &disc] {
            for (flags, offset) in [(0, 1), (0, u64::MAX), (1 << 9, 0)] {
                let mut bytes = agreed.0.write(flags, 1, offset, data);
                bytes.extend(agreed.0.request(0, NBD_CMD_FLUSH, 2, 0, 0));
                let sent = transmit(&device, agreed, &bytes);
                let mut heard = Heard(&sent);
                assert_eq!(heard.status().1, 1);
                assert_eq!(heard.status(), (0, 2));
                assert_eq!(device.calls(), [Call::Flush]);
            }
        }
    }
    // The error follows the data, of any length.
    let export = Export::default();
    let mut talk = Talk::new(&device, &export, false);
    talk.say(&negotiate(Form::Simple, false));
    talk.heard();
    assert_eq!(talk.say(&request(0, NBD_CMD_WRITE, 3, 0, u32::MAX)), End::Waiting);
    let part = vec![0; 1 << 20];
    for _ in 0..4095 {
        assert_eq!((talk.say(&part), talk.heard().len()), (End::Waiting, 0));
    }
    assert_eq!((talk.say(&part[1..]), talk.heard().len()), (End::Waiting, 16));
}

#[test]
fn zeros_without_a_hole_are_written() {
    let device = Recorder::new(SECTORS);
    let sectors = (1 << 20) / 512 + 1;
    for (flags, fua) in [(0, false), (FUA, true)] {
        let bytes = request(flags | NBD_CMD_FLAG_NO_HOLE, NBD_CMD_WRITE_ZEROES, 7, 4096, sectors * 512);
        assert_eq!(Heard(&transmit(&device, SIMPLE, &bytes)).status(), (0, 7));
        let mut calls = device.calls();
        assert_eq!(fua, calls.pop_if(|call| *call == Call::Flush).is_some());
        let mut at = 8;
        for call in calls {
            let Call::Write { sector, data, fua: false } = call else { panic!("{call:?}") };
            assert!(sector == at && data.iter().all(|&byte| byte == 0) && data.len() <= 1 << 20);
            at += data.len() as u64 / 512;
        }
        assert_eq!(at, 8 + u64::from(sectors));
    }
}

#[test]
fn long_runs_of_zeros_are_read_as_holes_unless_one_chunk_is_wanted() {
    let device = MemoryDevice::new(4096);
    device.write(0, &[5; 100 << 10], false).unwrap();
    device.write(1024, &[6; 512], false).unwrap();
    let bytes = 1 << 20;
    let mut expected = vec![0; bytes];
    expected[..100 << 10].fill(5);
    expected[512 << 10..(512 << 10) + 512].fill(6);
    for (agreed, flags) in
        [STRUCTURED, EXTENDED].into_iter().flat_map(|agreed| [(agreed, 0), (agreed, NBD_CMD_FLAG_DF)])
    {
        let sent = transmit(&device, agreed, &agreed.0.request(flags, NBD_CMD_READ, 7, 0, bytes as u64));
        assert!(Heard(&sent).data(agreed.0, 7, 0, bytes) == expected);
        let chunks = if flags == 0 { 4 } else { 1 };
        let mut heard = Heard(&sent);
        for _ in 0..chunks {
            assert!(matches!(heard.reply(), Reply::Chunk { .. }));
        }
        assert_eq!(heard.0.len(), 0);
        assert!(flags != 0 || sent.len() < 300 << 10, "holes are not sent: {}", sent.len());
    }
    for (agreed, hole_bytes) in [(STRUCTURED, 32), (EXTENDED, 44)] {
        let sent = transmit(&device, agreed, &agreed.0.request(0, NBD_CMD_READ, 7, 1 << 20, 1 << 20));
        assert_eq!(sent.len(), hole_bytes, "nothing but a hole");
    }
}

#[test]
fn extents_are_joined_cut_and_limited() {
    let ask = |extents: &[(u64, Extent)], flags, bytes: u32| {
        let device = Recorder { extents: extents.to_vec(), ..Recorder::new(SECTORS) };
        let [told, in_64_bits] = [STRUCTURED, EXTENDED].map(|agreed| {
            let status = agreed.0.request(flags, NBD_CMD_BLOCK_STATUS, 7, 0, bytes.into());
            Heard(&transmit(&device, agreed, &status)).extents(7)
        });
        assert_eq!(told, in_64_bits);
        told
    };
    use Extent::{Allocated, Hole};
    let mixed = [(1, Allocated), (1, Allocated), (2, Hole), (3, Hole), (1, Allocated), (8, Hole)];
    assert_eq!(ask(&mixed, 0, 8192), [(1024, 0), (2560, 3), (512, 0), (4096, 3)]);
    assert_eq!(ask(&mixed, NBD_CMD_FLAG_REQ_ONE, 8192), [(1024, 0)]);
    assert_eq!(ask(&mixed, 0, 1536), [(1024, 0), (512, 3)], "no more than requested");
    assert_eq!(ask(&[(0, Hole), (4, Hole), (0, Allocated), (4, Hole)], 0, 4096), [(4096, 3)]);
    assert_eq!(ask(&[(SECTORS, Hole)], NBD_CMD_FLAG_REQ_ONE, u32::MAX - 511), [((1 << 32) - 512, 3)]);
    let torn: Vec<_> = (0..1 << 20).map(|at| (1, if at % 2 == 0 { Hole } else { Allocated })).collect();
    let told = ask(&torn, 0, 512 << 20);
    assert!(told.len() == 1024 && told.iter().all(|&(bytes, _)| bytes == 512), "{}", told.len());
    // A device that returns no extents causes an error.
    let device = Recorder::new(SECTORS);
    let sent = transmit(&device, STRUCTURED, &request(0, NBD_CMD_BLOCK_STATUS, 7, 0, 512));
    assert_eq!(Heard(&sent).status(), (NbdError::Io as u32, 7));
}

#[test]
fn the_end_is_the_end() {
    let device = Recorder::new(SECTORS);
    let export = Export::default();
    for (bytes, end) in [
        (request(0, NBD_CMD_DISC, 1, 0, 0), Close::Disconnect),
        (request(FUA, NBD_CMD_DISC, 1, 512, 512), Close::Disconnect),
        (option(NBD_OPT_LIST, &[0; 12]), Close::Violation("a request has a wrong magic number")),
    ] {
        let mut talk = Talk::new(&device, &export, false);
        talk.say(&negotiate(Form::Structured, false));
        talk.heard();
        let all = [request(0, NBD_CMD_FLUSH, 1, 0, 0), bytes, request(0, NBD_CMD_FLUSH, 2, 0, 0)].concat();
        assert_eq!(talk.say(&all), End::Closed(end));
        assert_eq!((talk.heard().len(), device.calls()), (16, vec![Call::Flush]), "earlier requests are answered");
        assert_eq!(talk.say(&request(0, NBD_CMD_FLUSH, 3, 0, 0)), End::Closed(end));
    }
}

#[test]
fn replies_are_sent_together_but_do_not_wait_for_storage() {
    let device = Recorder::new(SECTORS);
    let export = Export::default();
    let sends = |bytes: &[u8]| {
        let mut input = Input::new(1 << 20);
        let mut output = Output::new(1 << 20);
        let mut connection = Connection::new(&device, &export, false, &mut output);
        let all = [negotiate(Form::Simple, false), bytes.to_vec()].concat();
        input.room(all.len())[..all.len()].copy_from_slice(&all);
        input.received(all.len());
        let mut sends = Vec::new();
        while let Next::Send = connection.advance(&mut input, &mut output) {
            sends.push(output.bytes().len());
            output.clear();
        }
        sends.push(output.bytes().len());
        sends[0] -= 18 + 20 + 12 + 20;
        sends
    };
    let read = request(0, NBD_CMD_READ, 1, 0, 4096);
    let flush = request(0, NBD_CMD_FLUSH, 1, 0, 0);
    let fua = write(FUA, 1, 0, &[0; 512]);
    assert_eq!(sends(&read.repeat(32)), [32 * 4112]);
    assert_eq!(sends(&[read.repeat(3), flush.clone(), read.repeat(2)].concat()), [3 * 4112, 16 + 2 * 4112]);
    assert_eq!(sends(&[fua.clone(), fua, flush].concat()), [0, 16, 16, 16]);
    let long = request(0, NBD_CMD_READ, 1, 0, 200 << 10);
    assert_eq!(sends(&long.repeat(3)), [2 * ((200 << 10) + 16), (200 << 10) + 16], "the output is bounded");
}

/// Requests of every kind, some of them wrong, in a form that shrinks.
fn any_request(form: Form) -> impl Strategy<Value = Vec<u8>> {
    let flags = prop_oneof![4 => Just(0_u16), 2 => Just(FUA), 1 => 0..32_u16, 1 => any::<u16>()];
    let lengths = prop_oneof![6 => (0..9_u64).prop_map(|sectors| sectors * 512), 1 => 0..5000_u64];
    let offsets = prop_oneof![6 => (0..64_u64).prop_map(|sector| sector * 512), 1 => 0..40_000_u64];
    (flags, 0..9_u16, any::<u64>(), offsets, lengths, any::<u8>()).prop_map(
        move |(flags, kind, cookie, offset, bytes, fill)| {
            // Only a few end the conversation.
            let kind = if kind == NBD_CMD_DISC && fill > 20 { NBD_CMD_FLUSH } else { kind };
            let (offset, bytes) = if kind == NBD_CMD_FLUSH { (0, 0) } else { (offset, bytes) };
            match kind {
                NBD_CMD_WRITE => form.write(flags, cookie, offset, &vec![fill; bytes as usize]),
                _ => form.request(flags, kind, cookie, offset, bytes),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// The result does not depend on the parts in which the bytes arrive.
    #[test]
    fn how_the_bytes_are_split_does_not_matter(
        ((form, allocation), requests) in
            prop_oneof![Just(SIMPLE), Just((Form::Structured, false)), Just(STRUCTURED), Just(EXTENDED)]
                .prop_flat_map(|agreed| (Just(agreed), prop::collection::vec(any_request(agreed.0), 0..30))),
        garbage in prop::collection::vec(any::<u8>(), 0..40),
        cuts in prop::collection::vec(1..200_usize, 1..40),
    ) {
        let bytes = [negotiate(form, allocation), requests.concat(), garbage].concat();
        let export = Export::default();
        let extents = vec![(3, Extent::Hole), (4, Extent::Allocated)];
        let run = |cuts: &[usize]| {
            let device = Recorder { extents: extents.clone(), ..Recorder::new(64) };
            let mut talk = Talk::new(&device, &export, false);
            let (mut end, mut left) = (talk.say(&[]), &bytes[..]);
            for &cut in cuts.iter().cycle() {
                if left.is_empty() {
                    break;
                }
                let (now, later) = left.split_at(cut.min(left.len()));
                end = talk.say(now);
                left = later;
            }
            (talk.heard(), end, device.calls())
        };
        let whole = run(&[usize::MAX]);
        prop_assert_eq!(&run(&cuts), &whole);
        prop_assert_eq!(&run(&[1]), &whole);
    }
}
