//! Negotiation, byte by byte.

use bimetal_live::nbd::proto::*;
use bimetal_live::nbd::{Close, Export, MAX_OPTION_BYTES, MAX_OPTIONS};

use crate::client::*;
use crate::devices::Recorder;

const SECTORS: u64 = 2048;
const FLAGS: u16 = NBD_FLAG_HAS_FLAGS
    | NBD_FLAG_SEND_FLUSH
    | NBD_FLAG_SEND_FUA
    | NBD_FLAG_SEND_TRIM
    | NBD_FLAG_SEND_WRITE_ZEROES
    | NBD_FLAG_CAN_MULTI_CONN
    | NBD_FLAG_SEND_CACHE
    | NBD_FLAG_SEND_FAST_ZERO;
const NBD_OPT_PEEK_EXPORT: u32 = 4;

fn export() -> Export {
    Export { name: "disk".into(), description: "a device".into(), read_only: false }
}

/// The server's answer to these options, and the end of the conversation. The device must not be used.
fn answer(options: &[Vec<u8>]) -> (Vec<u8>, End) {
    let device = Recorder::new(SECTORS);
    let answer = converse(&device, &export(), &[client_flags(), options.concat()].concat());
    assert_eq!(device.calls(), [], "the device is not used before the negotiation ends");
    answer
}

fn types(options: &[Vec<u8>]) -> Vec<u32> {
    let (sent, end) = answer(options);
    assert_eq!(end, End::Waiting);
    Heard(&sent).reply_types()
}

fn violates(bytes: &[u8]) -> &'static str {
    let device = Recorder::new(SECTORS);
    let (sent, end) = converse(&device, &export(), bytes);
    assert_eq!((sent.len(), device.calls().len()), (0, 0), "no reply and no request");
    match end {
        End::Closed(Close::Violation(what)) => what,
        end => panic!("{end:?}"),
    }
}

#[test]
fn the_server_greets_first() {
    let device = Recorder::new(SECTORS);
    let export = export();
    let mut talk = Talk::new(&device, &export, false);
    assert_eq!(talk.say(&[]), End::Waiting);
    assert_eq!(talk.heard(), b"NBDMAGICIHAVEOPT\x00\x03");
}

#[test]
fn export_name_ends_it_with_and_without_zeroes() {
    let device = Recorder::new(SECTORS);
    let facts = [&(SECTORS * 512).to_be_bytes()[..], &FLAGS.to_be_bytes()].concat();
    for (flags, zeroes) in [(3_u32, 0), (2, 0), (1, 124), (0, 124)] {
        for name in [&b""[..], b"disk"] {
            let bytes = [&flags.to_be_bytes()[..], &option(NBD_OPT_EXPORT_NAME, name)].concat();
            let (sent, end) = converse(&device, &export(), &bytes);
            assert_eq!((sent, end), ([&facts[..], &vec![0; zeroes]].concat(), End::Waiting));
        }
    }
    for name in [&b"dis"[..], b"disk\0", b"DISK", &[b'x'; 5000], &vec![0; MAX_OPTION_BYTES + 1]] {
        violates(&[client_flags(), option(NBD_OPT_EXPORT_NAME, name)].concat());
    }
    // The server does not wait for a name that is too long.
    violates(&[client_flags(), option(NBD_OPT_EXPORT_NAME, &vec![0; MAX_OPTION_BYTES + 1])[..16].to_vec()].concat());
}

#[test]
fn the_export_is_listed() {
    let (sent, _) = answer(&[option(NBD_OPT_LIST, &[])]);
    let mut heard = Heard(&sent);
    assert_eq!(heard.option_reply(), (NBD_OPT_LIST, NBD_REP_SERVER, &b"\0\0\0\x04diska device"[..]));
    assert_eq!(heard.option_reply(), (NBD_OPT_LIST, NBD_REP_ACK, &[][..]));
    assert_eq!(types(&[option(NBD_OPT_LIST, b"x")]), [NBD_REP_ERR_INVALID]);
}

