use super::super::encode::encoded;
use super::super::testing::read_as;
use super::super::{Options, decode as decode_any};
use super::*;

fn sample() -> Trace {
    let text = b"3,10,1000,r,1.0\n7,0,512,w,2.0\n7,4096,512,r,3.0\n";
    Trace { name: "t".to_owned(), format: "bimetal", warnings: Vec::new(), ..read_as(&super::super::spc::FORMAT, text) }
}

#[test]
fn what_is_written_reads_back() {
    let trace = sample();
    let bytes = encoded(encode_bimetal, &trace).unwrap();
    assert_eq!(bytes.len(), 80 + 2 * 32 + 3 * 24);
    assert_eq!(decode_any("t", &bytes, &Options::default()).unwrap(), trace);
    let options = Options { devices: DeviceChoice::Only(vec![7]), ..Options::default() };
    let seven = decode_any("t", &bytes, &options).unwrap();
    assert_eq!((seven.requests.len(), seven.read_bytes, seven.devices[0].base_sector), (2, 512, 0));
}

#[test]
fn handles_are_kept_and_make_it_version_2() {
    let mut trace = sample();
    let version = |bytes: &[u8]| bytes[8];
    assert_eq!(version(&encoded(encode_bimetal, &trace).unwrap()), 1);
    trace.requests[1].handle = 200;
    let mut bytes = encoded(encode_bimetal, &trace).unwrap();
    assert_eq!(version(&bytes), 2);
    assert_eq!(decode_any("t", &bytes, &Options::default()).unwrap(), trace);
    let options = Options { devices: DeviceChoice::Only(vec![7]), ..Options::default() };
    let seven = decode_any("t", &bytes, &options).unwrap();
    assert_eq!(seven.requests.iter().map(|request| request.handle).collect::<Vec<_>>(), [200, 0]);
    let error = encoded(super::super::spc::encode_spc, &trace).unwrap_err().to_string();
    assert!(error.contains("1 requests with placement handles"), "{error}");
    let at = bytes.len() - 2;
    bytes[at] = 1;
    let error = decode_any("t", &bytes, &Options::default()).unwrap_err();
    assert_eq!(error.field(), "op", "{error}");
}

#[test]
fn every_cut_and_every_extra_byte_is_an_error() {
    let bytes = encoded(encode_bimetal, &sample()).unwrap();
    for cut in 8..bytes.len() {
        let error = decode_any("t", &bytes[..cut], &Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Truncated, "{error}");
    }
    let error = decode_any("t", &bytes[..bytes.len() - 1], &Options::default()).unwrap_err();
    assert!(error.to_string().contains("it holds 2 of its 3 requests"), "{error}");
    let longer = [&bytes[..], b"x"].concat();
    assert!(decode_any("t", &longer, &Options::default()).unwrap_err().to_string().contains("more bytes follow"));
}

#[test]
fn every_unsound_field_is_an_error() {
    let bytes = encoded(encode_bimetal, &sample()).unwrap();
    let record = 80 + 2 * 32 + 24; // the second
    for (at, value, field) in [
        (record + 20, 3u8, "op"),
        (record + 21, 1, "op"), // a handle, which version 1 does not have
        (record + 16, 0, "sectors"),
        (record + 15, 1, "sector"),
        (record + 9, 255, "sector"),
        (record, 0, ""),
        (record + 24 + 3, 0, "arrival"),
        (8, 3, ""),       // version
        (16, 2, ""),      // requests
        (24, 7, ""),      // reads
        (49, 255, ""),    // bytes read
        (80 + 8, 1, ""),  // base of device 0
        (80 + 16, 1, ""), // sectors of device 0
        (80 + 24, 9, ""), // requests of device 0
    ] {
        let mut changed = bytes.clone();
        changed[at] = value;
        if changed == bytes {
            continue;
        }
        let error = decode_any("t", &changed, &Options::default()).unwrap_err();
        assert_eq!(error.field(), field, "{at}: {error}");
        if !field.is_empty() {
            assert!(matches!(error.place(), Place::Record { .. }), "{error}");
        }
    }
    let no_device = encoded(encode_bimetal, &Trace { devices: vec![], ..sample() }).unwrap();
    assert_eq!(decode_any("t", &no_device, &Options::default()).unwrap_err().field(), "sector");
    let empty =
        Trace { requests: vec![], devices: vec![], reads: 0, writes: 0, read_bytes: 0, write_bytes: 0, ..sample() };
    assert_eq!(
        decode_any("t", &encoded(encode_bimetal, &empty).unwrap(), &Options::default()).unwrap_err().kind(),
        ErrorKind::NoRequests
    );
}
