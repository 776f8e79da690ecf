//! Speed of the trace decoders: the excerpts among the core's test fixtures, each repeated to 64 MB, on one core.
//!
//! Times of a repeated excerpt start again at each repetition, so the figures include a sort.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use bimetal_core::request::Request;
use bimetal_core::trace::{self, Options};
use bimetal_study::generate;

const TARGET_BYTES: usize = 64 << 20;
const RUNS: usize = 5;

/// The best of a few decodings, in MB/s.
fn speed(name: &str, bytes: &[u8], options: &Options) -> (usize, f64) {
    let mut best = f64::INFINITY;
    let mut requests = 0;
    for _ in 0..RUNS {
        let started = Instant::now();
        let decoded = trace::decode(name, bytes, options).unwrap_or_else(|error| panic!("{error}"));
        best = best.min(started.elapsed().as_secs_f64());
        requests = black_box(decoded).requests.len();
    }
    (requests, bytes.len() as f64 / best / 1e6)
}

fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
}

/// Bytes of the header of a file in this format.
fn header_bytes(format: &str, bytes: &[u8]) -> usize {
    let to_the_first = |end: u8| bytes.iter().position(|&byte| byte == end).map_or(0, |end| end + 1);
    match format {
        "lcs" => 8192,
        "srt" => to_the_first(b'\x0c'),
        _ if is_text(bytes) && bytes.first().is_some_and(u8::is_ascii_alphabetic) => to_the_first(b'\n'),
        _ => 0,
    }
}

/// The header, if there is one, and the records many times.
fn repeated(format: &str, bytes: &[u8]) -> Vec<u8> {
    let header = header_bytes(format, bytes);
    let mut repeated = bytes[..header].to_vec();
    while repeated.len() < TARGET_BYTES {
        repeated.extend_from_slice(&bytes[header..]);
        if is_text(bytes) && !bytes.ends_with(b"\n") {
            repeated.push(b'\n');
        }
    }
    repeated
}

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bimetal-core/tests/fixtures/traces");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap_or_else(|error| panic!("{error}")).path())
        .filter(|path| !path.file_name().is_some_and(|name| name == "README.md" || name == ".gitattributes"))
        .collect();
    files.sort();
    println!("{:<12} {:<34} {:>12} {:>8}", "format", "excerpt", "requests", "MB/s");
    for path in files {
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let format = trace::detect(&name, &bytes).unwrap_or_else(|error| panic!("{error}"));
        let options = Options { format: Some(format), ..Options::default() };
        let (requests, rate) = speed(&name, &repeated(format.name, &bytes), &options);
        println!("{:<12} {:<34} {:>12} {:>8.0}", format.name, name, requests, rate);
    }
    let generated = generate::trace("uniform", &[("requests".into(), "10000000".into())], 1)
        .unwrap_or_else(|error| panic!("{error}"));
    let (requests, rate) =
        speed("compact", &trace::encoded(trace::encode_bimetal, &generated).unwrap_or_default(), &Options::default());
    println!("{:<12} {:<34} {:>12} {:>8.0}", "bimetal", "10 million generated requests", requests, rate);
    let rate = fill_speed(&generated.requests);
    println!("{:<12} {:<34} {:>12} {:>8.0}", "(memory)", "a fresh buffer of that size, copied", requests, rate);
}

/// The best of a few copies into fresh memory, in MB/s: an upper bound for loading requests.
fn fill_speed(requests: &[Request]) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let started = Instant::now();
        black_box(requests.to_vec());
        best = best.min(started.elapsed().as_secs_f64());
    }
    size_of_val(requests) as f64 / best / 1e6
}