#[test]
fn info_says_what_is_asked_for_and_go_the_same() {
    let asked = [NBD_INFO_BLOCK_SIZE, 77, NBD_INFO_DESCRIPTION, NBD_INFO_NAME, NBD_INFO_BLOCK_SIZE];
    let (sent, _) = answer(&[option(NBD_OPT_INFO, &info(b"disk", &asked))]);
    let mut heard = Heard(&sent);
    let size = (SECTORS * 512).to_be_bytes();
    let expected: [Vec<u8>; 4] = [
        [&[0, 0][..], &size, &FLAGS.to_be_bytes()].concat(),
        b"\0\x01disk".to_vec(),
        b"\0\x02a device".to_vec(),
        [&[0, 3][..], &512_u32.to_be_bytes(), &4096_u32.to_be_bytes(), &(1_u32 << 25).to_be_bytes()].concat(),
    ];
    for data in &expected {
        assert_eq!(heard.option_reply(), (NBD_OPT_INFO, NBD_REP_INFO, &data[..]));
    }
    assert_eq!(heard.option_reply(), (NBD_OPT_INFO, NBD_REP_ACK, &[][..]));
    assert_eq!(heard.0, [0u8; 0]);
    let (go, end) = answer(&[option(NBD_OPT_GO, &info(b"disk", &asked))]);
    assert_eq!(end, End::Waiting);
    let as_info = |sent: &[u8]| {
        let mut heard = Heard(sent);
        let mut replies = Vec::new();
        while !heard.0.is_empty() {
            let (_, kind, data) = heard.option_reply();
            replies.push((kind, data.to_vec()));
        }
        replies
    };
    assert_eq!(as_info(&go), as_info(&sent));
    // Without requested information: only the description of the export.
    assert_eq!(types(&[option(NBD_OPT_INFO, &info(b"", &[]))]), [NBD_REP_INFO, NBD_REP_ACK]);
}

#[test]
fn what_is_offered_depends_on_what_was_agreed_and_on_the_export() {
    let flags = |export: &Export, read_only, structured: bool| {
        let device = Recorder { read_only, ..Recorder::new(SECTORS) };
        let mut bytes = client_flags();
        if structured {
            bytes.extend(option(NBD_OPT_STRUCTURED_REPLY, &[]));
        }
        bytes.extend(option(NBD_OPT_INFO, &info(b"", &[])));
        let (sent, _) = converse(&device, export, &bytes);
        let mut heard = Heard(&sent[if structured { 20 } else { 0 }..]);
        let (_, _, data) = heard.option_reply();
        u16::from_be_bytes([data[10], data[11]])
    };
    assert_eq!(flags(&export(), false, false), FLAGS);
    assert_eq!(flags(&export(), false, true), FLAGS | NBD_FLAG_SEND_DF);
    let write_flags = NBD_FLAG_SEND_TRIM | NBD_FLAG_SEND_WRITE_ZEROES | NBD_FLAG_SEND_FAST_ZERO;
    let read_only = FLAGS & !write_flags | NBD_FLAG_READ_ONLY;
    assert_eq!(flags(&export(), true, false), read_only);
    assert_eq!(flags(&Export { read_only: true, ..export() }, false, false), read_only);
}

