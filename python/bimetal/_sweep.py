"""Sweeps: many devices under many traces, on the threads of this process or on a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import html
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bimetal import _core
from bimetal._engines import CLUSTERS, Lost
from bimetal._errors import (
    BimetalError,
    SettingError,
    StudyError,
    check_order,
    check_path,
    check_progress,
    check_text,
    check_truth,
    check_whole,
    text_of,
    warn,
)
from bimetal._own import OwnScheme, only_names
from bimetal._records import SweepPoint, SweepRow
from bimetal._run import Progress
from bimetal._tables import Columns, Table, html_table, text_table, to_arrow, to_pandas
from bimetal._trace import call

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import pyarrow

#: The path of a study file, its text (of more than one line), or a mapping of the same structure.
AnyStudy = str | os.PathLike[str] | Mapping[str, Any]


def _rows(text: str) -> tuple[SweepRow, ...]:
    return tuple(SweepRow._from_dict(row) for row in json.loads(text))


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Sweep:
    """The rows of a sweep, in the order of the study."""

    _core: _core.Rows
    _command: str

    @functools.cached_property
    def rows(self) -> tuple[SweepRow, ...]:
        """A row for each point."""
        return _rows(self._core.json())

    @functools.cached_property
    def left_out(self) -> tuple[SweepRow, ...]:
        """Rows of schemes that ``all`` includes but a device does not allow. Tables leave them out."""
        return _rows(self._core.left_out())

    @property
    def title(self) -> str:
        """Title of the study."""
        return self._core.title()

    @property
    def failed(self) -> tuple[SweepRow, ...]:
        """Rows without figures."""
        return tuple(row for row in self.rows if row.failure)

    def front(self, *goals: str) -> tuple[SweepRow, ...]:
        """Return the rows that no other row of the same trace and replay beats in all goals at once.

        Goals are ``cost``, ``mean``, ``p99`` and ``life``; without any, ``cost``, ``mean`` and ``life``.
        """
        for goal in goals:
            check_text(SettingError, or_none=False, goals=goal)
        return tuple(self.rows[at] for at in self._core.front(goals))

    def _columns(self) -> Columns:
        kinds = {"text": str, "whole": int, "number": float, "truth": bool}
        return {name: (kinds[kind], cells) for name, kind, cells in self._core.columns()}

    def to_arrow(self) -> pyarrow.Table:
        """Return the table of :meth:`to_csv`, a row for each point, as a pyarrow Table."""
        return to_arrow(self._columns())

    def to_pandas(self) -> pandas.DataFrame:
        """Return the same table as a pandas DataFrame."""
        return to_pandas(self._columns())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as ``--csv`` does."""
        _write(path, self._core.csv())

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the table as ``--json`` does."""
        _write(path, self._core.table_json())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table as ``--parquet`` does."""
        _write(path, self._core.parquet())

    def html(self, path: str | os.PathLike[str]) -> None:
        """Write a page that opens offline, as ``--html`` does."""
        _write(path, self._core.html(self._command).encode())

    def plot(
        self,
        figure: str = "mean",
        *,
        trace: str | None = None,
        arrivals: str | None = None,
        ax: matplotlib.axes.Axes | None = None,
    ) -> matplotlib.axes.Axes:
        """Draw the cost of every point against its ``mean`` or ``p99`` response or its ``life``.

        The legend names the best points, those that nothing cheaper beats; the first twelve, if there are more.

        If there are several traces or arrivals, choose one.
        """
        from bimetal import _plot

        check_text(SettingError, or_none=False, figure=figure)
        if figure not in _plot.SWEPT:
            raise SettingError(f"there is no figure {figure!r}; there are: {', '.join(_plot.SWEPT)}")

        def is_chosen(point: SweepPoint) -> bool:
            return trace in (None, point.trace.name) and arrivals in (None, point.replay.arrivals)

        groups = [group for group in self._core.groups() if is_chosen(self.rows[group[0]].point)]
        if len(groups) != 1:
            points = [self.rows[group[0]].point for group in groups or self._core.groups()]
            known = ", ".join(f"{point.trace.name!r} {point.replay.arrivals!r}" for point in points)
            raise SettingError(f"choose one `trace` and its `arrivals`; there are: {known}")
        front, labels = set(self._core.front(("cost", figure))), self._core.labels()
        best = {labels[at]: self.rows[at] for at in groups[0] if at in front}
        return _plot.sweep([self.rows[at] for at in groups[0]], best, figure, ax)

    def _title(self) -> str:
        done = f"{len(self.rows) - len(self.failed)} done, {len(self.failed)} failed"
        left_out = f", {len(self.left_out)} left out" if self.left_out else ""
        return f"{self.title or 'Sweep'}: {len(self.rows)} points, {done}{left_out}; the best by cost, mean and life:"

    def _table(self) -> Table:
        from bimetal import _plot

        labels, front = self._core.labels(), self._core.front(())
        lives = (row.figures.lifetime_years for row in map(self.rows.__getitem__, front) if row.figures)
        unit, size = _plot.common_unit(_plot.LIVES, list(lives))
        cells = []
        for at in front:
            point, figures = self.rows[at].point, self.rows[at].figures
            assert figures is not None
            life = None if figures.lifetime_years is None else figures.lifetime_years / size
            values = (figures.cost_usd, figures.response_us.mean, figures.response_us.p99, life)
            shown = ["–" if value is None else f"{value:,.4g}" for value in values]
            if figures.lifetime_years is not None and figures.lifetime_overwrites < 1:
                shown[-1] = f"~{shown[-1]}"
            cells.append([labels[at], point.trace.name, point.replay.arrivals, *shown])
        return ["point", "trace", "arrivals", "cost (USD)", "mean (µs)", "99 % (µs)", f"life ({unit})"], cells

    def __repr__(self) -> str:
        """Numbers of finished and failed points, and the best points; ``~`` marks a life of less than one overwrite."""
        return f"{self._title()}\n{text_table(self._table())}"

    def _repr_html_(self) -> str:
        return f"<div>{html.escape(self._title())}</div>{html_table(self._table())}"

    def __eq__(self, other: object) -> bool:
        """Whether all rows are equal, including the speed of the simulation."""
        return isinstance(other, Sweep) and (self.rows, self.left_out) == (other.rows, other.left_out)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rows as JSON."""
        return _restored, (self._core.title(), self._core.json(), self._core.left_out(), self._command)


def _write(path: str | os.PathLike[str], content: bytes) -> None:
    check_path(SettingError, path=path)
    Path(path).write_bytes(content)


def _restored(title: str, rows: str, left_out: str, command: str) -> Sweep:
    return Sweep(_core.Rows(title, rows, left_out), command)


def sweep(
    study: AnyStudy,
    *,
    engine: str = "threads",
    client: Any = None,
    jobs: int | None = None,
    results: str | os.PathLike[str] | None = None,
    restart: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Run every point of a study.

    A point that cannot run has a row with the reason, and the other points continue. Ctrl-C ends the sweep; workers
    of a cluster finish the points that they have begun.

    Parameters
    ----------
    study
        The path of a study file, its text, or a mapping of the same structure: ``{"grids": [{"scheme": "all"}]}``.
        Its files are relative to the study file, or to the current folder if there is none.
    engine
        ``threads`` of this process, or a cluster of ``dask`` or ``ray``, whose workers need this version of Bimetal and
        the trace files at the same paths. Figures are the same with every engine.
    client
        The ``distributed.Client`` for ``dask``; by default the current one.
    jobs
        Number of points at once with ``threads``; by default the number of processors.
    results
        File in which each row is saved when it is done, and from which existing rows are taken. An interrupted sweep
        resumes from it, with any engine and also with ``bimetal sweep --results``.
    restart
        Discard existing results.
    progress
        Called with the number of finished points and of all points; with ``threads`` from these threads.

    """
    if engine not in ("threads", *CLUSTERS):
        raise SettingError(f"there is no engine `{engine}`; there are: threads, {', '.join(CLUSTERS)}")
    if client is not None and engine != "dask":
        raise SettingError("`client` is only for `engine='dask'`; leave it out")
    check_whole(SettingError, 1, jobs=jobs)
    check_truth(SettingError, restart=restart)
    check_progress(progress)
    if results is not None:
        check_path(SettingError, results=results)
    if jobs is not None and engine != "threads":
        raise SettingError(f"`jobs` is {jobs}: a cluster runs one point for each thread of its workers")
    text, is_json, folder, name = _read(study)
    opened = (text, is_json, folder, None if results is None else os.fspath(results), restart)
    try:
        if engine == "threads":
            core = _core.sweep(*opened, jobs or 0, progress)
        else:
            core = _on_cluster(_core.Sweep(*opened), engine, folder, client, progress)
    except StudyError as error:
        raise error if name is None else StudyError(f"{name}: {error}") from None
    made = Sweep(core, "bimetal.sweep(...)" if name is None else call("bimetal.sweep", name))
    if made.failed:
        failure = made.failed[0].failure
        said = f"{len(made.failed)} of {len(made.rows)} points failed, the first: {failure.what if failure else ''}"
        warn(said)
    return made


