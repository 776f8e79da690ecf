"""Replays: one scheme in full, or several side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeVar

from bimetal import _core
from bimetal._device import Device, Settings, settings_text
from bimetal._errors import (
    DeviceError,
    SchemeError,
    SettingError,
    TraceError,
    check_order,
    check_progress,
    check_text,
    check_whole,
    warn,
)
from bimetal._own import AnyScheme, line
from bimetal._results import Comparison, Replay
from bimetal._trace import Trace, call

#: A trace, the path of a trace file, or ``None`` for the real trace in the package.
AnyTrace = Trace | str | os.PathLike[str] | None

#: A device, the name of a preset, or ``auto``.
AnyDevice = Device | str

#: Data on a device before a replay.
Fill = Literal["device", "trace", "none"]

#: Called with the numbers of finished parts and of all parts: schemes, points, simulations or replays.
Progress = Callable[[int, int], object]

_Result = TypeVar("_Result", bound=Comparison)


def replay(
    trace: AnyTrace = None,
    scheme: AnyScheme | None = None,
    *,
    device: AnyDevice = "auto",
    set: Settings | None = None,
    seed: int | None = None,
    arrivals: str | None = None,
    repeat: int = 1,
    measure: int | None = None,
    fill: Fill = "device",
    intervals: int = 12,
) -> Replay:
    """Run one scheme, by default that of the device, and measure it in full.

    Results equal those of the command line bit for bit. Ctrl-C ends the replay.

    Parameters
    ----------
    trace
        A :class:`Trace` or the path of a trace file; by default the real trace in the package.
    scheme
        One of :func:`bimetal.schemes`, or a class that derives from :class:`OwnScheme`.
    device
        A :class:`Device` or the name of a preset; ``auto`` fits one to the trace.
    set
        Parameters of the scheme and fields of the device: ``{"fast.capacity": "32MiB", "slow.spare": "7%"}``.
    seed
        Seed of all pseudo-random choices of the device.
    arrivals
        ``closed``, ``closed:DEPTH`` or ``trace``, ``trace:SPEED``, which follows the time stamps. By default a trace
        with times is replayed twice: at its times, for responses, and with one request at a time, for service times.
    repeat, measure
        Number of replays of the trace, and number of measured replays at the end; by default all.
    fill
        Data on the device before the replay: ``device`` writes every logical unit, ``trace`` only the
        64-KiB extents that the trace reads or writes; with ``none`` all blocks are erased.
    intervals
        Number of intervals of figures over time.

    """
    found = _device(device)
    name = scheme or found.scheme
    if name is None:
        raise SchemeError("no scheme is named; hint: `scheme` is one of `bimetal.schemes()`")
    if name == "all":
        raise SchemeError("`replay` runs one scheme; hint: use `compare` for several")
    plan = _plan(arrivals, repeat, measure, fill, intervals)
    return _run(Replay, "replay", _trace(trace), [name], found, _settings(set, seed), plan, 1, 0)


def compare(
    trace: AnyTrace = None,
    schemes: AnyScheme | Sequence[AnyScheme] = "all",
    *,
    device: AnyDevice = "auto",
    set: Settings | None = None,
    seed: int | None = None,
    arrivals: str | None = None,
    repeat: int = 1,
    measure: int | None = None,
    fill: Fill = "device",
    intervals: int = 0,
    seeds: int = 1,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Run several schemes on the same requests; ``all`` (the default) runs every scheme that the device allows.

    A scheme is a name, or a class that derives from :class:`OwnScheme`. The others are compared with the first one.
    With ``seeds`` above 1 each scheme is replayed with this number of consecutive seeds, beginning with the device's
    own, for ``Result.spread``. ``jobs`` is the number of schemes that run at once; by default the number of processors.
    ``progress`` is called with the number of finished schemes and of all schemes, from the threads that replay them; an
    exception that it raises ends the comparison. The other parameters are those of :func:`replay`.
    """
    check_order(SchemeError, schemes=schemes)
    names = list(schemes) if isinstance(schemes, Iterable) and not isinstance(schemes, str) else [schemes]
    if not names:
        raise SchemeError("no scheme is named; hint: `all` is every scheme that the device allows")
    check_whole(SettingError, 1, 100, or_none=False, seeds=seeds)
    check_whole(SettingError, 1, jobs=jobs)
    check_progress(progress)
    plan = _plan(arrivals, repeat, measure, fill, intervals)
    chosen = None if names == ["all"] else names
    settings, on = _settings(set, seed), _device(device)
    return _run(Comparison, "compare", _trace(trace), chosen, on, settings, plan, seeds, jobs or 0, progress)


