//! Comparison of two results of `compare` or `replay`: the changes of each scheme, and whether the results are
//! comparable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bimetal_core::report::{Better, Figure, KeyFigures, Overload, ResponseFigures, Shown, Unit};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compare::{RESULTS_SCHEMA, Spread};
use crate::listing::{Rows, Sheet};
use crate::number::{EXTRAPOLATED, KNOWN_FROM_OVERWRITES, NOTHING, significant};

/// Largest number of differing device keys that are named.
const KEYS_NAMED: usize = 6;

/// The fields of a results file that are compared.
#[derive(Debug, Deserialize)]
struct Results {
    bimetal: String,
    #[serde(default)]
    schema: u32,
    trace: TraceName,
    #[serde(default)]
    trace_digest: Option<String>,
    replay: Value,
    results: Vec<Scheme>,
}

#[derive(Debug, Deserialize)]
struct TraceName {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Scheme {
    scheme: String,
    response_us: ResponseFigures,
    #[serde(default)]
    spread: Option<Spread>,
    #[serde(default)]
    service_us: Option<ResponseFigures>,
    #[serde(default)]
    load: Load,
    #[serde(default)]
    lifetime_overwrites: Option<f64>,
    device: Value,
    #[serde(flatten)]
    key: KeyFigures,
}

#[derive(Debug, Default, Deserialize)]
struct Load {
    #[serde(default)]
    overload: Overload,
}

impl Scheme {
    /// Whether its responses only reflect the length of the trace.
    fn falls_behind(&self) -> bool {
        self.load.overload == Overload::Growing
    }

    /// Its responses, with the mean over all seeds.
    fn responses(&self) -> ResponseFigures {
        let mean = self.spread.map_or(self.response_us.mean, |spread| spread.mean_us);
        ResponseFigures { mean, ..self.response_us }
    }

    /// Number of seeds.
    fn seeds(&self) -> u32 {
        self.spread.map_or(1, |spread| spread.seeds)
    }

    /// Whether its life is extrapolated from less than one overwrite of the device.
    fn is_extrapolated(&self) -> bool {
        self.lifetime_overwrites.is_some_and(|overwrites| overwrites < KNOWN_FROM_OVERWRITES)
    }
}

/// The JSON output of `bimetal diff`.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Diff {
    /// The first file.
    pub a: Side,
    /// The second file.
    pub b: Side,
    /// Other possible causes of the changes than the schemes: different traces, replays, devices or programs.
    pub differences: Vec<String>,
    /// Each scheme that is in both files, in the order of the second.
    pub schemes: Vec<SchemeDiff>,
    /// Schemes that are only in the first file.
    pub only_in_a: Vec<String>,
    /// Schemes that are only in the second file.
    pub only_in_b: Vec<String>,
}

/// A results file.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Side {
    /// The file.
    pub file: String,
    /// Version of the program that wrote it.
    pub bimetal: String,
    /// Version of the results schema; 0 if the file does not state it.
    pub schema: u32,
    /// Name of the trace.
    pub trace: String,
    /// Digest of the trace's requests; `None` if the file does not state it.
    pub trace_digest: Option<String>,
}

/// A scheme in both files.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SchemeDiff {
    /// Its name.
    pub scheme: String,
    /// Every figure that both files have.
    pub figures: Vec<Change>,
}

/// A figure in both files.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// Its name, as in the results: `response_us.mean`, `write_amplification`. The mean response is over all seeds.
    pub name: String,
    /// Its column head, in one or two lines.
    #[serde(skip)]
    head: String,
    /// Its unit.
    #[serde(skip)]
    unit: Unit,
    /// Whether it is extrapolated from less than one overwrite of the device, in the first and in the second file.
    #[serde(skip)]
    extrapolated: [bool; 2],
    /// Value in the first file.
    pub a: f64,
    /// Value in the second file.
    pub b: f64,
    /// Change from the first to the second, in percent of the first; `None` if the first is 0 and the second is not.
    pub percent: Option<f64>,
    /// Whether the second is better; `None` if both are equal or neither direction is better.
    pub is_better: Option<bool>,
}

