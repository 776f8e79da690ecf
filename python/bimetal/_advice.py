"""Advice: the cheapest device that is fast enough and lasts long enough."""

from __future__ import annotations

import dataclasses
import html
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bimetal import _core, _records
from bimetal._errors import BimetalError, SettingError
from bimetal._own import only_names
from bimetal._records import Choice
from bimetal._run import AnyTrace, _Literal, _trace
from bimetal._sweep import Progress
from bimetal._tables import Columns, Table, columns, html_table, text_table, to_arrow, to_pandas
from bimetal._trace import call

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import pyarrow

#: A number of bytes, or a text such as ``20GiB``.
Size = int | str


@dataclasses.dataclass(frozen=True)
class _Shown:
    """An answer as people read it."""

    goals: list[str]
    #: What was searched.
    searched: str
    #: How it was replayed, how wear is counted, and notes.
    facts: list[str]
    #: What stands in the way.
    binding: list[str]
    #: Name and words of the response that stands beside price and life.
    response: tuple[str, str]
    chosen: Table
    front: Table


@dataclasses.dataclass(frozen=True, repr=False)
class Advice(_records.Advice):
    """The cheapest device that meets all goals, and what it was chosen from: the object that ``--json`` writes."""

    @classmethod
    def _of(cls, core: _core.Advice, command: str) -> Advice:
        made = cls._from_dict(json.loads(core.json()))
        shown = _Shown(
            core.goals(),
            core.searched(),
            core.facts(),
            core.binding(),
            core.response(),
            core.chosen(),
            core.front(),
        )
        made.__dict__.update(_core=core, _command=command, _shown=shown)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what a page is made from: it is of this process."""
        return {name: value for name, value in self.__dict__.items() if name != "_core"}

    def html(self, path: str | os.PathLike[str]) -> None:
        """Write a page with diagrams and tables that opens offline, as ``--html`` does."""
        core: _core.Advice | None = self.__dict__.get("_core")
        if core is None:
            raise BimetalError("the page of an answer from another process cannot be made; hint: make it there")
        Path(path).write_text(core.html(self.__dict__["_command"]), encoding="utf-8")

    def _columns(self) -> Columns:
        excess = {
            f"excess_{goal.measure}": (float, [choice.excess[at] for choice in self.simulated])
            for at, goal in enumerate(self.goals)
        }
        return columns(Choice, self.simulated) | excess

    def to_arrow(self) -> pyarrow.Table:
        """Return a pyarrow Table with a row for each device of ``simulated``.

        Responses have both names, as in ``response_us_p99``; ``excess_p99`` is the factor by which that goal is missed.
        """
        return to_arrow(self._columns())

    def to_pandas(self) -> pandas.DataFrame:
        """Return the same table as a pandas DataFrame."""
        return to_pandas(self._columns())

    def plot(self, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draw the cost of every simulated device against the response that the first goal for one is about.

        Without such a goal that is the 99th percentile. Devices that meet all goals are filled.
        """
        from bimetal import _plot

        shown: _Shown = self.__dict__["_shown"]
        return _plot.advice(self, *shown.response, ax)

    def _texts(self) -> tuple[str, str, str]:
        """Return what stands above the device that is chosen, below it, and above the best."""
        shown: _Shown = self.__dict__["_shown"]
        head = f"{self.trace.name}: {'; '.join(shown.goals)}. {shown.searched}; {'; '.join(shown.facts)}. "
        chosen = "The cheapest that meets all goals:" if self.recommended else "No device meets all goals. The closest:"
        binds = "; ".join(shown.binding)
        return head + chosen, f"What stands in the way: {binds}.", "The best by price, response and life:"

    def __repr__(self) -> str:
        """Goals, the device that is chosen, what stands in the way, and the best devices."""
        shown: _Shown = self.__dict__["_shown"]
        head, binds, best = self._texts()
        lines = [head, text_table(shown.chosen), binds]
        return "\n".join([*lines, best, text_table(shown.front)] if self.front else lines)

    def _repr_html_(self) -> str:
        shown: _Shown = self.__dict__["_shown"]
        head, binds, best = (f"<div>{html.escape(text)}</div>" for text in self._texts())
        front = f"{best}{html_table(shown.front)}" if self.front else ""
        return f"{head}{html_table(shown.chosen)}{binds}{front}"