_Plan = tuple[str | None, int, int, Fill, int]


def _run(
    kind: type[_Result],
    function: str,
    trace: Trace,
    schemes: Sequence[AnyScheme] | None,
    device: Device,
    settings: dict[str, str],
    plan: _Plan,
    seeds: int,
    jobs: int,
    progress: Progress | None = None,
) -> _Result:
    asked = schemes or ()
    classes = list(dict.fromkeys(line(scheme) for scheme in asked if not isinstance(scheme, str)))
    names = [scheme if isinstance(scheme, str) else line(scheme)[0] for scheme in asked] or None
    of_device = list(settings.items())
    core = _core.compare_schemes(trace._requests, names, classes, device._file, of_device, *plan, seeds, jobs, progress)
    arrivals, repeat, measure, fill, intervals = plan
    options = {
        "device": _typed(device),
        "set": settings or None,
        "arrivals": arrivals,
        "repeat": None if repeat == 1 else repeat,
        "measure": None if measure == repeat else measure,
        "fill": None if fill == "device" else fill,
        "intervals": intervals or None,
        "seeds": None if seeds == 1 else seeds,
    }
    typed = [scheme if isinstance(scheme, str) else _Literal(scheme.__name__) for scheme in asked] or None
    of_schemes: dict[str, object] = {"scheme": typed[0]} if kind is Replay and typed else {"schemes": typed}
    command = call(f"bimetal.{function}", _Literal(trace._origin), **of_schemes, **options)
    made = kind._of(core, command)
    known = {*trace.warnings}
    for warning in made.warnings:
        if warning not in known:
            warn(warning)
    return made


class _Literal(str):
    """A text that is printed without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _trace(trace: AnyTrace) -> Trace:
    if trace is None:
        return Trace.sample()
    if isinstance(trace, Trace):
        return trace
    if not isinstance(trace, str | os.PathLike):
        raise TraceError(
            f"the trace is of type `{type(trace).__name__}`; hint: `bimetal.Trace.from_frame` takes tables"
        )
    return Trace.open(trace)


def _device(device: AnyDevice) -> Device:
    if isinstance(device, Device):
        return device
    if not isinstance(device, str):
        raise DeviceError(f"`device` is {device!r}; hint: `bimetal.Device.open(path)` reads a device file")
    return Device.auto() if device == "auto" else Device.preset(device)


def _typed(device: Device) -> str | None:
    """Return the device as it is typed in a call."""
    if device._file is None:
        return None
    name = device.name
    try:
        is_preset = Device.preset(name) == device
    except DeviceError:
        is_preset = False
    return name if is_preset else _Literal("bimetal.Device.from_toml(...)")


def _settings(settings: Settings | None, seed: int | None) -> dict[str, str]:
    return dict(settings_text(settings)) | ({} if seed is None else {"seed": str(seed)})


def _plan(arrivals: str | None, repeat: int, measure: int | None, fill: Fill, intervals: int) -> _Plan:
    check_whole(SettingError, 1, 2**32 - 1, or_none=False, repeat=repeat)
    check_whole(SettingError, 1, 2**32 - 1, measure=measure)
    check_whole(SettingError, 0, 100_000, or_none=False, intervals=intervals)
    check_text(SettingError, arrivals=arrivals)
    check_text(SettingError, or_none=False, fill=fill)
    measured = repeat if measure is None else measure
    if measured > repeat:
        raise SettingError(f"`measure` is {measured}, more than the {repeat} passes of `repeat`")
    return arrivals, repeat, measured, fill, intervals