impl Results {
    /// Reads a file.
    fn read(path: &Path) -> Result<Self, String> {
        let named = |what: String| format!("{}: {what}", path.display());
        let bytes = std::fs::read(path).map_err(|error| named(format!("the file cannot be read: {error}")))?;
        let hint = "hint: results are written by `bimetal compare --json FILE`";
        let value: Value =
            serde_json::from_slice(&bytes).map_err(|error| named(format!("this is not JSON: {error}; {hint}")))?;
        let results: Self = serde_json::from_value(value)
            .map_err(|error| named(format!("these are no results of `compare` or `replay`: {error}; {hint}")))?;
        if results.schema > RESULTS_SCHEMA {
            return Err(named(format!(
                "its results have schema {}, and this program reads up to {RESULTS_SCHEMA}; hint: use the version of `bimetal` that \
                 wrote it, {}, or a later one",
                results.schema, results.bimetal
            )));
        }
        Ok(results)
    }

    fn side(&self, path: &Path) -> Side {
        Side {
            file: path.display().to_string(),
            bimetal: self.bimetal.clone(),
            schema: self.schema,
            trace: self.trace.name.clone(),
            trace_digest: self.trace_digest.clone(),
        }
    }

    fn scheme(&self, name: &str) -> Option<&Scheme> {
        self.results.iter().find(|scheme| scheme.scheme == name)
    }

    /// Schemes that the other file does not have.
    fn without(&self, other: &Self) -> Vec<String> {
        let missing = self.results.iter().filter(|scheme| other.scheme(&scheme.scheme).is_none());
        missing.map(|scheme| scheme.scheme.clone()).collect()
    }
}

impl Diff {
    /// Reads two files and compares them.
    ///
    /// # Errors
    /// A file cannot be read, or is not a results file of a known schema.
    pub fn of(a: &Path, b: &Path) -> Result<Self, String> {
        let (first, second) = (Results::read(a)?, Results::read(b)?);
        let both = second.results.iter().filter_map(|scheme| Some((first.scheme(&scheme.scheme)?, scheme)));
        let is_same_work = first.replay == second.replay && first.trace_digest == second.trace_digest;
        Ok(Self {
            a: first.side(a),
            b: second.side(b),
            differences: differences(&first, &second),
            schemes: both
                .map(|(a, b)| SchemeDiff { scheme: b.scheme.clone(), figures: changes(a, b, is_same_work) })
                .collect(),
            only_in_a: first.without(&second),
            only_in_b: second.without(&first),
        })
    }

    /// The summary in a sentence.
    pub fn verdict(&self) -> String {
        let changed: Vec<&SchemeDiff> =
            self.schemes.iter().filter(|scheme| scheme.figures.iter().any(|figure| figure.a != figure.b)).collect();
        let schemes = match self.schemes.len() {
            0 => return "no scheme is in both files".to_owned(),
            1 => "the scheme".to_owned(),
            all => format!("{} of {all} schemes", changed.len()),
        };
        if changed.is_empty() {
            return format!(
                "all figures are the same for {}",
                if self.schemes.len() == 1 { "the scheme" } else { "all schemes" }
            );
        }
        let judged = changed.iter().flat_map(|scheme| {
            let figures = scheme.figures.iter().filter(|figure| figure.is_better.is_some());
            figures.filter_map(|figure| Some((scheme.scheme.as_str(), figure, figure.percent?)))
        });
        let largest = judged.max_by(|(_, _, a), (_, _, b)| a.abs().total_cmp(&b.abs()));
        let largest = largest.map_or_else(String::new, |(scheme, figure, percent)| {
            let how = if figure.is_better == Some(true) { "better" } else { "worse" };
            format!("; most: `{scheme}`, {} {}, {how}", figure.head.replace('\n', " "), signed(percent))
        });
        format!("{schemes} changed{largest}")
    }

