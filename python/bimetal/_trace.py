"""Traces: requests from files, arrays, frames and generators."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import html
import json
import numbers
import os
import textwrap
import warnings as _warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from bimetal import _core, _records
from bimetal._device import Settings, settings_text
from bimetal._errors import BimetalWarning, SettingError, TraceError, WorkloadError, check_text, check_whole, in_python
from bimetal._record import Made
from bimetal._records import TraceFacts
from bimetal._tables import Table, html_table, text_table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Columns of a trace, in their order.
COLUMNS = ("time_ns", "op", "sector", "sectors")

#: Names of operations, at the index of their number, with synonyms.
OPERATIONS = (("read", "r"), ("write", "w"), ("trim", "t", "discard", "d"))


class Arrays(TypedDict):
    """The requests of a trace, with an array for each column."""

    #: Arrival since the start of the trace, in nanoseconds.
    time_ns: npt.NDArray[np.uint64]
    #: 0 is a read, 1 a write, 2 a trim.
    op: npt.NDArray[np.uint8]
    #: First 512-byte sector.
    sector: npt.NDArray[np.uint64]
    #: Number of 512-byte sectors.
    sectors: npt.NDArray[np.uint32]
    #: Placement handle; absent if no request has one.
    handle: NotRequired[npt.NDArray[np.uint8]]


@dataclasses.dataclass(frozen=True, repr=False)
class Profile(_records.Profile, Made):
    """What a workload is like: the object that ``bimetal profile --json`` writes as ``profile``."""

    @classmethod
    def _of(cls, text: str, title: str, sections: list[tuple[str, str, Table]]) -> Profile:
        made = cls._from_dict(json.loads(text))
        made._add(_title=title, _sections=sections)
        return made

    def __repr__(self) -> str:
        """Return the tables of ``bimetal profile``."""
        if "_sections" not in self.__dict__:
            return f"<Profile of {self.requests:,} requests>"
        texts = [self._state("_title")]
        for title, remark, table in self._state("_sections"):
            body = "\n".join([*textwrap.wrap(remark, 96, break_on_hyphens=False), text_table(table)])
            texts.append(f"{title}\n{textwrap.indent(body, '  ')}")
        return "\n\n".join(texts)

    def _repr_html_(self) -> str:
        if "_sections" not in self.__dict__:
            return f"<div>{html.escape(repr(self))}</div>"
        parts = (
            f"<h4>{title}</h4>{f'<div>{html.escape(remark)}</div>' if remark else ''}{html_table(table)}"
            for title, remark, table in self._state("_sections")
        )
        return f"<div>{html.escape(self._state('_title'))}</div>{''.join(parts)}"


class Trace:
    """Requests in memory, immutable.

    Made by :meth:`open`, :meth:`sample`, :meth:`from_arrays`, :meth:`from_frame`, :meth:`generate` or :meth:`like`.
    """

    __slots__ = ("_origin", "_requests")
    _requests: _core.Trace
    #: Source text of the call that made it.
    _origin: str

    def __init__(self) -> None:
        raise TypeError("a Trace is made by Trace.open, .sample, .from_arrays, .from_frame or .generate")

    @classmethod
    def _of(cls, core: _core.Trace, origin: str) -> Trace:
        trace = object.__new__(cls)
        trace._requests, trace._origin = core, origin
        return trace

    @staticmethod
    def open(
        *paths: str | os.PathLike[str],
        format: str | None = None,
        time_unit: str | None = None,
        columns: str | None = None,
        objects: str | None = None,
        action: str | None = None,
        volumes: Iterable[int] | None = None,
        limit: int | None = None,
    ) -> Trace:
        """Read trace files, compressed or not; several files become one trace.

        ``format`` is one of :func:`bimetal.formats`; by default it is detected. ``time_unit`` (``ps``, ``ns``,
        ``100ns``, ``us``, ``ms``, ``s``) is the unit of time stamps if it is not the format's own. ``columns`` declares
        the columns of delimited text, JSON lines, Parquet or Arrow files, as ``--columns`` does:
        ``time:ms,op,offset:bytes,size``. ``objects`` defines how objects of a cache's trace are mapped to addresses, as
        ``--objects`` does: ``slots``, ``sectors``, ``slots,insert``. ``action`` (``Q``, ``D``, ``C``) selects the
        record of a request in blktrace and blkparse. ``volumes`` selects devices by number, and ``limit`` the first
        requests.
        """
        for path in paths:
            if not isinstance(path, str | os.PathLike):
                raise TraceError(f"a path is of type `{type(path).__name__}`; hint: `from_frame` takes tables")
        check_text(TraceError, format=format, time_unit=time_unit, columns=columns, objects=objects, action=action)
        # `-` is a file name here: a read of the standard input could not be interrupted.
        names = ["./-" if path == "-" else os.fspath(path) for path in paths]
        if volumes is not None and not isinstance(volumes, Iterable):
            raise TraceError(f"`volumes` is {volumes!r}: it is a list of whole numbers")
        chosen = None if volumes is None else list(volumes)
        for number in chosen or ():
            check_whole(TraceError, 0, volumes=number)
        core = _core.Trace.open(names, format, time_unit, columns, objects, action, chosen, _limit(limit))
        options = {
            "format": format,
            "time_unit": time_unit,
            "columns": columns,
            "objects": objects,
            "action": action,
            "volumes": chosen,
            "limit": limit,
        }
        trace = Trace._of(core, call("bimetal.Trace.open", *names, **options))
        for warning in core.warnings():
            _warnings.warn(warning, BimetalWarning, stacklevel=2)
        return trace

    @staticmethod
    def sample(*, limit: int | None = None) -> Trace:
        """Return the real trace in the package: two hours of a virtual machine's disk."""
        return Trace._of(_core.Trace.sample(_limit(limit)), call("bimetal.Trace.sample", limit=limit))

    @staticmethod
    def generate(workload: str, *, set: Settings | None = None, seed: int = 1) -> Trace:
        """Generate a workload of :func:`bimetal.workloads`; ``set`` changes its parameters."""
        check_text(WorkloadError, or_none=False, workload=workload)
        check_whole(SettingError, 0, seed=seed)
        core = _core.Trace.generate(workload, settings_text(set), seed)
        options = {"set": dict(set or {}) or None, "seed": None if seed == 1 else seed}
        return Trace._of(core, call("bimetal.Trace.generate", workload, **options))

    def like(self, *, requests: int | None = None, seed: int = 1) -> Trace:
        """Generate requests from a model fitted to this trace; by default the same number of requests."""
        settings: Settings = {} if requests is None else {"requests": requests}
        check_whole(SettingError, 0, seed=seed)
        check_whole(SettingError, 1, requests=requests)
        core = self._requests.like(settings_text(settings), seed)
        for warning in core.warnings():
            _warnings.warn(warning, BimetalWarning, stacklevel=2)
        options = {"requests": requests, "seed": None if seed == 1 else seed}
        return Trace._of(core, call(f"{self._origin}.like", **options))

    @staticmethod
    def from_arrays(
        *,
        time_ns: npt.ArrayLike,
        op: npt.ArrayLike,
        sector: npt.ArrayLike,
        sectors: npt.ArrayLike,
        handle: npt.ArrayLike | None = None,
        name: str = "arrays",
    ) -> Trace:
        """Make a trace from arrays of equal length, with a row for each request.

        ``time_ns`` is the arrival in nanoseconds from any zero, or dates or durations of NumPy or Python. ``op`` is
        0 for a read, 1 for a write, 2 for a trim, or one of the words ``read``, ``write``, ``trim`` (``r``, ``w``,
        ``t``, in any case). ``sector`` is the first 512-byte sector, and ``sectors`` the number of sectors. ``handle``
        is the placement handle, up to 255, if requests have one. Numbers are integers of any width. An invalid value is
        an error that names its row, counted from 0. Rows that are out of time order are sorted.
        """
        check_text(TraceError, or_none=False, name=name)
        given = {"time_ns": time_ns, "op": op, "sector": sector, "sectors": sectors}
        times, ops, first, counts = (_column(column, values) for column, values in given.items())
        handles = None if handle is None else _column("handle", handle)
        core = _core.Trace.from_columns(name, times, ops, first, counts, handles)
        for warning in core.warnings():
            _warnings.warn(warning, BimetalWarning, stacklevel=2)
        return Trace._of(core, "bimetal.Trace.from_arrays(...)")

    @staticmethod
    def from_frame(
        frame: object,
        columns: Mapping[str, str] | str | None = None,
        *,
        time_unit: str | None = None,
        name: str = "frame",
    ) -> Trace:
        """Make a trace from a pandas or polars DataFrame, a pyarrow Table, a mapping of arrays or any Arrow stream.

        ``columns`` declares columns and their units, as for :meth:`open`:
        ``time=started:us,op=rw,offset=lba:sectors,size=len``. It is not needed if the names are unambiguous, such as
        ``time_ms``, ``rw``, ``lba`` and ``bytes``. ``time_unit`` is the unit of times without a unit. The type of dates
        and durations defines their unit. A request of length 0 is left out, with a warning, as of a file.

        As a mapping, ``columns`` renames columns of the frame to ``time_ns``, ``op``, ``sector`` and ``sectors``:
        ``{"time_ns": "timestamp", "sector": "lba"}``. The values must be those of :meth:`from_arrays`, so a request has
        at least one sector. The same applies to a frame that has columns of these four names; its column ``handle``, if
        there is one, is taken, too.
        """
        if not isinstance(columns, Mapping):
            check_text(TraceError, columns=columns)
        check_text(TraceError, time_unit=time_unit)
        check_text(TraceError, or_none=False, name=name)
        frame = _columnar(frame)
        if isinstance(columns, str) or (columns is None and not _has_own_names(frame)) or time_unit is not None:
            return _from_named(frame, columns, time_unit, name)
        names = dict(columns or {})
        if unknown := names.keys() - set(COLUMNS):
            raise TraceError(f"a trace has no column `{min(unknown)}`; it has: {', '.join(COLUMNS)}")
        arrays = {column: _frame_column(frame, names.get(column, column)) for column in COLUMNS}
        handle = _frame_column(frame, "handle") if "handle" in (_names(frame) or ()) else None
        trace = Trace.from_arrays(**arrays, handle=handle, name=name)
        trace._origin = "bimetal.Trace.from_frame(...)"
        return trace

    def to_arrays(self) -> Arrays:
        """Return the requests as arrays: the arguments of :meth:`from_arrays`, and of a pandas or polars DataFrame."""
        time_ns, op, sector, sectors, handle = self._requests.columns()
        arrays: Arrays = {"time_ns": time_ns, "op": op, "sector": sector, "sectors": sectors}
        return arrays if handle is None else {**arrays, "handle": handle}

    @property
    def facts(self) -> TraceFacts:
        """Counts, bytes, footprint, duration."""
        return TraceFacts._from_dict(json.loads(self._requests.facts()))

    @property
    def warnings(self) -> list[str]:
        """Caveats about the trace."""
        return [*map(in_python, self._requests.warnings())]

    def profile(self, *, curve_points: int = 20, sample: float | None = None) -> Profile:
        """Measure the properties of the requests: sizes, updates, hot set, hit rates by cache size, arrivals.

        ``curve_points`` is the number of cache sizes; 0 omits hit rates. ``sample`` is the share of pages on which hit
        rates are measured, and 1 is all pages; by default all, but about a hundred thousand pages of a long trace.
        """
        check_whole(TraceError, 0, 2**32 - 1, curve_points=curve_points)
        if sample is not None and not isinstance(sample, numbers.Real):
            raise TraceError(f"`sample` is {sample!r}: it is a number")
        if sample is not None and not 0 < sample <= 1:
            raise TraceError(f"`sample` is {sample}: a rate is a number above 0 and at most 1")
        text, sections = self._requests.profile(curve_points, sample)
        facts = self.facts
        return Profile._of(text, f"{facts.name}: {facts.requests:,} requests", sections)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle its requests and name: another process gets a trace in memory, without files and warnings."""
        return _restored, (self.to_arrays(), self.facts.name, self._origin)

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self._requests)

    def __repr__(self) -> str:
        """Name and number of requests."""
        return f"<Trace {self.facts.name!r}, {len(self):,} requests>"


def call(function: str, *arguments: object, **options: object) -> str:
    """Return the source text of a call, without options that are ``None``."""
    given = [f"{name}={value!r}" for name, value in options.items() if value is not None]
    return f"{function}({', '.join([*map(repr, arguments), *given])})"


def _restored(arrays: Arrays, name: str, origin: str) -> Trace:
    trace = Trace.from_arrays(**arrays, name=name)
    trace._origin = origin
    return trace


def _limit(limit: int | None) -> int | None:
    check_whole(TraceError, 1, limit=limit)
    return limit


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


def _has_own_names(frame: Any) -> bool:
    names = _names(frame)
    return names is None or set(COLUMNS) <= set(names)


def _from_named(frame: Any, columns: Mapping[str, str] | str | None, time_unit: str | None, name: str) -> Trace:
    """Make a trace from columns that are declared by name and unit, like those of a file."""
    if isinstance(columns, Mapping):
        raise TraceError("`time_unit` goes with `columns` as a text, such as `time=started,op=rw,offset=lba,size=len`")
    labels = _names(frame) or []

    @functools.cache
    def values(index: int) -> npt.NDArray[Any]:
        return _values(str(labels[index]), frame[labels[index]])

    def time_unit_of(index: int) -> str | None:
        """Return the unit to which a column of dates or durations is converted, or ``None`` for other columns."""
        if not _may_have_times(frame[labels[index]]):
            return None
        try:
            return "ns" if values(index).dtype.kind in "mM" else None
        except Exception:  # The column may not be needed. If it is, `cells` raises this again.
            return None

    def cells(index: int, _: str) -> npt.NDArray[Any] | tuple[list[str], npt.NDArray[np.uint64]]:
        _refuse_masked(str(labels[index]), frame[labels[index]])
        return _cells(str(labels[index]), values(index))

    known = [(str(label), time_unit_of(index)) for index, label in enumerate(labels)]
    core = _core.Trace.from_table(name, columns, time_unit, known, cells)
    for warning in core.warnings():
        _warnings.warn(warning, BimetalWarning, stacklevel=3)
    return Trace._of(core, "bimetal.Trace.from_frame(...)")


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