def _on_cluster(core: _core.Sweep, engine: str, folder: str, client: Any, progress: Progress | None) -> _core.Rows:
    tell = progress or (lambda _done, _of: None)
    # The results file is closed in any case: otherwise a traceback that is kept would keep it open.
    with contextlib.ExitStack() as ends:
        ends.callback(core.end)
        left = core.left()
        done = len(core) - len(left)
        tell(done, len(core))
        if left:
            for at, row in ends.enter_context(contextlib.closing(CLUSTERS[engine](left, folder, client))):
                (core.lose if isinstance(row, Lost) else core.keep)(at, row)
                done += 1
                tell(done, len(core))
        return core.end()


def _read(study: AnyStudy) -> tuple[str, bool, str, str | None]:
    """Return the text, whether it is JSON, the folder and the name."""
    if isinstance(study, Mapping):
        try:
            return json.dumps(_plain(study), allow_nan=False), True, str(Path.cwd()), None
        except BimetalError:
            raise
        except (TypeError, ValueError, RecursionError) as error:
            raise StudyError(f"a value of the study is no text, number or list of them: {error}") from None
    if isinstance(study, str) and "\n" in study:
        return study, False, str(Path.cwd()), None
    if not isinstance(study, str | os.PathLike):
        raise StudyError(
            f"the study is of type `{type(study).__name__}`; it is a path, the text of a study or a mapping"
        )
    if study == "":
        raise StudyError("the study is an empty text; it is a path, the text of a study or a mapping")
    path = Path(study)
    # Workers may have another current folder.
    return text_of(path, StudyError), False, str(path.absolute().parent), os.fspath(study)


def _plain(value: Any) -> Any:
    """Convert to JSON types: mappings without ``None`` values, paths, ranges, and numbers and arrays of NumPy."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            check_order(StudyError, **{str(key): item})
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, type | OwnScheme):
        only_names([value], "a sweep")
    if hasattr(value, "tolist"):
        return value.tolist()
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return [_plain(item) for item in value] if is_list else value