#[test]
fn malformed_options_are_refused_and_the_next_is_understood() {
    let good = info(b"disk", &[NBD_INFO_NAME]);
    let mut long = good.clone();
    long.push(0);
    let mut name_beyond_the_end = good.clone();
    name_beyond_the_end[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    let long_name = info(&[b'x'; STRING_BYTES_MAX + 1], &[]);
    for kind in [NBD_OPT_INFO, NBD_OPT_GO] {
        for data in [&[][..], &good[..3], &good[..good.len() - 1], &long, &name_beyond_the_end, &long_name] {
            assert_eq!(types(&[option(kind, data), option(NBD_OPT_LIST, b"x")]), [NBD_REP_ERR_INVALID; 2]);
        }
        let unknown = info(&[b'x'; STRING_BYTES_MAX], &[]);
        assert_eq!(types(&[option(kind, &unknown)]), [NBD_REP_ERR_UNKNOWN]);
    }
    assert_eq!(types(&[option(NBD_OPT_STRUCTURED_REPLY, b"x")]), [NBD_REP_ERR_INVALID]);
}

#[test]
fn unknown_options_are_refused_and_the_next_is_understood() {
    for kind in [0, NBD_OPT_PEEK_EXPORT, 12, 0x1234_5678, u32::MAX] {
        for data in [&[][..], b"some data", &[1; MAX_OPTION_BYTES]] {
            assert_eq!(
                types(&[option(kind, data), option(NBD_OPT_LIST, b"x")]),
                [NBD_REP_ERR_UNSUP, NBD_REP_ERR_INVALID]
            );
        }
        let long = option(kind, &[1; MAX_OPTION_BYTES + 1]);
        assert_eq!(types(&[long, option(NBD_OPT_LIST, b"x")]), [NBD_REP_ERR_TOO_BIG, NBD_REP_ERR_INVALID]);
    }
}

#[test]
fn contexts_are_listed_and_set() {
    let structured = || option(NBD_OPT_STRUCTURED_REPLY, &[]);
    let allocation = |id: u32| [&id.to_be_bytes()[..], b"base:allocation"].concat();
    let none: &[&[u8]] = &[];
    // Queries, and whether they list and set the only context.
    let cases: [(&[&[u8]], bool, bool); 7] = [
        (none, true, false),
        (&[b"base:allocation"], true, true),
        (&[b"base:"], true, false),
        (&[b"base:allocation", b"base:allocation", b"base:"], true, true),
        (&[b"base:allocatio", b"base:allocation2", b"x-y:z", b"qemu:dirty-bitmap:b"], false, false),
        (&[b"", b"no colon"], false, false),
        (&[&[b'x'; STRING_BYTES_MAX], b"base:allocation"], true, true),
    ];
    for (queries, listed, set) in cases {
        for (kind, found, id) in [(NBD_OPT_LIST_META_CONTEXT, listed, 0), (NBD_OPT_SET_META_CONTEXT, set, 1)] {
            let (sent, _) = answer(&[structured(), option(kind, &contexts(b"disk", queries))]);
            let mut heard = Heard(&sent[20..]);
            if found {
                assert_eq!(heard.option_reply(), (kind, NBD_REP_META_CONTEXT, &allocation(id)[..]), "{queries:?}");
            }
            assert_eq!(heard.option_reply(), (kind, NBD_REP_ACK, &[][..]), "{queries:?}");
            assert_eq!(heard.0, [0u8; 0]);
        }
    }
    let good = contexts(b"disk", &[b"base:allocation"]);
    let mut many = good.clone();
    many[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut left_over = good.clone();
    left_over.push(0);
    let long = contexts(b"disk", &[&[b'x'; STRING_BYTES_MAX + 1]]);
    for kind in [NBD_OPT_LIST_META_CONTEXT, NBD_OPT_SET_META_CONTEXT] {
        assert_eq!(types(&[option(kind, &good)]), [NBD_REP_ERR_INVALID], "needs structured replies");
        for data in [&good[..good.len() - 1], &many, &left_over, &long, &good[..9], &[]] {
            assert_eq!(types(&[structured(), option(kind, data)])[1..], [NBD_REP_ERR_INVALID]);
        }
        let unknown = contexts(b"another", &[b"base:allocation"]);
        assert_eq!(types(&[structured(), option(kind, &unknown)])[1..], [NBD_REP_ERR_UNKNOWN]);
    }
}

#[test]
fn a_context_is_what_was_set_last() {
    let device = Recorder { extents: vec![(8, bimetal_live::Extent::Hole)], ..Recorder::new(SECTORS) };
    let export = export();
    let set = |name: &[u8], queries: &[&[u8]]| option(NBD_OPT_SET_META_CONTEXT, &contexts(name, queries));
    let first = set(b"", &[b"base:allocation"]);
    // A failed query, and one that selects nothing, remove the selection.
    for (last, selected) in [
        (set(b"disk", &[b"base:allocation"]), true),
        (set(b"", &[]), false),
        (set(b"another", &[b"base:allocation"]), false),
        (option(NBD_OPT_SET_META_CONTEXT, b"malformed"), false),
        (option(NBD_OPT_LIST_META_CONTEXT, &contexts(b"", &[])), true),
    ] {
        let mut talk = Talk::new(&device, &export, false);
        let structured = option(NBD_OPT_STRUCTURED_REPLY, &[]);
        let go = option(NBD_OPT_GO, &info(b"", &[]));
        talk.say(&[client_flags(), structured, first.clone(), last, go].concat());
        talk.heard();
        talk.say(&request(0, NBD_CMD_BLOCK_STATUS, 5, 0, 4096));
        let sent = talk.heard();
        if selected {
            assert_eq!(Heard(&sent).extents(5), [(4096, 3)]);
        } else {
            assert_eq!(Heard(&sent).status(), (NbdError::Inval as u32, 5));
        }
    }
}

#[test]
fn abort_is_acknowledged_and_nothing_after_it_is_heard() {
    let (sent, end) = answer(&[option(NBD_OPT_ABORT, b"ignored"), option(NBD_OPT_LIST, &[])]);
    assert_eq!(Heard(&sent).reply_types(), [NBD_REP_ACK]);
    assert_eq!(end, End::Closed(Close::Disconnect));
}

#[test]
fn what_is_not_the_protocol_is_not_answered() {
    for flags in [4_u32, 1 << 31, u32::MAX] {
        violates(&flags.to_be_bytes());
    }
    // Without fixed newstyle there is only one option.
    for kind in [NBD_OPT_LIST, NBD_OPT_GO, NBD_OPT_ABORT, 99] {
        violates(&[0_u32.to_be_bytes().to_vec(), option(kind, &[])].concat());
    }
    // Requests before the negotiation has ended.
    let read = request(0, NBD_CMD_READ, 1, 0, 512);
    violates(&[client_flags(), read].concat());
    violates(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

#[test]
fn the_number_of_options_is_limited() {
    let options = vec![option(NBD_OPT_LIST, b"x"); MAX_OPTIONS as usize];
    assert_eq!(types(&options).len(), MAX_OPTIONS as usize);
    let (sent, end) = answer(&[options.concat(), option(NBD_OPT_GO, &info(b"", &[]))]);
    assert_eq!(Heard(&sent).reply_types().len(), MAX_OPTIONS as usize);
    assert!(matches!(end, End::Closed(Close::Violation(_))));
}

#[test]
fn tls_is_refused_where_it_is_not_set_up() {
    assert_eq!(types(&[option(NBD_OPT_STARTTLS, &[])]), [NBD_REP_ERR_POLICY]);
    assert_eq!(types(&[option(NBD_OPT_STARTTLS, b"x")]), [NBD_REP_ERR_INVALID]);
}

#[test]
fn nothing_is_told_before_tls() {
    let device = Recorder::new(SECTORS);
    let export = export();
    for kind in (3..12).chain([0, 99]).filter(|&kind| kind != NBD_OPT_STARTTLS) {
        let mut talk = Talk::new(&device, &export, true);
        assert_eq!(talk.say(&[client_flags(), option(kind, &info(b"", &[]))].concat()), End::Waiting);
        assert_eq!(Heard(&talk.heard()[18..]).reply_types(), [NBD_REP_ERR_TLS_REQD]);
        assert_eq!(talk.say(&option(kind, &[0; MAX_OPTION_BYTES + 1])), End::Waiting);
        assert_eq!(Heard(&talk.heard()).reply_types(), [NBD_REP_ERR_TLS_REQD]);
        assert_eq!(talk.say(&option(NBD_OPT_STARTTLS, b"x")), End::Waiting);
        assert_eq!(Heard(&talk.heard()).reply_types(), [NBD_REP_ERR_INVALID]);
        assert_eq!(talk.say(&option(NBD_OPT_ABORT, &[])), End::Closed(Close::Disconnect));
    }
    let mut talk = Talk::new(&device, &export, true);
    let end = talk.say(&[client_flags(), option(NBD_OPT_EXPORT_NAME, b"disk")].concat());
    assert!(matches!(end, End::Closed(Close::Violation(_))));
    assert_eq!(talk.heard().len(), 18, "the greeting");
}

#[test]
fn what_was_said_before_tls_is_forgotten() {
    let device = Recorder::new(SECTORS);
    let export = export();
    let mut talk = Talk::new(&device, &export, true);
    let early = [NBD_OPT_STRUCTURED_REPLY, NBD_OPT_EXTENDED_HEADERS].map(|kind| option(kind, &[])).concat();
    assert_eq!(talk.say(&[client_flags(), early, option(NBD_OPT_STARTTLS, &[])].concat()), End::StartTls);
    let refused = NBD_REP_ERR_TLS_REQD;
    assert_eq!(Heard(&talk.heard()[18..]).reply_types(), [refused, refused, NBD_REP_ACK]);
    talk.say(&option(NBD_OPT_STARTTLS, &[]));
    assert_eq!(Heard(&talk.heard()).reply_types(), [NBD_REP_ERR_INVALID], "once");
    talk.say(&option(NBD_OPT_GO, &info(b"", &[])));
    talk.heard();
    talk.say(&request(0, NBD_CMD_READ, 9, 0, 512));
    assert_eq!(Heard(&talk.heard()).reply(), Reply::Simple { error: 0, cookie: 9 });
}
