"""Diagrams with matplotlib, which only this module imports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bimetal._errors import SettingError, check_text

if TYPE_CHECKING:
    import matplotlib.axes

    from bimetal._advice import Advice
    from bimetal._papers import Plot
    from bimetal._records import Choice, Responses, SweepFigures, SweepRow
    from bimetal._results import Replay, Result

#: Units of time from small to large, with their microseconds.
TIMES = (("µs", 1.0), ("ms", 1e3), ("s", 1e6), ("h", 3.6e9))
#: Units of life from small to large, with their years.
LIVES = (("hours", 1 / 8766), ("days", 1 / 365.25), ("years", 1.0))

#: Figures against which cost is drawn, by the name of their goal.
SWEPT = {"mean": "mean response", "p99": "99th percentile of responses", "life": "life"}

#: Above this ratio of the largest to the smallest value an axis is logarithmic.
_WIDE = 12
#: First digits of the labels between the powers of ten, up to a ratio of the ends of a logarithmic axis.
_BETWEEN = ((3, "123456789"), (3000, "25"))
#: Points whose names fit into a legend.
_NUMBERED_MAX = 12
#: Letters of names that fit below an axis side by side.
_LABELS_MAX = 90
#: A budget beyond this multiple of the most expensive device is not drawn.
_FAR = 1.5

#: Behind the unit of lives, if any is.
_EXTRAPOLATED = ", extrapolated from less than one overwrite"
#: In a diagram of responses without a point.
_NONE = "every device falls behind"
_NO_TIMES = "the trace has neither reads nor writes"

#: Entries of a legend below each other, which a figure of the usual height has room for.
_ENTRIES_MAX = 20
#: Shapes of marks: each takes all colours once.
_SHAPES = "os^Dv"
#: A text to the right of a point.
_BESIDE: dict[str, Any] = {"textcoords": "offset points", "va": "center"}


def _axes(ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("`plot` needs matplotlib; hint: `pip install matplotlib`") from error
    return plt.subplots(layout="constrained")[1]


def _legend_beside(ax: Any, is_ours: bool, **options: Any) -> None:
    """Put the legend beside the plot, which it would cover. A figure of our own grows by it: the plot would shrink."""
    entries = len(ax.get_legend_handles_labels()[1])
    if not entries:
        return
    columns = -(-entries // _ENTRIES_MAX)
    legend = ax.legend(loc="upper left", bbox_to_anchor=(1, 1), ncols=columns, **options)
    if is_ours:
        width, height = ax.figure.get_size_inches()
        ax.figure.set_size_inches(width + legend.get_window_extent().width / ax.figure.dpi, height)


def _mark(number: int) -> tuple[str, str]:
    """Return colour and shape of the marks of a scheme."""
    return f"C{number % 10}", _SHAPES[number // 10 % len(_SHAPES)]


def common_unit(units: Sequence[tuple[str, float]], values: Sequence[float | None]) -> tuple[str, float]:
    """Return the largest unit in which the largest value is at least 1, and its size."""
    most = max((value for value in values if value is not None), default=0.0)
    return next(((name, size) for name, size in reversed(units) if most >= size), units[0])


def comparison(
    results: Sequence[Result], title: str, figure: str, ax: matplotlib.axes.Axes | None
) -> matplotlib.axes.Axes:
    """Draw schemes side by side, the first on top."""
    draw = {
        "response": _responses,
        "operations": _operations,
        "write_amplification": _write_amplification,
        "life": _lives,
        "cost": _costs,
    }
    check_text(SettingError, or_none=False, figure=figure)
    if figure not in draw:
        raise SettingError(f"there is no figure {figure!r}; there are: {', '.join(draw)}")
    is_ours, ax = ax is None, _axes(ax)
    draw[figure](ax, results)
    if figure in ("response", "operations"):
        _legend_beside(ax, is_ours, title="cause" if figure == "operations" else None)
    ax.set_yticks(range(len(results)), [result.scheme for result in results])
    ax.invert_yaxis()
    ax.set_title(title, parse_math=False)
    return ax


def _bars(ax: Any, values: Sequence[float | None], label: str) -> None:
    ax.barh(range(len(values)), [0.0 if value is None else value for value in values])
    for place, value in enumerate(values):
        if value is None:
            # A bar of length 0 would be the shortest life.
            ax.text(0, place, " none", va="center")
    if not any(values):
        ax.set_xlim(0, 1)
    ax.set_xlabel(label)


def _responses(ax: Any, results: Sequence[Result]) -> None:
    # Responses of a device that falls behind only reflect the length of the trace.
    late = [result.load.overload == "growing" for result in results]
    kept = [(place, result.response_us) for place, result in enumerate(results) if not late[place]]
    served = [(place, result.service_us) for place, result in enumerate(results) if result.service_us is not None]
    # Trims have no responses.
    kept, served = ([row for row in rows if row[1].count] for rows in (kept, served))
    alone = all(result.arrivals == "closed:1" for result in results)
    drawn: list[tuple[str, list[tuple[int, Responses]], str, str]] = []
    if served and not alone:
        drawn.append(("service time", served, "C1s", "C1|"))
    drawn.append(("service time" if alone else "response", kept, "C0o", "C0|"))
    times = [times for _, rows, _, _ in drawn for _, times in rows]
    unit, size = common_unit(TIMES, [time.mean for time in times])
    # Marks, not bars: the axis is logarithmic and has no zero at which bars could begin.
    for name, rows, mark, line in drawn:
        places = [place for place, _ in rows]
        ax.plot([time.mean / size for _, time in rows], places, mark, label=f"{name}, mean")
        ax.plot([time.p99 / size for _, time in rows], places, line, markersize=10, label=f"{name}, 99th percentile")
    if any(time.mean > 0 for time in times):
        _logarithmic(ax.set_xscale, ax.xaxis)
    elif not any(late):
        ax.text(0.5, 0.5, _NO_TIMES, ha="center", transform=ax.transAxes)
    ax.set_ylim(-0.6, len(results) - 0.4)
    ax.grid(axis="x", alpha=0.3)
    ax.set_xlabel(f"{' and '.join(name for name, *_ in drawn)} ({unit})")
    for place, result in enumerate(results):
        if late[place]:
            # At the right edge, in the place of responses.
            text = f"falls behind by {result.backlog_s:,.3g} s"
            ax.annotate(text, (1, place), xycoords=("axes fraction", "data"), xytext=(-3, 0), ha="right", **_BESIDE)


def _operations(ax: Any, results: Sequence[Result]) -> None:
    times = [{row.cause: 0.0 for row in result.ops} for result in results]
    for time, result in zip(times, results, strict=True):
        for row in result.ops:
            time[row.cause] += row.time_us
    causes = list(dict.fromkeys(cause for time in times for cause in time))
    unit, size = common_unit(TIMES, [sum(time.values()) for time in times])
    left = [0.0] * len(results)
    for cause in causes:
        widths = [time.get(cause, 0.0) / size for time in times]
        ax.barh(range(len(results)), widths, left=left, label=cause.replace("_", " "))
        left = [before + width for before, width in zip(left, widths, strict=True)]
    ax.set_xlabel(f"time of operations ({unit})")


def _write_amplification(ax: Any, results: Sequence[Result]) -> None:
    _bars(ax, [result.write_amplification for result in results], "bytes programmed per byte written")


def _lives(ax: Any, results: Sequence[Result]) -> None:
    years = [result.lifetime_years for result in results]
    unit, size = common_unit(LIVES, years)
    # The table marks it in the same way.
    short = any(result.lifetime_overwrites < 1 and result.lifetime_years is not None for result in results)
    label = f"life ({unit}{_EXTRAPOLATED if short else ''})"
    _bars(ax, [None if life is None else life / size for life in years], label)


def _costs(ax: Any, results: Sequence[Result]) -> None:
    _bars(ax, [result.cost_usd for result in results], "cost (USD)")


def over_time(of: Replay, figure: str, ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    """Draw figures of one scheme over the measured requests."""
    result = of.result
    if not result.intervals:
        raise SettingError("there are no figures over time; hint: replay with `intervals` above 0")
    if figure not in ("response", "operations", *result.metrics):
        known = ", ".join(["response", "operations", *result.metrics])
        raise SettingError(f"there is no figure {figure!r}; there are: {known}")
    is_ours, ax = ax is None, _axes(ax)
    requests = [interval.requests for interval in result.intervals]
    if figure == "response":
        # Trims alone have no responses.
        served = [interval for interval in result.intervals if interval.response_max_us > 0]
        unit, size = common_unit(TIMES, [interval.response_mean_us for interval in served])
        requests = [interval.requests for interval in served]
        ax.plot(requests, [interval.response_mean_us / size for interval in served], marker=".", label="mean")
        ax.plot(requests, [interval.response_max_us / size for interval in served], marker=".", label="longest")
        ax.set_ylabel(f"{'service time' if result.arrivals == 'closed:1' else 'response'} ({unit})")
        if served:
            _logarithmic(ax.set_yscale, ax.yaxis)
        else:
            ax.text(0.5, 0.5, _NO_TIMES, ha="center", transform=ax.transAxes)
        ax.legend()
    elif figure == "operations":
        regions = list(dict.fromkeys(row.region for interval in result.intervals for row in interval.ops))
        for region in regions:
            for kind in ("read", "program", "erase"):
                found = ({row.region: row for row in interval.ops}.get(region) for interval in result.intervals)
                counts = [0 if row is None else getattr(row, kind) for row in found]
                ax.plot(requests, counts, marker=".", label=f"{region} {kind}")
        ax.set_ylabel("operations in the interval")
        _legend_beside(ax, is_ours)
    else:
        place = list(result.metrics).index(figure)
        values = [interval.metrics[place] for interval in result.intervals]
        ax.plot(requests, [float("nan") if value is None else value for value in values], marker=".")
        ax.set_ylabel(figure)
    ax.set_xlabel("measured requests")
    ax.set_title(f"{result.scheme} on {of.trace.name}", parse_math=False)
    return ax


def diagram(of: Plot, ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    """Draw a figure of a paper."""
    is_ours, ax = ax is None, _axes(ax)
    bars = of.kind in ("bars", "stacked_bars")
    named = bars or any(isinstance(place, str) for series in of.series for place, _ in series.points)
    names = list(dict.fromkeys(_place(place) for series in of.series for place, _ in series.points))
    bottom = dict.fromkeys(names, 0.0)
    width = 0.8 / max(1, len(of.series) if of.kind == "bars" else 1)
    for number, series in enumerate(of.series):
        label = f"{series.name}, paper" if series.origin == "paper" != series.name else series.name
        points = [(place, height) for place, height in series.points if height is not None]
        heights = [height for _, height in points]
        places: list[float] = (
            [names.index(_place(place)) for place, _ in points] if named else [float(place) for place, _ in points]
        )
        if of.kind == "stacked_bars":
            ax.bar(places, heights, width, bottom=[bottom[_place(place)] for place, _ in points], label=label)
            for place, height in points:
                bottom[_place(place)] += height
        elif of.kind == "bars":
            shift = (number - (len(of.series) - 1) / 2) * width
            ax.bar([place + shift for place in places], heights, width, label=label)
        else:
            of_paper = series.origin == "paper"
            line = "none" if of.kind == "marks" else "--" if of_paper else "-"
            ax.plot(places, heights, linestyle=line, marker="x" if of_paper else "o", label=label)
    if named:
        # Many or long names do not fit side by side.
        turned = sum(map(len, names)) > _LABELS_MAX
        ax.set_xticks(range(len(names)), names, rotation=90 if turned else 0, fontsize="x-small" if turned else None)
    elif of.x.logarithmic:
        _logarithmic(ax.set_xscale, ax.xaxis)
    if of.y.logarithmic:
        _logarithmic(ax.set_yscale, ax.yaxis)
    ax.set_xlabel(of.x.label)
    ax.set_ylabel(of.y.label)
    ax.set_title(of.title, parse_math=False)
    if of.series and bars:
        # Bars reach into every corner.
        _legend_beside(ax, is_ours)
    elif of.series:
        ax.legend()
    return ax


def _logarithmic(scale: Any, axis: Any) -> None:
    """Make the axis of a plot logarithmic, with labels that do not cover each other."""
    scale("log")
    low, high = axis.get_view_interval()
    between = next((digits for ratio, digits in _BETWEEN if high < ratio * low), "")
    axis.set_major_formatter(_plain_ticks("123456789"))
    axis.set_minor_formatter(_plain_ticks(between))


def _logarithmic_where_wide(ax: Any, across: Sequence[float], up: Sequence[float]) -> None:
    for values, scale, axis in ((across, ax.set_xscale, ax.xaxis), (up, ax.set_yscale, ax.yaxis)):
        if values and max(values) > _WIDE * min(values) > 0:
            _logarithmic(scale, axis)


def _plain_ticks(digits: str) -> Any:
    """Return a formatter of logarithmic ticks: plain numbers, if they begin with one of these digits."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:,g}" if f"{value:e}"[0] in digits else "")


