"""Columns of a trace as arrays: numbers, dates and words from arrays and from frames of any library."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bimetal._errors import TraceError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Names of operations, at the index of their number, with synonyms.
OPERATIONS = (("read", "r"), ("write", "w"), ("trim", "t", "discard", "d"))


def _column(name: str, values: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Return a column as numbers; an error names the row of an invalid value."""
    import numpy as np

    _refuse_masked(name, values)
    array = np.asarray(values)
    if array.ndim != 1:
        raise TraceError(f"`{name}` has {array.ndim} dimensions; a column has one")
    if name == "time_ns":
        array = _dated(array)
    if name == "time_ns" and array.dtype.kind in "mM":
        if (missing := np.flatnonzero(np.isnat(array))).size:
            raise TraceError(f"row {missing[0]}: `{name}` is missing")
        array = _nanoseconds(name, array)
    elif name == "op" and array.dtype.kind == "b":
        raise TraceError("`op` is of type bool; hint: `numpy.where(is_write, 'w', 'r')` has words")
    elif name == "op" and array.dtype.kind in "OSTU":
        array = _operations(array)
    elif array.dtype.kind in "OfcT" and array.size:
        _refuse(name, array)
    elif array.dtype.kind not in "iu" and array.size:
        raise TraceError(f"`{name}` is of type {array.dtype}; it holds integers")
    if array.dtype.kind == "i" and (negative := np.flatnonzero(array < 0)).size:
        raise TraceError(f"row {negative[0]}: `{name}` is {array[negative[0]]}: it cannot be negative")
    return np.ascontiguousarray(array, dtype=np.uint64)


def _refuse_masked(name: str, values: Any) -> None:
    """Refuse a masked array with masked values, which are missing; a conversion would ignore the mask."""
    import numpy as np

    if np.ma.is_masked(values):
        raise TraceError(f"row {np.flatnonzero(np.ma.getmaskarray(values))[0]}: `{name}` is missing")


def _nanoseconds(name: str, array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return dates or durations in nanoseconds, of which 64 bits hold the years 1678 to 2261."""
    import numpy as np

    converted = array.astype(f"{array.dtype.kind}8[ns]")
    # Finer units fit, and fractions of a nanosecond are cut off.
    is_finer = np.datetime_data(array.dtype)[0] in ("ps", "fs", "as")
    if not is_finer and (wrapped := np.flatnonzero(converted.astype(array.dtype) != array)).size:
        row = wrapped[0]
        raise TraceError(f"row {row}: `{name}` is {array[row]}, which does not fit 64 bits of nanoseconds")
    return converted.view(np.int64)


def _refuse(name: str, array: npt.NDArray[Any]) -> None:
    """Raise the reason why a column without integers is refused: a missing value, or its type."""
    missing = next((row for row, value in enumerate(array.tolist()) if value is None or value != value), None)
    if missing is not None:
        raise TraceError(f"row {missing}: `{name}` is missing")
    hint = "; hint: in nanoseconds, `(1e9 * seconds).astype('int64')`" if name == "time_ns" else ""
    raise TraceError(f"`{name}` is of type {array.dtype}; it holds integers{hint}")


def _operations(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the numbers of operations for their names."""
    import numpy as np

    numbers = {word: number for number, words in enumerate(OPERATIONS) for word in words}
    words, places = _words(array)
    codes = np.array([numbers.get(word.strip().lower(), -1) for word in words], dtype=np.int64)[places]
    if (unknown := np.flatnonzero(codes < 0)).size:
        row = unknown[0]
        raise TraceError(f"row {row}: `op` is {str(array[row])!r}: it is `read`, `write` or `trim`, or 0, 1 or 2")
    return codes


def _words(array: npt.NDArray[Any]) -> tuple[list[str], npt.NDArray[np.intp]]:
    """Return the distinct words of an array, and for each row the index of its word."""
    import numpy as np

    # NumPy does not convert its own texts of variable length.
    texts = (array.astype(object) if array.dtype.kind == "T" else array).astype(str)
    words, places = np.unique(texts, return_inverse=True)
    return words.tolist(), places


def _columnar(frame: Any) -> Any:
    """Return an object with columns by name: a stream becomes a table."""
    if isinstance(frame, str | os.PathLike):
        raise TraceError(f"{os.fspath(frame)!r} is not a frame; hint: `Trace.open` reads files")
    if hasattr(frame, "collect") and not hasattr(frame, "to_numpy"):
        raise TraceError(f"a {type(frame).__name__} has no values yet; hint: pass `frame.collect()`")
    # A record batch's columns lack some methods of a table's columns.
    is_stream = hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "__getitem__")
    if is_stream or hasattr(frame, "__arrow_c_array__"):
        return _arrow_table(frame)
    if not hasattr(frame, "__getitem__"):
        raise TraceError(
            f"a {type(frame).__name__} has no columns; a frame is a DataFrame, a table or a mapping of arrays"
        )
    return frame


