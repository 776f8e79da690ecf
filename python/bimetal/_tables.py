"""Records as columns, and tables as text and HTML."""

from __future__ import annotations

import html
import types
import typing
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from bimetal._record import Record, members

if TYPE_CHECKING:
    import pandas
    import pyarrow

#: Heads and rows of a printed table. Without heads, its rows are labels and values.
Table = tuple[list[str], list[list[str]]]

#: Type and values of each column.
Columns = dict[str, tuple[type, list[Any]]]


def _leaves(record: type[Record], before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], type]]:
    """Path and type of every scalar value in a record. Lists in a record are separate tables."""
    for member in members(record):
        hint = member.hint
        if typing.get_origin(hint) is types.UnionType:
            hint = next(kind for kind in typing.get_args(hint) if kind is not types.NoneType)
        path = (*before, member.attribute)
        if isinstance(hint, type) and issubclass(hint, Record):
            yield from _leaves(hint, path)
        elif hint in (bool, int, float, str):
            yield path, hint


def _value(record: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        record = None if record is None else getattr(record, name)
    return record


def columns(record: type[Record], rows: Iterable[Record]) -> Columns:
    """Return records of one type as columns. Nested values join both names, as in ``response_us_mean``."""
    rows = list(rows)
    return {"_".join(path): (kind, [_value(row, path) for row in rows]) for path, kind in _leaves(record)}


def tables(record: type[Record]) -> dict[str, type[Record] | None]:
    """Return the lists in a record that are tables: its lists of records, and, as ``None``, of figures by name."""
    found: dict[str, type[Record] | None] = {}
    for member in members(record):
        origin, arguments = typing.get_origin(member.hint), typing.get_args(member.hint)
        if origin is dict:
            found[member.attribute] = None
        elif origin is tuple and isinstance(arguments[0], type) and issubclass(arguments[0], Record):
            found[member.attribute] = arguments[0]
    return found


def labelled(record: type[Record] | None, heads: dict[str, type], groups: list[tuple[tuple[Any, ...], Any]]) -> Columns:
    """Return the rows of all groups in turn; the first columns, ``heads``, have the labels of each row's group.

    Without a record the rows are figures by name, in the columns ``metric`` and ``value``.
    """
    before = {
        head: (kind, [labels[at] for labels, rows in groups for _ in rows])
        for at, (head, kind) in enumerate(heads.items())
    }
    if record is None:
        figures = [figure for _, rows in groups for figure in rows.items()]
        names, values = [name for name, _ in figures], [value for _, value in figures]
        return {**before, "metric": (str, names), "value": (float, values)}
    return before | columns(record, [row for _, rows in groups for row in rows])


def to_arrow(columns: Columns) -> pyarrow.Table:
    """Return columns as a pyarrow Table."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("`to_arrow` needs pyarrow; hint: `pip install pyarrow`") from error
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    return pa.table({name: pa.array(values, kinds[kind]) for name, (kind, values) in columns.items()})


def to_pandas(columns: Columns) -> pandas.DataFrame:
    """Return columns as a pandas DataFrame."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("`to_pandas` needs pandas; hint: `pip install pandas`") from error
    kinds = {bool: "bool", int: "int64", float: "float64", str: "object"}
    # If some values are missing.
    partial = kinds | {bool: "boolean", int: "Int64"}
    typed = {name: (values, (partial if None in values else kinds)[kind]) for name, (kind, values) in columns.items()}
    return pd.DataFrame({name: pd.Series(values, dtype=kind) for name, (values, kind) in typed.items()})


def _is_text(heads: list[str], rows: list[list[str]], column: int) -> bool:
    cells = [row[column] for row in rows if len(row) > 1]
    return column == 0 or not heads or not any(cell[:1].isdigit() for cell in cells)


def text_table(table: Table) -> str:
    """Return a table as text: names are aligned left, figures right."""
    heads, rows = table
    lines = [heads, *rows] if heads else rows
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    left = [_is_text(heads, rows, column) for column in range(len(widths))]

    def line(cells: list[str]) -> str:
        padded = (
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(cells, widths, left, strict=True)
        )
        return "  ".join(padded).rstrip()

    return "\n".join(map(line, lines))


def html_table(table: Table) -> str:
    """Return a table as HTML: names are aligned left, figures right; a row of one cell is the title of a group."""
    heads, rows = table
    left = [_is_text(heads, rows, column) for column in range(len(heads or rows[0]))]

    def line(tag: str, cells: list[str]) -> str:
        if len(cells) == 1 < len(heads):
            title = f'<th colspan="{len(heads)}" style="text-align: left">{html.escape(cells[0])}</th>'
            return f"<tr>{title}</tr>"
        made = (
            f'<{tag} style="text-align: {"left" if text else "right"}">{html.escape(cell)}</{tag}>'
            for cell, text in zip(cells, left, strict=True)
        )
        return f"<tr>{''.join(made)}</tr>"

    body = "".join(line("td", row) for row in rows)
    head = f"<thead>{line('th', heads)}</thead>" if heads else ""
    return f"<table>{head}<tbody>{body}</tbody></table>"