def _place(place: float | str) -> str:
    return place if isinstance(place, str) else f"{place:g}"


def sweep(
    rows: Sequence[SweepRow], best: Mapping[str, SweepRow], figure: str, ax: matplotlib.axes.Axes | None
) -> matplotlib.axes.Axes:
    """Draw cost against a figure, a colour for each scheme, and a line along the best points, numbered by cost."""

    def of(figures: SweepFigures) -> float | None:
        if figure == "life":
            return figures.lifetime_years
        # Responses of an overloaded device only reflect the length of the trace.
        return None if figures.overload == "growing" else getattr(figures.response_us, figure)

    def places(rows: Iterable[SweepRow]) -> list[tuple[float, float]]:
        found = [(row.figures.cost_usd, of(row.figures)) for row in rows if row.figures]
        return [(cost, value) for cost, value in found if value is not None]

    drawn_at = places(rows)
    unit, size = common_unit(LIVES if figure == "life" else TIMES, [value for _, value in drawn_at])
    is_ours, ax = ax is None, _axes(ax)
    line = sorted(places(best.values()))
    ax.step([cost for cost, _ in line], [value / size for _, value in line], "k-", where="post", lw=1, label="the best")
    for number, scheme in enumerate(dict.fromkeys(row.point.scheme for row in rows)):
        own = places(row for row in rows if row.point.scheme == scheme)
        if own:
            colour, shape = _mark(number)
            ax.plot([cost for cost, _ in own], [value / size for _, value in own], shape, color=colour, label=scheme)
    # Names at the points would cover each other, and so would numbers of points at one place.
    shown = ((place, name) for name, row in best.items() for place in places([row]))
    numbers: dict[tuple[float, float], list[str]] = {}
    for number, (place, name) in enumerate(sorted(shown)[:_NUMBERED_MAX], 1):
        numbers.setdefault(place, []).append(str(number))
        ax.plot([], [], " ", label=f"{number}  {name}")
    for (cost, value), of_place in numbers.items():
        ax.annotate(", ".join(of_place), (cost, value / size), (4, 4), textcoords="offset points")
    _logarithmic_where_wide(ax, [cost for cost, _ in drawn_at], [value / size for _, value in drawn_at])
    # A row without a life is not drawn.
    drawn = (row.figures for row in rows if row.figures and of(row.figures) is not None)
    short = figure == "life" and any(figures.lifetime_overwrites < 1 for figures in drawn)
    ax.set_xlabel("cost (USD)")
    ax.set_ylabel(f"{SWEPT[figure]} ({unit}{_EXTRAPOLATED if short else ''})")
    if not drawn_at:
        ax.text(0.5, 0.5, _NONE, ha="center", transform=ax.transAxes)
    ax.set_title(f"{rows[0].point.trace.name}, {rows[0].point.replay.arrivals}", parse_math=False)
    _legend_beside(ax, is_ours)
    return ax


