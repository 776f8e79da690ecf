//! Rows as a table: CSV, JSON, and with the feature `parquet` [Parquet](super::parquet_file).
//!
//! A column has one type, and null cells for rows without a value. The set and the order of columns depend only on the
//! rows.

use std::collections::BTreeSet;
use std::io::{self, Write};

use bimetal_core::report::{KeyFigures, ResponseFigures};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::failure::FailureKind;
use super::pareto;
use super::row::{Figures, Row};
use super::study::Planned;
use crate::compare::Speed;

/// Columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// Number of rows.
    pub rows: usize,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// A cell for each row.
    pub cells: Cells,
}

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the types say it all")]
pub enum Cells {
    Text(Vec<Option<String>>),
    Whole(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
    Truth(Vec<Option<bool>>),
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Cell<'a> {
    /// The row has no value for the column.
    Nothing,
    /// A name or an error message.
    Text(&'a str),
    /// A count.
    Whole(i64),
    /// A measured value.
    Number(f64),
    /// Yes or no.
    Truth(bool),
}

/// Splits off the rows of optional points that the device or scheme refused. Returns the kept rows and those left out.
pub fn without_left_out(points: &[Planned], rows: Vec<Row>) -> (Vec<Row>, Vec<Row>) {
    let is_refused = |row: &Row| row.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Refused);
    let (left_out, kept): (Vec<_>, Vec<_>) =
        rows.into_iter().zip(points).partition(|(row, planned)| planned.optional && is_refused(row));
    let rows = |pairs: Vec<(Row, &Planned)>| pairs.into_iter().map(|(row, _)| row).collect();
    (rows(kept), rows(left_out))
}

impl Table {
    /// The table of all rows.
    pub fn of(rows: &[Row]) -> Self {
        let mut table = Builder { rows, columns: Vec::new() };
        table.dimensions();
        table.text("failure", |row| row.failure.as_ref().map(|failure| failure.kind.to_string()));
        table.text("error", |row| row.failure.as_ref().map(|failure| failure.what.clone()));
        table.figures();
        table.parts();
        table.metrics();
        table.text("notes", |row| row.figures.as_ref().map(|figures| figures.notes.join("; ")));
        table.text("command", |row| Some(row.command.clone()));
        table.text("device_toml", |row| row.figures.as_ref().map(|figures| figures.device.clone()));
        table.text("trace_fingerprint", |row| Some(row.trace_fingerprint.clone()));
        table.text("key", |row| Some(row.key.clone()));
        table.whole("scheme_version", |row| Some(u64::from(row.scheme_version)));
        table.text("bimetal", |row| Some(row.bimetal.clone()));
        let speed = |value: fn(&Speed) -> f64| move |row: &Row| row.speed.as_ref().map(value);
        table.number("wall_s", speed(|speed| speed.wall_s));
        table.number("requests_per_s", speed(|speed| speed.requests_per_s));
        Self { columns: table.columns, rows: rows.len() }
    }

    fn row(&self, at: usize) -> impl Iterator<Item = (&str, Cell<'_>)> {
        self.columns.iter().map(move |column| (column.name.as_str(), column.cells.at(at)))
    }

    /// Writes CSV (RFC 4180): a line of names, then the rows. A null cell is an empty field.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_csv(&self, to: impl Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(to);
        csv.write_record(self.columns.iter().map(|column| &column.name))?;
        for at in 0..self.rows {
            csv.write_record(self.row(at).map(|(_, cell)| cell.to_text()))?;
        }
        csv.flush()
    }

    /// Writes JSON: an array with an object for each row, one on each line.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_json(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(b"[")?;
        for at in 0..self.rows {
            to.write_all(if at == 0 { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut to, &JsonRow(self, at))?;
        }
        to.write_all(b"\n]\n")
    }
}

