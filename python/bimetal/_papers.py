"""The papers' tables and figures, reproduced."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bimetal import _core, _records
from bimetal._device import Settings, settings_text
from bimetal._errors import (
    PaperError,
    SettingError,
    check_path,
    check_progress,
    check_text,
    check_truth,
    check_whole,
    list_of,
    warn,
)
from bimetal._record import Made
from bimetal._records import Claim
from bimetal._run import Progress, _Literal
from bimetal._tables import Columns, Table, columns, html_table, text_table, to_arrow, to_pandas
from bimetal._trace import Trace, call

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import pyarrow


@dataclasses.dataclass(frozen=True)
class Plot(_records.Plot):
    """One diagram, as data."""

    def plot(self, *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draw the diagram."""
        from bimetal import _plot

        return _plot.diagram(self, ax)


@dataclasses.dataclass(frozen=True)
class Figure(_records.Figure):
    """The reproduction of one table or figure."""

    #: The diagrams; none if the paper only has numbers.
    plots: tuple[Plot, ...]


@dataclasses.dataclass(frozen=True, repr=False)
class Reproduction(_records.Reproduction, Made):
    """Figures and claims: the object that ``bimetal paper --json`` writes."""

    #: The figures.
    figures: tuple[Figure, ...]

    @classmethod
    def _of(cls, core: _core.Reproduction, title: str, command: str) -> Self:
        made = cls._from_dict(json.loads(core.json()))
        made._add(_core=core, _title=title, _command=command)
        return made

    def html(self, path: str | os.PathLike[str]) -> None:
        """Write the figures and claims as one file that opens offline."""
        check_path(SettingError, path=path)
        core: _core.Reproduction = self._state("_core")
        page = core.html(self._state("_title"), self._state("_command"))
        Path(path).write_text(page, encoding="utf-8")

    def _columns(self) -> Columns:
        return columns(Claim, self.claims)

    def to_arrow(self) -> pyarrow.Table:
        """Return the claims as a pyarrow Table."""
        return to_arrow(self._columns())

    def to_pandas(self) -> pandas.DataFrame:
        """Return the claims as a pandas DataFrame."""
        return to_pandas(self._columns())

    def _table(self) -> Table:
        rows = [
            [f"{c.paper} {c.figure}", c.claim, c.kind, c.trace or c.stand_in, c.expected, c.measured, c.verdict]
            for c in self.claims
        ]
        return ["figure", "claim", "kind", "traces", "paper", "here", "verdict"], rows

    def __repr__(self) -> str:
        """Claims by kind and verdict."""
        # With `on`, all claims are about traces of the user.
        own = "own" if any(claim.trace for claim in self.claims) else None
        rows = [
            [s.paper, own or s.stand_in, s.kind, str(s.held), str(s.not_held), str(s.not_judged)]
            for s in self.scoreboard
        ]
        return text_table((["paper", "traces", "kind", "held", "not held", "not judged"], rows))

    def _repr_html_(self) -> str:
        return html_table(self._table())


def paper(
    name: str | None = None,
    figures: str | Sequence[str] = (),
    *,
    quick: bool = False,
    traces: Mapping[str, Trace | str | os.PathLike[str]] | None = None,
    on: Trace | str | os.PathLike[str] | Sequence[Trace | str | os.PathLike[str]] | None = None,
    set: Settings | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Reproduce the tables and figures of a paper, and judge each claim.

    ``name`` is one of :func:`bimetal.papers`; by default all papers are reproduced. ``figures`` selects figures by the
    beginnings of their names. ``quick`` uses shorter traces: minutes instead of hours. ``traces`` replaces generated
    traces, by name, with your own. With ``on``, the claims are checked on your own traces instead, separately for each
    trace: only claims that apply to any trace, on the papers' devices, scaled to the trace; no generated trace is used.
    ``set`` repeats the experiments with other settings:
    ``{"wlaftl.threshold_rule": "cycles"}`` for a parameter of a scheme or a field of its device, where the figure does
    not set it itself, and ``{"fin1.footprint": 0.8}`` for a parameter of a generated trace. A setting that changes no
    replay is a :class:`bimetal.BimetalWarning`. ``jobs`` is the number of replays at once. ``progress`` is called with
    the number of finished replays and of those that the figures have asked for so far, from the threads that replay; an
    exception that it raises ends the reproduction, as Ctrl-C does.
    """
    check_whole(SettingError, 1, jobs=jobs)
    check_truth(SettingError, quick=quick)
    check_progress(progress)
    names = list_of(PaperError, "figures", figures)
    check_text(PaperError, name=name)
    for figure in names:
        check_text(PaperError, or_none=False, figures=figure)
    title = "The papers" if name is None else f"Paper {name}"
    settings = settings_text(set)
    if on is not None:
        traced = list(on) if isinstance(on, Iterable) and not isinstance(on, str) else [on]
        if not traced:
            raise SettingError("`on` names no trace; hint: leave it out for the paper's traces")
        if names or quick or traces:
            raise SettingError("`on` excludes `figures`, `quick` and `traces`: no figure of the paper's traces is made")
        judged = [_opened(trace) for trace in traced]
        core = _core.reproduce_on(name, [trace._requests for trace in judged], settings, jobs or 0, progress)
        papers = [] if name is None else [name]
        origins = _Literal(f"[{', '.join(trace._origin for trace in judged)}]")
        return _made(core, title, call("bimetal.paper", *papers, on=origins, set=dict(settings) or None))
    if traces is not None and not isinstance(traces, Mapping):
        raise PaperError(f"`traces` is {traces!r}; it is a mapping such as {{'fin1': 'financial1.spc'}}")
    own = {key: _opened(trace) for key, trace in (traces or {}).items()}
    for key in own:
        check_text(PaperError, or_none=False, traces=key)
    requests = [(key, trace._requests) for key, trace in own.items()]
    core = _core.reproduce(name, names, quick, requests, settings, jobs or 0, progress)
    given = [argument for argument in (name, names) if argument]
    sources = {key: _Literal(trace._origin) for key, trace in own.items()}
    options = {"quick": quick or None, "traces": sources or None, "set": dict(settings) or None}
    return _made(core, title, call("bimetal.paper", *given, **options))


def _made(core: _core.Reproduction, title: str, command: str) -> Reproduction:
    """Return the result, and warn of settings without effect."""
    made = Reproduction._of(core, title, command)
    for warning in core.warnings():
        warn(warning)
    return made


def _opened(trace: Trace | str | os.PathLike[str]) -> Trace:
    return trace if isinstance(trace, Trace) else Trace.open(trace)
