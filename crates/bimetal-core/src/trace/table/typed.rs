//! Tables in formats that this crate does not read, such as Parquet files, Arrow files and data frames.
//!
//! Their readers name the columns and pass each cell as text. So names, units and values have the same meaning as in
//! delimited text.

use super::{NO_TIME, SYNTAX_HINT};
use crate::trace::collect::Collector;
use crate::trace::error::{ErrorKind, Fault, TraceError};
use crate::trace::roles::{self, Mapping, OTHER_UNIT, Role};
use crate::trace::time_unit::TimeUnit;
use crate::trace::{Input, Place, Trace};

/// Largest number of column names in a message.
const NAMES_SHOWN: usize = 20;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableColumn<'a> {
    /// Its name.
    pub name: &'a str,
    /// The unit of its times, if its type has one.
    pub time_unit: Option<TimeUnit>,
}

/// The rows of a table, which become the requests of a trace.
pub struct Table<'a> {
    input: &'a Input<'a>,
    mapping: Mapping<usize>,
    collector: Collector<'a>,
    /// Each required column, with the field that it contains.
    columns: Vec<(usize, &'static str)>,
    /// The texts of these columns in the current row.
    texts: Vec<Vec<u8>>,
    /// Number of rows so far.
    rows: u64,
}

impl<'a> Table<'a> {
    /// A table with these columns and about `expected` rows.
    ///
    /// # Errors
    /// Options that do not apply, or columns that lack a field of a request.
    pub fn of(input: &'a Input<'a>, columns: &[TableColumn<'_>], expected: usize) -> Result<Self, TraceError> {
        input.options.check(input.name, input.format)?;
        let mapping = mapping(input, columns).map_err(|what| {
            let names: Vec<&str> = columns.iter().take(NAMES_SHOWN).map(|column| column.name).collect();
            let more = if columns.len() > names.len() { ",..." } else { "" };
            let what = format!("{what}, in the columns `{}{more}`", names.join(",").escape_debug());
            input.error(ErrorKind::Field, what).with_hint(SYNTAX_HINT)
        })?;
        let mut collector = Collector::new(input.options, expected as u64);
        if input.options.columns.is_none() && mapping.time.is_none() {
            collector.warn(NO_TIME.to_owned());
        }
        let time = mapping.time.map(|(column, _)| (column, "time"));
        let others = [(mapping.op.0, "op"), (mapping.offset.0, "offset"), (mapping.size.0, "size")];
        let device = mapping.device.map(|column| (column, "device"));
        let mut needed: Vec<(usize, &'static str)> = Vec::new();
        for (column, field) in time.into_iter().chain(others).chain(device) {
            if needed.iter().all(|(other, _)| *other != column) {
                needed.push((column, field));
            }
        }
        let texts = vec![Vec::new(); needed.len()];
        Ok(Self { input, mapping, collector, columns: needed, texts, rows: 0 })
    }

    /// The required columns, each once, with a field that it contains.
    pub fn columns(&self) -> &[(usize, &'static str)] {
        &self.columns
    }

    /// Adds the next `rows` rows. `write` appends the text of a cell, given its index in [`columns`](Self::columns) and
    /// its row among these.
    ///
    /// # Errors
    /// The first row that is not a valid request.
    pub fn push(&mut self, rows: usize, mut write: impl FnMut(usize, usize, &mut Vec<u8>)) -> Result<(), TraceError> {
        for row in 0..rows {
            for (place, text) in self.texts.iter_mut().enumerate() {
                text.clear();
                write(place, row, text);
            }
            let (columns, texts) = (&self.columns, &self.texts);
            let field = |column: &usize| {
                let place = columns.iter().position(|(other, _)| other == column)?;
                texts.get(place).map(Vec::as_slice)
            };
            let pushed = self.mapping.row(field).and_then(|row| self.collector.push(&row));
            pushed.map_err(|fault| self.input.fault(Place::Row(self.rows), *fault))?;
            self.rows += 1;
        }
        Ok(())
    }

    /// The error of a null cell, in row `row` of the next batch.
    pub fn null(&self, row: usize, field: &'static str) -> TraceError {
        let fault = Fault { kind: ErrorKind::Field, field, what: "has no value: it is null", text: None };
        self.input.fault(Place::Row(self.rows + row as u64), fault)
    }

    /// The trace of all rows.
    ///
    /// # Errors
    /// No request, a chosen device that does not exist, or devices that do not fit into one address space.
    pub fn finish(self) -> Result<Trace, TraceError> {
        self.collector.finish(self.input)
    }
}

/// The roles of the columns. A type with a unit takes precedence over a name, and a conflicting unit is an error.
fn mapping(input: &Input<'_>, columns: &[TableColumn<'_>]) -> Result<Mapping<usize>, String> {
    let options = input.options;
    let find = |name: &str| columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
    let mut roles = match &options.columns {
        Some(named) => named.places(find)?,
        None => columns.iter().map(|column| roles::role(column.name)).zip(0..).collect(),
    };
    if let Some((role, _)) = roles.iter().find(|(role, place)| *role != Role::Skipped && *place >= columns.len()) {
        return Err(format!("there is no column for `{}`", role.name()));
    }
    for (role, place) in &mut roles {
        let (Role::Time(said), Some(own)) = (*role, columns.get(*place).and_then(|column| column.time_unit)) else {
            continue;
        };
        let said = said.filter(|_| options.columns.is_some()).or(options.time_unit);
        if let Some(said) = said.filter(|said| *said != own) {
            let name = columns[*place].name.escape_debug();
            return Err(format!("`{name}` is of a type with times in `{own}`, not in `{said}`: leave the unit out"));
        }
        *role = Role::Time(Some(own));
    }
    let mapping = Mapping::of(roles, options.time_unit)?;
    if mapping.contradicts(options.time_unit) { Err(OTHER_UNIT.into()) } else { Ok(mapping) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{self, Options, format};

    const ROWS: [[&str; 4]; 2] = [["500", "r", "4096", "512"], ["750", "W", "8192", "1024"]];

    fn read(
        names: [(&str, Option<TimeUnit>); 4],
        rows: &[[&str; 4]],
        columns: &str,
        time_unit: Option<TimeUnit>,
    ) -> Result<Trace, TraceError> {
        let columns = (!columns.is_empty()).then(|| columns.parse().unwrap());
        let options = Options { columns, time_unit, ..Options::default() };
        let input = Input::of_table("t", &options, format("parquet").unwrap());
        let named = names.map(|(name, time_unit)| TableColumn { name, time_unit });
        let mut table = Table::of(&input, &named, 0)?;
        let needed: Vec<usize> = table.columns().iter().map(|(column, _)| *column).collect();
        table.push(rows.len(), |place, row, text| text.extend_from_slice(rows[row][needed[place]].as_bytes()))?;
        table.finish()
    }

    #[test]
    fn a_table_is_read_as_the_same_delimited_text_is() {
        let us = Some(TimeUnit::Microseconds);
        for (names, columns, unit) in [
            ([("time_us", None), ("op", None), ("offset", None), ("size", None)], "", None),
            ([("timestamp", None), ("rw", None), ("addr", None), ("bytes", None)], "", us),
            ([("t", None), ("o", None), ("a", None), ("s", None)], "time:us,op,offset,size", None),
            ([("t", None), ("o", None), ("a", None), ("s", None)], "op=O,size=s,offset=a,time=t:us", None),
            // The type's unit takes precedence over the name.
            ([("time_ms", us), ("op", None), ("offset", None), ("size", None)], "", None),
            ([("t", us), ("o", None), ("a", None), ("s", None)], "op=O,size=s,offset=a,time=t", us),
        ] {
            let header = names.map(|(name, _)| name).join(",");
            let text = format!("{header}\n{}\n{}\n", ROWS[0].join(","), ROWS[1].join(","));
            let csv = Options {
                format: Some(format("csv").unwrap()),
                columns: (!columns.is_empty()).then(|| columns.parse().unwrap()),
                time_unit: unit.or(us.filter(|_| names[0].1.is_some())),
                ..Options::default()
            };
            let table = read(names, &ROWS, columns, unit).unwrap();
            assert_eq!((table.format, table.duration_ns()), ("parquet", 250_000), "{header} {columns}");
            // Text has no types, so there the name determines the unit.
            if names[0].0 != "time_ms" {
                assert_eq!(table.requests, trace::decode("t", text.as_bytes(), &csv).unwrap().requests);
            }
        }
    }

    #[test]
    fn columns_that_leave_something_open_or_contradict_a_type_are_refused() {
        let ns = Some(TimeUnit::Nanoseconds);
        let plain = |time| [(time, None), ("op", None), ("offset", None), ("size", None)];
        let typed = [("time", ns), ("op", None), ("offset", None), ("size", None)];
        for (names, columns, unit, what) in [
            (
                plain("t"),
                "time=t:s,op=op,offset=lba,size=size",
                None,
                "there is no `lba`, in the columns `t,op,offset,size`",
            ),
            (plain("t"), "-,-,op,offset,size", None, "there is no column for `size`"),
            (
                typed,
                "time=time:ms,op=op,offset=offset,size=size",
                None,
                "`time` is of a type with times in `ns`, not in `ms`",
            ),
            (typed, "", Some(TimeUnit::Seconds), "`time` is of a type with times in `ns`, not in `s`"),
            (plain("time_ms"), "", Some(TimeUnit::Seconds), OTHER_UNIT),
        ] {
            let error = read(names, &ROWS, columns, unit).unwrap_err().to_string();
            assert!(error.starts_with(&format!("t: {what}")) && error.contains("hint: "), "{error}");
        }
        let unknown = read(plain("time"), &ROWS, "", None).unwrap_err().to_string();
        let what = "t: row 0: field `time` has an unknown unit: name it with `--time-unit`: `500`";
        assert!(unknown.starts_with(what), "{unknown}");
        let untimed = read([("when", None), ("op", None), ("offset", None), ("size", None)], &ROWS, "", None).unwrap();
        assert_eq!(untimed.warnings[0], NO_TIME);
    }

    #[test]
    fn faults_name_row_and_field() {
        let names = [("time_us", None), ("op", None), ("offset", None), ("size", None)];
        for (row, what) in [
            (["5", "x", "0", "512"], "field `op` is neither read nor write nor trim: `x`"),
            (["5", "1", "0", "512"], "field `op` says read or write with 0 and 1"),
            (["5", "r", "-8", "512"], "field `offset` is negative: `-8`"),
            (["NaN", "r", "0", "512"], "field `time` is not a decimal number: `NaN`"),
        ] {
            let error = read(names, &[ROWS[0], row], "", None).unwrap_err();
            assert!(error.to_string().starts_with(&format!("t: row 1: {what}")), "{error}");
        }
    }
}