struct JsonRow<'a>(&'a Table, usize);

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.columns.len()))?;
        for (name, cell) in self.0.row(self.1) {
            map.serialize_entry(name, &cell)?;
        }
        map.end()
    }
}

impl Cells {
    fn at(&self, at: usize) -> Cell<'_> {
        let cell = match self {
            Self::Text(cells) => cells[at].as_deref().map(Cell::Text),
            Self::Whole(cells) => cells[at].map(Cell::Whole),
            Self::Number(cells) => cells[at].map(Cell::Number),
            Self::Truth(cells) => cells[at].map(Cell::Truth),
        };
        cell.unwrap_or(Cell::Nothing)
    }
}

impl Cell<'_> {
    fn to_text(self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Text(text) => text.to_owned(),
            Self::Whole(whole) => whole.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
        }
    }
}

struct Builder<'a> {
    rows: &'a [Row],
    columns: Vec<Column>,
}

impl Builder<'_> {
    fn push(&mut self, name: impl Into<String>, cells: Cells) {
        self.columns.push(Column { name: name.into(), cells });
    }

    fn text(&mut self, name: impl Into<String>, cell: impl Fn(&Row) -> Option<String>) {
        let cells = self.rows.iter().map(cell).collect();
        self.push(name, Cells::Text(cells));
    }

    fn whole(&mut self, name: impl Into<String>, cell: impl Fn(&Row) -> Option<u64>) {
        let cell = |row: &Row| cell(row).map(|whole| i64::try_from(whole).unwrap_or(i64::MAX));
        let cells = self.rows.iter().map(cell).collect();
        self.push(name, Cells::Whole(cells));
    }

    fn number(&mut self, name: impl Into<String>, cell: impl Fn(&Row) -> Option<f64>) {
        let cells = self.rows.iter().map(cell).collect();
        self.push(name, Cells::Number(cells));
    }

    fn figure(&mut self, name: &str, figure: impl Fn(&Figures) -> Option<f64>) {
        self.number(name, |row| row.figures.as_ref().and_then(&figure));
    }

    /// The columns that identify a point.
    fn dimensions(&mut self) {
        self.text("trace", |row| Some(row.point.trace.name.clone()));
        self.text("device", |row| Some(row.point.device.name.clone()));
        self.text("scheme", |row| Some(row.point.scheme.clone()));
        let keys: BTreeSet<&String> = self.rows.iter().flat_map(|row| row.point.set.keys()).collect();
        for key in keys {
            self.setting(key);
        }
        self.text("arrivals", |row| Some(row.point.replay.arrivals.clone()));
        self.whole("repeat", |row| Some(u64::from(row.point.replay.repeat)));
        self.whole("measure", |row| Some(u64::from(row.point.replay.measure)));
        self.text("fill", |row| Some(row.point.replay.fill.clone()));
    }

    /// A setting. Its column is numeric if it is a number in all rows that have it.
    fn setting(&mut self, key: &str) {
        let name = format!("set.{key}");
        let texts: Vec<Option<&String>> = self.rows.iter().map(|row| row.point.set.get(key)).collect();
        let given = || texts.iter().copied().flatten();
        let number = |text: &String| text.parse().ok().filter(|number: &f64| number.is_finite());
        if given().all(|text| text.parse::<i64>().is_ok()) {
            self.push(name, Cells::Whole(texts.iter().map(|text| text.and_then(|text| text.parse().ok())).collect()));
        } else if given().all(|text| number(text).is_some()) {
            self.push(name, Cells::Number(texts.iter().map(|text| text.and_then(number)).collect()));
        } else {
            self.text(name, |row| row.point.set.get(key).cloned());
        }
    }

    fn figures(&mut self) {
        self.text("overload", |row| {
            row.figures.as_ref().map(|figures| format!("{:?}", figures.overload).to_lowercase())
        });
        let front: BTreeSet<usize> = pareto::of_rows(self.rows, &pareto::USUAL).into_iter().collect();
        let rows = self.rows.iter().enumerate();
        let on_front = rows.map(|(at, row)| row.figures.is_some().then(|| front.contains(&at))).collect();
        self.push("on_front", Cells::Truth(on_front));
        self.responses("", |figures| &figures.response_us);
        self.responses("read_", |figures| &figures.read_us);
        self.responses("write_", |figures| &figures.write_us);
        self.figure("throughput_per_s", |figures| figures.throughput_per_s);
        for figure in KeyFigures::ALL {
            self.figure(figure.name, |figures| (figure.of)(&figures.key_figures));
        }
        self.figure("lifetime_overwrites", |figures| Some(figures.lifetime_overwrites));
        self.figure("utilisation", |figures| Some(figures.utilisation));
        self.text("bottleneck", |row| row.figures.as_ref().map(|figures| figures.bottleneck.clone()));
        self.figure("simulated_s", |figures| Some(figures.simulated_s));
        self.whole("requests", |row| row.figures.as_ref().map(|figures| figures.requests));
        self.whole("logical_bytes", |row| row.figures.as_ref().map(|figures| figures.logical_bytes));
        self.figure("spare", |figures| Some(figures.spare));
    }

    fn responses(&mut self, kind: &str, of: fn(&Figures) -> &ResponseFigures) {
        for figure in ResponseFigures::ALL {
            let served = |figures: &Figures| Some(of(figures)).filter(|figures| figures.count > 0).and_then(figure.of);
            self.figure(&format!("{kind}{}_us", figure.name), served);
        }
    }

    /// Columns of regions and disks, by name.
    fn parts(&mut self) {
        for name in self.names(|figures| figures.regions.iter().map(|region| &region.name).collect()) {
            let of = |row: &Row| row.figures.as_ref()?.regions.iter().find(|region| region.name == name).cloned();
            self.text(format!("{name}.chip"), |row| of(row).map(|region| region.chip));
            self.whole(format!("{name}.blocks"), |row| of(row).map(|region| u64::from(region.blocks)));
            self.whole(format!("{name}.capacity_bytes"), |row| of(row).map(|region| region.capacity_bytes));
        }
        for name in self.names(|figures| figures.wear.iter().map(|wear| &wear.name).collect()) {
            let of = |row: &Row| row.figures.as_ref()?.wear.iter().find(|wear| wear.name == name).cloned();
            self.number(format!("{name}.erases_mean"), |row| of(row).map(|wear| wear.erases_mean));
            self.number(format!("{name}.wear_used"), |row| of(row).map(|wear| wear.used));
        }
        for name in self.names(|figures| figures.disks.iter().map(|disk| &disk.name).collect()) {
            let of = |row: &Row| row.figures.as_ref()?.disks.iter().find(|disk| disk.name == name).cloned();
            self.text(format!("{name}.drive"), |row| of(row).map(|disk| disk.drive));
            self.whole(format!("{name}.capacity_bytes"), |row| of(row).map(|disk| disk.capacity_bytes));
        }
    }

    fn metrics(&mut self) {
        for name in self.names(|figures| figures.metrics.iter().map(|(name, _)| name).collect()) {
            self.figure(&format!("metric.{name}"), |figures| {
                figures.metrics.iter().find(|(known, _)| *known == name).and_then(|(_, value)| *value)
            });
        }
    }

    /// All names of a kind, in alphabetical order.
    fn names(&self, names: impl Fn(&Figures) -> Vec<&String>) -> Vec<String> {
        let all: BTreeSet<&String> = self.rows.iter().filter_map(|row| row.figures.as_ref()).flat_map(names).collect();
        all.into_iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::run;
    use crate::sweep::study::Study;
    use std::path::Path;

    fn table() -> Table {
        let text = "traces = [{ limit = 300, name = \"a, \\\"b\\\"\" }]\n[[grids]]\nscheme = [\"pagemap\", \"chang\"]\n\
                    set.\"slow.spare\" = [\"9%\", \"0%\"]\nset.hash_probes = [4, 8]\nset.gc_free_blocks = 2";
        let study = Study::parse(text, Path::new(".")).unwrap();
        let rows: Vec<Row> = study
            .points
            .iter()
            .map(|planned| run::run(&planned.point, Path::new("."), &mut bimetal_core::replay::to_the_end))
            .collect();
        Table::of(&rows)
    }

    #[test]
    fn columns_have_a_type_and_every_row_a_cell() {
        let table = table();
        let column = |name: &str| &table.columns.iter().find(|column| column.name == name).unwrap().cells;
        assert_eq!(table.rows, 6);
        assert_eq!(*column("set.hash_probes"), Cells::Whole([None, None, Some(4), Some(4), Some(8), Some(8)].to_vec()));
        let Cells::Number(means) = column("mean_us") else { panic!() };
        let Cells::Text(failures) = column("failure") else { panic!() };
        for (mean, failure) in means.iter().zip(failures) {
            assert!(mean.is_some() != failure.is_some());
        }
        let Cells::Whole(slc) = column("fast.capacity_bytes") else { panic!() };
        assert!(slc[0].is_none() && slc.iter().any(Option::is_some));
        let names: BTreeSet<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names.len(), table.columns.len(), "each name once");
        for name in
            ["trace", "scheme", "cost_usd", "write_p999_us", "lifetime_years", "slow.wear_used", "command", "key"]
        {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn csv_and_json_hold_every_cell() {
        let table = table();
        let mut bytes = Vec::new();
        table.write_csv(&mut bytes).unwrap();
        let mut read = csv::Reader::from_reader(bytes.as_slice());
        let names: Vec<String> = read.headers().unwrap().iter().map(str::to_owned).collect();
        assert!(names.iter().zip(&table.columns).all(|(name, column)| *name == column.name));
        for (at, record) in read.records().enumerate() {
            let cells: Vec<String> = table.row(at).map(|(_, cell)| cell.to_text()).collect();
            assert_eq!(record.unwrap().iter().collect::<Vec<_>>(), cells);
        }
        let mut bytes = Vec::new();
        table.write_json(&mut bytes).unwrap();
        let rows: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((rows.len(), rows[0]["trace"].as_str()), (table.rows, Some("a, \"b\"")));
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(row.len(), table.columns.len());
            for (name, cell) in table.row(at) {
                assert_eq!(row[name], serde_json::to_value(cell).unwrap(), "{name}");
            }
        }
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_holds_every_cell() {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        use parquet::record::Field;
        let table = table();
        let mut bytes = Vec::new();
        crate::sweep::parquet_file::write(&table, &mut bytes).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        let mut count = 0;
        for (at, row) in reader.get_row_iter(None).unwrap().enumerate() {
            let row = row.unwrap();
            count += 1;
            for ((name, field), (expected, cell)) in row.get_column_iter().zip(table.row(at)) {
                assert_eq!(name, expected);
                let matches = match (field, cell) {
                    (Field::Null, Cell::Nothing) => true,
                    (Field::Str(text), Cell::Text(expected)) => text == expected,
                    (Field::Long(whole), Cell::Whole(expected)) => *whole == expected,
                    (Field::Double(number), Cell::Number(expected)) => *number == expected,
                    (Field::Bool(truth), Cell::Truth(expected)) => *truth == expected,
                    _ => false,
                };
                assert!(matches, "{name}: {field:?} {cell:?}");
            }
            assert_eq!(row.len(), table.columns.len());
        }
        assert_eq!(count, table.rows);
    }

    #[test]
    fn a_table_of_nothing_has_no_rows() {
        let mut bytes = Vec::new();
        Table::of(&[]).write_json(&mut bytes).unwrap();
        assert_eq!(serde_json::from_slice::<Vec<serde_json::Value>>(&bytes).unwrap().len(), 0);
    }
}
