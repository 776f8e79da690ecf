//! Sources of a point's requests: files, a generated workload, or the built-in trace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bimetal_core::trace::{self, DeviceChoice, Options};
use bimetal_core::workload;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::failure::{Failure, FailureKind};
use crate::prepare::Workload;
use crate::{generate, input, sample};

/// A trace of a study.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSource {
    /// Name in results.
    pub name: String,
    /// Source of its requests.
    pub from: Origin,
    /// Use only this number of first requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Source of requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Origin {
    /// The built-in trace.
    Sample,
    /// Files, which are concatenated. The options have the meaning of the command-line options.
    Files {
        /// Paths relative to the study file, or absolute.
        paths: Vec<String>,
        /// Name of the format; detected if not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// Unit of the time stamps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_unit: Option<String>,
        /// The columns of delimited text, JSON lines, Parquet or Arrow files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        columns: Option<String>,
        /// Placement of a cache trace's objects in the address space.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        objects: Option<String>,
        /// The event of a request that counts as its record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<String>,
        /// Use only these volumes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        volumes: Option<Vec<u64>>,
    },
    /// A generated workload.
    Generated {
        /// Name of the workload.
        workload: String,
        /// Its parameters. Missing ones have their defaults.
        set: BTreeMap<String, String>,
        /// Seed of all pseudo-random choices.
        seed: u64,
    },
    /// Requests that no command can name, because a caller passed them or they came from the standard input. No study
    /// file has such a trace.
    #[serde(skip_deserializing)]
    Memory,
}

/// A decoded trace that workers share.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The requests.
    pub workload: Workload,
    /// See [`TraceSource::fingerprint`].
    pub fingerprint: String,
}

impl TraceSource {
    /// The source of a trace that was read from files; without paths, of the built-in trace.
    pub fn opened(name: &str, paths: &[PathBuf], options: &Options) -> Self {
        let named = |path: &PathBuf| path.to_str().filter(|_| !input::is_standard_input(path)).map(str::to_owned);
        let volumes = match &options.devices {
            DeviceChoice::All => None,
            DeviceChoice::Only(ids) => Some(ids.clone()),
        };
        let files = |paths| Origin::Files {
            paths,
            format: options.format.map(|format| format.name.to_owned()),
            time_unit: options.time_unit.map(|unit| unit.to_string()),
            columns: options.columns.as_ref().map(ToString::to_string),
            objects: options.objects.map(|objects| objects.to_string()),
            action: options.action.map(|action| action.letter().to_string()),
            volumes,
        };
        let from = if paths.is_empty() {
            Origin::Sample
        } else {
            paths.iter().map(named).collect::<Option<_>>().map_or(Origin::Memory, files)
        };
        Self { name: name.to_owned(), from, limit: options.limit }
    }

    /// The source of requests that exist only in memory.
    pub fn in_memory(name: &str) -> Self {
        Self { name: name.to_owned(), from: Origin::Memory, limit: None }
    }

    /// A digest of the content that needs no decoding. For one file it is the SHA-256 of its bytes. For several files
    /// it is the SHA-256 of the lines that `sha256sum` would write for each, without names. `folder` is the folder of
    /// the study file.
    ///
    /// # Errors
    /// An unreadable file or an unknown workload.
    pub fn fingerprint(&self, folder: &Path) -> Result<String, Failure> {
        match &self.from {
            Origin::Sample => Ok(hex(&Sha256::digest(sample::BYTES))),
            Origin::Files { paths, .. } => {
                let sums = paths.iter().map(|path| sum_of(&folder.join(path))).collect::<Result<Vec<_>, _>>()?;
                match sums.as_slice() {
                    [only] => Ok(only.clone()),
                    several => {
                        Ok(hex(&Sha256::digest(several.iter().map(|sum| format!("{sum}\n")).collect::<String>())))
                    }
                }
            }
            Origin::Generated { workload, set, seed } => {
                let all = workload::settings(workload, &pairs(set)).map_err(Failure::trace)?;
                let settings: String = all.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
                Ok(hex(&Sha256::digest(format!("{workload}\n{settings}seed={seed}\n"))))
            }
            Origin::Memory => Err(self.is_gone()),
        }
    }

    /// Decodes or generates the requests. `folder` is the folder of the study file.
    ///
    /// # Errors
    /// The trace cannot be read or generated.
    pub fn load(&self, folder: &Path) -> Result<Loaded, Failure> {
        let fingerprint = self.fingerprint(folder)?;
        let trace = match &self.from {
            Origin::Sample => sample::open().map_err(Failure::trace)?,
            Origin::Files { paths, .. } => {
                let paths: Vec<PathBuf> = paths.iter().map(|path| folder.join(path)).collect();
                input::open(&paths, &self.options()?).map_err(Failure::trace)?
            }
            Origin::Generated { workload, set, seed } => generate::trace(workload, &pairs(set), *seed)?,
            Origin::Memory => return Err(self.is_gone()),
        };
        let mut workload = Workload::of(trace, self.limit);
        workload.facts.name.clone_from(&self.name);
        Ok(Loaded { workload, fingerprint })
    }

    fn is_gone(&self) -> Failure {
        Failure::trace(format!("the requests of `{}` are only in memory", self.name))
    }