    /// Notes on the table.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for (file, schemes) in [(&self.a.file, &self.only_in_a), (&self.b.file, &self.only_in_b)] {
            if !schemes.is_empty() {
                remarks.push(format!("only in {file}: {}", schemes.join(", ")));
            }
        }
        if !self.schemes.is_empty() {
            remarks
                .push(format!("changes from {} to {}; ! is worse, = is the same to the bit", self.a.file, self.b.file));
            remarks.push("more life is better, and less of every other figure".to_owned());
        }
        if self.schemes.iter().flat_map(|scheme| &scheme.figures).any(Change::is_extrapolated) {
            let what = "extrapolated from less than one overwrite of the device: it may be much shorter";
            remarks.push(format!("{EXTRAPOLATED} life {what}"));
        }
        remarks
    }

    /// Changes in percent: a row for each scheme, a column for each figure.
    pub fn sheet(&self) -> Sheet {
        self.sheet_of(|figure| figure.head.clone(), Change::shown)
    }

    /// The values in both files, with the same rows and columns.
    pub fn values(&self) -> Sheet {
        self.sheet_of(
            |figure| format!("{} ({})", figure.head, figure.unit.name()),
            |figure| {
                let [a, b] = figure.extrapolated.map(|is_so| if is_so { EXTRAPOLATED } else { "" });
                format!("{a}{} → {b}{}", significant(figure.a), significant(figure.b))
            },
        )
    }

    fn sheet_of(&self, head: impl Fn(&Change) -> String, shown: impl Fn(&Change) -> String) -> Sheet {
        let mut columns: Vec<&Change> = Vec::new();
        for figure in self.schemes.iter().flat_map(|scheme| &scheme.figures) {
            if !columns.iter().any(|known| known.name == figure.name) {
                columns.push(figure);
            }
        }
        let row = |scheme: &SchemeDiff| {
            let cell = |column: &&Change| {
                let figure = scheme.figures.iter().find(|figure| figure.name == column.name);
                figure.map_or_else(|| NOTHING.to_owned(), &shown)
            };
            std::iter::once(scheme.scheme.clone()).chain(columns.iter().map(cell)).collect()
        };
        let heads = std::iter::once("scheme".to_owned()).chain(columns.iter().map(|column| head(column))).collect();
        Sheet { heads, groups: vec![Rows { title: None, rows: self.schemes.iter().map(row).collect() }] }
    }
}

impl Change {
    fn of((name, head, unit): (String, String, Unit), a: f64, b: f64, better: Better) -> Self {
        let percent = if a == b {
            Some(0.0)
        } else if a == 0.0 {
            None
        } else {
            Some((b / a - 1.0) * 100.0)
        };
        let is_better = match better {
            Better::Lower if a != b => Some(b < a),
            Better::Higher if a != b => Some(b > a),
            _ => None,
        };
        Self { name, head, unit, extrapolated: [false; 2], a, b, percent, is_better }
    }

    fn is_extrapolated(&self) -> bool {
        self.extrapolated.contains(&true)
    }

    fn shown(&self) -> String {
        if self.a == self.b {
            return "=".to_owned();
        }
        let worse = if self.is_better == Some(false) { "! " } else { "" };
        let mark = if self.is_extrapolated() { EXTRAPOLATED } else { "" };
        self.percent
            .map_or_else(|| format!("{worse}{mark}from 0"), |percent| format!("{worse}{mark}{}", signed(percent)))
    }
}

/// A change in percent with its sign.
fn signed(percent: f64) -> String {
    match percent.abs() {
        0.05..999.5 => format!("{percent:+.1} %"),
        ..0.05 => format!("{percent:+.3} %"),
        _ => format!("{percent:+.0} %"),
    }
}

/// Changes of request times, then of the other figures. Figures that are only shown in details are left out, and sums
/// over all requests, such as energy, unless both files are of the same work.
fn changes(a: &Scheme, b: &Scheme, is_same_work: bool) -> Vec<Change> {
    let mut changes = Vec::new();
    let comparable = !a.falls_behind() && !b.falls_behind();
    let times = [
        ("service_us", "service", a.service_us.zip(b.service_us)),
        ("response_us", "response", comparable.then(|| (a.responses(), b.responses()))),
    ];
    for (field, head, values) in times {
        let Some((a, b)) = &values else { continue };
        for figure in ResponseFigures::ALL.iter().filter(|figure| matches!(figure.shown, Shown::Table(_))) {
            if let Some((x, y)) = (figure.of)(a).zip((figure.of)(b)) {
                let (name, head) = (format!("{field}.{}", figure.name), format!("{head}\n{}", figure.head));
                changes.push(Change::of((name, head, figure.unit), x, y, figure.better));
            }
        }
    }
    let is_shown =
        |figure: &&Figure<KeyFigures>| figure.shown != Shown::Details && (is_same_work || figure.unit != Unit::Joule);
    for figure in KeyFigures::ALL.iter().filter(is_shown) {
        if let Some((x, y)) = (figure.of)(&a.key).zip((figure.of)(&b.key)) {
            let named = (figure.name.to_owned(), figure.head.to_owned(), figure.unit);
            let extrapolated = [a, b].map(|scheme| figure.is_extrapolated() && scheme.is_extrapolated());
            changes.push(Change { extrapolated, ..Change::of(named, x, y, figure.better) });
        }
    }
    changes
}