def _names(frame: Any) -> list[Any] | None:
    """Return the names of a frame's columns, or ``None`` if it has no list of them."""
    for attribute in ("column_names", "columns"):
        names = getattr(frame, attribute, None)
        # `columns` of a pyarrow Table are not names; `column_names` are.
        if names is not None and not callable(names):
            return list(names)
    return list(frame) if isinstance(frame, Mapping) else None


def _may_have_times(column: Any) -> bool:
    """Return whether values may be dates or durations. Columns of other types need no conversion to find out."""
    kind = _kind(column)
    return not kind or kind.startswith(("date", "time", "duration", "object", "category", "dictionary"))


def _kind(column: Any) -> str:
    """Return the name of the type of a column's values."""
    return str(getattr(column, "dtype", getattr(column, "type", ""))).lower()


def _cells(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any] | tuple[list[str], npt.NDArray[np.uint64]]:
    """Return the cells of a column: numbers of 64 bits, or distinct words and for each row the index of its word."""
    import numpy as np

    if array.ndim != 1:
        raise TraceError(f"`{name}` has {array.ndim} dimensions; a column has one")
    kind = array.dtype.kind
    if kind in "mMfOT":
        is_missing = np.isnat(array) if kind in "mM" else np.isnan(array) if kind == "f" else _missing(array)
        if (missing := np.flatnonzero(is_missing)).size:
            raise TraceError(f"row {missing[0]}: `{name}` is missing")
    if kind in "mM":
        return np.ascontiguousarray(_nanoseconds(name, array))
    if kind in "iubf":
        return np.ascontiguousarray(array, dtype={"i": np.int64, "f": np.float64}.get(kind, np.uint64))
    if kind in "OSTU":
        words, places = _words(array)
        return words, np.ascontiguousarray(places, dtype=np.uint64)
    raise TraceError(f"`{name}` is of type {array.dtype}; it holds numbers or words")


def _missing(array: npt.NDArray[Any]) -> list[bool]:
    """Return for each value whether it is missing."""
    return [_is_missing(value) for value in array.tolist()]


def _is_missing(value: object) -> bool:
    """Return whether a value is ``None``, not equal to itself, or not comparable, as in pandas."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _frame_column(frame: Any, name: str) -> npt.NDArray[Any]:
    """Return a column of a frame or mapping."""
    try:
        column = frame[name]
    except Exception as error:  # Each library has an exception of its own for this.
        raise TraceError(f"the frame has no column `{name}`{_known(frame)}") from error
    return _values(name, column)


def _values(name: str, column: Any) -> npt.NDArray[Any]:
    """Return the values of a column: dates and durations as those of NumPy, with a time zone in UTC."""
    import numpy as np

    kind = _kind(column)
    if kind.startswith("time") and not kind.startswith(("timedelta", "timestamp")):
        raise TraceError(f"`{name}` has times of day; it holds dates, durations or numbers")
    # pandas has the time zone in the type of a column, also if that is a type of Arrow.
    of_values = getattr(column, "dtype", None)
    if getattr(getattr(of_values, "pyarrow_dtype", of_values), "tz", None) is not None:
        column = getattr(column, "dt", column).tz_convert(None)
    return _dated(np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column))


def _dated(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return dates and durations as those of NumPy; of Python and of pandas they are objects in an array."""
    import numpy as np

    if array.dtype.kind != "O":
        return array
    first = next((value for value in array.flat if not _is_missing(value)), None)
    if isinstance(first, datetime.timedelta | np.timedelta64):
        kind = "m8"
    elif isinstance(first, datetime.date | np.datetime64):
        kind = "M8"
    else:
        return array
    try:
        return np.array([None if _is_missing(value) else _instant(value) for value in array.tolist()], kind)
    except (TypeError, ValueError):  # Other values are among them, and are refused by their type.
        return array


def _instant(value: Any) -> Any:
    """Return a date or duration for NumPy: those of pandas have nanoseconds, and a time zone is replaced by UTC."""
    if hasattr(value, "asm8"):
        return value.asm8
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def _arrow_table(stream: object) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("reading an Arrow stream needs pyarrow; hint: `pip install pyarrow`") from error
    return pyarrow.table(stream)


def _known(frame: Any) -> str:
    names: Sequence[str] | None = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
    if names is None and isinstance(frame, Mapping):
        names = list(frame)
    return "" if names is None else f"; it has: {', '.join(map(str, names))}"
