//! Fuzzes the NBD server's protocol with arbitrary bytes from a client.

use bimetal_live::nbd::proto::EXTENDED_REQUEST_BYTES;
use bimetal_live::nbd::{Connection, Export, Input, MAX_PAYLOAD_BYTES, Next, Output};
use bimetal_live::{BlockDevice, MemoryDevice};

/// Sectors of the served device: the small one is fast, the large one has room for holes that the server reports.
const SECTORS: [u64; 2] = [32, 160];
/// Flags and `NBD_OPT_STRUCTURED_REPLY`, or `NBD_OPT_EXTENDED_HEADERS`. Half of the inputs start behind a negotiation that
/// begins so, with requests.
const BEGINNINGS: [&[u8]; 2] = [b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0", b"\0\0\0\x03IHAVEOPT\0\0\0\x0b\0\0\0\0"];
/// The end of this negotiation: `NBD_OPT_SET_META_CONTEXT` and `NBD_OPT_GO`.
const END: &[u8] = b"IHAVEOPT\0\0\0\x0a\0\0\0\x1b\0\0\0\0\0\0\0\x01\0\0\0\x0f\
base:allocationIHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0";
/// Bytes before the data of a read at most: the header of an extended chunk, and an offset.
const DATA_HEADER_BYTES: usize = 40;

/// A client of the NBD server: the first byte configures the server, the second sets the size of the parts in which the
/// other bytes arrive.
pub fn nbd(data: &[u8]) {
    let [setup, cut, client @ ..] = data else { return };
    let whole = converse(*setup, client, usize::MAX);
    let parts = converse(*setup, client, usize::from(*cut) + 1);
    assert!(whole == parts, "the result depends on the parts in which the bytes arrive");
}

/// Sends `client` in parts of `cut` bytes. Returns the bytes that the server sent, the content of the device, and
/// whether the connection was closed.
fn converse(setup: u8, client: &[u8], cut: usize) -> (Vec<u8>, Vec<u8>, bool) {
    let device = MemoryDevice::new(SECTORS[usize::from(setup >> 3 & 1)]);
    let export = Export { name: "disk".into(), read_only: setup & 1 != 0, ..Export::default() };
    let (mut input, mut output) = (Input::new(64), Output::new(64));
    let mut connection = Connection::new(&device, &export, setup & 2 != 0, &mut output);
    let negotiated = [BEGINNINGS[usize::from(setup >> 4 & 1)], END];
    let prefix = if setup & 4 != 0 { &negotiated[..] } else { &[] };
    let prefix_bytes: usize = prefix.iter().map(|part| part.len()).sum();
    let mut sent = Vec::new();
    let mut closed = false;
    for part in prefix.iter().copied().chain(client.chunks(cut)) {
        let mut left = part;
        loop {
            let (before, next) = (input.bytes().len(), connection.advance(&mut input, &mut output));
            // No progress: no bytes were consumed, and none were sent.
            let idle = input.bytes().len() == before && output.bytes().is_empty();
            sent.extend(output.bytes());
            output.clear();
            match next {
                Next::Receive { message_bytes } => {
                    assert!(message_bytes <= MAX_PAYLOAD_BYTES + EXTENDED_REQUEST_BYTES, "a message that does not fit");
                    if left.is_empty() {
                        break;
                    }
                    let room = input.room(message_bytes);
                    assert!(room.len() <= 2 * (client.len() + prefix_bytes) + 128, "memory for bytes not yet sent");
                    let (now, later) = left.split_at(room.len().min(left.len()));
                    room[..now.len()].copy_from_slice(now);
                    input.received(now.len());
                    left = later;
                }
                Next::Send => assert!(!idle, "no progress"),
                Next::Room { bytes } => {
                    let most = (device.sectors() * 512) as usize + DATA_HEADER_BYTES;
                    assert!(bytes <= most, "more room than the device has bytes");
                    output.grow(bytes);
                }
                Next::StartTls => connection.tls_established(),
                Next::Close(_) => {
                    closed = true;
                    break;
                }
            }
        }
    }
    let mut held = vec![0; (device.sectors() * 512) as usize];
    assert_eq!(device.read(0, &mut held), Ok(()));
    (sent, held, closed)
}
