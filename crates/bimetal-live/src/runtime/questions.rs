//! Endpoints for `bimetal stat` and for collectors of metrics over HTTP.

use std::path::Path;
use std::sync::Arc;

use crate::endpoint::Endpoint;
use crate::health::Health;
use crate::health::figures::Sources;
use crate::nbd::{Address, ListenError, Remote};
use crate::store::Store;

/// Name of the socket for `bimetal stat`, in the store's directory.
pub const STAT_SOCKET: &str = "stat.sock";

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Makes the answer to `bimetal stat`. The question is `json` or `text`.
pub type Answer = fn(&Health, &str) -> String;

/// Answers `bimetal stat`.
pub(super) fn stat(directory: &Path, store: &Arc<Store>, answer: Answer) -> Result<Endpoint, ListenError> {
    let store = Arc::clone(store);
    let reply =
        move |question: &[u8]| answer(&Health::of(&store), String::from_utf8_lossy(question).trim()).into_bytes();
    Endpoint::open(&Address::Unix(directory.join(STAT_SOCKET)), Remote::Refused, b"\n", reply)
}

/// Answers collectors of metrics over HTTP.
///
/// # Errors
/// Nothing can listen at the address, or collectors could not connect to it.
pub(super) fn metrics(
    address: &Address,
    remote: Remote,
    store: &Arc<Store>,
    sources: Sources,
) -> Result<Endpoint, ListenError> {
    address.check_length()?;
    let store = Arc::clone(store);
    let reply = move |question: &[u8]| {
        if !question.starts_with(b"GET ") {
            return response("405 Method Not Allowed", "");
        }
        match Health::of(&store).openmetrics(&sources.now()) {
            Ok(text) => response("200 OK", &text),
            Err(_) => response("500 Internal Server Error", ""),
        }
    };
    Endpoint::open(address, remote, b"\r\n\r\n", reply)
}

fn response(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {OPENMETRICS}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}
