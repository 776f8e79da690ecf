"""Traces: requests from files, arrays, frames and generators."""

from __future__ import annotations

import dataclasses
import functools
import html
import importlib
import json
import numbers
import os
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from bimetal import _core, _records
from bimetal._arrays import _cells, _column, _columnar, _frame_column, _may_have_times, _names, _refuse_masked, _values
from bimetal._device import Settings, settings_text
from bimetal._errors import SettingError, TraceError, WorkloadError, check_text, check_whole, in_python, warn
from bimetal._record import Made
from bimetal._records import TraceFacts
from bimetal._tables import Table, html_table, text_table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Columns of a trace, in their order.
COLUMNS = ("time_ns", "op", "sector", "sectors")


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
        if chosen == []:
            raise TraceError("`volumes` names none; hint: leave it out for all")
        for number in chosen or ():
            check_whole(TraceError, 0, or_none=False, volumes=number)
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
            warn(warning)
        return trace

    @staticmethod
    def sample(*, limit: int | None = None) -> Trace:
        """Return the real trace in the package: two hours of a virtual machine's disk."""
        return Trace._of(_core.Trace.sample(_limit(limit)), call("bimetal.Trace.sample", limit=limit))

    @staticmethod
    def generate(workload: str, *, set: Settings | None = None, seed: int = 1) -> Trace:
        """Generate a workload of :func:`bimetal.workloads`; ``set`` changes its parameters."""
        check_text(WorkloadError, or_none=False, workload=workload)
        check_whole(SettingError, 0, or_none=False, seed=seed)
        core = _core.Trace.generate(workload, settings_text(set), seed)
        options = {"set": dict(set or {}) or None, "seed": None if seed == 1 else seed}
        return Trace._of(core, call("bimetal.Trace.generate", workload, **options))

    def like(self, *, requests: int | None = None, seed: int = 1) -> Trace:
        """Generate requests from a model fitted to this trace; by default the same number of requests."""
        settings: Settings = {} if requests is None else {"requests": requests}
        check_whole(SettingError, 0, or_none=False, seed=seed)
        check_whole(SettingError, 1, requests=requests)
        core = self._requests.like(settings_text(settings), seed)
        for warning in core.warnings():
            warn(warning)
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
            warn(warning)
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
        # The Rust code would import it, and panic if the import fails or is interrupted.
        importlib.import_module("numpy")
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
        check_whole(TraceError, 0, 2**32 - 1, or_none=False, curve_points=curve_points)
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
        warn(warning)
    return Trace._of(core, "bimetal.Trace.from_frame(...)")