def advise(
    trace: AnyTrace = None,
    *,
    life: str | None = None,
    tbw: str | None = None,
    dwpd: float | str | None = None,
    mean: str | None = None,
    p50: str | None = None,
    p95: str | None = None,
    p99: str | None = None,
    p999: str | None = None,
    budget: float | str | None = None,
    writes_per_day: Size | None = None,
    chips: str | Sequence[str] | None = None,
    schemes: str | Sequence[str] | None = None,
    capacity: Size | None = None,
    disk: str | None = None,
    channels: int | None = None,
    dies_per_channel: int | None = None,
    year: int | None = None,
    prices: str | os.PathLike[str] | None = None,
    price: Mapping[str, float] | None = None,
    arrivals: str | None = None,
    load: str | None = None,
    repeat: int | None = None,
    measure: int | None = None,
    simulations: int | None = None,
    jobs: int | None = None,
    drives: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Find the cheapest device that is fast enough and lasts long enough for a trace. At least one goal is given.

    Parameters
    ----------
    trace
        A :class:`Trace` or the path of one; without it, the real trace inside the package.
    life
        Least life: ``5y``, ``90d``, ``12h``.
    tbw
        Least TBW, the bytes that the host can write until the device is worn out: ``600TB``, ``1.2PB``.
    dwpd
        Least drive writes per day: TBW by the logical capacity and the days of ``life``, or of 5 years.
    mean, p50, p95, p99, p999
        Longest responses of reads and writes, the mean or a percentile: ``500us``, ``2ms``, ``1s``.
    budget
        Highest price of flash and disks, in US dollars.
    writes_per_day
        Bytes written per day, from which lifetimes follow; by default at the rate of the trace, or of ``load``.
    chips
        Candidate chips, of :func:`bimetal.chips`; by default those sold in the year of the prices that no
        other one beats.
    schemes
        Those of :func:`bimetal.schemes`, or ``all``; by default one or two of each way to use cells.
    capacity
        Bytes that the host sees; by default what the trace touches.
    disk
        Also consider flash caches over this drive of :func:`bimetal.drives`.
    channels, dies_per_channel
        Channels of a device, shared by its regions, and dies on each of them, from 1 to 64; by default 1 to 16 and 1
        to 8 are searched.
    year
        Prices of this year; by default the latest of the list.
    prices
        The path of a file of prices in place of those of the list; ``docs/advise.md`` describes it.
    price
        US dollars per GiB of kinds of cells, of disks, or of single parts: ``{"tlc": 0.10, "disk": 0.02}``; or of a
        whole drive: ``{"samsung-980-1tb": 75}``.
    arrivals
        As for :func:`bimetal.replay`; by default at the trace's times, or without such one request at a time.
    load
        Offered load: the trace's times scaled by a factor, ``2x``, or to requests per second, ``5000/s``.
    repeat, measure
        Number of replays of the trace, and of those at the end that are measured; by default as many as write a device
        over once before it is measured and once after, and the second half.
    simulations
        Most simulations; by default a fifth of the candidate devices, from 20 to 80.
    jobs
        How many run at once, by default as many as there are processors.
    drives
        Names of whole drives that are candidates too, as ``bimetal drives`` has them, or parts of names, ``all``
        or ``none``; by default those that came out within 6 years before the year of the prices.
    progress
        Is called with how many simulations are done and how many there are at most, from the threads that run them.

    The answer is that of the command line. Where no device meets all goals, ``recommended`` is ``None``, and
    ``closest`` has those that miss them by the smallest factor. Ctrl-C ends it.

    """
    counts = {"repeat": repeat, "measure": measure, "simulations": simulations, "jobs": jobs}
    for name, count in counts.items():
        if count is not None and count < 1:
            raise SettingError(f"`{name}` is {count}: it is at least 1")
    only_names([schemes] if isinstance(schemes, type) else schemes or (), "advice")
    found = _trace(trace)
    wear = {"life": life, "tbw": tbw, "dwpd": dwpd}
    goals = {**wear, "mean": mean, "p50": p50, "p95": p95, "p99": p99, "p999": p999, "budget": budget}
    file = None if prices is None else (os.fspath(prices), Path(prices).read_text(encoding="utf-8"))
    core = _core.advise_devices(
        found._requests,
        [(name, str(bound)) for name, bound in goals.items() if bound is not None],
        None if writes_per_day is None else str(writes_per_day),
        _names("chips", chips),
        _names("schemes", schemes),
        None if capacity is None else str(capacity),
        disk,
        channels,
        dies_per_channel,
        year,
        file,
        list((price or {}).items()),
        arrivals,
        load,
        repeat,
        measure,
        simulations,
        jobs or 0,
        _names("drives", drives),
        progress,
    )
    options = {
        **goals,
        "writes_per_day": writes_per_day,
        "chips": chips,
        "schemes": schemes,
        "capacity": capacity,
        "disk": disk,
        "channels": channels,
        "dies_per_channel": dies_per_channel,
        "year": year,
        "prices": None if file is None else file[0],
        "price": dict(price or {}) or None,
        "arrivals": arrivals,
        "load": load,
        "repeat": repeat,
        "measure": measure,
        "simulations": simulations,
        "drives": drives,
    }
    return Advice._of(core, call("bimetal.advise", _Literal(found._origin), **options))


def _names(option: str, names: str | Sequence[str] | None) -> list[str]:
    """Return names as a list, which is empty for those that are usual."""
    if names is not None and not names:
        raise SettingError(f"`{option}` names none; hint: leave it out for the usual ones")
    return [names] if isinstance(names, str) else list(names or ())
