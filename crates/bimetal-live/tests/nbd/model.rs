//! A client with random valid requests, compared with a plain array of bytes.

use bimetal_live::MemoryDevice;
use bimetal_live::nbd::Export;
use bimetal_live::nbd::proto::*;
use proptest::prelude::*;

use crate::client::*;

const SECTORS: u64 = 1024;

#[derive(Clone, Debug)]
enum Step {
    Read { flags: u16 },
    Write { fill: u8 },
    Zero { flags: u16 },
    Trim,
    Flush,
    Status { flags: u16 },
}

fn steps() -> impl Strategy<Value = Vec<(Step, u64, u64)>> {
    let step = prop_oneof![
        6 => prop_oneof![Just(0), Just(NBD_CMD_FLAG_DF)].prop_map(|flags| Step::Read { flags }),
        4 => any::<u8>().prop_map(|fill| Step::Write { fill }),
        2 => prop_oneof![Just(0), Just(NBD_CMD_FLAG_NO_HOLE), Just(NBD_CMD_FLAG_FAST_ZERO)]
            .prop_map(|flags| Step::Zero { flags }),
        2 => Just(Step::Trim),
        1 => Just(Step::Flush),
        2 => prop_oneof![Just(0), Just(NBD_CMD_FLAG_REQ_ONE)].prop_map(|flags| Step::Status { flags }),
    ];
    let range = (0..SECTORS).prop_flat_map(|sector| {
        let left = SECTORS - sector;
        (Just(sector), prop_oneof![4 => 1..=left.min(16), 1 => 1..=left])
    });
    prop::collection::vec((step, range).prop_map(|(step, (sector, sectors))| (step, sector, sectors)), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_reply_is_what_the_model_says(form in prop::sample::select(&Form::ALL[..]), steps in steps()) {
        let device = MemoryDevice::new(SECTORS);
        let export = Export::default();
        let mut talk = Talk::new(&device, &export, false);
        let structured = form != Form::Simple;
        talk.say(&negotiate(form, structured));
        talk.heard();
        let mut model = vec![0_u8; (SECTORS * 512) as usize];
        for (cookie, (step, sector, sectors)) in steps.into_iter().enumerate() {
            let cookie = cookie as u64;
            let (offset, bytes) = (sector * 512, sectors * 512);
            let range = offset as usize..offset as usize + bytes as usize;
            let request = match step {
                Step::Read { flags } => {
                    let flags = if structured { flags } else { 0 };
                    prop_assert_eq!(talk.say(&form.request(flags, NBD_CMD_READ, cookie, offset, bytes)), End::Waiting);
                    let sent = talk.heard();
                    let mut heard = Heard(&sent);
                    prop_assert!(heard.data(form, cookie, offset, bytes as usize) == model[range]);
                    prop_assert_eq!(heard.0.len(), 0);
                    continue;
                }
                Step::Status { flags } if structured => {
                    talk.say(&form.request(flags, NBD_CMD_BLOCK_STATUS, cookie, offset, bytes));
                    let sent = talk.heard();
                    let extents = Heard(&sent).extents(cookie);
                    let mut at = offset as usize;
                    for &(length, state) in &extents {
                        let end = at + length as usize;
                        prop_assert!(state == 0 || model[at..end].iter().all(|&byte| byte == 0));
                        at = end;
                    }
                    let complete = if flags == 0 { at == range.end } else { extents.len() == 1 && at <= range.end };
                    prop_assert!(complete);
                    continue;
                }
                Step::Status { .. } => continue,
                Step::Write { fill } => {
                    // All sectors differ, so that a misplaced sector is detected.
                    let data: Vec<u8> = (0..bytes).map(|at| fill ^ (at / 512) as u8 ^ at as u8).collect();
                    model[range].copy_from_slice(&data);
                    form.write(0, cookie, offset, &data)
                }
                Step::Zero { flags } => {
                    model[range].fill(0);
                    form.request(flags, NBD_CMD_WRITE_ZEROES, cookie, offset, bytes)
                }
                Step::Trim => {
                    model[range].fill(0);
                    form.request(0, NBD_CMD_TRIM, cookie, offset, bytes)
                }
                Step::Flush => form.request(0, NBD_CMD_FLUSH, cookie, 0, 0),
            };
            prop_assert_eq!(talk.say(&request), End::Waiting);
            let sent = talk.heard();
            let mut heard = Heard(&sent);
            prop_assert_eq!((heard.status(), heard.0.len()), ((0, cookie), 0));
        }
    }
}