/// Other possible causes of the changes than the schemes.
fn differences(a: &Results, b: &Results) -> Vec<String> {
    let mut found = Vec::new();
    match (&a.trace_digest, &b.trace_digest) {
        (Some(x), Some(y)) if x != y => {
            found.push(format!("different requests: {} ({x}) and {} ({y})", a.trace.name, b.trace.name));
        }
        (Some(_), Some(_)) => {}
        _ => found.push("a file has no digest of its trace, so the requests may differ".to_owned()),
    }
    let replay = keys_that_differ(&a.replay, &b.replay);
    if !replay.is_empty() {
        found.push(format!("replayed differently: {}", replay.join(", ")));
    }
    let (mut device, mut seeds) = (BTreeSet::new(), BTreeSet::new());
    for scheme in &b.results {
        if let Some(other) = a.scheme(&scheme.scheme) {
            device.extend(keys_that_differ(&other.device, &scheme.device));
            seeds.extend((other.seeds() != scheme.seeds()).then(|| (other.seeds(), scheme.seeds())));
        }
    }
    found.extend(seeds.into_iter().map(|(a, b)| format!("different numbers of seeds: {a} and {b}")));
    if !device.is_empty() {
        let more = device.len().saturating_sub(KEYS_NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let named: Vec<String> = device.into_iter().take(KEYS_NAMED).collect();
        found.push(format!("different devices: {}{more}", named.join(", ")));
    }
    if a.bimetal != b.bimetal {
        found.push(format!("different versions of bimetal: {} and {}", a.bimetal, b.bimetal));
    }
    if a.schema != b.schema {
        found.push(format!("results of schema {} and {}", a.schema, b.schema));
    }
    found
}

/// Keys with different values, and both values where a scalar replaces another scalar.
fn keys_that_differ(a: &Value, b: &Value) -> Vec<String> {
    let (mut first, mut second) = (BTreeMap::new(), BTreeMap::new());
    flatten("", a, &mut first);
    flatten("", b, &mut second);
    let keys: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let shown = |value: Option<&String>| value.map_or_else(|| NOTHING.to_owned(), Clone::clone);
    keys.into_iter()
        // A device's summary repeats its fields.
        .filter(|key| first.get(*key) != second.get(*key) && !key.ends_with("summary"))
        .map(|key| format!("{key} {} and {}", shown(first.get(key)), shown(second.get(key))))
        .collect()
}

/// Collects the values of a tree by their paths. Named elements of a list have their name in the path, not their index.
fn flatten(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| flatten(&below(key), value, found)),
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                let name = value.get("name").and_then(Value::as_str).map_or_else(|| index.to_string(), str::to_owned);
                flatten(&below(&name), value, found);
            }
        }
        Value::String(text) => drop(found.insert(path.to_owned(), text.clone())),
        other => drop(found.insert(path.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn results(digest: &str, scheme: &str, mean: f64, capacity: &str) -> String {
        let times = |mean: f64| format!(r#"{{"count":1,"mean":{mean},"p50":1,"p95":1,"p99":4,"p999":1,"max":1}}"#);
        format!(
            r#"{{"bimetal":"0.1.0","schema":1,"trace":{{"name":"t"}},"trace_digest":"{digest}","replay":{{"arrivals":"trace"}},
            "results":[{{"scheme":"{scheme}","response_us":{},"service_us":null,"write_amplification":2.0,"energy_j":0.0,
            "cost_usd":1.0,"lifetime_host_bytes":null,"lifetime_years":null,
            "device":{{"name":"d","summary":"{capacity}","region":[{{"name":"fast","capacity":"{capacity}"}}]}}}}]}}"#,
            times(mean)
        )
    }

    #[test]
    fn changes_have_their_direction_and_what_else_differs_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let a = file(folder.path(), "a.json", &results("1", "hyssd", 10.0, "8MiB"));
        let b = file(folder.path(), "b.json", &results("2", "hyssd", 15.0, "16MiB"));
        let diff = Diff::of(&a, &b).unwrap();
        assert_eq!(
            diff.differences,
            ["different requests: t (1) and t (2)", "different devices: region.fast.capacity 8MiB and 16MiB"]
        );
        let mean = &diff.schemes[0].figures[0];
        assert_eq!((mean.name.as_str(), mean.percent, mean.is_better), ("response_us.mean", Some(50.0), Some(false)));
        assert_eq!(diff.verdict(), "the scheme changed; most: `hyssd`, response mean +50.0 %, worse");
        let row = &diff.sheet().groups[0].rows[0];
        assert_eq!(row[..4], ["hyssd", "! +50.0 %", "=", "="]);
        let behind =
            results("1", "hyssd", 90.0, "8MiB").replace(r#""service_us":null"#, r#""load":{"overload":"growing"}"#);
        let behind = file(folder.path(), "behind.json", &behind);
        let figures = &Diff::of(&a, &behind).unwrap().schemes[0].figures;
        assert!(
            figures.iter().all(|figure| !figure.name.starts_with("response_us")),
            "a device that falls behind has no mean"
        );
        let same = Diff::of(&a, &a).unwrap();
        assert!(same.differences.is_empty(), "{:?}", same.differences);
        assert_eq!(same.verdict(), "all figures are the same for the scheme");
    }

    #[test]
    fn a_mean_is_that_over_all_seeds() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, own: f64, all: f64| {
            let spread = format!(r#""spread":{{"seeds":3,"min_us":1,"max_us":99,"mean_us":{all}}},"service_us""#);
            file(folder.path(), name, &results("1", "hyssd", own, "8MiB").replace(r#""service_us""#, &spread))
        };
        let (a, b) = (of("a.json", 10.0, 20.0), of("b.json", 15.0, 21.0));
        let diff = Diff::of(&a, &b).unwrap();
        let mean = &diff.schemes[0].figures[0];
        assert_eq!((mean.name.as_str(), mean.a, mean.b), ("response_us.mean", 20.0, 21.0));
        assert!(diff.differences.is_empty(), "{:?}", diff.differences);
        let one = file(folder.path(), "one.json", &results("1", "hyssd", 10.0, "8MiB"));
        let diff = Diff::of(&one, &b).unwrap();
        assert_eq!((diff.schemes[0].figures[0].a, diff.schemes[0].figures[0].b), (10.0, 21.0));
        assert_eq!(diff.differences, ["different numbers of seeds: 1 and 3"]);
    }

    #[test]
    fn extrapolated_lives_are_marked() {
        let folder = tempfile::tempdir().unwrap();
        let of = |years: f64, overwrites: f64| {
            let lives = format!(r#""lifetime_years":{years},"lifetime_overwrites":{overwrites}"#);
            let text = results("1", "hyssd", 10.0, "8MiB").replace(r#""lifetime_years":null"#, &lives);
            file(folder.path(), &format!("{years}.json"), &text)
        };
        let (short, known) = (of(1.0, 0.9), of(2.0, 1.0));
        let shown = |a: &Path, b: &Path| {
            let diff = Diff::of(a, b).unwrap();
            let last = |sheet: Sheet| sheet.groups[0].rows[0].last().cloned().unwrap();
            (last(diff.sheet()), last(diff.values()), diff.remarks().len())
        };
        assert_eq!(shown(&short, &known), ("~+100.0 %".to_owned(), "~1.00 → 2.00".to_owned(), 3));
        assert_eq!(shown(&known, &short), ("! ~-50.0 %".to_owned(), "2.00 → ~1.00".to_owned(), 3));
        assert_eq!(shown(&known, &known), ("=".to_owned(), "2.00 → 2.00".to_owned(), 2));
    }

    #[test]
    fn schemes_of_one_file_are_listed_and_wrong_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let a = file(folder.path(), "a.json", &results("1", "hyssd", 10.0, "8MiB"));
        let b = file(folder.path(), "b.json", &results("1", "chang", 10.0, "8MiB"));
        let diff = Diff::of(&a, &b).unwrap();
        assert_eq!(
            (diff.only_in_a.as_slice(), diff.only_in_b.as_slice()),
            (&["hyssd".to_owned()][..], &["chang".to_owned()][..])
        );
        assert_eq!(diff.verdict(), "no scheme is in both files");
        let refused = |text: &str| Diff::of(&a, &file(folder.path(), "c.json", text)).unwrap_err();
        assert!(refused("{").contains("c.json: this is not JSON"));
        assert!(refused("{}").contains("missing field"));
        let later = results("1", "hyssd", 1.0, "8MiB").replace("\"schema\":1", "\"schema\":99");
        assert!(refused(&later).contains("schema 99"));
        assert!(Diff::of(&a, &folder.path().join("none")).unwrap_err().contains("cannot be read"));
    }
}
