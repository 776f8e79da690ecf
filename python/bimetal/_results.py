"""Results of replays. Units are in the names, shares are from 0 to 1, and undefined values are ``None``."""

from __future__ import annotations

import dataclasses
import html
import itertools
import json
import os
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bimetal import _core, _records
from bimetal._errors import SettingError, check_path, check_text, in_python
from bimetal._record import Made, Record
from bimetal._tables import Columns, Table, columns, html_table, labelled, tables, to_arrow, to_pandas

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import pyarrow


@dataclasses.dataclass(frozen=True, repr=False)
class Result(_records.Result):
    """One scheme on one device."""

    def __repr__(self) -> str:
        """Scheme, mean response and write amplification."""
        mean = "falls behind" if self.load.overload == "growing" else f"mean response {self.response_us.mean:,.4g} µs"
        if self.service_us is not None:
            mean = f"mean service time {self.service_us.mean:,.4g} µs, {mean}"
        if not self.response_us.count:
            mean = "neither reads nor writes"
        figures = f"{mean}, write amplification {self.write_amplification}"
        return f"<Result {self.scheme!r}, {figures}>"


def _divisions(texts: Iterable[str]) -> str:
    return "".join(f"<div>{html.escape(text)}</div>" for text in texts)


@dataclasses.dataclass(frozen=True)
class _Shown:
    """The printed tables of a comparison."""

    verdict: list[str]
    headline: Table
    lines: list[str]
    remarks: list[str]
    order: list[int]
    operations: list[Table]
    wear: list[Table]


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison(_records.Comparison, Made):
    """Schemes side by side on the same requests: the object that ``--json`` writes."""

    #: One entry for each scheme, in the order of the request; tables show the best first.
    results: tuple[Result, ...]

    @classmethod
    def _of(cls, core: _core.Comparison, command: str) -> Self:
        made = cls._from_dict(json.loads(core.json()))
        texts = (core.verdict(), core.headline(), core.lines(), [*map(in_python, core.remarks())])
        shown = _Shown(*texts, core.order(), core.operations(), core.wear())
        made._add("warnings", _core=core, _command=command, _shown=shown)
        return made

    def __getitem__(self, scheme: str) -> Result:
        """Return the result of a scheme."""
        for result in self.results:
            if result.scheme == scheme:
                return result
        raise KeyError(f"{scheme}: the results are of {', '.join(result.scheme for result in self.results)}")

    def __iter__(self) -> Iterator[Result]:
        """Iterate over the results, in the order of the request."""
        return iter(self.results)

    def __len__(self) -> int:
        """Return the number of results."""
        return len(self.results)

    def __contains__(self, scheme: object) -> bool:
        """Return whether there is a result of this scheme."""
        return any(result.scheme == scheme for result in self.results)

    def html(self, path: str | os.PathLike[str]) -> None:
        """Write a report: one file with plots and tables that opens offline, as ``--html`` does.

        It has figures over time if ``intervals`` was given; 60 is a usual number.
        """
        check_path(SettingError, path=path)
        core: _core.Comparison = self._state("_core")
        Path(path).write_text(core.html(self._state("_command")), encoding="utf-8")

    def _columns(self, table: str) -> Columns:
        check_text(SettingError, or_none=False, table=table)
        if table == "results":
            return columns(Result, self.results)
        known = tables(Result)
        if table in known:
            groups = [((result.scheme,), getattr(result, table)) for result in self.results]
            return labelled(known[table], {"scheme": str}, groups)
        of_intervals: dict[str, type[Record] | None] = {**tables(_records.Interval), "metrics": None}
        by_name = {f"intervals.{name}": name for name in of_intervals}
        if table not in by_name:
            raise SettingError(f"there is no table {table!r}; there are: {', '.join(['results', *known, *by_name])}")
        return self._over_time(by_name[table], of_intervals[by_name[table]])

    def _over_time(self, name: str, record: type[Record] | None) -> Columns:
        """Return what each interval has of this name: records, or the values of the scheme's own figures."""
        groups: list[tuple[tuple[Any, ...], Any]] = []
        for result in self.results:
            for interval in result.intervals:
                rows = getattr(interval, name)
                named = rows if record else dict(zip(result.metrics, rows, strict=True))
                groups.append(((result.scheme, interval.end_s), named))
        return labelled(record, {"scheme": str, "end_s": float}, groups)

    def to_arrow(self, table: str = "results") -> pyarrow.Table:
        """Return a pyarrow Table: ``results`` has a row for each scheme.

        The lists of a result have the rows of each scheme one after the other: ``ops``, ``streams``, ``wear``,
        ``intervals``, ``faults``, ``regions``, ``disks``, and the figures ``metrics`` and ``controller``. The lists of
        each interval are ``intervals.ops``, ``intervals.disks`` and ``intervals.metrics``; ``end_s`` is its end.
        """
        return to_arrow(self._columns(table))

    def to_pandas(self, table: str = "results") -> pandas.DataFrame:
        """Return a pandas DataFrame of the same rows as :meth:`to_arrow`."""
        return to_pandas(self._columns(table))

    def plot(self, figure: str = "response", *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draw schemes side by side, in the order of the table.

        ``response`` also draws service times if the results have them. The other figures are ``operations``,
        ``write_amplification``, ``life`` and ``cost``.
        """
        from bimetal import _plot

        shown: _Shown = self._state("_shown")
        return _plot.comparison([self.results[at] for at in shown.order], self.trace.name, figure, ax)

    def __repr__(self) -> str:
        """Return the table of ``bimetal compare``."""
        shown: _Shown | None = self.__dict__.get("_shown")
        if shown is None:
            return f"<{type(self).__name__} of {', '.join(result.scheme for result in self.results)}>"
        remarks = (textwrap.wrap(remark, 78, break_on_hyphens=False) for remark in shown.remarks)
        verdict, legend = ([f"  {line}" for line in lines] for lines in (shown.verdict, itertools.chain(*remarks)))
        return "\n".join([self._title(), *verdict, *shown.lines, *legend])

    def _repr_html_(self) -> str:
        shown: _Shown | None = self.__dict__.get("_shown")
        if shown is None:
            return _divisions([repr(self)])
        before = _divisions(filter(None, [self._title(), " ".join(shown.verdict)]))
        return f"{before}{html_table(shown.headline)}{_divisions([*shown.remarks, *self.warnings])}"

    def _title(self) -> str:
        trace, replay = self.trace, self.replay
        passes = f", {replay.passes} passes, {replay.measured_passes} measured" if replay.passes > 1 else ""
        both = " and closed:1" if replay.service and replay.arrivals != "closed:1" else ""
        return f"{trace.name}: {trace.requests:,} requests, {replay.arrivals}{both}{passes}"


@dataclasses.dataclass(frozen=True, repr=False)
class Replay(Comparison):
    """One scheme in full: a comparison of one."""

    @property
    def result(self) -> Result:
        """The only entry."""
        return self.results[0]

    def plot(self, figure: str = "response", *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draw figures over time: ``response``, ``operations``, or one of the scheme's own ``metrics`` by its name."""
        from bimetal import _plot

        return _plot.over_time(self, figure, ax)

    def _repr_html_(self) -> str:
        shown: _Shown | None = self.__dict__.get("_shown")
        if shown is None:
            return Comparison._repr_html_(self)
        metrics = [[name, "–" if value is None else f"{value:,.4g}"] for name, value in self.result.metrics.items()]
        parts = [
            ("Operations", shown.operations[0]),
            ("Wear", shown.wear[0]),
            ("The scheme's own figures", (["figure", "value"], metrics)),
        ]
        shown_parts = (f"<h4>{title}</h4>{html_table(table)}" for title, table in parts if table[1])
        return Comparison._repr_html_(self) + "".join(shown_parts)
