"""Engines that run the points of a sweep: each receives a point and the folder of the study, and returns a row."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable
from typing import Any

from bimetal import _core
from bimetal._errors import SettingError

#: Points that are submitted to a cluster at once: enough to keep a large one busy, and few enough for its scheduler.
IN_FLIGHT = 1000

#: Number of times that Ray repeats a point whose worker was lost. Dask has a setting for it.
RETRIES = 3


class Lost(str):
    """The reason why a point has no row: the workers that ran it were lost."""


#: Index and JSON of a point.
Point = tuple[int, str]

#: Index and JSON of a row.
Row = tuple[int, str | Lost]


def run_point(point: str, folder: str) -> str:
    """Run a point, the unit of work of every engine. The row depends only on the arguments and the trace files."""
    return _core.run_point(point, folder)


def dask(points: Iterable[Point], folder: str, client: Any) -> Generator[Row]:
    """Run points on a Dask cluster, which repeats the points of a lost worker."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError("`engine='dask'` needs distributed; hint: `pip install 'bimetal[dask]'`") from error
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise SettingError("there is no Dask client; hint: `client=distributed.Client(...)`") from None
    if not isinstance(client, distributed.Client):
        raise SettingError(f"`client` is {client!r}: it is a `distributed.Client`")
    left = iter(points)
    places: dict[Any, int] = {}

    def submit(count: int) -> list[Any]:
        new = {client.submit(run_point, point, folder, pure=False): at for at, point in itertools.islice(left, count)}
        places.update(new)
        return list(new)

    done: Any = distributed.as_completed(submit(IN_FLIGHT))  # type: ignore[no-untyped-call]
    try:
        for future in done:
            try:
                row = future.result()
            except distributed.KilledWorker as error:
                row = Lost(f"its workers were lost, the last was {error.last_worker.address}")
            yield places.pop(future), row
            done.update(submit(1))
    finally:
        client.cancel(list(places))  # type: ignore[no-untyped-call]


def ray(points: Iterable[Point], folder: str, client: None) -> Generator[Row]:
    """Run points on the Ray cluster to which this process is connected, or start a local one."""
    try:
        import ray
    except ImportError as error:
        raise ImportError("`engine='ray'` needs ray; hint: `pip install ray`") from error
    run = ray.remote(max_retries=RETRIES)(run_point)
    left = iter(points)
    places = {run.remote(point, folder): at for at, point in itertools.islice(left, IN_FLIGHT)}
    try:
        while places:
            (done,), _ = ray.wait(list(places), num_returns=1)
            try:
                row = ray.get(done)
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
                row = Lost(f"its workers were lost: {error}")
            yield places.pop(done), row
            places.update((run.remote(point, folder), at) for at, point in itertools.islice(left, 1))
    finally:
        for reference in places:
            ray.cancel(reference)


#: Cluster engines by name.
CLUSTERS = {"dask": dask, "ray": ray}