    /// The options for reading its files.
    ///
    /// # Errors
    /// An unknown format, unit or other name.
    pub fn options(&self) -> Result<Options, Failure> {
        let Origin::Files { format, time_unit, columns, objects, action, volumes, .. } = &self.from else {
            return Ok(Options::default());
        };
        Ok(Options {
            format: format.as_deref().map(trace::format).transpose().map_err(Failure::trace)?,
            devices: volumes.clone().map_or(DeviceChoice::All, DeviceChoice::Only),
            time_unit: time_unit.as_deref().map(str::parse).transpose().map_err(Failure::trace)?,
            columns: columns.as_deref().map(str::parse).transpose().map_err(Failure::trace)?,
            objects: objects.as_deref().map(str::parse).transpose().map_err(Failure::trace)?,
            action: action.as_deref().map(str::parse).transpose().map_err(Failure::trace)?,
            limit: self.limit,
            ..Options::default()
        })
    }

    /// The words of a command line that generates the workload into a pipe. None for other sources.
    pub(super) fn generator(&self) -> Option<Vec<String>> {
        let Origin::Generated { workload, set, seed } = &self.from else { return None };
        let mut words: Vec<String> =
            ["bimetal", "generate", workload, "/dev/stdout", "--to", "bimetal"].map(Into::into).into();
        for (key, value) in set {
            words.extend(["--set".to_owned(), format!("{key}={value}")]);
        }
        words.extend(["--seed".to_owned(), seed.to_string()]);
        Some(words)
    }

    /// The words of a command line that name the trace, if possible.
    pub(super) fn words(&self) -> Option<Vec<String>> {
        let mut words = Vec::new();
        match &self.from {
            Origin::Memory => return None,
            Origin::Sample => {}
            Origin::Generated { .. } => words.push("-".to_owned()),
            Origin::Files { paths, format, time_unit, columns, objects, action, volumes } => {
                let path = |path: &String| if path.starts_with('-') { format!("./{path}") } else { path.clone() };
                words.extend(paths.iter().map(path));
                let options = [
                    ("--format", format),
                    ("--time-unit", time_unit),
                    ("--columns", columns),
                    ("--objects", objects),
                    ("--action", action),
                ];
                for (option, value) in options {
                    words.extend(value.iter().flat_map(|value| [option.to_owned(), value.clone()]));
                }
                if let Some(volumes) = volumes {
                    let ids: Vec<String> = volumes.iter().map(u64::to_string).collect();
                    words.extend(["--volumes".to_owned(), ids.join(",")]);
                }
            }
        }
        words.extend(self.limit.iter().flat_map(|limit| ["--limit".to_owned(), limit.to_string()]));
        Some(words)
    }
}

pub(super) fn pairs(settings: &BTreeMap<String, String>) -> Vec<(String, String)> {
    settings.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of a file.
fn sum_of(path: &Path) -> Result<String, Failure> {
    const CHUNK: usize = 1 << 18;
    let failed = |error: io::Error| Failure {
        kind: FailureKind::Trace,
        what: format!("{}: the file cannot be read: {error}", path.display()),
    };
    let mut file = File::open(path).map_err(failed)?;
    let (mut sum, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        match file.read(&mut chunk).map_err(failed)? {
            0 => return Ok(hex(&sum.finalize())),
            read => sum.update(&chunk[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> TraceSource {
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        let from = Origin::Files {
            paths,
            format: None,
            time_unit: None,
            columns: None,
            objects: None,
            action: None,
            volumes: None,
        };
        TraceSource { name: "t".into(), from, limit: None }
    }

    #[test]
    fn what_was_read_is_named_as_it_was_unless_it_cannot_be_read_again() {
        let opened = |paths: &[&str], options: &Options| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            TraceSource::opened("t", &paths, options).words()
        };
        let options = Options {
            format: Some(trace::format("spc").unwrap()),
            devices: DeviceChoice::Only(vec![0, 2]),
            time_unit: Some("ms".parse().unwrap()),
            columns: Some("time:ms,-,op:1=read,offset:sectors,size".parse().unwrap()),
            objects: Some("sectors".parse().unwrap()),
            action: Some("D".parse().unwrap()),
            limit: Some(9),
            ..Options::default()
        };
        let words = opened(&["a b", "-c"], &options).unwrap().join(" ");
        assert_eq!(
            words,
            "a b ./-c --format spc --time-unit ms --columns time:ms,-,op:1=read,offset:sectors,size:bytes --objects sectors --action D --volumes 0,2 --limit 9"
        );
        let plain = Options { limit: Some(9), ..Options::default() };
        assert_eq!(opened(&[], &plain).unwrap().join(" "), "--limit 9");
        assert_eq!(opened(&["a", "-"], &plain), None, "the standard input");
        let source = TraceSource::in_memory("t");
        assert_eq!(source.words(), None);
        assert!(source.load(Path::new(".")).unwrap_err().what.contains("only in memory"));
    }

    #[test]
    fn content_decides_what_a_trace_is_known_by() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [("a", "abc"), ("b", "abd"), ("c", "abc")] {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let of = |paths: &[&str]| files(paths).fingerprint(folder.path()).unwrap();
        // FIPS 180-2, example B.1.
        assert_eq!(of(&["a"]), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(of(&["a"]), of(&["c"]));
        assert_ne!(of(&["a"]), of(&["b"]));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
        let missing = files(&["none"]).fingerprint(folder.path()).unwrap_err();
        assert!(missing.kind == FailureKind::Trace && missing.what.contains("none"), "{missing:?}");

        let generated = |seed, requests: &str| {
            let set = BTreeMap::from([("requests".to_owned(), requests.to_owned())]);
            let from = Origin::Generated { workload: "zipf".into(), set, seed };
            TraceSource { name: "g".into(), from, limit: None }.fingerprint(folder.path()).unwrap()
        };
        assert_eq!(generated(1, "30"), generated(1, "30"));
        assert_ne!(generated(1, "30"), generated(2, "30"));
        assert_ne!(generated(1, "30"), generated(1, "31"));
    }
}
