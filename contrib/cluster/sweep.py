"""Runs a study on a Dask cluster: ``python sweep.py STUDY SCHEDULER [WORKERS]``.

STUDY is the path of a study. The study and its traces are at the same path on every worker. SCHEDULER is an address
such as ``tcp://scheduler:8786``. The sweep begins when WORKERS workers have joined; workers that join later take part.
Each finished point is added to the results file beside the study. A killed sweep resumes when it is started again.
"""

import sys
from pathlib import Path

from distributed import Client

import bimetal


def main(study: str, scheduler: str, workers: int) -> None:
    """Run the study, and write its table and its report next to it."""
    path = Path(study)
    with Client(scheduler) as client:
        client.wait_for_workers(workers)
        results = path.with_suffix(".results.jsonl")
        swept = bimetal.sweep(path, engine="dask", client=client, results=results, progress=show)
    print(swept)
    swept.to_csv(path.with_suffix(".csv"))
    swept.html(path.with_suffix(".html"))


def show(done: int, of: int) -> None:
    """Show the progress on one line."""
    print(f"\r{done} of {of} points", end="" if done < of else "\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1)
