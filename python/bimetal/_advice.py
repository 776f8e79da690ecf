"""Advice: the cheapest device that is fast enough and lasts long enough."""

from __future__ import annotations

import dataclasses
import html
import json
import numbers
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bimetal import _core, _records
from bimetal._errors import (
    AdviceError,
    SettingError,
    check_path,
    check_progress,
    check_text,
    check_whole,
    in_python,
    list_of,
    text_of,
)
from bimetal._own import OwnScheme, only_names
from bimetal._record import Made
from bimetal._records import Choice
from bimetal._run import AnyTrace, Progress, _Literal, _trace
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
    """The printed form of an answer."""

    goals: list[str]
    #: The searched devices.
    searched: str
    #: The replay, the basis of wear figures, and notes.
    facts: list[str]
    #: The limits that rule out a cheaper device.
    binding: list[str]
    #: The cheapest drive on the market that meets all goals, and drives that could not be simulated.
    drives: list[str]
    #: Name and description of the response that is shown with price and life.
    response: tuple[str, str]
    chosen: Table
    front: Table


@dataclasses.dataclass(frozen=True, repr=False)
class Advice(_records.Advice, Made):
    """The cheapest device that meets all goals, and the simulated devices: the object that ``--json`` writes."""

    @classmethod
    def _of(cls, core: _core.Advice, command: str) -> Advice:
        made = cls._from_dict(json.loads(core.json()))
        shown = _Shown(
            core.goals(),
            core.searched(),
            [*map(in_python, core.facts())],
            [*map(in_python, core.binding())],
            [*map(in_python, core.drives())],
            core.response(),
            core.chosen(),
            core.front(),
        )
        made._add("notes", _core=core, _command=command, _shown=shown)
        return made

    def html(self, path: str | os.PathLike[str]) -> None:
        """Write a page with diagrams and tables that opens offline, as ``--html`` does."""
        check_path(SettingError, path=path)
        core: _core.Advice = self._state("_core")
        Path(path).write_text(core.html(self._state("_command")), encoding="utf-8")

    def _columns(self) -> Columns:
        excess = {
            f"excess_{goal.measure}": (float, [choice.excess[at] for choice in self.simulated])
            for at, goal in enumerate(self.goals)
        }
        return columns(Choice, self.simulated) | excess

    def to_arrow(self) -> pyarrow.Table:
        """Return a pyarrow Table with a row for each device of ``simulated``.

        Columns of responses join both names, as in ``response_us_p99``. ``excess_p99`` is the factor by which a device
        misses that goal.
        """
        return to_arrow(self._columns())

    def to_pandas(self) -> pandas.DataFrame:
        """Return the same table as a pandas DataFrame."""
        return to_pandas(self._columns())

    def plot(self, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draw the cost of every simulated device against the response of the first response goal.

        Without a response goal the 99th percentile is drawn. Devices that meet all goals have filled marks.
        """
        from bimetal import _plot

        shown: _Shown = self._state("_shown")
        return _plot.advice(self, *shown.response, ax)

    def _texts(self, shown: _Shown) -> tuple[str, str, str]:
        """Return the texts above the chosen device, below it, and above the best devices."""
        head = f"{self.trace.name}: {'; '.join(shown.goals)}. {shown.searched}; {'; '.join(shown.facts)}. "
        chosen = "The cheapest that meets all goals:" if self.recommended else "No device meets all goals. The closest:"
        binds = f"Limiting goals: {'; '.join(shown.binding)}."
        drives = f" Drives to buy: {'; '.join(shown.drives)}." if shown.drives else ""
        return head + chosen, binds + drives, "The best by price, response and life:"

    def __repr__(self) -> str:
        """Goals, the chosen device, the limits that rule out a cheaper one, the drive to buy, and the best devices."""
        shown: _Shown | None = self.__dict__.get("_shown")
        if shown is None:
            return f"<Advice for {self.trace.name!r}, {len(self.simulated)} simulated devices>"
        head, binds, best = self._texts(shown)
        lines = [head, text_table(shown.chosen), binds]
        return "\n".join([*lines, best, text_table(shown.front)] if self.front else lines)

    def _repr_html_(self) -> str:
        shown: _Shown | None = self.__dict__.get("_shown")
        if shown is None:
            return f"<div>{html.escape(repr(self))}</div>"
        head, binds, best = (f"<div>{html.escape(text)}</div>" for text in self._texts(shown))
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
    chips: str | Iterable[str] | None = None,
    schemes: str | Iterable[str] | None = None,
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
    drives: str | Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Find the cheapest device that is fast enough and lasts long enough for a trace. At least one goal is given.

    The answer equals that of the command line. If no device meets all goals, ``recommended`` is ``None``, and
    ``closest`` has the devices that miss the goals by the smallest factor. Ctrl-C ends the search.

    Parameters
    ----------
    trace
        A :class:`Trace` or the path of a trace file; by default the real trace in the package.
    life
        Minimum life: ``5y``, ``90d``, ``12h``.
    tbw
        Minimum TBW, the bytes that the host can write until the device is worn out: ``600TB``, ``1.2PB``.
    dwpd
        Minimum drive writes per day: TBW divided by the logical capacity and by the days of ``life``, or of 5 years.
    mean, p50, p95, p99, p999
        Maximum responses of reads and writes, the mean or a percentile: ``500us``, ``2ms``, ``1s``.
    budget
        Maximum price of flash and disks, in US dollars.
    writes_per_day
        Bytes written per day, on which lifetimes are based; by default the rate of the trace, or of ``load``.
    chips
        Candidate chips, of :func:`bimetal.chips`; by default all chips sold in the price year, except chips of papers,
        and chips for which another chip with the same cells is at least as good in every time and in erase cycles.
    schemes
        Candidate schemes, of :func:`bimetal.schemes`, or ``all``; by default one to three for each way to combine cells
        (one region, fast and slow regions, SLC mode), and two caches if there is a ``disk``.
    capacity
        Logical capacity in bytes; by default the footprint of the trace.
    disk
        Also simulate flash caches over this drive of :func:`bimetal.drives`.
    channels, dies_per_channel
        Channels of a device, shared by its regions, and dies on each of them, from 1 to 64; by default 1 to 16 and 1
        to 8 are searched.
    year
        Year of the prices; by default the latest year of the list.
    prices
        The path of a price file that replaces the list; ``docs/advise.md`` describes it.
    price
        US dollars per GiB of kinds of cells, of disks, or of single parts: ``{"tlc": 0.10, "disk": 0.02}``; or the
        price of a whole drive: ``{"samsung-980-1tb": 75}``.
    arrivals
        As for :func:`bimetal.replay`; by default the trace's times, or one request at a time if it has no times.
    load
        Offered load: ``2x`` doubles the arrival rate of the trace; ``5000/s`` scales arrivals to 5,000 requests per
        second on average.
    repeat, measure
        Number of replays of the trace, and number of measured replays at the end. By default the first half overwrites
        the device once, and the second half overwrites it again and is measured.
    simulations
        Maximum number of simulations; by default a fifth of the candidate devices, from 20 to 80, and 8.
    jobs
        Number of threads; by default one for each processor. At most 2 devices are simulated at once.
    drives
        Whole drives that are also candidates: names as in ``bimetal drives``, parts of names, ``all`` or ``none``. By
        default those released within 6 years before the year of the prices.
    progress
        Called with the number of finished simulations and their maximum, from the threads that run them.

    """
    check_whole(SettingError, 1, 2**32 - 1, repeat=repeat, measure=measure, simulations=simulations, jobs=jobs)
    check_whole(SettingError, 1, 2**32 - 1, channels=channels, dies_per_channel=dies_per_channel)
    check_whole(SettingError, 0, 2**16 - 1, year=year)
    check_text(SettingError, disk=disk, arrivals=arrivals, load=load)
    check_progress(progress)
    if price is not None and not isinstance(price, Mapping):
        raise SettingError(f"`price` is {price!r}; it is a mapping such as {{'tlc': 0.10}}")
    for part, usd in (price or {}).items():
        if not isinstance(part, str) or not isinstance(usd, numbers.Real):
            raise SettingError(f"`price` has {part!r}: {usd!r}; it is a mapping such as {{'tlc': 0.10}}")
    chips, schemes, drives = _names("chips", chips), _names("schemes", schemes), _names("drives", drives)
    found = _trace(trace)
    wear = {"life": life, "tbw": tbw, "dwpd": dwpd}
    goals = {**wear, "mean": mean, "p50": p50, "p95": p95, "p99": p99, "p999": p999, "budget": budget}
    if prices is not None:
        check_path(SettingError, prices=prices)
    file = None if prices is None else (os.fspath(prices), text_of(prices, AdviceError))
    core = _core.advise_devices(
        found._requests,
        [(name, str(bound)) for name, bound in goals.items() if bound is not None],
        None if writes_per_day is None else str(writes_per_day),
        chips,
        schemes,
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
        drives,
        progress,
    )
    options = {
        **goals,
        "writes_per_day": writes_per_day,
        "chips": chips or None,
        "schemes": schemes or None,
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
        "drives": drives or None,
    }
    return Advice._of(core, call("bimetal.advise", _Literal(found._origin), **options))


def _names(option: str, names: str | Iterable[str] | None) -> list[str]:
    """Return names as a list, which is empty for the default names."""
    if names is None:
        return []
    chosen: list[Any] = [names] if isinstance(names, type | OwnScheme) else list_of(SettingError, option, names)
    if not any(chosen):
        raise SettingError(f"`{option}` names none; hint: leave it out for the usual ones")
    only_names(chosen, "advice")
    for name in chosen:
        check_text(SettingError, or_none=False, **{option: name})
    return chosen