def advice(of: Advice, response: str, words: str, ax: matplotlib.axes.Axes | None) -> matplotlib.axes.Axes:
    """Draw cost against a response, a colour for each scheme; devices that meet the goals have filled marks."""

    def places(choices: Iterable[Choice]) -> list[tuple[float, float]]:
        # A device without a response falls behind.
        return [(choice.cost_usd, getattr(choice.response_us, response)) for choice in choices if choice.response_us]

    costs, times = ([value[axis] for value in places(of.simulated)] for axis in (0, 1))
    unit, size = common_unit(TIMES, times)
    is_ours, ax = ax is None, _axes(ax)

    def mark(choices: Iterable[Choice], style: str, **options: Any) -> None:
        found = places(choices)
        ax.plot([cost for cost, _ in found], [us / size for _, us in found], style, **options)

    for number, scheme in enumerate(dict.fromkeys(choice.scheme for choice in of.simulated)):
        own = [choice for choice in of.simulated if choice.scheme == scheme]
        colour, shape = _mark(number)
        mark((choice for choice in own if not choice.meets), shape, color=colour, fillstyle="none")
        mark((choice for choice in own if choice.meets), shape, color=colour)
        ax.plot([], [], shape, color=colour, label=scheme)
    mark(of.front, "ko", fillstyle="none", markersize=11, label="best by cost, response and life")
    if of.recommended:
        mark([of.recommended], "k*", markersize=16, label="recommended")
    ax.plot([], [], "o", color="gray", label="meets all goals")
    ax.plot([], [], "o", color="gray", fillstyle="none", label="does not")
    across, up = [*costs], [*times]
    for goal in of.goals:
        if goal.measure == response:
            ax.axhline(goal.limit / size, color="gray", linestyle="--", label=f"goal: {words}")
            up.append(goal.limit)
        elif goal.measure == "budget" and goal.limit <= _FAR * max(costs, default=0):
            ax.axvline(goal.limit, color="gray", linestyle=":", label="goal: budget")
            across.append(goal.limit)
    # With the goals, which may be far from every device.
    _logarithmic_where_wide(ax, across, up)
    ax.set_xlabel("cost (USD)")
    ax.set_ylabel(f"{words} ({unit})")
    ax.set_title(f"{of.trace.name}, {of.replay.arrivals}", parse_math=False)
    if not times:
        ax.text(0.5, 0.5, _NONE, ha="center", transform=ax.transAxes)
    _legend_beside(ax, is_ours)
    return ax
