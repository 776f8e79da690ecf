//! Writers of traces, and the choice of a format by file name.

use std::path::Path;

use bimetal_core::request::Request;
use bimetal_core::trace::{Encode, Trace, encode_bimetal, encode_midas, encode_msr, encode_spc};

use crate::number::thousands;

/// A format that can be written.
#[derive(Debug)]
pub struct Writer {
    /// Name of the format in [`bimetal_core::trace::FORMATS`], also an extension of its files.
    pub format: &'static str,
    /// Other extensions of its files.
    pub extensions: &'static [&'static str],
    /// Encodes a whole trace.
    pub encode: Encode,
    /// Unit of its times, in nanoseconds: finer times are cut off.
    pub time_unit_ns: u64,
    /// Whether it tells the devices of a trace apart.
    pub has_devices: bool,
}

impl Writer {
    /// Warnings about content that the format cannot express exactly.
    pub fn warnings(&self, trace: &Trace) -> Vec<String> {
        let devices = trace.devices.len();
        let one = || format!("the {devices} devices become one: `{}` has no device numbers", self.format);
        let of_devices = (devices > 1 && !self.has_devices).then(one);
        of_devices.into_iter().chain(self.warning_of_times(trace)).collect()
    }

    fn warning_of_times(&self, trace: &Trace) -> Option<String> {
        let time_ns = |request: &Request| trace.origin_ns.saturating_add(request.arrival_ns);
        let is_cut = |request: &&Request| !time_ns(request).is_multiple_of(self.time_unit_ns);
        let (cut, of) = (trace.requests.iter().filter(is_cut).count(), trace.requests.len());
        (cut > 0).then(|| {
            let [cut, of] = [cut, of].map(|requests| thousands(requests as u64));
            format!(
                "the times of {cut} of {of} requests are cut off to {} ns, the unit of `{}`",
                self.time_unit_ns, self.format
            )
        })
    }
}

/// Every format that can be written.
pub static WRITERS: &[Writer] = &[
    Writer { format: "bimetal", extensions: &[], encode: encode_bimetal, time_unit_ns: 1, has_devices: true },
    Writer { format: "spc", extensions: &[], encode: encode_spc, time_unit_ns: 1, has_devices: true },
    Writer { format: "msr", extensions: &["csv"], encode: encode_msr, time_unit_ns: 100, has_devices: true },
    Writer { format: "midas", extensions: &[], encode: encode_midas, time_unit_ns: 1, has_devices: false },
];

/// Extensions of compressed files, and the programs that make them. Traces are read from such files, but not written.
const COMPRESSED: [(&str, &str); 4] = [("gz", "gzip"), ("xz", "xz"), ("zst", "zstd"), ("bz2", "bzip2")];

/// The writer of a format, or that of a file's extension.
///
/// # Errors
/// Neither the format nor the extension is one that can be written: the message lists the writable formats. Or the
/// extension is that of a compressed file.
pub fn choose(format: Option<&str>, path: &Path) -> Result<&'static Writer, String> {
    let known = || WRITERS.iter().map(|writer| writer.format).collect::<Vec<_>>().join(", ");
    let named = |name: &str| WRITERS.iter().find(|writer| writer.format == name);
    let by_extension = |extension: &str| {
        WRITERS.iter().find(|writer| writer.format == extension || writer.extensions.contains(&extension))
    };
    let extension = path.extension().and_then(|extension| extension.to_str());
    if let Some((_, program)) = COMPRESSED.iter().find(|(name, _)| extension == Some(name)) {
        let (path, plain) = (path.display(), path.with_extension(""));
        let plain = plain.display();
        return Err(format!("{path}: traces are written uncompressed; hint: write {plain}, then `{program} {plain}`"));
    }
    match (format, extension) {
        (Some(name), _) => {
            named(name).ok_or_else(|| format!("format `{name}` cannot be written; there are: {}", known()))
        }
        (None, extension) => extension.and_then(by_extension).ok_or_else(|| {
            let path = path.display();
            format!(
                "{path}: the extension names no format that can be written; hint: add `--to` with one of {}",
                known()
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_formats_and_are_chosen_by_extension() {
        for writer in WRITERS {
            assert_eq!(bimetal_core::trace::format(writer.format).unwrap().name, writer.format);
            let path = format!("out.{}", writer.format);
            assert_eq!(choose(None, Path::new(&path)).unwrap().format, writer.format);
            assert_eq!(choose(Some(writer.format), Path::new("x.tsv")).unwrap().format, writer.format);
        }
        assert_eq!(choose(None, Path::new("x.csv")).unwrap().format, "msr");
        assert!(choose(None, Path::new("x.tsv")).unwrap_err().contains("--to"));
        let compressed = choose(Some("msr"), Path::new("x.csv.gz")).unwrap_err();
        assert!(compressed.contains("`gzip x.csv`"), "{compressed}");
        assert!(choose(Some("csv"), Path::new("x.spc")).unwrap_err().contains("spc"));
    }

    #[test]
    fn times_finer_than_the_unit_of_a_format_are_a_warning() {
        let mut trace = crate::sample::open().unwrap();
        trace.keep_first(10);
        (0..).zip(&mut trace.requests).for_each(|(index, request)| request.arrival_ns = index * 50);
        trace.origin_ns = 0;
        for writer in WRITERS {
            let expected = "the times of 5 of 10 requests are cut off to 100 ns, the unit of `msr`";
            assert_eq!(writer.warnings(&trace), Vec::from_iter((writer.format == "msr").then_some(expected)));
        }
    }

    #[test]
    fn devices_that_a_format_cannot_tell_apart_are_a_warning() {
        let spc = b"0,0,512,w,0\n1,0,512,w,1\n";
        let trace = bimetal_core::trace::decode("two", spc, &bimetal_core::trace::Options::default()).unwrap();
        for writer in WRITERS {
            let expected = "the 2 devices become one: `midas` has no device numbers";
            assert_eq!(writer.warnings(&trace), Vec::from_iter((writer.format == "midas").then_some(expected)));
        }
    }
}
